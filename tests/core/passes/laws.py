"""How a law is tested: on one instance and one near miss, over the numbers that careless laws break on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Builder, Function, Module, Value, finish_function, start_function
from nnkit.core.ir.surgery import walk
from nnkit.core.ops import Aggregate, Apply, Literal, Return, splat
from nnkit.core.ops.aggregate import packed, unpacked
from nnkit.core.passes import DeadCode, FunctionPass, Simplify, apply_pass
from nnkit.core.text import parse_module
from nnkit.core.types import VOID, Array, TensorType, TupleType, Type, elements_of, results_of
from tests.programs import same_bits

SPECIAL = (0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-45, 0.1, -7.25, 65504.0)
INTEGERS = (0, 1, -1, 2, -5, 7, 127, -128, 100)


@dataclass(frozen=True)
class Law:
    """A program, and the opcodes that remain of it in order, literals left out."""

    title: str
    parameters: Sequence[Type]
    build: Callable[..., Value]
    becomes: str

    def __str__(self) -> str:
        return self.title


def rows(*laws: tuple[str, Sequence[Type], Callable[..., Value], str]) -> list[Any]:
    """Laws as parameters of a test, each named by its title."""
    return [pytest.param(Law(*law), id=law[0]) for law in laws]


def check(law: Law, a_pass: FunctionPass | None = None, *, is_exact: bool = True) -> None:
    """The pass leaves exactly what the law says, with the same bits, and is done after one run."""
    a_pass = a_pass or Simplify()
    whole: list[str] = []

    def build(b: Builder, *parameters: Value) -> Value:
        made = law.build(b, *parameters)
        if results_of(made.type) == (made.type,):
            return made
        # a tuple would be returned as its elements; one that it alone is in is one result
        whole[:] = ["aggregate"]
        return b.emit(Aggregate(TupleType((made.type,))), made)

    module = module_of(law.parameters, build)
    arguments = [special(type, shift) for shift, type in enumerate(law.parameters)]
    expected = evaluate(module, "main", *arguments)
    changed = apply_pass(a_pass, module)
    apply_pass(DeadCode(), module)
    becomes = " ".join([*law.becomes.split(), *whole])
    assert opcodes(module.functions["main"]) == becomes
    if is_exact:
        assert same_bits(evaluate(module, "main", *arguments), expected)
    assert changed or becomes == opcodes(module_of(law.parameters, build).functions["main"])
    assert not apply_pass(a_pass, module)


def module_of(parameters: Sequence[Type], build: Callable[..., Value]) -> Module:
    """A module whose function `main` returns what `build(builder, *parameters)` makes."""
    module = Module()
    define(module, "main", parameters, build)
    return module


def define(
    module: Module, name: str, parameters: Sequence[Type], build: Callable[..., Value | None]
) -> Function:
    """Add a function that returns what `build(builder, *parameters)` makes; None is void."""
    builder = start_function(parameters)
    result = build(builder, *builder.block.arguments)
    builder.emit_many(Return(), [] if result is None else unpacked(builder, result))
    function = module.add(finish_function(name, builder, result.type if result else VOID))
    define_types(module, function)
    return function


def define_types(module: Module, function: Function) -> None:
    """Make the structs and enums known that values inside of `function` are of."""
    assert function.body is not None
    for instruction in walk(function.body):
        for result in instruction.results:
            module.add_structs(result.type)


def call(b: Builder, callee: Function, *arguments: Value) -> Value:
    """Call `callee`."""
    results = b.emit_many(Apply(callee.name, callee.type), arguments)
    return packed(b, callee.type.result, results)


def opcodes(function: Function) -> str:
    """The names of the instructions, without literals and the return."""
    instructions = function.entry.instructions[:-1]
    return " ".join(i.op.name for i in instructions if not isinstance(i.op, Literal))


def parsed(text: str) -> Module:
    """The module of these definitions."""
    return parse_module(f'module "m"\nstage raw\n{text}')


def every_opcode(module: Module, name: str) -> list[str]:
    """The names of all instructions of a function, those of inner bodies after those around them."""
    body = module.functions[name].body
    assert body is not None
    return [instruction.op.name for instruction in walk(body)]


def special(type: Type, shift: int = 0) -> Any:
    """An argument of `type` with special numbers, in another order for each `shift`."""
    elements = elements_of(type)
    if elements is not None:
        return tuple(special(element, shift + index) for index, element in enumerate(elements))
    assert isinstance(type, TensorType)
    numbers: Sequence[Any] = SPECIAL if type.dtype.is_float else INTEGERS
    values: Array = np.resize(np.roll(np.array(numbers), 3 * shift), type.shape)
    return type.dtype.round(values > 1 if type.dtype.kind == "boolean" else values)


def number(b: Builder, like: Value, n: Any) -> Value:
    """The scalar `n` of the element type of `like`."""
    return b.emit(splat(like.tensor.with_shape(()), n))


def full(b: Builder, like: Value, n: Any) -> Value:
    """`n` in the shape of `like`."""
    return b.emit(splat(like.tensor, n))
