"""What a staged function does besides computing: checks that stop the program, and output while it runs.

Both are done once, in the order in which they are staged, whether anything else uses their values or not.  Derivatives
pass through them: they are done as values are computed forward, and not again on the way back.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any, Final, cast

from .core.errors import CheckError
from .core.ops.effects import Check, Print, written_literally
from .core.types import BOOL, F64, I64, DType
from .reps import const
from .staging.aggregates import part_of
from .staging.carry import with_article
from .staging.expression import Expression, SideEffect
from .staging.extents import Condition, Extent, SymbolicNumber
from .staging.primitive import dtype_error, literal, located, rank_error, staging_error
from .staging.rep import Rep
from .staging.spec import StructSpec, TensorSpec, TupleSpec
from .staging.tracing import current_trace, keep, make

_NOTHING = TupleSpec(())


def check(condition: Any, message: Any, /) -> None:
    """Stop the program with a `CheckError` that says `message`, unless `condition` is true when this runs.

    In a staged function the condition is a boolean scalar, and the error names the line of the check.
    Raises: CheckError at once for a Python bool that is false; RankError or DTypeError for another Rep.
    """
    if not isinstance(message, str):
        raise staging_error(f"check takes a message, a str, not a {type(message).__name__}")
    if isinstance(condition, bool):
        if not condition:
            raise located(CheckError(message))
        return
    asked = const(condition).expression
    spec = asked.type
    if not isinstance(spec, TensorSpec) or spec.dtype is not BOOL:
        raise dtype_error(
            f"check decides by a boolean scalar, not by {with_article(spec.words)}",
            "compare, for example `x > 0.0`",
        )
    if spec.rank:
        raise rank_error(
            f"check decides by a boolean scalar, not by {with_article(spec.words)}",
            "reduce it, `.all()` or `.any()`",
        )
    _emit("check", Check(message), [asked])


def print(*values: Any, sep: str = " ", end: str = "\n") -> None:
    """Write values to `sys.stdout` when this runs, as Python's `print` does: Reps, and what is known already.

    What is no Rep and no size is written as it is when the function is staged.  Outside of staged functions it is
    Python's `print`.
    Raises: whatever `sys.stdout.write` does, out of the call of the function.
    """
    if not any(isinstance(value, Rep) for value in values) and current_trace() is None:
        builtins.print(*values, sep=sep, end=end)
        return
    operands: list[Expression] = []
    shown = [_template(value, operands) for value in values]
    _emit("print", Print(written_literally(sep).join(shown) + written_literally(end)), operands)


def _emit(what: str, op: Check | Print, operands: list[Expression]) -> None:
    if current_trace() is None:
        raise staging_error(
            f"{what} of a Rep stands in a staged function: outside of one it would never run",
            "stage a function around it, with @nk.staged",
        )
    keep(make(SideEffect(op), operands, _NOTHING))


def _template(value: object, operands: list[Expression]) -> str:
    """How a value is written; what is only known later joins the `operands`."""
    if isinstance(value, SymbolicNumber):
        dtype = _DTYPES.get(type(value), F64)
        operands.append(literal(value, dtype))
        return "{}"
    if isinstance(value, tuple):
        items = cast(tuple[object, ...], value)
        if any(isinstance(one, SymbolicNumber) for one in items):
            return _tuple([_template(one, operands) for one in items])
        return written_literally(str(items))
    if not isinstance(value, Rep):
        return written_literally(str(value))
    if value.is_function:
        return written_literally(repr(value))
    return _template_of(value.expression, operands)


_DTYPES: Final[Mapping[type[SymbolicNumber], DType]] = {Extent: I64, Condition: BOOL}
"""Of what is computed of sizes; all else is f64."""


def _tuple(parts: list[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _template_of(x: Expression, operands: list[Expression]) -> str:
    match x.type:
        case TupleSpec(elements):
            parts = [_template_of(part_of(x, k, one), operands) for k, one in enumerate(elements)]
            return _tuple(parts)
        case StructSpec(cls, fields):
            parts = [
                f"{name}={_template_of(part_of(x, k, one), operands)}"
                for k, (name, one) in enumerate(fields)
            ]
            return f"{cls.__name__}({', '.join(parts)})"
        case _:
            operands.append(x)
            return "{}"
