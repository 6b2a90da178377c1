"""Lists the ops that the installed packages have and rules/dialects/onnx.yaml has not, and the other way round.

    python scripts/list_onnx_ops.py

The default domain's ops are those of the onnx package up to its newest opset. Of `com.microsoft` those count that
the tools of the onnxruntime package write into transformer and quantised models (they name them in a string).
Exits 1 if one is missing.

Needs: pip install onnx onnxruntime pyyaml.
"""

import pathlib
import re
import sys

import onnx
import onnxruntime
import yaml
from onnxruntime.capi import onnxruntime_pybind11_state as state

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    listed = yaml.safe_load((ROOT / "rules/dialects/onnx.yaml").read_text())["ops"]
    # `Constant` is a name for a tensor: the reader makes no op of it.
    default = {s.name for s in onnx.defs.get_all_schemas_with_history() if s.domain == ""} - {"Constant"}
    contrib = {s.name for s in state.get_all_operator_schema() if s.domain == "com.microsoft"}
    folder = pathlib.Path(onnxruntime.__file__).parent
    text = "\n".join(
        file.read_text(errors="ignore")
        for tool in ("transformers", "quantization")
        for file in sorted((folder / tool).rglob("*.py"))
    )
    written = {name for name in contrib if re.search(rf"[\"']{name}[\"']", text)}
    missing = sorted(default - listed.keys()) + sorted(
        f"com.microsoft.{name}" for name in written if f"com.microsoft.{name}" not in listed
    )
    known = default | {f"com.microsoft.{name}" for name in contrib}
    print(f"opset {onnx.defs.onnx_opset_version()}: {len(default)} ops of the default domain")
    print(f"onnxruntime {onnxruntime.__version__}: {len(written)} of {len(contrib)} com.microsoft ops are written by its tools")
    for name in missing:
        print(f"missing: {name}")
    for name in sorted(listed.keys() - known):
        print(f"only in the dialect map: {name}")
    sys.exit(bool(missing))


if __name__ == "__main__":
    main()
