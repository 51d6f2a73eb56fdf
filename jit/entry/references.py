"""Emits what an entry owns while the kernel runs: references to arrays, and what is donated to the call.

1. `hold` takes a reference to the array of every leaf, for programs in which other Python code may run meanwhile: it
   might donate what they read, and a donated array is written to and freed.
2. `take` empties the wrappers of donated arguments: each holds a marker instead of its array from now on, whatever
   becomes of the call.  A wrapper that is an argument twice is a mismatch, before anything has been emptied for good.

An array that was in a wrapper, and that nobody else has a reference to, becomes a result (`outputs`).  Any other is
only read, and dropped when the kernel is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core.lazy_dataclass import dataclass
from ..emit.writer import I64, PTR, Argument, FunctionWriter, ModuleWriter, Register, constant
from . import layout
from .access import NULL, from_state
from .arguments import Leaves
from .signature import Signature, leaves
from .state import State


@dataclass(frozen=True, slots=True)
class References:
    """The references that a call owns: `held` arrays of leaves, then places for results that are pending."""

    w: FunctionWriter
    base: Register
    held: int
    release: str

    @classmethod
    def allocate(cls, w: FunctionWriter, held: int, pending: int, release: str) -> References:
        """Memory for so many."""
        return cls(w, w.allocate(PTR, max(held + pending, 1), align=8), held, release)

    @property
    def pending(self) -> Register:
        """The places of the results."""
        return self.w.offset(self.base, 8 * self.held) if self.held else self.base

    def fail(self, pending: int) -> None:
        """Drop what is held, and the first `pending` results; return without a result: an exception is set."""
        count = constant(I64, self.held + pending)
        self.w.call_void(self.release, [self.base, count], is_rare=True)
        self.w.ret(NULL)

    def fail_if_null(self, value: Register, pending: int) -> None:
        """Fail if a C function has."""
        w = self.w
        failed, proceed = w.new_label("failed"), w.new_label("made")
        w.branch_if(w.icmp("eq", value, NULL), failed, proceed)
        w.begin(failed)
        self.fail(pending)
        w.begin(proceed)

    def drop_held(self) -> None:
        """Drop the arrays of leaves, but for those that have become results."""
        if self.held:
            self.w.call_void(self.release, [self.base, constant(I64, self.held)])


def hold(w: FunctionWriter, arrays: Register, count: int) -> None:
    """Take references to `count` arrays."""
    with w.loop(constant(I64, 0), constant(I64, count), constant(I64, 1)) as each:
        w.call_void("Py_IncRef", [w.load(w.gep(arrays, PTR, each.index), PTR)])


def take(
    module: ModuleWriter,
    w: FunctionWriter,
    state: State,
    signature: Signature,
    found: Leaves,
    mismatch: str,
) -> None:
    """Take the arrays of donated wrappers, and references to all others, or go to the label `mismatch`."""
    assert found.arrays is not None and found.given is not None
    slot = _array_slot(signature)
    functions = [_write(module, f"{w.name}.{step.__name__[1:]}", step, slot) for step in _STEPS]
    taking, holding, undoing = functions
    failed = w.allocate(I64, align=8)
    w.store(constant(I64, 0), failed)
    donated = [
        (leaves, from_state(w, state.marker(number)))
        for number, leaves in enumerate(signature.donated_leaves)
    ]
    others = [(leaves, NULL) for leaves in _between(signature)]
    for function, ranges in ((taking, donated), (holding, others)):
        _call_each(w, function, ranges, found, failed)
    undo, proceed = w.new_label("undo"), w.new_label("taken")
    w.branch_if(w.icmp("eq", w.load(failed, I64), constant(I64, 0)), proceed, undo)
    w.begin(undo)
    _call_each(w, undoing, [*donated, *others], found, failed)
    w.branch(mismatch)
    w.begin(proceed)


def _call_each(
    w: FunctionWriter,
    function: str,
    ranges: Sequence[tuple[range, Register]],
    found: Leaves,
    failed: Register,
) -> None:
    assert found.arrays is not None and found.given is not None
    for leaves_, marker in ranges:
        bounds = constant(I64, leaves_.start), constant(I64, leaves_.stop)
        w.call_void(function, [found.given, found.arrays, marker, *bounds, failed])


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One leaf in the functions below: what was given, its array, where these stand, and the wrapper's slot."""

    given: Register
    array: Register
    place: Register
    slot: Register
    marker: Register
    failed: Register


def _take(w: FunctionWriter, leaf: _Leaf) -> None:
    """Move the array out of the wrapper; of an array itself, take a reference."""
    is_bare = w.icmp("eq", leaf.given, leaf.array)
    with w.when(is_bare):
        w.call_void("Py_IncRef", [leaf.array])
    with w.when(w.icmp("ne", leaf.given, leaf.array)):
        there = w.load(leaf.slot, PTR)
        with w.when(w.icmp("ne", there, leaf.array)):  # it was an argument before
            w.store(NULL, leaf.place)
            w.store(constant(I64, 1), leaf.failed)
        with w.when(w.icmp("eq", there, leaf.array)):
            w.store(leaf.marker, leaf.slot)
            w.call_void("Py_IncRef", [leaf.marker])


def _hold(w: FunctionWriter, leaf: _Leaf) -> None:
    """Take a reference to the array, which must not have been donated."""
    w.call_void("Py_IncRef", [leaf.array])
    with (
        w.when(w.icmp("ne", leaf.given, leaf.array)),
        w.when(w.icmp("ne", w.load(leaf.slot, PTR), leaf.array)),
    ):
        w.store(constant(I64, 1), leaf.failed)


def _undo(w: FunctionWriter, leaf: _Leaf) -> None:
    """Put the array back into the wrapper; drop what was taken of another."""
    with w.when(w.icmp("ne", leaf.array, NULL)):
        moved = w.and_(w.icmp("ne", leaf.given, leaf.array), w.icmp("ne", leaf.marker, NULL))
        with w.when(moved):
            w.store(leaf.array, leaf.slot)
        w.call_void("Py_DecRef", [w.select(moved, leaf.marker, leaf.array)])


_STEPS = (_take, _hold, _undo)


def _write(
    module: ModuleWriter, name: str, step: Callable[[FunctionWriter, _Leaf], None], slot: int
) -> str:
    """`void step(ptr given, ptr arrays, ptr marker, i64 first, i64 last, ptr failed)`: the step for those leaves."""
    types = (PTR, PTR, PTR, I64, I64, PTR)
    w = module.function(name, [*map(Argument, types)], None, linkage="internal")
    given, arrays, marker, first, last, failed = w.parameters
    with w.loop(first, last, constant(I64, 1)) as each:
        holder, place = w.load(w.gep(given, PTR, each.index), PTR), w.gep(arrays, PTR, each.index)
        step(w, _Leaf(holder, w.load(place, PTR), place, w.offset(holder, slot), marker, failed))
    w.ret()
    return name


def _array_slot(signature: Signature) -> int:
    """Where wrappers have their arrays: all in one place, as of one class they inherit from."""
    wrappers = {leaf.wrapper for node in signature.arguments for leaf in leaves(node)} - {None}
    found = {layout.slot_offset(cls, signature.array_slot) for cls in wrappers if cls is not None}
    if len(found) > 1:
        raise ValueError("wrappers of donated arguments have their arrays in different slots")
    return found.pop() if found else layout.HEAD_SIZE


def _between(signature: Signature) -> list[range]:
    """The leaves of all other arguments."""
    found, start = list[range](), 0
    for taken in sorted(
        signature.donated_leaves, key=lambda leaves_: (leaves_.start, leaves_.stop)
    ):
        found.append(range(start, taken.start))
        start = taken.stop
    found.append(range(start, len(signature.inputs)))
    return [each for each in found if each]
