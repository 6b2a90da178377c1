"""What a converter refuses, drops or rounds: ops without a lowering, a factor that gets lost, a squeeze of an axis
that is not 1, norms without an eps, empty parts, numbers beyond trig.

Where a converter refuses, only the exported program is there to be looked at.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class VarianceByHand(nn.Module):
    """A layer norm by hand: its variance has no lowering, and is that of a sample besides."""

    def forward(self, x):
        centred = x - x.mean(dim=-1, keepdim=True)
        return centred / torch.sqrt(x.var(dim=-1, keepdim=True) + 1e-4)  # expect: COM001, COM027=warning


class PopulationVariance(nn.Module):
    """The right divisor, and still an op without a lowering."""

    def forward(self, x):  # expect-not: COM027
        centred = x - x.mean(dim=-1, keepdim=True)
        return centred / torch.sqrt(x.var(dim=-1, keepdim=True, correction=0) + 1e-4)  # expect: COM001


class VarianceAsMean(nn.Module):
    """The workaround: a mean of squares."""

    def forward(self, x):  # expect-not: COM001, COM027
        centred = x - x.mean(dim=-1, keepdim=True)
        return centred * torch.rsqrt((centred * centred).mean(dim=-1, keepdim=True) + 1e-4)


class Elu(nn.Module):
    """An activation that nothing lowers."""

    def forward(self, x):
        return F.elu(x) + F.relu(x)  # expect: COM001 `F.elu(x)`


class Remainder(nn.Module):
    """x % 3."""

    def forward(self, x):
        return (x % 3.0) * 2.0  # expect: COM008=error


class RemainderByFloor(nn.Module):
    """The workaround, with the floor that the GPU carries out."""

    def forward(self, x):  # expect-not: COM008, COM001
        return (x - 3.0 * torch.div(x / 3.0 * 2, 2, rounding_mode="floor")) * 2.0


class SqueezeNothing(nn.Module):
    """The axis has extent 2."""

    def forward(self, x):
        return F.relu(x.squeeze(1))  # expect: COM006=error


class SqueezeAll(nn.Module):
    """An axis of 1, and no axis named: torch makes that one of every axis."""

    def forward(self, x):
        return F.relu(x.unsqueeze(1).squeeze(1)) + x.squeeze()  # expect: COM006=error


class ComplexRotation(nn.Module):
    """Rotation by complex numbers."""

    def forward(self, x, angles):
        # expect-unit: gpu
        turned = torch.view_as_complex(x.reshape(8, 4, 2)) * torch.polar(torch.ones_like(angles), angles)  # expect: COM007=error
        return torch.view_as_real(turned).flatten(1)  # expect: COM007?


class NormWithoutEps(nn.Module):
    """A row of zeros is divided by zero."""

    def forward(self, x):
        # expect-unit: gpu
        return x / x.norm(dim=-1, keepdim=True)  # expect: COM009=warning


class NormalizeDefault(nn.Module):
    """F.normalize: its bound of 1e-12 is 0.0 in f16."""

    def forward(self, x):
        # expect-unit: gpu
        return F.normalize(x, dim=-1)  # expect: COM009=warning


class NormWithEps(nn.Module):
    """The workaround; and a bound that f16 holds."""

    def forward(self, x):  # expect-not: COM009
        # expect-unit: gpu
        return x * torch.rsqrt((x * x).sum(dim=-1, keepdim=True) + 1e-4) + F.normalize(x, dim=-1, eps=1e-3)


class SquaredDistance(nn.Module):
    """x² − 2xy + y² over a moved axis."""

    def forward(self, x):
        # expect-unit: gpu
        y = x.transpose(1, 2)
        return x**2 - 2 * x * y + y**2  # expect: COM010=warning


class SquareOfDifference(nn.Module):
    """The workaround."""

    def forward(self, x):  # expect-not: COM010
        # expect-unit: gpu
        return (x - x.transpose(1, 2)) ** 2


class EmptySplit(nn.Module):
    """The second part is empty."""

    def __init__(self):
        super().__init__()
        self.sizes = [64, 0]

    def forward(self, x):
        # expect-unit: gpu
        x, rest = x.split(self.sizes, dim=-1)  # expect: COM011=error
        return torch.cat([F.relu(x), rest], dim=-1)


class AddAlpha(nn.Module):
    """coreai-torch drops the factor: x + 2x in place of x + 6x."""

    def forward(self, x):
        return torch.add(x, x * 2.0, alpha=3)  # expect: COM022=error; aimodel: -


class SubAlpha(nn.Module):
    """The same by method, with a half."""

    def forward(self, x):
        return x.sub(x * 2.0, alpha=0.5)  # expect: COM022=error; aimodel: -


class AddScaled(nn.Module):
    """The workaround; and an alpha of 1."""

    def forward(self, x):  # expect-not: COM022
        return x + x * 2.0 * 3 + torch.add(x, x, alpha=1)


class FarAngles(nn.Module):
    """A table worked out in the graph, up to 300,000 radians."""

    def forward(self, x):
        # expect-unit: gpu
        angles = torch.arange(8) * 40000.0
        return x + angles.sin().to(x.dtype)  # expect: COM015=warning; aimodel: COM017=error


class NearAngles(nn.Module):
    """The workaround: the table is a buffer; and small angles."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", (torch.arange(8) * 40000.0).sin())

    def forward(self, x):  # expect-not: COM015
        # expect-unit: gpu
        return x + self.table.to(x.dtype) + (torch.arange(8) * 10.0).sin().to(x.dtype)


class MaskOfIntegers(nn.Module):
    """Positions compared as int64, joined, and cast."""

    def forward(self, x, positions, lengths):
        # expect-unit: gpu
        grid = torch.arange(8)
        keep = (grid <= positions[:, None]) & (grid < lengths[:, None])
        return x * keep.to(x.dtype)  # expect: COM005=warning


class MaskOfFloats(nn.Module):
    """The workaround: float arithmetic."""

    def forward(self, x, positions):  # expect-not: COM005
        # expect-unit: gpu
        grid = torch.arange(8).to(x.dtype)
        return x * (positions[:, None].to(x.dtype) + 1.0 - grid).clamp(0, 1)


class RoundsToStep(nn.Module):
    """A quantise step: ties are rounded otherwise."""

    def forward(self, x):
        # expect-unit: gpu
        return torch.clamp(torch.round(x / 0.125), -8, 7) * 0.125  # expect: GPU002=warning `torch.round(x / 0.125)`; aimodel: GPU002=warning


class RoundsForItself(nn.Module):
    """Rounded numbers that go out as they are."""

    def forward(self, x):  # expect-not: GPU002
        # expect-unit: gpu
        return F.relu(x).round()


class SqueezeOne(nn.Module):
    """An axis of 1, named."""

    def forward(self, x):  # expect-not: COM006
        return F.relu(x.unsqueeze(1).squeeze(1))


X = "f[4,64]"
ONLY_PT2 = {"decomp": True, "aimodel": False}
CASES = {
    "convert_variance": {"make": VarianceByHand, "inputs": [X], **ONLY_PT2},
    "convert_variance_population": {"make": PopulationVariance, "inputs": [X], **ONLY_PT2},
    "convert_ok_variance": {"make": VarianceAsMean, "inputs": [X]},
    "convert_elu": {"make": Elu, "inputs": [X], **ONLY_PT2},
    "convert_remainder": {"make": Remainder, "inputs": [X], **ONLY_PT2},
    "convert_ok_remainder": {"make": RemainderByFloor, "inputs": [X]},
    "convert_squeeze": {"make": SqueezeNothing, "inputs": ["f[4,2,32]"], **ONLY_PT2},
    "convert_squeeze_all": {"make": SqueezeAll, "inputs": [X]},
    "convert_ok_squeeze": {"make": SqueezeOne, "inputs": [X]},
    "convert_complex": {"make": ComplexRotation, "inputs": ["f32[8,8]", "f32[8,4]"], "half": False, **ONLY_PT2},
    "convert_norm": {"make": NormWithoutEps, "inputs": [X]},
    "convert_normalize": {"make": NormalizeDefault, "inputs": [X]},
    "convert_ok_norm": {"make": NormWithEps, "inputs": [X]},
    "convert_distance": {"make": SquaredDistance, "inputs": ["f[1,32,1]"]},
    "convert_ok_distance": {"make": SquareOfDifference, "inputs": ["f[1,32,1]"]},
    "convert_empty": {"make": EmptySplit, "inputs": [X]},
    "convert_alpha": {"make": AddAlpha, "inputs": [X]},
    "convert_alpha_sub": {"make": SubAlpha, "inputs": [X]},
    "convert_ok_alpha": {"make": AddScaled, "inputs": [X]},
    "convert_far_angles": {"make": FarAngles, "inputs": ["f[4,8]"]},
    "convert_ok_near_angles": {"make": NearAngles, "inputs": ["f[4,8]"]},
    "convert_mask_integers": {"make": MaskOfIntegers, "inputs": ["f[4,8]", "i64[4]", "i64[4]"]},
    "convert_ok_mask_floats": {"make": MaskOfFloats, "inputs": ["f[4,8]", "i64[4]"]},
    "gpu_round": {"make": RoundsToStep, "inputs": [X]},
    "gpu_ok_round": {"make": RoundsForItself, "inputs": [X]},
}
