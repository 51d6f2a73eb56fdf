"""Functions on trees of tensors: see `nnkit.trees`."""

from typing import NoReturn as _NoReturn

from . import missing_names
from .staging import tracebacks
from .trees import leaves, map, reduce

__all__ = ["leaves", "map", "reduce"]
tracebacks.publish(globals(), __all__)


@tracebacks.public
def __getattr__(name: str) -> _NoReturn:
    raise missing_names.of_module("tree", name, __all__)


def __dir__() -> list[str]:
    return [*__all__]
