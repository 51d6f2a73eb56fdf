"""`x.at[key]`: a part of a tensor, which its methods give a new tensor with that part updated."""

from __future__ import annotations

from types import GenericAlias
from typing import Any, ClassVar, NoReturn, cast

import numpy as np

from ..core.ops import Update
from . import primitive
from .expression import Expression
from .masks import is_list
from .primitive import is_index, staging_error
from .rep_base import RepBase, constant_of, is_number, rep_of
from .tracebacks import public_methods
from .updates import updated


@public_methods
class At:
    """What `x.at` is: `x.at[key]` is a part of `x`."""

    __slots__ = ("_rep",)
    __class_getitem__: ClassVar[Any] = cast("Any", classmethod(GenericAlias))

    def __init__(self, rep: RepBase) -> None:
        self._rep = rep

    def __getitem__(self, key: Any, /) -> Part:
        return Part(self._rep, key)

    def __repr__(self) -> str:
        return f"<parts of a Rep of {self._rep.spec.words}>"


@public_methods
class Part:
    """A part of a tensor: each method gives the whole tensor with this part updated, and leaves the old one as it is.

    The value is a Rep, a Python number or a concrete tensor, broadcast to the part.  Updates at the same index come in
    order.  An index outside is an error when it runs; of a tensor of indices, mode="clip" takes the nearest, "wrap"
    goes round, and "drop" leaves it out.
    """

    __slots__ = ("_key", "_rep")
    __class_getitem__: ClassVar[Any] = cast("Any", classmethod(GenericAlias))

    def __init__(self, rep: RepBase, key: Any) -> None:
        self._rep = rep
        self._key = key

    def set(self, value: Any, /, *, mode: str = "error") -> Any:
        """The part is `value`."""
        return self._updated(value, Update.SET, mode)

    def add(self, value: Any, /, *, mode: str = "error") -> Any:
        """`value` added to the part."""
        return self._updated(value, Update.ADD, mode)

    def multiply(self, value: Any, /, *, mode: str = "error") -> Any:
        """The part multiplied by `value`."""
        return self._updated(value, Update.MULTIPLY, mode)

    def min(self, value: Any, /, *, mode: str = "error") -> Any:
        """The lesser of the part and `value`."""
        return self._updated(value, Update.MIN, mode)

    def max(self, value: Any, /, *, mode: str = "error") -> Any:
        """The greater of the part and `value`."""
        return self._updated(value, Update.MAX, mode)

    def _updated(self, value: Any, update: Update, mode: str) -> Any:
        x = self._rep.expression
        value = value_beside(x, value)
        return rep_of(updated(x, self._key, value, update, index_expression, mode))

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"x.at[...] has no {name}: x[...] reads the part, and set, add, multiply, min and max give a tensor "
            "with it updated"
        )

    def __repr__(self) -> str:
        return f"<a part of a Rep of {self._rep.spec.words}>"


def value_beside(x: Expression, value: Any) -> Expression:
    """What is written to a part of `x`: a Python number takes its element type."""
    if isinstance(value, RepBase):
        return value.expression
    if is_number(value):
        return primitive.literal(value, primitive.tensor_of(x, "an update").dtype)
    return constant_of(value)


def index_expression(entry: Any) -> Expression | None:
    """The expression of an entry of a key; None for an int or a slice."""
    if isinstance(entry, RepBase):
        return entry.expression
    if isinstance(entry, slice) or is_index(entry):
        return None
    if isinstance(entry, str | float):
        raise staging_error(
            f"a subscript is an int, a slice or integer tensors, not a {type(entry).__name__}"
        )
    if is_list(entry):
        if any(isinstance(one, RepBase) for one in entry):
            raise staging_error(
                "a list in a subscript has Python ints, not Reps",
                "`stack([i, j])` makes a tensor of them",
            )
        entry = np.asarray(entry, None if np.size(entry) else np.int64)
    return constant_of(entry)
