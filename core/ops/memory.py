"""Memory: allocated on the stack, on the heap or in boxes, read and written through pointers.

A pointer `*T` leads to one value of type T, which may be an element of an aggregate or a tensor, or one of
several that were allocated side by side: `elementPointer` leads inwards, `offset` to the neighbours;
`bitCast` takes what lies there for something else.
What is loaded is a copy; memory is all zeros, and null, at first.  An allocation is a row of bytes: `offset` may
leave a field or row for what lies behind it.  Using memory wrongly (null, given back, outside of what was allocated,
an index of `elementPointer` out of range) stops the program; compiled code notices null, indices out of range and
most of what is given back twice, but not `offset`, `copy` and `bitCast` beyond an allocation, nor use after it was
given back; an allocation of no values has room for one there.

Derivatives lie in *shadows*: memory of the same types, whose pointers are given to the same ops (`acts_on_shadows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..errors import DTypeError, ShapeError
from ..ir.builder import Builder
from ..ir.effect import Effect
from ..ir.instruction import Block, Emitter, Instruction, MemoryUse, Op, Pure, Region, Value
from ..lazy_dataclass import dataclass
from ..types import (
    I64,
    ArrayType,
    BoxType,
    PointerType,
    StructType,
    TensorType,
    TupleType,
    Type,
    scalar,
    tensor_bytes,
)
from .aggregate import element_type
from .arithmetic import Add
from .literal import constant, number_of
from .nest import Yield
from .structured import For


@dataclass(frozen=True)
class AllocateStack(Op):
    """Memory for `count` values, which lasts until the function returns; the pointer to the first."""

    name: ClassVar[str] = "allocateStack"
    syntax: ClassVar[str] = "allocateStack {type} count {count}"
    takes_any: ClassVar[bool] = True
    acts_on_shadows: ClassVar[bool] = True
    effect: ClassVar[Effect] = Effect.ALLOCATE
    type: Type
    count: int

    def infer(self) -> PointerType:
        if self.count < 1:
            raise ShapeError(f"allocateStack makes room for at least one value, not {self.count}")
        return PointerType(self.type)

    def stack_values(self) -> int:
        return self.count


@dataclass(frozen=True)
class AllocateHeap(Op):
    """Memory for `count` values (i64), which lasts until it is deallocated; the pointer to the first."""

    name: ClassVar[str] = "allocateHeap"
    syntax: ClassVar[str] = "allocateHeap {type} count {count}"
    takes_any: ClassVar[bool] = True
    acts_on_shadows: ClassVar[bool] = True
    effect: ClassVar[Effect] = Effect.ALLOCATE
    type: Type

    def infer(self, count: Type) -> PointerType:
        _check_count(self.name, count)
        return PointerType(self.type)


@dataclass(frozen=True)
class AllocateBox(Op):
    """A box with one owner."""

    name: ClassVar[str] = "allocateBox"
    syntax: ClassVar[str] = "allocateBox {type}"
    takes_any: ClassVar[bool] = True
    acts_on_shadows: ClassVar[bool] = True
    effect: ClassVar[Effect] = Effect.ALLOCATE
    type: Type

    def infer(self) -> BoxType:
        return BoxType(self.type)


class ProjectBox(Pure):
    """The pointer to what is in a box; good for as long as the box has owners."""

    name: ClassVar[str] = "projectBox"
    syntax: ClassVar[str] = "projectBox {box}"
    takes_any: ClassVar[bool] = True
    acts_on_shadows: ClassVar[bool] = True

    def infer(self, box: Type) -> PointerType:
        return PointerType(_box(self.name, box).content)


class Retain(Op):
    """One more owner of a box."""

    name: ClassVar[str] = "retain"
    syntax: ClassVar[str] = "retain {box}"
    takes_any: ClassVar[bool] = True
    acts_on_shadows: ClassVar[bool] = True
    effect: ClassVar[Effect] = Effect.WRITE

    def infer(self, box: Type) -> tuple[Type, ...]:
        _box(self.name, box)
        return ()


class Release(Op):
    """One owner less; with the last one the memory is given back.  Boxes in the box keep their owners."""

    name: ClassVar[str] = "release"
    syntax: ClassVar[str] = "release {box}"
    takes_any: ClassVar[bool] = True
    acts_on_shadows: ClassVar[bool] = True
    effect: ClassVar[Effect] = Effect.WRITE

    def infer(self, box: Type) -> tuple[Type, ...]:
        _box(self.name, box)
        return ()


class Deallocate(Op):
    """Gives back what `allocateHeap` gave, once."""

    name: ClassVar[str] = "deallocate"
    syntax: ClassVar[str] = "deallocate {pointer}"
    takes_any: ClassVar[bool] = True
    acts_on_shadows: ClassVar[bool] = True
    effect: ClassVar[Effect] = Effect.WRITE

    def infer(self, pointer: Type) -> tuple[Type, ...]:
        _pointee(self.name, pointer)
        return ()

    def vjp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], cts: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        """Nothing: on the way back the shadow is there until its memory was allocated."""
        return (None,)

    def memory_uses(self, instruction: Instruction) -> tuple[MemoryUse, ...]:
        return (MemoryUse(instruction.operands[0], Effect.WRITE, None),)


class Load(Op):
    """Loads the value that the pointer refers to."""

    name: ClassVar[str] = "load"
    syntax: ClassVar[str] = "load {pointer}"
    takes_any: ClassVar[bool] = True
    acts_on_shadows: ClassVar[bool] = True
    effect: ClassVar[Effect] = Effect.READ

    def infer(self, pointer: Type) -> Type:
        return _pointee(self.name, pointer)

    def vjp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], cts: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        """The shadow is added to."""
        (shadow,), (ct,) = xs, cts
        if ct is not None:
            b.emit_many(Store(), [b.emit(Add(), b.emit(Load(), shadow), ct), shadow])
        return (None,)

    def bytes_moved(self, instruction: Instruction) -> int:
        return 2 * tensor_bytes(instruction.result.type)

    def memory_uses(self, instruction: Instruction) -> tuple[MemoryUse, ...]:
        return (MemoryUse(instruction.operands[0], Effect.READ, instruction.result),)


class Store(Op):
    """Stores a value to the memory that the pointer refers to."""

    name: ClassVar[str] = "store"
    syntax: ClassVar[str] = "store {value} to {pointer}"
    takes_any: ClassVar[bool] = True
    acts_on_shadows: ClassVar[bool] = True
    effect: ClassVar[Effect] = Effect.WRITE

    def infer(self, value: Type, pointer: Type) -> tuple[Type, ...]:
        pointee = _pointee(self.name, pointer)
        if value != pointee:
            raise DTypeError(f"cannot store a {value} where a {pointee} lies")
        return ()

    def vjp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], cts: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        """The shadow is the cotangent of the value; of what lay there before, it is zero."""
        value, shadow = xs
        ct = b.emit(Load(), shadow)
        b.emit_many(Store(), [constant(b, value.tensor, 0), shadow])
        return (ct, None)

    def bytes_moved(self, instruction: Instruction) -> int:
        return 2 * tensor_bytes(instruction.operands[0].type)

    def memory_uses(self, instruction: Instruction) -> tuple[MemoryUse, ...]:
        value, pointer = instruction.operands
        return (MemoryUse(pointer, Effect.WRITE, value),)


class Copy(Op):
    """Copies `count` values (i64) that lie side by side; source and target may overlap."""

    name: ClassVar[str] = "copy"
    syntax: ClassVar[str] = "copy from {source} to {target} count {count}"
    takes_any: ClassVar[bool] = True
    acts_on_shadows: ClassVar[bool] = True
    effect: ClassVar[Effect] = Effect.READ | Effect.WRITE

    def infer(self, source: Type, target: Type, count: Type) -> tuple[Type, ...]:
        given, wanted = _pointee(self.name, source), _pointee(self.name, target)
        if given != wanted:
            raise DTypeError(f"cannot copy values of {given} where {wanted} lie")
        _check_count(self.name, count)
        return ()

    def vjp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], cts: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        """The shadow of the target is added to that of the source, and is zero then: by way of a third place, as both
        may overlap."""
        source, target, count = xs
        type = pointee_of(source)
        moved, zeros = b.emit(AllocateHeap(type), count), b.emit(AllocateHeap(type), count)
        b.emit_many(self, [target, moved, count])
        b.emit_many(self, [zeros, target, count])
        inner = Builder(Block(name="body"))
        index = inner.argument(scalar(I64), "index")
        _accumulate(inner, inner.emit(Offset(), source, index), inner.emit(Offset(), moved, index))
        inner.emit_many(Yield(), [])
        b.emit_many(For(), [constant(b, scalar(I64), 0), count], [Region([inner.block])])
        b.emit_many(Deallocate(), [zeros])
        b.emit_many(Deallocate(), [moved])
        return (None, None, None)

    def bytes_moved(self, instruction: Instruction) -> int:
        """Of what is counted by a number of the program; else of one value."""
        source, _, count = instruction.operands
        known = number_of(count)
        return (
            2
            * max(0, 1 if known is None else known)
            * tensor_bytes(_pointee(self.name, source.type))
        )

    def memory_uses(self, instruction: Instruction) -> tuple[MemoryUse, ...]:
        source, target, _ = instruction.operands
        return (MemoryUse(source, Effect.READ, None), MemoryUse(target, Effect.WRITE, None))


@dataclass(frozen=True)
class ElementPointer(Pure):
    """The pointer to an element of what a pointer leads to: `elementPointer %p: *$S at #w, 2, %i: i64`.

    Keys are those of `extract`; into arrays and tensors they may be values as well, which are the other
    operands, in order: their keys are None.
    """

    name: ClassVar[str] = "elementPointer"
    syntax: ClassVar[str] = "elementPointer {pointer} at {keys} {indices*}"
    takes_any: ClassVar[bool] = True
    acts_on_shadows: ClassVar[bool] = True
    is_pointer_step: ClassVar[bool] = True
    keys: tuple[int | str | None, ...]

    def infer(self, pointer: Type, *indices: Type) -> PointerType:
        x = _pointee(self.name, pointer)
        given = self.keys.count(None)
        if len(indices) != given:
            raise ShapeError(f"elementPointer takes {given} keys from values, not {len(indices)}")
        for index in indices:
            if index != scalar(I64):
                raise DTypeError(f"elementPointer takes keys of i64, not {index}")
        for key in self.keys:
            x = pointee_at(x, key)
        return PointerType(x)


class Offset(Pure):
    """The pointer to the value that lies `count` (i64) further on: `offset %p: *f32 by %n: i64`."""

    name: ClassVar[str] = "offset"
    syntax: ClassVar[str] = "offset {pointer} by {count}"
    takes_any: ClassVar[bool] = True
    acts_on_shadows: ClassVar[bool] = True
    is_pointer_step: ClassVar[bool] = True

    def infer(self, pointer: Type, count: Type) -> Type:
        _pointee(self.name, pointer)
        _check_count(self.name, count)
        return pointer


@dataclass(frozen=True)
class PointerCast(Pure):
    """The same address as a pointer to a value of another type: `bitCast %p: *f32 to *i32`; or as an i64, and back.

    What lies there is seen as other values by its bytes, which lie as in C: elements of aggregates in order,
    each aligned to its largest scalar, 8 bytes for all that is no tensor; a bool is a byte, 0 or 1.
    """

    name: ClassVar[str] = "pointerCast"
    syntax: ClassVar[str] = "bitCast {pointer} to {type}"
    takes_any: ClassVar[bool] = True
    type: Type

    def infer(self, pointer: Type) -> Type:
        for x, other in ((pointer, self.type), (self.type, pointer)):
            if not isinstance(x, PointerType | TensorType) or x == other == scalar(I64):
                raise DTypeError(f"cannot bitCast a {pointer} to a {self.type}")
            if isinstance(x, TensorType) and x != scalar(I64):
                raise DTypeError(
                    f"cannot bitCast a {pointer} to a {self.type}: a pointer has the bytes of an i64"
                )
        return self.type


def offset_from(pointer: Value) -> tuple[Value, list[Value]]:
    """The pointer that this one leads on from by `offset`, and by how many each time, the last first."""
    counts: list[Value] = []
    while (step := pointer.producer) is not None and isinstance(step.op, Offset):
        pointer, count = step.operands
        counts.append(count)
    return pointer, counts


def give_back(b: Emitter, memory: Value) -> None:
    """Emit what gives back memory that an instruction has allocated, or nothing where it ends by itself."""
    match memory.op:
        case AllocateHeap():
            b.emit_many(Deallocate(), [memory])
        case AllocateBox():
            b.emit_many(Release(), [memory])
        case _:
            return


def zeros_to_read(b: Emitter, op: Op, xs: Sequence[Value]) -> Value:
    """Memory of zeros, in place of what `op` of these operands reads, if that is its first one; to be given back."""
    count = xs[-1] if isinstance(op, Copy) else constant(b, scalar(I64), 1)
    return b.emit(AllocateHeap(pointee_of(xs[0])), count)


def _accumulate(b: Builder, target: Value, source: Value) -> None:
    """Emit what adds the floats that `source` leads to, to those that `target` leads to."""
    match pointee_of(target):
        case TensorType(dtype=dtype):
            if dtype.is_float:
                total = b.emit(Add(), b.emit(Load(), target), b.emit(Load(), source))
                b.emit_many(Store(), [total, target])
        case TupleType(elements):
            for position in range(len(elements)):
                at = ElementPointer((position,))
                _accumulate(b, b.emit(at, target), b.emit(at, source))
        case StructType(fields=fields):
            for name, _ in fields:
                at = ElementPointer((name,))
                _accumulate(b, b.emit(at, target), b.emit(at, source))
        case ArrayType(count=count):
            inner = Builder(Block(name="body"))
            index = inner.argument(scalar(I64), "index")
            one = ElementPointer((None,))
            _accumulate(inner, inner.emit(one, target, index), inner.emit(one, source, index))
            inner.emit_many(Yield(), [])
            bounds = [constant(b, scalar(I64), number) for number in (0, count)]
            b.emit_many(For(), bounds, [Region([inner.block])])
        case _:
            return


def pointee_at(x: Type, key: int | str | None) -> Type:
    """The type that a key of `elementPointer` leads to in `x`.  Raises: ShapeError for a wrong key."""
    if key is not None:
        return element_type(x, key)
    match x:
        case ArrayType(element=element):
            return element
        case TensorType(shape=(_, *row)):
            return x.with_shape(row)
        case _:
            raise ShapeError(f"{x} has no elements to count by a value: only arrays and tensors do")


def pointee_of(pointer: Value) -> Type:
    """The type of what a pointer leads to."""
    return _pointee("this", pointer.type)


def _pointee(name: str, pointer: Type) -> Type:
    if not isinstance(pointer, PointerType):
        raise DTypeError(f"{name} takes a pointer, not a {pointer}")
    return pointer.pointee


def _box(name: str, box: Type) -> BoxType:
    if not isinstance(box, BoxType):
        raise DTypeError(f"{name} takes a box, not a {box}")
    return box


def _check_count(name: str, count: Type) -> None:
    if count != scalar(I64):
        raise DTypeError(f"{name} counts in i64, not in {count}")
