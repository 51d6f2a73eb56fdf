"""Specialization: emits IR for expressions, propagating the shapes of the arguments, so that every type is static.

1. A callee with argument types becomes one IR function, however often it is called with them.
2. Inside, the expression DAG is emitted in order of dependence, shared nodes once; bodies of choices and
   loops are regions inside (`specialize_control_flow`).
3. A call needs the result type of what it calls: that one is specialised first.  A stack of
   generators stands for the nesting, so neither length nor depth of a program is limited.
4. A function that is called again while it is specialised: what it returns is found out by a *probe*, which
   goes through it once more and follows only what is known, so that the branch that ends the recursion gives
   the type.  It is checked when the function is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..core.analysis.derivatives import derivative_type
from ..core.errors import InternalError, NNKitError, ShapeError, StagingError
from ..core.ir import Builder, Function, GradientOf, Module, Value, finish_function, start_function
from ..core.ops import Aggregate, Apply, Extract, Return
from ..core.ops.aggregate import packed, unpacked
from ..core.ops.literal import dense
from ..core.types import FunctionType, StructType, TensorType, TupleType, Type
from .explanation import explained, shown
from .expression import (
    Callee,
    Constant,
    Expression,
    ForLoop,
    GetElement,
    GradientCallee,
    IfElse,
    MakeAggregate,
    Parameter,
    Primitive,
    Result,
    ShapeDependent,
    StagedCall,
    Trace,
    TracedBody,
    WhileLoop,
    with_location,
)
from .primitive import located
from .spec import FunctionSpec, Spec, StructSpec, TensorSpec, TupleSpec
from .specialize_control_flow import emit_control_flow

_Key: TypeAlias = tuple[Callee, tuple[Type, ...]]
_Suspension: TypeAlias = Generator[Any, Any, Any]
"""Yields a `_Wanted` or further steps, and is sent what these give."""
_Values: TypeAlias = "dict[Expression, Any]"
"""The value of each expression; a tuple of them for a choice or loop, None for what is not known."""

MOST_SHAPES = 256
"""How many calls of one function, with other shapes each, may be inside one another: an endless recursion has a new
shape each time. Halving a tensor has 47 of them at most; of as many, a staged function keeps the code
(docs/decisions/0022)."""


@dataclass(frozen=True)
class _Wanted:
    """A function to be called; of a probe, only the type of its result."""

    key: _Key
    probe: bool


@dataclass
class _Pending:
    """A function that is being specialised; the name and result are needed only if it is called again."""

    name: str | None = None
    result: Type | None = None


@dataclass
class _Suspended:
    """Steps that wait for those above them on the stack; the first ones of a function know its key."""

    steps: _Suspension
    key: _Key | None = None


@dataclass
class Specializer:
    """Fills `module`."""

    module: Module = field(default_factory=Module)
    functions: dict[_Key, Function] = field(default_factory=dict[_Key, Function])
    structs: dict[tuple[type, tuple[Type, ...]], StructType] = field(
        default_factory=dict[tuple[type, tuple[Type, ...]], StructType]
    )
    _pending: dict[_Key, _Pending] = field(default_factory=dict[_Key, _Pending])
    _depths: Counter[Callee] = field(default_factory=Counter[Callee])
    _probed: dict[_Key, Type | None] = field(default_factory=dict[_Key, "Type | None"])
    """What probes found functions to return; None while, or as far as, it is not known."""

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
        if wanted not in self.functions:
            self._run(self._function(wanted), wanted)
        return self.functions[wanted]

    def _run(self, steps: _Suspension, key: _Key) -> None:
        """Run `steps`, and those they ask for, to their end; an error goes to those who asked."""
        stack = [_Suspended(steps, key)]
        answer: Any = None
        error: NNKitError | None = None
        while stack:
            steps = stack[-1].steps
            try:
                needed = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as finished:
                answer, error = finished.value, None
                self._leave(stack.pop())
                continue
            except NNKitError as raised:
                answer, error = None, raised
                self._leave(stack.pop())
                continue
            answer, error = None, None
            try:
                answer, frame = self._enter(needed)
            except NNKitError as raised:
                error = raised
                continue
            if frame is not None:
                stack.append(frame)
        if error is not None:
            raise error if "\n" in str(error) else located(error) from None

    def _enter(self, needed: _Wanted | _Suspension) -> tuple[Any, _Suspended | None]:
        """The answer, or the steps that lead to it."""
        if not isinstance(needed, _Wanted):
            return None, _Suspended(needed)
        key = needed.key
        if needed.probe:
            known = self._result_of(key)
            if known is not None or key in self._probed:
                return known, None
            self._go_deeper(key)
            return None, _Suspended(self._probe(key), key)
        if key in self.functions:
            function = self.functions[key]
            return Apply(function.name, function.type), None
        if key in self._pending:
            return None, _Suspended(self._again(key))
        self._go_deeper(key)
        return None, _Suspended(self._function(key), key)

    def _leave(self, frame: _Suspended) -> None:
        if frame.key is not None:
            self._depths[frame.key[0]] -= 1

    def _go_deeper(self, key: _Key) -> None:
        """Raises: StagingError for a recursion whose every call has other shapes."""
        callee, types = key
        self._depths[callee] += 1
        if self._depths[callee] > MOST_SHAPES:
            shapes = ", ".join(map(shown, types))
            raise with_location(
                StagingError(
                    f"{callee.name} calls itself with other shapes each time, {MOST_SHAPES} calls deep, now "
                    f"with {shapes}"
                ),
                None,
                "shapes are static: leave them the same, or make them smaller until they stay the same",
            )

    def _function(self, key: _Key) -> _Suspension:
        """The function for a key; ends with a call of it."""
        callee, types = key
        pending = self._pending[key] = _Pending()
        if isinstance(callee, GradientCallee):
            function = yield self._declare(callee, types)
        else:
            assert isinstance(callee, Trace)
            function = yield self._define(callee, types, pending)
        del self._pending[key]
        self.functions[key] = function
        return Apply(function.name, function.type)

    def _again(self, key: _Key) -> _Suspension:
        """A call of a function that is not done."""
        (callee, types), pending = key, self._pending[key]
        if pending.result is None:
            pending.result = yield self._determine(key)
            assert pending.result is not None
        if pending.name is None:
            pending.name = self._fresh_name(identifier(callee.name))
        return Apply(pending.name, FunctionType(types, pending.result))

    def _determine(self, key: _Key) -> _Suspension:
        """What a function returns that is not done: probes, until one more of them finds nothing new."""
        while True:
            known = sum(type is not None for type in self._probed.values())
            self._probed = {key: type for key, type in self._probed.items() if type is not None}
            found = yield _Wanted(key, probe=True)
            if found is not None:
                return found
            if sum(type is not None for type in self._probed.values()) == known:
                name = key[0].name
                raise with_location(
                    StagingError(
                        f"{name} calls itself on every path: the shape of what it returns is not known"
                    ),
                    key[0].location,
                    "one branch of a `cond` must not call it",
                )

    def _probe(self, key: _Key) -> _Suspension:
        """The type of what a function returns, or None, following only what is known."""
        callee, types = key
        self._probed[key] = None
        if isinstance(callee, GradientCallee):
            primal, taken = self._primal(callee, types)
            result = yield _Wanted((primal, taken), probe=True)
            if result is not None:
                declared = self._gradient_of(callee, primal.name)
                self._probed[key] = derivative_type(FunctionType(taken, result), declared).result
        else:
            assert isinstance(callee, Trace) and callee.output is not None
            b, values = self._start(callee, types)
            (value,) = yield self._fill(b, [callee.output], values, probe=True)
            self._probed[key] = None if value is None else value.type
        return self._probed[key]

    def _result_of(self, key: _Key) -> Type | None:
        """What a function returns, where that is known."""
        if key in self.functions:
            return self.functions[key].type.result
        pending = self._pending.get(key)
        return (pending.result if pending else None) or self._probed.get(key)

    def _primal(
        self, callee: GradientCallee, types: tuple[Type, ...]
    ) -> tuple[Callee, tuple[Type, ...]]:
        assert callee.primal is not None
        return callee.primal, types[:-1] if callee.seedable else types

    def _gradient_of(self, callee: GradientCallee, primal: str) -> GradientOf:
        sources = None if callee.source is None else (callee.source,)
        return GradientOf(primal, sources, callee.wrt, callee.keeping, callee.seedable)

    def _declare(self, callee: GradientCallee, types: tuple[Type, ...]) -> _Suspension:
        primal = yield _Wanted(self._primal(callee, types), probe=False)
        name = self._fresh_name(f"{primal.callee}_grad")
        gradient = self._gradient_of(callee, primal.callee)
        type = derivative_type(primal.type, gradient)
        _check_seed(callee, type.parameters, types)
        return self.module.add(Function(name, type, declaration=gradient))

    def _define(self, trace: Trace, types: tuple[Type, ...], pending: _Pending) -> _Suspension:
        assert trace.output is not None
        b, values = self._start(trace, types)
        (result,) = yield self._fill(b, [trace.output], values, probe=False)
        if pending.result not in (None, result.type):
            assert pending.result is not None
            raise with_location(
                ShapeError(
                    f"{trace.name} returns {shown(pending.result)} where it does not call itself, and "
                    f"{shown(result.type)} where it does"
                ),
                trace.output.location,
            )
        b.emit_many(Return(), unpacked(b, result))
        name = pending.name or self._fresh_name(identifier(trace.name))
        function = finish_function(name, b, result.type)
        function.attributes = trace.attributes
        return self.module.add(function)

    def _start(self, trace: Trace, types: tuple[Type, ...]) -> tuple[Builder, _Values]:
        names = [
            input.operation.name for input in trace.inputs if isinstance(input.operation, Parameter)
        ]
        b = start_function(types, [*names, *[None] * len(trace.captures)])
        roots = (*trace.inputs, *trace.captures)
        return b, dict(zip(roots, b.block.arguments, strict=True))

    def _fill(
        self, b: Builder, outputs: Sequence[Expression], values: _Values, *, probe: bool
    ) -> _Suspension:
        """Emit what `outputs` need that has no value yet; ends with their values."""

        def body(
            inside: TracedBody, inner: Builder, arguments: Sequence[Value | None]
        ) -> _Suspension:
            return self._fill_body(inner, inside, arguments, values, probe)

        for node in _in_order(outputs, values):
            b.location = node.location
            operands = [values[operand] for operand in node.operands]
            try:
                match node.operation:
                    case IfElse() | WhileLoop() | ForLoop():
                        values[node] = yield emit_control_flow(b, node, operands, body, probe)
                    case Result(position):
                        values[node] = operands[0][position]
                    case _ if None in operands:
                        values[node] = None
                    case StagedCall(callee):
                        operands = _seed_last(callee, operands)
                        types = tuple(operand.type for operand in operands)
                        called = yield _Wanted((callee, types), probe)
                        values[node] = _applied(b, called, operands)
                    case _:
                        values[node] = self._lower(b, node, operands)
            except NNKitError as error:
                raise explained(error, node, operands) from None
        return tuple(values[output] for output in outputs)

    def _fill_body(
        self,
        b: Builder,
        body: TracedBody,
        arguments: Sequence[Value | None],
        values: _Values,
        probe: bool,
    ) -> _Suspension:
        """The same for a body, whose values are not those of what comes after it."""
        outside = len(values)
        values.update(zip(body.inputs, arguments, strict=True))
        given = yield self._fill(b, body.outputs, values, probe=probe)
        while len(values) > outside:
            values.popitem()
        return given

    def _fresh_name(self, wanted: str) -> str:
        """A name that no function has, nor one that is not done yet."""
        reserved = {pending.name for pending in self._pending.values()}
        name, number = wanted, 0
        while name in self.module.functions or name in reserved:
            number += 1
            name = f"{wanted}_{number}"
        return name

    def _lower(self, b: Builder, node: Expression, operands: list[Value]) -> Value:
        match node.operation:
            case Primitive(op):
                return b.emit(op, *operands)
            case ShapeDependent(build=build):
                return build(b, *operands)
            case Constant(dtype, array):
                return b.emit(dense(TensorType(array.shape, dtype), dtype.load(array)))
            case GetElement(position):
                type = operands[0].type
                key = type.fields[position][0] if isinstance(type, StructType) else position
                return b.emit(Extract((key,)), *operands)
            case MakeAggregate(spec):
                types = tuple(operand.type for operand in operands)
                made = (
                    self._struct(spec, types) if isinstance(spec, StructSpec) else TupleType(types)
                )
                return b.emit(Aggregate(made), *operands)
            case _:
                raise InternalError(f"{node.operation} cannot be specialised here")

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


def _applied(b: Builder, called: Any, operands: Sequence[Value]) -> Value | None:
    """A call; of a probe, which knows no more than the type of the result, something of this type."""
    if isinstance(called, Apply):
        return packed(b, called.type.result, b.emit_many(called, operands))
    return None if called is None else Value(called)


def _seed_last(callee: Callee, operands: list[Value]) -> list[Value]:
    """A gradient's captures belong to its primal, so they stand before the seed."""
    if not isinstance(callee, GradientCallee) or not callee.seedable or not callee.captures:
        return operands
    count = sum(not isinstance(spec, FunctionSpec) for spec in callee.parameters) - 1
    return [*operands[:count], *operands[count + 1 :], operands[count]]


def _in_order(roots: Sequence[Expression], known: _Values) -> list[Expression]:
    """All nodes below `roots` that are not known yet, operands first."""
    order: list[Expression] = []
    done: set[Expression] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif node not in done and node not in known:
            done.add(node)
            stack.append((node, True))
            stack.extend((operand, False) for operand in reversed(node.operands))
    return order
