"""Optimizers on structs of parameters: see `nnkit.optimizers` and `nnkit.least_squares`."""

from typing import NoReturn as _NoReturn

from . import missing_names
from .least_squares import gauss_newton
from .optimizers import (
    adagrad,
    adam,
    adamw,
    clip_by_global_norm,
    global_norm,
    momentum,
    rmsprop,
    sgd,
    training_step,
)
from .staging import tracebacks

__all__ = [
    "adagrad",
    "adam",
    "adamw",
    "clip_by_global_norm",
    "gauss_newton",
    "global_norm",
    "momentum",
    "rmsprop",
    "sgd",
    "training_step",
]
tracebacks.publish(globals(), __all__)


@tracebacks.public
def __getattr__(name: str) -> _NoReturn:
    raise missing_names.of_module("optim", name, __all__)


def __dir__() -> list[str]:
    return [*__all__]
