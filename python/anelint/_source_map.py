"""The source map of an archive: see docs/source-map.md for the format."""
from __future__ import annotations

import hashlib
import linecache
import os
from typing import Any

from ._frames import META_KEY

#: Name of the member below ``extra/``.
MEMBER = "anelint-source-map.json"
VERSION = 1


class SourceMap:
    """Interns files, functions, lines, frames and stacks, and names the stack of each node."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.join(os.path.abspath(folder), "")
        self._files: dict[str, int] = {}
        self._sources: list[dict[str, Any]] = []
        self._functions: dict[str, int] = {}
        self._texts: dict[str, int] = {}
        self._frames: dict[tuple, int] = {}
        self._stacks: dict[tuple, int] = {}
        self._nodes: dict[str, int] = {}
        self._positions: dict[Any, list] = {}
        self._seen: dict[tuple, int] = {}

    def add(self, graph_module: Any) -> None:
        """Takes the stacks of a graph; they leave ``meta``, and that of the graphs within it.

        torch traces branches from code of its own making, whose frames say nothing.
        """
        for own in graph_module.modules():
            for node in getattr(getattr(own, "graph", None), "nodes", ()):
                stack = node.meta.pop(META_KEY, None)
                if stack is not None and own is graph_module:
                    self._nodes[node.name] = self._stack(stack)

    def document(self) -> dict[str, Any]:
        """The whole map, as JSON has it."""
        return {
            "version": VERSION,
            "files": self._sources,
            "functions": list(self._functions),
            "texts": list(self._texts),
            "frames": [list(frame) for frame in self._frames],
            "stacks": [list(stack) for stack in self._stacks],
            "nodes": self._nodes,
        }

    def _stack(self, stack: tuple) -> int:
        known = self._seen.get(stack)
        if known is None:
            frames = tuple(self._frame(*frame) for frame in stack)
            known = _intern(self._stacks, frames)
            self._seen[stack] = known
        return known

    def _frame(self, code: Any, instruction: int, line: int) -> int:
        span = self._span(code, instruction, line)
        file = code.co_filename
        text = linecache.getline(file, span[0]).rstrip()
        key = (
            self._file(file),
            _intern(self._functions, code.co_name),
            _intern(self._texts, text),
            *_in_characters(span, lambda number: linecache.getline(file, number)),
        )
        return _intern(self._frames, key)

    def _span(self, code: Any, instruction: int, line: int) -> tuple:
        """Line, end line, and columns in bytes from 0; the columns are ``None`` where not known."""
        if not hasattr(code, "co_positions"):
            return (line, line, None, None)
        positions = self._positions.get(code)
        if positions is None:
            positions = self._positions[code] = list(code.co_positions())
        try:
            start, end, column, end_column = positions[instruction // 2]
        except IndexError:
            start = end = column = end_column = None
        if start is None:
            return (line, line, None, None)
        return (start, end if end is not None else start, column, end_column)

    def _file(self, file: str) -> int:
        known = self._files.get(file)
        if known is None:
            known = self._files[file] = len(self._sources)
            self._sources.append({"path": shown(file, self._folder), "sha256": _digest(file)})
        return known


def shown(file: str, folder: str) -> str:
    """A path as it is recorded: relative to ``folder`` where it lies below it, with forward slashes."""
    relative = file[len(folder) :] if file.startswith(folder) else file
    return relative.replace(os.sep, "/")


def _in_characters(span: tuple, line_of: Any) -> tuple[int, int, int, int]:
    """Line, column, end line, end column; columns in characters from 1, ends exclusive, 0 if not known."""
    start, end, column, end_column = span
    if column is None or end_column is None:
        return (start, 0, end, 0)

    def characters(line: int, byte: int) -> int:
        raw = line_of(line).encode("utf-8")[:byte]
        return len(raw.decode("utf-8", "replace")) + 1

    return (start, characters(start, column), end, characters(end, end_column))


def _intern(table: dict, item: Any) -> int:
    return table.setdefault(item, len(table))


def _digest(file: str) -> str:
    try:
        with open(file, "rb") as source:
            return hashlib.sha256(source.read()).hexdigest()
    except OSError:
        return ""
