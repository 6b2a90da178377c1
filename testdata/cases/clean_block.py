"""Written for the Neural Engine: no finding of severity error.

(B, C, 1, S) throughout; projections are 1x1 convolutions; attention is per head with scores of
(1, key, heads or 1, query) and a mask of -40000 in the scores' dtype; eps and scale are f16 buffers;
keys and values come in read-only and new columns go out, or lie in a state whose sequence is last;
rotary tables are (1, head_dim, 1, S) inputs; silu is kept whole; RMS norm runs over one axis in f16.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

C, HEADS, HIDDEN, S = 64, 2, 128, 32
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


class StatefulAttention(Attention):
    """The state is (layers, B, H·D, 1, S); this call's columns go to a constant place at its end."""

    def forward(self, x, k_state, v_state, layer, cos, sin, mask):
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        k = torch.cat([rotate(h, cos, sin) for h in k.split(D, dim=1)], dim=1)
        k_state[layer : layer + 1, :, :, :, S:] = k.unsqueeze(0)
        v_state[layer : layer + 1, :, :, :, S:] = v.unsqueeze(0)
        keys, values = k_state[layer], v_state[layer]
        outs = []
        for qi, ki, vi in zip(q.split(D, dim=1), keys.split(D, dim=1), values.split(D, dim=1)):
            outs.append(self.attend(rotate(qi, cos, sin), ki.transpose(1, 3), vi, mask))
        return self.o_proj(torch.cat(outs, dim=1))


class CleanStateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_norm = RMSNorm(C)
        self.attention = StatefulAttention()
        self.post_norm = RMSNorm(C)
        self.mlp = Mlp()
        self.register_buffer("k_state", torch.zeros(1, 1, C, 1, 2 * S))
        self.register_buffer("v_state", torch.zeros(1, 1, C, 1, 2 * S))

    def forward(self, x, cos, sin, mask):
        x = x + self.attention(self.input_norm(x), self.k_state, self.v_state, 0, cos, sin, mask)
        return x + self.mlp(self.post_norm(x))


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
        return centred * torch.rsqrt(variance + self.eps) * self.weight + self.bias


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


class CleanVision(nn.Module):
    """A small convolutional net: stride 2, batch norm, depthwise, squeeze and excite, global pool."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.bn = nn.BatchNorm2d(16)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.squeeze, self.excite = nn.Conv2d(16, 8, 1), nn.Conv2d(8, 16, 1)
        self.point = nn.Conv2d(16, 32, 1)
        self.head = nn.Conv2d(32, 32, 1)

    def forward(self, images):
        x = F.relu(self.bn(self.stem(images)))
        x = F.silu(self.depthwise(x))
        gate = torch.sigmoid(self.excite(F.relu(self.squeeze(x.mean(dim=(2, 3), keepdim=True)))))
        x = F.relu(self.point(x * gate)).mean(dim=(2, 3), keepdim=True)
        return self.head(x).flatten(1)


X = "f[1,64,1,32]"
ROPE = "f[1,32,1,32]"
CACHE = "f[2,1,64,1,32]"
CASES = {
    "clean_block": {"make": CleanBlock, "inputs": [X, ROPE, ROPE], "release": True, "strict": True},
    "clean_decoder": {"make": CleanDecoder, "inputs": [X, CACHE, CACHE, ROPE, ROPE, "f[1,64,1,32]"], "release": True},
    "clean_stateful": {"make": CleanStateful, "inputs": [X, ROPE, ROPE, "f[1,64,1,32]"]},
    "clean_encoder": {"make": CleanEncoder, "inputs": ["f[1,3,32,64]"]},
    "clean_vision": {"make": CleanVision, "inputs": ["f[1,3,32,64]"]},
}
