"""Static parameters of staged functions: Python values that are part of the key of specialisation.

A parameter whose annotation is no Rep is static: `def f(x: Rep[Float2D], training: bool = False)`.  For each set of
values of its static parameters a staged function is another one, a *variant*, with traces and compiled code of its own:
1. A call with static arguments splits them off, looks up the variant of their key, and goes on in that one.
2. A call without them, of a function whose static parameters all have defaults, is a call like any other.
3. What is made of a staged function, its gradient say, has variants, too: those made of the function's variants.
"""

from __future__ import annotations

import difflib
import functools
import re
import types
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, NoReturn, Self, TypeAlias, TypeVar, cast, get_args

import numpy as np

from .core.lazy_dataclass import dataclass
from .introspection import StaticSignature
from .staging.carry import kind, with_article
from .staging.extents import resolved
from .staging.primitive import staging_error
from .staging.reached import GivenStatics
from .staging.rep import Rep
from .staging.staged_functions import Stageable
from .staging.tracebacks import public, was_called
from .staging.wrong_calls import wrong_call
from .static_keys import NotStatic, static_key

MOST_VARIANTS: Final = 256
"""Of one staged function: as many as it keeps specialisations (docs/decisions/0022).  The one that was made first is
dropped."""

RESERVED: Final = frozenset({"out"})
"""Keywords that calls of staged functions have already."""

_REQUIRED: Final = object()


@dataclass(frozen=True, eq=False)
class StaticParameter:
    """One static parameter; `default` is `REQUIRED` where there is none."""

    name: str
    default: Any = _REQUIRED
    annotation: Any = None

    def fits(self, value: Any) -> bool:
        """Whether it is of the type of the annotation, if that is one of Python's own for a number or a text."""
        choices = [_taken(one) for one in _alternatives(self.annotation)]
        known = [one for one in choices if one is not None]
        return len(known) < len(choices) or any(isinstance(value, one) for one in known)

    @property
    def type_name(self) -> str:
        """That of the annotation, where it is one of these types."""
        return str(getattr(self.annotation, "__name__", self.annotation))

    @property
    def is_required(self) -> bool:
        return self.default is _REQUIRED

    @property
    def words(self) -> str:
        """As a signature shows it."""
        if self.is_required:
            return self.name
        return f"{self.name}={getattr(self.default, '__name__', None) or repr(self.default)}"


_TAKEN: Final[Mapping[Any, tuple[type, ...]]] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (float, int, np.floating, np.integer),
    str: (str,),
    type(None): (type(None),),
}
"""What a parameter of these types takes: as the checkers, and NumPy's."""
_NAMED: Final[Mapping[Any, Any]] = {"None": type(None)} | {one.__name__: one for one in _TAKEN}


def _alternatives(annotation: Any) -> Sequence[Any]:
    """The types of `int | None`, or of a text of it; else the annotation alone."""
    if isinstance(annotation, str):
        return [one.strip() for one in annotation.split("|")]
    return get_args(annotation) if isinstance(annotation, types.UnionType) else [annotation]


def _taken(annotation: Any) -> tuple[type, ...] | None:
    """The types of values that one of these types takes; None for others."""
    return _TAKEN.get(_NAMED.get(annotation, annotation))


_GiveRules: TypeAlias = "Callable[[Any, Mapping[str, Any]], None]"
"""Is given a variant, and its values."""


@dataclass(eq=False)
class Family:
    """The variants of one staged function.

    `order` has the positional parameters: the name of a static one, None for data.  `make` makes the variant for values
    that differ from the defaults.
    """

    name: str
    parameters: Mapping[str, StaticParameter]
    order: Sequence[str | None]
    root: Any
    make: Callable[[dict[str, Any]], Any]
    variants: dict[Hashable, Any] = field(default_factory=dict[Hashable, Any])
    _rules: list[_GiveRules] = field(default_factory=list["_GiveRules"])

    def variant(self, values: Mapping[str, Any]) -> Any:
        """The staged function for these values; the same one for the same values.

        Raises: StagingError for a value that is not hashable, and for a name that no static parameter has.
        """
        values = {
            name: resolved(value, lambda size: size.known("a static parameter"))
            for name, value in values.items()
        }
        differing: dict[str, Any] = {}
        keys: list[Hashable] = []
        for name, parameter in self.parameters.items():
            if name in values and values[name] is not parameter.default:
                key = self._key(name, values[name])
                if not parameter.fits(values[name]):
                    raise self._other_type(parameter, values[name])
                if parameter.is_required or key != self._default_key(parameter):
                    differing[name] = values[name]
                    keys.append((name, key))
        for name in values:
            if name not in self.parameters:
                raise self.unknown(name)
        if not keys:
            return self.root
        known = self.variants.get(tuple(keys))
        if known is None:
            known = self.make(differing)
            known.statics = Statics(self, differing)
            for give in self._rules:
                give(known, differing)
            while len(self.variants) >= MOST_VARIANTS:
                self.variants.pop(next(iter(self.variants)), None)
            known = self.variants.setdefault(tuple(keys), known)
        return known

    def give_rules(self, give: _GiveRules) -> None:
        """Give rules of derivatives to all variants, those to come included."""
        for variant in [self.root, *self.variants.values()]:
            give(variant, variant.statics.values)
        self._rules.append(give)

    def _key(self, name: str, value: Any) -> Hashable:
        try:
            return static_key(value)
        except NotStatic as error:
            if error.is_data and re.search(r"\bRep\b", str(self.parameters[name].annotation)):
                raise self._optional(name) from None
            raise staging_error(
                f"parameter {name} of {self.name} is static, and {error.what} {error.problem}",
                f"annotate it, {name}: Rep[...], if it is data; several are a Struct, or a tuple[Rep[...], Rep[...]]"
                if error.is_data
                else "give a number, a str, a tuple, an enum, a frozen dataclass or a function: what cannot change",
            ) from None

    def _optional(self, name: str) -> Exception:
        """The error for data, where the annotation is `Rep[...] | None`."""
        return staging_error(
            f"parameter {name} of {self.name} is a Rep or something else, so calls give it no data: a parameter is "
            "a Rep in all calls, or in none",
            f"annotate it, {name}: Rep[...], and give ones or zeros where there is none; or write two functions, of "
            "which one calls the other",
        )

    def _other_type(self, parameter: StaticParameter, value: Any) -> Exception:
        name, wanted = parameter.name, parameter.type_name
        given = f"{wanted} | None" if value is None else type(value).__name__
        return staging_error(
            f"parameter {name} of {self.name} is annotated {wanted}, and is {value!r}, {kind(value)}",
            f"give {with_article(wanted)}, or annotate it `{name}: {given}`",
        )

    def _default_key(self, parameter: StaticParameter) -> Hashable:
        """None for a default that has no key, which no value is equal to."""
        try:
            return static_key(parameter.default)
        except NotStatic:
            return None

    def unknown(self, name: str) -> Exception:
        """The error for a keyword that no static parameter has."""
        lower = {one.lower(): one for one in self.parameters}
        near = [lower[one] for one in difflib.get_close_matches(name.lower(), lower, 1)]
        known = ", ".join(one.words for one in self.parameters.values())
        return staging_error(
            f"{self.name} has no static parameter {name}: those that it has are {known}",
            f"did you mean {near[0]}?" if near else "data is given by position",
        )


@dataclass(frozen=True, eq=False)
class Statics:
    """The static parameters of a staged function, some of which have `values` already."""

    family: Family
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    order: Sequence[str | None] = field(init=False)
    """As that of the family, without those that have values."""

    def __post_init__(self) -> None:
        free = tuple(name for name in self.family.order if name not in self.values)
        object.__setattr__(self, "order", free)

    def bound(self, values: Mapping[str, Any]) -> Any:
        """The variant for these values, and those that are there already."""
        return self.family.variant({**self.values, **values} if self.values else values)

    def takes(self, arguments: Sequence[Any]) -> bool:
        """Whether static arguments are among those given by position."""
        return any(self.order[: len(arguments)])

    def split(self, arguments: Sequence[Any], keywords: dict[str, Any]) -> tuple[Any, list[Any]]:
        """The variant that a call is of, and its data.  What is left in `keywords` are those that are reserved."""
        values = {name: keywords.pop(name) for name in [*keywords] if name not in RESERVED}
        order, data = self.order, list[Any]()
        for position, value in enumerate(arguments):
            name = order[position] if position < len(order) else None
            if name is None:
                data.append(value)
            elif name in values:
                self._twice(name)
            else:
                values[name] = value
        return self.bound(values), data

    def _twice(self, name: str) -> NoReturn:
        raise staging_error(
            f"parameter {name} of {self.family.name} is given by position and by name"
        )

    @property
    def words(self) -> Sequence[str]:
        """As a signature shows them."""
        return [
            StaticParameter(name, self.values.get(name, parameter.default)).words
            for name, parameter in self.family.parameters.items()
        ]

    def common(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the values that are of parameters which are here, too."""
        return {name: value for name, value in values.items() if name in self.family.parameters}

    def through(
        self, made: WithStatics, transform: Callable[[Any], WithStatics], name: str
    ) -> WithStatics:
        """`made`, which `transform` made of the function of these, with variants that it makes of the variants."""
        parameters = {
            name: StaticParameter(
                name, self.values.get(name, parameter.default), parameter.annotation
            )
            for name, parameter in self.family.parameters.items()
        }
        family = Family(name, parameters, (), made, lambda values: transform(self.bound(values)))
        made.statics = Statics(family)
        return made


class WithStatics(Rep):
    """Base of staged functions: what concerns their static parameters."""

    __slots__ = ("statics",)
    stageable: Stageable
    statics: Statics | None

    def _give_rules(self, give: Callable[..., None], *rules: WithStatics | None) -> None:
        """The static parameters of a rule have the values that those of these names have in the function."""

        def given(variant: WithStatics, values: Mapping[str, Any]) -> None:
            give(
                variant.stageable,
                *(None if rule is None else rule.with_common(values).stageable for rule in rules),
            )

        if self.statics is None:
            given(self, {})
        else:
            self.statics.family.give_rules(given)

    def with_common(self, values: Mapping[str, Any]) -> Self:
        """The same function with those of the values that are of its static parameters."""
        statics = self.statics
        return self if statics is None else statics.bound(statics.common(values))

    @public
    def partial(self, **statics: Any) -> Self:
        """The same function with these values of its static parameters; calls of it with data are native calls.

        Raises: StagingError for what is no static parameter, or a value that is not hashable.
        """
        if self.statics is None:
            if not statics:
                return self
            raise self._no_statics(statics)
        made: Self = self.statics.bound(statics)
        return made

    def of_call(
        self, arguments: Sequence[Any], keywords: dict[str, Any]
    ) -> tuple[Self, Sequence[Any]]:
        """The variant and the data of a call; `keywords` are all static arguments, and so are some by position."""
        if not keywords.keys() - RESERVED and not self._has_static(arguments):
            return self, arguments
        return self._variant_and_data(arguments, keywords)

    def _no_statics(self, names: Iterable[str]) -> Exception:
        return staging_error(
            f"{self.stageable.name} takes its arguments by position, not by name "
            f"({', '.join(names)})",
            "what is given by name is static: a parameter with a default, or an annotation that is no Rep",
        )

    def _has_static(self, arguments: Sequence[Any]) -> bool:
        """Whether static arguments are among those that were given by position."""
        return self.statics is not None and self.statics.takes(arguments)

    def _variant_and_data(
        self, arguments: Sequence[Any], keywords: dict[str, Any]
    ) -> tuple[Self, list[Any]]:
        """The variant for static arguments, and the others; those are taken out of `keywords`."""
        if self.statics is None:
            raise self._no_statics(name for name in keywords if name != "out")
        return self.statics.split(arguments, keywords)


def bound(root: WithStatics, values: dict[str, Any]) -> WithStatics:
    """The variant for these values, when it is unpickled."""
    return root.partial(**values)


def family_of(
    name: str,
    signature: StaticSignature,
    root: Any,
    make: Callable[[Mapping[str, Any]], Any],
) -> Family:
    """The variants of a function with this signature, of which `root` has the defaults.

    Raises: StagingError for a parameter with a name that calls use.
    """
    parameters = {
        one.name: StaticParameter(
            one.name, _REQUIRED if one.default is one.empty else one.default, one.annotation
        )
        for one in signature.statics
    }
    for taken in RESERVED:
        if taken in parameters:
            raise staging_error(
                f"parameter {taken} of {name} cannot be static: {taken}= of a call says where results are written to"
            )
    return Family(name, parameters, signature.order, root, make)


def with_values(
    function: Callable[..., Any],
    name: str,
    signature: StaticSignature,
    values: Mapping[str, Any],
) -> Callable[..., Any]:
    """`function` of its data alone, which static values are given for, or their defaults."""
    missing = [
        one.name for one in signature.statics if one.default is one.empty and one.name not in values
    ]
    if missing:
        return _Incomplete(function, name, missing[0])
    order = signature.order
    last = len(order) - order[::-1].index(None) if None in order else 0
    first = order[:last]
    if not any(first) and not values:
        return function
    in_order = order if any(first) or _only_by_position(signature) & values.keys() else ()
    defaults = {one.name: one.default for one in signature.statics}
    return _Bound(function, {**defaults, **values} if in_order else values, in_order)


@dataclass(frozen=True, eq=False)
class _Bound(GivenStatics):
    """Gives those in `order` by position among the data."""

    order: Sequence[str | None]

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return self.function

    def __call__(self, *data: Any) -> Any:
        rest = iter(data)
        positional = [next(rest) if one is None else self.values[one] for one in self.order]
        by_name = {name: value for name, value in self.values.items() if name not in self.order}
        return self.function(*positional, *rest, **by_name)


def _only_by_position(signature: StaticSignature) -> set[str]:
    return {one.name for one in signature.statics if one.kind is one.POSITIONAL_ONLY}


@dataclass(frozen=True, eq=False)
class _Incomplete:
    """A function that waits for the value of a static parameter."""

    function: Callable[..., Any]
    name: str
    missing: str

    def __call__(self, *_: Any) -> NoReturn:
        raise staging_error(
            f"{self.name} takes a value for its static parameter {self.missing}, which has no default",
            f"give it by name, {self.missing}=..., or bind it, {self.name}.partial({self.missing}=...)",
        )


def unwrapped(function: Any) -> Any:
    """The user's function behind one that has static values."""
    return function.function if isinstance(function, _Bound | _Incomplete) else function


_Transform = TypeVar("_Transform", bound=Callable[..., Any])


def passing_statics(transform: _Transform) -> _Transform:
    """A function that makes a staged function of one, `of`: what it makes has the static parameters of that one."""

    @functools.wraps(transform)
    def passing(*arguments: Any, **keywords: Any) -> Any:
        try:
            made = transform(*arguments, **keywords)
        except TypeError as error:
            if was_called(error):
                raise
            raise wrong_call(transform, arguments, keywords) from None
        of = keywords["of"] if "of" in keywords else arguments[0]
        statics: Statics | None = of.statics
        if statics is None:
            return made

        def again(variant: Any) -> Any:
            if "of" in keywords:
                return transform(*arguments, **{**keywords, "of": variant})
            return transform(variant, *arguments[1:], **keywords)

        return statics.through(made, again, made.stageable.name)

    return cast("_Transform", passing)
