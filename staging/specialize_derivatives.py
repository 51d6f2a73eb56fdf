"""What specialisation knows of derivatives: what they are of, how the IR declares them, and what they are given."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.analysis.derivatives import derivative_type
from ..core.errors import ShapeError
from ..core.ir import GradientOf, TangentOf, Value
from ..core.types import FunctionType, Type, one_or_tuple
from .explanation import difference
from .expression import Callee, DerivativeCallee, GradientCallee, JacobianCallee, TangentCallee
from .spec import FunctionSpec
from .specialize_jacobian import jacobian_types


def primal_and_types(
    callee: DerivativeCallee, types: tuple[Type, ...]
) -> tuple[Callee, tuple[Type, ...]]:
    """What is differentiated, and what of `types` it takes."""
    assert callee.primal is not None
    return callee.primal, types[: len(types) - callee.given]


def derivative_declaration(callee: DerivativeCallee, primal: str) -> GradientOf | TangentOf:
    """What the IR says of a gradient or tangent of the function that is called `primal` there."""
    if isinstance(callee, TangentCallee):
        return TangentOf(primal, callee.sources, callee.wrt, callee.keeping, order=callee.order)
    save = callee.save if isinstance(callee, GradientCallee) else None
    return GradientOf(primal, callee.sources, callee.wrt, callee.keeping, bool(callee.given), save)


def derivative_result(callee: DerivativeCallee, primal: FunctionType) -> Type:
    """What `callee`, a derivative of a function of type `primal`, returns."""
    if isinstance(callee, JacobianCallee):
        return one_or_tuple(jacobian_types(callee, primal))
    return derivative_type(primal, derivative_declaration(callee, callee.name)).result


def check_given(callee: DerivativeCallee, wanted: Sequence[Type], types: Sequence[Type]) -> None:
    """Raises: ShapeError when a seed or tangent is not of the shape of what it belongs to."""
    for position in range(callee.given):
        one, other = (given[position - callee.given] for given in (wanted, types))
        if one == other:
            continue
        assert callee.primal is not None
        first, second, field = difference(one, other)
        if isinstance(callee, TangentCallee):
            like = f"{_parameter_name(callee.primal, callee.wrt[position])}{field}"
            what = f"the tangent d{like} of {callee.name}"
        elif callee.given == 1:
            like, what = "the result", f"the seed of {callee.name}"
        else:
            like = f"result {callee.sources[position] if callee.sources else 0}"
            what = f"the seed of {callee.name} for {like}"
        if field and not isinstance(callee, TangentCallee):
            like = f"{field} of {like}"
        raise ShapeError(f"{what} is {first}, like {like}, not {second}")


def _parameter_name(callee: Callee, index: int) -> str:
    """The name of a parameter by its number in the IR, where those that are functions do not exist."""
    names = [
        name
        for name, spec in zip(callee.parameter_names, callee.parameters, strict=True)
        if not isinstance(spec, FunctionSpec)
    ]
    return names[index]


def given_last(callee: Callee, operands: list[Value]) -> list[Value]:
    """A derivative's captures belong to its primal, so they stand before the seeds or tangents."""
    if not isinstance(callee, DerivativeCallee) or not callee.given or not callee.captures:
        return operands
    end = len(operands) - len(callee.captures)
    start = end - callee.given
    return [*operands[:start], *operands[end:], *operands[start:end]]
