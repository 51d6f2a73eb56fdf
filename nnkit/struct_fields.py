"""Fields of structs: what a class declares, and what values they hold.

A field holds a tensor of a certain rank and element type, another struct, or a sequence of such: `list[Layer]` and
`tuple[Layer, ...]` of any length, `tuple[Tensor1D[f32], Layer]` of this one.  An instance has tuples in place of lists.
Element types and dimensions may be type variables of a generic struct (`nnkit.generic_structs`).
"""

from __future__ import annotations

import inspect
import itertools
import sys
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import FrozenInstanceError, field
from types import FrameType, GenericAlias
from typing import Any, ClassVar, NoReturn, TypeGuard, cast, get_args, get_origin

from .arrays import is_array
from .core import types
from .core.errors import DTypeError, RankError, ShapeError, StagingError
from .core.lazy_dataclass import dataclass
from .core.location import HasLocation
from .generic_structs import is_element_type, substituted, variables_of
from .staging.primitive import dtype_error
from .staging.rep_base import RepBase
from .staging.spec import (
    CallableSpec,
    SequenceSpec,
    Spec,
    StructSpec,
    TensorSpec,
    TupleSpec,
    another,
    is_sequence,
)
from .staging.tracebacks import public_methods
from .staging.tracing import current_trace
from .tensors import RANKED, AnyTensor, DType, Ranked, subscript


@dataclass(frozen=True)
class ClassDefinition:
    """When and where a class was defined: classes of one name are told apart by it."""

    location: HasLocation | None
    number: int = field(default_factory=itertools.count().__next__)


class StructBase:
    """Base of structs: what is known of their classes."""

    __slots__ = ()
    _fields: tuple[Any, ...]
    _declared: ClassVar[tuple[Field, ...]] = ()
    _definition: ClassVar[ClassDefinition]


@dataclass(frozen=True)
class Lens:
    """A field of a struct class, as in `Params.w`."""

    owner: type[Any]
    name: str
    index: int
    type: Any
    """What the field holds: an annotation like `Tensor2D[f32, In, Out]` or `list[Layer]`, or a struct class."""

    def __lshift__(self, value: Any, /) -> Binding:
        """The field together with its value, for `build`."""
        return Binding(self, value)

    @property
    def spec(self) -> Spec | None:
        """What staging knows of it."""
        return declared_type(self.type)

    def __repr__(self) -> str:
        return f"{self.owner.__name__}.{self.name}"

    __class_getitem__ = subscript


@dataclass(frozen=True, eq=False)
class Binding:
    """A field and the value it shall have in a new struct."""

    lens: Lens
    value: Any

    __class_getitem__ = subscript


@public_methods
@dataclass(frozen=True)
class Field:
    """Declares a field: `w: Field[Tensor2D[f32]]`.  On an instance it reads the value."""

    name: str
    index: int
    type: Any

    def __get__(self, instance: StructBase | None, owner: type[Any]) -> Any:
        if instance is None:
            return Lens(owner, self.name, self.index, self.type)
        return instance._fields[self.index]

    def __set__(self, instance: object, value: object) -> NoReturn:
        raise FrozenInstanceError(
            f"a struct is immutable: cannot set {self.name!r}\n"
            f"  help: p.replace({self.name}=...) makes a new one"
        )

    __class_getitem__ = subscript


def annotated_fields(
    cls: type[Any], frame: FrameType | None, reserved: frozenset[str]
) -> dict[str, Any]:
    """What the class body declares.  Raises: StagingError for what cannot be a field."""
    scopes = [dict(vars(cls)), *([frame.f_locals, frame.f_globals] if frame else [])]
    module = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    scope = ChainMap(*scopes)
    held: dict[str, Any] = {}
    for name, annotation in inspect.get_annotations(cls).items():
        place = f"{cls.__name__}.{name}"
        resolved = _resolve(annotation, place, module, scope)
        if get_origin(resolved) is ClassVar:
            continue
        if get_origin(resolved) is not Field or len(get_args(resolved)) != 1:
            raise StagingError(
                f"{place} is not declared as a field\n  help: {name}: Field[Tensor2D[f32]]"
            )
        if name in vars(cls) or name in reserved:
            raise StagingError(f"{place}: a field has no default and no method's name")
        held[name] = _content(get_args(resolved)[0], place, module, scope)
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


def _content(content: Any, place: str, module: dict[str, Any], scope: Mapping[str, Any]) -> Any:
    """A tensor annotation with an element type, a struct class, or a list or tuple of such."""
    content = _resolve(content, place, module, scope)
    origin: Any = get_origin(content) or content
    if is_struct_class(origin):
        return content if get_args(content) else origin
    if origin in (list, tuple) and get_args(content):
        inside = [
            one if one is ... else _content(one, place, module, scope) for one in get_args(content)
        ]
        return GenericAlias(origin, tuple(inside))
    dtype = next(iter(get_args(content)), None)
    if origin in RANKED and is_element_type(dtype):
        return content
    raise StagingError(
        f"{place} must hold a tensor with rank and element type, a struct, or a list or tuple of such, not "
        f"{content!r}\n  help: for example Field[Tensor2D[f32]] or Field[list[Layer]]"
    )


def is_struct_class(content: object) -> TypeGuard[type[StructBase]]:
    """Whether it is a class of structs."""
    return isinstance(content, type) and issubclass(content, StructBase)


def checked_value(lens: Lens, value: object, known: Mapping[Any, Any]) -> object:
    """The value as the field holds it; arrays and numbers become tensors, lists tuples.

    `known` has what the type variables of a generic struct stand for.
    """
    return _checked(substituted(lens.type, known), value, repr(lens), lens)


def _checked(held: Any, value: object, place: str, lens: Lens) -> object:
    cls: Any = get_origin(held) or held
    if isinstance(value, RepBase):
        raise dtype_error(
            f"{place} must be a {words(held)}, got a Rep, which has no value while staging",
            f"in a staged function `build({lens.owner.__name__}, {lens} << x, ...)`"
            if current_trace() is not None
            else "outside of staged functions `x.eval()` is its value",
        )
    if is_struct_class(cls):
        if type(value) is not cls:
            found = another(cls, type(value)) if is_struct_class(type(value)) else ""
            raise DTypeError(f"{place} must be a {cls.__name__}, got {found or _kind(value)}")
        known = variables_of(held)
        if known:
            for one, part in zip(cls._declared, value._fields, strict=True):
                _checked(substituted(one.type, known), part, f"{place}.{one.name}", lens)
        return value
    if get_origin(held) in (list, tuple):
        return tuple(_elements(held, value, place, lens))
    return _tensor(held, value, place, lens)


def _elements(held: Any, value: object, place: str, lens: Lens) -> Iterator[object]:
    """What a sequence holds, element by element."""
    wanted = get_args(held)
    if not is_sequence(value):
        raise DTypeError(f"{place} must be a {words(held)}, got {_kind(value)}")
    elements: Sequence[object] = value
    if get_origin(held) is list or wanted[1:] == (...,):
        wanted = (wanted[0],) * len(elements)
    if len(wanted) != len(elements):
        raise DTypeError(f"{place} must be a {words(held)}, got {len(elements)} values")
    for k, (one, element) in enumerate(zip(wanted, elements, strict=True)):
        yield _checked(one, element, f"{place}[{k}]", lens)


def _tensor(held: Any, value: object, place: str, lens: Lens) -> object:
    cls, dtype = cast("type[Ranked]", get_origin(held)), cast("type[DType]", get_args(held)[0])
    wanted = words(held)
    if isinstance(value, AnyTensor):
        if value.rank != cls.rank:
            raise RankError(f"{place} must be a {wanted}, got {_kind(value)}")
        if value.dtype is not dtype:
            raise DTypeError(f"{place} must be a {wanted}, got {_kind(value)}")
        return value
    if not _is_data(value):
        raise DTypeError(
            f"{place} must be a {wanted}, got {_kind(value)}\n"
            f"  help: in a staged function build({lens.owner.__name__}, {lens} << ...)"
        )
    try:
        return cls(value, dtype)
    except (ShapeError, DTypeError) as error:
        makes = f"\n  help: {lens.owner.__name__}.init(key, ...) makes one of its sizes"
        is_size = isinstance(value, int) and hasattr(lens.owner, "init")
        raise type(error)(f"{place}: {error}{makes if is_size else ''}") from None


def words(held: Any) -> str:
    """What a field holds, as one writes it."""
    arguments = get_args(held)
    cls: Any = get_origin(held) or held
    if is_struct_class(cls):
        inside = ", ".join(getattr(one, "__name__", str(one)) for one in arguments)
        return f"{cls.__name__}[{inside}]" if inside else cls.__name__
    if get_origin(held) in (list, tuple):
        inside = ", ".join("..." if one is ... else words(one) for one in arguments)
        return f"{get_origin(held).__name__}[{inside}]"
    return f"{get_origin(held).__name__}[{arguments[0].__name__}]"


def _is_data(value: object) -> bool:
    return is_array(value) or isinstance(value, list | tuple | float | int)


def _kind(value: object) -> str:
    if isinstance(value, AnyTensor):
        return f"a {type(value).__name__}[{value.dtype.__name__}] of shape {list(value.shape)}"
    return f"a {type(value).__name__}"


def declared_type(annotation: Any) -> Spec | None:
    """What a concrete type such as `Tensor2D[f32]` or a struct class says."""
    origin = get_origin(annotation) or annotation
    if isinstance(origin, type) and issubclass(origin, StructBase):
        variables = variables_of(annotation)
        parts = [
            (one.name, declared_type(substituted(one.type, variables))) for one in origin._declared
        ]
        known = tuple((name, part) for name, part in parts if part is not None)
        return StructSpec(origin, known) if len(known) == len(parts) else None
    if origin is list or (origin is tuple and get_args(annotation)[1:] == (...,)):
        element = declared_type(next(iter(get_args(annotation)), None))
        return None if element is None else SequenceSpec(element)
    if origin is tuple:
        return several([declared_type(part) for part in get_args(annotation)])
    if origin is Callable:
        taken, result = get_args(annotation)
        named: list[Any] = [] if taken is ... else [*taken]
        return CallableSpec(tuple(map(declared_type, named)), declared_type(result))
    core = getattr(next(iter(get_args(annotation)), None), "core", None)
    if origin in RANKED and isinstance(core, types.DType):
        return TensorSpec(RANKED.index(origin), core)
    return None


def several(parts: list[Spec | None]) -> Spec | None:
    """The type of a tuple; None if that of a part is not known."""
    known = tuple(part for part in parts if part is not None)
    return TupleSpec(known) if len(known) == len(parts) else None
