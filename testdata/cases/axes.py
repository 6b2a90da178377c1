"""Per-head attention in (B, C, 1, S): which axis is whose. Scores are (B, key, 1, query)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

C, HEADS, S = 64, 2, 32
D = C // HEADS


class PerHead(nn.Module):
    """Projections and heads; what is done between scores and values is the subclass's."""

    def __init__(self):
        super().__init__()
        self.q_proj = nn.Conv2d(C, C, 1)
        self.k_proj = nn.Conv2d(C, C, 1)
        self.v_proj = nn.Conv2d(C, C, 1)
        self.o_proj = nn.Conv2d(C, C, 1)
        self.register_buffer("scale", torch.tensor(D**-0.5))

    def heads(self, x):
        q = (self.q_proj(x) * self.scale).split(D, dim=1)
        k = self.k_proj(x).transpose(1, 3).split(D, dim=3)
        v = self.v_proj(x).split(D, dim=1)
        return zip(q, k, v)

    def join(self, outs):
        return self.o_proj(torch.cat(outs, dim=1))


def scores_of(q, k):
    return torch.einsum("bchq,bkhc->bkhq", q, k)


def values_of(probs, v):
    return torch.einsum("bkhq,bchk->bchq", probs, v)


class Matching(PerHead):
    """A (1, key, 1, query) mask, softmax over the keys."""

    def __init__(self):
        super().__init__()
        mask = torch.full((S, S), -40000.0).tril(-1)
        self.register_buffer("mask", mask[None, :, None, :])

    def forward(self, x):  # expect-not: ANE014, ANE015
        outs = []
        for q, k, v in self.heads(x):
            probs = (scores_of(q, k) + self.mask).softmax(dim=1)
            outs.append(values_of(probs, v))
        return self.join(outs)


class MaskTransposed(PerHead):
    """A square mask whose triangle is that of (query, key)."""

    def __init__(self):
        super().__init__()
        mask = torch.full((S, S), -40000.0).triu(1)  # expect-related: ANE014
        self.register_buffer("mask", mask[None, :, None, :])

    def forward(self, x):
        outs = []
        for q, k, v in self.heads(x):
            scores = scores_of(q, k) + self.mask  # expect: ANE014
            outs.append(values_of(scores.softmax(dim=1), v))
        return self.join(outs)


class MaskTransposedInGraph(PerHead):
    """The same, made in forward."""

    def forward(self, x):
        mask = torch.full((S, S), -40000.0, dtype=x.dtype).triu(1).view(1, S, 1, S)
        outs = []
        for q, k, v in self.heads(x):
            scores = scores_of(q, k) + mask  # expect: ANE014
            outs.append(values_of(scores.softmax(dim=1), v))
        return self.join(outs)


class MaskMatchingInGraph(PerHead):
    """The workaround: transposed."""

    def forward(self, x):  # expect-not: ANE014, ANE015
        mask = torch.full((S, S), -40000.0, dtype=x.dtype).triu(1).t().view(1, S, 1, S)
        outs = []
        for q, k, v in self.heads(x):
            scores = scores_of(q, k) + mask
            outs.append(values_of(scores.softmax(dim=1), v))
        return self.join(outs)


class MaskSquareInput(PerHead):
    """A square mask that arrives as an input: nothing tells which way it lies."""

    def forward(self, x, mask):  # expect-not: ANE014, ANE015
        outs = []
        for q, k, v in self.heads(x):
            scores = scores_of(q, k) + mask
            outs.append(values_of(scores.softmax(dim=1), v))
        return self.join(outs)


class MaskKeyPadding(PerHead):
    """One value a key, (1, key, 1, 1)."""

    def forward(self, x, mask):  # expect-not: ANE014, ANE015
        outs = []
        for q, k, v in self.heads(x):
            probs = (scores_of(q, k) + mask).softmax(dim=1)
            outs.append(values_of(probs, v))
        return self.join(outs)


class MaskExtentsSwapped(nn.Module):
    """24 keys and 24 queries by chance, heads folded: a (1, query, 1, key) view of a causal mask."""

    def __init__(self):
        super().__init__()
        allowed = torch.ones(24, 24, dtype=torch.bool).tril()
        self.register_buffer("mask", torch.where(allowed, 0.0, -40000.0).view(1, 24, 1, 24))

    def forward(self, q, k, v):
        scores = torch.einsum("bchq,bkhc->bkhq", q * 0.25, k) + self.mask  # expect: ANE014
        return torch.einsum("bkhq,bchk->bchq", scores.softmax(dim=1), v)


class SoftmaxOverQueries(PerHead):
    """dim=-1, as everywhere else: but here the last axis is the queries."""

    def forward(self, x):
        outs = []
        for q, k, v in self.heads(x):
            probs = scores_of(q, k).softmax(dim=-1)  # expect: ANE015
            outs.append(values_of(probs, v))
        return self.join(outs)


class SoftmaxOverQueriesHelper(PerHead):
    def attend(self, q, k, v):
        probs = F.softmax(scores_of(q, k), dim=3)  # expect-related: ANE015
        return values_of(probs, v)

    def forward(self, x):
        return self.join([self.attend(q, k, v) for q, k, v in self.heads(x)])  # expect: ANE015


class SoftmaxBatched(nn.Module):
    """The common layout (B, heads, query, key), softmax over queries."""

    def forward(self, q, k, v):
        scores = (q * 0.25) @ k.transpose(-2, -1)
        return scores.softmax(dim=-2) @ v  # expect: ANE015


class SoftmaxBatchedRight(nn.Module):
    def forward(self, q, k, v):  # expect-not: ANE014, ANE015
        scores = (q * 0.25) @ k.transpose(-2, -1)
        return scores.softmax(dim=-1) @ v


class SoftmaxTransposedScores(nn.Module):
    """(key, query) scores with softmax over the keys and a transposed product: right."""

    def forward(self, q, k, v):  # expect-not: ANE014, ANE015
        scores = k @ (q * 0.25).transpose(-2, -1)
        return scores.softmax(dim=-2).transpose(-2, -1) @ v


class ChannelAttention(nn.Module):
    """A softmax that gates, and is contracted by nobody."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(C, C, 1)

    def forward(self, x):  # expect-not: ANE015
        return F.relu(x) * self.conv(x).softmax(dim=1)


class FusedSdpa(nn.Module):
    """One op for all heads."""

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)  # expect: ANE017=warning


BC1S = "f[1,64,1,32]"
BHSD = ["f[1,2,32,32] x3"]
CASES = {
    "axes_ok": {"make": Matching, "inputs": [BC1S], "release": True},
    "axes_mask_transposed": {"make": MaskTransposed, "inputs": [BC1S], "release": True},
    "axes_mask_transposed_in_graph": {"make": MaskTransposedInGraph, "inputs": [BC1S]},
    "axes_ok_mask_in_graph": {"make": MaskMatchingInGraph, "inputs": [BC1S]},
    "axes_ok_mask_input": {"make": MaskSquareInput, "inputs": [BC1S, "f[1,32,1,32]"]},
    "axes_ok_key_padding": {"make": MaskKeyPadding, "inputs": [BC1S, "f[1,32,1,1]"]},
    "axes_mask_where": {"make": MaskExtentsSwapped, "inputs": ["f[1,32,1,24]", "f[1,24,1,32]", "f[1,32,1,24]"]},
    "axes_softmax": {"make": SoftmaxOverQueries, "inputs": [BC1S]},
    "axes_softmax_helper": {"make": SoftmaxOverQueriesHelper, "inputs": [BC1S], "strict": True},
    "axes_softmax_batched": {"make": SoftmaxBatched, "inputs": BHSD},
    "axes_ok_softmax_batched": {"make": SoftmaxBatchedRight, "inputs": BHSD},
    "axes_ok_softmax_transposed": {"make": SoftmaxTransposedScores, "inputs": BHSD},
    "axes_ok_gate": {"make": ChannelAttention, "inputs": [BC1S]},
    "axes_fused": {"make": FusedSdpa, "inputs": BHSD},
}
