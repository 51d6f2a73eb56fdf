"""What the halves of a gradient expect, return and keep: descriptions of tensors, and the tensors that are kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .conversion import tensor_from
from .core.lazy_dataclass import dataclass
from .tensors import AnyTensor, DType


@dataclass(frozen=True)
class ValueInfo:
    """A tensor that a half expects or returns."""

    name: str
    shape: tuple[int, ...]
    dtype: type[DType]

    @property
    def bytes(self) -> int:
        """What its elements take."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.core.storage.itemsize

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype.__name__}{list(self.shape)}, {self.bytes} bytes"


@dataclass(frozen=True)
class Residual(ValueInfo):
    """A tensor that the backward half reads: an argument, a result, or what is saved besides.

    `number` counts those of its `kind`.  `op` made it, in the user's line `location`; an argument has neither.
    """

    kind: str
    number: int
    op: str | None
    location: str | None

    def __str__(self) -> str:
        made = f", {self.op}" if self.op else ""
        return f"{super().__str__()}{made}{'  ' + self.location if self.location else ''}"


@dataclass(frozen=True)
class HalfSignature:
    """What a half expects and returns, tensor by tensor."""

    expects: tuple[ValueInfo, ...]
    returns: tuple[ValueInfo, ...]


class Residuals(tuple[AnyTensor, ...]):
    """The tensors that a backward half reads, in the order of `Halves.residuals`."""

    halves: object = None
    """Those that the tensors are of."""

    def numpy(self) -> list[np.ndarray[Any, Any]]:
        """Copies of them as arrays."""
        return [np.array(tensor.numpy()) for tensor in self]

    def with_arrays(self, arrays: Iterable[Any], /) -> Residuals:
        """Residuals of the same halves with these arrays as data."""
        made = Residuals(tensor_from(array, "a residual") for array in arrays)
        made.halves = self.halves
        return made


class Saved(tuple[Residual, ...]):
    """What is saved for a backward half besides arguments and results."""

    @property
    def total(self) -> int:
        """The bytes of all together."""
        return sum(one.bytes for one in self)

    def __str__(self) -> str:
        return "\n".join([*map(str, self), f"{self.total} bytes in all"])
