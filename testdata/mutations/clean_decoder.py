"""The clean module in the mutants' size."""
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
        return self.down_proj(F.silu(self.gate_proj(x)) * up)


class CachedAttention(Attention):
    """Keys and values of earlier calls come in, (1, C, 1, past); the new, rotated ones go out."""

    def forward(self, x, past_k, past_v, cos, sin, mask):
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        k = torch.cat([rotate(h, cos, sin) for h in k.split(D, dim=1)], dim=1)
        keys = torch.cat([past_k, k], dim=3)
        values = torch.cat([past_v, v], dim=3)
        outs = []
        for qi, ki, vi in zip(q.split(D, dim=1), keys.split(D, dim=1), values.split(D, dim=1)):
            outs.append(self.attend(rotate(qi, cos, sin), ki.transpose(1, 3), vi, mask))
        return self.o_proj(torch.cat(outs, dim=1)), k, v


class CleanDecoder(nn.Module):
    """Two layers; caches are read-only (layers, B, H·D, 1, S) inputs, the new columns are outputs."""

    def __init__(self, layers=2):
        super().__init__()
        self.input_norms = nn.ModuleList(RMSNorm(C) for _ in range(layers))
        self.attentions = nn.ModuleList(CachedAttention() for _ in range(layers))
        self.post_norms = nn.ModuleList(RMSNorm(C) for _ in range(layers))
        self.mlps = nn.ModuleList(Mlp() for _ in range(layers))
        self.norm = RMSNorm(C)

    def forward(self, x, k_cache, v_cache, cos, sin, mask):
        new_keys, new_values = [], []
        for i, attention in enumerate(self.attentions):
            out, k, v = attention(self.input_norms[i](x), k_cache[i], v_cache[i], cos, sin, mask)
            new_keys.append(k)
            new_values.append(v)
            x = x + out
            x = x + self.mlps[i](self.post_norms[i](x))
        return self.norm(x), torch.stack(new_keys), torch.stack(new_values)


CASES = {"mutant_clean_decoder": {"make": CleanDecoder, "inputs": ['f[1,32,1,32]', 'f[2,1,32,1,32]', 'f[2,1,32,1,32]', 'f[1,16,1,32]', 'f[1,16,1,32]', 'f[1,64,1,32]'], "mlpackage": False, "onnx": False}}
