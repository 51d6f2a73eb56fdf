"""Gradients of staged functions, which are staged functions again.

`gradient(of=f, wrt=…)` only declares: the IR has `[gradient @f wrt …]`, and differentiation fills it.  Forms
of `wrt` that the declaration does not know (a field, a selector) become a small staged function around it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .callables import StagedFunction, check_staged
from .core.types import F32
from .declared_types import declared_result
from .staging.expression import Callee
from .staging.primitive import differentiation_error
from .staging.rep import Rep
from .staging.spec import Spec, StructSpec, TensorSpec, TupleSpec, as_tuple, is_tuple, leaves
from .staging.staged_functions import Gradient, PythonFunction
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
    check_staged(of, "gradient")
    kept = _indices(keeping, "keeping")
    chosen = _chosen(of, wrt)
    if not _are_indices(chosen):
        return _selected(of, chosen, from_, seedable, kept)
    if not is_tuple(chosen):
        return _declared(of, (chosen,), from_, seedable, kept)
    inner = _declared(of, chosen, from_, seedable, kept)
    return _tuple_of_one(inner) if len(chosen) + len(kept) == 1 else inner


def gradient_dynamic(
    *,
    of: StagedFunction,
    wrt: Sequence[int],
    from_: int = 0,
    seedable: bool = False,
    keeping: Sequence[int] = (),
) -> StagedFunction:
    """`gradient` for indices that the type checker cannot follow; the result is always a tuple."""
    indices = _indices(wrt, "wrt")
    return gradient(of=of, wrt=indices, from_=from_, seedable=seedable, keeping=keeping)


def value_and_gradient(*, of: StagedFunction, wrt: Any) -> StagedFunction:
    """`(value, gradient)` of a function with a scalar result; the forward pass runs once.

    Raises: DifferentiationError when the result is not a scalar.
    """
    check_staged(of, "value_and_gradient")
    chosen = _chosen(of, wrt)
    single = not is_tuple(chosen)
    if not _are_indices(chosen):
        inner = _selected(of, chosen, 0, False, (0,), scalar=True)
    else:
        inner = _declared(of, as_tuple(chosen), 0, False, (0,), scalar=True)
    return _wrapped(inner, _value_first(inner, single))


def _chosen(of: StagedFunction, wrt: Any) -> Any:
    """The parameters that `wrt` selects: an index, a path, or a tuple of these."""
    if isinstance(wrt, Lens):
        return _path_of_lens(of, wrt)
    if isinstance(wrt, StagedFunction) or not callable(wrt):
        return wrt if isinstance(wrt, int) or is_tuple(wrt) else _indices(wrt, "wrt")
    names = of.stageable.parameter_names
    places = [ParameterPath(index, (), spec) for index, spec in enumerate(of.declared)]
    try:
        inspect.signature(wrt).bind(*places)
    except TypeError:
        raise differentiation_error(
            f"the selector takes other arguments than {of.stageable.name}: it gets "
            f"{len(names)} ({', '.join(names)})"
        ) from None
    found = wrt(*places)
    for place in as_tuple(found):
        if not isinstance(place, ParameterPath):
            raise differentiation_error(
                f"the selector returns {place!r}: it picks parameters or their fields"
            )
    return _indices(found, "wrt") if isinstance(found, list) else found


def _are_indices(chosen: Any) -> bool:
    return not any(isinstance(one, ParameterPath) for one in as_tuple(chosen))


def _indices(given: Any, what: str) -> tuple[int, ...]:
    """A sequence of indices as a tuple."""
    if hasattr(given, "__len__") and not isinstance(given, str | Rep):
        return tuple(given)
    raise differentiation_error(
        f"{what} is a tuple of indices, not {given!r}",
        f"{what}=(0,)" if what == "keeping" else "an index, a tuple of them, a field or a selector",
    )


def _path_of_lens(of: StagedFunction, lens: Lens) -> ParameterPath:
    """The field of the first parameter."""
    names = of.stageable.parameter_names
    if not names:
        raise differentiation_error(f"{of.stageable.name} has no parameters to differentiate")
    first = of.declared[0]
    if not isinstance(first, StructSpec) or not issubclass(first.cls, lens.owner):
        held = f"a {first.words}" if first else "of no declared type"
        raise differentiation_error(
            f"wrt={lens!r} is a field of parameter 0, and {names[0]} of {of.stageable.name} is {held}",
            f"declare it, {names[0]}: Rep[{lens.owner.__name__}], or use a selector",
        )
    return ParameterPath(0, (lens.name,), first.find(lens.name))


@dataclass(frozen=True)
class ParameterPath:
    """A parameter, or the path to a field inside of it, as `wrt` selects it."""

    index: int
    path: tuple[str, ...]
    spec: Spec | None

    def __getattr__(self, name: str) -> ParameterPath:
        if not isinstance(self.spec, StructSpec) or self.spec.find(name) is None:
            held = f"a {self.spec.words}" if self.spec else "of no declared type"
            raise differentiation_error(
                f"the selector asks parameter {self.index} for the field {name!r}, and it is {held}"
            )
        return ParameterPath(self.index, (*self.path, name), self.spec.find(name))


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
    _check_results(from_, keeping)

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
    _check_promised(made, of, scalar)
    return StagedFunction(made)


def _check_promised(request: Gradient, of: StagedFunction, scalar: bool) -> None:
    """The same check as later, already now, of what the annotations say."""
    result = declared_result(of.stageable)
    if result is not None:
        anything = TensorSpec(0, F32)
        parameters = tuple(spec or anything for spec in of.declared)
        names = of.stageable.parameter_names
        promised = Callee(of.stageable.name, parameters, result, parameter_names=names)
        _check_callee(promised, request, scalar)


def _check_results(from_: Any, keeping: tuple[Any, ...]) -> None:
    for what, index in (("from_", from_), *(("keeping", index) for index in keeping)):
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            raise differentiation_error(
                f"{what}={index!r} is no index of a result: they count from 0"
            )
    if len(set(keeping)) != len(keeping):
        raise differentiation_error(f"keeping={keeping} names a result twice")


def _check_indices(name: str, wrt: tuple[Any, ...], count: int, names: Sequence[str]) -> None:
    if not wrt:
        raise differentiation_error(f"wrt is empty: name at least one parameter of {name}")
    for index in wrt:
        if isinstance(index, bool) or not isinstance(index, int):
            raise differentiation_error(
                f"wrt holds {index!r}: it takes indices of parameters of {name}"
            )
        if not 0 <= index < count:
            shown = ", ".join(f"{k} {parameter}" for k, parameter in enumerate(names))
            raise differentiation_error(
                f"wrt={index} is out of range: {name} has {count} parameter{'s' * (count != 1)}"
                f"{f' ({shown})' * bool(shown)}"
            )
    if len(set(wrt)) != len(wrt):
        raise differentiation_error(f"wrt={wrt} names a parameter of {name} twice")


def _check_callee(callee: Callee, request: Gradient, scalar: bool) -> None:
    """What can only be checked once the types of the arguments and results are known."""
    several = isinstance(callee.result, TupleSpec)
    results = callee.result.elements if isinstance(callee.result, TupleSpec) else (callee.result,)
    name, source = callee.name, request.source or 0
    for what, index in (("from_", source), *(("keeping", index) for index in request.keeping)):
        if index >= len(results):
            raise differentiation_error(
                f"{what}={index} is out of range: {name} has {len(results)} "
                f"result{'s' * (len(results) != 1)}"
            )
    found = results[source]
    if not _has_floats(found):
        raise differentiation_error(
            f"result {source} of {name} is a {found.words}: only floats have derivatives",
            "cast it to a float type inside the function",
        )
    if scalar and (several or not isinstance(found, TensorSpec) or found.rank):
        raise differentiation_error(
            f"value_and_gradient needs a scalar result and {name} returns a {callee.result.words}",
            "reduce it, for example `.sum()` or `.mean()`",
        )
    for index in request.wrt:
        if not _has_floats(callee.parameters[index]):
            parameter = callee.parameter_names[index] if callee.parameter_names else str(index)
            raise differentiation_error(
                f"parameter {parameter} of {name} is a {callee.parameters[index].words}: only "
                "floats have derivatives",
                "leave it out of wrt, or cast it to a float type inside the function",
            )


def _has_floats(spec: Spec) -> bool:
    return any(leaf.dtype.is_float for leaf in leaves(spec))


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
    places: list[ParameterPath] = []
    for place in as_tuple(chosen):
        assert isinstance(place, ParameterPath)
        places.append(place)
        if places.count(place) > 1:
            raise differentiation_error("the selector names a parameter twice")
    indices: tuple[int, ...] = tuple(sorted({place.index for place in places}))
    _check_places(of, places)
    inner = _declared(of, indices, from_, seedable, keeping, scalar=scalar)
    position = {index: k for k, index in enumerate(indices)}

    def pick(*arguments: Rep) -> Any:
        results = _results(inner(*arguments), len(indices) + len(keeping))
        picked = [_follow(results[position[place.index]], place.path) for place in places]
        kept = results[len(indices) :]
        if is_tuple(chosen) or kept:
            return (*picked, *kept)
        return picked[0]

    return _wrapped(inner, pick)


def _check_places(of: StagedFunction, places: Sequence[ParameterPath]) -> None:
    """A struct may have floats, and the chosen field none."""
    for place in places:
        if place.path and place.spec is not None and not _has_floats(place.spec):
            name = ".".join((of.stageable.parameter_names[place.index], *place.path))
            raise differentiation_error(
                f"{name} of {of.stageable.name} is a {place.spec.words}: only floats have derivatives",
                "leave it out of wrt",
            )


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
        PythonFunction(function, stageable.name, stageable.parameter_names, inner.declared, None)
    )
