"""Determinants, whose first and second derivatives are right at singular matrices, too.

1. Of regular matrices it is the product of the pivots, by `slogdet`, whose derivatives divide by it.
2. Where a pivot is 0, let a = u · diag(s) · vᵀ.  With u and v held constant the determinant of a is ± that of
   m = uᵀ a v, which is diagonal there: to the second order it is Π mₖₖ − Σ mᵢⱼ mⱼᵢ Π mₖₖ, of pairs i < j and k that
   are neither.
   Products of other factors divide by nothing, so that matrices of any rank are right.
3. Both are computed only where a batch has a singular matrix, and of these only.

Source: Stewart 1998, "On the adjugate matrix".
"""

from __future__ import annotations

from typing import Any

from .control import cond
from .core import ops
from .core.ir import Builder, Value
from .elementwise import exp
from .functions import iota, select, stop_gradient
from .linear_algebra import of_matrices, svd
from .matrix_results import SlogdetResult
from .reps import as_rep
from .shaping import eye
from .staging import primitive
from .staging.rep import Rep
from .tensors import DTYPES, i64


def det(a: Any) -> Rep:
    """The determinants; their first and second derivatives are right at singular matrices, too.

    Shapes: (…, n, n) → (…).
    Example: `nk.linalg.det(s)`
    """
    x = as_rep(a)
    is_singular = slogdet(stop_gradient(x))[0] == 0.0
    rank = primitive.tensor_of(x.expression, "det").rank

    def with_singular() -> Rep:
        dtype = DTYPES[primitive.tensor_of(x.expression, "det").dtype]
        one = eye(x.shape[-1], dtype=dtype)
        rows = is_singular
        for _ in range(2):
            rows = rows.expand_dims(-1)
        regular = _of_regular(select(rows, one, x))
        return select(is_singular, _of_singular(x), regular)

    found = is_singular if rank == 2 else is_singular.any()
    return Rep(cond(found, with_singular, lambda: _of_regular(x)).expression)


def slogdet(a: Any) -> SlogdetResult:
    """The signs of the determinants and the logarithms of their magnitudes: 0 and −∞ where a is singular.

    Shapes: (…, n, n) → (…) and (…).
    Returns: sign and logabsdet, by position or by these names.
    Example: `nk.linalg.slogdet(s).logabsdet`
    """

    def build(b: Builder, a: Value) -> Value:
        return b.emit(ops.LogDeterminant(), a)

    both = of_matrices("slogdet", build, a, lost=1)
    return SlogdetResult(both[..., 0], both[..., 1])


def _of_regular(x: Rep) -> Rep:
    sign, log = slogdet(x)
    return sign * exp(log)


def _of_singular(x: Rep) -> Rep:
    u, s, vh = (Rep(part.expression) for part in svd(stop_gradient(x)))
    sign = slogdet(u)[0] * slogdet(vh)[0]
    m = u.mT @ x @ vh.mT
    diagonal = _part(m, True).sum(-1)
    outside = _part(m, False)
    pairs = (outside * outside.mT * _other_products(s, x)).sum((-2, -1))
    return sign * (diagonal.prod(-1) - 0.5 * pairs)


def _part(m: Rep, of_diagonal: bool) -> Rep:
    """The diagonal of matrices, or what is outside of it."""
    n = m.shape[-1]
    on = iota((n, n), i64, axis=0) == iota((n, n), i64, axis=1)
    return select(on if of_diagonal else ~on, m, 0.0)


def _other_products(s: Rep, x: Rep) -> Rep:
    """For each pair (i, j) the product of all of s but these two."""
    n = x.shape[-1]
    column = iota((n * n, n), i64, axis=1)
    pair = iota((n * n, n), i64, axis=0)
    is_left_out = (column == pair // n) | (column == pair % n)
    rows = select(is_left_out, 1.0, s.expand_dims(-2))
    return rows.prod(-1).reshape(*x.shape)
