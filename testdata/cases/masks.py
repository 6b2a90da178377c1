"""Attention masks: infinities, constants that f16 cannot hold, and the workarounds."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from cases.mask_tools import causal_mask, causal_mask_40000, window_mask

SEQ = 32


class Attention(nn.Module):
    """Scores and values of (batch, heads, sequence, head_dim) inputs; no projection, no other fault."""

    scale = 0.25

    def scores(self, q, k):
        return (q * self.scale) @ k.transpose(-2, -1)


def local_neginf(length, dtype):
    return torch.full((length, length), float("-inf"), dtype=dtype).triu(1)  # expect-related: ANE004


class NegInfFull(Attention):
    def forward(self, q, k, v):
        scores = self.scores(q, k)
        mask = torch.full((SEQ, SEQ), float("-inf"), dtype=scores.dtype).triu(1)  # expect: ANE004 `float("-inf")`
        return (scores + mask).softmax(dim=-1) @ v


class NegInfMath(Attention):
    def forward(self, q, k, v):
        scores = self.scores(q, k)
        mask = torch.full((SEQ, SEQ), -math.inf, dtype=scores.dtype).triu(1)  # expect: ANE004 `-math.inf`
        return (scores + mask).softmax(dim=-1) @ v


class NegInfHelper(Attention):
    def forward(self, q, k, v):
        scores = self.scores(q, k)
        mask = local_neginf(SEQ, scores.dtype)  # expect: ANE004
        return (scores + mask).softmax(dim=-1) @ v


class NegInfOtherFile(Attention):
    def forward(self, q, k, v):
        scores = self.scores(q, k)
        mask = causal_mask(SEQ, scores.dtype)  # expect: ANE004
        return (scores + mask).softmax(dim=-1) @ v


class NegInfMethod(Attention):
    def hide_future(self, scores):
        future = torch.ones(SEQ, SEQ, dtype=torch.bool).triu(1)
        return scores.masked_fill(future, float("-inf"))  # expect-related: ANE004

    def forward(self, q, k, v):
        scores = self.hide_future(self.scores(q, k))  # expect: ANE004
        return scores.softmax(dim=-1) @ v


class NegInfMaskedFill(Attention):
    def forward(self, q, k, v, allowed):
        scores = self.scores(q, k)
        scores = scores.masked_fill(~allowed, float("-inf"))  # expect: ANE004 `float("-inf")`
        return scores.softmax(dim=-1) @ v


class NegInfWhere(Attention):
    def forward(self, q, k, v, allowed):
        scores = self.scores(q, k)
        scores = torch.where(allowed, scores, float("-inf"))  # expect: ANE004 `float("-inf")`
        return F.softmax(scores, dim=-1) @ v


class NegInfWhereScalars(Attention):
    """Both branches are numbers: the -inf is an f32 scalar two ops before the add."""

    def forward(self, q, k, v):
        scores = self.scores(q, k)
        mask = torch.where(window_mask(SEQ, 8), 0.0, float("-inf")).to(scores.dtype)  # expect: ANE004 `float("-inf")`
        return (scores + mask).softmax(dim=-1) @ v


class NegInfBuffer(Attention):
    def __init__(self):
        super().__init__()
        mask = torch.full((SEQ, SEQ), float("-inf"))  # expect-related: ANE004
        self.register_buffer("mask", mask.triu(1), persistent=False)

    def forward(self, q, k, v):
        scores = self.scores(q, k)
        scores = scores + self.mask  # expect: ANE004 `self.mask`
        return scores.softmax(dim=-1) @ v


class NegInfBufferSliced(Attention):
    """The buffer is longer than the sequence."""

    def __init__(self, max_len=64):
        super().__init__()
        self.register_buffer("mask", torch.full((max_len, max_len), -torch.inf).triu(1))

    def forward(self, q, k, v):
        s = q.shape[2]
        mask = self.mask[:s, :s]  # expect: ANE004
        return (self.scores(q, k) + mask).softmax(dim=-1) @ v


class NegInfFinfoBuffer(Attention):
    """The smallest f32 in a buffer: .half() makes it -inf."""

    def __init__(self):
        super().__init__()
        mask = torch.full((SEQ, SEQ), torch.finfo(torch.float32).min)
        self.register_buffer("mask", mask.triu(1), persistent=False)

    def forward(self, q, k, v):
        scores = self.scores(q, k) + self.mask  # expect: ANE004
        return scores.softmax(dim=-1) @ v


class NegInfBoolBuffer(Attention):
    """nanoGPT: a float triangle, compared with 0."""

    def __init__(self):
        super().__init__()
        self.register_buffer("bias", torch.ones(SEQ, SEQ).tril().view(1, 1, SEQ, SEQ))

    def forward(self, q, k, v):
        s = q.shape[2]
        att = self.scores(q, k)
        att = att.masked_fill(self.bias[:, :, :s, :s] == 0, float("-inf"))  # expect: ANE004 `float("-inf")`
        att = F.softmax(att, dim=-1)
        return att @ v


class NegInfSdpa(Attention):
    """SDPA's float mask reaches a softmax too; a call of several lines."""

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(  # expect: ANE017
            q,
            k,
            v,
            attn_mask=causal_mask(SEQ, q.dtype),  # expect: ANE004
        )


class SdpaCausal(Attention):
    """No float mask at all."""

    def forward(self, q, k, v):  # expect-not: ANE004, ANE005
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)  # expect: ANE017


class SdpaBoolMask(Attention):
    def forward(self, q, k, v, allowed):  # expect-not: ANE004, ANE005
        return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)  # expect: ANE017


class NegInfNoSoftmax(nn.Module):
    """The same -inf before a maximum is right."""

    def forward(self, x, keep):  # expect-not: ANE004, ANE005
        return x.masked_fill(~keep, float("-inf")).amax(dim=1, keepdim=True) + x


class NegInfMaxPool(nn.Module):
    """The -inf that pads a max pool is no mask."""

    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.conv = nn.Conv2d(8, 8, 1)

    def forward(self, x):  # expect-not: ANE004, ANE005
        return self.conv(self.pool(x)).softmax(dim=1)


class ClampInf(Attention):
    """An upper bound of infinity is no mask either."""

    def forward(self, q, k, v):  # expect-not: ANE004, ANE005
        scores = self.scores(q, k).clamp(-100.0, math.inf)
        return scores.softmax(dim=-1) @ v


class Mask40000(Attention):
    """The documented workaround."""

    def forward(self, q, k, v):  # expect-not: ANE004, ANE005
        scores = self.scores(q, k)
        mask = torch.full((SEQ, SEQ), -40000.0, dtype=scores.dtype).triu(1)
        return (scores + mask).softmax(dim=-1) @ v


class Mask40000Helper(Attention):
    def forward(self, q, k, v):  # expect-not: ANE004, ANE005
        scores = self.scores(q, k) + causal_mask_40000(SEQ, q.dtype)
        return scores.softmax(dim=-1) @ v


class Mask40000Buffer(Attention):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.full((SEQ, SEQ), -40000.0).triu(1))

    def forward(self, q, k, v):  # expect-not: ANE004, ANE005
        return (self.scores(q, k) + self.mask).softmax(dim=-1) @ v


class Mask40000MaskedFill(Attention):
    def forward(self, q, k, v, allowed):  # expect-not: ANE004, ANE005
        return self.scores(q, k).masked_fill(~allowed, -40000.0).softmax(dim=-1) @ v


class Mask40000Where(Attention):
    def forward(self, q, k, v, allowed):  # expect-not: ANE004, ANE005
        return torch.where(allowed, self.scores(q, k), -40000.0).softmax(dim=-1) @ v


class Mask10000KeyPadding(Attention):
    """BERT's way with the smaller constant."""

    def forward(self, q, k, v, attention_mask):  # expect-not: ANE004, ANE005
        mask = (1.0 - attention_mask[:, None, None, :]) * -10000.0
        return (self.scores(q, k) + mask).softmax(dim=-1) @ v


class Minus1e9MaskedFill(Attention):
    def forward(self, q, k, v, allowed):
        scores = self.scores(q, k).masked_fill(~allowed, -1e9)  # expect: ANE005 `-1e9`; aimodel: ANE004
        return scores.softmax(dim=-1) @ v


class Minus1e9WhereMethod(Attention):
    def _apply_mask(self, scores):
        causal = torch.ones(SEQ, SEQ, dtype=torch.bool).tril()
        return torch.where(causal, scores, -1e9)  # expect-related: ANE005; aimodel: ANE004

    def forward(self, q, k, v):
        scores = self._apply_mask(self.scores(q, k))  # expect: ANE005; aimodel: ANE004
        return scores.softmax(-1) @ v


class Minus1e9Full(Attention):
    def forward(self, q, k, v):
        scores = self.scores(q, k)
        mask = torch.full((SEQ, SEQ), -1e9, dtype=torch.float32).triu(1).to(scores.dtype)  # expect: ANE005 `-1e9`; aimodel: ANE004
        return (scores + mask).softmax(dim=-1) @ v


class Minus1e9Times(Attention):
    """BERT's way: f16 cannot hold the factor, the product becomes an f32 island that ends in -inf."""

    def forward(self, q, k, v, attention_mask):
        mask = (1.0 - attention_mask[:, None, None, :]) * -1e9  # expect: ANE005 `-1e9`
        return (self.scores(q, k) + mask).softmax(dim=-1) @ v


class Finfo32MaskedFill(Attention):
    def forward(self, q, k, v, allowed):
        scores = self.scores(q, k).masked_fill(~allowed, torch.finfo(torch.float32).min)  # expect: ANE005; aimodel: ANE004
        return scores.softmax(dim=-1) @ v


class Finfo16MaskedFill(Attention):
    """-65504: the last number that f16 holds; worth a word, no error."""

    def forward(self, q, k, v, allowed):  # expect-not: ANE004
        scores = self.scores(q, k).masked_fill(~allowed, torch.finfo(torch.float16).min)  # expect: ANE005=advice
        return scores.softmax(dim=-1) @ v


class Edge65504(Attention):
    def forward(self, q, k, v, allowed):  # expect-not: ANE004
        return self.scores(q, k).masked_fill(~allowed, -65504.0).softmax(dim=-1) @ v  # expect: ANE005=advice `-65504.0`


class Edge65505(Attention):
    """Rounds to -65504 in f16 (measured in the .aimodel: 0xFBFF)."""

    def forward(self, q, k, v, allowed):  # expect-not: ANE004
        return self.scores(q, k).masked_fill(~allowed, -65505.0).softmax(dim=-1) @ v  # expect: ANE005=advice


class Edge65519(Attention):
    """The last whole number that still rounds to -65504."""

    def forward(self, q, k, v, allowed):  # expect-not: ANE004
        return self.scores(q, k).masked_fill(~allowed, -65519.0).softmax(dim=-1) @ v  # expect: ANE005=advice


class Edge65520(Attention):
    """The first that becomes -inf."""

    def forward(self, q, k, v, allowed):
        return self.scores(q, k).masked_fill(~allowed, -65520.0).softmax(dim=-1) @ v  # expect: ANE005 `-65520.0`; aimodel: ANE004


class TwoMasksSummed(Attention):
    """Two masks of -40000 each: their sum is -inf in f16."""

    def __init__(self):
        super().__init__()
        pad = torch.zeros(SEQ)
        pad[-4:] = -40000.0
        self.register_buffer("causal", torch.full((SEQ, SEQ), -40000.0).triu(1))
        self.register_buffer("pad", pad)

    def forward(self, q, k, v):
        mask = self.causal + self.pad  # expect: ANE067; aimodel: ANE004
        return (self.scores(q, k) + mask).softmax(-1) @ v


class TwoMasksMinimum(Attention):
    """The workaround: the smaller of the two."""

    def __init__(self):
        super().__init__()
        pad = torch.zeros(SEQ)
        pad[-4:] = -40000.0
        self.register_buffer("causal", torch.full((SEQ, SEQ), -40000.0).triu(1))
        self.register_buffer("pad", pad)

    def forward(self, q, k, v):  # expect-not: ANE004, ANE005, ANE067
        mask = torch.minimum(self.causal, self.pad)
        return (self.scores(q, k) + mask).softmax(-1) @ v


class BoolMaskAdded(Attention):
    """A bool mask that is added, not filled: it becomes +1."""

    def forward(self, q, k, v, allowed):
        scores = self.scores(q, k) + allowed  # expect: COM029
        return scores.softmax(dim=-1) @ v


QKV = ["f[1,2,32,32] x3"]
MASKED = [*QKV, "tri[32,32]"]
CASES = {
    "neginf_full": {"make": NegInfFull, "inputs": QKV, "strict": True, "release": True, "samples": True},
    "neginf_math": {"make": NegInfMath, "inputs": QKV},
    "neginf_helper": {"make": NegInfHelper, "inputs": QKV, "strict": True},
    "neginf_other_file": {"make": NegInfOtherFile, "inputs": QKV, "strict": True},
    "neginf_method": {"make": NegInfMethod, "inputs": QKV},
    "neginf_masked_fill": {"make": NegInfMaskedFill, "inputs": MASKED},
    "neginf_where": {"make": NegInfWhere, "inputs": MASKED},
    "neginf_where_scalars": {"make": NegInfWhereScalars, "inputs": QKV},
    "neginf_buffer": {"make": NegInfBuffer, "inputs": QKV, "release": True},
    "neginf_buffer_sliced": {"make": NegInfBufferSliced, "inputs": QKV},
    "neginf_finfo_buffer": {"make": NegInfFinfoBuffer, "inputs": QKV},
    "neginf_bool_buffer": {"make": NegInfBoolBuffer, "inputs": QKV},
    "neginf_sdpa": {"make": NegInfSdpa, "inputs": QKV},
    "sdpa_causal": {"make": SdpaCausal, "inputs": QKV},
    "sdpa_bool_mask": {"make": SdpaBoolMask, "inputs": MASKED},
    "neginf_no_softmax": {"make": NegInfNoSoftmax, "inputs": ["f[1,64,1,32]", "bool[1,64,1,32]"]},
    "neginf_max_pool": {"make": NegInfMaxPool, "inputs": ["f[1,8,16,64]"]},
    "clamp_inf": {"make": ClampInf, "inputs": QKV},
    "mask_40000": {"make": Mask40000, "inputs": QKV},
    "mask_40000_helper": {"make": Mask40000Helper, "inputs": QKV},
    "mask_40000_buffer": {"make": Mask40000Buffer, "inputs": QKV},
    "mask_40000_masked_fill": {"make": Mask40000MaskedFill, "inputs": MASKED},
    "mask_40000_where": {"make": Mask40000Where, "inputs": MASKED},
    "mask_10000_key_padding": {"make": Mask10000KeyPadding, "inputs": [*QKV, "f[1,32]"]},
    "minus_1e9_masked_fill": {"make": Minus1e9MaskedFill, "inputs": MASKED},
    "minus_1e9_where_method": {"make": Minus1e9WhereMethod, "inputs": QKV, "strict": True},
    "minus_1e9_full": {"make": Minus1e9Full, "inputs": QKV},
    "minus_1e9_times": {"make": Minus1e9Times, "inputs": [*QKV, "f[1,32]"]},
    "finfo32_masked_fill": {"make": Finfo32MaskedFill, "inputs": MASKED},
    "finfo16_masked_fill": {"make": Finfo16MaskedFill, "inputs": MASKED},
    "mask_edge_65504": {"make": Edge65504, "inputs": MASKED},
    "mask_edge_65505": {"make": Edge65505, "inputs": MASKED},
    "mask_edge_65519": {"make": Edge65519, "inputs": MASKED},
    "mask_edge_65520": {"make": Edge65520, "inputs": MASKED},
    "two_masks_summed": {"make": TwoMasksSummed, "inputs": QKV},
    "two_masks_minimum": {"make": TwoMasksMinimum, "inputs": QKV},
    "bool_mask_added": {"make": BoolMaskAdded, "inputs": MASKED},
}
