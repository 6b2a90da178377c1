"""Where on a line, and on which line: calls of several lines, several findings, letters beyond ASCII."""
import torch
import torch.nn as nn
import torch.nn.functional as F

S = 32


class UnicodeBefore(nn.Module):
    """Columns are counted in characters, and these take two, three and four bytes."""

    def forward(self, q, k, v):
        σ = (q * 0.25) @ k.transpose(-2, -1)
        маска = "尺度 🙂"; σ = σ + torch.full((S, S), float("-inf"), dtype=σ.dtype).triu(1)  # expect: ANE004 `float("-inf")`
        return σ.softmax(dim=-1) @ v if маска else σ


class UnicodeName(nn.Module):
    def __init__(self):
        super().__init__()
        self.größe = nn.Linear(64, 64)  # expect-related: ANE006

    def forward(self, x):
        été = F.relu(self.größe(x)) + x  # expect: ANE006=error `self.größe(x)`
        return été * 1.0


class TabsAndComments(nn.Module):
	"""Indented with tabs."""

	def forward(self, q, k, v):
		# -inf here would be a mistake: float("-inf")
		scores = (q * 0.25) @ k.transpose(-2, -1)  # not yet float("-inf")
		scores = scores + torch.full((S, S), float("-inf"), dtype=q.dtype).triu(1)  # expect: ANE004 `float("-inf")`
		return scores.softmax(dim=-1) @ v


class CallOfSeveralLines(nn.Module):
    """An argument's own call stands at its own line, the outer one at its first."""

    def forward(self, q, k, v, allowed):
        scores = torch.where(  # expect: ANE005; aimodel: ANE004
            allowed,
            (q * 0.25) @ k.transpose(-2, -1),
            -1e9,
        )
        return F.softmax(  # expect: ANE003
            scores,
            dim=-1,
            dtype=torch.float32,
        ).to(v.dtype) @ v


class TwoRulesOneLine(nn.Module):
    """Two faults in one expression, at two columns."""

    def forward(self, q, k, v, allowed):
        scores = (q * 0.25) @ k.transpose(-2, -1)
        return scores.masked_fill(~allowed, float("-inf")).softmax(dim=-1, dtype=torch.float32).type_as(v) @ v  # expect: ANE004 `float("-inf")`, ANE003


class SameRuleTwice(nn.Module):
    """One rule, two expressions on one line."""

    def forward(self, q, k, v, first, second):
        scores = (q * 0.25) @ k.transpose(-2, -1)
        a, b = scores.masked_fill(~first, float("-inf")), scores.masked_fill(~second, -float("inf"))  # expect: ANE004 `float("-inf")`, ANE004 `-float("inf")`
        return a.softmax(dim=-1) @ v + b.softmax(dim=-1) @ v


class Semicolons(nn.Module):
    def forward(self, x):
        x = F.relu(x); x = x * torch.tensor(1.5); x = F.relu(x)  # expect: ANE001 `torch.tensor(1.5)`
        return x + 1.0


class Backslash(nn.Module):
    """A statement that goes on: torch records the line of the operator's expression."""

    def forward(self, x, y):
        z = F.relu(x) \
            * torch.tensor(1.5) \
            + y
        return F.relu(z)

    # expect-case: ANE001


class Comprehension(nn.Module):
    """One expression, run four times."""

    def forward(self, x):
        parts = [F.relu(p) * torch.tensor(0.5) for p in x.split(16, dim=1)]  # expect: ANE001 `torch.tensor(0.5)`
        return torch.cat(parts, dim=1)


class InnerFunction(nn.Module):
    """A function inside forward: its frame is not called forward either."""

    def forward(self, q, k, v):
        def hide(scores):
            return scores.masked_fill(torch.ones(S, S, dtype=torch.bool).triu(1), float("-inf"))  # expect-related: ANE004

        scores = hide((q * 0.25) @ k.transpose(-2, -1))  # expect: ANE004
        return scores.softmax(dim=-1) @ v


class TwoLiteralsInHelper(nn.Module):
    """Two places could be the cause: none is named as the one."""

    def hide(self, scores, causal):
        future = torch.ones(S, S, dtype=torch.bool).triu(1)
        if causal:
            return scores.masked_fill(future, float("-inf"))
        return scores.masked_fill(future.t(), float("-inf"))

    def forward(self, q, k, v):
        scores = self.hide((q * 0.25) @ k.transpose(-2, -1), True)  # expect: ANE004
        return scores.softmax(dim=-1) @ v


class Nested(nn.Module):
    """forward calls forward: the innermost frame is the author's inner module."""

    class Mask(nn.Module):
        def forward(self, scores):
            return scores + torch.full((S, S), float("-inf"), dtype=scores.dtype).triu(1)  # expect: ANE004 `float("-inf")`

    def __init__(self):
        super().__init__()
        self.mask = Nested.Mask()

    def forward(self, q, k, v):
        scores = self.mask((q * 0.25) @ k.transpose(-2, -1))
        return scores.softmax(dim=-1) @ v


QKV = ["f[1,2,32,32] x3"]
X = "f[1,64,1,32]"
CASES = {
    "place_unicode": {"make": UnicodeBefore, "inputs": QKV},
    "place_unicode_name": {"make": UnicodeName, "inputs": ["f[1,32,64]"]},
    "place_tabs": {"make": TabsAndComments, "inputs": QKV},
    "place_lines": {"make": CallOfSeveralLines, "inputs": [*QKV, "tri[32,32]"], "strict": True},
    "place_two_rules": {"make": TwoRulesOneLine, "inputs": ["f[1,2,32,32] x3", "tri[32,32]"]},
    "place_same_rule": {"make": SameRuleTwice, "inputs": [*QKV, "tri[32,32] x2"]},
    "place_semicolons": {"make": Semicolons, "inputs": [X]},
    "place_backslash": {"make": Backslash, "inputs": [X, X]},
    "place_comprehension": {"make": Comprehension, "inputs": [X]},
    "place_inner_function": {"make": InnerFunction, "inputs": QKV, "strict": True},
    "place_two_causes": {"make": TwoLiteralsInHelper, "inputs": QKV},
    "place_nested": {"make": Nested, "inputs": QKV},
}
