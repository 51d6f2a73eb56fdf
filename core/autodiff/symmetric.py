"""Pullbacks of gradients whose backward halves read tapes, by the symmetry of second derivatives.

    G = [gradient @f wrt W]     ∂/∂x_V ⟨u, ∇_W f(x)⟩  =  ∂/∂ε ∇_V f(x + ε u)     (forward over reverse)

So nothing is ever swept backwards over a tape: the derivative of a gradient is the tangent of a gradient.  What is
differentiated again costs a forward sweep more each time, however many results there are.

Source: Pearlmutter 1994, Fast exact multiplication by the Hessian.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..analysis.derivatives import DerivativeRequest, derivative_type
from ..analysis.pointer_bases import leads_to_memory
from ..errors import UnsupportedError
from ..ir import Block, Builder, Function, GradientOf, Module, Region, Value
from ..location import located
from ..ops.aggregate import Apply
from ..ops.terminators import Return
from ..types import FunctionType, one_or_tuple, written
from .activity import mask_of, members
from .forward import Forward
from .pullback import Pullback, PullbackKey, ResidualPlace, ResidualSource
from .recomputation import Recomputation
from .rules import add


@dataclass
class SymmetricPullback:
    """Builds the pullback of a gradient of `@primal`, which was asked for by `request`.

    `define` gives a declared gradient its body.
    """

    module: Module
    forward: Forward
    define: Callable[[Function], None]
    primal: Function
    request: DerivativeRequest
    again: Recomputation

    def build(self, key: PullbackKey) -> Pullback:
        """The pullback of the gradient for `key`: all is computed anew from its arguments."""
        gradient = self.module.functions[key.name]
        if any(leads_to_memory(x) for x in gradient.type.parameters):
            error = UnsupportedError(
                f"{written('@', key.name)} takes memory and reads a tape, or reverses a loop by a schedule, so its "
                "derivative is not taken in reverse: take the tangent of it, or let the function allocate its memory"
            )
            raise located(error, self.primal.location)
        request, count = self.request, len(self.primal.type.parameters)
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
            other = self.gradient(wanted, request.sources, request.seedable)
            moved = self.moved(b, other, arguments, directions)
            found.update((wanted[position], tangent) for position, tangent in moved.items())
        seeds = [k for k in members(key.wanted) if k >= count]
        if directions and seeds:
            moved = self.moved(b, self.primal, point, directions)
            found.update((k, moved.get(request.sources[k - count])) for k in seeds)
        if kept and wanted:
            other = self.gradient(wanted, tuple(kept), True)
            other = self.again.of_function(other)
            slopes = b.emit_many(Apply(other.name, other.type), [*point, *kept.values()])
            for k, slope in zip(wanted, slopes, strict=True):
                found[k] = add(b, found.get(k), slope)
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

    def gradient(self, wrt: list[int], sources: tuple[int, ...], seedable: bool) -> Function:
        """Another gradient of the primal."""
        name = self.primal.name
        declaration = GradientOf(name, sources, tuple(wrt), seedable=seedable)
        type = derivative_type(self.primal.type, declaration)
        fresh = self.module.fresh_name(f"{name}_grad")
        function = self.module.add(Function(fresh, type, declaration=declaration))
        self.define(function)
        return function

    def moved(
        self, b: Builder, function: Function, at: list[Value], directions: dict[int, Value]
    ) -> dict[int, Value]:
        """The tangents of those results of `function` that move when its parameters do."""
        given = mask_of(directions)
        push = self.forward.pushforward(function.name, given)
        self.forward.fill()
        push = self.again.of_function(push)
        tangents = [directions[k] for k in members(given)]
        both = b.emit_many(Apply(push.name, push.type), [*at, *tangents])
        count = len(function.type.results)
        return dict(zip(self.forward.moved(function.name, given), both[count:], strict=True))


def caller_of(gradient: Function) -> Function:
    """A function that calls `gradient` and does nothing else, to be swept in its place."""
    b = Builder(Block(name="entry"))
    arguments = [b.argument(x.type, x.name) for x in gradient.parameters]
    b.emit_many(Return(), b.emit_many(Apply(gradient.name, gradient.type), arguments))
    return Function(gradient.name, gradient.type, Region([b.block]))
