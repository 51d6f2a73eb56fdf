"""The state of an entry, its `self`: one tuple with every Python object that it uses.

The code of an entry holds no address, so that it can be stored, and no reference, so that nothing
can dangle: the callable owns the tuple, the tuple owns the rest, the memory of the code included. A
tuple is never cleared by the cyclic garbage collector, so its items are there as long as anybody
can make the call.

Recycled outputs are in an object array, two places for each output. The collector does not look
into it, which is right, because it holds plain arrays only; and it can be emptied from Python.
"""

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Final, Self

import numpy as np

from ...core.lazy_dataclass import dataclass
from ...core.types import Array
from .guards import Guard
from .layout import TUPLE_ITEMS
from .signature import STORAGE, ArrayNode, RecordNode, Signature

# positions in the tuple that an entry has as its state; those of its dtypes, classes and markers follow
FALLBACK: Final = 0
EXPLAIN: Final = 1
ERROR: Final = 2
ARENA: Final = 3
POOL: Final = 4
ARRAY_TYPE: Final = 5
TUPLE_TYPE: Final = 6
KEPT: Final = 7
GUARD: Final = 8
BLOCKS: Final = 9
OUT_NAME: Final = 10
_FIRST: Final = 11

UNEXPLAINED: Final = "a check in the compiled program failed, and nothing was raised to explain it"

OUT: Final = sys.intern("out")
"""The keyword of a given result.  Names of keywords in code are interned, so that native code compares addresses."""

PLACES: Final = 2
"""Arrays that an entry keeps of each output, to use again once nobody else does: one that the caller holds from the
last call, while the next is made."""


@dataclass(frozen=True, slots=True)
class State:
    """Positions in the tuple, shared by code generation and construction."""

    dtypes: tuple[str, ...]
    classes: tuple[type[object], ...]
    donated: int = 0

    @classmethod
    def of(cls, signature: Signature) -> Self:
        """The positions for a signature."""
        dtypes: dict[str, None] = {}
        classes: dict[type[object], None] = {}
        for node in signature.nodes:
            match node:
                case ArrayNode(dtype, _, wrapper):
                    dtypes[dtype] = None
                    if wrapper is not None:
                        classes[wrapper] = None
                case RecordNode(record):
                    classes[record] = None
                case _:
                    pass
        return cls(tuple(dtypes), tuple(classes), len(signature.donated))

    def dtype(self, name: str) -> int:
        """The position of a NumPy dtype."""
        return _FIRST + self.dtypes.index(name)

    def cls(self, cls: type[object]) -> int:
        """The position of a wrapper or record class."""
        return _FIRST + len(self.dtypes) + self.classes.index(cls)

    def marker(self, number: int) -> int:
        """The position of what wrappers of the donated argument `number` hold after the call."""
        return _FIRST + len(self.dtypes) + len(self.classes) + number

    def pack(
        self,
        *,
        fallback: Callable[..., object],
        explain: Callable[[int, int, int], object],
        arena: int,
        outputs: int,
        kept: object,
        markers: Sequence[object] = (),
        guard: Guard | None = None,
    ) -> tuple[object, ...]:
        """The tuple."""
        items: dict[int, object] = {
            FALLBACK: fallback,
            EXPLAIN: explain,
            ERROR: SystemError,
            ARENA: _view(arena),
            POOL: np.full(PLACES * outputs, None, object),
            ARRAY_TYPE: np.ndarray,
            TUPLE_TYPE: tuple,
            KEPT: kept,
            GUARD: None if guard is None else guard.pairs,
            BLOCKS: None if guard is None else guard.blocks,
            OUT_NAME: OUT,
            **{self.dtype(name): STORAGE[name] for name in self.dtypes},
            **{self.cls(cls): cls for cls in self.classes},
            **{self.marker(number): marker for number, marker in enumerate(markers)},
        }
        assert len(markers) == self.donated
        return tuple(items[position] for position in range(len(items)))


def offset_in_state(position: int) -> int:
    """Where the tuple keeps the item, in bytes."""
    return TUPLE_ITEMS + 8 * position


def _view(arena: int) -> Array:
    """The first two words of the arena as an array, for its data pointer."""
    return np.frombuffer(memoryview((ctypes.c_int64 * 2).from_address(arena)), np.int64)
