"""f32 numbers from source code that meet f16 data, and the workarounds. Activations are (B, C, 1, S)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from cases.modulation import modulate_default_one, modulate_same_one

C, S = 64, 32


class TensorLiteral(nn.Module):
    """A 0-d f32 tensor: the result still says f16."""

    def forward(self, x):
        x = F.relu(x)
        x = x * torch.tensor(1.5)  # expect: ANE001 `torch.tensor(1.5)`
        return F.relu(x)


class TensorLiteralSub(nn.Module):
    """The literal on the left."""

    def forward(self, x):
        y = torch.tensor(1.0) - F.relu(x)  # expect: ANE001 `torch.tensor(1.0)`
        return F.relu(y)


class OnesPlusScale(nn.Module):
    """A 1-element f32 tensor makes everything after it f32, until the cast back."""

    def forward(self, x, shift, scale):
        x = (x * (torch.ones(1) + scale) + shift).to(x.dtype)  # expect: ANE001 `torch.ones(1)`
        return F.relu(x)


class OnesPlusScaleHelper(nn.Module):
    def forward(self, x, shift, scale):
        x = F.relu(x)
        x = modulate_default_one(x, shift, scale)  # expect: ANE001
        return F.relu(x)


class FullScalar(nn.Module):
    def forward(self, x):
        x = x + torch.full((), 0.5)  # expect: ANE001 `torch.full((), 0.5)`
        return F.relu(x)


class ZerosMaximum(nn.Module):
    """A hand-written relu."""

    def forward(self, x):
        x = torch.maximum(x, torch.zeros(1)).to(x.dtype)  # expect: ANE001 `torch.zeros(1)`
        return F.silu(x)


class AttributeTensor(nn.Module):
    """A plain tensor attribute: .half() does not reach it."""

    def __init__(self):
        super().__init__()
        self.scale = torch.tensor(0.125)  # expect-related: ANE001

    def forward(self, x):
        x = F.relu(x) * self.scale  # expect: ANE001 `self.scale`
        return F.silu(x)


class ScalarBufferF32(nn.Module):
    """An f16 model whose buffer stayed f32."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(C, C, 1, dtype=torch.float16)
        self.register_buffer("scale", torch.tensor(0.125))  # expect-related: ANE001

    def forward(self, x):
        x = self.conv(x) * self.scale  # expect: ANE001 `self.scale`
        return F.silu(x)


class WhereScalars(nn.Module):
    """Both branches are numbers, so the mask is f32, of any size."""

    def forward(self, q, k, v, allowed):
        scores = (q * 0.25) @ k.transpose(-2, -1)
        attn = (scores + torch.where(allowed, 0.0, -40000.0)).softmax(dim=-1).to(v.dtype)  # expect: ANE001 `torch.where(allowed, 0.0, -40000.0)`
        return attn @ v


class MaskDefaultDtype(nn.Module):
    """The right number, no dtype."""

    def forward(self, q, k, v):
        scores = (q * 0.25) @ k.transpose(-2, -1)
        attn = (scores + torch.full((S, S), -40000.0).triu(1)).softmax(dim=-1).to(v.dtype)  # expect: ANE001 `torch.full((S, S), -40000.0)`; aimodel: ANE001|ANE003
        return attn @ v


class MaskDefaultDtypeTwoLines(nn.Module):
    """Made on one line, used on another, cast back on a third: one finding, where it is made."""

    def forward(self, q, k, v):
        scores = (q * 0.25) @ k.transpose(-2, -1)
        mask = torch.full((S, S), -40000.0).triu(1)  # expect: ANE001; aimodel: ANE001|ANE003
        scores = scores + mask
        attn = scores.softmax(dim=-1)
        return attn.to(v.dtype) @ v


class ArangeTimesFloat(nn.Module):
    """ALiBi-like: integers times a float are f32."""

    def forward(self, x):
        x = F.relu(x)
        x = (x - torch.arange(S) * 0.5).to(x.dtype)  # expect: ANE001; aimodel: ANE001|ANE003
        return F.silu(x)


class LiteralTwiceOnALine(nn.Module):
    def forward(self, x, y):
        a, b = F.relu(x) * torch.tensor(1.5), F.relu(y) + torch.tensor(0.25)  # expect: ANE001 `torch.tensor(1.5)`, ANE001 `torch.tensor(0.25)`
        return a * b


class TwoLayersOneLine(nn.Module):
    """One source line, two module paths: one finding that counts two."""

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(C, C, 1)

        def forward(self, x):
            return x + F.relu(self.conv(x)) * torch.tensor(0.5)  # expect: ANE001 `torch.tensor(0.5)`

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(TwoLayersOneLine.Layer() for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class BeyondF16Factor(nn.Module):
    """f16 cannot hold 70000: an f32 island, which is ANE040's to say."""

    def forward(self, x):  # expect-not: ANE001
        x = F.sigmoid(x) * 70000.0  # expect: ANE040
        return F.relu(x)


# ---- workarounds and things that look alike --------------------------------------------------------


class PythonFloat(nn.Module):
    """A Python float folds to f16."""

    def forward(self, x):  # expect-not: ANE001, ANE003
        return F.relu(x * 1.5 + 0.25) / 8.0 - 1


class PythonFloatLargest(nn.Module):
    def forward(self, x):  # expect-not: ANE001, ANE003, ANE040
        return F.relu(F.sigmoid(x) * 65504.0)


class SameDtypeLiteral(nn.Module):
    def forward(self, x):  # expect-not: ANE001, ANE003
        return F.relu(x * torch.tensor(1.5, dtype=x.dtype))


class SameDtypeOnes(nn.Module):
    def forward(self, x, shift, scale):  # expect-not: ANE001, ANE003
        return F.relu(modulate_same_one(x, shift, scale))


class ScalarBuffer(nn.Module):
    """A buffer, which .half() casts."""

    def __init__(self):
        super().__init__()
        self.register_buffer("one", torch.ones(1))

    def forward(self, x, scale):  # expect-not: ANE001, ANE003
        return F.relu(x * (self.one + scale))


class NewFull(nn.Module):
    def forward(self, x):  # expect-not: ANE001, ANE003
        return F.relu(x + x.new_full((1,), 0.5))


class WhereSameDtype(nn.Module):
    """The workaround of a mask of two numbers: a tensor of the scores' dtype in one branch."""

    def forward(self, q, k, v, allowed):  # expect-not: ANE001, ANE003, ANE004, ANE005
        scores = (q * 0.25) @ k.transpose(-2, -1)
        mask = torch.where(allowed, scores.new_zeros(()), -40000.0)
        return (scores + mask).softmax(dim=-1) @ v


class WhereScalarsCast(nn.Module):
    """f32 for a moment, on constants only: folded before the graph runs."""

    def forward(self, q, k, v):  # expect-not: ANE001, ANE003, ANE004, ANE005
        scores = (q * 0.25) @ k.transpose(-2, -1)
        future = torch.ones(S, S, dtype=torch.bool).triu(1)
        mask = torch.where(future, -40000.0, 0.0).to(scores.dtype)
        return (scores + mask).softmax(dim=-1) @ v


class ShapeArithmetic(nn.Module):
    """Numbers about shapes are no arithmetic with data."""

    def forward(self, x):  # expect-not: ANE001, ANE003
        b, c, _, s = x.shape
        return F.relu(x.view(b, c // 2, 2, s)).reshape(b, c, 1, s) / (c**0.5)


class Upsample(nn.Module):
    """interpolate's scales are f32 constants in the .aimodel; they are its own."""

    def forward(self, x):  # expect-not: ANE001, ANE003
        return F.relu(F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False))


class NormEps(nn.Module):
    """eps, momentum and the bodies of composites are no literals of the author."""

    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(4, C)
        self.batch = nn.BatchNorm2d(C)
        self.conv = nn.Conv2d(C, C, 1)

    def forward(self, x):  # expect-not: ANE001, ANE003
        return F.relu(self.norm(self.batch(self.conv(x))))


X = "f[1,64,1,32]"
QKV = ["f[1,2,32,32] x3"]
CASES = {
    "literal_tensor": {"make": TensorLiteral, "inputs": [X], "strict": True, "release": True},
    "literal_tensor_left": {"make": TensorLiteralSub, "inputs": [X]},
    "literal_ones": {"make": OnesPlusScale, "inputs": [X, X, X]},
    "literal_ones_helper": {"make": OnesPlusScaleHelper, "inputs": [X, X, X], "strict": True},
    "literal_full": {"make": FullScalar, "inputs": [X]},
    "literal_zeros": {"make": ZerosMaximum, "inputs": [X]},
    "literal_attribute": {"make": AttributeTensor, "inputs": [X]},
    "literal_buffer_f32": {"make": ScalarBufferF32, "inputs": ["f16[1,64,1,32]"], "half": False, "mlpackage": False, "onnx": False},
    "literal_where": {"make": WhereScalars, "inputs": [*QKV, "tri[32,32]"]},
    "literal_mask": {"make": MaskDefaultDtype, "inputs": QKV},
    "literal_mask_two_lines": {"make": MaskDefaultDtypeTwoLines, "inputs": QKV},
    "literal_arange": {"make": ArangeTimesFloat, "inputs": [X]},
    "literal_twice": {"make": LiteralTwiceOnALine, "inputs": [X, X]},
    "literal_two_layers": {"make": TwoLayersOneLine, "inputs": [X]},
    "literal_beyond_f16": {"make": BeyondF16Factor, "inputs": [X]},
    "literal_ok_python": {"make": PythonFloat, "inputs": [X]},
    "literal_ok_largest": {"make": PythonFloatLargest, "inputs": [X]},
    "literal_ok_dtype": {"make": SameDtypeLiteral, "inputs": [X]},
    "literal_ok_ones": {"make": SameDtypeOnes, "inputs": [X, X, X]},
    "literal_ok_buffer": {"make": ScalarBuffer, "inputs": [X, X]},
    "literal_ok_new_full": {"make": NewFull, "inputs": [X]},
    "literal_ok_where": {"make": WhereSameDtype, "inputs": [*QKV, "tri[32,32]"]},
    "literal_ok_where_cast": {"make": WhereScalarsCast, "inputs": QKV},
    "literal_ok_shapes": {"make": ShapeArithmetic, "inputs": [X]},
    "literal_ok_upsample": {"make": Upsample, "inputs": ["f[1,8,16,32]"]},
    "literal_ok_norms": {"make": NormEps, "inputs": ["f[1,64,8,32]"]},
}
