"""A transformer encoder in f16, with and without f32 in each layer and in its head."""
import torch
import torch.nn as nn
import torch.nn.functional as F

C, HEADS, S = 32, 2, 32
D = C // HEADS


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(1, C), nn.GroupNorm(1, C)
        self.q_proj, self.k_proj = nn.Conv2d(C, C, 1), nn.Conv2d(C, C, 1)
        self.v_proj, self.o_proj = nn.Conv2d(C, C, 1), nn.Conv2d(C, C, 1)
        self.fc1, self.fc2 = nn.Conv2d(C, 2 * C, 1), nn.Conv2d(2 * C, C, 1)

    def split(self, x):
        return x.view(1, HEADS, D, S)

    def rest(self, x, attn, v):
        out = (v @ attn.transpose(-2, -1)).reshape(1, C, 1, S)
        x = x + self.o_proj(out)
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class LayerF32(Layer):
    def forward(self, x):
        h = self.norm1(x)
        q, k, v = self.split(self.q_proj(h)), self.split(self.k_proj(h)), self.split(self.v_proj(h))
        scores = (q * 0.125).transpose(-2, -1) @ k
        attn = F.softmax(scores, dim=-1, dtype=torch.float32).to(v.dtype)  # expect: ANE003=error
        return self.rest(x, attn, v)


class LayerF16(Layer):
    def forward(self, x):
        h = self.norm1(x)
        q, k, v = self.split(self.q_proj(h)), self.split(self.k_proj(h)), self.split(self.v_proj(h))
        scores = (q * 0.125).transpose(-2, -1) @ k
        attn = F.softmax(scores, dim=-1)
        return self.rest(x, attn, v)


class EncoderManyRegions(nn.Module):
    """12 layers: 12 f32 softmaxes and one f32 pooling cut it into 14."""

    # expect-case: ANE010
    def __init__(self, layers=12):
        super().__init__()
        self.layers = nn.ModuleList(LayerF32() for _ in range(layers))
        self.head = nn.Conv2d(C, C, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        pooled = x.float().mean(dim=3, keepdim=True).to(x.dtype)  # expect: ANE003=error `x.float()`
        return F.relu(self.head(pooled))


class EncoderOneRegion(nn.Module):
    """The same without: one."""

    def __init__(self, layers=12):
        super().__init__()
        self.layers = nn.ModuleList(LayerF16() for _ in range(layers))
        self.head = nn.Conv2d(C, C, 1)

    def forward(self, x):  # expect-not: ANE003, ANE010
        for layer in self.layers:
            x = layer(x)
        pooled = x.mean(dim=3, keepdim=True)
        return F.relu(self.head(pooled))


class OffOnlyAtTheEdges(nn.Module):
    """Off-unit work before and after everything else cuts nothing."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(97, C)
        self.conv = nn.Conv2d(C, C, 1)

    def forward(self, ids):  # expect-not: ANE010, ANE023
        x = self.embed(ids).transpose(1, 2).unsqueeze(2)  # expect: ANE021=advice
        x = F.relu(self.conv(x)) + x
        return x.argmax(dim=1)  # expect: ANE022=advice


SLIM = {"mlpackage": False, "onnx": False}
CASES = {
    "regions_many": {"make": EncoderManyRegions, "inputs": ["f[1,32,1,32]"]},
    "regions_one": {"make": EncoderOneRegion, "inputs": ["f[1,32,1,32]"]},
    "regions_edges": {"make": OffOnlyAtTheEdges, "inputs": ["i64[1,32]<97"]},
}
