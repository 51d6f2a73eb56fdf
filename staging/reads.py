"""What a staged function reads besides its arguments: globals, variables of enclosing functions, and what these hold.

A trace is right for as long as these are what they were.  So they are recorded when a function has been traced
(`reached` finds them):
1. A counter, which the same code gives values by `+=` alone, is no constant, and is left out.
2. What tracing itself changes is recorded as it is afterwards, of all that have read it.
3. The staged functions that a trace calls are recorded with it; each has what it reads itself.

Each trace belongs to an *epoch*.  Before a function is traced from outside, all that is recorded is looked at; if any
of it has changed, a new epoch begins, and traces of the ones before are not used any more.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any, Final

from ..core.lazy_dataclass import dataclass
from .attribute_storage import is_fixed
from .epochs import EPOCH
from .reached import Search
from .read_places import ReadVariable, are_same


@dataclass(eq=False)
class Reads:
    """Variables, and what they held; `reflective` is what may read under any name (see `reached.Search`)."""

    slots: list[ReadVariable]
    reflective: Sequence[CodeType | None] = ()

    @property
    def size(self) -> int:
        """How many values are looked at: variables, and elements of collections."""
        return sum(slot.size for slot in self.slots)

    def have_changed(self) -> bool:
        """Whether one holds something else.  An equal number or text is what it was, and what it holds from now on."""
        return self.changed() is not None

    def changed(self) -> ReadVariable | None:
        """The first that holds something else."""
        for slot in self.slots:
            now = slot.now()
            if now is not slot.value:
                if not are_same(slot.value, now):
                    return slot
                slot.value = now
        return None

    def changes_since(self, before: Reads) -> Mapping[tuple[int, object], object]:
        """What the places hold that held something else before."""
        held = {slot.key: slot.value for slot in before.slots}
        return {
            slot.key: slot.value
            for slot in self.slots
            if slot.key in held and not are_same(held[slot.key], slot.value)
        }


class _Recorded:
    """All that is recorded and may still be asked."""

    def __init__(self) -> None:
        self.reads: weakref.WeakSet[Reads] = weakref.WeakSet()
        self._lock: Final = threading.Lock()

    def look(self) -> None:
        """Begin a new epoch, if something has changed."""
        changed = [reads for reads in self._known() if reads.have_changed()]
        if changed:
            EPOCH.number += 1
            with self._lock:
                self.reads.difference_update(changed)

    def add(self, reads: Reads) -> Reads:
        """Look at these, too."""
        if reads.slots:
            with self._lock:
                self.reads.add(reads)
        return reads

    def note_changes_by_tracing(self, changes: Mapping[tuple[int, object], object]) -> None:
        """Of what tracing has changed, what is there now is as good as what was: else two functions that count their
        traces would have each other traced without end."""
        for reads in self._known() if changes else ():
            for slot in reads.slots:
                if slot.key in changes:
                    slot.value = changes[slot.key]

    def _known(self) -> list[Reads]:
        with self._lock:  # threads that add something while others look
            return list(self.reads)


RECORDED: Final = _Recorded()


def reads_of(function: Callable[..., Any]) -> Reads:
    """What a Python function reads now, by itself and through what is plain Python."""
    found = Search()
    found.visit(function)
    found.slots.pop((id(function), None), None)
    slots = [one for one in found.slots.values() if one.key not in found.counters]
    return Reads([one for one in slots if not is_fixed(one.value)], found.reflective)
