"""Reference semantics: runs IR in NumPy, at any stage.  The oracle of every test.

1. Values live in a dictionary per call; a stack of frames stands for nested calls, so depth of the
   program never becomes depth of Python's stack.
2. Each instruction asks its op's `evaluate`; results are rounded to their element type.
3. Tuples and structs are Python tuples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from .errors import InternalError, UnsupportedError, VerifyError
from .ir import Function, Instruction, Module, Region, Value, evaluates_to
from .ops.aggregate import Aggregate, Apply, Extract
from .ops.nest import Nest
from .ops.terminators import Return
from .types import Array, TensorType, Type

Data: TypeAlias = "Array | tuple[Data, ...]"


@dataclass
class _Frame:
    """A call in progress: what its values are, and where its result goes."""

    function: Function
    values: dict[Value, Any]
    position: int = 0
    returns_to: Value | None = None


def evaluate(module: Module, name: str, *arguments: Any) -> Any:
    """The result of `@name(arguments)`.

    Arguments are arrays (bf16 as float32), or tuples of them for tuples and structs.
    Raises: VerifyError when there is no such function, UnsupportedError when a gradient declaration is
        called that has no body yet.
    """
    function = module.functions.get(name)
    if function is None:
        raise VerifyError(f"the module {module.name!r} has no function @{name}")
    with np.errstate(all="ignore"):
        return _run(module, _enter(function, [_convert(a) for a in arguments]))


def evaluate_region(region: Region, arguments: Sequence[Any]) -> tuple[Any, ...]:
    """The operands of the terminator of a one-block region of calls-free instructions."""
    block = region.entry
    values: dict[Value, Any] = dict(zip(block.arguments, arguments, strict=True))
    for instruction in block.instructions:
        operands = [values[operand] for operand in instruction.operands]
        if instruction.op.is_terminator:
            return tuple(operands)
        values.update(
            zip(instruction.results, evaluate_instruction(instruction, operands), strict=True)
        )
    raise InternalError("a region without a terminator was evaluated")


def evaluate_instruction(instruction: Instruction, operands: Sequence[Any]) -> tuple[Any, ...]:
    """The results of one instruction other than a call or terminator."""
    op = instruction.op
    results: tuple[Any, ...]
    match op:
        case Nest():
            body = instruction.regions[0]
            results = op.evaluate_body(lambda xs: evaluate_region(body, xs), *operands)
        case Extract():
            data = operands[0]
            for position in op.positions(instruction.operands[0].type):
                data = data[position]
            results = (data,)
        case Aggregate():
            results = (tuple(operands),)
        case _:
            results = evaluates_to(op.evaluate(*operands))
    return tuple(
        _rounded(result.type, data)
        for result, data in zip(instruction.results, results, strict=True)
    )


def _rounded(type: Type, data: Any) -> Any:
    if not isinstance(type, TensorType):
        return data
    # row-major, as the order in which NumPy sums follows the layout in memory
    return np.asarray(type.dtype.round(data), order="C")


def _convert(data: Any) -> Any:
    if isinstance(data, tuple | list):
        return tuple(map(_convert, cast("Sequence[Any]", data)))
    return np.asarray(data, order="C")


def _enter(function: Function, arguments: Sequence[Any], to: Value | None = None) -> _Frame:
    if function.body is None:
        raise UnsupportedError(f"@{function.name} has no body: differentiate the module first")
    if len(arguments) != len(function.parameters):
        raise InternalError(f"@{function.name} takes {len(function.parameters)} arguments")
    return _Frame(function, dict(zip(function.parameters, arguments, strict=True)), returns_to=to)


def _run(module: Module, frame: _Frame) -> Any:
    stack = [frame]
    while True:
        frame = stack[-1]
        instruction = frame.function.entry.instructions[frame.position]
        frame.position += 1
        operands = [frame.values[operand] for operand in instruction.operands]
        match instruction.op:
            case Return():
                result = operands[0] if operands else ()
                stack.pop()
                if not stack:
                    return result
                assert frame.returns_to is not None
                stack[-1].values[frame.returns_to] = result
            case Apply(callee=callee):
                stack.append(_enter(module.functions[callee], operands, instruction.result))
            case _:
                results = evaluate_instruction(instruction, operands)
                frame.values.update(zip(instruction.results, results, strict=True))
