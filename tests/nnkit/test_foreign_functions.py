"""C functions and functions of Python in staged functions, with derivatives by rules, compiled and evaluated."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, bf16, f32, f64, i32

Float = Scalar[f64]
Vector = Tensor1D[f64]
X = np.arange(3.0)

SOURCE = """
#include <stdint.h>
int32_t scale(const double *x, const double *s, double *y) {
    for (int i = 0; i < 3; i++) y[i] = x[i] * *s;
    return *s > 100 ? 7 : 0;
}
int32_t divide(const int64_t *a, const int64_t *b, int64_t *q, int64_t *r) {
    if (!*b) return 1;
    *q = *a / *b; *r = *a % *b;
    return 0;
}
"""


@nk.staged
def product(x: Rep[Vector], s: Rep[Float]) -> Rep[Vector]:
    return x * s


def rule(x: Rep[Vector], s: Rep[Float], ct: Rep[Vector]) -> tuple[Rep[Vector], Rep[Float]]:
    return ct * s, (ct * x).sum()


def in_python(x: Any, s: Any) -> Any:
    return x * s


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("foreign")
    (folder / "outside.c").write_text(SOURCE)
    path = folder / "outside.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", str(path), str(folder / "outside.c")], check=True
    )
    return ctypes.CDLL(str(path))


@pytest.fixture(params=["C", "Python"])
def makers(request: pytest.FixtureRequest, library: ctypes.CDLL) -> Callable[..., Any]:
    """How to make the product, written elsewhere."""
    if request.param == "Python":
        return lambda **rules: nk.callback(in_python, product, **rules)
    return lambda **rules: nk.foreign(library.scale, product, **rules)


def program(scale: Any) -> Any:
    @nk.staged
    def f(x: Rep[Vector], s: Rep[Float]) -> Rep[Float]:
        def body(i: Rep[Scalar[i32]], t: Rep[Float]) -> Rep[Float]:
            return nk.cond(t > 0.0, lambda: nk.sin(scale(x, t)).sum() * s, lambda: t)

        return nk.fori(0, 2, body, s)

    return f


def test_it_is_called_wherever_it_stands(makers: Callable[..., Any]) -> None:
    scale, own = makers(), program(product)
    f = program(scale)
    assert np.asarray(scale(X, f64(3.0))).tolist() == [0.0, 3.0, 6.0]
    want = float(own(X, f64(1.5)))
    assert float(f(X, f64(1.5))) == pytest.approx(want, rel=1e-15)
    with nk.debug_nans():
        assert float(f(X, f64(1.5))) == pytest.approx(want, rel=1e-15)
    assert "[extern]" in f.ir(X, f64(1.5))
    batched = nk.vmap(scale, in_axes=(None, 0))
    want_rows = np.asarray([1.0, 2.0])[:, None] * X
    assert np.asarray(batched(X, np.array([1.0, 2.0]))).tolist() == want_rows.tolist()


def test_its_derivatives_are_by_the_rule(makers: Callable[..., Any]) -> None:
    """In both modes, of first and second order, as those of the same function of ours."""
    f, own = program(makers(vjp=rule)), program(product)
    at = (X, f64(0.5))
    for derivative, more in [
        (lambda of: nk.gradient(of=of, wrt=(0, 1)), ()),
        (lambda of: nk.jvp(of=of, wrt=0), (np.array([1.0, -1.0, 0.5]),)),
        (lambda of: nk.hessian(of=of, wrt=0), ()),
        (lambda of: nk.gradient(of=nk.gradient(of=of, wrt=1), wrt=0), ()),
    ]:
        found, wanted = derivative(f)(*at, *more), derivative(own)(*at, *more)
        pairs = (found, wanted) if isinstance(found, tuple) else ((found,), (wanted,))
        for one, other in zip(*pairs, strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-12, atol=1e-14)
    slope = nk.gradient(of=makers(vjp=rule), wrt=1)(*at)
    assert float(slope) == pytest.approx(3.0)


def test_without_a_rule_the_line_of_the_call_is_named(makers: Callable[..., Any]) -> None:
    f = program(makers())
    for derivative, more in (
        (nk.gradient(of=f, wrt=0), ()),
        (nk.jvp(of=f, wrt=0), (X,)),
        (nk.gradient(of=makers(), wrt=0), ()),
    ):
        with pytest.raises(
            nk.DifferentiationError, match="is a foreign function, which has no deriv"
        ) as raised:
            derivative(X, f64(1.0), *more)
    with pytest.raises(nk.DifferentiationError) as raised:
        nk.gradient(of=f, wrt=0)(X, f64(1.0))
    told = "\n".join([str(raised.value), *raised.value.__notes__])
    assert "test_foreign_functions.py:" in told and "scale(x, t)" in told
    stopped = nk.fn(Vector, Float)(
        lambda x, s: (makers()(nk.stop_gradient(x), nk.stop_gradient(s)) * x).sum()
    )
    assert np.asarray(nk.gradient(of=stopped, wrt=0)(X, f64(2.0))).tolist() == [0.0, 2.0, 4.0]


def test_codes_are_errors(library: ctypes.CDLL) -> None:
    scale = nk.foreign(library.scale, product)
    with pytest.raises(nk.TrapError, match="the extern function @scale failed with the code 7"):
        scale(X, f64(200.0))
    with nk.debug_nans(), pytest.raises(nk.TrapError, match="@scale failed with the code 7"):
        scale(X, f64(200.0))


def test_several_results_by_address(library: ctypes.CDLL) -> None:
    Int = Scalar[nk.i64]

    @nk.staged
    def like(a: Rep[Int], b: Rep[Int]) -> tuple[Rep[Int], Rep[Int]]:
        return a, b

    address = ctypes.cast(library.divide, ctypes.c_void_p).value
    divide = nk.foreign(address, like)
    assert [int(x) for x in divide(nk.i64(17), nk.i64(5))] == [3, 2]
    both = nk.callback(lambda a, b: (a // b, a % b), like)
    assert [int(x) for x in both(nk.i64(17), nk.i64(5))] == [3, 2]


def test_shapes_are_those_of_the_signature() -> None:
    @nk.staged
    def like(x: Rep[Tensor2D[bf16]]) -> Rep[Tensor1D[bf16]]:
        return x.sum(axis=0)

    seen: list[tuple[int, ...]] = []

    def columns(x: Any) -> Any:
        seen.append(x.shape)
        return x.sum(axis=0)

    f = nk.callback(columns, like)
    for shape in ((2, 3), (4, 1)):
        found = f(nk.Tensor2D(np.ones(shape).tolist(), bf16))
        assert np.asarray(found).tolist() == [float(shape[0])] * shape[1] and found.dtype is bf16
    assert seen == [(2, 3), (4, 1)]


def test_what_python_raises_comes_out_of_the_call() -> None:
    def fail(x: Any, s: Any) -> Any:
        raise KeyError("no such row")

    f = program(nk.callback(fail, product))
    for _ in range(2):
        with pytest.raises(KeyError, match="no such row"):
            f(X, f64(1.0))
    with nk.debug_nans(), pytest.raises(KeyError, match="no such row"):
        f(X, f64(1.0))


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (np.zeros(4), nk.ShapeError, "returned an array of shape [4] for a f64[3]"),
        (np.zeros(3, np.float32), nk.DTypeError, "returned an array of float32 for a f64[3]"),
        ((np.zeros(3), 1.0), nk.ShapeError, "shape"),
    ],
)
def test_what_python_returns_is_checked(
    returned: Any, error: type[Exception], message: str
) -> None:
    f = nk.callback(lambda x, s: returned, product)
    with pytest.raises((error, ValueError), match=re.escape(message)):
        f(X, f64(1.0))


def test_bad_functions() -> None:
    with pytest.raises(
        nk.StagingError, match="no library of this process has a function 'isNowhere'"
    ):
        nk.foreign("isNowhere", product)
    with pytest.raises(nk.StagingError, match="takes a function of ctypes, an address or a name"):
        nk.foreign(print, product)
    with pytest.raises(nk.StagingError, match="callback takes a function of Python, not a int"):
        nk.callback(3, product)  # type: ignore[arg-type]
    with pytest.raises(nk.StagingError, match="foreign takes a staged function"):
        nk.foreign("abs", in_python)  # type: ignore[arg-type]


def test_a_program_is_called_by_what_it_calls() -> None:
    """Each call has memory of its own, also where the call is one inside of another, from 16 threads at once."""

    def again(x: Any) -> Any:
        return np.asarray(deep(Tensor1D(x + np.float32(1.0)))) if x[0] < 3 else x

    @nk.staged
    def like(x: Rep[Tensor1D[f32]]) -> Rep[Tensor1D[f32]]:
        return x

    inner = nk.callback(again, like)

    @nk.staged
    def deep(x: Rep[Tensor1D[f32]]) -> Rep[Tensor1D[f32]]:
        y = nk.cumsum(nk.sin(x))  # in memory of the call, and read after the inner one
        return inner(x) + nk.cumsum(y)

    def expected(x: Any) -> Any:
        rest = expected(x + 1.0) if x[0] < 3 else x
        return rest + np.cumsum(np.cumsum(np.sin(x)))

    def is_right(start: int) -> bool:
        x = np.full(500, start / 8, np.float32)
        wanted = expected(x.astype(np.float64))
        return np.allclose(np.asarray(deep(x)), wanted, rtol=1e-3)

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(is_right, range(16)))
