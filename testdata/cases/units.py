"""Element types and ops that belong to another unit."""
import torch
import torch.nn as nn
import torch.nn.functional as F

C = 16


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(C, C, 1)
        self.tail = nn.Conv2d(C, C, 1)


class AllInBfloat(Conv):
    """A model left in the dtype that it was trained in."""

    def __init__(self):
        super().__init__()
        self.bfloat16()

    def forward(self, x):  # expect-case: ANE060=error x1
        return self.tail(F.relu(self.stem(x)))


class PartInBfloat(Conv):
    """Only the second half."""

    def __init__(self):
        super().__init__()
        self.stem.half()
        self.tail.bfloat16()

    def forward(self, x):
        x = F.relu(self.stem(x)).bfloat16()  # expect: ANE060=error
        return self.tail(x).half()  # expect: ANE060=error


class InHalf(Conv):
    def forward(self, x):  # expect-not: ANE060
        return self.tail(F.relu(self.stem(x)))


class IndicesInInt(Conv):
    """Arithmetic on indices alone is for the lookup."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(32, C)

    def forward(self, x, indices):
        rows = self.table(indices * 2 + 1).transpose(1, 2).unsqueeze(2)  # expect: ANE021
        return self.tail(F.relu(self.stem(x + rows)))


class ExpertsByIndex(nn.Module):
    """Each row takes the weights of the expert that the router chose for it."""

    def __init__(self):
        super().__init__()
        self.router = nn.Conv2d(C, 4, 1)
        self.experts = nn.Parameter(torch.randn(4, C, C) * 0.1)

    def forward(self, x, chosen):
        weights = self.experts[chosen]
        return torch.bmm(weights, F.relu(x))  # expect: ANE062=error


class ExpertsDense(nn.Module):
    """All experts run, their results are weighed."""

    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Conv2d(C, C, 1) for _ in range(4))

    def forward(self, x, weights):  # expect-not: ANE062
        x = F.relu(x)
        return sum(expert(x) * w for expert, w in zip(self.experts, weights.split(1, dim=1)))


class TwiceInMetal(Conv):
    """A kernel written for the GPU, in the middle."""

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = twice()(x, threads_per_grid=(512, 1, 1), threads_per_thread_group=(32, 1, 1), result_shapes=[[1, C, 1, 32]])  # expect: ANE051=error
        return self.tail(x)


class TwiceInTorch(Conv):
    def forward(self, x):  # expect-not: ANE051
        return self.tail(F.relu(self.stem(x)) * 2.0)


class ShortIndices(nn.Module):
    """Indices of 16 bits over a table of 40000 rows."""

    def __init__(self, rows):
        super().__init__()
        self.table = nn.Embedding(rows, 1)
        self.table.weight = nn.Parameter((torch.arange(rows) % 2 + 1.0).view(rows, 1))

    def forward(self, indices):
        return F.relu(self.table(indices.to(torch.int16).to(torch.int32)))


class ShortIndicesOverLong(ShortIndices):
    def __init__(self):
        super().__init__(32769)

    def forward(self, indices):
        return F.relu(self.table(indices.to(torch.int16).to(torch.int32)))  # expect: ANE055=warning


class ShortIndicesOverShort(ShortIndices):
    """The last table that 16 bits reach."""

    def __init__(self):
        super().__init__(32768)

    def forward(self, indices):  # expect-not: ANE055
        return F.relu(self.table(indices.to(torch.int16).to(torch.int32)))


KERNELS = []


def twice():
    """Made once: torch registers the op by its name."""
    if not KERNELS:
        from coreai_torch import TorchMetalKernel

        def double(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        KERNELS.append(TorchMetalKernel("twice", ["x"], ["y"], "y[thread_position_in_grid] = x[thread_position_in_grid] * 2;", double))
    return KERNELS[0]


X = "f[1,16,1,32]"
ONLY_CORE_AI = {"mlpackage": False, "onnx": False}
CASES = {
    "dtype_bf16": {"make": AllInBfloat, "inputs": ["bf16[1,16,1,32]"], "half": False, **ONLY_CORE_AI},
    "dtype_bf16_part": {"make": PartInBfloat, "inputs": ["f16[1,16,1,32]"], "half": False, **ONLY_CORE_AI},
    "dtype_f16": {"make": InHalf, "inputs": [X], **ONLY_CORE_AI},
    "int_indices": {"make": IndicesInInt, "inputs": [X, "i32[1,32]<8"], **ONLY_CORE_AI},
    "experts_by_index": {"make": ExpertsByIndex, "inputs": ["f[2,16,32]", "i64[2]<4"], **ONLY_CORE_AI},
    "experts_dense": {"make": ExpertsDense, "inputs": [X, "f[1,4,1,32]"], **ONLY_CORE_AI},
    "metal_kernel": {"make": TwiceInMetal, "inputs": [X], "kernels": KERNELS, **ONLY_CORE_AI},
    "metal_none": {"make": TwiceInTorch, "inputs": [X], **ONLY_CORE_AI},
    "indices_32769": {"make": ShortIndicesOverLong, "inputs": ["i32[1,8]<8"], **ONLY_CORE_AI},
    "indices_32768": {"make": ShortIndicesOverShort, "inputs": ["i32[1,8]<8"], **ONLY_CORE_AI},
}
