"""Whose op it is, where a line holds several things that look alike: calls beside products, literals, branches, layers."""
import torch
import torch.nn as nn
import torch.nn.functional as F

C = 64


def merge_heads(x):
    return x.transpose(1, 2).flatten(2)


class ProductWithinACall(nn.Module):
    """The projection is the call, not the product in its argument."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(C, C)  # expect-related: ANE006

    def forward(self, p, v):
        return F.relu(self.out(merge_heads(p @ v)))  # expect: ANE006=error `self.out(`


class ProductOfCalls(nn.Module):
    """Two projections and the product of both, which is none."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(C, C)
        self.b = nn.Linear(C, C)

    def forward(self, x):
        y = self.a(x) @ self.b(x).transpose(1, 2)  # expect: ANE006=error `self.a(x)`, ANE006=error `self.b(x)`; aimodel: ANE006=error
        return F.relu(y)


class SumOfProjections(nn.Module):
    """Three spellings in one sum."""

    def __init__(self):
        super().__init__()
        self.table = nn.ModuleDict({"k": nn.Linear(C, C)})
        self.w = nn.Parameter(torch.randn(C, C))

    def forward(self, x):
        y = self.table["k"](x) + x @ self.w + F.linear(x, self.w)  # expect: ANE006=error `self.table["k"](x)`, ANE006=error `x @ self.w`, ANE006=error `F.linear(x, self.w)`; aimodel: ANE006=error
        return F.relu(y)


class TwoLiteralsOfOneSum(nn.Module):
    """Each meets f16 data: mending one leaves the other."""

    def forward(self, x):
        a = x * torch.ones(1)  # expect: ANE001=error `torch.ones(1)`
        b = x / torch.tensor([2.0])  # expect: ANE001=error `torch.tensor([2.0])`
        return a + b


class ThreeLiteralsOnALine(nn.Module):
    def forward(self, x):
        return x * torch.tensor(1.5) + torch.ones(1) * x + x / torch.tensor([2.0])  # expect: ANE001=error `torch.tensor(1.5)`, ANE001=error `torch.ones(1)`, ANE001=error `torch.tensor([2.0])`


class CastInABranch(nn.Module):
    """torch records the line of the call; the cast is in a function that it names."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(C, C, 1)

    def forward(self, x, flag):
        def upcast(h):
            return h.float().softmax(dim=1).half()  # expect-related: ANE003

        def plain(h):
            return h + 1.0

        x = F.relu(self.conv(x))
        return F.relu(torch.cond(flag, upcast, plain, (x,)))  # expect: ANE003=error `torch.cond(`, ANE026?


class DynamicInput(nn.Module):
    """An input is shown at its parameter, not where some library first asks for its size."""

    def forward(self, x):  # expect: ANE009 `x):`
        return F.relu(x).flatten(1, 2) + 1.0


class CacheLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("key", torch.zeros(1, 2, 128, 24))
        self.conv = nn.Conv2d(2, 2, 1)

    def forward(self, x, pos):
        self.key[:, :, pos] = x
        return self.conv(self.key.sum(2, keepdim=True) + x)


class CachesOfLayers(nn.Module):
    """One fault of one line, as often as there are layers."""

    # expect-case: ANE008=warning x1
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(CacheLayer() for _ in range(4))

    def forward(self, x, pos):
        for layer in self.layers:
            x = layer(x, pos)
        return x


X = "f[1,64,1,32]"
CASES = {
    "site_within_call": {"make": ProductWithinACall, "inputs": ["f[1,2,32,32]", "f[1,2,32,32]"]},
    "site_of_calls": {"make": ProductOfCalls, "inputs": ["f[1,32,64]"]},
    "site_sum": {"make": SumOfProjections, "inputs": ["f[1,32,64]"]},
    "site_literals": {"make": TwoLiteralsOfOneSum, "inputs": [X]},
    "site_literals_line": {"make": ThreeLiteralsOnALine, "inputs": [X]},
    "site_branch": {"make": CastInABranch, "inputs": [X, "bool[]"]},
    "site_input": {"make": DynamicInput, "inputs": ["f[1,8,16,32]"], "dynamic": {"x": {2: ("rows", 2, 64)}}},
    "site_layers": {"make": CachesOfLayers, "inputs": ["f[1,2,1,24]", "i64[1]=3"]},
}
