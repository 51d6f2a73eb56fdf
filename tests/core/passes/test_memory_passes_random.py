"""What holds for every pass on every program with control flow, calls and memory.

Results and what is left in memory are the same bit for bit, the module is valid, and a second run changes
nothing and says so.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nnkit.core.errors import FuelError, TrapError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.ops import ALL as OPS
from nnkit.core.ops import Power
from nnkit.core.passes import ALL, Canonicalize, DeadFunctions, Inline, Pass, apply_pass
from nnkit.core.passes.constant_propagation import ConstantPropagation
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import FunctionType
from nnkit.core.verify import verify
from tests.core.passes.memory_programs import memory_programs
from tests.core.passes.pointer_programs import pointer_programs
from tests.programs import Program, describe, flat, graphs, programs, same_bits

PASSES: dict[str, Pass] = {
    **{a_pass.name: a_pass() for a_pass in ALL},
    "constant-propagation of main": ConstantPropagation(("main",)),
    "canonicalize final": Canonicalize(final=True),
    "inline small": Inline(small=8),
    "dead-functions of main": DeadFunctions(("main",)),
}

COUNT = max(8, settings().max_examples // 8)
"""For each of some two dozen passes; the profile `fuzz` runs many more."""

TENSORS = [op for op in OPS if op is not Power]
"""x² is rounded better than a power, as the laws of powers say."""


def outcome(module: Module, name: str, *arguments: Any, type: FunctionType | None = None) -> Any:
    """The result, flat, or what stops the program; `type` as of `evaluate`."""
    try:
        result = evaluate(module, name, *arguments, fuel=1_000_000, type=type)
    except TrapError:
        return "trap"
    except FuelError:
        return "no end"
    return flat(result)


def is_same(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return bool(isinstance(one, str) and isinstance(other, str) and one == other)
    return same_bits(one, other)


def is_done(a_pass: Pass, module: Module) -> None:
    """A second run changes nothing, and says so."""
    once = print_module(module)
    assert not apply_pass(a_pass, module), f"changed again:\n{once}\nto\n{print_module(module)}"
    assert print_module(module) == once


@pytest.mark.parametrize("name", PASSES)
@settings(max_examples=COUNT, suppress_health_check=list(HealthCheck))
@given(
    program=st.one_of(
        graphs(ops=TENSORS, control=True, memory=True),
        programs(ops=TENSORS, control=True, memory=True),
    )
)
def test_control_flow_calls_and_variables(name: str, program: Program) -> None:
    a_pass = PASSES[name]
    before = print_module(program.module)
    expected = outcome(program.module, program.entry, *program.arguments)
    type = program.module.functions[program.entry].type
    changed = apply_pass(a_pass, program.module)
    verify(program.module)
    assert changed or print_module(program.module) == before
    actual = outcome(program.module, program.entry, *program.arguments, type=type)
    assert is_same(actual, expected), f"became\n{describe(program.module)}"
    is_done(a_pass, program.module)


@pytest.mark.parametrize("name", PASSES)
@settings(max_examples=COUNT, suppress_health_check=list(HealthCheck))
@given(text=st.one_of(pointer_programs(), memory_programs()), x=st.integers(0, 1))
def test_pointers(name: str, text: str, x: int) -> None:
    a_pass = PASSES[name]
    module = parse_module(text)
    expected = outcome(parse_module(text), "main", x)
    before = print_module(module)
    changed = apply_pass(a_pass, module)
    verify(module)
    assert changed or print_module(module) == before
    assert is_same(outcome(module, "main", x), expected), f"became\n{print_module(module)}"
    is_done(a_pass, module)


@settings(max_examples=COUNT, suppress_health_check=list(HealthCheck))
@given(text=st.one_of(pointer_programs(), memory_programs()), data=st.data())
def test_passes_in_any_order(text: str, data: st.DataObject) -> None:
    """What one pass leaves is a program for the others."""
    order = data.draw(st.lists(st.sampled_from([*PASSES]), min_size=3, max_size=12))
    module = parse_module(text)
    expected = outcome(parse_module(text), "main", 1)
    for name in order:
        apply_pass(PASSES[name], module)
        verify(module)
        actual = outcome(module, "main", 1)
        assert is_same(actual, expected), f"after {name}\n{print_module(module)}"
