"""What gradients can do, one test for each row of `docs/features.md`, in the public language."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor3D, f32, f64, i32, i64

ROOT = Path(__file__).parent.parent
Float = Scalar[f64]
Vector = Tensor1D[f64]
Matrix = Tensor2D[f64]


class Params(Struct):
    w: Field[Matrix]
    b: Field[Vector]


@nk.staged
def affine(x: Rep[Matrix], w: Rep[Matrix], b: Rep[Vector]) -> Rep[Matrix]:
    return x @ w + b


@nk.staged
def loss(x: Rep[Matrix], w: Rep[Matrix], b: Rep[Vector]) -> Rep[Float]:
    return nk.square(affine(x, w, b)).sum()


@nk.staged
def polynomial(x: Rep[Float], y: Rep[Float]) -> Rep[Float]:
    return x * x * y


X = np.linspace(-1.0, 1.0, 12).reshape(3, 4)
W = np.linspace(0.5, -0.7, 8).reshape(4, 2)
B = np.array([0.1, -0.2])
SLOPE = 2 * (X @ W + B)


def count(text: str, opcode: str) -> int:
    """Instructions with this opcode."""
    return len(re.findall(rf"= {opcode} ", text))


def functions(text: str) -> list[str]:
    return re.findall(r"^func @(\S+):", text, re.M)


def test_a_scalar() -> None:
    slope = nk.gradient(of=nk.fn(Float)(lambda x: 4.0 * x * x + x + 4.0), wrt=0)
    assert float(slope(f64(0.3))) == pytest.approx(3.4, rel=1e-15)


def test_any_parameters_in_any_order() -> None:
    in_order = nk.gradient(of=loss, wrt=(1, 2))(X, W, B)
    turned = nk.gradient(of=loss, wrt=lambda x, w, b: (b, w))(X, W, B)
    one = nk.gradient(of=loss, wrt=0)(X, W, B)
    expected = {"x": SLOPE @ W.T, "w": X.T @ SLOPE, "b": SLOPE.sum(axis=0)}
    for found, name in zip((*in_order, *turned, one), "wbbwx", strict=True):
        np.testing.assert_allclose(found.numpy(), expected[name], rtol=1e-12)


def test_one_result_of_several() -> None:
    @nk.staged
    def powers(x: Rep[Float]) -> tuple[Rep[Float], Rep[Float]]:
        return x * x, x * x * x

    assert float(nk.gradient(of=powers, wrt=0, from_=1)(f64(2.0))) == 12.0
    with pytest.raises(
        nk.DifferentiationError, match="from_=5 is out of range: powers has 2 results"
    ):
        nk.gradient(of=powers, wrt=0, from_=5)(f64(2.0))


def test_kept_results_run_the_forward_pass_once() -> None:
    both = nk.value_and_gradient(of=loss, wrt=(1, 2))
    value, (dw, _) = both(X, W, B)
    assert float(value) == pytest.approx(np.square(X @ W + B).sum(), rel=1e-12)
    np.testing.assert_allclose(dw.numpy(), X.T @ SLOPE, rtol=1e-12)
    assert count(both.ir(X, W, B, stage="optimized"), "dot") == 2


def test_the_seed_scales_exactly() -> None:
    seeded = nk.gradient(of=loss, wrt=(1, 2), seedable=True)
    for once, scaled in zip(seeded(X, W, B, f64(1.0)), seeded(X, W, B, f64(1024.0)), strict=True):
        np.testing.assert_array_equal(1024 * once.numpy(), scaled.numpy())


def test_an_unused_parameter_has_a_zero_gradient() -> None:
    @nk.staged
    def first(x: Rep[Vector], y: Rep[Matrix]) -> Rep[Float]:
        return nk.sin(x).sum()

    slope = nk.gradient(of=first, wrt=1)
    np.testing.assert_array_equal(slope(B, W).numpy(), np.zeros((4, 2)))
    assert count(slope.ir(B, W, stage="optimized"), "(sin|cos)") == 0


def test_a_parameter_of_integers_has_no_gradient() -> None:
    @nk.staged
    def scaled(x: Rep[Float], n: Rep[Scalar[i32]]) -> Rep[Float]:
        return x * n.cast(f64)

    with pytest.raises(nk.DifferentiationError, match=r"parameter n of scaled is a .*i32"):
        nk.gradient(of=scaled, wrt=1)(f64(2.0), i32(3))


def test_the_gradient_of_a_struct_is_that_struct() -> None:
    @nk.staged
    def of_params(p: Rep[Params], x: Rep[Matrix]) -> Rep[Float]:
        return loss(x, p[Params.w], p[Params.b])

    params = Params(nk.Tensor2D(W, f64), nk.Tensor1D(B, f64))
    slope = nk.gradient(of=of_params, wrt=0)(params, X)
    assert type(slope) is Params
    np.testing.assert_allclose(slope.w.numpy(), X.T @ SLOPE, rtol=1e-12)
    field = nk.gradient(of=of_params, wrt=Params.b)(params, X)
    np.testing.assert_allclose(field.numpy(), SLOPE.sum(axis=0), rtol=1e-12)


def test_several_gradients_of_one_function() -> None:
    @nk.staged
    def both(x: Rep[Float], y: Rep[Float]) -> tuple[Rep[Float], Rep[Float]]:
        by_x, by_y = nk.gradient(of=polynomial, wrt=0), nk.gradient(of=polynomial, wrt=1)
        return by_x(x, y), by_y(x, y)

    assert [float(slope) for slope in both(f64(2.0), f64(3.0))] == [12.0, 4.0]
    text = both.ir(f64(2.0), f64(3.0))
    assert text.count("[gradient @polynomial") == 2 and functions(text).count("polynomial") == 1


def test_a_gradient_is_a_staged_function() -> None:
    slope = nk.gradient(of=nk.fn(Float)(lambda x: nk.sin(x)), wrt=0)
    third = nk.gradient(of=nk.gradient(of=slope, wrt=0), wrt=0)
    assert float(third(f64(1.0))) == pytest.approx(-np.cos(1.0), rel=1e-12)

    @nk.staged
    def newton(x: Rep[Float]) -> Rep[Float]:
        return x - nk.sin(x) / slope(x)

    assert float(newton(f64(3.0))) == pytest.approx(3.0 - np.tan(3.0), rel=1e-12)


def test_forward_mode() -> None:
    """⟨u, J v⟩ = ⟨Jᵀ u, v⟩ by both products with a Jacobian, through a loop, by a struct."""

    @nk.staged
    def f(p: Rep[Params], x: Rep[Vector]) -> Rep[Vector]:
        return nk.fori(0, 3, lambda i, y: nk.tanh(y @ p[Params.w] + p[Params.b]), x)

    rng = np.random.default_rng(0)
    p, v = (Params(rng.normal(size=(3, 3)), rng.normal(size=3)) for _ in range(2))
    x, u = rng.normal(size=(2, 3))
    value, tangent = nk.jvp(of=f, wrt=0)(p, x, v)
    cotangent = nk.vjp(of=f, wrt=0)(p, x, u)
    np.testing.assert_array_equal(value, f(p, x))
    right = np.vdot(cotangent.w, v.w) + np.vdot(cotangent.b, v.b)
    assert u @ tangent.numpy() == pytest.approx(right, rel=1e-12)


def test_many_tangents_and_seeds_run_the_function_once() -> None:
    f = nk.fn(Vector)(lambda x: nk.tanh(x * x.sum()))
    along = nk.fn(Vector, Matrix)(lambda x, vs: vs.map(lambda v: nk.jvp(f)(x, v)[1]))
    seeded = nk.fn(Vector, Matrix)(lambda x, us: us.map(lambda u: nk.vjp(f)(x, u)[0]))
    for all_at_once, one in ((along, nk.jvp(f)), (seeded, nk.vjp(f))):
        found = all_at_once(B, W)
        for k, direction in enumerate(W):
            single = one(B, direction)[-1]
            np.testing.assert_allclose(found.numpy()[k], single, rtol=1e-14)
        before, loop = all_at_once.ir(B, W, stage="optimized").split("= for ")
        assert count(before, "tanh") == 1 and count(loop, "tanh") == 0


def test_many_tangents_are_one_batch() -> None:
    f = nk.fn(Vector)(lambda x: nk.tanh(x * x.sum()))
    # the value, of which there is one, and each tangent; each cotangent
    for derivative, into in ((nk.jvp(f), (None, 0)), (nk.vjp(f), 0)):
        batch = nk.vmap(derivative, in_axes=(None, 0), out_axes=into)
        found = batch(B, W)[-1]
        expected = [np.asarray(derivative(B, direction)[-1]) for direction in W]
        np.testing.assert_allclose(found, expected, rtol=1e-14)
        text = batch.ir(B, W, stage="optimized")
        assert count(text, "tanh") == 1 and re.search(rf"tanh %[\d.]+: <{len(B)} x f64>", text)
        assert "= for " not in text


def test_a_jacobian_takes_the_fewer_directions() -> None:
    f = nk.fn(Vector, Matrix)(lambda x, w: nk.tanh(x @ w))
    for shape, mode in (((2, 5), "tangent"), ((5, 2), "gradient")):
        w, x = np.random.default_rng(0).normal(size=shape), np.ones(shape[0])
        assert f"[{mode} @" in nk.jacobian(f).ir(x, w)
        forward, reverse = (nk.jacobian(f, mode=m)(x, w) for m in ("forward", "reverse"))  # type: ignore[call-overload]  # a variable
        np.testing.assert_allclose(forward, reverse, rtol=1e-12)
        np.testing.assert_allclose(forward, ((1 - np.tanh(x @ w) ** 2) * w).T, rtol=1e-12)


def test_products_with_hessians() -> None:
    cubes = nk.fn(Vector)(lambda x: (x * x * x).sum())
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(nk.hvp(of=cubes, wrt=0)(x, np.ones(3)), [6.0, 12.0, 18.0])
    np.testing.assert_array_equal(nk.hessian(of=cubes, wrt=0)(x), np.diag([6.0, 12.0, 18.0]))


def test_calls_share_their_forward_and_backward_functions() -> None:
    @nk.staged
    def layer(x: Rep[Vector]) -> Rep[Vector]:
        return nk.sin(nk.tanh(x))

    @nk.staged
    def three(x: Rep[Vector]) -> Rep[Float]:
        return layer(layer(layer(x))).sum()

    text = nk.gradient(of=three, wrt=0).ir(B, stage="optimizable")
    assert functions(text).count("layer_fwd") == functions(text).count("layer_bwd") == 1
    _, _, body = text.partition("func @three_grad:")
    body = body.partition("\nfunc ")[0]
    assert count(body, "apply @layer_fwd.*") == count(body, "apply @layer_bwd.*") == 3


def test_the_primal_runs_once_however_deep_the_calls() -> None:
    function: Any = nk.fn(Float)(lambda x: nk.tanh(x))
    for _ in range(9):
        function = nk.fn(Float)(lambda x, inner=function: nk.tanh(inner(x)))
    text = nk.gradient(of=function, wrt=0).ir(f64(0.5), stage="optimized")
    assert count(text, "tanh") == 10


def test_what_is_not_selected_has_no_influence() -> None:
    root = nk.fn(Float)(lambda x: nk.select(x > 0.0, nk.sqrt(x), 0.0))
    sinc = nk.fn(Float)(lambda x: nk.select(x == 0.0, 1.0, nk.sin(x) / x))
    assert float(nk.gradient(of=root, wrt=0)(f64(0.0))) == 0.0
    assert float(nk.gradient(of=sinc, wrt=0)(f64(0.0))) == 0.0


def test_rows_taken_twice_add_up() -> None:
    @nk.staged
    def taken(x: Rep[Vector], rows: Rep[Tensor1D[i64]]) -> Rep[Float]:
        return nk.square(nk.take(x, rows)).sum()

    slope = nk.gradient(of=taken, wrt=0)(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 0, 2]))
    np.testing.assert_array_equal(slope.numpy(), [4.0, 0.0, 6.0, 0.0])


def test_powers_by_both_sides() -> None:
    power = nk.fn(Float, Float)(lambda x, y: x**y)
    base, exponent = nk.gradient(of=power, wrt=(0, 1))(f64(2.0), f64(3.0))
    assert float(base) == pytest.approx(12.0, rel=1e-12)
    assert float(exponent) == pytest.approx(8.0 * np.log(2.0), rel=1e-12)
    square = nk.gradient(of=nk.fn(Float)(lambda x: 3.0 * x**2.0), wrt=0)
    assert float(square(f64(5.0))) == 30.0 and float(square(f64(0.0))) == 0.0


def test_products_with_zeros_and_ties() -> None:
    product = nk.gradient(of=nk.fn(Vector)(lambda x: x.prod()), wrt=0)
    np.testing.assert_array_equal(product(np.array([0.0, 2.0, 3.0])).numpy(), [6.0, 0.0, 0.0])
    largest = nk.gradient(of=nk.fn(Vector)(lambda x: x.max()), wrt=0)
    np.testing.assert_array_equal(largest(np.array([1.0, 3.0, 3.0])).numpy(), [0.0, 0.5, 0.5])


@pytest.mark.parametrize(
    ("left", "right"), [((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 2)), ((5, 3, 4), (4, 2))]
)
def test_products_of_vectors_matrices_and_batches(
    left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    types: dict[int, Any] = {1: Vector, 2: Matrix, 3: Tensor3D[f64]}
    total = nk.fn(types[len(left)], types[len(right)])(lambda x, y: nk.sin(x @ y).sum())
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(left), rng.standard_normal(right)
    for position, found in enumerate(nk.gradient(of=total, wrt=(0, 1))(x, y)):
        expected = differences(lambda *both: float(total(*both)), [x, y], position)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-8)


def test_the_gradient_of_a_bias_has_its_shape() -> None:
    assert nk.gradient(of=loss, wrt=2)(X, W, B).shape == (2,)


def test_movements() -> None:
    @nk.staged
    def moved(x: Rep[Matrix]) -> Rep[Float]:
        joined = nk.concat([x.T.reshape(-1), nk.pad(x[:, ::-2], ((1, 0), (0, 2))).reshape(-1)])
        return nk.square(joined * nk.iota((28,), f64)).sum()

    expected = differences(lambda x: float(moved(x)), [X], 0)
    np.testing.assert_allclose(
        nk.gradient(of=moved, wrt=0)(X).numpy(), expected, rtol=1e-6, atol=1e-6
    )


def test_cross_entropy_of_huge_logits() -> None:
    logits, labels = np.array([[1e4, 0.0, -1e4], [0.0, 1.0, 2.0]]), np.array([2, 1])
    loss = nk.fn(Matrix, Tensor1D[i64])(nk.cross_entropy)
    softmax = np.exp(logits - logits.max(axis=1, keepdims=True))
    softmax /= softmax.sum(axis=1, keepdims=True)
    expected = (softmax - np.eye(3)[labels]) / 2
    found = nk.gradient(of=loss, wrt=0)(logits, labels)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-15)


def test_mutable_arrays() -> None:
    @nk.staged
    def swapped(x: Rep[Vector]) -> Rep[Vector]:
        r = nk.ref(x)
        r[0] += r[1] ** 2.0
        r[1] = -r[1]
        return r.value

    slope = nk.gradient(of=swapped, wrt=0, seedable=True)
    found = slope(np.array([1.2, 3.4]), np.array([5.6, 7.8]))
    assert found.numpy() == pytest.approx([5.6, 30.28], rel=1e-15)


def test_a_captured_value_has_its_gradient() -> None:
    @nk.staged
    def outer(x: Rep[Vector]) -> Rep[Float]:
        inner = nk.fn(Vector)(lambda y: (x * y).sum())  # x is captured
        return inner(nk.sin(x))

    slope = nk.gradient(of=outer, wrt=0)(B)
    np.testing.assert_allclose(slope.numpy(), np.sin(B) + B * np.cos(B), rtol=1e-12)


def test_random_numbers_are_the_same_in_both_passes() -> None:
    @nk.staged
    def dropout(x: Rep[Vector], key: Rep[Scalar[i64]]) -> Rep[Vector]:
        return nk.select(nk.random.uniform(key, (1000,), dtype=f64) < 0.5, x * 2.0, 0.0)

    x, key = np.ones(1000), nk.random.key(7)
    slope = nk.gradient(of=dropout, wrt=0)(x, key)
    np.testing.assert_array_equal(slope.numpy(), dropout(x, key).numpy())
    assert 400 < np.count_nonzero(slope.numpy()) < 600


def test_nothing_is_computed_for_other_parameters() -> None:
    text = nk.gradient(of=loss, wrt=(1,)).ir(X, W, B, stage="optimized")
    assert count(text, "dot") == 2  # x·w, and xᵀ·(its derivative): none for x


def test_only_what_a_rule_needs_is_saved() -> None:
    @nk.staged
    def doubled(x: Rep[Vector]) -> Rep[Vector]:
        return x + x

    @nk.staged
    def squared(x: Rep[Vector]) -> Rep[Vector]:
        return x * x

    @nk.staged
    def total(x: Rep[Vector]) -> Rep[Float]:
        return squared(doubled(x)).sum()

    text = nk.gradient(of=total, wrt=0).ir(B, stage="optimizable")
    assert "func @doubled_bwd: (<2 x f64>) ->" in text  # the derivative alone
    assert "func @squared_bwd: (<2 x f64>, <2 x f64>) ->" in text  # and x, once


def test_a_long_product_does_not_blow_up() -> None:
    @nk.staged
    def product(x: Rep[Float]) -> Rep[Float]:
        y = x
        for _ in range(999):
            y = x * y
        return y

    slope = nk.gradient(of=product, wrt=0)
    text = slope.ir(f64(1.0), stage="optimized")
    assert len(re.findall(r"^    %", text, re.M)) <= 5000
    assert float(slope(f64(1.0))) == 1000.0


def test_the_forward_pass_is_gone_when_the_gradient_does_not_need_it() -> None:
    slope = nk.gradient(of=affine, wrt=(1, 2), seedable=True)
    text = slope.ir(X, W, B, SLOPE, stage="optimized")
    assert (count(text, "dot"), count(text, "transpose"), count(text, "multiply")) == (1, 1, 0)
    dw, db = slope(X, W, B, SLOPE)
    np.testing.assert_allclose(dw.numpy(), X.T @ SLOPE, rtol=1e-12)
    np.testing.assert_allclose(db.numpy(), SLOPE.sum(axis=0), rtol=1e-12)


def test_low_precision_stays_low() -> None:
    slope = nk.gradient(of=nk.fn(Tensor1D[f32])(lambda x: nk.exp(x).sum()), wrt=0)
    assert slope(np.zeros(3, np.float32)).dtype is f32


def test_each_row_of_the_document_links_to_tests_that_exist() -> None:
    text = (ROOT / "docs/features.md").read_text()
    rows = [line for line in text.splitlines() if re.match(r"\| \d", line)]
    assert len(rows) > 60 and all("](../tests/" in row for row in rows)
    for name, link in re.findall(r"\[`([\w/.-]+)`\]\(\.\./([\w/.-]+)\)", text):
        path = ROOT / link
        assert name in (link, path.stem) or f"\ndef {name}(" in path.read_text(), (name, link)
    tables = "\n".join(rows)
    assert not re.findall(r"(?<!\[)`(?:test_\w+|tests/[\w/.-]+)`", tables)


def differences(
    function: Callable[..., float], arguments: list[np.ndarray[Any, Any]], position: int
) -> np.ndarray[Any, Any]:
    """The gradient with respect to one argument by central differences."""
    slope = np.zeros_like(arguments[position])
    for index in np.ndindex(slope.shape):
        moved = [argument.copy() for argument in arguments]
        moved[position][index] += 1e-6
        up = function(*moved)
        moved[position][index] -= 2e-6
        slope[index] = (up - function(*moved)) / 2e-6
    return slope
