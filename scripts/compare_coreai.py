"""Holds anelint's reader of Core AI programs against the vendor's library, op by op.

    pip install --pre torch coreai-torch coreai-core coreai-opt
    cargo build --release --example core_ai_parsed --example dump
    python scripts/compare_coreai.py                      # exports its own programs
    python scripts/compare_coreai.py --assets DIR…        # compares assets that exist
    python scripts/compare_coreai.py --decoder FILE       # another decoder of the bytecode too: a script
                                                          # that prints the JSON described at `Reference`

For every program: names, operands, result types, constants, words, callees, regions, locations
(frames, module call stack, torch nodes) of every op, names and types of inputs and outputs,
composites. The asset (bytecode) and the library's printed forms (pretty and generic, with locations)
are all read by anelint and compared. At graph level every stored op must be in the canonical graph,
as a node or absorbed by one. Prints the counts and each difference; exit code 1 if there is any.
"""

import argparse
import collections
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
EXAMPLES = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
LISTED = 16


# -- programs ---------------------------------------------------------------------------------------
def programs():
    """Name → (module, arguments, options). Small, and each different."""
    import torch
    from torch import nn
    import torch.nn.functional as F

    torch.manual_seed(0)
    f16 = torch.float16

    def t(*shape):
        return torch.randn(*shape, dtype=f16)

    def i(*shape, high=8):
        return torch.randint(0, high, shape)

    class Fn(nn.Module):
        def __init__(self, fn):
            super().__init__()
            self.fn = fn

        def forward(self, *args):
            return self.fn(*args)

    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("cache", torch.zeros(1, 4, 16, 8, dtype=f16))
            self.q = nn.Linear(32, 32)

        def forward(self, x):
            x = self.q(x).view(1, -1, 4, 8).transpose(1, 2)
            self.cache[:, :, : x.shape[2]] = x
            return self.cache.sum(-1)

    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("a", torch.zeros(4, 8, dtype=f16))
            self.register_buffer("b", torch.zeros(4, dtype=f16))

        def forward(self, x):
            self.a.add_(x)
            self.b.copy_(self.a.sum(-1))
            return self.a * 2 + self.b[:, None]

    class Block(nn.Module):
        def __init__(self, heads=4, width=32):
            super().__init__()
            self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            b, s, c = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(b, s, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, s, c))
            return x + self.mlp(self.norm2(x))

    class Cond(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: self.a(x), lambda x: F.relu(self.b(x)), (x,))

    class Loop(nn.Module):
        def forward(self, n, x):
            from torch._higher_order_ops.while_loop import while_loop
            return while_loop(lambda n, x: n < 5, lambda n, x: (n + 1, torch.tanh(x)), (n, x))

    class Embed(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.norm = nn.Embedding(16, 8), nn.LayerNorm(8)

        def forward(self, ids):
            return self.norm(self.table(ids))

    conv = lambda *a, **k: nn.Conv2d(*a, **k)
    mask = torch.full((8, 8), float("-inf"), dtype=f16).triu(1)
    fn = {
        "add": (lambda a, b: a + b, (t(2, 3), t(3))),
        "arith": (lambda a, b: (a - b) * a / (b + 2.5), (t(2, 8), t(2, 8))),
        "tensor_scalar": (lambda a: a * torch.tensor(1.5), (t(2, 8),)),
        "pow": (lambda a: a.abs() ** 0.3 + a ** 2, (t(2, 8),)),
        "unary": (lambda a: torch.exp(a) + torch.log(a.abs() + 1) + torch.sqrt(a.abs()) + torch.erf(a), (t(2, 8),)),
        "trig": (lambda a: torch.sin(a) + torch.cos(a) + torch.tan(a) + torch.atan(a) + torch.tanh(a), (t(2, 8),)),
        "inverse_trig": (lambda a: torch.asin(a) + torch.acos(a) + torch.sinh(a) + torch.cosh(a), (t(2, 8),)),
        "hyperbolic": (lambda a: torch.asinh(a) + torch.acosh(a.abs() + 1) + torch.atanh(a), (t(2, 8),)),
        "rounding": (lambda a: torch.floor(a) + torch.round(a) + torch.ceil(a), (t(2, 8),)),
        "relu_family": (lambda a: F.relu(a) + F.relu6(a) + F.leaky_relu(a, 0.1), (t(2, 8),)),
        "silu_sigmoid": (lambda a: F.silu(a) + torch.sigmoid(a), (t(2, 8),)),
        "gelu": (lambda a: F.gelu(a) + F.gelu(a, approximate="tanh"), (t(2, 8),)),
        "hard": (lambda a: F.hardswish(a) + F.hardsigmoid(a), (t(2, 8),)),
        "softplus_mish": (lambda a: F.softplus(a) + F.mish(a), (t(2, 8),)),
        "softmax": (lambda a: torch.softmax(a, -1) + torch.softmax(a, 1, dtype=torch.float32).half(), (t(2, 4, 8),)),
        "log_softmax": (lambda a: torch.log_softmax(a, -1), (t(2, 8),)),
        "compare": (lambda a, b: torch.where(a > b, a, b) + (a == b) + (a != b) * (a <= b), (t(2, 8), t(2, 8))),
        "logic": (lambda a, b: ((a > 0) & (b > 0)) | ~(a > b), (t(2, 8), t(2, 8))),
        "bitwise": (lambda a, b: (a & b) ^ (a | b), (i(2, 8), i(2, 8))),
        "integers": (lambda a, b: a * 2 + b // 3 - b % 5, (i(2, 8), i(2, 8))),
        "any_all": (lambda a: ((a > 0).any(-1), (a > 0).all(-1)), (t(2, 8),)),
        "reduce": (lambda a: a.sum(-1) + a.mean(-1) + a.amax(-1) + a.amin(-1), (t(2, 4, 8),)),
        "reduce_keep": (lambda a: a.sum((1, 2), keepdim=True) + a.prod(-1, keepdim=True), (t(2, 4, 8),)),
        "variance": (lambda a: a.var(-1, correction=0) + a.std(-1, correction=0), (t(2, 8),)),
        "norm": (lambda a: torch.linalg.vector_norm(a, dim=-1) + F.normalize(a, dim=-1).sum(-1), (t(2, 8),)),
        "argmax": (lambda a: (a.argmax(-1), a.max(-1)), (t(2, 8),)),
        "topk": (lambda a: torch.topk(a, 3), (t(2, 8),)),
        "cumsum": (lambda a: (a.cumsum(-1), a.cumprod(1)), (t(2, 8),)),
        "matmul": (lambda a, b: a @ b, (t(2, 4, 8), t(2, 8, 4))),
        "matmul_broadcast": (lambda a, b: a @ b, (t(2, 3, 4, 8), t(8, 4))),
        "einsum": (lambda a, b: torch.einsum("bhqd,bhkd->bhqk", a, b), (t(1, 2, 4, 8), t(1, 2, 4, 8))),
        "bmm_transposed": (lambda a, b: torch.bmm(a, b.transpose(1, 2)), (t(2, 4, 8), t(2, 4, 8))),
        "reshape": (lambda a: a.view(2, -1).unsqueeze(1).squeeze(1).reshape(4, 2, -1), (t(2, 4, 8),)),
        "permute": (lambda a: a.permute(2, 0, 1).flatten(1).T, (t(2, 4, 8),)),
        "cat_stack": (lambda a, b: torch.cat([a, b], 1) + torch.stack([a, b], 1).flatten(1, 2), (t(2, 4, 8), t(2, 4, 8))),
        "split_chunk": (lambda a: a.chunk(2, -1)[0] * torch.split(a, [3, 5], -1)[1][..., :4], (t(2, 8),)),
        "slice": (lambda a: a[:, 1:3, ::2] + a[:, -2:, 1::2], (t(2, 4, 8),)),
        "expand_repeat": (lambda a: a[:, None].expand(-1, 3, -1) + a.repeat(3, 1, 1).transpose(0, 1), (t(2, 8),)),
        "pad": (lambda a: F.pad(a, (1, 2, 0, 1)), (t(1, 2, 4, 8),)),
        "pad_reflect": (lambda a: F.pad(a, (1, 2), mode="reflect"), (t(1, 2, 8),)),
        "flip_roll": (lambda a: a.flip(-1) + a.roll(2, 1), (t(2, 8),)),
        "gather": (lambda a, n: a.gather(1, n) + a.index_select(1, n[0]), (t(2, 8), i(2, 8))),
        "index": (lambda a, n: a[:, n], (t(2, 8, 4), i(3))),
        "scatter": (lambda a, n, b: a.scatter(1, n, b), (t(2, 8), i(2, 8), t(2, 8))),
        "scatter_add": (lambda a, n, b: a.scatter_add(1, n, b), (t(2, 8), i(2, 8), t(2, 8))),
        "index_put": (lambda a, n, b: a.index_put((n,), b), (t(8, 4), i(3), t(3, 4))),
        "slice_scatter": (lambda a, b: torch.slice_scatter(a, b, 1, 2, 6), (t(2, 8), t(2, 4))),
        "masked_fill": (lambda a, m: a.masked_fill(m, float("-inf")).softmax(-1), (t(2, 8), torch.rand(2, 8) > 0.5)),
        "causal": (lambda a: torch.softmax(a + mask, -1), (t(1, 2, 8, 8),)),
        "tril": (lambda a: a.tril() + a.triu(1), (t(8, 8),)),
        "arange": (lambda a: a + torch.arange(8, dtype=f16) * 0.5, (t(2, 8),)),
        "full_like": (lambda a: torch.zeros_like(a) + torch.ones_like(a) * a, (t(2, 8),)),
        "casts": (lambda a: a.float().to(torch.int32).half() + a.to(torch.bool), (t(2, 8),)),
        "clamp": (lambda a: a.clamp(-1, 1) + a.clamp(min=0.5), (t(2, 8),)),
        "sdpa": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (t(1, 2, 8, 16),) * 3),
        "sdpa_mask": (lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m, scale=0.5), (t(1, 2, 8, 16),) * 3 + (t(8, 8),)),
        "nonzero": (lambda a: torch.nonzero(a > 0), (t(2, 8),)),
        "complex": (lambda a: torch.view_as_real(torch.view_as_complex(a) * torch.view_as_complex(a)), (torch.randn(2, 4, 2),)),
        "upsample": (lambda a: F.interpolate(a, scale_factor=2) + F.interpolate(a, scale_factor=2, mode="bilinear"), (t(1, 2, 4, 4),)),
        "pool": (lambda a: F.max_pool2d(a, 2) + F.avg_pool2d(a, 2), (t(1, 2, 8, 8),)),
        "adaptive_pool": (lambda a: F.adaptive_avg_pool2d(a, 1).flatten(1), (t(1, 2, 8, 8),)),
        "pixel_shuffle": (lambda a: F.pixel_shuffle(a, 2), (t(1, 8, 4, 4),)),
    }
    cases = {name: (Fn(f), args, {}) for name, (f, args) in fn.items()}
    cases |= {
        "linear": (nn.Linear(8, 16), (t(2, 8),), {}),
        "linear_3d": (nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4, bias=False)), (t(1, 4, 8),), {}),
        "conv": (nn.Sequential(conv(3, 8, 3, stride=2, padding=1), nn.SiLU(), conv(8, 8, 3, groups=8), conv(8, 4, 1)), (t(1, 3, 16, 16),), {}),
        "conv1d": (nn.Conv1d(4, 8, 5, padding=2, dilation=2), (t(1, 4, 32),), {}),
        "conv3d": (nn.Conv3d(2, 4, 3), (t(1, 2, 6, 6, 6),), {}),
        "conv_transpose": (nn.ConvTranspose2d(4, 2, 4, stride=2, padding=1), (t(1, 4, 8, 8),), {}),
        "batch_norm": (nn.Sequential(conv(3, 4, 1), nn.BatchNorm2d(4), nn.ReLU()).eval(), (t(1, 3, 4, 4),), {}),
        "batch_norm_alone": (nn.BatchNorm2d(4).eval(), (t(1, 4, 4, 4),), {}),
        "group_norm": (nn.GroupNorm(2, 8), (t(1, 8, 4, 4),), {}),
        "instance_norm": (nn.InstanceNorm2d(4, affine=True), (t(1, 4, 8, 8),), {}),
        "layer_norm": (nn.LayerNorm(16), (t(2, 4, 16),), {}),
        "rms_norm": (nn.RMSNorm(16), (t(2, 4, 16),), {}),
        "embedding": (Embed(), (i(1, 6),), {}),
        "block": (Block(), (t(1, 8, 32),), {}),
        "block_release": (Block(), (t(1, 8, 32),), {"mode": "RELEASE"}),
        "two_blocks": (nn.Sequential(Block(), Block()), (t(1, 8, 32),), {}),
        "block_bf16": (Block(), (torch.randn(1, 8, 32),), {"dtype": torch.bfloat16}),
        "block_f32": (Block(), (torch.randn(1, 8, 32),), {"dtype": torch.float32}),
        "block_dynamic": (Block(), (t(1, 8, 32),), {"dynamic": ({1: torch.export.Dim("s", min=2, max=64)},)}),
        "block_static_shapes": (Block(), (t(1, 8, 32),), {"dynamic": ({1: torch.export.Dim("s", min=2, max=64)},), "static": {"main": {'"8"': {"x": [1, 8, 32]}, '"16"': {"x": [1, 16, 32]}}}}),
        "dynamic_batch": (nn.Sequential(conv(3, 4, 3, padding=1), nn.Flatten(), nn.Linear(256, 4)), (t(2, 3, 8, 8),), {"dynamic": ({0: torch.export.Dim("b", min=1, max=8)},)}),
        "cond": (Cond(), (t(2, 8),), {}),
        "while_loop": (Loop(), (torch.tensor(0), t(2, 8)), {}),
        "cache": (Cache(), (t(1, 4, 32),), {}),
        "counter": (Counter(), (t(4, 8),), {}),
        "lstm": (nn.LSTM(4, 8, batch_first=True), (t(1, 3, 4),), {}),
        "two_entries": (Block(), (t(1, 8, 32),), {"entries": ["prefill", "decode"]}),
        "constraints": (Block(), (t(1, 8, 32),), {"constraints": True}),
    }
    for kind in ("palettized", "quantized", "quantized_block"):
        cases[f"weights_{kind}"] = (nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)), (torch.randn(1, 64),), {"compress": kind})
    return cases


def compress(model, kind, args):
    if kind == "palettized":
        from coreai_opt.palettization import KMeansPalettizer, KMeansPalettizerConfig as Config
        tool = KMeansPalettizer(model, Config())
    else:
        from coreai_opt.quantization import Quantizer, QuantizerConfig as Config
        tool = Quantizer(model, Config())
    model = tool.prepare(args)
    return tool.finalize()


def export(name, case, folder):
    """Exports one program; gives the path of the asset."""
    import torch
    import coreai_torch
    from coreai_torch import TorchConverter

    module, args, options = case
    module = module.eval()
    if kind := options.get("compress"):
        module = compress(module, kind, args)
    elif dtype := options.get("dtype"):
        module = module.to(dtype)
        args = tuple(a.to(dtype) if a.is_floating_point() else a for a in args)
    elif name != "complex":
        module = module.half()
    with torch.no_grad():
        program = torch.export.export(module, args, dynamic_shapes=options.get("dynamic"), strict=False)
    program = program.run_decompositions(coreai_torch.get_decomp_table())
    converter = TorchConverter(mode=getattr(TorchConverter.Mode, options.get("mode", "DEBUG")))
    for entry in options.get("entries", ["main"]):
        converter.add_exported_program(program, entrypoint_name=entry)
    converted = converter.to_coreai()
    if options.get("constraints"):
        constrain(converted)
    for entry, shapes in options.get("static", {}).items():
        converted.set_static_shape_config(entry, shapes)
    path = folder / f"{name}.aimodel"
    converted.save_asset(path)
    return path


def constrain(program):
    from coreai.authoring.constraints import HardwareConstraints, HardwareBackingType
    constraints = HardwareConstraints(backing=HardwareBackingType.IO_SURFACE, alignments=[1, 1, 64, 64], interleave=[1, 1, 1])
    program.set_hardware_constraints("main", {"x": constraints})


# -- the library's view -----------------------------------------------------------------------------
def expected(path):
    """What the library says of an asset, and its printed forms."""
    from coreai.authoring import AIProgram
    program = AIProgram._load_bytecode(path / "main.mlirb")
    top = program._module._mlir_module.operation
    graphs = [graph(op.operation) for op in walk_graphs(top)]
    texts = {
        "pretty": top.get_asm(enable_debug_info=True, large_elements_limit=LISTED),
        "generic": top.get_asm(enable_debug_info=True, print_generic_op_form=True, large_elements_limit=LISTED),
        "plain": top.get_asm(enable_debug_info=False, large_elements_limit=LISTED),
    }
    return {"graphs": graphs, "texts": texts}


def walk_graphs(op):
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name == "coreai.graph":
                    yield inner
                else:
                    yield from walk_graphs(inner.operation)


def graph(op):
    attributes = {a.name: str(a.attr) for a in op.attributes}
    text = str(op.attributes["function_type"])
    ids = {}
    block = op.regions[0].blocks[0]
    for argument in block.arguments:
        ids[argument] = len(ids)
    return {
        "name": str(op.attributes["sym_name"]).strip('"'),
        "private": "priv" in attributes,
        "composite": (re.search(r'composite_declaration<"([^"]+)"', attributes.get("composite_decl", "")) or [None, None])[1],
        "inputs": [str(a.type) for a in block.arguments],
        "input_names": re.findall(r'coreai\.name = "([^"]*)"', attributes.get("arg_attrs", "")),
        "function_type": text,
        "ops": [one_op(o.operation, ids) for o in block.operations],
    }


def one_op(op, ids):
    out = {"op": op.name, "operands": [ids.get(v, -1) for v in op.operands], "results": [str(r.type) for r in op.results]}
    for result in op.results:
        ids[result] = len(ids)
    attributes = {a.name: a.attr for a in op.attributes}
    if op.name == "coreai.constant":
        out["constant"] = constant(attributes["value"])
    for key in ("approximate", "scan_op", "padding_mode", "scatter_mode", "interpolation_mode"):
        if key in attributes:
            out["word"] = word(key, str(attributes[key]))
    if "callee" in attributes:
        out["callee"] = re.search(r"@([\w.$-]+|\"[^\"]*\")", str(attributes["callee"]))[1]
    out["location"] = location(str(op.location))
    regions = []
    for region in op.regions:
        ops = []
        for block in region.blocks:
            for argument in block.arguments:
                ids[argument] = len(ids)
            ops += [one_op(o.operation, ids) for o in block.operations]
        regions.append(ops)
    if regions:
        out["regions"] = regions
    return out


def word(key, text):
    if found := re.search(r"<(\w+)>", text):
        return found[1]
    number = int(re.match(r"-?\d+", text)[0])
    words = {"scan_op": ["sum", "product", "min", "max"], "approximate": ["none", "tanh", "sigmoid"]}
    return words[key][number] if key in words else str(number)


def constant(attribute):
    import numpy
    text = str(attribute)
    if text.startswith("dense_resource"):
        return {"resource": re.match(r"dense_resource<([^>]+)>", text)[1]}
    kind = re.search(r": (tensor<.*)$", text, re.S)[1]
    shape = [int(n) for n in re.match(r"tensor<((?:\d+x)*)", kind)[1].split("x")[:-1]]
    count = math.prod(shape)
    if count > LISTED:
        return "large"
    body = text[len("dense<"): text.rindex(">", 0, text.rindex(" : tensor<"))] if count else ""
    tokens = re.findall(r"0x[0-9A-Fa-f]+|true|false|-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?", body)
    if body.startswith('"') or "complex" in kind:
        return None
    element = re.match(r"tensor<(?:\d+x)*([\w]+)", kind)[1]
    values = []
    for token in tokens:
        if token in ("true", "false"):
            values.append(float(token == "true"))
        elif token.startswith("0x") and element in ("f16", "f32", "f64"):
            kinds = {"f16": (numpy.uint16, numpy.float16), "f32": (numpy.uint32, numpy.float32), "f64": (numpy.uint64, numpy.float64)}
            bits, real = kinds[element]
            values.append(float(numpy.array([int(token, 16)], bits).view(real)[0]))
        elif token.startswith("0x"):
            return None
        else:
            values.append(float(token))
    if len(values) == 1 and count > 1:
        values *= count
    return {"values": values}


def location(text):
    """Frames (own, then callers), module call stack and torch nodes of a printed location."""
    position = 0

    def balanced(start):
        depth, i, quoted = 0, start, False
        while i < len(text):
            c = text[i]
            if quoted:
                if c == "\\":
                    i += 1
                elif c == '"':
                    quoted = False
            elif c == '"':
                quoted = True
            elif c in "<[({":
                depth += 1
            elif c in ">])}" and text[i - 1] != "-":
                depth -= 1
                if depth == 0:
                    return i + 1
            i += 1
        return len(text)

    def record(start):
        end = balanced(text.index("<", start))
        body = text[text.index("<", start) + 1: end - 1]
        own = re.match(r'loc\("((?:[^"\\]|\\.)*)":(\d+):(\d+)\)', body)
        fused, metadata = [], ""
        rest = body[own.end():] if own else body
        split = re.match(r"\s*in (?:@[\w.$]+|unit|<)", rest)
        inside = rest.find("fused with [")
        meta = -1
        if inside >= 0 and rest[:inside].count("[") == 0:
            base = start_of(body, rest, inside)
            stop = match(body, base)
            fused = items(body[base + 1: stop - 1])
            tail = body[stop:]
        else:
            tail = rest
        meta = tail.find("metadata = [")
        if meta >= 0:
            metadata = tail[meta:]
        return own, fused, metadata

    def start_of(body, rest, inside):
        return len(body) - len(rest) + inside + len("fused with ")

    def match(body, start):
        depth, i, quoted = 0, start, False
        while i < len(body):
            c = body[i]
            if quoted:
                if c == "\\":
                    i += 1
                elif c == '"':
                    quoted = False
            elif c == '"':
                quoted = True
            elif c in "<[({":
                depth += 1
            elif c in ">])}" and body[i - 1] != "-":
                depth -= 1
                if depth == 0:
                    return i + 1
            i += 1
        return len(body)

    def items(body):
        found, depth, quoted, begin = [], 0, False, 0
        for i, c in enumerate(body):
            if quoted:
                quoted = not (c == '"' and body[i - 1] != "\\")
            elif c == '"':
                quoted = True
            elif c in "<[({":
                depth += 1
            elif c in ">])}" and body[i - 1] != "-":
                depth -= 1
            elif c == "," and depth == 0:
                found.append(body[begin:i].strip())
                begin = i + 1
        last = body[begin:].strip()
        return found + ([last] if last else [])

    def frame(own):
        if own is None or own[1] == "-" or int(own[2]) == 0:
            return []
        return [[own[1], int(own[2]), int(own[3])]]

    if "#debuginfo.location<" not in text and not text.startswith("<"):
        inner = re.match(r"loc\(fused\[(.*)\]\)$", text, re.S)
        if not inner:
            own = re.search(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)', text)
            return {"frames": frame(own), "call_stack": [], "torch": []}
        parts = items(inner[1])
        return location(parts[0])
    own, fused, metadata = record(0)
    frames = frame(own)
    for entry in fused:
        if "metadata = [" not in entry:
            frames += frame(re.search(r'loc\("((?:[^"\\]|\\.)*)":(\d+):(\d+)\)', entry))
    stack = re.search(r'"call_stack": \[([^\]]*)\]', metadata)
    torch = re.findall(r"identifiers = \[([^\]]*)\]", metadata)
    strings = lambda s: re.findall(r'"((?:[^"\\]|\\.)*)"', s)
    return {"frames": frames, "call_stack": strings(stack[1]) if stack else [], "torch": [n for group in torch for n in strings(group)]}


# -- comparing --------------------------------------------------------------------------------------
class Comparison:
    def __init__(self):
        self.counts = collections.Counter()
        self.differences = []

    def differ(self, where, what, ours, theirs):
        self.differences.append(f"{where}: {what}: anelint {ours!r}, library {theirs!r}")
        print("DIFFERENCE", self.differences[-1][:1200], flush=True)

    def graphs(self, where, ours, theirs, locations=True):
        if [g["name"] for g in ours] != [g["name"] for g in theirs]:
            return self.differ(where, "graphs", [g["name"] for g in ours], [g["name"] for g in theirs])
        for a, b in zip(ours, theirs):
            at = f"{where} @{b['name']}"
            self.counts["graphs"] += 1
            self.equal(at, "private", a["private"], b["private"])
            self.equal(at, "composite", (a["composite"] or {}).get("name"), b["composite"])
            self.equal(at, "inputs", [types(i["type"]) for i in a["inputs"]], [types(i) for i in b["inputs"]])
            self.equal(at, "input names", [i["name"] for i in a["inputs"] if i["name"]], b["input_names"])
            ids = Ids()
            ids.define(a["argument_names"], len(a["inputs"]))
            self.ops(at, a["ops"], b["ops"], ids, locations)

    def ops(self, where, ours, theirs, ids, locations):
        if [o["op"] for o in ours] != [o["op"] for o in theirs]:
            return self.differ(where, "ops", [o["op"] for o in ours], [o["op"] for o in theirs])
        for number, (a, b) in enumerate(zip(ours, theirs)):
            at = f"{where} op {number} {b['op']}"
            self.counts["ops"] += 1
            self.counts["operands"] += len(b["operands"])
            self.counts["results"] += len(b["results"])
            self.equal(at, "operands", [ids.number(v) for v in a["operands"]], b["operands"])
            ids.define(a["names"], len(b["results"]))
            self.equal(at, "results", [types(r) for r in a["results"]], [types(r) for r in b["results"]])
            self.equal(at, "word", a.get("word"), b.get("word"))
            self.equal(at, "callee", a.get("callee"), b.get("callee"))
            if "constant" in b and b["constant"] is not None:
                self.counts["constants"] += 1
                self.constant(at, a.get("constant"), b["constant"])
            if locations:
                self.counts["locations"] += 1
                for key in ("frames", "call_stack", "torch"):
                    self.equal(at, key, (a["location"] or {}).get(key) or [], b["location"][key])
            mine, other = a.get("regions", []), b.get("regions", [])
            if len(mine) != len(other):
                self.differ(at, "regions", len(mine), len(other))
                continue
            for inner, outer, arguments in zip(mine, other, a.get("region_arguments", [])):
                ids.define(arguments, len(arguments))
                self.ops(at, inner, outer, ids, locations)

    def constant(self, where, ours, theirs):
        if isinstance(theirs, dict) and "resource" in theirs:
            if not (isinstance(ours, dict) and (ours.get("resource") == theirs["resource"] or theirs["resource"] == "__elided__")):
                if theirs["resource"] != "__elided__":
                    self.differ(where, "constant", ours, theirs)
        elif theirs == "large":
            pass
        else:
            mine = [float(v) for v in (ours or {}).get("values", [])] if isinstance(ours, dict) else ours
            same = isinstance(mine, list) and len(mine) == len(theirs["values"]) and all(
                x == y or (math.isnan(x) and math.isnan(y)) or abs(x - y) <= 1e-5 * abs(y) for x, y in zip(mine, theirs["values"]))
            if not same:
                self.differ(where, "constant", ours, theirs)

    def equal(self, where, what, ours, theirs):
        if ours != theirs:
            self.differ(where, what, ours, theirs)

    def canonical(self, where, dump, theirs):
        """Every stored op is a node of the canonical graph, or absorbed by one."""
        skipped = {"coreai.constant", "coreai.create_token", "coreai.join_token", "coreai.output", "coreai.yield", "coreai.condition"}

        def spellings(ops):
            for op in ops:
                if op["op"] not in skipped:
                    yield "composite" if op["op"] == "coreai.invoke" and op["callee"] in composites else op["op"]
                if op["op"] != "coreai.scatter_nd":
                    for region in op.get("regions", []):
                        yield from spellings(region)

        composites = {g["name"] for g in theirs if g["composite"]}
        functions = {}
        for function in dump["functions"]:
            name = function["name"].split("/")[0]
            bag = functions.setdefault(name, collections.Counter())
            for op in function["ops"]:
                for spelling in [s["spelling"] for s in op.get("stored", [])] or [op["spelling"]]:
                    bag["composite" if spelling.startswith("composite.") else authored(spelling)] += 1
        for graph in theirs:
            bag = collections.Counter(spellings(graph["ops"]))
            self.counts["stored ops found in the canonical graph"] += sum(bag.values())
            mine = functions.get(graph["name"], collections.Counter())
            # An op shared by two keepers may be listed twice, never left out.
            missing = bag - mine
            if missing:
                self.differ(f"{where} @{graph['name']}", "missing in the canonical graph", dict(missing), {})


def authored(stored):
    """The name that the library prints for a stored one."""
    base = re.sub(r"_v\d+$", "", stored)
    family, _, name = base.rpartition(".")
    if family in ("udml", "debuginfo", "serialization", "coreai", "coreaix"):
        return base
    prefix = {"": "coreai.", "ax": "coreaix."}.get(family, "coreai.")
    if not family and name.startswith("broadcasting_"):
        prefix, name = "coreai.decomposable.broadcasting_", name.removeprefix("broadcasting_")
    return prefix + re.sub(r"^logical_(and|or|xor)$", r"\1", name)


class Reference:
    """Holds the parsed form against another decoder of the bytecode, run as `FILE --compact ASSET`. It
    prints `graphs`, each with `name`, `namespace`, `visibility`, `inputs`, `outputs` (`name`, type) and
    `ops`: `name` (`aicode.` and the stored name), `operands` (ids), `results` (`id`, `type`), `constant`,
    `attributes`, `loc` (`files`, `call_stack`, `torch_ops`) and `regions`."""

    # Ops whose regions run; those of any other are reference bodies.
    BODIES = ("controlflow.", "dataflow.isolated_group", "primitive.scatter_nd")
    ELEMENTS = {"bool": "i1", "bfloat16": "bf16", "tfloat32": "tf32", "float8E8M0FN": "f8E8M0FNU"}

    def __init__(self, decoder, comparison):
        self.decoder, self.comparison, self.counts = decoder, comparison, comparison.counts

    def hold(self, asset):
        done = subprocess.run([sys.executable, self.decoder, "--compact", asset], capture_output=True, text=True)
        out, err = run("core_ai_parsed", asset)
        if not done.stdout or not out:
            return self.comparison.differ(asset.name, "reading", err.strip(), done.stderr.strip())
        ours, theirs = json.loads(out)["graphs"], json.loads(done.stdout)["graphs"]
        where = f"decoder {asset.name}"
        self.comparison.equal(where, "graphs", [g["name"] for g in ours], ["::".join(g.get("namespace", []) + [g["name"]]) for g in theirs])
        for a, b in zip(ours, theirs):
            at = f"{where} @{a['name']}"
            self.comparison.equal(at, "private", a["private"], b["visibility"] == "private")
            for side in ("inputs", "outputs"):
                self.comparison.equal(at, side, [(p["name"], plain(p["type"])) for p in a[side]],
                                      [(p["name"] or "", self.type(p)) for p in b[side]])
            mine, other = Ids(), {}
            mine.define(a["argument_names"], len(a["inputs"]))
            for port in b["inputs"]:
                other[port["id"]] = len(other)
            self.ops(at, a["ops"], b["ops"], mine, other)
        self.counts["assets held against the decoder"] += 1

    def ops(self, where, ours, theirs, mine, other):
        names = [o["name"].split(".", 1)[1] for o in theirs]
        self.comparison.equal(where, "ops", [o["stored"] for o in ours], names)
        for number, (a, b, name) in enumerate(zip(ours, theirs, names)):
            at = f"{where} op {number} {name}"
            equal = lambda what, x, y: self.comparison.equal(at, what, x, y)
            self.counts["ops held against the decoder"] += 1
            equal("operands", [mine.number(v) for v in a["operands"]], [other.get(v, -1) for v in b["operands"]])
            mine.define(a["names"], len(b["results"]))
            for result in b["results"]:
                other[result["id"]] = len(other)
            equal("results", [plain(t) for t in a["results"]], [self.type(r["type"]) for r in b["results"]])
            theirs_of = b.get("attributes", {})
            if "callee" in theirs_of:
                equal("callee", a.get("callee"), theirs_of["callee"]["symbol"])
            self.constant(at, a.get("constant"), b.get("constant"))
            place, loc = a["location"] or {}, b.get("loc") or {}
            # The decoder lists a frame once that calls twice (a Sequential in a Sequential).
            once = lambda frames: [f for at, f in enumerate(frames) if f[1] and f[0] not in ("", "-") and f not in frames[:at]]
            equal("frames", once(place.get("frames") or []), once(loc.get("files", [])))
            equal("call_stack", place.get("call_stack") or [], loc.get("call_stack") or [])
            equal("torch", place.get("torch") or [], loc.get("torch_ops") or [])
            if not name.startswith(self.BODIES):
                continue
            regions = b.get("regions", [])
            equal("regions", len(a.get("regions", [])), len(regions))
            for inner, arguments, region in zip(a.get("regions", []), a.get("region_arguments", []), regions):
                block = region["blocks"][0]
                # A combiner is isolated: its values are numbered anew.
                own, outer = (Ids(), {}) if name.startswith("primitive.") else (mine, other)
                own.define(arguments, len(arguments))
                for argument in block["args"]:
                    outer[argument["id"]] = len(outer)
                self.ops(at, inner, block["ops"], own, outer)

    def constant(self, where, ours, theirs):
        if not isinstance(theirs, dict):
            return
        self.counts["constants held against the decoder"] += 1
        if "resource" in theirs:
            self.comparison.equal(where, "resource", (ours.get("resource"), ours.get("length")), (theirs["resource"], theirs["length"]))
        elif "values" in theirs and isinstance(ours, dict) and "values" in ours:
            number = lambda v: float(v) if not isinstance(v, str) else float(v.replace("Infinity", "inf"))
            mine, other = [[number(v) for v in list_ if not isinstance(v, list)] for list_ in (ours["values"], theirs["values"])]
            if len(other) == 1 < len(mine):
                other *= len(mine)
            same = len(mine) == len(other) and all(x == y or x != x and y != y or abs(x - y) <= 1e-6 * abs(y) for x, y in zip(mine, other))
            if not same:
                self.comparison.differ(where, "constant", ours, theirs)

    def type(self, of):
        kind = of["kind"]
        if kind == "handle":
            return f"handle<{self.type(of['inner'])}>"
        if kind != "tensor":
            return kind
        element = of["dtype"] if isinstance(of["dtype"], str) else str(of["dtype"])
        part = element.removeprefix("complex_")
        if part != element:
            short = f"complex<{part.replace('float', 'f')}>"
            return f"tensor<{'x'.join([*('?' if n is None else str(n) for n in of['shape']), short])}>"
        short = self.ELEMENTS.get(element)
        if not short:
            short = re.sub(r"^sint", "si", re.sub(r"^uint", "ui", re.sub(r"^float", "f", element)))
        return f"tensor<{'x'.join([*('?' if n is None else str(n) for n in of['shape']), short])}>"


def plain(text):
    """A printed type without the encoding of its tensor, as `Reference.type` writes it."""
    text = re.sub(r"\s+", "", text).lstrip("!").removeprefix("coreai.")
    return re.sub(r"(tensor<[^,>]*(?:<[^>]*>)?),.*?>(?=>*$)", r"\1>", text)


class Ids:
    """Numbers values in order of definition, whatever their printed names are."""

    def __init__(self):
        self.names, self.next = {}, 0

    def number(self, name):
        base, _, index = name.partition("#")
        return self.names.get(base, -1) + int(index or 0) if base in self.names else -1

    def define(self, names, results):
        for offset, name in enumerate(names):
            # Results that share one printed name are told apart by `#index`.
            if name not in names[:offset]:
                self.names[name] = self.next + offset
        self.next += results


def types(text):
    text = re.sub(r"\s+", "", text)
    return re.sub(r",#coreai\.sparse[^>]*>+", ",sparse>", re.sub(r",sparse\w*>", ",sparse>", text))


def run(example, *paths):
    for profile in ("release", "debug"):
        program = EXAMPLES / profile / "examples" / example
        if program.exists():
            break
    done = subprocess.run([program, *paths], capture_output=True, text=True)
    return done.stdout, done.stderr


def compare(asset, view, comparison, folder):
    name = asset.name.removesuffix(".aimodel")
    out, err = run("core_ai_parsed", asset)
    if not out:
        return comparison.differ(name, "reading", err.strip(), None)
    comparison.graphs(name, json.loads(out)["graphs"], view["graphs"])
    for form, text in view["texts"].items():
        path = folder / f"{name}.{form}.mlir"
        path.write_text(text)
        out, err = run("core_ai_parsed", path)
        if not out:
            comparison.differ(f"{name} {form}", "reading", err.strip(), None)
            continue
        comparison.graphs(f"{name} {form}", json.loads(out)["graphs"], view["graphs"], locations=form != "plain")
        comparison.counts[f"{form} texts"] += 1
    out, err = run("dump", "--json", asset)
    comparison.canonical(name, json.loads(out), view["graphs"])
    comparison.counts["assets"] += 1
    print(name, "compared", len(comparison.differences), "differences so far", file=sys.stderr, flush=True)


def isolated(work):
    """Runs `work` in a process of its own: the converter can abort. Gives its JSON."""
    with tempfile.NamedTemporaryFile("r+") as file:
        child = os.fork()
        if child == 0:
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                file.write(json.dumps(work()))
                file.flush()
            except BaseException as error:  # noqa: BLE001
                file.seek(0)
                file.write(json.dumps({"error": f"{type(error).__name__}: {error}"[:300], "trace": traceback.format_exc()[-1500:]}))
                file.flush()
            os._exit(0)
        os.waitpid(child, 0)
        file.seek(0)
        text = file.read()
        return json.loads(text) if text else {"error": "the converter aborted the process"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--assets", nargs="*", type=Path)
    parser.add_argument("--decoder", type=Path, help="another decoder of the bytecode, held against too")
    parser.add_argument("--only")
    parser.add_argument("--keep", type=Path, help="keep the exported assets here")
    arguments = parser.parse_args()
    comparison, refused = Comparison(), {}
    reference = arguments.decoder and Reference(arguments.decoder, comparison)
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        texts = Path(scratch)
        if arguments.assets:
            for asset in arguments.assets:
                view = isolated(lambda: expected(asset))
                if "error" in view:
                    refused[asset.name] = view["error"]
                    continue
                compare(asset, view, comparison, texts)
                if reference:
                    reference.hold(asset)
        else:
            import torch
            torch.set_num_threads(1)
            import coreai_torch  # noqa: F401

            for name, case in programs().items():
                if arguments.only and arguments.only not in name:
                    continue

                def work():
                    return expected(export(name, case, folder))

                view = isolated(work)
                if "error" in view:
                    refused[name] = view["error"]
                    continue
                compare(folder / f"{name}.aimodel", view, comparison, texts)
                if reference:
                    reference.hold(folder / f"{name}.aimodel")
    for name, error in refused.items():
        print("not exported:", name, error)
    print(", ".join(f"{count} {what}" for what, count in comparison.counts.items()))
    print(f"{len(comparison.differences)} differences")
    sys.exit(bool(comparison.differences))


if __name__ == "__main__":
    main()
