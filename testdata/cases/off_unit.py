"""Ops that the Neural Engine does not run, between ops that it runs and at the edges."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch._higher_order_ops.while_loop import while_loop

C = 64


class Conv(nn.Module):
    """A stem, so that there is work for the unit before and after."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(C, C, 1)
        self.tail = nn.Conv2d(C, C, 1)


class ArgmaxAtTheEnd(Conv):
    def forward(self, x):
        x = self.tail(F.relu(self.stem(x)))
        return x.argmax(dim=1)  # expect: ANE022=advice


class ArgmaxInside(Conv):
    """Hard gating by the winner, in the middle."""

    def forward(self, x):
        x = F.relu(self.stem(x))
        winner = x.argmax(dim=1, keepdim=True).to(x.dtype)  # expect: ANE023=error
        return F.relu(self.tail(x * winner))


class CumsumInside(Conv):
    def forward(self, x):
        x = F.relu(self.stem(x))
        x = torch.cumsum(x, dim=3)  # expect: ANE023=error
        return F.relu(self.tail(x))


class ScatterInside(Conv):
    def forward(self, x, index):
        x = F.relu(self.stem(x))
        x = torch.zeros_like(x).scatter(3, index, x)  # expect: ANE023=error
        return F.relu(self.tail(x))


class LstmInside(nn.Module):
    """One op in the plain graph; unrolled by the decomposition, and then no lstm is left."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(C, C, 1)
        self.lstm = nn.LSTM(C, C, batch_first=True)
        self.tail = nn.Conv1d(C, C, 1)

    def forward(self, x):
        x = F.relu(self.stem(x)).transpose(1, 2)
        x, _ = self.lstm(x)  # expect: ANE023=error; decomp: ANE006=error; aimodel: ANE006=error
        return F.relu(self.tail(x.transpose(1, 2)))


class TopKInside(Conv):
    """A router's choice, in the middle."""

    def forward(self, x):
        x = F.relu(self.stem(x))
        best, _ = torch.topk(x, 4, dim=1)  # expect: ANE025=error
        return F.relu(self.tail(x * best.mean(dim=1, keepdim=True)))


class TopKAtTheEnd(Conv):
    """Candidates as an output: finish on the host."""

    def forward(self, x):
        x = self.tail(F.relu(self.stem(x)))
        scores, where = torch.topk(x, 4, dim=3)  # expect: ANE025
        return scores, where


class SortInside(Conv):
    """coreai-torch does not lower sort."""

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = torch.sort(x, dim=1).values  # expect: ANE025=error, COM001=error
        return F.relu(self.tail(x))


class MaxInsteadOfTopK(Conv):
    """The workaround where one is enough."""

    def forward(self, x):  # expect-not: ANE022, ANE023, ANE025
        x = F.relu(self.stem(x))
        return F.relu(self.tail(x * x.amax(dim=1, keepdim=True)))


class CondInside(Conv):
    def __init__(self):
        super().__init__()
        self.heavy = nn.Conv2d(C, C, 1)

    def forward(self, x, threshold):
        def deep(h):
            return torch.tanh(self.heavy(h))

        def skip(h):
            return F.relu(h)

        x = F.relu(self.stem(x))
        quiet = x.abs().max() < threshold.squeeze()
        x = torch.cond(quiet, skip, deep, (x,))  # expect: ANE026
        return F.relu(self.tail(x))


class WhileInside(Conv):
    def forward(self, x, steps):
        x = F.relu(self.stem(x))

        def go_on(i, h):
            return i < 5

        def step(i, h):
            return i + 1, torch.tanh(h * 0.5)

        _, x = while_loop(go_on, step, (steps, x))  # expect: ANE026=error
        return F.relu(self.tail(x))


class UnrolledLoop(Conv):
    """The workaround: a Python loop."""

    def forward(self, x):  # expect-not: ANE026
        x = F.relu(self.stem(x))
        for _ in range(4):
            x = torch.tanh(x * 0.5)
        return F.relu(self.tail(x))


class EmbeddingInside(nn.Module):
    """A second table, looked up in the middle of the work."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(C, C, 1)
        self.types = nn.Embedding(16, C)
        self.tail = nn.Conv2d(C, C, 1)

    def forward(self, x, kinds):
        x = F.relu(self.stem(x))
        kind = self.types(kinds)  # expect: ANE021
        x = x + kind.transpose(1, 2).unsqueeze(2)
        return F.relu(self.tail(x))


class EmbeddingOfConstants(nn.Module):
    """Constant ids: a constant."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(64, C)
        self.conv = nn.Conv2d(C, C, 1)
        self.register_buffer("ids", torch.arange(32)[None])

    def forward(self, x):  # expect-not: ANE021, ANE022, ANE023
        place = self.table(self.ids).transpose(1, 2).unsqueeze(2)
        return F.relu(self.conv(x + place))


class EmbeddingPassedIn(nn.Module):
    """The workaround: the host looks up."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(C, C, 1)

    def forward(self, hidden):  # expect-not: ANE021
        return F.relu(self.conv(hidden))


class IntegerArithmetic(Conv):
    """Arithmetic with integers on the data path. Core ML only: ANE024; here a cast follows at once."""

    def forward(self, x, counts):
        x = F.relu(self.stem(x))
        weight = (counts * 2 + 1).to(x.dtype)  # expect[core-ml]: ANE024
        return F.relu(self.tail(x * weight))


class IntegerIndices(Conv):
    """Index arithmetic that folds."""

    def forward(self, x):  # expect-not: ANE024
        order = 31 - torch.arange(32)
        return F.relu(self.tail(F.relu(self.stem(x))[:, :, :, order]))


X = "f[1,64,1,32]"
CASES = {
    "off_argmax_end": {"make": ArgmaxAtTheEnd, "inputs": [X]},
    "off_argmax": {"make": ArgmaxInside, "inputs": [X], "release": True},
    "off_cumsum": {"make": CumsumInside, "inputs": [X]},
    "off_scatter": {"make": ScatterInside, "inputs": [X, "i64[1,64,1,32]<32"]},
    "off_lstm": {"make": LstmInside, "inputs": ["f[1,64,4]"]},
    "off_topk": {"make": TopKInside, "inputs": [X]},
    "off_topk_end": {"make": TopKAtTheEnd, "inputs": [X]},
    "off_sort": {"make": SortInside, "inputs": [X]},
    "off_ok_max": {"make": MaxInsteadOfTopK, "inputs": [X]},
    "off_cond": {"make": CondInside, "inputs": [X, "f[1]"]},
    "off_while": {"make": WhileInside, "inputs": [X, "i64[]=0"]},
    "off_ok_unrolled": {"make": UnrolledLoop, "inputs": [X]},
    "off_embedding": {"make": EmbeddingInside, "inputs": [X, "i64[1,32]<16"]},
    "off_ok_embedding_constant": {"make": EmbeddingOfConstants, "inputs": [X]},
    "off_ok_embedding_passed": {"make": EmbeddingPassedIn, "inputs": [X]},
    "off_integers": {"make": IntegerArithmetic, "inputs": [X, "i32[1,64,1,32]"]},
    "off_ok_integers": {"make": IntegerIndices, "inputs": [X]},
}
