"""f32 work in f16 models, and the workarounds. Activations are (B, C, 1, S)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

C, S = 64, 32


def stable_softmax(scores):
    return F.softmax(scores, dim=-1, dtype=torch.float32).to(scores.dtype)  # expect-related: ANE003


class SoftmaxDtype(nn.Module):
    def forward(self, q, k, v):
        scores = (q * 0.25) @ k.transpose(-2, -1)
        attn = F.softmax(scores, dim=-1, dtype=torch.float32).to(v.dtype)  # expect: ANE003
        return attn @ v


class SoftmaxMethodDtype(nn.Module):
    def forward(self, q, k, v):
        scores = (q * 0.25) @ k.transpose(-2, -1)
        attn = scores.softmax(dim=-1, dtype=torch.float)  # expect: ANE003
        return attn.half() @ v


class SoftmaxHelper(nn.Module):
    def forward(self, q, k, v):
        scores = (q * 0.25) @ k.transpose(-2, -1)
        attn = stable_softmax(scores)  # expect: ANE003
        return attn @ v


class SoftmaxOfFloat(nn.Module):
    def forward(self, q, k, v):
        scores = (q * 0.25) @ k.transpose(-2, -1)
        attn = scores.float().softmax(dim=-1).type_as(v)  # expect: ANE003 `scores.float()`
        return attn @ v


class FloatPooling(nn.Module):
    """A pooling head in f32, back in f16 for the last layer."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(C, C, 1)
        self.head = nn.Conv2d(C, C, 1)

    def forward(self, x):
        x = F.relu(self.conv(x))
        pooled = x.float().mean(dim=3, keepdim=True).to(x.dtype)  # expect: ANE003 `x.float()`
        return x * self.head(pooled)


class FloatToTheOutput(nn.Module):
    """f32 that runs to an output, with no cast back."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(C, C, 1)

    def forward(self, x):
        x = self.conv(x)
        logits = x.to(torch.float32)  # expect: ANE003
        return logits * logits.sigmoid()


class RmsNormF32(nn.Module):
    """The norm of the model libraries: one island of five lines, one finding, where f32 begins."""

    def __init__(self, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, C, 1, 1))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)  # expect: ANE003 `hidden_states.to(torch.float32)`
        variance = hidden_states.pow(2).mean(1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states.to(input_dtype)


class NormModuleF32(nn.Module):
    """A LayerNorm that is kept in f32 inside an f16 model."""

    def __init__(self):
        super().__init__()
        self.inp = nn.Conv2d(C, C, 1, dtype=torch.float16)
        self.norm = nn.GroupNorm(1, C)
        self.out = nn.Conv2d(C, C, 1, dtype=torch.float16)

    def forward(self, x):
        x = self.inp(x)
        y = self.norm(x.float()).type_as(x)  # expect: ANE003
        return F.relu(self.out(y)) + x


class WeightsF32(nn.Module):
    """One convolution nobody cast."""

    def __init__(self):
        super().__init__()
        self.inp = nn.Conv2d(C, C, 1, dtype=torch.float16)
        self.mid = nn.Conv2d(C, C, 1)

    def forward(self, x):
        x = F.relu(self.inp(x))
        y = self.mid(x.to(self.mid.weight.dtype))  # expect: ANE003
        return F.relu(y).to(x.dtype) + x


class TableF32(nn.Module):
    """A gain for each channel in an f32 buffer: promotion, with no cast in the source."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(C, C, 1, dtype=torch.float16)
        self.register_buffer("gain", torch.linspace(0.5, 1.5, C).view(1, C, 1, 1))

    def forward(self, x):
        y = (self.conv(x) * self.gain).to(x.dtype)  # expect: ANE003|ANE001
        return F.relu(y)


class TwoIslands(nn.Module):
    def forward(self, x):
        a = x.float().exp().half()  # expect: ANE003 `x.float()`
        b = F.relu(a)
        return b.float().square().half() + x  # expect: ANE003 `b.float()`


class WholeModelF32(nn.Module):
    """A model that nobody has cast: one word for the whole function."""

    # expect-case: ANE003
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(C, C, 1)
        self.register_buffer("one", torch.ones(1))

    def forward(self, x):  # expect-not: ANE001
        x = F.relu(self.conv(x)) * torch.tensor(1.5)
        return F.softmax(x + self.one, dim=1)


# ---- the converter's own decompositions --------------------------------------------------------------


class Softplus(nn.Module):
    def forward(self, x):
        x = F.softplus(F.relu(x))  # expect: ANE041, ANE061; decomp: ANE041, ANE003; aimodel: ANE041, ANE003
        return F.relu(x)


class RmsNormTorch(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(32, eps=1e-5)

    def forward(self, x):
        x = self.norm(F.relu(x))  # expect: ANE061; decomp: ANE003; aimodel: ANE003
        return F.relu(x)


class Normalize(nn.Module):
    def forward(self, x):
        x = F.normalize(F.relu(x), dim=1, eps=1e-4)  # expect: ANE061; decomp: ANE003; aimodel: ANE003
        return F.relu(x)


class Glu(nn.Module):
    def forward(self, x):
        x = F.glu(F.relu(x), dim=1)  # expect: ANE061; decomp: ANE003; aimodel: ANE003
        return F.relu(x)


# ---- workarounds and things that look alike --------------------------------------------------------


class SoftmaxF16(nn.Module):
    def forward(self, q, k, v):  # expect-not: ANE001, ANE003
        scores = (q * 0.25) @ k.transpose(-2, -1)
        return scores.softmax(dim=-1) @ v


class PoolingF16(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(C, C, 1)
        self.head = nn.Conv2d(C, C, 1)

    def forward(self, x):  # expect-not: ANE003
        x = F.relu(self.conv(x))
        return x * self.head(x.mean(dim=3, keepdim=True))


class GluByHand(nn.Module):
    def forward(self, x):  # expect-not: ANE003, ANE061
        a, gate = F.relu(x).chunk(2, dim=1)
        return F.relu(a * torch.sigmoid(gate))


class CastAtTheOutput(nn.Module):
    """Only a cast at the edge: nothing computes in f32."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(C, C, 1)

    def forward(self, x):  # expect-not: ANE003, ANE023
        return F.relu(self.conv(x)).float()


class CastOfTheInput(nn.Module):
    """An f32 input that is cast at once."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(C, C, 1)

    def forward(self, x):  # expect-not: ANE003, ANE023
        return F.relu(self.conv(x.half()))


class CastToOwnDtype(nn.Module):
    """A cast to the dtype it has already."""

    def forward(self, x):  # expect-not: ANE003
        y = F.relu(x).to(torch.float16)
        return F.relu(y.type_as(x)) + x


class LayerNormComposite(nn.Module):
    """f32 inside the composite's body, which does not run as written."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.plain = nn.LayerNorm(32, elementwise_affine=False)

    def forward(self, x):  # expect-not: ANE001, ANE003
        return F.relu(self.plain(self.norm(x)))


X = "f[1,64,1,32]"
H = "f16[1,64,1,32]"
QKV = ["f[1,2,32,32] x3"]
ASIS = {"half": False, "mlpackage": False, "onnx": False}
CASES = {
    "fp32_softmax": {"make": SoftmaxDtype, "inputs": QKV, "strict": True, "release": True},
    "fp32_softmax_method": {"make": SoftmaxMethodDtype, "inputs": ["f16[1,2,32,32] x3"], "mlpackage": False, "onnx": False},
    "fp32_softmax_helper": {"make": SoftmaxHelper, "inputs": QKV, "strict": True},
    "fp32_softmax_float": {"make": SoftmaxOfFloat, "inputs": QKV},
    "fp32_pooling": {"make": FloatPooling, "inputs": [X]},
    "fp32_output": {"make": FloatToTheOutput, "inputs": [X]},
    "fp32_rms_norm": {"make": RmsNormF32, "inputs": [X]},
    "fp32_norm_module": {"make": NormModuleF32, "inputs": [H], **ASIS},
    "fp32_weights": {"make": WeightsF32, "inputs": [H], **ASIS},
    "fp32_table": {"make": TableF32, "inputs": [H], **ASIS},
    "fp32_two_islands": {"make": TwoIslands, "inputs": [H], **ASIS},
    "fp32_whole_model": {"make": WholeModelF32, "inputs": ["f32[1,64,1,32]"], **ASIS},
    "fp32_softplus": {"make": Softplus, "inputs": [X]},
    "fp32_torch_rms_norm": {"make": RmsNormTorch, "inputs": [X]},
    "fp32_normalize": {"make": Normalize, "inputs": [X]},
    "fp32_glu": {"make": Glu, "inputs": [X]},
    "fp32_ok_softmax": {"make": SoftmaxF16, "inputs": QKV},
    "fp32_ok_pooling": {"make": PoolingF16, "inputs": [X]},
    "fp32_ok_glu": {"make": GluByHand, "inputs": [X]},
    "fp32_ok_cast_out": {"make": CastAtTheOutput, "inputs": [X]},
    "fp32_ok_cast_in": {"make": CastOfTheInput, "inputs": ["f32[1,64,1,32]"], "mlpackage": False, "onnx": False},
    "fp32_ok_same_dtype": {"make": CastToOwnDtype, "inputs": [H], "mlpackage": False, "onnx": False},
    "fp32_ok_layer_norm": {"make": LayerNormComposite, "inputs": [X]},
}
