"""Pointers: where they lead, what is found there, and what stops the program."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.errors import TrapError
from nnkit.core.evaluate import EnumValue, Memory
from nnkit.core.evaluate.byte_memory import HEAP
from nnkit.core.types import DTYPES, F32, I64, DType, TensorType, scalar
from tests.patience import PATIENCE

from .running import run

LISTS = """enum $List { ?end, ?more(*(f32, $List)) }
func @f: (i64) -> f32 {
'entry(%n: i64):
    %end = literal ?end: $List
    %list = for 0: i64 upto %n: i64 carrying %end: $List {
    'body(%i: i64, %l: $List):
        %x = dataTypeCast %i: i64 to f32
        %p = allocateHeap (f32, $List) count 1: i64
        %cell = literal (%x: f32, %l: $List): (f32, $List)
        store %cell: (f32, $List) to %p: *(f32, $List)
        %m = literal ?more(%p: *(f32, $List)): $List
        yield %m: $List
    }
    branch 'walk(%list: $List, 0: f32)
'walk(%l: $List, %s: f32):
    branchEnum %l: $List case ?end 'done case ?more 'next
'next(%p: *(f32, $List)):
    %vp = elementPointer %p: *(f32, $List) at 0
    %v = load %vp: *f32
    %np = elementPointer %p: *(f32, $List) at 1
    %rest = load %np: *$List
    deallocate %p: *(f32, $List)
    %t = add %s: f32, %v: f32
    branch 'walk(%rest: $List, %t: f32)
'done():
    return %s: f32
}
"""


def test_a_linked_list_on_the_heap() -> None:
    assert run(LISTS, "f", 0) == 0
    assert run(LISTS, "f", 100) == 4950


def test_elements_are_stored_in_place() -> None:
    text = """struct $S { #rows: <2 x 3 x f32>, #pairs: [2 x (i64, bool)] }
var @s: $S
func @f: (i64, i64) -> $S {
'entry(%i: i64, %j: i64):
    %s = literal @s: *$S
    %e = elementPointer %s: *$S at #rows, %i: i64, 2
    store 7: f32 to %e: *f32
    %row = elementPointer %s: *$S at #rows, 0
    store 5: <3 x f32> to %row: *<3 x f32>
    %inner = elementPointer %row: *<3 x f32> at %j: i64
    store 6: f32 to %inner: *f32
    %b = elementPointer %s: *$S at #pairs, %j: i64, 1
    store true: bool to %b: *bool
    %r = load %s: *$S
    store 0: f32 to %e: *f32
    return %r: $S
}"""
    rows, pairs = run(text, "f", 1, 0)
    np.testing.assert_array_equal(rows, [[6, 5, 5], [0, 0, 7]])
    assert pairs == ((0, True), (0, False))


def test_what_is_loaded_and_stored_is_a_copy() -> None:
    text = """func @f: (<2 x f32>) -> (<2 x f32>, <2 x f32>, <2 x f32>) {
'entry(%x: <2 x f32>):
    %p = allocateStack <2 x f32> count 1
    store %x: <2 x f32> to %p: *<2 x f32>
    %before = load %p: *<2 x f32>
    %e = elementPointer %p: *<2 x f32> at 0
    store 9: f32 to %e: *f32
    %after = load %p: *<2 x f32>
    return (%x: <2 x f32>, %before: <2 x f32>, %after: <2 x f32>): (<2 x f32>, <2 x f32>, <2 x f32>)
}"""
    given = np.array([1, 2], np.float32)
    x, before, after = run(text, "f", given)
    for unchanged in (given, x, before):
        np.testing.assert_array_equal(unchanged, [1, 2])
    np.testing.assert_array_equal(after, [9, 2])


def test_memory_is_undefined_at_first() -> None:
    text = """enum $E { ?more($E), ?some(f32, *f32) }
func @f: () -> ($E, <2 x i64>) {
'entry():
    %p = allocateHeap ($E, <2 x i64>) count 3: i64
    %q = offset %p: *($E, <2 x i64>) by 2: i64
    %x = load %q: *($E, <2 x i64>)
    return %x: ($E, <2 x i64>)
}"""
    case, tensor = run(text, "f")
    assert case == EnumValue("some", (np.float32(0), 0))
    np.testing.assert_array_equal(tensor, [0, 0])


NEIGHBOURS = """func @fill: (i64, i64) -> f32 {
'entry(%n: i64, %k: i64):
    %p = allocateHeap f32 count %n: i64
    for 0: i64 upto %n: i64 {
    'body(%i: i64):
        %x = dataTypeCast %i: i64 to f32
        %q = offset %p: *f32 by %i: i64
        store %x: f32 to %q: *f32
        yield
    }
    %q = offset %p: *f32 by %k: i64
    %y = load %q: *f32
    deallocate %p: *f32
    return %y: f32
}
func @shift: (i64, i64, i64) -> <6 x i64> {
'entry(%from: i64, %to: i64, %n: i64):
    %p = allocateStack <6 x i64> count 1
    %x = iota 6 along 0 as i64
    store %x: <6 x i64> to %p: *<6 x i64>
    %a = elementPointer %p: *<6 x i64> at %from: i64
    %b = elementPointer %p: *<6 x i64> at %to: i64
    copy from %a: *i64 to %b: *i64 count %n: i64
    %y = load %p: *<6 x i64>
    return %y: <6 x i64>
}
func @move: (i64, i64, i64) -> (i64, i64, i64, i64) {
'entry(%from: i64, %to: i64, %n: i64):
    %p = allocateStack i64 count 4
    %p1 = offset %p: *i64 by 1: i64
    %p2 = offset %p: *i64 by 2: i64
    %p3 = offset %p2: *i64 by 1: i64
    store 10: i64 to %p: *i64
    store 11: i64 to %p1: *i64
    store 12: i64 to %p2: *i64
    %a = offset %p: *i64 by %from: i64
    %b = offset %p: *i64 by %to: i64
    copy from %a: *i64 to %b: *i64 count %n: i64
    %x0 = load %p: *i64
    %x1 = load %p1: *i64
    %x2 = load %p2: *i64
    %x3 = load %p3: *i64
    return (%x0: i64, %x1: i64, %x2: i64, %x3: i64): (i64, i64, i64, i64)
}
func @huge: () -> i64 {
'entry():
    %p = allocateHeap i64 count 100000000: i64
    %q = allocateHeap i64 count 100000000: i64
    %e = offset %p: *i64 by 90000000: i64
    store 5: i64 to %e: *i64
    %f = offset %q: *i64 by 90000000: i64
    copy from %e: *i64 to %f: *i64 count 1000: i64
    %x = load %f: *i64
    return %x: i64
}
func @endless: (i64) -> *i64 {
'entry(%n: i64):
    %p = allocateHeap i64 count %n: i64
    return %p: *i64
}
"""


def test_neighbours_on_the_heap() -> None:
    assert run(NEIGHBOURS, "fill", 10, 7) == 7
    for k in (10, -1):
        place = f"bytes {4 * k} to {4 * k + 4} of 40"
        with pytest.raises(TrapError, match=f"load from heap memory out of bounds: {place}"):
            run(NEIGHBOURS, "fill", 10, k)
    with pytest.raises(TrapError, match="allocateHeap of -1 values"):
        run(NEIGHBOURS, "fill", -1, 0)
    with pytest.raises(TrapError, match="bytes 0 to 4 of 0"):
        run(NEIGHBOURS, "fill", 0, 0)


@pytest.mark.parametrize(
    ("source", "target", "count"),
    [(0, 2, 3), (2, 0, 3), (0, 1, 5), (1, 0, 5), (3, 3, 3), (5, 0, 0)],
)
def test_copies_may_overlap(source: int, target: int, count: int) -> None:
    expected = np.arange(6)
    expected[target : target + count] = np.arange(6)[source : source + count]
    np.testing.assert_array_equal(run(NEIGHBOURS, "shift", source, target, count), expected)


@pytest.mark.parametrize(
    ("source", "target", "count"),
    [(0, 1, 3), (1, 0, 3), (3, 0, 1), (2, 0, 2), (0, 3, 1), (0, 0, 4)],
)
def test_copies_of_whole_values(source: int, target: int, count: int) -> None:
    values = [10, 11, 12, 0]
    expected = values[:]
    expected[target : target + count] = values[source : source + count]
    assert run(NEIGHBOURS, "move", source, target, count) == tuple(expected)


@pytest.mark.parametrize("name", ["shift", "move"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 0, 4), "copy from stack memory out of bounds: bytes 24 to 56 of {size}"),
        ((0, 3, 4), "copy to stack memory out of bounds: bytes 24 to 56 of {size}"),
        (
            (-1, 0, 1),
            "copy from (memory|stack memory) out of bounds: (element -1 of 6|bytes -8 to 0)",
        ),
        ((0, 0, -1), "copy of -1 values"),
        ((0, 0, 2**62), "copy from stack memory out of bounds"),
    ],
)
def test_copies_stay_inside(name: str, arguments: tuple[int, ...], message: str) -> None:
    size = {"shift": 48, "move": 32}[name]
    with pytest.raises(TrapError, match=message.format(size=size)):
        run(NEIGHBOURS, name, *arguments)


def test_memory_is_there_when_it_is_used() -> None:
    start = time.process_time()
    assert run(NEIGHBOURS, "huge") == 5
    assert time.process_time() - start < 1 * PATIENCE


@pytest.mark.parametrize("count", [2**44, 2**60, 2**62, 2**63 - 1])
def test_more_memory_than_any_machine_has_stops_the_program(count: int) -> None:
    with pytest.raises(TrapError, match="out of memory"):
        run(NEIGHBOURS, "endless", count)


WRONG = """struct $S { #a: f32, #b: f32 }
func @null: () -> f32 {
'entry():
    %p = literal null: *$S
    %q = elementPointer %p: *$S at #b
    %r = offset %q: *f32 by 1: i64
    %x = load %r: *f32
    return %x: f32
}
func @store_null: () -> void {
'entry():
    %p = literal undefined: *f32
    store 1: f32 to %p: *f32
    return
}
func @copy_null: () -> void {
'entry():
    %p = literal undefined: *f32
    copy from %p: *f32 to %p: *f32 count 0: i64
    return
}
func @free_null: () -> void {
'entry():
    %p = literal undefined: *f32
    deallocate %p: *f32
    return
}
func @after_free: () -> f32 {
'entry():
    %p = allocateHeap $S count 2: i64
    %q = elementPointer %p: *$S at #b
    deallocate %p: *$S
    %x = load %q: *f32
    return %x: f32
}
func @twice: () -> void {
'entry():
    %p = allocateHeap f32 count 1: i64
    deallocate %p: *f32
    deallocate %p: *f32
    return
}
func @inside: () -> void {
'entry():
    %p = allocateHeap f32 count 2: i64
    %q = offset %p: *f32 by 1: i64
    deallocate %q: *f32
    return
}
func @field: () -> void {
'entry():
    %p = allocateHeap $S count 2: i64
    %q = elementPointer %p: *$S at #b
    deallocate %q: *f32
    return
}
func @stack_free: () -> void {
'entry():
    %p = allocateStack f32 count 2
    deallocate %p: *f32
    return
}
func @local: () -> *f32 {
'entry():
    %p = allocateStack f32 count 2
    return %p: *f32
}
func @returned: () -> f32 {
'entry():
    %p = apply @local(): () -> *f32
    %x = load %p: *f32
    return %x: f32
}
func @left: () -> f32 {
'entry():
    %p = allocateStack $S count 2
    %q = elementPointer %p: *$S at #b
    %r = offset %q: *f32 by 3: i64
    %x = load %r: *f32
    return %x: f32
}
func @outside: () -> f32 {
'entry():
    %i = literal 4: i64
    %p = allocateStack <4 x f32> count 2
    %q = elementPointer %p: *<4 x f32> at %i: i64
    %r = offset %q: *f32 by -4: i64
    %x = load %r: *f32
    return %x: f32
}
func @next: () -> f32 {
'entry():
    %p = allocateStack $S count 2
    %q = elementPointer %p: *$S at #a
    %r = offset %q: *f32 by 1: i64
    store 3: f32 to %r: *f32
    %b = elementPointer %p: *$S at #b
    %x = load %b: *f32
    return %x: f32
}
func @back: () -> f32 {
'entry():
    %p = allocateStack $S count 2
    %q = elementPointer %p: *$S at #a
    %r = offset %q: *f32 by 1: i64
    %s = offset %r: *f32 by -1: i64
    store 3: f32 to %s: *f32
    %x = load %q: *f32
    return %x: f32
}
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("null", "load from null"),
        ("store_null", "store to null"),
        ("copy_null", "copy from null"),
        ("free_null", "deallocate null"),
        ("after_free", "load from heap memory that was deallocated"),
        ("twice", "deallocate heap memory that was deallocated"),
        ("inside", "deallocate a place inside heap memory: only its beginning is given back"),
        ("field", "deallocate a place inside heap memory: only its beginning is given back"),
        ("stack_free", "deallocate stack memory: only heap memory is given back"),
        ("returned", "load from stack memory of @local, which has returned"),
        ("left", "load from stack memory out of bounds: bytes 16 to 20 of 16"),
        ("outside", "load from memory out of bounds: element 4 of 4"),
    ],
)
def test_wrong_use_stops_the_program(name: str, message: str) -> None:
    with pytest.raises(TrapError, match=message):
        run(WRONG, name)


def test_pointers_may_leave_and_come_back() -> None:
    assert run(WRONG, "back") == 3


def test_neighbours_are_those_by_bytes() -> None:
    """As in C, whose compilers look at addresses: an allocation is one row of bytes, fields have neighbours."""
    assert run(WRONG, "next") == 3


def test_memory_outlives_the_run_that_made_it() -> None:
    text = """func @make: () -> *<2 x f32> {
'entry():
    %p = allocateHeap <2 x f32> count 1: i64
    return %p: *<2 x f32>
}
func @set: (*<2 x f32>, i64) -> void {
'entry(%p: *<2 x f32>, %i: i64):
    %e = elementPointer %p: *<2 x f32> at %i: i64
    store 1: f32 to %e: *f32
    return
}"""
    memory = Memory()
    pointer = run(text, "make", memory=memory)
    run(text, "set", pointer, 1, memory=memory)
    np.testing.assert_array_equal(memory.read(TensorType((2,), F32), pointer), [0, 1])
    with pytest.raises(TrapError, match="out of bounds"):
        run(text, "set", pointer, 1)


def test_stack_memory_of_a_body_lasts_as_long_as_the_function() -> None:
    text = """func @f: () -> i64 {
'entry():
    %none = literal null: *i64
    %p = for 0: i64 upto 3: i64 carrying %none: *i64 {
    'body(%i: i64, %before: *i64):
        %q = allocateStack i64 count 1
        store %i: i64 to %q: *i64
        yield %q: *i64
    }
    %x = load %p: *i64
    return %x: i64
}"""
    assert run(text, "f") == 2


def test_the_stack_of_each_call_is_its_own() -> None:
    text = """func @f: (i64) -> i64 {
'entry(%n: i64):
    %p = allocateStack i64 count 1
    store %n: i64 to %p: *i64
    %some = greaterThan %n: i64, 0: i64
    %below = if %some: bool -> i64 {
    'then():
        %m = subtract %n: i64, 1: i64
        %r = apply @f(%m): (i64) -> i64
        yield %r: i64
    } else {
    'else():
        yield 0: i64
    }
    %x = load %p: *i64
    %y = add %x: i64, %below: i64
    return %y: i64
}"""
    assert run(text, "f", 10) == 55


def test_an_array_in_memory_is_changed_in_constant_time() -> None:
    text = """func @f: (i64) -> i64 {
'entry(%n: i64):
    %p = allocateStack [20000 x i64] count 1
    for 0: i64 upto %n: i64 {
    'body(%i: i64):
        %e = elementPointer %p: *[20000 x i64] at %i: i64
        store %i: i64 to %e: *i64
        yield
    }
    %e = elementPointer %p: *[20000 x i64] at 77
    %x = load %e: *i64
    return %x: i64
}"""
    start = time.process_time()
    assert run(text, "f", 20_000) == 77
    assert time.process_time() - start < 4 * PATIENCE


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_what_is_written_is_read(dtype: DType) -> None:
    type = TensorType((2, 3), dtype)
    memory = Memory()
    block = memory.allocate(HEAP, 2 * type.bytes)
    x = type.dtype.round(np.arange(6).reshape(2, 3) % 2)
    assert not memory.read(type, block.address).any()
    memory.write(type, x, block.address + type.bytes)
    np.testing.assert_array_equal(memory.read(type, block.address + type.bytes), x)
    assert not memory.read(type, block.address).any()


@given(st.lists(st.integers(0, 100), min_size=1, max_size=8), st.data())
def test_blocks_do_not_touch(sizes: list[int], data: st.DataObject) -> None:
    memory = Memory()
    blocks = [memory.allocate(HEAP, size) for size in sizes]
    number = data.draw(st.integers(0, len(sizes) - 1))
    block = blocks[number]
    for outside in (block.address - 8, block.address + block.size - 7, block.address + 2**30):
        with pytest.raises(TrapError, match="out of bounds"):
            memory.read(scalar(I64), outside)
    block.give_back("that was deallocated")
    for place in (block.address - 8, block.address, block.address + block.size):
        with pytest.raises(TrapError, match="heap memory that was deallocated"):
            memory.read(scalar(I64), place)


def test_bytes_move_as_if_all_were_read_first() -> None:
    memory = Memory()
    block = memory.allocate(HEAP, 8)
    memory.write(scalar(I64), 0x0706050403020100, block.address)
    memory.move(block.address, block.address + 1, 7)
    assert memory.read(scalar(I64), block.address) == 0x0605040302010000
    memory.move(0, 0, 0)
