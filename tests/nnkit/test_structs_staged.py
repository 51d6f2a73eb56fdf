"""Structs in staged functions: sequences of structs inside of them, derivatives, loops, batches, operators."""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import (
    DifferentiationError,
    DTypeError,
    Field,
    IndexOutOfRangeError,
    NNKitError,
    Rep,
    Scalar,
    ShapeError,
    StagingError,
    Struct,
    Tensor1D,
    Tensor2D,
    boolean,
    f32,
    f64,
    i32,
)

pytestmark = pytest.mark.usefixtures("unoptimized_code")


class Layer(Struct):
    w: Field[Tensor2D[f64]]
    b: Field[Tensor1D[f64]]


class Net(Struct):
    layers: Field[list[Layer]]
    scale: Field[Scalar[f64]]
    pair: Field[tuple[Tensor1D[f64], Layer]]
    rest: Field[tuple[Tensor1D[f64], ...]]


RANDOM = np.random.default_rng(7)


def layer(inputs: int, outputs: int) -> Layer:
    return Layer(RANDOM.normal(size=(inputs, outputs)), RANDOM.normal(size=outputs))


def net(*sizes: int) -> Net:
    layers = [layer(a, b) for a, b in itertools.pairwise(sizes)]
    last = sizes[-1]
    return Net(layers, 2.0, (np.ones(last), layer(last, 2)), (np.arange(2.0), np.ones(2)))


X = Tensor2D(RANDOM.normal(size=(5, 3)))
SMALL, DEEP = net(3, 4), net(3, 4, 2, 3)


@nk.staged
def forward(p: Rep[Net], x: Rep[Tensor2D[f64]]) -> Rep[Scalar[f64]]:
    for one in p[Net.layers]:
        x = nk.tanh(x @ one[Layer.w] + one[Layer.b])
    v, last = p[Net.pair].unpack()
    shift = p[Net.rest][0] * p[Net.rest][-1]
    return (((x + v) @ last[Layer.w] + last[Layer.b] + shift) * p[Net.scale]).sum()


def oracle(p: Net, x: Any) -> float:
    x = np.asarray(x)
    for one in p.layers:
        x = np.tanh(x @ np.asarray(one.w) + np.asarray(one.b))
    v, last = (np.asarray(p.pair[0]), p.pair[1])
    shift = np.asarray(p.rest[0]) * np.asarray(p.rest[1])
    made = (x + v) @ np.asarray(last.w) + np.asarray(last.b) + shift
    return float((made * float(p.scale)).sum())


def same(p: Any, q: Any) -> None:
    one, other = nk.tree.leaves(p), nk.tree.leaves(q)
    assert type(p) is type(q) and len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-10, atol=1e-12)


def test_a_list_has_one_length_per_specialisation() -> None:
    for p in (SMALL, DEEP, net(3, 1)):
        assert float(forward(p, X)) == pytest.approx(oracle(p, X))
    assert forward.cache_size() == 3


def test_the_gradient_of_a_struct_with_sequences_is_such_a_struct() -> None:
    slope = nk.gradient(of=forward, wrt=0)(DEEP, X)
    assert type(slope) is Net and type(slope.layers) is tuple and len(slope.layers) == 3
    nk.check_gradients(forward, SMALL, X, order=1)
    step = 1e-6
    moved = DEEP.replace(layers=[DEEP.layers[0], DEEP.layers[1], shifted(DEEP.layers[2], step)])
    found = (oracle(moved, X) - oracle(DEEP, X)) / step
    assert found == pytest.approx(float(np.asarray(slope.layers[2].w)[0, 0]), rel=1e-4)
    for wrt, wanted in (
        (Net.layers, slope.layers),
        (Net.pair, slope.pair),
        (Net.scale, slope.scale),
        (lambda p, x: p.layers[1].w, slope.layers[1].w),
        (lambda p, x: (p.pair[1], p.layers[-1].b), (slope.pair[1], slope.layers[-1].b)),
    ):
        chosen: Any = wrt
        same(nk.gradient(of=forward, wrt=chosen)(DEEP, X), wanted)
    _, both = nk.value_and_gradient(of=forward, wrt=0)(DEEP, X)
    same(both, slope)


def shifted(one: Layer, step: float) -> Layer:
    w = np.array(one.w)
    w[0, 0] += step
    return one.replace(w=w)


@nk.staged
def trained(p: Rep[Net], x: Rep[Tensor2D[f64]]) -> Rep[Net]:
    slope = nk.gradient(of=forward, wrt=0)
    return nk.fori(0, 3, lambda i, p: p - 0.01 * slope(p, x), p)


@nk.staged
def chosen(yes: Rep[Scalar[boolean]], p: Rep[Net]) -> Rep[Net]:
    return nk.cond(yes, lambda: p * 2.0, lambda: p.set(Net.layers, (p * 3.0)[Net.layers]))


def test_loops_and_branches_carry_them() -> None:
    p = DEEP
    for _ in range(3):
        slope = nk.gradient(of=forward, wrt=0)(p, X)
        p = nk.tree.map(lambda a, g: np.asarray(a) - 0.01 * np.asarray(g), p, slope)
    same(trained(DEEP, X), p)
    same(chosen(boolean(True), DEEP), nk.tree.map(lambda a: 2 * np.asarray(a), DEEP))
    tripled = nk.tree.map(lambda a: 3 * np.asarray(a), DEEP).layers
    same(chosen(boolean(False), DEEP), DEEP.replace(layers=tripled))


def test_a_batch_of_them() -> None:
    @nk.staged
    def of_each(
        p: Rep[Net], x: Rep[Tensor2D[f64]]
    ) -> tuple[Rep[Scalar[f64]], Rep[tuple[Layer, ...]]]:
        return forward(p, x), p[Net.layers]

    batch = nk.vmap(of_each, in_axes=(None, 0), out_axes=(0, None))
    xs = np.stack([np.asarray(X), 2 * np.asarray(X)])
    values, layers = batch(SMALL, xs)
    np.testing.assert_allclose(np.asarray(values), [oracle(SMALL, x) for x in xs])
    same(layers, SMALL.layers)
    slopes = nk.vmap(nk.gradient(of=forward, wrt=0), in_axes=(None, 0))(SMALL, xs)
    alone = nk.gradient(of=forward, wrt=0)(SMALL, xs[1])
    for many, one in zip(nk.tree.leaves(slopes), nk.tree.leaves(alone), strict=True):
        np.testing.assert_allclose(np.asarray(many)[1], np.asarray(one))


def test_built_and_set_by_lists_of_values() -> None:
    @nk.staged
    def made(v: Rep[Tensor1D[f64]], w: Rep[Tensor2D[f64]]) -> Rep[Net]:
        one = nk.build(Layer, Layer.w << w, Layer.b << v)
        p = nk.build(
            Net,
            Net.layers << [one, one * 2.0],
            Net.scale << 1.5,  # type: ignore[operator]  # a number, at run time
            Net.pair << nk.tup(v, one),
            Net.rest << [],
        )
        return p.set(Net.rest, [v, v + 1.0])

    w = np.ones((2, 2))
    found = made(np.ones(2), w)
    one = Layer(w, np.ones(2))
    twice = Layer(2 * w, 2 * np.ones(2))
    same(found, Net([one, twice], 1.5, (np.ones(2), one), (np.ones(2), 2 * np.ones(2))))


def test_an_empty_sequence() -> None:
    p = SMALL.replace(layers=[], pair=(np.ones(3), layer(3, 2)))
    assert float(forward(p, X)) == pytest.approx(oracle(p, X))
    assert nk.gradient(of=forward, wrt=0)(p, X).layers == ()


def test_parts_of_a_sequence() -> None:
    @nk.staged
    def lengths(p: Rep[Net]) -> tuple[Rep[tuple[Layer, ...]], Rep[Tensor1D[f64]]]:
        layers = p[Net.layers]
        assert len(layers) == 3 and len(layers[1:]) == 2 and len([*layers]) == 3
        return layers[::-1][:2], layers[-1][Layer.b]

    backwards, last = lengths(DEEP)
    same(backwards, (DEEP.layers[2], DEEP.layers[1]))
    same(last, DEEP.layers[2].b)


class Pair(Struct):
    a: Field[Tensor1D[f64]]
    inner: Field[tuple[Scalar[f64], ...]]


OPERATORS: list[Callable[[Any, Any], Any]] = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.pow,
]


def test_operators_go_leaf_by_leaf() -> None:
    p, q = Pair([1.0, 2.0], (3.0, 4.0)), Pair([0.5, 2.5], (2.0, 5.0))
    scalar = nk.f64(1.5)
    cases: list[Callable[[Any, Any], Any]] = []
    for operate in OPERATORS:
        cases.append(operate)
        cases.append(lambda x, y, operate=operate: operate(x, 2))
        cases.append(lambda x, y, operate=operate: operate(0.5, y))
        cases.append(lambda x, y, operate=operate: operate(scalar, y))
        cases.append(lambda x, y, operate=operate: operate(x, scalar))
    cases += [lambda x, y: -x, lambda x, y: abs(-x), lambda x, y: +x]

    @nk.staged
    def all_of_them(x: Rep[Pair], y: Rep[Pair]) -> tuple[Rep[Pair], ...]:
        return tuple(case(x, y) for case in cases)

    for case, found in zip(cases, all_of_them(p, q), strict=True):
        wanted = nk.tree.map(lambda a, b, case=case: case(np.asarray(a), np.asarray(b)), p, q)
        same(found, wanted)
        same(case(p, q), wanted)


class Counted(Struct):
    a: Field[Tensor1D[f32]]
    steps: Field[Scalar[i32]]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda p, q: p + q, DTypeError, "cannot add a Counted and a Pair"),
        (lambda p, q: p + q[Pair.a], DTypeError, r"cannot add a struct and a Tensor1D\[f64\]"),
        (lambda p, q: p * 0.5, DTypeError, "0.5 is not an integer|steps of a struct"),
        (lambda p, q: p < p, StagingError, "structs are not compared"),
        (lambda p, q: q[Pair.inner][5], IndexOutOfRangeError, "the tuple has 2 elements"),
        (lambda p, q: q.set(Pair.inner, [q[Pair.a]]), DTypeError, "field inner of Pair must be"),
        (
            lambda p, q: nk.build(Pair, Pair.a << q[Pair.a], Pair.inner << [q[Pair.a]]),
            DTypeError,
            r"field inner of Pair must be a tuple\[Tensor0D\[f64\], \.\.\.\]",
        ),
        (lambda p, q: nk.tree.map(lambda x: x.sum(), q), NNKitError, "field a of Pair must be"),
        (
            lambda p, q: Pair(q[Pair.a], ()),
            DTypeError,
            r"(?s)got a Rep, .* `build\(Pair, Pair.a << x",
        ),
        (lambda p, q: Pair([1.0], [p]), DTypeError, r"Pair.inner\[0\] must be a .*, got a Rep"),
        (lambda p, q: nk.tree.map(lambda x, y: x, q, p), DTypeError, "tree 2 a Counted"),
        (
            lambda p, q: q + q.set(Pair.inner, q[Pair.inner]) - _longer(q),
            ShapeError,
            "cannot subtract sequences of 2 and 3 values in inner",
        ),
    ],
)
def test_what_operators_refuse(make: Any, error: type[Exception], message: str) -> None:
    def refused(p: Rep[Counted], q: Rep[Pair]) -> Rep[Pair]:
        made: Rep[Pair] = make(p, q)
        return made

    with pytest.raises(error) as caught:
        nk.staged(refused)(Counted([1.0], 2), Pair([1.0], (1.0, 2.0)))
    notes = " ".join(getattr(caught.value, "__notes__", []))
    assert re.search(message, f"{caught.value} {notes}")


def test_a_struct_of_reps_outside_of_staged_functions() -> None:
    with pytest.raises(DTypeError, match=r"(?s)got a Rep, .* outside .* `x.eval\(\)` is its value"):
        Pair(nk.zeros(()), ())  # type: ignore[arg-type]  # what is tested


def _longer(q: Rep[Pair]) -> Rep[Pair]:
    inner = q[Pair.inner]
    return nk.build(Pair, Pair.a << q[Pair.a], Pair.inner << [*inner, inner[0]])


@pytest.mark.parametrize(
    ("wrt", "message"),
    [
        (lambda p, x: p.layers[7], "there is no element 7"),
        (lambda p, x: tuple(p.layers), "a selector cannot go through a sequence"),
        (lambda p, x: p.pair[2], "there are 2"),
        (lambda p, x: p.scale[0], "asks parameter 0 for element 0"),
    ],
)
def test_what_wrt_refuses(wrt: Any, message: str) -> None:
    with pytest.raises(DifferentiationError, match=message):
        nk.gradient(of=forward, wrt=wrt)(SMALL, X)


def test_overlapping_parts_have_no_tangents_of_their_own() -> None:
    twice: Any = lambda p, x: (p.layers, p.layers[0])  # noqa: E731  # as users write it
    ends: Any = lambda p, x: (p.layers[0].w, p.layers[-1].w)  # noqa: E731
    for wrt in (twice, ends):
        with pytest.raises(DifferentiationError, match="names a parameter twice, or may"):
            nk.jvp(of=forward, wrt=wrt)


def test_what_operators_of_concrete_structs_refuse() -> None:
    p, q = Pair([1.0], (1.0, 2.0)), Counted([1.0], 2)
    for operate, message in (
        (lambda: p + q, "cannot add a Pair and a Counted: both must be of one class"),
        (lambda: p + np.ones(3), r"does not support"),
        (lambda: p + Tensor1D([1.0], f64), r"a Pair and a tensor of shape \[1\]"),
        (lambda: q / 2, "divide takes float elements, not i32"),
        (lambda: p * f32(2.0), "f64 and f32"),
    ):
        with pytest.raises(TypeError, match=message):
            operate()
    with pytest.raises(TypeError):  # NumPy says which
        np.ones(3) + p
    assert 2.0 * p == np.float64(2.0) * p == p + p
    with pytest.raises(ShapeError, match="sequences of 2 and 1 values in inner"):
        p - p.replace(inner=[1.0])


def redefined(a: type[Any]) -> type[Any]:
    """A class of the same name, as a cell of a notebook that is run again makes it."""
    return type(
        "Pair", (Struct,), {"__annotations__": dict(a.__annotations__), "__qualname__": "Pair"}
    )


def test_a_struct_that_was_defined_again() -> None:
    @nk.staged
    def total(p: Rep[Pair]) -> Rep[Scalar[f64]]:
        return p[Pair.a].sum()

    other: Any = redefined(Pair)
    p: Any = other([1.0], (2.0,))
    place = r"test_structs_staged\.py:\d+"
    with pytest.raises(DTypeError, match=f"another Pair, defined after it at {place}"):
        total(p)
    later: Any = nk.staged(lambda p: p[other.a].sum())
    assert float(later(p)) == 1.0
    with pytest.raises(
        StagingError, match=f"Pair.a is of another Pair, defined after it at {place}"
    ):
        later(Pair([1.0], (2.0,)))
    with pytest.raises(DTypeError, match="cannot add a Pair and another Pair, defined after it"):
        Pair([1.0], (2.0,)) + p
    holder: Any = type("Holder", (Struct,), {"__annotations__": {"p": Field[other]}})
    with pytest.raises(
        DTypeError, match=f"must be a Pair, got another Pair, defined before at {place}"
    ):
        holder(Pair([1.0], (2.0,)))
