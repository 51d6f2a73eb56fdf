"""What compiled code depends on besides its arguments, so that it is compiled anew when that is redefined.

Tracing records what each function reads (`staging.reads`): globals, attributes of modules, variables of enclosing
functions.  Of all functions that went into a program, this is what is watched: in native code, by a guard in front of
each call, which hands on to Python what does not match; and by Python, wherever a call comes this way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .staging.expression import BatchCallee, Callee, DerivativeCallee, Trace
from .staging.reads import RECORDED, Reads, ReadVariable
from .staging.staged_functions import PythonFunction, Stageable


@dataclass(eq=False)
class Watched:
    """The variables that a program depends on."""

    reads: Reads
    guard: Any = None
    """That of native code, which is made there."""

    def have_changed(self) -> bool:
        """Whether one of them is another one now; if not, native code looks for them where they are now."""
        if self.reads.have_changed():
            return True
        return self.guard is not None and not self.guard.update(self.variables())

    def variables(self) -> Sequence[tuple[Any, str, object]]:
        """Holder, name and value of each."""
        return [(slot.holder, slot.name, slot.value) for slot in self.reads.slots]


def watched_by(callee: Callee, stageable: Stageable) -> Watched:
    """What a program depends on that calls `callee` of `stageable`."""
    slots: dict[tuple[int, str], ReadVariable] = {}
    for function in _functions_of(callee, stageable):
        for slot in function.reads.slots if function.reads is not None else ():
            slots.setdefault((id(slot.holder), slot.name), slot)
    return Watched(RECORDED.add(Reads([*slots.values()])))


def _functions_of(callee: Callee, stageable: Stageable) -> Sequence[PythonFunction]:
    """All functions that were traced for it, and rules of their derivatives."""
    found: dict[PythonFunction, None] = {}
    pending: list[object] = [callee, stageable]
    while pending:
        one = pending.pop()
        match one:
            case DerivativeCallee() | BatchCallee():
                pending.append(one.primal)
            case Trace():
                pending += (one.origin, *one.used)
            case PythonFunction() if one not in found:
                found[one] = None
                rules = one.rules
                pending += (rules.jvp, rules.vjp, rules.saving, *one.traces.values())
            case _:
                pass
    return [*found]
