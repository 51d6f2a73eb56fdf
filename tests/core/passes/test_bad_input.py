"""Every pass bears every legal program: irreducible, endless, recursive, with dead blocks, and large.

Each takes less than two seconds (of this process, so that a busy machine does not count).
"""

from __future__ import annotations

import time
from dataclasses import fields
from typing import Any

import pytest

from nnkit.core.driver.stages import OPTIMIZABLE
from nnkit.core.errors import FuelError, TrapError, VerifyError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.ir.surgery import clone_module
from nnkit.core.passes import ALL, Pass, apply_pass
from nnkit.core.text import parse_module, print_module
from nnkit.core.verify import verify
from tests.core.passes.odd_programs import ENDING, ENDLESS
from tests.patience import PATIENCE

LIMIT = 2.0
NAMES_FUNCTIONS = [(a_pass, f.name) for a_pass in ALL for f in fields(a_pass) if f.default == ()]
PASSES: dict[str, Pass] = {a_pass.name: a_pass() for a_pass in ALL}
PROGRAMS = {**ENDING, **ENDLESS}
ARGUMENTS = ((True, 0), (False, 7))


def outcome(module: Module, arguments: tuple[bool, int], fuel: int) -> Any:
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
    assert seconds < LIMIT * PATIENCE, f"{a_pass.name} took {seconds:.1f} s"
    return changed


def outcomes(name: str, module: Module) -> list[Any]:
    """What `@main` gives; an endless program is stopped early, and what a pass makes endless in the end."""
    fuel = 2000 if name in ENDLESS else 1_000_000
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
    for a_pass in OPTIMIZABLE[level]:
        timed(a_pass, module)
    verify(module)
    assert outcomes(name, module) == expected


@pytest.mark.parametrize(("pass_class", "option"), NAMES_FUNCTIONS)
def test_functions_that_are_not_there(pass_class: type[Pass], option: str) -> None:
    module = parse_module(PROGRAMS["recursion"]())
    before = print_module(module)
    there = "@self, @even, @odd, @never, @main"
    with pytest.raises(VerifyError, match=f"has no function @nope; its functions: {there}"):
        apply_pass(pass_class(**{option: ("main", "nope")}), module)
    assert print_module(module) == before


def test_there_are_passes_that_are_told_names_of_functions() -> None:
    names = {(a_pass.name, option) for a_pass, option in NAMES_FUNCTIONS}
    assert {("dead-functions", "roots"), ("inline", "entries")} <= names
