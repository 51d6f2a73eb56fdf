"""Interleaved stacks: which tensors are taken together, and that every bit stays."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f32, f64
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.ir.surgery import walk
from nnkit.core.ops.flows import Role, flows_in
from nnkit.core.passes import interleave_stacks
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.interleave_stacks import LEAST_STACKS, InterleaveStacks
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import Array
from nnkit.core.verify import verify
from tests.values import flat, same_bits

ROUNDS = 5

TEXT = """
module "stacks"
func @f: (<5 x 3 x f64>, <3 x f64>, i64) -> <3 x f64> {{
'entry(%x: <5 x 3 x f64>, %h0: <3 x f64>, %n: i64):
    %h, %a, %b, %c, %d = for 0: i64 upto 5: i64 carrying %h0: <3 x f64> stacking {types} {{
    'first(%i: i64, %p: <3 x f64>):
        %q = sin %p: <3 x f64>
        %r = gather %x: <5 x 3 x f64> at %i: i64 along 0 bounds inside
        %s = multiply %q: <3 x f64>, %r: <3 x f64>
        %m = dot %q: <3 x f64>, %r: <3 x f64>
        %u = lessThan %q: <3 x f64>, %r: <3 x f64>
        %w = shapeCast %s: <3 x f64> to 3 x 1
        yield %s: <3 x f64>, {yields}
    }}
    %z = literal 0.0: f64
{reads}
    %g, %v = for 0: i64 upto 5: i64 carrying %h: <3 x f64>, %z: f64 {{
    'second(%j: i64, %k: <3 x f64>, %y: f64):
        %last = literal 4: i64
        %l = subtract %last: i64, %j: i64
{lines}
        yield %k2: <3 x f64>, %y2: f64
    }}
    %result = add %g: <3 x f64>, %v: f64
    return %result: <3 x f64>
}}
"""
VECTORS = ", ".join(["<5 x 3 x f64>"] * 4)
FOUR = "%q: <3 x f64>, %r: <3 x f64>, %s: <3 x f64>, %p: <3 x f64>"
PLAIN = """
        %a1 = gather %a: <5 x 3 x f64> at %l: i64 along 0 bounds inside
        %b1 = gather %b: <5 x 3 x f64> at %l: i64 along 0 bounds inside
        %c1 = gather %c: <5 x 3 x f64> at %l: i64 along 0 bounds inside
        %d1 = gather %d: <5 x 3 x f64> at %l: i64 along 0 bounds inside
        %k0 = multiply %a1: <3 x f64>, %k: <3 x f64>
        %k1 = add %k0: <3 x f64>, %b1: <3 x f64>
        %k2 = subtract %k1: <3 x f64>, %c1: <3 x f64>
        %y1 = dot %d1: <3 x f64>, %k2: <3 x f64>
        %y2 = add %y: f64, %y1: f64
"""
MIXED = """
        %a1 = gather %a: <5 x 3 x f64> at %l: i64 along 0
        %b1 = gather %b: <5 x f64> at %j: i64 along 0
        %c1 = gather %c: <5 x 3 x 1 x f64> at %l: i64 along 0
        %d1 = gather %d: <5 x 3 x bool> at %l: i64 along 0
        %c2 = shapeCast %c1: <3 x 1 x f64> to 3
        %k0 = multiply %a1: <3 x f64>, %k: <3 x f64>
        %k1 = add %k0: <3 x f64>, %c2: <3 x f64>
        %k2 = select %k1: <3 x f64>, %k: <3 x f64> by %d1: <3 x bool>
        %y2 = add %y: f64, %b1: f64
"""
BLOCKS: dict[str, tuple[str, str, str, str, list[str]]] = {
    "vectors": (VECTORS, FOUR, "", PLAIN, ["<5 x 12 x f64>"]),
    "the same one twice": (
        VECTORS, "%q: <3 x f64>, %q: <3 x f64>, %s: <3 x f64>, %p: <3 x f64>", "", PLAIN, ["<5 x 12 x f64>"],
    ),
    "shapes and element types": (
        "<5 x 3 x f64>, <5 x f64>, <5 x 3 x 1 x f64>, <5 x 3 x bool>",
        "%q: <3 x f64>, %m: f64, %w: <3 x 1 x f64>, %u: <3 x bool>", "", MIXED,
        ["<5 x 3 x bool>", "<5 x 7 x f64>"],
    ),
    "one outside of a loop": (
        VECTORS, FOUR, "    %o = gather %a: <5 x 3 x f64> at %n: i64 along 0 bounds clip",
        PLAIN.replace("%k: <3 x f64>\n", "%o: <3 x f64>\n", 1), ["<5 x 12 x f64>"],
    ),
    "a whole one": (
        VECTORS, FOUR, "    %o = reduce %d: <5 x 3 x f64> by add along 0",
        PLAIN.replace("%k: <3 x f64>\n", "%o: <3 x f64>\n", 1), ["<5 x 3 x f64>", "<5 x 9 x f64>"],
    ),
    "columns": (
        VECTORS, FOUR, "    %o = gather %d: <5 x 3 x f64> at 1: i64 along 1 bounds inside",
        PLAIN.replace("%y1: f64\n", "%y3: f64\n").replace(
            "        %y2 =", "        %o1 = gather %o: <5 x f64> at %l: i64 along 0 bounds inside\n"
            "        %y3 = add %y1: f64, %o1: f64\n        %y2 =",
        ), ["<5 x 3 x f64>", "<5 x 9 x f64>"],
    ),
    "none that is read": (
        VECTORS, FOUR, "", "        %k2 = sin %k: <3 x f64>\n        %y2 = sin %y: f64\n",
        ["<5 x 3 x f64>"] * 4,
    ),
}  # fmt: skip


def stacked(module: Module) -> list[str]:
    """The types of what the loops stack."""
    body = module.functions["f"].body
    assert body is not None
    return sorted(str(flow.type) for i in walk(body) for flow in flows_in(i, Role.STACKED))


@pytest.fixture
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interleave_stacks, "LEAST_STACKS", 2)
    monkeypatch.setattr(interleave_stacks, "LEAST_BYTES", 1)


@pytest.mark.usefixtures("of_any_size")
@pytest.mark.parametrize("name", BLOCKS)
def test_what_is_read_one_by_one_lies_side_by_side(name: str) -> None:
    types, yields, reads, lines, wanted = BLOCKS[name]
    text = TEXT.format(types=types, yields=yields, reads=reads, lines=lines)
    module, changed = parse_module(text), parse_module(text)
    assert apply_pass(InterleaveStacks(), changed) == (stacked(module) != sorted(wanted))
    verify(changed)
    assert stacked(changed) == sorted(wanted)
    assert not apply_pass(InterleaveStacks(), changed), "it changes nothing the second time"
    rng = np.random.default_rng(0)
    arguments = rng.normal(size=(ROUNDS, 3)), rng.normal(size=3), np.asarray(9)
    expected = evaluate(module, "f", *arguments)
    assert same_bits(evaluate(changed, "f", *arguments), expected)
    read_back = parse_module(print_module(changed))
    assert same_bits(evaluate(read_back, "f", *arguments), expected)


def test_few_or_short_or_wide_ones_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    types, yields, reads, lines, _ = BLOCKS["vectors"]
    text = TEXT.format(types=types, yields=yields, reads=reads, lines=lines)
    sizes = {"LEAST_STACKS": 4, "LEAST_BYTES": 4 * 5 * 3 * 8, "MOST_BYTES": 3 * 8}
    for name, step in [("", 0), ("LEAST_STACKS", 1), ("LEAST_BYTES", 1), ("MOST_BYTES", -1)]:
        for each, size in sizes.items():
            monkeypatch.setattr(interleave_stacks, each, size + step * (each == name))
        assert apply_pass(InterleaveStacks(), parse_module(text)) == (not name), name


UNARY: Sequence[Callable[[Any], Any]] = (
    nk.sin, nk.tanh, nk.sigmoid, nk.square, lambda x: nk.exp(nk.minimum(x, 1.0)), lambda x: x[::-1],
    lambda x: nk.sort(x), lambda x: nk.cumsum(x), lambda x: nk.maximum(x, 0.0),
)  # fmt: skip
BINARY: Sequence[Callable[[Any, Any], Any]] = (
    lambda x, y: x * y, lambda x, y: x - y, lambda x, y: x * (x * y).sum(),
    lambda x, y: nk.select(x > y, x, x * y), lambda x, y: x / (1.0 + nk.square(y)),
)  # fmt: skip


def loss_of(seed: int) -> Any:
    """Of the last states of a loop: what a round does is drawn, and each round reads a row and a state of before."""

    @nk.staged
    def loss(w: Rep[Tensor2D[f64]], x: Rep[Tensor2D[f64]]) -> Rep[Scalar[f64]]:
        def step(state: Rep[Tensor1D[f64]], row: Rep[Tensor1D[f64]]) -> Any:
            r, values = random.Random(seed), [state, row]
            for _ in range(r.randint(2, 6)):
                made = r.choice(BINARY)(r.choice(UNARY)(r.choice(values)), r.choice(values))
                values.append(nk.tanh(made @ w) if r.random() < 0.2 else made)
            return nk.tanh(values[-1] + state), values[r.randrange(2, len(values))]

        last, rows = x.scan(w[0], step)
        return nk.tanh(last).sum() + nk.sin(rows.tensor()).sum()

    return loss


def optimized(slope: Any, arrays: Sequence[Array]) -> Module:
    return parse_module(slope.ir(*arrays, stage="optimized"))


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.sampled_from(["gradient", "tangent of the gradient"]))
def test_random_loops_keep_every_bit(seed: int, kind: str) -> None:
    """As the evaluator computes them; loops that keep fewer than two tensors are no cases."""
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(-1, 1, size=shape) for shape in ((3, 3), (ROUNDS, 3))]
    found = list[Any]()
    stacks = list[int]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interleave_stacks, "LEAST_STACKS", 2)
        patch.setattr(interleave_stacks, "LEAST_BYTES", 1)
        for disabled in ("", "interleave"):
            patch.setenv("NNKIT_DISABLE", disabled)
            slope = nk.gradient(of=loss_of(seed), wrt=(0, 1))
            values = arrays
            if kind != "gradient":
                slope, values = nk.jvp(slope, wrt=(0, 1)), [*arrays, *arrays]
            module = optimized(slope, values)
            (entry,) = (f.name for f in module.functions.values() if f.body is not None)
            found.append(evaluate(module, entry, *values))
            stacks.append(most_stacks(module))
    assume(stacks[0] < stacks[1])
    assert same_bits(*found)


def most_stacks(module: Module) -> int:
    """How many tensors one loop stacks."""
    bodies = [f.body for f in module.functions.values() if f.body is not None]
    return max(len(flows_in(i, Role.STACKED)) for body in bodies for i in walk(body))


def cells(count: int, rounds: int, width: int) -> tuple[Any, list[Any]]:
    """The gradient of so many cells, one above the other, and arguments for it."""

    @nk.staged
    def loss(w: Rep[Tensor2D[f32]], x: Rep[Tensor2D[f32]]) -> Rep[Scalar[f32]]:
        def step(states: Rep[Tensor2D[f32]], row: Rep[Tensor1D[f32]]) -> Any:
            top, kept = row, list[Any]()
            for k in range(count):
                top = nk.tanh(top * w[k] + nk.sigmoid(states[k]) * top)
                kept.append(top)
            return nk.stack(kept), top

        _, tops = x.scan(w * 0.0, step)
        return nk.square(tops.tensor()).mean()

    rng = np.random.default_rng(count)
    arrays = [rng.normal(size=(n, width)).astype(np.float32) for n in (count, rounds)]
    return nk.value_and_gradient(of=loss, wrt=(0, 1)), arrays


@pytest.mark.parametrize("width", [1, 14, 16, 37])
def test_gradients_of_loops_are_the_same(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled, where what the loop keeps is much for caches of one byte."""
    monkeypatch.setattr(interleave_stacks, "LEAST_BYTES", 1)
    found, stacks = list[Any](), list[int]()
    for disabled in ("", "interleave"):
        monkeypatch.setenv("NNKIT_DISABLE", disabled)
        slope, arrays = cells(8, 40, width)
        found.append(flat(slope(*arrays)))
        stacks.append(most_stacks(optimized(slope, arrays)))
    assert stacks[0] < LEAST_STACKS <= stacks[1]
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-5, atol=1e-6)


def test_what_the_caches_hold_stays_as_it_is() -> None:
    """The loop of eight cells keeps sixteen tensors and more, which are interleaved from 8 MiB on."""
    for rounds, is_taken in ((100, False), (20_000, True)):
        slope, arrays = cells(8, rounds, 14)
        assert (most_stacks(optimized(slope, arrays)) >= LEAST_STACKS) != is_taken
