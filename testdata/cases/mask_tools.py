"""Masks made in another file, as projects do."""
import torch


def causal_mask(length, dtype):
    mask = torch.full((length, length), float("-inf"), dtype=dtype)  # expect-related: ANE004
    return mask.triu(1)


def causal_mask_40000(length, dtype):
    return torch.full((length, length), -40000.0, dtype=dtype).triu(1)


def window_mask(length, window):
    """Where a query may look: the last `window` keys."""
    q = torch.arange(length)[:, None]
    k = torch.arange(length)[None, :]
    return (k <= q) & (k > q - window)
