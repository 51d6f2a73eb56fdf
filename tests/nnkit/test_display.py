"""What values and functions show of themselves: `__doc__`, `dir`, `repr`, formats, notebooks, and words of misuse."""

from __future__ import annotations

import doctest
import re
import types
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import nnkit as nk
from nnkit import (
    DTypeError,
    Field,
    NNKitError,
    RankError,
    Rep,
    Scalar,
    ShapeError,
    StagingError,
    Struct,
    Tensor1D,
    Tensor2D,
    Tensor3D,
    f32,
    f64,
    i64,
)

M = Tensor2D[f32]


class P(Struct):
    w: Field[Tensor2D[f32]]
    layers: Field[list[Tensor1D[f32]]]


MATRIX = Tensor2D(np.arange(6, dtype=np.float32).reshape(2, 3))
STRUCT = P(MATRIX, [np.ones(20, np.float32)])


@nk.staged
def double(x: Rep[M]) -> Rep[M]:
    """Twice x.

    With a second line.
    """
    return x * 2.0


@nk.staged
def scaled(x: Rep[M], by: float = 2.0) -> Rep[Scalar[f32]]:
    """The sum of multiples."""
    return (x * by).sum()


def staged(function: Callable[..., Any], *given: Any) -> Any:
    """What `function` returns of Reps, besides what is staged."""
    seen: list[Any] = []

    def body(*reps: Any) -> Any:
        seen.append(function(*reps))
        return reps[0]

    names = [f"x{k}" for k in range(len(given))]
    stage = eval(f"lambda {', '.join(names)}: body({', '.join(names)})", {"body": body})
    nk.staged(stage).ir(*given)
    return seen[0]


def test_functions_have_the_docstring_of_the_user() -> None:
    assert double.__doc__ == "Twice x.\n\nWith a second line."
    assert scaled.__doc__ == "The sum of multiples."
    made = {
        "The gradient of scaled by x.\n\nThe sum of": (
            nk.gradient(of=scaled, wrt=0),
            nk.value_and_gradient(of=scaled, wrt=0),
        ),
        "scaled of a batch.": (nk.vmap(scaled),),
        "The gradient of scaled by x.": (nk.gradient(of=nk.gradient(of=scaled, wrt=0), wrt=0),),
    }
    for beginning, functions in made.items():
        for function in functions:
            assert beginning in (function.__doc__ or ""), function
    assert nk.fn(M)(lambda x: x).__doc__ is None
    assert "staged function" in (type(double).__doc__ or "")


def test_dir_shows_what_users_need() -> None:
    def public(names: list[str]) -> set[str]:
        return {name for name in names if name[0] != "_"}

    internal = {
        "expression",
        "spec",
        "lift",
        "is_function",
        "stageable",
        "declared",
        "replace_with",
    }
    assert public(dir(double)) >= {"ir", "llvm", "asm", "compile", "cache_size", "defjvp"}
    tensor, struct, pair = staged(lambda x, p: (dir(x), dir(p), dir(nk.tup(x, x))), MATRIX, STRUCT)
    assert public(tensor) >= {"sum", "shape", "T", "reshape", "at", "map"}
    for names in (dir(double), tensor, struct, pair, dir(MATRIX), dir(STRUCT)):
        assert not public(names) & internal
    assert not public(tensor) & {"ir", "compile", "unpack", "set"}
    assert public(struct) == {"eval", "set"} and public(pair) >= {"unpack"}
    assert public(dir(MATRIX)) >= {"numpy", "item", "tolist", "shape"}
    assert public(dir(STRUCT)) == {"w", "layers", "replace"}


def test_a_rep_prints_with_the_shape_of_the_call_at_hand() -> None:
    shown: list[str] = []

    def note(value: Any) -> Any:
        shown.append(value if isinstance(value, str) else repr(value))
        return value

    @nk.staged
    def inner(y: Any) -> Any:
        note((y + 1).sum(axis=0).shape)
        return note(y) * 2

    @nk.staged
    def outer(x: Any, p: Any) -> Any:
        for value in (x, str(x.sum(axis=0)), f"{x.sum()}", p, nk.const(MATRIX), x.shape):
            note(value)
        for value in (x.T.reshape(-1).shape, (x.T @ x).shape[0] * 2):
            note(value)
        nk.cond(x.sum() > 0, lambda: note(x[0]), lambda: x[0])
        nk.fori(0, 2, lambda i, c: note(c * x[0]), x[0])
        x.map(lambda row: note(row * 2))
        slope = nk.gradient(of=nk.staged(lambda y: note((y * y).sum(axis=0)).sum()), wrt=0)
        return note(inner(x.T)).sum() + slope(x.T).sum()

    of = "<Rep of Tensor{}D[f32] of shape {}>".format
    inside = [of(1, (3,)), of(1, (3,)), of(1, (3,)), of(1, (2,)), "(2,)", of(2, (3, 2))]
    expected = [of(2, (2, 3)), of(1, (3,)), "<Rep of Tensor0D[f32]>", "<Rep of P>", of(2, (2, 3))]
    outer(MATRIX, STRUCT)
    assert sorted(shown) == sorted(
        [*expected, "(x.shape[0], x.shape[1])", "(6,)", "6", *inside, of(2, (3, 2))]
    )
    shown.clear()
    outer.compile(MATRIX, STRUCT)
    assert not shown  # one trace serves all


def test_a_rep_prints_without_a_call() -> None:
    kept: list[Any] = []
    nk.staged(lambda x: kept.extend([x, x * 2]) or x)(MATRIX)
    assert [repr(one) for one in kept] == [
        "<Rep of Tensor2D[f32] of shape (x.shape[0], x.shape[1])>",
        "<Rep of Tensor2D[f32] of shape (…, …)>",
    ]


def test_examples_of_staged_functions_are_found() -> None:
    """By doctest, which asks for the module that a function is of."""
    module = types.ModuleType("of_a_user")
    exec(DOCUMENTED, vars(module))
    (found,) = [one for one in doctest.DocTestFinder().find(module) if one.examples]
    assert found.name == "of_a_user.double" and vars(module)["double"].__module__ == "of_a_user"
    assert doctest.DocTestRunner(verbose=False).run(found) == (0, 1)
    assert nk.callables.StagedFunction.__module__ == "nnkit.callables"  # type: ignore[attr-defined]


DOCUMENTED = '''
import nnkit as nk
from nnkit import Rep, Tensor1D, f32
@nk.staged
def double(x: Rep[Tensor1D[f32]]) -> Rep[Tensor1D[f32]]:
    """Twice x.

    >>> double(Tensor1D([1.0], f32))
    Tensor1D([2.], f32)
    """
    return x * 2
'''


def test_what_transforms_make_shows_itself() -> None:
    assert repr(nk.linearize(double)(MATRIX)[1]).startswith("<linear map of tangents")
    assert repr(nk.split(double)) == "<halves of the gradient of <staged function double(x)>>"


MISUSE: list[tuple[Callable[[Any, Any], Any], type[Exception], str]] = [
    (lambda x, p: f"{x.sum():.3f}", StagingError, r"no digits for '\.3f'.*`nk\.print"),
    (lambda x, p: np.exp(x), StagingError, r"np\.exp needs a value.*`nk\.exp\(x\)`"),
    (lambda x, p: np.sum(x), StagingError, r"np\.sum needs a value.*`x\.sum\(\.\.\.\)`"),
    (lambda x, p: np.mean(x, axis=0), StagingError, r"`x\.mean\(\.\.\.\)`"),
    (lambda x, p: np.absolute(x), StagingError, r"np\.absolute needs.*`nk\.abs\(x\)`"),
    (lambda x, p: np.concatenate([x, x]), StagingError, r"`nk\.concat\(x\)`"),
    (lambda x, p: np.linalg.norm(x), StagingError, r"np\.linalg\.norm needs.*`nk\.norm\(x\)`"),
    (lambda x, p: np.fft.fft(x), StagingError, r"np\.fft\.fft needs.*keep computing with Reps"),
    (lambda x, p: np.array(x), StagingError, "a NumPy function needs a value"),
    (lambda x, p: float(x.sum()), StagingError, r"float\(\) needs a value"),
    (lambda x, p: 1 if x.sum() > 0 else 2, StagingError, "no truth value.*cond"),
    (lambda x, p: x.size(0), StagingError, r"a size is a number, not a function.*`x\.shape\[0\]`"),
    (lambda x, p: p.w, AttributeError, r"`p\[P\.w\]` for p\.w"),
    (lambda x, p: p.layers, AttributeError, r"`p\[P\.layers\]`"),
    (lambda x, p: nk.cond(x.sum() > 0, lambda: x, lambda: x.sum()), RankError, "branches of cond.*`select"),
    (lambda x, p: nk.cond(x.sum() > 0, lambda: x, lambda: (x, x)), NNKitError, "branches of cond.*`select"),
    (lambda x, p: nk.cond(x > 0, lambda: x, lambda: x), RankError, "boolean scalar.*`select"),
    (lambda x, p: nk.cond(x.sum() > 0, lambda: x), StagingError, "without 'orelse'.*what is around them; `select"),
    (lambda x, p: nk.cond(x.sum() > 0, lambda y: y, lambda y: -y, x), StagingError, "not 4.*both by pos.*`select"),
    (lambda x, p: nk.cond(x.sum() > 0, abs, abs, operands=(x,)), StagingError, "no argument 'operands'.*`select"),
    (lambda x, p: nk.cond(x.sum() > 0, true_fun=lambda: x, false_fun=lambda: x), StagingError,
     "no argument 'true_fun'.*both by position, .*`select"),
    (lambda x, p: nk.cond(pred=x.sum() > 0, then=lambda: x, orelse=lambda: x), StagingError, "'pred'.*by position"),
    (lambda x, p: nk.cond(x.sum() > 0, x, -x), StagingError, "must be a function.*`lambda: value`; `select"),
    (lambda x, p: nk.cond(x.sum() > 0, lambda y: y, lambda: x), StagingError, "no arguments.*values around it"),
    (lambda x, p: nk.random.normal((3,)), DTypeError, r"from a key, and \(3,\) is none.*`key = nk\.random\.key"),
    (lambda x, p: nk.random.randint((3,), 0, 1, 9), DTypeError, r"from a key, and \(3,\).*nk\.random\.key\(0\)`"),
    (lambda x, p: nk.random.split(7), DTypeError, r"a key, and 7 is none.*`key = nk\.random\.key\(0\)`"),
    (lambda x, p: x - [1, 2], DTypeError, r"a list is no operand.*`Tensor1D\(\[\.\.\.\], f32\)`"),
    (lambda x, p: [1, 2] @ x, DTypeError, "a list is no operand"),
    (lambda x, p: divmod(x, 2.0), DTypeError, r"integer elements.*`nk\.floor\(x / y\)`"),
    (lambda x, p: x * np.prod((3, 4)), DTypeError, r"f32 and i64 differ.*`int\(n\)`; .*`math\.prod"),
    (lambda x, p: MATRIX - [1, 2], DTypeError, r"a list is no operand.*`Tensor1D\(\[\.\.\.\], f32\)`"),
    (lambda x, p: divmod(MATRIX, 2.0), DTypeError, r"integer elements.*`np\.floor\(x / y\)`"),
    (lambda x, p: MATRIX[1.0], DTypeError, "a subscript is an int, .*not 1.0"),
    (lambda x, p: MATRIX[0, "a"], DTypeError, "a subscript is an int, .*not 'a'"),
    (lambda x, p: float(cast("Any", MATRIX)), RankError, r"float\(\).* not a tensor of shape \[2, 3\].*`x\[0\]`"),
    (lambda x, p: int(cast("Any", MATRIX)), RankError, r"int\(\) takes a scalar.*`x\.tolist\(\)`"),
    (lambda x, p: complex(cast("Any", MATRIX)), RankError, r"complex\(\) takes a scalar"),
    (lambda x, p: round(cast("Any", MATRIX), 1), RankError, r"round\(\) takes a scalar.*`np\.round\(x, 1\)`"),
    (lambda x, p: nk.cond(x.sum() > 0, lambda: x, lambda: x.cast(f64)), DTypeError, "cond.*`select"),
    (lambda x, p: nk.fori(0, 3, lambda i, c: c.sum(), x), RankError, "keeps its shape: .*by `scan`"),
    (lambda x, p: nk.while_loop(lambda c: c.sum() < 9, lambda c: c.cast(f64), x), DTypeError, r"`\.cast\(dtype\)`"),
    (lambda x, p: nk.fori(0, 3.0, lambda i, c: c, x), DTypeError, r"not 3\.0.*`int\(3\.0\)`"),
    (lambda x, p: nk.fori(0, x.sum(), lambda i, c: c, x), DTypeError, r"not a Tensor0D\[f32\].*`n\.cast\(i32\)`"),
    (lambda x, p: x.map(lambda row, i: row), StagingError, r"one element: `lambda x.*`nk\.zip_with\(x, nk\.arange"),
    (lambda x, p: x[0].sum(axis=2), RankError, "axis 2 does not exist: the tensor has rank 1.*is 0, or -1"),
    (lambda x, p: x.sum(axis=2), RankError, "axis 2 .*axes are 0 to 1, or from the end -1 to -2"),
    (lambda x, p: nk.broadcast_to(x, (-3,)), ShapeError, r"at least 0, not -3.*`x\.shape\[k\]` keeps"),
    (lambda x, p: nk.zeros((-3,)), ShapeError, r"zeros takes numbers of at least 0, not -3.*`max\(n, 0\)`"),
    (lambda x, p: STRUCT + np.ones(3), DTypeError, "cannot add a P and a tensor of shape .*a struct of the same class"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "error", "message"), MISUSE)
def test_misuse_names_the_remedy(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        staged(make, MATRIX, STRUCT)
    text = " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert re.search(message, text.replace("\n", " ")), text


def test_shapes_that_differ_at_a_call_have_remedies_too() -> None:
    for function, message, help in (
        (lambda x: nk.cond(x.sum() > 0, lambda: x, lambda: x[:1]), r"f32\[2, 3\] and f32\[1, 3\]", "`select"),
        (lambda x: nk.fori(0, 2, lambda i, c: c[:1], x), r"carries f32\[2, 3\]", "keeps its shape"),
        (lambda x: nk.zeros((x.shape[0] - 5,)), "zeros takes numbers of at least 0, not -3", r"`max\(n, 0\)`"),
    ):  # fmt: skip
        made: Any = nk.fn(M)(function)
        with pytest.raises(ShapeError, match=message) as caught:
            made(MATRIX)
        assert re.search(help, " ".join(caught.value.__notes__))


def test_sizes_are_numbers_where_a_function_is_traced_for_shapes() -> None:
    shown: list[str] = []

    @nk.staged
    def f(x: Rep[M]) -> Rep[M]:
        n = x.shape[0]
        shown.append(f"{x.shape} {n} {n!s} {n + 1!r}")
        return x if len(shown) < 2 or n > 0 else -x

    f(MATRIX)
    assert shown == ["(x.shape[0], x.shape[1]) x.shape[0] x.shape[0] x.shape[0] + 1"]
    f.clear_cache()
    f(MATRIX)
    f(nk.Tensor2D(np.ones((5, 1), np.float32)))
    assert shown[2:] == ["(2, 3) 2 2 3", "(5, 1) 5 5 6"]


def test_calls_with_other_arguments_name_them() -> None:
    two: Any = nk.fn(M, M)(lambda x, y: x + y)
    any_double: Any = double
    for call, message in (
        (lambda: any_double(MATRIX, True), "takes 1 argument (x), not 2: there is no parameter for True"),
        (lambda: any_double(MATRIX, MATRIX), "there is no parameter for a Tensor2D"),
        (lambda: nk.gradient(of=scaled, wrt=0)(MATRIX, 3.0), "there is no parameter for 3.0"),
        (lambda: nk.vmap(scaled)(np.ones((2, 2, 2), np.float32), 3.0), "there is no parameter for 3.0"),
        (lambda: two(MATRIX), "takes 2 arguments (x, y), not 1: there is none for y"),
    ):  # fmt: skip
        with pytest.raises(StagingError, match=re.escape(message)) as caught:
            call()
        assert "3.0" not in message or "go by name, `by=3.0`" in caught.value.__notes__[-1]


def test_notebooks() -> None:
    def html(value: Any) -> str:
        text: str = value._repr_html_()
        return text

    assert "Tensor2D[f32] of shape [2, 3]" in html(MATRIX) and "<td>5</td>" in html(MATRIX)
    large = Tensor3D(np.arange(4 * 30 * 40).reshape(4, 30, 40))
    assert "[0]<table>" in html(large) and "… 30 more" in html(large) and "… 20 more" in html(large)
    assert html(large).count("<tr>") == 11 and "<td>0.5</td>" in html(f32(0.5))
    assert "<table>" not in html(Tensor1D(np.zeros(0, np.int64), i64))
    assert "<th>layers</th><td><code>(f32[20],)</code></td>" in html(STRUCT)
    for text in (double.ir(MATRIX), double.ir(MATRIX, stage="schedule"), double.llvm(MATRIX)):
        assert isinstance(text, str) and html(text).startswith("<pre>")
        assert "&lt;" in html(text) or "<" not in text


def test_sizes_have_the_operators_of_integers_and_tensors_divmod() -> None:
    def compute(n: Any) -> list[Any]:
        bits = [n << 1, 1 << n, n >> 1, 900 >> n, n ^ 3, 3 ^ n, n | 4, 4 | n, n & 3, 7 & n, ~n, -n]
        return [*bits, *divmod(n, 2), *divmod(7, n), (n > 1) & (n < 3), (n > 1) ^ (n < 5)]

    def sizes(x: Any) -> Any:
        return tuple(nk.const(i64(0)) + 1 * one for one in compute(x.shape[1]))

    assert [int(one) for one in nk.fn(M)(sizes)(MATRIX)] == compute(3)

    def quotients(x: Any, y: Any) -> Any:
        return (*divmod(x, 3), *divmod(7, y))

    given = Tensor1D(np.array([-7, 7, 0])), Tensor1D(np.array([2, -2]))
    want = [one.tolist() for one in quotients(*map(np.asarray, given))]
    for found in (quotients(*given), nk.fn(*[Tensor1D[i64]] * 2)(quotients)(*given)):
        assert [one.tolist() for one in found] == want
    none: Any = nk.fn(M)(lambda x: nk.fori(0, 3, lambda i, c: c + x, init=x)[[]])
    assert none(MATRIX).shape == (0, 3)
