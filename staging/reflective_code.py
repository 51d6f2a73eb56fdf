"""Warns of functions that may read anything by computed names, where much is looked at before each of their calls.

Code with `getattr(x, name)`, `vars(x)` or `sys.modules[name]` may read all that is reached from there, so all of it is
looked at (`reached`), which is right however much that is.  It may be a whole program: then a word helps.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from types import CodeType
from typing import Final
from weakref import WeakSet

from ..core.errors import PerformanceWarning
from ..core.location import Location
from .location import DefinitionLocation, SourceLocation
from .names_in_code import reflection_in
from .reads import Reads

MOST_WATCHED: Final = 2_000
"""Values that a function may watch without a word.  In native code they take 2.6 µs of a call; 10 ms in Python, which
looks at them whenever something is traced or a call is of other shapes."""

_WARNED: Final[WeakSet[CodeType]] = WeakSet()
"""The code that has been warned of; a cell that is run again has code that is equal."""
_ONE_AT_A_TIME: Final = threading.Lock()


def warn_of_many(name: str, function: object, reads: Reads) -> None:
    """Warn of `function` if it reads by computed names and watches many values, once for the code that does so."""
    if not reads.reflective or reads.size <= MOST_WATCHED:
        return
    named, code, place = _cause(function, reads.reflective)
    with _ONE_AT_A_TIME:
        if code is None or code in _WARNED:
            return
        _WARNED.add(code)
    place = place or Location(code.co_filename, code.co_firstlineno)
    excerpt = place.excerpt().replace("\n", "\n  ")
    text = (
        f"before each call of {name}, {reads.size:,} values are looked at: {named} may read any of them, and a change "
        f"compiles {name} anew\n  {excerpt}\n"
        "  help: write the name that is read, as in `config.rate`; or read it outside of the staged function and pass "
        "it as an argument; or let what is read from hold less"
    )
    warnings.warn_explicit(text, PerformanceWarning, place.file, place.line)


def _cause(
    function: object, reflective: Sequence[CodeType | None]
) -> tuple[str, CodeType | None, Location | None]:
    """What reads under any name, the code that is to blame, and the place there."""
    for code in reflective:
        found = None if code is None else reflection_in(code)
        if found is not None:
            named, inside, offset = found
            return f"`{named}`", code, SourceLocation(inside, offset).resolve()
    own: object = getattr(function, "__code__", None)
    if not isinstance(own, CodeType):
        return "", None, None
    return "an object as of `operator.attrgetter`", own, DefinitionLocation(own).resolve()
