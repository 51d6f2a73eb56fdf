"""Between concrete values and what the compiler knows of them.

A value is a tree of tensors: a tensor, a struct, or a tuple of values.  A call asks three things of it:
1. `concrete` makes it what compiled code reads: arrays become tensors, numbers scalars.
2. `signature_of` is a key that two values share exactly if the same code fits both.
3. `spec_of` and `shapes_of` say what staging and specialisation need to know; only a new key asks.
"""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Hashable
from typing import Any, get_args, get_origin

import numpy as np

from .arrays import is_storage
from .core import types
from .core.errors import DTypeError, NNKitError, RankError, ShapeError
from .core.lazy_dataclass import dataclass
from .staging import primitive
from .staging.carry import kind, with_article
from .staging.expression import Expression, MakeAggregate
from .staging.number_help import typed_number
from .staging.primitive import MAX_RANK, is_index
from .staging.rep import Rep
from .staging.spec import (
    CallableSpec,
    SequenceSpec,
    Spec,
    StructSpec,
    TensorSpec,
    TupleSpec,
    as_tuple,
    dtype_words,
    is_sequence,
    is_tuple,
)
from .staging.staged_functions import is_function
from .staging.static import LANGUAGE
from .staging.tracing import make
from .struct_fields import declared_type as declared_type
from .struct_fields import several
from .structs import Struct, assemble, fields
from .tensors import DTYPES, RANKED, AnyTensor, DType, wrap


@dataclass(frozen=True)
class ArraySpec:
    """Stands for an array of this shape and element type where only those matter."""

    shape: tuple[int, ...]
    dtype: type[DType]

    def __repr__(self) -> str:
        return f"spec({self.shape}, {self.dtype.__name__})"


def spec(shape: Any, dtype: Any, /) -> ArraySpec:
    """An argument for `f.ir`, `f.compile` and the like: no data, only shape and element type.

    Raises: ShapeError, RankError or DTypeError for what no tensor can have.

    >>> from nnkit import f32
    >>> spec((1, 784), f32)
    spec((1, 784), f32)
    """
    given = as_tuple(shape)
    if not all(map(is_index, given)):
        raise ShapeError(f"a shape is a tuple of ints, not {shape!r}")
    extents = tuple(map(int, given))
    if len(extents) > MAX_RANK:
        raise RankError(f"tensors have at most {MAX_RANK} axes, not {len(extents)}")
    if dtype not in DTYPES.values():
        raise DTypeError(f"an element type is one of {LANGUAGE}, not {dtype!r}")
    types.TensorType(extents, dtype.core)  # refuses negative and impossible extents
    return ArraySpec(extents, dtype)


def concrete(value: Any, declared: Spec | None, place: str, specs: bool = False) -> Any:
    """`value` in the form that compiled code reads; `place` names it in messages.

    Numbers take the declared element type, arrays must have it.  With `specs` an `ArraySpec` may stand for
    an array.
    What is in that form already is returned itself.
    Raises: RankError, DTypeError for what is no tensor, or another one than declared.
    """
    if isinstance(value, AnyTensor):
        return _sound(value, place)
    if isinstance(value, Struct):
        parts = [concrete(part, None, place) for part in value._fields]
        changed = any(map(operator.is_not, parts, value._fields))
        return assemble(type(value), parts) if changed else value
    if isinstance(value, ArraySpec) and specs:
        return value
    if is_sequence(value) and isinstance(declared, SequenceSpec):
        value = tuple(value)
    if is_tuple(value) and not isinstance(declared, TensorSpec):
        unknown = declared.element if isinstance(declared, SequenceSpec) else None
        inner = declared.elements if isinstance(declared, TupleSpec) else (unknown,) * len(value)
        if len(inner) != len(value):
            raise DTypeError(
                f"{place} must be a tuple of {len(inner)} values, and has {len(value)}"
            )
        paired = zip(value, inner, strict=True)
        elements = tuple(concrete(one, want, place, specs) for one, want in paired)
        changed = type(value) is not tuple or any(map(operator.is_not, elements, value))
        return elements if changed else value
    wanted = declared if isinstance(declared, TensorSpec) else None
    if isinstance(value, bool | int | float) and not (wanted is None and is_arraylike(value)):
        return _scalar(value, wanted, declared, place)
    return _tensor(value, wanted, declared, place)


def signature_of(value: Any) -> Hashable:
    """What decides which code fits: shapes, element types, classes of structs."""
    if isinstance(value, AnyTensor):
        array = value._array
        return array.shape, array.dtype.char
    if isinstance(value, Struct):
        return (type(value), *map(signature_of, value._fields))
    if is_tuple(value):
        return (tuple, *map(signature_of, value))
    return value.shape, value.dtype.core.storage.char


def spec_of(value: Any) -> Spec:
    """Its staging-time type."""
    if isinstance(value, Struct):
        named = zip(fields(type(value)), value._fields, strict=True)
        return StructSpec(type(value), tuple((lens.name, spec_of(part)) for lens, part in named))
    if is_tuple(value):
        return TupleSpec(tuple(map(spec_of, value)))
    return TensorSpec(len(value.shape), value.dtype.core)


def shapes_of(value: Any) -> list[tuple[int, ...]]:
    """The shapes of its tensors, from left to right."""
    inside: Any = value._fields if isinstance(value, Struct) else value
    if is_tuple(inside):
        return [shape for part in inside for shape in shapes_of(part)]
    return [inside.shape]


def tensor_from(array: Any, place: str) -> AnyTensor:
    """The tensor around an array (or what NumPy can read as one) of the language's element types.

    Raises: RankError, DTypeError when no tensor can hold it.
    """
    rank = array.ndim if hasattr(array, "ndim") else np.asarray(array).ndim
    if rank > MAX_RANK:
        raise RankError(f"{place} has rank {rank}: tensors have at most {MAX_RANK} axes")
    try:
        return RANKED[rank](array, copy=False)
    except NNKitError as error:
        raise type(error)(f"{place}: {error}") from None


def constant_expression(value: Any) -> Expression:
    """A concrete value (as `concrete` gives it) as a constant; the data is copied."""
    if isinstance(value, AnyTensor):
        stored = np.array(value._array, order="C")
        return primitive.array_constant(value.dtype.core, stored)
    inside = value._fields if isinstance(value, Struct) else value
    parts = [constant_expression(part) for part in inside]
    made = spec_of(value)
    assert isinstance(made, StructSpec | TupleSpec)
    return make(MakeAggregate(made), parts, made)


def is_arraylike(value: object) -> bool:
    """Whether NumPy can read it as an array with an element type of its own."""
    return hasattr(value, "__array__") and not isinstance(value, type)


def _sound(tensor: AnyTensor, place: str) -> AnyTensor:
    """The tensor, made anew when it is of a class of the user's or its array has been changed.

    Raises: RankError, DTypeError when the array became one that no tensor can hold.
    """
    array = tensor._array
    if array.ndim <= MAX_RANK and type(tensor) is RANKED[array.ndim] and is_storage(array):
        return tensor
    if array.ndim <= MAX_RANK and is_storage(array):
        return wrap(array)  # of bf16, too, whose bits are uint16
    return tensor_from(array, place)


def _scalar(
    number: float, wanted: TensorSpec | None, declared: Spec | None, place: str
) -> AnyTensor:
    if wanted is None or wanted.rank:
        shown = with_article(declared.words) if declared else "a tensor, a struct or an array"
        raise DTypeError(
            f"{place} must be {shown}, and is the Python number {number!r}, which has no element type of "
            f"its own\n  help: {typed_number(number, wanted, staged=False)}"
        )
    number = number if type(number) in (bool, int) else float(number)  # np.float64 is a float
    if type(number) is float and wanted.dtype in _EXACTLY and not math.fabs(number) > _ORDINARY:
        return wrap(np.array(number, wanted.dtype.storage))
    try:
        return RANKED[0](number, DTYPES[wanted.dtype])
    except NNKitError as error:
        raise type(error)(f"{place}: {error}") from None


_EXACTLY = (types.F32, types.F64)
_ORDINARY = 1e38
"""Up to here no float is out of range of an f32, of which the largest is 3.4e38."""


def _tensor(value: Any, wanted: TensorSpec | None, declared: Spec | None, place: str) -> AnyTensor:
    if isinstance(value, ArraySpec):
        raise DTypeError(
            f"{place} is {value}, which has no data\n"
            "  help: f.compile, f.ir, f.llvm and f.asm take specs"
        )
    if (
        isinstance(value, Rep)
        or not is_arraylike(value)
        or (declared is not None and wanted is None)
    ):
        shown = with_article(declared.words) if declared else "a tensor, a struct or an array"
        help = _wrapped(value, declared)
        raise DTypeError(
            f"{place} must be {shown}, and is {_described(value)}"
            + (f"\n  help: {help}" if help else "")
        )
    if wanted is None:
        return tensor_from(value, place)
    rank = np.ndim(value)
    if wanted.rank != rank:
        raise RankError(
            f"{place} must be a {wanted.words}, and is an array of shape {list(np.shape(value))}"
        )
    try:
        return RANKED[rank](value, DTYPES[wanted.dtype], copy=False)
    except NNKitError as error:
        raise type(error)(f"{place}: {error}") from None


def _described(value: object) -> str:
    if isinstance(value, Rep):
        return "a Rep: concrete values are needed here"
    return kind(value)


def _wrapped(value: object, declared: Spec | None) -> str:
    """How to make of a value what is wanted."""
    if value is None:
        return "data is given in every call: write another function for calls without it"
    if isinstance(declared, CallableSpec) or (declared is None and is_function(value)):
        taken = declared.parameters if isinstance(declared, CallableSpec) else (None,)
        types = ", ".join(map(_annotation, taken))
        return f"make it one with nk.fn({types})(lambda ...)" if is_function(value) else ""
    if isinstance(value, Rep):
        return "call the function itself: it stages a call for Reps"
    if isinstance(value, dict):
        return "several tensors are a Struct, `class P(Struct): w: Field[Tensor2D[f32]]`"
    if isinstance(declared, StructSpec):
        return f"make one, {declared.words}(...)"
    if isinstance(declared, TensorSpec):
        return f"wrap it, Tensor{declared.rank}D(value, {dtype_words(declared.dtype)})"
    return "wrap it, for example Tensor2D([[0.0, 1.0]], f32)" if declared is None else ""


def _annotation(spec: Spec | None) -> str:
    """A type as one writes it."""
    if isinstance(spec, TensorSpec) and not spec.rank:
        return f"Scalar[{dtype_words(spec.dtype)}]"
    return "..." if spec is None else spec.words


def annotated(annotation: Any) -> Spec | None:
    """What `Rep[...]` in a signature promises; None when it leaves rank or element type open."""
    if isinstance(get_origin(annotation), type) and issubclass(get_origin(annotation), Rep):
        return declared_type(get_args(annotation)[0])
    if get_origin(annotation) is tuple:
        return several([annotated(part) for part in get_args(annotation)])
    return None


class _Converted(threading.local):
    """Whether a call of this thread is on its way with arguments that were converted."""

    now: bool = False


CONVERTED = _Converted()
