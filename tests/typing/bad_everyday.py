"""NumPy's everyday functions: lines that both checkers reject."""

import nnkit as nk
from nnkit import Rep, Tensor1D, Tensor2D, Tensor5D, boolean, f32, f64, i32


def rejected(
    v: Rep[Tensor1D[f32]],
    m: Rep[Tensor2D[f32]],
    d: Rep[Tensor2D[f64]],
    n: Rep[Tensor1D[i32]],
    b: Rep[Tensor1D[boolean]],
    t: Rep[Tensor5D[f32]],
) -> None:
    nk.hypot(n, n)    # E
    nk.atan2(m, d)    # E
    nk.sinc(n)    # E
    n ** 2.5    # E
    v & v    # E
    v << 1    # E
    b << 1    # E
    n & 1.5    # E
    nk.bitwise_and(v, v)    # E
    nk.left_shift(b, b)    # E
    nk.isnan(b)    # E
    nk.isclose(n, n)    # E
    nk.where(m, m, m)    # E
    nk.where(m > 0, m, d)    # E
    nk.nanmean(n)    # E
    nk.nansum(b)    # E
    nk.where(m, m)    # E
    nk.where(m > 0, 1.0)    # E
    nk.where(m > 0, m, size=3)    # E
    nk.where(b)    # E
    nk.where(b, size=2.5)    # E
    nk.nonzero(m)    # E
    nk.argwhere(m.sum(), size=3)    # E
    m.clip("a")    # E
    n.clip(0.5)    # E
    m.trace(0, 0, 2)    # E
    v.trace()    # E
    v.mT    # E
    m.sort(2)    # E
    m.repeat(n)    # E
    nk.roll(m, v)    # E
    nk.take(v, n, mode="drop")    # E
    nk.bincount(n, length=3, mode="wrap")    # E
    v.at[n].set(1.0, mode="fill")    # E
    nk.clip(n, 0.5)    # E
    nk.clip(m, d)    # E
    nk.sum(b)    # E
    nk.sum(m, axis=2)    # E
    nk.any(v)    # E
    nk.std(n)    # E
    nk.argmax(b)    # E
    nk.cumprod(m, axis=2)    # E
    nk.expand_dims(t, 0)    # E
    nk.squeeze(m, 2)    # E
    nk.repeat(m, 2, axis=2)    # E
    nk.eye(3, f32)    # E
    nk.eye(2.0, dtype=f32)    # E
    nk.meshgrid(m, m)    # E
    nk.diff(m, axis=2)    # E
    nk.interp(m, d, d)    # E
    nk.polyval(n, v)    # E
    nk.split(m, 1.5)    # E


def rejected_subscripts(v: Rep[Tensor1D[f32]], m: Rep[Tensor2D[f32]], t: Rep[Tensor5D[f32]]) -> None:
    t[None]    # E
    v[..., 0, 0]    # E
    v[:, :, None]    # E
    m[None, 0, 0, 0]    # E
    a0: Rep[Tensor2D[f32]] = v[:, None, None]    # E
    a1: Rep[Tensor2D[f32]] = m[..., 0]    # E
    del a0, a1
