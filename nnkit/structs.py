"""Structs: named groups of tensors that are passed, returned and differentiated as one value.

    class Params(Struct):
        w: Field[Tensor2D[f32, In, Out]]
        b: Field[Tensor1D[f32, Out]]

An instance `p` is immutable and holds concrete tensors: `p.w`.  The class gives a lens, `Params.w`,
with which staged code reads (`rp[Params.w]`), replaces (`rp.set(Params.w, x)`) and builds
(`build(Params, Params.w << x, ...)`).  A field may be another struct; a subclass has the fields of
its bases first.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import FrozenInstanceError
from typing import Any, ClassVar, NoReturn, TypeAlias, TypeVar, cast

import numpy as np

from .core.errors import DTypeError, NNKitError, StagingError
from .generic_structs import bound_by, inherited, rewritten
from .html import fields_html
from .staging.leafwise import Leafwise, TreeNode
from .staging.location import current_location
from .staging.primitive import located
from .staging.rep_base import is_number
from .staging.spec import is_tuple
from .staging.tracebacks import end_at_user, public_methods
from .struct_fields import ClassDefinition, Field, Lens, StructBase, annotated_fields, checked_value
from .tensors import AnyTensor

_Struct = TypeVar("_Struct", bound="Struct")


_Operator: TypeAlias = Callable[["Struct", Any], Any]


def _operator(
    verb: str, operate: Callable[[Any, Any], Any], *, is_reflected: bool = False
) -> _Operator:
    """The method for an operator of Python; of its right operand, if it is reflected."""

    def method(self: Struct, other: Any, /) -> Any:
        if not _is_operand(other):
            return NotImplemented
        shape = _shape_of(other)
        if shape:
            raise located(
                DTypeError(
                    f"cannot {verb} a {type(self).__name__} and a tensor of shape {list(shape)}: the other "
                    "operand is a number, a scalar or a struct of the same class"
                ),
                "nk.tree.map(lambda leaf: ..., struct)",
            )
        both = (other, self) if is_reflected else (self, other)
        return Leafwise(verb, struct_node, rebuilt, operate).of(*both)

    return method


def _shape_of(value: object) -> tuple[int, ...]:
    """That of a tensor or an array; of anything else that of a scalar."""
    return np.shape(cast("Any", value)) if isinstance(value, AnyTensor | np.ndarray) else ()


def _is_operand(value: object) -> bool:
    return isinstance(value, Struct | AnyTensor | np.ndarray | np.generic) or is_number(value)


def _quotient(a: Any, b: Any) -> Any:
    return a / b


def _power(a: Any, b: Any) -> Any:
    return a**b


@public_methods
class Struct(StructBase):
    """Base of structs.  Operators go tensor by tensor, with a struct of the same class, a number or a scalar.

    Equal are two of one class, and of the same numbers of the same types and shapes (NaN is not equal to NaN).
    """

    __slots__ = ("_fields",)
    __array_ufunc__: ClassVar[None] = None  # NumPy leaves operators with an array to the struct
    __add__: ClassVar[_Operator] = _operator("add", operator.add)
    __radd__: ClassVar[_Operator] = _operator("add", operator.add, is_reflected=True)
    __sub__: ClassVar[_Operator] = _operator("subtract", operator.sub)
    __rsub__: ClassVar[_Operator] = _operator("subtract", operator.sub, is_reflected=True)
    __mul__: ClassVar[_Operator] = _operator("multiply", operator.mul)
    __rmul__: ClassVar[_Operator] = _operator("multiply", operator.mul, is_reflected=True)
    __truediv__: ClassVar[_Operator] = _operator("divide", _quotient)
    __rtruediv__: ClassVar[_Operator] = _operator("divide", _quotient, is_reflected=True)
    __pow__: ClassVar[_Operator] = _operator("raise", _power)
    __rpow__: ClassVar[_Operator] = _operator("raise", _power, is_reflected=True)

    def __getitem__(self, key: object, /) -> NoReturn:
        name = key.name if isinstance(key, Lens | Field) else "field"
        raise located(
            StagingError(
                f"p[{key!r}] reads a staged struct, and this {type(self).__name__} is a concrete one"
            ),
            f"`p.{name}`",
        )

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        known = inherited(cls)
        bases = [base for base in cls.__mro__[:0:-1] if issubclass(base, StructBase)]
        held = {field.name: rewritten(field.type, known) for b in bases for field in b._declared}
        frame = inspect.currentframe()
        try:
            held |= annotated_fields(cls, frame.f_back if frame else None, _RESERVED)
        except NNKitError as error:
            end_at_user(error)
            raise
        cls._definition = ClassDefinition(current_location())
        cls._declared = tuple(Field(name, i, held[name]) for i, name in enumerate(held))
        for field in cls._declared:
            setattr(cls, field.name, field)

    def __init__(self, *values: object, **named: object) -> None:
        """One value per field, by position or by name.

        Raises: RankError, DTypeError naming the field; StagingError for missing or unknown fields.
        """
        given = _bind(type(self), values, named)
        known: dict[Any, Any] = {}
        if getattr(self, "__parameters__", ()):
            for lens in fields(type(self)):
                bound_by(lens.type, given[lens.name], known)
        checked = tuple(checked_value(lens, given[lens.name], known) for lens in fields(type(self)))
        object.__setattr__(self, "_fields", checked)

    def replace(self: _Struct, **changes: object) -> _Struct:
        """The same struct with some fields changed."""
        names = [field.name for field in self._declared]
        return type(self)(**(dict(zip(names, self._fields, strict=True)) | changes))

    def __neg__(self: _Struct) -> _Struct:
        return self._each("negate", operator.neg)

    def __pos__(self: _Struct) -> _Struct:
        return self

    def __abs__(self: _Struct) -> _Struct:
        return self._each("take the absolute value of", operator.abs)

    def _each(self: _Struct, verb: str, operate: Callable[[Any], Any]) -> _Struct:
        made: _Struct = Leafwise(verb, struct_node, rebuilt, operate).of_one(self)
        return made

    def __repr__(self) -> str:
        pairs = zip(self._declared, self._fields, strict=True)
        values = ", ".join(f"{field.name}={short(value)}" for field, value in pairs)
        return f"{type(self).__name__}({values})"

    def _repr_html_(self) -> str:
        pairs = zip(self._declared, self._fields, strict=True)
        return fields_html(type(self).__name__, [(field.name, short(v)) for field, v in pairs])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct):
            return NotImplemented
        return type(self) is type(other) and _equal(self._fields, other._fields)

    def __hash__(self) -> int:
        return hash((type(self), *map(_hash, self._fields)))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"a struct is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"a struct is immutable: cannot delete {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._fields


def fields(cls: type[Struct], /) -> tuple[Lens, ...]:
    """The fields of a struct class, in order.

    Raises: StagingError for anything else.
    """
    if not _is_struct_class(cls):
        help = "`fields(type(p))`" if _is_struct(cls) else ""
        raise located(
            StagingError(f"fields takes a struct class, not a {type(cls).__name__}"), help
        )
    return tuple(Lens(cls, field.name, field.index, field.type) for field in cls._declared)


def asdict(struct: Struct, /) -> dict[str, Any]:
    """The values of a struct by the names of its fields; structs inside of it are dictionaries, too.

    Raises: StagingError for anything else.
    """
    if not _is_struct(struct):
        raise located(StagingError(f"asdict takes a struct, not a {type(struct).__name__}"))
    named = zip(struct._declared, struct._fields, strict=True)
    return {field.name: _plain(value) for field, value in named}


def _is_struct_class(given: object) -> bool:
    return isinstance(given, type) and issubclass(given, Struct)


def _is_struct(given: object) -> bool:
    return isinstance(given, Struct)


def short(value: Any) -> str:
    """A value in one line: a tensor of many elements by its type and shape."""
    if is_tuple(value):
        return f"({', '.join(map(short, value))}{',' * (len(value) == 1)})"
    if not isinstance(value, AnyTensor) or value.is_donated or value.size <= _MOST_SHOWN:
        return " ".join(repr(value).split())
    return f"{value.dtype.__name__}{list(value.shape)}"


_MOST_SHOWN = 6
"""Elements of a tensor that a struct prints: a row of them takes as much room as a type and shape."""


def _equal(value: Any, other: Any) -> bool:
    """Whether both are the same numbers, of the same types and shapes, in the same structure."""
    if is_tuple(value) and is_tuple(other):
        return len(value) == len(other) and all(map(_equal, value, other))
    if isinstance(value, AnyTensor) and isinstance(other, AnyTensor):
        return value.dtype is other.dtype and np.array_equal(np.asarray(value), np.asarray(other))
    return bool(value == other)


def _hash(value: Any) -> int:
    """The same of equal values: of shapes, types and the first elements."""
    if is_tuple(value):
        return hash(tuple(map(_hash, value)))
    if isinstance(value, AnyTensor):
        first: list[Any] = np.asarray(value).reshape(-1)[:_MOST_HASHED].tolist()
        return hash((value.shape, value.dtype, *first))
    return hash(value)


_MOST_HASHED = 8
"""Elements of each tensor that tell structs apart in a dictionary before they are compared."""


def struct_node(value: Any) -> TreeNode | None:
    """The parts of a concrete struct or tuple."""
    if isinstance(value, Struct):
        return TreeNode(type(value), [f".{field.name}" for field in value._declared], value._fields)
    if is_tuple(value):
        return TreeNode(None, [f"[{k}]" for k in range(len(value))], value)
    return None


def rebuilt(like: Any, parts: Sequence[Any]) -> Any:
    """A struct or tuple like another one, of parts known to fit."""
    return assemble(type(like), parts) if isinstance(like, Struct) else tuple(parts)


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return asdict(value)
    return tuple(map(_plain, value)) if is_tuple(value) else value


def assemble(cls: type[_Struct], values: Iterable[Any]) -> _Struct:
    """An instance from values known to fit: nothing is checked."""
    struct = cls.__new__(cls)
    object.__setattr__(struct, "_fields", tuple(values))
    return struct


def _bind(
    cls: type[Struct], values: tuple[object, ...], named: dict[str, object]
) -> dict[str, object]:
    names = [field.name for field in cls._declared]
    if len(values) > len(names):
        raise StagingError(f"{cls.__name__} has {len(names)} fields, got {len(values)} values")
    given = dict(zip(names, values, strict=False))
    for name in named:
        if name not in names:
            raise StagingError(f"{cls.__name__} has no field {name!r}: it has {', '.join(names)}")
        if name in given:
            raise StagingError(f"{cls.__name__} got two values for field {name!r}")
    given |= named
    missing = [name for name in names if name not in given]
    if missing:
        raise StagingError(f"{cls.__name__} got no value for field {', '.join(missing)}")
    return given


_RESERVED = frozenset(dir(Struct))
