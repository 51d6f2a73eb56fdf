"""What a gradient saves of a call or a loop, and what it computes again."""

from __future__ import annotations

from dataclasses import replace

from .callables import StagedFunction, check_staged
from .core.errors import StagingError
from .core.ir.loop_schedules import MOST_SLOTS, LoopSchedule
from .staging.primitive import is_index, located, staging_error
from .staging.staged_functions import PythonFunction
from .static_parameters import passing_statics


@passing_statics
def checkpoint(of: StagedFunction, /) -> StagedFunction:
    """The same function, of which gradients save the arguments alone: all else is computed again on the way back.

    It stays a call in compiled code, forward and backward, so that memory is saved wherever it is called.  Gradients
    are the same bits; derivatives of gradients are the same but for rounding, as they add up in another order.
    Raises: StagingError for what is not a staged function of its own (a gradient, say: stage a function around it).
    """
    check_staged(of, "checkpoint")
    if not isinstance(of.stageable, PythonFunction):
        raise located(
            StagingError(
                f"checkpoint takes a staged function of its own, and {of.stageable.name} is a derivative or a batch"
            ),
            "stage a function that calls it, with @nk.staged",
        )
    return StagedFunction(replace(of.stageable, attributes=("checkpoint",), traces={}))


def every_sqrt() -> LoopSchedule:
    """Of a loop of n iterations, reverse mode saves √n states, and between two of them what √n iterations need.

    For `checkpoint=` of a loop: its body runs three times instead of once.  Each iteration adds to the same sums in the
    same order, so gradients are the same bits, but for the rounding of a sum over uses of a value in and outside of it.
    """
    return LoopSchedule()


def binomial(slots: int, /) -> LoopSchedule:
    """Of a loop, reverse mode saves as many states as there are `slots`, the first one included.

    For `checkpoint=` of a loop: of n iterations each is computed r times more at most, as few as can be, where
    C(slots + r, slots) ≥ n.  Gradients are the same bits as with `every_sqrt`.
    Raises: StagingError for no slot, and for more than 64, which are loops in loops.
    Source: Griewank & Walther 2000, Algorithm 799: Revolve.
    """
    if not is_index(slots) or not 1 <= int(slots) <= MOST_SLOTS:
        raise staging_error(f"binomial takes 1 to {MOST_SLOTS} slots for states, not {slots!r}")
    return LoopSchedule(int(slots))
