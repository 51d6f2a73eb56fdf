"""Dataclasses whose methods are compiled when they are first called.

`dataclasses.dataclass` compiles up to six methods of a class from text when the class is made, 0.4 ms for a frozen one
in Python 3.11.  There are 500 classes here, and a program calls few of their methods.  So a class gets

1. the same fields and parameters as from `dataclasses`, which `replace`, `fields` and classes derived by either find;
2. `__init__`, `__eq__` and `__hash__` that compile their code when they are first called, put it in their own place,
   and call it;
3. methods that all classes share where they are not called often: `__repr__`, and of frozen ones the refusals.

Not supported, and left to `dataclasses`: `order`, `unsafe_hash`, `kw_only` of a class, `InitVar`.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import cache
from reprlib import recursive_repr
from types import CodeType, MemberDescriptorType
from typing import Any, ClassVar, Final, NoReturn, get_origin

FIELDS: Final = "__dataclass_fields__"
PARAMETERS: Final = "__dataclass_params__"
MATCHED: Final = "__match_args__"


def add_methods(
    cls: Any, *, init: bool, repr: bool, eq: bool, frozen: bool, slots: bool
) -> type[Any]:
    """The class as `dataclasses.dataclass` makes it with these options; a new one if it is to have slots.

    Raises: ValueError when a default can change.
    """
    fields = _fields_of(cls)
    setattr(cls, FIELDS, fields)
    setattr(cls, PARAMETERS, _parameters(init, repr, eq, frozen))
    real = [field for field in fields.values() if _is_field(field)]
    if slots:
        cls = _with_slots(cls, [field.name for field in real])
    own = _own(cls)
    if MATCHED not in own:
        setattr(cls, MATCHED, tuple(f.name for f in real if f.init and not f.kw_only))
    if init and "__init__" not in own:
        _compile_later(cls, "__init__", lambda: _init(cls, real, frozen=frozen, slots=slots))
    if repr and "__repr__" not in own:
        cls.__repr__ = _repr
    if eq:
        _add_equality(cls, [field.name for field in real if field.compare], frozen=frozen)
    if frozen:
        cls.__setattr__, cls.__delattr__ = _refuse_to_assign, _refuse_to_delete
        if slots and "__getstate__" not in own:  # for pickle and copies, which else assign
            cls.__getstate__, cls.__setstate__ = _state, _set_state
    made: type[Any] = cls
    return made


def _own(cls: Any) -> Mapping[str, Any]:
    """The attributes of the class itself."""
    own: Mapping[str, Any] = cls.__dict__
    return own


def _fields_of(cls: type[Any]) -> dict[str, Field[Any]]:
    """Those of its bases, and then its own, whose defaults become attributes of the class."""
    fields: dict[str, Field[Any]] = {}
    for base in cls.__mro__[-1:0:-1]:
        fields.update(vars(base).get(FIELDS, {}))
    for name, annotation in inspect.get_annotations(cls).items():
        field = fields[name] = _field(cls, name, annotation)
        if isinstance(vars(cls).get(name), Field):
            if field.default is MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, field.default)
    return fields


def _field(cls: type[Any], name: str, annotation: Any) -> Any:
    default: Any = getattr(cls, name, MISSING)
    if isinstance(default, MemberDescriptorType):  # a slot of a base
        default = MISSING
    # what `dataclasses` does with a field it has found, which has no public name
    is_given: bool = default.__class__ is Field
    field: Any = default if is_given else dataclasses.field(default=default)
    field.name, field.type = name, annotation
    field._field_type = _KINDS[_is_class_variable(annotation)]
    field.kw_only = field.kw_only is True
    if field.default.__class__.__hash__ is None:
        raise ValueError(f"{cls.__name__}.{name} has a default that can change: {field.default!r}")
    return field


def _is_class_variable(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.startswith(("ClassVar", "typing.ClassVar"))
    return annotation is ClassVar or get_origin(annotation) is ClassVar


def _is_field(field: Any) -> bool:
    is_field: bool = field._field_type is _KINDS[False]
    return is_field


def _with_slots(cls: Any, names: Iterable[str]) -> type[Any]:
    """A class with slots has to be made anew."""
    bases: tuple[type[Any], ...] = cls.__mro__[1:-1]
    own = _own(cls)
    inherited = {name for base in bases for name in vars(base).get("__slots__", ())}
    slots = tuple(name for name in names if name not in inherited)
    kept = {
        name: value
        for name, value in own.items()
        if name not in ("__dict__", "__weakref__", *slots)
    }
    made: type[Any] = cls.__class__(cls.__name__, cls.__bases__, kept | {"__slots__": slots})
    made.__qualname__ = cls.__qualname__
    return made


def _add_equality(cls: Any, names: list[str], *, frozen: bool) -> None:
    own = _own(cls)
    if "__eq__" not in own:
        _compile_later(cls, "__eq__", lambda: _eq(names))
    if own.get("__hash__") is None:  # Python writes None where a class has `__eq__`
        if frozen:
            _compile_later(cls, "__hash__", lambda: _hash(names))
        else:
            cls.__hash__ = None


def _compile_later(cls: Any, name: str, method: Callable[[], Callable[..., Any]]) -> None:
    """Give the class a method that is compiled when it is first called, or asked for its signature."""

    @cache
    def compiled() -> Callable[..., Any]:
        made = method()
        made.__qualname__, made.__module__ = f"{cls.__qualname__}.{name}", cls.__module__
        if vars(cls)[name] is first:  # unless it has been wrapped
            setattr(cls, name, made)
        return made

    def first(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return compiled()(self, *args, **kwargs)

    first.__qualname__, first.__module__ = f"{cls.__qualname__}.{name}", cls.__module__
    setattr(cls, name, first)
    if name == "__init__":
        cls.__signature__ = _Signature(cls, compiled)


def _init(
    cls: type[Any], fields: list[Field[Any]], *, frozen: bool, slots: bool
) -> Callable[..., Any]:
    known: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": MISSING}
    positional: list[str] = []
    by_name: list[str] = []
    body: list[str] = []
    for i, field in enumerate(fields):
        value = name = f"_{i}"
        has_default, is_made = field.default is not MISSING, field.default_factory is not MISSING
        if has_default:
            known[f"_default{i}"] = field.default
        if is_made:
            known[f"_make{i}"] = field.default_factory
        if field.init:
            default = f"=_default{i}" * has_default + "=_MISSING" * is_made
            (by_name if field.kw_only else positional).append(name + default)
            if is_made:
                value = f"_make{i}() if {name} is _MISSING else {name}"
        elif is_made:
            value = f"_make{i}()"
        elif has_default and slots:
            value = f"_default{i}"
        else:  # the class has the default
            continue
        slot = getattr(cls, field.name, None)
        if not frozen:
            body.append(f"_self.{name} = {value}")
        elif isinstance(slot, MemberDescriptorType):  # which takes half the time of `__setattr__`
            known[f"_set{i}"] = slot.__set__
            body.append(f"_set{i}(_self, {value})")
        else:
            body.append(f"_set(_self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("_self.__post_init__()")
    parameters = ["_self", *positional, *(["*", *by_name] if by_name else [])]
    text = f"def __init__({', '.join(parameters)}): {'; '.join(body) or 'pass'}"
    return _function("__init__", text, [field.name for field in fields], known)


def _eq(names: list[str]) -> Callable[..., Any]:
    equal = f"{_tuple('_self', names)} == {_tuple('other', names)}"
    text = f"return {equal} if other.__class__ is _self.__class__ else NotImplemented"
    return _function("__eq__", f"def __eq__(_self, other): {text}", names, {})


def _hash(names: list[str]) -> Callable[..., Any]:
    text = f"def __hash__(_self): return hash({_tuple('_self', names)})"
    return _function("__hash__", text, names, {})


def _tuple(value: str, names: list[str]) -> str:
    return f"({''.join(f'{value}._{i}, ' for i in range(len(names)))})"


def _function(name: str, text: str, fields: list[str], known: dict[str, Any]) -> Callable[..., Any]:
    """The function of this text, in which the fields are called `_0`, `_1` and so on; `known` are its globals.

    So classes with as many fields share what is compiled, for a tenth of the time.
    """
    known["__file__"] = __file__  # by which `staging.location` knows frames of NNKit
    exec(_compiled(text), known)
    made: Any = known[name]
    names = {f"_{i}": field for i, field in enumerate(fields)}
    names["_self"] = "_self" if "self" in fields else "self"
    code = made.__code__
    made.__code__ = code.replace(
        co_varnames=tuple(names.get(each, each) for each in code.co_varnames),
        co_names=tuple(names.get(each, each) for each in code.co_names),
        co_consts=tuple(
            names.get(each, each) if isinstance(each, str) else each for each in code.co_consts
        ),
    )
    by_name: dict[str, Any] = made.__kwdefaults__ or {}
    made.__kwdefaults__ = {names[each]: default for each, default in by_name.items()} or None
    function: Callable[..., Any] = made
    return function


@cache
def _compiled(text: str) -> CodeType:
    return compile(text, "<string>", "exec")


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse_to_assign(_self: Any, name: str, _value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


class _Signature:
    """For `inspect.signature` of a class: that of `__init__`, which is compiled for it."""

    def __init__(self, cls: type[Any], compiled: Callable[[], Callable[..., Any]]) -> None:
        self._class, self._compiled = cls, compiled

    def __get__(self, instance: Any, owner: type[Any]) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        definer = next(base for base in owner.__mro__ if "__init__" in vars(base))
        init = self._compiled() if definer is self._class else vars(definer)["__init__"]
        _self, *parameters = inspect.signature(init).parameters.values()
        return inspect.Signature(parameters)


@cache
def _parameters(init: bool, repr: bool, eq: bool, frozen: bool) -> Any:
    """What `dataclasses` notes of a class with these options."""

    example = dataclasses.make_dataclass(
        "Example", (), init=init, repr=repr, eq=eq, frozen=frozen, namespace={"__doc__": "Empty."}
    )
    return getattr(example, PARAMETERS)


@dataclasses.dataclass(init=False, repr=False, eq=False)
class _Example:
    """Of a field and a class variable, whose kinds have no public names."""

    field: int
    variable: ClassVar[int]


_KINDS: Final[tuple[Any, ...]] = tuple(
    field._field_type for field in getattr(_Example, FIELDS).values()
)
