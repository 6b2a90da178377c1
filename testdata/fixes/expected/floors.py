"""Floors that the GPU leaves out: a division of twice the value by 2 is carried out."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class TorchFloor(nn.Module):
    def forward(self, x):
        return F.relu(x) - torch.div(x * 2, 2, rounding_mode="floor")


class MethodFloor(nn.Module):
    def forward(self, x, y):
        return F.relu(x) - torch.div((x + y) * 2, 2, rounding_mode="floor")


class TorchCeil(nn.Module):
    def forward(self, x):
        return F.relu(x) - (-torch.div(x * -2, 2, rounding_mode="floor"))


class MethodCeil(nn.Module):
    def forward(self, x):
        return F.relu(x) - (-torch.div(x * -2, 2, rounding_mode="floor"))


class TorchTrunc(nn.Module):
    def forward(self, x):
        return F.relu(x) - (torch.sign(x) * torch.div(torch.abs(x) * 2, 2, rounding_mode="floor"))


class TorchFix(nn.Module):
    def forward(self, x):
        return F.relu(x) - (torch.sign(x) * torch.div(torch.abs(x) * 2, 2, rounding_mode="floor"))


class MethodTrunc(nn.Module):
    def forward(self, x):
        return F.relu(x) - (torch.sign(x) * torch.div(torch.abs(x) * 2, 2, rounding_mode="floor"))


class DivFloor(nn.Module):
    def forward(self, x):
        return F.relu(x) - torch.div(x * 2, 2, rounding_mode="floor")


class DivMethodFloor(nn.Module):
    def forward(self, x):
        return F.relu(x) - torch.div(x * 2, 2, rounding_mode="floor")


class FloorDivide(nn.Module):
    def forward(self, x):
        return F.relu(x) - torch.div(x * 2, 2, rounding_mode="floor")


class FloorDivideMethod(nn.Module):
    def forward(self, x):
        return F.relu(x) - torch.div(x * 2, 2, rounding_mode="floor")


class Operator(nn.Module):
    def forward(self, x):
        return F.relu(x) - torch.div(x * 2, 2, rounding_mode="floor")


X = "f[1,64,1,32]"
GPU = {"inputs": [X], "target": "gpu", "scale": 8.0}
CASES = {
    "fix_floor": {"make": TorchFloor, **GPU},
    "fix_floor_method": {"make": MethodFloor, **GPU, "inputs": [X, X]},
    "fix_ceil": {"make": TorchCeil, **GPU},
    "fix_ceil_method": {"make": MethodCeil, **GPU},
    "fix_trunc": {"make": TorchTrunc, **GPU},
    "fix_fix": {"make": TorchFix, **GPU},
    "fix_trunc_method": {"make": MethodTrunc, **GPU},
    "fix_div_floor": {"make": DivFloor, **GPU},
    "fix_div_floor_method": {"make": DivMethodFloor, **GPU},
    "fix_floor_divide": {"make": FloorDivide, **GPU},
    "fix_floor_divide_method": {"make": FloorDivideMethod, **GPU},
    "fix_floor_operator": {"make": Operator, **GPU},
}
