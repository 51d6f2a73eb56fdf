"""Pointers that were cast: the same bytes, seen as other values, and what stops the program."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.errors import TrapError
from nnkit.core.types import BOOL, DTYPES, Array, DType, TensorType

from .running import run

NUMERIC = [dtype for dtype in DTYPES.values() if dtype.is_numeric]


@given(
    source=st.sampled_from(NUMERIC),
    target=st.sampled_from([*NUMERIC, BOOL]),
    start=st.integers(0, 16),
    cells=st.booleans(),
)
def test_bytes_are_seen_as_other_values(
    source: DType, target: DType, start: int, cells: bool
) -> None:
    """What was stored before the cast, or through it, is read at any byte, aligned or not."""
    whole = TensorType((32 // source.bytes,), source)
    type = TensorType((16 // target.bytes,), target)
    stored = bytes([1, *range(60, 75)] * 2)
    store = "store %x: {0} to {1}: *{0}"
    text = f"""
func @f: ({whole}) -> {type} {{
'entry(%x: {whole}):
    %p = allocateStack {whole} count 1
    {store.format(whole, "%p") if cells else ""}
    %bytes = bitCast %p: *{whole} to *i8
    %back = bitCast %bytes: *i8 to *{whole}
    {"" if cells else store.format(whole, "%back")}
    %at = offset %bytes: *i8 by {start}: i64
    %q = bitCast %at: *i8 to *{type}
    %y = load %q: *{type}
    return %y: {type}
}}
"""
    found: Array = run(text, "f", source.load(np.frombuffer(stored, source.storage)))
    wanted = target.load(np.frombuffer(stored[start : start + 16], target.storage))
    np.testing.assert_array_equal(found, wanted, strict=True)


WORDS = """
enum $E { ?none, ?some(i64) }
var @count: i64
func @plus: (i64) -> i64 {
'entry(%x: i64):
    %y = add %x: i64, 1: i64
    return %y: i64
}
"""


def test_what_is_no_tensor_is_a_word() -> None:
    """Pointers, functions, boxes and cases are found again where they were put, be it by way of bytes."""
    type = "(*i64, (i64) -> i64, box{i64}, $E, i64)"
    text = f"""{WORDS}
func @f: () -> (i64, i64, i64, bool, i64, bool) {{
'entry():
    %bx = allocateBox i64
    %content = projectBox %bx: box{{i64}}
    store 5: i64 to %content: *i64
    store 3: i64 to @count: *i64
    %p = allocateHeap {type} count 2: i64
    %v = literal (@count: *i64, @plus: (i64) -> i64, %bx: box{{i64}}, ?some(4: i64): $E, 9: i64): {type}
    store %v: {type} to %p: *{type}
    %from = bitCast %p: *{type} to *<5 x i64>
    %to = offset %from: *<5 x i64> by 1: i64
    copy from %from: *<5 x i64> to %to: *<5 x i64> count 1: i64
    %p1 = offset %p: *{type} by 1: i64
    %w = load %p1: *{type}
    %a = extract 0 from %w: {type}
    %b = extract 1 from %w: {type}
    %c = extract 2 from %w: {type}
    %d = extract 3 from %w: {type}
    %e = extract 4 from %w: {type}
    %n = load %a: *i64
    %m = apply %b(%n): (i64) -> i64
    %q = projectBox %c: box{{i64}}
    %o = load %q: *i64
    %is = isCase ?some of %d: $E
    %first = bitCast %from: *<5 x i64> to *i64
    %word = load %first: *i64
    %address = bitCast @count: *i64 to i64
    %same = equal %word: i64, %address: i64
    deallocate %from: *<5 x i64>
    return (%n: i64, %m: i64, %o: i64, %is: bool, %e: i64, %same: bool): (i64, i64, i64, bool, i64, bool)
}}
"""
    assert [x.item() for x in run(text, "f")] == [3, 4, 5, True, 9, True]


def test_an_address_counts_bytes() -> None:
    text = """
func @f: (i64) -> (i64, f32) {
'entry(%i: i64):
    %p = allocateStack <4 x f32> count 1
    store <1, 2, 3, 4>: <4 x f32> to %p: *<4 x f32>
    %a = bitCast %p: *<4 x f32> to i64
    %e = elementPointer %p: *<4 x f32> at %i: i64
    %b = bitCast %e: *f32 to i64
    %d = subtract %b: i64, %a: i64
    %n = add %a: i64, %d: i64
    %q = bitCast %n: i64 to *f32
    %x = load %q: *f32
    return (%d: i64, %x: f32): (i64, f32)
}
"""
    assert [x.item() for x in run(text, "f", 3)] == [12, 4]


def test_large_aggregates_are_turned_to_bytes() -> None:
    """More elements than compiled code loads at once; none of it needs to."""
    text = """
func @f: (i64) -> (f32, f32, i32) {
'entry(%i: i64):
    %p = allocateHeap [20000 x f32] count 1: i64
    %e = elementPointer %p: *[20000 x f32] at %i: i64
    store 1: f32 to %e: *f32
    %q = bitCast %p: *[20000 x f32] to *f32
    %r = offset %q: *f32 by %i: i64
    %a = load %r: *f32
    store 2: f32 to %r: *f32
    %b = load %e: *f32
    %bits = bitCast %e: *f32 to *i32
    %c = load %bits: *i32
    deallocate %p: *[20000 x f32]
    return (%a: f32, %b: f32, %c: i32): (f32, f32, i32)
}
"""
    assert [x.item() for x in run(text, "f", 19999)] == [1, 2, 1 << 30]


STOPPED = [
    ("%q = offset %b: *i8 by 13: i64 %c = bitCast %q: *i8 to *f32 %x = load %c: *f32",
     "load from stack memory out of bounds: bytes 13 to 17 of 16"),
    ("%q = offset %b: *i8 by -1: i64 %c = bitCast %q: *i8 to *f32 store 1: f32 to %c: *f32",
     "store to stack memory out of bounds: bytes -1 to 3 of 16"),
    ("%c = bitCast %b: *i8 to *<4 x f32> %q = elementPointer %c: *<4 x f32> at %i: i64 %x = load %q: *f32",
     "load from stack memory out of bounds"),
    ("%q = elementPointer %p: *<4 x f32> at %i: i64 %x = load %q: *f32",
     "load from stack memory out of bounds: element 4 of 4"),
    ("%n = bitCast 4096: i64 to *f32 %x = load %n: *f32", "load from memory out of bounds"),
    ("%n = bitCast 0: i64 to *f32 %x = load %n: *f32", "load from null"),
    ("store 12345: i64 to @count: *i64 %q = bitCast @count: *i64 to *$E %e = load %q: *$E",
     "a \\$E was taken from bytes that are none"),
    ("%h = allocateHeap i64 count 1: i64 %c = bitCast %h: *i64 to *i8 deallocate %h: *i64 %x = load %c: *i8",
     "load from heap memory that was deallocated"),
    ("%h = allocateHeap i64 count 1: i64 %c = bitCast %h: *i64 to *i8 %d = offset %c: *i8 by 1: i64 deallocate %d: *i8",
     "only its beginning is given back"),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "message"), STOPPED)
def test_what_stops_the_program(lines: str, message: str) -> None:
    text = f"""{WORDS}
func @f: (i64) -> void {{
'entry(%i: i64):
    %p = allocateStack <4 x f32> count 1
    %b = bitCast %p: *<4 x f32> to *i8
    {lines}
    return
}}
"""
    with pytest.raises(TrapError, match=message):
        run(text, "f", 4)
