"""Places as text: `into arena 64, output 0 scratch arena 128 frame 640`, behind an operation."""

from __future__ import annotations

from ..ir import Place, Placement
from .cursor import Cursor

_SPACES = ("arena", "output", "register")


def parse_placement(cursor: Cursor) -> Placement:
    """What stands at the cursor of a placement, which may be nothing."""
    results = _places(cursor) if cursor.accept("into") else ()
    scratch = _places(cursor) if results and cursor.accept("scratch") else ()
    return Placement(results, scratch, cursor.integer() if cursor.accept("frame") else 0)


def _places(cursor: Cursor) -> tuple[Place, ...]:
    return cursor.listed(lambda: Place(cursor.one_of(_SPACES), cursor.integer()))
