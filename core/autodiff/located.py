"""Errors of differentiation with the line they come from."""

from __future__ import annotations

from typing import TypeVar

from ..errors import NNKitError
from ..location import HasLocation

Error = TypeVar("Error", bound=NNKitError)


def located(error: Error, location: HasLocation | None) -> Error:
    """`error` with the user's line as a note."""
    place = location.resolve() if location else None
    if place:
        error.add_note("\n".join(f"  {line}" for line in place.excerpt().splitlines()))
    return error
