"""Random numbers from explicit keys: see `nnkit.sampling` and `nnkit.distributions`."""

from typing import NoReturn as _NoReturn

from . import missing_names
from .distributions import (
    bernoulli,
    categorical,
    cauchy,
    choice,
    exponential,
    gumbel,
    laplace,
    logistic,
    permutation,
    randint,
    truncated_normal,
)
from .sampling import key, normal, split, uniform
from .staging import tracebacks

__all__ = [
    "bernoulli",
    "categorical",
    "cauchy",
    "choice",
    "exponential",
    "gumbel",
    "key",
    "laplace",
    "logistic",
    "normal",
    "permutation",
    "randint",
    "split",
    "truncated_normal",
    "uniform",
]

tracebacks.publish(globals(), __all__)


@tracebacks.public
def __getattr__(name: str) -> _NoReturn:
    raise missing_names.of_module("random", name, __all__)


def __dir__() -> list[str]:
    return [*__all__]
