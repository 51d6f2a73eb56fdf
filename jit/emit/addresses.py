"""Plans address computation for a loop nest: which loop level adds which term, and which indices need a bounds check.

An address is a chain: each level adds its coordinate times the stride.  Chains share their heads, and constants
are added at the access, so that neighbours (x[i - 1], x[i], x[i + 1]) share the whole chain.  Indices that
must be checked, clipped or compared are made at their own level, which for an index read from memory is that
of the read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from ...core.compute.address import is_inside
from ...core.errors import InternalError
from ...core.ir.instruction import Value
from ...core.location import HasLocation
from ...core.ops.nest import Affine, Bounds, Index, Loaded
from ...core.schedule.ops import Loops, compensated_outputs
from ...core.types import Shape, TensorType
from .elements import memory_type
from .steps import (
    Address,
    Advance,
    AdvanceBy,
    BoundIndex,
    CheckSite,
    IndexCheck,
    MakeIndex,
    Slot,
    Step,
    TakeIndex,
)
from .values import YMM_BYTES
from .writer import LLVMType

ZERO: Slot = 0
"""The slot of the index 0; the base addresses of operands, then of results, follow."""


class Levels:
    """The loops of a nest and the steps at each level.

    What a scalar depends on is a bit mask of loops, the outermost being bit 0.  Axes of one point have none;
    of an axis that runs in blocks, the loop inside of a block counts.
    """

    def __init__(self, op: Loops) -> None:
        blocks = op.blocks or (0,) * len(op.order)
        once = [axis for axis, block in zip(op.order, blocks, strict=True) if not block]
        if sorted(once) != list(range(len(op.extents))):
            raise InternalError(
                f"the order {op.order} does not name every axis of {op.extents} once"
            )
        kept = [n for n, axis in enumerate(op.order) if op.extents[axis] > 1]
        self.axes = tuple(op.order[n] for n in kept)
        self.blocks = tuple(blocks[n] for n in kept)
        self.position = {axis: position for position, axis in enumerate(self.axes)}
        self.vector = self.position.get(op.vector, -1) if op.lanes > 1 else -1
        self.steps: list[list[Step]] = [[] for _ in range(len(self.axes) + 1)]

    def put(self, mask: int, step: Step) -> None:
        """Add a step at the outermost level where everything it depends on is available."""
        self.steps[level(mask)].append(step)

    def varies(self, mask: int) -> bool:
        """Whether a value that depends on these loops differs between vector lanes."""
        return self.vector >= 0 and bool(mask >> self.vector & 1)

    def mask(self, axes: Iterable[int]) -> int:
        """The loops over these axes."""
        return sum(1 << self.position[axis] for axis in axes if axis in self.position)


class AddressPlanner:
    """Plans the addresses of one nest."""

    def __init__(
        self, op: Loops, levels: Levels, location: HasLocation | None, sites: list[CheckSite]
    ) -> None:
        self.extents = op.extents
        self.is_one_vector = prod(op.extents) <= op.lanes
        self.levels = levels
        self.location = location
        self.sites = sites
        self.known: dict[tuple[object, ...], Slot] = {}
        self.masks: dict[Slot, int] = {}
        self.slots = 1 + len(op.accesses) + len(op.outputs) + len(compensated_outputs(op))
        self.loaded: list[tuple[Value, int] | int] = []
        """The scalars read so far, and what they depend on; or a number that is known."""

    def plan(
        self, base: Slot, type: TensorType, indices: Sequence[Index], bounds: Bounds
    ) -> tuple[Address, int]:
        """The address of the element, and the mask of loops that it depends on."""
        linear, conditions = Affine(), list[Slot]()
        added: list[tuple[Slot, int]] = []
        known = map(self._simplified, indices)
        for index, extent, stride in zip(known, type.shape, strides(type.shape), strict=True):
            is_known = bounds is Bounds.INSIDE or is_inside(index, extent, self.extents)
            if isinstance(index, Affine) and (is_known or bounds is not Bounds.CLIP):
                linear = linear + index * stride
            if isinstance(index, Affine) and is_known:
                continue
            slot = self._index(index)
            if bounds is Bounds.CHECK:
                self._check(slot, extent)
            elif bounds is Bounds.ZERO:
                conditions.append(self._bounded(slot, extent, clips=False))
            elif bounds is Bounds.CLIP:
                slot = self._bounded(slot, extent, clips=True)
            if isinstance(index, Loaded) or bounds is Bounds.CLIP:
                added.append((slot, stride))
        return self._address(base, type, linear, added, conditions)

    def _simplified(self, index: Index) -> Index:
        """A number that is known, where it is read as an index."""
        loaded = self.loaded[index.operand] if isinstance(index, Loaded) else None
        return Affine(loaded) if isinstance(loaded, int) else index

    def _address(
        self,
        base: Slot,
        type: TensorType,
        linear: Affine,
        added: Sequence[tuple[Slot, int]],
        conditions: Sequence[Slot],
    ) -> tuple[Address, int]:
        levels = self.levels
        offsets = tuple(link for link in added if levels.varies(self.masks[link[0]]))
        uniform = [link for link in added if link not in offsets]
        pointer = self._chain(base, self._terms(linear), uniform, memory_type(type.dtype))
        mask = levels.mask(axis for axis, _ in linear.terms)
        for slot in (*conditions, *(slot for slot, _ in added)):
            mask |= self.masks[slot]
        address = Address(
            type.dtype,
            pointer,
            linear.constant,
            self._stride(linear),
            offsets,
            tuple(conditions),
            levels.varies(mask),
            type.size == 0,
            self.is_one_vector and type.bytes <= YMM_BYTES,
        )
        return address, mask

    def _terms(self, index: Affine) -> list[tuple[int, int]]:
        return [(axis, c) for axis, c in index.terms if axis in self.levels.position]

    def _stride(self, index: Affine) -> int:
        """How much the index grows from lane to lane."""
        levels = self.levels
        return index.coefficient(levels.axes[levels.vector]) if levels.vector >= 0 else 0

    def _fresh(self, mask: int) -> Slot:
        self.slots += 1
        self.masks[self.slots - 1] = mask
        return self.slots - 1

    # Indices.

    def _index(self, index: Index) -> Slot:
        """The slot of an index as an `i64`, one per lane if it varies."""
        key = (index,)
        if key in self.known:
            return self.known[key]
        if isinstance(index, Loaded):
            loaded = self.loaded[index.operand]
            assert not isinstance(loaded, int)
            value, mask = loaded
            slot = self._fresh(mask)
            self.levels.put(mask, TakeIndex(slot, value))
        else:
            mask = self.levels.mask(axis for axis, _ in index.terms)
            source = self._chain(ZERO, self._terms(index), [], None)
            slot = self._fresh(mask)
            self.levels.put(mask, MakeIndex(slot, source, index.constant, self._stride(index)))
        self.known[key] = slot
        return slot

    def _bounded(self, index: Slot, extent: int, *, clips: bool) -> Slot:
        key = (BoundIndex, index, extent, clips)
        if key not in self.known:
            mask = self.masks[index]
            self.known[key] = self._fresh(mask)
            self.levels.put(mask, BoundIndex(self.known[key], index, extent, clips))
        return self.known[key]

    def _check(self, index: Slot, extent: int) -> None:
        key = (IndexCheck, index, extent)
        if key not in self.known:
            self.sites.append(CheckSite(self.location))
            self.known[key] = index
            self.levels.put(self.masks[index], IndexCheck(index, extent, len(self.sites)))

    # Chains.

    def _chain(
        self,
        base: Slot,
        terms: Sequence[tuple[int, int]],
        uniform: Sequence[tuple[Slot, int]],
        element: LLVMType | None,
    ) -> Slot:
        """`base` plus all terms, each added at its level; equal heads are made once."""
        links = [(self.levels.mask([axis]), False, axis, c) for axis, c in terms]
        links += [(self.masks[slot], True, slot, stride) for slot, stride in uniform]
        links.sort(key=lambda link: (level(link[0]), *link[1:]))
        current, reached = base, 0
        for mask, is_slot, source, coefficient in links:
            reached |= mask
            key = (current, is_slot, source, coefficient, element)
            if key not in self.known:
                self.known[key] = target = self._fresh(reached)
                if not is_slot:
                    step: Step = Advance(target, current, source, coefficient, element)
                else:
                    assert element is not None
                    step = AdvanceBy(target, current, source, coefficient, element)
                self.levels.put(reached, step)
            current = self.known[key]
        return current


def level(mask: int) -> int:
    """The loop depth at which a value that depends on these loops is computed: inside the deepest of them."""
    return mask.bit_length()


def strides(shape: Shape) -> tuple[int, ...]:
    """Elements from one index to the next, per axis, row-major."""
    found: list[int] = []
    stride = 1
    for extent in reversed(shape):
        found.append(stride)
        stride *= extent
    return tuple(reversed(found))
