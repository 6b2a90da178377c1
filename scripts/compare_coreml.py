"""Holds `anelint dump` against what coremltools reads from the spec: the same ops, in the same order, with
the same names and result types, for every Core ML model below the given paths.

    pip install coremltools==9.0
    cargo build --release
    python scripts/compare_coreml.py target/release/anelint testdata ...

Constants (`const`) are no ops and are left out on both sides. Prints each difference and a count; exits 1 if
there is any.
"""

import json
import pathlib
import subprocess
import sys

from coremltools.proto import MIL_pb2, Model_pb2

DTYPES = {
    MIL_pb2.DataType.Value(name): short
    for name, short in {
        "BOOL": "bool", "STRING": "string", "FLOAT16": "f16", "FLOAT32": "f32", "FLOAT64": "f64", "BFLOAT16": "bf16",
        "INT4": "i4", "INT8": "i8", "INT16": "i16", "INT32": "i32", "INT64": "i64",
        "UINT1": "u1", "UINT2": "u2", "UINT3": "u3", "UINT4": "u4", "UINT6": "u6",
        "UINT8": "u8", "UINT16": "u16", "UINT32": "u32", "UINT64": "u64",
        "FLOAT8E4M3FN": "f8e4m3", "FLOAT8E5M2": "f8e5m2",
    }.items()
}


def value_type(t):
    kind = t.WhichOneof("type")
    if kind == "stateType":
        return value_type(t.stateType.wrappedType)
    if kind == "listType":
        return value_type(t.listType.type)
    if kind != "tensorType":
        return ("unknown", None)
    dims = [d.constant.size if d.HasField("constant") else None for d in t.tensorType.dimensions]
    return (DTYPES.get(t.tensorType.dataType, "unknown"), dims)


def ops_of_block(block):
    """The ops of a block, then for each op with blocks, those blocks, depth first."""
    ops, nested = [], []
    for op in block.operations:
        if op.type == "const":
            continue
        name = op.attributes["name"].immediateValue.tensor.strings.values
        name = name[0] if name else op.outputs[0].name if op.outputs else ""
        ops.append((name, op.type, [value_type(o.type) for o in op.outputs]))
        nested.extend(op.blocks)
    return ops, nested


def expected_program(program):
    functions = []
    for name in sorted(program.functions):
        function = program.functions[name]
        block = function.block_specializations[function.opset]
        walk(block, functions)
    return functions


def walk(block, functions):
    ops, nested = ops_of_block(block)
    functions.append(ops)
    for inner in nested:
        walk(inner, functions)


def expected_network(network):
    """The layers, then the networks of branches and loops, depth first."""
    functions = [[(layer.name, layer.WhichOneof("layer"), None) for layer in network.layers]]
    for layer in network.layers:
        for kind, inner in (("branch", ("ifBranch", "elseBranch")), ("loop", ("conditionNetwork", "bodyNetwork"))):
            if layer.WhichOneof("layer") == kind:
                for name in inner:
                    functions += expected_network(getattr(getattr(layer, kind), name))
    return functions


def expected(model):
    kind = model.WhichOneof("Type")
    if kind == "mlProgram":
        return expected_program(model.mlProgram)
    if kind in ("neuralNetwork", "neuralNetworkClassifier", "neuralNetworkRegressor"):
        return expected_network(getattr(model, kind))
    if kind == "pipeline":
        return [f for inner in model.pipeline.models for f in expected(inner)]
    if kind in ("pipelineClassifier", "pipelineRegressor"):
        return [f for inner in getattr(model, kind).pipeline.models for f in expected(inner)]
    return []


def shape(dims):
    if dims is None:
        return None
    return [d if isinstance(d, int) else None for d in dims]


def dumped(function):
    ops = []
    for op in function["ops"]:
        results = [(r["dtype"], shape(r["shape"])) for r in op["results"]]
        stored = op.get("stored") or []
        if not stored:
            ops.append((op["node"], op["spelling"], results))
        for inner in stored:
            own = inner["node"] == op["node"]
            ops.append((inner["node"], inner["spelling"], results if own else None))
    return ops


def same_spelling(kind, spelling):
    """A layer kind with its chosen function (`pooling.MAX`) counts as the kind."""
    special = {"deconvolution": "convolution", "deconvolution3d": "convolution3d", "instancenorm": "batchnorm"}
    return kind == spelling or kind == spelling.split(".")[0] or kind == special.get(spelling)


def compare(path, binary):
    file = path / "Data/com.apple.CoreML/model.mlmodel" if path.is_dir() else path
    model = Model_pb2.Model()
    model.ParseFromString(file.read_bytes())
    want = expected(model)
    run = subprocess.run([*binary, "dump", "--stored", "--format", "json", str(path)], capture_output=True, text=True)
    if run.returncode != 0:
        return (0, []) if not want else (0, [f"{path}: {run.stderr.strip()}"])
    got = {}
    order = []
    for function in json.loads(run.stdout)["functions"]:
        order.append(dumped(function))
    got = order
    differences = []
    if len(want) != len(got):
        differences.append(f"{path}: {len(want)} functions and blocks, dumped {len(got)}")
    count = 0
    for a, b in zip(want, got):
        if len(a) != len(b):
            differences.append(f"{path}: {len(a)} ops, dumped {len(b)}")
        for (name, kind, types), (node, spelling, results) in zip(a, b):
            count += 1
            if name != node or not same_spelling(kind, spelling):
                differences.append(f"{path}: {kind} {name}, dumped {spelling} {node}")
            # A state's write has no result in the file; its new value is one in the graph.
            elif types and results is not None and types != results:
                differences.append(f"{path}: {name}: {types}, dumped {results}")
    return count, differences


def main():
    binary, roots = sys.argv[1].split(), [pathlib.Path(p) for p in sys.argv[2:]]
    models = sorted(
        p for root in roots for p in ([root] if root.suffix in (".mlpackage", ".mlmodel") else root.rglob("*"))
        if p.suffix == ".mlpackage" or (p.suffix == ".mlmodel" and "com.apple.CoreML" not in p.parts)
    )
    ops, differences = 0, []
    for path in models:
        count, found = compare(path, binary)
        ops += count
        differences += found
    for line in differences:
        print(line)
    print(f"{len(models)} models, {ops} ops, {len(differences)} differences")
    return 1 if differences or not models else 0


if __name__ == "__main__":
    sys.exit(main())
