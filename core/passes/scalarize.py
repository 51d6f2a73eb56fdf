"""Tuples and structs become their tensors.

1. With `flatten`: every parameter becomes one parameter per leaf, from which the aggregate is put together
   at once; every result is taken apart into a tuple of its leaves; every call does the reverse.
2. Extracting from what was put together gives the element (the laws in `rules.aggregate`).
3. What was put together in vain is removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..ir import Block, Builder, Function, Instruction, Module, Value
from ..ir.surgery import replace_uses, walk_blocks
from ..ops import Aggregate, Apply, Extract, Return
from ..types import FunctionType, StructType, TupleType, Type, elements_of
from .base import ModulePass
from .dce import remove_dead
from .rewrite import rewrite
from .rules import AGGREGATE


@dataclass(frozen=True)
class Scalarize(ModulePass):
    """Removes the aggregates between a function's parameters, its calls and its result.

    `flatten` removes them from all signatures too: a parameter per leaf, and always a tuple of leaves as
    the result, also of one or none.  A leaf is what is neither tuple nor struct, from left to right.

    Requires: nothing; flattening leaves gradient declarations as they are, so differentiate before.
    Preserves: results; with `flatten`, as a flat tuple.
    Cost: linear, times the number of leaves.
    """

    name: ClassVar[str] = "scalarize"
    flatten: bool = False

    def run(self, module: Module) -> bool:
        functions = [f for f in module.functions.values() if f.body is not None]
        changed = False
        if self.flatten:
            for function in functions:
                changed = _flatten_calls(function, module) or changed
            for function in functions:
                changed = _flatten_signature(function) or changed
        for function in functions:
            assert function.body is not None
            if rewrite(function.body, AGGREGATE):
                remove_dead(function.body)
                changed = True
        return changed


def flat_type(type: FunctionType) -> FunctionType:
    """The signature with a parameter per leaf and a tuple of leaves as the result."""
    parameters = tuple(leaf for p in type.parameters for _, leaf in _leaves(p))
    return FunctionType(parameters, TupleType(tuple(leaf for _, leaf in _leaves(type.result))))


def _flatten_calls(function: Function, module: Module) -> bool:
    assert function.body is not None
    replaced: dict[Value, Value] = {}
    for block in list(walk_blocks(function.body)):
        old, block.instructions = block.instructions, []
        for instruction in old:
            op = instruction.op
            if isinstance(op, Apply) and _is_flattened(op, module):
                replaced[instruction.result] = _flat_call(block, op, instruction)
            else:
                block.instructions.append(instruction)
    replace_uses(function.body, replaced)
    return bool(replaced)


def _is_flattened(op: Apply, module: Module) -> bool:
    callee = module.functions.get(op.callee)
    return callee is not None and callee.body is not None and flat_type(op.type) != op.type


def _flat_call(block: Block, op: Apply, call: Instruction) -> Value:
    b = Builder(block, call.location)
    arguments = [leaf for operand in call.operands for leaf in _taken_apart(b, operand)]
    flat = b.emit(Apply(op.callee, flat_type(op.type)), *arguments)
    leaves = (b.emit(Extract((index,)), flat) for index, _ in enumerate(_leaves(op.type.result)))
    return _put_together(b, op.type.result, leaves)


def _flatten_signature(function: Function) -> bool:
    type = flat_type(function.type)
    if type == function.type:
        return False
    assert function.body is not None
    _flatten_parameters(function)
    for block in function.body.blocks:
        if isinstance(block.terminator.op, Return):
            _flatten_result(block, type.result)
    function.type = type
    return True


def _flatten_parameters(function: Function) -> None:
    entry = function.entry
    old, entry.arguments = entry.arguments, []
    start = Block(entry.arguments)
    b = Builder(start)
    replaced: dict[Value, Value] = {}
    for argument in old:
        if elements_of(argument.type) is None:
            entry.arguments.append(argument)
            continue
        leaves = [
            b.argument(leaf, _leaf_name(argument.name, path))
            for path, leaf in _leaves(argument.type)
        ]
        replaced[argument] = _put_together(b, argument.type, iter(leaves))
    entry.instructions[:0] = start.instructions
    assert function.body is not None
    replace_uses(function.body, replaced)


def _flatten_result(block: Block, type: Type) -> None:
    returned = block.instructions.pop()
    b = Builder(block, returned.location)
    leaves = [leaf for operand in returned.operands for leaf in _taken_apart(b, operand)]
    assert isinstance(type, TupleType)
    b.emit_many(Return(), [b.emit(Aggregate(type), *leaves)])


def _leaves(type: Type) -> Iterator[tuple[tuple[int | str, ...], Type]]:
    """The keys that lead to each leaf, and its type, left to right."""
    pending: list[tuple[tuple[int | str, ...], Type]] = [((), type)]
    while pending:
        path, current = pending.pop()
        elements = elements_of(current)
        if elements is None:
            yield path, current
            continue
        keys = _keys(current, len(elements))
        pending.extend(
            ((*path, key), t) for key, t in reversed(list(zip(keys, elements, strict=True)))
        )


def _keys(type: Type, count: int) -> Sequence[int | str]:
    return [name for name, _ in type.fields] if isinstance(type, StructType) else range(count)


def _leaf_name(name: str | None, path: Sequence[int | str]) -> str | None:
    return None if name is None else "_".join(map(str, (name, *path)))


def _taken_apart(b: Builder, x: Value) -> list[Value]:
    return [b.emit(Extract(path), x) if path else x for path, _ in _leaves(x.type)]


def _put_together(b: Builder, type: Type, leaves: Iterator[Value]) -> Value:
    """A value of `type` made of the next leaves."""
    pending: list[tuple[Type, bool]] = [(type, False)]
    made: list[Value] = []
    while pending:
        current, is_complete = pending.pop()
        elements = elements_of(current)
        if elements is None:
            made.append(next(leaves))
        elif is_complete:
            assert isinstance(current, TupleType | StructType)
            first = len(made) - len(elements)
            made[first:] = [b.emit(Aggregate(current), *made[first:])]
        else:
            pending.append((current, True))
            pending.extend((element, False) for element in reversed(elements))
    return made[0]
