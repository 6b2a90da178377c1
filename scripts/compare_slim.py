"""Holds what `anelint.export` writes against torch's own files: the same findings, or better places.

    python scripts/compare_slim.py [CASE…]

Every case of testdata/cases is exported both ways and checked. Rules, severities and counts must be equal;
a place may differ only by lying further in: in a helper that torch has no frame of.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "python"))
sys.path.insert(0, str(REPOSITORY / "testdata"))
os.environ.setdefault("ANELINT_STAGE", tempfile.mkdtemp(prefix="anelint-stage-"))

import export as cases  # noqa: E402


def findings(binary, paths):
    command = [binary, "check", *map(str, paths), "--format", "json", "--exit-zero",
               "--source-root", str(REPOSITORY / "testdata")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY)
    document = json.loads(done.stdout)
    assert not document["errors"], document["errors"]
    made = {}
    for finding in document["findings"]:
        made.setdefault(Path(finding["input"]).name, []).append(finding)
    return made, {Path(own["path"]).name: own for own in document["inputs"]}


def place(finding):
    at = finding["location"]
    return (at["file"], at["line"], at["column"]) if at else None


def main():
    import importlib
    import warnings

    import torch

    import anelint

    warnings.filterwarnings("ignore")
    binary = os.environ.get("ANELINT", "anelint")
    cases.stage("cases")
    out = Path(tempfile.mkdtemp(prefix="anelint-slim-"))
    (out / "torch").mkdir()
    (out / "slim").mkdir()
    wanted = set(sys.argv[1:])
    names = []
    for file in sorted(Path("cases").glob("*.py")):
        module = importlib.import_module(f"cases.{file.stem}")
        for name, case in getattr(module, "CASES", {}).items():
            if wanted and not wanted & {name, file.stem}:
                continue
            try:
                program = cases.traced(case, True)
            except Exception as error:
                print(f"{name}: not exported: {str(error)[:80]}")
                continue
            torch.export.save(program, str(out / "torch" / f"{name}.pt2"))
            model = cases.build(case, True)
            torch.manual_seed(1)
            anelint.export(model, cases.inputs(case, True), out / "slim" / f"{name}.pt2", cases.dynamic(case))
            names.append(name)
    own, _ = findings(binary, [out / "torch"])
    slim, inputs = findings(binary, [out / "slim"])
    counts = {"equal": 0, "column": 0, "helper": 0, "other": 0}
    for name in names:
        key = f"{name}.pt2"
        left = sorted(own.get(key, []), key=lambda f: (f["rule"], str(place(f))))
        right = sorted(slim.get(key, []), key=lambda f: (f["rule"], str(place(f))))
        what = lambda fs: sorted((f["rule"], f["severity"], f["count"]) for f in fs)  # noqa: E731
        if what(left) != what(right):
            counts["other"] += 1
            print(f"{name}: DIFFERENT FINDINGS\n  torch {what(left)}\n  slim  {what(right)}")
            continue
        for a, b in zip(left, right):
            if place(a) == place(b):
                counts["equal"] += 1
            elif place(a)[:2] == place(b)[:2]:
                counts["column"] += 1
                print(f"{name}: {a['rule']} column {place(a)} -> {place(b)}")
            else:
                counts["helper"] += 1
                print(f"{name}: {a['rule']} place {place(a)} -> {place(b)}")
        for note in inputs[key]["notes"]:
            print(f"{name}: note: {note}")
    sizes = [sum(p.stat().st_size for p in (out / kind).iterdir()) for kind in ("torch", "slim")]
    print(f"{len(names)} cases; findings with equal place {counts['equal']}, other column {counts['column']}, "
          f"other line {counts['helper']}; cases that differ {counts['other']}; bytes {sizes[0]:,} -> {sizes[1]:,}")
    return 1 if counts["other"] else 0


if __name__ == "__main__":
    sys.exit(main())
