"""The types that annotations declare of staged functions and of their derivatives."""

from __future__ import annotations

from .staging.batches import Batch, lifted_result, with_rank
from .staging.derivatives import Derivative, TangentMap
from .staging.expression import Callee
from .staging.halves import Half
from .staging.spec import Spec, TupleSpec, leaves
from .staging.staged_functions import PythonFunction, Stageable


def declared_of(stageable: Stageable) -> tuple[Spec | None, ...]:
    """What is promised of the parameters, before any argument is seen."""
    if isinstance(stageable, PythonFunction):
        return stageable.declared
    if isinstance(stageable, Half):
        return stageable.made.parameters
    if isinstance(stageable, Derivative):
        inner = declared_of(stageable.of)
        if isinstance(stageable, TangentMap):
            return (*inner, *(inner[index] for index in stageable.wrt))
        result = declared_result(stageable.of)
        if result is None:
            return (*inner, *(None for _ in stageable.given_names()))
        return (*inner, *stageable.given(Callee(stageable.of.name, (), result)))
    if isinstance(stageable, Batch):
        return tuple(
            spec if spec is None or axis is None or not leaves(spec) else with_rank(spec, 1)
            for spec, axis in zip(declared_of(stageable.of), stageable.in_axes, strict=True)
        )
    return (None,) * len(stageable.parameter_names)


def declared_result(stageable: Stageable) -> Spec | None:
    """What is promised of the result."""
    if isinstance(stageable, PythonFunction):
        return stageable.declared_result
    if isinstance(stageable, Half):
        return stageable.made.result
    if isinstance(stageable, Derivative):
        inner, parameters = declared_result(stageable.of), declared_of(stageable.of)
        known = tuple(spec for spec in parameters if spec is not None)
        if inner is not None and len(known) == len(parameters):
            parts = stageable.parts(Callee(stageable.of.name, known, inner))
            return parts[0] if len(parts) == 1 else TupleSpec(parts)
    if isinstance(stageable, Batch):
        inner = declared_result(stageable.of)
        return None if inner is None else lifted_result(inner, stageable.places(inner))
    return None
