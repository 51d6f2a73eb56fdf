"""Laws that ops obey whose operands may be anything; an op joins by rows in its family's test file.

1. Every such op has samples, and its syntax names each of its attributes.
2. The type rule gives the promised types, and misuse raises the promised error with the promised message.
3. What is printed is parsed back to the same op, and printed the same; it keeps the verifier's rules.
4. What touches memory says so.
"""

from __future__ import annotations

import dataclasses
import re

import pytest

from nnkit.core.ir import Effect, Module, Op, Variable, finish_function, start_function
from nnkit.core.ops import (
    ALL,
    PROGRAM,
    Apply,
    Extract,
    Reference,
    Return,
    aggregate,
    axis,
    effects,
    enums,
    memory,
    reference,
    stack,
    trap,
)
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import FunctionType, PointerType, Type, one_or_tuple, results_of
from nnkit.core.verify import verify
from tests.rows import each

from . import (
    test_aggregate,
    test_axis,
    test_effects,
    test_enums,
    test_memory,
    test_reference,
    test_stack,
    test_trap,
)
from .program_samples import Refused, Typed

_FAMILIES = (
    test_axis,
    test_reference,
    test_enums,
    test_aggregate,
    test_memory,
    test_stack,
    test_trap,
    test_effects,
)
SAMPLES: list[Typed] = [sample for family in _FAMILIES for sample in family.SAMPLES]
ERRORS: list[Refused] = [sample for family in _FAMILIES for sample in family.ERRORS]
OPS = [
    op
    for op in PROGRAM
    if op.__module__
    in {m.__name__ for m in (axis, reference, enums, aggregate, memory, stack, trap, effects)}
]


def test_every_op_has_samples() -> None:
    assert {type(sample.op) for sample in SAMPLES} == set(OPS)


def test_names_are_unique() -> None:
    names = [op.name for op in (*ALL, *PROGRAM)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_syntax_names_every_attribute(op: type[Op]) -> None:
    named = set(re.findall(r"{(\w+)\*?}", op.syntax))
    assert {field.name for field in dataclasses.fields(op)} <= named  # type: ignore[arg-type]


@each("sample", SAMPLES, ids=str)
def test_type_rule(sample: Typed) -> None:
    inferred = sample.op.infer(*sample.types)
    assert ((inferred,) if isinstance(inferred, Type) else inferred) == sample.results


@each("sample", ERRORS, ids=str)
def test_misuse_is_explained(sample: Refused) -> None:
    with pytest.raises(sample.error, match=re.escape(sample.message)):
        sample.op.infer(*sample.types)


@each("sample", SAMPLES, ids=str)
def test_text_is_read_back(sample: Typed) -> None:
    module = module_with(sample)
    text = print_module(module)
    parsed = parse_module(text)
    assert parsed.functions["main"].entry.instructions[0].op == sample.op
    assert print_module(parsed) == text
    verify(parsed)


def module_with(sample: Typed) -> Module:
    """A function of the operands that runs the op once, and what its symbols need."""
    module = Module()
    match sample.op:
        case Reference(symbol, FunctionType() as type) | Apply(symbol, type):
            b = start_function(type.parameters)
            b.emit_many(Return(), [b.emit(reference.Undefined(result)) for result in type.results])
            module.add(finish_function(symbol, b, type.result))
        case Reference(symbol, PointerType(pointee)):
            module.variables[symbol] = Variable(symbol, pointee)
        case _:
            pass
    b = start_function(sample.types)
    results = b.emit_many(sample.op, b.block.arguments)
    given = one_or_tuple([value.type for value in results])
    if results_of(given) != tuple(value.type for value in results):
        results = tuple(b.emit(Extract((k,)), *results) for k in range(len(results_of(given))))
    b.emit_many(Return(), results)
    module.add(finish_function("main", b, given))
    add_types(module, sample)
    return module


def add_types(module: Module, sample: Typed) -> None:
    """Define the structs and enums that only the op itself mentions."""
    for field in dataclasses.fields(sample.op):  # type: ignore[arg-type]
        value = getattr(sample.op, field.name)
        if isinstance(value, Type):
            module.add_structs(value)


def test_only_what_touches_nothing_may_be_moved_and_merged() -> None:
    free = {op.name for op in OPS if op.effect is Effect.NONE}
    assert free == {
        "reference", "null", "undefined", "aggregate", "enumCase", "isCase", "payload", "extract",
        "insert", "projectBox", "elementPointer", "offset", "pointerCast", "axisReduce",
    }  # fmt: skip
    assert {op.name for op in OPS if op.effect is Effect.CALL} == {"apply", "applyValue"}
    assert {op.name for op in OPS if op.effect is Effect.ALLOCATE} == {
        "allocateStack", "allocateHeap", "allocateBox", "createStack",
    }  # fmt: skip
    assert {op.name for op in OPS if op.effect is Effect.READ} == {"load"}
    assert {op.name for op in OPS if Effect.READ | Effect.WRITE in op.effect} == {"copy", "pop"}
