"""The types of the IR: element types, tensors, aggregates, functions, and what lives in memory.

All are frozen values with structural equality, but for enums, which are equal by name: they may contain
themselves.  `str(type)` is the text form, which the parser in `core.text` reads back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cache, cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from .errors import DTypeError, ShapeError
from .lazy_dataclass import dataclass
from .round_to_odd import RealNumber, odd_double, odd_floats

Array: TypeAlias = npt.NDArray[Any]
Kind: TypeAlias = Literal["float", "integer", "boolean"]
Shape: TypeAlias = tuple[int, ...]

MAX_BYTES = 1 << 47
"""A tensor larger than the address space is refused when its type is made: that of a program on x86-64 has 47 bits."""

LETTER = r"(?:[^\W\d]|[^\x00-\x7f\s])"
WORD = rf"{LETTER}(?:[\w.]|[^\x00-\x7f\s])*"
"""What a name in the text form is without quotes, as a regular expression."""

_PLAIN = re.compile(WORD)
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"})


def quoted(text: str) -> str:
    """`text` as a string of the text form."""
    return f'"{text.translate(_ESCAPES)}"'


def written(sigil: str, name: str) -> str:
    """`name` as it stands in the text form: in quotes where it is not a word."""
    return f"{sigil}{name if _PLAIN.fullmatch(name) else quoted(name)}"


MAX_RANK = 64
"""As NumPy has it, in which the reference evaluator computes."""

MAX_ELEMENTS = 1 << 20
"""An array is taken apart into its elements, each a Python object of some 100 bytes; what is larger is a tensor, or
lies in memory."""


@dataclass(frozen=True)
class DType:
    """An element type.

    `numpy` is the type the reference evaluator computes in, `storage` the one in memory.  They differ
    for bf16 only, which NumPy lacks: it is computed in float32, rounded after every operation, and
    stored as uint16 bit patterns.  `digits` are the significant binary digits of a float, 0 of other types.
    """

    name: str
    kind: Kind
    bits: int
    numpy: np.dtype[Any]
    storage: np.dtype[Any]
    digits: int

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    @property
    def bytes(self) -> int:
        """Size of one element in memory."""
        return self.storage.itemsize

    @property
    def least_exponent(self) -> int:
        """Of a float type: its least normal number is 2 to this power."""
        return 2 - (1 << (self.bits - self.digits - 1))

    @property
    def normal_range(self) -> tuple[float, float]:
        """The least and the largest normal number of a float type."""
        largest = (2 - 2.0 ** (1 - self.digits)) * 2.0 ** (1 - self.least_exponent)
        return 2.0**self.least_exponent, largest

    @property
    def quiet_bit(self) -> int:
        """The bit that makes a NaN of a float type quiet; infinity has all bits above it set but the sign."""
        return 1 << (self.digits - 2)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind == "integer"

    @property
    def is_numeric(self) -> bool:
        return self.kind != "boolean"

    def load(self, stored: Array) -> Array:
        """Values to compute with, from memory."""
        if self.numpy == self.storage:
            return stored
        return (stored.astype(np.uint32) << 16).view(np.float32)

    def store(self, values: Array) -> Array:
        """Memory contents of values in any element type, rounded once, to nearest even.

        A NaN stays one, with its sign and what fits of its payload.
        """
        if self.numpy == self.storage:
            return self.round(values)
        floats = np.asarray(odd_floats(np.asarray(values)))
        bits = np.ascontiguousarray(floats).view(np.uint32).reshape(floats.shape)
        rounded = (bits + (0x7FFF + ((bits >> 16) & 1)).astype(np.uint32)) >> 16
        return np.where(np.isnan(floats), (bits >> 16) | 0x40, rounded).astype(np.uint16)

    def round(self, values: Array) -> Array:
        """The nearest values of this type, in the type the evaluator computes in; integers wrap around."""
        given = np.asarray(values)
        if self.numpy != self.storage:
            return self.load(self.store(given))
        return given.astype(self.numpy, copy=False)

    def nearest(self, number: RealNumber) -> Array:
        """A Python number in the type the evaluator computes in, of rank 0; of floats the nearest.

        Raises: OverflowError for an integer beyond all float64.
        """
        if not self.is_float:
            return np.asarray(number, self.numpy)
        with np.errstate(over="ignore"):
            return self.round(np.asarray(float(number) if self.bits == 64 else odd_double(number)))


def _dtype(name: str, kind: Kind, numpy: Any, storage: Any = None, digits: int = 0) -> DType:
    held = np.dtype(storage or numpy)
    return DType(name, kind, held.itemsize * 8, np.dtype(numpy), held, digits)


F16 = _dtype("f16", "float", np.float16, digits=11)
BF16 = _dtype("bf16", "float", np.float32, np.uint16, digits=8)
F32 = _dtype("f32", "float", np.float32, digits=24)
F64 = _dtype("f64", "float", np.float64, digits=53)
I8 = _dtype("i8", "integer", np.int8)
I16 = _dtype("i16", "integer", np.int16)
I32 = _dtype("i32", "integer", np.int32)
I64 = _dtype("i64", "integer", np.int64)
BOOL = _dtype("bool", "boolean", np.bool_)

DTYPES: dict[str, DType] = {d.name: d for d in (BOOL, I8, I16, I32, I64, F16, BF16, F32, F64)}


IntegerRange: TypeAlias = "tuple[int, int]"
"""The least and the greatest element of a tensor of integers, or of truth values, which are 0 and 1."""

KnownRanges: TypeAlias = "Sequence[IntegerRange | None]"
"""Those of operands, as far as they are known."""


class Type:
    """Base of all types of values."""


@dataclass(frozen=True)
class TensorType(Type):
    """A dense row-major tensor; `shape` counts elements per axis, `()` is a scalar."""

    shape: Shape
    dtype: DType

    def __post_init__(self) -> None:
        if min(self.shape, default=0) < 0:
            raise ShapeError(
                f"a tensor cannot have the shape {list(self.shape)}: an axis is negative"
            )
        if len(self.shape) > MAX_RANK:
            raise ShapeError(f"a tensor has at most {MAX_RANK} axes, not {len(self.shape)}")
        if self.spanned_bytes > MAX_BYTES:
            raise ShapeError(
                f"a tensor of shape {list(self.shape)} is larger than the address space"
            )

    def __str__(self) -> str:
        if not self.shape:
            return self.dtype.name
        return f"<{' x '.join(map(str, self.shape))} x {self.dtype}>"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Size in memory, in bytes."""
        return self.size * self.dtype.bytes

    @property
    def spanned_bytes(self) -> int:
        """As `bytes`; those of an empty tensor without its extents of 0, as it has strides, which NumPy counts."""
        return self.bytes or math.prod(extent or 1 for extent in self.shape) * self.dtype.bytes

    @property
    def words(self) -> str:
        """As users read it: `f32[2, 3]`."""
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    def with_shape(self, shape: Iterable[int]) -> TensorType:
        return TensorType(tuple(shape), self.dtype)

    def with_dtype(self, dtype: DType) -> TensorType:
        return TensorType(self.shape, dtype)


@dataclass(frozen=True)
class TupleType(Type):
    """A fixed sequence of values; `()` is the empty one, printed `void`."""

    elements: tuple[Type, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.elements))})" if self.elements else "void"


@dataclass(frozen=True)
class StructType(Type):
    """A nominal record; its definition is printed at the head of the module."""

    name: str
    fields: tuple[tuple[str, Type], ...]

    def __hash__(self) -> int:
        """Of the name: structs of structs would be walked through again and again."""
        return hash(self.name)

    def __str__(self) -> str:
        return written("$", self.name)

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """The position of each field."""
        return {name: position for position, (name, _) in enumerate(self.fields)}

    def index(self, key: str) -> int:
        """Position of field `key`; KeyError when there is none."""
        return self.positions[key]


@dataclass(frozen=True)
class FunctionType(Type):
    """Parameters and what is returned: a tuple is several results, or none."""

    parameters: tuple[Type, ...]
    result: Type

    @property
    def results(self) -> tuple[Type, ...]:
        """What a `return` has and a call gives, one by one."""
        return results_of(self.result)

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.parameters))}) -> {self.result}"


@dataclass(frozen=True)
class ArrayType(Type):
    """`count` values of one type, side by side."""

    count: int
    element: Type

    def __str__(self) -> str:
        return f"[{self.count} x {self.element}]"


@dataclass(frozen=True)
class EnumType(Type):
    """A tagged union; `cases` are names with the types that a value of the case carries.

    It may contain itself, so it is made by name and gets its cases by `define`; equality is that of names.
    """

    name: str
    cases: tuple[tuple[str, tuple[Type, ...]], ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        return written("$", self.name)

    def define(self, cases: Iterable[tuple[str, tuple[Type, ...]]]) -> None:
        """Give the enum its cases; once, before anything looks at them."""
        object.__setattr__(self, "cases", tuple(cases))

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """The position of each case."""
        return {name: position for position, (name, _) in enumerate(self.cases)}

    def index(self, case: str) -> int:
        """Position of `case`; KeyError when there is none."""
        return self.positions[case]

    def carried(self, case: str) -> tuple[Type, ...]:
        """What a value of `case` carries; KeyError when there is no such case."""
        return self.cases[self.index(case)][1]


@dataclass(frozen=True)
class OpaqueType(Type):
    """A type of which only the name is known; its values can be passed on and nothing else."""

    name: str

    def __str__(self) -> str:
        return written("$", self.name)


@dataclass(frozen=True)
class PointerType(Type):
    """The address of a value of type `pointee` in memory."""

    pointee: Type

    def __str__(self) -> str:
        return f"*{self.pointee}"


@dataclass(frozen=True)
class BoxType(Type):
    """Memory for one value, which counts its owners."""

    content: Type

    def __str__(self) -> str:
        return f"box{{{self.content}}}"


@dataclass(frozen=True)
class StackType(Type):
    """A stack of values of any types: pushed and popped at run time."""

    def __str__(self) -> str:
        return "stack"


VOID = TupleType(())
STACK = StackType()


@cache
def scalar(dtype: DType) -> TensorType:
    """The rank 0 tensor type."""
    return TensorType((), dtype)


def elements_of(type: Type) -> tuple[Type, ...] | None:
    """The component types of an aggregate; None for everything else."""
    match type:
        case TupleType(elements):
            return elements
        case ArrayType(count, element):
            return (element,) * count
        case StructType(fields=fields):
            return tuple(element for _, element in fields)
        case _:
            return None


def parts_of(type: Type) -> tuple[Type, ...]:
    """The types that `type` is written with: elements, parameters and result, what a pointer points to."""
    match type:
        case TupleType(elements):
            return elements
        case StructType(fields=fields):
            return tuple(element for _, element in fields)
        case EnumType(cases=cases):
            return tuple(part for _, carried in cases for part in carried)
        case FunctionType(parameters, result):
            return (*parameters, result)
        case ArrayType(element=part) | PointerType(part) | BoxType(part):
            return (part,)
        case _:
            return ()


def results_of(result: Type) -> tuple[Type, ...]:
    """The results of a function that returns a `result`: the elements of a tuple, but of one element itself."""
    if isinstance(result, TupleType) and len(result.elements) != 1:
        return result.elements
    return (result,)


def one_or_tuple(types: Sequence[Type]) -> Type:
    """What a function of these results returns: one is itself, several are a tuple."""
    return types[0] if len(types) == 1 else TupleType(tuple(types))


def broadcast_shapes(shapes: Sequence[Shape]) -> Shape:
    """NumPy broadcasting.  Raises: ShapeError naming the axis where two extents differ."""
    result: list[int] = [1] * max((len(shape) for shape in shapes), default=0)
    for shape in shapes:
        for axis, extent in enumerate(shape, len(result) - len(shape)):
            if result[axis] == 1:
                result[axis] = extent
            elif extent not in (1, result[axis]):
                raise ShapeError(
                    f"shapes {' and '.join(str(list(s)) for s in shapes)} cannot be broadcast: "
                    f"extents {result[axis]} and {extent} differ"
                )
    return tuple(result)


def same_dtype(name: str, types: Sequence[TensorType]) -> DType:
    """The one element type of all operands.  Raises: DTypeError when they differ."""
    if types and all(type.dtype is types[0].dtype for type in types):
        return types[0].dtype
    dtypes = list(dict.fromkeys(type.dtype for type in types))
    if len(dtypes) != 1:
        raise DTypeError(
            f"cannot {name} {' and '.join(t.words for t in types)}: element types "
            f"{' and '.join(d.name for d in dtypes)} differ"
        )
    return dtypes[0]


def tensor_bytes(type: Type) -> int:
    """Bytes of the tensors in a value; 0 for what has none."""
    total = 0
    pending: list[tuple[Type, int]] = [(type, 1)]
    while pending:
        current, count = pending.pop()
        match current:
            case TensorType():
                total += count * current.bytes
            case ArrayType():  # may have a million elements
                pending.append((current.element, count * current.count))
            case _:
                pending += [(element, count) for element in elements_of(current) or ()]
    return total
