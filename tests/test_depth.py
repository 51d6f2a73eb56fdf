"""Depth: programs that nest 2,000 deep are staged, compiled and run, in whatever way they nest, and as text.

`STAGED` are programs in the language, by what is inside what; `TEXTS` are modules.  Growth is seen in the number of
functions that Python calls, as in `test_scaling`; the seconds are only there so that nothing hangs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

import nnkit as nk
from nnkit import cond, f64, fn, fori, gradient, spec, staged, while_loop, zip_with
from nnkit.core.driver.stages import OPTIMIZABLE
from nnkit.core.evaluate import evaluate
from nnkit.core.passes import run_pipeline
from nnkit.core.text import parse_module, print_module
from nnkit.core.verify import verify
from nnkit.tools.call import run_call
from tests.test_scaling import calls_of, numbered

DEEP = 2_000
SECONDS = 60.0
"""Less than a fifth of it where nothing else runs."""
MOST_GROWTH = 4.6
"""How many times the calls there may be for a program four times as deep."""
X = spec((2,), f64)
AT_LENGTH = pytest.mark.skipif(settings().max_examples < 1000, reason="runs in make fuzz")

Nest = Callable[[Any, Callable[[Any], Any]], Any]
"""A construct around what is inside it, which is a function of a vector."""

NESTS: dict[str, Nest] = {
    "first branch": lambda x, inside: cond(x.sum() > 0.0, lambda: inside(x), lambda: x),
    "second branch": lambda x, inside: cond(x.sum() < 0.0, lambda: x, lambda: inside(x)),
    "body of while_loop": lambda x, inside: while_loop(lambda c: c.sum() < 0.0, inside, x),
    "condition of while_loop": lambda x, inside: while_loop(
        lambda c: inside(c).sum() < 0.0, lambda c: c + 1.0, x
    ),
    "body of fori": lambda x, inside: fori(0, 1, lambda _, c: inside(c), x),
    "fold": lambda x, inside: x.fold(x, lambda c, e: inside(c + e)),
    "scan": lambda x, inside: x.scan(x, lambda c, e: (inside(c), e))[1].tensor(),
    "map": lambda x, inside: x.map(lambda e: inside(x + e).sum()),
    "zip_with": lambda x, inside: zip_with(x, x, lambda e, d: inside(x * e + d).sum()),
    "filter": lambda x, inside: x.filter(lambda e: inside(x + e).sum() > 0.0)[0],
    "staged function": lambda x, inside: staged(lambda y: inside(y))(x),
    "fn": lambda x, inside: fn(nk.Tensor1D[f64])(lambda y: inside(y))(x),
    "function as argument": lambda x, inside: _APPLY(staged(lambda y: inside(y)), x),
    "function that is returned": lambda x, inside: staged(lambda _: lambda y: inside(y))(x)(x),
    "beside a gradient": lambda x, inside: staged(lambda y: inside(y) + _SLOPE(y))(x),
}
_APPLY = staged(lambda g, x: g(x))
_SLOPE = gradient(of=staged(lambda x: nk.sin(x).sum()), wrt=0)


def nested(name: str, depth: int) -> Callable[[Any], Any]:
    """A function of a vector with `depth` times the construct inside itself; `mixed`: one after the other."""
    kinds = list(NESTS.values()) if name == "mixed" else [NESTS[name]]

    def level(x: Any, left: int) -> Any:
        if not left:
            return nk.sin(x)
        return kinds[left % len(kinds)](x * 0.5, lambda y: level(y, left - 1))

    return lambda x: level(x, depth)


@contextmanager
def soon() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < SECONDS


SHORT = {"first branch", "staged function", "mixed"}
"""What is staged at full depth in every run of the tests."""


@pytest.mark.parametrize(
    "name",
    [name if name in SHORT else pytest.param(name, marks=AT_LENGTH) for name in [*NESTS, "mixed"]],
)
def test_constructs_nest_two_thousand_deep(name: str) -> None:
    with soon():
        text = staged(nested(name, DEEP)).ir(X)
    assert text.count("\n") > DEEP


@pytest.mark.parametrize("name", [*NESTS, "mixed"])
def test_staging_takes_time_in_proportion_to_the_depth(name: str) -> None:
    def stage(depth: int) -> None:
        staged(nested(name, depth)).ir(X)

    for depth in (20, 80):  # what is made on first use
        stage(depth)
    assert calls_of(stage, 320) / calls_of(stage, 80) < MOST_GROWTH


def chain(length: int) -> Any:
    """A function that calls another one, which calls another one …: x ← sin(x / 2 + …)."""
    h = staged(lambda x: nk.sin(x))
    for _ in range(length):
        h = staged(lambda x, inner=h: nk.sin(inner(x) * 0.5 + x))
    return h


def chain_at(x: float, length: int) -> tuple[float, float]:
    """Its value, and its derivative."""
    y, dy = math.sin(x), math.cos(x)
    for _ in range(length):
        z = y * 0.5 + x
        y, dy = math.sin(z), math.cos(z) * (dy * 0.5 + 1.0)
    return y, dy


@pytest.mark.parametrize("length", [300, pytest.param(DEEP, marks=AT_LENGTH)])
def test_chains_of_functions_run_and_have_derivatives(length: int) -> None:
    value, slope = chain_at(0.3, length)
    h, x = chain(length), np.full(2, 0.3)
    with soon():
        assert np.allclose(np.asarray(h(x)), value, rtol=1e-12)
        assert np.allclose(np.asarray(gradient(of=h, wrt=0)(x)), slope, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "depth"),
    [
        ("first branch", 200), ("body of while_loop", 270),
        *(pytest.param(name, DEEP, marks=AT_LENGTH) for name in (
            "first branch", "body of while_loop", "condition of while_loop", "body of fori", "staged function",
            "fn", "function as argument", "function that is returned",
        )),
    ],
)  # fmt: skip
def test_deep_programs_run(name: str, depth: int) -> None:
    x = np.array([0.75, 0.5])
    with soon():
        found = np.asarray(staged(nested(name, depth))(x))
    stays = x * 0.5  # of a while_loop that does not begin
    assert np.allclose(
        found, stays if "while_loop" in name else np.sin(x * 0.5**depth), rtol=1e-12, atol=0
    )


def text_of(kinds: str, depth: int, *, slope: bool = False) -> str:
    """A module whose function @f nests these, outer before inner, `depth` levels deep."""
    if kinds == "calls":
        return _calls(depth, slope)
    heads, ends = [], []
    for k in range(depth):
        head, end = _LEVELS[kinds.split()[k % len(kinds.split())]]
        heads.append(head.format(k=k, x=f"%a{k - 1}" if k else "%x"))
        ends.append(end.format(k=k, x=f"%a{k - 1}" if k else "%x"))
        ends.append(f"%r{k - 1} = multiply %v{k}: f64, 0.5: f64" if k else "")
    inner = f"%r{depth - 1} = sin %a{depth - 1}: f64"
    both = zip(ends[0::2], ends[1::2], strict=True)
    lines = [*heads, inner, *(line for pair in reversed(list(both)) for line in pair)]
    body = "\n".join(lines)
    return f'module "m"\nfunc @f: (f64, i64) -> f64 {{\n\'b(%x: f64, %n: i64):\n{body}\nreturn %v0: f64\n}}\n'


_LEVELS = {
    "if": ("""%c{k} = lessThan {x}: f64, 1000.0: f64
%v{k} = if %c{k}: bool -> f64 {{
't{k}():
%a{k} = multiply {x}: f64, 1.0625: f64""", "yield %r{k}: f64\n}} else {{\n'e{k}():\nyield {x}: f64\n}}"),
    "for": ("""%v{k} = for 0: i64 upto %n: i64 carrying {x}: f64 {{
't{k}(%i{k}: i64, %q{k}: f64):
%a{k} = add %q{k}: f64, 0.125: f64""", "yield %r{k}: f64\n}}"),
    "while": ("""%v{k}, %u{k} = while carrying {x}: f64, 0: i64 {{
'c{k}(%d{k}: f64, %e{k}: i64):
%g{k} = lessThan %e{k}: i64, %n: i64
yield %g{k}: bool
}} do {{
't{k}(%q{k}: f64, %j{k}: i64):
%m{k} = add %j{k}: i64, 1: i64
%a{k} = add %q{k}: f64, 0.25: f64""", "yield %r{k}: f64, %m{k}: i64\n}}"),
}  # fmt: skip


def _calls(depth: int, slope: bool) -> str:
    """@f0 is sin; each further function multiplies what the one before gives by its argument."""
    one = """func @f{k}: (f64) -> f64 {{
'b(%x: f64):
%y = apply @f{m}(%x) -> f64
%z = sin %y: f64
%r = multiply %z: f64, %x: f64
return %r: f64
}}"""
    first = "func @f0: (f64) -> f64 {\n'b(%x: f64):\n%r = sin %x: f64\nreturn %r: f64\n}\n"
    last = f"""func @f: (f64, i64) -> f64 {{
'b(%x: f64, %n: i64):
%r = apply @f{depth}(%x) -> f64
return %r: f64
}}
"""
    declared = "[gradient @f wrt 0]\nfunc @df: (f64, i64) -> f64\n" if slope else ""
    return f'module "m"\n{first}{numbered(one, depth)}\n{last}{declared}'


TEXTS = ["calls", "if", "for", "while", "for if while"]


@pytest.mark.parametrize("kinds", ["calls", "for if while"])
def test_deep_modules_print_back(kinds: str) -> None:
    with soon():
        text = print_module(parse_module(text_of(kinds, DEEP, slope=True)))
        module = parse_module(text)
        verify(module)
        assert print_module(module) == text


@pytest.mark.parametrize(
    ("kinds", "level"),
    [("calls", 0), ("calls", 2), ("for if while", 2),
     *(pytest.param(kinds, level, marks=AT_LENGTH) for kinds in TEXTS for level in range(4))],
)  # fmt: skip
def test_deep_modules_go_through_all_passes(kinds: str, level: int) -> None:
    module = parse_module(text_of(kinds, DEEP, slope=True))
    with soon():
        run_pipeline(module, OPTIMIZABLE[level], verifier=verify, verify=False)
        verify(module)
    evaluate(module, "f", np.float64(0.5), np.int64(1))


@pytest.mark.parametrize(
    ("kinds", "depth"),
    [("calls", DEEP), ("for if while", 150),
     *(pytest.param(kinds, DEEP, marks=AT_LENGTH) for kinds in TEXTS[1:])],
)  # fmt: skip
def test_compiled_code_agrees_with_the_evaluator(kinds: str, depth: int) -> None:
    with soon():
        module = parse_module(text_of(kinds, depth))
        run_call(module, "@f(0.5, 1)", "both", tolerance=4)


@pytest.mark.parametrize("depth", [300, pytest.param(DEEP, marks=AT_LENGTH)])
def test_the_gradient_of_a_deep_chain_agrees(depth: int) -> None:
    with soon():
        module = parse_module(text_of("calls", depth, slope=True))
        run_call(module, "@df(0.5, 1)", "both", tolerance=64)
