"""Batching: declarations of batches get bodies.

    [batch @f along 0, none]                          func @f_rows: (<8 x T>, U) -> <8 x V> {
    func @f_rows: (<8 x T>, U) -> <8 x V>   becomes   'entry(%x: <8 x T>, %w: U):
                                                          %y = apply @f_batch(%x, %w): (<8 x T>, U) -> <8 x V>
                                                          return %y: <8 x V>

A *batched function* of @f, for a set of parameters that differ from element to element, takes these with a leading axis
and returns so what differs; the rest is as it was.  All calls with the same needs share it, so that of a recursive
function calls itself.  Other places of the axis are transposes around it.

Source: JAX's `vmap`; Radul et al. 2020, "Automatically Batching Control-Intensive Programs".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace

from ..analysis.batches import batched_type, declared_batch, result_axes
from ..analysis.derivatives import DerivativeRequest, derivative_type, resolve
from ..analysis.effects import Effects
from ..errors import ShapeError, UnsupportedError
from ..ir import BatchOf, Block, Builder, Function, GradientOf, Module, Region, TangentOf, Value
from ..ir.donation import without_donations
from ..lazy_dataclass import dataclass
from ..location import located
from ..ops.aggregate import Apply
from ..ops.literal import constant
from ..ops.movement import permuted
from ..ops.terminators import Return
from ..types import FunctionType, TensorType, Type, one_or_tuple, written
from .body import BatchedBody
from .custom_rules import batched_rules
from .differing import BatchKey, Differing, DifferingValues
from .element_loop import looped_body
from .rules import repeated
from .totality import Totality


@dataclass
class Batching:
    """Fills declarations of batches of `module`; batched functions are remembered by what they are asked for."""

    module: Module
    differentiate: Callable[[Function], None]
    """Gives a declared derivative its body."""
    derivatives: dict[str, GradientOf | TangentOf] = field(
        default_factory=dict[str, "GradientOf | TangentOf"]
    )
    """What functions with bodies were declared to be."""
    made: dict[BatchKey, Function] = field(default_factory=dict[BatchKey, Function])
    pending: list[tuple[Function, BatchKey]] = field(
        default_factory=list[tuple[Function, BatchKey]]
    )

    def __post_init__(self) -> None:
        self.differing = DifferingValues(self.module)
        self.totality = Totality(self.module)

    def define(self, function: Function) -> None:
        """Give the declaration `function` its body.

        Raises: ShapeError, RankError for a wrong declaration, or a result that differs and is to be one for all;
            UnsupportedError for what is no tensor.
        """
        declaration = function.declaration
        assert isinstance(declaration, BatchOf)
        self.differing.effects = Effects(self.module)
        try:
            self._define(function, declaration)
        except (ShapeError, UnsupportedError) as error:
            raise located(error, declaration.location) from None

    def _define(self, function: Function, declaration: BatchOf) -> None:
        primal = self.module.functions[declaration.primal]
        extent = declared_batch(primal.type, function)
        b = Builder(Block(name="entry"))
        names = [x.name for x in primal.parameters] if primal.body else []
        arguments = [
            b.argument(type, names[k] if names else None)
            for k, type in enumerate(function.type.parameters)
        ]
        into = result_axes(primal.type, declaration)
        if extent:
            batched = tuple(axis is not None for axis in declaration.along)
            key = BatchKey(primal.name, batched, declaration.axis, extent)
            given = [
                x if axis is None else _moved(b, x, axis, 0)
                for x, axis in zip(arguments, declaration.along, strict=True)
            ]
            outputs = self._results(b, key, given, into)
        elif None in into:
            raise ShapeError(
                f"the batch of {written('@', primal.name)} has no elements, so that result "
                f"{into.index(None)} has no value"
            )
        else:
            outputs = [constant(b, _tensor(type), 0) for type in function.type.results]
        b.emit_many(Return(), outputs)
        function.body = Region([b.block])
        function.declaration = None

    def _results(
        self, b: Builder, key: BatchKey, given: list[Value], into: tuple[int | None, ...]
    ) -> list[Value]:
        """The results of the batched function with the batch's axis at `into`."""
        batched, known = self.batched(key)
        self.fill()
        found = b.emit_many(Apply(batched.name, batched.type), given)
        outputs: list[Value] = []
        for number, (x, axis, differs) in enumerate(zip(found, into, known.results, strict=True)):
            if axis is None and differs:
                raise ShapeError(
                    f"result {number} of {written('@', key.name)} differs among the elements of the batch, and has no "
                    "axis for them: None in out_axes is for what is the same for all"
                )
            if axis is None:
                outputs.append(x)
            else:
                outputs.append(_moved(b, x if differs else repeated(b, x, key.extent), 0, axis))
        return outputs

    def batched(self, key: BatchKey) -> tuple[Function, Differing]:
        """The batched function, whose body may come later, and what differs in it."""
        known = self.differing.of(key)
        if key not in self.made:
            primal = self.module.functions[key.name]
            parameters = _with_extent(primal, primal.type.parameters, key.batched, key.extent)
            results = _with_extent(primal, primal.type.results, known.results, key.extent)
            type = FunctionType(parameters, one_or_tuple(results))
            function = Function(
                self.module.fresh_name(f"{key.name}_batch"),
                type,
                attributes=without_donations(primal.attributes),
                location=primal.location,
                made_from=primal.made_from or key.name,
            )
            self.made[key] = self.module.add(function)
            self.pending.append((function, key))
            if primal.rules and any(key.batched):
                function.rules = batched_rules(self.module, primal, key)
        return self.made[key], known

    def _has_batched_primal(self, key: BatchKey) -> bool:
        """Whether it is the derivative of what has a batched form, which has a derivative then."""
        declaration = self.derivatives.get(key.name)
        if declaration is None:
            return False
        inner, _ = self._primal_of(key, declaration)
        return not self.differing.of(inner).is_looped or self._has_batched_primal(inner)

    def _primal_of(
        self, key: BatchKey, declaration: GradientOf | TangentOf
    ) -> tuple[BatchKey, DerivativeRequest]:
        """The primal of a derivative, of which what that is by differs, too; and what was asked for."""
        primal = self.module.functions[declaration.primal]
        request = resolve(primal.type, declaration)
        own = key.batched[: len(primal.type.parameters)]
        batched = tuple(is_one or k in request.wrt for k, is_one in enumerate(own))
        return key._replace(name=primal.name, batched=batched), request

    def _derivative_of_batch(self, function: Function, key: BatchKey) -> Region:
        """The body of a batched derivative as the derivative of the batch.

        That has one tape for all elements, where the batch of the derivative would have one for each.
        """
        declaration = self.derivatives[key.name]
        inner, request = self._primal_of(key, declaration)
        primal = self.module.functions[inner.name]
        along = tuple(0 if is_batched else None for is_batched in inner.batched)
        of_batch = BatchOf(primal.name, along, None, key.axis, declaration.location)
        batch = self.module.add(
            Function(
                self.module.fresh_name(f"{primal.name}_vmap"),
                batched_type(primal.type, of_batch, key.extent),
                declaration=of_batch,
            )
        )
        self.define(batch)
        of_derivative = replace(
            declaration,
            primal=batch.name,
            sources=request.sources,
            wrt=request.wrt,
            keeping=request.keeping,
        )
        type = derivative_type(batch.type, of_derivative)
        name = self.module.fresh_name(
            f"{batch.name}_{'grad' if request.is_gradient else 'tangent'}"
        )
        derivative = self.module.add(Function(name, type, declaration=of_derivative))
        self.differentiate(derivative)
        b = Builder(Block(name="entry"))
        given = [b.argument(x) for x in function.type.parameters]
        wanted = (*inner.batched, *(True for _ in given[len(inner.batched) :]))
        arguments = [
            repeated(b, x, key.extent) if want and not is_batched else x
            for x, want, is_batched in zip(given, wanted, key.batched, strict=True)
        ]
        b.emit_many(Return(), b.emit_many(Apply(name, type), arguments))
        return Region([b.block])

    def _check_loop(self, key: BatchKey) -> None:
        """Raises: UnsupportedError when one element after the other would have to know of all."""
        primal = self.module.functions[key.name]
        if key.axis in self.differing.axes_of(key.name):
            raise located(
                UnsupportedError(
                    f"{written('@', key.name)} combines the elements of the batch {written('', key.axis or '')}, and "
                    "has effects or values for which it runs for one element after the other"
                ),
                primal.location,
            )

    def fill(self) -> None:
        """Give the batched functions that were asked for their bodies."""
        while self.pending:
            function, key = self.pending.pop()
            primal, known = self.module.functions[key.name], self.differing.of(key)
            if known.is_looped and self._has_batched_primal(key):
                function.body = self._derivative_of_batch(function, key)
            elif known.is_looped:
                self._check_loop(key)
                function.body = looped_body(primal, key.batched, key.extent)
            else:
                body = BatchedBody(self.batched, self.totality, primal, key, known)
                function.body = body.build()


def _with_extent(
    primal: Function, types: tuple[Type, ...], batched: tuple[bool, ...], extent: int
) -> tuple[Type, ...]:
    """Types of which those that are `batched` have a leading axis.  Raises: UnsupportedError for what is no tensor."""
    found: list[Type] = []
    for type, is_batched in zip(types, batched, strict=True):
        if is_batched and not isinstance(type, TensorType):
            raise located(
                UnsupportedError(
                    f"{written('@', primal.name)} takes or returns a {type} that differs among the elements of a "
                    "batch: only tensors can be batched"
                ),
                primal.location,
            )
        found.append(
            type.with_shape((extent, *type.shape))
            if is_batched and isinstance(type, TensorType)
            else type
        )
    return tuple(found)


def _moved(b: Builder, x: Value, source: int, target: int) -> Value:
    """x with one axis at another place."""
    order = [axis for axis in range(x.tensor.rank) if axis != source]
    order.insert(target, source)
    return permuted(b, x, tuple(order))


def _tensor(type: Type) -> TensorType:
    assert isinstance(type, TensorType)
    return type
