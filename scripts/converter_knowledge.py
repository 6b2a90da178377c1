"""What the installed coreai-torch lowers, decomposes, folds and drops, as data for rules.

    python scripts/converter_knowledge.py            writes rules/converters/coreai-torch-VERSION.yaml
    python scripts/converter_knowledge.py --check    exits 1 if the file there says otherwise

Run it again when a version appears (it needs `expecttest`, which the samples of torch import). Three sources, none of them written by hand:
- the converter's own tables: what it lowers, what it keeps whole, what it strips;
- torch's sample inputs for its ops, each exported, decomposed with the converter's table and looked at: which
  aten ops of an exported program end in one that has no lowering, always or for some arguments;
- small programs that are converted, to see what becomes of a pattern.
"""
import argparse
import logging
import re
import signal
import sys
import types
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import coreai_torch
import torch
from coreai_torch import _aten_to_core, _custom_to_core, _decomp
from torch.testing._internal.common_methods_invocations import op_db

SAMPLES = 2
# Families that models on devices do not use; most of torch's samples are theirs.
LEFT_OUT = ("linalg.", "special.", "fft.", "masked.", "signal.", "sparse", "jiterator", "cauchy", "nn.functional.ctc")
SECONDS = 60
STRIPPED = [
    "aten._assert_async.msg", "aten._assert_scalar.default", "aten._assert_tensor_metadata.default",
    "aten.sym_constrain_range.default", "aten.sym_constrain_range_for_size.default",
]


def lowered():
    return sorted("aten." + key for key in _aten_to_core._aten_to_core_resolver if "." in key)


def kept():
    return sorted(str(op) for op in _decomp._COMPOSITE_OPS)


class Call(torch.nn.Module):
    """One op with everything but its tensors fixed."""

    def __init__(self, op, sample):
        super().__init__()
        self.op, self.sample = op, sample

    def forward(self, *tensors):
        given = iter(tensors)

        def fill(value):
            if isinstance(value, torch.Tensor):
                return next(given)
            if isinstance(value, (list, tuple)):
                return type(value)(fill(v) for v in value)
            return value

        args = [fill(v) for v in [self.sample.input, *self.sample.args]]
        return self.op(*args, **{k: fill(v) for k, v in self.sample.kwargs.items()})


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors(v)]
    return []


def targets(program):
    return [str(n.target) for n in program.graph.nodes if n.op == "call_function" and str(n.target).startswith("aten.")]


class Late(Exception):
    pass


def late(*_):
    raise Late


def one(info, sample, given, fine, table):
    """The op that a sample exports to, and what that ends in; nothing where it is not one op, or takes too long."""
    try:
        signal.alarm(SECONDS)
        program = torch.export.export(Call(info.op, sample), tuple(given), strict=False)
        own = set(targets(program)) - set(STRIPPED)
        if len(own) != 1 or own <= fine:
            return None  # of several ops, whose fault it is would be a guess
        return own.pop(), sorted(set(targets(program.run_decompositions(table))) - fine)
    except (Late, Exception):
        return None
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.alarm(0)
        signal.signal(signal.SIGALRM, late)


# Overloads that torch's samples do not reach, and models do.
MORE = [
    lambda x: x.var(-1), lambda x: x.std(-1), lambda x: torch.var_mean(x, -1), lambda x: torch.std_mean(x, -1),
    lambda x: x % 3.0, lambda x: x.squeeze(0), lambda x: torch.nn.functional.elu(x), lambda x: x.diagonal(),
]


def more(fine, table):
    for function in MORE:
        sample = types.SimpleNamespace(input=torch.ones(1, 8), args=(), kwargs={})
        seen = one(types.SimpleNamespace(op=function), sample, [sample.input], fine, table)
        if seen:
            yield seen


def measured():
    """aten op of an exported program -> list of what each sample ended in without a lowering."""
    fine = set(lowered()) | set(kept()) | set(STRIPPED)
    table = coreai_torch.get_decomp_table()
    found = {}
    signal.signal(signal.SIGALRM, late)
    for info in op_db:
        if torch.float32 not in info.dtypes or info.name.startswith(LEFT_OUT):
            continue
        try:
            samples = list(info.sample_inputs("cpu", torch.float32, requires_grad=False))
        except Exception:
            continue
        step = max(1, len(samples) // SAMPLES)
        for sample in samples[::step][:SAMPLES]:
            given = tensors([sample.input, *sample.args, list(sample.kwargs.values())])
            if not given or any(t.numel() == 0 for t in given):
                continue
            seen = one(info, sample, given, fine, table)
            if seen:
                found.setdefault(seen[0], []).append(seen[1])
    for op, ends in more(fine, table):
        found.setdefault(op, []).append(ends)
    return found


def without_decomposition():
    """aten overloads that nothing decomposes and nothing lowers: they stay as they are and are refused."""
    known = set(lowered()) | set(kept()) | set(STRIPPED)
    table = {str(op) for op in coreai_torch.get_decomp_table()}
    names = []
    for packet in sorted(set(dir(torch.ops.aten))):
        if packet.startswith("__"):
            continue
        op = getattr(torch.ops.aten, packet)
        for overload in getattr(op, "overloads", list)():
            target = getattr(op, overload)
            name = str(target)
            schema = target._schema
            if name in known or name in table or overload.endswith("out") or schema.is_mutable:
                continue
            if any(str(r.type) != "Tensor" and "Tensor" not in str(r.type) for r in schema.returns) or not schema.returns:
                continue
            try:
                if torch._C._dispatch_has_kernel_for_dispatch_key(target.name(), "CompositeImplicitAutograd"):
                    continue
            except RuntimeError:
                continue  # an op of the interpreter, with no kernel at all
            if re.search(r"backward|lift|_copy(\.|$)|_foreach|_fused|_cudnn|miopen|mkldnn|mps|sparse|_nested|_jagged|_cslt|_sobol|quantized|fbgemm|_test|_embedding_bag|_thnn", name):
                continue
            names.append(name)
    return sorted(names)


# ---- what becomes of patterns ---------------------------------------------------------------------

X = torch.ones(2, 8).half()
PATTERNS = {
    "cast to i32 and back": (lambda x: (x * 2).to(torch.int32).to(x.dtype), r"coreai\.cast", "folded away"),
    "cast to u8 and back": (lambda x: (x * 2).to(torch.uint8).to(x.dtype), r"coreai\.cast", "folded away"),
    "two transposes that cancel": (lambda x: x.t().t() * 2, r"coreai\.transpose", "folded away"),
    "add with alpha 3": (lambda x: torch.add(x, x * 2, alpha=3), r"dense<3\.0", "dropped"),
    "sub with alpha 0.5": (lambda x: torch.sub(x, x * 2, alpha=0.5), r"dense<5\.0", "dropped"),
    "arange(0, 7, 0.7) in f32": (lambda x: x[:, :1] + torch.arange(0, 7, 0.7), r"7\.000000e-01|0\.7[^0-9]|0\.69999", "taken through f16"),
    "floor": (lambda x: x.floor(), r"floor_divide", "a floor division by 1", True),
    "ceil": (lambda x: x.ceil(), r"floor_divide", "a floor division by 1, signs turned", True),
    "trunc": (lambda x: x.trunc(), r"floor_divide", "a floor division by 1 of the absolute value", True),
    "clamp with a bound of 1e-12 in f16": (lambda x: x.clamp(min=1e-12), r"dense<0\.0", "the bound becomes 0.0", True),
    "a causal mask by arange": (lambda x: x + (torch.arange(8) > 3) * 1.0, r"greater", "folded away"),
    "topk": (lambda x: x.topk(2)[0], r"coreai\.sort", "a sort, and slices", True),
}


def pattern(function):
    class One(torch.nn.Module):
        def forward(self, x):
            return function(x)

    program = torch.export.export(One(), (X,), strict=False).run_decompositions(coreai_torch.get_decomp_table())
    converter = coreai_torch.TorchConverter()
    converter.add_exported_program(program, entrypoint_name="main")
    return str(converter.to_coreai())


def patterns():
    made = {}
    for name, (function, looked_for, says, *present) in PATTERNS.items():
        there = re.search(looked_for, pattern(function)) is not None
        made[name] = says if there == bool(present) else "kept"
    return made


# ---- the file -------------------------------------------------------------------------------------

def text():
    ends = measured()
    always = {op: sorted(set().union(*map(set, lists))) for op, lists in ends.items() if all(lists)}
    some = {op: sorted(set().union(*map(set, lists))) for op, lists in ends.items() if any(lists) and not all(lists)}
    good = sorted(op for op, lists in ends.items() if not any(lists))
    nothing = [op for op in without_decomposition() if op not in good and op not in some]
    lines = [
        "# What the converter does with aten ops: made by scripts/converter_knowledge.py, not by hand.",
        f"converter: coreai-torch\nversion: {coreai_torch.__version__}\ntorch: {torch.__version__.split('+')[0]}",
        "# Ops with a lowering of their own: what a decomposed program may hold.",
        "lowered:", *[f"  - {op}" for op in lowered()],
        "# Ops that its decomposition table leaves whole, because it lowers them.",
        "kept:", *[f"  - {op}" for op in kept()],
        "# Ops that are taken out before.",
        "stripped:", *[f"  - {op}" for op in STRIPPED],
        "# Ops that no table decomposes and nothing lowers.",
        "no-lowering:", *[f"  - {op}" for op in nothing],
        "# Ops that the table decomposes into one without a lowering, for every sample that was tried.",
        "ends-without-lowering:", *[f"  {op}: [{', '.join(ops)}]" for op, ops in sorted(always.items()) if op not in nothing],
        "# The same for some of the samples only: which, depends on the arguments.",
        "sometimes-without-lowering:", *[f"  {op}: [{', '.join(ops)}]" for op, ops in sorted(some.items())],
        "# Ops that were seen to decompose into ops with lowerings.",
        "decomposed:", *[f"  - {op}" for op in good],
        "# What became of small programs.",
        "patterns:", *[f"  {name}: {what}" for name, what in patterns().items()],
    ]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the file and write nothing")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    path = Path(__file__).resolve().parent.parent / "rules/converters" / f"coreai-torch-{coreai_torch.__version__}.yaml"
    made = text()
    if arguments.check:
        sys.exit(0 if path.exists() and path.read_text() == made else f"{path.name} is stale")
    path.write_text(made)
    print(f"{path.name}: {len(made.splitlines())} lines")


if __name__ == "__main__":
    main()
