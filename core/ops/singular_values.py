"""What is made of singular values and has derivatives where these are equal, and those of the vectors infinite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..errors import ShapeError
from ..ir.instruction import Emitter, Pure, Value
from ..types import Array, TensorType, same_dtype
from .arithmetic import Add, Divide, Multiply, Negate, Subtract
from .combinator import Combinator
from .comparison import GreaterThan, Select
from .contraction import Dot
from .decomposition import Svd, parts_of_svd
from .formulas import number
from .matrix_form import flipped
from .movement import reshaped
from .reduction import Broadcast, Reduce


class PseudoInverse(Pure):
    """The inverse of Moore and Penrose; singular values up to `cutoff` times the largest count as 0.

    Its derivative is that among matrices of the same rank; it has none by the cutoff.
    Shapes: a (…, m, n), cutoff () or (…) → (…, n, m).
    """

    name: ClassVar[str] = "pseudoInverse"
    syntax: ClassVar[str] = "pseudoInverse {a} cutoff {cutoff}"

    def infer(self, a: TensorType, cutoff: TensorType) -> TensorType:
        *batch, m, n = a.with_shape((*Svd().check(a), *a.shape[-2:])).shape
        same_dtype("pseudoInverse", (a, cutoff))
        if cutoff.shape not in ((), (*batch,)):
            raise ShapeError(f"pseudoInverse: a cutoff {cutoff.words} does not fit {a.words}")
        return a.with_shape((*batch, n, m))

    def evaluate(self, a: Array, cutoff: Array) -> Array:
        *batch, m, n = a.shape
        found = np.full((*batch, n, m), np.nan, a.dtype)
        bounds = np.broadcast_to(cutoff, batch)
        for index in np.ndindex(*batch):
            if np.isfinite(a[index]).all():
                found[index] = np.linalg.pinv(a[index], rcond=bounds[index])
        return found

    def jvp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], dxs: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        """Ṗ = −P Ȧ P + P Pᵀ Ȧᵀ (I − A P) + (I − P A) Ȧᵀ Pᵀ P."""
        (p,), (a, _), (da, _) = ys, xs, dxs
        if da is None:
            return (None,)
        pt, dat = flipped(b, p), flipped(b, da)
        inside = b.emit(Negate(), _product(b, p, da, p))
        left = _product(b, p, pt, dat)
        left = b.emit(Subtract(), left, _product(b, left, a, p))
        right = _product(b, dat, pt, p)
        right = b.emit(Subtract(), right, _product(b, p, a, right))
        return (b.emit(Add(), inside, b.emit(Add(), left, right)),)

    def vjp(
        self, b: Emitter, ys: Sequence[Value], xs: Sequence[Value], cts: Sequence[Value | None]
    ) -> tuple[Value | None, ...]:
        """Ā = −Pᵀ P̄ Pᵀ + (I − A P) P̄ᵀ P Pᵀ + Pᵀ P P̄ᵀ (I − P A)."""
        (p,), (a, _), (ct,) = ys, xs, cts
        if ct is None:
            return None, None
        pt, ctt = flipped(b, p), flipped(b, ct)
        inside = b.emit(Negate(), _product(b, pt, ct, pt))
        left = _product(b, ctt, p, pt)
        left = b.emit(Subtract(), left, _product(b, a, p, left))
        right = _product(b, pt, p, ctt)
        right = b.emit(Subtract(), right, _product(b, right, p, a))
        return b.emit(Add(), inside, b.emit(Add(), left, right)), None

    def repeated(self, batched: Sequence[bool]) -> Sequence[bool]:
        return True, batched[1]

    def batch(self, b: Emitter, xs: Sequence[Value], batched: Sequence[bool]) -> Value:
        a, cutoff = xs
        if not batched[1]:
            return b.emit(self, a, cutoff)
        batch, given = a.tensor.shape[:-2], cutoff.tensor.shape
        wide = reshaped(b, cutoff, (given[0], *(1 for _ in batch[len(given) :]), *given[1:]))
        return b.emit(self, a, b.emit(Broadcast(batch), wide))

    def nest(self, b: Emitter, a: Value, cutoff: Value) -> Value:
        *batch, m, n = a.tensor.shape
        if m * n == 0:
            return b.emit(Broadcast((*batch, n, m)), number(b, a, 0))
        parts = parts_of_svd(b, b.emit(Svd(), a), a.tensor.shape)
        rank = parts.s.tensor.rank
        largest = b.emit(Reduce(Combinator.MAX, (rank - 1,)), parts.s)
        bound = b.emit(Multiply(), largest, cutoff)
        inverse = b.emit(Divide(), number(b, a, 1), parts.s)
        counted = b.emit(GreaterThan(), parts.s, reshaped(b, bound, (*batch, 1)))
        small = b.emit(Multiply(), parts.s, number(b, a, 0))  # 0, or NaN where that is
        kept = b.emit(Select(), inverse, small, counted)
        rows = b.emit(Multiply(), reshaped(b, kept, (*kept.tensor.shape, 1)), flipped(b, parts.u))
        return b.emit(Dot(), flipped(b, parts.vt), rows)


def _product(b: Emitter, x: Value, y: Value, z: Value) -> Value:
    return b.emit(Dot(), b.emit(Dot(), x, y), z)
