"""Shapes of the call at hand, for Python code that needs a size as an int."""

from __future__ import annotations

from typing import NoReturn

from ..core.errors import StagingError
from .expression import Expression, with_location
from .location import current_location


def known_shape(tensor: Expression, size: str, what: str) -> NoReturn:
    """The shape of a tensor."""
    raise with_location(
        StagingError(f"{what} needs the size {size} as a number"),
        current_location(),
        "`fori` and `map` repeat as often as there are elements",
    )
