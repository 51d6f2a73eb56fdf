"""Common subexpressions, loads of what is known, and dead code, in the body of a kernel and its loops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from ..ir.effect import Effect
from ..ir.instruction import Block, Instruction, Value
from ..ir.surgery import with_bodies
from ..lazy_dataclass import dataclass
from ..ops.literal import splat
from .dependence import BufferAliases, key_of, may_touch_same, root_of
from .guarded_ops import ExtractLane, written_buffer
from .indices import BufferAccess, access_of, fold_indices
from .loops import apply_op, body_of
from .ops import Shuffle


def cse(block: Block, *, aliases: BufferAliases = ()) -> None:
    """Compute once what is computed alike, load once what nobody writes in between, and drop what nobody uses.

    A load of what was stored just before is the stored value, or a lane of it; lanes that were not stored are zeros.
    Affine indices are folded into loads and stores first.

    Cost: linear in the number of instructions; a store, and a load of a number, is compared with what is known of its
    buffer.
    """
    fold_indices(block)
    _Merging(aliases, _written_buffers(block, aliases)).run(block)
    drop_dead_code(block)


def drop_dead_code(block: Block) -> None:
    """Drop what computes, loads, stores or allocates what nobody uses, and loops that have nothing left to do."""
    _drop_dead(block)
    everything = list(with_bodies(block.instructions))
    unread = {i for i in everything if i.op.effect is Effect.ALLOCATE and _is_only_written(i)}
    if unread:
        stores = {store for buffer in unread for store in buffer.result.uses}
        blocks = [block, *(body_of(loop) for loop in everything if loop.regions)]
        for inner in blocks:
            inner.instructions[:] = [i for i in inner.instructions if i not in stores]
        for store in stores:
            store.set_operands(())
        _drop_dead(block)


@dataclass(slots=True)
class _Known:
    """What an element, or a vector of elements, of a buffer is."""

    access: BufferAccess
    value: Value
    stored: Value | None = None
    """The value that was stored, if that is known; it has other lanes, perhaps, than those that were stored."""


@dataclass
class _Merging:
    """One walk in order of the text; what a body knows is forgotten at its end."""

    aliases: BufferAliases
    written: dict[Instruction, set[Value]]
    """The buffers that are written in each loop."""
    computed: dict[object, Instruction] = field(default_factory=dict[object, Instruction])
    loaded: dict[Value, dict[object, _Known]] = field(
        default_factory=dict[Value, dict[object, _Known]]
    )
    """By the memory that it may lie in, where several results may have the place of one operand."""

    def run(self, block: Block) -> None:
        kept: list[Instruction] = []
        keys: list[object] = []
        for instruction in block.instructions:
            op = instruction.op
            if instruction.regions:
                self._run_body(instruction)
            elif op.effect is Effect.NONE and not op.is_terminator:
                operands = tuple(instruction.operands)
                same = frozenset(operands) if op.commutes else operands
                key: object = (op.__class__, op, same)
                twin = self.computed.setdefault(key, instruction)
                if twin is not instruction:
                    instruction.replace_with(*twin.results)
                    continue
                keys.append(key)
            elif (access := access_of(instruction)) is not None:
                if access.is_store:
                    self._store(access)
                elif (known := self._load(access, kept)) is not None:
                    instruction.replace_with(known)
                    continue
            elif (buffer := written_buffer(instruction)) is not None:
                self.loaded.pop(root_of(buffer, self.aliases), None)
            kept.append(instruction)
        block.instructions[:] = kept
        for key in keys:
            del self.computed[key]

    def _run_body(self, loop: Instruction) -> None:
        """A body knows of buffers that the loop does not write; what is known of others is not true after it either."""
        for buffer in self.written[loop]:
            self.loaded.pop(buffer, None)
        around = self.loaded
        self.loaded = {buffer: dict(known) for buffer, known in around.items()}
        self.run(body_of(loop))
        self.loaded = around

    def _load(self, access: BufferAccess, before: list[Instruction]) -> Value | None:
        """The value that is loaded, if it is known; else it is from here on.  What computes it comes `before`."""
        known = self.loaded.setdefault(root_of(access.buffer, self.aliases), {})
        key = access.buffer, key_of(access)
        found = known.get(key)
        if found is None:
            lane = _lane_of(access, known.values())
            if lane is None:
                known[key] = _Known(access, access.instruction.result)
                return None
            before.append(lane)
            found = known[key] = _Known(access, lane.result)
        elif found.stored is found.value and access.touched < access.lanes:
            zeros = apply_op(splat(found.value.tensor, 0))
            chosen = [x if x < access.touched else access.lanes for x in range(access.lanes)]
            active = apply_op(Shuffle(tuple(chosen)), found.value, zeros.result)
            before += [zeros, active]
            found = known[key] = _Known(access, active.result, found.stored)
        return found.value

    def _store(self, access: BufferAccess) -> None:
        """Forget what may lie there; the stored value does."""
        buffer = root_of(access.buffer, self.aliases)
        known = self.loaded.get(buffer, {})
        kept = {k: x for k, x in known.items() if not may_touch_same(access, x.access)}
        value = access.instruction.operands[0]
        kept[access.buffer, key_of(access)] = _Known(access, value, value)
        self.loaded[buffer] = kept


def _lane_of(access: BufferAccess, known: Iterable[_Known]) -> Instruction | None:
    """The instruction that takes a number out of a vector that was stored with it, if one was."""
    if access.lanes:
        return None
    for one in known:
        if one.stored is not None and one.access.lanes and one.access.buffer is access.buffer:
            lane = _lane_at(access, one.access)
            if lane is not None:
                return apply_op(ExtractLane(lane), one.stored)
    return None


def _lane_at(access: BufferAccess, vector: BufferAccess) -> int | None:
    """The lane of a vector's access that is at the index of a number's."""
    found: set[int] = set()
    for index, first, step in zip(access.indices, vector.indices, vector.steps, strict=True):
        apart = index.plus(first, -1)
        if apart.terms or (apart.constant % step if step else apart.constant):
            return None
        if step:
            found.add(apart.constant // step)
    lane = found.pop() if len(found) == 1 else -1
    return lane if 0 <= lane < vector.touched else None


def _written_buffers(block: Block, aliases: BufferAliases) -> dict[Instruction, set[Value]]:
    """The buffers that each loop in a block writes."""
    found: dict[Instruction, set[Value]] = {}
    pending: list[tuple[Block, tuple[set[Value], ...]]] = [(block, ())]
    while pending:
        inner, around = pending.pop()
        for instruction in inner.instructions:
            if instruction.regions:
                written = found[instruction] = set()
                pending.append((body_of(instruction), (*around, written)))
            elif (buffer := written_buffer(instruction)) is not None:
                for written in around:
                    written.add(root_of(buffer, aliases))
    return found


def _is_only_written(allocation: Instruction) -> bool:
    """Whether a buffer is stored to and never loaded from."""
    return all(user.op.effect is Effect.WRITE for user in allocation.result.uses)


def _drop_dead(block: Block) -> bool:
    """Drop what is dead in a block; whether anything in it writes memory, or may stop the program."""
    kept: list[Instruction] = []
    writes = False
    for instruction in reversed(block.instructions):
        effect = instruction.op.effect
        if instruction.regions:
            is_needed = _drop_dead(body_of(instruction))
            writes = writes or is_needed
        else:
            acts = Effect.WRITE in effect or Effect.TRAP in effect
            is_needed = acts or instruction.op.is_terminator
            writes = writes or acts
        if is_needed or any(result.uses for result in instruction.results):
            kept.append(instruction)
        else:
            instruction.drop_all_references()
    block.instructions[:] = reversed(kept)
    return writes
