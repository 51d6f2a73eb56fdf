"""Linear algebra: see `nnkit.linear_algebra` and `nnkit.matrix_functions`."""

from typing import NoReturn as _NoReturn

from . import missing_names
from .determinants import det, slogdet
from .linear_algebra import (
    cholesky,
    cholesky_solve,
    eigh,
    eigvalsh,
    inv,
    qr,
    solve,
    solve_triangular,
    svd,
    svdvals,
)
from .matrix_functions import cond, expm, lstsq, matrix_power, matrix_rank, norm, pinv
from .staging import tracebacks

__all__ = [
    "cholesky",
    "cholesky_solve",
    "cond",
    "det",
    "eigh",
    "eigvalsh",
    "expm",
    "inv",
    "lstsq",
    "matrix_power",
    "matrix_rank",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
]
tracebacks.publish(globals(), __all__)


@tracebacks.public
def __getattr__(name: str) -> _NoReturn:
    raise missing_names.of_module("linalg", name, __all__)


def __dir__() -> list[str]:
    return [*__all__]
