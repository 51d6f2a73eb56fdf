"""Programs of the language become object code for AArch64, whose vectors have 16 bytes, on any machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import nnkit as nk
from nnkit.core.driver.stages import advance
from nnkit.core.stage import Stage
from nnkit.jit.ahead_of_time import (
    LibraryCompiler,
    find_target,
    host_triple,
    schedule_target,
    write_library,
)
from nnkit.jit.header import interface_of
from nnkit.jit.triples import is_like

ARM = "aarch64-linux-gnu"
FUSED = r"\bfml[as]\s+v\d+\.(2d|4s)"
"""A multiply-add of vectors of doubles or floats."""

Program = tuple[Callable[..., Any], Sequence[tuple[int, ...]], str | None]


def _loss(x: Any, w: Any, b: Any) -> Any:
    return nk.softmax(nk.tanh(x @ w + b), axis=-1).max(axis=1).sum()


PROGRAMS: dict[str, Program] = {
    "product with bias and tanh": (lambda x, w, b: nk.tanh(x @ w + b), ((33, 70), (70, 45), (45,)), FUSED),
    "products of batches": (lambda x, y: x @ y.transpose(0, 2, 1), ((3, 40, 50), (3, 60, 50)), FUSED),
    "gradient": (nk.gradient(of=nk.staged(_loss), wrt=1), ((33, 70), (70, 45), (45,)), FUSED),
    "elementwise": (lambda x: nk.exp(x) * nk.sin(x) + nk.gelu(x), ((1000,),), FUSED),
    "sums and orders": (
        lambda x: (x.sum(axis=0), nk.cumsum(x, 1), nk.sort(x), nk.argmax(x, 1), nk.var(x)), ((30, 40),), None,
    ),
    "pads and pieces": (lambda x: nk.concat([nk.pad(x, [(1, 2), (0, 0)]), x.T @ x], axis=0), ((40, 40),), FUSED),
    "a loop": (lambda a, x: nk.fori(0, 100, lambda _, y: nk.tanh(a @ y), x), ((64, 64), (64,)), FUSED),
    "a loop that ends by itself": (lambda x: nk.while_loop(lambda y: y.sum() < 1e3, lambda y: y * y, x), ((9,),), None),
}  # fmt: skip


def emitted(
    program: Callable[..., Any], shapes: Sequence[tuple[int, ...]], dtype: Any
) -> tuple[str, bytes]:
    """Assembly and object code of a program for the other machine."""
    function: Any = program if hasattr(program, "ir") else nk.staged(program)
    arguments = [nk.spec(shape, dtype) for shape in shapes]
    module, entry = function._inspected(arguments).module("optimized")
    target = find_target(ARM)
    interface = interface_of(module, [entry.name])
    advance(module, Stage.SCHEDULE, entry.name, target=schedule_target(target))
    library = write_library(module, interface, target)
    with LibraryCompiler(library, target) as compiler:
        return compiler.assembly(), compiler.object_code()


@pytest.mark.skipif(is_like(ARM, host_triple()), reason="it is this machine")
@pytest.mark.parametrize("name", PROGRAMS)
def test_object_code_with_vectors(name: str) -> None:
    program, shapes, wanted = PROGRAMS[name]
    assembly, code = emitted(program, shapes, nk.f64 if name == "gradient" else nk.f32)
    assert code[:4] == b"\x7fELF" and code[18:20] == (183).to_bytes(2, "little")
    assert not re.search(r"\bbl\s+fmaf?\b", assembly)
    assert wanted is None or re.search(wanted, assembly)
