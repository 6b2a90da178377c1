"""Ranks, last dims and sizes that are not known."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SpaceToDepth(nn.Module):
    """Rank 6, and no dim of 1 that a converter could drop."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(12, 16, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        x = F.relu(x).view(b, c, h // 2, 2, w // 2, 2)  # expect: ANE007?
        x = x.permute(0, 3, 5, 1, 2, 4)  # expect: ANE007=error
        return F.relu(self.conv(x.reshape(b, 4 * c, h // 2, w // 2)))  # expect: ANE007?


class SpaceToDepthOneLine(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(12, 16, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        x = x.view(b, c, h // 2, 2, w // 2, 2).permute(0, 3, 5, 1, 2, 4).reshape(b, 4 * c, h // 2, w // 2)  # expect: ANE007=error
        return F.relu(self.conv(x))


class WindowPartition(nn.Module):
    """Swin's windows, in a helper."""

    def __init__(self, window=4):
        super().__init__()
        self.window = window
        self.mix = nn.Conv2d(16, 16, 1)

    def windows(self, x):
        b, h, w, c = x.shape
        x = x.view(b, h // self.window, self.window, w // self.window, self.window, c)
        return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, self.window, self.window, c)

    def forward(self, x):
        x = self.windows(F.relu(x))  # expect: ANE007=error
        return F.relu(self.mix(x.permute(0, 3, 1, 2)))


class Rank6UnitDim(nn.Module):
    """Batch 1: the converter drops the unit dim, so it may pass."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(12, 16, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        x = x.view(b, c, h // 2, 2, w // 2, 2).permute(0, 3, 5, 1, 2, 4).reshape(b, 4 * c, h // 2, w // 2)  # expect: ANE007=warning; aimodel: -
        return F.relu(self.conv(x))


class Rank5(nn.Module):
    """The same in two steps, each of rank 5."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(12, 16, 1)

    def forward(self, x):  # expect-not: ANE007
        b, c, h, w = x.shape
        x = F.relu(x).view(b * c, h // 2, 2, w).permute(0, 2, 1, 3)
        x = x.reshape(b, 2 * c, h // 2, w // 2, 2).permute(0, 4, 1, 2, 3)
        return F.relu(self.conv(x.reshape(b, 4 * c, h // 2, w // 2)))


class PixelShuffle(nn.Module):
    """Rank 6 in the body of a composite only."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 16, 3, padding=1)
        self.up = nn.PixelShuffle(2)

    def forward(self, x):  # expect-not: ANE007
        return F.relu(self.up(self.conv(x)))


class Einsum(nn.Module):
    """A decomposed einsum passes through rank-5 permutes."""

    def forward(self, q, k):  # expect-not: ANE007
        return torch.einsum("bchq,bkhc->bkhq", F.relu(q), k).softmax(dim=1)


# ---- inputs and outputs ------------------------------------------------------------------------------


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(64, 64, 1)

    def forward(self, x):
        return F.relu(self.conv(x))


class Last33(Conv):
    """66 bytes: padded to 128. Input and output."""

    # expect-case: ANE008=warning


class Last32(Conv):
    """64 bytes."""

    # expect-not: ANE008


class Last64(Conv):
    """128 bytes."""

    # expect-not: ANE008


class LastOneLarge(Conv):
    """A last dim of 1: 32 times the memory, 2 MiB."""

    # expect-case: ANE008=error


class LastOneSmall(nn.Module):
    """A handful of bytes beside a proper input: a control input."""

    # expect-not: ANE008
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(64, 64, 1)

    def forward(self, x, gate):
        return F.relu(self.conv(x)) * gate


class MisalignedOutput(nn.Module):
    """Only the output is misaligned."""

    # expect-case: ANE008=warning
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(64, 128, (1, 3))

    def forward(self, x):
        return F.relu(self.conv(x))


class MisalignedInside(nn.Module):
    """A misaligned value between two ops is nobody's business unless asked."""

    # expect-not: ANE008
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(64, 64, (1, 2))
        self.up = nn.ConvTranspose2d(64, 64, (1, 2))

    def forward(self, x):
        return F.relu(self.up(F.relu(self.down(x))))


class ChannelsLast(nn.Module):
    """The last axis of the input is not contiguous. An .aimodel does not say so."""

    # expect-case: ANE008; aimodel: -
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(32, 32, 1)

    def forward(self, x):
        return F.relu(self.conv(x))


# ---- sizes ---------------------------------------------------------------------------------------------


class Mixer(nn.Module):
    """Works at any length."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(64, 64, 1)

    def forward(self, x):
        return F.relu(self.conv(x)) + x


class DynamicSequence(Mixer):
    # expect-case: ANE009=warning; aimodel: ANE009=error
    pass


class DynamicBatch(nn.Module):
    # expect-case: ANE009=warning; aimodel: ANE009=error
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.head = nn.Conv2d(16, 32, 1)

    def forward(self, images):
        x = F.relu(self.conv(images))
        return self.head(x.mean(dim=(2, 3), keepdim=True)).flatten(1)


class DynamicTwoSymbols(nn.Module):
    """Two symbols, each named once."""

    # expect-case: ANE009=warning x2; aimodel: ANE009=error
    def forward(self, q, k):
        return (q @ k.transpose(-2, -1)).softmax(dim=-1) @ k


class StaticSequence(Mixer):
    """The workaround: one length."""

    # expect-not: ANE009


class DataDependent(nn.Module):
    """A size that only the data tells."""

    def forward(self, x, keep):
        x = F.relu(x)
        rows = torch.nonzero(keep).squeeze(1)  # expect: ANE009=error
        return x[rows].sum(dim=0)


CASES = {
    "rank6": {"make": SpaceToDepth, "inputs": ["f[2,3,16,64]"], "release": True},
    "rank6_one_line": {"make": SpaceToDepthOneLine, "inputs": ["f[2,3,16,64]"]},
    "rank6_windows": {"make": WindowPartition, "inputs": ["f[2,8,8,16]"]},
    "rank6_unit_dim": {"make": Rank6UnitDim, "inputs": ["f[1,3,16,64]"]},
    "rank5": {"make": Rank5, "inputs": ["f[2,3,16,64]"]},
    "rank_ok_pixel_shuffle": {"make": PixelShuffle, "inputs": ["f[1,8,8,32]"]},
    "rank_ok_einsum": {"make": Einsum, "inputs": ["f[1,16,1,32]", "f[1,32,1,16]"]},
    "last_33": {"make": Last33, "inputs": ["f[1,64,1,33]"]},
    "last_32": {"make": Last32, "inputs": ["f[1,64,1,32]"]},
    "last_64": {"make": Last64, "inputs": ["f[1,64,1,64]"]},
    "last_1": {"make": LastOneLarge, "inputs": ["f[1,64,512,1]"], "mlpackage": False, "onnx": False},
    "last_1_small": {"make": LastOneSmall, "inputs": ["f[1,64,1,32]", "f[1,64,1,1]"]},
    "last_output": {"make": MisalignedOutput, "inputs": ["f[1,64,1,32]"]},
    "last_inside": {"make": MisalignedInside, "inputs": ["f[1,64,4,32]"]},
    "last_channels_last": {"make": ChannelsLast, "inputs": ["f[1,32,8,32] channels_last"]},
    "dynamic_sequence": {"make": DynamicSequence, "inputs": ["f[1,64,1,32]"], "dynamic": {"x": {3: ("seq", 2, 64)}}, "release": True},
    "dynamic_batch": {"make": DynamicBatch, "inputs": ["f[2,3,16,32]"], "dynamic": {"images": {0: ("batch", 1, 16)}}},
    "dynamic_two": {"make": DynamicTwoSymbols, "inputs": ["f[1,2,16,32]", "f[1,2,24,32]"], "dynamic": {"q": {2: ("query", 2, 64)}, "k": {2: ("key", 2, 128)}}},
    "dynamic_ok_static": {"make": StaticSequence, "inputs": ["f[1,64,1,32]"]},
    "dynamic_data": {"make": DataDependent, "inputs": ["f[32,64]", "bool[32]"]},
}
