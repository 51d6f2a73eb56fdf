"""The types that annotations declare of staged functions and of their gradients."""

from __future__ import annotations

from .staging.spec import Spec, TupleSpec
from .staging.staged_functions import Gradient, PythonFunction, Stageable


def declared_of(stageable: Stageable) -> tuple[Spec | None, ...]:
    """What is promised of the parameters, before any argument is seen."""
    if isinstance(stageable, PythonFunction):
        return stageable.declared
    if isinstance(stageable, Gradient):
        inner = declared_of(stageable.of)
        return (*inner, declared_seed(stageable)) if stageable.seedable else inner
    return (None,) * len(stageable.parameter_names)


def declared_result(stageable: Stageable) -> Spec | None:
    """What is promised of the result."""
    if isinstance(stageable, PythonFunction):
        return stageable.declared_result
    return None


def declared_seed(gradient: Gradient) -> Spec | None:
    """What is promised of the seed: the type of the result that is differentiated."""
    result = declared_result(gradient.of)
    elements = result.elements if isinstance(result, TupleSpec) else (result,)
    source = gradient.source or 0
    return elements[source] if source < len(elements) else None
