"""Specialization of the rules of derivatives: functions of their own, which the function they are of names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.errors import ShapeError
from ..core.ir import CustomRules, Function
from ..core.types import TupleType, Type
from .explanation import shown
from .expression import Callee, Trace, TracedRules
from .location import with_location


def add_rules(
    function: Function,
    trace: Trace,
    rules: TracedRules,
    specialize: Callable[[Callee, tuple[Type, ...]], Function],
) -> None:
    """Give `function`, which is `trace` for certain shapes, its rules for these.

    Raises: ShapeError when one returns a derivative of another shape.
    """
    types, result = function.type.parameters, function.type.result
    names: dict[str, str] = {}
    if rules.jvp is not None:
        made = specialize(rules.jvp, (*types, *types))
        _check(made, rules.jvp, "tangent of the result", [result], [made.type.result], trace)
        names["jvp"] = made.name
    given = types
    if rules.saving is not None:
        saving = specialize(rules.saving, types)
        returned, saved = _elements(saving.type.result)
        _check(saving, rules.saving, "result", [result], [returned], trace)
        names["saving"], given = saving.name, (saved,)
    if rules.vjp is not None:
        made = specialize(rules.vjp, (*given, result))
        cotangents = _elements(made.type.result)
        _check(made, rules.vjp, "cotangents of the arguments", types, cotangents, trace)
        names["vjp"] = made.name
    function.rules = CustomRules(**names, location=trace.location)


def _elements(type: Type) -> tuple[Type, ...]:
    assert isinstance(type, TupleType)
    return type.elements


def _check(
    made: Function,
    rule: Callee,
    what: str,
    wanted: Sequence[Type],
    found: Sequence[Type],
    trace: Trace,
) -> None:
    if list(wanted) != list(found):
        given, like = (", ".join(map(shown, types)) for types in (found, wanted))
        verb = "are" if what.endswith("s") else "is"
        raise with_location(
            ShapeError(
                f"{rule.name} returns {given} for the {what} of {trace.name}, which {verb} {like}"
            ),
            rule.location or made.location,
        )
