"""Specialises Jacobians: functions that call a batch of derivatives, along all columns, or rows, of the matrix it is.

    func @f_jacobian: (<n x T>) -> <m x n x T> {
    'entry(%x):
        %directions = …                                         forward: the unit vectors, n x n
        %columns = apply @f_tangent_vmap(%x, %directions)       [batch @f_tangent along none, 0]
        %matrix = transpose %columns

Reverse has one row for each element of the result: `@f_grad` with the unit vectors as its seeds, and no transpose.  A
matrix of one column or row is a single call, and one of few columns or rows of a small function a call for each.
What does not depend on the direction, such as `@f` itself, has no batch axis: it is computed once.  Of many directions,
so many at once as pay: batches in a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Final, TypeAlias

import numpy as np

from ..core.analysis.derivatives import derivative_type, elements
from ..core.ir import (
    BatchOf,
    Block,
    Builder,
    Function,
    GradientOf,
    Region,
    TangentOf,
    Value,
    finish_function,
    start_function,
)
from ..core.lazy_dataclass import dataclass
from ..core.ops import (
    Add,
    Apply,
    Bilinear,
    Concatenate,
    DataTypeCast,
    Equal,
    For,
    Iota,
    Multiply,
    Return,
    ShapeCast,
    Transpose,
    Yield,
)
from ..core.ops.literal import constant, dense
from ..core.types import I64, FunctionType, TensorType, Type, one_or_tuple, scalar
from .expression import JacobianCallee
from .spec import FunctionSpec

FEW_DIRECTIONS: Final = 4
"""Directions that are taken one by one, by small functions.  The Jacobian of bundle adjustment, two errors of 15
numbers for each of 31,843 observations, takes 1.7 ms, and 2.06 as a batch of two."""

_MOST_INSTRUCTIONS, _MOST_NUMBERS = 200, 64
"""Instructions of small functions, and elements of each of their tensors."""

Declare: TypeAlias = Callable[[FunctionType, GradientOf | TangentOf | BatchOf], Function]
"""Adds a declared derivative or batch to the module."""

MOST_DIRECTIONS = 64
"""Directions at once. They share what is read of the primal, and their values stay in the nearer caches: the Jacobian
of an MLP 1000 → 256 → 1000 takes 129 ms one after the other, 40 by 8, 21 by 64, 19 by 128, and 64 ms all at once; one
of 64 → 64 → 64 62, 20, 17, 16 and 15 µs."""


def jacobian_types(callee: JacobianCallee, primal: FunctionType) -> list[TensorType]:
    """The types of the Jacobians of a function of type `primal`, source by source."""
    sources, parameters = _tensors(callee, primal)
    return [x.with_shape((*y.shape, *x.shape)) for y in sources for x in parameters]


def jacobian_function(
    name: str, callee: JacobianCallee, primal: Apply, of: Function, declare: Declare
) -> Function:
    """The function `@name` of the Jacobians of `@primal`, which is `of`."""
    names = [
        name
        for name, spec in zip(callee.parameter_names, callee.parameters, strict=True)
        if not isinstance(spec, FunctionSpec)
    ]
    b = start_function(primal.type.parameters, [*names, *[None] * len(callee.captures)])
    sources, parameters = _tensors(callee, primal.type)
    arguments = tuple(b.block.arguments)
    made = _Jacobians(callee, primal, declare, b, arguments, sources, parameters, _is_small(of))
    columns, rows = (sum(type.size for type in types) for types in (parameters, sources))
    # of a square one, the columns: forward mode saves nothing
    forward = callee.mode == "forward" or (callee.mode == "auto" and columns <= rows)
    found = made.by_columns() if forward else made.by_rows()
    result = one_or_tuple([value.type for value in found])
    b.emit_many(Return(), found)
    return finish_function(name, b, result)


def _tensors(
    callee: JacobianCallee, primal: FunctionType
) -> tuple[list[TensorType], list[TensorType]]:
    """The types of the results that are differentiated, and of the parameters that it is by."""
    results = elements(primal.result)
    sources = [results[index] for index in callee.sources or (0,)]
    parameters = [primal.parameters[index] for index in callee.wrt]
    return [_tensor(type) for type in sources], [_tensor(type) for type in parameters]


def _tensor(type: Type) -> TensorType:
    assert isinstance(type, TensorType)
    return type


@dataclass
class _Jacobians:
    """Emits the Jacobians of `primal` at `arguments`."""

    callee: JacobianCallee
    primal: Apply
    declare: Declare
    b: Builder
    arguments: tuple[Value, ...]
    sources: Sequence[TensorType]
    parameters: Sequence[TensorType]
    is_small: bool
    batched: dict[tuple[str, int], Function] = field(
        default_factory=dict[tuple[str, int], Function]
    )

    def by_columns(self) -> list[Value]:
        """One tangent of all sources for each element of each parameter."""
        found: list[list[Value]] = []
        for index, x in zip(self.callee.wrt, self.parameters, strict=True):
            declaration = TangentOf(self.primal.callee, self.callee.sources, (index,))
            stacked = self._along_unit_vectors(x, self.sources, declaration)
            found.append([self._column_last(one, x) for one in stacked])
        return [one for of_source in zip(*found, strict=True) for one in of_source]

    def by_rows(self) -> list[Value]:
        """One gradient by all parameters for each element of each source."""
        found: list[Value] = []
        for position, y in enumerate(self.sources):
            chosen = None if self.callee.sources is None else (self.callee.sources[position],)
            declaration = GradientOf(self.primal.callee, chosen, self.callee.wrt, seedable=True)
            stacked = self._along_unit_vectors(y, self.parameters, declaration)
            for one, x in zip(stacked, self.parameters, strict=True):
                found.append(self.b.emit(ShapeCast((*y.shape, *x.shape)), one))
        return found

    def _along_unit_vectors(
        self,
        along: TensorType,
        results: Sequence[TensorType],
        declaration: GradientOf | TangentOf,
    ) -> Sequence[Value]:
        """The derivative for every unit vector of the type `along`, stacked: all its results, of types `results`."""
        b, size = self.b, along.size
        if not size:
            return [constant(b, type.with_shape((0, *type.shape)), 0) for type in results]
        type = derivative_type(self.primal.type, declaration)
        derivative = self.declare(type, declaration)
        call = Apply(derivative.name, type)
        if size == 1:
            found = b.emit_many(call, (*self.arguments, constant(b, along, 1)))
            return [
                b.emit(ShapeCast((1, *of.shape)), one)
                for one, of in zip(found, results, strict=True)
            ]
        if size <= FEW_DIRECTIONS and self.is_small:
            return self._one_by_one(call, along, results)
        if size <= MOST_DIRECTIONS:
            return self._directions(b, call, along, results, constant(b, scalar(I64), 0), size)
        return self._in_batches(call, along, results)

    def _one_by_one(
        self, call: Apply, along: TensorType, results: Sequence[TensorType]
    ) -> Sequence[Value]:
        """The derivatives for all unit vectors, a call for each: nothing is computed of what their zeros multiply."""
        b = self.b
        found: list[list[Value]] = []
        for number in range(along.size):
            vector = np.zeros(along.size, along.dtype.numpy)
            vector[number] = 1
            given = b.emit(dense(along, vector.reshape(along.shape)))
            found.append(list(b.emit_many(call, (*self.arguments, given))))
        return [
            b.emit(Concatenate(0), *[b.emit(ShapeCast((1, *of.shape)), x) for x in rows])
            for rows, of in zip(zip(*found, strict=True), results, strict=True)
        ]

    def _directions(
        self,
        b: Builder,
        call: Apply,
        along: TensorType,
        results: Sequence[TensorType],
        first: Value,
        count: int,
    ) -> Sequence[Value]:
        """The derivatives for `count` unit vectors, from number `first` on, as one batch."""
        axes = (*(None for _ in self.arguments), 0)
        given = (*call.type.parameters[:-1], along.with_shape((count, *along.shape)))
        made = one_or_tuple([of.with_shape((count, *of.shape)) for of in results])
        batched = FunctionType(given, made)
        known = self.batched.get((call.callee, count))
        if known is None:
            known = self.declare(batched, BatchOf(call.callee, axes))
            self.batched[call.callee, count] = known
        vectors = _unit_vectors(b, along, first, count)
        return b.emit_many(Apply(known.name, batched), (*self.arguments, vectors))

    def _in_batches(
        self, call: Apply, along: TensorType, results: Sequence[TensorType]
    ) -> Sequence[Value]:
        """Batches of the same size in a loop, and one of those that are left, which costs a copy, if there are any."""
        b, size = self.b, along.size
        counts = range(MOST_DIRECTIONS, MOST_DIRECTIONS // 2, -1)
        count = next((one for one in counts if size % one == 0), MOST_DIRECTIONS)
        rounds, left = divmod(size, count)
        inner = Builder(Block(name="body"), b.location)
        index = inner.argument(scalar(I64), "index")
        first = inner.emit(Multiply(), index, constant(inner, scalar(I64), count))
        found = self._directions(inner, call, along, results, first, count)
        inner.emit_many(Yield(), found)
        stacked = tuple(x.tensor.with_shape((rounds, *x.tensor.shape)) for x in found)
        bounds = [constant(b, scalar(I64), bound) for bound in (0, rounds)]
        whole = [
            b.emit(ShapeCast((rounds * count, *of.shape)), x)
            for x, of in zip(
                b.emit_many(For(stacked), bounds, [Region([inner.block])]), results, strict=True
            )
        ]
        if not left:
            return whole
        start = constant(b, scalar(I64), size - left)
        rest = self._directions(b, call, along, results, start, left)
        return [b.emit(Concatenate(0), *pair) for pair in zip(whole, rest, strict=True)]

    def _column_last(self, columns: Value, x: TensorType) -> Value:
        """Columns stacked along the first axis as a Jacobian by a parameter of type `x`."""
        b, shape = self.b, columns.tensor.shape[1:]
        if shape:
            columns = b.emit(Transpose((*range(1, len(shape) + 1), 0)), columns)
        whole = b.emit(ShapeCast((*shape, *x.shape)), columns)
        return whole if whole.tensor.dtype is x.dtype else b.emit(DataTypeCast(x.dtype), whole)


def _is_small(function: Function) -> bool:
    """Whether a function computes a few numbers one by one: without loops, choices and calls, and without products of
    matrices, whose batches are larger products."""
    body = function.body
    if body is None or len(body.blocks) != 1 or len(body.entry.instructions) > _MOST_INSTRUCTIONS:
        return False
    return all(
        not (one.regions or one.op.effect or isinstance(one.op, Bilinear))
        and all(
            isinstance(x.type, TensorType) and x.type.size <= _MOST_NUMBERS for x in one.results
        )
        for one in body.entry.instructions
    )


def _unit_vectors(b: Builder, type: TensorType, first: Value, count: int) -> Value:
    """For each number from `first` on: 1 at that place, counted in row-major order, and 0 elsewhere."""
    places = b.emit(Iota((count, type.size), 1, I64))
    rows = b.emit(Add(), b.emit(Iota((count, 1), 0, I64)), first)
    is_there = b.emit(Equal(), places, rows)
    return b.emit(ShapeCast((count, *type.shape)), b.emit(DataTypeCast(type.dtype), is_there))
