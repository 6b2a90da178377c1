"""Weights that coremltools compressed in the package: the torch export beside it is not compressed."""
import torch.nn.functional as F

from cases.compressed import Net, linear


class BlocksInThePackage(Net):
    """4 bits, a scale for each 32 inputs: where there are 32 that is one for each channel, and a depthwise one stays."""

    def forward(self, x):  # expect-not: ANE045
        x = F.relu(self.stem(x))
        x = F.relu(self.expand(x))
        x = F.relu(self.depth(x))  # expect: -; mlpackage: ANE046=warning
        x = F.relu(self.project(x))  # expect: -; mlpackage: ANE044=warning
        return self.tail(x)


class ChannelsInThePackage(Net):
    """8 bits, a scale for each output channel."""

    def forward(self, x):  # expect-not: ANE044, ANE045, ANE046
        x = F.relu(self.stem(x))
        x = F.relu(self.depth(F.relu(self.expand(x))))
        return self.tail(F.relu(self.project(x)))


X = "f[1,3,16,32]"
CASES = {
    "package_per_block": {"make": BlocksInThePackage, "inputs": [X], "aimodel": False, "decomp": False, "onnx": False,
                          "compress": linear(dtype="int4", granularity="per_block", block_size=32)},
    "package_per_channel": {"make": ChannelsInThePackage, "inputs": [X], "aimodel": False, "decomp": False, "onnx": False,
                            "compress": linear(dtype="int8", granularity="per_channel")},
}
