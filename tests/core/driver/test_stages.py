"""The list of stages: what each makes, and that a text of any goes on as the module would have."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from nnkit.core.driver.stages import OPTIMIZABLE, advance, passes_to
from nnkit.core.errors import InternalError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Module, Value
from nnkit.core.ir.surgery import clone_module, walk_blocks
from nnkit.core.ops import Add, Exp
from nnkit.core.passes import run_pipeline
from nnkit.core.stage import Stage
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import F32, TensorType
from nnkit.core.verify import verify
from tests.core.driver.programs import IN_MEMORY
from tests.core.passes.laws import call, define, module_of, opcodes, parsed
from tests.programs import Program, flat, graphs, programs
from tests.values import same_bits

X = TensorType((3,), F32)
COUNT = max(10, settings().max_examples // 10)


def test_the_list_is_complete() -> None:
    assert sorted(OPTIMIZABLE) == [0, 1, 2, 3]
    assert [bool(passes_to(stage)) for stage in Stage] == [False, True, True, True, True]


def test_calls_stay_until_code_is_generated() -> None:
    module = Module()
    leaf = define(module, "leaf", [X], lambda b, x: b.emit(Exp(), x))
    define(module, "main", [X], lambda b, x: b.emit(Add(), call(b, leaf, x), x))
    define(module, "other", [X], lambda b, x: x)
    advance(module, Stage.OPTIMIZABLE)
    assert opcodes(module.functions["main"]) == "apply add"
    advance(module, Stage.OPTIMIZED, "main")
    assert list(module.functions) == ["main"]
    assert opcodes(module.functions["main"]) == "exp add"
    assert module.functions["main"].type.result == X


@pytest.mark.parametrize("level", OPTIMIZABLE)
def test_derivatives_pass_through_memory_at_every_level(level: int) -> None:
    module = parsed(IN_MEMORY)
    run_pipeline(module, OPTIMIZABLE[level], verifier=verify, verify=True)
    assert evaluate(module, "slopes", 3.0, 5.0) == (30.0, 9.0)  # of x² · y
    assert evaluate(module, "polynomial", 3.0, 5.0) == 45.0


def test_nothing_goes_back() -> None:
    def build(b: Builder, x: Value) -> Value:
        return b.emit(Exp(), x)

    module = module_of([X], build)
    advance(module, Stage.COMPUTE, "main")
    before = print_module(module)
    advance(module, Stage.COMPUTE, "main")
    assert print_module(module) == before
    with pytest.raises(InternalError, match="stage compute cannot go back to optimizable"):
        advance(module, Stage.OPTIMIZABLE)


@settings(max_examples=COUNT)
@given(program=programs(max_instructions=6) | programs(control=True) | graphs())
def test_random_programs_go_on_from_the_text_of_every_stage(program: Program) -> None:
    module, arguments = program.module, program.arguments
    wanted = evaluate(module, program.entry, *arguments)
    for stage in Stage:
        advance(module, stage, program.entry)
        verify(module)
        again = clone_module(module)
        module = parse_module(print_module(module))
        assert print_module(module) == print_module(again)
        if stage is Stage.OPTIMIZABLE:
            arguments = tuple(flat(arguments))
        found, other = (evaluate(each, program.entry, *arguments) for each in (module, again))
        assert same_bits(flat(found), flat(other))
        if not stage.has_reached(Stage.COMPUTE):  # where sums have another order
            assert same_bits(flat(found), flat(wanted))
        advance(again, Stage.SCHEDULE, program.entry)
        direct = without_names(again)
        again = clone_module(module)
        advance(again, Stage.SCHEDULE, program.entry)
        assert without_names(again) == direct


def without_names(module: Module) -> str:
    """The text of a module whose values and blocks have lost their names: those that a text reads back are others."""
    for function in module.functions.values():
        for block in walk_blocks(function.body) if function.body is not None else ():
            block.name = None
            for value in (*block.arguments, *(r for i in block.instructions for r in i.results)):
                value.name = None
    return print_module(module)
