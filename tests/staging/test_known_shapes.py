"""Sizes as Python ints: such a function is traced for each shapes, and is what NumPy computes with its ints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Dim, NNKitError, Rep, Scalar, Tensor1D, Tensor2D, f64, i32
from nnkit.staging.staged_functions import PythonFunction

GENERATOR = np.random.default_rng(5)
X = GENERATOR.uniform(0.5, 2.0, (4, 3))
Y = GENERATOR.uniform(0.5, 2.0, (2, 3))
V = GENERATOR.uniform(0.5, 2.0, 4)


def staged(rank: int, program: Callable[..., Any]) -> Any:
    return nk.fn((Tensor1D[f64], Tensor2D[f64])[rank - 1])(program)


def keys(function: Any) -> list[Any]:
    """The shapes of the traces that are kept; None of one for all shapes."""
    assert isinstance(function.stageable, PythonFunction)
    return [shapes for _, shapes in function.stageable.traces]


def powers(x: Any) -> Any:
    """Python's loop, list, dict, formats, `if` and NumPy with sizes."""
    names = {x.shape[0]: "rows", x.shape[1] + 10: "columns"}
    assert "rows" in names.values()
    for k in range(x.shape[0]):
        x = x * float(k + 1) + len([0] * x.shape[1]) + len(x)
    if x.shape[0] > 3 and x.shape[1] != 2:
        x = x - np.eye(x.shape[0])[:, : int(x.shape[1])] * np.sqrt(x.shape[1])
        x = x + np.hanning(x.shape[1]) + np.arange(3.0) * x.shape[0]
    return x * max(x.shape[0], 3) + float(f"{x.shape[0]:03d}") + float(x.shape[1]) + 2.0**x.ndim


def test_python_has_the_numbers_once_per_shapes() -> None:
    function = staged(2, powers)
    derivative = nk.gradient(of=staged(2, lambda x: (function(x) ** 2.0).sum()), wrt=0)
    for x in (X, Y, X, X[:, :2]):
        np.testing.assert_allclose(function(x), powers(x))
        slope = np.prod(np.arange(1, len(x) + 1)) * max(len(x), 3)
        np.testing.assert_allclose(derivative(x), 2 * powers(x) * slope)
    assert keys(function) == [((4, 3),), ((2, 3),), ((4, 2),)]


@nk.staged
def repeated(x: Rep[Tensor1D[f64]]) -> Rep[Tensor1D[f64]]:
    """Needs the size of what it computes."""
    y = nk.concat([x, x])
    for k in range(y.shape[0]):
        y = y.at[k].multiply(float(k + 1))
    return y


def test_derivatives_and_batches_of_functions_that_need_sizes() -> None:
    """And of functions that only call one."""
    caller: Any = nk.fn(Tensor1D[f64], Tensor1D[f64])(lambda x, y: nk.tup(repeated(x) * y.sum(), x))
    factors = np.arange(1.0, 9.0)
    matrix = np.concatenate([np.eye(4), np.eye(4)]) * factors[:, None]
    np.testing.assert_allclose(repeated(V), matrix @ V)
    np.testing.assert_allclose(caller(V, V)[0], matrix @ V * V.sum())
    np.testing.assert_allclose(nk.jacobian(of=repeated, wrt=0)(V), matrix)
    np.testing.assert_allclose(nk.jvp(repeated)(V, V * 2)[1], matrix @ V * 2)
    pull = nk.gradient(of=repeated, wrt=0, seedable=True)
    np.testing.assert_allclose(pull(V, factors), matrix.T @ factors)
    np.testing.assert_allclose(nk.vmap(repeated)(X.T), X.T @ matrix.T)
    square = staged(1, lambda x: (repeated(x) * repeated(x)).sum())
    np.testing.assert_allclose(nk.hessian(of=square, wrt=0)(V), 2 * matrix.T @ matrix)


def test_bodies_and_refs_have_the_sizes_of_what_they_carry() -> None:
    def program(x: Any) -> Any:
        wide = nk.concat([x, x])
        ref = nk.ref(wide)

        def body(_: Any, carry: Any) -> Any:
            both = nk.concat([carry, ref.value])
            ref[...] = ref.value + float(both.shape[0])
            return carry * float(carry.shape[0])

        def step(carry: Any, element: Any) -> Any:
            return carry + float(carry.shape[0]) * element, carry.sum() * float(wide.shape[0])

        looped = nk.fori(0, 2, body, x)
        while_ = nk.while_loop(
            lambda c: c.sum() < float(c.shape[0]), lambda c: c + float(c.shape[0]), x * 0.0
        )
        scanned, rows = x.scan(nk.zeros((3,), f64), step)
        chosen = nk.cond(x.sum() > 0.0, lambda: x * float(x.shape[0]), lambda: x)
        mapped = x.map(lambda row: row * float(wide.shape[0]))
        return nk.tup(looped, while_, scanned, rows.tensor(), chosen, mapped, ref.value)

    looped, while_, scanned, rows, chosen, mapped, ref = staged(1, program)(V)
    before = np.concatenate([[0.0], np.cumsum(V)[:-1]])
    np.testing.assert_allclose(looped, V * 16)
    np.testing.assert_allclose(while_, np.full(4, 4.0))
    np.testing.assert_allclose(scanned, np.full(3, 3 * V.sum()))
    np.testing.assert_allclose(rows, 3 * 3 * before * 8)
    np.testing.assert_allclose(chosen, V * 4)
    np.testing.assert_allclose(mapped, V * 8)
    np.testing.assert_allclose(ref, np.concatenate([V, V]) + 2 * 12)


@nk.staged
def walsh(x: Rep[Tensor1D[f64]]) -> Rep[Tensor1D[f64]]:
    """A recursion that Python's `if` ends."""
    n = x.shape[0]
    if n == 1:
        return x
    a, b = walsh(x[: n // 2]), walsh(x[n // 2 :])
    return nk.concat([a + b, a - b])


@nk.staged
def counted(x: Rep[Tensor1D[f64]], n: Rep[Scalar[i32]]) -> Rep[Tensor1D[f64]]:
    """A recursion that `cond` ends, of a function that needs sizes."""
    for _ in range(x.shape[0]):
        x = x + 1.0
    return nk.cond(n > 0, lambda: counted(x, n - 1), lambda: x)


def test_recursion() -> None:
    matrix = np.array([[1.0, 1.0], [1.0, -1.0]])
    np.testing.assert_allclose(walsh(V), np.kron(matrix, matrix) @ V)
    assert keys(walsh) == [((1,),), ((2,),), ((4,),)]
    np.testing.assert_allclose(counted(V, np.int32(2)), V + 12)


class Rows(Dim): ...


class Columns(Dim): ...


@nk.staged
def sums(
    x: Rep[Tensor2D[f64, Rows, Columns]], n: Rep[Scalar[i32]]
) -> tuple[Rep[Tensor1D[f64, Columns]], Rep[Tensor1D[f64, Rows]]]:
    """A recursion that needs the sizes of what it returns, inside."""

    def again() -> tuple[Rep[Tensor1D[f64]], Rep[Tensor1D[f64]]]:
        columns, rows = sums(x, n - 1).unpack()
        for k in range(columns.shape[0]):
            columns = columns + float(k)
        return columns, rows * float(len(rows)) if rows.shape[0] > 2 else rows

    return nk.cond(n > 0, again, lambda: (x.sum(axis=0), x.sum(axis=1)))


def test_named_dimensions_tell_the_sizes_of_a_recursion() -> None:
    for x, factor in ((X, 4), (Y, 1)):
        columns, rows = sums(x, np.int32(2))
        np.testing.assert_allclose(columns, x.sum(axis=0) + 2 * 3)
        np.testing.assert_allclose(rows, x.sum(axis=1) * factor**2)
    assert keys(sums) == [((4, 3), ()), ((2, 3), ())]


def test_what_is_symbolic_stays_one_trace() -> None:
    """Functions that need no sizes are shared by those that do."""
    shared = staged(1, lambda x: x / x.shape[0])

    def program(x: Any) -> Any:
        for _ in range(x.shape[0]):
            x = shared(x) + 1.0
        return x

    function = staged(1, program)
    for v in (V, V[:2], V[:3]):
        function(v)
    assert keys(shared) == [None]
    assert len(keys(function)) == 3


def test_static_parameters_get_the_number() -> None:
    @nk.staged
    def scaled(x: Rep[Tensor1D[f64]], by: int = 1) -> Rep[Tensor1D[f64]]:
        return x * float(10**by)

    function = staged(1, lambda x: scaled(x, by=x.shape[0]))
    np.testing.assert_allclose(function(V), V * 1e4)


def test_a_rule_has_the_sizes_of_its_function() -> None:
    def rule(x: Any, seed: Any) -> Any:
        return (seed * float(len([0] * x.shape[0])),)

    needs = staged(1, lambda x: x * float(len(x)))
    needs.defvjp(rule)
    np.testing.assert_allclose(nk.gradient(of=needs, wrt=0)(V), np.full(4, 4.0))
    plain = staged(1, lambda x: x * 4.0)
    plain.defvjp(rule)
    with pytest.raises(
        NNKitError, match="in the rule rule of <lambda>, which is traced for all shapes"
    ):
        nk.gradient(of=plain, wrt=0)(V)


def test_shapes_are_bounded() -> None:
    function = staged(1, lambda x: x * float(len(x)))
    for n in range(1, 260):
        function.stageable.callee((nk.const(V).spec,), ((n,),))
    assert len(keys(function)) == 256


def test_ir_says_which_functions_and_lines() -> None:
    caller = staged(1, lambda x: repeated(x))
    text = caller.ir(nk.spec((4,), f64))
    assert "// repeated is traced for each shapes" in text
    assert "for k in range(y.shape[0]):" in text
    assert "//" not in staged(1, lambda x: x / x.shape[0]).ir(nk.spec((4,), f64))


def test_symbolic_functions_are_an_error() -> None:
    @nk.staged(shapes="symbolic")
    def strict(x: Rep[Tensor1D[f64]]) -> Rep[Tensor1D[f64]]:
        for _ in range(x.shape[0]):
            x = x + 1.0
        return x

    @nk.staged(shapes="symbolic")
    def through(x: Rep[Tensor1D[f64]]) -> Rep[Tensor1D[f64]]:
        return repeated(x)[: x.shape[0]]

    for function, line in ((strict, "range(x.shape[0])"), (through, "range(y.shape[0])")):
        with pytest.raises(nk.StagingError) as caught:
            function(V)
        told = "\n".join([str(caught.value), *caught.value.__notes__])
        for words in (line, "test_known_shapes.py", "`fori`", "`map`", 'shapes="symbolic"'):
            assert words in told
    with pytest.raises(nk.StagingError, match='shapes is "any" or "symbolic"'):
        nk.staged(shapes="all")
    with pytest.raises(nk.StagingError, match="is staged already"):
        nk.staged(repeated, shapes="symbolic")


def test_sizes_that_no_call_has() -> None:
    @nk.staged
    def grows(x: Rep[Tensor1D[f64]], n: Rep[Scalar[i32]]) -> Rep[Tensor1D[f64]]:
        def again() -> Any:
            return grows(x, n - 1) * float(len(grows(x, n - 1)))

        return nk.cond(n > 0, again, lambda: x)

    with pytest.raises(
        nk.StagingError, match="is not known: it is that of a recursive call"
    ) as caught:
        grows(V, np.int32(2))
    assert "dimensions that have names" in caught.value.__notes__[0]
    kept: list[Any] = []
    staged(1, lambda x: kept.append(x) or x)(V)
    with pytest.raises(nk.StagingError, match="is not known"):
        int(kept[0].shape[0])
    np.testing.assert_allclose(staged(1, lambda x: x * nk.const(f64(x.shape[0])))(V), V * 4)
    assert int(nk.const(X).shape[1]) == len(nk.const(X)) - 1 == 3
