"""jvp, vjp, hvp, jacobian and hessian of programs: against each other, differences and closed forms.

What runs is compiled; `run` also evaluates the differentiated IR, after the raw one was read back from text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor3D, f32, f64, i32, i64
from nnkit.core.evaluate import evaluate
from nnkit.core.text import parse_module, print_module
from nnkit.core.verify import verify
from nnkit.staging import specialize_jacobian

pytestmark = pytest.mark.usefixtures("unoptimized_code")

Number, Count = Scalar[f64], Scalar[i64]
Vector, Matrix = Tensor1D[f64], Tensor2D[f64]


class Params(Struct):
    w: Field[Matrix]
    b: Field[Vector]


class State(Struct):
    step: Field[Scalar[i32]]
    inner: Field[Params]


@nk.staged
def affine(w: Rep[Matrix], x: Rep[Vector]) -> Rep[Vector]:
    return nk.tanh(w @ x) * x.sum()


@nk.staged
def of_struct(s: Rep[State], x: Rep[Vector]) -> Rep[Vector]:
    p = s[State.inner]
    return nk.sin(p[Params.w] @ x + p[Params.b]) * s[State.step].cast(f64)


@nk.staged
def to_struct(x: Rep[Vector], n: Rep[Scalar[i32]]) -> Rep[State]:
    p = nk.build(
        Params, Params.w << x.expand_dims(1) * (x * x).expand_dims(0), Params.b << nk.exp(x)
    )
    return nk.build(State, State.step << n, State.inner << p)


@nk.staged
def several(x: Rep[Vector], y: Rep[Number]) -> tuple[Rep[Number], Rep[Tensor1D[i32]], Rep[Vector]]:
    return (x * x).sum() * y, nk.arange(3, i32), nk.sin(x * y)


@nk.staged
def choice(x: Rep[Vector], n: Rep[Count]) -> Rep[Vector]:
    return nk.cond(n > 2, lambda: x * x.sum(), lambda: nk.exp(x))


@nk.staged
def counted(x: Rep[Vector], n: Rep[Count]) -> Rep[Vector]:
    return nk.fori(0, n, lambda i, y: nk.sin(y) * x + y, x)


@nk.staged
def converging(a: Rep[Vector]) -> Rep[Vector]:
    """√a by Newton's method."""
    return nk.while_loop(
        lambda x: (nk.abs(x * x - a) > 1e-14 * a).any(), lambda x: 0.5 * (x + a / x), a
    )


@nk.staged
def scanned(xs: Rep[Vector], w: Rep[Number]) -> tuple[Rep[Number], Rep[Vector]]:
    last, ys = xs.scan(w, lambda c, x: (nk.tanh(c * w + x), c * x))
    return last, ys.tensor()


@nk.staged
def calling(x: Rep[Vector], w: Rep[Matrix]) -> Rep[Vector]:
    return affine(w, affine(w, x)) + affine(w * 0.5, x)


@nk.staged
def recursive(x: Rep[Vector], n: Rep[Count]) -> Rep[Vector]:
    return nk.cond(n == 0, lambda: x, lambda: nk.sin(x) * recursive(x * 1.1, n - 1))


slope_of_affine = nk.gradient(of=affine, wrt=(0, 1))

random = np.random.default_rng(0)
W, X, Y = random.normal(size=(3, 3)), random.normal(size=3), np.array(1.3)
STATE = State(np.array(2, np.int32), Params(W, X))


@dataclass(frozen=True)
class Program:
    """A function, the parameters that move, and arguments."""

    of: Any
    wrt: Any
    arguments: tuple[Any, ...]


PROGRAMS = {
    "matrix and vector": Program(affine, (0, 1), (W, X)),
    "in the other order": Program(affine, (1, 0), (W, X)),
    "one parameter": Program(affine, 1, (W, X)),
    "struct": Program(of_struct, (0, 1), (STATE, X)),
    "to a struct": Program(to_struct, 0, (X, np.array(3, np.int32))),
    "field": Program(of_struct, lambda s, x: (x, s.inner.w), (STATE, X)),
    "several results": Program(several, (0, 1), (X, Y)),
    "branch taken": Program(choice, 0, (X, np.array(3))),
    "branch not taken": Program(choice, 0, (X, np.array(1))),
    "counted loop": Program(counted, 0, (X, np.array(4))),
    "no iterations": Program(counted, 0, (X, np.array(0))),
    "while loop": Program(converging, 0, (np.exp(X),)),
    "scan": Program(scanned, (0, 1), (X, Y)),
    "calls": Program(calling, (0, 1), (X, W)),
    "recursion": Program(recursive, 0, (X, np.array(3))),
    "gradient": Program(slope_of_affine, (0, 1), (W, X)),
}


def numbers(value: Any) -> list[Any]:
    """The arrays inside, from left to right."""
    if isinstance(value, Struct):
        value = value._fields
    if isinstance(value, tuple):
        return [array for part in value for array in numbers(part)]
    return [np.asarray(value)]


def run(function: Any, *arguments: Any) -> Any:
    """What compiled code gives; the evaluator gives the same."""
    specialization = function._specialization(function._values(arguments))
    text = print_module(specialization.module("raw")[0])
    read = parse_module(text)
    verify(read)
    assert print_module(read) == text
    module, entry = specialization.module("optimizable")
    expected = evaluate(module, entry.name, *numbers(tuple(arguments)))
    found = function(*arguments)
    for one, other in zip(numbers(found), numbers(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)
    return found


def floats(value: Any) -> Any:
    """All its floats as one vector."""
    arrays = [array for array in numbers(value) if array.dtype.kind == "f"]
    return np.concatenate([array.ravel() for array in arrays])


def like(value: Any, rng: Any) -> Any:
    """Random numbers of the same structure; integers stay."""
    if isinstance(value, Struct):
        return type(value)(*(like(part, rng) for part in value._fields))
    if isinstance(value, tuple):
        return tuple(like(part, rng) for part in value)
    array = np.asarray(value)
    return rng.normal(size=array.shape) if array.dtype.kind == "f" else array


def moved(value: Any, tangent: Any, h: float) -> Any:
    """`value` + h · `tangent`."""
    if isinstance(value, Struct):
        pairs = zip(value._fields, tangent._fields, strict=True)
        return type(value)(*(moved(one, other, h) for one, other in pairs))
    array = np.asarray(value)
    return array + h * np.asarray(tangent) if array.dtype.kind == "f" else array


def selected(program: Program) -> tuple[Any, ...]:
    """The arguments that move."""
    if callable(program.wrt):
        state, x = program.arguments
        return x, state.inner.w
    wrt = program.wrt if isinstance(program.wrt, tuple) else (program.wrt,)
    return tuple(program.arguments[index] for index in wrt)


def with_selected(program: Program, values: tuple[Any, ...]) -> list[Any]:
    """All arguments, with others that move."""
    arguments = list(program.arguments)
    if callable(program.wrt):
        arguments[1] = values[0]
        state = arguments[0]
        arguments[0] = State(state.step, Params(values[1], state.inner.b))
        return arguments
    wrt = program.wrt if isinstance(program.wrt, tuple) else (program.wrt,)
    for index, value in zip(wrt, values, strict=True):
        arguments[index] = value
    return arguments


@pytest.mark.parametrize("name", PROGRAMS)
def test_forward_is_the_difference_and_reverse_its_transpose(name: str) -> None:
    """⟨u, J v⟩ = ⟨Jᵀ u, v⟩, and J v = (f(x + h v) − f(x − h v)) / 2h."""
    program, rng = PROGRAMS[name], np.random.default_rng(7)
    chosen = selected(program)
    tangents = tuple(like(value, rng) for value in chosen)
    value, made = run(nk.jvp(of=program.of, wrt=program.wrt), *program.arguments, *tangents)
    plain = program.of(*program.arguments)
    for one, other in zip(numbers(value), numbers(plain), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14, atol=1e-14)
    ends = [
        floats(
            program.of(
                *with_selected(
                    program,
                    tuple(moved(x, v, s * 1e-6) for x, v in zip(chosen, tangents, strict=True)),
                )
            )
        )
        for s in (1, -1)
    ]
    np.testing.assert_allclose(floats(made), (ends[0] - ends[1]) / 2e-6, rtol=1e-7, atol=1e-8)
    seed = like(plain, rng)
    cotangents = run(nk.vjp(of=program.of, wrt=program.wrt), *program.arguments, seed)
    assert isinstance(cotangents, tuple) == (len(chosen) > 1)
    left = floats(seed) @ floats(made)
    right = floats(cotangents) @ floats(tangents)
    assert abs(left - right) <= 1e-12 * (np.abs(floats(seed)) @ np.abs(floats(made)))


def test_integers_have_zero_tangents() -> None:
    """Of a struct, and of several results; their tangents and seeds are not read."""
    tangent = nk.jvp(of_struct, wrt=0)(STATE, X, like(STATE, random))[1]
    other = State(np.array(9, np.int32), STATE.inner)
    by = nk.vjp(of_struct, wrt=0)(STATE, X, np.asarray(tangent))
    assert int(by.step) == 0
    first = nk.jvp(of_struct, wrt=0)(STATE, X, STATE)[1]
    np.testing.assert_array_equal(first, nk.jvp(of_struct, wrt=0)(STATE, X, other)[1])
    dy = nk.jvp(several)(X, Y, X, Y)[1]
    assert dy[1].dtype is i32 and not dy[1].numpy().any()
    seeds = [(np.array(1.0), np.full(3, k, np.int32), X) for k in (0, 5)]
    one, same = (nk.vjp(several)(X, Y, seed) for seed in seeds)
    np.testing.assert_array_equal(floats(one), floats(same))
    dx = nk.jvp(to_struct, wrt=0)(X, np.array(3, np.int32), X)[1]
    assert isinstance(dx, State) and int(dx.step) == 0


def test_a_result_without_influence_has_a_zero_tangent() -> None:
    f = nk.fn(Vector, Vector)(lambda x, y: (nk.sin(x), y))
    (_, tangent) = nk.jvp(f, wrt=0)(X, X, np.ones(3))
    np.testing.assert_array_equal(tangent[1], np.zeros(3))


JACOBIANS = {
    "more results": (
        nk.fn(Vector)(lambda x: nk.concat([nk.sin(x), x * x])),
        X,
        lambda x: np.concatenate([np.diag(np.cos(x)), np.diag(2 * x)]),
    ),
    "fewer results": (
        nk.fn(Vector)(lambda x: nk.stack([x.sum(), (x * x).sum()])),
        X,
        lambda x: np.stack([np.ones(3), 2 * x]),
    ),
    "square": (nk.fn(Vector)(lambda x: x * x[::-1]), X, lambda x: np.diag(x[::-1]) + np.diag(x)[:, ::-1]),
    "matrix by vector": (
        nk.fn(Vector)(lambda x: x.expand_dims(1) * x.expand_dims(0)),
        X,
        lambda x: np.einsum("ik,j->ijk", np.eye(3), x) + np.einsum("i,jk->ijk", x, np.eye(3)),
    ),
    "vector by matrix": (
        nk.fn(Matrix)(lambda w: w.sum(axis=0)),
        W,
        lambda w: np.einsum("jl,k->jkl", np.eye(3), np.ones(3)),
    ),
    "number by vector": (nk.fn(Vector)(lambda x: nk.exp(x).sum()), X, np.exp),
    "vector by number": (nk.fn(Number)(lambda y: nk.stack([y, y * y])), Y, lambda y: np.array([1, 2 * y])),
    "number by number": (nk.fn(Number)(nk.sin), Y, np.cos),
    "one element": (nk.fn(Vector)(nk.sin), X[:1], lambda x: np.cos(x)[None]),
    "no elements": (nk.fn(Vector)(nk.sin), X[:0], lambda x: np.zeros((0, 0))),
    "no results": (nk.fn(Vector)(lambda x: x[:0]), X, lambda x: np.zeros((0, 3))),
    "constant": (nk.fn(Vector)(lambda x: nk.ones((2,), f64)), X, lambda x: np.zeros((2, 3))),
    "of what is computed once": (
        nk.fn(Matrix)(lambda w: nk.tanh(w @ w) @ nk.const(X)),
        W,
        lambda w: np.einsum("ij,j,ijkl->ikl", 1 - np.tanh(w @ w) ** 2, X, squared(w)),
    ),
}  # fmt: skip


def squared(w: Any) -> Any:
    """d (w @ w) / d w."""
    eye = np.eye(3)
    return np.einsum("ik,lj->ijkl", eye, w) + np.einsum("ik,jl->ijkl", w, eye)


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
@pytest.mark.parametrize("name", JACOBIANS)
def test_jacobians_in_closed_form(name: str, mode: Any) -> None:
    f, x, expected = JACOBIANS[name]
    wanted = np.asarray(expected(x))
    found = run(nk.jacobian(f, mode=mode), x)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("shape", "mode"),
    [((3, 5), "tangent"), ((5, 3), "grad"), ((4, 4), "tangent"), ((1, 4), "tangent"), ((4, 1), "grad")],
)  # fmt: skip
def test_the_mode_of_a_jacobian_goes_by_the_shapes(shape: tuple[int, int], mode: str) -> None:
    """Forward unless there are more inputs than outputs; several directions are one batch."""
    f = nk.fn(Vector, Matrix)(lambda x, w: nk.sin(x @ w))
    text = nk.jacobian(f).ir(nk.spec((shape[0],), f64), nk.spec(shape, f64))
    assert {"tangent": "[tangent @", "grad": "[gradient @"}[mode] in text
    assert text.count("[") == 1 + (1 not in shape) == 1 + text.count("[batch @")
    assert "for %" not in text


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_few_directions_of_a_small_function_are_one_by_one(
    mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same numbers as a batch has, also where what the zeros of a direction multiply is infinite."""

    def polar(x: Any) -> Any:
        r, angle, z = x[0], x[1], x[2]
        return nk.stack([r * nk.cos(angle), r * nk.sin(angle), nk.sqrt(z), r / z])

    points = [np.array([2.0, 0.5, 3.0]), np.array([-0.0, 0.5, 0.0]), np.array([np.inf, 1.0, 4.0])]
    one_by_one = nk.jacobian(nk.fn(Vector)(polar), mode=mode)
    assert "[batch @" not in one_by_one.ir(points[0])
    found = [run(one_by_one, x) for x in points]
    monkeypatch.setattr(specialize_jacobian, "FEW_DIRECTIONS", 0)
    batch = nk.jacobian(nk.fn(Vector)(polar), mode=mode)
    assert "[batch @" in batch.ir(points[0])
    for x, jacobian in zip(points, found, strict=True):
        np.testing.assert_array_equal(jacobian, run(batch, x))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: nk.stack([x.sum(), nk.fori(0, 3, lambda _, y: y * y, x)[0]]),
        lambda x: nk.tanh(x[:2]) @ nk.const(np.ones((2, 2))),
        lambda x: nk.sin(x.expand_dims(0) + nk.const(np.ones((65, 1)))).sum(0)[:2],
    ],
    ids=["a loop", "a product", "many numbers"],
)
def test_directions_of_other_functions_are_a_batch(function: Any) -> None:
    text = nk.jacobian(nk.fn(Vector)(function)).ir(np.ones(3))
    assert "[batch @" in text


def test_the_function_itself_runs_once_for_all_directions() -> None:
    f = nk.fn(Vector, Matrix)(lambda x, w: nk.tanh(x @ w))
    for shape in ((3, 5), (5, 3)):
        text = nk.jacobian(f).ir(nk.spec((shape[0],), f64), nk.spec(shape, f64), stage="optimized")
        assert text.count("= tanh") == 1 and re.search(rf"= tanh %[\d.]+: <{shape[1]} x f64>", text)
        assert "for %" not in text


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("extent", [64, 65, 100, 131])
def test_many_directions_are_batches_in_a_loop(extent: int, mode: Any) -> None:
    """A multiple of what is one batch, one more, what has such a divisor, and a prime number."""
    x = np.linspace(-1, 1, extent)
    jacobian = nk.jacobian(nk.fn(Vector)(lambda x: nk.sin(x) * x.sum()), mode=mode)
    expected = np.diag(np.cos(x) * x.sum()) + np.sin(x)[:, None]
    np.testing.assert_allclose(jacobian(x), expected, rtol=1e-12, atol=1e-12)
    text = jacobian.ir(x, stage="optimized")
    assert text.count("for %") == (extent > 64)


def test_jacobians_by_several_parameters_and_fields_and_of_one_of_several_results() -> None:
    by_w, by_x = nk.jacobian(of=affine, wrt=(0, 1))(W, X)
    reverse = nk.jacobian(of=affine, wrt=(0, 1), mode="reverse")(W, X)
    inner, scale = np.tanh(W @ X), X.sum()
    slope = (1 - inner**2) * scale
    np.testing.assert_allclose(
        by_w, np.einsum("i,ik,l->ikl", slope, np.eye(3), X), rtol=1e-12, atol=1e-13
    )
    np.testing.assert_allclose(by_x, slope[:, None] * W + inner[:, None], rtol=1e-12)
    for one, other in zip((by_w, by_x), reverse, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    (alone,) = nk.jacobian(of=affine, wrt=(1,))(W, X)
    np.testing.assert_allclose(alone, by_x, rtol=1e-12)
    phase = np.cos(W @ X + X) * 2
    by_b = nk.jacobian(of=of_struct, wrt=lambda s, x: s.inner.b)(STATE, X)
    np.testing.assert_allclose(by_b, np.diag(phase), rtol=1e-12, atol=1e-13)
    by_x, by_w = nk.jacobian(of=of_struct, wrt=lambda s, x: (x, s.inner.w))(STATE, X)
    np.testing.assert_allclose(by_x, phase[:, None] * W, rtol=1e-12)
    np.testing.assert_allclose(by_w, np.einsum("i,ik,l->ikl", phase, np.eye(3), X), rtol=1e-12)
    by_y = nk.jacobian(of=several, wrt=1, from_=2)(X, Y)
    np.testing.assert_allclose(by_y, X * np.cos(X * Y), rtol=1e-12)


LOOPS = {
    name: PROGRAMS[name] for name in ("branch taken", "counted loop", "while loop", "calls", "recursion")
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_both_modes_agree_of_programs(name: str) -> None:
    program = LOOPS[name]
    forward, reverse = (
        nk.jacobian(of=program.of, wrt=0, mode=mode)(*program.arguments).numpy()
        for mode in ("forward", "reverse")
    )
    np.testing.assert_allclose(forward, reverse, rtol=1e-12, atol=1e-12)


def test_a_jacobian_has_the_element_type_of_the_parameter() -> None:
    f = nk.fn(Tensor1D[f32])(lambda x: nk.concat([x, x * x]).cast(f64))
    x = np.array([1.0, 2.0], np.float32)
    for mode in ("forward", "reverse"):
        found = nk.jacobian(f, mode=mode)(x)  # type: ignore[call-overload]  # a variable
        assert found.dtype is f32
        np.testing.assert_array_equal(found, np.concatenate([np.eye(2), np.diag(2 * x)]))


CUBES = nk.fn(Vector)(lambda x: (x * x * x).sum())


def test_a_product_with_the_hessian() -> None:
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(run(nk.hvp(CUBES), x, np.ones(3)), [6.0, 12.0, 18.0])


@nk.staged
def energy(p: Rep[Params], x: Rep[Vector], n: Rep[Count]) -> Rep[Number]:
    y = nk.fori(0, 3, lambda i, y: nk.tanh(p[Params.w] @ y + p[Params.b]), x)
    return nk.cond(n > 0, lambda: (y * y).sum(), lambda: nk.exp(y).sum())


@pytest.mark.parametrize("n", [0, 1])
def test_hvp_is_the_difference_of_gradients_and_symmetric(n: int) -> None:
    """Through a loop, a choice and a struct; ⟨u, H v⟩ = ⟨H u, v⟩."""
    p, count = Params(W, X), np.array(n)
    product = nk.hvp(of=energy, wrt=(0, 1))
    slope = nk.gradient(of=energy, wrt=(0, 1))
    u, v = ((like(p, random), random.normal(size=3)) for _ in range(2))
    found = product(p, X, count, *v)
    ends = [floats(slope(moved(p, v[0], s * 1e-6), X + s * 1e-6 * v[1], count)) for s in (1, -1)]
    np.testing.assert_allclose(floats(found), (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-8)
    left, right = floats(u) @ floats(found), floats(product(p, X, count, *u)) @ floats(v)
    assert abs(left - right) <= 1e-12 * np.abs(floats(u)) @ np.abs(floats(found)) + 1e-12
    assert isinstance(nk.hvp(of=energy)(p, X, count, p), Params)
    (alone,) = nk.hvp(of=energy, wrt=(1,))(p, X, count, X)
    field = nk.hvp(of=energy, wrt=lambda p, x, n: x)(p, X, count, X)
    np.testing.assert_allclose(alone, field, rtol=1e-13)
    by_b = nk.hvp(of=energy, wrt=Params.b)(p, X, count, X)
    whole = nk.hvp(of=energy, wrt=0)(p, X, count, Params(np.zeros((3, 3)), X))
    np.testing.assert_allclose(by_b, whole.b, rtol=1e-12, atol=1e-13)


def test_hessians_in_closed_form() -> None:
    a = random.normal(size=(3, 3))
    quadratic = nk.fn(Vector, Matrix)(lambda x, a: (x @ a) @ x)
    np.testing.assert_allclose(nk.hessian(quadratic)(X, a), a + a.T, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(nk.hessian(CUBES)(X), np.diag(6 * X), rtol=1e-12, atol=1e-15)
    assert float(nk.hessian(nk.fn(Number)(nk.sin))(Y)) == pytest.approx(-np.sin(1.3), rel=1e-14)
    softmax = nk.fn(Vector)(lambda x: nk.logsumexp(x))
    p = np.exp(X) / np.exp(X).sum()
    np.testing.assert_allclose(
        nk.hessian(softmax)(X), np.diag(p) - np.outer(p, p), rtol=1e-12, atol=1e-14
    )
    trace = nk.fn(Matrix)(lambda w: (w * w.T).sum())
    swap = 2 * np.einsum("il,jk->ijkl", np.eye(3), np.eye(3))
    np.testing.assert_allclose(nk.hessian(trace)(W), swap, rtol=1e-12, atol=1e-14)
    assert nk.hessian(CUBES)(X[:1]).shape == (1, 1) and nk.hessian(CUBES)(X[:0]).shape == (0, 0)


def test_hessians_by_several_parameters_and_fields() -> None:
    mixed = nk.fn(Vector, Number)(lambda x, y: (nk.sin(x) * y * y).sum())
    (xx, xy), (yx, yy) = nk.hessian(mixed, wrt=(0, 1))(X, Y)
    np.testing.assert_allclose(xx, np.diag(-np.sin(X) * Y**2), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(xy, 2 * Y * np.cos(X), rtol=1e-12)
    np.testing.assert_array_equal(xy, yx)
    np.testing.assert_allclose(yy, 2 * np.sin(X).sum(), rtol=1e-12)
    (((alone,),),) = (nk.hessian(mixed, wrt=(1,))(X, Y),)
    np.testing.assert_allclose(alone, yy, rtol=1e-12)
    p, n = Params(W, X), np.array(1)
    (bb, bx), (xb, _) = nk.hessian(of=energy, wrt=lambda p, x, n: (p.b, x))(p, X, n)
    np.testing.assert_allclose(bb, nk.hessian(of=energy, wrt=Params.b)(p, X, n), rtol=1e-12)
    np.testing.assert_allclose(bx, np.asarray(xb).T, rtol=1e-10, atol=1e-12)
    column = nk.hvp(of=energy, wrt=Params.b)(p, X, n, np.eye(3)[0])
    np.testing.assert_allclose(np.asarray(bb)[:, 0], column, rtol=1e-12, atol=1e-13)


def test_derivatives_of_derivatives() -> None:
    """Forward and reverse in any order, and Jacobians of Jacobians."""
    third: Any = nk.fn(Number)(nk.sin)
    for expected in (np.cos(1.0), -np.sin(1.0), -np.cos(1.0)):
        third = nk.jacobian(third)
        assert float(third(np.array(1.0))) == pytest.approx(expected, rel=1e-13)
    of_cubes = nk.jacobian(nk.hessian(CUBES))
    np.testing.assert_allclose(
        of_cubes(X), 6 * np.einsum("ij,jk->ijk", np.eye(3), np.eye(3)), rtol=1e-12
    )
    total = nk.fn(Vector)(lambda x: (nk.hessian(CUBES)(x) * nk.const(W)).sum())
    np.testing.assert_allclose(nk.gradient(of=total, wrt=0)(X), 6 * np.diag(W), rtol=1e-12)
    for mode in ("forward", "reverse"):
        by_mode = nk.jacobian(affine, wrt=1, mode=mode)  # type: ignore[call-overload]  # a variable
        summed = nk.fn(Vector)(lambda x, made=by_mode: (made(nk.const(W), x) * nk.const(W)).sum())
        expected = [(float(summed(X + s)) - float(summed(X - s))) / 2e-6 for s in 1e-6 * np.eye(3)]
        found = nk.gradient(of=summed, wrt=0)(X)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)
    twice = nk.jvp(of=nk.jvp(CUBES), wrt=0)(X, X, np.ones(3))
    np.testing.assert_allclose(twice[1][1], (6 * X * X).sum(), rtol=1e-12)
    pulled = nk.vjp(of=nk.vjp(CUBES), wrt=0)(X, np.array(1.0), (np.ones(3),))
    np.testing.assert_allclose(pulled, 6 * X, rtol=1e-12)


def test_inside_of_staged_functions_and_with_captured_values() -> None:
    """Newton's method with a Jacobian that captures, in a loop."""

    @nk.staged
    def root(a: Rep[Vector]) -> Rep[Vector]:
        residual = nk.fn(Vector)(lambda x: x * x - a)
        slope = nk.jacobian(residual)
        return nk.fori(0, 40, lambda i, x: x - residual(x) / (slope(x) @ nk.ones((2,), f64)), a)

    a = np.array([2.0, 9.0])
    np.testing.assert_allclose(root(a), np.sqrt(a), rtol=1e-14)
    found = nk.jacobian(root, mode="forward")(a)
    np.testing.assert_allclose(found, np.diag(0.5 / np.sqrt(a)), rtol=1e-12, atol=1e-15)

    @nk.staged
    def captured(x: Rep[Vector], v: Rep[Vector]) -> tuple[Rep[Vector], Rep[Vector]]:
        inner = nk.fn(Vector, Vector)(lambda y, z: x * y * z)
        pushed = nk.jvp(inner, wrt=(1, 0))(x, v, v, x)[1]
        (pulled,) = nk.vjp(inner, wrt=(1,))(x, v, v)
        return pushed, pulled

    pushed, pulled = captured(X, Y * X)
    np.testing.assert_allclose(pushed, X * (X * (Y * X) + X * (Y * X)), rtol=1e-12)
    np.testing.assert_allclose(pulled, X * X * (Y * X), rtol=1e-12)


def test_functions_as_arguments() -> None:
    apply: Callable[..., Any] = nk.staged(lambda g, x: g(x) * x)
    sine = nk.fn(Vector)(nk.sin)

    @nk.staged
    def outer(x: Rep[Vector], v: Rep[Vector]) -> Rep[Vector]:
        return nk.jvp(apply, wrt=1)(sine, x, v)[1] + nk.jacobian(apply, wrt=1)(sine, x) @ v

    expected = 2 * (np.cos(X) * X + np.sin(X)) * Y * X
    np.testing.assert_allclose(outer(X, Y * X), expected, rtol=1e-12)


def test_a_batch_of_matrices() -> None:
    f = nk.fn(Tensor3D[f64])(lambda x: nk.square(x).sum(axis=(1, 2)))
    x = random.normal(size=(2, 2, 2))
    expected = np.einsum("ab,bcd->abcd", np.eye(2), 2 * x)
    np.testing.assert_allclose(nk.jacobian(f)(x), expected, rtol=1e-12)


SECOND = {
    "as many iterations as asked for": (
        nk.fn(Number, Count)(lambda x, n: nk.fori(0, n, lambda i, r: r * x, x * 0.0 + 1.0)),
        lambda x, n: n * (n - 1) * x ** (n - 2.0),
    ),
    "until it has converged": (
        nk.fn(Number, Count)(
            lambda a, n: nk.while_loop(
                lambda x: nk.abs(x * x - a) > 1e-13 * a, lambda x: 0.5 * (x + a / x), a
            )
        ),
        lambda a, n: -0.25 * a**-1.5,
    ),
    "recursion": (
        nk.fn(Number, Count)(lambda x, n: recursive(nk.stack([x]), n)[0]),
        None,
    ),
}


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_of_programs(name: str) -> None:
    """hvp, hessian, and the Jacobian of a Jacobian, both forward."""
    f, expected = SECOND[name]
    x, n, one = np.array(1.3), np.array(5), np.array(1.0)
    found = [
        nk.hessian(f)(x, n),
        nk.hvp(f)(x, n, one),
        nk.jacobian(nk.jacobian(f, mode="forward"), mode="forward")(x, n),
    ]
    wanted = expected(1.3, 5) if expected is not None else found[-1]
    for one in found:
        np.testing.assert_allclose(one, wanted, rtol=1e-10)
