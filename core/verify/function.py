"""Rules 10 to 18: a function's blocks, and where values are defined and used.

1. Walk the function once and note where every value is defined.
2. Walk it again and check each instruction.  The regions around it are open, each at some instruction of
   some block: an operand is visible if it is defined in one of them, at a place that comes before on every
   path.  The order of blocks in the text does not matter.

Bodies inside bodies wait on a list, so that depth costs no more than length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import cached_property
from typing import NamedTuple

from ..analysis import ControlFlow
from ..ir import Block, Function, Instruction, Module, Region, Stage, Value
from ..kernels.ops import Kernel
from ..lazy_dataclass import dataclass
from ..ops import Literal, Nest, Yield
from ..ops.aggregate import listed
from ..signal_handlers import pass_on
from ..text.lexer import written
from ..text.printer import print_instruction, value_names
from ..text.spelling import in_text_form
from ..types import TensorType
from .error_location import location_lines, with_locations
from .instruction import has_all_elements, instruction_violations
from .kernel import body_violations, kernel_violations
from .nest import nest_violations, schedule_violations
from .stage import needs_closed_bodies, stage_violations
from .terminator import label, successor_violations
from .types import Types

_MOST_SHOWN = 200
"""Characters of an instruction in a message: a line or two of a terminal.  A matter of taste."""


class _Definition(NamedTuple):
    """Where a value is defined: an argument is at position −1."""

    region: Region
    block: int
    position: int


@dataclass(eq=False)
class _RegionCheck:
    """A region that is being checked, and the place in it where the check is.

    Only values of open regions at depth `visible_from` or deeper can be used.
    """

    region: Region
    owner: Instruction | None
    depth: int
    visible_from: int
    is_kernel: bool = False
    block: int = 0
    position: int = -1

    @cached_property
    def flow(self) -> ControlFlow:
        return ControlFlow(self.region)

    def comes_before(self, site: _Definition) -> bool:
        """Whether a value of this region is defined on every path to the place."""
        if site.block == self.block:
            return site.position < self.position
        graph = self.flow.graph
        return not graph.is_reachable(self.block) or self.flow.dominators.dominates(
            site.block, self.block
        )


@dataclass(eq=False)
class FunctionCheck:
    """The check of one function's body; `found` are the violations so far."""

    module: Module
    function: Function
    types: Types
    found: list[str] = field(default_factory=list[str])
    sites: dict[Value, _Definition] = field(default_factory=dict[Value, _Definition])
    open: dict[Region, _RegionCheck] = field(default_factory=dict[Region, _RegionCheck])
    entered: set[Block | Instruction] = field(default_factory=set["Block | Instruction"])

    def run(self, body: Region) -> list[str]:
        """Every violation in the function's body."""
        self.found += with_locations(guarded(self._note_definitions(body)), self.function.location)
        if self.found:
            return self.found
        stack = [self._region(_RegionCheck(body, None, 0, 0))]
        while stack:
            try:
                inner = next(stack[-1], None)
            except Exception as error:
                pass_on(error)
                self.found += with_locations([_malformed(error)], self.function.location)
                return self.found
            if inner is None:
                stack.pop()
            else:
                stack.append(self._region(inner))
        for value in self.sites:
            if messages := guarded(self._uses(value)):
                location = value.producer.location if value.producer else None
                self.found += with_locations(messages, location, self.function.location)
        return self.found

    def _note_definitions(self, body: Region) -> Iterator[str]:
        """Step 1.  A body that stands in two places ends the check: it may stand in itself."""
        seen: set[Region] = {body}
        pending = [body]
        while pending:
            region = pending.pop()
            for number, block in enumerate(region.blocks):
                for argument in block.arguments:
                    self.sites.setdefault(argument, _Definition(region, number, -1))
                for position, instruction in enumerate(block.instructions):
                    for result in instruction.results:
                        self.sites.setdefault(result, _Definition(region, number, position))
                    for inner in instruction.regions:
                        if inner in seen:
                            yield f"a body of {instruction.op.name} stands in two places"
                            return
                        seen.add(inner)
                        pending.append(inner)

    def _region(self, place: _RegionCheck) -> Iterator[_RegionCheck]:
        """Step 2 for a region: yields the bodies in it, which are checked before it goes on."""
        self.open[place.region] = place
        labels: set[str] = set()
        for number, block in enumerate(place.region.blocks):
            place.block, place.position = number, -1
            if block.name is not None and block.name in labels:
                self._say(f"the block '{block.name} is defined twice", block)
            labels.add(block.name or "")
            if block in self.entered:
                self._say(f"{label(block)} stands in two places", block)
                continue
            self.entered.add(block)
            for argument in block.arguments:
                if argument.producer is not None:
                    shown = self.shown(argument)
                    self._say(f"the argument {shown} has an instruction that computes it", block)
                self._define(argument, place, block)
            last = len(block.instructions) - 1
            for position, instruction in enumerate(block.instructions):
                place.position = position
                messages = guarded(self._instruction(instruction, place, position == last))
                if messages:
                    self._report(instruction, messages)
                for result in instruction.results:
                    self._define(result, place, instruction)
                for body in instruction.regions:
                    yield self._opened(body, instruction, place)
            if last < 0 or not block.instructions[last].op.is_terminator:
                self._say(f"the block '{block.name or ''} does not end with a terminator", block)
        del self.open[place.region]

    def _opened(self, body: Region, owner: Instruction, around: _RegionCheck) -> _RegionCheck:
        """A body, which sees what is around it unless it is closed."""
        is_closed = not owner.op.is_structured or needs_closed_bodies(self.module.stage)
        is_closed = is_closed and not around.is_kernel
        depth, is_kernel = around.depth + 1, around.is_kernel or isinstance(owner.op, Kernel)
        visible_from = depth if is_closed else around.visible_from
        return _RegionCheck(body, owner, depth, visible_from, is_kernel)

    def _define(self, value: Value, place: _RegionCheck, by: Block | Instruction) -> None:
        if not isinstance(value.type, TensorType):
            self._say_all(guarded(self.types.check(value.type)), by)
        if self.sites[value] != (place.region, place.block, place.position):
            self._say(f"the value {self.shown(value)} is defined twice", by)

    def _instruction(
        self, instruction: Instruction, place: _RegionCheck, is_last: bool
    ) -> Iterator[str]:
        op = instruction.op
        if instruction in self.entered and not instruction.results:
            yield "the same instruction stands in two places"
        self.entered.add(instruction)
        for operand in instruction.operands:
            if instruction not in operand.uses:
                yield f"the operand {self.shown(operand)} does not know this use of it"
            site = self.sites.get(operand)
            if site is not None and site[0] is place.region and site[1] == place.block:
                if site[2] >= place.position:
                    yield f"the operand {self.shown(operand)} is not defined before its use"
                continue
            why = self._is_hidden(site, place)
            if why:
                yield f"the operand {self.shown(operand)} {why}"
        for index, result in enumerate(instruction.results):
            if result.producer is not instruction or result.index != index:
                yield "a result does not know where it comes from"
        if op.is_terminator or instruction.successors:
            yield from self._ending(instruction, place, is_last)
            yield from successor_violations(instruction, place.flow.number)
        yield from instruction_violations(instruction, self.module)
        if place.is_kernel:
            yield from kernel_violations(instruction)
        elif place.owner is None or place.owner.op.is_structured:
            yield from stage_violations(instruction, self.module.stage)
            if self.module.stage is Stage.SCHEDULE:
                is_body = place.owner is not None
                outputs = len(place.owner.results if place.owner else self.function.type.results)
                yield from schedule_violations(instruction, outputs, is_body=is_body)
        if isinstance(op, Kernel):
            yield from body_violations(instruction, op)
        if isinstance(op, Nest):
            yield from nest_violations(instruction, op)

    def _uses(self, value: Value) -> Iterator[str]:
        """Whether what uses `value`, as it knows, is there and does so."""
        for user in value.uses:
            if user not in self.entered or value not in user.operands:
                yield f"{self.shown(value)} is used by an instruction that is not there: {user!r}"

    def _is_hidden(self, site: _Definition | None, place: _RegionCheck) -> str:
        """Why what is defined at `site` cannot be used at `place`; empty if it can."""
        if site is None:
            return "is not defined in this function"
        home = self.open.get(site.region)
        if home is None:
            return "is defined in a body that is not around its use"
        if home.depth < place.visible_from:
            return "comes from outside a closed body, which uses only what it is given"
        if home.comes_before(site):
            return ""
        if site.block == home.block:
            return "is not defined before its use"
        blocks = home.region.blocks
        where, here = label(blocks[site.block]), label(blocks[home.block])
        return f"is defined in {where}, which {here} can be reached without"

    def _ending(
        self, instruction: Instruction, place: _RegionCheck, is_last: bool
    ) -> Iterator[str]:
        op = instruction.op
        if not op.is_terminator:
            return
        if not is_last:
            yield f"{op.name} ends a block and is not its last instruction"
        if place.owner is None:
            if isinstance(op, Yield):
                yield "yield ends a body, not a block of a function"
            elif not instruction.successors:
                yield from self._returned(instruction)
        elif not isinstance(op, Yield) and place.owner.op.is_structured:
            yield f"a body of {place.owner.op.name} ends with yield, not with {op.name}"

    def _returned(self, instruction: Instruction) -> Iterator[str]:
        given = tuple(operand.type for operand in instruction.operands)
        type = self.function.type
        if given != type.results:
            yield f"returns {listed(given) or 'nothing'}; the function returns {listed(type.results) or type.result}"

    def _say(self, message: str, of: Block | Instruction) -> None:
        self._say_all([message], of)

    def _say_all(self, messages: list[str], of: Block | Instruction) -> None:
        """Each message with the place of what it is about, or at least that of the function."""
        if messages:
            self.found += with_locations(messages, of.location, self.function.location)

    def _report(self, instruction: Instruction, messages: list[str]) -> None:
        """Each message with the instruction as printed, and where it comes from."""
        try:
            place = self._place(instruction)
        except Exception:
            place = f"    in: {instruction!r}"
        self.found += [f"{in_text_form(message)}\n{place}" for message in messages]

    def _place(self, instruction: Instruction) -> str:
        op = instruction.op
        if isinstance(op, Literal) and not has_all_elements(op):
            text = f"literal of {len(op.data)} bytes: {op.type}"
        else:
            values = (*instruction.operands, *instruction.results)
            names = {value: self.names[value] for value in values if value in self.names}
            regions = instruction.regions
            instruction.regions = tuple(Region() for _ in regions)
            try:
                text = print_instruction(instruction, names).splitlines()[0].rstrip(" {")
            finally:
                instruction.regions = regions
        text = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]} …"
        return f"    in: {text}{location_lines(instruction.location)}"

    @cached_property
    def names(self) -> Mapping[Value, str]:
        """What the printed function calls its values; nothing if it cannot be printed."""
        try:
            return value_names(self.function)
        except Exception:
            return {}

    def shown(self, value: Value) -> str:
        """The value as text has it."""
        name = self.names.get(value) or (written("%", value.name) if value.name else "%?")
        return f"{name}: {value.type}"


def guarded(messages: Iterable[str]) -> list[str]:
    """All messages of a check; if the IR is too broken to be checked, that is one."""
    found: list[str] = []
    try:
        found.extend(messages)
    except Exception as error:
        pass_on(error)
        found.append(_malformed(error))
    return found


def _malformed(error: Exception) -> str:
    return f"cannot be checked, as it is malformed: {type(error).__name__}: {error}"
