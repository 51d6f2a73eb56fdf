"""Modules with what the tests break in them."""

from __future__ import annotations

from collections.abc import Callable

from nnkit.core.ir import (
    Builder,
    Function,
    Instruction,
    Module,
    Region,
    Stage,
    Value,
    finish_function,
    start_function,
)
from nnkit.core.ir.placement import Place, Placement
from nnkit.core.kernels.build import KernelBuilder
from nnkit.core.ops import (
    Negate,
    Return,
    Yield,
)
from nnkit.core.ops.nest import Access, Nest, Output, coordinate
from nnkit.core.types import (
    F32,
    I64,
    VOID,
    TensorType,
    TupleType,
    scalar,
)
from nnkit.core.verify import violations

X = TensorType((4,), F32)
S = scalar(F32)
I = TensorType((4,), I64)
PAIR = TupleType((X, X))
POINT = (coordinate(0),)


def module_of(*functions: Function, stage: Stage = Stage.RAW) -> Module:
    module = Module("m", stage)
    for function in functions:
        module.functions[function.name] = function
    return module


def function(build: Callable[..., Value | None], *types: TensorType, name: str = "f") -> Function:
    """A function whose body `build(builder, *parameters)` writes; it returns what that returns."""
    b = start_function(types, [f"x{i}" for i in range(len(types))])
    result = build(b, *b.block.arguments)
    b.emit_many(Return(), [] if result is None else [result])
    return finish_function(name, b, VOID if result is None else result.type)


def negated(name: str = "f") -> Function:
    """@f: x ↦ −x, which is valid."""
    return function(lambda b, x: b.emit(Negate(), x), X, name=name)


def found(module: Module) -> str:
    """The one violation."""
    [message] = violations(module)
    return message


def nest_of(op: Nest, *operands: Value, body: Callable[[Builder], None]) -> Instruction:
    """An instruction that no rule has looked at."""
    inner = Builder()
    body(inner)
    instruction = Instruction(op, operands, (), (Region([inner.block]),))
    types = [target.type for target in op.outputs]
    instruction.results = tuple(Value(t, None, instruction, i) for i, t in enumerate(types))
    return instruction


def ordinary_body(b: Builder) -> None:
    """Takes one coordinate and one scalar, and yields the scalar."""
    b.argument(scalar(I64), "d0")
    b.emit_many(Yield(), [b.argument(S, "v")])


PLAIN = Nest((4,), (Access(POINT),), (Output(X, POINT),))


def with_nest(
    op: Nest, body: Callable[[Builder], None] = ordinary_body, *types: TensorType
) -> Module:
    """A module in stage compute whose function is one nest."""
    b = start_function(types or [X], ["x", "y"])
    instruction = nest_of(op, *b.block.arguments, body=body)
    b.block.instructions.append(instruction)
    b.emit_many(Return(), instruction.results[:1])
    return module_of(finish_function("f", b, X), stage=Stage.COMPUTE)


def copying(*places: Place) -> Module:
    """A module in stage schedule whose function is one kernel, with its result there."""
    b = start_function([X], ["x"])
    build = KernelBuilder([X], [X])
    build.copy(build.operands[0], build.outputs[0])
    [y] = build.kernel(b, *b.block.arguments)
    b.block.instructions[-1].placement = Placement(places)
    b.emit_many(Return(), [y])
    return module_of(finish_function("f", b, X), stage=Stage.SCHEDULE)
