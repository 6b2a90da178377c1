"""A vision transformer and a ConvNeXt from transformers, tiny."""
import torch.nn as nn
from transformers import ConvNextConfig, ConvNextForImageClassification, ViTConfig, ViTModel


class ImageEncoder(nn.Module):
    """ViT with a projection of ours on the class token."""

    def __init__(self):
        super().__init__()
        config = ViTConfig(
            image_size=32, patch_size=8, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128,
            attn_implementation="sdpa",
        )
        self.vit = ViTModel(config, add_pooling_layer=False)
        self.project = nn.Linear(64, 32)

    def forward(self, pixel_values):
        hidden = self.vit(pixel_values=pixel_values).last_hidden_state  # expect: ANE006=error
        return self.project(hidden[:, 0])  # expect: ANE006=advice `self.project(hidden[:, 0])`


class Classifier(nn.Module):
    """ConvNeXt: depthwise 7x7 convolutions, LayerNorm over channels, Linear as pointwise layers."""

    def __init__(self):
        super().__init__()
        config = ConvNextConfig(hidden_sizes=[32, 64], depths=[1, 2], num_stages=2, num_labels=32, image_size=32)
        self.net = ConvNextForImageClassification(config)

    def forward(self, pixel_values):
        return self.net(pixel_values=pixel_values).logits  # expect: ANE006=error


CASES = {
    "vit": {"make": ImageEncoder, "inputs": ["f[1,3,32,32]"]},
    "convnext": {"make": Classifier, "inputs": ["f[1,3,32,32]"]},
}
