"""Lowers concatenations: each piece is written where it lies in the whole, by the nest that computes it.

1. The whole begins as `empty`, before the first nest that computes a piece.  A concatenation that nothing but another
   one reads, perhaps in another shape, is part of that: its pieces are pieces of the whole.
2. Each nest that computes pieces, element by element, writes them into the whole in place (`Output.init`), in the order
   of the program; several pieces by one nest are outputs `within` one.  Where others read a piece as well, the nest
   writes it twice.
3. What nests do not compute so is copied where the concatenation stands: what lies in one stretch by itself, and what
   is interleaved with others, or short, together with those of its shape.

So k pieces are k writes, one after the other, and no element is selected from k.
Source: PyTorch Inductor's `ConcatKernel`, whose inputs are realized into slices of one buffer; MLIR's
`tensor.insert_slice`, bufferized in place.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from typing import Final

from ..compute.address import delinearize, linearize
from ..compute.bodies import base_of
from ..ir import Block, Builder, Instruction, Value
from ..lazy_dataclass import dataclass
from ..ops.movement import reshaped
from ..ops.nest import (
    Access,
    Affine,
    Nest,
    Output,
    build_nest,
    coordinate,
    identity_access,
    is_nest,
)
from ..ops.slicing import is_concatenation
from ..types import Shape, TensorType, scalar
from .ops import Empty

_TOGETHER: Final = 64
"""Copied pieces of one nest: each is a load and a store, so that compile time grows with them."""

_SHORT: Final = 64
"""Elements below which a piece is copied together with others even if it lies in one stretch: a loop costs about as
much as copying so many."""


def write_pieces(block: Block) -> None:
    """Replace the concatenations of a block in stage compute by nests that write pieces in place."""
    found = [i for i in block.instructions if is_concatenation(i)]
    if not found:
        return
    lowering = _Lowering(block, _wholes(found))
    for instruction in found:
        if lowering.wholes[instruction] is instruction:
            lowering.lower(instruction)
    lowering.finish()


@dataclass(frozen=True)
class _Piece:
    """A tensor that lies in the whole from element `start` on, with so many elements between those along an axis."""

    value: Value
    start: int
    strides: tuple[int, ...]

    @property
    def base(self) -> Value:
        return base_of(self.value)

    @property
    def is_stretch(self) -> bool:
        """Whether the elements lie one after the other."""
        expected = 1
        axes = zip(reversed(self.value.tensor.shape), reversed(self.strides), strict=True)
        for extent, stride in axes:
            if extent != 1 and stride != expected:
                return False
            expected *= extent
        return True

    def position(self, indices: Sequence[Affine], extents: Shape) -> Affine | None:
        """Where the element of the base at `indices` lies in the whole; None when that is not affine."""
        shape, source = self.value.tensor.shape, self.base.tensor.shape
        own: Sequence[Affine] | None = indices
        if shape != source:
            own = delinearize(linearize(indices, source), shape, extents)
        if own is None:
            return None
        total = Affine(self.start)
        for index, stride in zip(own, self.strides, strict=True):
            total = total + index * stride
        return total

    def of_base(self) -> _Piece | None:
        """The same elements as a piece that is their base."""
        shape = self.base.tensor.shape
        position = self.position(identity_access(shape), shape)
        if position is None:
            return None
        strides = tuple(map(position.coefficient, range(len(shape))))
        return _Piece(self.base, position.constant, strides)


@dataclass(eq=False)
class _Lowering:
    """The concatenations of one block."""

    block: Block
    wholes: Mapping[Instruction, Instruction]
    """What each concatenation is part of, perhaps itself."""
    gone: set[Instruction] = field(default_factory=set[Instruction])
    before: dict[Instruction, list[Instruction]] = field(
        default_factory=dict[Instruction, list[Instruction]]
    )
    """What is new, by the instruction that it stands before."""
    places: dict[Instruction, int] = field(default_factory=dict[Instruction, int])

    def __post_init__(self) -> None:
        self.places = {i: place for place, i in enumerate(self.block.instructions)}

    def lower(self, instruction: Instruction) -> None:
        """Write the pieces of one concatenation, with those that are part of it."""
        computed: dict[Instruction[Nest], list[tuple[int, Affine]]] = {}
        copied: list[_Piece] = []
        for piece in self._pieces(instruction):
            made, position = piece.base.producer, self._written(piece)
            if made is None or position is None or not is_nest(made):
                copied.append(piece)
            else:
                computed.setdefault(made, []).append((piece.base.index, position))
        nests = sorted(computed, key=self.places.__getitem__)
        b, type = Builder(location=instruction.location), instruction.result.tensor
        whole = b.emit(Empty(TensorType((type.size,), type.dtype)))
        self._put(b, nests[0] if nests else instruction)
        for nest in nests:
            whole = _written_into(nest, computed[nest], whole, self.gone)
        for together in _batches(copied):
            whole = _copied_into(b, together, whole)
        instruction.result.replace_with(reshaped(b, whole, type.shape))
        self._put(b, instruction)

    def finish(self) -> None:
        """Put everything in its place, and drop what is not needed any more."""
        for instruction in list(self.gone):
            views, _ = _readers(instruction.result)
            self.gone |= views
        instructions: list[Instruction] = []
        for instruction in self.block.instructions:
            instructions += self.before.get(instruction, ())
            if instruction not in self.gone:
                instructions.append(instruction)
        for instruction in self.gone:
            instruction.drop_all_references()
        self.block.instructions = instructions

    def _put(self, b: Builder, place: Instruction) -> None:
        self.before.setdefault(place, []).extend(b.block.instructions)
        b.block.instructions = []

    def _pieces(self, instruction: Instruction) -> Iterator[_Piece]:
        """The pieces of a concatenation that have elements, those of its parts included."""
        shape = instruction.result.tensor.shape
        pending = [_Piece(instruction.result, 0, _row_major(shape))]
        while pending:
            piece = pending.pop()
            made = piece.base.producer
            if made is None or self.wholes.get(made) is not instruction:
                if piece.value.tensor.size:
                    yield piece
                continue
            self.gone.add(made)
            whole = piece.of_base()
            assert whole is not None, "a part is seen in a shape that it can be written in"
            pending += reversed(list(_operands(made, whole)))

    def _written(self, piece: _Piece) -> Affine | None:
        """Where the nest that computes the piece, element by element, is to write it; None where there is none."""
        made = piece.base.producer
        if made is None or made not in self.places or not is_nest(made):
            return None
        op, number = made.op, piece.base.index
        written, kept = op.outputs[number], op.outputs[number].kept_axes
        if written.combinator is not None or written.init is not None or kept is None:
            return None
        if any(output.within == number for output in op.outputs):
            return None
        covers = tuple(op.extents[axis] for axis in kept) == written.type.shape
        if not covers or any(n != 1 and axis not in kept for axis, n in enumerate(op.extents)):
            return None
        return piece.position(tuple(map(coordinate, kept)), op.extents)


def _wholes(found: Sequence[Instruction]) -> dict[Instruction, Instruction]:
    """What each concatenation is part of: the one that alone reads it, in shapes that it can be written in."""
    wholes: dict[Instruction, Instruction] = {}
    for instruction in reversed(found):  # readers first
        _, readers = _readers(instruction.result)
        around = {wholes.get(reader) for reader in readers}
        is_part = bool(instruction.result.tensor.size) and len(around) == 1
        is_part = is_part and all(
            _Piece(x, 0, _row_major(x.tensor.shape)).of_base() is not None
            for reader in readers
            for x in reader.operands
            if base_of(x) is instruction.result
        )
        wholes[instruction] = (around.pop() if is_part else None) or instruction
    return wholes


def _readers(value: Value) -> tuple[set[Instruction], set[Instruction]]:
    """The views of a value, and what else reads it or them."""
    views, readers = set[Instruction](), set[Instruction]()
    pending = [value]
    while pending:
        for user in pending.pop().uses:
            if user.op.is_view:
                views.add(user)
                pending += user.results
            else:
                readers.add(user)
    return views, readers


def _operands(instruction: Instruction, whole: _Piece) -> Iterator[_Piece]:
    """The operands of a concatenation, which is a piece itself."""
    assert is_concatenation(instruction)
    axis, start = instruction.op.axis, whole.start
    for x in instruction.operands:
        yield _Piece(x, start, whole.strides)
        start += x.tensor.shape[axis] * whole.strides[axis]


def _row_major(shape: Shape) -> tuple[int, ...]:
    strides = itertools.accumulate(reversed(shape), int.__mul__, initial=1)
    return tuple(strides)[-2::-1] if shape else ()


def _written_into(
    nest: Instruction[Nest],
    places: Sequence[tuple[int, Affine]],
    whole: Value,
    gone: Set[Instruction],
) -> Value:
    """Have a nest write results at these places of the whole, too, or instead if only what is gone reads them."""
    op = nest.op
    own, others = op.own_outputs, list(enumerate(op.outputs))[len(op.own_outputs) :]
    inner = nest.regions[0].entry
    moved = {number for number, _ in places}
    kept = [n for n, x in enumerate(nest.results) if n not in moved or not _readers(x)[1] <= gone]
    numbers = {old: new for new, old in enumerate(kept)}
    first, *rest = (Output(whole.tensor, (position,)) for _, position in places)
    outputs = [
        *((own[n], n) for n in kept),
        (replace(first, init=len(nest.operands)), places[0][0]),
        *((replace(o, within=numbers[o.within or 0]), n) for n, o in others),
        *((replace(o, within=len(kept)), n) for o, (n, _) in zip(rest, places[1:], strict=True)),
    ]
    yielded = inner.terminator.operands
    inner.terminator.set_operands([yielded[n] for _, n in outputs])
    inner.arguments.append(Value(scalar(whole.tensor.dtype)))
    nest.op = replace(
        op,
        accesses=(*op.accesses, Access(first.indices)),
        outputs=tuple(output for output, _ in outputs),
    )
    nest.set_operands([*nest.operands, whole])
    results = [nest.results[n] for n in kept]
    for number, result in enumerate(results):
        result.index = number
    made = Value(whole.type, None, nest, len(kept))
    nest.results = (*results, made)
    return made


def _batches(pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    """The pieces that one nest copies: each long stretch by itself, all others with those of their shape."""
    together: dict[Shape, list[_Piece]] = {}
    for piece in pieces:
        size = piece.value.tensor.size
        if size >= _SHORT and piece.is_stretch:
            yield [piece]
        else:
            together.setdefault(piece.value.tensor.shape, []).append(piece)
    for found in together.values():
        for first in range(0, len(found), _TOGETHER):
            yield found[first : first + _TOGETHER]


def _copied_into(b: Builder, pieces: Sequence[_Piece], whole: Value) -> Value:
    """Emit the nest that copies pieces of one shape into the whole."""
    if len(pieces) == 1 and pieces[0].is_stretch:
        value = pieces[0].value
        flat = reshaped(b, base_of(value), (value.tensor.size,))
        pieces = [_Piece(flat, pieces[0].start, (1,))]
    shape = pieces[0].value.tensor.shape
    point = identity_access(shape)
    places = [
        sum((d * n for d, n in zip(point, piece.strides, strict=True)), Affine(piece.start))
        for piece in pieces
    ]
    reads = [(piece.value, Access(point)) for piece in pieces]
    outputs = [
        Output(
            whole.tensor,
            (place,),
            within=0 if number else None,
            init=None if number else len(pieces),
        )
        for number, place in enumerate(places)
    ]
    return build_nest(
        b,
        shape,
        [*reads, (whole, Access((places[0],)))],
        outputs,
        lambda _, __, read: read[:-1],
    )[0]
