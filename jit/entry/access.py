"""Code that argument checks and result construction share: field loads, comparisons, and bailing out."""

from collections.abc import Sequence
from functools import reduce
from typing import Final

from ..emit.writer import I64, PTR, FunctionWriter, LLVMType, Register, constant
from ..llvm import UNOPTIMIZED
from . import layout
from .signature import ArrayNode
from .state import offset_in_state

NULL: Final = constant(PTR, 0)

QUICKLY_COMPILED: Final = f'nounwind "{UNOPTIMIZED}"'
"""Attributes of functions of an entry, whose module LLVM does not optimize: a quarter of the time to compile, for some
3 to 12 % of that of a call whose kernel has next to nothing to do."""


def field(w: FunctionWriter, base: Register, offset: int, type: LLVMType = PTR) -> Register:
    """The content of an object at a fixed offset."""
    return w.load(w.offset(base, offset), type)


def from_state(w: FunctionWriter, position: int) -> Register:
    """An object of the state, which is the first parameter of every function that needs it."""
    return field(w, w.parameters[0], offset_in_state(position))


def array_data(w: FunctionWriter, array: Register) -> Register:
    """The data pointer of an array."""
    return field(w, array, layout.ARRAY_DATA)


def equals(w: FunctionWriter, x: Register, value: int) -> Register:
    """Whether an integer or pointer is a constant."""
    return w.icmp("eq", x, constant(x.type, value))


def words_equal(
    w: FunctionWriter, words: Register, expected: Sequence[tuple[int, int]]
) -> list[Register]:
    """For each (index, value), whether that 64-bit word is the value."""
    return [equals(w, field(w, words, 8 * index, I64), value) for index, value in expected]


def lengths_of(w: FunctionWriter, entry: str, leaves: Sequence[ArrayNode], index: int) -> Register:
    """The address of the lengths of the axes of a leaf, in the table of all leaves; null without axes.

    The table is no part of the entry, whose code is so the same for all shapes.
    """
    if not leaves[index].shape:
        return NULL
    before = sum(len(leaf.shape) for leaf in leaves[:index])
    return w.offset(Register(f"@{lengths_name(entry)}", PTR), 8 * before)


def lengths_name(entry: str) -> str:
    """The table of the lengths of the axes of all leaves."""
    return f"{entry}.lengths"


def words_alike(
    w: FunctionWriter, words: Register, expected: Register, count: int
) -> list[Register]:
    """For each of so many 64-bit words in two places, whether they are the same."""
    places = range(0, 8 * count, 8)
    return [w.icmp("eq", field(w, words, at, I64), field(w, expected, at, I64)) for at in places]


def require(w: FunctionWriter, conditions: Sequence[Register], otherwise: str) -> None:
    """Branch to the label `otherwise` unless all conditions hold."""
    if conditions:
        proceed = w.new_label("ok")
        w.branch_if(reduce(w.and_, conditions), proceed, otherwise)
        w.begin(proceed)
