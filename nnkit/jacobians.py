"""Jacobians and Hessians as tensors."""

from __future__ import annotations

from typing import Any, get_args

from .callables import StagedFunction, check_staged
from .derivative_checks import (
    check_callee,
    check_promised,
    check_results,
    check_tensors,
)
from .staging.derivatives import Derivative, Gradient, Jacobian
from .staging.expression import Callee, Mode
from .staging.primitive import differentiation_error
from .staging.rep import Rep
from .static_parameters import passing_statics
from .wrappers import wrapper_of
from .wrt import Selection, select


@passing_statics
def jacobian(
    of: StagedFunction, *, wrt: Any = 0, from_: int = 0, mode: Mode = "auto"
) -> StagedFunction:
    """The derivative of each element of a result by each element of the parameters `wrt`.

    A Jacobian has the axes of the result, then those of the parameter, and the parameter's element type.  One index
    gives one Jacobian, a tuple of indices a tuple.  `from_` picks the result.  `mode="auto"` is forward unless the
    parameters have more elements than the result.
    Raises: DifferentiationError for an index out of range or given twice, what is no tensor of floats, or another mode;
    RankError when a Jacobian would have more than five axes.

    Shapes: x (n…), f(x) (m…) → (m…, n…).
    """
    check_staged(of, "jacobian")
    selection = select(of, wrt)
    check_results(from_)
    if mode not in get_args(Mode):
        raise differentiation_error(
            f"there is no mode {mode!r}; the modes are {', '.join(get_args(Mode))}"
        )

    def check(callee: Callee, request: Derivative) -> None:
        check_callee(callee, request)
        check_tensors(callee, request, "Jacobian")

    inner, name = selection.of, f"{of.stageable.name}_jacobian"
    made = Jacobian(inner.stageable, selection.indices, (from_,), name, check, mode=mode)
    check_promised(made, inner)
    return _as_selected(of, selection, StagedFunction(made), 1)


@passing_statics
def hessian(of: StagedFunction, *, wrt: Any = 0, from_: int = 0) -> StagedFunction:
    """The second derivatives of a scalar result by each two elements of the parameters `wrt`: forward over reverse.

    A Hessian has the axes of the parameter twice.  A tuple of indices gives a tuple of tuples: the derivatives by the
    first parameter and each of them, then by the second, and so on.  `from_` picks the result.
    Raises: DifferentiationError for an index out of range or given twice, a parameter that is no tensor of floats, or
    when the result is not a scalar; RankError when a Hessian would have more than five axes.

    Shapes: x (n…), f(x) () → (n…, n…).
    """
    check_staged(of, "hessian")
    selection = select(of, wrt)
    check_results(from_)

    def check(callee: Callee, request: Derivative) -> None:
        check_callee(callee, request, "hessian")
        check_tensors(callee, request, "Hessian", order=2)

    inner, name = selection.of, of.stageable.name
    slope = Gradient(inner.stageable, selection.indices, (from_,), f"{name}_grad", check)
    check_promised(slope, inner)
    sources = tuple(range(len(selection.indices)))
    made = Jacobian(
        slope, selection.indices, sources, f"{name}_hessian", check_callee, mode="forward"
    )
    return _as_selected(of, selection, StagedFunction(made), 2)


def _as_selected(
    of: StagedFunction, selection: Selection, inner: StagedFunction, order: int
) -> StagedFunction:
    """`inner` with the parameters of `of`, and its results in tuples as `wrt` has them."""
    count = len(selection.indices)
    if not selection.places and (selection.single or (order == 1 and count > 1)):
        return inner

    def arranged(*arguments: Rep) -> Any:
        found = inner(*selection.arguments(arguments))
        if selection.single:
            return found
        parts = found.unpack() if count > 1 else (found,)
        if order == 1:
            return parts
        return tuple(parts[k * count : (k + 1) * count] for k in range(count))

    return wrapper_of(of, arranged, inner.stageable.name)
