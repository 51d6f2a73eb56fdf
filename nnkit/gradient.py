"""Gradients of staged functions, which are staged functions again.

`gradient(of=f, wrt=…)` only declares: the IR has `[gradient @f wrt …]`, and differentiation fills it.  Forms
of `wrt` that the declaration does not know (a field, a selector) become a small staged function around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .callables import Rep, StagedFunction, declared_of
from .core.errors import DifferentiationError, StagingError
from .staging.expression import Callee
from .staging.lambdas import Gradient, Lambda
from .staging.spec import Spec, StructSpec, TensorSpec, TupleSpec, as_tuple, leaves
from .structs import Lens


def gradient(
    *,
    of: StagedFunction,
    wrt: Any,
    from_: int = 0,
    seedable: bool = False,
    keeping: Sequence[int] = (),
) -> StagedFunction:
    """The derivatives of `of` with respect to the parameters `wrt`, then its results `keeping`.

    `wrt` is an index, a tuple of indices, a field `Params.w` of the first parameter, or a selector
    `lambda x, w, b: (b, w)`.  `from_` picks the result to differentiate.  With `seedable` the function
    takes a further argument, the seed; without, the seed is ones (so for a tensor: the gradient of its sum).
    One index gives one derivative, a tuple of indices a tuple.
    Raises: DifferentiationError for an index out of range or given twice, or a parameter without floats.
    """
    _check_staged(of, "gradient")
    if isinstance(wrt, Lens):
        first = _place(of, 0)
        return _selected(of, getattr(first, wrt.name), from_, seedable, tuple(keeping))
    if callable(wrt) and not isinstance(wrt, int):
        return _selected(of, wrt(*_places(of)), from_, seedable, tuple(keeping))
    if isinstance(wrt, int):
        return _declared(of, (wrt,), from_, seedable, tuple(keeping))
    inner = _declared(of, tuple(wrt), from_, seedable, tuple(keeping))
    return _tuple_of_one(inner) if len(tuple(wrt)) + len(tuple(keeping)) == 1 else inner


def gradient_dynamic(
    *,
    of: StagedFunction,
    wrt: Sequence[int],
    from_: int = 0,
    seedable: bool = False,
    keeping: Sequence[int] = (),
) -> StagedFunction:
    """`gradient` for indices that the type checker cannot follow; the result is always a tuple."""
    return gradient(of=of, wrt=tuple(wrt), from_=from_, seedable=seedable, keeping=keeping)


def value_and_gradient(*, of: StagedFunction, wrt: Any) -> StagedFunction:
    """`(value, gradient)` of a function with a scalar result; the forward pass runs once.

    Raises: DifferentiationError when the result is not a scalar.
    """
    _check_staged(of, "value_and_gradient")
    single = isinstance(wrt, int)
    if callable(wrt) and not single:
        chosen = wrt(*_places(of))
        inner = _selected(of, chosen, 0, False, (0,), scalar=True)
        return _wrapped(inner, _value_first(inner, isinstance(chosen, Place)))
    indices = (wrt,) if single else tuple(wrt)
    inner = _declared(of, indices, 0, False, (0,), scalar=True)
    return _wrapped(inner, _value_first(inner, single))


@dataclass(frozen=True)
class Place:
    """A parameter, or a field inside it, as a selector sees it."""

    index: int
    path: tuple[str, ...]
    spec: Spec | None

    def __getattr__(self, name: str) -> Place:
        if not isinstance(self.spec, StructSpec) or self.spec.field(name) is None:
            raise DifferentiationError(
                f"the selector asks parameter {self.index} for {name!r}, which it has not"
            )
        return Place(self.index, (*self.path, name), self.spec.field(name))


def _declared(
    of: StagedFunction,
    wrt: tuple[int, ...],
    from_: Any,
    seedable: bool,
    keeping: tuple[Any, ...],
    *,
    scalar: bool = False,
) -> StagedFunction:
    names = of.stageable.parameter_names
    _check_indices(of.stageable.name, wrt, len(names), names)
    if (
        not isinstance(from_, int)
        or from_ < 0
        or any(not isinstance(k, int) or k < 0 for k in keeping)
    ):
        raise DifferentiationError(
            f"from_={from_} and keeping={keeping} are indices of results, from 0"
        )
    if len(set(keeping)) != len(keeping):
        raise DifferentiationError(f"keeping={keeping} names a result twice")

    def check(callee: Callee, request: Gradient) -> None:
        _check_callee(callee, request, scalar)

    made = Gradient(
        of.stageable,
        wrt,
        from_,
        keeping,
        seedable,
        f"{of.stageable.name}_grad",
        (*names, "seed") if seedable else names,
        check,
    )
    return StagedFunction(made)


def _check_staged(of: object, what: str) -> None:
    if not isinstance(of, StagedFunction):
        raise StagingError(
            f"{what} takes a staged function, not a {type(of).__name__}\n  help: `@staged`"
        )


def _check_indices(name: str, wrt: tuple[Any, ...], count: int, names: Sequence[str]) -> None:
    if not wrt:
        raise DifferentiationError(f"wrt is empty: name at least one parameter of {name}")
    for index in wrt:
        if isinstance(index, bool) or not isinstance(index, int):
            raise DifferentiationError(
                f"wrt holds {index!r}: it takes indices of parameters of {name}"
            )
        if not 0 <= index < count:
            shown = ", ".join(f"{k} {parameter}" for k, parameter in enumerate(names))
            raise DifferentiationError(
                f"wrt={index} is out of range: {name} has {count} parameter{'s' * (count != 1)} ({shown})"
            )
    if len(set(wrt)) != len(wrt):
        raise DifferentiationError(f"wrt={wrt} names a parameter of {name} twice")


def _check_callee(callee: Callee, request: Gradient, scalar: bool) -> None:
    """What can only be checked once the types of the arguments are known."""
    several = isinstance(callee.result, TupleSpec)
    results = callee.result.elements if isinstance(callee.result, TupleSpec) else (callee.result,)
    name = callee.name
    for index in (request.source or 0, *request.keeping):
        if index >= len(results):
            what = "from_" if index == request.source else "keeping"
            raise DifferentiationError(
                f"{what}={index} is out of range: {name} has {len(results)} result{'s' * (len(results) != 1)}"
            )
    source = results[request.source or 0]
    if not _has_floats(source):
        raise DifferentiationError(
            f"result {request.source or 0} of {name} is a {source.words}: only floats have derivatives"
        )
    if scalar and (several or not isinstance(source, TensorSpec) or source.rank):
        raise DifferentiationError(
            f"value_and_gradient needs a scalar result and {name} returns a {callee.result.words}\n"
            "  help: reduce it, for example `.sum()` or `.mean()`"
        )
    for index in request.wrt:
        if not _has_floats(callee.parameters[index]):
            parameter = callee.parameter_names[index] if callee.parameter_names else str(index)
            raise DifferentiationError(
                f"parameter {parameter} of {name} is a {callee.parameters[index].words}: only floats have "
                "derivatives\n  help: leave it out of wrt, or cast it to a float type inside"
            )


def _has_floats(spec: Spec) -> bool:
    return any(leaf.dtype.is_float for leaf in leaves(spec))


def _place(of: StagedFunction, index: int) -> Place:
    declared = declared_of(of.stageable)
    if not declared:
        raise DifferentiationError(f"{of.stageable.name} has no parameters to differentiate")
    return Place(index, (), declared[index])


def _places(of: StagedFunction) -> list[Place]:
    return [_place(of, index) for index in range(len(of.stageable.parameter_names))]


def _selected(
    of: StagedFunction,
    chosen: Any,
    from_: int,
    seedable: bool,
    keeping: tuple[int, ...],
    *,
    scalar: bool = False,
) -> StagedFunction:
    """The gradient with respect to what a selector returned, in its order."""
    places: list[Place] = []
    for place in as_tuple(chosen):
        if isinstance(place, Place):
            places.append(place)
        else:
            raise DifferentiationError(
                f"the selector returns {place!r}: it picks parameters or their fields"
            )
    if len(set(places)) != len(places):
        raise DifferentiationError("the selector names a parameter twice")
    indices: tuple[int, ...] = tuple(sorted({place.index for place in places}))
    inner = _declared(of, indices, from_, seedable, keeping, scalar=scalar)
    position = {index: k for k, index in enumerate(indices)}

    def pick(*arguments: Rep) -> Any:
        results = _results(inner(*arguments), len(indices) + len(keeping))
        picked = [_follow(results[position[place.index]], place.path) for place in places]
        kept = results[len(indices) :]
        if isinstance(chosen, tuple) or kept:
            return (*picked, *kept)
        return picked[0]

    return _wrapped(inner, pick)


def _follow(rep: Rep, path: tuple[str, ...]) -> Rep:
    for name in path:
        assert isinstance(rep.spec, StructSpec)
        lens = getattr(rep.spec.cls, name)
        rep = rep[lens]
    return rep


def _results(rep: Rep, count: int) -> tuple[Rep, ...]:
    return rep.unpack() if count > 1 else (rep,)


def _value_first(inner: StagedFunction, single: bool) -> Callable[..., Any]:
    """`(value, derivative)`, or `(value, (derivatives…))` of a gradient that keeps its value."""

    def both(*arguments: Rep) -> Any:
        *derivatives, value = inner(*arguments).unpack()
        return value, derivatives[0] if single else tuple(derivatives)

    return both


def _tuple_of_one(inner: StagedFunction) -> StagedFunction:
    return _wrapped(inner, lambda *arguments: (inner(*arguments),))


def _wrapped(inner: StagedFunction, function: Callable[..., Any]) -> StagedFunction:
    """A staged function of the parameters of `inner`."""
    stageable = inner.stageable
    return StagedFunction(
        Lambda(
            function, stageable.name, stageable.parameter_names, declared_of(stageable), None, Rep
        )
    )
