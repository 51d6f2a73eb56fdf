"""Forward mode: tangent declarations get bodies.

    [tangent @f wrt 0]                                func @f_t: (T, T) -> U {
    func @f_t: (T, T) -> U             becomes        'entry(%x: T, %dx: T):
                                                          %y, %dy = apply @f_jvp(%x, %dx): (T, T) -> (U, U)
                                                          return %dy: U

A *pushforward* of @f, for a set of parameter leaves that move, takes the arguments and the tangents of these
leaves; it returns the results and the tangents of the result leaves that they can influence.  All calls with
the same needs share it; so that of a recursive function calls itself.

Source: Griewank & Walther 2008, Evaluating Derivatives, §3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import DifferentiationError
from ..ir import Block, Builder, Function, GradientOf, Module, Region, TangentOf, Value
from ..ops.aggregate import Apply
from ..ops.leaves import put_together
from ..ops.literal import constant
from ..ops.terminators import Return
from ..types import FunctionType, TensorType, Type, one_or_tuple, written
from .activity import Activity
from .declaration import GradientRequest, derivative_type, resolve_tangent
from .leaves import declared, elements, leaf_count, mask_of, members, returned, split, tensors_in
from .pushforward import PushforwardBody


@dataclass
class Forward:
    """Fills tangent declarations of `module`; pushforwards are remembered by function and mask."""

    module: Module
    activity: Activity
    made: dict[tuple[str, int], Function] = field(default_factory=dict[tuple[str, int], Function])
    pending: list[tuple[Function, Function, int]] = field(
        default_factory=list[tuple[Function, Function, int]]
    )

    def define(self, function: Function) -> None:
        """Give the tangent declaration `function` its body.

        Raises: DifferentiationError for a wrong declaration or an op without derivative.
        """
        declaration = function.declaration
        assert isinstance(declaration, TangentOf)
        primal = self.module.functions[declaration.primal]
        request = resolve_tangent(primal.type, declaration)
        expected = derivative_type(primal.type, function)
        if function.type != expected:
            raise DifferentiationError(
                f"{written('@', function.name)} is declared as {function.type}, but the tangent of "
                f"{written('@', primal.name)} is {expected}"
            )
        b = Builder(Block(name="entry"))
        parameters = primal.type.parameters
        arguments = [
            b.argument(type, parameter.name)
            for type, parameter in zip(parameters, primal.parameters, strict=True)
        ]
        moving: dict[int, Value] = {}
        for index in request.wrt:
            name = arguments[index].name
            tangent = b.argument(parameters[index], f"d{name}" if name else None)
            first = leaf_count(parameters[:index])
            for position, leaf in enumerate(split(b, tangent)):
                if leaf.tensor.dtype.is_float:
                    moving[first + position] = leaf
        given = mask_of([*moving])
        push = self.pushforward(primal.name, given)
        tangents = [moving[k] for k in members(given)]
        both = b.emit_many(Apply(push.name, push.type), [*arguments, *tangents])
        count = len(primal.type.results)
        found = dict(zip(self.moved(primal.name, given), both[count:], strict=True))
        results = elements(primal.type.result)
        outputs = [
            _tangent_of(b, results[index], leaf_count(results[:index]), found)
            for index in request.sources
        ]
        kept = declared(b, primal.type, both[:count])
        outputs += [kept[index] for index in request.keeping]
        b.emit_many(Return(), returned(b, expected, outputs))
        function.body = Region([b.block])
        function.declaration = None
        self._fill()

    def define_gradient(self, function: Function, request: GradientRequest) -> None:
        """Give `function`, a gradient of one number by one number, its body: the tangent of the seed.

        The declaration has been checked, and what is asked for is the `request`.
        """
        declaration = function.declaration
        assert isinstance(declaration, GradientOf)
        primal = self.module.functions[declaration.primal]
        (index,) = request.wrt
        given = 1 << leaf_count(primal.type.parameters[:index])
        body = PushforwardBody(self.pushforward, self.moved, self.activity, function, primal, given)
        b = Builder(Block(name="entry"))
        body.take(b)
        type = primal.type.parameters[index]
        assert isinstance(type, TensorType)
        is_taken = any(parameter.name == "seed" for parameter in primal.parameters)
        if request.seedable:
            seed = b.argument(type, None if is_taken else "seed")
        else:
            seed = constant(b, type, 1)
        results, tangents = body.follow(b, index, seed)
        before = elements(primal.type.result)[: request.source]
        outputs = [tangents[leaf_count(before)] or constant(b, type, 0)]
        kept = declared(b, primal.type, results)
        outputs += [kept[index] for index in request.keeping]
        b.emit_many(Return(), returned(b, function.type, outputs))
        function.body = Region([b.block])
        function.declaration = None
        self._fill()

    def moved(self, name: str, given: int) -> list[int]:
        """The leaves of the results of `@name` that move when the parameter leaves in `given` do."""
        return [k for k, mask in enumerate(self.activity.of_result(name)) if mask & given]

    def pushforward(self, name: str, given: int) -> Function:
        """The function that computes `@name` and the tangents of its results; its body may come later."""
        if (name, given) not in self.made:
            primal = self.module.functions[name]
            parameters = [leaf for type in primal.type.parameters for leaf in tensors_in(type)]
            results = tensors_in(primal.type.result)
            moved = [results[k] for k in self.moved(name, given)]
            type = FunctionType(
                (*primal.type.parameters, *(parameters[k] for k in members(given))),
                one_or_tuple((*primal.type.results, *moved)),
            )
            push = Function(self.module.fresh_name(f"{name}_jvp"), type)
            self.module.add(push)
            self.made[name, given] = push
            self.pending.append((push, primal, given))
        return self.made[name, given]

    def _fill(self) -> None:
        while self.pending:
            push, primal, given = self.pending.pop()
            PushforwardBody(self.pushforward, self.moved, self.activity, push, primal, given).fill()


def _tangent_of(b: Builder, type: Type, first: int, found: Mapping[int, Value]) -> Value:
    """A value of `type` made of the tangents of its leaves, which begin at number `first`."""
    leaves = enumerate(tensors_in(type), first)
    return put_together(b, type, (found.get(k) or constant(b, leaf, 0) for k, leaf in leaves))
