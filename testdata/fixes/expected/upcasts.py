"""Casts to f32 that buy nothing: what is computed there f16 holds as well."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def scores(self, q, k):
        return (q * 0.25) @ k.transpose(-2, -1)


class FunctionalFloat32(Attention):
    def forward(self, q, k, v):
        attn = F.softmax(self.scores(q, k), dim=-1).to(v.dtype)
        return attn @ v


class FunctionalFloat(Attention):
    def forward(self, q, k, v):
        attn = F.softmax(self.scores(q, k), dim=-1).to(v.dtype)
        return attn @ v


class TorchFloat32(Attention):
    """A call of several lines; the comment stays."""

    def forward(self, q, k, v):
        attn = torch.softmax(
            self.scores(q, k),
            dim=-1,  # over the keys
        )
        return attn.to(v.dtype) @ v


class TorchFloat(Attention):
    def forward(self, q, k, v):
        attn = torch.softmax(self.scores(q, k), -1).type_as(v)
        return attn @ v


class MethodFloat32(Attention):
    def forward(self, q, k, v):
        attn = self.scores(q, k).softmax(dim=-1)
        return attn.to(v.dtype) @ v


class MethodFloat(Attention):
    def forward(self, q, k, v):
        attn = self.scores(q, k).softmax(-1).to(v.dtype)
        return attn @ v


class FloatSoftmax(Attention):
    def forward(self, q, k, v):
        attn = self.scores(q, k).softmax(dim=-1).type_as(v)
        return attn @ v


class ToFloat32(nn.Module):
    def forward(self, x):
        pooled = x.mean(dim=3, keepdim=True).to(x.dtype)
        return F.relu(x) * pooled


class ToFloat(nn.Module):
    """A sum in parentheses keeps them."""

    def forward(self, x, y):
        gate = (x + y).sigmoid().to(x.dtype)
        return F.relu(x) * gate


class ToDtypeFloat32(nn.Module):
    def forward(self, x):
        gate = F.relu(x).tanh().to(x.dtype)
        return F.relu(x) * gate


class ToDtypeFloat(nn.Module):
    def forward(self, x):
        gate = F.gelu(F.relu(x)).to(x.dtype)
        return F.relu(x) * gate


class TypeFloat32(nn.Module):
    def forward(self, x):
        most = F.relu(x).amax(dim=3, keepdim=True).to(x.dtype)
        return F.relu(x) + most


QKV = ["f[1,2,32,32] x3"]
X = "f[1,64,1,32]"
CASES = {
    "fix_softmax_functional_float32": {"make": FunctionalFloat32, "inputs": QKV},
    "fix_softmax_functional_float": {"make": FunctionalFloat, "inputs": QKV},
    "fix_softmax_torch_float32": {"make": TorchFloat32, "inputs": QKV},
    "fix_softmax_torch_float": {"make": TorchFloat, "inputs": QKV},
    "fix_softmax_method_float32": {"make": MethodFloat32, "inputs": QKV},
    "fix_softmax_method_float": {"make": MethodFloat, "inputs": QKV},
    "fix_float": {"make": FloatSoftmax, "inputs": QKV},
    "fix_to_float32": {"make": ToFloat32, "inputs": [X]},
    "fix_to_float": {"make": ToFloat, "inputs": [X, X]},
    "fix_to_dtype_float32": {"make": ToDtypeFloat32, "inputs": [X]},
    "fix_to_dtype_float": {"make": ToDtypeFloat, "inputs": [X]},
    "fix_type_float32": {"make": TypeFloat32, "inputs": [X]},
}
