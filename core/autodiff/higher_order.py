"""Higher-order derivatives: bounds code growth from order to order.

1. What will be differentiated again is simplified first: the rules of an op write the same subexpressions many
   times over, and each copy would be differentiated by itself.
2. The gradient of a derivative by one number is taken forward, from a tangent that is the seed: a Jacobian of
   one element is its own transpose.  A reverse sweep doubles a program however much is shared in it, while
   forward rules give equal values equal derivatives, so that the n-th derivative has as many instructions as
   it has different values: some n³/6 for tanh.  It is not done through calls, behind which nothing is shared.
3. What still grows is refused at a bound: reverse over reverse as 2ⁿ, tangents in n directions as well.

Source: Griewank & Walther 2008, Evaluating Derivatives, §5.1 (forward over reverse) and §10.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from ..analysis.call_graph import callees
from ..analysis.derivatives import DerivativeRequest
from ..errors import UnsupportedError
from ..ir import BatchOf, Function, GradientOf, Module, TangentOf
from ..ir.surgery import walk
from ..lazy_dataclass import dataclass
from ..location import located
from ..types import TensorType, written
from .declaration_order import dependencies

MOST_INSTRUCTIONS = 100_000
"""In a derivative of second or higher order and those that it is taken of, unless the program is large."""

GROWTH = 32
"""More is allowed up to so many times the instructions that the program has itself."""


@dataclass
class DerivativeOrders:
    """The derivative order of each function of `module`, and the instructions that it took."""

    module: Module
    declared: list[Function] = field(default_factory=list[Function])
    again: set[str] = field(default_factory=set[str])
    """What is needed by the functions that are still to be differentiated."""
    _orders: dict[str, int] = field(default_factory=dict[str, int])
    _made: dict[str, int] = field(default_factory=dict[str, int])
    _most: int = 0

    def expect(self, declared: Sequence[Function]) -> None:
        """These get their bodies next."""
        self.declared += declared
        primals = [f.primal for f in declared if f.primal is not None]
        self.again.update(dependencies(self.module, primals))
        if self.again and not self._most:
            given = instruction_count(self.module.functions.values())
            self._most = max(MOST_INSTRUCTIONS, GROWTH * given)

    def of(self, name: str) -> int:
        """The order of the derivatives that `@name` is, or calls; 0 for a plain function."""
        if name not in self._orders:
            for needed in dependencies(self.module, [name]):
                called = callees(self.module.functions[needed])
                known = max((self._orders.get(callee, 0) for callee in called), default=0)
                self._orders.setdefault(needed, known)
                taken = max((self._made.get(callee, 0) for callee in called), default=0)
                self._made.setdefault(needed, taken)
        return self._orders[name]

    def add(
        self,
        function: Function,
        declaration: GradientOf | TangentOf | BatchOf,
        made: Sequence[Function],
    ) -> None:
        """`function`, which was declared so, has its body; `made` are it and what was added for it.

        Raises: UnsupportedError when this and the derivatives it is taken of have too many instructions.
        """
        before = declaration.primal
        own = declaration.order if isinstance(declaration, TangentOf) else 1
        if isinstance(declaration, BatchOf):
            own = 0
        order = self._orders[function.name] = own + self.of(before)
        if order <= 1 or not self._most:
            return
        total = self._made.get(before, 0) + instruction_count(made)
        if total > self._most:
            error = UnsupportedError(
                f"{written('@', function.name)} is a derivative of order {order}, and with those it is taken of it has "
                f"{total} instructions: more than {self._most} are not supported"
            )
            raise located(error, declaration.location)

    def settle(self, function: Function, primal: str, made: Sequence[Function]) -> None:
        """`function`, which will be differentiated again, is as it will stay."""
        self._made[function.name] = self._made.get(primal, 0) + instruction_count(made)


def instruction_count(functions: Iterable[Function]) -> int:
    """The instructions of all bodies."""
    return sum(1 for f in functions if f.body is not None for _ in walk(f.body))


def prefers_forward_mode(primal: Function, request: DerivativeRequest) -> bool:
    """Whether forward mode is used: for a gradient of one scalar by one of the same type, without calls or regions."""
    sources = [primal.type.results[index] for index in request.sources]
    wrt = [primal.type.parameters[index] for index in request.wrt]
    return (
        wrt == sources
        and [isinstance(type, TensorType) and type.size == 1 for type in wrt] == [True]
        and not any(i.regions or i.op.called is not None for i in primal.entry.instructions)
    )
