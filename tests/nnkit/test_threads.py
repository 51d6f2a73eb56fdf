"""Threads: programs that are large enough for several have the bits of one thread, and are right."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f32
from nnkit.core.types import Array
from tests.jit.sharing import alone

Vector = Tensor1D[f32]
Matrix = Tensor2D[f32]


@nk.staged
def total(x: Rep[Vector]) -> Rep[Scalar[f32]]:
    return nk.sum(x * nk.tanh(x))


@nk.staged
def totals(
    x: Rep[Matrix],
) -> tuple[Rep[Matrix], Rep[Vector], Rep[Vector], Rep[Scalar[f32]], Rep[Scalar[f32]]]:
    return nk.softmax(x), nk.sum(x, axis=1), nk.sum(x, axis=0), x.max(), nk.mean(x)


@nk.staged
def layer(x: Rep[Matrix], w: Rep[Matrix]) -> Rep[Matrix]:
    return nk.tanh(x @ w + 1.0)


def arrays(result: object) -> list[Array]:
    return [np.asarray(x) for x in (result if isinstance(result, tuple) else (result,))]


def test_bits_are_those_of_one_thread() -> None:
    random = np.random.default_rng(0)
    x, m = random.standard_normal(500_003), random.standard_normal((301, 1001))
    vector, matrix = Vector(x.astype(np.float32)), Matrix(m.astype(np.float32))
    square = Matrix(m[:300, :300].astype(np.float32))
    gradient = nk.gradient(of=total, wrt=0, keeping=(0,))

    def results() -> list[Array]:
        found = gradient(vector), totals(matrix), layer(square, square)
        return [array.copy() for result in found for array in arrays(result)]

    with alone():
        wanted = results()
    for _ in range(5):
        for one, other in zip(results(), wanted, strict=True):
            np.testing.assert_array_equal(one, other)
    wide = x.astype(np.float32).astype(np.float64)
    rows = m.astype(np.float32).astype(np.float64)
    powers = np.exp(rows - rows.max(axis=1, keepdims=True))
    inside = rows[:300, :300]
    expected = (
        (wide * np.tanh(wide)).sum(),
        powers / powers.sum(axis=1, keepdims=True),
        *(rows.sum(axis=1), rows.sum(axis=0), rows.max(), rows.mean()),
        np.tanh(inside @ inside + 1),
    )
    for one, other in zip(wanted[1:], expected, strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-4)


LIMITED = """
import os, resource
import numpy as np, nnkit as nk
from nnkit import Rep, Tensor2D, f32

@nk.staged
def layers(x: Rep[Tensor2D[f32]], w: Rep[Tensor2D[f32]]) -> Rep[Tensor2D[f32]]:
    return nk.tanh(x @ w) @ w

rng = np.random.default_rng(0)
x, w = (rng.normal(size=(n, 256)).astype(np.float32) / 16 for n in (40_000, 256))
few = slice(0, 99)
wanted = np.tanh(x[few] @ w) @ w
layers(x[few], w)  # too small for several threads
layers.compile(x, w)
spare = layers.memory_analysis(x, w).temporary_bytes
arguments = nk.Tensor2D(x), nk.Tensor2D(w)

def limit(more):
    taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + more, resource.RLIM_INFINITY))

def run():
    return np.abs(layers(*arguments).numpy()[few] - wanted).max() < 1e-4

assert spare > 2**25  # which malloc never has left
limit(x.nbytes // 2)  # neither a result nor an arena
try:
    run()
except MemoryError as error:
    assert "39.1 MiB" in str(error), error
    print("refused", flush=True)
limit(x.nbytes + spare + 6_000_000)  # those, and no stack of a thread
print(run(), flush=True)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
print(run(), flush=True)
"""


def test_a_call_without_memory_for_panels_or_threads() -> None:
    """It is refused, or done by one thread, and the next one is right."""
    environment = {**os.environ, "NNKIT_NUM_THREADS": "2"}
    command = [sys.executable, "-c", LIMITED]
    found = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert found.stdout.split() == ["refused", "True", "True"], found.stderr
