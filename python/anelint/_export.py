"""`anelint.export`: a `.pt2` without weights, with every line of Python that made it."""
from __future__ import annotations

import contextlib
import json
import os
from typing import Any, Iterator

from . import _archive, _frames, _source_map


def export(
    module: Any,
    args: tuple,
    path: Any,
    dynamic_shapes: Any = None,
    *,
    kwargs: dict | None = None,
    kept_bytes: int = _archive.KEPT_BYTES,
    folder: Any = None,
) -> str:
    """Exports `module` to `path`, for `anelint check` to read.

    The file holds the graph, the values of buffers and constants of up to `kept_bytes` each, and a map
    from every op to the lines and columns of Python that made it. Parameters are left out, so that it
    is small enough to commit. Paths below `folder` (the working folder if not given) are recorded
    relative to it.

    The module is called in evaluation mode if it is in evaluation mode: call `module.eval()` before.
    Parameters and arguments may lie on the meta device (see `without_weights`); their ops are recorded
    as if they ran on the CPU.

    Returns the path.
    """
    import torch

    if not isinstance(args, tuple):
        args = tuple(args) if isinstance(args, list) else (args,)
    folder = os.path.abspath(os.fspath(folder) if folder is not None else os.getcwd())
    with _on_cpu(module, args, kwargs) as (args, kwargs), _frames.recording(), torch.no_grad():
        program = torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False)
    source_map = _source_map.SourceMap(folder)
    source_map.add(program.graph_module)
    document = source_map.document()
    document["dropped"] = sorted(_archive.drop_weights(program, kept_bytes))
    extra = {_source_map.MEMBER: json.dumps(document, separators=(",", ":"), ensure_ascii=False)}
    _archive.write(program, path, extra, _shorter_paths(folder))
    return os.fspath(path)


def _shorter_paths(folder: str) -> dict[str, str]:
    """Frames as torch records them, without the folder that the machine has put the project in."""
    inside = os.path.join(folder, "")
    quoted = json.dumps(json.dumps(f'File "{inside}')[1:-1])[1:-1]
    once = json.dumps(f'File "{inside}')[1:-1]
    # `from_node` is JSON within JSON.
    return {once: 'File \\"', quoted: 'File \\\\\\"'}


@contextlib.contextmanager
def _on_cpu(module: Any, args: tuple, kwargs: dict | None) -> Iterator[tuple]:
    """Lets tensors of the meta device pass for tensors of the CPU while the module is traced.

    torch refuses ops between the two, and models make tensors on the CPU as they run.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    from torch.utils import _pytree as pytree

    def is_meta(value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.device.type == "meta"

    # A tensor may also be a plain attribute.
    tables = [table for own in module.modules() for table in (own._parameters, own._buffers, vars(own))]
    on_meta = any(is_meta(value) for table in tables for value in table.values())
    leaves, _ = pytree.tree_flatten((args, kwargs or {}))
    on_meta |= any(map(is_meta, leaves))
    if not on_meta:
        yield args, kwargs
        return

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    made: dict[int, Any] = {}

    def fake(tensor: Any) -> Any:
        # Tied weights stay one tensor.
        known = made.get(id(tensor))
        if known is None:
            known = FakeTensor(mode, tensor.detach(), torch.device("cpu"))
            if isinstance(tensor, torch.nn.Parameter):
                known = torch.nn.Parameter(known, requires_grad=False)
            made[id(tensor)] = known
        return known

    def real(leaf: Any) -> Any:
        return torch.zeros(leaf.shape, dtype=leaf.dtype) if is_meta(leaf) else leaf

    swapped = []
    for table in tables:
        for name, tensor in list(table.items()):
            if is_meta(tensor):
                swapped.append((table, name, tensor))
                table[name] = fake(tensor)
    try:
        yield pytree.tree_map(real, args), pytree.tree_map(real, kwargs) if kwargs else kwargs
    finally:
        for table, name, tensor in swapped:
            table[name] = tensor


@contextlib.contextmanager
def without_weights() -> Iterator[None]:
    """Modules built within have parameters of the right shape and no memory.

    Buffers keep their values, since masks and tables live there. This is how a model of 70 billion
    parameters is exported on a laptop:

        with anelint.without_weights():
            model = Decoder(config).half().eval()
        anelint.export(model, (tokens,), "decoder.pt2")
    """
    import torch

    module = torch.nn.Module
    register, set_attribute = module.register_parameter, module.__setattr__

    def to_meta(value: Any) -> Any:
        if isinstance(value, torch.nn.Parameter) and value.device.type != "meta":
            return torch.nn.Parameter(value.detach().to("meta"), requires_grad=value.requires_grad)
        return value

    def register_parameter(self: Any, name: str, param: Any) -> None:
        register(self, name, to_meta(param))

    class Mode(torch.overrides.TorchFunctionMode):
        """Makes what becomes a parameter on the meta device, and leaves values alone."""

        def __torch_function__(self, function: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            # `nn.Linear` and its kin allocate with `torch.empty` and fill in place; a buffer does not.
            if function in (torch.empty, torch.Tensor.new_empty) and "device" in kwargs and kwargs["device"] is None:
                kwargs = {**kwargs, "device": "meta"}
            return function(*args, **kwargs)

    module.register_parameter = register_parameter  # type: ignore[method-assign]
    module.__setattr__ = lambda self, name, value: set_attribute(self, name, to_meta(value))  # type: ignore[method-assign]
    try:
        with Mode():
            yield
    finally:
        module.register_parameter = register  # type: ignore[method-assign]
        module.__setattr__ = set_attribute  # type: ignore[method-assign]
