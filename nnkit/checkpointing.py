"""What a gradient saves of a call, and what it computes again."""

from __future__ import annotations

from dataclasses import replace

from .callables import StagedFunction, check_staged
from .core.errors import StagingError
from .staging.primitive import located
from .staging.staged_functions import PythonFunction


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
