"""Extents beyond the unit's caps, tensors that are large, states whose width is odd."""
import torch
import torch.nn as nn
import torch.nn.functional as F

C = 4


class Wide(nn.Module):
    """Element by element over a long row."""

    def forward(self, x):  # expect-not: ANE027
        return torch.sigmoid(x) * x


class TooWide(nn.Module):
    def forward(self, x):
        return torch.sigmoid(x)  # expect: ANE027=error


class Inner(nn.Module):
    """A product of two activations: what is summed over is the inner dim."""

    def forward(self, a, b):  # expect-not: ANE028
        return F.relu(torch.matmul(F.relu(a), F.relu(b)))


class InnerTooLong(nn.Module):
    def forward(self, a, b):
        return F.relu(torch.matmul(F.relu(a), F.relu(b)))  # expect: ANE028=error


class Vocabulary(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.mix = nn.Conv2d(1, 1, 1)
        self.head = nn.Conv2d(1, size, 1, bias=False)
        # two numbers in turn: small in an archive, and not one that a converter folds
        self.head.weight = nn.Parameter((torch.arange(size) % 2 + 1.0).view(size, 1, 1, 1))


class WideVocabulary(Vocabulary):
    def __init__(self):
        super().__init__(65537)

    def forward(self, x):
        return self.head(F.relu(self.mix(x)))  # expect: ANE048=error


class WidestVocabulary(Vocabulary):
    def __init__(self):
        super().__init__(65536)

    def forward(self, x):  # expect-not: ANE048, ANE027
        return self.head(F.relu(self.mix(x)))


class TiledVocabulary(Vocabulary):
    """The workaround: the head in two."""

    def __init__(self):
        super().__init__(40000)
        self.rest = nn.Conv2d(1, 40000, 1, bias=False)
        self.rest.weight = self.head.weight

    def forward(self, x):  # expect-not: ANE048, ANE027
        x = F.relu(self.mix(x))
        return self.head(x), self.rest(x)


class SoftmaxOverWidth(nn.Module):
    """Over the last axis of 3 MiB in and out."""

    def forward(self, x):
        return F.softmax(F.relu(x), dim=3)  # expect: ANE016=advice


class SoftmaxOverChannels(nn.Module):
    def forward(self, x):  # expect-not: ANE016
        return F.softmax(F.relu(x), dim=1)


class SoftmaxOfLittle(nn.Module):
    """2 MiB in and out: at the edge, and still on chip."""

    def forward(self, x):  # expect-not: ANE016
        return F.softmax(F.relu(x), dim=3)


class LongAttention(nn.Module):
    """Scores of one head: 1056 by 1024 in f16 are more than 2 MiB."""

    def forward(self, q, k, v):
        scores = torch.einsum("bchq,bkhc->bkhq", q * 0.5, k)
        return torch.einsum("bkhq,bchk->bchq", scores.softmax(dim=1), v)  # expect: ANE069=advice


class ChunkedAttention(nn.Module):
    """The workaround: the queries in two halves."""

    def forward(self, q, k, v):  # expect-not: ANE069
        outs = []
        for part in (q * 0.5).split(512, dim=3):
            scores = torch.einsum("bchq,bkhc->bkhq", part, k)
            outs.append(torch.einsum("bkhq,bchk->bchq", scores.softmax(dim=1), v))
        return torch.cat(outs, dim=3)


class State(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("past", torch.zeros(1, 64, 1, width))
        self.mix = nn.Conv2d(64, 64, 1)


class OddState(State):
    """A state of 40 columns."""

    def __init__(self):
        super().__init__(40)

    def forward(self, x):  # expect-case[core-ml]: ANE050=warning
        self.past[:, :, :, 8:] = x
        return self.mix(self.past)


class EvenState(State):
    def __init__(self):
        super().__init__(64)

    def forward(self, x):  # expect-not: ANE050
        self.past[:, :, :, 32:] = x
        return self.mix(self.past)


ONLY_CORE_AI = {"mlpackage": False, "onnx": False}
ONLY_PLAIN = {"mlpackage": False, "onnx": False, "aimodel": False}
CASES = {
    "dim_65536": {"make": Wide, "inputs": ["f[1,1,1,65536]"], **ONLY_CORE_AI},
    "dim_65537": {"make": TooWide, "inputs": ["f[1,1,1,65537]"], "onnx": False},
    "inner_32768": {"make": Inner, "inputs": ["f[1,2,32768]", "f[1,32768,2]"], **ONLY_CORE_AI},
    "inner_32769": {"make": InnerTooLong, "inputs": ["f[1,2,32769]", "f[1,32769,2]"], "onnx": False},
    "vocabulary_65537": {"make": WideVocabulary, "inputs": ["f[1,1,1,32]"], **ONLY_CORE_AI},
    "vocabulary_65536": {"make": WidestVocabulary, "inputs": ["f[1,1,1,32]"], **ONLY_PLAIN},
    "vocabulary_tiled": {"make": TiledVocabulary, "inputs": ["f[1,1,1,32]"], **ONLY_PLAIN},
    "softmax_width": {"make": SoftmaxOverWidth, "inputs": ["f[1,24,32,1024]"], "onnx": False},
    "softmax_channels": {"make": SoftmaxOverChannels, "inputs": ["f[1,24,32,1024]"], **ONLY_CORE_AI},
    "softmax_little": {"make": SoftmaxOfLittle, "inputs": ["f[1,16,32,1024]"], **ONLY_CORE_AI},
    "scores_long": {"make": LongAttention, "inputs": ["f[1,8,1,1024]", "f[1,1056,1,8]", "f[1,8,1,1056]"], **ONLY_CORE_AI},
    "scores_chunked": {"make": ChunkedAttention, "inputs": ["f[1,8,1,1024]", "f[1,1056,1,8]", "f[1,8,1,1056]"], **ONLY_CORE_AI},
    "state_40": {"make": OddState, "inputs": ["f[1,64,1,32]"], "onnx": False},
    "state_64": {"make": EvenState, "inputs": ["f[1,64,1,32]"], **ONLY_CORE_AI},
}
