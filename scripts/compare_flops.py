"""Holds `anelint stats` against torch's own operation counter and parameter count on whole models.

    pip install torch transformers
    cargo build --release
    python scripts/compare_flops.py target/release/anelint

Both count a multiply and an add as two, and contractions only. Each model is exported, saved as `.pt2` and given to
anelint; the counter watches one run of the same module. Prints a line a model and exits 1 if one
differs by more than 1 %.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import torch.nn as nn
import transformers
from torch.utils.flop_counter import FlopCounterMode

LIMIT = 0.01


class Encoder(nn.Module):
    """BERT, base-shaped but for fewer layers."""

    def __init__(self):
        super().__init__()
        config = transformers.BertConfig(num_hidden_layers=4, vocab_size=4096, attn_implementation="sdpa")
        self.bert = transformers.BertModel(config, add_pooling_layer=False)

    def forward(self, ids):
        return self.bert(input_ids=ids).last_hidden_state


class Vision(nn.Module):
    """A vision transformer."""

    def __init__(self):
        super().__init__()
        config = transformers.ViTConfig(num_hidden_layers=4, hidden_size=384, num_attention_heads=6,
                                        intermediate_size=1536, attn_implementation="eager")
        self.vit = transformers.ViTModel(config, add_pooling_layer=False)

    def forward(self, pixels):
        return self.vit(pixel_values=pixels).last_hidden_state


class ConvNext(nn.Module):
    """Depthwise and pointwise convolutions."""

    def __init__(self):
        super().__init__()
        config = transformers.ConvNextConfig(depths=[2, 2, 2, 2], hidden_sizes=[48, 96, 192, 384])
        self.net = transformers.ConvNextForImageClassification(config)

    def forward(self, pixels):
        return self.net(pixel_values=pixels).logits


class ResNet(nn.Module):
    """ResNet-50."""

    def __init__(self):
        super().__init__()
        self.net = transformers.ResNetForImageClassification(transformers.ResNetConfig())

    def forward(self, pixels):
        return self.net(pixel_values=pixels).logits


class Decoder(nn.Module):
    """A Llama of two layers over a whole prompt, keys and values shared by two heads."""

    def __init__(self):
        super().__init__()
        config = transformers.LlamaConfig(vocab_size=8192, hidden_size=512, intermediate_size=1408,
                                          num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=4,
                                          max_position_embeddings=256, attn_implementation="eager")
        self.model = transformers.LlamaForCausalLM(config)

    def forward(self, ids):
        return self.model(input_ids=ids, use_cache=False).logits


def ids(n):
    return torch.zeros((1, n), dtype=torch.int64)


def pixels():
    return torch.zeros((1, 3, 224, 224))


MODELS = [("bert", Encoder, ids(128)), ("vit", Vision, pixels()), ("convnext", ConvNext, pixels()),
          ("resnet50", ResNet, pixels()), ("llama", Decoder, ids(128))]


def stats(anelint, path):
    done = subprocess.run([anelint, "stats", path, "--format", "json"], check=True, capture_output=True)
    return json.loads(done.stdout)["inputs"][0]["functions"][0]


def main(anelint):
    worst = 0.0
    for name, make, example in MODELS:
        module = make().eval()
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            module(example)
        flops = counter.get_total_flops()
        parameters = sum(p.numel() for p in module.parameters())
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            path = str(pathlib.Path(folder, f"{name}.pt2"))
            torch.export.save(torch.export.export(module, (example,)), path)
            own = stats(anelint, path)
        apart = [abs(own["flops"] - flops) / flops, abs(own["parameters"] - parameters) / parameters]
        worst = max(worst, *apart)
        print(f"{name}: FLOPs {own['flops']} against {flops} ({apart[0]:.3%}), "
              f"parameters {own['parameters']} against {parameters} ({apart[1]:.3%})")
    print(f"largest difference: {worst:.3%}")
    return worst > LIMIT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
