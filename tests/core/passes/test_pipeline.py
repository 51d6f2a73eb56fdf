"""The pipelines: what runs, how long it took, and who is blamed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from nnkit.core.analysis import Analyses
from nnkit.core.errors import InternalError, UnsupportedError, VerifyError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Function, Module, Stage, Value
from nnkit.core.ir.surgery import clone_module
from nnkit.core.ops import Add, Exp, Negate, Subtract
from nnkit.core.passes import (
    AFTER_DIFFERENTIATION,
    ALL,
    BEFORE_DIFFERENTIATION,
    PIPELINES,
    CommonSubexpressions,
    FunctionPass,
    code_generation,
    run_pipeline,
)
from nnkit.core.passes.pipeline import DIFFERENTIABLE
from nnkit.core.text import parse_module
from nnkit.core.types import F32, TensorType, TupleType
from nnkit.core.verify import verify
from nnkit.optimization import Differentiate, optimizing
from tests.core.passes.laws import call, define, module_of, opcodes, parsed

X = TensorType((3,), F32)
INVALID = Path(__file__).parents[2] / "ir" / "verify"


@dataclass(frozen=True)
class Break(FunctionPass):
    """Makes a mess."""

    name: ClassVar[str] = "break"

    def run(self, function: Function, analyses: Analyses) -> bool:
        function.entry.instructions.clear()
        return True


@dataclass(frozen=True)
class Stumble(FunctionPass):
    """Fails."""

    name: ClassVar[str] = "stumble"

    def run(self, function: Function, analyses: Analyses) -> bool:
        raise KeyError("lost")


def verifier(module: Module) -> None:
    """Complains about functions without instructions."""
    for function in module.functions.values():
        if not function.entry.instructions:
            raise VerifyError(f"@{function.name} is empty")


def test_the_pass_is_named_that_broke_the_rules() -> None:
    module = module_of([X], lambda b, x: b.emit(Exp(), x))
    with pytest.raises(InternalError, match=r"after pass 'break': @main is empty"):
        run_pipeline(module, [CommonSubexpressions(), Break()], verifier=verifier, verify=True)


def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    module = module_of([X], lambda b, x: b.emit(Exp(), x))
    monkeypatch.setenv("NNKIT_VERIFY", "1")
    with pytest.raises(InternalError, match="after pass 'break'"):
        run_pipeline(module, [Break()], verifier=verifier)
    monkeypatch.delenv("NNKIT_VERIFY")
    run_pipeline(module, [Break()], verifier=verifier)


def test_what_ran() -> None:
    module = module_of([X], lambda b, x: b.emit(Negate(), b.emit(Negate(), x)))
    runs = run_pipeline(module, BEFORE_DIFFERENTIATION)
    assert [run.name for run in runs] == [a_pass.name for a_pass in BEFORE_DIFFERENTIATION]
    assert [run.name for run in runs if run.changed] == ["canonicalize", "dce"]
    assert all(0 <= run.seconds < 1 for run in runs)
    assert not any(run.changed for run in run_pipeline(module, BEFORE_DIFFERENTIATION))


def test_calls_stay_until_code_is_generated() -> None:
    module = Module()
    leaf = define(module, "leaf", [X], lambda b, x: b.emit(Exp(), x))
    define(module, "main", [X], lambda b, x: b.emit(Add(), call(b, leaf, x), x))
    define(module, "other", [X], lambda b, x: x)
    run_pipeline(module, [*BEFORE_DIFFERENTIATION, *AFTER_DIFFERENTIATION])
    assert opcodes(module.functions["main"]) == "apply add"
    run_pipeline(module, code_generation("main"))
    assert list(module.functions) == ["main"]
    assert opcodes(module.functions["main"]) == "exp add aggregate"
    assert module.functions["main"].type.result == TupleType((X,))


IN_MEMORY = """
func @polynomial: (f64, f64) -> f64 {
'entry(%x: f64, %y: f64):
    %one = literal 1: i64
    %h = allocateHeap f64 count %one: i64
    %p = allocateStack f64 count 1
    store %x: f64 to %p: *f64
    %a = load %p: *f64
    %b = multiply %a: f64, %y: f64
    store %b: f64 to %h: *f64
    %c = load %h: *f64
    %d = multiply %c: f64, %a: f64
    store %d: f64 to %p: *f64
    %e = load %p: *f64
    deallocate %h: *f64
    return %e: f64
}
[gradient @polynomial wrt 0, 1]
func @slopes: (f64, f64) -> (f64, f64)
"""


@pytest.mark.parametrize("level", PIPELINES)
def test_derivatives_pass_through_memory_at_every_level(level: int) -> None:
    module = parsed(IN_MEMORY)
    run_pipeline(module, optimizing(level), verifier=verify, verify=True)
    assert evaluate(module, "slopes", 3.0, 5.0) == (30.0, 9.0)  # of x² · y
    assert evaluate(module, "polynomial", 3.0, 5.0) == 45.0


def test_differentiation_says_what_it_changed() -> None:
    text = """func @f: (f64) -> f64 {
    'entry(%x: f64):
        %y = stopGradient %x: f64
        return %y: f64
    }"""
    module = parsed(text)
    module.stage = Stage.OPTIMIZABLE
    changed = [run_pipeline(module, [Differentiate()])[0].changed for _ in range(2)]
    assert changed == [True, False]
    raw = parsed(IN_MEMORY)
    changed = [run.changed for run in run_pipeline(raw, [*DIFFERENTIABLE, *[Differentiate()] * 2])]
    assert changed[-2:] == [True, False]


def test_fast_math_is_asked_for() -> None:
    def build(b: Builder, x: Value) -> Value:
        return b.emit(Subtract(), x, x)

    for fast, left in ((False, "subtract aggregate"), (True, "aggregate")):
        module = module_of([X], build)
        run_pipeline(module, code_generation("main", fast_math=fast))
        assert opcodes(module.functions["main"]) == left


def test_levels() -> None:
    assert sorted(PIPELINES) == [0, 1, 2, 3]
    assert PIPELINES[2] == (BEFORE_DIFFERENTIATION, AFTER_DIFFERENTIATION)


@pytest.mark.parametrize("pass_class", ALL, ids=lambda pass_class: pass_class.name)
def test_every_pass_says_what_it_does(pass_class: type) -> None:
    text = pass_class.__doc__ or ""
    assert all(word in text for word in ("Requires:", "Preserves:", "Cost:"))
    assert pass_class() == pass_class()
    assert len({a_pass.name for a_pass in ALL}) == len(ALL)


@pytest.mark.parametrize("path", sorted(INVALID.glob("*.dl")), ids=lambda p: p.stem)
def test_invalid_modules_make_passes_fail_in_no_other_way(path: Path) -> None:
    """Passes may also do their work: not all that is wrong is in their way."""
    module = parse_module(path.read_text())
    for a_pass in ALL:
        invalid = clone_module(module)
        with suppress(VerifyError, UnsupportedError):
            run_pipeline(invalid, [a_pass()], verifier=verify, verify=False)


def test_a_pass_that_fails_says_that_what_it_was_given_is_invalid() -> None:
    module = module_of([X], lambda b, x: b.emit(Exp(), x))
    module.functions["main"].entry.instructions.clear()
    message = r"pass 'stumble' cannot work on IR that is not valid: (.|\n)*@main"
    with pytest.raises(VerifyError, match=message):
        run_pipeline(module, [Stumble()], verifier=verify, verify=False)


def test_a_pass_that_fails_on_a_valid_module_is_to_blame() -> None:
    module = module_of([X], lambda b, x: b.emit(Exp(), x))
    with pytest.raises(InternalError, match="pass 'stumble' failed: KeyError: 'lost'"):
        run_pipeline(module, [Stumble()], verifier=verify)


def test_an_invalid_module_is_not_the_fault_of_a_pass() -> None:
    module = module_of([X], lambda b, x: b.emit(Exp(), x))
    module.functions["main"].entry.instructions.clear()
    with pytest.raises(VerifyError, match="@main is empty"):
        run_pipeline(module, [CommonSubexpressions()], verifier=verifier, verify=True)
