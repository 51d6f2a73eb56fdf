"""Forward differentiation of a program as it runs: the other opinion on every gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnkit.core import ops
from nnkit.core.autodiff.rules import jvp_of
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Instruction, Module, Value, finish_function, start_function
from nnkit.core.types import one_or_tuple


def forward(module: Module, name: str, arguments: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The tangent of the result of `@name`, by the forward rule of each instruction; None is zero."""
    function = module.functions[name]
    values = dict(zip(function.parameters, arguments, strict=True))
    moves = dict(zip(function.parameters, tangents, strict=True))
    for instruction in function.entry.instructions:
        xs = [values[operand] for operand in instruction.operands]
        dxs = [moves[operand] for operand in instruction.operands]
        if isinstance(instruction.op, ops.Return):
            return tuple(dxs) if function.type.results != (function.type.result,) else dxs[0]
        found, moved = _push(module, instruction, xs, dxs)
        if len(instruction.results) == 1:
            found, moved = (found,), (moved,)
        values.update(zip(instruction.results, found, strict=True))
        moves.update(zip(instruction.results, moved, strict=True))
    raise AssertionError("a function without return")


def _push(
    module: Module, instruction: Instruction, xs: list[Any], dxs: list[Any]
) -> tuple[Any, Any]:
    """The result of an instruction and its tangent."""
    match instruction.op:
        case ops.Apply(callee=callee):
            return evaluate(module, callee, *xs), forward(module, callee, xs, dxs)
        case ops.Aggregate():
            return tuple(xs), tuple(dxs)
        case ops.Extract() as op:
            value, move = xs[0], dxs[0]
            for position in op.positions(instruction.operands[0].type):
                value, move = value[position], move[position]
            return value, move
        case _:
            return _push_tensors(instruction, xs, dxs)


def _push_tensors(instruction: Instruction, xs: list[Any], dxs: list[Any]) -> tuple[Any, Any]:
    moving = [k for k, dx in enumerate(dxs) if dx is not None]
    types = [operand.type for operand in instruction.operands]
    b = start_function([*types, *(types[k] for k in moving)])
    operands = b.block.arguments[: len(types)]
    given: dict[int, Value] = dict(zip(moving, b.block.arguments[len(types) :], strict=True))
    y = b.emit(instruction.op, *operands)
    (dy,) = jvp_of(b, instruction.op, [y], operands, [given.get(k) for k in range(len(xs))])
    outputs = [y] if dy is None else [y, dy]
    b.emit_many(ops.Return(), outputs)
    module = Module()
    module.add(finish_function("f", b, one_or_tuple([v.type for v in outputs])))
    found = evaluate(module, "f", *xs, *(dxs[k] for k in moving))
    return found if dy is not None else (found, None)
