"""Projections as nn.Linear. The weight takes two dims more, and the data the (B, C, 1, S) layout."""
import torch.nn as nn
import torch.nn.functional as F

D = 64


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(D, D)

    def forward(self, x):
        return x + F.relu(self.proj(x))


class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(
            in_features=D,
            out_features=D,
        )

    def forward(self, x):
        return x + F.relu(self.proj(x))


class NoBias(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(D, D, bias=False)

    def forward(self, x):
        return x + F.relu(self.proj(x))


class NoBiasByPosition(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(D, D, False)

    def forward(self, x):
        return x + F.relu(self.proj(x))


class NamedNoBias(nn.Module):
    def __init__(self, bias=False):
        super().__init__()
        self.proj = nn.Linear(in_features=D, out_features=D, bias=bias)

    def forward(self, x):
        return x + F.relu(self.proj(x))


BSD = {"inputs": ["f[1,32,64]"], "fixed_inputs": ["f[1,64,1,32]"]}
CASES = {
    "fix_linear": {"make": Plain, **BSD},
    "fix_linear_named": {"make": Named, **BSD},
    "fix_linear_no_bias": {"make": NoBias, **BSD},
    "fix_linear_no_bias_by_position": {"make": NoBiasByPosition, **BSD},
    "fix_linear_named_no_bias": {"make": NamedNoBias, **BSD},
}
