"""What functions of `nnkit.linalg` with several results give: tuples whose parts have NumPy's names."""

from typing import NamedTuple

from .staging.rep import Rep


class EighResult(NamedTuple):
    eigenvalues: Rep
    eigenvectors: Rep


class QRResult(NamedTuple):
    Q: Rep
    R: Rep


class SVDResult(NamedTuple):
    U: Rep
    S: Rep
    Vh: Rep


class SlogdetResult(NamedTuple):
    sign: Rep
    logabsdet: Rep
