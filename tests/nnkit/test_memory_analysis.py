"""What a staged function says of the memory of a call is what the call takes."""

from __future__ import annotations

import numpy as np

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f32, spec

SIZE = 256 * 256 * 4


@nk.staged
def step(
    x: Rep[Tensor2D[f32]], w: Rep[Tensor2D[f32]]
) -> tuple[Rep[Tensor2D[f32]], Rep[Tensor1D[f32]]]:
    return nk.tanh(w @ x) @ w, x[0]


@nk.staged
def rounds(x: Rep[Scalar[f32]]) -> Rep[Scalar[f32]]:
    return nk.while_loop(lambda y: y < 100.0, lambda y: y * y, x)


def test_bytes_by_kind() -> None:
    found = step.memory_analysis(spec((256, 256), f32), spec((256, 256), f32))
    assert (found.argument_bytes, found.output_bytes) == (2 * SIZE, SIZE + 1024)
    assert SIZE <= found.temporary_bytes < 3 * SIZE  # the tanh, and what is packed of a matrix
    assert found.peak_bytes == found.output_bytes + found.temporary_bytes
    assert found.is_complete and found.alias_bytes == 0
    assert str(found).endswith(f"{found.peak_bytes} bytes at most besides the arguments")


def test_donated_arguments_hold_results() -> None:
    arguments = np.ones((256, 256), np.float32), np.ones((256, 256), np.float32)
    found = nk.donate(step, 0).memory_analysis(*arguments)
    assert found.alias_bytes == SIZE
    assert found.peak_bytes == 1024 + found.temporary_bytes


def test_what_only_the_run_can_tell_is_not_complete() -> None:
    assert rounds.memory_analysis(f32(2.0)).is_complete
    assert not nk.gradient(of=rounds, wrt=0).memory_analysis(f32(2.0)).is_complete
    assert "more while it runs" in str(nk.gradient(of=rounds, wrt=0).memory_analysis(f32(2.0)))
