"""Proves the fixes on the cases of testdata/fixes.

    pip install --pre -r testdata/requirements.txt
    cargo build
    python scripts/prove_fixes.py [--binary target/debug/anelint]

For each case: the binary mends a copy of the file (which must come out as testdata/fixes/expected has it);
the bad module and the mended one run on the same random inputs, in f32 and in f16, and their outputs are
compared; the mended module is exported again, as .pt2 and .aimodel, and checked again: the finding must
be gone, and no new error may come.

A safe fix needs a peak signal-to-noise ratio of 70 dB in each precision that both modules run in.
Masks are compared over rows that have a live key: a row that is masked whole is NaN before the fix and
uniform after, and is left out of the figure. Unsafe fixes change structure; their figure, where the
case says how to compare, is told and not asked for.

Writes testdata/fixes/report.json, which `cargo test --test fixes` holds against the rules.
"""
import argparse
import hashlib
import importlib
import json
import logging
import math
import os
import shutil
import subprocess
import sys
import tempfile
import types
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTDATA = ROOT / "testdata"
LEAST_DB = 70.0
SEEDS = 3


def run(binary, folder, *arguments):
    done = subprocess.run([str(binary), "check", *map(str, arguments)], cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"anelint check {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def errors(findings):
    """Rule and message of each error; messages name no nodes."""
    return {(f["rule"], f["name"]) for f in findings if f["severity"] == "error"}


def load(stem, text):
    """A case file as a module, from its text: `fixes.masks` under its neutral name."""
    module = types.ModuleType(f"fixes.{stem}")
    module.__file__ = f"fixes/{stem}.py"
    exec(compile(text, module.__file__, "exec"), module.__dict__)
    return module


def psnr(reference, other):
    """In dB over what is finite in the reference; `equal` for no difference at all."""
    import torch

    reference, other = reference.double(), other.double()
    live = torch.isfinite(reference)
    if not live.any():
        return None
    reference, other = reference[live], other[live]
    error = (reference - other).square().mean().item()
    if error == 0:
        return "equal"
    peak = (reference.max() - reference.min()).item() or reference.abs().max().item()
    return round(10 * math.log10(peak * peak / error), 1) if math.isfinite(error) else -math.inf


def worst(figures):
    figures = [f for f in figures if f is not None]
    numbers = [f for f in figures if f != "equal"]
    return min(numbers) if numbers else ("equal" if figures else None)


def to_bc1s(state, model):
    """Weights of nn.Linear as those of nn.Conv2d(…, 1), where the model asks for them."""
    own = model.state_dict()
    return {k: v[:, :, None, None] if own[k].dim() == v.dim() + 2 else v for k, v in state.items()}


def outputs(model, made):
    import torch

    with torch.no_grad():
        out = model(*made)
    return list(out) if isinstance(out, (tuple, list)) else [out]


def compare(export, bad, good, half):
    """The worst figure over some seeds; None if one of the two does not run in this precision."""
    import torch

    figures = []
    before = export.build(bad, half)
    after = export.build(good, half)
    reshaped = "fixed_inputs" in good
    after.load_state_dict(to_bc1s(before.state_dict(), after) if reshaped else before.state_dict(), strict=False)
    for seed in range(SEEDS):
        torch.manual_seed(100 + seed)
        made = export.inputs(bad, half)
        scale = bad.get("scale", 1.0)
        made = tuple(m * scale if m.is_floating_point() else m for m in made)
        given = tuple(m.transpose(1, 2)[:, :, None] for m in made) if reshaped else made
        try:
            old = outputs(before, made)
        except (RuntimeError, OverflowError):
            return None
        new = outputs(after, given)
        if reshaped:
            new = [n[:, :, 0].transpose(1, 2) for n in new]
        figures += [psnr(o, n) for o, n in zip(old, new, strict=True)]
    return worst(figures)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="cases or files; all without (then the report is written anew)")
    parser.add_argument("--binary", type=Path, default=ROOT / "target/debug/anelint")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    sys.path.insert(0, str(TESTDATA))
    export = importlib.import_module("export")
    import torch
    import coreai_torch

    torch.set_num_threads(1)
    index = json.loads((TESTDATA / "fixes.json").read_text())["cases"]
    report_file = TESTDATA / "fixes/report.json"
    report = json.loads(report_file.read_text()) if arguments.names and report_file.exists() else {"cases": {}}
    report["torch"] = torch.__version__
    report["least_db"] = LEAST_DB
    report["rows"] = "masks are compared over rows with a live key; a row masked whole is NaN before and uniform after"
    failed = 0
    units = ["--target", "neural-engine,gpu", "--format", "json", "--exit-zero", "-q"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        shutil.copytree(TESTDATA / "fixes", folder / "fixes", ignore=shutil.ignore_patterns("expected", "*.json"))
        before = json.loads(run(arguments.binary, folder, *units, "fixes/out"))["findings"]
        run(arguments.binary, folder, *units, "--fix", "--unsafe-fixes", "fixes/out")
        for file in sorted((folder / "fixes").glob("*.py")):
            expected = TESTDATA / "fixes/expected" / file.name
            if not expected.exists() or expected.read_text() != file.read_text():
                sys.exit(f"{file.name} is not mended as testdata/fixes/expected has it")
        shutil.rmtree(folder / "fixes/out")
        (folder / "fixes/out").mkdir()
        os.chdir(folder)
        for name, entry in index.items():
            stem = Path(entry["file"]).stem
            if arguments.names and name not in arguments.names and stem not in arguments.names:
                continue
            bad_text = (TESTDATA / "fixes" / f"{stem}.py").read_text()
            good_text = (folder / "fixes" / f"{stem}.py").read_text()
            bad, good = load(stem, bad_text).CASES[name], load(stem, good_text).CASES[name]
            own = [f for f in before if Path(f["input"]).name.split(".")[0] == name]
            mended = [f for f in own if f["fix"] and f["fix"]["edits"]]
            figures = {}
            if stem != "keys":  # another output is the point
                for precision, half in (("f32", False), ("f16", True)):
                    if half or bad.get("half", True):
                        figure = compare(export, bad, good, half)
                        if figure is not None:
                            figures[precision] = figure
            after = dict(good)
            if "fixed_inputs" in good:
                after["inputs"] = good["fixed_inputs"]
            program = export.traced(after, True)
            torch.export.save(program, f"fixes/out/{name}.pt2")
            decomposed = program.run_decompositions(coreai_torch.get_decomp_table())
            try:
                export.save_aimodel({"main": (decomposed, {})}, f"fixes/out/{name}.aimodel")
                formats = ["pt2", "aimodel"]
            except Exception as error:  # the converter refuses: said in the report
                formats = ["pt2"]
                print(name, "no .aimodel:", error)
            paths = [f"fixes/out/{name}.{suffix}" for suffix in formats]
            again = json.loads(run(arguments.binary, folder, *units, *paths))["findings"]
            rules = sorted({f["rule"] for f in mended})
            gone = not any(f["rule"] in rules and f["fix"] and f["fix"]["edits"] for f in again)
            gone = gone and not any(f["rule"] in rules and f["severity"] == "error" for f in again)
            new = sorted(f"{rule} {title}" for rule, title in errors(again) - errors(own))
            digest = lambda text: hashlib.sha256(text.encode()).hexdigest()
            report["cases"][name] = {
                "file": entry["file"], "class": entry["class"],
                "bad_sha256": digest(bad_text), "fixed_sha256": digest(good_text),
                "fixed": {rule: sorted({f["fix"]["applicability"] for f in mended if f["rule"] == rule}) for rule in rules},
                "psnr_db": figures, "exported": formats, "gone": gone, "new_errors": new,
            }
            safe = all(kinds == ["safe"] for kinds in report["cases"][name]["fixed"].values())
            low = [p for p, f in figures.items() if f != "equal" and f < LEAST_DB]
            fine = rules and gone and not new and (not safe or (figures and not low))
            failed += not fine
            print("ok  " if fine else "FAIL", name, report["cases"][name]["fixed"], figures, "gone" if gone else "STILL THERE", new or "", flush=True)
        os.chdir(ROOT)
    report["cases"] = dict(sorted((n, c) for n, c in report["cases"].items() if n in index))
    report_file.write_text(json.dumps(report, indent=1) + "\n")
    print(f"{failed} of {len(index)} cases fail" if failed else f"{len(report['cases'])} cases hold")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
