"""Splits long functions: so many instructions of the outermost block at a time are an LLVM function of their own.

LLVM allocates registers in time that grows with the square of a function: 1,000 calls with their gradient took 11 s.
What an instruction gives lies in memory anyway: in the arena, in results, and scalars in variables, which the parts of
a function share.  So a part takes those parameters of the whole that it uses and where variables lie, and returns a
code as any callee does.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from ...core.ir import Block, Instruction
from ...core.schedule.switches import is_enabled
from .calls import handing_over
from .checks import Checks
from .function_emitter import FunctionEmitter
from .writer import I64, PTR, Argument, Register, constant

PART: Final = 1600
"""Scalar instructions of a part. 1,000 unrolled steps with their gradient, of 12 each, take 2.5, 2.3 and 2.5 s of one
core to compile with 400, 1,600 and 6,400, and 17.2 in one part; 1,000 sines of numbers in a row with theirs take LLVM
1.3 to 1.5 s with 800 to 3,200, and 2.6 in one part. The time of a call is the same."""

_LEAST_PARTS: Final = 4
"""Parts below which a function stays one: of 6,400 instructions it takes LLVM no longer than its parts."""


def parts_of(block: Block, size_of: Callable[[Instruction], int]) -> list[Sequence[Instruction]]:
    """The instructions of a block but the terminator, in parts; one part if it is short.

    `size_of` is how many instructions stand in the function for one: those in its body too, unless that is another's.
    """
    instructions = block.instructions[:-1]
    sizes = [size_of(instruction) for instruction in instructions]
    if sum(sizes) < _LEAST_PARTS * PART or not is_enabled("parts"):
        return [instructions]
    found: list[list[Instruction]] = [[]]
    size = 0
    for instruction, added in zip(instructions, sizes, strict=True):
        if size >= PART and not instruction.op.needs_no_code:
            found.append([])
            size = 0
        found[-1].append(instruction)
        size += added
    return list(found)


def share_variables(k: FunctionEmitter, block: Block) -> None:
    """Have the scalars of the outermost block lie side by side, where each part finds them."""
    places = [place for i in block.instructions for place in i.placement.results]
    count = sum(place.space == "register" for place in places)
    variables = k.w.allocate(I64, max(count, 1), align=8)
    k.frames[0] = replace(k.frames[0], variables=variables)


@contextmanager
def part(k: FunctionEmitter, number: int) -> Generator[None]:
    """What is written meanwhile is a function of its own, which is called here."""
    w, checks, leave, polls = k.w, k.checks, k.leave, k.polls
    frame, limit, chain = k.frames[0], k.limit, k.chain
    shared = [x for x in (frame.arena, frame.variables, limit, chain) if x is not None]
    extra = [x for x in dict.fromkeys(shared) if x not in w.parameters and x.text[0] != "@"]
    symbol = f"{w.name}.part.{number}"
    inner = k.shared.module.function(
        symbol,
        [*w.arguments, *(Argument(PTR) for _ in extra)],
        I64,
        linkage="internal",
        attributes=f"{w.attributes} noinline",
    )
    given = dict(zip(extra, inner.parameters[len(w.parameters) :], strict=True))
    k.w, k.checks, k.leave = inner, Checks(checks.sites), inner.ret
    k.frames[0] = replace(
        frame,
        arena=given.get(frame.arena, frame.arena),
        variables=_known(given, frame.variables),
    )
    k.limit, k.chain = _known(given, limit), _known(given, chain)
    if polls is not None:
        k.polls = polls.within(inner, k.checks)
        k.leave = k.polls.before_return(inner.ret)
    yield
    k.leave(constant(I64, 0))
    k.checks.write_failures(inner, k.report, k.leave)
    k.w, k.checks, k.leave, k.polls = w, checks, leave, polls
    k.frames[0], k.limit, k.chain = frame, limit, chain
    outside = (*w.parameters, *extra)
    passed = [outside[number] for number in inner.drop_unused_parameters()]
    with handing_over(k):
        code = w.call(symbol, I64, passed)
    checks.pass_on(w, code)


def _known(given: dict[Register, Register], register: Register | None) -> Register | None:
    return None if register is None else given.get(register, register)
