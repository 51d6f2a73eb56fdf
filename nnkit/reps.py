"""What makes Reps of concrete values and of parts, and values of Reps."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from . import missing_names
from .compile import Specialization
from .conversion import concrete, constant_expression, declared_type, tensor_from
from .core.errors import NNKitError, StagingError
from .core.types import BOOL
from .generic_structs import bound_by, substituted
from .staging.aggregates import aggregate_of
from .staging.carry import with_article
from .staging.expression import Expression, MakeAggregate, Trace
from .staging.extents import Condition, SymbolicNumber
from .staging.number_help import typed_number
from .staging.primitive import dtype_error, literal, located, staging_error
from .staging.rep import Rep
from .staging.rep_base import (
    RepBase,
    constant_of,
    function_of,
    help_for_missing,
    is_number,
    value_of,
)
from .staging.spec import Spec, StructSpec, TensorSpec, TupleSpec, difference, fits, is_tuple
from .staging.staged_functions import mismatch
from .staging.tracing import make
from .struct_fields import Binding
from .structs import Struct, fields
from .unstaged import check_is_staged


@constant_of.register
def _constant_of(value: object) -> Expression:
    """A tensor, array or struct, copied so that later writes do not matter."""
    try:
        if isinstance(value, Struct):
            return constant_expression(concrete(value, None, "a constant"))
        return constant_expression(tensor_from(value, "a constant"))
    except NNKitError as error:
        raise located(error) from None


@value_of.register
def _value_of(trace: Trace) -> Any:
    return Specialization(trace, (), ()).compiled(_no_arguments, "eval").call()


@help_for_missing.register
def _help_for_missing(rep: RepBase, name: str) -> str:
    return missing_names.of_rep(name, dir(type(rep)))


@function_of.register
def _function_of(_: RepBase, name: str) -> Any:
    """Found when it is used: functions are made of Reps."""
    assert __package__ is not None
    return getattr(sys.modules[__package__], name)


def _no_arguments(*_: object) -> NoReturn:
    raise StagingError("a value is evaluated without arguments")


def const(value: Any, /) -> Rep:
    """A concrete value as a staged one: a tensor, an array, a struct or a tuple of them.

    The data is copied.  Raises: DTypeError for a Python number, which has no element type of its own.
    """
    if isinstance(value, Rep):
        return Rep(value.expression)
    return const_beside(value, None, "a constant")


def const_beside(value: Any, declared: Spec | None, place: str) -> Rep:
    """`const` for an argument, `place` in words, whose declared element type a Python number takes."""
    if isinstance(value, SymbolicNumber):
        wanted = TensorSpec(0, BOOL) if isinstance(value, Condition) else declared
        if isinstance(wanted, TensorSpec) and not wanted.rank:
            return Rep(literal(value, wanted.dtype))
        help = typed_number(value, declared)
        raise dtype_error(f"{place} is a size, {value}, which has no element type of its own", help)
    if is_tuple(value) and has_reps(value):
        raise dtype_error(
            f"{place} is a Python tuple of Reps, where one Rep is wanted",
            "`tup(a, b)` makes one Rep of them",
        )
    try:
        return Rep(constant_expression(concrete(value, declared, place)))
    except NNKitError as error:
        raise located(error) from None


def has_reps(value: object) -> bool:
    """Whether it is a Rep, or a tuple with one in it."""
    return isinstance(value, Rep) or (is_tuple(value) and any(map(has_reps, value)))


def as_rep(x: Any) -> Rep:
    """x as a Rep: what is concrete becomes a constant, in staged functions.

    Raises: StagingError for data where nothing is staged, which names the function to decorate.
    """
    if isinstance(x, Rep):
        return x
    check_is_staged(x)
    return const(x)


def operands_of(verb: str, x: Any, y: Any) -> tuple[Rep, Rep]:
    """Two tensors, or a tensor and a Python number on either side, as Reps."""
    if is_number(x) and is_number(y):
        raise dtype_error(f"cannot {verb} two Python numbers: one must be a tensor")
    known = as_rep(y if is_number(x) else x)
    return Rep(known.lift(x, verb)), Rep(known.lift(y, verb))


def tup(*reps: Any) -> Rep:
    """Several staged values as one.  Raises: StagingError for none."""
    if not reps:
        raise staging_error("tup takes at least one value")
    parts = [const(rep).expression for rep in reps]
    spec = TupleSpec(tuple(part.type for part in parts))
    return Rep(make(MakeAggregate(spec), parts, spec))


def build(cls: type[Struct], /, *bindings: Any) -> Rep:
    """A staged struct of its fields: `build(Params, Params.w << w, Params.b << b)`.

    Raises: StagingError when a field is missing or given twice.
    """
    names = [lens.name for lens in fields(cls)]
    given: dict[str, Expression] = {}
    for binding in bindings:
        if not isinstance(binding, Binding):
            raise staging_error(
                f"build takes fields with their values, not a {type(binding).__name__}",
                f"for example {cls.__name__}.{names[0] if names else 'field'} << value",
            )
        name = binding.lens.name
        if not issubclass(cls, binding.lens.owner) or name not in names:
            raise staging_error(
                f"{binding.lens!r} is not a field of {cls.__name__}",
                f"its fields are {', '.join(names)}",
            )
        if name in given:
            raise staging_error(f"field {name} of {cls.__name__} is given twice")
        given[name] = _field_value(cls, binding)
    missing = [name for name in names if name not in given]
    if missing:
        raise staging_error(f"field {', '.join(missing)} of {cls.__name__} is missing")
    parts = [given[name] for name in names]
    check_fields(cls, parts)
    spec = StructSpec(cls, tuple((name, given[name].type) for name in names))
    return Rep(make(MakeAggregate(spec), parts, spec))


def _field_value(cls: type[Struct], binding: Binding) -> Expression:
    """The value as an expression; a list or tuple of values is that of a sequence."""
    try:
        return aggregate_of(binding.value, declared_type(binding.lens.type))
    except NNKitError as error:
        error.add_note(f"  note: it is given for field {binding.lens.name} of {cls.__name__}")
        raise


def check_fields(cls: type[Struct], parts: Sequence[Expression]) -> None:
    known: dict[Any, Any] = {}
    for lens, part in zip(fields(cls), parts, strict=True):
        bound_by(lens.type, part.type, known)
    for lens, part in zip(fields(cls), parts, strict=True):
        name, wanted = lens.name, declared_type(substituted(lens.type, known))
        if wanted is not None and not fits(wanted, part.type):
            error = mismatch(wanted, part.type)
            raise located(
                error(
                    f"field {name} of {cls.__name__} must be {with_article(wanted.words)}, and is "
                    f"{difference(wanted, part.type)}"
                )
            )
