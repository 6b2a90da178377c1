"""Activations whose form matters in f16, and ops that the converter's own table computes in f32."""
import torch
import torch.nn as nn
import torch.nn.functional as F

C = 16


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(C, C, 1)
        self.tail = nn.Conv2d(C, C, 1)


class SoftplusByHand(Conv):
    def forward(self, x):
        x = torch.log(1.0 + torch.exp(self.stem(x)))  # expect: ANE041=error
        return self.tail(x)


class SoftplusStable(Conv):
    """The workaround: nothing larger than 1 is ever exponentiated."""

    def forward(self, x):  # expect-not: ANE041
        x = self.stem(x)
        x = F.relu(x) + torch.log1p(torch.exp(-x.abs()))
        return self.tail(x)


class LogSumExpByHand(Conv):
    def forward(self, x):
        x = self.stem(x)
        return self.tail(x - torch.log(torch.exp(x).sum(dim=1, keepdim=True)))  # expect: ANE041=error


class LogSumExpShifted(Conv):
    def forward(self, x):  # expect-not: ANE041
        x = self.stem(x)
        x = x - x.amax(dim=1, keepdim=True)
        return self.tail(x - torch.log(torch.exp(x).sum(dim=1, keepdim=True)))


class Mish(Conv):
    def forward(self, x):
        return self.tail(F.mish(self.stem(x)))  # expect: ANE041, ANE061; decomp: ANE041, ANE003; aimodel: ANE041, ANE003; mlpackage: -


class GatedResidual(Conv):
    """x + tanh(gate) * branch, as beside an adaptive norm."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Conv2d(C, C, 1)

    def forward(self, x, condition):
        return x + torch.tanh(self.gate(condition)) * self.tail(F.relu(self.stem(x)))  # expect: ANE053=advice


class GatedBySigmoid(Conv):
    """The workaround: 2·sigmoid(2x) - 1 is tanh."""

    def forward(self, x, condition):  # expect-not: ANE053
        gate = 2.0 * torch.sigmoid(2.0 * self.stem(condition)) - 1.0
        return x + gate * self.tail(F.relu(self.stem(x)))


class TanhAlone(Conv):
    """An activation like another."""

    def forward(self, x):  # expect-not: ANE053
        return self.tail(torch.tanh(self.stem(x)))


class Lerp(Conv):
    """The converter writes it out in f32."""

    def forward(self, x):
        x = self.stem(x)
        return self.tail(torch.lerp(x, F.relu(x), 0.3))  # expect: ANE061; decomp: ANE003; aimodel: ANE003


class LerpByHand(Conv):
    def forward(self, x):  # expect-not: ANE061, ANE003
        x = self.stem(x)
        return self.tail(x + (F.relu(x) - x) * 0.3)


class Addcmul(Conv):
    def forward(self, x):
        x = self.stem(x)
        return self.tail(torch.addcmul(x, x, F.relu(x), value=0.5))  # expect: ANE061; decomp: ANE003; aimodel: ANE003


class Celu(Conv):
    def forward(self, x):
        return self.tail(F.celu(self.stem(x)))  # expect: ANE061; decomp: ANE003; aimodel: ANE003


class LogSigmoid(Conv):
    def forward(self, x):
        return self.tail(F.logsigmoid(self.stem(x)))  # expect: ANE061; decomp: ANE003; aimodel: ANE003


class VectorNorm(Conv):
    def forward(self, x):
        x = self.stem(x)
        return self.tail(x / (x.norm(dim=1, keepdim=True) + 1e-2))  # expect: ANE061; decomp: ANE003; aimodel: ANE003


class LogSumExp(Conv):
    def forward(self, x):
        x = self.stem(x)
        return self.tail(x - torch.logsumexp(x, dim=1, keepdim=True))  # expect: ANE061; decomp: ANE003; aimodel: ANE003


class Spread(Conv):
    """std becomes var.correction, which coreai-torch 0.4.3 does not lower."""

    def forward(self, x):
        x = self.stem(x)
        return self.tail(x * x.std(dim=1, keepdim=True))  # expect: ANE061, COM001=error; decomp: ANE003, COM001=error


class KeptWhole(Conv):
    """Ops that the converter's table keeps in f16."""

    def forward(self, x):  # expect-not: ANE061, ANE003
        x = F.gelu(F.silu(self.stem(x)))
        x = F.hardswish(x) + F.hardsigmoid(x) + F.leaky_relu(x)
        return self.tail(F.log_softmax(x, dim=1))


X = "f[1,16,1,32]"
ONLY_CORE_AI = {"mlpackage": False, "onnx": False}
CASES = {
    "softplus_by_hand": {"make": SoftplusByHand, "inputs": [X]},
    "softplus_stable": {"make": SoftplusStable, "inputs": [X], "onnx": False},
    "logsumexp_by_hand": {"make": LogSumExpByHand, "inputs": [X], "onnx": False},
    "logsumexp_shifted": {"make": LogSumExpShifted, "inputs": [X], "onnx": False},
    "mish": {"make": Mish, "inputs": [X], "onnx": False},
    "tanh_gate": {"make": GatedResidual, "inputs": [X, X], **ONLY_CORE_AI},
    "tanh_by_sigmoid": {"make": GatedBySigmoid, "inputs": [X, X], **ONLY_CORE_AI},
    "tanh_alone": {"make": TanhAlone, "inputs": [X], **ONLY_CORE_AI},
    "table_lerp": {"make": Lerp, "inputs": [X], **ONLY_CORE_AI},
    "table_lerp_by_hand": {"make": LerpByHand, "inputs": [X], **ONLY_CORE_AI},
    "table_addcmul": {"make": Addcmul, "inputs": [X], **ONLY_CORE_AI},
    "table_celu": {"make": Celu, "inputs": [X], **ONLY_CORE_AI},
    "table_logsigmoid": {"make": LogSigmoid, "inputs": [X], **ONLY_CORE_AI},
    "table_norm": {"make": VectorNorm, "inputs": [X], **ONLY_CORE_AI},
    "table_logsumexp": {"make": LogSumExp, "inputs": [X], **ONLY_CORE_AI},
    "table_std": {"make": Spread, "inputs": [X], **ONLY_CORE_AI},
    "table_kept": {"make": KeptWhole, "inputs": [X], **ONLY_CORE_AI},
}
