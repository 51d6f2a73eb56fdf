"""Derivatives of staged functions as things to call: gradients, tangents, Jacobians.

Each gives a callee for the types of the arguments, as a Python function does.  The IR declares gradients and tangents
(`[gradient @f …]`, `[tangent @f …]`); a Jacobian is a function around one of them (`specialize_jacobian`).
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import ClassVar

from ..core.ir import SavePolicy
from ..core.lazy_dataclass import dataclass
from .custom_rules import trace_rules
from .expression import (
    Callee,
    CalleeKey,
    DerivativeCallee,
    GradientCallee,
    JacobianCallee,
    Mode,
    Shapes,
    TangentCallee,
)
from .primitive import unsupported_error
from .recursion import is_unfinished
from .spec import FunctionSpec, Spec, TensorSpec, TupleSpec, leaves
from .staged_functions import Stageable, argument_error, known_or_made


@dataclass(eq=False)
class Derivative(Stageable, abc.ABC):
    """A derivative of the results `sources` of `of` by the parameters `wrt`, then its results `keeping`.

    Of a function with one result that is no tuple, `sources` is (0,).
    """

    of: Stageable
    wrt: tuple[int, ...]
    sources: tuple[int, ...]
    name: str
    check: Callable[[Callee, Derivative], None]
    """Raises a DifferentiationError when the callee has no such derivative."""
    keeping: tuple[int, ...] = ()
    parameter_names: tuple[str, ...] = field(init=False)
    callees: dict[CalleeKey, DerivativeCallee] = field(
        default_factory=dict[CalleeKey, DerivativeCallee]
    )

    def __post_init__(self) -> None:
        self.parameter_names = (*self.of.parameter_names, *self.given_names())

    def given_names(self) -> tuple[str, ...]:
        """The names of the parameters behind those of `of`: seeds, or tangents."""
        return ()

    def given(self, primal: Callee) -> tuple[Spec, ...]:
        """Their types."""
        return ()

    @abc.abstractmethod
    def results(self, primal: Callee) -> tuple[Spec, ...]:
        """The types of the results before those that are kept."""

    callee_class: ClassVar[type[DerivativeCallee]]

    def callee(self, specs: tuple[Spec, ...], shapes: Shapes | None = None) -> DerivativeCallee:
        return known_or_made(self, self.callees, specs, shapes, self._make)

    def _make(self, specs: tuple[Spec, ...], shapes: Shapes | None) -> DerivativeCallee:
        count = len(self.of.parameter_names)
        primal = finished_callee(self.of, specs[:count], first_shapes(shapes, specs[:count]))
        self.check(primal, self)
        trace_rules(primal)
        names = self.parameter_names[count:]
        for name, wanted, given in zip(names, self.given(primal), specs[count:], strict=True):
            if wanted != given:
                raise argument_error(self, name, wanted, given)
        made = self._callee(primal, specs, self.parts(primal))
        made.shapes = None if primal.shapes is None else shapes
        return made

    def parts(self, primal: Callee) -> tuple[Spec, ...]:
        """The types of all results."""
        kept = results_of(primal)
        return (*self.results(primal), *(kept[index] for index in self.keeping))

    def _callee(
        self, primal: Callee, specs: tuple[Spec, ...], parts: tuple[Spec, ...]
    ) -> DerivativeCallee:
        return self.callee_class(
            self.name,
            specs,
            parts[0] if len(parts) == 1 else TupleSpec(parts),
            captures=primal.captures,
            location=primal.location,
            parameter_names=self.parameter_names,
            primal=primal,
            wrt=tuple(_data_index(primal, index) for index in self.wrt),
            sources=self.sources if isinstance(primal.result, TupleSpec) else None,
            keeping=self.keeping,
            given=len(self.given_names()),
        )


@dataclass(eq=False)
class Gradient(Derivative):
    """Reverse mode: derivatives in the order of `wrt`.  Seeds are ones, unless it is `seedable`.

    With a policy what to `save`, its halves are functions of their own.
    """

    seedable: bool = False
    save: SavePolicy | None = None
    callee_class = GradientCallee

    def given_names(self) -> tuple[str, ...]:
        if not self.seedable:
            return ()
        if len(self.sources) == 1:
            return ("seed",)
        return tuple(f"seed_{index}" for index in self.sources)

    def given(self, primal: Callee) -> tuple[Spec, ...]:
        results = results_of(primal)
        return tuple(results[index] for index in self.sources) if self.seedable else ()

    def _callee(
        self, primal: Callee, specs: tuple[Spec, ...], parts: tuple[Spec, ...]
    ) -> DerivativeCallee:
        made = super()._callee(primal, specs, parts)
        assert isinstance(made, GradientCallee)
        made.save = self.save
        return made

    def results(self, primal: Callee) -> tuple[Spec, ...]:
        return tuple(primal.parameters[index] for index in self.wrt)


@dataclass(eq=False)
class TangentMap(Derivative):
    """Forward mode: the tangents of `sources`, for tangents of `wrt`.

    Of an `order` above 1 the coefficients of their Taylor series, order by order.
    """

    order: int = 1
    callee_class = TangentCallee

    def given_names(self) -> tuple[str, ...]:
        return tuple(f"d{self.of.parameter_names[index]}" for index in self.wrt)

    def given(self, primal: Callee) -> tuple[Spec, ...]:
        return tuple(primal.parameters[index] for index in self.wrt)

    def results(self, primal: Callee) -> tuple[Spec, ...]:
        results = results_of(primal)
        return tuple(results[index] for index in self.sources) * self.order

    def _callee(
        self, primal: Callee, specs: tuple[Spec, ...], parts: tuple[Spec, ...]
    ) -> DerivativeCallee:
        made = super()._callee(primal, specs, parts)
        assert isinstance(made, TangentCallee)
        made.order = self.order
        return made


@dataclass(eq=False)
class Jacobian(Derivative):
    """The derivative of each element of each of `sources` by each element of each of `wrt`.

    A Jacobian has the axes of the result, then those of the parameter, and the parameter's element type.
    """

    mode: Mode = "auto"
    callee_class = JacobianCallee

    def results(self, primal: Callee) -> tuple[Spec, ...]:
        found = results_of(primal)
        parts: list[Spec] = []
        for source in self.sources:
            for index in self.wrt:
                result, parameter = found[source], primal.parameters[index]
                assert isinstance(result, TensorSpec) and isinstance(parameter, TensorSpec)
                parts.append(TensorSpec(result.rank + parameter.rank, parameter.dtype))
        return tuple(parts)

    def _callee(
        self, primal: Callee, specs: tuple[Spec, ...], parts: tuple[Spec, ...]
    ) -> DerivativeCallee:
        made = super()._callee(primal, specs, parts)
        assert isinstance(made, JacobianCallee)
        made.mode = self.mode
        return made


def first_shapes(shapes: Shapes | None, specs: Sequence[Spec]) -> Shapes | None:
    """Of the shapes of all arguments those of the first ones, which are of these types."""
    return None if shapes is None else shapes[: sum(len(leaves(spec)) for spec in specs)]


def finished_callee(of: Stageable, specs: tuple[Spec, ...], shapes: Shapes | None = None) -> Callee:
    """What is differentiated, for arguments of these types, and of these shapes if it needs them.

    Raises: UnsupportedError for a function that is being staged.
    """
    callee = of.callee(specs, shapes)
    if is_unfinished(callee):
        raise unsupported_error(
            f"{callee.name} uses its own derivative, which is not supported",
            "differentiate another function, or this one outside of it",
        )
    return callee


def results_of(callee: Callee) -> tuple[Spec, ...]:
    """The types of what it returns: those of a tuple, else the one."""
    result = callee.result
    return result.elements if isinstance(result, TupleSpec) else (result,)


def _data_index(primal: Callee, index: int) -> int:
    """The number of a parameter in the IR, where parameters that are functions do not exist."""
    return index - sum(isinstance(spec, FunctionSpec) for spec in primal.parameters[:index])
