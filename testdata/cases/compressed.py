"""Weights compressed in ways that the unit takes, and in ways that it does not."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    """A stem with a stride of 4, a pair of projections with a depthwise convolution between."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 4, stride=4)
        self.expand = nn.Conv2d(32, 64, 1)
        self.depth = nn.Conv2d(64, 64, 3, padding=1, groups=64)
        self.project = nn.Conv2d(64, 32, 1)
        self.tail = nn.Conv2d(32, 32, 1)


class AllPalettized(Net):
    def forward(self, x):
        x = F.relu(self.stem(x))  # expect: ANE032=warning
        x = F.relu(self.depth(F.relu(self.expand(x))))
        return self.tail(F.relu(self.project(x)))


class StemKept(Net):
    """The workaround: the stem stays as it is."""

    def forward(self, x):  # expect-not: ANE032, ANE044, ANE046
        x = F.relu(self.stem(x))
        x = F.relu(self.depth(F.relu(self.expand(x))))
        return self.tail(F.relu(self.project(x)))


class PerBlock(Net):
    """4 bits, a scale for each 32 inputs: where there are 32 that is one for each channel, and a depthwise one stays."""

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = F.relu(self.expand(x))
        x = F.relu(self.depth(x))  # expect: ANE046=warning
        x = F.relu(self.project(x))  # expect: ANE044=error
        return self.tail(x)


class PerChannel(Net):
    """8 bits, a scale for each output channel."""

    def forward(self, x):  # expect-not: ANE044, ANE046
        x = F.relu(self.stem(x))
        x = F.relu(self.depth(F.relu(self.expand(x))))
        return self.tail(F.relu(self.project(x)))


def palettized(skip):
    """Four bits by k-means, a table a tensor."""

    def prepare(model, samples):
        from coreai_opt.common import ExportBackend
        from coreai_opt.palettization import KMeansPalettizer, KMeansPalettizerConfig, ModuleKMeansPalettizerConfig
        from coreai_opt.palettization.config.palettization_config import OpKMeansPalettizerConfig
        from coreai_opt.palettization.spec import PalettizationSpec, PerTensorGranularity

        spec = PalettizationSpec(n_bits=4, granularity=PerTensorGranularity())
        states = {name: spec for name in OpKMeansPalettizerConfig.get_default_state_spec()}
        every = ModuleKMeansPalettizerConfig(op_input_spec=None, op_output_spec=None, op_state_spec=states)
        config = KMeansPalettizerConfig(global_config=every, module_name_configs={name: None for name in skip})
        maker = KMeansPalettizer(model, config)
        maker.prepare(samples)
        return maker.finalize(backend=ExportBackend.CoreAI)

    return prepare


def quantized(preset):
    def prepare(model, samples):
        from coreai_opt.common import ExportBackend
        from coreai_opt.quantization import Quantizer, QuantizerConfig

        maker = Quantizer(model, getattr(QuantizerConfig.presets, preset)())
        maker.prepare(samples)
        return maker.finalize(backend=ExportBackend.CoreAI)

    return prepare


def linear(**settings):
    def compress(model):
        from coremltools.optimize import coreml

        config = coreml.OpLinearQuantizerConfig(mode="linear_symmetric", weight_threshold=256, **settings)
        return coreml.linear_quantize_weights(model, coreml.OptimizationConfig(global_config=config))

    return compress


X = "f[1,3,16,32]"
CASES = {
    "weights_palettized": {"make": AllPalettized, "inputs": [X], "prepare": palettized([]), "mlpackage": False, "onnx": False},
    "weights_stem_kept": {"make": StemKept, "inputs": [X], "prepare": palettized(["stem"]), "mlpackage": False, "onnx": False},
    "weights_per_block": {"make": PerBlock, "inputs": [X], "prepare": quantized("w4_per_block"), "unsaved": True, "mlpackage": False, "onnx": False},
    "weights_per_channel": {"make": PerChannel, "inputs": [X], "prepare": quantized("w8"), "mlpackage": False, "onnx": False},
}
