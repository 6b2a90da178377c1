"""Llama and Qwen3 decoders from transformers, tiny, two layers."""
import torch
import torch.nn as nn
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

SIZES = dict(
    vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=1, max_position_embeddings=128, tie_word_embeddings=False,
)


class Prefill(nn.Module):
    """A whole prompt, no cache; logits of the last position."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        logits = self.model(input_ids=input_ids, use_cache=False).logits  # expect: ANE003, ANE006=error, ANE021
        return logits[:, -1].float()


class Decode(nn.Module):
    """One token; keys and values of the past come in, the joined ones go out."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.layers = model.config.num_hidden_layers

    def forward(self, input_ids, position_ids, past_keys, past_values):
        cache = DynamicCache()
        for i in range(self.layers):
            cache.update(past_keys[i], past_values[i], i)
        out = self.model(input_ids=input_ids, position_ids=position_ids, past_key_values=cache, use_cache=True)  # expect: ANE003, ANE006=error, ANE019, ANE021
        layers = out.past_key_values.layers
        keys = torch.stack([layer.keys for layer in layers])
        values = torch.stack([layer.values for layer in layers])
        return out.logits, keys, values


def llama():
    return LlamaForCausalLM(LlamaConfig(**SIZES, attn_implementation="eager"))


def qwen3():
    return Qwen3ForCausalLM(Qwen3Config(**SIZES, head_dim=32, attn_implementation="sdpa"))


class LlamaPrefill(Prefill):
    def __init__(self):
        super().__init__(llama())


class QwenPrefill(Prefill):
    def __init__(self):
        super().__init__(qwen3())


class QwenDecode(Decode):
    def __init__(self):
        super().__init__(qwen3())


PAST = "f[2,1,1,31,32]"
CASES = {
    "llama": {"make": LlamaPrefill, "inputs": ["i64[1,32]<512"]},
    "qwen3": {"make": QwenPrefill, "inputs": ["i64[1,32]<512"], "onnx": False},
    "qwen3_decode": {"make": QwenDecode, "inputs": ["i64[1,1]<512", "i64[1,1]=31", PAST, PAST], "onnx": False},
}
