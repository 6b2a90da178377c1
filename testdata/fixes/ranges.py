"""Ranges whose bounds or step f16 rounds on the way through the converter."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Tenths(nn.Module):
    def forward(self, x):
        return F.relu(x) + torch.arange(0, 7, 0.7).to(x.dtype)


class TenthsFromHalf(nn.Module):
    def forward(self, x):
        return F.relu(x) + torch.arange(0.5, 7.5, 0.7).to(x.dtype)


class TenthsInDtype(nn.Module):
    def forward(self, x):
        return F.relu(x) + torch.arange(0.0, 7.0, 0.7, dtype=x.dtype)


class TenthsInDtypeFromHalf(nn.Module):
    def forward(self, x):
        return F.relu(x) + torch.arange(0.5, 7.5, 0.7, dtype=x.dtype)


X = "f[1,64,1,10]"
CASES = {
    "fix_arange": {"make": Tenths, "inputs": [X]},
    "fix_arange_start": {"make": TenthsFromHalf, "inputs": [X]},
    "fix_arange_dtype": {"make": TenthsInDtype, "inputs": [X]},
    "fix_arange_dtype_start": {"make": TenthsInDtypeFromHalf, "inputs": [X]},
}
