"""Rounding, casts to integers and back, and ranges with a fractional step: arithmetic that a converter or a
unit does otherwise than the source says.

The Core AI GPU drops a floor division by 1, which is what floor, ceil and trunc become; coreai-torch 0.4.3
takes the bounds and the step of a float arange through f16, and folds a cast to an integer and back away.
"""
import torch
import torch.nn as nn


class Floor(nn.Module):
    """floor, ceil and trunc on the path."""

    def forward(self, x):
        x = x * 4.0
        low = x.floor()  # expect[gpu]: GPU001 `x.floor()`
        high = torch.ceil(x)  # expect[gpu]: GPU001
        middle = x.trunc()  # expect[gpu]: GPU001
        return low + high + middle


class FloorsThenCasts(nn.Module):
    """The cast cuts off the fraction too, but towards zero."""

    def forward(self, x, table):
        return table[(x * 4.0 + 8.0).floor().long()]  # expect[gpu]: GPU001=warning


def quantise(x, step):
    return torch.floor(x / step) * step  # expect-related[gpu]: GPU001


class FloorHelper(nn.Module):
    """The same in a helper."""

    def forward(self, x):
        return quantise(torch.relu(x), 0.5) + 1.0  # expect[gpu]: GPU001


class FloorDividesByOne(nn.Module):
    """The first workaround that comes to mind, and is none."""

    def forward(self, x):
        x = x * 4.0
        return torch.div(x, 1, rounding_mode="floor") + x  # expect: COM004; aimodel: - # expect[gpu]: GPU001


class FloorOperatorByOne(nn.Module):
    """The same by the operator."""

    def forward(self, x):
        x = x * 4.0
        return x // 1.0 + x  # expect: COM004; aimodel: - # expect[gpu]: GPU001


class FloorDividesByTwo(nn.Module):
    """The workaround: twice the value, divided by 2."""

    def forward(self, x):  # expect-not: COM004
        # expect-not[gpu]: GPU001
        x = x * 4.0
        return torch.div(x * 2, 2, rounding_mode="floor") + x


class FloorOfConstant(nn.Module):
    """Work on constants only is folded by the converter, rightly."""

    def __init__(self):
        super().__init__()
        self.register_buffer("grid", torch.linspace(-3, 3, 64))

    def forward(self, x):  # expect-not: COM004
        # expect-not[gpu]: GPU001
        return x + self.grid.floor().to(x.dtype)


class FloorsSizes(nn.Module):
    """Arithmetic on sizes and indices is none of it."""

    def forward(self, x, index):  # expect-not: COM004
        # expect-not[gpu]: GPU001
        half = x.shape[1] // 1
        return x[:, :half] + (index // 1).sum().to(x.dtype)


# ---- arange ------------------------------------------------------------------------------------------


class ArangeTenths(nn.Module):
    """0.1 is none of f16's numbers: the range comes out with 11 elements in place of 10."""

    def forward(self, x):
        return x + torch.arange(0, 1, 0.1, dtype=x.dtype)  # expect: COM002 `torch.arange(0, 1, 0.1, dtype=x.dtype)`


class ArangeDrifts(nn.Module):
    """The right number of elements, and each of them off by the step's error."""

    def forward(self, x):
        grid = torch.arange(0, 7, 0.7)  # expect: COM002; aimodel: -
        return x + grid.to(x.dtype)


class ArangeStart(nn.Module):
    """A start that f16 rounds."""

    def forward(self, x):
        return x + torch.arange(0.1, 8.0, 1.0).to(x.dtype)  # expect: COM002; aimodel: -


class ArangeLong(nn.Module):
    """An end beyond 2048 that f16 rounds up: 4100 elements in place of 4099."""

    def forward(self, x):
        return x + torch.arange(0.0, 4099.0).to(x.dtype)  # expect: COM002


class ArangeQuarters(nn.Module):
    """0.25, 0.5 and whole numbers are numbers of f16: nothing is lost."""

    def forward(self, x):  # expect-not: COM002
        return x + torch.arange(-1.0, 1.0, 0.25, dtype=x.dtype) + torch.arange(0, 4, 0.5).to(x.dtype)


class ArangeWhole(nn.Module):
    """The workaround: count in integers, then scale."""

    def forward(self, x):  # expect-not: COM002
        return x + torch.arange(0, 10).to(x.dtype) * 0.1


# ---- float to integer and back -----------------------------------------------------------------------


class TruncatesByCast(nn.Module):
    """The pair of casts is folded: the numbers come out as they went in."""

    def forward(self, x):
        # expect-unit: gpu
        whole = (x * 4.0).to(torch.int32)
        return whole.to(x.dtype) + x  # expect: COM003; aimodel: -


class TruncatesByLong(nn.Module):
    """In one line."""

    def forward(self, x):
        # expect-unit: gpu
        return (x * 4.0).long().half() + x  # expect: COM003; aimodel: -


class CastsIntegers(nn.Module):
    """Integers that are used in between, that only widen, or of a width that the converter leaves alone; and a
    reshape in between."""

    def forward(self, x, index):  # expect-not: COM003
        # expect-unit: gpu
        whole = (x * 4.0).to(torch.int32)
        byte = (x * 4.0).to(torch.uint8).to(x.dtype)
        apart = whole.reshape(8, 8).to(x.dtype).reshape(1, 64)
        return (whole + 1).to(x.dtype) + index.to(torch.int32).to(x.dtype) + byte + apart


CASES = {
    "round_floor": {"make": Floor, "inputs": ["f[1,64]"], "release": True},
    "round_floor_cast": {"make": FloorsThenCasts, "inputs": ["f[1,64]", "f[64]"]},
    "round_floor_helper": {"make": FloorHelper, "inputs": ["f[1,64]"], "strict": True},
    "round_divide_by_one": {"make": FloorDividesByOne, "inputs": ["f[1,64]"]},
    "round_operator_by_one": {"make": FloorOperatorByOne, "inputs": ["f[1,64]"]},
    "round_ok_divide_by_two": {"make": FloorDividesByTwo, "inputs": ["f[1,64]"]},
    "round_ok_constant": {"make": FloorOfConstant, "inputs": ["f[1,64]"]},
    "round_ok_sizes": {"make": FloorsSizes, "inputs": ["f[1,64]", "i64[1,8]"]},
    "arange_tenths": {"make": ArangeTenths, "inputs": ["f[4,10]"]},
    "arange_drifts": {"make": ArangeDrifts, "inputs": ["f[4,10]"]},
    "arange_start": {"make": ArangeStart, "inputs": ["f[4,8]"]},
    "arange_long": {"make": ArangeLong, "inputs": ["f[1,4099]"]},
    "arange_ok_quarters": {"make": ArangeQuarters, "inputs": ["f[4,8]"]},
    "arange_ok_whole": {"make": ArangeWhole, "inputs": ["f[4,10]"]},
    "cast_truncates": {"make": TruncatesByCast, "inputs": ["f[1,64]"]},
    "cast_truncates_long": {"make": TruncatesByLong, "inputs": ["f[1,64]"]},
    "cast_ok_used": {"make": CastsIntegers, "inputs": ["f[1,64]", "i64[1,64]"]},
}
