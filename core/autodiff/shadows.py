"""Derivatives of what lies in memory: shadows, which pointers lead to as the pointers of the program lead to values.

    forward                                  reverse, last to first
    %p = allocateStack f64 count 1           (nothing; a shadow on the heap is given back)
    %ṗ = allocateStack f64 count 1
    store %x to %p                           x̄ += load p̄;  store 0 to p̄
    store %ẋ to %ṗ
    %y = load %p                             store (load p̄) + ȳ to p̄
    %ẏ = load %ṗ
                                             %p̄ = allocateStack f64 count 1

1. Forward, every pointer that leads to what moves has a shadow beside it, and what is done with the one is done with
   the other.
2. In reverse, a shadow belongs to the way back alone: it is allocated where the way back comes to the end of the block
   that allocates the memory, and steps into it are made from indices, which are values like others.  So pointers are
   never residuals, and a backward function may be called as often as one likes.
3. What was loaded is a value, and saved if the way back needs it: memory may have changed since.
4. It must be known of each pointer what memory it leads to (`core.analysis.pointer_bases`); where something else may
   lead to memory that moves, that is an error.

Source: Moses & Churavy 2020, Instead of rewriting foreign code for machine learning, automatically synthesize fast
gradients (Enzyme), §3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from ..analysis.derivatives import holds_tensors
from ..analysis.pointer_bases import PointerBases, is_allocation, is_step, leads_to_memory
from ..errors import DifferentiationError, UnsupportedError
from ..ir import Block, Builder, Effect, Function, Instruction, Op, Region, Value
from ..ir.surgery import clone_instructions, operands_inside, walk, walk_blocks, with_bodies
from ..lazy_dataclass import dataclass
from ..location import located
from ..ops.flows import is_condition
from ..ops.literal import constant
from ..ops.memory import AllocateHeap, give_back, pointee_of, zeros_to_read
from ..types import I64, BoxType, PointerType, TensorType, Type, scalar, written
from .activity import Mask, can_move
from .adjoints import Adjoints


def check_memory(region: Region, is_active: Callable[[Value], bool], *, in_reverse: bool) -> None:
    """Raises: UnsupportedError, with the user's line, for an instruction through which memory that moves may be changed
    or read by pointers of which that is not known, or whose values have no tangents."""
    bases = PointerBases(region)
    _check_conditions(region, is_active)
    found: list[tuple[Instruction, list[Value]]] = []
    for instruction in walk(region):
        values = (*instruction.operands, *instruction.results)
        pointers = [x for x in values if leads_to_memory(x.type) and is_active(x)]
        if pointers:
            found.append((instruction, pointers))
    # where a pointer is lost sight of, before where one is met again
    end = region.entry.terminator
    reasons = [
        *((at, _returned(pointers[0])) for at, pointers in found if at is end),
        *((at, _why_lost(at, pointers, in_reverse=in_reverse)) for at, pointers in found),
        *((at, _why_not_known(pointers, bases)) for at, pointers in found),
    ]
    for instruction, reason in reasons:
        if reason:
            error = UnsupportedError(f"{_word(instruction.op)} cannot be differentiated: {reason}")
            raise located(error, instruction.location)


def check_shadows(primal: Function, given: Mask, is_active: Sequence[bool]) -> None:
    """Raises: DifferentiationError when something that moves is stored where a parameter without a shadow leads to.

    Those in `given` have one.
    """
    for k, (parameter, active) in enumerate(zip(primal.parameters, is_active, strict=True)):
        if active and leads_to_memory(parameter.type) and not given >> k & 1:
            error = DifferentiationError(
                f"{written('@', primal.name)} stores what moves where its parameter {k} leads to, a {parameter.type} "
                "which has no shadow: name it in wrt, and give one"
            )
            raise located(error, primal.location)


def _check_conditions(region: Region, is_active: Callable[[Value], bool]) -> None:
    """Raises: UnsupportedError for a condition of a loop that writes: it runs once more than the body."""
    loops = [i for i in writers(region, is_active) if i.op.is_loop]
    for loop in loops:
        for number, inner in enumerate(loop.regions):
            if is_condition(loop, number) and writers(inner, is_active):
                error = UnsupportedError(
                    f"{loop.op.name} cannot be differentiated: its condition writes what moves to memory; write in the "
                    "body"
                )
                raise located(error, loop.location)


def writers(region: Region, is_active: Callable[[Value], bool]) -> set[Instruction]:
    """The instructions that write, or may write, to memory that moves, themselves or in their bodies."""
    found: set[Instruction] = set()
    owners: dict[Block, Instruction] = {}
    around: dict[Instruction, Instruction | None] = {}
    for block in walk_blocks(region):
        for instruction in block.instructions:
            if instruction.regions:
                around[instruction] = owners.get(block)
                owners.update((inner.entry, instruction) for inner in instruction.regions)
            elif any(is_active(x) for x in _written(instruction)):
                found.add(instruction)
                owner = owners.get(block)
                while owner is not None and owner not in found:
                    found.add(owner)
                    owner = around[owner]
    return found


def _written(instruction: Instruction) -> list[Value]:
    """The pointers through which an instruction without bodies may write."""
    op = instruction.op
    if op.called is not None:
        return [x for x in instruction.operands if leads_to_memory(x.type)]
    uses = op.memory_uses(instruction) if op.acts_on_shadows else ()
    return [use.pointer for use in uses if use.effect & Effect.WRITE]


def _why_not_known(pointers: Sequence[Value], bases: PointerBases) -> str:
    """Why the memory that these lead to has no shadow; empty if it has."""
    for pointer in pointers:
        for base in bases.of(pointer):
            if not bases.is_known(base) and not _is_null(base):
                return (
                    f"{_named(pointer)} leads to memory that moves, and is {_origin(base)}, so that what else leads "
                    "there is not known; take it by elementPointer and offset from where it is allocated, or from a "
                    "parameter"
                )
            if not holds_tensors(_content(base.type)):
                return (
                    f"{_named(pointer)} leads to memory for a {_content(base.type)}, which holds more than numbers, "
                    "and so has no tangent; keep what moves in memory of its own"
                )
    return ""


def _why_lost(instruction: Instruction, pointers: Sequence[Value], *, in_reverse: bool) -> str:
    """Why what is done with these pointers to memory that moves cannot be followed; empty if it can."""
    op = instruction.op
    made = [x for x in instruction.results if x in pointers]
    for use in op.memory_uses(instruction):
        value = use.value
        if value is not None and leads_to_memory(value.type):
            lost = value in instruction.operands and value in pointers
            return (
                f"{_named(value)} leads to memory that moves, and is kept in memory, from where it would be used "
                "unseen; keep an index there"
                if lost
                else ""
            )
        if value is not None and not isinstance(value.type, TensorType):
            return f"{_named(value)} is a {value.type}, which is not taken apart"
    if op.acts_on_shadows or op.is_constant:
        return ""
    if op.called is not None:
        return _returned(made[0]) if made else ""
    if op.is_structured:
        if not in_reverse or not made or _is_pure(instruction):
            return ""
        return (
            f"{_named(made[0])} leads to memory that moves, and is chosen among pointers that are made inside, which "
            "the way back does not know; choose or carry an index, and take elementPointer or offset of one pointer by "
            "it"
        )
    if op.is_terminator or made == list(pointers):
        return ""
    what = f"{_named(pointers[0])} leads to memory that moves, and"
    return f"{what} would be used unseen after this; use it as it is"


def _returned(pointer: Value) -> str:
    return (
        f"{_named(pointer)} leads to memory that moves, and is returned; let who calls allocate it, and pass the "
        "pointer"
    )


def _is_null(base: Value) -> bool:
    """Whether it leads nowhere, and to no global variable."""
    return base.op is not None and base.op.is_constant and base.op.referred is None


def _is_pure(instruction: Instruction) -> bool:
    """Whether nothing happens in the bodies."""
    return all(i.op.effect is Effect.NONE for i in with_bodies([instruction]))


def _content(type: Type) -> Type:
    if isinstance(type, BoxType):
        return type.content
    assert isinstance(type, PointerType)
    return type.pointee


def _named(value: Value) -> str:
    return f"%{value.name}" if value.name else f"a {value.type}"


def _origin(base: Value) -> str:
    """What an unknown base is, in words."""
    if base.op is None:
        return "chosen by control flow"
    if base.op.referred is not None:
        return f"the global variable @{base.op.referred}"
    if base.op.called is not None:
        return f"what @{base.op.called} returns"
    return f"what {_word(base.op)} gives"


def _word(op: Op) -> str:
    """How the text form calls it."""
    return op.syntax.split()[0]


@dataclass
class Shadows:
    """The shadows on the way back over one function, whose forward half is the block `forward`.

    `active` are the values and pointers that move.
    """

    forward: Block
    active: set[Value]
    _bases: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def __post_init__(self) -> None:
        self.writers = writers(Region([self.forward]), self.active.__contains__)
        """What the way back must visit though its results have no cotangents: what it writes may have some."""

    def give(self, pointer: Value, shadow: Value) -> None:
        """What the memory of a parameter has for a shadow."""
        self._bases[pointer] = shadow

    def begin(self, b: Builder, block: Block) -> None:
        """Make the shadows of what a block of the forward half allocates, before the way back over it.

        On the heap in bodies: what lies on the stack would stay until the function returns.
        """
        for instruction in block.instructions:
            if is_allocation(instruction) and instruction.result in self.active:
                op, operands = instruction.op, instruction.operands
                count = op.stack_values()
                if count and block is not self.forward:
                    op = AllocateHeap(pointee_of(instruction.result))
                    operands = (constant(b, scalar(I64), count),)
                self._bases[instruction.result] = b.emit(op, *operands)

    def of(self, b: Builder, pointer: Value) -> Value:
        """The shadow that a pointer leads to, by steps that are made anew."""
        steps: list[Instruction] = []
        while is_step(pointer.op):
            assert pointer.producer is not None
            steps.append(pointer.producer)
            pointer = pointer.producer.operands[0]
        shadow = self._bases[pointer] if pointer in self._bases else self._chosen(b, pointer)
        for step in reversed(steps):
            shadow = b.emit(step.op, shadow, *step.operands[1:])
        return shadow

    def _chosen(self, b: Builder, pointer: Value) -> Value:
        """What does nothing but choose a pointer, or make a null one, done once more with shadows."""
        assert pointer.producer is not None
        instruction = pointer.producer
        values = {
            x: self.of(b, x)
            for x in operands_inside([instruction])
            if leads_to_memory(x.type) and self._is_from_around(x, instruction)
        }
        clone_instructions(b.block, [instruction], values)
        return values[pointer]

    def _is_from_around(self, pointer: Value, instruction: Instruction) -> bool:
        inside = [x for one in with_bodies([instruction]) for x in one.results]
        inside += [x for r in instruction.regions for x in r.entry.arguments]
        return pointer not in inside

    def sweep(self, instruction: Instruction, adjoints: Adjoints) -> None:
        """The way back over one instruction that acts on memory."""
        op, operands, b = instruction.op, instruction.operands, adjoints.builder
        if is_allocation(instruction):
            if instruction.result in self.active:
                give_back(b, self._bases[instruction.result])
            return
        uses = op.memory_uses(instruction)
        cts = [adjoints[result] for result in instruction.results]
        is_written = any(use.effect & Effect.WRITE and use.pointer in self.active for use in uses)
        if not is_written and all(ct is None for ct in cts):
            return
        if any(use.value is not None and not can_move(use.value.type) for use in uses):
            return
        xs = [
            self.of(b, x) if x in self.active and leads_to_memory(x.type) else x for x in operands
        ]
        still = leads_to_memory(xs[0].type) and operands[0] not in self.active
        if still:
            xs[0] = zeros_to_read(b, op, xs)
        for operand, ct in zip(operands, op.vjp(b, instruction.results, xs, cts), strict=True):
            adjoints.add(operand, ct)
        if still:
            give_back(b, xs[0])
