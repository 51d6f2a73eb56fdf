"""Functions and modules: what a program is made of."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from ..errors import InternalError
from ..types import FunctionType, StructType, Type
from .graph import Block, Region, Value


class Stage(enum.Enum):
    """How far a module has come; see the package's text for what each stage allows."""

    RAW = "raw"
    OPTIMIZABLE = "optimizable"
    COMPUTE = "compute"
    SCHEDULE = "schedule"


@dataclass(frozen=True)
class GradientOf:
    """A declaration `[gradient @primal from i wrt … keeping … seedable]`.

    Results are the derivatives in the order of `wrt`, then the kept results; without `seedable` the seed
    is ones.  `wrt=None` means all parameters, `source=None` the only result.
    """

    primal: str
    source: int | None = None
    wrt: tuple[int, ...] | None = None
    keeping: tuple[int, ...] = ()
    seedable: bool = False


@dataclass(eq=False, repr=False)
class Function:
    """A name, a type and a body; a declaration has no body."""

    name: str
    type: FunctionType
    body: Region | None = None
    declaration: GradientOf | None = None
    attributes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<func @{self.name}: {self.type}>"

    @property
    def entry(self) -> Block:
        if self.body is None:
            raise InternalError(f"@{self.name} is a declaration and has no body")
        return self.body.entry

    @property
    def parameters(self) -> list[Value]:
        """The arguments of the entry block."""
        return self.entry.arguments


@dataclass(eq=False, repr=False)
class Module:
    """Named functions and the structs they speak of, in order of definition."""

    name: str = "module"
    stage: Stage = Stage.RAW
    structs: dict[str, StructType] = field(default_factory=dict[str, StructType])
    functions: dict[str, Function] = field(default_factory=dict[str, Function])

    def __repr__(self) -> str:
        return f"<module {self.name!r} of {len(self.functions)} functions>"

    def add(self, function: Function) -> Function:
        """Put `function` into the module.  Its name must be new."""
        if function.name in self.functions:
            raise InternalError(f"@{function.name} is already defined")
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
        """Make the definitions of all structs inside `type` known, the inner ones first."""
        for struct in structs_in(type):
            known = self.structs.setdefault(struct.name, struct)
            if known != struct:
                raise InternalError(f"two different structs are called ${struct.name}")


def structs_in(type: Type) -> list[StructType]:
    """All structs that `type` mentions, each after those it is made of."""
    found: dict[StructType, None] = {}
    pending: list[tuple[Type, bool]] = [(type, False)]
    while pending:
        current, done = pending.pop()
        match current:
            case StructType(fields=fields):
                if done:
                    found.setdefault(current)
                elif current not in found:
                    pending.append((current, True))
                    pending.extend((element, False) for _, element in reversed(fields))
            case FunctionType(parameters, result):
                pending.extend((t, False) for t in (result, *reversed(parameters)))
            case _:
                pending.extend((t, False) for t in reversed(getattr(current, "elements", ())))
    return list(found)
