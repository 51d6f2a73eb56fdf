"""The values of one function with the derivatives of another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .callables import StagedFunction, check_staged
from .core.ops import StraightThrough
from .declared_types import declared_result
from .derivative_checks import has_floats
from .rep_leaves import leaf_reps, with_leaves
from .staging.primitive import elementwise, staging_error
from .staging.rep import Rep
from .staging.staged_functions import PythonFunction, mismatch
from .static_parameters import passing_statics


def differentiate_as(like: StagedFunction, /) -> Callable[[StagedFunction], StagedFunction]:
    """Differentiate like `like`: a decorator that gives a staged function the derivatives of another one.

    The function that it returns has the values of the one, and the derivatives of the other, in both modes and of any
    order; the one is never differentiated, so what it is made of need not have derivatives.  Both take the same
    arguments and return the same type: a rounded number with the slope of what was rounded, say.
    Raises: StagingError when they take other arguments, DTypeError or RankError when they return other types.
    """
    check_staged(like, "differentiate_as")

    def decorate(of: StagedFunction, /) -> StagedFunction:
        check_staged(of, "differentiate_as")
        return _with_derivatives(of, like.with_common(of.statics.values if of.statics else {}))

    return passing_statics(decorate)


def _with_derivatives(of: StagedFunction, like: StagedFunction) -> StagedFunction:
    """`of`, with the derivatives of `like`."""
    one, other = of.stageable, like.stageable
    counts = [len(each.parameter_names) for each in (one, other)]
    if counts[0] != counts[1]:
        raise staging_error(
            f"{one.name} takes {counts[0]} argument{'s' * (counts[0] != 1)} and {other.name} {counts[1]}: a "
            "function is differentiated like one of the same arguments"
        )

    def both(*arguments: Any) -> Rep:
        value, differentiable = of(*arguments), like(*arguments)
        if value.spec != differentiable.spec:
            raise staging_error_of(value, differentiable)
        return _straight_through(value, differentiable)

    def staging_error_of(value: Rep, differentiable: Rep) -> Exception:
        return mismatch(value.spec, differentiable.spec)(
            f"{one.name} returns a {value.spec.words} and {other.name} a {differentiable.spec.words}: a function "
            "is differentiated like one of the same result"
        )

    return StagedFunction(
        PythonFunction(
            both,
            one.name,
            one.parameter_names,
            of.declared,
            declared_result(one),
            one.location,
            is_wrapper=True,
        )
    )


def _straight_through(value: Rep, like: Rep) -> Rep:
    """`value`, with the derivatives of `like`, which is of the same type."""
    leaves = [
        Rep(elementwise(StraightThrough(), one.expression, other.expression))
        if has_floats(one.spec)
        else one
        for one, other in zip(leaf_reps(value), leaf_reps(like), strict=True)
    ]
    return with_leaves(value.spec, leaves)
