"""Pullbacks of derivatives whose code reads tapes or follows a schedule, by the symmetry of second derivatives.

    G = [gradient @f wrt W]     ∂/∂x_V ⟨u, ∇_W f(x)⟩  =  ∂/∂ε ∇_V f(x + ε u)            (forward over reverse)
    P = the pushforward of @g   with B(x, u) = ∂/∂x ⟨u, g(x)⟩, cotangents y̅ of g(x) and u of its tangent:
                                ẋ̅ = B(x, u)     x̅ = ∂/∂ε B(x + ε ẋ, u + ε y̅)            (the same)

So whatever the nesting of derivatives, one sweep of the innermost program is in reverse, and the others are tangents of
that: a tape is recorded and read once, and a schedule holds for derivatives of any order.

That is right where derivatives are derivatives.  Rules of users may be those of nothing: what they have a part in is
swept in reverse, tapes and all.

Source: Pearlmutter 1994, Fast exact multiplication by the Hessian.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..analysis.derivatives import DerivativeRequest, derivative_type
from ..ir import Block, Builder, Function, GradientOf, Module, Region, Value
from ..lazy_dataclass import dataclass
from ..ops.aggregate import Apply
from ..ops.terminators import Return
from ..types import FunctionType, one_or_tuple
from .activity import Mask, mask_of, members
from .forward import Forward
from .pullback import Pullback, PullbackKey, ResidualPlace, ResidualSource
from .recomputation import Recomputation
from .rules import add


@dataclass
class SymmetricPullbacks:
    """Builds the pullbacks of gradients and pushforwards of `module`; `define` gives a declared gradient its body."""

    module: Module
    forward: Forward
    define: Callable[[Function], None]
    again: Recomputation

    def of_gradient(
        self, key: PullbackKey, primal: Function, request: DerivativeRequest
    ) -> Pullback:
        """That of a gradient of `primal`, which was asked for by `request`: all is computed anew from its arguments."""
        gradient, count = self.module.functions[key.name], len(primal.type.parameters)
        b = Builder(Block(name="entry"))
        arguments = [b.argument(type) for type in gradient.type.parameters]
        point = arguments[:count]
        directions: dict[int, Value] = {}
        kept: dict[int, Value] = {}
        for k in members(key.seeded):
            seed = b.argument(gradient.type.results[k])
            if k < len(request.wrt):
                directions[request.wrt[k]] = seed
            else:
                kept[request.keeping[k - len(request.wrt)]] = seed
        wanted = [k for k in members(key.wanted) if k < count]
        found: dict[int, Value | None] = {}
        if directions and wanted:
            other = self.gradient(primal, wanted, request.sources, request.seedable)
            _, moved = self.pushed(b, other, arguments, directions)
            found.update((wanted[position], tangent) for position, tangent in moved.items())
        seeds = [k for k in members(key.wanted) if k >= count]
        if directions and seeds:
            _, moved = self.pushed(b, primal, point, directions)
            found.update((k, moved.get(request.sources[k - count])) for k in seeds)
        if kept and wanted:
            slopes = self.slopes(b, primal, wanted, point, kept)
            for k, slope in zip(wanted, slopes, strict=True):
                found[k] = add(b, found.get(k), slope)
        return self.finished(key, b, arguments, found)

    def of_pushforward(self, key: PullbackKey, primal: Function, given: Mask) -> Pullback:
        """That of the pushforward of `primal` for the parameters in `given`."""
        push = self.module.functions[key.name]
        count, results = len(primal.type.parameters), len(primal.type.results)
        moving, moved = [*members(given)], self.forward.moved(primal.name, given)
        b = Builder(Block(name="entry"))
        arguments = [b.argument(type) for type in push.type.parameters]
        point, tangents = arguments[:count], dict(zip(moving, arguments[count:], strict=True))
        of_results: dict[int, Value] = {}
        of_tangents: dict[int, Value] = {}
        for k in members(key.seeded):
            seed = b.argument(push.type.results[k])
            if k < results:
                of_results[k] = seed
            else:
                of_tangents[moved[k - results]] = seed
        wanted = [k if k < count else moving[k - count] for k in members(key.wanted)]
        wrt = sorted(set(wanted))
        values: Mapping[int, Value] = {}
        changes: Mapping[int, Value]
        if of_tangents:
            sources = sorted({*of_results, *of_tangents})
            pull = self.gradient(primal, wrt, tuple(sources), True)
            types, zero = primal.type.results, self.forward.types.zero
            seeds = [of_tangents.get(k) or zero(b, types[k]) for k in sources]
            directions = {count + sources.index(k): seed for k, seed in of_results.items()}
            both = self.pushed(b, pull, [*point, *seeds], tangents | directions)
            values = dict(zip(wrt, both[0], strict=True))
            changes = {wrt[position]: tangent for position, tangent in both[1].items()}
        else:
            changes = dict(zip(wrt, self.slopes(b, primal, wrt, point, of_results), strict=True))
        found = {
            k: (changes if k < count else values).get(parameter)
            for k, parameter in zip(members(key.wanted), wanted, strict=True)
        }
        return self.finished(key, b, arguments, found)

    def finished(
        self,
        key: PullbackKey,
        b: Builder,
        arguments: Sequence[Value],
        found: Mapping[int, Value | None],
    ) -> Pullback:
        """The pullback whose backward half takes all arguments, then the seeds, and has `found` these cotangents."""
        gradients = {k: x for k in members(key.wanted) if (x := found.get(k)) is not None}
        if not gradients:
            return Pullback()
        b.emit_many(Return(), list(gradients.values()))
        type = FunctionType(
            tuple(x.type for x in b.block.arguments),
            one_or_tuple([x.type for x in gradients.values()]),
        )
        name = self.module.fresh_name(f"{key.name}_bwd")
        backward = self.module.add(Function(name, type, Region([b.block])))
        residuals = [ResidualPlace(ResidualSource.ARGUMENT, k) for k in range(len(arguments))]
        return Pullback(
            None, backward, tuple(residuals), tuple(members(key.seeded)), tuple(gradients)
        )

    def gradient(
        self, primal: Function, wrt: Sequence[int], sources: tuple[int, ...], seedable: bool
    ) -> Function:
        """Another gradient of `primal`."""
        declaration = GradientOf(primal.name, sources, tuple(wrt), seedable=seedable)
        type = derivative_type(primal.type, declaration)
        fresh = self.module.fresh_name(f"{primal.name}_grad")
        function = self.module.add(Function(fresh, type, declaration=declaration))
        self.define(function)
        return function

    def slopes(
        self,
        b: Builder,
        primal: Function,
        wrt: Sequence[int],
        point: Sequence[Value],
        seeds: Mapping[int, Value],
    ) -> Sequence[Value]:
        """The derivatives of the results that have `seeds`, by the parameters `wrt`."""
        pull = self.again.of_function(self.gradient(primal, wrt, tuple(seeds), True))
        return b.emit_many(Apply(pull.name, pull.type), [*point, *seeds.values()])

    def pushed(
        self, b: Builder, function: Function, at: Sequence[Value], directions: Mapping[int, Value]
    ) -> tuple[Sequence[Value], dict[int, Value]]:
        """The results of `function`, and the tangents of those that move when its parameters do."""
        given = mask_of(directions)
        push = self.forward.pushforward(function.name, given)
        self.forward.fill()
        push = self.again.of_function(push)
        tangents = [directions[k] for k in members(given)]
        both = b.emit_many(Apply(push.name, push.type), [*at, *tangents])
        count = len(function.type.results)
        moved = self.forward.moved(function.name, given)
        return both[:count], dict(zip(moved, both[count:], strict=True))


def caller_of(gradient: Function) -> Function:
    """A function that calls `gradient` and does nothing else, to be swept in its place."""
    b = Builder(Block(name="entry"))
    arguments = [b.argument(x.type, x.name) for x in gradient.parameters]
    b.emit_many(Return(), b.emit_many(Apply(gradient.name, gradient.type), arguments))
    return Function(gradient.name, gradient.type, Region([b.block]))
