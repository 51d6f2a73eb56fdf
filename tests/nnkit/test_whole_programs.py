"""Random programs of the language, whole: what they compute and their derivatives, by laws that hold for every one.

With u random numbers for the results and v for the parameters:

1. the evaluator computes what NumPy does for the same text, and so does compiled code;
2. ⟨u, J v⟩ = ⟨Jᵀ u, v⟩, and J v is the difference of what NumPy computes, where nothing jumps or bends;
3. compiled derivatives are those of the evaluator.

Then second derivatives in every order of modes, series, batches, policies and schedules, halves, and f32.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, Tensor3D, f32, f64, i64
from nnkit.callables import StagedFunction
from nnkit.core.evaluate import evaluate
from nnkit.core.types import Array
from tests.programs import same_bits

from .numpy_language import numpy_program, staged_program
from .program_texts import program_text

FLOATS = (0, 1, 2)
"""The parameters of floats: a vector, a number, a matrix."""

TYPES = (Tensor1D, Scalar, Tensor2D)
LARGEST = 1e5
"""Of results and derivatives that are compared: beyond, rounding may be all there is."""


@dataclass(frozen=True)
class TextProgram:
    """A text, and a number that its arguments are made of."""

    text: str
    seed: int

    @cached_property
    def main(self) -> StagedFunction:
        return staged_program(self.text)

    @cached_property
    def numpy(self) -> Callable[..., Any]:
        return numpy_program(self.text)

    def direction(self, seed: int) -> list[Any]:
        """As the parameters of floats are."""
        rng = np.random.default_rng([self.seed, seed])
        return [rng.uniform(-1.5, 1.5, shape) for shape in ((3,), (), (3, 3))]

    def arguments(self, seed: int = 0) -> list[Any]:
        return [*self.direction(seed), np.int64((self.seed + 3 * seed) % 11 - 2)]

    def seeds(self) -> tuple[Any, Any]:
        """As the results are."""
        rng = np.random.default_rng([self.seed, 7])
        return rng.uniform(-1, 1, ()), rng.uniform(-1, 1, 3)

    def __repr__(self) -> str:
        return f"\n{self.text}\n# seed {self.seed}, arguments {self.arguments()!r}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How Hypothesis shows a failing example."""
        printer.text(repr(self))


@st.composite
def text_programs(draw: Callable[[st.SearchStrategy[Any]], Any]) -> TextProgram:
    text = program_text(lambda low, high: int(draw(st.integers(low, high))))
    return TextProgram(text, draw(st.integers(0, 1 << 16)))


def flat(value: Any) -> list[Array]:
    """The arrays in nested tuples."""
    if isinstance(value, tuple):
        return [array for one in value for array in flat(one)]
    return [np.asarray(value)]


def is_tame(values: Sequence[Array]) -> bool:
    return all(np.all(np.abs(x) < LARGEST) for x in values)


def agree(found: Sequence[Array], expected: Sequence[Array], tolerance: float = 1e-9) -> None:
    assert [x.shape for x in found] == [x.shape for x in expected]
    for one, other in zip(found, expected, strict=True):
        size = max(1.0, float(np.max(np.abs(other), initial=0)))
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * size)


def evaluated(function: StagedFunction, arguments: Sequence[Any]) -> list[Array]:
    """By the evaluator, of the module with all derivatives."""
    specialization = function._specialization(function._values(tuple(arguments)))
    module, entry = specialization.module("optimizable")
    with np.errstate(all="ignore"):
        return flat(evaluate(module, entry.name, *flat(tuple(arguments))))


def expected_values(program: TextProgram, arguments: Sequence[Any]) -> list[Array]:
    """By NumPy; a program without tame finite numbers is not a case."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = flat(program.numpy(*arguments))
    assume(is_tame(found))
    return found


def inner(u: Sequence[Any], v: Sequence[Any]) -> tuple[float, float]:
    """⟨u, v⟩, and the sum of the sizes of what is added up."""
    terms = [np.asarray(x) * y for x, y in zip(u, v, strict=True)]
    return float(sum(np.sum(t) for t in terms)), float(sum(np.sum(np.abs(t)) for t in terms))


def same_products(one: tuple[float, float], other: tuple[float, float]) -> None:
    (left, size), (right, more) = one, other
    assert abs(left - right) <= 1e-9 * max(size + more, 1e-3), (left, right)


def both_modes(main: StagedFunction) -> StagedFunction:
    """Values, J v and Jᵀ u in one program."""
    forward, reverse = nk.jvp(main, wrt=FLOATS), nk.vjp(main, wrt=FLOATS)
    types = [kind[f64] for kind in TYPES]

    def both(x: Any, s: Any, m: Any, n: Any, dx: Any, ds: Any, dm: Any, u: Any, w: Any) -> Any:
        return nk.tup(forward(x, s, m, n, dx, ds, dm), reverse(x, s, m, n, nk.tup(u, w)))

    return nk.fn(*types, Scalar[i64], *types, Scalar[f64], Tensor1D[f64])(both)


def check_differences(program: TextProgram, v: Sequence[Any], tangents: Sequence[Array]) -> None:
    """Where the slopes to both sides, and at half the step, are the same, nothing jumps or bends: it is the tangent."""
    *floats, n = program.arguments()
    step = 1e-5

    def at(h: float) -> list[Array]:
        moved = [x + h * dx for x, dx in zip(floats, v, strict=True)]
        return expected_values(program, [*moved, n])

    values = [at(h) for h in (-step, -step / 2, 0.0, step / 2, step)]
    for tangent, a, b, middle, c, d in zip(tangents, *values, strict=True):
        slope, half = (d - a) / (2 * step), (c - b) / step
        bend = np.abs((d - middle) - (middle - a)) / step
        size = np.maximum(np.abs(slope), 1)
        smooth = (np.abs(slope - half) <= 1e-6 * size) & (bend <= 1e-3 * size)
        np.testing.assert_allclose(tangent[smooth], slope[smooth], rtol=2e-5, atol=2e-5)


IS_FUZZING = settings().max_examples > 100
LAW = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    max_examples=10_000 if IS_FUZZING else 120,
)
FEW = settings(LAW, max_examples=2_000 if IS_FUZZING else 10)
"""Of what takes longer: several derivatives of each, or LLVM, which needs a tenth of a second for one."""


@LAW
@given(text_programs())
def test_forward_is_reverse_is_the_difference_is_numpy(program: TextProgram) -> None:
    arguments, v, u = program.arguments(), program.direction(1), program.seeds()
    expected = expected_values(program, arguments)
    found = evaluated(both_modes(program.main), [*arguments, *v, *u])
    values, tangents, gradients = found[:2], found[2:4], found[4:]
    agree(values, expected)
    assume(is_tame([*tangents, *gradients]))
    same_products(inner(u, tangents), inner(gradients, v))
    check_differences(program, v, tangents)


@FEW
@given(text_programs())
def test_compiled_code_is_the_evaluator(program: TextProgram) -> None:
    arguments = [*program.arguments(), *program.direction(1), *program.seeds()]
    expected_values(program, program.arguments())
    both = both_modes(program.main)
    expected = evaluated(both, arguments)
    assume(is_tame(expected))
    agree(flat(both(*arguments)), expected)
    agree(flat(program.main(*program.arguments())), expected[:2])


@FEW
@given(text_programs())
def test_second_derivatives_in_every_order_of_modes(program: TextProgram) -> None:
    arguments, v, w = program.arguments(), program.direction(1), program.direction(2)
    expected_values(program, arguments)
    gradient = nk.gradient(of=program.main, wrt=FLOATS)
    forward = evaluated(nk.jvp(gradient, wrt=FLOATS), [*arguments, *v])[3:]
    reverse = evaluated(nk.vjp(gradient, wrt=FLOATS), [*arguments, tuple(w)])
    assume(is_tame([*forward, *reverse]))
    same_products(inner(forward, w), inner(reverse, v))

    def along(x: Any, s: Any, m: Any, n: Any, dx: Any, ds: Any, dm: Any) -> Any:
        return nk.jvp(program.main, wrt=FLOATS)(x, s, m, n, dx, ds, dm)[1][0]

    types = [kind[f64] for kind in TYPES]
    tangent = nk.fn(*types, Scalar[i64], *types)(along)
    agree(evaluated(nk.gradient(of=tangent, wrt=FLOATS), [*arguments, *v]), forward, 1e-8)


@FEW
@given(text_programs())
def test_series_are_tangents_of_tangents(program: TextProgram) -> None:
    arguments, v = program.arguments(), program.direction(1)
    expected_values(program, arguments)
    types = [kind[f64] for kind in TYPES]

    def pushed(f: StagedFunction) -> StagedFunction:
        def tangent(x: Any, s: Any, m: Any, n: Any, dx: Any, ds: Any, dm: Any) -> Any:
            inside = (x, s, m, n, dx, ds, dm) if f is not program.main else (x, s, m, n)
            wrt = FLOATS
            return nk.jvp(f, wrt=wrt)(*inside, dx, ds, dm)[1]

        return nk.fn(*types, Scalar[i64], *types)(tangent)

    first = pushed(program.main)
    second = pushed(first)
    found = evaluated(nk.taylor(program.main, order=2, wrt=FLOATS), [*arguments, *v])
    assume(is_tame(found))
    agree(found[2:4], evaluated(first, [*arguments, *v]), 1e-8)
    agree(found[4:], [x / 2 for x in evaluated(second, [*arguments, *v])], 1e-8)


@FEW
@given(text_programs(), st.integers(1, 15))
def test_batches_are_loops(program: TextProgram, mask: int) -> None:
    """Of the program, of its gradient, and of what the gradient of a batch is."""
    which = [bool(mask >> k & 1) for k in range(4)]
    rows = [program.arguments(k) for k in range(3)]
    rows = [[x if w else y for x, y, w in zip(row, rows[0], which, strict=True)] for row in rows]
    for row in rows:
        expected_values(program, row)
    given = [np.stack([row[k] for row in rows]) if w else rows[0][k] for k, w in enumerate(which)]
    axes = tuple(0 if w else None for w in which)
    gradient = nk.gradient(of=program.main, wrt=FLOATS)
    slopes = [evaluated(gradient, row) for row in rows]
    assume(all(map(is_tame, slopes)))
    values = [evaluated(program.main, row) for row in rows]
    for batch, each in ((program.main, values), (gradient, slopes)):
        found = evaluated(nk.vmap(batch, in_axes=axes), given)
        agree(found, [np.stack(column) for column in zip(*each, strict=True)])
    kinds = [(*TYPES, Scalar), (Tensor2D, Tensor1D, Tensor3D, Tensor1D)]
    types = [kinds[w][k][f64 if k in FLOATS else i64] for k, w in enumerate(which)]

    def total(x: Any, s: Any, m: Any, n: Any) -> Rep[Scalar[f64]]:
        return nk.vmap(program.main, in_axes=axes)(x, s, m, n)[0].sum()

    found = evaluated(nk.gradient(of=nk.fn(*types)(total), wrt=FLOATS), given)
    for k, one in enumerate(found):
        each = [slope[k] for slope in slopes]
        agree([one], [np.stack(each) if which[k] else np.sum(each, 0)], 1e-8)


@FEW
@given(text_programs(), st.sampled_from(["all", "none", "auto"]))
def test_policies_and_schedules_change_nothing(program: TextProgram, save: Any) -> None:
    """What is kept gives the same bits; a schedule adds a value's uses up in another order."""
    arguments = program.arguments()
    expected_values(program, arguments)
    expected = evaluated(nk.gradient(of=program.main, wrt=FLOATS), arguments)
    assume(is_tame(expected))
    found = evaluated(nk.gradient(of=program.main, wrt=FLOATS, save=save), arguments)
    assert same_bits(tuple(found), tuple(expected))
    for schedule in (nk.every_sqrt(), nk.binomial(2)):
        main = staged_program(program.text, schedule=schedule)
        agree(evaluated(nk.gradient(of=main, wrt=FLOATS), arguments), expected, 1e-12)


@settings(FEW, max_examples=FEW.max_examples // 2)
@given(text_programs())
def test_halves_and_linear_maps_are_the_gradient(program: TextProgram) -> None:
    arguments, v, u = program.arguments(), program.direction(1), program.seeds()
    expected_values(program, arguments)
    found = flat(both_modes(program.main)(*arguments, *v, *u))
    assume(is_tame(found))
    _, df = nk.linearize(program.main, wrt=FLOATS)(*arguments)
    agree(flat(df(*v)), found[2:4])
    agree(flat(df.transpose(u)), found[4:])


@FEW
@given(text_programs())
def test_f32_is_f64_with_less_digits(program: TextProgram) -> None:
    narrow = [np.asarray(x, np.float32) for x in program.arguments()[:3]]
    n = program.arguments()[3]
    wide = [x.astype(np.float64) for x in narrow]
    expected_values(program, [*wide, n])
    expected = evaluated(nk.gradient(of=program.main, wrt=FLOATS, keeping=(0,)), [*wide, n])
    assume(is_tame(expected))
    main = staged_program(program.text, dtype=f32)
    found = evaluated(nk.gradient(of=main, wrt=FLOATS, keeping=(0,)), [*narrow, n])
    agree(found, expected, 2e-3)
