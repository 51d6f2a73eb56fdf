"""Small kernels that follow each other are one: how many there are, and what they still load."""

from __future__ import annotations

import pytest

from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.ir import Stage
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.text import parse_module, print_module

PRODUCTS = """
    %p = dot %a: M, %y: V
    %q = tanh %p: V
    %r = dot %a: M, %q: V
    %s = tanh %r: V
    %t = dot %a: M, %s: V
    %u = tanh %t: V
"""
WITH_A_NUMBER = """
    %p = dot %a: M, %y: V
    %q = tanh %p: V
    %r = reduce %y: V by add along 0
    %s = tanh %r: f64
    %u = multiply %q: V, %s: f64
"""
ROWS = [
    (PRODUCTS, 3, 1),
    (PRODUCTS, 40, 3),  # of as many rows as a product has, each with the function behind it
    (WITH_A_NUMBER, 3, 1),
]


def schedule_of(body: str, size: int) -> str:
    """The function of a matrix and a vector."""
    types = {"M": f"<{size} x {size} x f64>", "V": f"<{size} x f64>"}
    text = f"func @f: (M, V) -> V {{\n'entry(%a: M, %y: V):{body}    return %u: V\n}}\n"
    for name, type in types.items():
        for mark in (" ", "("):
            text = text.replace(f"{mark}{name}", f"{mark}{type}")
    module = parse_module(f'module "m"\nstage raw\n{text}')
    module.stage = Stage.OPTIMIZED
    generate_compute(module)
    fuse(module)
    schedule(module, Target(vector_bytes=64, registers=32, fma=True))
    return print_module(module)


@pytest.mark.parametrize(("body", "size", "kernels"), ROWS)
def test_how_many_kernels_there_are(body: str, size: int, kernels: int) -> None:
    assert schedule_of(body, size).count("= kernel of") == kernels


def test_what_is_between_them_is_not_loaded() -> None:
    """Of three vectors one is read, and the matrix once; nothing but the result is stored."""
    text = schedule_of(PRODUCTS, 3)
    assert text.count("loadAt") == 3 + 3
    assert text.count("storeAt") == 1
