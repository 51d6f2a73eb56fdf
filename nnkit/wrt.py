"""What `wrt` selects: parameters by their indices or names, or parameters and their fields by a lens or a selector."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Sequence
from typing import Any, NoReturn

from .callables import StagedFunction
from .core.lazy_dataclass import dataclass
from .declared_types import declared_result
from .derivative_checks import has_floats
from .staging.aggregates import element_of, with_element
from .staging.primitive import differentiation_error, is_index
from .staging.rep import Rep
from .staging.spec import SequenceSpec, Spec, StructSpec, TupleSpec, as_tuple, is_tuple
from .staging.staged_functions import PythonFunction
from .struct_fields import Lens


def chosen_parameters(of: StagedFunction, wrt: Any) -> Any:
    """The parameters that `wrt` selects: an index, a path, or a tuple of these; of a name its index."""
    if isinstance(wrt, Lens):
        return _path_of_lens(of, wrt)
    if isinstance(wrt, str):
        return _index_of(of, wrt)
    if isinstance(wrt, StagedFunction) or not callable(wrt):
        each = wrt if isinstance(wrt, int) or is_tuple(wrt) else indices_of(wrt, "wrt")
        if not is_tuple(each):
            return each
        return tuple(_index_of(of, one) if isinstance(one, str) else one for one in each)
    names = of.stageable.parameter_names
    places = [ParameterPath(index, (), spec) for index, spec in enumerate(of.declared)]
    try:
        inspect.signature(wrt).bind(*places)
    except TypeError:
        raise differentiation_error(
            f"the selector takes other arguments than {of.stageable.name}: it gets "
            f"{len(names)} ({', '.join(names)})"
        ) from None
    found = wrt(*places)
    for place in as_tuple(found):
        if not isinstance(place, ParameterPath):
            raise differentiation_error(
                f"the selector returns {place!r}: it picks parameters or their fields"
            )
    return indices_of(found, "wrt") if isinstance(found, list) else found


def are_indices(chosen: Any) -> bool:
    """Whether what is chosen are whole parameters, by their numbers."""
    return not any(isinstance(one, ParameterPath) for one in as_tuple(chosen))


def indices_of(given: Any, what: str) -> tuple[int, ...]:
    """A sequence of indices as a tuple."""
    if hasattr(given, "__len__") and not isinstance(given, str | Rep):
        return tuple(given)
    raise differentiation_error(
        f"{what} is a tuple of indices, not {given!r}",
        f"{what}=(0,)"
        if what == "keeping"
        else "an index or a name of a parameter, a tuple of them, a field or a selector",
    )


def _index_of(of: StagedFunction, name: str) -> int:
    names = of.stageable.parameter_names
    if name not in names:
        near = difflib.get_close_matches(name, names, 1)
        raise differentiation_error(
            f"{of.stageable.name} has no parameter {name!r}: those that it has are {', '.join(names)}",
            f"did you mean {near[0]!r}?" if near else "",
        )
    return [*names].index(name)


def _path_of_lens(of: StagedFunction, lens: Lens) -> ParameterPath:
    """The field of the first parameter."""
    names = of.stageable.parameter_names
    if not names:
        raise differentiation_error(f"{of.stageable.name} has no parameters to differentiate")
    first = of.declared[0]
    if not isinstance(first, StructSpec) or not issubclass(first.cls, lens.owner):
        held = f"a {first.words}" if first else "of no declared type"
        raise differentiation_error(
            f"wrt={lens!r} is a field of parameter 0, and {names[0]} of {of.stageable.name} is {held}",
            f"declare it, {names[0]}: Rep[{lens.owner.__name__}], or use a selector",
        )
    return ParameterPath(0, (lens.name,), first.find(lens.name))


@dataclass(frozen=True)
class ParameterPath:
    """A parameter, or the path to a field inside of it, as `wrt` selects it."""

    index: int
    path: tuple[str | int, ...]
    """Names of fields, and positions in sequences."""
    spec: Spec | None

    def holds(self, other: ParameterPath) -> bool:
        """Whether `other` is this one, or inside of it, or may be: one counts from the end of a sequence."""
        below = zip(self.path, other.path, strict=False)
        return (
            self.index == other.index
            and len(self.path) <= len(other.path)
            and all(one == two or _may_be_same(one, two) for one, two in below)
        )

    def __getattr__(self, name: str) -> ParameterPath:
        if not isinstance(self.spec, StructSpec) or self.spec.find(name) is None:
            held = f"a {self.spec.words}" if self.spec else "of no declared type"
            raise differentiation_error(
                f"the selector asks parameter {self.index} for the field {name!r}, and it is {held}"
            )
        return ParameterPath(self.index, (*self.path, name), self.spec.find(name))

    def __getitem__(self, position: Any) -> ParameterPath:
        """An element of a sequence, or the field that a lens names."""
        if isinstance(position, Lens):
            return self.__getattr__(position.name)
        if not isinstance(self.spec, SequenceSpec | TupleSpec) or not is_index(position):
            held = f"a {self.spec.words}" if self.spec else "of no declared type"
            raise differentiation_error(
                f"the selector asks parameter {self.index} for element {position!r}, and it is {held}"
            )
        if isinstance(self.spec, SequenceSpec):
            return ParameterPath(self.index, (*self.path, int(position)), self.spec.element)
        inside = self.spec.elements
        if not -len(inside) <= position < len(inside):
            raise differentiation_error(
                f"the selector asks for element {position}: there are {len(inside)}"
            )
        at = int(position) % len(inside)
        return ParameterPath(self.index, (*self.path, at), inside[at])

    def __iter__(self) -> NoReturn:
        raise differentiation_error(
            "a selector cannot go through a sequence: it has no length of its own",
            "select elements by their positions, `lambda p: (p.layers[0], p.layers[1])`, or the whole, `p.layers`",
        )


def _may_be_same(one: str | int, other: str | int) -> bool:
    return isinstance(one, int) and isinstance(other, int) and (one < 0) != (other < 0)


@dataclass(frozen=True)
class Selection:
    """What `wrt` selects, as parameters `indices` of a function `of` of its own.

    That is the given function, or one that takes the selected fields before all parameters of the given one, of which
    it replaces them.
    """

    of: StagedFunction
    indices: tuple[int, ...]
    single: bool
    """Whether one was selected by itself, and not a tuple."""
    places: tuple[ParameterPath, ...] = ()

    def arguments(self, given: Sequence[Rep]) -> list[Rep]:
        """The arguments of `of` for those of the given function."""
        return [*(follow(given[place.index], place.path) for place in self.places), *given]

    @property
    def names(self) -> list[str]:
        return [self.of.stageable.parameter_names[index] for index in self.indices]

    @property
    def declared(self) -> list[Spec | None]:
        return [self.of.declared[index] for index in self.indices]


def select(of: StagedFunction, wrt: Any) -> Selection:
    """What `wrt` selects of the parameters of `of`; None selects them all, as a tuple.

    Raises: DifferentiationError for what is not there, or is there twice.
    """
    name, names = of.stageable.name, of.stageable.parameter_names
    chosen = tuple(range(len(names))) if wrt is None else chosen_parameters(of, wrt)
    single, each = not is_tuple(chosen), as_tuple(chosen)
    if are_indices(chosen):
        check_indices(name, each, len(names), names)
        return Selection(of, each, single)
    places: tuple[ParameterPath, ...] = each
    check_places(of, places)
    for k, place in enumerate(places):
        for other in places[k + 1 :]:
            if place.holds(other) or other.holds(place):
                raise differentiation_error(
                    "the selector names a parameter twice, or may: of a sequence, count all positions from one end"
                    if place.path != other.path
                    else "the selector names a parameter twice"
                )
    count = len(places)

    def replaced(*arguments: Rep) -> Any:
        given = list(arguments[count:])
        for place, value in zip(places, arguments, strict=False):
            given[place.index] = _with(given[place.index], place.path, value)
        return of(*given)

    labels = (path_words(names[place.index], place.path) for place in places)
    stageable = PythonFunction(
        replaced,
        name,
        (*labels, *names),
        (*(place.spec for place in places), *of.declared),
        declared_result(of.stageable),
        of.stageable.location,
        is_wrapper=True,
    )
    return Selection(StagedFunction(stageable), tuple(range(count)), single, places)


def path_words(name: str, path: Sequence[str | int]) -> str:
    """`p.layers[0].w`."""
    return name + "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in path)


def _with(rep: Rep, path: tuple[str | int, ...], value: Rep) -> Rep:
    """`rep` with another value at the end of the path."""
    if not path:
        return value
    inside = _with(_part(rep, path[0]), path[1:], value)
    if isinstance(path[0], int):
        return Rep(with_element(rep.expression, path[0], inside.expression))
    assert isinstance(rep.spec, StructSpec)
    return rep.set(getattr(rep.spec.cls, path[0]), inside)


def _part(rep: Rep, step: str | int) -> Rep:
    """The field of this name, or the element at this position."""
    if isinstance(step, int):
        if not isinstance(rep.spec, TupleSpec) or not -len(rep.spec.elements) <= step < len(
            rep.spec.elements
        ):
            raise differentiation_error(
                f"there is no element {step} in {rep.spec.words} to differentiate by"
            )
        return Rep(element_of(rep.expression, step))
    assert isinstance(rep.spec, StructSpec)
    part: Rep = rep[getattr(rep.spec.cls, step)]
    return part


def check_indices(name: str, wrt: tuple[Any, ...], count: int, names: Sequence[str]) -> None:
    """Raises: DifferentiationError when `wrt` is empty, or not of different parameters."""
    if not wrt:
        raise differentiation_error(f"wrt is empty: name at least one parameter of {name}")
    for index in wrt:
        if isinstance(index, bool) or not isinstance(index, int):
            raise differentiation_error(
                f"wrt holds {index!r}: it takes indices of parameters of {name}"
            )
        if not 0 <= index < count:
            shown = ", ".join(f"{k} {parameter}" for k, parameter in enumerate(names))
            raise differentiation_error(
                f"wrt={index} is out of range: {name} has {count} parameter{'s' * (count != 1)}"
                f"{f' ({shown})' * bool(shown)}"
            )
    if len(set(wrt)) != len(wrt):
        raise differentiation_error(f"wrt={wrt} names a parameter of {name} twice")


def check_places(of: StagedFunction, places: Sequence[ParameterPath]) -> None:
    """A struct may have floats, and the chosen field none."""
    for place in places:
        if place.path and place.spec is not None and not has_floats(place.spec):
            name = path_words(of.stageable.parameter_names[place.index], place.path)
            raise differentiation_error(
                f"{name} of {of.stageable.name} is a {place.spec.words}: only floats have derivatives",
                "leave it out of wrt",
            )


def follow(rep: Rep, path: tuple[str | int, ...]) -> Rep:
    """What is at the end of the path."""
    for step in path:
        rep = _part(rep, step)
    return rep
