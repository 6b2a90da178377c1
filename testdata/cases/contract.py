"""What a program promises its caller: types of inputs, names of outputs and functions, states, where it comes from."""
import torch
import torch.nn as nn
import torch.nn.functional as F

D, HEADS, HEAD = 64, 2, 32


class LongInput(nn.Module):
    """Indices in int64: the converted model takes si32."""

    def __init__(self):
        super().__init__()
        self.embed, self.proj = nn.Embedding(32, D), nn.Linear(D, D)

    def forward(self, ids):  # expect-case: COM018=warning; aimodel: -
        # expect-unit: gpu
        return self.proj(self.embed(ids))


class IntInput(nn.Module):
    """The workaround."""

    def __init__(self):
        super().__init__()
        self.embed, self.proj = nn.Embedding(32, D), nn.Linear(D, D)

    def forward(self, ids):  # expect-not: COM018
        # expect-unit: gpu
        return self.proj(self.embed(ids))


class UnusedInput(nn.Module):
    """A position that nothing reads."""

    def forward(self, x, position):  # expect-case: COM016=warning
        # expect-unit: gpu
        return F.relu(x) * 2.0


class KeyAndValue(nn.Module):
    """Key and value go out with equal types and the names of the last ops."""

    def __init__(self):
        super().__init__()
        self.kv_proj = nn.Linear(D, 2 * D, bias=False)

    def forward(self, x):  # expect-case: COM028=advice; pt2: -
        # expect-unit: gpu
        k, v = self.kv_proj(x).chunk(2, dim=-1)
        return k * 0.5, v * 2.0


class NamedKeyAndValue(nn.Module):
    """The workaround: names given at conversion."""

    def __init__(self):
        super().__init__()
        self.kv_proj = nn.Linear(D, 2 * D, bias=False)

    def forward(self, x):  # expect-not: COM028
        # expect-unit: gpu
        k, v = self.kv_proj(x).chunk(2, dim=-1)
        return k * 0.5, v * 2.0


class BrokenWeight(nn.Module):
    """A scale that a failed training step left behind."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor([1.0, float("nan"), 1.0, 1.0]))
        self.register_buffer("bound", torch.tensor([float("inf")]))

    def forward(self, x):
        # expect-unit: gpu
        return torch.minimum(x * self.scale, self.bound)  # expect: COM017=error


class Mixture(nn.Module):
    """Experts' weights gathered by the router's choice, two of four."""

    def __init__(self, top=2):
        super().__init__()
        self.top = top
        self.router = nn.Linear(32, 4, bias=False)
        self.up, self.down = nn.Parameter(torch.randn(4, 64, 32) * 0.1), nn.Parameter(torch.randn(4, 32, 64) * 0.1)

    def forward(self, x):
        # expect-unit: gpu
        weight, chosen = torch.topk(self.router(x).softmax(dim=-1), self.top)
        up = self.up[chosen]  # expect: GPU009=warning, GPU010=advice
        down = self.down[chosen]  # expect: GPU009=warning, GPU010=advice
        hidden = F.silu(torch.einsum("td,tkhd->tkh", x, up))
        return (torch.einsum("tkh,tkdh->tkd", hidden, down) * weight[..., None]).sum(dim=1)


class OneExpert(nn.Module):
    """Chosen before the run: no mixture for anybody."""

    def __init__(self):
        super().__init__()
        self.up = nn.Parameter(torch.randn(4, 64, 32) * 0.1)
        self.register_buffer("chosen", torch.tensor([1]))

    def forward(self, x):  # expect-not: GPU009, GPU010, GPU020
        # expect-unit: gpu
        return F.silu(torch.einsum("td,khd->tkh", x, self.up[self.chosen]))


class StateAtPosition(nn.Module):
    """A state written at a place that arrives as a number."""

    def __init__(self):
        super().__init__()
        self.register_buffer("k_cache", torch.zeros(1, 1, HEADS, 32, HEAD))
        self.register_buffer("v_cache", torch.zeros(1, 1, HEADS, 32, HEAD))

    def forward(self, q, k, v, position, mask):
        # expect-unit: gpu
        start = position.item()
        torch._check(start >= 0)
        torch._check(start + 1 <= 32)
        self.k_cache[0, :, :, start : start + 1] = k  # expect: GPU007=error
        self.v_cache[0, :, :, start : start + 1] = v  # expect: GPU007=error
        return F.scaled_dot_product_attention(q, self.k_cache[0], self.v_cache[0], attn_mask=mask)


class StateOfConvolution(nn.Module):
    """No attention: a rolling state, written at a run-time place, and one written at a fixed place."""

    def __init__(self):
        super().__init__()
        self.register_buffer("ring", torch.zeros(1, 16, 32))
        self.register_buffer("last", torch.zeros(1, 16, 4))

    def forward(self, x, position):
        # expect-unit: gpu
        start = position.item()
        torch._check(start >= 0)
        torch._check(start + 1 <= 32)
        self.ring[:, :, start : start + 1] = x  # expect: GPU007=error
        self.last[:, :, 3:4] = x
        return self.ring.sum(dim=-1) + self.last.sum(dim=-1)


class StateSequenceLast(nn.Module):
    """The Neural Engine's layout of a cache, on the GPU."""

    def __init__(self):
        super().__init__()
        self.register_buffer("k_cache", torch.zeros(1, 1, HEADS * HEAD, 1, 48))
        self.register_buffer("v_cache", torch.zeros(1, 1, HEADS * HEAD, 1, 48))

    def forward(self, q, k, v, mask):  # expect-case: GPU006=warning
        # expect-unit: gpu
        self.k_cache[0, :, :, :, 47:48] = k
        self.v_cache[0, :, :, :, 47:48] = v
        keys = self.k_cache[0].view(1, HEADS, HEAD, 48).transpose(2, 3)
        values = self.v_cache[0].view(1, HEADS, HEAD, 48).transpose(2, 3)
        return F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)


class ThreeStates(nn.Module):
    """Keys, values and one state more: engines of language models expect two."""

    def __init__(self):
        super().__init__()
        for name in ("k_cache", "v_cache"):
            self.register_buffer(name, torch.zeros(1, 1, HEADS, 32, HEAD))
        self.register_buffer("steps", torch.zeros(1, 32))

    def forward(self, q, k, v, mask):  # expect-case: COM019=warning
        # expect-unit: gpu
        self.k_cache[0, :, :, 31:32] = k
        self.v_cache[0, :, :, 31:32] = v
        self.steps[:, 31:32] = mask[0, 0, :, 31:32]
        return F.scaled_dot_product_attention(q, self.k_cache[0], self.v_cache[0], attn_mask=mask) + self.steps.sum()


class Decoder(nn.Module):
    """One function for every length, as the GPU takes it; made static for a ladder of lengths, it is not."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(D, D, bias=False), nn.Linear(D, D, bias=False)

    def forward(self, x):  # expect-case: GPU021=advice; pt2: -
        # expect-unit: gpu
        return self.down(F.relu(self.up(x)))


class Gelus(nn.Module):
    """The form by tanh, which coremltools' export path drops."""

    def forward(self, x):
        # The keyword is there in the exported program.
        return F.gelu(x, approximate="tanh") * 2.0  # expect[core-ml]: COM026=warning; mlpackage: -


class GelusExactly(nn.Module):
    """No form is named, so none is lost."""

    def forward(self, x):
        # expect-not[core-ml]: COM026
        return F.gelu(x) * 2.0


class CeilPool(nn.Module):
    """The last window hangs over the edge."""

    def forward(self, x):
        return F.avg_pool2d(x, 3, stride=2, ceil_mode=True)  # expect[core-ml]: COM023=warning


class FloorPool(nn.Module):
    """It does not."""

    def forward(self, x):  # expect-not[core-ml]: COM023
        return F.avg_pool2d(x, 3, stride=2)


class VideoNorm(nn.Module):
    """Instance norm over five dims."""

    def __init__(self):
        super().__init__()
        self.norm = nn.InstanceNorm3d(4, affine=True)

    def forward(self, x):
        return self.norm(x) * 2.0  # expect[gpu]: GPU017=error; pt2: -; aimodel: -


class ForTheUnit(nn.Module):
    """One function called `main`: the stock runtime prefers the GPU for it. In RELEASE mode no line is recorded."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(D, D, 1)

    def forward(self, x):  # expect-case: COM024=advice; pt2: -
        # expect-case: COM014=advice; pt2: -; aimodel: -; release: COM014=advice
        return F.relu(self.conv(x))


class Stale(nn.Module):
    """An asset that does not say what made it."""

    def forward(self, x):  # expect-case: COM013=error; pt2: -
        return F.relu(x) * 2.0


class Extends(nn.Module):
    """A static language model's function without those that should stand beside it; on the GPU besides."""

    def forward(self, x, past):  # expect-case: COM025=advice, COM024=advice; pt2: -
        # expect-unit: gpu
        return F.relu(x).sum() + past


class ExtendsInFull(nn.Module):
    """The whole family, and numbers that are those of the shapes."""

    def forward(self, x, past):  # expect-not: COM025
        # expect-unit: gpu
        return F.relu(x).sum() + past


class LongContext(nn.Module):
    """Keys and values that grow up to 4096."""

    def forward(self, q, k, v, past_k, past_v):  # expect-case: COM012=warning; aimodel: COM012?
        # expect-unit: gpu
        k, v = torch.cat([past_k, k], dim=2), torch.cat([past_v, v], dim=2)
        return F.scaled_dot_product_attention(q, k, v), k, v


Q, MASK = "f[1,2,1,32]", "f[1,1,1,32]"
CASES = {
    "contract_long": {"make": LongInput, "inputs": ["i64[1,8]"]},
    "contract_ok_int": {"make": IntInput, "inputs": ["i32[1,8]"]},
    "contract_unused": {"make": UnusedInput, "inputs": ["f[1,64]", "i32[1]"]},
    "contract_twins": {"make": KeyAndValue, "inputs": ["f[1,8,64]"]},
    "contract_ok_named": {"make": NamedKeyAndValue, "inputs": ["f[1,8,64]"], "names": {"output_names": ["new_key", "new_value"]}},
    "contract_main": {"make": ForTheUnit, "inputs": ["f[1,64,1,32]"], "release": True},
    "contract_stale": {"make": Stale, "inputs": ["f[4,64]"], "metadata": {"producer": None}},
    "contract_extend": {"make": Extends, "inputs": ["f[1,8,64]", "f[1,512]"], "entries": ["extend_512_8", "load_embeddings"]},
    "contract_ok_extend": {"make": ExtendsInFull, "inputs": ["f[1,8,64]", "f[1,512]"],
                           "entries": ["extend_512_8", "prompt_opt_512_8", "gather_embeddings_8", "load_embeddings"]},
    "dynamic_cache_4096": {"make": LongContext, "inputs": [Q, Q, Q, "f[1,2,31,32] x2"],
                           "dynamic": {"q": None, "k": None, "v": None, "past_k": {2: ("past", 2, 4096)}, "past_v": {2: ("past", 2, 4096)}}},
    "contract_nan": {"make": BrokenWeight, "inputs": ["f[4,4]"]},
    "moe_gathered": {"make": Mixture, "inputs": ["f[8,32]"]},
    "moe_ok_fixed": {"make": OneExpert, "inputs": ["f[8,32]"]},
    "state_position": {"make": StateAtPosition, "inputs": [Q, Q, Q, "i64[1]=3", MASK]},
    "state_ring": {"make": StateOfConvolution, "inputs": ["f[1,16,1]", "i64[1]=3"]},
    "state_sequence_last": {"make": StateSequenceLast, "inputs": [Q, "f[1,64,1,1]", "f[1,64,1,1]", "f[1,1,1,48]"]},
    "state_three": {"make": ThreeStates, "inputs": [Q, Q, Q, MASK]},
    "function_ladder": {"make": Decoder, "inputs": ["f[1,8,64]"], "dynamic": {"x": {1: ("seq", 2, 64)}},
                        "static": {"main": {'"8"': {"x": (1, 8, 64)}, '"16"': {"x": (1, 16, 64)}, '"32"': {"x": (1, 32, 64)}}}},
    "coreml_gelu_tanh": {"make": Gelus, "inputs": ["f[4,64]"], "aimodel": False},
    "coreml_ok_gelu": {"make": GelusExactly, "inputs": ["f[4,64]"], "aimodel": False},
    "coreml_pool_ceil": {"make": CeilPool, "inputs": ["f[1,4,8,8]"], "aimodel": False},
    "coreml_ok_pool": {"make": FloorPool, "inputs": ["f[1,4,8,8]"], "aimodel": False},
    "coreml_instance_norm": {"make": VideoNorm, "inputs": ["f[1,4,2,4,4]"], "aimodel": False},
}
