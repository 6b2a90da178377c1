"""What the Neural Engine wants and the GPU does not: convolutions for projections, heads one by one, three
projections where one would do, cosines worked out at every step, f32 weights.

Their good counterparts are in clean_gpu.py.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

D, HEADS, HEAD, HIDDEN = 64, 2, 32, 128


class ConvProjections(nn.Module):
    """1×1 convolutions over (B, C, 1, S)."""

    def __init__(self):
        super().__init__()
        self.up_proj, self.down_proj = nn.Conv2d(D, HIDDEN, 1), nn.Conv2d(HIDDEN, D, 1)

    def forward(self, x):
        # expect-unit: gpu
        x = F.gelu(self.up_proj(x))  # expect: GPU003=advice
        return self.down_proj(x)  # expect: GPU003=advice


class ConvOfImages(nn.Module):
    """1×1 convolutions of a vision net, and of what its global pool leaves: no projections of a sequence."""

    def __init__(self):
        super().__init__()
        self.point, self.squeeze, self.excite = nn.Conv2d(8, 16, 1), nn.Conv2d(16, 4, 1), nn.Conv2d(4, 16, 1)

    def forward(self, x):  # expect-not: GPU003, GPU018
        # expect-unit: gpu
        x = F.relu(self.point(x))
        gate = self.excite(F.relu(self.squeeze(x.mean((2, 3), keepdim=True))))
        return x * gate.sigmoid()


class SeparateQkv(nn.Module):
    """Three projections of one input."""

    def __init__(self):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(D, D, bias=False) for _ in range(3))
        self.o_proj = nn.Linear(D, D, bias=False)

    def heads(self, x):
        return x.view(1, -1, HEADS, HEAD).transpose(1, 2)

    def forward(self, x):
        # expect-unit: gpu
        q = self.heads(self.q_proj(x))  # expect: GPU004=advice
        k = self.heads(self.k_proj(x))
        v = self.heads(self.v_proj(x))
        out = F.scaled_dot_product_attention(q, k, v)
        return self.o_proj(out.transpose(1, 2).reshape(1, -1, D))


class GroupedQkv(nn.Module):
    """One key and value head for all queries, keys repeated by hand: three projections of one input still."""

    def __init__(self):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = nn.Linear(D, D), nn.Linear(D, HEAD), nn.Linear(D, HEAD)

    def forward(self, x):
        # expect-unit: gpu
        q = self.q_proj(x).view(1, -1, HEADS, HEAD).transpose(1, 2)  # expect: GPU004=advice
        k = self.k_proj(x).view(1, -1, 1, HEAD).transpose(1, 2).expand(1, HEADS, x.shape[1], HEAD)
        v = self.v_proj(x).view(1, -1, 1, HEAD).transpose(1, 2).expand(1, HEADS, x.shape[1], HEAD)
        scores = (q * 0.17) @ k.transpose(-2, -1)
        return (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(1, -1, D)


class CrossAttention(nn.Module):
    """Keys and values of another input: only those two could be one."""

    def __init__(self):
        super().__init__()
        self.q_proj, self.kv_proj = nn.Linear(D, D, bias=False), nn.Linear(D, 2 * D, bias=False)

    def forward(self, x, memory):  # expect-not: GPU004
        # expect-unit: gpu
        q = self.q_proj(x).view(1, -1, HEADS, HEAD).transpose(1, 2)
        k, v = self.kv_proj(memory).view(1, -1, 2 * HEADS, HEAD).transpose(1, 2).chunk(2, dim=1)
        return F.scaled_dot_product_attention(q, k, v)


class HeadsOneByOne(nn.Module):
    """A loop over heads."""

    def __init__(self):
        super().__init__()
        self.qkv_proj = nn.Linear(D, 3 * D, bias=False)

    def forward(self, x):
        # expect-unit: gpu
        q, k, v = self.qkv_proj(x).chunk(3, dim=-1)
        outs = []
        for i in range(HEADS):
            part = slice(i * HEAD, (i + 1) * HEAD)
            scores = (q[..., part] * 0.17) @ k[..., part].transpose(-2, -1)
            outs.append(scores.softmax(dim=-1) @ v[..., part])  # expect: GPU005=warning
        return torch.cat(outs, dim=-1)


class OneHead(nn.Module):
    """There is only one head."""

    def __init__(self):
        super().__init__()
        self.qkv_proj = nn.Linear(D, 3 * HEAD, bias=False)

    def forward(self, x):  # expect-not: GPU005
        # expect-unit: gpu
        q, k, v = self.qkv_proj(x).chunk(3, dim=-1)
        return ((q * 0.17) @ k.transpose(-2, -1)).softmax(dim=-1) @ v


class GateFirst(nn.Module):
    """The gate's projection is issued before the other."""

    def __init__(self):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(D, HIDDEN, bias=False), nn.Linear(D, HIDDEN, bias=False)
        self.down_proj = nn.Linear(HIDDEN, D, bias=False)

    def forward(self, x):
        # expect-unit: gpu
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))  # expect: GPU012=advice


class GateFirstByHand(nn.Module):
    """g·sigmoid(g) by hand."""

    def __init__(self):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(D, HIDDEN, bias=False), nn.Linear(D, HIDDEN, bias=False)

    def forward(self, x):
        # expect-unit: gpu
        gate = self.gate_proj(x)  # expect: GPU012=advice
        return gate * torch.sigmoid(gate) * self.up_proj(x)


class UpFirst(nn.Module):
    """The workaround; and a gate that is no gated MLP, of two inputs."""

    def __init__(self):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(D, HIDDEN, bias=False), nn.Linear(D, HIDDEN, bias=False)
        self.other = nn.Linear(D, HIDDEN, bias=False)

    def forward(self, x, y):  # expect-not: GPU012
        # expect-unit: gpu
        up = self.up_proj(x)
        return F.silu(self.gate_proj(x)) * up + F.silu(self.other(y)) * self.gate_proj(x)


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


class RotaryAngles(nn.Module):
    """Cosines and sines of positions that come in."""

    def __init__(self):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / 10000.0 ** (torch.arange(0, HEAD, 2).float() / HEAD))

    def forward(self, q, k, positions):
        # expect-unit: gpu
        angles = positions[:, None] * self.inv_freq.to(q.dtype)[None, :]
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = angles.cos(), angles.sin()  # expect: GPU014=warning
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        return F.scaled_dot_product_attention(q, k, k)


class RotarySlice(nn.Module):
    """The workaround: a table, cut to the length."""

    def __init__(self):
        super().__init__()
        angles = torch.outer(torch.arange(64).float(), 1.0 / 10000.0 ** (torch.arange(0, HEAD, 2).float() / HEAD))
        angles = torch.cat((angles, angles), dim=-1)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, q, k):  # expect-not: GPU014
        # expect-unit: gpu
        s = q.shape[2]
        cos, sin = self.cos[:s], self.sin[:s]
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        return F.scaled_dot_product_attention(q, k, k)


class WeightsInF32(nn.Module):
    """A model that nobody cast."""

    def __init__(self):
        super().__init__()
        self.up_proj, self.down_proj = nn.Linear(D, HIDDEN), nn.Linear(HIDDEN, D)

    def forward(self, x):  # expect-case: GPU013=warning
        # expect-unit: gpu
        return self.down_proj(F.gelu(self.up_proj(x)))


class NormsInF32(nn.Module):
    """Scales and shifts in f32, and a small f32 table, are no weight worth a word."""

    def __init__(self):
        super().__init__()
        self.norm, self.proj = nn.LayerNorm(D, elementwise_affine=False), nn.Linear(D, D).half()
        self.register_buffer("table", torch.rand(8, 8))

    def forward(self, x):  # expect-not: GPU013
        # expect-unit: gpu
        return self.proj(self.norm(x)), self.table.sum()


class SplitNormRope(nn.Module):
    """Queries and keys come from one projection, and are normed and rotated apart."""

    def __init__(self):
        super().__init__()
        self.qkv_proj = nn.Linear(D, 3 * D, bias=False)
        self.norm = nn.LayerNorm(HEAD)

    def forward(self, x, cos, sin):
        # expect-unit: gpu
        qkv = self.qkv_proj(x).view(1, -1, 3 * HEADS, HEAD).transpose(1, 2)
        q, k, v = qkv.chunk(3, dim=1)
        q, k = self.norm(q), self.norm(k)
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin  # expect: GPU019=advice
        return F.scaled_dot_product_attention(q, k, v)


class JoinedNormRope(nn.Module):
    """The workaround: normed and rotated while they are one, then split."""

    def __init__(self):
        super().__init__()
        self.qkv_proj = nn.Linear(D, 3 * D, bias=False)
        self.norm = nn.LayerNorm(HEAD)

    def forward(self, x, cos, sin):  # expect-not: GPU019, GPU004
        # expect-unit: gpu
        qkv = self.qkv_proj(x).view(1, -1, 3 * HEADS, HEAD).transpose(1, 2)
        qk, v = qkv.split([2 * HEADS, HEADS], dim=1)
        qk = self.norm(qk)
        q, k = (qk * cos + rotate_half(qk) * sin).chunk(2, dim=1)
        return F.scaled_dot_product_attention(q, k, v)


SEQ = "f[1,32,64]"
CASES = {
    "gpu_conv1x1": {"make": ConvProjections, "inputs": ["f[1,64,1,32]"]},
    "gpu_ok_conv_image": {"make": ConvOfImages, "inputs": ["f[1,8,16,16]"]},
    "gpu_qkv": {"make": SeparateQkv, "inputs": [SEQ]},
    "gpu_qkv_grouped": {"make": GroupedQkv, "inputs": [SEQ]},
    "gpu_ok_cross_attention": {"make": CrossAttention, "inputs": [SEQ, SEQ]},
    "gpu_per_head": {"make": HeadsOneByOne, "inputs": [SEQ]},
    "gpu_ok_one_head": {"make": OneHead, "inputs": [SEQ]},
    "gpu_gate_first": {"make": GateFirst, "inputs": [SEQ]},
    "gpu_gate_first_by_hand": {"make": GateFirstByHand, "inputs": [SEQ]},
    "gpu_ok_up_first": {"make": UpFirst, "inputs": [SEQ, SEQ]},
    "gpu_rope_angles": {"make": RotaryAngles, "inputs": ["f[1,2,32,32] x2", "f[32]"]},
    "gpu_ok_rope_slice": {"make": RotarySlice, "inputs": ["f[1,2,32,32] x2"]},
    "gpu_f32_weights": {"make": WeightsInF32, "inputs": ["f32[1,32,64]"], "half": False},
    "gpu_ok_f32_norms": {"make": NormsInF32, "inputs": ["f16[1,32,64]"], "half": False},
    "gpu_split_norm_rope": {"make": SplitNormRope, "inputs": [SEQ, "f[1,1,32,32] x2"]},
    "gpu_ok_joined_norm_rope": {"make": JoinedNormRope, "inputs": [SEQ, "f[1,1,32,32] x2"]},
}
