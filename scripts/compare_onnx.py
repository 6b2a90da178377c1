"""Hold `anelint dump` against the onnx package: node lists, domains, inputs, outputs, attributes, and the
types of results against `onnx.shape_inference`.

    python scripts/compare_onnx.py BINARY [FOLDER_OR_FILE…] [--node-tests] [--stripped]

Folders are searched for `.onnx` files. `--node-tests` adds the models of onnx's own backend node tests, made in
memory. `--stripped` takes away what a model declares of its inner values and outputs first, so that every type in
the dump is an inferred one.

A difference is printed and makes the exit code 1. Sizes that anelint does not infer are counted by themselves,
as are those that the onnx package does not infer and anelint does.

Needs: pip install onnx pyyaml.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnx.inliner
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
DIALECT = yaml.safe_load((ROOT / "rules/dialects/onnx.yaml").read_text())["ops"]

DTYPES = {
    1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 8: "string", 9: "bool", 10: "f16",
    11: "f64", 12: "u32", 13: "u64", 14: "complex64", 15: "complex128", 16: "bf16", 17: "f8e4m3", 18: "f8e4m3",
    19: "f8e5m2", 20: "f8e5m2", 21: "u4", 22: "i4", 23: "f4e2m1", 24: "f8e8m0", 25: "u2", 26: "i2",
}  # fmt: skip

# Attributes that the reader resolves into others, with what it makes of them.
RESOLVED = {
    "auto_pad": "pads",
    "num_outputs": "sizes",
    "upper": "the op",
    "transA": "transpose_a or the op",
    "transB": "transpose_b or the op",
    "noop_with_empty_axes": "the op",
    "output_shape": "the result",
    "paddings": "pads",
    "height_scale": "scale",
    "width_scale": "scale",
}


class Outcome:
    """What one run found."""

    def __init__(self):
        self.models = 0
        self.nodes = 0
        self.attributes = 0
        self.differences = []
        self.unknown_ops = collections.Counter()
        self.sizes = collections.Counter()
        self.silent = collections.Counter()


def shown(node):
    """What the reader calls a node."""
    return node.name or next((o for o in node.output if o), "")


def spelling(node):
    domain = "" if node.domain == "ai.onnx" else node.domain
    return f"{domain}.{node.op_type}" if domain else node.op_type


def graphs(graph, name):
    """The graph and those nested in it, with the names that the reader gives them."""
    yield name, graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                word = attribute.name.removesuffix("_branch")
                yield from graphs(attribute.g, f"{shown(node)}/{word}")


def types(graph, known):
    """Name → (element type, dims or None) as the onnx package tells them."""
    for info in [*graph.input, *graph.value_info, *graph.output]:
        if not info.type.HasField("tensor_type"):
            continue
        tensor = info.type.tensor_type
        dims = None
        if tensor.HasField("shape"):
            dims = []
            for dim in tensor.shape.dim:
                kind = dim.WhichOneof("value")
                dims.append(dim.dim_value if kind == "dim_value" else dim.dim_param or None)
        known[info.name] = (tensor.elem_type, dims)
    return known


def number(value):
    if isinstance(value, str):
        return {"inf": numpy.inf, "-inf": -numpy.inf, "NaN": numpy.nan}.get(value, value)
    return value


def same(a, b):
    """Whether two settings are one: an f32 is printed as the number that was meant."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    a, b = number(a), number(b)
    if isinstance(a, bool) or isinstance(b, bool):
        return a is not None and b is not None and bool(a) == bool(b)
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b or numpy.float32(a) == numpy.float32(b) or (a != a and b != b)
    return a == b


def attribute_fits(node, attribute, op, rank):
    """Whether the dump holds a stored attribute; None if the reader resolves it into another."""
    value = onnx.helper.get_attribute_value(attribute)
    if attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
        return None
    if attribute.type == onnx.AttributeProto.TENSOR:
        if value.data_type == onnx.TensorProto.STRING:
            return None
        value = onnx.numpy_helper.to_array(value).astype(numpy.float64).reshape(-1).tolist()
        value = value[0] if len(value) == 1 else value
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, (list, tuple)) or hasattr(value, "append"):
        value = [v.decode(errors="replace") if isinstance(v, bytes) else v for v in value]
    entry = DIALECT.get(spelling(node), {})
    canonical = entry.get("args", {}).get(attribute.name, attribute.name)
    held = op["attributes"]
    # An attribute of an early opset that later ones feed as a tensor is an operand.
    if any(operand["name"] == canonical for operand in op["operands"]) and canonical not in held:
        return None
    if canonical not in held:
        if attribute.name in RESOLVED or canonical in entry.get("set", {}):
            return None
        if canonical in ("alpha", "beta") and op["op"] in ("addmm", "matmul", "linear") and value == 1.0:
            return None
        # One axis as the list of those from it on; equal to what the op means by itself.
        if attribute.name == "axis" and "axes" in held:
            first = value + rank if rank is not None and value < 0 else value
            wanted = [first] if op["op"] == "l2_norm" else list(range(first, rank or first + 1))
            return held["axes"] == wanted
        if op["op"] == "embedding" and attribute.name == "axis":
            return value == 0
        if op["op"] == "slice" and attribute.name == "axes" and "begin" in held:
            return None
        return op["op"] == "identity" or op["op"].startswith("upsample")
    got = held[canonical]
    if canonical == "dtype":
        return got == DTYPES.get(value, got)
    if same(value, got):
        return True
    # Axes are counted from the front; a list over one axis is one number.
    wide = rank + (len(value) if isinstance(value, list) and op["op"] == "unsqueeze" else 0) if rank is not None else None
    if op["op"] in ("one_hot", "stack") and wide is not None:
        wide += 1

    def front(n):
        return n + wide if wide is not None and isinstance(n, int) and n < 0 else n

    values = [front(n) for n in value] if isinstance(value, list) else front(value)
    if same(values, got) or (isinstance(values, list) and len(values) == 1 and same(values[0], got)):
        return True
    # Slices are clipped to the size, resized over the spatial axes only, padded on every axis.
    return canonical in ("begin", "end", "scale", "size", "pads", "step", "axis", "sizes", "kernel") and op["op"] in (
        "slice",
        "pad",
        "resize",
        "split",
    ) or op["op"].startswith("upsample")


def compare_graph(name, graph, outer, function, outcome, label):
    """One graph against one function of the dump."""
    def differ(text):
        outcome.differences.append(f"{label}: {name}: {text}")

    known = types(graph, dict(outer))
    constants = {o for node in graph.node if spelling(node) == "Constant" for o in node.output}
    constants |= {tensor.name for tensor in graph.initializer}
    constants |= {tensor.values.name for tensor in graph.sparse_initializer}
    expected = [node for node in graph.node if spelling(node) != "Constant"]
    by_key = collections.defaultdict(list)
    for node in expected:
        by_key[(shown(node), spelling(node))].append(node)
    ids = {}
    values = collections.defaultdict(list)
    for op in function["ops"]:
        if op["implicit"]:
            ids[op["id"]] = ("implicit", op)
            continue
        parts = [(p["node"], p["spelling"]) for p in op.get("stored") or []] or [(op["node"], op["spelling"])]
        nodes = []
        for part in parts:
            if not by_key[part]:
                differ(f"the dump has `{part[0]}` ({part[1]}), the model has not")
                continue
            nodes.append(by_key[part].pop(0))
        ids[op["id"]] = (nodes, op)
    for (node, op_type), left in by_key.items():
        for _ in left:
            differ(f"`{node}` ({op_type}) is missing")
    names = {}
    for constant in function["constants"]:
        names[(constant["id"], 0)] = constant["node"]
    for at, source in enumerate(function["inputs"]):
        names[("input", at)] = source["name"]
    inputs = {source["name"] for source in function["inputs"]}
    produced = set()
    for key, (nodes, op) in ids.items():
        if nodes == "implicit" or not nodes:
            continue
        last = nodes[-1] if len(nodes) == 1 else next(
            (n for n in nodes if not any(o in m.input for m in nodes for o in n.output if o)), nodes[0]
        )
        produced.update(o for n in nodes for o in n.output)
        for index, output in enumerate(last.output):
            names[(key, index)] = output
            values[output].append(op["results"][index] if index < len(op["results"]) else None)
        if len(op["results"]) != len(last.output):
            differ(f"`{op['node']}` has {len(op['results'])} results, not {len(last.output)}")
    for key, (nodes, op) in ids.items():
        if nodes == "implicit" or not nodes:
            continue
        outcome.nodes += len(nodes)
        if op["op"] == "unknown":
            outcome.unknown_ops[op["spelling"]] += 1
        inner = {o for n in nodes for o in n.output}
        wanted = [i for n in nodes for i in n.input if i and i not in inner]
        # What nested graphs take from around them are operands too.
        nested = [a.g for n in nodes for a in n.attribute if a.type == onnx.AttributeProto.GRAPH]
        captured = {i for g in nested for _, s in graphs(g, "") for m in s.node for i in m.input}
        captured |= {o.name for g in nested for o in g.output}
        got = []
        for operand in op["operands"]:
            node, result = operand["from"]
            if ids.get(node, ("",))[0] == "implicit":
                node, result = ids[node][1]["operands"][0]["from"]
            name_ = names.get((node, result))
            got.append(name_ if name_ is not None else ("input", node))
        for i in set(wanted):
            is_constant = i in constants or i in outer.get("constants", ())
            is_input = i in inputs
            if i not in got and not is_constant and not (is_input and any(isinstance(g, tuple) for g in got)):
                differ(f"`{op['node']}` does not use `{i}`")
        for g in got:
            if isinstance(g, str) and g and g not in wanted and g not in captured:
                differ(f"`{op['node']}` uses `{g}`, the model's node does not")
        if len(nodes) == 1:
            first = known.get(nodes[0].input[0]) if nodes[0].input else None
            if first is None and nodes[0].input and nodes[0].input[0] in constants:
                first = None
            rank = len(first[1]) if first and first[1] is not None else None
            if rank is None and op["results"] and op["results"][0]["shape"] is not None:
                rank = len(op["results"][0]["shape"])
            for attribute in nodes[0].attribute:
                outcome.attributes += 1
                fits = attribute_fits(nodes[0], attribute, op, rank)
                if fits is False:
                    canonical = DIALECT.get(spelling(nodes[0]), {}).get("args", {}).get(attribute.name, attribute.name)
                    differ(
                        f"`{op['node']}` ({op['spelling']}): {attribute.name} = "
                        f"{onnx.helper.get_attribute_value(attribute)}, the dump has {op['attributes'].get(canonical)}"
                    )
    for output, results in values.items():
        if not output or output not in known:
            continue
        elem, dims = known[output]
        for result in results:
            if result is None:
                continue
            if result["dtype"] == "unknown":
                outcome.sizes["element types that anelint does not tell"] += 1
                outcome.silent[op_of(graph, output)] += 1
            elif elem and result["dtype"] != DTYPES.get(elem):
                differ(f"`{output}` is {DTYPES.get(elem)}, the dump has {result['dtype']}")
            compare_dims(output, dims, result["shape"], outcome, differ, graph)
    inner = dict(known)
    inner["constants"] = constants | set(outer.get("constants", ()))
    return inner


def op_of(graph, output):
    return next((spelling(n) for n in graph.node if output in n.output), "?")


def compare_dims(output, dims, shape, outcome, differ, graph):
    if dims is None:
        outcome.sizes["shapes that only anelint tells"] += shape is not None
        return
    if shape is None:
        outcome.sizes["shapes that anelint does not tell"] += 1
        outcome.silent[op_of(graph, output)] += 1
        return
    if len(dims) != len(shape):
        differ(f"`{output}` has rank {len(dims)}, the dump has {len(shape)}")
        return
    for theirs, ours in zip(dims, shape):
        if isinstance(theirs, int) and isinstance(ours, int):
            outcome.sizes["dims equal"] += theirs == ours
            if theirs != ours:
                differ(f"`{output}` is {dims}, the dump has {shape}")
                return
        elif isinstance(theirs, int):
            outcome.sizes["dims that anelint does not tell"] += 1
            outcome.silent[op_of(graph, output)] += 1
        elif isinstance(ours, int):
            outcome.sizes["dims that only anelint tells"] += 1


def compare(model, path, binary, outcome, label):
    outcome.models += 1
    run = subprocess.run(
        [binary, "dump", "--stored", "--format", "json", str(path)], capture_output=True, text=True, check=False
    )
    if run.returncode != 0:
        outcome.differences.append(f"{label}: not read: {run.stderr.strip()[:300]}")
        return
    dump = json.loads(run.stdout)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
        # Names of inlined nodes are the inliner's own: types and counts stand for them.
        nodes = sum(len(g.node) for _, g in graphs(model.graph, "main"))
        outcome.nodes += nodes
        got = sum(len(op.get("stored") or [1]) for f in dump["functions"] for op in f["ops"] if not op["implicit"])
        stored = sum(spelling(n) != "Constant" for _, g in graphs(model.graph, "main") for n in g.node)
        if got != stored:
            outcome.differences.append(f"{label}: {stored} nodes after inlining, the dump has {got}")
        return
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception as error:  # noqa: BLE001 - the package refuses some of its own models
        outcome.sizes[f"models whose shapes onnx does not infer ({type(error).__name__})"] += 1
        inferred = model
    functions = collections.defaultdict(list)
    for function in dump["functions"]:
        functions[function["name"]].append(function)

    def walk(graph, name, outer):
        if not functions[name]:
            outcome.differences.append(f"{label}: no function `{name}` in the dump")
            return
        inner = compare_graph(name, graph, outer, functions[name].pop(0), outcome, label)
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    walk(attribute.g, f"{shown(node)}/{attribute.name.removesuffix('_branch')}", inner)

    walk(inferred.graph, "main", {})


def strip(model):
    """Takes away the declared types of inner values, and the shapes of outputs."""
    stripped = onnx.ModelProto()
    stripped.CopyFrom(model)
    for _, graph in graphs(stripped.graph, "main"):
        del graph.value_info[:]
        for output in graph.output:
            if output.type.HasField("tensor_type"):
                output.type.tensor_type.ClearField("shape")
    return stripped


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("paths", nargs="*", type=pathlib.Path)
    parser.add_argument("--node-tests", action="store_true")
    parser.add_argument("--stripped", action="store_true")
    arguments = parser.parse_args()
    outcome = Outcome()
    files = []
    for path in arguments.paths:
        files.extend(sorted(path.rglob("*.onnx")) if path.is_dir() else [path])
    with tempfile.TemporaryDirectory() as folder:
        def hold(model, path, label):
            if arguments.stripped:
                model = strip(model)
                path = pathlib.Path(folder) / "model.onnx"
                path.write_bytes(model.SerializeToString())
            compare(model, path, arguments.binary, outcome, label)

        for file in files:
            hold(onnx.load(file, load_external_data=False), file, file.name)
        if arguments.node_tests:
            from onnx.backend.test.case.node import collect_testcases

            for case in collect_testcases(None):
                if case.model is None:
                    continue
                path = pathlib.Path(folder) / "case.onnx"
                path.write_bytes(case.model.SerializeToString())
                hold(case.model, path, case.name)
    print(f"{outcome.models} models, {outcome.nodes} nodes, {outcome.attributes} attributes")
    for word, count in sorted(outcome.sizes.items()):
        print(f"  {count} {word}")
    if outcome.silent:
        listed = ", ".join(f"{op} {count}" for op, count in outcome.silent.most_common(40))
        print(f"  silent about results of: {listed}")
    for op, count in sorted(outcome.unknown_ops.items()):
        print(f"  op `{op}` is not known: {count}")
    for difference in outcome.differences:
        print(difference)
    print(f"{len(outcome.differences)} differences")
    sys.exit(bool(outcome.differences))


if __name__ == "__main__":
    main()
