"""What holds for all rules: they are collected, placed, numbered and tested, and cheap."""

from __future__ import annotations

import dataclasses
import re
import time
from pathlib import Path
from typing import ClassVar

import pytest

import nnkit as nk
from nnkit import Rep, Tensor2D, f32
from nnkit.core import verify as verify_package
from nnkit.core.analysis import Analyses
from nnkit.core.driver.stages import advance
from nnkit.core.errors import InternalError, VerifyError
from nnkit.core.ir import (
    Block,
    Builder,
    Function,
    Instruction,
    Module,
    Region,
    Value,
    finish_function,
    start_function,
)
from nnkit.core.ir.placement import output
from nnkit.core.ir.surgery import clone_module, walk_blocks
from nnkit.core.ops import (
    Add,
    Branch,
    If,
    Negate,
    Return,
    Yield,
)
from nnkit.core.passes import DeadCode
from nnkit.core.passes.base import ModulePass, apply_pass
from nnkit.core.passes.pipeline import run_pipeline
from nnkit.core.stage import Stage
from nnkit.core.text import parse_module
from nnkit.core.types import (
    BOOL,
    FunctionType,
    Type,
    scalar,
)
from nnkit.core.verify import verify, violations
from tests.patience import PATIENCE

from .building import (
    PLAIN,
    S,
    X,
    copying,
    found,
    module_of,
    negated,
    with_nest,
)


def test_what_is_right_passes() -> None:
    verify(module_of(negated()))
    verify(with_nest(PLAIN))
    verify(copying(output(0)))
    assert not violations(Module())


def test_every_rule_of_the_list_has_a_test() -> None:
    rules = re.findall(r"^\S*\s+(\d+)\. ", verify_package.__doc__ or "", re.MULTILINE)
    texts = [path.read_text() for path in Path(__file__).parent.glob("test_*.py")]
    tested = {n for text in texts for n in re.findall(r"^def test_rule_(\d+)_", text, re.MULTILINE)}
    assert rules == [str(number) for number in range(1, len(rules) + 1)]
    assert set(rules) == tested


TEXT = """module "m"
func @f: (f32) -> f32 {
'entry(%x: f32):
    %y = exp %x: f32
    return %y: f32
}
func @g: (f32) -> i64 {
'entry(%x: f32):
    %y = apply @h(%x) -> f32
    return %y: f32
}
"""


def test_all_violations_are_listed_with_instruction_and_place() -> None:
    module = parse_module(TEXT, "model.dl")
    module.functions["f"].entry.instructions[0].op = Add()
    with pytest.raises(VerifyError) as caught:
        verify(module)
    assert str(caught.value) == (
        "module 'm' has 3 violations:\n"
        "  @f: add takes 2 operands, not 1\n"
        "    in: %y = add %x: f32, %?: void\n"
        "    at: model.dl:4  %y = exp %x: f32\n"
        "                         ^^^\n"
        "  @g: calls @h, which does not exist\n"
        "    in: %y = apply @h(%x): (f32) -> f32\n"
        "    at: model.dl:9  %y = apply @h(%x) -> f32\n"
        "                         ^^^^^\n"
        "  @g: returns f32; the function returns i64\n"
        "    in: return %y: f32\n"
        "    at: model.dl:10  return %y: f32\n"
        "                     ^^^^^^"
    )


@nk.staged
def twice(x: Rep[Tensor2D[f32]]) -> Rep[Tensor2D[f32]]:
    return x + x


def test_a_violation_shows_the_line_of_the_user() -> None:
    spec = nk.spec((2, 2), f32)
    module, entry = twice._specialization((spec,)).module("raw")  # type: ignore[attr-defined]
    entry.entry.instructions[0].op = Negate()
    assert "return x + x\n" in found(module) and "^^^^^" in found(module)


@dataclasses.dataclass(frozen=True)
class Breaking(ModulePass):
    """Takes away what `@f` returns."""

    name: ClassVar[str] = "breaking"

    def run(self, module: Module, analyses: Analyses) -> bool:
        module.functions["f"].entry.instructions[-1].set_operands(())
        return True


def test_a_pass_that_breaks_a_module_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def sound() -> Module:
        return parse_module(TEXT[: TEXT.index("func @g")])

    def broken() -> Module:
        module = sound()
        apply_pass(Breaking(), module)
        return module

    run_pipeline(broken(), [DeadCode()], verifier=verify)
    run_pipeline(sound(), [Breaking()], verifier=verify)
    monkeypatch.setenv("NNKIT_VERIFY", "1")
    with pytest.raises(InternalError, match="after pass 'breaking': module 'm' has 1 violation:"):
        run_pipeline(sound(), [DeadCode(), Breaking(), DeadCode()], verifier=verify)
    with pytest.raises(VerifyError, match=r"^module 'm' has 1 violation:"):
        run_pipeline(broken(), [DeadCode()], verifier=verify)
    with pytest.raises(InternalError, match="after stage 'optimizable': module 'm' has 1 viol"):
        advance(broken(), Stage.OPTIMIZABLE, run=lambda *_: None)
    with pytest.raises(VerifyError, match=r"^module 'm' has"):
        advance(broken(), Stage.OPTIMIZABLE)


def test_every_stage_of_a_program_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNKIT_VERIFY", "1")
    seen: list[str] = []
    monkeypatch.setattr(
        "nnkit.core.driver.stages.verify", lambda module: seen.append(module.stage.value)
    )
    twice.ir(nk.spec((2, 2), f32), stage="schedule")
    assert {stage.value for stage in Stage} == set(seen)


def test_what_is_malformed_is_a_violation_and_no_other_error() -> None:
    """Every field of every object of a module, replaced by what cannot be there."""

    def objects() -> tuple[Module, list[object]]:
        module = clone_module(shapes)
        found: list[object] = [module, *module.functions.values()]
        for function in module.functions.values():
            if function.body is not None:
                found.append(function.body)
                for block in walk_blocks(function.body):
                    found += [block, *block.arguments, *block.instructions]
                    for instruction in block.instructions:
                        found += [*instruction.results, *instruction.regions, instruction.op]
        return module, found

    shapes = parse_module(SHAPES)
    count, wrong = len(objects()[1]), 0
    for number in range(count):
        for field in dataclasses.fields(objects()[1][number]):  # type: ignore[arg-type]
            for value in (None, 3, (None,), "text", S):
                module, found = objects()
                object.__setattr__(found[number], field.name, value)
                wrong += bool(violations(module))
    assert wrong > count


SHAPES = """module "m"
struct $S { #a: f32 }
enum $E {
    ?none
    ?one($S)
}
func @f: (bool, <2 x f32>, $E) -> (<2 x f32>, f32) {
'entry(%c: bool, %x: <2 x f32>, %e: $E):
    %y, %all = for 0: i64 upto 2: i64 carrying %x: <2 x f32> stacking <2 x f32> {
    'body(%i: i64, %u: <2 x f32>):
        %s = reduce %u: <2 x f32> by add along 0
        yield %u: <2 x f32>, %s: f32
    }
    branchEnum %e: $E case ?none 'none case ?one 'one
'none():
    %d = apply @d(%c, %y): (bool, <2 x f32>) -> <2 x f32>
    branch 'end(%d: <2 x f32>, 1: f32)
'one(%s: $S):
    %a = extract #a from %s: $S
    conditional %c: bool then 'end(%y: <2 x f32>, %a: f32) else 'none
'end(%z: <2 x f32>, %b: f32):
    %r = literal (%z: <2 x f32>, %b: f32): (<2 x f32>, f32)
    return %r: (<2 x f32>, f32)
}
func @g: (bool, <2 x f32>) -> f32 {
'entry(%c: bool, %x: <2 x f32>):
    %s = reduce %x: <2 x f32> by add along 0
    return %s: f32
}
[gradient @g wrt 1]
func @d: (bool, <2 x f32>) -> <2 x f32>
"""


def deep(levels: int, result: Type) -> Module:
    """An `if` in an `if` in an `if` …, each of which says that it results in `result`."""
    b = start_function([scalar(BOOL), X])
    condition, x = b.block.arguments

    def yielding(*values: Value) -> Region:
        inner = Builder()
        inner.emit_many(Yield(), values)
        return Region([inner.block])

    body = yielding(x)
    for _ in range(levels):
        inner = Builder()
        results = inner.emit_many(If((result,)), [condition], [body, yielding(x)])
        inner.emit_many(Yield(), results)
        body = Region([inner.block])
    b.emit_many(Return(), b.emit_many(If((X,)), [condition], [body, yielding(x)]))
    return module_of(finish_function("f", b, X))


def test_deep_bodies() -> None:
    start = time.process_time()
    verify(deep(10_000, X))
    assert len(violations(deep(5_000, S))) > 5_000
    assert time.process_time() - start < 8 * PATIENCE, "a second on an idle machine"


def test_many_blocks() -> None:
    b = start_function([X])
    [x] = b.block.arguments
    region = Region([b.block])
    for number in range(10_000):
        following = Builder(Block(name=f"b{number}"))
        y = following.argument(X)
        b.emit_many(Branch(), [x], (), [following.block])
        b, x = following, following.emit(Add(), y, region.entry.arguments[0])
        region.blocks.append(b.block)
    b.emit_many(Return(), [x])
    start = time.process_time()
    verify(module_of(Function("f", FunctionType((X,), X), region)))
    assert time.process_time() - start < 3 * PATIENCE, "a third of a second on an idle machine"


def test_verifying_takes_time_in_proportion_to_the_program() -> None:
    def chain(count: int) -> Module:
        b = start_function([X])
        [value] = b.block.arguments
        for _ in range(count):
            value = b.emit(Add(), value, b.block.arguments[0])
        b.emit_many(Return(), [value])
        return module_of(finish_function("f", b, X))

    module = chain(50_000)
    start = time.process_time()
    verify(module)
    assert time.process_time() - start < 4 * PATIENCE, "half a second on an idle machine"


def test_many_violations_are_found_as_fast() -> None:
    module = parse_module(TEXT[: TEXT.index("func @g")])
    block = module.functions["f"].entry
    for _ in range(2000):
        block.instructions.insert(0, Instruction(Add(), (Value(S),), ()))
    start = time.process_time()
    assert len(violations(module)) >= 4000
    assert time.process_time() - start < 3 * PATIENCE
