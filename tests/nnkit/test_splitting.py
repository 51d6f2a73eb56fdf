"""The halves of gradients: what users write with them, what they say of themselves, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor5D, f64, i32, i64, spec
from nnkit.core.text import parse_module
from nnkit.core.types import tensor_bytes

pytestmark = pytest.mark.usefixtures("unoptimized_code")

Number = Scalar[f64]
Count = Scalar[i64]
Row = Tensor1D[f64]
Matrix = Tensor2D[f64]


class Layer(Struct):
    w: Field[Matrix]
    b: Field[Row]
    steps: Field[Scalar[i32]]


@nk.staged
def layer(w: Rep[Matrix], x: Rep[Matrix]) -> Rep[Matrix]:
    return nk.exp(nk.tanh(nk.sin(nk.sin(x)) @ w))


@nk.staged
def loss(w: Rep[Matrix], x: Rep[Matrix]) -> Rep[Number]:
    return (layer(w, x) * layer(w, x)).mean()


rng = np.random.default_rng(7)
W, X = rng.standard_normal((4, 5)), rng.standard_normal((3, 4))


def same(one: Any, other: Any) -> None:
    """The same bits, in tuples too."""
    if isinstance(one, tuple):
        assert isinstance(other, tuple)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    elif isinstance(one, Struct):
        same(one._fields, other._fields)
    else:
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other), strict=True)


@pytest.mark.parametrize("save", ["auto", "all", "none", 100, 0])
def test_both_halves_give_what_the_gradient_does(save: Any) -> None:
    halves = nk.split(layer, wrt=(1, 0), save=save)
    value, residuals = halves.forward(W, X)
    seed = rng.standard_normal((3, 5))
    same(value, layer(W, X))
    same(halves.backward(residuals, seed), nk.vjp(layer, wrt=(1, 0))(W, X, seed))


def test_the_function_itself_is_unchanged() -> None:
    before = layer.ir(W, X, stage="schedule")
    nk.split(layer).at(W, X)
    assert layer.ir(W, X, stage="schedule") == before


def test_loss_scaling() -> None:
    """The seed is the scale: derivatives are exactly so many times larger."""
    halves = nk.split(loss, wrt=0)
    value, residuals = halves.forward(W, X)
    scaled = halves.backward(residuals, 1024.0).numpy()
    same(scaled / 1024.0, nk.gradient(of=loss, wrt=0)(W, X))
    same(value, loss(W, X))


def test_gradient_accumulation() -> None:
    """The forward halves of all micro-batches run first, and residuals of all are kept."""
    halves = nk.split(loss, wrt=0)
    batches = rng.standard_normal((3, 3, 4))
    kept = [halves.forward(W, x)[1] for x in batches]
    total = sum(halves.backward(residuals, 1.0).numpy() for residuals in kept)
    same(total, sum(nk.gradient(of=loss, wrt=0)(W, x).numpy() for x in batches))


def test_gradient_accumulation_in_one_staged_function() -> None:
    halves = nk.split(loss, wrt=0).at(spec((4, 5), f64), spec((3, 4), f64))

    @nk.staged
    def accumulated(w: Rep[Matrix], xs: Rep[nk.Tensor3D[f64]]) -> Rep[Matrix]:
        def add(total: Any, x: Any) -> Any:
            _, residuals = halves.forward(w, x).unpack()
            return total + halves.backward(residuals, nk.const(f64(1.0)))

        return xs.fold(w * 0.0, add)

    batches = rng.standard_normal((3, 3, 4))
    expected = sum(nk.gradient(of=loss, wrt=0)(W, x).numpy() for x in batches)
    np.testing.assert_allclose(accumulated(W, batches).numpy(), expected, rtol=1e-14)


def test_activation_offload() -> None:
    """Residuals go to arrays elsewhere and come back."""
    halves = nk.split(layer, save="all")
    _, residuals = halves.forward(W, X)
    elsewhere = residuals.numpy()
    seed = np.ones((3, 5))
    expected = halves.backward(residuals, seed)
    back = residuals.with_arrays(elsewhere)
    same(halves.backward(back, seed), expected)
    same(halves.at(W, X).backward(tuple(elsewhere), seed), expected)


def test_a_pipeline() -> None:
    """Two stages with their own weights: each passes a cotangent on to the one before, micro-batch by micro-batch."""
    first, second = nk.split(layer), nk.split(loss)
    w1, w2 = rng.standard_normal((4, 4)), W
    batches = rng.standard_normal((2, 3, 4))
    forward = [first.forward(w1, x) for x in batches]
    between = [second.forward(w2, h) for h, _ in forward]
    gradients = []
    for (_, kept1), (_, kept2) in zip(forward, between, strict=True):
        dw2, dh = second.backward(kept2, 1.0)
        dw1, _ = first.backward(kept1, dh)
        gradients.append((dw1, dw2))

    @nk.staged
    def whole(a: Rep[Matrix], b: Rep[Matrix], x: Rep[Matrix]) -> Rep[Number]:
        return loss(b, layer(a, x))

    for x, found in zip(batches, gradients, strict=True):
        expected = nk.gradient(of=whole, wrt=(0, 1))(w1, w2, x)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-13)


@nk.staged
def program(p: Rep[Layer], x: Rep[Matrix]) -> Rep[Number]:
    """Loops of known and unknown length, a choice, calls, by a struct."""

    def step(i: Any, h: Any) -> Any:
        grown = nk.while_loop(lambda q: (q * q).sum() < 4.0, lambda q: q * 1.5 + p[Layer.b], h)
        return nk.cond(i % 2 == 0, lambda: nk.tanh(grown), lambda: nk.sin(nk.exp(-grown)))

    h = nk.fori(0, 3, step, layer(p[Layer.w], x))
    return (nk.fori(0, p[Layer.steps], lambda i, h: nk.sin(h) * p[Layer.b], h) * h).sum()


def test_policies_of_programs_with_structs_and_second_order() -> None:
    p = Layer(Tensor2D(W), Tensor1D(np.linspace(0.5, 1.0, 5)), i32(3))
    value, expected = nk.value_and_gradient(of=program, wrt=(0, 1))(p, X)
    squares: list[Any] = []
    for save in ("auto", "all", "none", 200):
        found = nk.value_and_gradient(of=program, wrt=(0, 1), save=save)(p, X)
        same(found, (value, expected))
        same(nk.vjp(program, wrt=1, save=save)(p, X, 1.0), expected[1])
        slope = nk.gradient(of=program, wrt=1, save=save)
        square = nk.fn(Layer, Matrix)(lambda p, x, slope=slope: (slope(p, x) * x).sum())
        squares.append(nk.gradient(of=square, wrt=Layer.w)(p, X).numpy())
    for found in squares[1:]:
        np.testing.assert_allclose(found, squares[0], rtol=1e-12)


def test_arguments_among_residuals_are_not_copied() -> None:
    w, x = Tensor2D(W), Tensor2D(X)
    _, residuals = nk.split(layer).forward(w, x)
    assert residuals[0] is w
    assert residuals[1] is x


def test_what_the_halves_say_of_themselves() -> None:
    halves = nk.split(layer, wrt=0, save="all").at(W, X)
    about = [(one.kind, one.name, one.shape, one.op) for one in halves.residuals]
    assert about == [
        ("result", "value", (3, 5), "exp"),
        ("saved", "saved 0", (3, 4), "sin"),
        ("saved", "saved 1", (3, 5), "tanh"),
    ]
    assert all("return nk.exp(nk.tanh(" in str(one.location) for one in halves.residuals)
    assert halves.saved.total == 8 * (12 + 15)
    forward, backward = halves.forward_signature, halves.backward_signature
    assert [str(one) for one in forward.expects] == [
        "w: f64[4, 5], 160 bytes",
        "x: f64[3, 4], 96 bytes",
    ]
    assert forward.returns[1:] == backward.expects[:-1] == halves.residuals
    assert [one.name for one in (*backward.expects[-1:], *backward.returns)] == ["seed", "dw"]
    assert "saved 1: f64[3, 5], 120 bytes, tanh  test_splitting.py:" in str(halves)
    assert str(halves.saved).endswith("216 bytes in all")


def test_ten_sines_save_one_array() -> None:
    """Row 41 of the table: of sin∘10, x itself is kept, which is an argument; and of a product between, the product."""

    @nk.staged
    def sines(x: Rep[Matrix]) -> Rep[Matrix]:
        for _ in range(10):
            x = nk.sin(x)
        return x

    @nk.staged
    def after(x: Rep[Matrix]) -> Rep[Matrix]:
        return sines(x @ x)

    big = spec((300, 300), f64)
    assert [one.kind for one in nk.split(sines).at(big).residuals] == ["argument"]
    assert len(nk.saved(sines, big, save="all")) == 9
    kept = nk.saved(after, big)
    assert [one.op for one in kept] == ["dot"]
    assert kept.total == 8 * 300 * 300


@pytest.mark.parametrize("save", ["auto", "all", 3_000_000, 0])
def test_what_is_saved_is_what_compiled_code_returns(save: Any) -> None:
    """By the plan of the compiled forward half, and by the arrays that come out of it."""
    x, w = rng.standard_normal((500, 400)), rng.standard_normal((400, 300))
    halves = nk.split(layer, save=save).at(w, x)
    value, kept = halves.forward(w, x)
    total = nk.saved(layer, w, x, save=save).total
    paired = zip(kept, halves.residuals, strict=True)
    assert sum(t.numpy().nbytes for t, r in paired if r.kind == "saved") == total
    compiled = halves.forward._saving
    module = parse_module(compiled.ir(w, x, stage="schedule"))
    (entry,) = (f for f in module.functions.values() if f.name.startswith("layer_forward"))
    returned = sum(tensor_bytes(type) for type in entry.type.results)
    assert returned == value.numpy().nbytes + total
    if isinstance(save, int):
        assert total <= save


@pytest.mark.parametrize("save", [3_000_000, 1_500_000])
def test_a_gradient_keeps_no_more_than_its_budget(save: int) -> None:
    """Between its halves: the rest of the memory that it plans is theirs, and the value of 1.2 MB."""
    x, w = rng.standard_normal((500, 400)), rng.standard_normal((400, 300))
    text = nk.gradient(of=layer, wrt=(0, 1), save=save).ir(w, x, stage="optimized")
    entry = parse_module(text).functions["layer_grad"]
    backward = [i for i in entry.entry.instructions if i.op.called]
    assert len(backward) == 1
    given = [x for x in backward[0].operands if x not in entry.parameters]
    assert (
        sum(tensor_bytes(x.type) for x in given) <= save + 2 * 1_200_000
    )  # the value and its seed
    expected = nk.gradient(of=layer, wrt=(0, 1))(w, x)
    same(nk.gradient(of=layer, wrt=(0, 1), save=save)(w, x), expected)


def test_structs_with_integers_and_several_results() -> None:
    @nk.staged
    def f(p: Rep[Layer], x: Rep[Matrix]) -> tuple[Rep[Matrix], Rep[Scalar[i32]], Rep[Layer]]:
        return nk.tanh(x @ p[Layer.w]) * p[Layer.steps].cast(f64), p[Layer.steps], p

    p = Layer(Tensor2D(W), Tensor1D(np.ones(5)), i32(3))
    halves = nk.split(f)
    value, residuals = halves.forward(p, X)
    same(value, f(p, X))
    same(halves.backward(residuals, value), nk.vjp(f)(p, X, value))
    by_field = nk.split(f, wrt=lambda p, x: (x, p.w))
    value, residuals = by_field.forward(p, X)
    same(by_field.backward(residuals, value), nk.vjp(f, wrt=lambda p, x: (x, p.w))(p, X, value))
    names = [one.name for one in by_field.at(p, X).backward_signature.returns]
    assert names == ["dx", "dp.w"]


def test_halves_without_residuals() -> None:
    @nk.staged
    def twice(x: Rep[Matrix]) -> Rep[Matrix]:
        return x + x

    halves = nk.split(twice, wrt=0)
    value, residuals = halves.forward(X)
    assert (tuple(residuals), halves.at(X).residuals) == ((), ())
    same(halves.backward(residuals, value), value.numpy() * 2)


def test_loops_choices_and_calls() -> None:
    @nk.staged
    def f(x: Rep[Tensor5D[f64]]) -> Rep[Tensor5D[f64]]:
        def step(i: Any, c: Any) -> Any:
            return nk.cond(c.sum() > 3.0, lambda: nk.sin(c) * x, lambda: nk.exp(-c))

        return nk.fori(0, 4, step, x)

    x = rng.standard_normal((2, 3, 2, 1, 2))
    for save in ("auto", "all", "none"):
        halves = nk.split(f, wrt=0, save=save)
        value, residuals = halves.forward(x)
        assert all(len(one.shape) <= 5 for one in residuals)
        same(halves.backward(residuals, value), nk.vjp(f, wrt=0)(x, value))


@nk.staged
def unknown(x: Rep[Matrix], n: Rep[Count]) -> Rep[Matrix]:
    return nk.fori(0, n, lambda i, c: nk.sin(c) * x, x)


def test_what_an_unknown_number_of_iterations_keeps_has_no_shape() -> None:
    with pytest.raises(nk.UnsupportedError, match="kept for each iteration") as raised:
        nk.split(unknown, wrt=0).at(X, i64(3))
    assert "return nk.fori(0, n" in str(raised.value)
    assert 'save="none"' in raised.value.__notes__[0]


def test_what_is_not_computed_again_either_is_said() -> None:
    def body(x: Rep[Scalar[f64]]) -> Rep[Scalar[f64]]:
        nk.check(x < 100.0, "too large")
        return x * x

    checked = nk.fn(Scalar[f64])(lambda x: nk.while_loop(lambda y: y < 50.0, body, x))
    with pytest.raises(nk.UnsupportedError, match="has no shape") as raised:
        nk.saved(checked, 2.0, save="none")
    assert raised.value.__notes__[-1].startswith("  help: what prints or checks is not run again;")


def test_such_a_loop_can_be_computed_again() -> None:
    halves = nk.split(unknown, wrt=0, save="none")
    value, residuals = halves.forward(X, i64(5))
    assert {one.kind for one in halves.at(X, i64(5)).residuals} == {"argument"}
    expected = nk.vjp(unknown, wrt=0)(X, i64(5), value)
    same(halves.backward(residuals, value), expected)
    one, other = halves.at(X, i64(5)), nk.split(unknown, wrt=0, save="none").at(X, i64(0))

    @nk.staged
    def thrice(x: Rep[Matrix], n: Rep[Count], seed: Rep[Matrix]) -> Rep[Matrix]:
        """With the tapes of both and of a gradient in one module."""
        found = [h.backward(h.forward(x, n).unpack()[1], seed) for h in (one, other)]
        return found[0] + found[1] + nk.vjp(unknown, wrt=0)(x, n, seed)

    np.testing.assert_allclose(thrice(X, i64(5), value).numpy(), 3 * expected.numpy(), rtol=1e-14)


def test_derivatives_of_a_function_of_halves() -> None:
    halves = nk.split(layer, wrt=0).at(W, X)

    @nk.staged
    def slope(x: Rep[Matrix]) -> Rep[Number]:
        value, residuals = halves.forward(nk.const(W), x).unpack()
        return (halves.backward(residuals, value) * 0.5).sum()

    @nk.staged
    def directly(x: Rep[Matrix]) -> Rep[Number]:
        w = nk.const(W)
        return (nk.vjp(layer, wrt=0)(w, x, layer(w, x)) * 0.5).sum()

    for derivative in (nk.gradient, nk.jacobian):
        found, expected = derivative(of=slope, wrt=0)(X), derivative(of=directly, wrt=0)(X)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)
    found = nk.hvp(of=slope, wrt=0)(X, X)
    np.testing.assert_allclose(found.numpy(), nk.hvp(of=directly, wrt=0)(X, X).numpy(), rtol=1e-11)


def test_custom_rules_and_stopped_gradients_hold() -> None:
    @nk.staged
    def tripled(x: Rep[Matrix]) -> Rep[Matrix]:
        return nk.sin(x)

    @tripled.defvjp
    def rule(x: Rep[Matrix], ct: Rep[Matrix]) -> tuple[Rep[Matrix]]:
        return (ct * 3.0,)

    @nk.staged
    def f(x: Rep[Matrix]) -> Rep[Matrix]:
        return nk.exp(tripled(x)) * nk.stop_gradient(nk.cos(x)) + tripled(x * x)

    for save in ("auto", "all", "none"):
        halves = nk.split(f, wrt=0, save=save)
        value, residuals = halves.forward(X)
        same(halves.backward(residuals, value), nk.vjp(f, wrt=0)(X, value))
        same(nk.vjp(f, wrt=0, save=save)(X, value), nk.vjp(f, wrt=0)(X, value))
    moved = nk.linearize(f, wrt=0)(X)[1](X).numpy()
    np.testing.assert_allclose(moved, nk.jvp(f, wrt=0)(X, X)[1].numpy(), rtol=1e-13)


def test_errors() -> None:
    halves = nk.split(layer)
    _, residuals = halves.forward(W, X)
    with pytest.raises(nk.StagingError, match="depend on shapes") as raised:
        nk.staged(lambda w, x: halves.forward(w, x).unpack()[0]).ir(W, X)
    assert "split(f).at(" in raised.value.__notes__[-1]
    with pytest.raises(nk.StagingError, match="that a forward half of this split has returned"):
        nk.split(layer).backward(residuals, np.ones((3, 5)))
    with pytest.raises(nk.StagingError, match="that a forward half"):
        halves.backward(tuple(residuals), np.ones((3, 5)))
    with pytest.raises(
        nk.ShapeError,
        match=r"the seed of layer_backward has the shape \[3, 5\], like the result, not \[3, 6\]",
    ):
        halves.backward(residuals, np.ones((3, 6)))
    with pytest.raises(
        nk.ShapeError, match=r"layer_forward takes tensors of shapes \[4, 5\], \[3, 4\]"
    ):
        halves.at(W, X).forward(W, np.ones((2, 4)))
    with pytest.raises(nk.DTypeError, match="tuple of"):
        halves.at(W, X).backward((X,), np.ones((3, 5)))
    with pytest.raises(nk.DifferentiationError, match="out of range"):
        nk.split(layer, wrt=2)
    with pytest.raises(nk.DifferentiationError, match="only floats"):
        nk.split(unknown, save="none").at(X, i64(3))
    with pytest.raises(nk.DifferentiationError, match="is no policy"):
        nk.split(layer, save="some")
    with pytest.raises(nk.StagingError, match="takes a staged function"):
        nk.saved(lambda x: x, X)
