"""A BERT encoder from transformers, tiny, with a pooling head of ours."""
import torch
import torch.nn as nn
from transformers import BertConfig, BertModel


class SentenceEncoder(nn.Module):
    """Mean pooling over the tokens that count, in f32 as sentence encoders do it."""

    def __init__(self):
        super().__init__()
        config = BertConfig(
            vocab_size=512, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128,
            max_position_embeddings=64, attn_implementation="eager",
        )
        self.bert = BertModel(config, add_pooling_layer=False)

    def forward(self, input_ids, attention_mask):
        hidden = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state  # expect: ANE006=error, ANE021
        keep = attention_mask.unsqueeze(-1).float()
        pooled = (hidden.float() * keep).sum(dim=1) / keep.sum(dim=1).clamp(min=1e-9)  # expect: ANE003
        return nn.functional.normalize(pooled, dim=-1)


CASES = {
    "bert": {"make": SentenceEncoder, "inputs": ["i64[1,32]<512", "i64[1,32]=1"]},
}
