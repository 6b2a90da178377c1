"""Hold the partitions that anelint counts for ONNX Runtime's Core ML provider against the runtime's own checker
(`python -m onnxruntime.tools.check_onnx_model_mobile_usability`).

    python scripts/compare_ort.py BINARY FOLDER_OR_FILE…

The checker looks at op types and ranks alone; anelint also at the limits that the lists of ops tell in words. So
every difference in the number of partitions is explained by the nodes that the two judge differently, and the
explanation is checked: the checker's own walk, fed with anelint's verdicts, must count what anelint counts.
Exits 1 where it does not.

Needs: pip install onnx onnxruntime.
"""

import argparse
import collections
import json
import logging
import pathlib
import subprocess
import sys
import tempfile

import onnx
from onnxruntime.tools.mobile_helpers import usability_checker as checker
from onnxruntime.tools.onnx_model_utils import ModelProtoWithShapeInfo, optimize_model

FORMS = {
    "mlprogram": "coreml_supported_mlprogram_ops.md",
    "neuralnetwork": "coreml_supported_neuralnetwork_ops.md",
}


def shown(node):
    return node.name or next((o for o in node.output if o), "")


def run(binary, *arguments):
    made = subprocess.run([binary, *arguments], capture_output=True, text=True, check=False)
    if made.returncode == 2 or not made.stdout:
        raise RuntimeError(made.stderr.strip()[:300])
    return json.loads(made.stdout)


def ours(binary, path, form):
    """Partitions of the entry function and of all, and the verdict of each stored node by name."""
    placed = run(binary, "placement", "--format", "json", "--runtime", "onnxruntime", "--provider", form, str(path))
    dump = run(binary, "dump", "--stored", "--format", "json", str(path))
    verdicts = {}
    nothing = set()
    for function, dumped in zip(placed["inputs"][0]["functions"], dump["functions"]):
        by_node = {op["node"]: op for op in function["ops"]}
        for op in dumped["ops"]:
            names = [part["node"] for part in op.get("stored") or []] or [op["node"]]
            same_cast = op["op"] == "cast" and op["transparent"]
            if op["constant_work"] or op["op"] in ("identity", "clone", "contiguous") or same_cast:
                nothing.update(names)
                continue
            own = by_node.get(op["node"])
            for name in names:
                verdicts[name] = (bool(own and own["eligible"]), (own or {}).get("reason") or "")
    regions = [len(function["regions"]) for function in placed["inputs"][0]["functions"]]
    return sum(regions), verdicts, nothing


class Verdicts:
    """Stands in for the checker's list of ops."""

    def __init__(self, verdicts):
        self.verdicts = verdicts

    def is_op_supported(self, node):
        return self.verdicts.get(shown(node), (False, ""))[0]


def folded(model, nothing):
    """The model without what anelint takes for constant or for nothing, as the runtime's optimiser leaves it."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)

    def walk(graph, outer):
        renamed = dict(outer)
        kept = []
        for node in graph.node:
            if node.op_type == "Constant" or shown(node) in nothing:
                # A node that does nothing hands on its input; constant work has none that matters.
                first = node.input[0] if node.input and node.op_type in ("Identity", "Cast", "Dropout") else ""
                renamed[node.output[0]] = renamed.get(first, first)
                continue
            for at, name in enumerate(node.input):
                if name in renamed:
                    node.input[at] = renamed[name]
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    walk(attribute.g, renamed)
            kept.append(node)
        del graph.node[:]
        graph.node.extend(kept)

    walk(copy.graph, {})
    return copy


def recount(model, verdicts, nothing):
    """The checker's walk with anelint's verdicts."""
    model = folded(model, nothing)
    if not model.graph.node:
        return 0
    return checker.check_partitioning(model.graph, Verdicts(verdicts), False).num_partitions


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    files = []
    for path in arguments.paths:
        files.extend(sorted(path.rglob("*.onnx")) if path.is_dir() else [path])
    equal = explained = 0
    failures = []
    reasons = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            model = onnx.load(file)
            try:
                optimised = pathlib.Path(folder) / "optimised.onnx"
                optimize_model(file.resolve(), optimised, use_external_initializers=True)
                theirs_model = ModelProtoWithShapeInfo(optimised).model_with_shape_info
            except Exception as error:  # noqa: BLE001 - the CPU build may lack a kernel that no check needs
                print(f"{file.name}: the runtime does not load it: {str(error).splitlines()[0][:120]}")
                continue
            for form, list_file in FORMS.items():
                info = checker.check_coreml_partitions(theirs_model, False, list_file)
                count, verdicts, nothing = ours(arguments.binary, file.resolve(), form)
                again = recount(model, verdicts, nothing)
                if again != count:
                    failures.append(f"{file.name} ({form}): {count} partitions, the checker's walk counts {again}")
                if count == info.num_partitions:
                    equal += 1
                    continue
                explained += 1
                supported = checker._SupportedOpsChecker(  # noqa: SLF001
                    pathlib.Path(checker.__file__).parent / list_file
                )
                why = collections.Counter()
                for node in onnx_nodes(model.graph):
                    if shown(node) not in verdicts:
                        continue
                    taken, reason = verdicts[shown(node)]
                    listed = supported.is_op_supported(node)
                    if taken != listed:
                        text = reason if not taken else "taken here, not in the list"
                        why[f"{node.op_type}: {text}"] += 1
                reasons.update(why)
                told = "; ".join(f"{text} ({n}×)" for text, n in why.most_common(6))
                told = told or "the runtime's optimiser made other nodes"
                print(f"{file.name} ({form}): checker {info.num_partitions}, anelint {count}: {told}")
    for failure in failures:
        print(f"NOT EXPLAINED {failure}")
    print(f"{equal} counts equal, {explained} differ and are explained, {len(failures)} are not")
    for text, n in reasons.most_common(20):
        print(f"  {n} × {text}")
    sys.exit(bool(failures))


def onnx_nodes(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from onnx_nodes(attribute.g)


if __name__ == "__main__":
    main()
