"""Tensors of the default dtype beside f16 data. Activations are (B, C, 1, S)."""
import torch
import torch as th
import torch.nn as nn
import torch.nn.functional as F

S = 32


class Tensor(nn.Module):
    def forward(self, x):
        x = F.relu(x)
        x = x * torch.tensor(1.5)
        return F.relu(x)


class TensorOnDevice(nn.Module):
    def forward(self, x):
        x = F.relu(x)
        x = torch.tensor(0.25, device=x.device) + x
        return F.relu(x)


class Full(nn.Module):
    def forward(self, q, k, v):
        scores = (q * 0.25) @ k.transpose(-2, -1)
        attn = (scores + torch.full((S, S), -40000.0).triu(1)).softmax(dim=-1).to(v.dtype)
        return attn @ v


class FullOnDevice(nn.Module):
    """Made on one line, used on another."""

    def forward(self, q, k, v):
        scores = (q * 0.25) @ k.transpose(-2, -1)
        mask = th.full((S, S), -40000.0, device=q.device).triu(1)
        scores = scores + mask
        attn = scores.softmax(dim=-1)
        return attn.to(v.dtype) @ v


def modulate(x, shift, scale):
    return (x * (torch.ones(1) + scale) + shift).to(x.dtype)


class Ones(nn.Module):
    """The edit is in the helper."""

    def forward(self, x, shift, scale):
        x = modulate(F.relu(x), shift, scale)
        return F.relu(x)


class Zeros(nn.Module):
    def forward(self, x):
        x = torch.maximum(x, torch.zeros(1)).to(x.dtype)
        return F.silu(x)


class WhereOfNumbers(nn.Module):
    def forward(self, q, k, v, allowed):
        scores = (q * 0.25) @ k.transpose(-2, -1)
        attn = (scores + torch.where(allowed, 0.0, -40000.0)).softmax(dim=-1).to(v.dtype)
        return attn @ v


X = "f[1,64,1,32]"
QKV = ["f[1,2,32,32] x3"]
CASES = {
    "fix_tensor": {"make": Tensor, "inputs": [X]},
    "fix_tensor_device": {"make": TensorOnDevice, "inputs": [X]},
    "fix_full": {"make": Full, "inputs": QKV},
    "fix_full_device": {"make": FullOnDevice, "inputs": QKV},
    "fix_ones": {"make": Ones, "inputs": [X, X, X]},
    "fix_zeros": {"make": Zeros, "inputs": [X]},
    "fix_where": {"make": WhereOfNumbers, "inputs": [*QKV, "tri[32,32]"]},
}
