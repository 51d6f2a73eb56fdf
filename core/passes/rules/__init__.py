"""The laws that `simplify` applies, by theme; read `arithmetic` first, then `movement`.

A law is one `case` or `if` with the law as its comment.  It looks only at the operands of an instruction
and returns the value that the instruction equals.
"""

from __future__ import annotations

from ..rewrite import Laws, combine_laws
from .after_differentiation import FINAL
from .aggregate import AGGREGATE
from .arithmetic import ARITHMETIC
from .calls import CALLS
from .choice import CHOICE
from .contraction import CONTRACTION
from .conversion import CONVERSION
from .elementwise import ELEMENTWISE
from .fast_math import FAST_MATH
from .indexing import INDEXING
from .movement import MOVEMENT
from .reduction import REDUCTION
from .shape_query import SHAPE_QUERY

STRICT: Laws = combine_laws(
    ELEMENTWISE,
    ARITHMETIC,
    CHOICE,
    CONVERSION,
    MOVEMENT,
    INDEXING,
    REDUCTION,
    CONTRACTION,
    AGGREGATE,
    CALLS,
    SHAPE_QUERY,
)
"""Laws that hold for every bit, and before differentiation as well as after."""

__all__ = ["AGGREGATE", "CALLS", "FAST_MATH", "FINAL", "STRICT"]
