"""Kernels, strides, dilations and windows, each on both sides of its edge."""
import torch
import torch.nn as nn
import torch.nn.functional as F

C = 4


class Conv(nn.Module):
    """One convolution between activations."""

    def __init__(self, kernel, stride=1, dilation=1, groups=1, padding=0):
        super().__init__()
        self.conv = nn.Conv2d(C, C, kernel, stride=stride, dilation=dilation, groups=groups, padding=padding)


class SquareSixteen(Conv):
    def __init__(self):
        super().__init__(16)

    def forward(self, x):  # expect-not: ANE029
        return F.relu(self.conv(x))  # expect: ANE030=advice, ANE049=warning


class SquareSeventeen(Conv):
    def __init__(self):
        super().__init__(17)

    def forward(self, x):  # expect-not: ANE030, ANE049
        return F.relu(self.conv(x))  # expect: ANE029=error


class WideFifteen(Conv):
    """Fifteen is the widest of a flat kernel; M1 stops at 13."""

    def __init__(self):
        super().__init__((1, 15))

    def forward(self, x):  # expect-not: ANE029
        return F.relu(self.conv(x))  # expect: ANE030=advice


class WideSixteen(Conv):
    def __init__(self):
        super().__init__((1, 16))

    def forward(self, x):
        return F.relu(self.conv(x))  # expect: ANE029=error


class HighThirtyOne(Conv):
    def __init__(self):
        super().__init__((31, 1))

    def forward(self, x):  # expect-not: ANE029, ANE030
        return F.relu(self.conv(x))


class HighThirtyTwo(Conv):
    def __init__(self):
        super().__init__((32, 1))

    def forward(self, x):
        return F.relu(self.conv(x))  # expect: ANE029=error


class LongFilter(nn.Module):
    """An audio filter of 16 taps: a 1-D convolution runs as rows of height 1."""

    def __init__(self, taps):
        super().__init__()
        self.conv = nn.Conv1d(C, C, taps)


class SixteenTaps(LongFilter):
    def __init__(self):
        super().__init__(16)

    def forward(self, x):
        return F.relu(self.conv(x))  # expect: ANE029=error


class FiveTaps(LongFilter):
    def __init__(self):
        super().__init__(5)

    def forward(self, x):  # expect-not: ANE029, ANE030, ANE031
        return F.relu(self.conv(x))


class LargeKernel(Conv):
    """Seven wide."""

    def __init__(self):
        super().__init__(7, padding=3)

    def forward(self, x):
        return F.relu(self.conv(x))  # expect: ANE030=advice


class KernelChain(nn.Module):
    """The workaround: 3 and 5 cover what 7 covers."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(C, C, 3, padding=1)
        self.second = nn.Conv2d(C, C, 5, padding=2)

    def forward(self, x):  # expect-not: ANE030
        return F.relu(self.second(F.relu(self.first(x))))


class PatchEmbedding(nn.Module):
    """Windows that do not overlap: stride and kernel agree, as in every vision transformer."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, C, 16, stride=16)

    def forward(self, x):  # expect-not: ANE029, ANE030, ANE031, ANE049
        return F.relu(self.conv(x))


class StrideFive(Conv):
    def __init__(self):
        super().__init__(3, stride=5)

    def forward(self, x):  # expect-not: ANE049
        return F.relu(self.conv(x))  # expect: ANE031=warning


class StrideSix(Conv):
    """Two threes of the factors that the unit likes."""

    def __init__(self):
        super().__init__(7, stride=6)

    def forward(self, x):  # expect-not: ANE031
        return F.relu(self.conv(x))


class StrideUnequal(Conv):
    """4 by 6: each has good factors, together they are unequal and both above 2."""

    def __init__(self):
        super().__init__(3, stride=(4, 6))

    def forward(self, x):
        return F.relu(self.conv(x))  # expect: ANE031=warning


class StrideTwoBySix(Conv):
    """With one side 2 the other should be 1, 2, 3, 4, 8 or 9."""

    def __init__(self):
        super().__init__(3, stride=(2, 6))

    def forward(self, x):
        return F.relu(self.conv(x))  # expect: ANE031=warning


class StrideTwoByFour(Conv):
    def __init__(self):
        super().__init__(3, stride=(2, 4))

    def forward(self, x):  # expect-not: ANE031
        return F.relu(self.conv(x))


class UpsampleByFive(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(C, C, 5, stride=5)

    def forward(self, x):
        return F.relu(self.up(x))  # expect: ANE031=warning


class UpsampleByTwo(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(C, C, 2, stride=2)

    def forward(self, x):  # expect-not: ANE031
        return F.relu(self.up(x))


class StrideSevenOnce(Conv):
    """A stride that compilers were seen to choke on, not of a patch embedding."""

    def __init__(self):
        super().__init__(9, stride=7)

    def forward(self, x):
        return F.relu(self.conv(x))  # expect: ANE031=warning


class DilationFive(Conv):
    def __init__(self):
        super().__init__(3, dilation=5, padding=5)

    def forward(self, x):
        return F.relu(self.conv(x))  # expect: ANE033=warning


class DilationFour(Conv):
    """Only twos, yet more than 3."""

    def __init__(self):
        super().__init__(3, dilation=4, padding=4)

    def forward(self, x):
        return F.relu(self.conv(x))  # expect: ANE033=warning


class DilationThree(Conv):
    def __init__(self):
        super().__init__(3, dilation=3, padding=3)

    def forward(self, x):  # expect-not: ANE033
        return F.relu(self.conv(x))


class DilationChain(nn.Module):
    """The workaround: 2 and 3 in a row."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(C, C, 3, dilation=2, padding=2)
        self.second = nn.Conv2d(C, C, 3, dilation=3, padding=3)

    def forward(self, x):  # expect-not: ANE033, ANE036
        return F.relu(self.second(F.relu(self.first(x))))


class PoolStrideThree(Conv):
    def __init__(self):
        super().__init__(3)

    def forward(self, x):  # expect-not: ANE035
        return F.max_pool2d(F.relu(self.conv(x)), 3, stride=3)  # expect: ANE034=warning


class AveragePoolStrideThree(Conv):
    def __init__(self):
        super().__init__(3)

    def forward(self, x):
        return F.avg_pool2d(F.relu(self.conv(x)), 3)  # expect: ANE034=warning


class PoolStrideTwo(Conv):
    def __init__(self):
        super().__init__(3)

    def forward(self, x):  # expect-not: ANE034, ANE035
        return F.max_pool2d(F.relu(self.conv(x)), 3, stride=2, padding=1)


class PoolOverAll(Conv):
    """Global pooling has no stride to speak of."""

    def __init__(self):
        super().__init__(3)

    def forward(self, x):  # expect-not: ANE034, ANE035
        return F.avg_pool2d(F.relu(self.conv(x)), 14)


class PoolKernelNine(Conv):
    def __init__(self):
        super().__init__(3)

    def forward(self, x):  # expect-not: ANE034
        return F.max_pool2d(F.relu(self.conv(x)), 9, stride=1)  # expect: ANE035=error


class PoolKernelEight(Conv):
    def __init__(self):
        super().__init__(3)

    def forward(self, x):  # expect-not: ANE034, ANE035
        return F.max_pool2d(F.relu(self.conv(x)), 8, stride=1)


class PoolHighNine(Conv):
    """9 high and 1 wide was seen to run."""

    def __init__(self):
        super().__init__(3)

    def forward(self, x):  # expect-not: ANE035
        return F.max_pool2d(F.relu(self.conv(x)), (9, 1), stride=1)


class PoolWideNine(Conv):
    def __init__(self):
        super().__init__(3)

    def forward(self, x):
        return F.max_pool2d(F.relu(self.conv(x)), (1, 9), stride=1)  # expect: ANE035=error


class TwoInARow(nn.Module):
    """Nothing between them: one kernel of 5 does the same."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(C, C, 3, padding=1)
        self.second = nn.Conv2d(C, C, 3, padding=1)

    def forward(self, x):
        x = self.first(F.relu(x))
        return F.relu(self.second(x))  # expect: ANE036=advice


class BottleneckInARow(nn.Module):
    """Down to one channel and up again: a low rank that a single kernel would undo."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(16, 1, 1)
        self.up = nn.Conv2d(1, 16, 1)

    def forward(self, x):  # expect-not: ANE036
        return F.relu(self.up(self.down(F.relu(x))))


class SeparableInARow(nn.Module):
    """Depthwise and pointwise: parted on purpose."""

    def __init__(self):
        super().__init__()
        self.depth = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.point = nn.Conv2d(16, 16, 1)

    def forward(self, x):  # expect-not: ANE036
        return F.relu(self.point(self.depth(F.relu(x))))


class Chain(nn.Module):
    def __init__(self, length):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 1, bias=False)
        self.length = length


class LongChain(Chain):
    """381 convolutions, one behind the other."""

    def __init__(self):
        super().__init__(381)

    def forward(self, x):
        for _ in range(self.length):
            x = F.relu(self.conv(x))  # expect: ANE049=warning
        return x


class ShorterChain(Chain):
    def __init__(self):
        super().__init__(380)

    def forward(self, x):  # expect-not: ANE049
        for _ in range(self.length):
            x = F.relu(self.conv(x))
        return x


MAP = "f[1,4,36,36]"
ROW = "f[1,4,48]"
NOT_ONNX = {"onnx": False}
CHAIN = {"inputs": ["f[1,2,1,32]"], "onnx": False, "mlpackage": False, "decomp": False}
CASES = {
    "conv_16x16": {"make": SquareSixteen, "inputs": [MAP], **NOT_ONNX},
    "conv_17x17": {"make": SquareSeventeen, "inputs": [MAP]},
    "conv_1x15": {"make": WideFifteen, "inputs": [MAP], **NOT_ONNX},
    "conv_1x16": {"make": WideSixteen, "inputs": [MAP], **NOT_ONNX},
    "conv_31x1": {"make": HighThirtyOne, "inputs": [MAP], **NOT_ONNX},
    "conv_32x1": {"make": HighThirtyTwo, "inputs": [MAP], **NOT_ONNX},
    "conv_16_taps": {"make": SixteenTaps, "inputs": [ROW], **NOT_ONNX},
    "conv_5_taps": {"make": FiveTaps, "inputs": [ROW], **NOT_ONNX},
    "conv_7x7": {"make": LargeKernel, "inputs": [MAP], "release": True},
    "conv_kernel_chain": {"make": KernelChain, "inputs": [MAP], **NOT_ONNX},
    "conv_patches": {"make": PatchEmbedding, "inputs": ["f[1,3,32,32]"], **NOT_ONNX},
    "stride_5": {"make": StrideFive, "inputs": [MAP]},
    "stride_6": {"make": StrideSix, "inputs": [MAP], **NOT_ONNX},
    "stride_4_6": {"make": StrideUnequal, "inputs": [MAP], **NOT_ONNX},
    "stride_2_6": {"make": StrideTwoBySix, "inputs": [MAP], **NOT_ONNX},
    "stride_2_4": {"make": StrideTwoByFour, "inputs": [MAP], **NOT_ONNX},
    "stride_up_5": {"make": UpsampleByFive, "inputs": ["f[1,4,8,8]"], **NOT_ONNX},
    "stride_up_2": {"make": UpsampleByTwo, "inputs": ["f[1,4,8,8]"], **NOT_ONNX},
    "stride_7": {"make": StrideSevenOnce, "inputs": [MAP], **NOT_ONNX},
    "dilation_5": {"make": DilationFive, "inputs": [MAP]},
    "dilation_4": {"make": DilationFour, "inputs": [MAP], **NOT_ONNX},
    "dilation_3": {"make": DilationThree, "inputs": [MAP], **NOT_ONNX},
    "dilation_chain": {"make": DilationChain, "inputs": [MAP], **NOT_ONNX},
    "pool_stride_3": {"make": PoolStrideThree, "inputs": ["f[1,4,16,16]"]},
    "pool_average_3": {"make": AveragePoolStrideThree, "inputs": ["f[1,4,17,17]"], **NOT_ONNX},
    "pool_stride_2": {"make": PoolStrideTwo, "inputs": ["f[1,4,16,16]"], **NOT_ONNX},
    "pool_global": {"make": PoolOverAll, "inputs": ["f[1,4,16,16]"], **NOT_ONNX},
    "pool_9x9": {"make": PoolKernelNine, "inputs": ["f[1,4,16,16]"]},
    "pool_8x8": {"make": PoolKernelEight, "inputs": ["f[1,4,16,16]"], **NOT_ONNX},
    "pool_9x1": {"make": PoolHighNine, "inputs": ["f[1,4,16,16]"], **NOT_ONNX},
    "pool_1x9": {"make": PoolWideNine, "inputs": ["f[1,4,16,16]"], **NOT_ONNX},
    "conv_two_in_a_row": {"make": TwoInARow, "inputs": ["f[1,4,16,16]"], **NOT_ONNX},
    "conv_bottleneck": {"make": BottleneckInARow, "inputs": ["f[1,16,8,8]"], **NOT_ONNX},
    "conv_separable": {"make": SeparableInARow, "inputs": ["f[1,16,8,8]"], **NOT_ONNX},
    "chain_381": {"make": LongChain, **CHAIN},
    "chain_380": {"make": ShorterChain, **CHAIN},
}
