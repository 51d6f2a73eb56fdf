"""Safepoints: where compiled code polls whether it is to stop, and about how long it runs from one to the next.

1. An instruction takes as long as its operations on elements, a vector at a time, or as moving its bytes, whichever is
   longer. A block takes the sum over its instructions, an `if` its longer body, a `for` its iterations.
2. A loop is *long* if that is more than `LONG`, or unknown: a `while`, a `for` with computed bounds, a loop around what
   is long. It polls once an iteration, and pays for that iteration.
3. All other instructions are paid for before they run: some at once, where their block begins, and from then on
   whenever they come to more than `LONG`. A call is paid for where the callee begins.

So code that is short, as it stands, has no safepoint. The numbers are those of a core of 3 to 4 GHz, measured with
AVX-512 over 4 million elements: estimates were between a fifth of the time (transposing) and twice it, and for lgamma
a fortieth. Another machine may be some times slower: the order of magnitude is all that anybody asks for.
Source: the name, and polls at back edges and entries, are LLVM's (docs/Statepoints).
"""

from __future__ import annotations

from typing import Final

from ..analysis.cost import trip_count
from ..compute.bodies import bodies_of
from ..ir import Block, Effect, Function, Instruction
from ..lazy_dataclass import dataclass

LONG: Final = 2_000_000
"""Nanoseconds: below, nobody waits for a program, and giving up the GIL costs more than it gives: where another thread
computes in Python, it comes back after its switch interval of 5 ms.  From 1 to 5 ms any value does."""

_BYTE: Final = 0.04
"""Nanoseconds of a byte to or from memory: 25 GB/s on one core; a copy of 128 MiB has 15 to 17 on the machine of the
tests."""

_ITERATION: Final = 0.5
"""Nanoseconds of an iteration, or a choice, besides its body: two cycles for the comparison and the jump."""


@dataclass(frozen=True, slots=True)
class _Pace:
    """The nanoseconds that something takes, apart from parts that poll by themselves; whether it has such parts."""

    nanoseconds: float = 0.0
    polls: bool = False


class Safepoints:
    """Where one scheduled function polls."""

    def __init__(self, function: Function) -> None:
        self._blocks: dict[Block, _Pace] = {}
        self._payments: dict[Instruction, float] = {}
        self._long: set[Instruction] = set()
        for body in reversed(bodies_of(function)):  # inner ones first
            self._blocks[body.block] = self._pace_of_block(body.block)
        whole = self._blocks[function.entry]
        self.runs_long = whole.polls or whole.nanoseconds > LONG
        """Whether a call of the function may take longer than `LONG`."""

    @property
    def has_long_loops(self) -> bool:
        """Whether there is any loop that polls."""
        return bool(self._long)

    def at_start(self, block: Block) -> int:
        """The nanoseconds to pay for where a block begins, at least 1."""
        return max(1, round(self._blocks[block].nanoseconds))

    def before(self, instruction: Instruction) -> int:
        """The nanoseconds to pay for before an instruction; 0 if that has been done."""
        return round(self._payments.get(instruction, 0))

    def is_long(self, loop: Instruction) -> bool:
        """Whether a loop polls in each iteration."""
        return loop in self._long

    def _pace_of_block(self, block: Block) -> _Pace:
        """Find out who pays: the block's start, then any instruction that would make it more than `LONG`."""
        payer: Instruction | None = None
        start = owed = 0.0
        polls = False
        for instruction in block.instructions:
            pace = self._pace_of(instruction)
            polls = polls or pace.polls
            if owed + pace.nanoseconds > LONG:
                payer, owed, polls = instruction, 0.0, True
            owed += pace.nanoseconds
            if payer is None:
                start = owed
            else:
                self._payments[payer] = owed
        return _Pace(start, polls)

    def _pace_of(self, instruction: Instruction) -> _Pace:
        op = instruction.op
        if op.effect & Effect.CALL:
            return _Pace(0.0, polls=True)
        if op.is_loop:
            pace = self._pace_of_loop(instruction)
            if pace.polls or pace.nanoseconds > LONG:
                self._long.add(instruction)
                return _Pace(_ITERATION, polls=True)
            return pace
        if op.is_structured:
            bodies = [self._blocks[region.entry] for region in instruction.regions]
            longest = max(body.nanoseconds for body in bodies)
            return _Pace(_ITERATION + longest, any(body.polls for body in bodies))
        computing, moving = op.nanoseconds(instruction), _BYTE * op.bytes_moved(instruction)
        return _Pace(0.0 if computing is None else max(computing, moving))

    def _pace_of_loop(self, instruction: Instruction) -> _Pace:
        trips = trip_count(instruction)
        if trips is None:
            return _Pace(polls=True)
        body = self._blocks[instruction.regions[0].entry]
        return _Pace(trips * (_ITERATION + body.nanoseconds), body.polls)
