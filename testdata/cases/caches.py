"""Keys and values that live on: before or after the rotation, written where, in which layout.

Activations of one step are (batch, heads, sequence, head_dim); projections are left out, so that
no other fault is in the way.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def rope(x, cos, sin):
    return x * cos + rotate_half(x) * sin


def attend(q, k, v, mask):
    scores = (q * 0.25) @ k.transpose(-2, -1) + mask
    return scores.softmax(dim=-1) @ v


class ReturnsRawKey(nn.Module):
    """The new key that the function returns has not been rotated; attention uses the rotated one."""

    def forward(self, q, k, v, past_k, past_v, cos, sin, mask):
        keys = torch.cat([past_k, rope(k, cos, sin)], dim=2)
        values = torch.cat([past_v, v], dim=2)
        out = attend(rope(q, cos, sin), keys, values, mask)
        return out, k * 1.0, v  # expect: ANE011


class ReturnsRawKeyProjected(nn.Module):
    """The same with the key's projection in the graph, and a name that lies."""

    def __init__(self):
        super().__init__()
        self.k_proj = nn.Conv2d(64, 64, 1)
        self.v_proj = nn.Conv2d(64, 64, 1)

    def heads(self, x):
        return x.view(1, 2, 32, x.shape[-1]).transpose(2, 3)

    def forward(self, x, q, past_k, past_v, cos, sin, mask):
        new_key = self.heads(self.k_proj(x))  # expect: ANE011
        new_value = self.heads(self.v_proj(x))
        keys = torch.cat([past_k, rope(new_key, cos, sin)], dim=2)
        values = torch.cat([past_v, new_value], dim=2)
        return attend(rope(q, cos, sin), keys, values, mask), new_key, new_value


class WritesRawKey(nn.Module):
    """The raw key goes into the state; attention rotates the new key only."""

    def __init__(self, length=32):
        super().__init__()
        self.register_buffer("k_cache", torch.zeros(1, 2, length, 32))
        self.register_buffer("v_cache", torch.zeros(1, 2, length, 32))

    def forward(self, q, k, v, cos, sin, mask):
        old_k, old_v = self.k_cache[:, :, 1:], self.v_cache[:, :, 1:]
        keys = torch.cat([old_k, rope(k, cos, sin)], dim=2)
        values = torch.cat([old_v, v], dim=2)
        out = attend(rope(q, cos, sin), keys, values, mask)
        self.k_cache[:, :, 31:32] = k  # expect: ANE011
        self.v_cache[:, :, 31:32] = v
        return out


class ReturnsRotatedKey(nn.Module):
    """The workaround: rotate first, then return and attend."""

    def forward(self, q, k, v, past_k, past_v, cos, sin, mask):  # expect-not: ANE011
        k = rope(k, cos, sin)
        keys = torch.cat([past_k, k], dim=2)
        values = torch.cat([past_v, v], dim=2)
        return attend(rope(q, cos, sin), keys, values, mask), k, v


class ReturnsJoinedKeys(nn.Module):
    """The whole cache comes back, rotated."""

    def forward(self, q, k, v, past_k, past_v, cos, sin, mask):  # expect-not: ANE011
        keys = torch.cat([past_k, rope(k, cos, sin)], dim=2)
        values = torch.cat([past_v, v], dim=2)
        return attend(rope(q, cos, sin), keys, values, mask), keys, values


class RotatesAfterJoin(nn.Module):
    """Unrotated keys are cached and the whole of them is rotated at every step: consistent."""

    def forward(self, q, k, v, past_k, past_v, cos_q, sin_q, cos_all, sin_all, mask):  # expect-not: ANE011
        keys = torch.cat([past_k, k], dim=2)
        values = torch.cat([past_v, v], dim=2)
        out = attend(rope(q, cos_q, sin_q), rope(keys, cos_all, sin_all), values, mask)
        return out, keys, values


class NoRope(nn.Module):
    """No rotary embedding at all."""

    def forward(self, q, k, v, past_k, past_v, mask):  # expect-not: ANE011
        keys = torch.cat([past_k, k], dim=2)
        values = torch.cat([past_v, v], dim=2)
        return attend(q, keys, values, mask), k * 0.5, v


# ---- where the write goes ----------------------------------------------------------------------------


class WritesAtPosition(nn.Module):
    """The place of the write is a number that arrives at run time."""

    def __init__(self, length=32):
        super().__init__()
        self.length = length
        self.register_buffer("k_cache", torch.zeros(1, 2, length, 32))
        self.register_buffer("v_cache", torch.zeros(1, 2, length, 32))

    def forward(self, q, k, v, position, mask):
        start = position.item()
        torch._check(start >= 0)
        torch._check(start + 1 <= self.length)
        self.k_cache[:, :, start : start + 1] = k  # expect: ANE012
        self.v_cache[:, :, start : start + 1] = v  # expect: ANE012
        return attend(q, self.k_cache, self.v_cache, mask)


class StaticCache(nn.Module):
    def __init__(self, length=32):
        super().__init__()
        self.register_buffer("k", torch.zeros(1, 2, length, 32), persistent=False)
        self.register_buffer("v", torch.zeros(1, 2, length, 32), persistent=False)

    def update(self, k, v, cache_position):
        self.k.index_copy_(2, cache_position, k)  # expect-related: ANE012
        self.v.index_copy_(2, cache_position, v)  # expect-related: ANE012
        return self.k, self.v


class WritesByIndexCopy(nn.Module):
    """The library's static cache: an update method, a tensor of positions."""

    def __init__(self):
        super().__init__()
        self.cache = StaticCache()

    def forward(self, q, k, v, cache_position, mask):
        k, v = self.cache.update(k, v, cache_position)  # expect: ANE012
        return attend(q, k, v, mask)


class WritesAtConstant(nn.Module):
    """A fixed place."""

    def __init__(self, length=32):
        super().__init__()
        self.register_buffer("k_cache", torch.zeros(1, 2, length, 32))
        self.register_buffer("v_cache", torch.zeros(1, 2, length, 32))

    def forward(self, q, k, v, mask):  # expect-not: ANE012
        self.k_cache[:, :, 31:32] = k
        self.v_cache[:, :, 31:32] = v
        return attend(q, self.k_cache, self.v_cache, mask)


class WritesOneHot(nn.Module):
    """The workaround: a mask says where, and the caches come back."""

    def forward(self, q, k, v, k_cache, v_cache, write, mask):  # expect-not: ANE012
        keys = k_cache * (1.0 - write) + k * write
        values = v_cache * (1.0 - write) + v * write
        return attend(q, keys, values, mask), keys, values


class ReadOnlyInputs(nn.Module):
    """The workaround in the vendor's layout: (layers, B, H·D, 1, S) inputs, new columns as outputs."""

    def __init__(self):
        super().__init__()
        self.k_proj = nn.Conv2d(64, 64, 1)
        self.v_proj = nn.Conv2d(64, 64, 1)

    def forward(self, x, q, k_cache, v_cache, mask):  # expect-not: ANE011, ANE012, ANE013
        k, v = self.k_proj(x), self.v_proj(x)
        keys, values = torch.cat([k_cache[0], k], dim=3), torch.cat([v_cache[0], v], dim=3)
        outs = []
        for qi, ki, vi in zip(q.split(32, dim=1), keys.split(32, dim=1), values.split(32, dim=1)):
            scores = torch.einsum("bchq,bkhc->bkhq", qi * 0.25, ki.transpose(1, 3)) + mask
            outs.append(torch.einsum("bkhq,bchk->bchq", scores.softmax(dim=1), vi))
        return torch.cat(outs, dim=1), k, v


STEP = "f[1,2,1,32]"
PAST = "f[1,2,31,32]"
TABLE = "f[1,1,1,32]"
MASK = "f[1,1,1,32]"
CASES = {
    "key_raw_returned": {"make": ReturnsRawKey, "inputs": [STEP, STEP, STEP, PAST, PAST, TABLE, TABLE, MASK], "release": True},
    "key_raw_projected": {"make": ReturnsRawKeyProjected, "inputs": ["f[1,64,1,1]", STEP, PAST, PAST, TABLE, TABLE, MASK]},
    "key_raw_written": {"make": WritesRawKey, "inputs": [STEP, STEP, STEP, TABLE, TABLE, MASK]},
    "key_rotated": {"make": ReturnsRotatedKey, "inputs": [STEP, STEP, STEP, PAST, PAST, TABLE, TABLE, MASK]},
    "key_rotated_joined": {"make": ReturnsJoinedKeys, "inputs": [STEP, STEP, STEP, PAST, PAST, TABLE, TABLE, MASK]},
    "key_rotated_later": {"make": RotatesAfterJoin, "inputs": [STEP, STEP, STEP, PAST, PAST, TABLE, TABLE, "f[1,1,32,32]", "f[1,1,32,32]", MASK]},
    "key_no_rope": {"make": NoRope, "inputs": [STEP, STEP, STEP, PAST, PAST, MASK]},
    "write_position": {"make": WritesAtPosition, "inputs": [STEP, STEP, STEP, "i64[1]=3", MASK]},
    "write_index_copy": {"make": WritesByIndexCopy, "inputs": [STEP, STEP, STEP, "i64[1]=3", MASK], "strict": True},
    "write_constant": {"make": WritesAtConstant, "inputs": [STEP, STEP, STEP, MASK]},
    "write_one_hot": {"make": WritesOneHot, "inputs": [STEP, STEP, STEP, "f[1,2,32,32] x2", "f[1,1,32,1]", MASK]},
    "write_read_only": {"make": ReadOnlyInputs, "inputs": ["f[1,64,1,32]", "f[1,64,1,32]", "f[1,1,64,1,32] x2", "f[1,64,1,32]"]},
}
