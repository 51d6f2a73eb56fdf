"""Analyses are remembered while they hold, and wrong promises are noticed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nnkit.core.analysis.manager import Analyses, Analysis
from nnkit.core.errors import InternalError
from nnkit.core.ir import Function, Module
from nnkit.core.ir.surgery import uses_of, walk, walk_blocks
from nnkit.core.ops import Load, Negate, Store
from nnkit.core.passes import ALL, ModulePass, apply_pass
from nnkit.core.passes.constant_propagation import ConstantPropagation
from nnkit.core.passes.edges import branch_to
from nnkit.core.text import parse_module
from nnkit.core.types import PointerType
from tests.core.passes.pointer_programs import pointer_programs

TEXT = """module "m"
stage raw
var @g: i64
func @f: (i64, bool) -> i64 {
'entry(%x: i64, %c: bool):
    %p = allocateStack i64 count 1
    store %x: i64 to %p: *i64
    conditional %c: bool then 'a() else 'b()
'a():
    %y = negate %x: i64
    branch 'c(%y: i64)
'b():
    branch 'c(%x: i64)
'c(%z: i64):
    %g = literal @g: *i64
    %l = load %p: *i64
    %s = add %z: i64, %l: i64
    return %s: i64
}
func @pure: (i64) -> i64 {
'entry(%x: i64):
    %y = negate %x: i64
    return %y: i64
}
"""


def ask(analyses: Analyses) -> None:
    """Everything, so that everything is remembered."""
    for function in analyses.module.functions.values():
        if function.body is None:
            continue
        analyses.uses(function)
        analyses.effects.of_function(function.name)
        for instruction in walk(function.body):
            analyses.effects.of(instruction)
        flow, aliases = analyses.flow(function), analyses.aliases(function)
        for block in flow.region.blocks:
            flow.immediate_dominator(block)
        for block in walk_blocks(function.body):
            for value in (*block.arguments, *(r for i in block.instructions for r in i.results)):
                if isinstance(value.type, PointerType):
                    aliases.place(value)
                    aliases.is_private(value)


def asked() -> tuple[Module, Function, Analyses]:
    module = parse_module(TEXT)
    analyses = Analyses(module)
    ask(analyses)
    return module, module.functions["f"], analyses


def test_answers_are_remembered() -> None:
    _, f, analyses = asked()
    assert analyses.flow(f) is analyses.flow(f)
    assert analyses.aliases(f) is analyses.aliases(f)
    assert analyses.uses(f) is analyses.uses(f)
    assert analyses.effects is analyses.effects
    assert f.body is not None
    assert analyses.uses(f) == uses_of(f.body)


def test_what_is_forgotten_is_computed_anew_for_one_function() -> None:
    module, f, analyses = asked()
    pure = module.functions["pure"]
    flow, uses, others = analyses.flow(f), analyses.uses(f), analyses.uses(pure)
    effects = analyses.effects
    analyses.forget(f, preserved=Analysis.FLOW)
    assert analyses.flow(f) is flow
    assert analyses.uses(f) is not uses
    assert analyses.uses(pure) is others
    assert analyses.effects is not effects


def test_a_pass_that_changes_nothing_preserves_everything() -> None:
    _, f, analyses = asked()
    flow, uses, effects = analyses.flow(f), analyses.uses(f), analyses.effects
    analyses.settle("nothing", changed=False)
    assert (analyses.flow(f), analyses.uses(f), analyses.effects) == (flow, uses, effects)
    analyses.settle("something", changed=True)
    assert analyses.flow(f) is not flow


def test_another_body_is_another_function() -> None:
    module, f, analyses = asked()
    f.body = module.functions["pure"].body
    assert len(analyses.flow(f).region.blocks) == 1


def test_a_declaration_has_no_body() -> None:
    module = parse_module('module "m"\nstage raw\n[extern]\nfunc @f: (i64) -> i64')
    with pytest.raises(InternalError, match="@f is a declaration"):
        Analyses(module).flow(module.functions["f"])


def change_branch(module: Module) -> None:
    body = module.functions["f"].body
    assert body is not None
    body.entry.instructions[-1] = branch_to(body.blocks[2], (), body.entry.terminator)


def change_escape(module: Module) -> None:
    """Store the pointer itself to a place that others see."""
    body = module.functions["f"].body
    assert body is not None
    load = next(i for i in walk(body) if isinstance(i.op, Load))
    load.op = Store()
    load.operands = (load.operands[0], load.operands[0])


def change_operand(module: Module) -> None:
    body = module.functions["f"].body
    assert body is not None
    negate = next(i for i in walk(body) if isinstance(i.op, Negate))
    negate.operands = (negate.result,)


def change_effect(module: Module) -> None:
    entry = module.functions["f"].entry
    module.functions["pure"].entry.instructions.insert(0, entry.instructions[1])


@pytest.mark.parametrize(
    ("change", "promise", "what"),
    [
        (change_branch, Analysis.FLOW, "blocks and branches of @f"),
        (change_escape, Analysis.ALIASES, "aliases of @f"),
        (change_operand, Analysis.USES, "uses of @f"),
        (change_effect, Analysis.EFFECTS, "effects of 'm'"),
    ],
)
def test_a_wrong_promise_is_noticed(
    change: Callable[[Module], None],
    promise: Analysis,
    what: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NNKIT_VERIFY", "1")
    module, _, analyses = asked()
    change(module)
    with pytest.raises(InternalError, match=f"after pass 'liar': the {what} are not what"):
        analyses.settle("liar", changed=True, preserved=promise)
    # what is not promised is forgotten, and nothing is wrong
    module, _, analyses = asked()
    change(module)
    analyses.settle("honest", changed=True)


def test_what_holds_can_be_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNKIT_VERIFY", "1")
    module, f, analyses = asked()
    flow = analyses.flow(f)
    change_operand(module)
    analyses.settle("honest", changed=True, preserved=Analysis.ALL & ~Analysis.USES)
    assert analyses.flow(f) is flow


def test_nothing_is_compared_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NNKIT_VERIFY", raising=False)
    module, f, analyses = asked()
    flow = analyses.flow(f)
    change_branch(module)
    analyses.settle("liar", changed=True, preserved=Analysis.ALL)
    assert analyses.flow(f) is flow


PASSES = {a_pass.name: a_pass() for a_pass in ALL}


@pytest.mark.parametrize("name", sorted(PASSES))
@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(text=pointer_programs(), data=st.data())
def test_passes_preserve_what_they_say(name: str, text: str, data: st.DataObject) -> None:
    a_pass = PASSES[name]
    module = parse_module(text)
    before = PASSES[data.draw(st.sampled_from(sorted(PASSES)))]
    apply_pass(before, module)
    analyses = Analyses(module)
    ask(analyses)
    changed = apply_pass(a_pass, module)
    preserved = getattr(a_pass, "preserves_analyses", Analysis.NONE)
    if changed:
        analyses.forget(preserved=preserved)
    analyses.check(name)


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(text=pointer_programs())
def test_a_pass_that_is_given_analyses_leaves_only_those_that_hold(text: str) -> None:
    module = parse_module(text)
    analyses = Analyses(module)
    ask(analyses)
    a_pass = ConstantPropagation(("main",))
    assert isinstance(a_pass, ModulePass)
    a_pass.run_with(module, analyses)
    analyses.check(a_pass.name)
