"""The cache of compiled specialisations of a staged function: dispatch order and eviction.

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
import operator
from collections.abc import Callable, Hashable
from dataclasses import field
from typing import Any, Final

from .compile import Program
from .core.lazy_dataclass import dataclass

_LONGEST_CHAIN: Final = 8
"""Specialisations tried in native code before Python looks among all of them: each that does not fit costs 6 ns, so
that 8 are 50 ns of a call by way of Python, 2 µs."""

_MOST_PATIENCE: Final = 64
"""Calls by way of Python until a specialisation comes into the chain again, at most: a chain costs 4 us, and a
call by way of Python 2."""


@dataclass(eq=False, slots=True)
class Limit:
    """How many specialisations a staged function keeps; one object for all of them."""

    count: int = 256


LIMIT: Final = Limit()


def set_cache_limit(count: int, /) -> int:
    """Let every staged function keep at most `count` compiled specialisations; the limit before is returned.

    A function that has more drops those that were not used for longest when it next compiles one.
    Raises: ValueError for less than 1; TypeError for what is no whole number.

    >>> previous = set_cache_limit(1000)
    >>> set_cache_limit(previous)
    1000
    """
    count = operator.index(count)
    if count < 1:
        raise ValueError(f"a staged function keeps at least 1 specialisation, not {count}")
    previous, LIMIT.count = LIMIT.count, count
    return previous


@dataclass(frozen=True, slots=True)
class _DispatchChain:
    """`head` tries the specialisations of these keys, the last one first."""

    head: Callable[..., Any]
    keys: tuple[Hashable, ...] = ()


@dataclass(eq=False, slots=True)
class _Entry:
    """A specialisation, when it was used last, and how often until it comes into the chain again."""

    program: Program
    used: int
    patience: int = 1
    waits: int = 1


@dataclass(eq=False, slots=True)
class Specializations:
    """Those of one staged function; `otherwise` gets the arguments that no specialisation of the chain takes."""

    otherwise: Callable[..., Any]
    _known: dict[Hashable, _Entry] = field(default_factory=dict[Hashable, _Entry])
    _chain: _DispatchChain = field(init=False)
    _clock: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self._chain = _DispatchChain(self.otherwise)

    def __len__(self) -> int:
        return len(self._known)

    @property
    def head(self) -> Callable[..., Any]:
        """The first of the chain: what a call goes to."""
        return self._chain.head

    def find(self, key: Hashable) -> Program | None:
        """The specialisation of this key, which is used now, and comes to the front of the chain.

        The oftener it had to, the later: going round among more than a chain holds should not make chains.
        """
        known = self._known.get(key)
        if known is None:
            return None
        known.used = next(self._clock)
        known.waits -= 1
        if known.waits <= 0:
            known.patience = known.waits = min(2 * known.patience, _MOST_PATIENCE)
            self._put_in_front(key, known.program)
        return known.program

    def add(self, key: Hashable, program: Program) -> None:
        """Keep a new specialisation, in front, and no more than the limit.  For one thread at a time."""
        self._known[key] = _Entry(program, next(self._clock))
        chained = self._chain.keys
        while len(self._known) > LIMIT.count:
            others = (other for other in self._known if other != key)
            oldest = min(others, key=lambda other: (other in chained, self._known[other].used))
            del self._known[oldest]
        if any(other not in self._known for other in chained):
            self._chain = _DispatchChain(self.otherwise)
        if key:  # without arguments nothing tells native code that a call is to be staged
            self._put_in_front(key, program)

    def clear(self) -> None:
        """Drop all."""
        self._known.clear()
        self._chain = _DispatchChain(self.otherwise)

    def _put_in_front(self, key: Hashable, program: Program) -> None:
        chain = self._chain
        if not key or key in chain.keys:
            return
        if len(chain.keys) >= min(_LONGEST_CHAIN, LIMIT.count):
            self._drop_kept_results(chain)
            chain = _DispatchChain(self.otherwise)
        self._chain = _DispatchChain(program.followed_by(chain.head), (*chain.keys, key))

    def _drop_kept_results(self, chain: _DispatchChain) -> None:
        """What is in no chain keeps no memory for its next results."""
        for key in chain.keys:
            known = self._known.get(key)
            if known is not None:
                known.program.drop_kept_results()
