"""What code takes of the stack: the frames of a chain of calls, and one room for instructions in turn."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f32, i32
from nnkit.jit.emit.stack_use import SMALL, stack_use
from nnkit.jit.emit.writer import I8, ModuleWriter


def module_of(calls: dict[str, tuple[int, str]]) -> ModuleWriter:
    """Functions with frames of so many bytes, that call others."""
    module = ModuleWriter()
    for name, (size, called) in calls.items():
        w = module.function(name, [], None)
        w.allocate(I8, size)
        for other in called.split():
            w.call_void(other, [])
        w.ret()
    return module


def test_frames_of_the_deepest_chain_count() -> None:
    module = module_of(
        {
            "a": (1, "b c"),
            "b": (20_000, "d"),
            "c": (25_000, ""),
            "d": (6_000, "b unknown"),
            "e": (10**6, "a"),
        }
    )
    wanted = {"a": 26_001, "b": 26_000, "c": 25_000, "e": 1_026_001}
    assert {name: stack_use(module, name) for name in wanted} == wanted
    assert stack_use(module, "a", but=frozenset("bd")) == 25_001
    few = module_of({"a": (8, ""), "b": (SMALL - 8, "")})
    assert stack_use(few, "a") == SMALL  # nobody asks for less


def test_many_sums_take_no_stack_for_what_their_blocks_come_to() -> None:
    """Each was given 16 KiB of its own: 500 of them ended the process."""

    def bytes_of(count: int) -> int:
        @nk.staged
        def sums(x: Rep[Tensor1D[f32]]) -> Rep[Scalar[f32]]:
            found: Any = 0.0
            for k in range(count):
                found += nk.sum(x[k:] * x[: x.shape[0] - k])
            return found

        text = sums.llvm(nk.spec((4_000_000,), f32))
        return sum(int(size) for size in re.findall(r"alloca i8, i64 (\d+)", text))

    assert bytes_of(6) < 1000


def test_results_of_many_sums() -> None:
    x = np.arange(300_000, dtype=np.float32) % 7

    @nk.staged
    def sums(x: Rep[Tensor1D[f32]]) -> Rep[Tensor1D[f32]]:
        return nk.stack([(x[k:] * float(k)).sum() for k in range(1, 6)])

    wanted = [float(k * x[k:].astype(np.float64).sum()) for k in range(1, 6)]
    assert sums(Tensor1D(x)).numpy().tolist() == wanted


def test_local_buffers_of_kernels_in_turn_are_one() -> None:
    """Sums of tiles before what is computed of them: up to 16 rows of 128, and a vector, for each layer."""

    def bytes_of(count: int) -> int:
        @nk.staged
        def layers(x: Rep[Tensor2D[f32]], w: Rep[Tensor2D[f32]]) -> Rep[Tensor2D[f32]]:
            for _ in range(count):
                x = nk.tanh(x @ w)
            return x

        text = layers.llvm(nk.spec((27, 128), f32), nk.spec((128, 128), f32))
        return sum(int(size) for size in re.findall(r"alloca float, i64 (\d+)", text)) * 4

    one = bytes_of(1)
    assert 4 * 128 * 4 < one <= 16 * (128 + 16) * 4
    assert bytes_of(5) == one


def test_local_buffers_of_kernels_are_not_in_frames_that_recurse() -> None:
    """Ten kilobytes of sums in each of 500 frames would not fit into a stack of 1 MiB."""

    @nk.staged
    def deep(
        x: Rep[Tensor2D[f32]], w: Rep[Tensor2D[f32]], n: Rep[Scalar[i32]]
    ) -> Rep[Tensor2D[f32]]:
        return nk.cond(n == 0, lambda: x, lambda: deep(nk.tanh(x @ w), w, n - 1) + 1.0)

    x, w = Tensor2D(np.ones((29, 128), np.float32)), Tensor2D(np.zeros((128, 128), np.float32))
    found: list[float] = []
    thread_of(1 << 20, lambda: found.append(float(np.asarray(deep(x, w, np.int32(500)))[0, 0])))
    assert found == [500.0]


def thread_of(stack: int, run: Callable[[], None]) -> None:
    """Run in a thread with so much stack."""
    old = threading.stack_size(stack)
    thread = threading.Thread(target=run)
    thread.start()
    threading.stack_size(old)
    thread.join()
