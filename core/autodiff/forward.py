"""Forward mode: tangent declarations get bodies.

    [tangent @f wrt 0]                                func @f_t: (T, T) -> U {
    func @f_t: (T, T) -> U             becomes        'entry(%x: T, %dx: T):
                                                          %y, %dy = apply @f_jvp(%x, %dx): (T, T) -> (U, U)
                                                          return %dy: U

A *pushforward* of @f, for a set of parameters that move, takes the arguments and the tangents of
these; it returns the results and the tangents of the results that they can influence.  All calls with
the same needs share it; so that of a recursive function calls itself.

Source: Griewank & Walther 2008, Evaluating Derivatives, §3.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..analysis.derivatives import DerivativeRequest, resolve_declared
from ..ir import Block, Builder, Function, GradientOf, Module, Region, TangentOf
from ..ops.aggregate import Apply
from ..ops.literal import constant
from ..ops.terminators import Return
from ..types import FunctionType, TensorType, one_or_tuple
from .activity import Activity, mask_of, members
from .custom_rules import RuleDerivatives
from .pushforward import PushforwardBody
from .tangent_types import TangentTypes


@dataclass
class Forward:
    """Fills tangent declarations of `module`; pushforwards are remembered by function and mask."""

    module: Module
    activity: Activity
    types: TangentTypes
    made: dict[tuple[str, int], Function] = field(default_factory=dict[tuple[str, int], Function])
    pending: list[tuple[Function, Function, int]] = field(
        default_factory=list[tuple[Function, Function, int]]
    )
    rules: RuleDerivatives = field(kw_only=True)

    def define(self, function: Function) -> None:
        """Give the tangent declaration `function` its body.

        Raises: DifferentiationError for a wrong declaration or an op without derivative.
        """
        declaration = function.declaration
        assert isinstance(declaration, TangentOf)
        primal = self.module.functions[declaration.primal]
        request = resolve_declared(primal.type, function)
        b = Builder(Block(name="entry"))
        parameters = primal.type.parameters
        arguments = [
            b.argument(type, parameter.name)
            for type, parameter in zip(parameters, primal.parameters, strict=True)
        ]
        names = request.given_names([parameter.name for parameter in primal.parameters])
        moving = {
            index: b.argument(parameters[index], name)
            for index, name in zip(request.wrt, names, strict=True)
        }
        given = mask_of(moving)
        push = self.pushforward(primal.name, given)
        tangents = [moving[k] for k in members(given)]
        both = b.emit_many(Apply(push.name, push.type), [*arguments, *tangents])
        count = len(primal.type.results)
        found = dict(zip(self.moved(primal.name, given), both[count:], strict=True))
        outputs = [
            found.get(index) or constant(b, both[index].tensor, 0) for index in request.sources
        ]
        outputs += [both[index] for index in request.keeping]
        b.emit_many(Return(), outputs)
        function.body = Region([b.block])
        function.declaration = None
        self.fill()

    def define_gradient(self, function: Function, request: DerivativeRequest) -> None:
        """Give `function`, a gradient of one number by one number, its body: the tangent of the seed.

        The declaration has been checked, and what is asked for is the `request`.
        """
        declaration = function.declaration
        assert isinstance(declaration, GradientOf)
        primal = self.module.functions[declaration.primal]
        (index,) = request.wrt
        (source,) = request.sources
        body = PushforwardBody(
            self.pushforward, self.moved, self.activity, self.types, function, primal, 1 << index
        )
        b = Builder(Block(name="entry"))
        body.take(b)
        type = primal.type.parameters[index]
        assert isinstance(type, TensorType)
        names = request.given_names([parameter.name for parameter in primal.parameters])
        seed = b.argument(type, *names) if request.seedable else constant(b, type, 1)
        results, tangents = body.follow(b, index, seed)
        outputs = [tangents[source] or constant(b, type, 0)]
        outputs += [results[index] for index in request.keeping]
        b.emit_many(Return(), outputs)
        function.body = Region([b.block])
        function.declaration = None
        self.fill()

    def moved(self, name: str, given: int) -> list[int]:
        """The results of `@name` that move when the parameters in `given` do."""
        return [k for k, mask in enumerate(self.activity.of_results(name)) if mask & given]

    def pushforward(self, name: str, given: int) -> Function:
        """The function that computes `@name` and the tangents of its results; its body may come later."""
        if (name, given) not in self.made:
            primal = self.module.functions[name]
            parameters, results = primal.type.parameters, primal.type.results
            moved = [results[k] for k in self.moved(name, given)]
            type = FunctionType(
                (*parameters, *self.types.carried([parameters[k] for k in members(given)])),
                one_or_tuple((*results, *self.types.carried(moved))),
            )
            push = Function(
                self.module.fresh_name(f"{name}_jvp"), type, made_from=primal.made_from or name
            )
            self.module.add(push)
            self.made[name, given] = push
            self.pending.append((push, primal, given))
        return self.made[name, given]

    def fill(self) -> None:
        """Give the pushforwards that were asked for their bodies."""
        while self.pending:
            push, primal, given = self.pending.pop()
            if primal.rules:
                self._fill_by_rules(push, primal, given)
                continue
            PushforwardBody(
                self.pushforward, self.moved, self.activity, self.types, push, primal, given
            ).fill()

    def _fill_by_rules(self, push: Function, primal: Function, given: int) -> None:
        """The same for a function that has rules of its own."""
        b = Builder(Block(name="entry"), primal.location)
        xs = [b.argument(type) for type in primal.type.parameters]
        dxs = {k: b.argument(primal.type.parameters[k]) for k in members(given)}
        results = b.emit_many(Apply(primal.name, primal.type), xs)
        tangents = self.rules.push_into(b, primal, xs, dxs)
        b.emit_many(Return(), [*results, *(tangents[k] for k in self.moved(primal.name, given))])
        push.body = Region([b.block])
