"""100 compiles of gradients give the same text, of IR and of LLVM: in one process, and under other hash seeds."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, f64, i32
from nnkit.core.text import parse_module, print_module
from nnkit.core.verify import verify

ROOT = Path(__file__).parents[2]
SEEDS = ("0", "1")
REPEATS = 5
STAGES = ("raw", "optimizable", "optimized", "compute", "schedule")
COMPARED = ("raw", "optimized")
"""What lies between is read from these; LLVM's text, which is compared too, from what comes after."""

Float = Scalar[f64]
Vector = Tensor1D[f64]
Matrix = Tensor2D[f64]


class Params(Struct):
    w: Field[Matrix]
    b: Field[Vector]


def compiles() -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Ten derivatives of programs that are staged anew, with arguments."""

    @nk.staged
    def layer(p: Rep[Params], x: Rep[Matrix]) -> Rep[Matrix]:
        return nk.tanh(x @ p[Params.w] + p[Params.b])

    @nk.staged
    def loss(p: Rep[Params], x: Rep[Matrix]) -> Rep[Float]:
        return nk.square(layer(p, layer(p, x))).mean()

    @nk.staged
    def choice(x: Rep[Float]) -> Rep[Float]:
        return nk.cond(x > 0.0, lambda: nk.sin(x) * x, lambda: x * x)

    @nk.staged
    def newton(a: Rep[Float]) -> Rep[Float]:
        return nk.while_loop(lambda x: nk.abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), a)

    @nk.staged
    def powers(x: Rep[Float], n: Rep[Scalar[i32]]) -> Rep[Float]:
        return nk.cond(n > 0, lambda: x * powers(x, n - 1), lambda: x * 0.0 + 1.0)

    @nk.staged
    def cells(xs: Rep[Matrix], h: Rep[Vector]) -> Rep[Float]:
        def step(h: Rep[Vector], x: Rep[Vector]) -> tuple[Rep[Vector], Rep[Vector]]:
            nk.print("h", h)
            new = nk.tanh(h * x)
            return new, new * x

        _, ys = xs.scan(h, step)
        return ys.tensor().sum()

    @nk.staged
    def nested(x: Rep[Vector], n: Rep[Scalar[i32]]) -> Rep[Float]:
        def body(i: Rep[Scalar[i32]], s: Rep[Vector]) -> Rep[Vector]:
            nk.check(s.sum() < 1e9, "s is too large")
            return nk.fori(0, 2, lambda j, t: nk.cos(t) * s, s)

        return nk.fori(0, n, body, x).sum()

    p = Params(nk.Tensor2D(np.eye(3)), nk.Tensor1D(np.zeros(3)))
    x, v = np.ones((2, 3)), np.linspace(0.1, 1.0, 3)
    gradient = nk.gradient
    yield "layers", gradient(of=loss, wrt=0), (p, x)
    yield "choice", gradient(of=gradient(of=choice, wrt=0), wrt=0), (f64(1.0),)
    yield "newton", gradient(of=newton, wrt=0), (f64(2.0),)
    yield "newton's tangent", nk.jvp(of=newton), (f64(2.0), f64(1.0))
    yield "recursion", gradient(of=powers, wrt=0), (f64(2.0), i32(3))
    yield "scan", gradient(of=cells, wrt=(0, 1)), (x, v)
    yield "nested loops", gradient(of=nested, wrt=0), (v, i32(3))
    yield "second, by tapes", nk.hvp(of=nested), (v, i32(3), v)
    yield "hessian", nk.hessian(of=cells, wrt=1), (x, v)
    yield "batch", gradient(of=nk.vmap(choice), wrt=0), (v,)


def digests() -> list[str]:
    """A line for each text of each program, made several times; what differs in one process is there twice."""
    found: dict[str, None] = {}
    for _ in range(REPEATS):
        for name, derivative, arguments in compiles():
            texts = {stage: derivative.ir(*arguments, stage=stage) for stage in COMPARED}
            texts["llvm"] = derivative.llvm(*arguments)
            for stage, text in texts.items():
                digest = hashlib.sha256(text.encode()).hexdigest()
                found.setdefault(f"{name}, {stage}: {digest}")
    return [*found]


def test_100_compiles_give_the_same_text() -> None:
    """10 programs, 5 times in each of 2 processes."""
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", "from tests.nnkit.test_same_text import *; print(*digests(), sep='\\n')"],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for seed in SEEDS
    ]  # fmt: skip
    outputs = [run.communicate()[0].splitlines() for run in runs]
    assert all(run.returncode == 0 for run in runs)
    assert len(outputs[0]) == 10 * (len(COMPARED) + 1), "a text differs from compile to compile"
    assert outputs[0] == outputs[1]


def test_every_gradient_round_trips_as_text() -> None:
    for name, derivative, arguments in compiles():
        for stage in STAGES:
            text = derivative.ir(*arguments, stage=stage)
            module = parse_module(text)
            verify(module)
            assert print_module(module) == text, f"{name}, {stage}"
