"""The named dimensions of a traced function in a call of it: checked, and known of a result that is not there yet."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.errors import ShapeError
from ..core.types import Type
from .expression import Trace
from .spec import FunctionSpec
from .staged_functions import PythonFunction, with_definition


def check_dimensions(trace: Trace, types: Sequence[Type], result: Type | None = None) -> None:
    """Raises: ShapeError when a named dimension of the function has two sizes in a call with `types`."""
    function = trace.origin
    if not isinstance(function, PythonFunction) or function.dimensions is None:
        return
    try:
        function.dimensions.check(_given(trace, types), result, function.name)
    except ShapeError as error:
        raise with_definition(error, function) from None


def named_result_shapes(trace: Trace, types: Sequence[Type]) -> list[tuple[int, ...]] | None:
    """The shapes of what a function returns in a call with `types`, as far as its named dimensions say so."""
    function = trace.origin
    if not isinstance(function, PythonFunction) or function.dimensions is None:
        return None
    return function.dimensions.result_shapes(_given(trace, types))


def _given(trace: Trace, types: Sequence[Type]) -> list[Type | None]:
    """The types of the arguments, None for functions."""
    rest = iter(types)
    return [None if isinstance(one, FunctionSpec) else next(rest) for one in trace.parameters]
