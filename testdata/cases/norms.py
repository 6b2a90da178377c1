"""Norms that are written out: what the unit makes of them, where they overflow, what they run over."""
import torch
import torch.nn as nn
import torch.nn.functional as F

C, S = 16, 32


class Stem(nn.Module):
    """Work before the norm, (1, C, 1, S)."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(C, C, 1)
        self.tail = nn.Conv2d(C, C, 1)
        self.weight = nn.Parameter(torch.ones(1, C, 1, 1))
        self.bias = nn.Parameter(torch.zeros(1, C, 1, 1))


class LayerNormByHand(nn.Module):
    """Over the last axis, where nn.LayerNorm would do."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(C))
        self.bias = nn.Parameter(torch.zeros(C))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        variance = (x - mean).pow(2).mean(-1, keepdim=True)  # expect: ANE037=warning; mlpackage: -
        return F.relu((x - mean) * torch.rsqrt(variance + 1e-4) * self.weight + self.bias)


class LayerNormWhole(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(C, eps=1e-4)

    def forward(self, x):  # expect-not: ANE037, ANE038, ANE039
        return F.relu(self.norm(x))


class RmsByHand(Stem):
    """As the vendor's iOS models write it: no fault, but x * x overflows from 256 on."""

    def forward(self, x):
        x = self.stem(x)
        x = x * torch.rsqrt((x * x).mean(dim=1, keepdim=True) + 1e-4) * self.weight  # expect: ANE037=advice, ANE038=warning
        return self.tail(x)


class RmsRescaled(Stem):
    """Scaled down before it is squared; the eps is divided by the square of the scale too."""

    def forward(self, x):  # expect-not: ANE038
        x = self.stem(x)
        small = x * 0.0625
        x = small * torch.rsqrt((small * small).mean(dim=1, keepdim=True) + 4e-4) * self.weight  # expect: ANE037=advice
        return self.tail(x)


class RmsMirrored(nn.Module):
    """The workaround: the layer norm of [x, -x] has mean 0 and accumulates wide."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(2 * C, eps=1e-4, elementwise_affine=False)
        self.weight = nn.Parameter(torch.ones(C))

    def forward(self, x):  # expect-not: ANE037, ANE038
        both = self.norm(torch.cat([x, -x], dim=-1))
        return F.relu(both[..., :C] * self.weight)


class ShiftBeforeScale(Stem):
    """(normalised + beta) * gamma."""

    def forward(self, x):
        x = self.stem(x)
        centred = x - x.mean(dim=1, keepdim=True)
        variance = (centred * centred).mean(dim=1, keepdim=True)
        normalised = centred * torch.rsqrt(variance + 1e-4)
        return self.tail((normalised + self.bias) * self.weight)  # expect: ANE052=warning; mlpackage: -


class ScaleBeforeShift(Stem):
    def forward(self, x):  # expect-not: ANE052
        x = self.stem(x)
        centred = x - x.mean(dim=1, keepdim=True)
        variance = (centred * centred).mean(dim=1, keepdim=True)
        return self.tail(centred * torch.rsqrt(variance + 1e-4) * self.weight + self.bias)


class EpsZero(Stem):
    def forward(self, x):
        x = self.stem(x)
        x = x * torch.rsqrt((x * x).mean(dim=1, keepdim=True) + 1e-12)  # expect: ANE039=error; mlpackage: ANE039=warning
        return self.tail(x)


class EpsAtTheEdgeBelow(Stem):
    """2.9e-8 rounds to 0, 3e-8 to the smallest number that f16 has."""

    def forward(self, x):
        x = self.stem(x)
        x = x * torch.rsqrt((x * x).mean(dim=1, keepdim=True) + 2.9e-8)  # expect: ANE039=error
        return self.tail(x)


class EpsAtTheEdgeAbove(Stem):
    def forward(self, x):
        x = self.stem(x)
        x = x * torch.rsqrt((x * x).mean(dim=1, keepdim=True) + 3e-8)  # expect: ANE039=warning
        return self.tail(x)


class EpsSubnormal(Stem):
    """The common 1e-6: held with few bits."""

    def forward(self, x):
        x = self.stem(x)
        x = x * torch.rsqrt((x * x).mean(dim=1, keepdim=True) + 1e-6)  # expect: ANE039=advice
        return self.tail(x)


class EpsLarge(Stem):
    def forward(self, x):  # expect-not: ANE039
        x = self.stem(x)
        x = x * torch.rsqrt((x * x).mean(dim=1, keepdim=True) + 6.2e-5)
        return self.tail(x)


class EpsInADivision(Stem):
    """Added to a sum that divides; and under a logarithm."""

    def forward(self, x):
        x = torch.sigmoid(self.stem(x))
        x = x / (x.sum(dim=1, keepdim=True) + 1e-9)  # expect: ANE039=error; mlpackage: ANE039=warning
        return self.tail(torch.log(x + 1e-8))  # expect: ANE039=error; mlpackage: ANE039=warning


class NormalizeTinyBound(Stem):
    """The clamp of F.normalize stays and its bound becomes 0."""

    def forward(self, x):
        x = self.stem(x)
        return self.tail(F.normalize(x, dim=1))  # expect: ANE039=error, ANE061; decomp: ANE039=error, ANE003; aimodel: ANE039=error, ANE003; mlpackage: ANE039=warning


class TinyBoundElsewhere(Stem):
    """The same bound over no division: a relu with a soft edge, no fault."""

    def forward(self, x):  # expect-not: ANE039
        return self.tail(self.stem(x).clamp(min=1e-12))


class NormOverTokens(nn.Module):
    """nn.LayerNorm on (1, C, 1, S): the last axis counts tokens here."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(C, C, 1)
        self.norm = nn.LayerNorm(S, eps=1e-4)
        self.tail = nn.Conv2d(C, C, 1)

    def forward(self, x):
        return self.tail(self.norm(self.stem(x)))  # expect: ANE065=warning


class NormOverChannels(Stem):
    def forward(self, x):  # expect-not: ANE065
        x = self.stem(x)
        x = x * torch.rsqrt((x * x).mean(dim=1, keepdim=True) + 1e-4)
        return self.tail(x)


class NormOfHeads(nn.Module):
    """Queries normed head by head."""

    def __init__(self):
        super().__init__()
        self.proj = nn.Conv2d(C, C, 1)
        self.norm = nn.LayerNorm(C // 2, eps=1e-4)
        self.tail = nn.Conv2d(C, C, 1)

    def forward(self, x):  # expect-not: ANE065
        heads = self.proj(x).view(1, 2, C // 2, S).transpose(2, 3)
        return self.tail(self.norm(heads).transpose(2, 3).reshape(1, C, 1, S))


class InstanceNormOfSound(nn.Module):
    """Over time, channel by channel, in a net of 1-D convolutions."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(C, C, 3, padding=1)
        self.tail = nn.Conv1d(C, C, 3, padding=1)

    def forward(self, x):  # expect-not: ANE065
        x = self.stem(x)
        centred = x - x.mean(dim=2, keepdim=True)
        return self.tail(centred * torch.rsqrt((centred * centred).mean(dim=2, keepdim=True) + 1e-4))


X = "f[1,16,1,32]"
ROWS = "f[1,32,16]"
ONLY_CORE_AI = {"mlpackage": False, "onnx": False}
CASES = {
    "norm_layer_by_hand": {"make": LayerNormByHand, "inputs": [ROWS]},
    "norm_layer_whole": {"make": LayerNormWhole, "inputs": [ROWS], "onnx": False},
    "norm_rms_by_hand": {"make": RmsByHand, "inputs": [X], "release": True},
    "norm_rms_rescaled": {"make": RmsRescaled, "inputs": [X], **ONLY_CORE_AI},
    "norm_rms_mirrored": {"make": RmsMirrored, "inputs": [ROWS], "onnx": False},
    "norm_shift_scale": {"make": ShiftBeforeScale, "inputs": [X]},
    "norm_scale_shift": {"make": ScaleBeforeShift, "inputs": [X], "onnx": False},
    "eps_zero": {"make": EpsZero, "inputs": [X]},
    "eps_edge_below": {"make": EpsAtTheEdgeBelow, "inputs": [X], **ONLY_CORE_AI},
    "eps_edge_above": {"make": EpsAtTheEdgeAbove, "inputs": [X], **ONLY_CORE_AI},
    "eps_subnormal": {"make": EpsSubnormal, "inputs": [X], **ONLY_CORE_AI},
    "eps_large": {"make": EpsLarge, "inputs": [X], "onnx": False},
    "eps_division": {"make": EpsInADivision, "inputs": [X], "onnx": False},
    "eps_normalize": {"make": NormalizeTinyBound, "inputs": [X], "onnx": False},
    "eps_elsewhere": {"make": TinyBoundElsewhere, "inputs": [X], **ONLY_CORE_AI},
    "norm_over_tokens": {"make": NormOverTokens, "inputs": [X], "onnx": False},
    "norm_over_channels": {"make": NormOverChannels, "inputs": [X], **ONLY_CORE_AI},
    "norm_of_heads": {"make": NormOfHeads, "inputs": [X], **ONLY_CORE_AI},
    "norm_of_sound": {"make": InstanceNormOfSound, "inputs": ["f[1,16,32]"], **ONLY_CORE_AI},
}
