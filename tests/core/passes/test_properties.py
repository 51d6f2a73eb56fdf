"""What holds for every pass on every program: valid, same results, same bits, done after one run."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnkit.core.driver.stages import (
    AFTER_DIFFERENTIATION,
    DIFFERENTIABLE,
    IMPROVED,
    OPTIMIZABLE,
    passes_to,
)
from nnkit.core.evaluate import evaluate
from nnkit.core.ir.surgery import clone_module
from nnkit.core.ops import ALL, Power
from nnkit.core.passes import ALL as PASSES
from nnkit.core.passes import (
    Canonicalize,
    CommonSubexpressions,
    DeadCode,
    Flatten,
    Fold,
    Inline,
    Pass,
    Pipeline,
    Scalarize,
    Simplify,
    Structurize,
    run_pipeline,
)
from nnkit.core.stage import Stage
from nnkit.core.verify import verify
from tests.programs import Program, describe, flat, graphs, programs, same_bits

EXAMPLES = max(60, settings().max_examples // 4)
"""A dozen pipelines share the time; the profile `fuzz` runs many more."""

OPS = [op for op in ALL if op is not Power]
"""x² is rounded better than a power: the laws of powers have tests of their own."""

PIPELINES_BY_NAME: dict[str, Sequence[Pass]] = {
    "fold": [Fold()],
    "simplify": [Simplify()],
    "cse": [CommonSubexpressions()],
    "dce": [DeadCode()],
    "inline": [Inline()],
    "inline small": [Inline(small=2)],
    "scalarize": [Scalarize()],
    "canonicalize": [Canonicalize()],
    "canonicalize final": [Canonicalize(final=True)],
    "before -O2": (*DIFFERENTIABLE, *IMPROVED),
    "after -O2": AFTER_DIFFERENTIATION,
    "-O3": OPTIMIZABLE[3],
}


@pytest.mark.parametrize("name", PIPELINES_BY_NAME)
@settings(max_examples=EXAMPLES)
@given(program=programs(ops=OPS))
def test_results_keep_every_bit(name: str, program: Program) -> None:
    pipeline = PIPELINES_BY_NAME[name]
    type = program.module.functions[program.entry].type
    expected = evaluate(program.module, program.entry, *program.arguments)
    run_pipeline(program.module, pipeline, verifier=verify, verify=True)
    actual = evaluate(program.module, program.entry, *program.arguments, type=type)
    assert same_bits(actual, expected), f"became\n{describe(program.module)}"
    again = run_pipeline(program.module, pipeline)
    assert not [run.name for run in again if run.changed], f"became\n{describe(program.module)}"


CONTROL = st.one_of(
    programs(ops=OPS, control=True),
    programs(ops=OPS, control=True, memory=True),
    graphs(ops=OPS, control=True, memory=True),
)


@pytest.mark.parametrize("name", [*PIPELINES_BY_NAME, "structurize", "-O0"])
@settings(max_examples=EXAMPLES // 4)
@given(program=CONTROL)
def test_control_flow_and_effects_keep_every_bit(name: str, program: Program) -> None:
    pipelines = {**PIPELINES_BY_NAME, "structurize": [Structurize()], "-O0": OPTIMIZABLE[0]}
    pipeline = pipelines[name]
    type = program.module.functions[program.entry].type
    expected = evaluate(program.module, program.entry, *program.arguments)
    run_pipeline(program.module, pipeline, verifier=verify, verify=True)
    actual = evaluate(program.module, program.entry, *program.arguments, type=type)
    assert same_bits(actual, expected), f"became\n{describe(program.module)}"
    assert_ends(program, pipeline)


@settings(max_examples=EXAMPLES // 2)
@given(program=CONTROL)
def test_control_flow_is_ready_for_code_generation(program: Program) -> None:
    expected = evaluate(program.module, program.entry, *program.arguments)
    pipeline = passes_to(Stage.OPTIMIZED, program.entry)
    run_pipeline(program.module, OPTIMIZABLE[2], verifier=verify, verify=True)
    program.module.stage = Stage.OPTIMIZABLE
    run_pipeline(program.module, pipeline, verifier=verify, verify=True)
    assert program.module.stage is Stage.OPTIMIZED
    actual = evaluate(program.module, program.entry, *flat(program.arguments))
    assert same_bits(flat(actual), flat(expected)), f"became\n{describe(program.module)}"
    assert_ends(program, pipeline)


@settings(max_examples=EXAMPLES)
@given(program=programs(ops=OPS))
def test_code_generation_flattens_and_keeps_every_bit(program: Program) -> None:
    expected = evaluate(program.module, program.entry, *program.arguments)
    pipeline = (Flatten(), *passes_to(Stage.OPTIMIZED, program.entry))
    run_pipeline(program.module, pipeline, verifier=verify, verify=True)
    actual = evaluate(program.module, program.entry, *flat(program.arguments))
    assert same_bits(flat(actual), flat(expected)), f"became\n{describe(program.module)}"
    assert list(program.module.functions) == [program.entry]
    assert_ends(program, pipeline)


@settings(max_examples=EXAMPLES)
@given(program=programs(ops=OPS))
def test_equal_programs_become_equal_programs(program: Program) -> None:
    copy = clone_module(program.module)
    for module in (program.module, copy):
        run_pipeline(module, (Flatten(), *passes_to(Stage.OPTIMIZED, program.entry)))
    assert describe(program.module) == describe(copy)


@pytest.mark.parametrize("pass_class", PASSES, ids=lambda pass_class: pass_class.name)
@settings(max_examples=EXAMPLES // 4)
@given(program=CONTROL)
def test_a_pass_changes_nothing_the_second_time(pass_class: type[Pass], program: Program) -> None:
    run_pipeline(program.module, [pass_class()], verifier=verify, verify=True)
    text = describe(program.module)
    (again,) = run_pipeline(program.module, [pass_class()])
    assert not again.changed and describe(program.module) == text


def assert_ends(program: Program, pipeline: Pipeline) -> None:
    """One pass may leave work to one before it, but soon there is none."""
    for _ in range(3):
        again = run_pipeline(program.module, pipeline)
        if not any(run.changed for run in again):
            return
    changed = [run.name for run in run_pipeline(program.module, pipeline) if run.changed]
    assert not changed, f"became\n{describe(program.module)}"
