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
import sys
from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import FrozenInstanceError, dataclass
from types import FrameType
from typing import Any, ClassVar, NoReturn, TypeGuard, TypeVar, cast, get_args, get_origin

from .arrays import is_array
from .core.errors import DTypeError, RankError, ShapeError, StagingError
from .tensors import RANKED, AnyTensor, DType, Ranked, subscript

_Struct = TypeVar("_Struct", bound="Struct")


@dataclass(frozen=True)
class Lens:
    """A field of a struct class, as in `Params.w`."""

    owner: type[Struct]
    name: str
    index: int
    type: Any
    """What the field holds: an annotation like `Tensor2D[f32, In, Out]`, or a struct class."""

    def __lshift__(self, value: Any, /) -> Binding:
        """The field together with its value, for `build`."""
        return Binding(self, value)

    def __repr__(self) -> str:
        return f"{self.owner.__name__}.{self.name}"

    __class_getitem__ = subscript


@dataclass(frozen=True, eq=False)
class Binding:
    """A field and the value it shall have in a new struct."""

    lens: Lens
    value: Any

    __class_getitem__ = subscript


@dataclass(frozen=True)
class Field:
    """Declares a field: `w: Field[Tensor2D[f32]]`.  On an instance it reads the value."""

    name: str
    index: int
    type: Any

    def __get__(self, instance: Struct | None, owner: type[Struct]) -> Any:
        if instance is None:
            return Lens(owner, self.name, self.index, self.type)
        return instance._fields[self.index]

    def __set__(self, instance: Struct, value: object) -> NoReturn:
        raise FrozenInstanceError(
            f"a struct is immutable: cannot set {self.name!r}\n"
            f"  help: p.replace({self.name}=...) makes a new one"
        )

    __class_getitem__ = subscript


class Struct:
    """Base of structs.  Equal are two of one class whose fields are the same objects."""

    __slots__ = ("_fields",)
    _fields: tuple[Any, ...]
    _declared: ClassVar[tuple[Field, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        held = {field.name: field.type for base in cls.__mro__[:0:-1] for field in _own(base)}
        held |= _annotated(cls, inspect.currentframe())
        cls._declared = tuple(Field(name, i, held[name]) for i, name in enumerate(held))
        for field in cls._declared:
            setattr(cls, field.name, field)

    def __init__(self, *values: object, **named: object) -> None:
        """One value per field, by position or by name.

        Raises: RankError, DTypeError naming the field; StagingError for missing or unknown fields.
        """
        given = _bind(type(self), values, named)
        checked = tuple(_checked(lens, given[lens.name]) for lens in fields(type(self)))
        object.__setattr__(self, "_fields", checked)

    def replace(self: _Struct, **changes: object) -> _Struct:
        """The same struct with some fields changed."""
        names = [field.name for field in self._declared]
        return type(self)(**(dict(zip(names, self._fields, strict=True)) | changes))

    def __repr__(self) -> str:
        pairs = zip(self._declared, self._fields, strict=True)
        values = ", ".join(f"{field.name}={value!r}" for field, value in pairs)
        return f"{type(self).__name__}({values})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct):
            return NotImplemented
        return type(self) is type(other) and self._fields == other._fields

    def __hash__(self) -> int:
        return hash((type(self), self._fields))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"a struct is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"a struct is immutable: cannot delete {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._fields


def fields(cls: type[Struct], /) -> tuple[Lens, ...]:
    """The fields of a struct class, in order."""
    return tuple(Lens(cls, field.name, field.index, field.type) for field in cls._declared)


def assemble(cls: type[_Struct], values: Iterable[Any]) -> _Struct:
    """An instance from values known to fit: nothing is checked."""
    struct = cls.__new__(cls)
    object.__setattr__(struct, "_fields", tuple(values))
    return struct


def _own(cls: type) -> tuple[Field, ...]:
    return cls._declared if issubclass(cls, Struct) else ()


def _annotated(cls: type[Struct], frame: FrameType | None) -> dict[str, Any]:
    """What the class body declares.  Raises: StagingError for what cannot be a field."""
    maker = frame.f_back if frame else None
    scopes = [dict(vars(cls)), *([maker.f_locals, maker.f_globals] if maker else [])]
    module = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    held: dict[str, Any] = {}
    for name, annotation in inspect.get_annotations(cls).items():
        resolved = _resolve(annotation, f"{cls.__name__}.{name}", module, ChainMap(*scopes))
        if get_origin(resolved) is ClassVar:
            continue
        if get_origin(resolved) is not Field or len(get_args(resolved)) != 1:
            raise StagingError(
                f"{cls.__name__}.{name} is not declared as a field\n"
                f"  help: {name}: Field[Tensor2D[f32]]"
            )
        if name in vars(cls) or name in _RESERVED:
            raise StagingError(
                f"{cls.__name__}.{name}: a field has no default and no method's name"
            )
        (content,) = get_args(resolved)
        held[name] = _content(
            _resolve(content, f"{cls.__name__}.{name}", module, ChainMap(*scopes)),
            f"{cls.__name__}.{name}",
        )
    return held


def _resolve(annotation: Any, place: str, module: dict[str, Any], scope: Mapping[str, Any]) -> Any:
    """An annotation written as text (`from __future__ import annotations`), evaluated."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, module, scope)  # the class body's own source, not input
    except NameError as error:
        raise StagingError(
            f"{place}: the annotation {annotation} names {error.name}, which is not defined where "
            "the class is made\n  help: define or import it before the class, not only for typing"
        ) from None


def _content(content: Any, place: str) -> Any:
    """A tensor annotation with an element type, or a struct class."""
    origin: Any = get_origin(content) or content
    if _is_struct(origin):
        return origin
    dtype = next(iter(get_args(content)), None)
    if origin in RANKED and isinstance(dtype, type) and issubclass(dtype, DType):
        return content
    raise StagingError(
        f"{place} must hold a tensor with rank and element type, or a struct, not {content!r}\n"
        "  help: for example Field[Tensor2D[f32]]"
    )


def _is_struct(content: object) -> TypeGuard[type[Struct]]:
    return isinstance(content, type) and issubclass(content, Struct)


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


def _checked(lens: Lens, value: object) -> object:
    """The value as the field holds it; arrays and numbers become tensors."""
    held: Any = lens.type
    if _is_struct(held):
        if type(value) is not held:
            raise DTypeError(f"{lens} must be a {held.__name__}, got {_kind(value)}")
        return value
    cls, dtype = cast("type[Ranked]", get_origin(held)), cast("type[DType]", get_args(held)[0])
    wanted = f"{cls.__name__}[{dtype.__name__}]"
    if isinstance(value, AnyTensor):
        if value.rank != cls.rank:
            raise RankError(f"{lens} must be a {wanted}, got {_kind(value)}")
        if value.dtype is not dtype:
            raise DTypeError(f"{lens} must be a {wanted}, got {_kind(value)}")
        return value
    if not _is_data(value):
        raise DTypeError(
            f"{lens} must be a {wanted}, got {_kind(value)}\n"
            f"  help: in a staged function build({lens.owner.__name__}, {lens} << ...)"
        )
    try:
        return cls(value, dtype)
    except (ShapeError, DTypeError) as error:
        raise type(error)(f"{lens}: {error}") from None


def _is_data(value: object) -> bool:
    return is_array(value) or isinstance(value, (list, tuple, float, int))


def _kind(value: object) -> str:
    if isinstance(value, AnyTensor):
        return f"a {type(value).__name__}[{value.dtype.__name__}] of shape {list(value.shape)}"
    return f"a {type(value).__name__}"


_RESERVED = frozenset(dir(Struct))
