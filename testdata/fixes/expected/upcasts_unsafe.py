"""Casts to f32 that may be there for their range, or that a caller sees: the fix is for people to judge."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class FloatExp(nn.Module):
    def forward(self, x):
        return F.relu(x).exp().half() * 0.5


class ToFloat32Square(nn.Module):
    def forward(self, x):
        power = F.relu(x).square().to(x.dtype)
        return F.relu(x) + power


class ToFloatExp(nn.Module):
    def forward(self, x):
        power = F.relu(x).exp().to(x.dtype)
        return F.relu(x) + power


class ToDtypeFloat32Output(nn.Module):
    """f32 for the caller."""

    def forward(self, x):
        logits = F.relu(x)
        return logits * logits.sigmoid()


class ToDtypeFloatSum(nn.Module):
    def forward(self, x):
        total = F.relu(x).sum(dim=1, keepdim=True).to(x.dtype)
        return F.relu(x) * total


class TypeFloat32Exp(nn.Module):
    def forward(self, x):
        power = F.relu(x).exp().to(x.dtype)
        return F.relu(x) + power


X = "f[1,64,1,32]"
CASES = {
    "fix_unsafe_float": {"make": FloatExp, "inputs": ["f16[1,64,1,32]"], "half": False},
    "fix_unsafe_to_float32": {"make": ToFloat32Square, "inputs": [X]},
    "fix_unsafe_to_float": {"make": ToFloatExp, "inputs": [X]},
    "fix_unsafe_to_dtype_float32": {"make": ToDtypeFloat32Output, "inputs": [X]},
    "fix_unsafe_to_dtype_float": {"make": ToDtypeFloatSum, "inputs": [X]},
    "fix_unsafe_type_float32": {"make": TypeFloat32Exp, "inputs": [X]},
}
