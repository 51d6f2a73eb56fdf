"""Memory of bytes: whatever leads outside, or to what was given back, is found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.errors import TrapError
from nnkit.core.evaluate import evaluate
from nnkit.core.evaluate.heap import Heap
from nnkit.core.text import parse_module
from nnkit.core.types import DTYPES, TensorType, scalar
from nnkit.core.verify import verify

I64 = scalar(DTYPES["i64"])


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_what_is_written_is_read(dtype: object) -> None:
    type = TensorType((2, 3), dtype)  # type: ignore[arg-type]  # every element type
    heap = Heap()
    block = heap.allocate(2 * type.bytes)
    x = type.dtype.round(np.arange(6).reshape(2, 3) % 2)
    assert not heap.read(type, block.address).any()
    heap.write(type, x, block.address + type.bytes)
    np.testing.assert_array_equal(heap.read(type, block.address + type.bytes), x)
    assert not heap.read(type, block.address).any()


@given(st.lists(st.integers(0, 100), min_size=1, max_size=8), st.data())
def test_blocks_do_not_touch(sizes: list[int], data: st.DataObject) -> None:
    heap = Heap()
    blocks = [heap.allocate(size, is_heap=True) for size in sizes]
    number = data.draw(st.integers(0, len(sizes) - 1))
    block = blocks[number]
    for outside in (block.address - 8, block.address + block.size - 7):
        with pytest.raises(TrapError, match="out of bounds"):
            heap.read(I64, outside)
    heap.free(block.address)
    if block.size >= 8:
        with pytest.raises(TrapError, match="given back"):
            heap.read(I64, block.address)
    with pytest.raises(TrapError):
        heap.free(block.address)


def test_bytes_move_as_if_all_were_read_first() -> None:
    heap = Heap()
    block = heap.allocate(8)
    heap.write(I64, 0x0706050403020100, block.address)
    heap.move(block.address, block.address + 1, 7)
    assert heap.read(I64, block.address) == 0x0605040302010000
    heap.move(0, 0, 0)


def test_only_the_beginning_of_heap_memory_is_given_back() -> None:
    heap = Heap()
    heap.free(0)
    for address in (heap.allocate(8).address, heap.allocate(8, is_heap=True).address + 1, 5):
        with pytest.raises(TrapError, match="given back"):
            heap.free(address)


HEAD = """module "m"
stage raw
var @g: i64
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
def test_each_op(body: str, expected: int | str) -> None:
    module = parse_module(f"{HEAD}{body}\n}}")
    verify(module)
    if isinstance(expected, int):
        assert evaluate(module, "f", 5) == expected
    else:
        with pytest.raises(TrapError, match=expected):
            evaluate(module, "f", 5)
