"""Region flow of structured ops: which operands and yields reach which region arguments and results.

Every structured op is made of *flows*, in this order of roles.  A flow has a place among the operands, the arguments
and yields of bodies, or the results; which, says its role in the op:

    | role     | if                      | while                            | for                               |
    |----------|-------------------------|----------------------------------|-----------------------------------|
    | DECISION | operand                 | yielded by the condition         |                                   |
    | INDEX    |                         |                                  | two operands, argument            |
    | CARRIED  |                         | operand, arguments, yield, result| operand, argument, yield, result  |
    | CHOSEN   | yields, result          |                                  |                                   |
    | STACKED  |                         |                                  | yield (an element), result        |
    | INPUT    | operand, arguments      | operand, arguments               | operand, argument                 |

Whatever is true of a flow's operand and yields may be true of its arguments and its result: `sources_of`, `targets_of`.
Where it matters which body runs, `passed_along` says what becomes what on each of an op's paths.

Source: MLIR, RegionBranchOpInterface.
"""

from __future__ import annotations

import abc
import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, Self, TypeAlias

from ..errors import ShapeError
from ..ir.instruction import Instruction, Pure, Value
from ..lazy_dataclass import dataclass
from ..stage import Stage, Stages
from ..types import TensorType, Type
from .literal import number_of


class Role(enum.Enum):
    """What a flow is for.  Flows stand in this order."""

    DECISION = enum.auto()
    """A truth value that decides which body runs, or whether one runs again."""
    INDEX = enum.auto()
    """Two bounds outside, the number of the iteration inside."""
    CARRIED = enum.auto()
    """Replaced in every iteration by what the body yields."""
    CHOSEN = enum.auto()
    """What the one body yields that ran."""
    STACKED = enum.auto()
    """A tensor of the elements that the iterations yield, along a new leading axis."""
    INPUT = enum.auto()
    """The same in all bodies and iterations."""


@dataclass(frozen=True, slots=True)
class FlowLayout:
    """How the flows of a role map to operands, region arguments, yields and results."""

    operands: int = 0
    arguments: tuple[int, ...] = ()
    yields: tuple[int, ...] = ()
    has_result: bool = False


@dataclass(frozen=True, slots=True)
class Flow:
    """Flow `number` of an instruction: positions among its operands, and (body, position) of arguments and yields.

    `type` is that outside: a stacked tensor, not its elements.
    """

    number: int
    role: Role
    type: Type
    operands: tuple[int, ...] = ()
    arguments: tuple[tuple[int, int], ...] = ()
    yields: tuple[tuple[int, int], ...] = ()
    result: int | None = None

    @property
    def inner_type(self) -> Type:
        """The type inside of the bodies."""
        return element_of(self.type) if self.role is Role.STACKED else self.type


ControlPath: TypeAlias = "tuple[int | None, int | None]"
"""From where to where control goes: the numbers of bodies, None for outside."""

KnownDecider: TypeAlias = "int | bool | None"
"""A number that is known; None for one that may be any."""


class Structured(Pure):
    """An op whose bodies are run, chosen or repeated; each is one block that ends with `yield`."""

    takes_any: ClassVar[bool] = True
    stages: ClassVar[Stages] = frozenset(Stage)
    is_structured: ClassVar[bool] = True
    required: ClassVar[tuple[str, ...]] = (*Pure.required, "layouts", "paths", "is_loop", "ends")
    layouts: ClassVar[Mapping[Role, FlowLayout]]
    paths: ClassVar[tuple[ControlPath, ...]]
    """Every way that control can go."""
    certain: ClassVar[tuple[ControlPath, ...]] = ()
    """Those that are taken whatever the deciders are."""

    @property
    def updated(self) -> Role:
        """The role of a value that bodies may replace, and that is read afterwards: chosen, or carried."""
        return Role.CARRIED if Role.CARRIED in self.layouts else Role.CHOSEN

    @abc.abstractmethod
    def roles(self, operands: Sequence[Type]) -> Iterator[tuple[Role, Type]]:
        """Role and type of each flow, where the operands have these types."""

    @abc.abstractmethod
    def with_roles(self, roles: Sequence[tuple[Role, Type]]) -> Self:
        """The same op with flows of these roles and types."""

    @abc.abstractmethod
    def deciders(self, instruction: Instruction) -> Sequence[Value]:
        """The values that decide which region runs, or whether one runs again."""

    @abc.abstractmethod
    def possible_paths(self, *deciders: KnownDecider) -> Iterator[ControlPath]:
        """The paths that may be taken, given what is known of the deciders."""

    def trips(self, *deciders: KnownDecider) -> int | None:
        """How often the bodies run at most, given what is known of the deciders; None if that may be any number."""
        return None

    def flows(self, operands: Sequence[Type]) -> tuple[Flow, ...]:
        """The flows, where the operands have these types."""
        found: list[Flow] = []
        operand = result = 0
        arguments, yields = [0] * len(self.bodies), [0] * len(self.bodies)
        for number, (role, type) in enumerate(self.roles(operands)):
            layout = self.layouts[role]
            found.append(
                Flow(
                    number,
                    role,
                    type,
                    tuple(range(operand, operand + layout.operands)),
                    tuple([(body, arguments[body]) for body in layout.arguments]),
                    tuple([(body, yields[body]) for body in layout.yields]),
                    result if layout.has_result else None,
                )
            )
            operand += layout.operands
            result += layout.has_result
            for body in layout.arguments:
                arguments[body] += 1
            for body in layout.yields:
                yields[body] += 1
        return tuple(found)

    def body_arguments(self, body: int, operands: Sequence[Type]) -> tuple[Type, ...]:
        """The types of the arguments that this body takes."""
        return tuple(f.type for f in self.flows(operands) for b, _ in f.arguments if b == body)

    def body_yields(self, body: int, operands: Sequence[Type]) -> tuple[Type, ...]:
        """The types of what this body yields."""
        return tuple(f.inner_type for f in self.flows(operands) for b, _ in f.yields if b == body)

    def result_types(self, operands: Sequence[Type]) -> tuple[Type, ...]:
        """The types of the results."""
        return tuple(f.type for f in self.flows(operands) if f.result is not None)


def flows_of(instruction: Instruction) -> tuple[Flow, ...]:
    """The flows of an instruction; those that are not structured have none."""
    if not instruction.op.is_structured:
        return ()
    return structured(instruction).flows([operand.type for operand in instruction.operands])


def structured(instruction: Instruction) -> Structured:
    """The op of a structured instruction."""
    assert isinstance(instruction.op, Structured)
    return instruction.op


def flows_in(instruction: Instruction, *roles: Role) -> list[Flow]:
    """Those of these roles."""
    return [flow for flow in flows_of(instruction) if flow.role in roles]


def operands_of(instruction: Instruction, flow: Flow) -> list[Value]:
    """The operands of a flow."""
    return [instruction.operands[position] for position in flow.operands]


def arguments_of_bodies(instruction: Instruction, flow: Flow) -> list[Value]:
    """The region arguments of a flow."""
    regions = instruction.regions
    return [regions[body].entry.arguments[position] for body, position in flow.arguments]


def yields_of_bodies(instruction: Instruction, flow: Flow) -> list[Value]:
    """What the bodies yield for a flow."""
    regions = instruction.regions
    return [regions[body].entry.terminator.operands[position] for body, position in flow.yields]


def sources_of(instruction: Instruction, flow: Flow) -> list[Value]:
    """All that may become the arguments and the result of a flow."""
    return [*operands_of(instruction, flow), *yields_of_bodies(instruction, flow)]


def targets_of(instruction: Instruction, flow: Flow) -> list[Value]:
    """The arguments of bodies and the result that are made of a flow's sources."""
    found = arguments_of_bodies(instruction, flow)
    return found if flow.result is None else [*found, instruction.results[flow.result]]


def possible_paths(
    instruction: Instruction, number: Callable[[Value], KnownDecider]
) -> Sequence[ControlPath]:
    """The paths that may be taken, given what `number` says of the values that decide."""
    op = structured(instruction)
    return tuple(op.possible_paths(*map(number, op.deciders(instruction))))


def certain_bodies(instruction: Instruction) -> list[int]:
    """The bodies that are run at least once: the condition of a `while`."""
    return [body for _, body in structured(instruction).certain if body is not None]


def trips_of(instruction: Instruction) -> int | None:
    """How often the bodies are run at most; None if that is not known."""
    if not instruction.op.is_structured:
        return None
    op = structured(instruction)
    return op.trips(*map(number_of, op.deciders(instruction)))


def never_ends(instruction: Instruction) -> bool:
    """Whether it is a loop whose condition is true for ever."""
    return not instruction.op.ends and all(
        number_of(x) is True for x in structured(instruction).deciders(instruction)
    )


def is_condition(instruction: Instruction, body: int) -> bool:
    """Whether a body of a structured instruction only decides where control goes: that of a `while`."""
    op = instruction.op
    return isinstance(op, Structured) and body not in op.layouts[op.updated].yields


def passed_along(instruction: Instruction, path: ControlPath) -> list[tuple[Value, Value]]:
    """The assignments, source to target, on a control-flow path.

    The first index is the lower bound; that of later iterations comes from nowhere, and stacked tensors are made of
    all of them.
    """
    start, end = path
    pairs: list[tuple[Value, Value]] = []
    for flow in flows_of(instruction):
        target = _at(instruction, flow, end, is_end=True)
        source = _at(instruction, flow, start, is_end=False)
        if target is not None and source is not None and flow.role is not Role.STACKED:
            pairs.append((source, target))
    return pairs


def _at(instruction: Instruction, flow: Flow, where: int | None, *, is_end: bool) -> Value | None:
    """What a flow is where control comes to, or leaves from."""
    if where is None and is_end:
        return None if flow.result is None else instruction.results[flow.result]
    if where is None:
        return instruction.operands[flow.operands[0]] if flow.operands else None
    block = instruction.regions[where].entry
    if not is_end:
        for body, position in flow.yields:
            if body == where:
                return block.terminator.operands[position]
        if flow.role is Role.INDEX:
            return None
    for body, position in flow.arguments:
        if body == where:
            return block.arguments[position]
    return None


def keep_flows(instruction: Instruction, kept: Sequence[Flow]) -> bool:
    """Leave a structured instruction only these flows, in order; whether it had others.

    Nothing may use what the others become, in its bodies either.
    """
    if len(kept) == len(flows_of(instruction)):
        return False
    instruction.op = structured(instruction).with_roles([(flow.role, flow.type) for flow in kept])
    instruction.set_operands([x for flow in kept for x in operands_of(instruction, flow)])
    for number, region in enumerate(instruction.regions):
        block = region.entry
        block.arguments[:] = [
            block.arguments[k] for flow in kept for body, k in flow.arguments if body == number
        ]
        yielded = block.terminator.operands
        block.terminator.set_operands(
            [yielded[k] for flow in kept for body, k in flow.yields if body == number]
        )
    _set_results(instruction, [instruction.results[f.result] for f in kept if f.result is not None])
    return True


def add_flows(instruction: Instruction, role: Role, values: Sequence[Value]) -> list[Flow]:
    """Give a structured instruction flows that begin as `values`, behind those of this role or before later ones.

    They have arguments and results, of their own names; what the bodies yield for them is left to `add_yields`.
    """
    op = structured(instruction)
    flows = flows_of(instruction)
    first = sum(flow.role.value <= role.value for flow in flows)
    roles = [(flow.role, flow.type) for flow in flows]
    roles[first:first] = [(role, value.type) for value in values]
    layout = op.layouts[role]
    before, after = flows[:first], flows[first:]
    if layout.operands:
        operands = [
            [x for f in part for x in operands_of(instruction, f)] for part in (before, after)
        ]
        instruction.set_operands([*operands[0], *values, *operands[1]])
    for number in layout.arguments:
        arguments = instruction.regions[number].entry.arguments
        at = sum(body == number for flow in before for body, _ in flow.arguments)
        arguments[at:at] = [Value(value.type, value.name) for value in values]
    if layout.has_result:
        at = sum(flow.result is not None for flow in before)
        results = list(instruction.results)
        results[at:at] = [Value(value.type, value.name, instruction) for value in values]
        _set_results(instruction, results)
    instruction.op = op.with_roles(roles)
    return list(flows_of(instruction)[first : first + len(values)])


def add_yields(
    instruction: Instruction, body: int, flows: Sequence[Flow], values: Sequence[Value]
) -> None:
    """Have a body yield `values` for `flows`, which stand side by side, if it yields for them at all."""
    places = [position for flow in flows for number, position in flow.yields if number == body]
    if places:
        terminator = instruction.regions[body].entry.terminator
        yielded = list(terminator.operands)
        yielded[places[0] : places[0]] = values
        terminator.set_operands(yielded)


def _set_results(instruction: Instruction, results: Sequence[Value]) -> None:
    instruction.results = tuple(results)
    for index, result in enumerate(results):
        result.index = index


def element_of(stacked: Type) -> Type:
    """What one iteration adds to a stacked tensor."""
    if not isinstance(stacked, TensorType):
        raise ShapeError(f"for stacks tensors, not {stacked}")
    return stacked.with_shape(stacked.shape[1:])
