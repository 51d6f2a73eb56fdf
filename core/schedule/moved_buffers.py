"""Buffers that move from what a loop carries to what it carries next, so that a value that stays is not copied.

    for … carrying %p, %q { …; yield %q, %new }

`%q` is yielded as it was given: instead of its elements, its buffer moves to the place of `%p`, whose buffer `%new` is
made in.  So do several that follow each other, and a swap.  Buffers are where they began again after some iterations;
the code that runs keeps their addresses in variables, and brings the elements to their places when the loop has ended.
"""

from __future__ import annotations

from typing import Final

from ..compute.bodies import base_of
from ..ir import Instruction, Value
from ..ops.flows import Role, arguments_of_bodies, flows_in
from .switches import is_enabled

_LEAST_BYTES: Final = 256
"""Of a buffer that moves: fewer are copied in some cycles, as many as loading its address from a variable takes."""


def moved_buffers(loop: Instruction) -> tuple[int, ...]:
    """For each value that the body of a loop yields, which buffer it is to be in: that of the argument of that number.

    Its own number for nearly all, and for those that are stacked.
    """
    body = len(loop.regions) - 1
    yielded = loop.regions[body].entry.terminator.operands
    places = list(range(len(yielded)))
    if not is_enabled("moves"):
        return tuple(places)
    flows = flows_in(loop, Role.CARRIED)
    carried = [arguments_of_bodies(loop, flow)[body] for flow in flows]
    numbers = {x: n for n, x in enumerate(carried) if _may_move(x)}
    bases = [base_of(value) for value in yielded]
    moved: dict[int, int] = {}  # from the number of a buffer to where it goes
    for number, base in enumerate(bases[: len(carried)]):
        source = numbers.get(base)
        if (
            source is not None
            and source not in moved
            and bases[source] is not base
            and carried[number] in numbers
            and base.type == yielded[number].type == yielded[source].type
        ):
            moved[source] = number
            places[number] = source
    for end in moved.keys() - moved.values():
        first = moved[end]
        while first in moved:
            first = moved[first]
        places[end] = first  # the buffer that nothing is in any more
    return tuple(places)


def _may_move(argument: Value) -> bool:
    """Whether it is no scalar, which has a register, and not short."""
    return argument.tensor.rank > 0 and argument.tensor.bytes >= _LEAST_BYTES
