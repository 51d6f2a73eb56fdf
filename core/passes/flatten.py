"""Flattening: functions take and return the leaves of tuples, structs and arrays, and so do all who call them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from ..analysis import Analyses
from ..analysis.batches import declared_batch, result_axes
from ..analysis.call_graph import references
from ..analysis.derivatives import elements, has_shadow, resolve_declared
from ..errors import UnsupportedError
from ..ir import (
    BatchOf,
    Block,
    Builder,
    Function,
    GradientOf,
    Instruction,
    Module,
    Region,
    TangentOf,
    Value,
)
from ..ir.surgery import walk, walk_blocks
from ..lazy_dataclass import dataclass
from ..location import located
from ..ops import Aggregate, Apply, Extract, Reference, Return
from ..ops.leaves import LARGE_ARRAY, leaves_of, put_together, take_apart
from ..ops.literal import constant
from ..types import FunctionType, TensorType, Type, one_or_tuple, written
from .base import ModulePass
from .scalarize import Scalarize
from .split_aggregates import split_arguments

MOST_LEAVES = 1 << 14
"""So many a function takes and returns at most: for more, code generation would take minutes."""


@dataclass(frozen=True)
class Flatten(ModulePass):
    """Gives every function a parameter and a result for each leaf of those it had.

    A leaf is what is neither tuple, struct nor array (of up to 16,384 leaves), from left to right.  Declarations of
    derivatives are by the leaves with floats; a derivative by a struct that has others too is one of those, and
    zeros.  Inside of functions, `scalarize`.  What is loaded, carried by an enum or returned by a function that is a
    value stays as it is, and so do functions that are defined elsewhere, and those that are values: they call the flat
    one, and who calls them by name calls that, too.

    A function that takes and returns more than 16,384 leaves is refused.

    Requires: nothing.
    Preserves: results, as their leaves.
    Cost: linear, times the number of leaves.
    """

    name: ClassVar[str] = "flatten"
    forgets: ClassVar[bool] = True

    def run(self, module: Module, analyses: Analyses) -> bool:
        changed: dict[Function, None] = {}
        callees = _wrap_values(module, changed)
        types = {name: function.type for name, function in module.functions.items()}
        for function in list(module.functions.values()):
            if function.name in callees or (function.body is None and function.primal is None):
                continue
            _check_leaves(function)
            if function.primal is not None:
                is_changed = _flatten_declaration(module, function, types)
            else:
                is_changed = _flatten_signature(function)
            if is_changed:
                changed[function] = None
                callees[function.name] = function.name
        for function in changed:
            analyses.forget(function)
        for function in module.functions.values():
            if function.body is not None and _flatten_body(function, callees, analyses):
                changed[function] = None
                analyses.forget(function)
        return bool(changed)


def flat_type(type: FunctionType) -> FunctionType:
    """The signature with a parameter and a result for each leaf."""
    results = _leaf_types([type.result])
    return FunctionType(tuple(_leaf_types(type.parameters)), one_or_tuple(results))


def _leaf_types(types: Sequence[Type]) -> list[Type]:
    return [leaf.type for type in types for leaf in leaves_of(type, large_arrays=False)]


def _check_leaves(function: Function) -> None:
    """Raises: UnsupportedError for more than MOST_LEAVES."""
    types = (*function.type.parameters, function.type.result)
    leaves = (leaf for type in types for leaf in leaves_of(type, large_arrays=False))
    if next(itertools.islice(leaves, MOST_LEAVES, None), None) is not None:
        raise located(
            UnsupportedError(
                f"{written('@', function.name)} takes and returns more than {MOST_LEAVES:,} values, tuples and structs "
                "taken apart: put them together as tensors, or let the evaluator run it"
            ),
            function.location,
        )


# Functions that are values.


def _wrap_values(module: Module, changed: dict[Function, None]) -> dict[str, str]:
    """Have a function of the old type stand for each that is a value; whom it calls, by its name."""
    wanted = references(module)
    wrappers: dict[str, str] = {}
    wrapped: dict[str, str] = {}
    for function in list(module.functions.values()):
        if function.name not in wanted or (function.body is None and function.primal is None):
            continue
        if flat_type(function.type) == function.type:
            continue
        callee = _forwards_to(function)
        if callee is None:
            wrapper = _wrapper(module, function)
            changed[wrapper] = None
            wrapped[function.name] = wrapper.name
            wrappers[wrapper.name] = function.name
        else:
            wrappers[function.name] = callee
    for function in module.functions.values() if wrapped else ():
        for instruction in walk(function.body) if function.body is not None else ():
            if isinstance(instruction.op, Reference) and instruction.op.symbol in wrapped:
                instruction.op = replace(instruction.op, symbol=wrapped[instruction.op.symbol])
                changed[function] = None
    return wrappers


def _forwards_to(function: Function) -> str | None:
    """The flat function of whose type `function` is, if all it does is call that one with its leaves, in order."""
    if function.body is None or len(function.body.blocks) != 1 or function.rules:
        return None
    block = function.entry
    rest = [i for i in block.instructions if not isinstance(i.op, Extract | Aggregate)]
    call, op = rest[0], rest[0].op
    if len(rest) != 2 or not isinstance(op, Apply) or op.type != flat_type(function.type):
        return None
    leaves = [
        (parameter, leaf.path)
        for parameter in block.arguments
        for leaf in leaves_of(parameter.type, large_arrays=False)
    ]
    passed = [_place_of(x) for x in call.operands]
    returned = [leaf for x in block.terminator.operands for leaf in _made_of(x)]
    return op.callee if passed == leaves and returned == [*call.results] else None


def _place_of(x: Value) -> tuple[Value, tuple[int | str, ...]]:
    """The value that `x` is taken out of, and the keys that lead to it."""
    match x.op, x.producer:
        case Extract(keys), Instruction(operands=(whole,)):
            return whole, keys
        case _:
            return x, ()


def _made_of(x: Value) -> list[Value]:
    """The values that `x` is put together from; itself when it is not."""
    found: list[Value] = []
    pending = [x]
    while pending:
        value = pending.pop()
        if isinstance(value.op, Aggregate) and value.producer is not None:
            pending += reversed(value.producer.operands)
        else:
            found.append(value)
    return found


def _wrapper(module: Module, function: Function) -> Function:
    type = function.type
    b = Builder(Block(name="entry"))
    arguments = [b.argument(parameter) for parameter in type.parameters]
    results = b.emit_many(Apply(function.name, type), arguments)
    b.emit_many(Return(), results)
    name = module.fresh_name(f"{function.name}_value")
    return module.add(Function(name, type, Region([b.block]), location=function.location))


# Signatures.


def _flatten_signature(function: Function) -> bool:
    type = flat_type(function.type)
    if type == function.type:
        return False
    assert function.body is not None
    split_arguments(function.entry)
    for block in function.body.blocks:
        if isinstance(block.terminator.op, Return):
            returned = block.instructions.pop()
            b = Builder(block, returned.location)
            leaves = [x for y in returned.operands for x in take_apart(b, y, large_arrays=False)]
            b.emit_many(Return(), leaves)
            returned.erase()
    function.type = type
    return True


def _flatten_declaration(
    module: Module, function: Function, types: Mapping[str, FunctionType]
) -> bool:
    """Declare the derivative of what the primal, of one of the `types`, is now."""
    declaration = function.declaration
    assert isinstance(declaration, GradientOf | TangentOf | BatchOf)
    primal = types.get(declaration.primal)
    # one that is not there is refused when it is differentiated
    if primal is None or (
        flat_type(primal) == primal and flat_type(function.type) == function.type
    ):
        return False
    if isinstance(declaration, BatchOf):
        return _flatten_batch(function, declaration, primal)
    request = resolve_declared(primal, function)
    parameters = _spans(primal.parameters)
    results = _spans(elements(primal.result))
    flat = replace(
        declaration,
        sources=_floats(_chosen(results, request.sources)),
        wrt=_floats(_chosen(parameters, request.wrt)),
        keeping=tuple(k for k, _ in _chosen(results, request.keeping)),
    )
    function.type = flat_type(function.type)
    given = _leaf_types(request.given(primal))
    derivatives = _leaf_types(request.derivatives(primal))
    if not all(isinstance(type, TensorType) for type in derivatives):
        raise located(
            UnsupportedError(
                f"{written('@', function.name)} is a derivative by an array of more than {LARGE_ARRAY:,} elements: "
                "make it a tensor"
            ),
            declaration.location,
        )
    if all(map(_has_derivative, (*given, *derivatives))):
        function.declaration = flat
        return True
    taken = _leaf_types(primal.parameters)
    kept = [type for _, type in _chosen(results, request.keeping)]
    inner = Function(
        module.fresh_name(f"{function.name}_floats"),
        FunctionType(
            (*taken, *filter(_has_derivative, given)),
            one_or_tuple([*filter(_is_float, derivatives), *kept]),
        ),
        declaration=flat,
        location=function.location,
    )
    module.add(inner)
    b = Builder(Block(name="entry"), function.location)
    arguments = [b.argument(type) for type in function.type.parameters]
    passed = [x for k, x in enumerate(arguments) if k < len(taken) or _has_derivative(x.type)]
    found = iter(b.emit_many(Apply(inner.name, inner.type), passed))
    outputs = [next(found) if _is_float(type) else _zero(b, type) for type in derivatives]
    b.emit_many(Return(), [*outputs, *found])
    function.declaration, function.body = None, Region([b.block])
    return True


def _flatten_batch(function: Function, declaration: BatchOf, primal: FunctionType) -> bool:
    """Declare the batch of what the primal, of type `primal` before, is now: its leaves are along the same axes."""
    declared_batch(primal, function)
    results = _spans(elements(primal.result))
    into = result_axes(primal, declaration)
    function.type = flat_type(function.type)
    function.declaration = replace(
        declaration,
        along=_of_leaves(declaration.along, _spans(primal.parameters)),
        into=None if declaration.into is None else _of_leaves(into, results),
    )
    return True


def _of_leaves(
    axes: Sequence[int | None], spans: Sequence[Sequence[tuple[int, Type]]]
) -> tuple[int | None, ...]:
    return tuple(axis for axis, leaves in zip(axes, spans, strict=True) for _ in leaves)


def _spans(types: Sequence[Type]) -> list[list[tuple[int, Type]]]:
    """For each of `types` its leaves, with their numbers among those of all."""
    numbers = itertools.count()
    return [[(next(numbers), leaf) for leaf in _leaf_types([type])] for type in types]


def _chosen(
    spans: Sequence[list[tuple[int, Type]]], positions: Sequence[int]
) -> list[tuple[int, Type]]:
    return [leaf for position in positions for leaf in spans[position]]


def _floats(leaves: Sequence[tuple[int, Type]]) -> tuple[int, ...]:
    return tuple(number for number, type in leaves if _has_derivative(type))


def _has_derivative(type: Type) -> bool:
    return _is_float(type) or has_shadow(type)


def _is_float(type: Type) -> bool:
    return isinstance(type, TensorType) and type.dtype.is_float


def _zero(b: Builder, type: Type) -> Value:
    assert isinstance(type, TensorType)
    return constant(b, type, 0)


# Bodies.


def _flatten_body(function: Function, callees: Mapping[str, str], analyses: Analyses) -> bool:
    """Leave no aggregates in `function` where they can be taken apart; whether there were any."""
    changed = Scalarize().run(function, analyses)
    while _flatten_calls(function, callees):
        changed = True
        analyses.forget(function)
        # which may tell that the callee of another call has a flat form
        Scalarize().run(function, analyses)
    return changed


def _flatten_calls(function: Function, callees: Mapping[str, str]) -> bool:
    """Call the flat functions in place of those that had another type; whether there was any call."""
    assert function.body is not None
    changed = False
    for block in list(walk_blocks(function.body)):
        old, block.instructions = block.instructions, []
        for instruction in old:
            op = instruction.op
            if isinstance(op, Apply) and op.callee in callees and flat_type(op.type) != op.type:
                callee = callees[op.callee]
                instruction.replace_with(*_flat_call(block, op.type, callee, instruction))
                changed = True
            else:
                block.instructions.append(instruction)
    return changed


def _flat_call(block: Block, type: FunctionType, callee: str, call: Instruction) -> list[Value]:
    b = Builder(block, call.location)
    arguments = [x for y in call.operands for x in take_apart(b, y, large_arrays=False)]
    leaves = iter(b.emit_many(Apply(callee, flat_type(type)), arguments))
    return [put_together(b, x.type, leaves, large_arrays=False) for x in call.results]
