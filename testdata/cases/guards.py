"""Code that looks like a fault and is none, beside the fault that it looks like."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SlotAttention(nn.Module):
    """The softmax runs over the slots; the division makes the weights of each slot add up to 1."""

    def forward(self, slots, k, v):  # expect-not: ANE015
        dots = torch.einsum("bid,bjd->bij", slots, k) * 0.125
        weights = dots.softmax(dim=1) + 0.001
        weights = weights / weights.sum(dim=-1, keepdim=True)
        return torch.einsum("bjd,bij->bid", v, weights)


class DistributionsAsValues(nn.Module):
    """What the attention weighs are distributions themselves, over another axis."""

    def forward(self, q, k, x):  # expect-not: ANE015
        shares = x.softmax(dim=2)
        scores = torch.einsum("bid,bjd->bij", q, k) * 0.125
        return torch.einsum("bij,bjd->bid", scores.softmax(dim=-1), shares)


class ClampBeyondF16(nn.Module):
    """A bound that f16 cannot hold, and one that it can."""

    def forward(self, x):
        y = torch.clamp(torch.relu(x), -1e9, 1e9)  # expect: ANE040; aimodel: -
        return torch.clamp(y, -60000.0, 60000.0)


BSD = "f[1,32,64]"
CASES = {
    "guard_slots": {"make": SlotAttention, "inputs": ["f[1,32,64] x3"]},
    "guard_distributions": {"make": DistributionsAsValues, "inputs": ["f[1,32,64] x3"]},
    "guard_clamp": {"make": ClampBeyondF16, "inputs": ["f[1,64,1,32]"]},
}
