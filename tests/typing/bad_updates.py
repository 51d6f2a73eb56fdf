"""What cannot be written."""

import nnkit as nk
from nnkit import Rep, Tensor1D, Tensor2D, f32, i32

Vector = Tensor1D[f32]
Matrix = Tensor2D[f32]
Counts = Tensor1D[i32]


def parts(m: Rep[Matrix], c: Rep[Counts]) -> None:
    c.at[0].add(2.5)  # E
    m.at[0].set(c)  # E
    m.at[0.5].set(1.0)  # E
    m.at["a"].set(1.0)  # E
    m.at[0].set("a")  # E
    m.at[0].subtract(1.0)  # E
    m[0] = 1.0  # E


def mutable(m: Rep[Matrix], c: Rep[Counts]) -> Rep[Vector]:
    r = nk.ref(m)
    r[0] = c  # E
    r["a"] = 1.0  # E
    nk.ref(1.0)  # E
    return r.value  # E
