"""Exports the test modules to every format that anelint reads.

    pip install --pre -r testdata/requirements.txt
    python testdata/export.py                    every case
    python testdata/export.py masks neginf_full  whole files, single cases
    python testdata/export.py --list
    python testdata/export.py --formats pt2,decomp,aimodel masks

Case files are executed under names relative to this folder (`cases/masks.py`), from a neutral
folder that holds a copy of them, because the exporters write the paths that they see into stack
traces and debug info. What each format is made from, and which files differ from run to run though
nothing changed, is written in README.md.
"""
import argparse
import ast
import importlib.abc
import importlib.util
import json
import logging
import os
import re
import shutil
import sys
import time
import warnings
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FORMATS = ["pt2", "decomp", "strict", "aimodel", "release", "mlpackage", "onnx"]
STORED_UP_TO = 16_000  # torch stores members; larger archives are deflated here, to keep the folder small
ALWAYS_READ = 4096  # bytes: smaller constants are read, whatever they are
ROOMS = ["cases", "models", "mutations", "fixes"]
# Recorded in .aimodel debug info, hence neutral and the same for everybody.
STAGE = Path(os.environ.get("ANELINT_STAGE", "/srv/anelint"))


def thin(path):
    """Deflates an archive, with zeros for the large parameters: anelint does not read them, and random
    numbers do not deflate. Those with a NaN or an infinity stay, and so do buffers and constants."""
    with zipfile.ZipFile(path) as stored:
        members = [(m, stored.read(m)) for m in stored.namelist()]
    parameters = {}
    for member, data in members:
        if member.endswith("weights_config.json"):
            for entry in json.loads(data)["config"].values():
                if entry.get("is_param"):
                    parameters[entry["path_name"]] = entry["tensor_meta"]["dtype"]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as small:
        for member, data in members:
            dtype = parameters.get(member.rsplit("/", 1)[-1])
            if dtype is not None and len(data) > ALWAYS_READ and not irregular(data, dtype):
                data = bytes(len(data))
            small.writestr(zipfile.ZipInfo(member), data, zipfile.ZIP_DEFLATED)


def irregular(data, dtype):
    """Whether numbers of f16 (6) or f32 (7) hold a NaN or an infinity; those of other types count as if."""
    import numpy

    kind = {6: numpy.float16, 7: numpy.float32}.get(dtype)
    return kind is None or not numpy.isfinite(numpy.frombuffer(data, kind)).all()


class Neutral(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports `cases.x` from `cases/x.py`, compiled under that relative name."""

    def find_spec(self, name, path=None, target=None):
        head, _, stem = name.partition(".")
        if head not in ROOMS:
            return None
        if not stem:
            return importlib.util.spec_from_loader(name, self, origin=head, is_package=True)
        file = f"{head}/{stem}.py"
        return importlib.util.spec_from_loader(name, self, origin=file) if os.path.exists(file) else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        file = module.__spec__.origin
        if not file.endswith(".py"):
            module.__path__ = [file]
            return
        module.__file__ = file
        exec(compile(Path(file).read_text(encoding="utf-8"), file, "exec"), module.__dict__)


def stage(room):
    """A fresh copy of the case files in the neutral folder, which becomes the working folder."""
    shutil.rmtree(STAGE / room, ignore_errors=True)
    (STAGE / room).mkdir(parents=True)
    for file in sorted((HERE / room).glob("*.py")):
        shutil.copy(file, STAGE / room / file.name)
    os.chdir(STAGE)
    sys.meta_path.insert(0, Neutral())


# ---- sample inputs -------------------------------------------------------------------------------

SPEC = re.compile(r"^(f32|f16|bf16|f|i64|i32|bool|tri|bits)\[([\d,]*)\](?:<(\d+))?(?:=(-?\d+))?(?: (channels_last))?$")


def tensor(spec, half):
    """`f[1,4]` is a float of the model's precision, `f32[…]` one that stays, `i64[1,8]<97` indices
    below 97, `i64[1]=3` a constant, `bool[…]` random, `bits[…]` the same as numbers, `tri[…]` a lower
    triangle of true."""
    import torch

    kind, dims, below, value, channels_last = SPEC.match(spec).groups()
    dims = [int(d) for d in dims.split(",") if d]
    if kind == "bool":
        return torch.rand(dims) > 0.3
    if kind == "bits":
        made = (torch.rand(dims) > 0.3).float()
        return made.half() if half else made
    if kind == "tri":
        return torch.ones(dims).tril().bool()
    if kind in ("i64", "i32"):
        dtype = torch.int64 if kind == "i64" else torch.int32
        if value is not None:
            return torch.full(dims, int(value), dtype=dtype)
        return torch.randint(0, int(below or 16), dims, dtype=dtype)
    made = torch.randn(dims)
    if channels_last:
        made = made.to(memory_format=torch.channels_last)
    if kind == "bf16":
        return made.bfloat16()
    return made.half() if kind == "f16" or (kind == "f" and half) else made


def inputs(case, half):
    made = []
    for spec in case["inputs"]:
        spec, _, times = spec.partition(" x")
        made += [tensor(spec, half) for _ in range(int(times or 1))]
    return tuple(made)


def trained(model):
    """Ones and zeros of an untrained norm would be folded away: move them a little."""
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point() and parameter.numel() > 1 and parameter.unique().numel() == 1:
                parameter.add_(torch.randn(parameter.shape).to(parameter.dtype) * 0.1)
    return model


def build(case, half):
    import torch

    torch.manual_seed(0)
    model = trained(case["make"]().eval())
    model = model.half() if half and case.get("half", True) else model
    return case["prepare"](model, inputs(case, half)) if half and "prepare" in case else model


def dynamic(case):
    """{"x": {1: ("seq", 2, 63)}} -> torch's Dim objects; one object a name."""
    import torch

    if not case.get("dynamic"):
        return None
    made = {}

    def dim(d):
        if not isinstance(d, tuple):
            return d
        return made.setdefault(d[0], torch.export.Dim(d[0], min=d[1], max=d[2]))

    return {name: ({axis: dim(d) for axis, d in axes.items()} if axes else None) for name, axes in case["dynamic"].items()}


# ---- the formats ---------------------------------------------------------------------------------

def traced(case, half, strict=False):
    import torch

    model = build(case, half)
    torch.manual_seed(1)
    with torch.no_grad():
        return torch.export.export(model, inputs(case, half), dynamic_shapes=dynamic(case), strict=strict)


def save_aimodel(entries, path, mode="DEBUG", static=None, metadata=None, kernels=()):
    """`entries`: entry point -> (decomposed program, names given to inputs, states, outputs); `metadata`: what to
    change in metadata.json, None to take a key out."""
    from coreai_torch import TorchConverter

    converter = TorchConverter(mode=getattr(TorchConverter.Mode, mode))
    if kernels:
        converter.register_custom_kernels(list(kernels))
    programs = [program for program, _ in entries.values()]
    # torch 2.15 leaves a no-op as_strided behind adaptive_avg_pool2d on channels-last data
    if any(str(n.target) == "aten.as_strided.default" and list(n.args[0].meta["val"].shape) == list(n.args[1])
           for p in programs for n in p.graph.nodes):
        converter.register_torch_lowering("aten::as_strided.default")(lambda values, node, loc: values[node.args[0].name])
    for name, (program, names) in entries.items():
        converter.add_exported_program(program, entrypoint_name=name, **names)
    made = converter.to_coreai()
    for entry, shapes in (static or {}).items():
        made.set_static_shape_config(entry, shapes)
    made.save_asset(Path(path))
    if metadata:
        file = Path(path) / "metadata.json"
        kept = {**json.loads(file.read_text()), **metadata}
        file.write_text(json.dumps({key: value for key, value in kept.items() if value is not None}))


def save_mlpackage(program, path, compress=None):
    import coremltools as ct

    sys.path.insert(0, str(HERE))
    import coremltools_gaps  # noqa: F401  torch ops that coremltools 9.0 lacks

    made = ct.convert(program.run_decompositions({}), convert_to="mlprogram", compute_precision=ct.precision.FLOAT16,
                      minimum_deployment_target=ct.target.iOS18, skip_model_load=True)
    (compress(made) if compress else made).save(str(path))
    (path / "executorch_debug_handle_mapping.json").unlink(missing_ok=True)


def export_case(name, case, out, formats, report):
    """All formats of one case; a refusal is reported and leaves no file."""
    import torch
    import coreai_torch

    half = True
    done = {}

    def attempt(kind, suffix, make):
        path = out / f"{name}.{suffix}"
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        started = time.time()
        try:
            made = make(path)
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            why = re.sub(r"\s+", " ", f"{type(error).__name__}: {error}")[:300]
            report(name, kind, None, why, time.time() - started)
            return None
        report(name, kind, path, None, time.time() - started)
        done[kind] = path
        return made

    def keep(program, path):
        # The pickled sample inputs are most of such a small archive, and no linter opens them.
        samples = program.example_inputs
        program.example_inputs = samples if case.get("samples") else None
        torch.export.save(program, str(path))
        program.example_inputs = samples
        if path.stat().st_size > STORED_UP_TO and not case.get("samples"):
            thin(path)
        return program

    wanted = [f for f in formats if case.get(f, f not in ("strict", "release"))]
    plain = attempt("pt2", "pt2", lambda p: keep(traced(case, half), p)) if {"pt2", "decomp", "aimodel", "release"} & set(wanted) else None
    if plain is None and case.get("unsaved"):
        # torch cannot write a tensor of four bits; the converter can.
        decomposed = traced(case, half).run_decompositions(coreai_torch.get_decomp_table())
        attempt("aimodel", "aimodel", lambda p: save_aimodel({"main": (decomposed, case.get("names", {}))}, p))
    if "strict" in wanted:
        attempt("strict", "strict.pt2", lambda p: keep(traced(case, half, strict=True), p))
    decomposed = None
    if plain is not None and {"decomp", "aimodel", "release"} & set(wanted):
        decomposed = attempt("decomp", "decomp.pt2", lambda p: keep(plain.run_decompositions(coreai_torch.get_decomp_table()), p))
    if decomposed is not None:
        names = case.get("names", {})
        entries = {entry: (decomposed, names) for entry in case.get("entries", ["main"])}
        if "aimodel" in wanted:
            attempt("aimodel", "aimodel", lambda p: save_aimodel(entries, p, static=case.get("static"), metadata=case.get("metadata"), kernels=case.get("kernels", ())))
        if "release" in wanted:
            attempt("release", "release.aimodel", lambda p: save_aimodel({"main": (decomposed, names)}, p, mode="RELEASE"))
    if {"mlpackage", "onnx"} & set(wanted):
        try:
            single = traced(case, False)
        except Exception as error:
            report(name, "f32 trace", None, re.sub(r"\s+", " ", str(error))[:200], 0)
            return done
        if "mlpackage" in wanted:
            attempt("mlpackage", "mlpackage", lambda p: save_mlpackage(single, p, case.get("compress")))
        if "onnx" in wanted:
            attempt("onnx", "onnx", lambda p: torch.onnx.export(single, f=str(p), external_data=False, verbose=False))
    return done


# ---- which source lines belong to a case -----------------------------------------------------------

def spans(case):
    """[file, first, last] of everything of ours that the case is made of: the classes of its modules
    and their bases, and the functions and classes that those name, across our files."""
    found, trees = {}, {}

    def tree(file):
        if file not in trees:
            trees[file] = ast.parse(Path(file).read_text(encoding="utf-8"))
        return trees[file]

    def last_line(file, node):
        """The end of a definition, with the comments that close its body: the syntax tree has none."""
        lines = Path(file).read_text(encoding="utf-8").splitlines()
        last = node.end_lineno
        for number in range(node.end_lineno + 1, len(lines) + 1):
            line = lines[number - 1]
            if line.strip() and not re.match(r"\s+#", line):
                break
            if line.strip():
                last = number
        return last

    def definition(file, name):
        for node in tree(file).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name:
                return file, node
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ROOMS:
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return definition(node.module.replace(".", "/") + ".py", alias.name)
        return None

    def add(file, name):
        hit = definition(file, name)
        if hit is None or (hit[0], hit[1].name) in found:
            return
        file, node = hit
        first = min([node.lineno] + [d.lineno for d in node.decorator_list])
        found[(file, node.name)] = [file, first, last_line(file, node)]
        bases = {b.id for b in node.bases if isinstance(b, ast.Name)} if isinstance(node, ast.ClassDef) else set()
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and inner.id not in bases:
                add(file, inner.id)

    model = build(case, False)
    for module in model.modules():
        for kind in type(module).__mro__:
            if kind.__module__.split(".")[0] in ROOMS:
                add(kind.__module__.replace(".", "/") + ".py", kind.__name__)
    return sorted(found.values())


COMMENT = re.compile(r"#\s*expect(-[a-z]+)?(\[[a-z-]+\])?: (.*)$")
ITEM = re.compile(r"(?:[A-Z]{3}\d{3})(?:\|[A-Z]{3}\d{3})*\??(?:=(?:error|warning|advice))?(?: x\d+)?(?: `(?P<text>[^`]+)`)?$")
KINDS = {None, "-related", "-case", "-not", "-unit"}


def slips(where, plain):
    """Slips of the author in the comments of a case: grammar, a text that is not on the line, and an
    expectation on a line that no node of the plain graph names."""
    with zipfile.ZipFile(plain) as archive:
        trace = archive.read(next(n for n in archive.namelist() if n.endswith("models/model.json"))).decode()
    recorded = set(re.findall(r'File \\"((?:cases|models|mutations)/\w+\.py)\\", line (\d+)', trace))
    for file, first, last in where:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
        for number in range(first, last + 1):
            line = lines[number - 1]
            found = COMMENT.search(line)
            if not found:
                continue
            kind, _, rest = found.groups()
            place = f"{file}:{number}"
            if kind not in KINDS:
                yield f"{place} expect{kind}: unknown"
            if kind == "-unit":
                continue
            if kind is None and (file, str(number)) not in recorded:
                yield f"{place} has an expectation, but no node of the plain graph names it"
            for part in rest.split("; "):
                form, _, items = part.rpartition(": ") if part.split(": ")[0] in FORMATS else ("", "", part)
                for item in re.split(r", (?=[A-Z]{3}\d)", items):
                    parsed = ITEM.match(item)
                    if item != "-" and not parsed:
                        yield f"{place} cannot read {item!r}"
                    elif item != "-" and parsed["text"] and parsed["text"] not in line[: found.start()]:
                        yield f"{place} {parsed['text']!r} is not on the line"


def neutral(out, name):
    """Paths of this machine that got into an artifact."""
    bad = re.compile(rb"/(?:tmp|work|root|home|Users)/[\w./-]*")
    hits = set()
    for path in sorted(out.glob(f"{name}.*")):
        for file in [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]:
            hits |= {f"{path.name}: {m.decode()}" for m in bad.findall(file.read_bytes())}
    return sorted(hits)


# ---- the door --------------------------------------------------------------------------------------

def load(stem, room="cases"):
    return importlib.import_module(f"{room}.{stem}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="case files or cases; all without")
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--room", default="cases", choices=ROOMS)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--index-only", action="store_true", help="write the index anew, export nothing")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    stage(arguments.room)
    import torch

    torch.set_num_threads(1)
    if not (arguments.list or arguments.index_only):
        # What an export imports when it first runs would be imported by every process anew.
        torch.export.export(torch.nn.ReLU(), (torch.zeros(1),), strict=False).run_decompositions({})
    room, out = arguments.room, HERE / arguments.room / "out"
    out.mkdir(parents=True, exist_ok=True)
    index_file = HERE / f"{room}.json"
    index = json.loads(index_file.read_text()) if index_file.exists() else {"cases": {}}
    every, failed = set(), 0
    for file in sorted(Path(room).glob("*.py")):
        module = load(file.stem, room)
        for name, case in getattr(module, "CASES", {}).items():
            assert name not in every, f"two cases are called {name}"
            every.add(name)
            if arguments.names and name not in arguments.names and file.stem not in arguments.names:
                continue
            if arguments.list:
                print(f"{file.stem}: {name}")
                continue
            entry = index["cases"].setdefault(name, {})
            refused = entry.get("refused", {})
            if not arguments.index_only:
                # one process a case: a converter may abort
                pipe, ends = os.pipe()
                child = os.fork()
                if child == 0:
                    os.close(pipe)
                    with os.fdopen(ends, "w") as tell:
                        def report(name, kind, path, why, seconds):
                            print("ok  " if path else "FAIL", name, kind, f"{seconds:.1f}s", why or "", flush=True)
                            tell.write(json.dumps([kind, why]) + "\n")
                            tell.flush()
                        try:
                            export_case(name, case, out, arguments.formats.split(","), report)
                        except Exception as error:
                            report(name, "build", None, f"{type(error).__name__}: {error}"[:300], 0)
                    os._exit(0)
                os.close(ends)
                with os.fdopen(pipe) as told:
                    for line in told:
                        kind, why = json.loads(line)
                        refused.pop(kind, None)
                        if why:
                            refused[kind] = why
                            failed += 1
                _, status = os.waitpid(child, 0)
                if status:
                    refused["aborted"] = f"a converter ended the process, wait status {status}"
                    print("FAIL", name, refused["aborted"])
            where = spans(case)
            plain = out / f"{name}.pt2"
            if plain.exists():
                for slip in slips(where, plain):
                    print("WARN", name, slip)
            for hit in neutral(out, name):
                print("WARN", hit)
            suffix = {"decomp": "decomp.pt2", "strict": "strict.pt2", "release": "release.aimodel"}
            files = {f: f"{room}/out/{name}.{suffix.get(f, f)}" for f in FORMATS}
            index["cases"][name] = {
                "file": f"{room}/{file.stem}.py", "class": case["make"].__name__, "spans": where,
                "artifacts": {f: p for f, p in files.items() if (HERE / p).exists()},
                "refused": refused,
            }
    if not arguments.list:
        if not arguments.names:
            index["cases"] = {n: c for n, c in index["cases"].items() if n in every}
        index["cases"] = dict(sorted(index["cases"].items()))
        lines = ",\n".join(f"  {json.dumps(n)}: {json.dumps(c)}" for n, c in index["cases"].items())
        index_file.write_text('{"cases": {\n' + lines + "\n}}\n")
        print(f"{failed} refusals; index of {len(index['cases'])} cases written")


if __name__ == "__main__":
    main()
