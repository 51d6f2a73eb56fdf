"""The SSA graph: ops, values, instructions, blocks and regions.

An *op* is an immutable value that says what an instruction means; an *instruction* is one use of it.
A concrete op is a frozen dataclass in `core/ops/<family>.py` (undecorated if it has no fields).  Its
fields are its attributes; equality, hashing, CSE, printing and parsing follow from the fields and from
`syntax`.

The syntax template
-------------------
`"select {x}, {y} by {condition}"`: the first word is the opcode.  A name in braces that is a dataclass
field is an attribute; any other is an operand, and the operands' order is their order in the template.

    {x}       operand, printed `value: type`
    {xs*}     all remaining operands, separated by commas
    {axes}    attribute, printed by the type of its field: int, float, bool, str, tuples of int, DType,
              Type, an enum, or a class that `core.text.attributes` knows
    [ ... ]   printed only when an attribute inside differs from its default; optional when parsing
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, Self, cast

from typing_extensions import TypeVar

from ..errors import DifferentiationError, InternalError
from ..lazy_dataclass import dataclass
from ..location import HasLocation
from ..stage import EARLY, Stages
from ..types import Array, IntegerRange, KnownRanges, TensorType, Type, tensor_bytes
from .effect import Effect
from .placement import NOT_PLACED, Placement


@dataclass(eq=False, slots=True, repr=False, init=False)
class Value:
    """What an instruction computes, or an argument of a block.  Identity is the object's.

    `producer` is the instruction, `index` the position among its results; both block arguments and
    values not yet placed have no producer.
    """

    type: Type
    name: str | None
    producer: Instruction | None
    index: int
    uses: dict[Instruction, int]
    """The instructions that have it among their operands, in the order in which they came to have it.

    They keep it.  The number is where, if there are many operands and it is one of them only; else it means nothing.
    """

    def __init__(
        self,
        type: Type,
        name: str | None = None,
        producer: Instruction | None = None,
        index: int = 0,
    ) -> None:
        self.type = type
        self.name = name
        self.producer = producer
        self.index = index
        self.uses = {}

    def __repr__(self) -> str:
        """Only the value itself: what it is made of may be the whole program."""
        return f"<%{self.name or '?'}: {self.type}>"

    @property
    def has_one_use(self) -> bool:
        """Whether it is one operand of one instruction."""
        return len(self.uses) == 1 and next(iter(self.uses)).operands.count(self) == 1

    def replace_all_uses_with(self, other: Value) -> None:
        """Make every operand that is this value `other`.

        Cost: linear in the number of uses.
        """
        if other is self:
            return
        uses, self.uses = self.uses, {}
        for user, position in uses.items():
            operands = user.operands
            if isinstance(operands, list) and position != ANYWHERE:
                operands[position] = other
            else:
                changed = [other if operand is self else operand for operand in operands]
                user.keep_operands(changed)
            other.uses[user] = ANYWHERE if user in other.uses else position

    def replace_with(self, other: Value) -> None:
        """The same, for good: `other` takes the name if it is computed by an instruction and has none."""
        if other.producer is not None and other.name is None:
            other.name = self.name
        self.replace_all_uses_with(other)

    @property
    def tensor(self) -> TensorType:
        """The type, where only a tensor can stand."""
        if not isinstance(self.type, TensorType):
            raise InternalError(f"a tensor was expected here, not {self.type}")
        return self.type

    @property
    def op(self) -> Op | None:
        """The op that computes this value; None for an argument."""
        return self.producer.op if self.producer else None


class Emitter(Protocol):
    """Where a rule puts the instructions it makes; `Builder` is the one implementation."""

    def emit(self, op: Op, *operands: Value) -> Value:
        """Append `op` applied to `operands`; the one result."""
        ...

    def emit_many(
        self, op: Op, operands: Sequence[Value], regions: Sequence[Region] = ()
    ) -> tuple[Value, ...]:
        """The same for ops with several results or with regions."""
        ...


class MemoryUse(NamedTuple):
    """Memory that an instruction reads or writes (`effect`) through one of its operands."""

    pointer: Value
    effect: Effect
    value: Value | None
    """What lies there, from end to end, once this is done; None if it may have touched all that was allocated."""


@dataclass(frozen=True)
class Op(abc.ABC):
    """The protocol of every op; see the module's text for `syntax`.

    An op with attributes is a frozen dataclass; one without inherits from here that it equals its like.

    Methods in this order: `infer`, `evaluate`, the rule of differentiation (by way of one of the forms
    in `core.ops.forms`), `nest`.

    What generic code wants to know is a *fact*: stated by the class, or by a form that implies it for a family.
    It has a default where that is only slower, or is refused with a message; a class with an opcode that leaves out
    one of `required`, which have none, cannot be imported (docs/decisions/0027).
    """

    name: ClassVar[str]
    syntax: ClassVar[str]
    required: ClassVar[tuple[str, ...]] = ("effect",)
    """The facts that have no default."""
    is_terminator: ClassVar[bool] = False
    takes_any: ClassVar[bool] = False
    """Whether operands may be anything; those of all other ops are tensors."""
    effect: ClassVar[Effect]
    """What an instruction does itself; its bodies may do more."""
    stages: ClassVar[Stages] = EARLY
    """Where it may stand; what stands in the body of a nest has a rule of its own."""
    cost: ClassVar[int] = 0
    """Of one element of a function that is computed point by point (`core.ops.forms.Pointwise`).

    Units: additions of a vector whose operands are in registers.
    """
    is_exact: ClassVar[bool] = False
    """Whether a float result needs no rounding to an element type that the operands have been rounded to."""
    commutes: ClassVar[bool] = False
    """Whether the order of the operands makes no difference to any bit, those of NaNs aside."""
    is_constant: ClassVar[bool] = False
    """Whether it has no operands, and each block may as well have its own."""
    is_view: ClassVar[bool] = False
    """Whether the result is the first operand, perhaps in another shape: nothing is computed or moved."""
    is_pointer_step: ClassVar[bool] = False
    """Whether the result leads into the memory that the first operand, a pointer, leads into."""
    acts_on_shadows: ClassVar[bool] = False
    """Whether with pointers to shadows in place of its pointers it does to tangents what it does to values.

    Its `vjp` is given such pointers, too, and cotangents of the values that are loaded (docs/decisions/0042)."""
    is_moved: ClassVar[bool] = False
    """Whether every element of the result is an element of an operand, as it is."""
    bodies: ClassVar[tuple[str, ...]] = ()
    """One entry per region: the word that stands before its brace, or none."""
    is_structured: ClassVar[bool] = False
    """Whether control flows through its bodies (`core.ops.flows`): they see what is around them.  Others are closed."""
    is_loop: ClassVar[bool] = False
    """Whether bodies may run several times, one after the other."""
    ends: ClassVar[bool] = True
    """Whether it ends if its bodies do."""
    is_observable: ClassVar[bool] = False
    """Whether it is done for the world outside, which sees it once: what computes values again leaves it out."""
    calls_lapack: ClassVar[bool] = False
    """Whether code for it calls the LAPACK, which some machines do not have."""
    not_differentiable: ClassVar[str] = ""
    """Why no derivative exists; empty when it does."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in vars(cls):
            stated = {name for base in cls.__mro__ if base is not Op for name in vars(base)}
            if missing := ", ".join(fact for fact in cls.required if fact not in stated):
                raise TypeError(f"op '{cls.name}' ({cls.__qualname__}) does not state: {missing}")

    @abc.abstractmethod
    def infer(self, *operands: Any, **_: Any) -> Type | tuple[Type, ...]:
        """Type rule: operand types to the result type (a tuple of types for several results).

        Raises: ShapeError, RankError or DTypeError, in the user's terms.
        """

    def evaluate(self, *operands: Any, **_: Any) -> Any:
        """Reference semantics in NumPy: operand values to the result (a tuple for several)."""
        raise InternalError(f"{self.name} has no reference semantics")

    def jvp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], dxs: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        """Forward rule: the tangents of the results; None is a zero tangent."""
        raise DifferentiationError(f"{self.name} cannot be differentiated forward: it has no jvp")

    def vjp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], cts: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        """Reverse rule: one cotangent per operand; None is a zero cotangent."""
        raise DifferentiationError(
            f"{self.name} cannot be differentiated in reverse: it has no vjp"
        )

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value | None:
        """The op on every element of a batch at once: `xs` that are `batched` have a leading axis; so has the result.

        At least one is.  None if there is no such form, and the op has to run for one element after the other.
        """
        return None

    def repeated(self, batched: Sequence[bool]) -> Sequence[bool]:
        """The operands that `batch` takes with a batch axis where these have one: the others of them are repeated."""
        return batched

    def differs(self, batched: Sequence[bool], axis: str | None) -> bool:
        """Whether the results differ among the elements of a batch, along an axis of that name, if such operands do."""
        return any(batched)

    def nest(self, b: Emitter, *operands: Any, **_: Any) -> Value | None:
        """The same value as loop nests (stage compute), or by ops that have some; None for what stays a library op."""
        return self.expand(b, *operands)

    def expand(self, b: Emitter, *operands: Value) -> Value | None:
        """The same value by ops that have derivatives and nests; None if this is one."""
        return None

    @property
    def needs_no_code(self) -> bool:
        """Whether what it gives is there already: as data of the program, or as another value's."""
        return self.is_constant or self.is_view

    def moving(self, operands: Sequence[Value]) -> Sequence[Value]:
        """The operands that its derivative depends on, as far as differentiation goes."""
        return operands

    def stages_of(self, instruction: Instruction) -> Stages:
        """Where this use of it may stand."""
        return self.stages

    def integer_range(self, ranges: KnownRanges) -> IntegerRange | None:
        """Between which numbers the elements of the result are, before they wrap around, by those of the operands."""
        return None

    def with_indices_inside(self, operands: Sequence[Value], ranges: KnownRanges) -> Self:
        """The op without the checks of its indices that these ranges make needless."""
        return self

    def gains_from_batch(self, operands: Sequence[Value], batched: Sequence[bool]) -> bool:
        """Whether it takes less time for all elements of a batch at once than for one after the other."""
        return False

    def can_fail(self) -> bool:
        """Whether some operands are an error when it runs, so that it must not run where it did not before."""
        return True

    def trusted(self, operands: Sequence[Value]) -> Sequence[Value]:
        """The operands that are never checked and must be right wherever it runs: indices that are inside."""
        return ()

    @property
    def called(self) -> str | None:
        """The function that it calls by name; one of effect CALL may call those among its operands instead."""
        return None

    @property
    def axis_name(self) -> str | None:
        """The name of the batch's axis along which it combines elements."""
        return None

    def combined(self, b: Emitter, x: Value, extent: int, is_batched: bool) -> Value:
        """What `extent` elements combine to along that axis, which are all the same if `x` is not batched."""
        raise InternalError(f"{self.name} does not combine the elements of a batch")

    @property
    def referred(self) -> str | None:
        """The function or variable that is its result."""
        return None

    def memory_uses(self, instruction: Instruction) -> tuple[MemoryUse, ...]:
        """All that it does with memory and with its operands that are pointers; none if that may be anything."""
        return ()

    def scratch(self, instruction: Instruction) -> tuple[int, ...]:
        """The bytes of the buffers that a call of a library works with."""
        return ()

    def stack_values(self) -> int:
        """How many values it makes room for, until the function returns."""
        return 0

    def call_count(self, instruction: Instruction) -> int:
        """How often an instruction of effect CALL calls its functions, about."""
        return 1

    def flops(self, instruction: Instruction) -> int | None:
        """Operations on elements, bodies aside; None says that they are those of its nests."""
        moves_nothing = self.takes_any or self.is_constant or self.is_view
        return 0 if moves_nothing or not instruction.results else None

    def nanoseconds(self, instruction: Instruction) -> float | None:
        """About how long it computes on one core of 3 to 4 GHz, its operands in the nearest cache; None for no time."""
        return None

    def bytes_moved(self, instruction: Instruction) -> int:
        """Bytes of tensors that are read and written, bodies aside."""
        if self.takes_any or self.is_view or self.is_constant:
            return 0
        return sum(tensor_bytes(x.type) for x in (*instruction.operands, *instruction.results))


class Pure(Op):
    """The form of what does nothing but compute its results, from any operands: it may move, merge and go."""

    effect: ClassVar[Effect] = Effect.NONE

    def can_fail(self) -> bool:
        return False


OpT = TypeVar("OpT", bound=Op, default=Op, covariant=True)


ANYWHERE: Final = -1
"""In `Value.uses`, of an instruction of many operands: at several positions."""

_FEW: Final = 16
"""So many operands are copied as quickly as one of them is changed in place."""


@dataclass(eq=False, slots=True, repr=False, init=False)
class Instruction(Generic[OpT]):
    """`op` applied to `operands`; `regions` are the bodies of a structured op.

    What is given only one kind of op, as a rule in a table by class, takes an `Instruction[Transpose]`.

    `successors` are the blocks that a terminator may go on to, all in its own region.  Their arguments are
    among the operands; which ones, the op knows (`core.ops.terminators.arguments_of`).

    An instruction is a use of its operands from when it is made, in a block or not, until it is erased or gets
    others (docs/decisions/0030).
    """

    op: OpT
    operands: Final[Sequence[Value]]
    """A tuple if there are few, and else a list, in which `replace_all_uses_with` need not copy the others."""
    results: tuple[Value, ...]
    regions: tuple[Region, ...]
    location: HasLocation | None
    successors: tuple[Block, ...]
    placement: Placement

    def __init__(
        self,
        op: OpT,
        operands: tuple[Value, ...],
        results: tuple[Value, ...],
        regions: tuple[Region, ...] = (),
        location: HasLocation | None = None,
        successors: tuple[Block, ...] = (),
        placement: Placement = NOT_PLACED,
    ) -> None:
        self.op = op
        self.operands = operands
        self.results = results
        self.regions = regions
        self.location = location
        self.successors = successors
        self.placement = placement
        if len(operands) <= _FEW:
            for operand in operands:
                operand.uses[self] = ANYWHERE
        else:
            self.set_operands(operands)

    def __repr__(self) -> str:
        return f"<{self.op.name} of {len(self.operands)} operands>"

    @property
    def result(self) -> Value:
        """The one result."""
        if len(self.results) != 1:
            raise InternalError(f"{self.op.name} has {len(self.results)} results, not one")
        return self.results[0]

    def set_operands(self, operands: Iterable[Value]) -> None:
        """Use these instead of the operands there are; the one way to change them."""
        for operand in self.operands:
            operand.uses.pop(self, None)
        given = list(operands)
        self.keep_operands(given)
        for position, operand in enumerate(given):
            operand.uses[self] = ANYWHERE if self in operand.uses else position

    def keep_operands(self, operands: list[Value]) -> None:
        """For those who see to the uses themselves."""
        kept = tuple(operands) if len(operands) <= _FEW else operands
        object.__setattr__(self, "operands", kept)

    def replace_with(self, *values: Value) -> None:
        """Have `values` used in place of the results, and erase the instruction."""
        for result, value in zip(self.results, values, strict=True):
            result.replace_with(value)
        self.erase()

    def erase(self) -> None:
        """Use nothing any more, here and in the bodies; what holds it leaves it out.

        Raises: InternalError when its results are used.
        """
        if any(result.uses for result in self.results):
            raise InternalError(f"{self.op.name} is erased, but its results are used")
        self.drop_all_references()

    def drop_all_references(self) -> None:
        """Use nothing any more, here and in the bodies, though others that are to go may use its results."""
        pending: list[Instruction] = [self]
        while pending:
            instruction = pending.pop()
            instruction.set_operands(())
            for region in instruction.regions:
                for block in region.blocks:
                    pending += block.instructions


@dataclass(eq=False, slots=True, repr=False)
class Block:
    """Arguments and instructions, the last one a terminator once the block is complete."""

    arguments: list[Value] = field(default_factory=list[Value])
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    name: str | None = None
    location: HasLocation | None = None

    def __repr__(self) -> str:
        return f"<block '{self.name or '?'} of {len(self.instructions)} instructions>"

    @property
    def terminator(self) -> Instruction:
        """The last instruction, which leaves the block."""
        if not self.instructions or not self.instructions[-1].op.is_terminator:
            raise InternalError("the block has no terminator")
        return self.instructions[-1]


@dataclass(eq=False, slots=True, repr=False)
class Region:
    """Blocks, the first one the entry."""

    blocks: list[Block] = field(default_factory=list[Block])

    def __repr__(self) -> str:
        return f"<region of {len(self.blocks)} blocks>"

    @property
    def entry(self) -> Block:
        return self.blocks[0]


def evaluates_to(values: Any) -> tuple[Array, ...]:
    """What `Op.evaluate` returned, always as a tuple."""
    return cast("tuple[Array, ...]", values) if isinstance(values, tuple) else (values,)
