"""Projections as nn.Linear and as 1x1 convolutions."""
import torch
import torch.nn as nn
import torch.nn.functional as F

D, S = 64, 32


class Attribute(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(D, D)  # expect-related: ANE006

    def forward(self, x):
        return x + F.relu(self.proj(x))  # expect: ANE006=error `self.proj(x)`


class NoBias(nn.Module):
    """mm instead of addmm after decomposition."""

    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(D, D, bias=False)  # expect-related: ANE006

    def forward(self, x):
        return x * torch.sigmoid(self.proj(x))  # expect: ANE006=error `self.proj(x)`


class InSequential(nn.Module):
    """The call is the Sequential's."""

    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(D, 2 * D),
            nn.GELU(),
            nn.Linear(2 * D, D),
        )

    def forward(self, x):
        return x + self.mlp(x)  # expect: ANE006=error


class InModuleList(nn.Module):
    """One source line, three layers: one finding with a count."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(D, D) for _ in range(3))  # expect-related: ANE006

    def forward(self, x):
        for layer in self.layers:
            x = x + F.relu(layer(x))  # expect: ANE006=error `layer(x)`
        return x


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(D, 2 * D)  # expect-related: ANE006
        self.fc2 = nn.Linear(2 * D, D)  # expect-related: ANE006

    def forward(self, x):
        h = F.relu(self.fc1(x))  # expect: ANE006=error `self.fc1(x)`
        return x + self.fc2(h)  # expect: ANE006=error `self.fc2(h)`


class Stack(nn.Module):
    """Modules of a list: `layers.0`, `layers.1`."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(2))

    def forward(self, x):
        for block in self.layers:
            x = block(x)
        return x


class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(D, D) * 0.1)
        self.bias = nn.Parameter(torch.randn(D) * 0.1)

    def forward(self, x):
        return x + F.relu(F.linear(x, self.weight, self.bias))  # expect: ANE006=error `F.linear(x, self.weight, self.bias)`


class MatmulWeight(nn.Module):
    """GPT-2's Conv1D: a weight of (in, out)."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(D, 2 * D) * 0.1)
        self.bias = nn.Parameter(torch.zeros(2 * D))
        self.back = nn.Parameter(torch.randn(2 * D, D) * 0.1)

    def forward(self, x):
        size = x.size()[:-1] + (2 * D,)
        h = torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(size)  # expect: ANE006=error
        return x + F.relu(h) @ self.back  # expect: ANE006=error


class SwiGLU(nn.Module):
    """Three projections on one line."""

    def __init__(self):
        super().__init__()
        self.gate_proj = nn.Linear(D, 2 * D, bias=False)
        self.up_proj = nn.Linear(D, 2 * D, bias=False)
        self.down_proj = nn.Linear(2 * D, D, bias=False)

    def forward(self, x):
        return x + self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))  # expect: ANE006=error


class HeadOnly(nn.Module):
    """The output head alone: the vendor's own models keep it."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.lm_head = nn.Linear(16, D)

    def forward(self, x):
        x = F.relu(self.conv(x)).mean(dim=(2, 3))
        return self.lm_head(x)  # expect: ANE006=advice `self.lm_head(x)`


class TorchAttention(nn.Module):
    """Torch's own module: its projections are at the author's call."""

    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(D, 2, batch_first=True)
        self.norm = nn.LayerNorm(D)

    def forward(self, x):
        out, _ = self.attn(x, x, x, need_weights=False)  # expect: ANE006=error, ANE017
        return self.norm(x + out)


# ---- workarounds and things that look alike --------------------------------------------------------


class Conv1x1(nn.Module):
    """The workaround of Attribute: (B, C, 1, S) and a 1x1 convolution."""

    def __init__(self):
        super().__init__()
        self.proj = nn.Conv2d(D, D, 1)

    def forward(self, x):  # expect-not: ANE006
        return x + F.relu(self.proj(x))


class Conv1d(nn.Module):
    """A pointwise Conv1d is a convolution too."""

    def __init__(self):
        super().__init__()
        self.proj = nn.Conv1d(D, D, 1)

    def forward(self, x):  # expect-not: ANE006
        return x + F.relu(self.proj(x))


class ActivationMatmul(nn.Module):
    """Both sides are data."""

    def forward(self, a, b):  # expect-not: ANE006
        return F.relu(a) @ b.transpose(1, 2)


class ConstantThroughLinear(nn.Module):
    """A projection of a constant table is no work at run time."""

    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(D, D)
        self.register_buffer("table", torch.randn(1, S, D))

    def forward(self, x):  # expect-not: ANE006
        return F.relu(x) + torch.tanh(self.proj(self.table))


class EmbeddingOnly(nn.Module):
    """A gather from a constant table, on its own at the start."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(97, D)

    def forward(self, ids):  # expect-not: ANE006
        return F.relu(self.embed(ids))  # expect: ANE021=advice


BSD, BCS, BC1S = "f[1,32,64]", "f[1,64,32]", "f[1,64,1,32]"
CASES = {
    "linear_attribute": {"make": Attribute, "inputs": [BSD], "strict": True, "release": True},
    "linear_no_bias": {"make": NoBias, "inputs": [BSD]},
    "linear_sequential": {"make": InSequential, "inputs": [BSD]},
    "linear_module_list": {"make": InModuleList, "inputs": [BSD]},
    "linear_stack": {"make": Stack, "inputs": [BSD]},
    "linear_functional": {"make": Functional, "inputs": [BSD]},
    "linear_matmul": {"make": MatmulWeight, "inputs": [BSD]},
    "linear_swiglu": {"make": SwiGLU, "inputs": [BSD]},
    "linear_head": {"make": HeadOnly, "inputs": ["f[1,3,16,32]"]},
    "linear_torch_attention": {"make": TorchAttention, "inputs": [BSD]},
    "linear_ok_conv": {"make": Conv1x1, "inputs": [BC1S]},
    "linear_ok_conv1d": {"make": Conv1d, "inputs": [BCS]},
    "linear_ok_matmul": {"make": ActivationMatmul, "inputs": [BSD, BSD]},
    "linear_ok_constant": {"make": ConstantThroughLinear, "inputs": [BSD]},
    "linear_ok_embedding": {"make": EmbeddingOnly, "inputs": ["i64[1,32]<97"]},
}
