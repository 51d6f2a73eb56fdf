"""Emits safepoint polls: long-running code checks for signals, and releases the GIL.

    fuel -= nanoseconds                 at the safepoints, by what runs until the next one
    if fuel ran out: poll               two milliseconds after the start, then every 10

1. The first poll gives up the GIL. So short runs keep it, which is cheaper for all: who gives it up waits for it
   behind every thread that computes in Python, 5 ms each.
2. Later polls of the main thread take it back every `PERIOD` to run the handlers of signals. If one raises an
   exception, the kernel returns `INTERRUPTED`, and all memory is given back on the way.
3. The kernel takes the GIL back before it returns. Extern functions are called with the GIL.

Fuel lies in the head of the arena, and in functions with long loops in a register between calls.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from ...core.ir import Block, Effect, Function
from ...core.lazy_dataclass import dataclass
from ...core.schedule.safepoints import LONG, Safepoints
from ..runtime.process import CLOCK, MAIN_THREAD, WORDS, Process
from .arena_header import FUEL, HOLDS_GIL, INTERRUPTED, OWNER, SIGNALS
from .checks import Checks
from .writer import I32, I64, PTR, Argument, FunctionWriter, ModuleWriter, Register, constant

PERIOD: Final = 200_000_000
"""Nanoseconds between two looks for signals: taking the GIL back can cost 5 ms where other threads run Python, a
fortieth."""

_LATER: Final = 5 * LONG
"""Fuel after a poll; where an estimate is ten times too small, signals still wait no longer than `PERIOD` or so."""

BLOCK: Final = 50_000
"""Nanoseconds: iterations of a counted loop that poll once together. A poll is nothing beside so much, and 40 of these
are as long as anything runs without one (`LONG`)."""

JOB: Final = 10 * LONG
"""Nanoseconds of the work of a parallel loop that is done between two polls: a tenth of `PERIOD`, and so much that
threads which wait for the last block, of some microseconds, do not count."""

SHARED: Final = 8
"""Blocks of a job at least, for threads to share; those of matrix products take 10 ms at most."""

MOST: Final = LONG
"""Nanoseconds that a round of a loop nest takes at most, for its loop to poll and not one inside of it."""

_ROUND, _MOST_COPIES, _MOST_INSTRUCTIONS = 32, 8, 48
"""A `while` is unrolled until a poll is paid by so many nanoseconds, but to no more copies, and instructions.

A poll is a subtraction and a branch, 1 to 2 % of 32 ns.  Bodies of 0.13 ns take 1.11 times as long with 8 copies
(docs/decisions/0020); beyond, code grows for the shortest loops alone.
"""

_CALL: Final = 5
"""Nanoseconds that a call takes, besides what it runs: 2.8 were measured for a recursion (docs/decisions/0011), more is
safe."""

_POLL: Final = "nnkit.poll"
_CONVENTION: Final = "preserve_mostcc"
"""How `poll` is called: it saves all registers itself, so that functions which rarely call it need save none."""


@dataclass(eq=False)
class Polls:
    """Writes the polls of one function. `head` is that of the arena, where callees find the fuel."""

    module: ModuleWriter
    w: FunctionWriter
    head: Register
    checks: Checks
    process: Process
    safepoints: Safepoints
    fuel: Register

    @classmethod
    def begin(
        cls,
        module: ModuleWriter,
        w: FunctionWriter,
        head: Register,
        checks: Checks,
        process: Process,
        function: Function,
        *,
        is_called: bool,
    ) -> Polls:
        """Those of a function, at its start: of a kernel, which holds the GIL, or of one that others call."""
        safepoints = Safepoints(function)
        polls = cls(module, w, head, checks, process, safepoints, _fuel(w, head, safepoints))
        start = safepoints.at_start(function.entry)
        if is_called:
            polls.receive()
            polls.spend(start + _CALL)
        else:
            w.store(constant(I64, HOLDS_GIL), w.offset(head, OWNER))
            w.store(constant(I64, 0), w.offset(head, SIGNALS))
            w.store(constant(I64, max(LONG - start, 0)), polls.fuel)  # start is LONG at most
        return polls

    def within(self, w: FunctionWriter, checks: Checks) -> Polls:
        """Those of a part of the function, which is called as a function is."""
        polls = replace(self, w=w, checks=checks, fuel=_fuel(w, self.head, self.safepoints))
        polls.receive()
        return polls

    def spend(self, nanoseconds: int) -> None:
        """Poll if this much is not left."""
        self._spend(constant(I64, min(nanoseconds, _LATER)))

    def spend_for(self, iterations: Register, block: Block) -> None:
        """The same for iterations of a loop around `block`, no more than `block_length` says."""
        cost = constant(I64, min(self.safepoints.at_start(block), _LATER))
        self._spend(self.w.mul(iterations, cost))

    def block_length(self, block: Block) -> int:
        """How many iterations of a counted loop around `block` poll once together."""
        return max(1, BLOCK // self.safepoints.at_start(block))

    def copies(self, *blocks: Block) -> int:
        """How many copies of the blocks of a loop poll once together: a power of two."""
        instructions = [i for block in blocks for i in block.instructions]
        if any(i.op.is_structured or i.op.effect & Effect.CALL for i in instructions):
            return 1
        count, nanoseconds = 1, sum(map(self.safepoints.at_start, blocks))
        while (
            2 * count <= _MOST_COPIES
            and count * nanoseconds < _ROUND
            and 2 * count * len(instructions) <= _MOST_INSTRUCTIONS
        ):
            count *= 2
        return count

    def _spend(self, cost: Register) -> None:
        w = self.w
        before = w.load(self.fuel, I64)
        w.store(w.sub(before, cost), self.fuel)
        with w.when(w.icmp("ult", before, cost), rarely=True, hint="poll"):
            if not self.module.has(_POLL):
                _write_poll(self.module, self.process)
            code = w.value(I64, f"call {_CONVENTION} i64 @{_POLL}({self.head.typed})")
            self.receive()
            self.checks.pass_on(w, code)

    @contextmanager
    def pacing(self, nanoseconds: int) -> Generator[None]:
        """Loops that are written meanwhile, and take so long together, poll in one of them."""
        if nanoseconds > LONG:
            self.w.pacing = _LoopPolls(self, nanoseconds)
        yield
        self.w.pacing = None

    def hand_over(self) -> None:
        """Before a call or return: tell the other function how much is left."""
        if self.safepoints.has_long_loops:
            self.w.store(self.w.load(self.fuel, I64), self.w.offset(self.head, FUEL))

    def receive(self) -> None:
        """At the start, or after a call: as much is left as the other function says."""
        if self.safepoints.has_long_loops:
            self.w.store(self.w.load(self.w.offset(self.head, FUEL), I64), self.fuel)

    def before_return(self, leave: Callable[[Register], None]) -> Callable[[Register], None]:
        """How a callee returns."""

        def hand_over(code: Register) -> None:
            self.hand_over()
            leave(code)

        return hand_over


class _LoopPolls:
    """Polls in the outermost loop whose rounds take no more than `MOST`."""

    def __init__(self, polls: Polls, nanoseconds: float) -> None:
        self.polls = polls
        self.nanoseconds = nanoseconds
        """What the loops take that are written now; 0 inside of one that polls."""
        self.paid = 0.0

    @contextmanager
    def divided(self, rounds: int | None) -> Generator[int]:
        """See `writer.LoopPolls`."""
        whole = self.nanoseconds
        each = whole / rounds if rounds else 0.0
        is_here = LONG < whole and 0 < each <= MOST
        self.nanoseconds = each if each > MOST else 0.0
        if is_here:
            self.paid = each
        yield min(max(1, int(BLOCK / each)), rounds or 1) if is_here else 0
        self.nanoseconds = whole

    def job_length(self, blocks: int) -> int:
        """See `writer.LoopPolls`."""
        if not self.nanoseconds:
            return 0
        self.paid = self.nanoseconds / blocks
        return min(max(SHARED, int(JOB / self.paid)), blocks)

    def poll(self, rounds: int) -> None:
        """See `writer.LoopPolls`."""
        self.polls.spend(max(1, round(rounds * self.paid)))


def _fuel(w: FunctionWriter, head: Register, safepoints: Safepoints) -> Register:
    """Where a function keeps its fuel."""
    return w.allocate(I64, align=8) if safepoints.has_long_loops else w.offset(head, FUEL)


def reacquire_gil(w: FunctionWriter, head: Register) -> None:
    """Hold the GIL from here on."""
    owner = w.load(w.offset(head, OWNER), I64)
    with w.when(w.icmp("ne", owner, constant(I64, HOLDS_GIL)), rarely=True, hint="released"):
        w.call_void("PyEval_RestoreThread", [w.inttoptr(owner)])
        w.store(constant(I64, HOLDS_GIL), w.offset(head, OWNER))


def _write_poll(module: ModuleWriter, process: Process) -> None:
    """`i64 poll(ptr head)`: 0 to go on, without the GIL and with new fuel."""
    w = module.function(
        _POLL,
        [Argument(PTR)],
        I64,
        linkage=f"internal {_CONVENTION}",
        attributes="nounwind noinline cold",
    )
    (head,) = w.parameters
    now = _clock(w, process)
    waited = w.sub(now, w.load(w.offset(head, SIGNALS), I64))
    main = w.load(w.offset(module.external(WORDS), MAIN_THREAD), I64)
    is_main = w.icmp("eq", w.call("PyThread_get_thread_ident", I64, []), main)
    is_due = w.icmp("uge", waited, constant(I64, PERIOD))
    with w.when(w.and_(is_main, is_due), hint="signals"):
        w.store(now, w.offset(head, SIGNALS))
        reacquire_gil(w, head)
        raised = w.icmp("ne", w.call("PyErr_CheckSignals", I32, []), constant(I32, 0))
        stop, proceed = w.new_label("interrupted"), w.new_label("proceed")
        w.branch_if(raised, stop, proceed, rarely=True)
        w.begin(stop)
        w.ret(constant(I64, INTERRUPTED))
        w.begin(proceed)
    holds = w.icmp("eq", w.load(w.offset(head, OWNER), I64), constant(I64, HOLDS_GIL))
    with w.when(holds, hint="release"):
        state = w.call("PyEval_SaveThread", PTR, [])
        w.store(w.ptrtoint(state), w.offset(head, OWNER))
    w.store(constant(I64, _LATER), w.offset(head, FUEL))
    w.ret(constant(I64, 0))


def _clock(w: FunctionWriter, process: Process) -> Register:
    """Nanoseconds of the clock that never goes back."""
    time = w.allocate(I64, 2, align=8)
    w.value(I32, f"call i32 @{CLOCK}(i32 {process.clock}, {time.typed})")
    w.declare(CLOCK, I32, [I32, PTR])
    seconds, rest = w.load(time, I64), w.load(w.offset(time, 8), I64)
    return w.add(w.mul(seconds, constant(I64, 10**9)), rest)
