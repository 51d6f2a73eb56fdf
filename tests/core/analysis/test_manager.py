"""Analyses are remembered while they hold, and wrong promises are noticed."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nnkit.core.analysis import Analyses, Analysis, effects, manager
from nnkit.core.driver.stages import MEMORY
from nnkit.core.errors import InternalError
from nnkit.core.ir import Function, Module, Stage
from nnkit.core.ir.surgery import clone_module, walk, walk_blocks
from nnkit.core.ops import Load, Negate, Store
from nnkit.core.passes import (
    ALL,
    CommonSubexpressions,
    ConstantPropagation,
    FunctionPass,
    Structurize,
    apply_pass,
    run_pipeline,
)
from nnkit.core.passes.edges import branch_to
from nnkit.core.text import parse_module
from nnkit.core.types import PointerType
from tests.core.passes.pointer_programs import pointer_programs
from tests.programs import graphs, programs

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
        analyses.effects.of_function(function.name)
        for instruction in walk(function.body):
            analyses.effects.of(instruction)
        flow, aliases = analyses.flow(function), analyses.aliases(function)
        assert flow.dominators and flow.loops
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
    assert analyses.effects is analyses.effects


def test_what_is_forgotten_is_computed_anew_for_one_function() -> None:
    module, f, analyses = asked()
    pure = module.functions["pure"]
    flow, aliases, others = analyses.flow(f), analyses.aliases(f), analyses.aliases(pure)
    effects = analyses.effects
    analyses.forget(f, preserved=Analysis.FLOW)
    assert analyses.flow(f) is flow
    assert analyses.aliases(f) is not aliases
    assert analyses.aliases(pure) is others
    assert analyses.effects is not effects


def test_a_pass_that_changes_nothing_preserves_everything() -> None:
    _, f, analyses = asked()
    flow, aliases, effects = analyses.flow(f), analyses.aliases(f), analyses.effects
    analyses.settle([])
    assert (analyses.flow(f), analyses.aliases(f), analyses.effects) == (flow, aliases, effects)
    analyses.settle([f])
    assert analyses.flow(f) is not flow


def test_what_is_gone_is_forgotten() -> None:
    module, f, analyses = asked()
    flow = analyses.flow(f)
    del module.functions["f"]
    analyses.settle([])
    analyses.check("nothing")
    module.add(f)
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
    load.set_operands([load.operands[0], load.operands[0]])


def change_operand(module: Module) -> None:
    body = module.functions["f"].body
    assert body is not None
    negate = next(i for i in walk(body) if isinstance(i.op, Negate))
    negate.set_operands([negate.result])


def change_effect(module: Module) -> None:
    entry = module.functions["f"].entry
    module.functions["pure"].entry.instructions.insert(0, entry.instructions[1])


@pytest.mark.parametrize(
    ("change", "promise", "what"),
    [
        (change_branch, Analysis.FLOW, "blocks and branches of @f"),
        (change_escape, Analysis.ALIASES, "aliases of @f"),
        (change_effect, Analysis.EFFECTS, "effects of 'm'"),
    ],
)
def test_a_wrong_promise_is_noticed(
    change: Callable[[Module], None],
    promise: Analysis,
    what: str,
) -> None:
    module, _, analyses = asked()
    change(module)
    analyses.settle(module.functions.values(), preserved=promise)
    with pytest.raises(InternalError, match=f"after pass 'liar': the {what} are not what"):
        analyses.check("liar")
    # what is not promised is forgotten, and nothing is wrong
    module, _, analyses = asked()
    change(module)
    analyses.settle(module.functions.values())
    analyses.check("honest")


def test_what_holds_can_be_promised() -> None:
    module, f, analyses = asked()
    flow = analyses.flow(f)
    change_operand(module)
    analyses.settle([f], preserved=Analysis.ALL)
    analyses.check("honest")
    assert analyses.flow(f) is flow


@dataclass(frozen=True)
class Liar(FunctionPass):
    """Makes a branch go elsewhere, and says that it did nothing of the kind."""

    name: ClassVar[str] = "liar"
    preserves_analyses: ClassVar[Analysis] = Analysis.ALL

    def run(self, function: Function, analyses: Analyses) -> bool:
        change_branch(analyses.module)
        return True


def test_pipelines_compare_what_passes_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NNKIT_VERIFY", raising=False)
    module, _, analyses = asked()
    run_pipeline(module, [Liar()], analyses=analyses)
    module, _, analyses = asked()
    monkeypatch.setenv("NNKIT_VERIFY", "1")
    with pytest.raises(InternalError, match="after pass 'liar': the blocks and branches of @f"):
        run_pipeline(module, [Liar()], analyses=analyses)


PASSES = {a_pass.name: a_pass() for a_pass in ALL}
PROGRAMS = st.one_of(
    pointer_programs().map(parse_module),
    st.one_of(
        programs(control=True, memory=True), graphs(control=True, memory=True), programs()
    ).map(lambda program: program.module),
)


@pytest.mark.parametrize("name", sorted(PASSES))
@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(module=PROGRAMS, data=st.data())
def test_passes_preserve_what_they_say(name: str, module: Module, data: st.DataObject) -> None:
    before = PASSES[data.draw(st.sampled_from(sorted(PASSES)))]
    apply_pass(before, module)
    analyses = Analyses(module)
    ask(analyses)
    apply_pass(PASSES[name], module, analyses)
    analyses.check(name)


FILES = [
    path
    for path in sorted((Path(__file__).parents[2] / "ir").glob("*.dl"))
    if not re.search(r"^stage (?!raw)", path.read_text(), re.MULTILINE)
]
"""Passes take tensor programs."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_passes_preserve_what_they_say_in_programs_of_files(path: Path) -> None:
    module = parse_module(path.read_text())
    assert module.stage is Stage.RAW
    for name, a_pass in PASSES.items():
        copy = clone_module(module)
        analyses = Analyses(copy)
        ask(analyses)
        apply_pass(a_pass, copy, analyses)
        analyses.check(name)


NAMES = ("Effects", "own_effects", "Aliases", "ControlFlow")


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, object]]:
    """How often each analysis has been made of each function or body, whoever did so."""
    counts = Counter[tuple[str, object]]()

    def counted(name: str, make: Callable[..., object]) -> Callable[..., object]:
        def wrapper(of: object, *rest: object) -> object:
            counts[name, of] += 1
            return make(of, *rest)

        return wrapper

    originals = {name: {**vars(effects), **vars(manager)}[name] for name in NAMES}
    for module in list(sys.modules.values()):
        for name, original in originals.items():
            if name in vars(module) and vars(module)[name] is original:
                monkeypatch.setattr(module, name, counted(name, original))
    return counts


def test_passes_that_change_nothing_compute_each_analysis_once(
    computed: Counter[tuple[str, object]],
) -> None:
    module = parse_module(TEXT)
    pipeline = [*PASSES.values(), *PASSES.values()]
    for _ in range(4):
        if not any(run.changed for run in run_pipeline(module, pipeline)):
            break
    computed.clear()
    runs = run_pipeline(module, pipeline)
    assert not any(run.changed for run in runs)
    assert computed and set(computed.values()) == {1}, computed


def test_only_what_changed_is_computed_anew(computed: Counter[tuple[str, object]]) -> None:
    module = parse_module(TEXT)
    changing, same = module.functions["f"], module.functions["pure"]
    run_pipeline(module, [CommonSubexpressions(), Structurize(), *MEMORY, ConstantPropagation()])
    assert changing.body is not None and len(changing.body.blocks) == 1
    assert computed["own_effects", same] <= computed["ControlFlow", same.body] == 1
