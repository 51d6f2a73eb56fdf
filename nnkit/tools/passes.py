"""Passes as the command line names them: `cse,matrix-chain{fast-math},dead-functions{roots=f,g}`.

In braces stand options, separated by spaces: `name=value`, or a name alone, which is `true`.  Names of several
functions are separated by commas.  A pass and its options are a frozen dataclass and its fields.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..core.driver.differentiate import Differentiate
from ..core.passes import ALL, Pass
from .command import UsageError

PASSES: Mapping[str, Pass] = {
    a_pass.name: a_pass for a_pass in (*(each() for each in ALL), Differentiate())
}
"""Every pass by name, with its options as they are by default."""

_ENTRY = re.compile(r"(?P<name>[^,{}]*)(?:\{(?P<options>[^{}]*)\})?(?P<end>,|$)")


def passes_of(text: str) -> list[Pass]:
    """The passes that a text like the one above lists.

    Raises: UsageError naming what there is, when a pass or an option does not exist.
    """
    found: list[Pass] = []
    position = 0
    while True:
        entry = _ENTRY.match(text, position)
        if entry is None:
            raise UsageError(
                f"passes are written 'name' or 'name{{option=value ...}}', not {text!r}"
            )
        found.append(pass_of(entry["name"].strip(), entry["options"]))
        position = entry.end()
        if not entry["end"]:
            return found


def pass_of(name: str, options: str | None = None) -> Pass:
    """A pass by its name, with its options as text.  Raises: UsageError as `passes_of` does."""
    a_pass = PASSES.get(name)
    if a_pass is None:
        raise UsageError(
            f"there is no pass {name!r}{_meant(name, PASSES)}\nthe passes are {', '.join(PASSES)}"
        )
    if not options:
        return a_pass
    known = {field.name.replace("_", "-"): field for field in dataclasses.fields(a_pass)}
    given: dict[str, Any] = {}
    for option in options.split():
        key, has_value, value = option.partition("=")
        field = known.get(key.replace("_", "-"))
        if field is None:
            has = f"its options are {', '.join(known)}" if known else "it has none"
            raise UsageError(f"the pass {name!r} has no option {key!r}{_meant(key, known)}: {has}")
        if field.name in given:
            raise UsageError(f"the pass {name!r} is given its option {key!r} twice")
        given[field.name] = _value(
            f"{name}{{{key}}}", str(field.type), value if has_value else "true"
        )
    return dataclasses.replace(a_pass, **given)


def options_of(a_pass: Pass) -> dict[str, Any]:
    """The options of a pass by their names on the command line, and their values."""
    return {
        field.name.replace("_", "-"): getattr(a_pass, field.name)
        for field in dataclasses.fields(a_pass)
    }


def _value(what: str, type: str, text: str) -> Any:
    if type == "bool":
        if text not in ("true", "false"):
            raise UsageError(f"{what} is true or false, not {text!r}")
        return text == "true"
    if type.startswith("tuple[str"):
        return tuple(name.removeprefix("@") for name in text.split(",") if name)
    if text == "none" and type.endswith("| None"):
        return None
    if not re.fullmatch(r"\d{1,18}", text):
        raise UsageError(f"{what} is a number, not {text!r}")
    return int(text)


def _meant(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, n=2)
    return f", did you mean {' or '.join(map(repr, near))}?" if near else ""
