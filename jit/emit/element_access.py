"""Loads and stores of one element per lane: scalar, vector, masked, strided or gather, by how the lanes' addresses lie.

| lanes lie                          | read                     | written                   |
|------------------------------------|--------------------------|---------------------------|
| all on one element                 | one scalar               | one scalar                |
| one after the other                | one vector, masked       | one or two plain vectors  |
| backwards                          | one vector, reversed     | the same                  |
| at a constant distance             | scalar by scalar         | scalar by scalar          |
| anywhere, or not all are elements  | one gather               | scalar by scalar, in turn |

Nothing is stored under a mask that LLVM could know: see Note [Stores under constant masks].
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

from ...core.lazy_dataclass import dataclass
from ...core.types import DType
from .elements import memory_type, pack, unpack
from .values import YMM_BYTES, ZMM_BYTES
from .writer import (
    I8,
    PTR,
    FunctionWriter,
    LLVMType,
    ModuleWriter,
    Register,
    constant,
    constants,
    poison,
)

ZERO_ELEMENT: Final = Register("@nothing", PTR)
"""A vector of zeros, which every module with kernels defines by `define_zero_element`."""


def define_zero_element(module: ModuleWriter) -> None:
    """Write the constant `ZERO_ELEMENT`."""
    module.data(ZERO_ELEMENT.text[1:], bytes(ZMM_BYTES), align=ZMM_BYTES)


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes of a step, of which the first `active` are points of the loop."""

    count: int = 1
    active: int = 1

    @property
    def mask(self) -> Register | None:
        """The active lanes; None when all are."""
        return None if self.active == self.count else _lanes_from(0, self.active, self.count)

    @property
    def reversed_mask(self) -> Register:
        """The active lanes when they are counted from the last."""
        return _lanes_from(self.count - self.active, self.count, self.count)


@dataclass(frozen=True, slots=True)
class Pointers:
    """The address of the first lane's element, and the stride or offsets of the others.

    `offsets` are elements to add to the pointer, lane by lane, and replace `stride`.  `condition` says
    where there is an element, for all lanes or for each.  The tensor `is_short` if a vector
    holds it, and no loop goes around.
    """

    dtype: DType
    pointer: Register
    stride: int
    offsets: Register | None
    condition: Register | None
    varies: bool
    is_short: bool = False

    @property
    def element(self) -> LLVMType:
        return memory_type(self.dtype)


def offset_bytes(w: FunctionWriter, pointer: Register, bytes: int) -> Register:
    """A pointer plus bytes, without `inbounds`: it need not lie in the same object until it is used."""
    return w.value(PTR, f"getelementptr i8, {pointer.typed}, i64 {bytes}") if bytes else pointer


def element_address(w: FunctionWriter, base: Register, type: LLVMType, index: Register) -> Register:
    """The address of element `index`, or one per lane; the same holds."""
    result = PTR.with_lanes(index.type.lanes)
    return w.value(result, f"getelementptr {type.text}, {base.typed}, {index.typed}")


def opaque_address(w: FunctionWriter, pointer: Register) -> Register:
    """The same address behind an optimization barrier: LLVM cannot know that it is the same."""
    variable = w.allocate(PTR, align=8)
    w.store(pointer, variable, volatile=True)
    return w.load(variable, PTR, volatile=True)


def load_elements(w: FunctionWriter, at: Pointers, lanes: Lanes) -> Register:
    """The elements in registers; zero where there is none."""
    if not at.varies or lanes.count == 1:
        return _read_one(w, at)
    if at.offsets is None and at.stride == 1:
        return _read_consecutive(w, at, lanes)
    if at.offsets is None and at.stride == -1 and at.condition is None:
        return _read_backwards(w, at, lanes)
    if at.offsets is None and at.condition is None:
        return _read_strided(w, at, lanes)
    return _read_anywhere(w, at, lanes)


def store_elements(w: FunctionWriter, at: Pointers, value: Register, lanes: Lanes) -> None:
    """Store the elements; inactive or out-of-bounds lanes write nothing, and of one element the last lane's stays."""
    if not at.varies:
        last = value if value.type.lanes == 1 else w.extract(value, lanes.active - 1)
        _write_one(w, at, last)
    elif lanes.count == 1:
        _write_one(w, at, value)
    elif at.offsets is None and at.stride == 1:
        _write_consecutive(w, at, w.splat(value, lanes.count), lanes)
    elif at.offsets is None and at.stride == -1 and at.condition is None:
        _write_backwards(w, at, w.splat(value, lanes.count), lanes)
    else:
        _write_by_lane(w, at, w.splat(value, lanes.count), lanes)


# Reading.


def _read_one(w: FunctionWriter, at: Pointers) -> Register:
    """Where there may be no element, a zero is read in its place, without a branch."""
    pointer = at.pointer
    if at.condition is not None:
        pointer = w.select(at.condition, pointer, ZERO_ELEMENT)
    return unpack(w, w.load(pointer, at.element), at.dtype)


def _read_consecutive(w: FunctionWriter, at: Pointers, lanes: Lanes) -> Register:
    type = at.element.with_lanes(lanes.count)
    mask = _mask(w, at, lanes)
    if mask is None:
        stored = w.load(at.pointer, type)
    elif at.condition is None and at.is_short and type.size <= YMM_BYTES:
        stored = _read_pieces(w, at, type, lanes.active)
    else:
        stored = w.masked_load(_near(w, at, mask), mask, constant(type, 0))
    return unpack(w, stored, at.dtype)


def _read_pieces(w: FunctionWriter, at: Pointers, type: LLVMType, active: int) -> Register:
    """The active lanes of a short vector, as they are stored: such a load does not wait for stores to reach the cache.

    Of three f64, which are stored as two and one, it takes 4 ns from register to register instead of 8.
    """
    stored = constant(type, 0)
    for lane, count in _pieces(0, active):
        pointer = offset_bytes(w, at.pointer, lane * at.dtype.bytes)
        part = w.load(pointer, at.element.with_lanes(count))
        if count == 1:
            stored = w.insert(stored, part, lane)
        else:
            none = constant(part.type, 0)
            wide = w.shuffle(part, none, [min(n, count) for n in range(type.lanes)])
            found = range(type.lanes)
            chosen = [type.lanes + n - lane if lane <= n < lane + count else n for n in found]
            stored = w.shuffle(stored, wide, chosen) if lane else wide
    return stored


def _near(w: FunctionWriter, at: Pointers, mask: Register) -> Register:
    """The pointer where there is an element at least: far outside of the tensor, where nothing is mapped, CPUs need a
    hundred times as long to find that no lane is to be read."""
    if at.condition is None:
        return at.pointer
    found = at.condition if at.condition.type.lanes == 1 else w.reduce("or", mask)
    return w.select(found, at.pointer, ZERO_ELEMENT)


def _read_backwards(w: FunctionWriter, at: Pointers, lanes: Lanes) -> Register:
    type = at.element.with_lanes(lanes.count)
    first = offset_bytes(w, at.pointer, (1 - lanes.count) * at.dtype.bytes)
    if lanes.mask is None:
        stored = w.load(first, type)
    else:
        stored = w.masked_load(first, lanes.reversed_mask, constant(type, 0))
    return unpack(w, _reverse(w, stored), at.dtype)


def _read_strided(w: FunctionWriter, at: Pointers, lanes: Lanes) -> Register:
    stored = poison(at.element.with_lanes(lanes.count))
    for lane in range(lanes.active):
        pointer = offset_bytes(w, at.pointer, lane * at.stride * at.dtype.bytes)
        stored = w.insert(stored, w.load(pointer, at.element), lane)
    return unpack(w, stored, at.dtype)


def _read_anywhere(w: FunctionWriter, at: Pointers, lanes: Lanes) -> Register:
    type = at.element.with_lanes(lanes.count)
    pointers = element_address(w, at.pointer, at.element, _offsets(at, lanes))
    stored = w.gather(pointers, type, mask=_mask(w, at, lanes), otherwise=constant(type, 0))
    return unpack(w, stored, at.dtype)


# Writing.


def _write_one(w: FunctionWriter, at: Pointers, value: Register) -> None:
    stored = pack(w, value, at.dtype)
    if at.condition is not None:
        with w.when(at.condition):
            w.store(stored, at.pointer)
    else:
        w.store(stored, at.pointer)


def _write_consecutive(w: FunctionWriter, at: Pointers, value: Register, lanes: Lanes) -> None:
    condition = at.condition
    if condition is None:
        _write_range(w, at, value, 0, lanes.active)
    elif condition.type.lanes == 1:
        with w.when(condition):
            _write_range(w, at, value, 0, lanes.active)
    else:
        mask = _mask_of(w, condition, lanes)
        with w.when(
            w.reduce("or", mask)
        ):  # an address far outside is slow even if no lane is written
            w.masked_store(pack(w, value, at.dtype), at.pointer, _unknown(w, mask))


def _write_backwards(w: FunctionWriter, at: Pointers, value: Register, lanes: Lanes) -> None:
    last = offset_bytes(w, at.pointer, (1 - lanes.count) * at.dtype.bytes)
    backwards = Pointers(at.dtype, last, 1, None, None, True)
    _write_range(w, backwards, _reverse(w, value), lanes.count - lanes.active, lanes.count)


def _write_range(w: FunctionWriter, at: Pointers, value: Register, first: int, end: int) -> None:
    """Store the lanes `first` … `end` - 1 of consecutive elements, the first lane's at the pointer."""
    stored = pack(w, value, at.dtype)
    for lane, count in _pieces(first, end):
        pointer = offset_bytes(w, at.pointer, lane * at.dtype.bytes)
        w.store(w.subvector(stored, lane, count), pointer)


def _pieces(first: int, end: int) -> list[tuple[int, int]]:
    """Vectors of 2ᵏ lanes that cover the lanes `first` … `end` - 1, as (first lane, lanes): at most two.

    They overlap where two that do not would not suffice: 7 lanes are 0 … 3 and 3 … 6, 6 lanes are 0 … 3 and 4 … 5.
    """
    count = end - first
    whole = 1 << (count.bit_length() - 1)
    rest = count - whole
    if rest == 0:
        return [(first, count)]
    last = rest if rest.bit_count() == 1 else whole
    return [(first, whole), (end - last, last)]


def _write_by_lane(w: FunctionWriter, at: Pointers, value: Register, lanes: Lanes) -> None:
    for lane, one in enumerate(_by_lane(w, at, lanes)):
        _write_one(w, one, w.extract(value, lane))


def _by_lane(w: FunctionWriter, at: Pointers, lanes: Lanes) -> Iterator[Pointers]:
    """The element of each active lane."""
    for lane in range(lanes.active):
        if at.offsets is None:
            pointer = offset_bytes(w, at.pointer, lane * at.stride * at.dtype.bytes)
        else:
            pointer = element_address(w, at.pointer, at.element, w.extract(at.offsets, lane))
        condition = at.condition
        if condition is not None and condition.type.lanes > 1:
            condition = w.extract(condition, lane)
        yield Pointers(at.dtype, pointer, 0, None, condition, False)


# Lanes.


def _mask(w: FunctionWriter, at: Pointers, lanes: Lanes) -> Register | None:
    """The lanes that are active and have an element; None for all."""
    if at.condition is None:
        return lanes.mask
    mask = _mask_of(w, at.condition, lanes)
    # several vectors without AVX-512: of one without lanes, as far as LLVM 22.1 knows, it reads what it must not, or it
    # aborts (docs/decisions/0017)
    is_split = not w.scalef and lanes.count * at.dtype.bytes > YMM_BYTES
    return _unknown(w, mask) if is_split else mask


def _mask_of(w: FunctionWriter, condition: Register, lanes: Lanes) -> Register:
    """The active lanes where the condition holds."""
    condition = w.splat(condition, lanes.count)
    return condition if lanes.mask is None else w.and_(condition, lanes.mask)


def _unknown(w: FunctionWriter, mask: Register) -> Register:
    """The same mask, no lane of which LLVM knows: joined by `and`, lanes that are not set would be known."""
    zero = w.load(ZERO_ELEMENT, I8, volatile=True)
    none = w.icmp("ne", w.splat(zero, mask.type.lanes), constant(I8.with_lanes(mask.type.lanes), 0))
    return w.xor(mask, none)


@cache
def _lanes_from(first: int, end: int, count: int) -> Register:
    return constants("i1", [first <= lane < end for lane in range(count)])


def _offsets(at: Pointers, lanes: Lanes) -> Register:
    if at.offsets is not None:
        return at.offsets
    return constants("i64", [lane * at.stride for lane in range(lanes.count)])


def _reverse(w: FunctionWriter, x: Register) -> Register:
    return w.shuffle(x, None, list(range(x.type.lanes - 1, -1, -1)))


# Note [Stores under constant masks]
#
# LLVM 22.1 stores too much for AVX-512 when a mask has exactly one lane set and what is stored was truncated: the whole
# of what it was truncated from.  It looks when masks have been folded, so that a comparison of constants is a constant
# mask too; and what it takes for a masked store need not be written as one, but may be the store of a `select` between
# something and what is there.  Hence
# - the lanes of a tail, which are known, are stored as plain vectors and scalars (`_pieces`);
# - a condition that differs from lane to lane is joined with a word that LLVM must read (`_unknown`), each lane of it:
#   for AVX2, where of 32 lanes 8 are known not to be set and the others are not known, LLVM reads those 8, or fails an
#   assertion, so that masks of loads are joined so too where they are several vectors (`_mask`);
# - the address of a result that may lie where an operand does, of integers selected by coordinates, is
#   `opaque_address`.
# Loads under masks that are known as a whole are right.
# `docs/decisions/0017-no-stores-under-constant-masks.md` has the versions and costs.
