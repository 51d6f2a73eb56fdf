"""From expressions to IR: the shapes of the arguments flow through, and every type becomes static.

1. A callee with argument types becomes one IR function, however often it is called with them.
2. Inside, the expression DAG is emitted in order of dependence, shared nodes once.
3. A call needs the result type of what it calls: that one is specialised first.  A stack of
   generators stands for the nesting, so neither length nor depth of a program is limited.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..core.errors import InternalError, NNKitError, ShapeError
from ..core.ir import Builder, Function, GradientOf, Module, Value, finish_function, start_function
from ..core.ops import Aggregate, Apply, Extract, Return
from ..core.ops.literal import dense
from ..core.types import FunctionType, StructType, TensorType, TupleType, Type
from .expression import (
    Build,
    Call,
    Callee,
    Constant,
    Element,
    Expression,
    GradientCallee,
    Parameter,
    Primitive,
    Shaped,
    Trace,
    at,
)
from .primitive import located
from .spec import Spec, StructSpec, TensorSpec, TupleSpec

_Key: TypeAlias = tuple[Callee, tuple[Type, ...]]
_Steps: TypeAlias = Generator[_Key, Function, Function]


@dataclass
class Specializer:
    """Fills `module`; `gradient_type` gives the type of a gradient declaration."""

    gradient_type: Callable[[FunctionType, GradientOf], FunctionType]
    module: Module = field(default_factory=Module)
    functions: dict[_Key, Function] = field(default_factory=dict[_Key, Function])
    structs: dict[tuple[type, tuple[Type, ...]], StructType] = field(
        default_factory=dict[tuple[type, tuple[Type, ...]], StructType]
    )

    def type_of(self, spec: Spec, shapes: list[tuple[int, ...]]) -> Type:
        """The IR type of a value whose tensors have `shapes` (taken from the front, left to right)."""
        match spec:
            case TensorSpec(dtype=dtype):
                return TensorType(shapes.pop(0), dtype)
            case TupleSpec(elements):
                return TupleType(tuple(self.type_of(element, shapes) for element in elements))
            case StructSpec(fields=fields):
                return self._struct(
                    spec, tuple(self.type_of(element, shapes) for _, element in fields)
                )
            case _:
                raise InternalError(f"{spec} has no type in the IR")

    def specialize(self, callee: Callee, types: tuple[Type, ...]) -> Function:
        """The IR function for `callee` with arguments (and captures) of `types`."""
        wanted: _Key = (callee, types)
        stack: list[tuple[_Key, _Steps]] = [(wanted, self._steps(callee, types))]
        answer: Function | None = self.functions.get(wanted)
        if answer is not None:
            return answer
        while stack:
            key, steps = stack[-1]
            try:
                needed = next(steps) if answer is None else steps.send(answer)
                answer = self.functions.get(needed)
                if answer is None:
                    stack.append((needed, self._steps(*needed)))
            except StopIteration as finished:
                stack.pop()
                answer = self.functions[key] = finished.value
            except NNKitError as error:
                _tell_callers(error, [caller for _, caller in stack[:-1]])
                raise error if "\n" in str(error) else located(error) from None
        return self.functions[wanted]

    def _steps(self, callee: Callee, types: tuple[Type, ...]) -> _Steps:
        if isinstance(callee, GradientCallee):
            return self._declare(callee, types)
        assert isinstance(callee, Trace)
        return self._define(callee, types)

    def _declare(self, callee: GradientCallee, types: tuple[Type, ...]) -> _Steps:
        assert callee.primal is not None
        primal = yield callee.primal, types[:-1] if callee.seedable else types
        gradient = GradientOf(
            primal.name, callee.source, callee.wrt, callee.keeping, callee.seedable
        )
        name = self.module.fresh_name(f"{primal.name}_grad")
        type = self.gradient_type(primal.type, gradient)
        _check_seed(callee, type.parameters, types)
        return self.module.add(Function(name, type, declaration=gradient))

    def _define(self, trace: Trace, types: tuple[Type, ...]) -> _Steps:
        assert trace.output is not None
        b = start_function(types, [*trace.parameter_names, *[None] * len(trace.captures)])
        roots = (*trace.inputs, *trace.captures)
        values: dict[Expression, Value] = dict(zip(roots, b.block.arguments, strict=True))
        for node in _in_order(trace.output, values):
            b.location = node.location
            operands = [values[operand] for operand in node.operands]
            try:
                if isinstance(node.rule, Call):
                    callee = node.rule.callee
                    operands = _seed_last(callee, operands)
                    function = yield callee, tuple(operand.type for operand in operands)
                    values[node] = b.emit(Apply(function.name, function.type), *operands)
                else:
                    values[node] = self._lower(b, node, operands)
            except NNKitError as error:
                raise explained(error, node, operands) from None
        result = values[trace.output]
        b.emit_many(Return(), [result])
        name = self.module.fresh_name(identifier(trace.name))
        return self.module.add(finish_function(name, b, result.type))

    def _lower(self, b: Builder, node: Expression, operands: list[Value]) -> Value:
        match node.rule:
            case Primitive(op):
                return b.emit(op, *operands)
            case Shaped(build=build):
                return build(b, *operands)
            case Constant(dtype, array):
                return b.emit(dense(TensorType(array.shape, dtype), dtype.load(array)))
            case Element(position):
                type = operands[0].type
                key = type.fields[position][0] if isinstance(type, StructType) else position
                return b.emit(Extract((key,)), *operands)
            case Build(spec):
                types = tuple(operand.type for operand in operands)
                made = (
                    self._struct(spec, types) if isinstance(spec, StructSpec) else TupleType(types)
                )
                return b.emit(Aggregate(made), *operands)
            case _:
                raise InternalError(f"{node.rule} cannot be specialised here")

    def _struct(self, spec: StructSpec, types: tuple[Type, ...]) -> StructType:
        known = self.structs.get((spec.cls, types))
        if known is None:
            name, number = identifier(spec.cls.__name__), 0
            taken = {struct.name for struct in self.structs.values()}
            while (name if not number else f"{name}_{number}") in taken:
                number += 1
            named = [(field, type) for (field, _), type in zip(spec.fields, types, strict=True)]
            known = StructType(name if not number else f"{name}_{number}", tuple(named))
            self.structs[spec.cls, types] = known
        return known


def identifier(name: str) -> str:
    """`name` as the text form can write it."""
    plain = "lambda" if name == "<lambda>" else name
    cleaned = "".join(c if c.isalnum() or c in "_." else "_" for c in plain)
    return cleaned if cleaned and not cleaned[0].isdigit() else f"_{cleaned}"


def explained(error: NNKitError, node: Expression, operands: Sequence[Value]) -> NNKitError:
    """`error` with the user's line, and where each operand came from."""
    if isinstance(node.rule, Call):
        return _called_here(error, node)
    if getattr(error, "__notes__", None) or "\n" in str(error):
        return error  # it has its place already
    result: NNKitError = at(error, node.location)
    for position, (expression, value) in enumerate(zip(node.operands, operands, strict=False)):
        result.add_note(f"  note: {_origin(expression, value, position, len(node.operands))}")
    return result


def _check_seed(callee: GradientCallee, wanted: Sequence[Type], given: Sequence[Type]) -> None:
    """Raises: ShapeError when the seed is not of the shape of the result that is differentiated."""
    seed, found = wanted[-1:], given[-1:]
    if callee.seedable and seed != found:
        shapes = [
            type.words if isinstance(type, TensorType) else str(type) for type in (*seed, *found)
        ]
        raise ShapeError(
            f"the seed of {callee.name} is {shapes[0]}, like the result, not {shapes[1]}"
        )


def _called_here(error: NNKitError, node: Expression) -> NNKitError:
    assert isinstance(node.rule, Call)
    if "\n" not in str(error):
        result: NNKitError = at(error, node.location)
        return result
    place = node.location.resolve() if node.location else None
    if place is not None:
        error.add_note(
            f"  note: {node.rule.callee.name} is called here  {place.excerpt().splitlines()[0]}"
        )
    return error


def _tell_callers(error: NNKitError, callers: Sequence[_Steps]) -> None:
    """Have the calls that led to an error noted, the innermost ones."""
    for caller in callers[: -_CALLS_SHOWN - 1 : -1]:
        with suppress(NNKitError):
            caller.throw(error)


_CALLS_SHOWN = 3
"""How many of the calls that led to an error it names."""


def _origin(expression: Expression, value: Value, position: int, count: int) -> str:
    shown = value.type.words if isinstance(value.type, TensorType) else str(value.type)
    place = expression.location.resolve() if expression.location else None
    where = f"  {place.excerpt().splitlines()[0]}" if place else ""
    if isinstance(expression.rule, Parameter) and expression.trace is not None:
        parameter = expression.rule
        name = expression.trace.name
        return f"{parameter.name} is argument {parameter.index} of {name}: {shown}{where}"
    side = (
        ("the left operand", "the right operand")[position] if count == 2 else f"operand {position}"
    )
    if count == 1:
        side = "the operand"
    return f"{side} is {shown}, made here{where}"


def _seed_last(callee: Callee, operands: list[Value]) -> list[Value]:
    """A gradient's captures belong to its primal, so they stand before the seed."""
    if not isinstance(callee, GradientCallee) or not callee.seedable or not callee.captures:
        return operands
    count = len(callee.parameters) - 1
    return [*operands[:count], *operands[count + 1 :], operands[count]]


def _in_order(root: Expression, known: dict[Expression, Any]) -> list[Expression]:
    """All nodes below `root` that are not known yet, operands first."""
    order: list[Expression] = []
    done: set[Expression] = set(known)
    stack: list[tuple[Expression, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif node not in done:
            done.add(node)
            stack.append((node, True))
            stack.extend((operand, False) for operand in reversed(node.operands))
    return order
