"""Batches of whole programs, by laws that hold for every one.

1. A batched program gives each element what the program gives it.
2. So does the batch of its gradient, and of its tangent.
3. The gradient of the batch, for seeds, is the gradient of each element; summed over the elements where the parameter
   is the same for all.
4. A batch of batches is a table; compiled code gives what the evaluator does.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from nnkit.core.analysis.batches import batched_type
from nnkit.core.analysis.derivatives import derivative_type
from nnkit.core.driver.stages import advance
from nnkit.core.errors import FuelError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import BatchOf, Function, GradientOf, Module, TangentOf
from nnkit.core.stage import Stage
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import Array
from tests.core.autodiff.program_generator import DifferentiableProgram, differentiable_programs
from tests.core.autodiff.test_reverse_control_flow import (
    FUEL,
    LEVELS,
    call,
    compiled,
    copied,
    directions,
)
from tests.programs import flat

EXTENT = 3
LAW = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    max_examples=settings().max_examples // 3,
)
SLOW = settings(LAW, max_examples=settings().max_examples // 6)


def declare_batch(module: Module, name: str, primal: str, along: Sequence[int | None]) -> None:
    declaration = BatchOf(primal, tuple(along))
    type = batched_type(module.functions[primal].type, declaration, EXTENT)
    module.add(Function(name, type, declaration=declaration))


def elements_of(program: DifferentiableProgram) -> list[list[Any]]:
    """Arguments for each element: those of the program, moved."""
    found: list[list[Any]] = []
    for number in range(EXTENT):
        row: list[Any] = []
        for x in program.arguments:
            if x.dtype.kind == "f":
                row.append(np.asarray(x + 0.31 * number, x.dtype))
            else:
                row.append(np.asarray((x + 2 + 3 * number) % 8 - 2, x.dtype))
        found.append(row)
    return found


def chosen(rows: Sequence[Sequence[Any]], which: Sequence[bool]) -> list[list[Any]]:
    """What each element is given, where some arguments are the same for all."""
    return [[x if w else y for x, y, w in zip(row, rows[0], which, strict=True)] for row in rows]


def together(rows: Sequence[Sequence[Any]], which: Sequence[bool]) -> list[Array]:
    return [np.stack([row[k] for row in rows]) if w else rows[0][k] for k, w in enumerate(which)]


def subset(program: DifferentiableProgram, mask: int) -> list[bool]:
    """The parameters of a program that differ: some, at least one."""
    count = len(program.arguments)
    mask = mask % (2**count - 1) + 1
    return [bool(mask >> k & 1) for k in range(count)]


def results_of_all(module: Module, name: str, *arguments: Any) -> list[Array]:
    """What a batch gives; one that takes too long, as each branch runs that any element takes, is not a case."""
    try:
        return list(flat(evaluate(module, name, *arguments, fuel=10 * FUEL)))
    except FuelError:
        assume(False)
        raise


def agree(found: Sequence[Array], expected: Sequence[Sequence[Array]]) -> None:
    """Each of `found` has a row for each element."""
    for k, batch in enumerate(found):
        for number, one in enumerate(expected):
            tolerance = 1e-9 if one[k].dtype != np.float32 else 1e-3
            np.testing.assert_allclose(batch[number], one[k], rtol=tolerance, atol=tolerance)


MASKS = st.integers(0, 1 << 8)


@LAW
@given(differentiable_programs(), MASKS, st.sampled_from(LEVELS))
def test_a_batch_is_a_loop_over_the_elements(
    program: DifferentiableProgram, mask: int, level: int
) -> None:
    which = subset(program, mask)
    rows = chosen(elements_of(program), which)
    expected = [call(program.module, "main", *row) for row in rows]
    module = copied(program.module)
    declare_batch(module, "batch", "main", [0 if w else None for w in which])
    module = copied(module)
    advance(module, Stage.OPTIMIZABLE, "batch", level=level)
    found = results_of_all(module, "batch", *together(rows, which))
    agree(found, expected)


@SLOW
@given(differentiable_programs(), MASKS, st.booleans())
def test_a_batch_of_derivatives_is_a_loop_over_them(
    program: DifferentiableProgram, mask: int, is_gradient: bool
) -> None:
    which = subset(program, mask)
    rows = chosen(elements_of(program), which)
    u, v = directions(program)
    given = u if is_gradient else v
    module = copied(program.module)
    sources, wrt, keeping = program.sources, program.wrt, program.keeping
    declaration: GradientOf | TangentOf = TangentOf("main", sources, wrt, keeping)
    if is_gradient:
        declaration = GradientOf("main", sources, wrt, keeping, seedable=True)
    type = derivative_type(module.functions["main"].type, declaration)
    module.add(Function("derivative", type, declaration=declaration))
    along = [0 if w else None for w in which]
    declare_batch(module, "batch", "derivative", [*along, *[None] * len(given)])
    advance(module, Stage.OPTIMIZABLE, "batch")
    expected = [call(module, "derivative", *row, *given) for row in rows]
    found = results_of_all(module, "batch", *together(rows, which), *given)
    agree(found, expected)


@SLOW
@given(differentiable_programs(), MASKS)
def test_the_gradient_of_a_batch_is_that_of_each_element(
    program: DifferentiableProgram, mask: int
) -> None:
    which = subset(program, mask)
    rows = chosen(elements_of(program), which)
    u, _ = directions(program)
    module = copied(program.module)
    of_one = GradientOf("main", program.sources, program.wrt, (), seedable=True)
    type = derivative_type(module.functions["main"].type, of_one)
    module.add(Function("derivative", type, declaration=of_one))
    declare_batch(module, "batch", "main", [0 if w else None for w in which])
    of_all = GradientOf("batch", program.sources, program.wrt, (), seedable=True)
    type = derivative_type(module.functions["batch"].type, of_all)
    module.add(Function("gradient", type, declaration=of_all))
    module = parse_module(print_module(module))
    advance(module, Stage.OPTIMIZABLE, "gradient", "derivative")
    expected = [call(module, "derivative", *row, *u) for row in rows]
    seeds = [np.broadcast_to(x, (EXTENT, *x.shape)) for x in u]
    found = results_of_all(module, "gradient", *together(rows, which), *seeds)
    for position, k in enumerate(program.wrt):
        each = [one[position] for one in expected]
        if which[k]:
            agree([found[position]], [[one] for one in each])
        else:
            size = sum(np.abs(one) for one in each) + 1
            assert np.all(np.abs(found[position] - sum(each)) <= 1e-9 * size)


@settings(LAW, max_examples=max(settings().max_examples // 10, 1))
@given(differentiable_programs(), MASKS, st.sampled_from(LEVELS))
def test_compiled_code_gives_what_the_evaluator_does(
    program: DifferentiableProgram, mask: int, level: int
) -> None:
    """Of a batch of gradients, and, which is a batch of batches, of a table of them."""
    which = subset(program, mask)
    rows = chosen(elements_of(program), which)
    u, _ = directions(program)
    module = copied(program.module)
    declaration = GradientOf("main", program.sources, program.wrt, seedable=True)
    type = derivative_type(module.functions["main"].type, declaration)
    module.add(Function("derivative", type, declaration=declaration))
    declare_batch(
        module, "batch", "derivative", [*(0 if w else None for w in which), *[None] * len(u)]
    )
    declare_batch(module, "table", "batch", [*[None] * len(which), *[0] * len(u)])
    evaluated = copied(module)
    advance(evaluated, Stage.OPTIMIZABLE)
    seeds = [np.stack([x * (k + 1) for k in range(EXTENT)]) for x in u]
    for entry, more in (("batch", u), ("table", seeds)):
        arguments = [*together(rows, which), *more]
        expected = call(evaluated, entry, *arguments)
        for one, other in zip(compiled(module, level, entry, arguments), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def nested(depth: int) -> str:
    """A choice in a choice in a choice, for each element."""
    lines = ['module "m"', "stage raw", "func @f: (f64) -> f64 {", "'entry(%x0: f64):"]
    for k in range(depth):
        lines += [
            f"%c{k} = greaterThan %x{k}: f64, 0.0: f64",
            f"%y{k} = if %c{k}: bool -> f64 {{",
            f"'t{k}():",
            f"%x{k + 1} = subtract %x{k}: f64, 1.0: f64",
        ]
    lines.append(f"%y{depth} = add %x{depth}: f64, 0.5: f64")
    for k in reversed(range(depth)):
        lines += [f"yield %y{k + 1}: f64", "} else {", f"'e{k}():", f"yield %x{k}: f64", "}"]
    lines += ["return %y0: f64", "}", "[batch @f along 0]", "func @g: (<3 x f64>) -> <3 x f64>"]
    return "\n".join(lines)


def test_deep_programs_are_batched_in_linear_time() -> None:
    """Four times as deep takes about four times as long, and no stack."""
    seconds: list[float] = []
    for depth in (300, 1200):
        each: list[float] = []
        for _ in range(3):  # of which the quickest counts: a collection of garbage takes as long
            module = parse_module(nested(depth))
            before = time.process_time()
            advance(module, Stage.OPTIMIZABLE, "g", level=0)
            each.append(time.process_time() - before)
        seconds.append(min(each))
    assert seconds[1] < 10 * seconds[0]
    found = evaluate(module, "g", np.array([1200.5, 2.25, -1.0]))
    np.testing.assert_array_equal(found, [1.0, -0.75, -1.0])
