"""Static parameters: keys, variants, calls inside calls, what is made of staged functions, and misuse."""

from __future__ import annotations

import dataclasses
import enum
import functools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Scalar, StagingError, Tensor1D, Tensor2D, f32, f64
from nnkit.callables import StagedFunction
from nnkit.static_keys import static_key

F1, F2 = Tensor1D[f64], Tensor2D[f64]
X = np.array([1.0, 2.0, 3.0])


class Mode(enum.Enum):
    PLUS = 1
    MINUS = 2


@dataclasses.dataclass(frozen=True)
class Config:
    width: int = 2
    rate: float = 0.5


def twice(x: Any) -> Any:
    return x * 2.0


@nk.staged
def importable(x: Rep[F1], n: int = 1) -> Rep[F1]:
    return x * float(n)


def numbers(value: Any) -> Any:
    return value.numpy().tolist()


# ------------------------------------------------------------------------------------------------- calls

VALUES: list[Any] = [
    True, False, 1, 0, 1.0, 0.0, -0.0, float("nan"), float("inf"), 2, "1", b"1", None, ..., (), (1,), (True,), (1.0,),
    ((1, "a"), None), frozenset({1, 2}), Mode.PLUS, Mode.MINUS, Config(), Config(3), Config(2, 0.25),
    twice, importable, abs, f32, f64, int, np.float32(1), np.float64(1), 1j, complex(-0.0, 1), Mode,
]  # fmt: skip


def test_keys_tell_values_apart_as_programs_do() -> None:
    keys = [static_key(value) for value in VALUES]
    same = {
        (i, k)
        for i, x in enumerate(keys)
        for k, y in enumerate(keys)
        if x == y and hash(x) == hash(y)
    }
    assert same == {(i, i) for i in range(len(VALUES))}
    assert static_key(Config()) == static_key(Config(2, 0.5))
    assert static_key(float("nan")) == static_key(float("nan"))


def test_python_decides_by_them_once_for_each_value() -> None:
    traces: list[tuple[Any, ...]] = []

    @nk.staged
    def f(x: Rep[F1], mode: object_ = 1, *, training: bool = False) -> Rep[F1]:
        traces.append((type(mode), mode, training))
        return x + 1.0 if training else x * 2.0

    results: list[Callable[[], Any]] = [
        lambda: f(X), lambda: f(X, 1), lambda: f(X, mode=1), lambda: f(X, training=False),
        lambda: f(X, 1, training=False),
        lambda: f[X], lambda: f[X, 1],
    ]  # fmt: skip
    for call in results:
        assert numbers(call()) == [2.0, 4.0, 6.0]
    assert traces == [(int, 1, False)]
    for mode in (True, 1.0, "1", Mode.PLUS, (1,), None, twice):
        assert (
            numbers(f(X, mode, training=True))
            == numbers(f(X, mode=mode, training=True))
            == [2, 3, 4]
        )
    assert len(traces) == 8
    assert f.partial(mode=2) is f.partial(mode=2) is not f and f.partial(mode=1) is f
    assert f.partial(mode=2).partial(training=True) is f.partial(mode=2, training=True)
    assert repr(f.partial(mode=2)) == "<staged function f(x, mode=2, training=False)>"


object_ = int | bool | float | str | tuple[Any, ...] | Mode | None | Callable[..., Any]


def test_a_call_of_bound_values_is_native() -> None:
    @nk.staged
    def f(x: Rep[F1], n: int, m: int = 1) -> Rep[F1]:
        return x * float(n + m)

    x, bound = Tensor1D(X), f.partial(n=2)
    assert bound(x).numpy().tolist() == [3.0, 6.0, 9.0]
    for one in (bound, importable):
        one(x)
        assert type(one._entry).__name__ == "builtin_function_or_method"
    assert (
        numbers(bound(x, m=2)) == numbers(f(x, 2, 2)) == numbers(f(x, n=2, m=2)) == [4.0, 8.0, 12.0]
    )
    out = np.zeros(3)
    f(x, n=3, out=out), importable(x, 4, out=out)
    assert out.tolist() == [4.0, 8.0, 12.0]


def test_they_stand_anywhere_among_the_parameters() -> None:
    def f(n: int, x: Rep[F1], /, m: int, y: Rep[F1], *, last: str = "a", k: int) -> Rep[F1]:
        return x * float(n) + y * float(m) + float(k) + float(len(last))

    g = nk.staged(f)
    assert g.stageable.parameter_names == ("x", "y")
    expected = X * 2 + X * 3 + 4 + 1
    assert np.array_equal(g(2, X, 3, X, k=4).numpy(), expected)
    assert np.array_equal(g.partial(n=2, m=3, k=4)(X, X).numpy(), expected)
    assert g.partial(k=4)(2, X, 3, X, last="bb").numpy().tolist() == (expected + 1).tolist()


def test_functions_with_them_call_each_other_and_themselves() -> None:
    @nk.staged
    def power(x: Rep[F1], n: int) -> Rep[F1]:
        return x if n == 1 else x * power(x, n=n - 1)

    @nk.staged
    def applied(x: Rep[F1], by: Callable[[Rep[F1]], Rep[F1]] = twice) -> Rep[F1]:
        return by(x)

    @nk.staged
    def outer(x: Rep[F1]) -> Rep[F1]:
        return power(x, 3) + power(x, 3) + power.partial(n=2)(x) + applied(x, by=nk.tanh)

    assert np.allclose(outer(X).numpy(), 2 * X**3 + X**2 + np.tanh(X))
    assert outer.ir(X).count("func @power") == 3  # of 3, 2 and 1
    assert np.allclose(applied(X, by=importable.partial(n=5)).numpy(), 5 * X)


def test_what_is_shown_is_of_these_values() -> None:
    x = nk.spec((3,), f64)
    for text in (importable.ir(x, n=7), importable.ir(x, 7), importable.partial(n=7).ir(x)):
        assert "literal 7.0" in text
    assert importable.llvm(x, n=7) != importable.llvm(x)
    importable.compile(x, n=9), importable.compile(x, 9)
    assert importable.partial(n=9).cache_size() == 1
    assert importable.asm(x, n=9)


def test_variants_are_pickled_by_their_values() -> None:
    bound = importable.partial(n=3)
    assert pickle.loads(pickle.dumps(bound)) is bound
    assert pickle.loads(pickle.dumps(importable)) is importable


# ------------------------------------------------------------------------------------------------- what is made


@nk.staged
def cubic(x: Rep[F1], n: int, *, negate: bool = False) -> Rep[Scalar[f64]]:
    total = (x * x).sum() if n == 2 else (x * x * x).sum()
    return -total if negate else total


TRANSFORMS: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "gradient": (lambda f: nk.gradient(of=f, wrt=0), (X,)),
    "tuple": (lambda f: nk.gradient(of=f, wrt=(0,)), (X,)),
    "dynamic": (lambda f: nk.gradient_dynamic(of=f, wrt=[0]), (X,)),
    "selector": (lambda f: nk.gradient(of=f, wrt=lambda x: x), (X,)),
    "value": (lambda f: nk.value_and_gradient(of=f, wrt=0), (X,)),
    "second": (lambda f: nk.gradient(of=nk.gradient(of=f, wrt=0), wrt=0), (X,)),
    "jvp": (nk.jvp, (X, X)), "vjp": (nk.vjp, (X, 1.0)), "hvp": (nk.hvp, (X, X)),
    "taylor": (lambda f: nk.taylor(f, order=2), (X, X)),
    "jacobian": (lambda f: nk.jacobian(of=f, wrt=0), (X,)), "hessian": (lambda f: nk.hessian(of=f, wrt=0), (X,)),
    "vmap": (nk.vmap, (np.stack([X, X]),)), "checkpoint": (nk.checkpoint, (X,)),
    "donate": (lambda f: nk.donate(f, 0), (X,)),
    "differentiate_as": (lambda f: nk.differentiate_as(cubic)(f), (X,)),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
def test_what_is_made_of_a_function_has_its_static_parameters(name: str) -> None:
    transform, arguments = TRANSFORMS[name]
    made = transform(cubic)
    expected = transform(cubic.partial(n=2, negate=True))(*arguments)
    for found in (made(*arguments, n=2, negate=True), made.partial(n=2)(*arguments, negate=True)):
        assert all(map(np.array_equal, parts(found), parts(expected)))
    with pytest.raises(StagingError, match="cubic takes a value for its static parameter n"):
        made(*arguments)


def test_halves_and_linear_maps_are_of_the_values_given() -> None:
    bound = cubic.partial(n=2, negate=True)
    for halves, arguments in ((nk.split(cubic), (X, 2)), (nk.split(cubic, wrt=(0,)), (X,))):
        given: dict[str, Any] = {"negate": True} if len(arguments) > 1 else {"n": 2, "negate": True}
        value, residuals = halves.forward(*arguments, **given)
        assert numbers(value) == numbers(bound(X)) == -14.0
        assert numbers(halves.backward(residuals, 1.0)[0]) == (-2.0 * X).tolist()
        assert halves.at(*arguments, **given) is halves.at(*arguments, **given)
        assert halves.at(X, n=3) is not halves.at(X, n=2)
    assert numbers(nk.split(cubic.partial(n=3), wrt=0).forward(X, negate=True)[0]) == -36.0
    linear = nk.linearize(cubic)
    value, slope = linear(X, n=2, negate=True)
    assert numbers(value) == -14.0 and numbers(slope(X)) == -28.0
    assert numbers(linear(X, 3)[1].transpose(1.0)[0]) == (3 * X**2).tolist()
    assert nk.saved(cubic, X, n=3) == nk.saved(cubic.partial(n=3), X)
    nk.check_gradients(cubic, X, n=3, negate=True, order=1)
    nk.check_gradients(cubic, X, 2, order=1, modes=("forward",))
    calls: list[Callable[..., Any]] = [
        nk.split(cubic).forward, nk.split(cubic).at, linear, lambda *a, **k: nk.saved(cubic, *a, **k),
        lambda *a, **k: nk.check_gradients(cubic, *a, **k),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(StagingError, match="cubic takes a value for its static parameter n"):
            call(X)
        with pytest.raises(StagingError, match="cubic has no static parameter m"):
            call(X, m=2)


def parts(value: Any) -> list[Any]:
    return (
        [part for one in value for part in parts(one)]
        if isinstance(value, tuple)
        else [value.numpy()]
    )


def test_rules_of_derivatives_are_of_the_same_values() -> None:
    @nk.staged
    def scaled(x: Rep[F1], n: int = 1) -> Rep[F1]:
        return x * float(n)

    early = scaled.partial(n=2)

    @scaled.defvjp
    def _(x: Rep[F1], seed: Rep[F1], n: int = 1) -> tuple[Rep[F1]]:
        return (seed * float(100 * n),)

    slope = nk.gradient(of=scaled, wrt=0)
    assert numbers(slope(X)) == [100.0] * 3 and numbers(slope(X, n=3)) == [300.0] * 3
    assert numbers(nk.gradient(of=early, wrt=0)(X)) == [200.0] * 3


class Settings:
    def __init__(self) -> None:
        self.sizes: list[Any] = [1, 2]
        self.owner: Any = (self, {"scale": 1.0})


def test_an_object_that_changes_is_another_value() -> None:
    settings, traced = Settings(), []

    @nk.staged
    def scaled(x: Rep[F1], o: Settings) -> Rep[F1]:
        traced.append(o)
        return x * (float(sum(o.sizes)) * o.owner[1]["scale"])

    assert numbers(scaled(X, settings)) == [3.0, 6.0, 9.0]
    settings.sizes.append(1)
    assert numbers(scaled(X, settings)) == [4.0, 8.0, 12.0]
    settings.owner[1]["scale"] = 2.0
    assert numbers(scaled(X, o=settings)) == [8.0, 16.0, 24.0]
    settings.owner = (settings, {"scale": 2.0})  # another dictionary: traced again
    assert numbers(scaled(X, settings)) == [8.0, 16.0, 24.0] and len(traced) == 4
    settings.owner = X, {"scale": 2.0}  # another object
    assert numbers(scaled(X, settings)) == [8.0, 16.0, 24.0] and len(traced) == 5


# ------------------------------------------------------------------------------------------------- misuse

MISUSE: dict[str, tuple[Callable[[], Any], str, str]] = {
    "list": (lambda: importable(X, [1]), "parameter n of importable is static, and a list is not hashable", "a number"),
    "list of arrays": (lambda: importable(X, [X]), "is static, and a list of tensors is data", "a Struct"),
    "nested": (lambda: importable(X, n=(1, [2])), "and a list is not hashable", "a tuple"),
    "a Rep or None": (lambda: maybe_a_rep(X, X), "m of maybe_a_rep is a Rep or something else", "two functions"),
    "array": (lambda: importable(X, X), "parameter n of importable is static, and a ndarray is data", "n: Rep"),
    "tensor": (lambda: importable(X, n=Tensor1D(X)), "parameter n of importable is static", "if it is data"),
    "near": (lambda: importable(X, N=2), "importable has no static parameter N: those that it has are n=1", "mean n?"),
    "far": (lambda: importable(x=X), "importable has no static parameter x", "data is given by position"),
    "partial": (lambda: importable.partial(m=2), "importable has no static parameter m", ""),
    "missing": (lambda: cubic(X), "cubic takes a value for its static parameter n, which has no default", "n=..."),
    "twice": (lambda: importable(X, 2, n=2), "parameter n of importable is given by position and by name", ""),
    "none": (lambda: nk.gradient(of=nk.fn(F1)(twice), wrt=0).partial(n=2), "takes its arguments by position", ""),
    "many": (lambda: importable(X, 1, X), "importable takes 1 argument (x), not 2", ""),
    "out": (lambda: nk.staged(lambda x, out=1: x), "parameter out of <lambda> cannot be static", ""),
    "str for bool": (lambda: plainly(X, "yes"), "on of plainly is annotated bool, and is 'yes', a str", "give a bool"),
    "float for int": (lambda: plainly(X, n=2.5), "n of plainly is annotated int, and is 2.5, a float", "`n: float`"),
    "str for float": (lambda: plainly(X, rate="1"), "plainly is annotated float, and is '1', a str", ""),
    "None for str": (lambda: plainly(X, name=None), "name of plainly is annotated str, and is None", "str | None"),
    "str for int or None": (lambda: plainly(X, most="3"), "annotated int | None, and is '3', a str", "give an int"),
    "float for int or None": (lambda: united(X, 2.5), "annotated int | None, and is 2.5, a float", ""),
    "rep": (lambda: nk.staged(given_a_rep)(X), "parameter n of importable is static, and a Rep is data", "n: Rep"),
}  # fmt: skip


@nk.staged
def plainly(
    x: Rep[F1],
    on: bool = False,
    n: int = 1,
    rate: float = 1.0,
    name: str = "",
    most: int | None = None,
) -> Rep[F1]:
    return x * (float(rate) * int(n) * bool(on)) if name else x


def _united(x: Any, most: Any = None) -> Any:
    return x


_united.__annotations__ = {"x": Rep[F1], "most": int | None}
united: Any = nk.staged(_united)


def test_plain_annotations_take_what_checkers_take_and_numpys() -> None:
    given: list[dict[str, Any]] = [
        {"on": np.True_, "n": np.int32(3), "rate": 2, "name": "a", "most": np.int8(3)},
        {"on": True, "n": True, "rate": np.float32(2.0), "name": "a"},
    ]
    assert [numbers(plainly(X, **one)) for one in given] == [(6 * X).tolist(), (2 * X).tolist()]
    traced = nk.staged(lambda x: plainly(x, True, x.shape[0], name="a"))
    assert numbers(traced(X)) == (3 * X).tolist()


@nk.staged
def maybe_a_rep(x: Rep[F1], m: Rep[F1] | None = None) -> Rep[F1]:
    return x if m is None else x * m


def given_a_rep(x: Rep[F1]) -> Rep[F1]:
    return importable(x, n=x.sum())  # type: ignore[no-any-return]  # n is not typed


@pytest.mark.parametrize("name", MISUSE)
def test_misuse_names_the_parameter(name: str) -> None:
    call, message, help = MISUSE[name]
    with pytest.raises(StagingError) as caught:
        call()
    assert message in str(caught.value)
    assert help in "".join(getattr(caught.value, "__notes__", []))


def test_defaults_that_have_no_key_stay_constants() -> None:
    table = [2.0, 3.0]
    f = nk.staged(lambda x, constants=table: x * constants[0])
    assert numbers(f(X)) == [2.0, 4.0, 6.0] and numbers(f(X, constants=(4.0,))) == [4.0, 8.0, 12.0]
    for k, one in enumerate([nk.staged(lambda x, k=k: x * float(k)) for k in range(3)]):
        assert numbers(one(X)) == (k * X).tolist()
    g = nk.staged(functools.partial(lambda x, n=1: x * float(n), n=5))
    assert numbers(g(X)) == (5 * X).tolist()


def test_variants_without_end_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nnkit.static_parameters.MOST_VARIANTS", 4)
    f = nk.staged(lambda x, n=0: x)
    kept = [f.partial(n=n) for n in range(10)]
    assert f.statics is not None and len(f.statics.family.variants) == 4
    assert kept[9] is f.partial(n=9) and isinstance(kept[0], StagedFunction)
