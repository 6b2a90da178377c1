"""Python side of anelint, the linter for on-device ML model graphs.

`export` writes a graph that `anelint check` reads; `check` returns the findings of a module;
`assert_resident` fails with the report where there are any. Nothing here needs torch until it is called.
"""
from ._binary import find_binary
from ._check import AnelintError, Finding, Findings, Function, assert_resident, check
from ._export import export, without_weights

__all__ = [
    "AnelintError",
    "Finding",
    "Findings",
    "Function",
    "assert_resident",
    "check",
    "export",
    "find_binary",
    "without_weights",
]
