"""Rules of derivatives in the language: a law over functions, forms of rules, and places of calls; then mistakes.

The law: a function whose rules are its own derivatives has the derivatives that it has without rules, in every mode,
of first, second and third order, wherever it is called.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np
import pytest

import nnkit as nk
from nnkit import (
    DifferentiationError,
    DTypeError,
    Field,
    RankError,
    Rep,
    Scalar,
    ShapeError,
    StagingError,
    Struct,
    Tensor1D,
    f64,
    i32,
)
from nnkit.callables import StagedFunction
from nnkit.core.text import parse_module, print_module

pytestmark = pytest.mark.usefixtures("unoptimized_code")

Number: TypeAlias = Scalar[f64]
Vector: TypeAlias = Tensor1D[f64]


class State(Struct):
    x: Field[Vector]
    n: Field[Scalar[i32]]
    s: Field[Number]


def wave(x: Rep[Number], y: Rep[Number]) -> Rep[Number]:
    return nk.sin(x) * y + x * x


def several(x: Rep[Number], y: Rep[Number]) -> Any:
    return nk.exp(x * 0.3) * y, nk.tanh(y) * x


def counted(x: Rep[Number], n: Rep[Scalar[i32]], y: Rep[Number]) -> Rep[Number]:
    return nk.fori(0, n, lambda i, c: nk.sin(c) * y, x)


def stateful(p: Rep[State]) -> Rep[State]:
    x = nk.tanh(p[State.x]) * p[State.s]
    return nk.build(State, State.x << x, State.n << p[State.n] + 1, State.s << x.sum())


def rooted(a: Rep[Number], x: Rep[Number]) -> Rep[Number]:
    return nk.while_loop(lambda r: nk.abs(r * r - a) > 1e-13, lambda r: (r + a / r) * 0.5, a) + x


FUNCTIONS: Final[dict[str, tuple[Callable[..., Any], Callable[..., Any]]]] = {
    "wave": (wave, lambda f, x, y: f(x, y)),
    "several": (several, lambda f, x, y: f(x, y)[0] * f(y, x)[1]),
    "counted": (counted, lambda f, x, y: f(x, nk.const(i32(3)), y)),
    "stateful": (
        stateful,
        lambda f, x, y: f(
            f(nk.build(State, State.x << nk.stack([x, y]), State.n << i32(1), State.s << x))
        )[State.s],
    ),
    "rooted": (rooted, lambda f, x, y: f(x * x + 1.5, y)),
}
"""Functions, and how two numbers come through them."""

FORMS: Final = ("jvp", "vjp", "saving", "both")


def ruled(function: Callable[..., Any], form: str) -> StagedFunction:
    """`function` with its own derivatives as rules."""
    twin, made = nk.staged(function), nk.staged(function)
    wrt = [k for k, spec in enumerate(twin.declared) if spec.words != "Tensor0D[i32]"]  # type: ignore[union-attr]
    count = len(twin.declared)

    def jvp(*given: Rep[Any]) -> Any:
        tangents = [given[count + k] for k in wrt]
        return nk.jvp(of=twin, wrt=tuple(wrt))(*given[:count], *tangents).unpack()[1]

    def vjp(*given: Rep[Any]) -> Any:
        cotangents = nk.vjp(of=twin, wrt=tuple(wrt))(*given)
        found = dict(zip(wrt, [cotangents[k] for k in range(len(wrt))], strict=True))
        return tuple(found[k] if k in found else nk.zeros_like(given[k]) for k in range(count))

    names = made.stageable.parameter_names
    if form in ("jvp", "both"):
        made.defjvp(_named(jvp, [*names, *(f"d{name}" for name in names)]))
    if form in ("vjp", "both"):
        made.defvjp(_named(vjp, [*names, "seed"]))
    if form == "saving":
        made.defvjp(
            _named(lambda *xs: (made(*xs), xs), names),
            lambda saved, seed: vjp(*(saved[k] for k in range(count)), seed),
        )
    return made


def _named(function: Callable[..., Any], names: Any) -> Any:
    """`function` with parameters of these names: those of a staged function cannot be `*xs`."""
    listed = ", ".join(names)
    return eval(f"lambda {listed}: function({listed})", {"function": function})


PLACES: Final[dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]]] = {
    "a call": lambda g: lambda x, y: g(x, y) * g(y, x),
    "a loop": lambda g: lambda x, y: nk.fori(0, 3, lambda i, c: nk.tanh(g(c, y)), x),
    "a while": lambda g: (
        lambda x, y: nk.while_loop(
            lambda c: nk.abs(c[1]) < 2.5, lambda c: (nk.tanh(g(c[0], y)), c[1] + 1), (x, y)
        )[0]
    ),
    "a choice": lambda g: lambda x, y: nk.cond(x < y, lambda: g(x, y), lambda: g(y, x)),
    "a map": lambda g: lambda x, y: nk.stack([x, y, x * y]).map(lambda z: g(z, y)).sum(),
    "a batch": lambda g: (
        lambda x, y: nk.vmap(nk.fn(Number, Number)(lambda a, b: g(a, b)), in_axes=(0, None))(
            nk.stack([x, y, x * y]), y
        ).sum()
    ),
    "a checkpoint": lambda g: nk.checkpoint(nk.fn(Number, Number)(lambda x, y: g(x, y) * x)),
}


def derivatives(function: Callable[..., Any]) -> Iterator[list[float]]:
    """Of a function of two numbers, of first to third order, in many modes."""
    f = nk.fn(Number, Number)(function)
    x, y, u, v = (f64(z) for z in (0.4, 0.7, 0.3, -0.8))
    slope = nk.gradient(of=f, wrt=(0, 1))
    pushed = nk.jvp(of=f)
    along = nk.fn(Number, Number)(lambda x, y: pushed(x, y, nk.const(u), nk.const(v))[1])
    second = nk.gradient(of=along, wrt=(0, 1))
    mixed = nk.fn(Number, Number)(lambda x, y: second(x, y)[0] * second(x, y)[1])
    yield [float(z) for z in slope(x, y)]
    yield [float(z) for z in pushed(x, y, u, v)]
    yield [float(z) for z in nk.hvp(of=f, wrt=(0, 1))(x, y, u, v)]
    yield [float(z) for z in second(x, y)]
    yield [float(z) for z in nk.jvp(of=along)(x, y, v, u)]
    yield [float(z) for z in nk.gradient(of=mixed, wrt=(0, 1))(x, y)]


CASES = [
    *itertools.product(["wave"], FORMS, ["a call"]),
    *((name, FORMS[k % 4], "a loop") for k, name in enumerate(FUNCTIONS)),
    *(("wave", FORMS[k % 4], place) for k, place in enumerate(PLACES) if place != "a call"),
]
"""Each function and each place by one form; of all four there is the law of `tests/core/autodiff`."""


@pytest.mark.parametrize(("name", "form", "place"), CASES)
def test_own_derivatives_as_rules_change_nothing(name: str, form: str, place: str) -> None:
    function, through = FUNCTIONS[name]
    plain, made = nk.staged(function), ruled(function, form)
    if name == "wave" and place == "a checkpoint":
        plain, made = nk.checkpoint(plain), nk.checkpoint(made)
    expected, found = (
        list(derivatives(PLACES[place](lambda x, y, f=f: through(f, x, y)))) for f in (plain, made)
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def tripled() -> StagedFunction:
    """A sine with another derivative than its own."""
    f = nk.fn(Number)(lambda x: nk.sin(x))
    f.defjvp(lambda x, dx: 3 * dx)
    return f


def test_the_rule_is_what_counts() -> None:
    f = tripled()
    assert float(nk.gradient(of=f, wrt=0)(f64(0.5))) == 3
    value, tangent = nk.jvp(of=f)(f64(0.5), f64(2.0))
    assert (float(value), float(tangent)) == (pytest.approx(np.sin(0.5)), 6)
    assert float(nk.hessian(of=f)(f64(0.5))) == 0


def test_the_text_names_the_rules_and_reads_back() -> None:
    slope = nk.gradient(of=tripled(), wrt=0)
    assert "[jvp @lambda_1]\nfunc @lambda:" in slope.ir(f64(0.5))
    module, _ = slope._specialization([f64(0.5)]).module("raw")
    assert print_module(parse_module(print_module(module))) == print_module(module)
    assert "[jvp" not in slope.ir(f64(0.5), stage="optimizable")


def test_rules_cost_nothing_where_nothing_is_differentiated() -> None:
    f = tripled()
    assert "[jvp" not in f.ir(f64(0.5))


def test_a_rule_keeps_its_call_out_of_nothing_once_it_is_differentiated() -> None:
    """Calls of functions with rules are inlined after differentiation as all others."""
    f = tripled()
    slope = nk.gradient(of=nk.fn(Number)(lambda x: f(f(x))), wrt=0)
    assert "apply" not in slope.ir(f64(0.5), stage="optimized")
    assert float(slope(f64(0.5))) == 9


def test_recursion_with_a_rule() -> None:
    @nk.staged
    def power(x: Rep[Number], n: Rep[Scalar[i32]]) -> Rep[Number]:
        return nk.cond(n > 0, lambda: x * power(x, n - 1), lambda: nk.ones_like(x))

    @power.defjvp
    def power_jvp(
        x: Rep[Number], n: Rep[Scalar[i32]], dx: Rep[Number], dn: Rep[Scalar[i32]]
    ) -> Rep[Number]:
        return n.cast(f64) * power(x, n - 1) * dx

    slope = nk.gradient(of=power, wrt=0)
    assert float(slope(f64(1.5), i32(4))) == pytest.approx(4 * 1.5**3)
    assert float(nk.gradient(of=slope, wrt=0)(f64(1.5), i32(4))) == pytest.approx(12 * 1.5**2)


@pytest.mark.parametrize("form", FORMS)
def test_a_batch_has_the_rules_of_its_function(form: str) -> None:
    """Of a rule that is no derivative, so that the body is not what was differentiated; one argument is shared."""
    f = nk.fn(Number, Number)(lambda x, y: nk.sin(x) * y)
    if form in ("jvp", "both"):
        f.defjvp(lambda x, y, dx, dy: 2 * dx + 3 * dy)
    if form in ("vjp", "both"):
        f.defvjp(lambda x, y, seed: (2 * seed, 3 * seed))
    if form == "saving":
        f.defvjp(
            lambda x, y: (f(x, y), 3 * nk.ones_like(y)),
            lambda three, seed: (2 * seed, three * seed),
        )
    batch = nk.vmap(f, in_axes=(0, None))
    total = nk.fn(Vector, Number)(lambda x, y: batch(x, y).sum())
    xs = np.array([0.1, 0.5, 0.9])
    by_x, by_y = nk.gradient(of=total, wrt=(0, 1))(xs, f64(0.7))
    np.testing.assert_allclose(np.asarray(by_x), [2, 2, 2])
    assert float(by_y) == 9
    assert float(nk.jvp(of=total)(xs, f64(0.7), np.ones(3), f64(1.0))[1]) == pytest.approx(15)
    each = nk.vmap(nk.gradient(of=f, wrt=(0, 1)), in_axes=(0, None))(xs, f64(0.7))
    np.testing.assert_allclose(np.asarray(each[0]), [2, 2, 2])
    np.testing.assert_allclose(np.asarray(each[1]), [3, 3, 3])


def test_a_function_as_an_argument_has_no_tangent() -> None:
    @nk.staged
    def twice(f: Any, x: Rep[Number]) -> Rep[Number]:
        return f(f(x))

    twice.defjvp(lambda f, x, dx: 5 * dx)
    sin = nk.fn(Number)(lambda x: nk.sin(x))
    assert float(nk.gradient(of=nk.fn(Number)(lambda x: twice(sin, x)), wrt=0)(f64(0.5))) == 5


def test_saved_values_are_those_that_the_way_back_gets() -> None:
    f = nk.fn(Number)(lambda x: nk.sin(x))
    f.defvjp(lambda x: (f(x), x * 7), lambda saved, seed: (saved * seed,))
    loop = nk.fn(Number)(lambda x: nk.fori(0, 2, lambda i, c: f(c), x))
    expected = 49 * np.sin(0.5) * 0.5
    assert float(nk.gradient(of=loop, wrt=0)(f64(0.5))) == pytest.approx(expected)


# Mistakes.


def number(x: Rep[Number]) -> Rep[Number]:
    return x * x


def error_of(kind: type[Exception], action: Callable[[], object]) -> str:
    with pytest.raises(kind) as caught:
        action()
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


def test_a_rule_of_other_parameters() -> None:
    message = error_of(StagingError, lambda: nk.staged(number).defjvp(lambda x: x))
    assert "lambda takes 1 argument; the rule of number is given 2: x, dx" in message.replace(
        "<", ""
    ).replace(">", "")

    def rule(x: Rep[Number], dx: Rep[Vector]) -> Rep[Number]:
        return x

    message = error_of(RankError, lambda: nk.staged(number).defjvp(rule))
    assert (
        "parameter dx of rule is a Tensor1D[f64]; the rule of number is given dx, a Tensor0D[f64]"
        in message
    )


@pytest.mark.parametrize(
    ("kind", "rule", "expected"),
    [
        (RankError, lambda x, dx: nk.stack([dx, dx]), "a Tensor1D[f64]; the tangent of its result is a Tensor0D[f64]"),
        (DTypeError, lambda x, dx: dx.cast(nk.f32), "a Tensor0D[f32]; the tangent of its result is a Tensor0D[f64]"),
        (DTypeError, lambda x, dx: (dx, dx), "the tangent of its result is a Tensor0D[f64]"),
    ],
)  # fmt: skip
def test_a_tangent_of_another_type(kind: type[Exception], rule: Any, expected: str) -> None:
    f = nk.staged(number)
    f.defjvp(rule)
    assert expected in error_of(kind, lambda: nk.gradient(of=f, wrt=0)(f64(1.0)))


def test_cotangents_stand_in_a_tuple() -> None:
    f = nk.staged(number)
    f.defvjp(lambda x, seed: 2 * x * seed)
    message = error_of(DTypeError, lambda: nk.gradient(of=f, wrt=0)(f64(1.0)))
    assert (
        "the cotangents of its arguments, in a tuple, is a tuple[Tensor0D[f64]] for number"
        in message
    )


def test_what_saves_returns_a_pair() -> None:
    f = nk.staged(number)
    f.defvjp(lambda x: x, lambda x, seed: (seed,))
    message = error_of(StagingError, lambda: nk.gradient(of=f, wrt=0)(f64(1.0)))
    assert (
        "it gives a pair of the result of number, a Tensor0D[f64], and of what is saved" in message
    )


def test_a_tangent_of_another_shape() -> None:
    f = nk.fn(Vector)(lambda x: x * x)
    f.defjvp(lambda x, dx: nk.concat([dx, dx], axis=0))
    total = nk.fn(Vector)(lambda x: f(x).sum())
    message = error_of(ShapeError, lambda: nk.gradient(of=total, wrt=0)(np.ones(3)))
    assert "f64[6] for the tangent of the result" in message and "f64[3]" in message


def test_a_rule_comes_before_derivatives_and_once() -> None:
    f = tripled()
    assert "has a jvp already" in error_of(StagingError, lambda: f.defjvp(lambda x, dx: dx))
    nk.gradient(of=f, wrt=0)(f64(0.5))
    message = error_of(StagingError, lambda: f.defvjp(lambda x, seed: (seed,)))
    assert "comes too late: <lambda> has been differentiated already" in message


def test_a_derivative_has_no_rule_of_its_own() -> None:
    slope = nk.gradient(of=nk.staged(number), wrt=0)
    assert "number_grad is a derivative" in error_of(
        StagingError, lambda: slope.defjvp(lambda x, dx: dx)
    )


def test_values_from_around_have_no_rule() -> None:
    def outer(x: Rep[Number]) -> Rep[Number]:
        f = nk.fn(Number)(lambda y: x * y)
        f.defjvp(lambda y, dy: dy)
        return nk.gradient(of=f, wrt=0)(x)

    message = error_of(StagingError, lambda: nk.staged(outer)(f64(1.0)))
    assert "uses a value of an enclosing staged function" in message
    assert "pass it as an argument" in message


def test_a_rule_from_around() -> None:
    def outer(x: Rep[Number]) -> Rep[Number]:
        f = nk.fn(Number)(lambda y: y * 2.0)
        f.defvjp(lambda y, ct: (ct * x,))
        return f(x)

    outer_slope = nk.gradient(of=nk.staged(outer), wrt=0)
    message = error_of(StagingError, lambda: outer_slope(f64(1.0)))
    assert "a Rep of outer is used outside of it" in message
    assert "pass it as an argument" in message


LOOPS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "stacked": lambda step, x: nk.fori(0, 2, lambda i, y: step(y), x),
    "taped": lambda step, x: nk.while_loop(
        lambda c: c[1] < 2, lambda c: (step(c[0]), c[1] + 1), (x, nk.const(i32(0)))
    )[0],
}


def derivatives_of_no_jacobian(kind: str, loop: Callable[[Any, Any], Any]) -> list[Any]:
    """Of a program around a function whose rule is the derivative of nothing, of second and third order."""

    def rule(x: Rep[Vector], dx: Rep[Vector]) -> Any:
        found = (dx * nk.sin(x)).sum() * x + dx * x[0]
        return found if kind == "jvp" else (found,)

    rounded = nk.fn(Vector)(lambda x: nk.round(x * 2.0))
    (rounded.defjvp if kind == "jvp" else rounded.defvjp)(rule)

    @nk.staged
    def f(x: Rep[Vector]) -> Rep[Number]:
        y = loop(lambda y: nk.sin(rounded(y) + y * x), x)
        return (y * y).sum()

    slope, hvp = nk.gradient(of=f, wrt=0), nk.hvp(of=f, wrt=0)
    pushed = nk.jvp(of=f, wrt=0)
    two, three = nk.fn(Vector, Vector), nk.fn(Vector, Vector, Vector)
    again = nk.gradient(of=two(lambda x, v: (slope(x) * v).sum()), wrt=0)
    of_pushed = nk.gradient(of=two(lambda x, v: pushed(x, v).unpack()[1]), wrt=0)
    of_hvp = nk.gradient(of=three(lambda x, v, w: (hvp(x, v) * w).sum()), wrt=0)
    third = nk.gradient(of=three(lambda x, v, w: (again(x, v) * w).sum()), wrt=0)
    x, v, w = np.array([[0.3, -0.5, 0.8], [0.2, 0.7, -0.4], [1.0, -0.3, 0.6]])
    found = (again(x, v), hvp(x, v), of_pushed(x, v), of_hvp(x, v, w), third(x, v, w))
    return [np.array(one) for one in found]


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_a_rule_that_is_no_derivative_is_followed_through_tapes(kind: str) -> None:
    """As where nothing is recorded: its own code is what is differentiated again, in each nesting."""
    expected = derivatives_of_no_jacobian(kind, LOOPS["stacked"])
    found = derivatives_of_no_jacobian(kind, LOOPS["taped"])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11)
    assert not np.allclose(expected[0], expected[1])  # so it is no Hessian


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_halves_are_differentiated_again_by_the_rules(kind: str) -> None:
    """The derivative of the forward half is by the rule, not by the code, and that of the backward half by its code."""
    cubed = nk.fn(Number)(lambda x: nk.round(x))

    def rule(x: Rep[Number], dx: Rep[Number]) -> Any:
        return x * x * x * dx if kind == "jvp" else (x * x * x * dx,)

    (cubed.defjvp if kind == "jvp" else cubed.defvjp)(rule)
    f = nk.fn(Number)(lambda x: cubed(x) * 2.0)
    halves = nk.split(f, save="all").at(nk.spec((), f64))
    value = nk.fn(Number)(lambda x: halves.forward(x).unpack()[0])

    def backwards(x: Rep[Number]) -> Any:
        _, kept = halves.forward(x).unpack()
        return halves.backward(kept, nk.const(f64(1.0))).unpack()[0]

    slope = nk.fn(Number)(backwards)
    x = f64(0.7)
    assert float(value(x)) == 2.0
    for one, expected in ((value, 2 * 0.7**3), (slope, 6 * 0.7**2)):
        assert float(nk.gradient(of=one, wrt=0)(x)) == pytest.approx(expected, rel=1e-12)
        assert float(nk.jvp(of=one, wrt=0)(x, f64(1.0))[1]) == pytest.approx(expected, rel=1e-12)


def test_rules_without_end() -> None:
    def made() -> StagedFunction:
        f = nk.fn(Number)(lambda x: nk.sin(x))
        f.defjvp(lambda x, dx: made()(x) * dx)
        return f

    message = error_of(StagingError, lambda: nk.gradient(of=made(), wrt=0)(f64(1.0)))
    assert "need one another without end" in message


def test_a_second_derivative_that_a_rule_does_not_give() -> None:
    """A rule whose code has no derivative gives one order; of the next one, its op and line are named."""
    f = nk.fn(Number)(lambda x: nk.sin(x))
    digamma = nk.fn(Number)(lambda x: nk.digamma(x))

    def rule(x: Rep[Number], dx: Rep[Number]) -> Rep[Number]:
        return nk.gradient(of=digamma, wrt=0)(x) * dx

    f.defjvp(rule)
    slope = nk.gradient(of=f, wrt=0)
    assert float(slope(f64(1.0))) == pytest.approx(np.pi**2 / 6)
    message = error_of(DifferentiationError, lambda: nk.gradient(of=slope, wrt=0)(f64(1.0)))
    assert "trigamma cannot be differentiated" in message
    assert "digamma(x)" in message


def test_a_wrong_rule_is_an_error_each_time() -> None:
    """Also for functions that call the one with the rule, whose traces are kept."""

    @nk.staged
    def twice(x: Rep[Tensor1D[f64]]) -> Rep[Tensor1D[f64]]:
        return x * 2.0

    @twice.defvjp
    def _(x: Rep[Tensor1D[f64]], ct: Rep[Tensor1D[f64]]) -> Any:
        return ct * 10.0

    @nk.staged
    def total(x: Rep[Tensor1D[f64]]) -> Rep[Scalar[f64]]:
        return (twice(x) * x).sum()

    @nk.staged
    def outer(x: Rep[Tensor1D[f64]]) -> Rep[Scalar[f64]]:
        return total(x)

    for function in (total, outer, total, outer):
        derivative = nk.gradient(of=function, wrt=0)
        for _ in range(2):
            with pytest.raises(nk.DTypeError, match="the cotangents of its arguments, in a tuple"):
                derivative(np.ones(2))
