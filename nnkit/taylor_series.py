"""Taylor series of staged functions along a direction: `taylor`.

The IR declares them as tangents of an order, `[tangent @f wrt 0 order 4]`; differentiation fills that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .callables import StagedFunction, check_staged
from .core.analysis.derivatives import MAX_ORDER
from .jacobian_products import check_now, series, with_given
from .reps import tup
from .staging.primitive import differentiation_error
from .staging.rep import Rep
from .wrt import select


def taylor(of: StagedFunction, *, order: int, wrt: Any = None) -> StagedFunction:
    """The Taylor series of `of` at its arguments x along directions v, which follow them: `(c₀, c₁, …, c_order)`.

    f(x + t·v) = c₀ + c₁·t + c₂·t² + …, so c₀ is the value, c₁ what `jvp` gives, and k! · cₖ the k-th derivative by t.
    The directions are of the parameters `wrt`, in that order and of their types; all parameters by default.  Each
    coefficient is of the type of the result; integers in it have zeros.  `wrt` is what `gradient` takes.  A tangent of
    a tangent of … takes instructions that grow as a power of the order, these as its square.
    Raises: DifferentiationError for an order that is no number from 0 to 100, for an index out of range or given twice,
    or a parameter without floats.
    """
    check_staged(of, "taylor")
    if isinstance(order, bool) or not isinstance(order, int) or not 0 <= order <= MAX_ORDER:
        raise differentiation_error(
            f"order={order!r} is no order of a Taylor series: they are 0, the value alone, to {MAX_ORDER}"
        )
    selection = select(of, wrt)
    check_now(selection)
    names = tuple(f"d{name}" for name in selection.names)

    def expanded(primals: Sequence[Rep], directions: Sequence[Rep]) -> Any:
        if not order:
            return (of(*primals),)
        return tuple(
            tup(*one) if isinstance(one, tuple) else one
            for one in series(made.stageable, selection, primals, directions, order)
        )

    made = with_given(of, "taylor", names, selection.declared, expanded)
    return made
