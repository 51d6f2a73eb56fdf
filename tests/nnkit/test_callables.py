"""Staged functions: when they are traced and compiled, what they may close over, take and return."""

from __future__ import annotations

import functools
import inspect
import sys
from collections import namedtuple
from typing import Any, TypeVar

import numpy as np
import pytest

import nnkit as nk
from nnkit import (
    Field,
    Rep,
    Scalar,
    Struct,
    Tensor1D,
    build,
    const,
    f32,
    f64,
    fn,
    i32,
    spec,
    staged,
    tup,
)

from .called_functions import F1, F2, Layer, importable, layer, ones, values


class Network(Struct):
    first: Field[Layer]
    scale: Field[Scalar[f32]]


# ------------------------------------------------------------------------------------- tracing, specialising


def test_a_function_runs_once_per_types_of_its_arguments() -> None:
    runs: list[str] = []

    @staged
    def f(x: Any) -> Any:
        runs.append(repr(x))
        return x * 2.0

    for shape in ((2,), (3,), (2,), (5,)):
        assert values(f(ones(*shape))) == [2.0] * shape[0]
    assert len(runs) == 1
    f(ones(2, 2))
    f(np.ones(2))
    f(ones(3, 3))
    assert len(runs) == 3


def test_each_shape_is_compiled_once() -> None:
    f = staged(lambda x: x * 2.0)
    for extent in (*range(1, 12), *range(1, 12), *range(11, 0, -1)):
        assert values(f(ones(extent))) == [2.0] * extent
    assert len(f._programs) == 11
    f.compile(spec((3,), f32))
    assert len(f._programs) == 11


def test_compile_prepares_a_call() -> None:
    f = staged(lambda x, n: x * n.cast(f32))
    f.compile(spec((3,), f32), spec((), i32))
    assert len(f._programs) == 1
    assert values(f(ones(3), np.int32(4))) == [4, 4, 4]
    assert len(f._programs) == 1


def test_functions_are_told_apart_by_themselves_not_by_their_line() -> None:
    f, g = staged(lambda x: x + 1.0), staged(lambda x: x + 2.0)
    assert (values(f(ones(1))), values(g(ones(1)))) == ([2.0], [3.0])
    made = [staged(lambda x, k=k: x + float(k)) for k in range(4)]
    assert [values(h(ones(1)))[0] for h in made] == [1, 2, 3, 4]
    late = []
    for k in range(3):
        late.append(staged(lambda x, h=made[k]: h(x) * 2.0))
    assert [values(h(ones(1)))[0] for h in late] == [2, 4, 6]
    both = staged(lambda x: f(x) * g(x))
    assert values(both(ones(1))) == [6.0]


def test_a_function_defined_again_is_another_one() -> None:
    @staged
    def f(x: Rep[F1]) -> Rep[F1]:
        return x + 1.0

    old = f

    @staged
    def f(x: Rep[F1]) -> Rep[F1]:
        return x + 10.0

    assert (values(old(ones(1))), values(f(ones(1)))) == ([2.0], [11.0])


def test_staging_a_staged_function_changes_nothing() -> None:
    assert staged(importable) is importable


def test_calls_and_subscripts_are_the_same() -> None:
    f = staged(lambda x, y: x - y)
    assert values(f(ones(1), ones(1))) == values(f[ones(1), ones(1)]) == [0.0]
    g = staged(lambda x: f[x, x * 3.0])
    assert values(g[ones(1)]) == [-2.0]


def test_a_staged_call_stays_a_call_in_the_ir() -> None:
    @staged
    def inner(x: Rep[F1]) -> Rep[F1]:
        return nk.tanh(x)

    @staged
    def outer(x: Rep[F1]) -> Rep[F1]:
        return inner(inner(x)) + inner[x * 2.0]

    text = outer.ir(spec((4,), f32))
    assert text.count("func @") == 2 and text.count("apply @inner") == 3
    assert text.count("tanh %") == 1
    two = staged(lambda x, y: inner(x).sum() + inner(y).sum())
    assert two.ir(spec((4,), f32), spec((5,), f32)).count("func @inner") == 2


def test_shared_expressions_are_computed_once() -> None:
    def doubled(x: Any) -> Any:
        for _ in range(40):
            x = x + x
        return x

    f = staged(doubled)
    assert f.ir(spec((1,), f64)).count("add %") == 40
    assert values(f(np.ones(1))) == [2.0**40]


# --------------------------------------------------------------------------------------------------- closures


def test_concrete_values_in_a_closure_are_constants_until_they_change() -> None:
    array = np.array([1.0, 2.0], np.float32)
    shared = np.array([5.0, 6.0], np.float32)
    tensor = Tensor1D(shared, copy=False)
    number = 3.0
    f = staged(lambda x: x * array + const(tensor) * number)
    before = values(f(ones(2)))
    array[:] = 100.0
    shared[:] = 100.0
    assert before == [16.0, 20.0] and values(f(ones(2))) == [400.0, 400.0]


def test_reps_of_an_enclosing_function_are_lifted() -> None:
    @staged
    def outer(x: Rep[F1], y: Rep[F1]) -> Rep[F1]:
        inner = staged(lambda z: z * y + x)
        return inner(x) + inner(y)

    assert values(outer(ones(1) * 2, ones(1) * 3)) == [2 * 3 + 2 + 3 * 3 + 2]
    text = outer.ir(spec((1,), f32), spec((1,), f32))
    assert text.count("func @") == 2 and text.count("apply @") == 2


def test_closures_nested_two_deep() -> None:
    @staged
    def outer(x: Rep[F1], y: Rep[F1]) -> Rep[F1]:
        @staged
        def middle(z: Rep[F1]) -> Rep[F1]:
            t = z + y

            @staged
            def inner(u: Rep[F1]) -> Rep[F1]:
                return u * x + t * z

            return inner(t) + inner(z)

        return middle(x * 2.0)

    x, y = 2.0, 3.0
    z = 2 * x
    t = z + y
    want = (t * x + t * z) + (z * x + t * z)
    assert values(outer(ones(1) * x, ones(1) * y)) == [want]
    dx, dy = nk.gradient(of=outer, wrt=(0, 1))(ones(1) * x, ones(1) * y)

    def plain(x: float, y: float) -> float:
        z = 2 * x
        t = z + y
        return (t * x + t * z) + (z * x + t * z)

    h = 1e-3
    assert values(dx)[0] == pytest.approx((plain(x + h, y) - plain(x - h, y)) / (2 * h), rel=1e-4)
    assert values(dy)[0] == pytest.approx((plain(x, y + h) - plain(x, y - h)) / (2 * h), rel=1e-4)


def test_a_captured_rep_gets_its_gradient_also_of_a_gradient() -> None:
    @staged
    def outer(x: Rep[F1], w: Rep[F1]) -> Rep[F1]:
        inner = staged(lambda z: z * z * w)
        return nk.gradient(of=inner, wrt=0)(x)  # 2 x w

    assert values(outer(ones(1) * 3, ones(1) * 5)) == [30.0]
    dx, dw = nk.gradient(of=outer, wrt=(0, 1))(ones(1) * 3, ones(1) * 5)
    assert (values(dx), values(dw)) == ([10.0], [6.0])

    @staged
    def seeded(x: Rep[F1], w: Rep[F1]) -> Rep[F1]:
        inner = staged(lambda z: z * z * w)
        return nk.gradient(of=inner, wrt=0, seedable=True)(x, w)  # 2 x w²

    assert values(seeded(ones(1) * 3, ones(1) * 5)) == [150.0]
    dx, dw = nk.gradient(of=seeded, wrt=(0, 1))(ones(1) * 3, ones(1) * 5)
    assert (values(dx), values(dw)) == ([50.0], [60.0])


def test_a_constant_rep_made_outside_is_a_constant_inside() -> None:
    c = const(np.array([4.0], np.float32)) * 2.0
    f = staged(lambda x: x * c)
    assert values(f(ones(1))) == [8.0]
    assert values(c.eval()) == [8.0]


# ------------------------------------------------------------------------------- functions as values, currying


def test_currying() -> None:
    @staged
    def subtract(x: Rep[F1]) -> Any:
        return staged(lambda y: x - y)

    assert values(subtract[ones(1) * 5][ones(1) * 2]) == [3.0]
    assert values(subtract(ones(1) * 5)(ones(1))) == [4.0]
    uses = staged(lambda x: subtract(x)(x * 3.0))
    assert values(uses(ones(1))) == [-2.0]
    assert values(nk.gradient(of=uses, wrt=0)(ones(1))) == [-2.0]
    three = staged(lambda x: staged(lambda y: staged(lambda z: x + y * z)))
    assert values(three[ones(1)][ones(1) * 2][ones(1) * 3]) == [7.0]


def test_functions_as_arguments() -> None:
    @staged
    def twice(f: Any, x: Any) -> Any:
        return f(f(x))

    double = staged(lambda x: x * 2.0)
    assert values(staged(lambda x: twice(double, x))(ones(1))) == [4.0]
    assert values(twice(double, const(ones(1))).eval()) == [4.0]
    composed = staged(lambda f, g: staged(lambda x: f(g(x))))
    assert values(composed(double, importable)(ones(1))) == [4.0]


def test_a_function_without_parameters() -> None:
    f = staged(lambda: const(ones(2)) * 2.0)
    assert isinstance(f(), Tensor1D)
    assert values(f()) == values(f()) == values(f.eval()) == [2.0, 2.0]
    g = staged(lambda x: x + f() + f())
    assert values(g(ones(2))) == [5.0, 5.0]
    assert f.ir().count("func @") == 1
    f.compile()
    assert values(staged(lambda x: x + f())(ones(2))) == [
        3.0,
        3.0,
    ]  # what is compiled is still staged


def test_calls_without_data_run_outside_of_staging_only() -> None:
    made: list[object] = []

    def two() -> Any:
        made.append(1)
        return const(ones(1)) * 2.0, const(ones(1))

    pair = staged(two)
    assert [values(one) for one in (*pair(), *pair())] == [[2.0], [1.0], [2.0], [1.0]]
    assert made == [1]
    assert values(staged(lambda: pair()[0] + f32(1.0))()) == [3.0]
    inside: list[Any] = []
    staged(lambda: inside.append(pair()) or pair())()
    assert isinstance(inside[0], Rep)


def test_functions_alone_as_arguments_run_too() -> None:
    double = staged(lambda x: x * 2.0)
    at_one = staged(lambda g: g(const(ones(1))))
    assert values(at_one(double)) == [2.0]
    assert values(staged(lambda x: x + at_one(double))(ones(1))) == [3.0]
    composed = staged(lambda f, g: staged(lambda x: f(g(x))))(double, double)
    assert values(composed(ones(1))) == [4.0]


def test_a_function_that_returns_one_without_parameters() -> None:
    later = staged(lambda x: lambda: x * 2.0)
    assert values(later(ones(1))()) == values(later(ones(1)).eval()) == [2.0]
    assert values(staged(lambda: lambda x: x * 2.0)()(ones(1))) == [2.0]
    assert values(staged(lambda x: later(x)() + 1.0)(ones(1))) == [3.0]


# ------------------------------------------------------------------------------------------ tuples and structs


def test_tuples_in_and_out() -> None:
    @staged
    def swap(pair: Rep[tuple[F1, F2]]) -> tuple[Rep[F2], Rep[F1]]:
        first, second = pair.unpack()
        assert len(pair) == 2
        return second * 2.0, first + pair[0] + pair[-2]

    second, first = swap((ones(2), ones(1, 1)))
    assert (values(second), values(first)) == ([[2.0]], [3.0, 3.0])
    for extent in (1, 2, 1, 2):  # also of arrays that must become tensors first
        swap((np.ones(2 * extent, np.float32)[::2], np.ones((extent, 1), ">f4")))
    Pair = namedtuple("Pair", ["first", "second"])
    assert values(swap(Pair(ones(2), ones(1, 1)))[0]) == [[2.0]]
    nested = staged(lambda x: (x, (x * 2.0, (x * 3.0,))))
    a, (b, (c,)) = nested(ones(1))
    assert (values(a), values(b), values(c)) == ([1.0], [2.0], [3.0])
    made = staged(lambda x: tup(x, x + 1.0, tup(x, x)).unpack()[2][1])
    assert values(made(ones(1))) == [1.0]
    looped = staged(lambda pair: sum((x for x in pair), const(np.float32(0))))
    assert values(looped((ones(1), ones(1)))) == [2.0]


def test_structs_in_and_out() -> None:
    @staged
    def step(p: Rep[Layer], x: Rep[F2]) -> tuple[Rep[Layer], Rep[F2]]:
        y = x @ p[Layer.w] + p[Layer.b]
        return p.set(Layer.b, p[Layer.b] * 2.0), y

    changed, y = step(layer(), ones(1, 2))
    assert type(changed) is Layer
    assert (values(changed.b), values(y)) == ([0, 2, 4], [[2, 3, 4]])
    assert values(changed.w) == values(layer().w)


def test_nested_structs_and_build() -> None:
    @staged
    def rebuild(n: Rep[Network]) -> Rep[Network]:
        inner = n[Network.first]
        made = build(Layer, Layer.b << inner[Layer.b] + 1.0, Layer.w << inner[Layer.w])
        again = n.set(Network.first, made)
        return build(
            Network, Network.scale << n[Network.scale] * 2.0, Network.first << again[Network.first]
        )

    found = rebuild(Network(layer(), f32(3.0)))
    assert type(found) is Network and type(found.first) is Layer
    assert (values(found.first.b), float(found.scale)) == ([1, 2, 3], 6.0)
    again = rebuild(found)
    assert float(again.scale) == 12.0
    text = rebuild.ir(found)
    assert "struct $Network" in text and "struct $Layer" in text


def test_fields_of_a_struct_of_several_bases() -> None:
    class Left(Struct):
        a: Field[Tensor1D[f32]]

    class Right(Struct):
        b: Field[Tensor1D[f32]]

    class Both(Left, Right):
        c: Field[Tensor1D[f32]]

    @staged
    def change(s: Any) -> Any:
        return s.set(Left.a, s[Right.b] + s[Both.c])

    given = {name: ones(1) * k for k, name in enumerate("abc", 1)}
    found = change(Both(**given))
    assert [values(getattr(found, name))[0] for name in "abc"] == [5.0, 2.0, 3.0]


def test_a_struct_without_fields_and_a_constant_struct() -> None:
    class Nothing(Struct):
        pass

    f = staged(lambda n, x: (n, x + 1.0))
    found, x = f(Nothing(), ones(1))
    assert type(found) is Nothing and values(x) == [2.0]
    held = layer()
    g = staged(lambda x: x * const(held)[Layer.b] + const((held.b, held.w))[0])
    assert values(g(ones(3))) == [0, 2, 4]
    assert type(const(held).eval()) is Layer


def test_eval() -> None:
    x = const(ones(2))
    assert values((x + 1.0).eval()) == [2.0, 2.0]
    pair = tup(x, x.sum()).eval()
    assert isinstance(pair, tuple) and float(pair[1]) == 2.0
    assert values(importable(x).eval()) == [2.0, 2.0]

    @staged
    def inside(y: Any) -> Any:
        assert values((const(ones(1)) + 1.0).eval()) == [2.0]
        return y

    inside(ones(1))


# -------------------------------------------------------------------------------------- what can be staged


class Model:
    """Holds a concrete weight; its methods are staged when bound."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def forward(self, x: Rep[F1], power: int = 2) -> Rep[F1]:
        return x**power * self.weight

    def __call__(self, x: Rep[F1]) -> Rep[F1]:
        return x * self.weight


def test_methods_partials_and_objects_that_can_be_called() -> None:
    assert values(staged(Model(3.0).forward)(ones(1) * 2)) == [12.0]
    assert values(staged(Model(4.0))(ones(1))) == [4.0]
    assert values(staged(functools.partial(Model(1.0).forward, power=3))(ones(1) * 2)) == [8.0]
    assert values(staged(functools.partial(lambda a, x: x * a, 5.0))(ones(1))) == [5.0]
    with pytest.raises(nk.RankError):
        staged(Model(1.0))(ones(1, 1))
    with pytest.raises(nk.RankError):
        staged(Model(1.0).forward)(ones(1, 1))


def test_annotations_as_text_and_of_local_classes() -> None:
    class Local(Struct):
        w: Field[Tensor1D[f64]]

    @staged
    def f(p: Rep[Local], x: Rep[Tensor1D[f64]]) -> Rep[Tensor1D[f64]]:
        return p[Local.w] * x

    assert values(f(Local(np.ones(1)), np.ones(1))) == [1.0]

    def deeper() -> Any:
        @staged
        def g(p: Rep[Local]) -> Rep[Tensor1D[f64]]:
            return p[Local.w]

        return g

    assert values(deeper()(Local(np.ones(1)))) == [1.0]
    with pytest.raises(nk.DTypeError):
        f(layer(), np.ones(1))


T = TypeVar("T", bound=nk.Float)
X = TypeVar("X")


def test_generic_annotations_leave_the_type_open() -> None:
    @staged
    def square(x: Rep[Tensor1D[T]]) -> Rep[Tensor1D[T]]:
        return x * x

    @staged
    def same(x: Rep[X]) -> Rep[X]:
        return x

    assert square(np.ones(1)).dtype is f64 and square(ones(1)).dtype is f32
    assert values(same(ones(1, 1))) == [[1.0]] and type(same(layer())) is Layer


def test_fn_declares_the_types_of_a_lambda() -> None:
    f = fn(F2, F1)(lambda x, y: x @ y)
    assert values(f(ones(2, 3), ones(3))) == [3.0, 3.0]
    with pytest.raises(nk.RankError, match="argument y of <lambda> must be a Tensor1D"):
        f(ones(2, 3), ones(3, 1))
    g = fn(Layer)(lambda p: p[Layer.b])
    assert values(g(layer())) == [0, 1, 2]
    h = fn(tuple[F1, F1])(lambda pair: pair[0] + pair[1])
    assert values(h((ones(1), ones(1)))) == [2.0]


def test_no_python_runs_in_a_call_of_compiled_code() -> None:
    function = staged(lambda x, k=1.0: x * k)
    function(np.ones(3))
    seen: list[str] = []
    data = np.ones(3)
    sys.setprofile(lambda frame, event, _: seen.append(event))
    try:
        function(data)
    finally:
        sys.setprofile(None)
    assert "call" not in seen


def test_signatures() -> None:
    """Of the user's function; of a function that was made of one, its data and its static parameters."""
    function = staged(lambda x, k=1.0: x * k)
    assert str(inspect.signature(function)) == "(x, k=1.0)"
    assert str(inspect.signature(nk.gradient(of=function, wrt=0))) == "(x, /, *, k=Ellipsis)"
