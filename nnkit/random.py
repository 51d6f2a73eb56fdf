"""Random numbers from explicit keys: see `nnkit.sampling`."""

from typing import NoReturn

from . import missing_names
from .sampling import key, normal, split, uniform

__all__ = ["key", "normal", "split", "uniform"]


def __getattr__(name: str) -> NoReturn:
    raise missing_names.of_module("random", name, __all__)
