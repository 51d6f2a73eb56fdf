"""Random programs of the language: compiled, they compute what the evaluator says, and their gradients the slopes.

A program is a list of steps; each takes one or two of the values so far and gives a new one.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nnkit as nk
from nnkit import gradient, staged
from nnkit.compile import Specialization
from nnkit.conversion import spec_of
from nnkit.core.evaluate import evaluate
from nnkit.tensors import RANKED

Shape: TypeAlias = tuple[int, ...]
Step: TypeAlias = Callable[..., Any]
SHAPES: list[Shape] = [(3, 4), (4,), (1, 4), (), (3, 1), (2, 3, 4), (5,), (17,), (33, 2), (0, 4)]
UNARY: list[Step] = [
    nk.tanh, nk.sin, nk.sigmoid, nk.square, nk.relu, nk.gelu, nk.abs, nk.floor, lambda x: x * 0.5,
    lambda x: nk.exp(nk.minimum(x, 2.0)), lambda x: nk.sqrt(nk.abs(x) + 0.1), lambda x: nk.log1p(nk.square(x)),
]  # fmt: skip
BINARY: list[Step] = [
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, nk.maximum, nk.minimum,
    lambda x, y: x / (nk.square(y) + 1.0), lambda x, y: nk.select(x > y, x, y * 2.0),
]  # fmt: skip


def elementwise(r: random.Random, _: int) -> Step:
    return r.choice(UNARY)


def reduction(r: random.Random, rank: int) -> Step:
    name = r.choice(["sum", "mean", "max", "min", "var", "prod"])
    axis, keepdims = (r.randrange(rank), r.random() < 0.5) if rank else (None, False)
    return lambda x: getattr(x, name)(axis, keepdims=keepdims)


def permutation(r: random.Random, rank: int) -> Step:
    axes = r.sample(range(rank), rank)
    return lambda x: x.transpose(*axes) if axes else x


def flattening(_: random.Random, __: int) -> Step:
    return lambda x: x.reshape(-1)


def slicing(r: random.Random, rank: int) -> Step:
    key = tuple(slice(None, None, r.choice([1, 2, -1])) for _ in range(rank))
    return lambda x: x[key]


def along_an_axis(r: random.Random, rank: int) -> Step:
    if not rank:
        return nk.tanh
    axis = r.randrange(rank)
    return r.choice([
        lambda x: nk.softmax(x, axis=axis), lambda x: nk.cumsum(x, axis), lambda x: nk.flip(x, axis),
        lambda x: nk.concat([x, x * 2.0], axis=axis),
    ])  # fmt: skip


def product(_: random.Random, rank: int) -> Step:
    return (lambda x: x @ x.T) if rank == 2 else (lambda x: x * x)


def padding(r: random.Random, rank: int) -> Step:
    widths = [(r.randint(0, 2), r.randint(0, 1)) for _ in range(rank)]
    return lambda x: nk.pad(x, widths, constant_values=0.5)


KINDS = [elementwise] * 4 + [
    reduction, permutation, flattening, slicing, along_an_axis, product, padding,
]  # fmt: skip


def program(seed: int) -> Step:
    """The body of a staged function of three tensors: a scalar, and the last of the values it is made of."""

    def body(x: Any, y: Any, z: Any) -> Any:
        r = random.Random(seed)
        values = [x, y, z]
        for _ in range(r.randint(3, 14)):
            chosen = r.choice(values)
            if r.random() < 0.3:
                values.append(
                    r.choice(BINARY)(chosen, r.choice([chosen, chosen.sum(), values[-1].mean()]))
                )
            else:
                values.append(r.choice(KINDS)(r, chosen.spec.rank)(chosen))
        total = nk.sin(values[-1]).sum()
        for value in values[3:-1]:
            total = total + nk.sin(value).mean() if r.random() < 0.5 else total
        return total, values[-1]

    return body


def specialization(function: Any, arguments: list[Any]) -> Specialization:
    specs = tuple(spec_of(RANKED[a.ndim](a)) for a in arguments)
    return Specialization(
        function.stageable.callee(specs), specs, tuple(a.shape for a in arguments)
    )


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    r, numbers = random.Random(seed), np.random.default_rng(seed)
    dtype = r.choice([np.float32, np.float64])
    tolerance = 1e-8 if dtype is np.float64 else 3e-4
    arguments = [numbers.normal(size=r.choice(SHAPES)).astype(dtype) for _ in range(3)]
    function = staged(program(seed))
    module, entry = specialization(function, arguments).module("raw")
    wanted = evaluate(module, entry.name, *arguments)
    found = function(*arguments)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(got), want, tolerance, tolerance)
    derivatives = gradient(of=function, wrt=(0, 1, 2))
    module, entry = specialization(derivatives, arguments).module("optimizable")
    wanted = evaluate(module, entry.name, *arguments)
    found = derivatives(*arguments)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(got), want, 10 * tolerance, 10 * tolerance)
    if dtype is np.float64:
        check_slope(function, arguments, [np.asarray(d) for d in found], numbers)


def check_slope(function: Any, at: list[Any], derivatives: list[Any], numbers: Any) -> None:
    """Along a random direction, unless there is a kink or a jump within a step."""
    direction = [numbers.normal(size=a.shape) for a in at]
    step = 1e-6

    def value(k: float) -> float:
        moved = [a + k * step * d for a, d in zip(at, direction, strict=True)]
        return float(function(*moved)[0])

    before, here, after = value(-1), value(0), value(1)
    left, right = (here - before) / step, (after - here) / step
    if np.isfinite(here) and abs(left - right) < 1e-3 * (1 + abs(left)):
        slope = sum(float((g * d).sum()) for g, d in zip(derivatives, direction, strict=True))
        assert slope == pytest.approx((left + right) / 2, rel=1e-3, abs=1e-3)
