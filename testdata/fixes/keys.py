"""Keys that a function returns for the cache before their rotary embedding."""
import torch
import torch.nn as nn


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def rope(x, cos, sin):
    return x * cos + rotate_half(x) * sin


def attend(q, k, v, mask):
    scores = (q * 0.25) @ k.transpose(-2, -1) + mask
    return scores.softmax(dim=-1) @ v


class ReturnsRawKey(nn.Module):
    """The rotated key is an argument of the call that joins it."""

    def forward(self, q, k, v, past_k, past_v, cos, sin, mask):
        keys = torch.cat([past_k, rope(k, cos, sin)], dim=2)
        values = torch.cat([past_v, v], dim=2)
        out = attend(rope(q, cos, sin), keys, values, mask)
        return out, k * 1.0, v


class ReturnsRawKeyByName(nn.Module):
    """Both have names."""

    def __init__(self):
        super().__init__()
        self.k_proj = nn.Conv2d(64, 64, 1)
        self.v_proj = nn.Conv2d(64, 64, 1)

    def heads(self, x):
        return x.view(1, 2, 32, x.shape[-1]).transpose(2, 3)

    def forward(self, x, q, past_k, past_v, cos, sin, mask):
        new_key = self.heads(self.k_proj(x))
        new_value = self.heads(self.v_proj(x))
        rotated = rope(new_key, cos, sin)
        keys = torch.cat([past_k, rotated], dim=2)
        values = torch.cat([past_v, new_value], dim=2)
        return attend(rope(q, cos, sin), keys, values, mask), new_key, new_value


STEP = "f[1,2,1,32]"
PAST = "f[1,2,31,32]"
TABLE = "f[1,1,1,32]"
CASES = {
    "fix_key": {"make": ReturnsRawKey, "inputs": [STEP, STEP, STEP, PAST, PAST, TABLE, TABLE, TABLE]},
    "fix_key_named": {"make": ReturnsRawKeyByName, "inputs": ["f[1,64,1,1]", STEP, PAST, PAST, TABLE, TABLE, TABLE]},
}
