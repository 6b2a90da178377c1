"""A fixture for pytest: `anelint_check` asserts that a module stays on its unit.

    def test_decoder_stays_on_the_neural_engine(anelint_check):
        anelint_check(Decoder().half().eval(), (tokens,), max_regions=1)

`pytest --anelint-target gpu` checks against another unit than the test names by default.
"""
from __future__ import annotations

from typing import Any

import pytest


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("anelint")
    group.addoption(
        "--anelint-target",
        default=None,
        metavar="UNIT",
        help="unit that `anelint_check` checks against where a test names none: neural-engine, gpu, cpu",
    )


@pytest.fixture
def anelint_check(request: Any) -> Any:
    """`anelint.assert_resident`, with the target of the command line as the default."""
    from . import assert_resident

    default = request.config.getoption("--anelint-target")

    def run(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        if default is not None:
            options.setdefault("target", default)
        return assert_resident(*args, **options)

    return run
