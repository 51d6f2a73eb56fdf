"""Gradients of staged functions, which are staged functions again.

`gradient(of=f, wrt=…)` only declares: the IR has `[gradient @f wrt …]`, and differentiation fills it.  Forms
of `wrt` that the declaration does not know (a field, a selector) become a small staged function around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .callables import StagedFunction, check_staged
from .core.ir import SavePolicy
from .derivative_checks import check_callee, check_promised, check_results, checked_policy
from .staging.derivatives import Derivative, Gradient
from .staging.expression import Callee
from .staging.primitive import differentiation_error
from .staging.rep import Rep
from .staging.spec import as_tuple, is_tuple
from .static_parameters import passing_statics
from .wrappers import wrapper_of
from .wrt import (
    ParameterPath,
    are_indices,
    check_indices,
    check_places,
    chosen_parameters,
    follow,
    indices_of,
)


@passing_statics
def gradient(
    *,
    of: StagedFunction,
    wrt: Any,
    from_: int = 0,
    seedable: bool = False,
    keeping: Sequence[int] = (),
    save: Any = "auto",
) -> StagedFunction:
    """The derivatives of `of` with respect to the parameters `wrt`, then its results `keeping`.

    `wrt` is an index, a tuple of indices, a field `Params.w` of the first parameter, or a selector
    `lambda x, w, b: (b, w)`.  Names of parameters, `"w"`, run as well, but checkers know none.
    `from_` picks the result to differentiate.  With `seedable` the function
    takes a further argument, the seed; without, the seed is ones (so for a tensor: the gradient of its sum).
    One index gives one derivative, a tuple of indices a tuple.
    `save` says what is kept of the forward pass for the backward one: "all" that derivatives use, "none" of it, so
    that all is computed again, or so many bytes at most; "auto" leaves it to the compiler.  The bits are the same.
    Raises: DifferentiationError for an index out of range or given twice, or a parameter without floats, and when
        compiled for a budget that is less than has to be saved.
    """
    check_staged(of, "gradient")
    kept, policy = indices_of(keeping, "keeping"), checked_policy(save)
    chosen = chosen_parameters(of, wrt)
    if not are_indices(chosen):
        return _selected(of, chosen, from_, seedable, kept, save=policy)
    if not is_tuple(chosen):
        return _declared(of, (chosen,), from_, seedable, kept, save=policy)
    inner = _declared(of, chosen, from_, seedable, kept, save=policy)
    return _tuple_of_one(inner) if len(chosen) + len(kept) == 1 else inner


@passing_statics
def gradient_dynamic(
    *,
    of: StagedFunction,
    wrt: Sequence[int],
    from_: int = 0,
    seedable: bool = False,
    keeping: Sequence[int] = (),
    save: Any = "auto",
) -> StagedFunction:
    """`gradient` for indices that the type checker cannot follow; the result is always a tuple."""
    indices = indices_of(wrt, "wrt")
    return gradient(of=of, wrt=indices, from_=from_, seedable=seedable, keeping=keeping, save=save)


@passing_statics
def value_and_gradient(*, of: StagedFunction, wrt: Any, save: Any = "auto") -> StagedFunction:
    """`(value, gradient)` of a function with a scalar result; the forward pass runs once.

    `save` is that of `gradient`.
    Raises: DifferentiationError when the result is not a scalar.
    """
    check_staged(of, "value_and_gradient")
    policy, chosen = checked_policy(save), chosen_parameters(of, wrt)
    single, what = not is_tuple(chosen), "value_and_gradient"
    if not are_indices(chosen):
        inner = _selected(of, chosen, 0, False, (0,), scalar=what, save=policy)
    else:
        inner = _declared(of, as_tuple(chosen), 0, False, (0,), scalar=what, save=policy)
    return wrapper_of(inner, _value_first(inner, single))


def _declared(
    of: StagedFunction,
    wrt: tuple[int, ...],
    from_: Any,
    seedable: bool,
    keeping: tuple[Any, ...],
    *,
    scalar: str = "",
    save: SavePolicy | None = None,
) -> StagedFunction:
    names = of.stageable.parameter_names
    check_indices(of.stageable.name, wrt, len(names), names)
    check_results(from_, keeping)

    def check(callee: Callee, request: Derivative) -> None:
        check_callee(callee, request, scalar)

    name = f"{of.stageable.name}_grad"
    made = Gradient(of.stageable, wrt, (from_,), name, check, keeping, seedable=seedable, save=save)
    check_promised(made, of)
    return StagedFunction(made)


def _selected(
    of: StagedFunction,
    chosen: Any,
    from_: int,
    seedable: bool,
    keeping: tuple[int, ...],
    *,
    scalar: str = "",
    save: SavePolicy | None = None,
) -> StagedFunction:
    """The gradient with respect to what a selector returned, in its order."""
    places: list[ParameterPath] = []
    for place in as_tuple(chosen):
        assert isinstance(place, ParameterPath)
        places.append(place)
        if places.count(place) > 1:
            raise differentiation_error("the selector names a parameter twice")
    indices: tuple[int, ...] = tuple(sorted({place.index for place in places}))
    check_places(of, places)
    inner = _declared(of, indices, from_, seedable, keeping, scalar=scalar, save=save)
    position = {index: k for k, index in enumerate(indices)}

    def pick(*arguments: Rep) -> Any:
        results = _results(inner(*arguments), len(indices) + len(keeping))
        picked = [follow(results[position[place.index]], place.path) for place in places]
        kept = results[len(indices) :]
        if is_tuple(chosen) or kept:
            return (*picked, *kept)
        return picked[0]

    return wrapper_of(inner, pick)


def _results(rep: Rep, count: int) -> tuple[Rep, ...]:
    return rep.unpack() if count > 1 else (rep,)


def _value_first(inner: StagedFunction, single: bool) -> Callable[..., Any]:
    """`(value, derivative)`, or `(value, (derivatives…))` of a gradient that keeps its value."""

    def both(*arguments: Rep) -> Any:
        *derivatives, value = inner(*arguments).unpack()
        return value, derivatives[0] if single else tuple(derivatives)

    return both


def _tuple_of_one(inner: StagedFunction) -> StagedFunction:
    return wrapper_of(inner, lambda *arguments: (inner(*arguments),))
