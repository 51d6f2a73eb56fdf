"""Staged functions some of whose parameters are functions, or that return functions, as functions of data alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .declared_types import declared_result
from .introspection import parameters_of
from .staging.primitive import staging_error
from .staging.rep import Rep
from .staging.spec import FunctionSpec, Spec
from .staging.staged_functions import PythonFunction, Stageable


def with_functions(
    function: Callable[..., Any],
    stageable: Stageable,
    declared: Sequence[Spec | None],
    fixed: Sequence[FunctionSpec | None],
) -> PythonFunction:
    """`function` of those parameters alone for which no function is `fixed`."""
    free = [number for number, one in enumerate(fixed) if one is None]

    def partly(*data: Any) -> Any:
        rest = iter(data)
        return function(*(next(rest) if one is None else one.function for one in fixed))

    return PythonFunction(
        partly,
        stageable.name,
        tuple(stageable.parameter_names[number] for number in free),
        tuple(declared[number] for number in free),
        declared_result(stageable),
        stageable.location,
        is_wrapper=True,
    )


def with_rest(
    function: Callable[..., Any],
    stageable: Stageable,
    declared: Sequence[Spec | None],
    names: Sequence[str],
) -> PythonFunction:
    """`function` of its own parameters and those of the function it returns, which are `names`."""
    first = len(stageable.parameter_names)

    def whole(*values: Any) -> Any:
        return function(*values[:first])(*values[first:])

    return PythonFunction(
        whole,
        stageable.name,
        (*stageable.parameter_names, *names),
        (*declared, *(None,) * len(names)),
        None,
        stageable.location,
        is_wrapper=True,
    )


def rest_names(stageable: Stageable, returned: Any) -> Sequence[str]:
    """The parameters of the function that `stageable` returns.  Raises: StagingError for a derivative."""
    if not isinstance(stageable, PythonFunction):
        raise staging_error(
            f"{stageable.name} returns staged functions: only a function of tensors, structs "
            "and tuples has derivatives",
            "differentiate the function that is returned",
        )
    return (
        returned.stageable.parameter_names if isinstance(returned, Rep) else parameters_of(returned)
    )
