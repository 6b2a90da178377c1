"""Attention masks, each spelling of what f16 or the Neural Engine's softmax cannot take."""
import math

import numpy as np
import torch
import torch.nn as nn

SEQ = 32


class Attention(nn.Module):
    """Scores and values of (batch, heads, sequence, head_dim) inputs; no projection, no other fault."""

    def scores(self, q, k):
        return (q * 0.25) @ k.transpose(-2, -1)


class FloatInf(Attention):
    def forward(self, q, k, v):
        scores = self.scores(q, k)
        mask = torch.full((SEQ, SEQ), -40000.0, dtype=scores.dtype).triu(1)
        return (scores + mask).softmax(dim=-1) @ v


class MinusFloatInf(Attention):
    def forward(self, q, k, v, allowed):
        scores = self.scores(q, k).masked_fill(~allowed, -40000.0)
        return scores.softmax(dim=-1) @ v


class FloatInfinity(Attention):
    def forward(self, q, k, v, allowed):
        scores = torch.where(allowed, self.scores(q, k), -40000.0)
        return scores.softmax(dim=-1) @ v


class MathInf(Attention):
    def forward(self, q, k, v, allowed):
        scores = self.scores(q, k).masked_fill(
            ~allowed,
            -40000.0,  # a key that is padded
        )
        return scores.softmax(dim=-1) @ v


class TorchInf(Attention):
    """A buffer: the edit is where it is made."""

    def __init__(self):
        super().__init__()
        mask = torch.full((SEQ, SEQ), -40000.0)
        self.register_buffer("mask", mask.triu(1), persistent=False)

    def forward(self, q, k, v):
        scores = self.scores(q, k) + self.mask
        return scores.softmax(dim=-1) @ v


def numpy_mask(length, dtype):
    """A helper: the edit is in here, the finding at the call."""
    return torch.full((length, length), -40000.0, dtype=dtype).triu(1)


class NumpyInf(Attention):
    def forward(self, q, k, v):
        scores = self.scores(q, k)
        mask = numpy_mask(SEQ, scores.dtype)
        return (scores + mask).softmax(dim=-1) @ v


class FinfoBuffer(Attention):
    """The smallest f32 in a buffer: .half() makes it -inf."""

    def __init__(self):
        super().__init__()
        lowest = torch.full((SEQ, SEQ), -40000.0)
        self.register_buffer("lowest", lowest.triu(1), persistent=False)

    def forward(self, q, k, v):
        scores = self.scores(q, k) + self.lowest
        return scores.softmax(dim=-1) @ v


class MillionBuffer(Attention):
    """A number that .half() makes -inf."""

    def __init__(self):
        super().__init__()
        million = torch.full((SEQ, SEQ), -40000.0)
        self.register_buffer("million", million.triu(1), persistent=False)

    def forward(self, q, k, v):
        scores = self.scores(q, k) + self.million
        return scores.softmax(dim=-1) @ v


class FinfoFill(Attention):
    def forward(self, q, k, v, allowed):
        scores = self.scores(q, k).masked_fill(~allowed, -40000.0)
        return scores.softmax(dim=-1) @ v


class Minus1e9(Attention):
    def forward(self, q, k, v, allowed):
        scores = self.scores(q, k).masked_fill(~allowed, -40000.0)
        return scores.softmax(dim=-1) @ v


class Minus1e9Times(Attention):
    """BERT's way: ones and zeros, turned into numbers to add."""

    def forward(self, q, k, v, attention_mask):
        mask = (1.0 - attention_mask[:, None, None, :]) * -40000.0
        return (self.scores(q, k) + mask).softmax(dim=-1) @ v


class Lowest(Attention):
    """The last number that f16 holds leaves no room for one more term."""

    def forward(self, q, k, v, allowed):
        return self.scores(q, k).masked_fill(~allowed, -40000.0).softmax(dim=-1) @ v


QKV = ["f[1,2,32,32] x3"]
MASKED = [*QKV, "tri[32,32]"]
CASES = {
    "fix_float_inf": {"make": FloatInf, "inputs": QKV},
    "fix_minus_float_inf": {"make": MinusFloatInf, "inputs": MASKED},
    "fix_float_infinity": {"make": FloatInfinity, "inputs": MASKED},
    "fix_math_inf": {"make": MathInf, "inputs": MASKED},
    "fix_torch_inf": {"make": TorchInf, "inputs": QKV},
    "fix_numpy_inf": {"make": NumpyInf, "inputs": QKV},
    "fix_finfo_buffer": {"make": FinfoBuffer, "inputs": QKV},
    "fix_million_buffer": {"make": MillionBuffer, "inputs": QKV},
    "fix_finfo_fill": {"make": FinfoFill, "inputs": MASKED},
    "fix_minus_1e9": {"make": Minus1e9, "inputs": MASKED},
    "fix_minus_1e9_times": {"make": Minus1e9Times, "inputs": [*QKV, "bits[1,32]"]},
    "fix_lowest": {"make": Lowest, "inputs": MASKED},
}
