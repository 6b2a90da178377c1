"""CleanBlock with one fault: glu."""
import torch
import torch.nn as nn
import torch.nn.functional as F

C, HEADS, HIDDEN, S = 32, 2, 64, 32
D = C // HEADS


class RMSNorm(nn.Module):
    """Over the channels, in f16."""

    def __init__(self, channels, eps=1e-4):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, channels, 1, 1))
        self.register_buffer("eps", torch.tensor(eps))

    def forward(self, x):
        mean_square = (x * x).mean(dim=1, keepdim=True)
        return x * torch.rsqrt(mean_square + self.eps) * self.weight


def rotate(x, cos, sin):
    """Halves inside one head: x is (1, head_dim, 1, S)."""
    x1, x2 = x.chunk(2, dim=1)
    return x * cos + torch.cat((-x2, x1), dim=1) * sin


class Attention(nn.Module):
    """Causal, over the columns of this call."""

    def __init__(self):
        super().__init__()
        self.q_proj = nn.Conv2d(C, C, 1, bias=False)
        self.k_proj = nn.Conv2d(C, C, 1, bias=False)
        self.v_proj = nn.Conv2d(C, C, 1, bias=False)
        self.o_proj = nn.Conv2d(C, C, 1, bias=False)
        self.register_buffer("scale", torch.tensor(D**-0.5))

    def attend(self, q, k, v, mask):
        scores = torch.einsum("bchq,bkhc->bkhq", q * self.scale, k)
        probs = (scores + mask).softmax(dim=1)
        return torch.einsum("bkhq,bchk->bchq", probs, v)

    def forward(self, x, cos, sin, mask):
        qs = [rotate(q, cos, sin) for q in self.q_proj(x).split(D, dim=1)]
        ks = [rotate(k, cos, sin) for k in self.k_proj(x).split(D, dim=1)]
        vs = self.v_proj(x).split(D, dim=1)
        outs = [self.attend(q, k.transpose(1, 3), v, mask) for q, k, v in zip(qs, ks, vs)]
        return self.o_proj(torch.cat(outs, dim=1))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up_proj = nn.Conv2d(C, HIDDEN, 1, bias=False)
        self.gate_proj = nn.Conv2d(C, HIDDEN, 1, bias=False)
        self.down_proj = nn.Conv2d(HIDDEN, C, 1, bias=False)

    def forward(self, x):
        up = self.up_proj(x)
        return self.down_proj(F.glu(torch.cat([self.gate_proj(x), up], dim=1), dim=1))  # expect: ANE061; decomp: ANE003; aimodel: ANE003


class CleanBlock(nn.Module):
    """One block, with the constant causal mask as a buffer."""

    def __init__(self):
        super().__init__()
        self.input_norm = RMSNorm(C)
        self.attention = Attention()
        self.post_norm = RMSNorm(C)
        self.mlp = Mlp()
        mask = torch.full((S, S), -40000.0).tril(-1)
        self.register_buffer("mask", mask.view(1, S, 1, S))

    def forward(self, x, cos, sin):
        x = x + self.attention(self.input_norm(x), cos, sin, self.mask)
        return x + self.mlp(self.post_norm(x))


CASES = {"mutant_glu": {"make": CleanBlock, "inputs": ['f[1,32,1,32]', 'f[1,16,1,32]', 'f[1,16,1,32]'], "mlpackage": False, "onnx": False}}
