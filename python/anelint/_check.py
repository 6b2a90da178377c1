"""`anelint.check`: findings of a module, for a test of one's own."""
from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass, field
from typing import Any, Iterable, Sequence

from ._binary import find_binary
from ._export import export


class AnelintError(RuntimeError):
    """The program could not do its job."""


@dataclass(frozen=True)
class Finding:
    """One fault at one place."""

    rule: str
    name: str
    severity: str
    message: str
    help: str | None
    file: str | None
    line: int | None
    column: int | None
    count: int
    modules: tuple[str, ...]
    nodes: tuple[str, ...]
    regions_added: int | None
    #: The finding as `anelint check --format json` has it.
    raw: dict[str, Any] = field(repr=False, compare=False)

    def __str__(self) -> str:
        place = "no source line"
        if self.file is not None:
            place = f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")
        return f"{place}: {self.severity}[{self.rule}] {self.message}"


@dataclass(frozen=True)
class Function:
    """What became of one function of the graph."""

    name: str
    ops: int
    #: Ops that the unit runs; `None` where placement says nothing.
    eligible: int | None
    #: Runs of work on the unit.
    regions: int | None


class Findings(Sequence[Finding]):
    """The findings of one check, in order; empty if all is well."""

    def __init__(self, document: dict[str, Any], text: str) -> None:
        #: The whole report as `anelint check --format json` has it.
        self.document = document
        #: The report as the terminal shows it.
        self.text = text
        self._findings = [_finding(raw) for raw in document["findings"] if not raw.get("suppressed")]

    def __len__(self) -> int:
        return len(self._findings)

    def __getitem__(self, index: Any) -> Any:
        return self._findings[index]

    def __repr__(self) -> str:
        return f"<{len(self)} findings>" if not self else "\n".join(map(str, self))

    @property
    def errors(self) -> list[Finding]:
        """Those of severity error."""
        return self.at_least("error")

    @property
    def functions(self) -> list[Function]:
        """The functions that were checked."""
        return [
            Function(own["name"], own["ops"], own["eligible"], own["regions"])
            for each in self.document["inputs"]
            for own in each["functions"]
        ]

    @property
    def regions(self) -> int | None:
        """The most regions that a function falls into; `None` if nothing is known."""
        return max((own.regions for own in self.functions if own.regions is not None), default=None)

    def at_least(self, severity: str) -> list[Finding]:
        """Those of a severity (`error`, `warning`, `advice`) or a worse one."""
        order = ["error", "warning", "advice"]
        worst = order[: order.index(severity) + 1]
        return [finding for finding in self if finding.severity in worst]

    def of(self, rule: str) -> list[Finding]:
        """Those of a rule, by id or name."""
        return [finding for finding in self if rule in (finding.rule, finding.name)]


def _finding(raw: dict[str, Any]) -> Finding:
    location = raw.get("location") or {}
    return Finding(
        rule=raw["rule"],
        name=raw["name"],
        severity=raw["severity"],
        message=raw["message"],
        help=raw.get("help"),
        file=location.get("file"),
        line=location.get("line"),
        column=location.get("column"),
        count=raw["count"],
        modules=tuple(raw["modules"]),
        nodes=tuple(raw["nodes"]),
        regions_added=raw.get("regions_added"),
        raw=raw,
    )


def check(
    module: Any,
    args: Any = None,
    *,
    target: str | Iterable[str] = "neural-engine",
    dynamic_shapes: Any = None,
    kwargs: dict | None = None,
    runtime: str | None = None,
    chip: str | None = None,
    os_version: str | None = None,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    arguments: Iterable[str] = (),
) -> Findings:
    """Checks a module (with example `args`), or the model file that `module` is the path of.

    `arguments` are further arguments of `anelint check`. Raises `AnelintError` if the program cannot do
    its job; findings are no error.
    """
    command = ["--target", target if isinstance(target, str) else ",".join(target)]
    for flag, value in (("--runtime", runtime), ("--chip", chip), ("--os", os_version)):
        if value is not None:
            command += [flag, value]
    for flag, values in (("--select", select), ("--ignore", ignore)):
        values = [values] if isinstance(values, str) else list(values)
        if values:
            command += [flag, ",".join(values)]
    command += list(arguments)
    if isinstance(module, (str, os.PathLike)):
        if args is not None:
            raise TypeError("a model file takes no args")
        return _run(os.fspath(module), command)
    with tempfile.TemporaryDirectory(prefix="anelint-") as folder:
        path = os.path.join(folder, f"{type(module).__name__}.pt2")
        export(module, args if args is not None else (), path, dynamic_shapes, kwargs=kwargs)
        return _run(path, command)


def _run(path: str, arguments: list[str]) -> Findings:
    text = os.path.join(tempfile.gettempdir(), f"anelint-{os.getpid()}.txt")
    command = [find_binary(), "check", path, "--format", "json", "--color", "never", "--exit-zero"]
    try:
        done = subprocess.run(
            [*command, "--report", f"text={text}", *arguments], capture_output=True, encoding="utf-8"
        )
        if done.returncode != 0:
            raise AnelintError(_complaint(done))
        with open(text, encoding="utf-8") as file:
            return Findings(json.loads(done.stdout), file.read())
    finally:
        if os.path.exists(text):
            os.unlink(text)


def _complaint(done: Any) -> str:
    """What the program says is wrong: on stderr, or as an error of the report."""
    try:
        errors = json.loads(done.stdout)["errors"]
    except (ValueError, KeyError):
        errors = []
    told = [f"{error['path']}: {error['message']}" for error in errors]
    return "\n".join(told) or done.stderr.strip() or f"anelint ended with {done.returncode}"


def assert_resident(
    module: Any,
    args: Any = None,
    *,
    fail_on: str = "error",
    max_regions: int | None = None,
    **options: Any,
) -> Findings:
    """Fails, with the report as the reason, if a finding is at or above `fail_on` (`error`, `warning`,
    `advice`) or a function falls into more than `max_regions` regions. Takes the options of `check`."""
    __tracebackhide__ = True
    found = check(module, args, **options)
    reasons = []
    worst = found.at_least(fail_on)
    if worst:
        reasons.append(f"{len(worst)} finding{'s' if len(worst) != 1 else ''} at or above {fail_on}")
    if max_regions is not None:
        for own in found.functions:
            if own.regions is not None and own.regions > max_regions:
                reasons.append(f"`{own.name}` falls into {own.regions} regions, and {max_regions} are allowed")
    if reasons:
        raise AssertionError("; ".join(reasons) + "\n\n" + found.text)
    return found
