"""Forward mode: tangent declarations get bodies.

    [tangent @f wrt 0]                                func @f_t: (T, T) -> U {
    func @f_t: (T, T) -> U             becomes        'entry(%x: T, %dx: T):
                                                          %y, %dy = apply @f_jvp(%x, %dx): (T, T) -> (U, U)
                                                          return %dy: U

A *pushforward* of @f, for a set of parameters that move, takes the arguments and the tangents of
these; it returns the results and the tangents of the results that they can influence.  All calls with
the same needs share it; so that of a recursive function calls itself.

Of an order n above 1 it has n coefficients of a Taylor series in place of each tangent (docs/decisions/0041).

Source: Griewank & Walther 2008, Evaluating Derivatives, §3.1 and §13.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from ..analysis.derivatives import DerivativeRequest, resolve_declared
from ..ir import Block, Builder, Function, GradientOf, Module, Region, TangentOf, Value
from ..lazy_dataclass import dataclass
from ..ops.aggregate import Apply
from ..ops.arithmetic import Divide, Multiply
from ..ops.literal import constant
from ..ops.terminators import Return
from ..types import FunctionType, TensorType, one_or_tuple
from .activity import Activity, Mask, mask_of, members
from .custom_rules import RuleDerivatives
from .power_series import SeriesExpansion
from .pushforward import PushforwardBody, Tangents
from .tangent_types import TangentTypes


@dataclass
class Forward:
    """Fills tangent declarations of `module`; pushforwards are remembered by function, mask and order."""

    module: Module
    activity: Activity
    types: TangentTypes
    made: dict[tuple[str, int, int], Function] = field(
        default_factory=dict[tuple[str, int, int], Function]
    )
    pending: list[tuple[Function, Function, int, int]] = field(
        default_factory=list[tuple[Function, Function, int, int]]
    )
    rules: RuleDerivatives = field(kw_only=True)
    effectful: set[str] = field(kw_only=True)
    """The functions that do more than compute a result, pushforwards of such included."""
    _primals: dict[str, tuple[Function, Mask]] = field(
        default_factory=dict[str, "tuple[Function, Mask]"]
    )

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
        names = [parameter.name for parameter in primal.parameters]
        arguments = [b.argument(*given) for given in zip(parameters, names, strict=True)]
        directions = {
            index: b.argument(parameters[index], name)
            for index, name in zip(request.wrt, request.given_names(names), strict=True)
        }
        if request.order == 1 or primal.rules:
            results, found = self._called(b, primal, arguments, directions, request.order)
        else:  # all but the first coefficients given are zero, which a function for all callers does not know
            body = self._body(function, primal, mask_of(directions), request.order)
            results, found = body.follow(b, arguments, directions)
        outputs = [
            found[source][k] or constant(b, results[source].tensor, 0)
            for k in range(request.order)
            for source in request.sources
        ]
        outputs += [results[index] for index in request.keeping]
        b.emit_many(Return(), outputs)
        function.body = Region([b.block])
        function.declaration = None
        self.fill()

    def _called(
        self,
        b: Builder,
        primal: Function,
        arguments: Sequence[Value],
        directions: Mapping[int, Value],
        order: int,
    ) -> tuple[Sequence[Value], list[Tangents]]:
        """The results of `primal` and their tangents along `directions`, by a call of its pushforward."""
        given = mask_of(directions)
        push = self.pushforward(primal.name, given, order)
        tangents: list[Value] = []
        for k in members(given):
            behind = [self.types.zero(b, directions[k].type) for _ in range(order - 1)]
            tangents += [directions[k], *behind]
        both = b.emit_many(Apply(push.name, push.type), [*arguments, *tangents])
        count = len(primal.type.results)
        found: list[Tangents] = [(None,) * order] * count
        for number, k in enumerate(self.moved(primal.name, given)):
            start = count + number * order
            found[k] = both[start : start + order]
        return both[:count], found

    def define_gradient(self, function: Function, request: DerivativeRequest) -> None:
        """Give `function`, a gradient of one number by one number, its body: the tangent of the seed.

        The declaration has been checked, and what is asked for is the `request`.
        """
        declaration = function.declaration
        assert isinstance(declaration, GradientOf)
        primal = self.module.functions[declaration.primal]
        (index,) = request.wrt
        (source,) = request.sources
        body = self._body(function, primal, 1 << index, 1)
        b = Builder(Block(name="entry"))
        arguments = [b.argument(x.type, x.name) for x in primal.parameters]
        type = primal.type.parameters[index]
        assert isinstance(type, TensorType)
        names = request.given_names([parameter.name for parameter in primal.parameters])
        seed = b.argument(type, *names) if request.seedable else constant(b, type, 1)
        results, tangents = body.follow(b, arguments, {index: seed})
        outputs = [tangents[source][0] or constant(b, type, 0)]
        outputs += [results[index] for index in request.keeping]
        b.emit_many(Return(), outputs)
        function.body = Region([b.block])
        function.declaration = None
        self.fill()

    def primal_of(self, name: str) -> tuple[Function, Mask] | None:
        """What `@name` is the pushforward of, for which parameters; None if it is none, or of a higher order."""
        return self._primals.get(name)

    def moved(self, name: str, given: int) -> list[int]:
        """The results of `@name` that move when the parameters in `given` do."""
        return [k for k, mask in enumerate(self.activity.of_results(name)) if mask & given]

    def pushforward(self, name: str, given: int, order: int = 1) -> Function:
        """The function that computes `@name` and the tangents of its results; its body may come later.

        Of an order above 1, each tangent is followed by the further coefficients.
        """
        if (name, given, order) not in self.made:
            primal = self.module.functions[name]
            parameters, results = primal.type.parameters, primal.type.results
            moving = self.types.of_all([parameters[k] for k in members(given)])
            moved = self.types.of_all([results[k] for k in self.moved(name, given)])
            type = FunctionType(
                (*parameters, *(tangent for tangent in moving for _ in range(order))),
                one_or_tuple((*results, *(tangent for tangent in moved for _ in range(order)))),
            )
            kind = "jvp" if order == 1 else f"series_{order}"
            fresh = self.module.fresh_name(f"{name}_{kind}")
            push = Function(fresh, type, made_from=primal.made_from or name)
            self.module.add(push)
            if name in self.effectful:
                self.effectful.add(fresh)
            self.made[name, given, order] = push
            self.pending.append((push, primal, given, order))
            if order == 1:
                self._primals[push.name] = primal, given
        return self.made[name, given, order]

    def fill(self) -> None:
        """Give the pushforwards that were asked for their bodies."""
        while self.pending:
            push, primal, given, order = self.pending.pop()
            if primal.rules:
                self._fill_by_rules(push, primal, given, order)
            else:
                self._body(push, primal, given, order).fill()

    def _body(self, push: Function, primal: Function, given: int, order: int) -> PushforwardBody:
        return PushforwardBody(
            self.pushforward, self.moved, self.activity, self.types, push, primal, given, order
        )

    def _fill_by_rules(self, push: Function, primal: Function, given: int, order: int) -> None:
        """The same for a function that has rules of its own."""
        b = Builder(Block(name="entry"), primal.location)
        xs = [b.argument(type) for type in primal.type.parameters]
        dxs = {k: [b.argument(xs[k].type) for _ in range(order)] for k in members(given)}
        results = b.emit_many(Apply(primal.name, primal.type), xs)
        if order == 1:
            along = {k: tangents[0] for k, tangents in dxs.items()}
            slopes = [[dy] for dy in self.rules.push_into(b, primal, xs, along)]
        else:
            slopes = self._series_of_rule(b, primal, xs, dxs, order)
        moved = [dy for k in self.moved(primal.name, given) for dy in slopes[k]]
        b.emit_many(Return(), [*results, *moved])
        push.body = Region([b.block])

    def _series_of_rule(
        self,
        b: Builder,
        primal: Function,
        xs: Sequence[Value],
        dxs: Mapping[int, Sequence[Value]],
        order: int,
    ) -> list[list[Value]]:
        """The coefficients of all results: y′ is a function of x and x′, with a series of one order less."""
        rule = self.rules.pushing(primal)
        series = SeriesExpansion(b)
        slopes = {
            k: [series.scaled(dx, j, Multiply()) for j, dx in enumerate(known, 1)]
            for k, known in dxs.items()
        }
        tangents = [slopes[k][0] if k in slopes else series.zero(x.type) for k, x in enumerate(xs)]
        moving = mask_of([*dxs, *(len(xs) + k for k in dxs)])
        push = self.pushforward(rule.name, moving, order - 1)
        given = [dx for known in dxs.values() for dx in known[:-1]]
        given += [dx for known in slopes.values() for dx in known[1:]]
        found = iter(b.emit_many(Apply(push.name, push.type), [*xs, *tangents, *given]))
        made = [[next(found)] for _ in primal.type.results]
        moved = self.moved(rule.name, moving)
        for k, known in enumerate(made):
            more = [next(found) for _ in range(order - 1)] if k in moved else []
            zeros = [series.zero(known[0].type)] * (order - 1 - len(more))
            made[k] = [
                series.scaled(dy, j, Divide()) for j, dy in enumerate([*known, *more, *zeros], 1)
            ]
        return made
