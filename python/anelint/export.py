"""`python -m anelint.export package.module:factory`: the graph of a model, for `anelint check`.

The factory is called without arguments and returns `(module, args)`, `(module, args, dynamic_shapes)`
or a dict with `module`, `args` and perhaps `kwargs` and `dynamic_shapes`.
"""
from __future__ import annotations

import argparse
import importlib
import os
import sys
import types
from typing import Any

from ._export import export, without_weights


class _Callable(types.ModuleType):
    """`import anelint.export` gives this module; `anelint.export(…)` still works then."""

    def __call__(self, *args: Any, **kwargs: Any) -> str:
        return export(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable


def _made(factory: Any) -> dict[str, Any]:
    made = factory()
    if isinstance(made, dict):
        unknown = set(made) - {"module", "args", "kwargs", "dynamic_shapes"}
        if unknown or "module" not in made or "args" not in made:
            raise SystemExit("the factory's dict needs `module` and `args`, and may have `kwargs` and `dynamic_shapes`")
        return made
    if isinstance(made, tuple) and len(made) in (2, 3):
        return dict(zip(("module", "args", "dynamic_shapes"), made))
    raise SystemExit("the factory must return (module, args), (module, args, dynamic_shapes) or a dict")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m anelint.export", description=__doc__)
    parser.add_argument("factory", help="package.module:factory, or path/to/file.py:factory")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write [default: FACTORY.pt2]")
    parser.add_argument(
        "--without-weights",
        action="store_true",
        help="build the module without memory for its parameters (large models)",
    )
    own = parser.parse_args(arguments)
    where, colon, name = own.factory.rpartition(":")
    if not colon:
        parser.error(f"{own.factory}: expected package.module:factory")
    sys.path.insert(0, os.getcwd())
    if where.endswith(".py"):
        folder, file = os.path.split(os.path.abspath(where))
        sys.path.insert(0, folder)
        where = file[: -len(".py")]
    try:
        module = importlib.import_module(where)
    except ModuleNotFoundError as error:
        # A module that the factory's own imports miss is another matter.
        if error.name is None or not f"{where}.".startswith(f"{error.name}."):
            raise
        parser.error(f"no module named {where}")
    factory: Any = module
    for part in name.split("."):
        try:
            factory = getattr(factory, part)
        except AttributeError:
            parser.error(f"{where} has no {name}")
    if own.without_weights:
        with without_weights():
            made = _made(factory)
    else:
        made = _made(factory)
    path = own.output or f"{name.rsplit('.', 1)[-1]}.pt2"
    export(made["module"], made["args"], path, made.get("dynamic_shapes"), kwargs=made.get("kwargs"))
    print(f"{path}: {os.path.getsize(path):,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
