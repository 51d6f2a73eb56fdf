"""Lowers a module: pointers, boxes, stacks, enums and functions to machine words, aggregates to their leaves.

1. Every value becomes the list of its leaves (`data_layout`), in the signatures of all functions, too: tensors as they
   are, and an `i64` for all that is none.
2. Each instruction that knows of such values is written anew by its rule, with the ops of `core.ops.byte_memory`; the
   others stay.
3. A function of tensors whose instructions know of nothing else stays as it is.

Bodies must be closed, as each block is written by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ...errors import UnsupportedError
from ...ir import Extern, Function, Instruction, Module, Op, Region, Value
from ...ops.aggregate import Aggregate, Apply, ApplyValue, Extract, Insert
from ...ops.enums import EnumCase, IsCase, Payload
from ...ops.memory import (
    AllocateBox,
    AllocateHeap,
    AllocateStack,
    Copy,
    Deallocate,
    ElementPointer,
    Load,
    Offset,
    PointerCast,
    ProjectBox,
    Release,
    Retain,
    Store,
)
from ...ops.nest import Yield
from ...ops.reference import Null, Reference, Undefined
from ...ops.stack import CreateStack, DestroyStack, Pop, Push
from ...ops.structured import For, If, While
from ...ops.terminators import Return
from ...ops.trap import Trap
from ...types import OpaqueType, PointerType, TensorType, written
from ..bodies import bodies_of
from . import flatten_values, heap_objects, pointers
from .context import NOTHING, LoweringContext, ModuleContext, results_named, start_context
from .data_layout import reaches_cells

LoweringRule: TypeAlias = Callable[[LoweringContext, Instruction[Any]], Sequence[list[Value]]]
"""Writes an instruction anew; the leaves of each result."""

MOST_VARIABLES = 1 << 30
"""Bytes of global variables: code reaches them by signed distances of 32 bits, of which half is left for all else."""

STACK_ROOM = 4096
"""Bytes of its stack that a function may take for memory that it allocates: a page.

What is more comes from `calloc`, which is slower by some 10 ns. A recursion has the frames of 2,000 calls in 8 MiB
still.
"""


def lower_memory(module: Module, entries: Sequence[str] = ()) -> bool:
    """Lower memory operations and aggregates of `module`; whether there were any.

    `entries` are functions that are called from outside: they take and return tensors, and aggregates of them.
    Raises: UnsupportedError for entries of other types, and for what cannot be a word.
    """
    if not any(_knows_more(function) for function in module.functions.values()):
        return False
    program = ModuleContext(module)
    for name in entries:
        _check_entry(module.functions[name], program)
    _check_variables(program)
    for function in module.functions.values():
        if function.body is not None:
            _lower_function(function, program)
    for function in module.functions.values():
        is_extern = isinstance(function.declaration, Extern)
        if is_extern:
            _check_extern(function, program)
        if is_extern or function.body is not None:
            function.type = program.layout.flat(function.type)
    return True


def _knows_more(function: Function) -> bool:
    """Whether a function has values that are no tensors, or effects."""
    if isinstance(function.declaration, Extern):
        return True
    if function.body is None:
        return False
    values: list[Value] = []
    for body in bodies_of(function):
        values += body.block.arguments
        for instruction in body.block.instructions:
            if type(instruction.op) in MEMORY:
                return True
            values += instruction.results
    return any(not isinstance(value.type, TensorType) for value in values)


def _lower_function(function: Function, program: ModuleContext) -> None:
    room = [STACK_ROOM]
    given: dict[Region, list[bool]] = {}
    for body in bodies_of(function):  # outer before inner, so that `given` is known
        valid = given.get(body.region, ())
        c = start_context(program, body.block, body.loops, room, valid)
        for instruction in body.block.instructions:
            c.b.location = instruction.location
            rule = RULES.get(type(instruction.op), _keep)
            results_named(c, instruction, rule(c, instruction))
        given.update(c.given)
        body.region.blocks = [c.b.block]


def _keep(c: LoweringContext, at: Instruction) -> list[list[Value]]:
    """An op of tensors."""
    operands = [c.word(operand) for operand in at.operands]
    return [[made] for made in c.b.emit_many(at.op, operands, at.regions)]


def _check_entry(function: Function, program: ModuleContext) -> None:
    for type in (*function.type.parameters, function.type.result):
        for _, leaf in program.layout.leaves(type):
            if not isinstance(leaf, TensorType):
                what = "takes" if type in function.type.parameters else "returns"
                raise UnsupportedError(
                    f"{written('@', function.name)} {what} a {leaf}: what is called from outside takes and returns "
                    "tensors, and tuples, structs and arrays of them; the evaluator runs it"
                )


def _check_extern(function: Function, program: ModuleContext) -> None:
    """C gets tensors, and addresses that do not lead to what only our code can read."""
    for type in (*function.type.parameters, function.type.result):
        for _, leaf in program.layout.leaves(type):
            is_passed = isinstance(leaf, TensorType | PointerType | OpaqueType)
            if not is_passed or reaches_cells([leaf]):
                raise UnsupportedError(
                    f"{written('@', function.name)} is extern and has a {leaf} in its signature: C is given tensors, "
                    "pointers to tensors and their aggregates, and opaque values"
                )


def _check_variables(program: ModuleContext) -> None:
    sizes = {
        name: program.layout.extent(variable.type).bytes
        for name, variable in program.module.variables.items()
        if name != NOTHING
    }
    if sum(sizes.values()) > MOST_VARIABLES:
        largest = max(sizes, key=lambda name: sizes[name])
        raise UnsupportedError(
            f"the global variables take {sum(sizes.values())} bytes, {written('@', largest)} alone "
            f"{sizes[largest]}; compiled programs have at most {MOST_VARIABLES}: allocate the memory on the heap"
        )


MEMORY: Mapping[type[Op], LoweringRule] = {
    AllocateStack: pointers.allocate_stack,
    AllocateHeap: pointers.allocate_heap,
    Deallocate: pointers.deallocate,
    Load: pointers.load,
    Store: pointers.store,
    Copy: pointers.copy,
    ElementPointer: pointers.element_pointer,
    Offset: pointers.offset,
    PointerCast: pointers.cast,
    Reference: pointers.reference,
    AllocateBox: heap_objects.allocate_box,
    ProjectBox: heap_objects.project_box,
    Retain: heap_objects.retain,
    Release: heap_objects.release,
    CreateStack: heap_objects.create_stack,
    Push: heap_objects.push,
    Pop: heap_objects.pop,
    DestroyStack: heap_objects.destroy_stack,
    EnumCase: heap_objects.enum_case,
    IsCase: heap_objects.is_case,
    Payload: heap_objects.payload,
    Null: flatten_values.undefined,
    Undefined: flatten_values.undefined,
    Trap: flatten_values.trap,
    ApplyValue: flatten_values.apply_value,
    Insert: flatten_values.insert,
}
"""Rules of the ops that only programs with more than tensors have."""

RULES: Mapping[type[Op], LoweringRule] = {
    **MEMORY,
    Aggregate: flatten_values.aggregate,
    Extract: flatten_values.extract,
    Apply: flatten_values.apply,
    Return: flatten_values.returned,
    If: flatten_values.structured,
    While: flatten_values.structured,
    For: flatten_values.structured,
    Yield: flatten_values.yielded,
}
"""How each instruction is written anew that is more than an op of tensors."""
