"""Converts five well-known architectures with random weights to Core ML packages, for
`anelint placement` to be held against what is known of them. Too big to commit: name a folder.

    pip install torch transformers==5.24.0 coremltools==9.0
    python scripts/make_coreml_models.py OUT [bert resnet mobilenet vit whisper]
"""

import pathlib
import sys

import coremltools as ct
import numpy as np
import torch
import transformers as tr


class Pick(torch.nn.Module):
    """The part of a library model's answer that is a tensor."""

    def __init__(self, model, field):
        super().__init__()
        self.model, self.field = model, field

    def forward(self, *args):
        return getattr(self.model(*args), self.field)


class Bert(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = tr.BertModel(tr.BertConfig(attn_implementation="sdpa"), add_pooling_layer=False)

    def forward(self, ids):
        return self.model.encoder(self.model.embeddings(ids)).last_hidden_state


class Whisper(torch.nn.Module):
    def __init__(self):
        super().__init__()
        config = tr.WhisperConfig(attn_implementation="sdpa")
        self.model = tr.models.whisper.modeling_whisper.WhisperEncoder(config)

    def forward(self, mel):
        return self.model(mel).last_hidden_state


IMAGE = torch.zeros(1, 3, 224, 224)


def resnet():
    return Pick(tr.ResNetForImageClassification(tr.ResNetConfig()), "logits"), IMAGE, np.float32


def mobilenet():
    return Pick(tr.MobileNetV2ForImageClassification(tr.MobileNetV2Config(image_size=224)), "logits"), IMAGE, np.float32


def vit():
    config = tr.ViTConfig(attn_implementation="sdpa", num_labels=1000)
    return Pick(tr.ViTForImageClassification(config), "logits"), IMAGE, np.float32


MODELS = {
    "bert": lambda: (Bert(), torch.zeros(1, 128, dtype=torch.int32), np.int32),
    "resnet": resnet,
    "mobilenet": mobilenet,
    "vit": vit,
    "whisper": lambda: (Whisper(), torch.zeros(1, 80, 3000), np.float32),
}


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or MODELS:
        torch.manual_seed(0)
        model, example, dtype = MODELS[name]()
        traced = torch.jit.trace(model.eval(), example, strict=False)
        package = ct.convert(
            traced,
            inputs=[ct.TensorType(name="x", shape=tuple(example.shape), dtype=dtype)],
            convert_to="mlprogram",
            minimum_deployment_target=ct.target.iOS18,
            compute_precision=ct.precision.FLOAT16,
            skip_model_load=True,
        )
        package.save(str(out / f"{name}.mlpackage"))
        print(name, "done")


if __name__ == "__main__":
    main()
