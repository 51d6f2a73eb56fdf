"""Specialises Jacobians: functions that call one derivative per column, or per row, of the matrix that a Jacobian is.

    func @f_jacobian: (<n x T>) -> <m x n x T> {
    'entry(%x):
        %columns = for 0 upto n stacking <n x m x T> {      forward: one column for each element of x
        'body(%i):
            %e = …                                          the unit vector of element i
            %column = apply @f_tangent(%x, %e)
            yield %column
        }
        %matrix = transpose %columns

Reverse has one row for each element of the result: `@f_grad` with the unit vector as its seed, and no transpose.  A
matrix of one column or row is a single call.  What does not depend on the direction, such as `@f` itself, is moved out
of the loop by later passes where they see into the calls.

This is the place of `vmap`: a batch of directions at once, instead of a loop over them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..core.analysis.derivatives import derivative_type, elements
from ..core.ir import (
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
from ..core.ops import (
    Apply,
    Broadcast,
    DataTypeCast,
    Equal,
    For,
    Iota,
    Return,
    ShapeCast,
    Transpose,
    Yield,
)
from ..core.ops.literal import constant
from ..core.types import I64, FunctionType, TensorType, Type, one_or_tuple, scalar
from .expression import JacobianCallee
from .spec import FunctionSpec

Declare: TypeAlias = Callable[[FunctionType, GradientOf | TangentOf], Function]
"""Adds a declared derivative to the module."""


def jacobian_types(callee: JacobianCallee, primal: FunctionType) -> list[TensorType]:
    """The types of the Jacobians of a function of type `primal`, source by source."""
    sources, parameters = _tensors(callee, primal)
    return [x.with_shape((*y.shape, *x.shape)) for y in sources for x in parameters]


def jacobian_function(
    name: str, callee: JacobianCallee, primal: Apply, declare: Declare
) -> Function:
    """The function `@name` of the Jacobians of `@primal`."""
    names = [
        name
        for name, spec in zip(callee.parameter_names, callee.parameters, strict=True)
        if not isinstance(spec, FunctionSpec)
    ]
    b = start_function(primal.type.parameters, [*names, *[None] * len(callee.captures)])
    sources, parameters = _tensors(callee, primal.type)
    made = _Jacobians(callee, primal, declare, b, tuple(b.block.arguments), sources, parameters)
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
        inner = Builder(Block(name="body"), b.location)
        index = inner.argument(scalar(I64), "index")
        found = inner.emit_many(call, (*self.arguments, _unit_vector(inner, along, index)))
        inner.emit_many(Yield(), found)
        stacked = tuple(type.with_shape((size, *type.shape)) for type in results)
        bounds = [constant(b, scalar(I64), bound) for bound in (0, size)]
        return b.emit_many(For(stacked), bounds, [Region([inner.block])])

    def _column_last(self, columns: Value, x: TensorType) -> Value:
        """Columns stacked along the first axis as a Jacobian by a parameter of type `x`."""
        b, shape = self.b, columns.tensor.shape[1:]
        if shape:
            columns = b.emit(Transpose((*range(1, len(shape) + 1), 0)), columns)
        whole = b.emit(ShapeCast((*shape, *x.shape)), columns)
        return whole if whole.tensor.dtype is x.dtype else b.emit(DataTypeCast(x.dtype), whole)


def _unit_vector(b: Builder, type: TensorType, index: Value) -> Value:
    """1 at `index`, counted in row-major order, and 0 elsewhere."""
    places = b.emit(Iota((type.size,), 0, I64))
    is_there = b.emit(Equal(), places, b.emit(Broadcast((type.size,)), index))
    return b.emit(ShapeCast(type.shape), b.emit(DataTypeCast(type.dtype), is_there))
