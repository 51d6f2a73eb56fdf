"""The loop nest, the one op of stage compute, and the index maps it is made of.

A nest visits every point of a box of `extents`.  At a point it reads one scalar from each operand, at
indices that are affine in the point's coordinates (or come from an operand read before), runs a body of
scalar instructions on the coordinates and the scalars, and writes one scalar to each result, again at
affine indices.  A result with a combinator accumulates what falls on the same element.

    out[i, j] = Σₖ a[i, k] · w[k, j]:
    nest 64 x 256 x 10 of %a: …, %w: … reading (d0, d2), (d2, d1) writing <64 x 256 x f32> at (d0, d1) by add {
    'body(%d0: i64, %d1: i64, %d2: i64, %u: f32, %v: f32):
        %p = multiply %u: f32, %v: f32
        yield %p: f32
    }

The body's arguments are the coordinates (i64), then one scalar per operand.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, ClassVar, Final, TypeAlias, TypeGuard

import numpy as np

from ..errors import IndexOutOfRangeError, InternalError
from ..ir.builder import Builder
from ..ir.instruction import Block, Emitter, Instruction, Pure, Region, Value
from ..lazy_dataclass import dataclass
from ..stage import Stage, Stages
from ..types import I64, Array, Shape, TensorType, Type, scalar
from .combinator import Combinator


@dataclass(frozen=True)
class Affine:
    """`constant + Σ coefficient · d_axis`; terms are sorted by axis and have no zero coefficient."""

    constant: int = 0
    terms: tuple[tuple[int, int], ...] = ()

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.constant + other, self.terms)
        sums = dict(self.terms)
        for axis, coefficient in other.terms:
            sums[axis] = sums.get(axis, 0) + coefficient
        terms = tuple(sorted((axis, c) for axis, c in sums.items() if c))
        return Affine(self.constant + other.constant, terms)

    def __mul__(self, factor: int) -> Affine:
        terms = tuple((axis, c * factor) for axis, c in self.terms) if factor else ()
        return Affine(self.constant * factor, terms)

    def __str__(self) -> str:
        parts = [f"d{axis}" if c == 1 else f"{c} * d{axis}" for axis, c in self.terms]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts)

    @property
    def axis(self) -> int | None:
        """The axis, when this is exactly one coordinate."""
        terms = self.terms
        if len(terms) != 1 or self.constant:
            return None
        ((axis, coefficient),) = terms
        return axis if coefficient == 1 else None

    def coefficient(self, axis: int) -> int:
        return dict(self.terms).get(axis, 0)

    def substitute(self, replacements: Sequence[Affine]) -> Affine:
        """This map after each coordinate `d_k` is replaced by `replacements[k]`."""
        own = self.axis
        if own is not None:
            return replacements[own]
        result = Affine(self.constant)
        for axis, coefficient in self.terms:
            result = result + replacements[axis] * coefficient
        return result

    def bounds(self, extents: Sequence[int]) -> tuple[int, int]:
        """Smallest and largest value over the (non-empty) box."""
        if self.axis is not None:
            return 0, extents[self.axis] - 1
        ends = [c * (extents[axis] - 1) for axis, c in self.terms]
        low = self.constant + sum(e for e in ends if e < 0)
        return low, self.constant + sum(e for e in ends if e > 0)

    def evaluate(self, coordinates: Sequence[Any]) -> Any:
        total: Any = np.int64(self.constant)
        for axis, coefficient in self.terms:
            total = total + coordinates[axis] * coefficient
        return total


@dataclass(frozen=True)
class Loaded:
    """An index read from operand number `operand` (an earlier one) at the same point."""

    operand: int

    def __str__(self) -> str:
        return f"read {self.operand}"


Index: TypeAlias = Affine | Loaded


@cache
def coordinate(axis: int) -> Affine:
    """`d_axis`."""
    return Affine(0, ((axis, 1),))


class Bounds(enum.Enum):
    """What is known or done about indices outside the tensor."""

    INSIDE = "inside"  # proved to be inside
    ZERO = "zero"  # outside: reads zero, writes nothing
    CLIP = "clip"  # moved to the nearest end of the axis
    CHECK = "check"  # outside: an IndexOutOfRangeError

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Access:
    """Where an operand is read: one index per axis of the operand."""

    indices: tuple[Index, ...]
    bounds: Bounds = Bounds.INSIDE

    def __str__(self) -> str:
        mode = "" if self.bounds is Bounds.INSIDE else f" {self.bounds}"
        return f"({', '.join(map(str, self.indices))}){mode}"


@dataclass(frozen=True)
class Output:
    """Where a result is written, and how elements that several points write are combined.

    Elements no point writes hold the combinator's identity; zero without a combinator.  With `init`, the elements are
    those of operand `init` before any point writes, which reads that operand where it writes: where the operand is dead
    afterwards, its buffer is updated in place.

    With `within`, this is no result of its own: the scalars are written to that of output `into`, at the elements that
    this one names, behind those which that one writes.  Such outputs come last.
    """

    type: TensorType
    indices: tuple[Index, ...]
    combinator: Combinator | None = None
    bounds: Bounds = Bounds.INSIDE
    init: int | None = None
    within: int | None = None

    def __str__(self) -> str:
        mode = "" if self.bounds is Bounds.INSIDE else f" {self.bounds}"
        by = f" by {self.combinator}" if self.combinator else ""
        init = "" if self.init is None else f" init {self.init}"
        within = "" if self.within is None else f" within {self.within}"
        return f"{self.type} at ({', '.join(map(str, self.indices))}){mode}{by}{init}{within}"

    @property
    def kept_axes(self) -> tuple[int, ...] | None:
        """The axes, when every index is a different plain coordinate; None otherwise."""
        axes = [i.axis if isinstance(i, Affine) else None for i in self.indices]
        if any(axis is None for axis in axes) or len(set(axes)) != len(axes):
            return None
        return tuple(axis for axis in axes if axis is not None)

    @property
    def fill(self) -> Any:
        """What an element holds before any point writes it."""
        return self.combinator.identity(self.type.dtype) if self.combinator else 0


_OPERATION: Final = 0.25
"""Nanoseconds of one operation, or one access, of a scalar or vector loop: one begins per cycle, at 4 GHz."""


class Yield(Pure):
    """Ends a body: what it gives to the instruction that it belongs to (a nest writes scalars)."""

    name: ClassVar[str] = "yield"
    syntax: ClassVar[str] = "yield {values*}"
    stages: ClassVar[Stages] = frozenset(Stage)
    is_terminator: ClassVar[bool] = True
    takes_any: ClassVar[bool] = True

    def infer(self, *values: Type) -> tuple[Type, ...]:
        return ()


@dataclass(frozen=True)
class Nest(Pure):
    """A loop nest over a box; see the module's text."""

    name: ClassVar[str] = "nest"
    syntax: ClassVar[str] = "nest {extents} [of {operands*}] [reading {accesses}] writing {outputs}"
    stages: ClassVar[Stages] = frozenset({Stage.COMPUTE})
    bodies: ClassVar[tuple[str, ...]] = ("",)
    extents: Shape
    accesses: tuple[Access, ...] = ()
    outputs: tuple[Output, ...] = ()

    def infer(self, *operands: TensorType) -> tuple[TensorType, ...]:
        if len(operands) != len(self.accesses):
            raise InternalError(
                f"nest has {len(operands)} operands and {len(self.accesses)} accesses"
            )
        for operand, access in zip(operands, self.accesses, strict=True):
            self._check(operand, access.indices, access.bounds)
        for output in self.outputs:
            self._check(output.type, output.indices, output.bounds)
            self._check_init(output, operands)
        self._check_within()
        return tuple(output.type for output in self.own_outputs)

    def _check(self, type: TensorType, indices: tuple[Index, ...], bounds: Bounds) -> None:
        if len(indices) != type.rank:
            raise InternalError(f"nest: {len(indices)} indices for {type}")
        for index in indices:
            if (
                isinstance(index, Affine)
                and index.terms
                and index.terms[-1][0] >= len(self.extents)
            ):
                raise InternalError(f"nest: index {index} leaves the {len(self.extents)} axes")
        if bounds is not Bounds.INSIDE or 0 in self.extents:
            return
        for index, extent in zip(indices, type.shape, strict=True):
            if isinstance(index, Affine):
                low, high = index.bounds(self.extents)
                if low < 0 or high >= extent:
                    raise InternalError(f"nest: index {index} leaves {type}")

    def _check_init(self, output: Output, operands: Sequence[TensorType]) -> None:
        if output.init is None:
            return
        if not 0 <= output.init < len(operands):
            raise InternalError(
                f"nest: there is no operand {output.init} that {output} begins with"
            )
        if operands[output.init] != output.type:
            raise InternalError(f"nest: {output} begins with a {operands[output.init]}")
        if self.accesses[output.init] != Access(output.indices, output.bounds):
            raise InternalError(
                f"nest: {output} does not read operand {output.init} where it writes"
            )

    def _check_within(self) -> None:
        count = len(self.own_outputs)
        for output in self.outputs[count:]:
            if output.within is None:
                raise InternalError(f"nest: {output} stands behind outputs without results")
            whole = self.outputs[output.within] if 0 <= output.within < count else None
            if whole is None or output.type != whole.type:
                raise InternalError(f"nest: there is no output {output.within} of {output.type}")
            if output.init is not None or output.combinator or whole.combinator:
                raise InternalError(f"nest: {output} begins with or joins what others write")

    def evaluate_body(
        self, run: Callable[[Sequence[Array]], Sequence[Array]], *operands: Array
    ) -> tuple[Array, ...]:
        """All points at once: `run` maps arrays of the box's shape through the body."""
        rank = len(self.extents)
        coordinates: list[Array] = [
            np.arange(extent, dtype=np.int64).reshape([-1 if k == axis else 1 for k in range(rank)])
            for axis, extent in enumerate(self.extents)
        ]
        loaded: list[Array] = []
        for operand, access in zip(operands, self.accesses, strict=True):
            where = _positions(access.indices, coordinates, loaded)
            loaded.append(_read(operand, where, access.bounds))
        results: list[Array] = []
        yielded = run([*coordinates, *loaded])
        for output, scalars in zip(self.outputs, yielded, strict=True):
            value = np.broadcast_to(scalars, self.extents)
            if output.within is None:
                results.append(_write(output, value, coordinates, loaded, operands))
            else:
                whole = np.array(results[output.within])
                results[output.within] = _scatter(output, value, coordinates, loaded, whole)
        return tuple(results)

    @property
    def own_outputs(self) -> tuple[Output, ...]:
        """The outputs that are results, one by one: those that write into others come behind."""
        if self.outputs and self.outputs[-1].within is None:
            return self.outputs
        return tuple(itertools.takewhile(lambda output: output.within is None, self.outputs))

    @property
    def points(self) -> int:
        return math.prod(self.extents)

    @property
    def updates(self) -> frozenset[int]:
        """The operands that results begin with."""
        return frozenset(output.init for output in self.outputs if output.init is not None)

    def can_fail(self) -> bool:
        bounds = [access.bounds for access in self.accesses]
        return Bounds.CHECK in (*bounds, *(output.bounds for output in self.outputs))

    def flops(self, instruction: Instruction) -> int:
        """At each point what the body does, and what combining does."""
        body = instruction.regions[0].entry.instructions
        combined = sum(1 for output in self.outputs if output.combinator)
        return self.points * (sum(i.op.cost for i in body) + combined)

    def nanoseconds(self, instruction: Instruction) -> float:
        accesses = self.points * (len(self.accesses) + len(self.outputs))
        return _OPERATION * (self.flops(instruction) + accesses)


def is_nest(instruction: Instruction) -> TypeGuard[Instruction[Nest]]:
    """Whether it is a loop nest, scheduled or not."""
    return isinstance(instruction.op, Nest)


BodyRule: TypeAlias = Callable[[Builder, Sequence[Value], Sequence[Value]], Sequence[Value]]
"""(builder, coordinates, scalars read) to the scalars to write."""


def build_nest(
    b: Emitter,
    extents: Sequence[int],
    reads: Sequence[tuple[Value, Access]],
    outputs: Sequence[Output],
    body: BodyRule,
) -> tuple[Value, ...]:
    """Emit a nest whose body `body` writes."""
    inner = Builder(Block(name="body"))
    coordinates = [inner.argument(scalar(I64), f"d{axis}") for axis in range(len(extents))]
    scalars = [inner.argument(scalar(value.tensor.dtype)) for value, _ in reads]
    results = body(inner, coordinates, scalars)
    inner.emit_many(Yield(), results)
    op = Nest(tuple(extents), tuple(access for _, access in reads), tuple(outputs))
    return b.emit_many(op, [value for value, _ in reads], [Region([inner.block])])


def axes_in(indices: Iterable[object]) -> frozenset[int]:
    """The axes that those of `indices` which are affine depend on."""
    affine = [index.terms for index in indices if isinstance(index, Affine)]
    return frozenset([axis for terms in affine for axis, _ in terms])


def read_nest(b: Emitter, x: Value, access: Access, result: TensorType) -> Value:
    """The nest that has at each point of `result` what the access reads of x."""
    output = Output(result, identity_access(result.shape))
    return build_nest(b, result.shape, [(x, access)], [output], lambda _, __, read: read)[0]


def identity_access(shape: Shape) -> tuple[Affine, ...]:
    """`(d0, d1, …)`."""
    return tuple(coordinate(axis) for axis in range(len(shape)))


def broadcast_access(shape: Shape, extents: Shape) -> Access:
    """Reads a tensor of `shape` as if it were broadcast to `extents`."""
    skipped = len(extents) - len(shape)
    return Access(
        tuple(
            Affine() if extent == 1 and extents[axis + skipped] != 1 else coordinate(axis + skipped)
            for axis, extent in enumerate(shape)
        )
    )


def _positions(
    indices: tuple[Index, ...], coordinates: Sequence[Array], loaded: Sequence[Array]
) -> list[Array]:
    return [
        i.evaluate(coordinates) if isinstance(i, Affine) else loaded[i.operand].astype(np.int64)
        for i in indices
    ]


def _inside(where: Sequence[Array], shape: Shape) -> Array:
    mask: Array = np.asarray(True)
    for position, extent in zip(where, shape, strict=True):
        mask = mask & (position >= 0) & (position < extent)
    return mask


def _check_inside(where: Sequence[Array], shape: Shape) -> None:
    for position, extent in zip(where, shape, strict=True):
        wrong = position[(position < 0) | (position >= extent)] if np.size(position) else position
        if np.size(wrong):
            raise IndexOutOfRangeError(
                f"index {int(np.ravel(wrong)[0])} is out of range for an axis of extent {extent}"
            )


def _read(operand: Array, where: list[Array], bounds: Bounds) -> Array:
    where = [np.asarray(position) for position in where]
    if bounds is Bounds.CHECK:
        _check_inside(where, operand.shape)
    shape = np.broadcast_shapes(*(position.shape for position in where))
    if operand.size == 0 or 0 in shape:
        return np.zeros(shape, operand.dtype)
    if bounds in (Bounds.INSIDE, Bounds.CHECK):
        return np.asarray(operand[tuple(where)])
    clipped = [np.clip(p, 0, n - 1) for p, n in zip(where, operand.shape, strict=True)]
    value = np.asarray(operand[tuple(clipped)])
    if bounds is Bounds.CLIP:
        return value
    return np.where(_inside(where, operand.shape), value, np.zeros((), operand.dtype))


def _write(
    output: Output,
    value: Array,
    coordinates: Sequence[Array],
    loaded: Sequence[Array],
    operands: Sequence[Array],
) -> Array:
    if output.init is not None:
        return _scatter(output, value, coordinates, loaded, operands[output.init].copy())
    kept = output.kept_axes
    extents = value.shape
    if kept is not None and tuple(extents[a] for a in kept) == output.type.shape:
        gone = tuple(axis for axis in range(len(extents)) if axis not in kept)
        if output.combinator is None:
            value = value[
                tuple(-1 if axis in gone else slice(None) for axis in range(len(extents)))
            ]
        else:
            value = output.combinator.reduce(value, gone)
        remaining = [axis for axis in range(len(extents)) if axis in kept]
        return np.transpose(value, [remaining.index(axis) for axis in kept])
    result = np.full(output.type.shape, output.fill, output.type.dtype.numpy)
    return _scatter(output, value, coordinates, loaded, result)


def _scatter(
    output: Output,
    value: Array,
    coordinates: Sequence[Array],
    loaded: Sequence[Array],
    result: Array,
) -> Array:
    where = [
        np.broadcast_to(p, value.shape).ravel()
        for p in _positions(output.indices, coordinates, loaded)
    ]
    values = value.ravel()
    if output.bounds is Bounds.CHECK:
        _check_inside(where, result.shape)
    if output.bounds is Bounds.CLIP and result.size:
        where = [np.clip(p, 0, n - 1) for p, n in zip(where, result.shape, strict=True)]
    if output.bounds is Bounds.ZERO:
        mask = np.broadcast_to(_inside(where, result.shape), values.shape)
        where, values = [p[mask] for p in where], values[mask]
    places = result
    if not result.ndim:  # NumPy takes one place without indices for a number
        places, where = result.reshape(1), [np.zeros(values.shape, np.intp)]
    if output.combinator is None:
        places[tuple(where)] = values
    else:
        output.combinator.join(places, tuple(where), values)
    return result
