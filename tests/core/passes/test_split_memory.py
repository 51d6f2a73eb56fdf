"""Loads and stores by leaves: what lies in memory is the same."""

from __future__ import annotations

from nnkit.core.evaluate import evaluate
from nnkit.core.ir.surgery import walk
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.split_memory import SplitMemory
from nnkit.core.text import parse_module
from nnkit.core.types import TensorType
from nnkit.core.verify import verify

NESTED = """module "m"
stage raw
struct $In { #u: <2 x f32>, #n: [2 x i64] }
struct $S { #a: f32, #in: ($In, bool), #none: () }
func @f: (f32, i64) -> (f32, i64, i64, bool) {
'entry(%x: f32, %k: i64):
    %p = allocateStack $S count 3
    %q = offset %p: *$S by %k: i64
    %e = elementPointer %q: *$S at #in, 0, #n, %k: i64
    store %k: i64 to %e: *i64
    %a = elementPointer %q: *$S at #a
    store %x: f32 to %a: *f32
    %v = load %q: *$S
    store %v: $S to %p: *$S
    %w = load %p: *$S
    %r = extract #a from %w: $S
    %n = extract #in, 0, #n from %w: $S
    %n0 = extract 0 from %n: [2 x i64]
    %n1 = extract 1 from %n: [2 x i64]
    %b = extract #in, 1 from %w: $S
    return (%r: f32, %n0: i64, %n1: i64, %b: bool): (f32, i64, i64, bool)
}
"""


def test_every_access_is_of_a_leaf() -> None:
    plain, split = parse_module(NESTED), parse_module(NESTED)
    assert apply_pass(SplitMemory(), split)
    verify(split)
    assert not apply_pass(SplitMemory(), split)
    body = split.functions["f"].body
    assert body is not None
    accessed = [use.value for i in walk(body) for use in i.op.memory_uses(i)]
    assert all(x is not None and isinstance(x.type, TensorType) for x in accessed)
    for k in (0, 1):
        expected = evaluate(plain, "f", 2.5, k)
        assert evaluate(split, "f", 2.5, k) == expected == (2.5, 0, k, False)


def test_an_array_of_very_many_stays_whole() -> None:
    module = parse_module("""module "m"
    stage raw
    func @f: (*[20000 x f32]) -> [20000 x f32] {
    'entry(%p: *[20000 x f32]):
        %x = load %p: *[20000 x f32]
        return %x: [20000 x f32]
    }""")
    assert not apply_pass(SplitMemory(), module)
