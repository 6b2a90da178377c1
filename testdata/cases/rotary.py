"""Where the cosines and sines of a rotary embedding come from, and what is cut in half."""
import torch
import torch.nn as nn


def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary(q, k, cos, sin):
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def tables(head_dim, length, theta=10000.0):
    inverse = 1.0 / theta ** (torch.arange(0, head_dim, 2).float() / head_dim)
    angles = torch.outer(torch.arange(length).float(), inverse)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


class TableGather(nn.Module):
    """Tables indexed by positions, on the way."""

    def __init__(self, head_dim=32, length=64):
        super().__init__()
        cos, sin = tables(head_dim, length)
        self.register_buffer("cos", cos)  # expect-related: ANE018
        self.register_buffer("sin", sin)  # expect-related: ANE018

    def forward(self, q, k, position_ids):
        q, k = q * 0.25, torch.relu(k)
        cos = self.cos[position_ids]  # expect: ANE018 `self.cos[position_ids]`
        sin = self.sin[position_ids]  # expect: ANE018 `self.sin[position_ids]`
        q, k = apply_rotary(q, k, cos, sin)
        return (q @ k.transpose(-2, -1)).softmax(dim=-1)


class TableGatherEmbedding(nn.Module):
    """The same by F.embedding and index_select."""

    def __init__(self, head_dim=32, length=64):
        super().__init__()
        cos, sin = tables(head_dim, length)
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)

    def forward(self, q, k, position_ids):
        q, k = q * 0.25, torch.relu(k)
        cos = nn.functional.embedding(position_ids, self.cos)  # expect: ANE018
        sin = self.sin.index_select(0, position_ids.view(-1)).unsqueeze(0)  # expect: ANE018
        q, k = apply_rotary(q, k, cos, sin)
        return (q @ k.transpose(-2, -1)).softmax(dim=-1)


class TableSlice(nn.Module):
    """A static length: the table is cut, and folds."""

    def __init__(self, head_dim=32, length=64):
        super().__init__()
        cos, sin = tables(head_dim, length)
        self.register_buffer("cos", cos[None])
        self.register_buffer("sin", sin[None])

    def forward(self, q, k):  # expect-not: ANE018, ANE019
        s = q.shape[2]
        q, k = apply_rotary(q * 0.25, torch.relu(k), self.cos[:, :s], self.sin[:, :s])
        return (q @ k.transpose(-2, -1)).softmax(dim=-1)


class TablesPassedIn(nn.Module):
    """The workaround: (1, head_dim, 1, S) inputs, and halves inside each head."""

    def __init__(self, dim=64, heads=2):
        super().__init__()
        self.head_dim = dim // heads
        self.q_proj = nn.Conv2d(dim, dim, 1)

    def rotate(self, x, cos, sin):
        x1, x2 = x.chunk(2, dim=1)
        return x * cos + torch.cat((-x2, x1), dim=1) * sin

    def forward(self, x, cos, sin):  # expect-not: ANE018, ANE019, ANE020
        heads = self.q_proj(x).split(self.head_dim, dim=1)
        return torch.cat([self.rotate(h, cos, sin) for h in heads], dim=1)


class RotaryEmbedding(nn.Module):
    """Cosines and sines of positions, in the graph, in f16."""

    def __init__(self, head_dim=32):
        super().__init__()
        inverse = 1.0 / 10000.0 ** (torch.arange(0, head_dim, 2).float() / head_dim)
        self.register_buffer("inv_freq", inverse, persistent=False)

    def forward(self, positions):
        angles = positions[:, :, None] * self.inv_freq[None, None, :]
        angles = torch.cat((angles, angles), dim=-1)
        cos = angles.cos()  # expect: ANE019
        sin = angles.sin()  # expect: ANE019
        return cos, sin


class TrigInGraph(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = RotaryEmbedding()

    def forward(self, q, k, positions):
        cos, sin = self.rotary(positions)
        q, k = apply_rotary(q * 0.25, torch.relu(k), cos, sin)
        return (q @ k.transpose(-2, -1)).softmax(dim=-1)


class TrigOfConstants(nn.Module):
    """The same of constant positions: folded."""

    def __init__(self):
        super().__init__()
        self.rotary = RotaryEmbeddingConstant()

    def forward(self, q, k):  # expect-not: ANE018, ANE019
        cos, sin = self.rotary(q.shape[2], q.dtype)
        q, k = apply_rotary(q * 0.25, torch.relu(k), cos, sin)
        return (q @ k.transpose(-2, -1)).softmax(dim=-1)


class RotaryEmbeddingConstant(nn.Module):
    def __init__(self, head_dim=32):
        super().__init__()
        inverse = 1.0 / 10000.0 ** (torch.arange(0, head_dim, 2).float() / head_dim)
        self.register_buffer("inv_freq", inverse, persistent=False)

    def forward(self, length, dtype):
        positions = torch.arange(length, dtype=dtype)[None]
        angles = positions[:, :, None] * self.inv_freq[None, None, :]
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos(), angles.sin()


class TrigWithoutRope(nn.Module):
    """A sine activation rotates nothing."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(64, 64, 1)

    def forward(self, x):  # expect-not: ANE018, ANE019
        return torch.sin(self.conv(x) * 3.0) + x


class QueriesAndKeys(nn.Module):
    def __init__(self, dim=64, heads=2):
        super().__init__()
        self.heads = heads
        self.q_proj = nn.Conv2d(dim, dim, 1)
        self.k_proj = nn.Conv2d(dim, dim, 1)


class SplitAcrossHeads(QueriesAndKeys):
    """The halves are those of all heads together."""

    def rotate(self, x, cos, sin):
        x1, x2 = x.chunk(2, dim=1)  # expect-related: ANE020
        return x * cos + torch.cat((-x2, x1), dim=1) * sin

    def forward(self, x, cos, sin):
        cos, sin = cos.repeat(1, self.heads, 1, 1), sin.repeat(1, self.heads, 1, 1)
        q = self.rotate(self.q_proj(x), cos, sin)  # expect: ANE020
        k = self.rotate(self.k_proj(x), cos, sin)  # expect: ANE020
        out = []
        for qi, ki in zip(q.split(32, dim=1), k.split(32, dim=1)):
            out.append(torch.einsum("bchq,bkhc->bkhq", qi, ki.transpose(1, 3)).softmax(dim=1))
        return torch.cat(out, dim=1)


class SplitInsideHeads(QueriesAndKeys):
    """The workaround: one head at a time."""

    def forward(self, x, cos, sin):  # expect-not: ANE020
        out = []
        for qi, ki in zip(self.q_proj(x).split(32, dim=1), self.k_proj(x).split(32, dim=1)):
            qi, ki = self.turn(qi, cos, sin), self.turn(ki, cos, sin)
            out.append(torch.einsum("bchq,bkhc->bkhq", qi, ki.transpose(1, 3)).softmax(dim=1))
        return torch.cat(out, dim=1)

    def turn(self, x, cos, sin):
        x1, x2 = x.chunk(2, dim=1)
        return x * cos + torch.cat((-x2, x1), dim=1) * sin


class Partial(nn.Module):
    """Only the first half of each head turns: a split that is not the rotation's."""

    def forward(self, q, k, cos, sin):  # expect-not: ANE020
        q_turn, q_pass = q[..., :16], q[..., 16:]
        k_turn, k_pass = k[..., :16], k[..., 16:]
        q_turn, k_turn = apply_rotary(q_turn, k_turn, cos, sin)
        q = torch.cat((q_turn, q_pass), dim=-1)
        k = torch.cat((k_turn, k_pass), dim=-1)
        return (q @ k.transpose(-2, -1)).softmax(dim=-1)


class TableGatherFirst(nn.Module):
    """The gather as model libraries write it: once, before the first layer."""

    def __init__(self, head_dim=32, length=64):
        super().__init__()
        cos, sin = tables(head_dim, length)
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)

    def forward(self, q, k, position_ids):
        cos = self.cos[position_ids]  # expect: ANE018=warning
        sin = self.sin[position_ids]  # expect: ANE018=warning
        for _ in range(2):
            q, k = apply_rotary(torch.relu(q), torch.relu(k), cos, sin)
        return (q @ k.transpose(-2, -1)).softmax(dim=-1)


BHSD = ["f[1,2,32,32] x2"]
BC1S = "f[1,64,1,32]"
CASES = {
    "rope_gather": {"make": TableGather, "inputs": [*BHSD, "i64[1,32]<64"], "release": True},
    "rope_gather_first": {"make": TableGatherFirst, "inputs": [*BHSD, "i64[1,32]<64"]},
    "rope_gather_embedding": {"make": TableGatherEmbedding, "inputs": [*BHSD, "i64[1,32]<64"]},
    "rope_trig": {"make": TrigInGraph, "inputs": [*BHSD, "f[1,32]"]},
    "rope_split": {"make": SplitAcrossHeads, "inputs": [BC1S, "f[1,32,1,32] x2"], "strict": True},
    "rope_ok_slice": {"make": TableSlice, "inputs": BHSD},
    "rope_ok_passed_in": {"make": TablesPassedIn, "inputs": [BC1S, "f[1,32,1,32] x2"]},
    "rope_ok_constant_trig": {"make": TrigOfConstants, "inputs": BHSD},
    "rope_ok_sine": {"make": TrigWithoutRope, "inputs": [BC1S]},
    "rope_ok_split": {"make": SplitInsideHeads, "inputs": [BC1S, "f[1,32,1,32] x2"]},
    "rope_ok_partial": {"make": Partial, "inputs": [*BHSD, "f[1,32,16] x2"]},
}
