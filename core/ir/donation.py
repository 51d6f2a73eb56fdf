"""Donated parameters, as attributes of functions: a result that may take over the buffer of a parameter.

    !donated_1_0    parameter 1 is donated to result 0

Callers of the compiled function may pass one buffer for both; where they pass two, it copies first.  XLA calls such
pairs input-output aliases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..types import TensorType
from .instruction import Value
from .module import Function

_DONATED = re.compile(r"donated_(0|[1-9]\d*)_(0|[1-9]\d*)")


def donation(parameter: int, result: int) -> str:
    """The attribute that donates a parameter to a result."""
    return f"donated_{parameter}_{result}"


def is_donation(attribute: str) -> bool:
    """Whether an attribute donates a parameter."""
    return _DONATED.fullmatch(attribute) is not None


def donations(attributes: Iterable[str]) -> Iterator[tuple[int, int]]:
    """The (parameter, result) that attributes donate."""
    for attribute in attributes:
        found = _DONATED.fullmatch(attribute)
        if found is not None:
            yield int(found[1]), int(found[2])


def donated_parameters(function: Function) -> list[Value | None]:
    """For each result the parameter that is donated to it; nothing where none is."""
    pairs = {result: parameter for parameter, result in donations(function.attributes)}
    if not pairs:
        return []
    return [
        function.parameters[pairs[number]] if number in pairs else None
        for number in range(len(function.type.results))
    ]


def without_donations(attributes: Iterable[str]) -> tuple[str, ...]:
    """The attributes that hold of functions with other parameters, too."""
    return tuple(attribute for attribute in attributes if not is_donation(attribute))


def donation_violations(function: Function) -> Iterator[str]:
    """What is wrong with donations: both are tensors of one type, and neither is in two of them."""
    parameters, results = function.type.parameters, function.type.results
    pairs = [*donations(function.attributes)]
    if pairs and not all(isinstance(type, TensorType) for type in (*parameters, *results)):
        yield "donates parameters, and not all it takes and returns are tensors"
        return
    for parameter, result in pairs:
        if parameter >= len(parameters) or result >= len(results):
            yield (
                f"donates parameter {parameter} to result {result}, and has {len(parameters)} parameters and "
                f"{len(results)} results"
            )
        elif parameters[parameter] != results[result]:
            yield f"donates a {parameters[parameter]} to a result of type {results[result]}"
    for place, what in enumerate(("parameter", "result")):
        numbers = [pair[place] for pair in pairs]
        for twice in sorted({number for number in numbers if numbers.count(number) > 1}):
            yield f"has {what} {twice} in two donations"
