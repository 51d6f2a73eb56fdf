"""The compiled specialisations of a staged function: which there are, which are tried first, which go.

1. All are found by key, the types and shapes of the arguments.  There are at most `limit` of them: a new one
   takes the place of the one that was not used for longest.
2. Some are a chain in native code, each handing on to the next what it does not take, at some 6 ns.  What none
   of them takes comes to Python, which finds its specialisation by key and puts it in front of the chain.  A
   full chain is begun anew, so that it follows what is used.
3. Calls that native code takes are not counted: what is in the chain counts as just used.

A chain is never changed, but another one made, from the same code.  Whoever is in the middle of a call holds the
chain that it goes through, which holds the code: nothing that runs is ever freed.  So no lock is needed to find
and to chain, only to add; of two threads that put something in front at once, one has to do it again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Final

from .compile import Program

_LONGEST_CHAIN: Final = 8
"""Specialisations tried in native code before Python looks among all of them."""


@dataclass(eq=False, slots=True)
class Limit:
    """How many specialisations a staged function keeps; one object for all of them."""

    count: int = 256


LIMIT: Final = Limit()


def set_cache_limit(count: int, /) -> int:
    """Let every staged function keep at most `count` compiled specialisations; the limit before is returned.

    A function that has more drops those that were not used for longest when it next compiles one.
    Raises: ValueError for less than 1.

    >>> previous = set_cache_limit(1000)
    >>> set_cache_limit(previous)
    1000
    """
    if count < 1:
        raise ValueError(f"a staged function keeps at least 1 specialisation, not {count}")
    previous, LIMIT.count = LIMIT.count, count
    return previous


@dataclass(frozen=True, slots=True)
class _Chain:
    """`head` tries the specialisations of these keys, the last one first."""

    head: Callable[..., Any]
    keys: tuple[Hashable, ...] = ()


@dataclass(eq=False, slots=True)
class _Known:
    program: Program
    used: int


@dataclass(eq=False, slots=True)
class Specializations:
    """Those of one staged function; `otherwise` gets the arguments that no specialisation of the chain takes."""

    otherwise: Callable[..., Any]
    _known: dict[Hashable, _Known] = field(default_factory=dict[Hashable, _Known])
    _chain: _Chain = field(init=False)
    _clock: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self._chain = _Chain(self.otherwise)

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: Hashable) -> Program | None:
        """The specialisation of this key, which is used now."""
        known = self._known.get(key)
        if known is None:
            return None
        known.used = next(self._clock)
        return known.program

    def head_with(self, key: Hashable, program: Program) -> Callable[..., Any]:
        """The first of the chain, once the specialisation of this key is in it."""
        chain = self._chain
        if key in chain.keys:
            return chain.head
        if len(chain.keys) < min(_LONGEST_CHAIN, LIMIT.count):
            made = _Chain(program.followed_by(chain.head), (*chain.keys, key))
        else:
            made = self._begin(key, program)
        self._chain = made
        return made.head

    def add(self, key: Hashable, program: Program) -> None:
        """Keep a new specialisation, and no more than the limit.  For one thread at a time."""
        self._known[key] = _Known(program, next(self._clock))
        chained = self._chain.keys
        while len(self._known) > LIMIT.count:
            by_use = ((other in chained, known.used, other) for other, known in self._known.items())
            *_, oldest = min((rank for rank in by_use if rank[2] != key), key=lambda rank: rank[:2])
            del self._known[oldest]
        if any(other not in self._known for other in self._chain.keys):
            self._chain = self._begin(key, program) if key else _Chain(self.otherwise)

    def clear(self) -> None:
        """Drop all."""
        self._known.clear()
        self._chain = _Chain(self.otherwise)

    def _begin(self, key: Hashable, program: Program) -> _Chain:
        """A chain of one; those that were in the chain keep no memory for results while they are not."""
        for other in self._chain.keys:
            known = self._known.get(other)
            if known is not None:
                known.program.drop_kept_results()
        return _Chain(program.followed_by(self.otherwise), (key,))
