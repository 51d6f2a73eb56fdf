"""Sums to which one element contributes, the one at an index that is read: they read that element alone.

    Σⱼ select(f(j), 0, j = t)  is  f(t) where 0 ≤ t < n, and else 0

What picks the element of a label out of each row, as a cross entropy does, is written as such a sum, since that is what
has a derivative in the form of nests; it went through all of the row.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir import Block, Builder, Instruction, Region, Value
from ..ir.surgery import clone_instructions
from ..lazy_dataclass import dataclass
from ..ops.arithmetic import Add
from ..ops.casting import DataTypeCast
from ..ops.combinator import Combinator
from ..ops.comparison import And, GreaterThanOrEqual, LessThan, Select
from ..ops.literal import splat
from ..ops.nest import Access, Affine, Bounds, Loaded, Nest, Output, Yield, axes_in, is_nest
from ..ops.one_hot import one_hot_index
from ..types import I64, scalar
from .switches import is_enabled


def read_one_hot_sums(block: Block) -> None:
    """Replace such sums of a block by nests that read one element."""
    if not is_enabled("one-hot"):
        return
    old, block.instructions = block.instructions, []
    b = Builder(block)
    for instruction in old:
        found = [_found(instruction, n) for n in range(len(instruction.results))]
        picks = [pick for pick in found if pick is not None]
        if picks and len(picks) == len(found):
            b.location = instruction.location
            instruction.replace_with(*[_write(b, pick) for pick in picks])
        else:
            block.instructions.append(instruction)


@dataclass(frozen=True)
class _Pick:
    """A sum of a nest, over its last axis, of what is zero but where the coordinate is a number that is read."""

    nest: Instruction[Nest]
    number: int
    chosen: int
    """The operand that the number is."""

    @property
    def axis(self) -> int:
        return len(self.nest.op.extents) - 1


def _found(instruction: Instruction, number: int) -> _Pick | None:
    if not is_nest(instruction) or not instruction.op.extents or 0 in instruction.op.extents:
        return None
    op, axis = instruction.op, len(instruction.op.extents) - 1
    written = op.outputs[number]
    plain = (Combinator.ADD, Bounds.INSIDE, None, None)
    if (
        len(op.outputs) != len(op.own_outputs)
        or (written.combinator, written.bounds, written.init, written.within) != plain
        or any(isinstance(index, Loaded) for index in written.indices)
        or axis in axes_in(written.indices)
        or not _is_plain(op, written)
    ):
        return None
    body = instruction.regions[0].entry
    value, at = body.terminator.operands[number], body.arguments[axis]
    chosen = one_hot_index(value, at, op.extents[axis])
    if chosen is None or chosen not in body.arguments[axis + 1 :]:
        return None
    pick = _Pick(instruction, number, body.arguments.index(chosen) - axis - 1)
    return pick if _may_read_there(op, pick.chosen, axis) else None


def _is_plain(op: Nest, written: Output) -> bool:
    """Whether an element is written by the points that differ from its own in the last axis alone, or sums remain."""
    kept = written.kept_axes
    return kept is not None and tuple(op.extents[axis] for axis in kept) == written.type.shape


def _may_read_there(op: Nest, chosen: int, axis: int) -> bool:
    """Whether all is read at the coordinate itself, or does not depend on it; as the number that is chosen."""
    if axis in _axes(op, chosen):
        return False
    for access in op.accesses:
        affine = [index for index in access.indices if isinstance(index, Affine)]
        if any(index.coefficient(axis) and index.axis != axis for index in affine):
            return False
        if axis in axes_in(affine) and access.bounds is not Bounds.INSIDE:
            return False
    return True


def _axes(op: Nest, number: int) -> frozenset[int]:
    """The axes that decide where an operand is read."""
    indices = op.accesses[number].indices
    found = axes_in(indices)
    for index in indices:
        if isinstance(index, Loaded):
            found |= _axes(op, index.operand)
    return found


def _write(b: Builder, pick: _Pick) -> Value:
    """The nest that reads one element."""
    op, body = pick.nest.op, pick.nest.regions[0].entry
    needed = _needed(pick)
    order = _operands(pick, needed)
    places = {old: new for new, old in enumerate(order)}
    inner = Builder(Block(name="body"), b.location)
    coordinates = [inner.argument(scalar(I64), f"d{axis}") for axis in range(pick.axis)]
    scalars = [inner.argument(scalar(pick.nest.operands[n].tensor.dtype)) for n in order]
    index = scalars[places[pick.chosen]]
    if index.tensor.dtype is not I64:
        index = inner.emit(DataTypeCast(I64), index)
    values = dict(zip(body.arguments, [*coordinates, index], strict=False))
    for old, new in places.items():
        values[body.arguments[pick.axis + 1 + old]] = scalars[new]
    computed = [i for i in body.instructions[:-1] if i.result in needed]
    clone_instructions(inner.block, computed, values)
    made = values[body.terminator.operands[pick.number]]
    zero = inner.emit(splat(made.tensor, 0))
    limits = [inner.emit(splat(scalar(I64), n)) for n in (0, op.extents[pick.axis])]
    is_inside = inner.emit(
        And(),
        inner.emit(GreaterThanOrEqual(), index, limits[0]),
        inner.emit(LessThan(), index, limits[1]),
    )
    # -0 is 0 in a sum that begins with 0
    made = inner.emit(Add(), inner.emit(Select(), made, zero, is_inside), zero)
    inner.emit_many(Yield(), [made])
    written, extents = op.outputs[pick.number], op.extents[: pick.axis]
    if len(written.indices) == len(extents):
        written = replace(written, combinator=None)
    nest = Nest(extents, tuple(_moved(op.accesses[n], pick, places) for n in order), (written,))
    operands = [pick.nest.operands[n] for n in order]
    return b.emit_many(nest, operands, [Region([inner.block])])[0]


def _needed(pick: _Pick) -> set[Value]:
    """The values of the body that the sum depends on."""
    body = pick.nest.regions[0].entry
    needed = {body.terminator.operands[pick.number]}
    for instruction in reversed(body.instructions[:-1]):
        if instruction.result in needed:
            needed.update(instruction.operands)
    return needed


def _operands(pick: _Pick, needed: set[Value]) -> list[int]:
    """The operands that are read, the number that is chosen before what is read there."""
    op, arguments = pick.nest.op, pick.nest.regions[0].entry.arguments[pick.axis + 1 :]
    order = _read_before(op, pick.chosen)
    for number, argument in enumerate(arguments):
        if argument in needed:
            order += [n for n in _read_before(op, number) if n not in order]
    return order


def _read_before(op: Nest, number: int) -> list[int]:
    """An operand, and before it those at which it is read."""
    found: list[int] = []
    for index in op.accesses[number].indices:
        if isinstance(index, Loaded):
            found += [n for n in _read_before(op, index.operand) if n not in found]
    return [*found, number]


def _moved(access: Access, pick: _Pick, places: dict[int, int]) -> Access:
    """Where is read, with the number that is chosen in place of the coordinate."""
    indices: list[Affine | Loaded] = []
    bounds = access.bounds
    for index in access.indices:
        if isinstance(index, Loaded):
            indices.append(Loaded(places[index.operand]))
        elif index.axis == pick.axis:
            indices.append(Loaded(places[pick.chosen]))
            bounds = Bounds.CLIP
        else:
            indices.append(index)
    return Access(tuple(indices), bounds)
