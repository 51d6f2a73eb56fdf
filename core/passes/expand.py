"""Expands composite ops to those that differentiation and code generation handle.

1. Builtins become the ops they are made of, questions about shapes literals; elements of tensors are
   sliced, and what something is inserted into is made anew (`expand_elements`), a chain of `insert` once
   (`insert_chains`).
2. `random` becomes a pure function of the state of the generator, which is in two global variables: the
   seed, and how many `random` the run has executed.  Both are zero at first.
3. A reduction, scan or reduceWindow by a function, or in order, becomes a `for` over what it combines
   (`expand_reduction`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

from ..analysis import Analyses
from ..errors import VerifyError
from ..ir import Builder, Instruction, Module, Op, Region, Value, Variable
from ..ir.surgery import walk_blocks
from ..lazy_dataclass import dataclass
from ..ops import Add, Extract, Insert, Load, Random, Reference, Store, constant
from ..ops.random import RANDOM_COUNT, RANDOM_SEED
from ..types import I64, FunctionType, PointerType, scalar, written
from .base import ModulePass
from .expand_elements import expand_extract, expand_insert
from .expand_reductions import expand_reduction
from .insert_chains import combine_inserts

ExpansionRule: TypeAlias = Callable[[Module, Builder, Instruction[Any]], Value | None]
"""The value that an instruction equals, by new instructions; None to leave it alone."""


@dataclass(frozen=True)
class Expand(ModulePass):
    """Writes out builtins, questions about shapes, random numbers, and folds by a function.

    Requires: nothing.
    Preserves: every bit, and the order of effects.
    Cost: linear; a fold gets a loop, and a copy of a function that is made of elementwise ops.
    """

    name: ClassVar[str] = "expand"
    forgets: ClassVar[bool] = True

    def run(self, module: Module, analyses: Analyses) -> bool:
        changed = False
        for function in module.functions.values():
            if function.body is not None and combine_inserts(function.body):
                analyses.forget(function)
                changed = True
        # functions that are folded with are looked into: what they are made of must be there already
        for rule in (_expand_simple, expand_reduction):
            for function in module.functions.values():
                if function.body is not None and _expand(rule, module, function.body):
                    analyses.forget(function)
                    changed = True
        return changed


def _expand(rule: ExpansionRule, module: Module, region: Region) -> bool:
    changed = False
    folded_with: set[Value] = set()
    for block in list(walk_blocks(region)):
        builder = Builder()
        for instruction in block.instructions:
            builder.location = instruction.location
            value = rule(module, builder, instruction)
            if value is None:
                builder.block.instructions.append(instruction)
                continue
            folded_with.update(x for x in instruction.operands if isinstance(x.type, FunctionType))
            instruction.replace_with(value)
            changed = True
        block.instructions[:] = builder.block.instructions
    if folded_with:
        _remove_references(region, folded_with)
    return changed


def _remove_references(region: Region, functions: set[Value]) -> None:
    """Leave out those of `functions` that nobody needs as values any more: they may go altogether."""
    unused = {f.producer for f in functions if f.op and f.op.referred is not None and not f.uses}
    for block in walk_blocks(region):
        block.instructions[:] = [i for i in block.instructions if i not in unused]


def _expand_simple(module: Module, b: Builder, instruction: Instruction) -> Value | None:
    rule = _RULES.get(type(instruction.op))
    if rule is not None:
        return rule(module, b, instruction)
    return instruction.op.expand(b, *instruction.operands)


def _extract(module: Module, b: Builder, instruction: Instruction[Extract]) -> Value | None:
    return expand_extract(b, instruction.op, *instruction.operands)


def _insert(module: Module, b: Builder, instruction: Instruction[Insert]) -> Value:
    return expand_insert(b, instruction.op, *instruction.operands)


def _random(module: Module, b: Builder, instruction: Instruction[Random]) -> Value:
    op, (low, high) = instruction.op, instruction.operands
    seed, place = (_state(module, b, name) for name in (RANDOM_SEED, RANDOM_COUNT))
    count = b.emit(Load(), place)
    b.emit_many(Store(), [b.emit(Add(), count, constant(b, scalar(I64), 1)), place])
    return op.expand_with(b, b.emit(Load(), seed), count, low, high)


def _state(module: Module, b: Builder, name: str) -> Value:
    """The pointer to a part of the generator's state."""
    variable = module.variables.setdefault(name, Variable(name, scalar(I64)))
    if variable.type != scalar(I64) or name in module.functions:
        raise VerifyError(
            f"{written('@', name)} belongs to the generator of random numbers, and is an i64 variable"
        )
    return b.emit(Reference(name, PointerType(variable.type)))


_RULES: Mapping[type[Op], ExpansionRule] = {Extract: _extract, Insert: _insert, Random: _random}
"""What the module is needed for, or ops that `core.ops.aggregate` does not know."""
