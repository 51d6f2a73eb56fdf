"""Global variables, boxes, stacks, pointers that were cast, and the ops on bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.errors import TrapError
from nnkit.core.evaluate import evaluate
from nnkit.core.types import BOOL, DTYPES, Array, DType, TensorType

from .running import module_of, run

COUNTER = """var @n: i64
func @next: () -> i64 {
'entry():
    %p = literal @n: *i64
    %x = load %p: *i64
    %y = add %x: i64, 1: i64
    store %y: i64 to %p: *i64
    return %y: i64
}
func @f: () -> (i64, i64, i64) {
'entry():
    %a = apply @next(): () -> i64
    %b = apply @next(): () -> i64
    %c = apply @next(): () -> i64
    return (%a: i64, %b: i64, %c: i64): (i64, i64, i64)
}
"""


def test_variables_last_as_long_as_a_run() -> None:
    module = module_of(COUNTER)
    for _ in range(2):
        assert evaluate(module, "f") == (1, 2, 3)


BOXES = """func @share: (f32) -> f32 {
'entry(%x: f32):
    %b = allocateBox f32
    %p = projectBox %b: box{f32}
    store %x: f32 to %p: *f32
    retain %b: box{f32}
    release %b: box{f32}
    %y = load %p: *f32
    release %b: box{f32}
    return %y: f32
}
func @late: () -> f32 {
'entry():
    %b = allocateBox f32
    %p = projectBox %b: box{f32}
    release %b: box{f32}
    %y = load %p: *f32
    return %y: f32
}
func @twice: () -> void {
'entry():
    %b = allocateBox f32
    release %b: box{f32}
    release %b: box{f32}
    return
}
func @revive: () -> void {
'entry():
    %b = allocateBox f32
    release %b: box{f32}
    retain %b: box{f32}
    return
}
func @null: () -> void {
'entry():
    %b = literal null: box{f32}
    release %b: box{f32}
    return
}
func @project: () -> f32 {
'entry():
    %b = literal null: box{f32}
    %p = projectBox %b: box{f32}
    %y = load %p: *f32
    return %y: f32
}
func @free: () -> void {
'entry():
    %b = allocateBox f32
    %p = projectBox %b: box{f32}
    deallocate %p: *f32
    return
}
func @inner: () -> f32 {
'entry():
    %b = allocateBox f32
    %p = projectBox %b: box{f32}
    store 3: f32 to %p: *f32
    %c = allocateBox box{f32}
    %q = projectBox %c: box{box{f32}}
    store %b: box{f32} to %q: *box{f32}
    release %c: box{box{f32}}
    %y = load %p: *f32
    return %y: f32
}
"""


def test_a_box_lasts_as_long_as_its_owners() -> None:
    assert run(BOXES, "share", 4) == 4


def test_a_box_in_a_box_keeps_its_owner() -> None:
    assert run(BOXES, "inner") == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("late", "load from a box that was released by its last owner"),
        ("twice", "release a box that was released by its last owner"),
        ("revive", "retain a box that was released by its last owner"),
        ("null", "release null"),
        ("project", "load from null"),
        ("free", "deallocate a box: only heap memory is given back"),
    ],
)
def test_wrong_use_of_boxes_stops_the_program(name: str, message: str) -> None:
    with pytest.raises(TrapError, match=message):
        run(BOXES, name)


# a machine for `numbers, +, ×` in postfix notation: its code is an array of enums, its memory a stack
MACHINE = """enum $Code { ?push(f32), ?add, ?multiply }
func @binary: (stack, bool) -> void {
'entry(%s: stack, %is_add: bool):
    %y = pop f32 from %s: stack
    %x = pop f32 from %s: stack
    %a = add %x: f32, %y: f32
    %m = multiply %x: f32, %y: f32
    %z = select %a: f32, %m: f32 by %is_add: bool
    push %z: f32 to %s: stack
    return
}
func @step: (stack, $Code) -> void {
'entry(%s: stack, %c: $Code):
    branchEnum %c: $Code case ?push 'push case ?add 'add case ?multiply 'multiply
'push(%x: f32):
    push %x: f32 to %s: stack
    return
'add():
    %n = apply @binary(%s, true: bool): (stack, bool) -> void
    return
'multiply():
    %k = apply @binary(%s, false: bool): (stack, bool) -> void
    return
}
func @run: ([5 x $Code]) -> f32 {
'entry(%code: [5 x $Code]):
    %s = createStack
    %p = allocateStack [5 x $Code] count 1
    store %code: [5 x $Code] to %p: *[5 x $Code]
    for 0: i64 upto 5: i64 {
    'body(%i: i64):
        %e = elementPointer %p: *[5 x $Code] at %i: i64
        %c = load %e: *$Code
        %n = apply @step(%s, %c): (stack, $Code) -> void
        yield
    }
    %r = pop f32 from %s: stack
    destroyStack %s: stack
    return %r: f32
}
"""


def test_a_stack_machine() -> None:
    def push(number: float) -> tuple[str, tuple[float]]:
        return ("push", (number,))

    code = [push(2), push(3), ("add", ()), push(4), ("multiply", ())]
    assert run(MACHINE, "run", code) == 20
    with pytest.raises(TrapError, match="pop f32 from an empty stack"):
        run(MACHINE, "run", [push(1), ("add", ()), push(1), push(1), push(1)])


STACKS = """func @mixed: () -> (f32, <2 x i64>, stack) {
'entry():
    %s = createStack
    %t = createStack
    push %t: stack to %s: stack
    push 1: <2 x i64> to %s: stack
    push 2: f32 to %s: stack
    %x = pop f32 from %s: stack
    %y = pop <2 x i64> from %s: stack
    %u = pop stack from %s: stack
    return (%x: f32, %y: <2 x i64>, %u: stack): (f32, <2 x i64>, stack)
}
func @type: () -> i64 {
'entry():
    %s = createStack
    push 2: f32 to %s: stack
    %x = pop i64 from %s: stack
    return %x: i64
}
func @gone: () -> void {
'entry():
    %s = createStack
    push 2: f32 to %s: stack
    destroyStack %s: stack
    push 2: f32 to %s: stack
    return
}
func @twice: () -> void {
'entry():
    %s = createStack
    destroyStack %s: stack
    destroyStack %s: stack
    return
}
func @popped: () -> void {
'entry():
    %s = createStack
    destroyStack %s: stack
    %x = pop f32 from %s: stack
    return
}
func @null: () -> void {
'entry():
    %s = literal null: stack
    push 2: f32 to %s: stack
    return
}
"""


def test_stacks_hold_values_of_any_types() -> None:
    x, y, inner = run(STACKS, "mixed")
    assert x == 2 and y.tolist() == [1, 1] and isinstance(inner, int)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("type", "pop i64 from a stack with a f32 on top"),
        ("gone", "push to a stack that was destroyed"),
        ("twice", "destroy a stack that was destroyed"),
        ("popped", "pop from a stack that was destroyed"),
        ("null", "push to null"),
    ],
)
def test_wrong_use_of_stacks_stops_the_program(name: str, message: str) -> None:
    with pytest.raises(TrapError, match=message):
        run(STACKS, name)


NUMERIC = [dtype for dtype in DTYPES.values() if dtype.is_numeric]


@given(
    source=st.sampled_from(NUMERIC),
    target=st.sampled_from([*NUMERIC, BOOL]),
    start=st.integers(0, 16),
    before=st.booleans(),
)
def test_bytes_are_seen_as_other_values(
    source: DType, target: DType, start: int, before: bool
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
    {store.format(whole, "%p") if before else ""}
    %bytes = bitCast %p: *{whole} to *i8
    %back = bitCast %bytes: *i8 to *{whole}
    {"" if before else store.format(whole, "%back")}
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
     "load from memory out of bounds: element 4 of 4"),
    ("%q = elementPointer %p: *<4 x f32> at %i: i64 %x = load %q: *f32",
     "load from memory out of bounds: element 4 of 4"),
    ("%n = bitCast 4096: i64 to *f32 %x = load %n: *f32", "load from memory out of bounds"),
    ("%n = bitCast 0: i64 to *f32 %x = load %n: *f32", "load from null"),
    ("store 12345: i64 to @count: *i64 %q = bitCast @count: *i64 to *$E %e = load %q: *$E",
     "a \\$E was taken from bytes that are none"),
    ("store 4096: i64 to @count: *i64 %q = bitCast @count: *i64 to *box{i64} %x = load %q: *box{i64}"
     " retain %x: box{i64}", "retain what is not a box"),
    ("%n = bitCast %p: *<4 x f32> to i64 store %n: i64 to @count: *i64 %q = bitCast @count: *i64 to *box{i64}"
     " %x = load %q: *box{i64} release %x: box{i64}", "release what is not a box"),
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


BYTES = """var @g: i64
func @inc: (i64) -> i64 {
'entry(%x: i64):
    %y = add %x: i64, 1: i64
    return %y: i64
}
func @f: (i64) -> i64 {
'entry(%x: i64):
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%g = addressOf @g of 8\n writeBytes %x: i64 to %g: i64 plus 0\n"
         "%h = addressOf @g of 8\n %r = readBytes %h: i64 plus 0 as i64\n return %r: i64", 5),
        ("%f = functionAddress @inc as (i64) -> i64\n"
         "%r = callAddress %f: i64 of %x: i64 as (i64) -> i64\n return %r: i64", 6),
        ("checkAddress 0: i64 before \"go to\"\n return %x: i64", "go to null"),
        ("checkAddress 1: i64 before \"go to\"\n return %x: i64", "go to memory out of bounds"),
        ("stopIf true: bool because \"so it is\"\n return %x: i64", "so it is"),
        ("stopIf false: bool because \"so it is\"\n return %x: i64", 5),
        ("%r = callAddress %x: i64 of %x: i64 as (i64) -> i64\n return %r: i64", "no function"),
        ("%p = allocateBytes -1: i64 until \"heap\"\n return %x: i64", "out of memory"),
    ],
)  # fmt: skip
def test_ops_on_bytes(body: str, expected: int | str) -> None:
    module = module_of(f"{BYTES}{body}\n}}")
    if isinstance(expected, int):
        assert evaluate(module, "f", 5) == expected
    else:
        with pytest.raises(TrapError, match=expected):
            evaluate(module, "f", 5)
