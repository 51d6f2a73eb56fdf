"""Source locations of verifier messages."""

from __future__ import annotations

from collections.abc import Iterable

from ..location import HasLocation
from ..text.spelling import in_text_form


def with_locations(messages: Iterable[str], *locations: HasLocation | None) -> list[str]:
    """The messages, each with the first of these places that is known."""
    where = next((found for location in locations if (found := location_lines(location))), "")
    return [f"{in_text_form(message)}{where}" for message in messages]


def location_lines(location: HasLocation | None) -> str:
    """`at: model.dl:3  func @f: …` on a line of its own, a caret below it; nothing where it is not known."""
    try:
        place = location.resolve() if location else None
        return "\n    at: " + place.excerpt().replace("\n", f"\n{' ' * 8}") if place else ""
    except Exception:  # what has no place that can be found is still a violation
        return ""
