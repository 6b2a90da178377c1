"""CleanEncoder with one fault: affine_order."""
import torch
import torch.nn as nn
import torch.nn.functional as F

C, HEADS, HIDDEN, S = 32, 2, 64, 32
D = C // HEADS


class LayerNorm(nn.Module):
    """Over the channels: normalised, times gamma, plus beta."""

    def __init__(self, channels, eps=1e-4):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, channels, 1, 1))
        self.bias = nn.Parameter(torch.zeros(1, channels, 1, 1))
        self.register_buffer("eps", torch.tensor(eps))

    def forward(self, x):
        centred = x - x.mean(dim=1, keepdim=True)
        variance = (centred * centred).mean(dim=1, keepdim=True)
        return (centred * torch.rsqrt(variance + self.eps) + self.bias) * self.weight  # expect: ANE052


class CleanEncoder(nn.Module):
    """An encoder layer as vision and text encoders have it: patch embedding, no mask, gelu."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, C, 8, stride=8)
        self.norm1, self.norm2 = LayerNorm(C), LayerNorm(C)
        self.q_proj, self.k_proj = nn.Conv2d(C, C, 1), nn.Conv2d(C, C, 1)
        self.v_proj, self.o_proj = nn.Conv2d(C, C, 1), nn.Conv2d(C, C, 1)
        self.fc1, self.fc2 = nn.Conv2d(C, HIDDEN, 1), nn.Conv2d(HIDDEN, C, 1)
        self.register_buffer("scale", torch.tensor(D**-0.5))
        self.register_buffer("positions", torch.randn(1, C, 1, S) * 0.02)

    def attention(self, x):
        q, k, v = self.q_proj(x) * self.scale, self.k_proj(x).transpose(1, 3), self.v_proj(x)
        outs = []
        for qi, ki, vi in zip(q.split(D, dim=1), k.split(D, dim=3), v.split(D, dim=1)):
            probs = torch.einsum("bchq,bkhc->bkhq", qi, ki).softmax(dim=1)
            outs.append(torch.einsum("bkhq,bchk->bchq", probs, vi))
        return self.o_proj(torch.cat(outs, dim=1))

    def forward(self, images):
        x = self.patches(images).reshape(1, C, 1, S) + self.positions
        x = x + self.attention(self.norm1(x))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


CASES = {"mutant_affine_order": {"make": CleanEncoder, "inputs": ['f[1,3,32,64]'], "mlpackage": False, "onnx": False}}
