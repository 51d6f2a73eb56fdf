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
from dataclasses import field
from typing import Any, TypeAlias

from ..core.analysis.derivatives import derivative_type
from ..core.errors import InternalError, NNKitError, ShapeError, StagingError
from ..core.ir import (
    BatchOf,
    Builder,
    Function,
    GradientOf,
    Module,
    TangentOf,
    Value,
    finish_function,
    start_function,
)
from ..core.lazy_dataclass import dataclass
from ..core.ops import Aggregate, Apply, Extract, Return
from ..core.ops.aggregate import packed, unpacked
from ..core.ops.literal import dense
from ..core.types import FunctionType, StructType, TensorType, Type
from .batches import shape_help
from .dimensions_of_calls import check_dimensions, named_result_shapes
from .explanation import explained, shown
from .expression import (
    BatchCallee,
    Callee,
    Constant,
    DerivativeCallee,
    Expression,
    ForeignCallee,
    ForLoop,
    GetElement,
    IfElse,
    JacobianCallee,
    MakeAggregate,
    Parameter,
    Primitive,
    Result,
    ShapeDependent,
    SideEffect,
    StagedCall,
    Trace,
    TracedBody,
    TracedRules,
    WhileLoop,
)
from .halves import HalfCallee
from .location import with_location
from .names import identifier
from .postorder import postorder
from .primitive import located
from .specialize_batch import declaration_of, extent_of, one_element, result_shapes
from .specialize_control_flow import emit_control_flow
from .specialize_custom_rules import add_rules
from .specialize_derivatives import (
    check_given,
    derivative_declaration,
    derivative_result,
    given_last,
    primal_and_types,
)
from .specialize_jacobian import jacobian_function
from .specialize_types import TypesOfSpecs
from .staged_functions import with_shape_help

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
    types: TypesOfSpecs = field(default_factory=TypesOfSpecs)
    _pending: dict[_Key, _Pending] = field(default_factory=dict[_Key, _Pending])
    _depths: Counter[Callee] = field(default_factory=Counter[Callee])
    _probed: dict[_Key, Type | None] = field(default_factory=dict[_Key, "Type | None"])
    """What probes found functions to return; None while, or as far as, it is not known."""
    _ruled: list[tuple[Function, Trace, TracedRules]] = field(
        default_factory=list[tuple[Function, Trace, TracedRules]]
    )
    """The functions whose derivatives have rules that are not specialised yet."""
    _linked: dict[tuple[int, str], str] = field(default_factory=dict[tuple[int, str], str])
    """Functions of other modules, by the copies of them here."""

    def specialize(self, callee: Callee, types: tuple[Type, ...]) -> Function:
        """The IR function for `callee` with arguments (and captures) of `types`."""
        wanted: _Key = (callee, types)
        if wanted not in self.functions:
            self._run(self._function(wanted), wanted)
            while self._ruled:
                add_rules(*self._ruled.pop(), self.specialize)
        return self.functions[wanted]

    def probe(
        self, b: Builder, outputs: Sequence[Expression], values: _Values
    ) -> tuple[Value | None, ...]:
        """Values of the types of `outputs`, computed from those in `values`; None for what is not known."""
        self._probed = {key: type for key, type in self._probed.items() if type is not None}
        found: tuple[Value | None, ...] = self._run(self._fill(b, outputs, values, probe=True))
        return found

    def _run(self, steps: _Suspension, key: _Key | None = None) -> Any:
        """Run `steps`, and those they ask for, to their end, which they return; an error goes to those who asked."""
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
        return answer

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
        if isinstance(callee, HalfCallee):
            name = self._fresh_name(identifier(callee.name))
            made = callee.define(name, self.module, types, self.types.of, self._linked)
            function = self.module.add(made)
        elif isinstance(callee, JacobianCallee):
            function = yield self._define_jacobian(callee, types)
        elif isinstance(callee, ForeignCallee):
            function = self._declare_foreign(callee, types)
        elif isinstance(callee, DerivativeCallee):
            function = yield self._declare(callee, types)
        elif isinstance(callee, BatchCallee):
            function = yield self._declare_batch(callee, types)
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
        if isinstance(callee, HalfCallee):
            self._probed[key] = callee.result_type(self.types.of)
        elif isinstance(callee, ForeignCallee):
            self._probed[key] = _foreign_result(callee, types)
        elif isinstance(callee, DerivativeCallee):
            primal = primal_and_types(callee, types)
            result = yield _Wanted(primal, probe=True)
            if result is not None:
                self._probed[key] = derivative_result(callee, FunctionType(primal[1], result))
        elif isinstance(callee, BatchCallee):
            primal = one_element(callee, types, self.types.of)
            result = yield _Wanted(primal, probe=True)
            if result is not None:
                self._probed[key] = self._batched(callee, types, result)
        else:
            assert isinstance(callee, Trace)
            if callee.output is None:  # it is still run
                shapes = named_result_shapes(callee, types)
                if shapes is not None:
                    self._probed[key] = self.types.of(callee.result, shapes)
            else:
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

    def _declare_foreign(self, callee: ForeignCallee, types: tuple[Type, ...]) -> Function:
        assert callee.implement is not None
        type = FunctionType(types, _foreign_result(callee, types))
        name = self._fresh_name(callee.name)
        return self.module.add(Function(name, type, declaration=callee.implement(name, type)))

    def _declare(self, callee: DerivativeCallee, types: tuple[Type, ...]) -> _Suspension:
        primal = yield _Wanted(primal_and_types(callee, types), probe=False)
        declaration = derivative_declaration(callee, primal.callee)
        type = derivative_type(primal.type, declaration)
        check_given(callee, type.parameters, types)
        return self._add_declared(type, declaration)

    def _add_declared(
        self, type: FunctionType, declaration: GradientOf | TangentOf | BatchOf
    ) -> Function:
        kind = _KINDS[declaration.__class__]
        name = self._fresh_name(f"{declaration.primal}_{kind}")
        return self.module.add(Function(name, type, declaration=declaration))

    def _declare_batch(self, callee: BatchCallee, types: tuple[Type, ...]) -> _Suspension:
        extent_of(callee, types)
        try:
            primal = yield _Wanted(one_element(callee, types, self.types.of), probe=False)
        except ShapeError as error:
            raise with_shape_help(error, shape_help(callee.data_names, callee.along)) from None
        type = FunctionType(types, self._batched(callee, types, primal.type.result))
        return self._add_declared(type, declaration_of(callee, primal.callee))

    def _batched(self, callee: BatchCallee, types: tuple[Type, ...], result: Type) -> Type:
        """What a batch returns of a function that returns a `result`."""
        return self.types.of(callee.result, result_shapes(callee, result, extent_of(callee, types)))

    def _define_jacobian(self, callee: JacobianCallee, types: tuple[Type, ...]) -> _Suspension:
        primal = yield _Wanted(primal_and_types(callee, types), probe=False)
        name = self._fresh_name(f"{primal.callee}_jacobian")
        of = self.module.functions[primal.callee]
        function = jacobian_function(name, callee, primal, of, self._add_declared)
        return self.module.add(function)

    def _define(self, trace: Trace, types: tuple[Type, ...], pending: _Pending) -> _Suspension:
        assert trace.output is not None
        check_dimensions(trace, types)
        b, values = self._start(trace, types)
        (result,) = yield self._fill(b, [trace.output], values, probe=False, effects=trace.effects)
        if pending.result not in (None, result.type):
            assert pending.result is not None
            raise with_location(
                ShapeError(
                    f"{trace.name} returns {shown(pending.result)} where it does not call itself, and "
                    f"{shown(result.type)} where it does"
                ),
                trace.output.location,
            )
        check_dimensions(trace, types, result.type)
        b.emit_many(Return(), unpacked(b, result))
        name = pending.name or self._fresh_name(identifier(trace.name))
        function = finish_function(name, b, result.type)
        function.attributes = trace.attributes
        if trace.rules is not None:
            self._ruled.append((function, trace, trace.rules))
        return self.module.add(function)

    def _start(self, trace: Trace, types: tuple[Type, ...]) -> tuple[Builder, _Values]:
        names = [
            input.operation.name for input in trace.inputs if isinstance(input.operation, Parameter)
        ]
        b = start_function(types, [*names, *[None] * len(trace.captures)])
        roots = (*trace.inputs, *trace.captures)
        return b, dict(zip(roots, b.block.arguments, strict=True))

    def _fill(
        self,
        b: Builder,
        outputs: Sequence[Expression],
        values: _Values,
        *,
        probe: bool,
        effects: Sequence[Expression] = (),
    ) -> _Suspension:
        """Emit `effects`, and what `outputs` need that has no value yet; ends with the values of these."""

        def body(
            inside: TracedBody, inner: Builder, arguments: Sequence[Value | None]
        ) -> _Suspension:
            return self._fill_body(inner, inside, arguments, values, probe)

        for node in postorder([*effects, *outputs], values):
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
                        operands = given_last(callee, operands)
                        types = tuple(operand.type for operand in operands)
                        called = yield _Wanted((callee, types), probe)
                        values[node] = _applied(b, called, operands)
                    case SideEffect(op):
                        values[node] = b.emit_many(op, operands)
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
        effects = () if probe else body.effects
        given = yield self._fill(b, body.outputs, values, probe=probe, effects=effects)
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
                made = self.types.aggregate(spec, tuple(operand.type for operand in operands))
                return b.emit(Aggregate(made), *operands)
            case _:
                raise InternalError(f"{node.operation} cannot be specialised here")


_KINDS = {GradientOf: "grad", TangentOf: "tangent", BatchOf: "vmap"}
"""What stands behind the name of the primal in that of what is declared."""


def _foreign_result(callee: ForeignCallee, types: tuple[Type, ...]) -> Type:
    """What its signature would return, which is specialised by itself."""
    assert callee.signature is not None
    return Specializer().specialize(callee.signature, types).type.result


def _applied(b: Builder, called: Any, operands: Sequence[Value]) -> Value | None:
    """A call; of a probe, which knows no more than the type of the result, something of this type."""
    if isinstance(called, Apply):
        return packed(b, called.type.result, b.emit_many(called, operands))
    return None if called is None else Value(called)
