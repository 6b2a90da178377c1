"""What ONNX Runtime's Core ML provider does not take, each beside a way that it takes.

Exported to ONNX only. Limits that went with a release are marked for the release before:
`expect[onnxruntime@1.26]`.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

C = 64


class Conv(nn.Module):
    """A stem and a tail, so that there is work for the provider before and after."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(C, C, 1)
        self.tail = nn.Conv2d(C, C, 1)


class CumsumInside(Conv):
    def forward(self, x):
        x = F.relu(self.stem(x))
        x = torch.cumsum(x, dim=3)  # expect: ORT002=error
        return F.relu(self.tail(x))


class TriangleInstead(Conv):
    """The same sum as a product with a constant."""

    def __init__(self):
        super().__init__()
        self.register_buffer("ones", torch.ones(32, 32).triu())

    def forward(self, x):  # expect-not: ORT001, ORT002
        x = F.relu(self.stem(x))
        return F.relu(self.tail(x @ self.ones))


class AtanAtTheEnd(Conv):
    def forward(self, x):  # expect-not: ORT001
        return self.tail(F.relu(self.stem(x))).atan()  # expect: ORT002=advice


class DynamicLength(Conv):
    def forward(self, x):  # expect-case: ORT003=warning
        return F.relu(self.tail(F.relu(self.stem(x))))


class FixedLength(Conv):
    def forward(self, x):  # expect-not: ORT003
        return F.relu(self.tail(F.relu(self.stem(x))))


class WideHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(C, 4)
        self.head = nn.Linear(4, 20000)

    def forward(self, x):
        return self.head(F.relu(self.stem(x)))  # expect: ORT004


class SplitHead(nn.Module):
    """The same outputs from two products."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(C, 4)
        self.first = nn.Linear(4, 10000)
        self.second = nn.Linear(4, 10000)

    def forward(self, x):  # expect-not: ORT004
        x = F.relu(self.stem(x))
        return self.first(x), self.second(x)


class EmptyPart(Conv):
    def forward(self, x):
        x = F.relu(self.stem(x))
        none = x[:, :, :, 32:]  # expect: ORT005
        return F.relu(self.tail(x)), none


class NoEmptyPart(Conv):
    def forward(self, x):  # expect-not: ORT005
        x = F.relu(self.stem(x))
        return F.relu(self.tail(torch.cat([x, x[:, :, :, 31:]], dim=3)))


class ScalarIndex(Conv):
    def forward(self, x):
        x = F.relu(self.stem(x))
        first = x[:, :, :, 0]  # expect[onnxruntime@1.26]: ORT006=error
        return F.relu(self.tail(x * first.unsqueeze(3)))


class SliceOfOne(Conv):
    def forward(self, x):  # expect-not: ORT006
        x = F.relu(self.stem(x))
        return F.relu(self.tail(x * x[:, :, :, 0:1]))


class ReflectPad(Conv):
    def forward(self, x):
        x = F.relu(self.stem(x))
        x = F.pad(x, (1, 1, 0, 0), mode="reflect")  # expect[onnxruntime@1.25]: ORT007=error
        return F.relu(self.tail(x))


class ZeroPad(Conv):
    def forward(self, x):  # expect-not: ORT007
        x = F.relu(self.stem(x))
        return F.relu(self.tail(F.pad(x, (1, 1, 0, 0))))


class RunTimeGemm(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(C, C)
        self.tail = nn.Linear(C, C)
        self.register_buffer("offset", torch.randn(C))

    def forward(self, x, weight):
        x = F.relu(self.stem(x))
        x = torch.addmm(self.offset, x, weight)  # expect: ORT009=error
        return F.relu(self.tail(x))


class RunTimeMatMul(nn.Module):
    """The same written as a product and a sum."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(C, C)
        self.tail = nn.Linear(C, C)
        self.register_buffer("offset", torch.randn(C))

    def forward(self, x, weight):  # expect-not: ORT009
        x = F.relu(self.stem(x))
        x = x @ weight + self.offset  # expect[onnxruntime@neuralnetwork]: ORT009=error
        return F.relu(self.tail(x))


class RunTimeSlice(Conv):
    def forward(self, x, y):
        x = F.relu(self.stem(x))
        x = x[:, :, :, : y.shape[0]]  # expect: ORT010=error
        return F.relu(self.tail(x))


class FixedSlice(Conv):
    def forward(self, x):  # expect-not: ORT010
        x = F.relu(self.stem(x))
        return F.relu(self.tail(x[:, :, :, :16]))


class SlopePassedIn(Conv):
    def forward(self, x, slope):
        x = F.prelu(self.stem(x), slope)  # expect: ORT011=error
        return F.relu(self.tail(x))


class SlopeOfChannels(Conv):
    def __init__(self):
        super().__init__()
        self.act = nn.PReLU(C)

    def forward(self, x):  # torch writes the slope as [1, channels, 1, 1]
        return F.relu(self.tail(self.act(self.stem(x))))  # expect: ORT011=error


class TruthMask(nn.Module):
    def forward(self, q, k, v, allowed, padding):
        scores = q @ k.transpose(-2, -1)
        keep = torch.logical_or(allowed, padding)  # expect-case: ORT012
        scores = scores.masked_fill(~keep, -1e4)
        return scores.softmax(dim=-1) @ v


class FloatMask(nn.Module):
    def forward(self, q, k, v, mask):  # expect-not: ORT012
        scores = q @ k.transpose(-2, -1) + mask
        return scores.softmax(dim=-1) @ v


X = "f[1,64,1,32]"
Q = "f[1,4,16,32]"
ONNX = {"pt2": False, "decomp": False, "aimodel": False, "mlpackage": False}
CASES = {
    "ort_cumsum": {"make": CumsumInside, "inputs": [X], **ONNX},
    "ort_ok_triangle": {"make": TriangleInstead, "inputs": [X], **ONNX},
    "ort_atan_end": {"make": AtanAtTheEnd, "inputs": [X], **ONNX},
    "ort_dynamic": {"make": DynamicLength, "inputs": [X], "dynamic": {"x": {3: ("length", 2, 512)}}, **ONNX},
    "ort_ok_fixed": {"make": FixedLength, "inputs": [X], **ONNX},
    "ort_wide": {"make": WideHead, "inputs": ["f[4,64]"], **ONNX},
    "ort_ok_split_head": {"make": SplitHead, "inputs": ["f[4,64]"], **ONNX},
    "ort_empty": {"make": EmptyPart, "inputs": [X], **ONNX},
    "ort_ok_no_empty": {"make": NoEmptyPart, "inputs": [X], **ONNX},
    "ort_scalar_gather": {"make": ScalarIndex, "inputs": [X], **ONNX},
    "ort_ok_slice": {"make": SliceOfOne, "inputs": [X], **ONNX},
    "ort_reflect": {"make": ReflectPad, "inputs": [X], **ONNX},
    "ort_ok_zero_pad": {"make": ZeroPad, "inputs": [X], **ONNX},
    "ort_gemm": {"make": RunTimeGemm, "inputs": ["f[4,64]", "f[64,64]"], **ONNX},
    "ort_ok_matmul": {"make": RunTimeMatMul, "inputs": ["f[4,64]", "f[64,64]"], **ONNX},
    "ort_run_time_slice": {
        "make": RunTimeSlice,
        "inputs": [X, "f[16]"],
        "dynamic": {"x": {}, "y": {0: ("length", 2, 30)}},
        **ONNX,
    },
    "ort_ok_fixed_slice": {"make": FixedSlice, "inputs": [X], **ONNX},
    "ort_prelu": {"make": SlopePassedIn, "inputs": [X, "f[64]"], **ONNX},
    "ort_ok_prelu": {"make": SlopeOfChannels, "inputs": [X], **ONNX},
    "ort_truth_mask": {"make": TruthMask, "inputs": [Q, Q, Q, "bool[16,16]", "bool[16,16]"], **ONNX},
    "ort_ok_float_mask": {"make": FloatMask, "inputs": [Q, Q, Q, "f[16,16]"], **ONNX},
}
