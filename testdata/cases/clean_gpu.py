"""Written for the GPU: no finding of severity error on that target.

Linear layers, one fused projection for q, k and v, scaled_dot_product_attention, a state whose
sequence is on dim 3, a dynamic length, -inf masks, f16 throughout.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

D, HEADS, HEAD, HIDDEN, LENGTH = 64, 2, 32, 128, 64


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


class MacAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv_proj = nn.Linear(D, 3 * D, bias=False)
        self.o_proj = nn.Linear(D, D, bias=False)

    def forward(self, x, cos, sin, mask):
        b, s, _ = x.shape
        qkv = self.qkv_proj(x).view(b, s, 3 * HEADS, HEAD).transpose(1, 2)
        qk, v = qkv.split([2 * HEADS, HEADS], dim=1)
        q, k = (qk * cos + rotate_half(qk) * sin).chunk(2, dim=1)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.o_proj(out.transpose(1, 2).reshape(b, s, D))


class MacMlp(nn.Module):
    """up before gate."""

    def __init__(self):
        super().__init__()
        self.up_proj = nn.Linear(D, HIDDEN, bias=False)
        self.gate_proj = nn.Linear(D, HIDDEN, bias=False)
        self.down_proj = nn.Linear(HIDDEN, D, bias=False)

    def forward(self, x):
        up = self.up_proj(x)
        return self.down_proj(F.silu(self.gate_proj(x)) * up)


class MacBlock(nn.Module):
    """Static, with a -inf mask that the Neural Engine would mind and the GPU does not."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attention, self.mlp = MacAttention(), MacMlp()
        cos, sin = torch.rand(1, 1, 32, HEAD), torch.rand(1, 1, 32, HEAD)
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)
        self.register_buffer("mask", torch.full((32, 32), float("-inf")).triu(1), persistent=False)

    def forward(self, x):  # expect-not[gpu]: ANE004, ANE006, ANE017
        # expect-unit: gpu
        x = x + self.attention(self.norm1(x), self.cos, self.sin, self.mask)
        return x + self.mlp(self.norm2(x))


class MacDynamic(nn.Module):
    """A length that is not known."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attention, self.mlp = MacAttention(), MacMlp()

    def forward(self, x, cos, sin, mask):
        # expect-unit: gpu
        x = x + self.attention(self.norm1(x), cos, sin, mask)
        return x + self.mlp(self.norm2(x))


class MacStateful(nn.Module):
    """A state of (layers, B, heads, S, head_dim), written at a place that a shape tells."""

    def __init__(self):
        super().__init__()
        self.qkv_proj = nn.Linear(D, 3 * D, bias=False)
        self.o_proj = nn.Linear(D, D, bias=False)
        self.register_buffer("k_cache", torch.zeros(1, 1, HEADS, LENGTH, HEAD))
        self.register_buffer("v_cache", torch.zeros(1, 1, HEADS, LENGTH, HEAD))

    def forward(self, x, mask):
        # expect-unit: gpu
        b, s, _ = x.shape
        end = mask.shape[-1]
        q, k, v = self.qkv_proj(x).view(b, s, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
        self.k_cache[0, :, :, end - s : end] = k
        self.v_cache[0, :, :, end - s : end] = v
        keys, values = self.k_cache[0, :, :, :end], self.v_cache[0, :, :, :end]
        out = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        return self.o_proj(out.transpose(1, 2).reshape(b, s, D))


CASES = {
    "clean_gpu": {"make": MacBlock, "inputs": ["f[1,32,64]"], "release": True},
    "clean_gpu_dynamic": {"make": MacDynamic, "inputs": ["f[1,32,64]", "f[1,1,32,32] x2", "f[1,1,32,32]"],
                          "dynamic": {"x": {1: ("seq", 2, 64)}, "cos": {2: ("seq", 2, 64)}, "sin": {2: ("seq", 2, 64)}, "mask": {2: ("seq", 2, 64), 3: ("seq", 2, 64)}}},
    "clean_gpu_stateful": {"make": MacStateful, "inputs": ["f[1,1,64]", "f[1,1,1,48]"], "dynamic": {"x": None, "mask": {3: ("end", 2, 63)}}},
}
