"""`check` and `print` inside staged functions: done once and in order, in compiled code and in derivatives."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, bf16, f16, f64, i32
from nnkit.core.evaluate import evaluate
from nnkit.core.text import parse_module

pytestmark = pytest.mark.usefixtures("unoptimized_code")

Float = Scalar[f64]
Vector = Tensor1D[f64]


class Params(Struct):
    w: Field[Vector]
    b: Field[Float]


@nk.staged
def noisy(x: Rep[Float]) -> Rep[Float]:
    nk.print("noisy", x)
    nk.check(x < 100.0, "x is too large")
    return nk.sin(x) * x


@nk.staged
def by_cond(x: Rep[Float]) -> Rep[Float]:
    def then() -> Rep[Float]:
        nk.print("positive")
        return noisy(x)

    def otherwise() -> Rep[Float]:
        nk.print("negative")
        nk.check(x > -10.0, "x is below -10")
        return x * x

    return nk.cond(x > 0.0, then, otherwise)


@nk.staged
def by_fori(x: Rep[Float]) -> Rep[Float]:
    def body(i: Rep[Scalar[i32]], s: Rep[Float]) -> Rep[Float]:
        nk.print("i", i)
        return noisy(s)

    return nk.fori(0, 2, body, x)


@nk.staged
def by_while(x: Rep[Float]) -> Rep[Float]:
    def body(s: Rep[Float]) -> Rep[Float]:
        nk.check(s > 0.0, "s is not positive")
        nk.print("s", s)
        return s * 2.0

    return nk.while_loop(lambda s: s < 10.0, body, x)


@nk.staged
def by_map(x: Rep[Float]) -> Rep[Float]:
    return nk.stack([x, x + 1.0]).map(noisy).sum()


@nk.staged
def by_scan(x: Rep[Float]) -> Rep[Float]:
    def step(s: Rep[Float], v: Rep[Float]) -> tuple[Rep[Float], Rep[Float]]:
        nk.print("v", v)
        return s * v, noisy(s)

    _, ys = nk.stack([x, x + 1.0]).scan(x, step)
    return ys.tensor().sum()


@nk.staged
def by_recursion(x: Rep[Float]) -> Rep[Float]:
    def deeper() -> Rep[Float]:
        nk.print("deeper", x)
        return x * by_recursion(x - 1.0)

    return nk.cond(x > 0.0, deeper, lambda: x * x)


checkpointed = nk.checkpoint(by_fori)


@nk.staged
def by_checkpoint(x: Rep[Float]) -> Rep[Float]:
    return checkpointed(x) * 2.0


def _with_schedule(schedule: Any) -> Any:
    @nk.staged
    def scheduled(x: Rep[Float]) -> Rep[Float]:
        def body(i: Rep[Scalar[i32]], s: Rep[Float]) -> Rep[Float]:
            nk.print("i", i)
            return noisy(s)

        return nk.fori(0, 6, body, x, checkpoint=schedule)

    return scheduled


by_squares, by_slots = _with_schedule(nk.every_sqrt()), _with_schedule(nk.binomial(3))


@nk.staged
def unused(x: Rep[Float]) -> Rep[Float]:
    noisy(x)
    nk.fori(0, 2, lambda i, s: noisy(s), x)
    nk.print("last")
    return x


PROGRAMS = [
    (noisy, 2.0), (by_cond, 2.0), (by_cond, -2.0), (by_fori, 2.0), (by_while, 2.0), (by_map, 2.0),
    (by_scan, 2.0), (by_recursion, 2.5), (by_checkpoint, 2.0), (unused, 2.0),
    (by_squares, 2.0), (by_slots, 2.0),
]  # fmt: skip


def written(capsys: pytest.CaptureFixture[str], run: Callable[[], object]) -> str:
    capsys.readouterr()
    run()
    return capsys.readouterr().out


@pytest.mark.parametrize(("f", "x"), PROGRAMS, ids=lambda one: getattr(one, "__name__", str(one)))
def test_derivatives_do_it_once_and_in_order(
    capsys: pytest.CaptureFixture[str], f: Any, x: float
) -> None:
    """The evaluator, forward and reverse mode, and derivatives of derivatives write what the function writes."""
    at = f64(x)
    once = written(capsys, lambda: f(at))
    assert once
    gradient = nk.gradient(of=f, wrt=0)
    second = nk.gradient(of=gradient, wrt=0)
    pushed = nk.jvp(of=f)
    hvp = nk.hvp(of=f)
    third = nk.gradient(of=hvp, wrt=0)
    for run in (
        lambda: evaluate(parse_module(f.ir(at, stage="raw")), f.__name__, x),
        lambda: gradient(at),
        lambda: pushed(at, at),
        lambda: second(at),
        lambda: hvp(at, at),
        lambda: third(at, at),
        lambda: nk.value_and_gradient(of=f, wrt=0)(at),
    ):
        assert written(capsys, run) == once
    value, tangent = pushed(at, f64(1.0))
    assert float(gradient(at)) == pytest.approx(float(tangent), rel=1e-12, abs=1e-12)
    step = 1e-6
    slope = (float(f(f64(x + step))) - float(f(f64(x - step)))) / (2 * step)
    assert float(tangent) == pytest.approx(slope, rel=1e-6, abs=1e-6)
    assert float(value) == float(f(at))


@pytest.mark.parametrize(
    ("f", "x", "message"),
    [
        (noisy, 200.0, "x is too large"),
        (by_cond, -20.0, "x is below -10"),
        (by_fori, 200.0, "x is too large"),
        (by_while, -1.0, "s is not positive"),
        (by_map, 99.5, "x is too large"),
        (by_scan, 99.5, "x is too large"),
        (by_checkpoint, 200.0, "x is too large"),
        (unused, 200.0, "x is too large"),
    ],
    ids=lambda one: getattr(one, "__name__", str(one)),
)
def test_a_check_that_fails_says_so_with_the_users_line(f: Any, x: float, message: str) -> None:
    at = f64(x)
    for run in (
        lambda: f(at),
        lambda: nk.gradient(of=f, wrt=0)(at),
        lambda: nk.jvp(of=f)(at, at),
        lambda: evaluate(parse_module(f.ir(at, stage="raw")), f.__name__, x),
    ):
        with pytest.raises(nk.CheckError, match=f"^{re.escape(message)}") as raised:
            run()
        assert isinstance(raised.value, AssertionError)
    with pytest.raises(nk.CheckError, match=r"test_effects.py:\d+  nk.check\(") as raised:
        f(at)
    assert f'"{message}"' in str(raised.value)


def test_what_is_printed_before_a_check_fails_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(nk.CheckError):
        nk.gradient(of=noisy, wrt=0)(f64(200.0))
    assert capsys.readouterr().out == "noisy 200.0\n"


def test_values_of_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    @nk.staged
    def f(p: Rep[Params], h: Rep[Tensor1D[bf16]], g: Rep[Tensor2D[f16]]) -> Rep[Float]:
        nk.print(p, nk.tup(p[Params.b], h), g, p[Params.w] > 0.0, {"a": 1}, sep=" | ", end=";\n")
        nk.print(h[:0])
        nk.print()
        return p[Params.b]

    p = Params(w=nk.Tensor1D(np.array([1.5, -2.0])), b=f64(0.1))
    h = nk.Tensor1D([1.5, 2.0], bf16)
    f(p, h, nk.Tensor2D(np.eye(2, dtype=np.float16)))
    assert capsys.readouterr().out == (
        "Params(w=[ 1.5 -2. ], b=0.1) | (0.1, [1.5 2. ]) | [[1. 0.]\n [0. 1.]] | [ True False] | {'a': 1};\n[]\n\n"
    )


def test_sizes_are_those_of_the_call(capsys: pytest.CaptureFixture[str]) -> None:
    @nk.staged
    def f(x: Rep[Tensor2D[f16]]) -> Rep[Tensor2D[f16]]:
        n, m = x.shape
        nk.print(x.shape, n * m, n / m, n > m, x.shape[1:])
        return x

    for shape in ((4, 2), (1, 2)):
        f(nk.Tensor2D(np.ones(shape, np.float16)))
    assert capsys.readouterr().out == "(4, 2) 8 2.0 True (2,)\n(1, 2) 2 0.5 False (2,)\n"


def test_outside_of_staged_functions(capsys: pytest.CaptureFixture[str]) -> None:
    nk.print("a", 1, sep="-")
    assert capsys.readouterr().out == "a-1\n"
    nk.check(True, "fine")
    with pytest.raises(nk.CheckError, match="never"):
        nk.check(1 > 2, "never")
    with pytest.raises(nk.StagingError, match="print of a Rep stands in a staged function"):
        nk.print(nk.const(f64(1.0)))


def test_wrong_checks() -> None:
    def stage(check: Callable[[Any], None]) -> None:
        @nk.staged
        def f(x: Rep[Vector]) -> Rep[Vector]:
            check(x)
            return x

        f(np.ones(2))

    with pytest.raises(nk.DTypeError, match="check decides by a boolean scalar, not by a Tensor1D"):
        stage(lambda x: nk.check(x, "m"))
    with pytest.raises(nk.RankError, match="check decides by a boolean scalar") as raised:
        stage(lambda x: nk.check(x > 0.0, "m"))
    assert "reduce it, `.all()` or `.any()`" in raised.value.__notes__[0]
    with pytest.raises(nk.StagingError, match="check takes a message, a str, not a int"):
        stage(lambda x: nk.check(x.sum() > 0.0, 3))  # type: ignore[arg-type]


def test_an_exception_of_the_stream_comes_out_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed:
        def write(self, text: str) -> int:
            raise BrokenPipeError(text)

    noisy(f64(1.0))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Closed())
        with pytest.raises(BrokenPipeError, match=r"noisy 1\.0"):
            noisy(f64(1.0))
    assert float(noisy(f64(0.0))) == 0.0


def test_threads_write_whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread's lines are in its order, and none is lost, also from code so long that it gives up the GIL."""
    lines: list[str] = []

    class Stream:
        def write(self, text: str) -> int:
            lines.append(text)
            return len(text)

    @nk.staged
    def count(x: Rep[Float], n: Rep[Scalar[i32]]) -> Rep[Float]:
        def body(i: Rep[Scalar[i32]], s: Rep[Float]) -> Rep[Float]:
            nk.print("x", x, "i", i)
            return nk.fori(0, 3000, lambda j, t: nk.sin(t) + s, s)

        return nk.fori(0, n, body, x)

    count(f64(0.0), i32(0))
    monkeypatch.setattr(sys, "stdout", Stream())
    threads = [threading.Thread(target=count, args=(f64(float(k)), i32(200))) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    monkeypatch.undo()
    for k in range(4):
        mine = [line for line in lines if line.startswith(f"x {k}.0 ")]
        assert mine == [f"x {k}.0 i {i}\n" for i in range(200)]
    assert len(lines) == 800


def test_what_cannot_run_again_and_has_no_size_fits_into_no_budget() -> None:
    """A tape: a number of bytes would not be true of it."""

    @nk.staged
    def grown(x: Rep[Float]) -> Rep[Float]:
        def step(x: Rep[Float]) -> Rep[Float]:
            nk.check(x > 0.0, "positive")
            return nk.sin(x) * 0.1 + x * 1.5

        return nk.while_loop(lambda x: x < 5.0, step, x)

    message = "save=4000 bytes are too few: what has an effect is not run again(.|\n)*while_loop"
    with pytest.raises(nk.DifferentiationError, match=message):
        nk.gradient(of=grown, wrt=0, save=4000)(f64(1.0))
    slopes = [nk.gradient(of=grown, wrt=0, save=save)(f64(1.0)).numpy() for save in ("all", "none")]
    assert slopes[0] == slopes[1]
