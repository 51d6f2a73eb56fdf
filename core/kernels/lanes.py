"""Makes the iterations of a loop the lanes of vectors, in the body of that loop.

What depends on the index varies from lane to lane and becomes a vector; what does not stays a scalar, which counts for
each lane.  A load or store along the index becomes one of several elements.  Loops inside stay, and carry vectors where
what they carry varies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from ..ir.effect import Effect
from ..ir.instruction import Block, Instruction, Value
from ..lazy_dataclass import dataclass
from ..ops.arithmetic import Add
from ..ops.forms import Pointwise
from ..ops.reduction import Broadcast
from ..types import DType, PointerType, TensorType
from .access_ops import LoadAt, StoreAt
from .errors import IllegalRewrite
from .indices import BufferAccess, IndexSum, access_of, compute_index, indices_of, set_indices
from .loops import apply_op, body_of, require_known_bounds
from .ops import AffineIndex, AllocateLocal, LaneNumbers


@dataclass
class LaneForm:
    """How a body is to become one of vectors; made, and legal, before anything is changed.

    Raises: IllegalRewrite when something in the body has no form for vectors.
    """

    body: Block
    lanes: int
    active: int = 0
    accumulators: Sequence[Value] = ()
    """Arguments of the body that are to be vectors."""
    varying: set[Value] = field(init=False, default_factory=set[Value])
    """What is another number in each lane."""
    accesses: list[BufferAccess] = field(init=False, default_factory=list[BufferAccess])
    """The loads and stores of vectors."""
    locals: dict[Value, Instruction] = field(init=False, default_factory=dict[Value, Instruction])
    """The buffers that the body allocates, of which each lane has its own."""
    sums: dict[Instruction, IndexSum] = field(
        init=False, default_factory=dict[Instruction, IndexSum]
    )
    """What each `affineIndex` computes."""
    types: dict[DType, TensorType] = field(init=False, default_factory=dict[DType, TensorType])

    def __post_init__(self) -> None:
        self.index = self.body.arguments[0]
        require_known_bounds(self.body)
        owners: dict[Instruction, Instruction] = {}
        found: list[BufferAccess] = []
        self._survey(owners, found)
        pending = [self.index, *self.accumulators]
        pending += [a.instruction.result for a in found if self._is_local(a) and not a.is_store]
        self._spread(pending, owners)
        for access in found:
            if self._is_gather(access):
                raise IllegalRewrite("a load or store at an index that was computed varies by lane")
            if self._is_local(access) or self._moves(access):
                self.accesses.append(access)

    def apply(self, at: IndexSum, step: int) -> None:
        """Change the body: lane l does what it did for the index `at + l · step`."""
        for access in self.accesses:
            self._widen_access(access, at, step)
        self.stores = {access.instruction for access in self.accesses if access.is_store}
        pending = [self.body]
        while pending:
            block = pending.pop()
            written: list[Instruction] = []
            for instruction in block.instructions:
                written += self._widened(instruction, at, step)
                if instruction.regions:
                    pending.append(body_of(instruction))
            block.instructions[:] = written
        if self.index.uses:
            numbers = self._lane_numbers(IndexSum(0, {self.index: 1}), at, step)
            self.body.instructions[:0] = numbers
            self.index.replace_all_uses_with(numbers[-1].result)

    def vector_type(self, dtype: DType) -> TensorType:
        """So many lanes of these elements."""
        found = self.types.get(dtype)
        if found is None:
            found = self.types[dtype] = TensorType((self.lanes,), dtype)
        return found

    def _survey(self, owners: dict[Instruction, Instruction], found: list[BufferAccess]) -> None:
        """Collect which loop each end of a body belongs to, the loads and stores, and buffers."""
        pending: list[tuple[Block, Instruction | None]] = [(self.body, None)]
        while pending:
            block, owner = pending.pop()
            for instruction in block.instructions:
                if any(_is_vector(x) for x in (*instruction.operands, *instruction.results)):
                    raise IllegalRewrite(f"the loop has vectors already: {instruction.op.name}")
                if instruction.regions:
                    pending.append((body_of(instruction), instruction))
                elif instruction.op.is_terminator:
                    if owner is not None:
                        owners[instruction] = owner
                elif (access := access_of(instruction)) is not None:
                    found.append(access)
                elif isinstance(instruction.op, AffineIndex):
                    (self.sums[instruction],) = indices_of(instruction)
                elif instruction.op.effect is Effect.ALLOCATE:
                    if any(access_of(user) is None for user in instruction.result.uses):
                        raise IllegalRewrite("a buffer of the loop is not only loaded and stored")
                    self.locals[instruction.result] = instruction

    def _spread(self, pending: list[Value], owners: dict[Instruction, Instruction]) -> None:
        """Mark these values as varying, and all that is computed from them."""
        while pending:
            value = pending.pop()
            if value in self.varying:
                continue
            self.varying.add(value)
            for user in value.uses:
                pending += self._affected(value, user, owners)

    def _affected(
        self, value: Value, user: Instruction, owners: dict[Instruction, Instruction]
    ) -> Iterable[Value]:
        """What varies because an operand of `user` does."""
        op = user.op
        loop = user if user.regions else owners.get(user)
        if loop is not None:
            arguments = body_of(loop).arguments[1:]
            at = [k for k, operand in enumerate(user.operands) if operand is value]
            return [x for k in at for x in (arguments[k], loop.results[k])]
        if op.is_terminator or isinstance(op, StoreAt):
            return ()
        if isinstance(op, LoadAt):
            access = access_of(user)
            return user.results if access is not None and self._moves(access) else ()
        terms: Mapping[Value, int] = self.sums[user].terms if isinstance(op, AffineIndex) else {}
        is_affine = self.index in terms and (value is self.index or value not in terms)
        if is_affine or isinstance(op, Pointwise):
            return user.results
        raise IllegalRewrite(f"{op.name} has no form for an operand that varies by lane")

    def _moves(self, access: BufferAccess) -> bool:
        return any(self.index in index.terms for index in access.indices)

    def _is_local(self, access: BufferAccess) -> bool:
        return access.buffer in self.locals

    def _is_gather(self, access: BufferAccess) -> bool:
        terms = [value for index in access.indices for value in index.terms]
        return any(value in self.varying and value is not self.index for value in terms)

    def _widen_access(self, access: BufferAccess, at: IndexSum, step: int) -> None:
        """Make a load or store one of a vector, whose value may still be a scalar."""
        steps = tuple([index.coefficient(self.index) * step for index in access.indices])
        indices = [index.substitute(self.index, at) for index in access.indices]
        active = self.active
        if self._is_local(access):
            # each lane has its own, along a last axis: all of them are there, unless others move them outside
            active = active if any(steps) else 0
            steps, indices = (*steps, 1), [*indices, IndexSum(0, {})]
        instruction = access.instruction
        op = instruction.op
        if isinstance(op, LoadAt):
            instruction.op = replace(op, lanes=self.lanes, steps=steps, active=active)
        elif isinstance(op, StoreAt):
            instruction.op = replace(op, steps=steps, active=active)
        set_indices(instruction, indices)

    def _widened(self, instruction: Instruction, at: IndexSum, step: int) -> list[Instruction]:
        """The instructions that take the place of one, which is changed or used."""
        op = instruction.op
        if isinstance(op, AffineIndex) and instruction.result in self.varying:
            return self._widened_index(instruction, at, step)
        before: list[Instruction] = []
        if instruction.regions:
            body = body_of(instruction)
            needed = [argument in self.varying for argument in body.arguments[1:]]
            self._widen_operands(instruction, needed, before)
            end = body.instructions[-1]
            ending: list[Instruction] = []
            self._widen_operands(end, needed, ending)
            body.instructions[-1:] = [*ending, end]
            self._widen(body.arguments[1:])
        elif instruction in self.stores:
            self._widen_operands(instruction, [True], before)
        elif isinstance(op, AllocateLocal):
            shape = (*op.type.shape, self.lanes)
            instruction.op = AllocateLocal(TensorType(shape, op.type.dtype))
            instruction.result.type = PointerType(instruction.op.type)
            return [instruction]
        self._widen(instruction.results)
        return [*before, instruction]

    def _widen(self, values: Iterable[Value]) -> None:
        """Give those that vary the type of a vector."""
        for value in values:
            if value in self.varying:
                value.type = self.vector_type(value.tensor.dtype)

    def _widen_operands(
        self, instruction: Instruction, needed: Sequence[bool], before: list[Instruction]
    ) -> None:
        """Make vectors of the operands that are needed as such, and are none."""
        operands = list(instruction.operands)
        for position, is_needed in enumerate(needed):
            operand = operands[position]
            if is_needed and operand not in self.varying and not _is_vector(operand):
                before.append(apply_op(Broadcast((self.lanes,)), operand))
                operands[position] = before[-1].result
        if before:
            instruction.set_operands(operands)

    def _widened_index(
        self, instruction: Instruction, at: IndexSum, step: int
    ) -> list[Instruction]:
        """An affine index as a vector; nothing if only loads and stores used it."""
        result = instruction.result
        if not result.uses:
            instruction.set_operands(())
            return []
        made = self._lane_numbers(self.sums[instruction], at, step)
        result.replace_with(made[-1].result)
        instruction.set_operands(())
        return made

    def _lane_numbers(self, index: IndexSum, at: IndexSum, step: int) -> list[Instruction]:
        """The instructions that compute an index for each lane."""
        first = compute_index(index.substitute(self.index, at))
        numbers = apply_op(LaneNumbers(self.lanes, step * index.coefficient(self.index)))
        return [first, numbers, apply_op(Add(), first.result, numbers.result)]


def _is_vector(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.rank > 0
