"""Many threads and child processes: the first call may be anywhere, and results are the same everywhere."""

from __future__ import annotations

import functools
import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import threadpoolctl

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f32, f64, i64

from ..threads import run_in_thread

THREADS = 16


@nk.staged
def orbit(n: Rep[Scalar[i64]], x: Rep[Tensor1D[f64]]) -> Rep[Tensor1D[f64]]:
    return nk.fori(0, n, lambda _, x: nk.sin(x) + x * 1.0001, x)


@nk.staged
def power(x: Rep[Scalar[f32]], n: Rep[Scalar[i64]]) -> Rep[Scalar[f32]]:
    return nk.cond(n == 0, lambda: 0 * x + 1, lambda: x * power(x, n - 1))


@nk.staged
def dense(x: Rep[Tensor2D[f32]], w: Rep[Tensor2D[f32]]) -> Rep[Tensor2D[f32]]:
    return nk.tanh(x @ w)


@nk.staged
def large(x: Rep[Tensor2D[f32]], w: Rep[Tensor2D[f32]]) -> Rep[Tensor2D[f32]]:
    return nk.exp((x @ w) * 0.01) @ x


def orbited(k: int) -> list[float]:
    """Long enough that the GIL is given up, for most k."""
    found: list[float] = (
        orbit(i64(500_000 * (k % 3)), Tensor1D(np.arange(3.0) + k)).numpy().tolist()
    )
    return found


def powered(k: int) -> float:
    return float(power(f32(1.0 + k), i64(k)))


def matrix(k: int, n: int) -> Tensor2D[f32]:
    return Tensor2D(np.random.default_rng(k).normal(size=(n, n)).astype(np.float32))


def densely(k: int) -> list[list[float]]:
    found: list[list[float]] = dense(matrix(k, 33), matrix(k + 1, 33)).numpy().tolist()
    return found


def largely(k: int) -> list[float]:
    found: list[float] = large(matrix(k, 300), matrix(k + 1, 300)).numpy()[0].tolist()
    return found


def all_of(k: int) -> Any:
    """One result of each kind of function."""
    return orbited(k), powered(k), densely(k), largely(k)


def together(function: Any) -> list[Any]:
    """What it returns in 16 threads that begin at once, by number."""
    barrier = threading.Barrier(THREADS)

    def call(k: int) -> Any:
        barrier.wait()
        return [function(k) for _ in range(3)]

    with ThreadPoolExecutor(THREADS) as pool:
        return [*pool.map(call, range(THREADS))]


@pytest.mark.parametrize("function", [orbited, powered, densely, largely, all_of])
def test_sixteen_threads_call_one_function(function: Any) -> None:
    """The calls that compile it included, where this test is the first to use it."""
    found = together(function)
    for k in range(THREADS):
        wanted = function(k)
        assert found[k] == [wanted] * 3


def test_sixteen_threads_compile_and_call_a_new_function() -> None:
    @nk.staged
    def fresh(n: Rep[Scalar[i64]], x: Rep[Tensor1D[f64]]) -> Rep[Tensor1D[f64]]:
        return nk.fori(0, n, lambda _, x: nk.cos(x) + x, x)

    def call(k: int) -> list[float]:
        found: list[float] = fresh(i64(300_000), Tensor1D(np.arange(k % 4 + 1.0))).numpy().tolist()
        return found

    found = together(call)
    assert found == [[call(k)] * 3 for k in range(THREADS)]


def test_products_in_many_threads_leave_the_number_of_threads_as_it_was() -> None:
    """The number of the BLAS's threads is the process's, whatever we call of it."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("the BLAS has one thread on a machine of one core")
    before = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]

    @nk.staged
    def repeated(n: Rep[Scalar[i64]], x: Rep[Tensor2D[f32]]) -> Rep[Tensor2D[f32]]:
        return nk.fori(0, n, lambda _, y: (y @ x) * 0.1, x)

    x = matrix(0, 64)
    wanted = repeated(i64(300), x).numpy().copy()

    def call(_: int) -> bool:
        return all(np.array_equal(repeated(i64(300), x), wanted) for _ in range(5))

    assert all(map(all, together(call)))
    assert before == [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]


def _send(k: int, pipe: Any) -> None:
    pipe.send(all_of(k))
    pipe.close()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_child_processes_compute_the_same(method: str) -> None:
    """After use here, and while other threads are in the middle of a long call."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    context = multiprocessing.get_context(method)
    wanted = all_of(4)
    busy = threading.Thread(target=lambda: orbit(i64(20_000_000), Tensor1D(np.arange(3.0))))
    busy.start()
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(4, there))
    child.start()
    there.close()
    assert here.poll(60), "the child does not answer"
    assert here.recv() == wanted
    child.join()
    busy.join()
    assert child.exitcode == 0
    assert all_of(4) == wanted


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_child_compiles_though_another_thread_did_when_it_was_forked() -> None:
    done = threading.Event()

    def compile_all_the_time() -> None:
        extent = 1
        while not done.is_set():
            extent += 1
            fresh = nk.staged(lambda x: nk.exp(x) + extent)  # noqa: B023  # staged at once
            fresh(Tensor1D(np.zeros(extent % 50 + 1)))

    thread = threading.Thread(target=compile_all_the_time)
    thread.start()
    context = multiprocessing.get_context("fork")
    try:
        for k in range(10):
            here, there = context.Pipe(duplex=False)
            child = context.Process(target=_compile_and_send, args=(k, there))
            child.start()
            there.close()
            assert here.poll(30), "the child does not answer"
            assert here.recv() == [float(k + 1)] * 3
            child.join()
    finally:
        done.set()
        thread.join()


def _compile_and_send(k: int, pipe: Any) -> None:
    @nk.staged
    def fresh(x: Rep[Tensor1D[f64]]) -> Rep[Tensor1D[f64]]:
        return nk.cos(x) + float(k)

    pipe.send(fresh(Tensor1D(np.zeros(3))).numpy().tolist())
    pipe.close()


def test_recursion_ends_at_the_stack_of_its_thread() -> None:
    """Compiled in this thread, and called in smaller and larger ones."""
    assert powered(4) == 5.0**4
    depths: dict[int, int] = {}

    def fail(size: int) -> None:
        with pytest.raises(nk.RecursionDepthError, match="more than"):
            power(f32(1.5), i64(-5))
        low, high = 1, 1 << 24
        while high - low > max(low // 8, 1):  # how deep it goes
            middle = (low + high) // 2
            try:
                power(f32(1.0), i64(middle))
                low = middle
            except nk.RecursionDepthError:
                high = middle
        depths[size] = low

    for size in (64 << 10, 256 << 10, 1 << 20, 16 << 20):
        run_in_thread(size, functools.partial(fail, size))
    found = [depths[size] for size in sorted(depths)]
    assert found == sorted(found) and found[0] > 200 and found[-1] > 10 * found[1]


@nk.staged
def solved(a: Rep[Tensor2D[f64]], b: Rep[Tensor2D[f64]]) -> Rep[Tensor2D[f64]]:
    return nk.linalg.solve(a, b) * 2.0


def test_what_takes_more_than_the_stack_of_its_thread_runs_on_another_one() -> None:
    """NumPy's own `solve` ends the process in a thread of 2 MiB."""
    a = Tensor2D(np.random.default_rng(0).normal(size=(300, 300)))
    wanted = solved(a, a).numpy().copy()
    donating = nk.donate(solved, 1)
    found: list[Any] = []

    def solve() -> None:
        found.append(solved(a, a).numpy().copy())
        target, given = np.zeros((300, 300)), Tensor2D(a.numpy().copy())
        solved(a, a, out=Tensor2D(target, copy=False))
        found.extend([target, donating(a, given).numpy()])
        with pytest.raises(nk.DonationError):
            given.numpy()

    for size in (64 << 10, 512 << 10):
        run_in_thread(size, solve)
    assert len(found) == 6 and all(np.array_equal(one, wanted) for one in found)


_SETTINGS = """
import gc, os, resource, signal, sys, threading, warnings
import numpy as np

def settings():
    '''What a process has one of.'''
    found = {
        "environment": dict(os.environ), "recursion": sys.getrecursionlimit(), "errors of NumPy": np.geterr(),
        "garbage": (gc.isenabled(), gc.get_threshold()), "switching": sys.getswitchinterval(), "folder": os.getcwd(),
        "hooks": (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.gettrace(), sys.getprofile()),
        "signals": [signal.getsignal(n) for n in signal.valid_signals()], "stacks": threading.stack_size(),
        "warnings": list(warnings.filters), "subnormals": float(np.float32(1e-38) * np.float32(0.1)),
        "thirds": (np.float32(1) / np.float32(3), np.float32(-1) / np.float32(3)),
    }
    limits = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    found["limits"] = [resource.getrlimit(getattr(resource, name)) for name in limits]
    if hasattr(os, "sched_getaffinity"):
        found["cores"] = os.sched_getaffinity(0)
    return found

import nnkit as nk
before = settings()

@nk.staged
def loss(x, w):
    return nk.sum(nk.log(1 + nk.exp(x @ w))) + nk.linalg.slogdet(w @ w.T + 400.0 * nk.eye(300, dtype=nk.f32))[1]

x = np.ones((300, 300), np.float32)
nk.value_and_gradient(of=loss, wrt=1)(x, x)
after = settings()
for name in before:
    assert before[name] == after[name], (name, before[name], after[name])
"""


def test_no_setting_of_the_process_changes(tmp_path: Path) -> None:
    """By products, threads, functions of matrices, and all that is loaded for them."""
    pytest.importorskip("resource")
    script = tmp_path / "settings.py"
    script.write_text(_SETTINGS)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr


def test_a_program_that_python_calls_back_may_be_called_from_there() -> None:
    """Each call has an arena of its own, on each of several threads."""
    depth = threading.local()

    def inner(x: Any) -> Any:
        deep = getattr(depth, "calls", 0)
        if deep == 3:
            return x
        depth.calls = deep + 1
        try:
            return np.asarray(outer(x + 1))
        finally:
            depth.calls = deep

    @nk.staged
    def alike(x: Rep[Tensor2D[f64]]) -> Rep[Tensor2D[f64]]:
        return x

    again = nk.callback(inner, alike)

    @nk.staged
    def outer(x: Rep[Tensor2D[f64]]) -> Rep[Tensor2D[f64]]:
        y = nk.cumsum(nk.sin(x) @ x, axis=0)
        return y + nk.sort(y + again(x), axis=1)

    def expected(x: Any, deep: int = 0) -> Any:
        y = np.cumsum(np.sin(x) @ x, axis=0)
        return y + np.sort(y + (expected(x + 1, deep + 1) if deep < 3 else x), axis=1)

    def call(k: int) -> bool:
        x = np.random.default_rng(k).normal(size=(7, 7))
        return np.allclose(np.asarray(outer(Tensor2D(x))), expected(x), rtol=1e-9)

    assert call(0)
    assert all(map(all, together(call)))
