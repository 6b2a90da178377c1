"""Records which lines of Python made each node of a graph, while torch traces it.

torch keeps only frames of functions named ``forward`` and only their lines. Here every frame of the
author's is kept, with the columns of the expression where Python knows them (3.11 and newer).
"""
from __future__ import annotations

import contextlib
import os
import sys
import sysconfig
from typing import Any, Iterator

# The key in ``node.meta`` under which a node's stack waits for the end of the export. Passes that move
# or copy nodes carry ``meta`` along.
META_KEY = "anelint_stack"

_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STDLIB = tuple(
    os.path.normpath(path) + os.sep
    for path in {sysconfig.get_paths().get("stdlib", ""), sysconfig.get_paths().get("platstdlib", "")}
    if path
)
_INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
# Frames of torch that are part of a model and not of the tracer.
_TORCH_MODULES = (os.path.join("nn", ""), os.path.join("ao", ""))
_MAX_FRAMES = 2000


def _torch_root() -> str:
    import torch

    return os.path.dirname(os.path.abspath(torch.__file__)) + os.sep


def _is_model_code(file: str, function: str, torch_root: str) -> bool:
    """Whether a frame belongs to a model: the author's code, or a library's that models are made of."""
    if file.startswith(torch_root):
        # As torch itself does it: the `forward` of a module, not what runs below it.
        return function == "forward" and file[len(torch_root) :].startswith(_TORCH_MODULES)
    if file.startswith(_OWN):
        return False
    if file.startswith("<") and not file.startswith("<ipython-input"):
        return False
    if any(part in file for part in _INSTALLED):
        return True
    return not file.startswith(_STDLIB)


class Recorder:
    """The stacks of one export: ``(code, instruction, line)`` of each frame, outermost first."""

    def __init__(self) -> None:
        self._torch_root = _torch_root()
        self._kept: dict[Any, bool] = {}
        self._stacks: dict[tuple, tuple] = {}

    def _keep(self, code: Any) -> bool:
        kept = self._kept.get(code)
        if kept is None:
            kept = _is_model_code(code.co_filename, code.co_name, self._torch_root)
            self._kept[code] = kept
        return kept

    def stack(self, frame: Any) -> tuple | None:
        """The frames of the model that led to ``frame``; ``None`` if there is none, or if the innermost
        is code made at run time, of which torch's own record knows more."""
        found: list[tuple] = []
        outermost_forward = 0
        for _ in range(_MAX_FRAMES):
            if frame is None:
                break
            code = frame.f_code
            if code.co_filename.startswith("<eval_with_key"):
                return None
            if self._keep(code):
                found.append((code, frame.f_lasti, frame.f_lineno))
                if code.co_name == "forward":
                    outermost_forward = len(found)
            frame = frame.f_back
        # What is outside the outermost `forward` called the export; it is no part of the model.
        stack = tuple(reversed(found[:outermost_forward]))
        return self._stacks.setdefault(stack, stack) if stack else None


@contextlib.contextmanager
def recording() -> Iterator[Recorder]:
    """While it lasts, every node that a tracer makes carries its stack in ``meta``."""
    from torch.fx.proxy import TracerBase

    recorder = Recorder()
    original = TracerBase.create_node

    def create_node(self: Any, kind: str, *args: Any, **kwargs: Any) -> Any:
        node = original(self, kind, *args, **kwargs)
        if kind not in ("placeholder", "output"):
            stack = recorder.stack(sys._getframe(1))
            if stack is not None:
                node.meta[META_KEY] = stack
        return node

    TracerBase.create_node = create_node  # type: ignore[method-assign]
    try:
        yield recorder
    finally:
        TracerBase.create_node = original  # type: ignore[method-assign]
