"""Inlining in long chains of calls: how deep they are afterwards, whatever calls whom, and what stays."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nnkit.core.analysis.call_graph import callees
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Function, GradientOf, Module, Value
from nnkit.core.ir.surgery import clone_module
from nnkit.core.ops import Add, Sin
from nnkit.core.passes import InlineChains, apply_pass
from nnkit.core.passes.inline_chains import MOST_CALLS
from nnkit.core.types import F32, FunctionType, TensorType
from nnkit.core.verify import verify
from tests.core.passes.laws import call, define, special
from tests.programs import same_bits

X = TensorType((11,), F32)


def chain(length: int, *, extra: Sequence[int] = (), differentiated: bool = True) -> Module:
    """f0 is sin; each further function adds its argument to what the one before gives; `top` calls `extra` too."""
    module = Module()
    functions = [define(module, "f0", [X], lambda b, x: b.emit(Sin(), x))]
    for level in range(1, length + 1):

        def body(b: Builder, x: Value, below: Function = functions[-1]) -> Value:
            return b.emit(Add(), call(b, below, x), x)

        functions.append(define(module, f"f{level}", [X], body))

    def top(b: Builder, x: Value) -> Value:
        total = call(b, functions[-1], x)
        for number in extra:
            total = b.emit(Add(), total, call(b, functions[number], x))
        return total

    define(module, "top", [X], top)
    if differentiated:
        module.add(
            Function("slope", FunctionType((X,), X), declaration=GradientOf("top", None, (0,)))
        )
    return module


def depth(module: Module, name: str) -> int:
    """The most calls inside each other that `name` makes; callees stand before their callers."""
    found: dict[str, int] = {}
    for function in module.functions.values():
        found[function.name] = max((found[c] + 1 for c in callees(function)), default=0)
    return found[name]


CHAINS = {"once": (2_000, ()), "some": (2_000, range(0, 2_000, 100)), "all": (300, range(300))}


@pytest.mark.parametrize("name", CHAINS)
def test_calls_inside_each_other_become_few(name: str) -> None:
    length, extra = CHAINS[name]
    module = chain(length, extra=extra)
    before = clone_module(module)
    assert apply_pass(InlineChains(), module)
    verify(module)
    assert depth(before, "top") == length + 1
    assert depth(module, "top") <= length // MOST_CALLS + 1
    assert sum(len(f.entry.instructions) for f in module.functions.values() if f.body) < 600_000
    assert same_bits(*(evaluate(m, "top", special(X)) for m in (before, module)))


@pytest.mark.parametrize(
    "module",
    [chain(MOST_CALLS - 1), chain(500, differentiated=False)],
    ids=["short", "not differentiated"],
)
def test_other_chains_stay(module: Module) -> None:
    assert not apply_pass(InlineChains(), module)


def test_a_second_run_changes_nothing() -> None:
    module = chain(300, extra=range(0, 300, 7))
    assert apply_pass(InlineChains(), module)
    assert not apply_pass(InlineChains(), module)
