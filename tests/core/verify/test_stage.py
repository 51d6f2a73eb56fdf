"""Rules 22 and 30."""

from __future__ import annotations

import pytest

from nnkit.core.ir import (
    Module,
    Stage,
)
from nnkit.core.ir.placement import output
from nnkit.core.text import parse_module
from nnkit.core.verify import violations

from .building import (
    PLAIN,
    copying,
    module_of,
    negated,
    with_nest,
)


@pytest.mark.parametrize("stage", Stage)
def test_rule_22_stages(stage: Stage) -> None:
    def said(module: Module) -> str:
        module.stage = stage
        return "".join(violations(module))

    late = stage in (Stage.COMPUTE, Stage.SCHEDULE)
    assert ("negate stands in stage" in said(module_of(negated()))) == late
    nest = said(with_nest(PLAIN))
    assert ("nest stands in stage" in nest) == (stage is not Stage.COMPUTE)
    assert ("it belongs to stage compute\n" in nest) == (stage is not Stage.COMPUTE)
    kernel = said(copying(output(0)))
    assert ("kernel stands in stage" in kernel) == (stage is not Stage.SCHEDULE)


EARLY = {
    "a declared derivative stands": (
        "func @f: (f32) -> f32 {\n'a(%x: f32):\n return %x: f32\n}\n[gradient @f]\nfunc @df: (f32) -> f32"
    ),
    "a function of 2 blocks stands": (
        "func @f: (f32) -> f32 {\n'a(%x: f32):\n branch 'b\n'b():\n return %x: f32\n}"
    ),
    "builtin stands": (
        'func @f: (f32) -> f32 {\n\'a(%x: f32):\n %y = builtin "sigmoid"(%x: f32) -> f32\n return %y: f32\n}'
    ),
    "stopGradient stands": (
        "func @f: (f32) -> f32 {\n'a(%x: f32):\n %y = stopGradient %x: f32\n return %y: f32\n}"
    ),
    "extract stands": (
        "func @f: (<2 x f32>) -> f32 {\n'a(%x: <2 x f32>):\n %y = extract 0 from %x: <2 x f32>\n return %y: f32\n}"
    ),
}


@pytest.mark.parametrize("stage", Stage)
@pytest.mark.parametrize("said", EARLY)
def test_rule_30_what_comes_before_a_stage_is_done(stage: Stage, said: str) -> None:
    module = parse_module(f'module "m" stage {stage.value} {EARLY[said]}')
    assert any(said in message for message in violations(module)) == (stage is not Stage.RAW)


def test_bodies_are_closed_from_stage_optimized_on() -> None:
    text = """
func @f: (bool, f32) -> f32 {
'a(%c: bool, %x: f32):
    %y = if %c: bool -> f32 {
    'then():
        yield %x: f32
    } else {
    'else():
        yield %x: f32
    }
    return %y: f32
}"""
    for stage in Stage:
        module = parse_module(f'module "m" stage {stage.value} {text}')
        assert ("outside a closed body" in "".join(violations(module))) == (
            stage.has_reached(Stage.OPTIMIZED)
        )


GIVEN = {
    "if": "if %c: bool -> f32 given %x: f32 {\n'a(%y: f32):\n yield %y: f32\n} else {\n'b(%y: f32):\n yield %y: f32\n}",
    "while": (
        "while carrying %x: f32 given %c: bool {\n'a(%y: f32, %d: bool):\n yield %d: bool\n"
        "} do {\n'b(%y: f32, %d: bool):\n yield %y: f32\n}"
    ),
    "for": (
        "for 0: i64 upto 2: i64 carrying %x: f32 given %c: bool {\n"
        "'a(%i: i64, %y: f32, %d: bool):\n yield %y: f32\n}"
    ),
}


@pytest.mark.parametrize("op", GIVEN)
def test_bodies_are_given_values_where_they_are_closed(op: str) -> None:
    text = f"func @f: (bool, f32) -> f32 {{\n'a(%c: bool, %x: f32):\n %r = {GIVEN[op]}\n return %r: f32\n}}"
    for stage in Stage:
        module = parse_module(f'module "m" stage {stage.value} {text}')
        assert ("a body that is given values stands in stage" in "".join(violations(module))) == (
            not stage.has_reached(Stage.OPTIMIZED)
        )
