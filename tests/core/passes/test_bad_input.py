"""Every pass bears every legal program: irreducible, endless, recursive, with dead blocks, and large.

Each takes less than two seconds (of this process, so that a busy machine does not count).
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from nnkit.core.errors import FuelError, TrapError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.ir.surgery import clone_module
from nnkit.core.passes import ALL, PIPELINES, Pass, apply_pass
from nnkit.core.text import parse_module
from nnkit.core.verify import verify
from tests.core.passes.odd_programs import ENDING, ENDLESS

LIMIT = 2.0
PASSES: dict[str, Pass] = {a_pass.name: a_pass() for a_pass in ALL}
PROGRAMS = {**ENDING, **ENDLESS}
ARGUMENTS = ((True, 0), (False, 7))


def outcome(module: Module, arguments: tuple[bool, int], fuel: int | None) -> Any:
    try:
        return evaluate(module, "main", *arguments, fuel=fuel).item()
    except FuelError:
        return "no end"
    except TrapError:
        return "trap"


def timed(a_pass: Pass, module: Module) -> bool:
    start = time.process_time()
    changed = apply_pass(a_pass, module)
    seconds = time.process_time() - start
    assert seconds < LIMIT, f"{a_pass.name} took {seconds:.1f} s"
    return changed


def outcomes(name: str, module: Module) -> list[Any]:
    """What `@main` gives; an endless program is stopped early."""
    fuel = 2000 if name in ENDLESS else None
    return [outcome(module, arguments, fuel) for arguments in ARGUMENTS]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_pass_alone(name: str) -> None:
    plain = parse_module(PROGRAMS[name]())
    verify(plain)
    expected = outcomes(name, plain)
    for a_pass in PASSES.values():
        module = clone_module(plain)
        if timed(a_pass, module):
            verify(module)
            assert outcomes(name, module) == expected, a_pass.name
            assert not apply_pass(a_pass, module), a_pass.name


@pytest.mark.parametrize("level", (2, 3))
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_level(name: str, level: int) -> None:
    module = parse_module(PROGRAMS[name]())
    expected = outcomes(name, module)
    for a_pass in (part for half in PIPELINES[level] for part in half):
        timed(a_pass, module)
    verify(module)
    assert outcomes(name, module) == expected
