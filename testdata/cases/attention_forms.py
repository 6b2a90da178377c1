"""Attention in forms that cost on the unit, and caches by their layout."""
import torch
import torch.nn as nn
import torch.nn.functional as F

D, S = 16, 32


class ScaleLate(nn.Module):
    """Scores are scaled after the product."""

    def forward(self, q, k, v):
        scores = torch.einsum("bchq,bkhc->bkhq", q, k) * 0.25  # expect: ANE063=advice
        return torch.einsum("bkhq,bchk->bchq", scores.softmax(dim=1), v)


class ScaleFirst(nn.Module):
    """The workaround: the queries are scaled."""

    def forward(self, q, k, v):  # expect-not: ANE063
        scores = torch.einsum("bchq,bkhc->bkhq", q * 0.25, k)
        return torch.einsum("bkhq,bchk->bchq", scores.softmax(dim=1), v)


class SmallProduct(nn.Module):
    """The product with the values is scaled by very little."""

    def forward(self, q, k, v):
        scores = torch.einsum("bchq,bkhc->bkhq", q * 0.25, k)
        return torch.einsum("bkhq,bchk->bchq", scores.softmax(dim=1) * 1.5e-4, v)  # expect: ANE056=advice


class SmallProductAtTheEdge(nn.Module):
    def forward(self, q, k, v):  # expect-not: ANE056
        scores = torch.einsum("bchq,bkhc->bkhq", q * 0.25, k)
        return torch.einsum("bkhq,bchk->bchq", scores.softmax(dim=1) * 2.5e-4, v)


def repeat_kv(x, times):
    """(1, H, S, D) -> (1, H * times, S, D), as model libraries do it."""
    b, h, s, d = x.shape
    return x[:, :, None].expand(b, h, times, s, d).reshape(b, h * times, s, d)


class RepeatedKeys(nn.Module):
    def forward(self, q, k, v):
        k, v = repeat_kv(k, 2), repeat_kv(v, 2)  # expect: ANE064=advice
        return F.scaled_dot_product_attention(q, k, v)


class KeysByIndex(nn.Module):
    """The workaround: query head h reads key head h // 2."""

    def forward(self, q, k, v):  # expect-not: ANE064
        outs = []
        for h, head in enumerate((q * 0.25).split(D, dim=1)):
            scores = torch.einsum("bchq,bkhc->bkhq", head, k[h // 2])
            outs.append(torch.einsum("bkhq,bchk->bchq", scores.softmax(dim=1), v[h // 2]))
        return torch.cat(outs, dim=1)


class CacheBySequence(nn.Module):
    """(layers, B, H, S, D): the GPU's layout, the sequence before the last axis."""

    def forward(self, q, k, v, k_cache, v_cache):  # expect-case: ANE013=warning x2
        keys = torch.cat([k_cache[0], (k := F.relu(k))], dim=2)
        values = torch.cat([v_cache[0], (v := F.relu(v))], dim=2)
        return F.scaled_dot_product_attention(q, keys, values), k, v


class CacheBySequenceLast(nn.Module):
    """(layers, B, H·D, 1, S), one head."""

    def forward(self, q, k, v, k_cache, v_cache):  # expect-not: ANE013
        keys = torch.cat([k_cache[0], (k := F.relu(k))], dim=3)
        values = torch.cat([v_cache[0], (v := F.relu(v))], dim=3)
        scores = torch.einsum("bchq,bkhc->bkhq", q * 0.25, keys.transpose(1, 3))
        return torch.einsum("bkhq,bchk->bchq", scores.softmax(dim=1), values), k, v


class DecodeAlone(CacheBySequenceLast):
    """One query a call, and no function that takes more."""

    def forward(self, q, k, v, k_cache, v_cache):  # expect-case: ANE054=advice
        return super().forward(q, k, v, k_cache, v_cache)


class PrefillAlone(CacheBySequenceLast):
    def forward(self, q, k, v, k_cache, v_cache):  # expect-not: ANE054
        return super().forward(q, k, v, k_cache, v_cache)


QKV = ["f[1,16,1,32]", "f[1,32,1,16]", "f[1,16,1,32]"]
HEADS = "f[1,2,32,16]"
CACHE = "f[1,1,16,1,64]"
ONLY_CORE_AI = {"mlpackage": False, "onnx": False}
CASES = {
    "scale_late": {"make": ScaleLate, "inputs": QKV, **ONLY_CORE_AI},
    "scale_first": {"make": ScaleFirst, "inputs": QKV, **ONLY_CORE_AI},
    "product_small": {"make": SmallProduct, "inputs": QKV, **ONLY_CORE_AI},
    "product_edge": {"make": SmallProductAtTheEdge, "inputs": QKV, **ONLY_CORE_AI},
    "kv_repeated": {"make": RepeatedKeys, "inputs": ["f[1,4,32,16]", HEADS, HEADS], "onnx": False},
    "kv_by_index": {"make": KeysByIndex, "inputs": ["f[1,64,1,32]", "f[2,1,32,1,16]", "f[2,1,16,1,32]"], **ONLY_CORE_AI},
    "kv_sequence_dim3": {"make": CacheBySequence, "inputs": ["f[1,2,32,16] x3", "f[1,1,2,64,16] x2"], "onnx": False},
    "kv_sequence_last": {"make": CacheBySequenceLast, "inputs": ["f[1,16,1,32] x3", CACHE + " x2"], "onnx": False},
    "decode_alone": {"make": DecodeAlone, "inputs": ["f[1,16,1,1] x3", CACHE + " x2"], **ONLY_CORE_AI},
    "prefill_alone": {"make": PrefillAlone, "inputs": ["f[1,16,1,32] x3", CACHE + " x2"], **ONLY_CORE_AI},
}
