"""Scalar replacement of aggregates: tuples and structs become their tensors.

1. With `flatten`: every parameter becomes one parameter per leaf, from which the aggregate is put together
   at once; every result is taken apart into a tuple of its leaves; every call does the reverse.
2. So does what structured ops carry, are given and yield, and what blocks take.
3. Extracting from what was put together gives the element (the laws in `rules.aggregate`).
4. What was put together in vain is removed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from ..analysis import Analyses
from ..analysis.call_graph import check_names, references
from ..errors import UnsupportedError
from ..ir import Block, Builder, Function, Instruction, Module, Value
from ..ir.surgery import clone_function, walk, walk_blocks
from ..location import located
from ..ops import Apply, Reference, Return
from ..ops.leaves import leaves_of, put_together, take_apart
from ..types import FunctionType, one_or_tuple, written
from .base import ModulePass
from .dce import remove_dead
from .rewrite import rewrite
from .rules import AGGREGATE
from .split_aggregates import split_aggregates, split_arguments

MOST_LEAVES = 1 << 14
"""So many a function takes and returns at most: for more, code generation would take minutes."""


@dataclass(frozen=True)
class Scalarize(ModulePass):
    """Removes the aggregates between a function's parameters, its calls and its result.

    `flatten` removes them from all signatures too: a parameter and a result for each leaf.  A leaf is what is
    neither tuple nor struct, from left to right; a function of more than 16,384 is refused.

    Functions that are values somewhere keep their signature; those among `entries` get a copy that keeps it.
    Blocks that take what an enum carries take it as it is.

    Requires: nothing; flattening leaves gradient declarations as they are, so differentiate before.
    Preserves: results; with `flatten`, as their leaves.
    Cost: linear, times the number of leaves.
    """

    name: ClassVar[str] = "scalarize"
    forgets: ClassVar[bool] = True
    flatten: bool = False
    entries: tuple[str, ...] = ()

    def run(self, module: Module, analyses: Analyses) -> bool:
        check_names(module, self.entries)
        changed = dict.fromkeys(self._flatten(module) if self.flatten else ())
        for function in changed:
            analyses.forget(function)
        for function in module.functions.values():
            if function.body is None:
                continue
            split = split_aggregates(function.body)
            if rewrite(function, AGGREGATE, analyses) or split:
                remove_dead(function, analyses)
                changed[function] = None
        for function in changed:
            analyses.forget(function)
        return bool(changed)

    def _flatten(self, module: Module) -> Iterator[Function]:
        """Give every function that may have it a flat signature; the functions that are changed for it."""
        yield from _copy_entries(module, references(module).intersection(self.entries))
        kept = references(module)
        functions = [f for f in module.functions.values() if f.body is not None]
        for function in functions:
            _check_leaves(function)
        flat = {f.name for f in functions if f.name not in kept and flat_type(f.type) != f.type}
        for function in functions:
            if _flatten_calls(function, flat):
                yield function
        for function in functions:
            if function.name in flat:
                _flatten_signature(function)
                yield function


def _check_leaves(function: Function) -> None:
    """Raises: UnsupportedError for more than MOST_LEAVES."""
    types = (*function.type.parameters, function.type.result)
    leaves = (leaf for type in types for leaf in leaves_of(type, arrays=False))
    if next(itertools.islice(leaves, MOST_LEAVES, None), None) is not None:
        raise located(
            UnsupportedError(
                f"{written('@', function.name)} takes and returns more than {MOST_LEAVES:,} values, tuples and structs "
                "taken apart: put them together as tensors, or let the evaluator run it"
            ),
            function.location,
        )


def flat_type(type: FunctionType) -> FunctionType:
    """The signature with a parameter and a result for each leaf."""
    parameters = tuple(leaf.type for p in type.parameters for leaf in leaves_of(p, arrays=False))
    results = [leaf.type for leaf in leaves_of(type.result, arrays=False)]
    return FunctionType(parameters, one_or_tuple(results))


def _copy_entries(module: Module, names: set[str]) -> Iterator[Function]:
    """Give entries that are values as well a copy that is the value from now on; who has them as values."""
    wanted = [name for name in module.functions if name in names]
    copies = {name: module.fresh_name(f"{name}_value") for name in wanted}
    for name, copy in copies.items():
        module.add(clone_function(module.functions[name], copy))
    for function in module.functions.values() if copies else ():
        for instruction in walk(function.body) if function.body is not None else ():
            if isinstance(instruction.op, Reference) and instruction.op.symbol in copies:
                instruction.op = replace(instruction.op, symbol=copies[instruction.op.symbol])
                yield function


def _flatten_calls(function: Function, flat: set[str]) -> bool:
    assert function.body is not None
    changed = False
    for block in list(walk_blocks(function.body)):
        old, block.instructions = block.instructions, []
        for instruction in old:
            op = instruction.op
            if isinstance(op, Apply) and op.callee in flat:
                instruction.replace_with(*_flat_call(block, op, instruction))
                changed = True
            else:
                block.instructions.append(instruction)
    return changed


def _flat_call(block: Block, op: Apply, call: Instruction) -> list[Value]:
    b = Builder(block, call.location)
    arguments = [leaf for operand in call.operands for leaf in take_apart(b, operand, arrays=False)]
    leaves = iter(b.emit_many(Apply(op.callee, flat_type(op.type)), arguments))
    return [put_together(b, result.type, leaves, arrays=False) for result in call.results]


def _flatten_signature(function: Function) -> None:
    type = flat_type(function.type)
    assert function.body is not None
    split_arguments(function.entry)
    for block in function.body.blocks:
        if isinstance(block.terminator.op, Return):
            _flatten_result(block)
    function.type = type


def _flatten_result(block: Block) -> None:
    returned = block.instructions.pop()
    b = Builder(block, returned.location)
    leaves = [leaf for x in returned.operands for leaf in take_apart(b, x, arrays=False)]
    b.emit_many(Return(), leaves)
    returned.erase()
