"""Resolves derivative declarations against their primal: defaults, checks, and the derivative's type.

[gradient @f from 1 wrt 2, 0 keeping 0 seedable]
parameters: those of f, then the seed (of the type of result 1)
results:    the derivatives in the order of `wrt`, then the kept results; one alone is not a tuple, unless
            the declaration writes it as a tuple of one
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import DifferentiationError
from ..ir import Function, GradientOf, TangentOf
from ..ops.leaves import leaves_of
from ..types import FunctionType, TensorType, TupleType, Type, one_or_tuple, written
from .leaves import elements, tensors_in


@dataclass(frozen=True)
class GradientRequest:
    """A declaration with every default filled in: positions of results and parameters."""

    source: int
    wrt: tuple[int, ...]
    keeping: tuple[int, ...]
    seedable: bool


def gradient_type(
    primal: FunctionType, declaration: GradientOf, names: Sequence[str | None] | None = None
) -> FunctionType:
    """The type of the gradient that `declaration` declares of a function of type `primal`.

    `names` are the primal's parameters, for messages.
    Raises: DifferentiationError as `resolve` does.
    """
    request = resolve(primal, declaration, names)
    results = elements(primal.result)
    derivatives = tuple(primal.parameters[index] for index in request.wrt)
    kept = tuple(results[index] for index in request.keeping)
    seed = (results[request.source],) if request.seedable else ()
    return FunctionType((*primal.parameters, *seed), one_or_tuple((*derivatives, *kept)))


@dataclass(frozen=True)
class TangentRequest:
    """A tangent declaration with every default filled in: positions of results and parameters."""

    sources: tuple[int, ...]
    wrt: tuple[int, ...]
    keeping: tuple[int, ...]


def tangent_type(primal: FunctionType, declaration: TangentOf) -> FunctionType:
    """The type of the tangent that `declaration` declares of a function of type `primal`.

    Parameters: those of the primal, then the tangents of `wrt`.  Results: the tangents of the primal's results,
    or of the one that `from` names, then the kept results; one alone is not a tuple.
    Raises: DifferentiationError as `resolve_tangent` does.
    """
    request = resolve_tangent(primal, declaration)
    results = elements(primal.result)
    moving = tuple(primal.parameters[index] for index in request.wrt)
    found = tuple(results[index] for index in (*request.sources, *request.keeping))
    return FunctionType((*primal.parameters, *moving), one_or_tuple(found))


def resolve_tangent(primal: FunctionType, declaration: TangentOf) -> TangentRequest:
    """The declaration with its defaults filled in.

    Raises: DifferentiationError for an index out of range, a duplicate, nothing to differentiate, or a
        parameter or result without float elements.
    """
    results = elements(primal.result)
    wrt = declaration.wrt
    if wrt is None:
        wrt = tuple(range(len(primal.parameters)))
    if declaration.source is not None or len(results) == 1:
        sources: tuple[int, ...] = (_source(primal, declaration),)
    else:
        sources = tuple(index for index, type in enumerate(results) if has_float(type))
        if not sources:
            raise DifferentiationError(
                f"{written('@', declaration.primal)} has {_count(len(results), 'result')}, none of them with floats: "
                "only floats have a tangent"
            )
    _check_wrt(primal, declaration.primal, wrt, None)
    _check_keeping(primal, declaration)
    return TangentRequest(sources, wrt, declaration.keeping)


def derivative_type(
    primal: FunctionType, function: Function, names: Sequence[str | None] | None = None
) -> FunctionType:
    """The type of `function`, a derivative that is declared of one of type `primal`, as it should be.

    That is the declared type if it is right.  One result may be declared by itself or as a tuple of one; what
    is computed then is what is declared.
    Raises: DifferentiationError as `resolve` and `resolve_tangent` do.
    """
    declaration = function.declaration
    assert isinstance(declaration, GradientOf | TangentOf)
    if isinstance(declaration, GradientOf):
        request: GradientRequest | TangentRequest = resolve(primal, declaration, names)
        plain = gradient_type(primal, declaration, names)
        count = len(request.wrt) + len(request.keeping)
    else:
        request = resolve_tangent(primal, declaration)
        plain = tangent_type(primal, declaration)
        count = len(request.sources) + len(request.keeping)
    in_tuple = FunctionType(plain.parameters, TupleType((plain.result,)))
    return in_tuple if count == 1 and function.type == in_tuple else plain


def resolve(
    primal: FunctionType, declaration: GradientOf, names: Sequence[str | None] | None = None
) -> GradientRequest:
    """The declaration with its defaults filled in.

    Raises: DifferentiationError for an index out of range, a duplicate, nothing to differentiate, a
        parameter or result without float elements, or several results of which none is named.
    """
    source = _source(primal, declaration)
    wrt = declaration.wrt
    if wrt is None:
        wrt = tuple(range(len(primal.parameters)))
    _check_wrt(primal, declaration.primal, wrt, names)
    _check_keeping(primal, declaration)
    return GradientRequest(source, wrt, declaration.keeping, declaration.seedable)


def _source(primal: FunctionType, declaration: GradientOf | TangentOf) -> int:
    results = elements(primal.result)
    name = declaration.primal
    if not results:
        raise DifferentiationError(f"{written('@', name)} returns nothing, so it has no gradient")
    if declaration.source is None and len(results) > 1:
        raise DifferentiationError(
            f"the declaration names no result: {written('@', name)} has {len(results)} results, {_choice(results)}"
        )
    source = declaration.source or 0
    if not 0 <= source < len(results):
        raise DifferentiationError(
            f"from {source} is out of range: {written('@', name)} has {_count(len(results), 'result')}"
        )
    if not has_float(results[source]):
        raise DifferentiationError(
            f"result {source} of {written('@', name)} is {describe(results[source])}: only floats have a gradient"
        )
    return source


def _choice(results: Sequence[Type]) -> str:
    """Which results can be named, in words."""
    found = [f"from {index}" for index, type in enumerate(results) if has_float(type)]
    if not found:
        return "none of them with floats: only floats have a gradient"
    if len(found) > 3:
        return f"say {found[0]}, {found[1]}, … or {found[-1]}"
    return f"say {' or '.join(found)}"


def _check_wrt(
    primal: FunctionType, name: str, wrt: tuple[int, ...], names: Sequence[str | None] | None
) -> None:
    count = len(primal.parameters)
    if not wrt:
        raise DifferentiationError(
            f"wrt of the gradient of {written('@', name)} is empty: name at least one parameter"
        )
    for position, index in enumerate(wrt):
        if not 0 <= index < count:
            raise DifferentiationError(
                f"wrt {index} is out of range: {written('@', name)} has {_count(count, 'parameter')}"
            )
        label = f"{index} ({names[index]})" if names and names[index] else str(index)
        if index in wrt[:position]:
            raise DifferentiationError(f"wrt of {written('@', name)} names parameter {label} twice")
        if not has_float(primal.parameters[index]):
            raise DifferentiationError(
                f"parameter {label} of {written('@', name)} is {describe(primal.parameters[index])}: only floats "
                f"have a gradient, leave it out of wrt"
            )


def _check_keeping(primal: FunctionType, declaration: GradientOf | TangentOf) -> None:
    count = len(elements(primal.result))
    for position, index in enumerate(declaration.keeping):
        if not 0 <= index < count:
            raise DifferentiationError(
                f"keeping {index} is out of range: {written('@', declaration.primal)} has {_count(count, 'result')}"
            )
        if index in declaration.keeping[:position]:
            raise DifferentiationError(
                f"keeping of {written('@', declaration.primal)} names result {index} twice"
            )


def has_float(type: Type) -> bool:
    """Whether any tensor inside `type` has float elements."""
    return any(tensor.dtype.is_float for tensor in tensors_in(type))


def describe(type: Type) -> str:
    """As users read it: `i32[3]`, or `$State (#step: i64, #done: bool)`."""
    if isinstance(type, TensorType):
        return type.words
    leaves = [(leaf, leaf.type) for leaf in leaves_of(type)]
    tensors = [(leaf, of) for leaf, of in leaves if isinstance(of, TensorType)]
    inside = ", ".join(f"{leaf}: {of.words}" for leaf, of in tensors)
    head = "a tuple" if isinstance(type, TupleType) else str(type)
    return f"{head} ({inside})" if inside else f"{head} without tensors"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
