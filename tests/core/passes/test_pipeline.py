"""The pipelines: what runs, how long it took, and who is blamed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from nnkit.core.analysis import Analyses
from nnkit.core.errors import InternalError, UnsupportedError, VerifyError
from nnkit.core.ir import Function, Module
from nnkit.core.ir.surgery import clone_module
from nnkit.core.ops import Exp, Negate
from nnkit.core.passes import (
    ALL,
    Canonicalize,
    CommonSubexpressions,
    DeadCode,
    FunctionPass,
    LoopInvariants,
    run_pipeline,
)
from nnkit.core.text import parse_module
from nnkit.core.types import F32, TensorType
from nnkit.core.verify import verify
from tests.core.passes.laws import module_of

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


@dataclass(frozen=True)
class StopHalfWay(FunctionPass):
    """Fails when it has taken a function apart."""

    name: ClassVar[str] = "stop-half-way"

    def run(self, function: Function, analyses: Analyses) -> bool:
        function.entry.instructions.clear()
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
    passes = [LoopInvariants(), Canonicalize(), DeadCode()]
    runs = run_pipeline(module, passes)
    assert [run.name for run in runs] == [a_pass.name for a_pass in passes]
    assert [run.name for run in runs if run.changed] == ["canonicalize", "dce"]
    assert all(0 <= run.seconds < 1 for run in runs)
    assert not any(run.changed for run in run_pipeline(module, passes))


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


@pytest.mark.parametrize("known", [{"is_valid": True}, {"verify": True}], ids=["said", "verified"])
def test_a_pass_that_fails_half_way_is_to_blame_for_what_it_leaves(known: dict[str, bool]) -> None:
    module = module_of([X], lambda b, x: b.emit(Exp(), x))
    with pytest.raises(InternalError, match="pass 'stop-half-way' failed: KeyError: 'lost'"):
        run_pipeline(module, [StopHalfWay()], verifier=verify, **known)


def test_an_invalid_module_is_not_the_fault_of_a_pass() -> None:
    module = module_of([X], lambda b, x: b.emit(Exp(), x))
    module.functions["main"].entry.instructions.clear()
    with pytest.raises(VerifyError, match="@main is empty"):
        run_pipeline(module, [CommonSubexpressions()], verifier=verifier, verify=True)
