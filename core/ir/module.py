"""Functions and modules: what a program is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from ..errors import InternalError
from ..lazy_dataclass import dataclass
from ..location import HasLocation
from ..stage import Stage
from ..types import EnumType, FunctionType, OpaqueType, StructType, Type, parts_of, written
from .instruction import Block, Region, Value

SavePolicy: TypeAlias = Literal["auto", "all", "none"] | int
"""What the forward half of a gradient saves: what costs least, all that is used, nothing, or so many bytes at most."""


@dataclass(frozen=True)
class GradientOf:
    """A declaration `[gradient @primal from i, … wrt … keeping … seedable save …]`.

    Results are the derivatives in the order of `wrt`, then the kept results.  `seedable`: a seed for each of
    `sources` comes behind the primal's parameters; without it seeds are ones.  `wrt=None` means all parameters,
    `sources=None` the only result: of several some have to be named.  With a policy what to `save`, the halves are
    functions of their own, which the gradient calls; without, they are one.
    """

    primal: str
    sources: tuple[int, ...] | None = None
    wrt: tuple[int, ...] | None = None
    keeping: tuple[int, ...] = ()
    seedable: bool = False
    save: SavePolicy | None = None
    location: HasLocation | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class TangentOf:
    """A declaration `[tangent @primal from i, … wrt … keeping … order n]`: forward mode.

    Parameters are those of the primal, then one tangent per entry of `wrt`; results are the tangents of the
    primal's results (only of `sources` if they are given), then the kept results.  Of an order above 1 these are
    followed, before what is kept, by the further coefficients of the Taylor series along the tangents, order by order.
    """

    primal: str
    sources: tuple[int, ...] | None = None
    wrt: tuple[int, ...] | None = None
    keeping: tuple[int, ...] = ()
    location: HasLocation | None = field(default=None, compare=False, repr=False)
    order: int = 1


@dataclass(frozen=True)
class BatchOf:
    """A declaration `[batch @primal along 0, none into 0 named "axis"]`: the primal for all elements of a batch.

    `along` has, for each parameter of the primal, where the batch's axis stands in what is given for it; None for a
    parameter that is the same for all elements.  `into` has where it stands in each result, None for one that is the
    same for all; without it, it leads in every result.  `axis` is what `axisReduce` calls it.
    """

    primal: str
    along: tuple[int | None, ...]
    into: tuple[int | None, ...] | None = None
    axis: str | None = None
    location: HasLocation | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Extern:
    """A declaration `[extern]`: the function is defined elsewhere, with C's calling convention.

    Where it is known in which place of this process, which no text says, it has an `address`, which is good while
    `owner` is referenced.
    """

    address: int | None = field(default=None, compare=False, repr=False)
    owner: object = field(default=None, compare=False, repr=False)


Declaration: TypeAlias = GradientOf | TangentOf | BatchOf | Extern


@dataclass(frozen=True)
class CustomRules:
    """The functions that derivatives of a function are computed by, in place of its body.

    `[jvp @t]`: @t takes the arguments and a tangent of each, and returns the tangent of each result.
    `[vjp @p]`: @p takes the arguments and a cotangent of each result, and returns the cotangent of each argument.
    `[vjp @p saving @s]`: @s takes the arguments, and returns the results and what is saved; @p takes what is saved in
    place of the arguments.  Tangents and cotangents have the types of what they belong to; numbers in them that are
    no floats are zeros, and not read.
    """

    jvp: str | None = None
    vjp: str | None = None
    saving: str | None = None
    location: HasLocation | None = field(default=None, compare=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The functions."""
        return tuple(name for name in (self.jvp, self.vjp, self.saving) if name is not None)

    def __bool__(self) -> bool:
        return bool(self.names)


NO_RULES = CustomRules()


@dataclass(eq=False, repr=False)
class Function:
    """A name, a type and a body; a declaration has no body."""

    name: str
    type: FunctionType
    body: Region | None = None
    declaration: Declaration | None = None
    attributes: tuple[str, ...] = ()
    location: HasLocation | None = None
    attribute_locations: Mapping[str, HasLocation] = field(default_factory=dict[str, HasLocation])
    rules: CustomRules = NO_RULES
    made_from: str = ""
    """The function that differentiation made this one from, as messages name it; not part of the text."""

    def __repr__(self) -> str:
        return f"<func {written('@', self.name)}: {self.type}>"

    @property
    def primal(self) -> str | None:
        """The function that this one is declared as a derivative of, or as batching."""
        match self.declaration:
            case GradientOf() | TangentOf() | BatchOf():
                return self.declaration.primal
            case _:
                return None

    @property
    def entry(self) -> Block:
        if self.body is None:
            raise InternalError(f"{written('@', self.name)} is a declaration and has no body")
        return self.body.entry

    @property
    def parameters(self) -> list[Value]:
        """The arguments of the entry block."""
        return self.entry.arguments


@dataclass(frozen=True)
class Variable:
    """A global variable: memory for one value, zero at first.  `@name` is a pointer to it."""

    name: str
    type: Type
    location: HasLocation | None = field(default=None, compare=False, repr=False)


@dataclass(eq=False, repr=False)
class Module:
    """Named functions, and the types and variables they speak of, in order of definition.

    `aliases` are other names of types; an alias of an `OpaqueType` of its own name is its definition.
    `type_locations` are the places of the definitions of types, by their names: equal types are one, wherever
    they are defined.
    """

    name: str = "module"
    stage: Stage = Stage.RAW
    structs: dict[str, StructType] = field(default_factory=dict[str, StructType])
    functions: dict[str, Function] = field(default_factory=dict[str, Function])
    enums: dict[str, EnumType] = field(default_factory=dict[str, EnumType])
    aliases: dict[str, Type] = field(default_factory=dict[str, Type])
    variables: dict[str, Variable] = field(default_factory=dict[str, Variable])
    type_locations: dict[str, HasLocation] = field(default_factory=dict[str, HasLocation])

    def __repr__(self) -> str:
        return f"<module {self.name!r} of {len(self.functions)} functions>"

    def add(self, function: Function) -> Function:
        """Put `function` into the module.  Its name must be new."""
        if function.name in self.functions:
            raise InternalError(f"{written('@', function.name)} is already defined")
        self.functions[function.name] = function
        for type in (*function.type.parameters, function.type.result):
            self.add_structs(type)
        return function

    def fresh_name(self, wanted: str) -> str:
        """`wanted`, or `wanted_1`, `wanted_2`, … when it is taken."""
        name, number = wanted, 0
        while name in self.functions:
            number += 1
            name = f"{wanted}_{number}"
        return name

    def add_structs(self, type: Type) -> None:
        """Make the definitions of all structs and enums inside `type` known, the inner ones first."""
        for nominal in nominals_in(type):
            known: Type
            if isinstance(nominal, StructType):
                known = self.structs.setdefault(nominal.name, nominal)
            elif isinstance(nominal, EnumType):
                known = self.enums.setdefault(nominal.name, nominal)
            else:
                known = self.aliases.setdefault(nominal.name, nominal)
            if known != nominal:
                raise InternalError(f"two different types are called {written('$', nominal.name)}")


Nominal: TypeAlias = StructType | EnumType | OpaqueType
"""The types that have a definition of their own."""


def nominals_in(*types: Type) -> list[Nominal]:
    """All types with definitions that `types` mention, each after those it is made of.

    An enum that contains itself stands where its walk ends.
    """
    found: dict[Nominal, None] = {}
    entered: set[Type] = set()
    pending: list[tuple[Type, bool]] = [(type, False) for type in reversed(types)]
    while pending:
        current, done = pending.pop()
        if done:
            assert isinstance(current, Nominal)
            found.setdefault(current)
        elif current not in entered:
            if isinstance(current, Nominal):
                entered.add(current)
                pending.append((current, True))
            pending.extend((part, False) for part in reversed(parts_of(current)))
    return list(found)
