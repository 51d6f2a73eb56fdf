"""The call at hand: what a staged function calls is traced for all shapes, or those of the arguments."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from .expression import Callee, Expression, Shapes
from .known_shapes import NeedsShapes, shapes_at_hand

_Callee = TypeVar("_Callee", bound=Callee)
AtHand: TypeAlias = "Shapes | tuple[Expression, ...] | None"
"""The shapes of the arguments of a call, or the arguments."""


class Called(threading.local):
    """The function that a staged function is calling on this thread, while it is traced for that, and the arguments."""

    function: object = None
    arguments: tuple[Expression, ...] = ()

    def arguments_of(self, function: object) -> tuple[Expression, ...] | None:
        """Those of `function`, if it is what is called, or of what a derivative is called."""
        called = self.function
        while called is not function:
            called = getattr(called, "of", None)  # of a derivative, which has its arguments first
            if called is None:
                return None
        return self.arguments


CALLED = Called()


def callee_for(
    function: object,
    find: Callable[[Shapes | None], _Callee],
    arguments: Sequence[Expression],
) -> _Callee:
    """What `find` gives of `function` for all shapes, or for those of the arguments.

    Raises: NeedsShapes where these are not known.
    """
    before = CALLED.function, CALLED.arguments
    CALLED.function, CALLED.arguments = function, tuple(arguments)
    try:
        return find(None)
    except NeedsShapes as error:
        request = error.request
    finally:
        CALLED.function, CALLED.arguments = before
    return find(shapes_at_hand(arguments, request))
