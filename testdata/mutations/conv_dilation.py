"""CleanVision with one fault: conv_dilation."""
import torch
import torch.nn as nn
import torch.nn.functional as F

C, HEADS, HIDDEN, S = 32, 2, 64, 32
D = C // HEADS


class CleanVision(nn.Module):
    """A small convolutional net: stride 2, batch norm, depthwise, squeeze and excite, global pool."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.bn = nn.BatchNorm2d(16)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=5, dilation=5, groups=16)
        self.squeeze, self.excite = nn.Conv2d(16, 8, 1), nn.Conv2d(8, 16, 1)
        self.point = nn.Conv2d(16, 32, 1)
        self.head = nn.Conv2d(32, 32, 1)

    def forward(self, images):
        x = F.relu(self.bn(self.stem(images)))
        x = F.silu(self.depthwise(x))  # expect: ANE033
        gate = torch.sigmoid(self.excite(F.relu(self.squeeze(x.mean(dim=(2, 3), keepdim=True)))))
        x = F.relu(self.point(x * gate)).mean(dim=(2, 3), keepdim=True)
        return self.head(x).flatten(1)


CASES = {"mutant_conv_dilation": {"make": CleanVision, "inputs": ['f[1,3,32,64]'], "mlpackage": False, "onnx": False}}
