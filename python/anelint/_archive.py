"""Writes an exported program as a `.pt2` archive that holds no weights."""
from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from typing import Any

#: Buffers and constants that are no parameters keep their values up to this many bytes each.
KEPT_BYTES = 1 << 20
# The archive has no times: equal exports are equal files.
_TIME = (1980, 1, 1, 0, 0, 0)


def drop_weights(program: Any, kept_bytes: int = KEPT_BYTES) -> list[str]:
    """Replaces the parameters of a program, and whatever else is large, by tensors without storage.

    Names of what was dropped are returned. The program is spoilt for running.
    """
    parameters = set(program.graph_signature.parameters)
    dropped = []
    for table in (program.state_dict, program.constants):
        for name, tensor in list(table.items()):
            if not _is_tensor(tensor):
                continue
            size = tensor.numel() * tensor.element_size()
            if name in parameters or size > kept_bytes:
                table[name] = _empty(tensor)
                dropped.append(name)
            elif not _has_values(tensor):
                table[name] = _empty(tensor)
                dropped.append(name)
            else:
                # A view would bring the whole of its storage along.
                table[name] = tensor.detach().clone().contiguous()
    return dropped


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _has_values(tensor: Any) -> bool:
    from torch._subclasses.fake_tensor import FakeTensor

    return tensor.device.type != "meta" and not isinstance(tensor, FakeTensor)


def _empty(tensor: Any) -> Any:
    """The same shape and dtype, without storage and without a subclass."""
    import torch

    made = torch.empty_strided(tuple(tensor.shape), tuple(tensor.stride()), dtype=tensor.dtype, device="meta")
    return torch.nn.Parameter(made, requires_grad=False) if isinstance(tensor, torch.nn.Parameter) else made


def write(program: Any, path: Any, extra: dict[str, str], replacements: dict[str, str]) -> None:
    """Writes the archive beside `path` and renames it.

    `extra` are members below `extra/`; `replacements` are texts in the graph's JSON, which shorten the
    paths that torch has recorded.
    """
    import torch

    raw = io.BytesIO()
    program.example_inputs = None
    torch.export.save(program, raw, extra_files=extra)
    raw.seek(0)
    path = os.path.abspath(os.fspath(path))
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    handle, beside = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", suffix=".tmp", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            _repack(raw, file, replacements)
        # `mkstemp` makes a file that only its owner reads; a report of a build is for everybody.
        os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _repack(raw: io.BytesIO, file: Any, replacements: dict[str, str]) -> None:
    with zipfile.ZipFile(raw) as source, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as target:
        names = source.namelist()
        prefix = names[0].split("/", 1)[0]
        add = _Adder(target)
        for name in names:
            inner = name.split("/", 1)[1]
            data = source.read(name)
            new = f"model/{inner}"
            if inner.startswith("models/") and inner.endswith(".json"):
                text = data.decode("utf-8")
                for old, short in replacements.items():
                    text = text.replace(old, short)
                data = text.encode("utf-8")
            elif inner.endswith("_config.json") and inner.startswith("data/"):
                folder = name.rsplit("/", 1)[0]
                data = _separate(data, lambda member, folder=folder: _size(source, f"{folder}/{member}"), new, add)
            add(new, data)
        del prefix


class _Adder:
    """Adds members, each once."""

    def __init__(self, target: zipfile.ZipFile) -> None:
        self._target = target
        self._names: set[str] = set()

    def __call__(self, name: str, data: bytes) -> None:
        if name in self._names:
            return
        self._names.add(name)
        info = zipfile.ZipInfo(name, _TIME)
        info.compress_type = zipfile.ZIP_DEFLATED if len(data) > 64 else zipfile.ZIP_STORED
        info.external_attr = 0o644 << 16
        self._target.writestr(info, data, compresslevel=9)


def _size(source: zipfile.ZipFile, name: str) -> int:
    try:
        return source.getinfo(name).file_size
    except KeyError:
        return 0


def _separate(config: bytes, size: Any, name: str, add: _Adder) -> bytes:
    """Gives every tensor without a payload an (empty) member of its own.

    torch writes one for all of them, and would load all with the shape of the first.
    """
    document = json.loads(config)
    folder = name.rsplit("/", 1)[0]
    for index, entry in enumerate(document.get("config", {}).values()):
        if entry.get("use_pickle") or not entry.get("tensor_meta") or size(entry["path_name"]):
            continue
        entry["path_name"] = ("weight_" if "/weights/" in name else "tensor_") + f"dropped_{index}"
        add(f"{folder}/{entry['path_name']}", b"")
    return json.dumps(document).encode("utf-8")
