"""Donated parameters: results are the same whether a parameter and its result are one buffer or two."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.driver.stages import advance, passes_to
from nnkit.core.errors import VerifyError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Function, Module
from nnkit.core.ir.donation import donation, donations, without_donations
from nnkit.core.ops import Add
from nnkit.core.passes.flatten import Flatten
from nnkit.core.passes.pipeline import run_pipeline
from nnkit.core.schedule.plan import arena_bytes, schedule
from nnkit.core.schedule.target import Target
from nnkit.core.stage import Stage
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import BOOL, FunctionType, TensorType, one_or_tuple
from nnkit.core.verify import verify
from tests.jit.emit.running import run
from tests.jit.emit.test_program import EXACT
from tests.programs import Program, flat, programs, same_bits


def with_doubles(function: Function, *, early: bool) -> list[tuple[int, TensorType]]:
    """Let the function also return the double of each number it takes: the results' numbers, with their types.

    They are computed before all else, so that what reads the parameters comes later, or after all else.
    """
    block = function.entry
    old = block.instructions
    kept, last = old[:-1], old[-1]
    block.instructions = []
    b = Builder(block)
    doubles = [b.emit(Add(), p, p) for p in function.parameters if p.tensor.dtype is not BOOL]
    block.instructions = (
        [*block.instructions, *kept, last] if early else [*kept, *block.instructions, last]
    )
    count = len(last.operands)
    last.set_operands([*last.operands, *doubles])
    results = [*function.type.results, *(x.type for x in doubles)]
    function.type = FunctionType(function.type.parameters, one_or_tuple(results))
    return [(count + number, x.tensor) for number, x in enumerate(doubles)]


def donate_all(function: Function, results: list[tuple[int, TensorType]], turn: int) -> None:
    """Donate each parameter to a result of its type, its own double or another one's."""
    free = [n for n, p in enumerate(function.parameters) if p.tensor.dtype is not BOOL]
    for result, type in results:
        fitting = [n for n in free if function.type.parameters[n] == type]
        taken = fitting[turn % len(fitting)]
        free.remove(taken)
        function.attributes += (donation(taken, result),)


@given(
    programs(ops=EXACT) | programs(ops=EXACT, control=True),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(0, 3),
)
def test_results_do_not_depend_on_where_they_lie(
    program: Program, early: bool, fused: bool, in_place: bool, turn: int
) -> None:
    module, arguments = program.module, flat(program.arguments)
    module.stage = Stage.OPTIMIZABLE
    run_pipeline(module, (Flatten(), *passes_to(Stage.OPTIMIZED, program.entry)))
    function = module.functions[program.entry]
    results = with_doubles(function, early=early)
    donate_all(function, results, turn)
    verify(module)
    wanted = flat(evaluate(module, program.entry, *arguments))
    generate_compute(module)
    if fused:
        fuse(module)
    schedule(module, Target(vector_bytes=64))
    found = run(function, arguments, module.functions, in_place=in_place)
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(x, y)
        assert same_bits(np.asarray(x), np.asarray(y))


TWO = "(<8 x f32>, <8 x f32>) -> (<8 x f32>, <8 x f32>)"


def module_of(attributes: str, body: str, type: str = TWO) -> Module:
    entry = type.split("->", maxsplit=1)[0].strip("( )").split(", ")
    parameters = ", ".join(f"%p{n}: {one}" for n, one in enumerate(entry))
    text = f'module "m"\n{attributes}\nfunc @f: {type} {{\n\'entry({parameters}):\n{body}\n}}\n'
    return parse_module(text)


STEP = "%a = multiply %p1: <8 x f32>, 0.5: f32\n%b = subtract %p0: <8 x f32>, %a: <8 x f32>\n"


def test_the_text_says_what_is_donated_at_every_stage() -> None:
    module = module_of("!donated_0_0", f"{STEP}return %b: <8 x f32>, %a: <8 x f32>")
    for stage in Stage:
        advance(module, stage, "f", target=Target())
        text = print_module(module)
        assert "!donated_0_0" in text
        assert print_module(parse_module(text)) == text


def test_an_update_is_in_place() -> None:
    """Neither memory beside the two buffers, nor a copy."""
    module = module_of("!donated_0_0\n!donated_1_1", f"{STEP}return %b: <8 x f32>, %a: <8 x f32>")
    advance(module, Stage.SCHEDULE, "f", target=Target())
    function = module.functions["f"]
    assert arena_bytes(function) == arena_bytes_of_nothing()
    assert print_module(module).count("into output") >= 1


def arena_bytes_of_nothing() -> int:
    module = module_of("", "return %p0: <8 x f32>, %p1: <8 x f32>")
    advance(module, Stage.SCHEDULE, "f", target=Target())
    return arena_bytes(module.functions["f"])


def test_what_is_read_later_is_held_back() -> None:
    """Parameters change places: one result waits in the arena until both have been read."""
    module = module_of("!donated_0_1\n!donated_1_0", "return %p0: <8 x f32>, %p1: <8 x f32>")
    advance(module, Stage.SCHEDULE, "f", target=Target())
    function = module.functions["f"]
    x, y = np.arange(8, dtype=np.float32), np.ones(8, np.float32)
    found = run(function, [x, y], in_place=True)
    assert np.array_equal(found[0], x) and np.array_equal(found[1], y)


def test_a_parameter_that_is_returned_where_it_lies_is_not_copied() -> None:
    module = module_of("!donated_0_0\n!donated_1_1", "return %p0: <8 x f32>, %p1: <8 x f32>")
    advance(module, Stage.SCHEDULE, "f", target=Target())
    assert "loops" not in print_module(module)


@pytest.mark.parametrize(
    ("attributes", "type", "message"),
    [
        (
            "!donated_2_0",
            TWO,
            "donates parameter 2 to result 0, and has 2 parameters and 2 results",
        ),
        (
            "!donated_0_2",
            TWO,
            "donates parameter 0 to result 2, and has 2 parameters and 2 results",
        ),
        ("!donated_0_0\n!donated_0_1", TWO, "has parameter 0 in two donations"),
        ("!donated_0_0\n!donated_1_0", TWO, "has result 0 in two donations"),
        (
            "!donated_0_0",
            "(<8 x f32>, <4 x f32>) -> (<4 x f32>, <8 x f32>)",
            "donates a <8 x f32> to a result of type <4 x f32>",
        ),
        ("!donated_00_0", TWO, "has the attribute !donated_00_0"),
        ("!donated_0", TWO, "has the attribute !donated_0"),
    ],
)
def test_what_cannot_be_donated(attributes: str, type: str, message: str) -> None:
    results = re.findall("<[^>]*>", type.split("->")[1])
    order = (1, 0) if "4 x" in results[0] else (0, 1)
    body = "return " + ", ".join(f"%p{n}: {t}" for n, t in zip(order, results, strict=True))
    with pytest.raises(VerifyError, match=re.escape(message)):
        verify(module_of(attributes, body, type))


def test_parameters_of_structs_have_no_numbers_yet() -> None:
    body = "return %p1: <8 x f32>"
    module = parse_module(
        'module "m"\nstruct $S { #x: f32 }\n!donated_1_0\nfunc @f: ($S, <8 x f32>) -> <8 x f32> {\n'
        f"'entry(%p0: $S, %p1: <8 x f32>):\n{body}\n}}\n"
    )
    with pytest.raises(VerifyError, match="not all it takes and returns are tensors"):
        verify(module)


def test_derivatives_and_batches_do_not_inherit_donations() -> None:
    attributes = ("noinline", "donated_0_0", "binomial_3", "donated_10_2")
    assert [*donations(attributes)] == [(0, 0), (10, 2)]
    assert without_donations(attributes) == ("noinline", "binomial_3")
    text = (
        'module "m"\n!donated_1_0\n!noinline\nfunc @f: (<8 x f32>, <8 x f32>) -> <8 x f32> {\n'
        "'entry(%x: <8 x f32>, %y: <8 x f32>):\n%z = multiply %x: <8 x f32>, %y: <8 x f32>\n"
        "return %z: <8 x f32>\n}\n[gradient @f wrt 0, 1 keeping 0]\n"
        "func @g: (<8 x f32>, <8 x f32>) -> (<8 x f32>, <8 x f32>, <8 x f32>)\n"
    )
    module = parse_module(text)
    advance(module, Stage.OPTIMIZED, "f", "g")
    verify(module)
    donors = [name for name, one in module.functions.items() if [*donations(one.attributes)]]
    assert donors == ["f"]


def test_a_function_that_is_called_copies_what_is_donated() -> None:
    """Calls have buffers of their own for results."""
    text = (
        'module "m"\n!donated_0_0\n!noinline\nfunc @f: (<8 x f32>) -> <8 x f32> {\n'
        "'entry(%x: <8 x f32>):\n%z = add %x: <8 x f32>, 1.0: f32\nreturn %z: <8 x f32>\n}\n"
        "func @g: (<8 x f32>) -> (<8 x f32>, <8 x f32>) {\n'entry(%x: <8 x f32>):\n"
        "%y = apply @f(%x): (<8 x f32>) -> <8 x f32>\n%w = add %x: <8 x f32>, %y: <8 x f32>\n"
        "return %y: <8 x f32>, %w: <8 x f32>\n}\n"
    )
    module = parse_module(text)
    advance(module, Stage.SCHEDULE, "g", target=Target())
    x = np.arange(8, dtype=np.float32)
    y, w = run(module.functions["g"], [x], module.functions)
    assert np.array_equal(y, x + 1) and np.array_equal(w, 2 * x + 1)
