"""Interleaved stacks: which tensors are taken together, and that every bit stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f32
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.ir.surgery import walk
from nnkit.core.ops.flows import Role, flows_in
from nnkit.core.passes import interleave_stacks
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.interleave_stacks import LEAST_STACKS, InterleaveStacks
from nnkit.core.text import parse_module, print_module
from nnkit.core.verify import verify
from tests.programs import Program, programs, same_bits

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


@pytest.mark.usefixtures("of_any_size")
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(control=True, memory=True))
def test_random_programs_keep_every_bit(program: Program) -> None:
    module = parse_module(print_module(program.module))
    apply_pass(InterleaveStacks(), module)
    verify(module)
    expected = evaluate(program.module, program.entry, *program.arguments)
    assert same_bits(evaluate(module, program.entry, *program.arguments), expected)


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


def leaves(value: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in leaves(part)]
    return [np.asarray(value)]


@pytest.mark.parametrize("width", [1, 14, 16, 37])
def test_gradients_of_loops_are_the_same(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a loop that keeps more than the caches hold, and of one for which that is said to be little."""
    monkeypatch.setattr(interleave_stacks, "LEAST_BYTES", 1)
    found = list[list[np.ndarray[Any, Any]]]()
    for disabled in ("", "interleave"):
        monkeypatch.setenv("NNKIT_DISABLE", disabled)
        slope, arrays = cells(8, 40, width)
        assert (f"<40 x {width} x f32>" in slope.ir(*arrays, stage="optimized")) or not disabled
        found.append(leaves(slope(*arrays)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_what_the_caches_hold_stays_as_it_is() -> None:
    """The loop of eight cells keeps sixteen tensors and more, which are interleaved from 8 MiB on."""
    for rounds, is_taken in ((100, False), (20_000, True)):
        slope, arrays = cells(8, rounds, 14)
        module = parse_module(slope.ir(*arrays, stage="optimized"))
        (main,) = (f for f in module.functions.values() if f.body is not None)
        assert main.body is not None
        loops = [flows_in(i, Role.STACKED) for i in walk(main.body)]
        assert (max(map(len, loops)) >= LEAST_STACKS) != is_taken
