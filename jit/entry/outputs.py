"""Emits the allocation of output arrays, which recycles those of earlier calls that nobody else references.

NumPy takes 50 ns to make and free a small array, and the system much more to provide large memory
again and again. So an entry keeps the last two arrays of each output, and uses one again when
nobody else can see it: the entry holds the only reference, and there is no weak reference, no base,
and no change to dtype, rank, shape, strides or flags. (Views, buffers, DLPack capsules and the like
hold a reference to the array.) Two, because `y = f(x)` in a loop still holds the last result while
it asks for the next.

Whatever could run Python code, as freeing an array with a weak reference does, waits until the
kernel is done.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field as member
from dataclasses import replace
from functools import reduce

from ...core.lazy_dataclass import dataclass
from ..emit.writer import I32, PTR, Argument, FunctionWriter, ModuleWriter, Register, constant
from . import layout
from .access import (
    NULL,
    QUICKLY_COMPILED,
    array_data,
    equals,
    field,
    from_state,
    lengths_of,
    require,
    words_alike,
    words_equal,
)
from .references import References
from .signature import ArrayNode
from .state import ARRAY_TYPE, PLACES, POOL, State


@dataclass(frozen=True, slots=True)
class ArrayFinder:
    """Writes the code, in one function, that finds an unused array or makes one."""

    module: ModuleWriter
    w: FunctionWriter
    state: State
    entry: str

    def recycled(self, leaf: ArrayNode, places: Register, lengths: Register) -> Register:
        """One of the arrays in the two places, else a new one; null without memory.

        Its shape is the one at the address `lengths`, null without axes.
        """
        w = self.w
        recycle, done = w.new_label("recycle"), w.new_label("output")
        found: list[tuple[Register, str]] = []
        for place in range(PLACES):
            busy = w.new_label("busy")
            array = field(w, places, 8 * place)
            self._require_unused(leaf, array, busy, lengths)
            found.append((array, w.block))
            w.branch(recycle)
            w.begin(busy)
        fresh, made_in = self.new(leaf, lengths), w.block
        w.branch(done)
        w.begin(recycle)
        again = w.phi(PTR)
        for array, block in found:
            again.add_incoming(array, block)
        w.store(constant(I32, 2), w.offset(again.register, layout.REFERENCES))
        w.branch(done)
        w.begin(done)
        chosen = w.phi(PTR)
        chosen.add_incoming(fresh, made_in)
        chosen.add_incoming(again.register, recycle)
        return chosen.register

    def reused(self, leaf: ArrayNode, place: Register, lengths: Register) -> Register:
        """The array in `place`, which is empty then, if nobody else can see it; else a new one."""
        w = self.w
        shared, done = w.new_label("shared"), w.new_label("output")
        array = w.load(place, PTR)
        self._require_unused(leaf, array, shared, lengths)
        w.store(NULL, place)
        moved = w.block
        w.branch(done)
        w.begin(shared)
        fresh, made_in = self.new(leaf, lengths), w.block
        w.branch(done)
        w.begin(done)
        chosen = w.phi(PTR)
        chosen.add_incoming(array, moved)
        chosen.add_incoming(fresh, made_in)
        return chosen.register

    def new(self, leaf: ArrayNode, lengths: Register) -> Register:
        """A new array, from NumPy; null without memory."""
        zero = constant(I32, 0)
        rank, number = constant(I32, len(leaf.shape)), constant(I32, leaf.storage.num)
        type = from_state(self.w, ARRAY_TYPE)
        arguments = [type, rank, lengths, number, NULL, NULL, zero, zero, NULL]
        return self.w.call("PyArray_New", PTR, arguments)

    def _require_unused(
        self, leaf: ArrayNode, array: Register, otherwise: str, lengths: Register
    ) -> None:
        """Only we have the array, and it is as it was made. An empty place holds None, which all have."""
        w = self.w
        require(w, [equals(w, field(w, array, layout.REFERENCES, I32), 1)], otherwise)
        dtype = from_state(w, self.state.dtype(leaf.dtype))
        unchanged = [
            w.icmp("eq", field(w, array, layout.ARRAY_WEAK_REFERENCES), NULL),
            w.icmp("eq", field(w, array, layout.ARRAY_BASE), NULL),
            w.icmp("eq", field(w, array, layout.ARRAY_DTYPE), dtype),
            equals(w, field(w, array, layout.ARRAY_RANK, I32), len(leaf.shape)),
            equals(w, field(w, array, layout.ARRAY_FLAGS, I32), layout.fresh_flags(leaf.shape)),
        ]
        require(w, unchanged, otherwise)
        if leaf.shape:
            shape = field(w, array, layout.ARRAY_SHAPE)
            strides = field(w, array, layout.ARRAY_STRIDES)
            same_shape = words_alike(w, shape, lengths, len(leaf.shape))
            require(w, [*same_shape, *words_equal(w, strides, [*_free_strides(leaf)])], otherwise)


@dataclass(eq=False, slots=True)
class OutputWriter:
    """Writes the code of an entry that provides the arrays of its outputs.

    They are stored in the places of `references`, which are dropped on failure.  `reused` are donated leaves, by the
    outputs that may be their arrays.
    """

    finder: ArrayFinder
    inputs: Sequence[ArrayNode]
    outputs: Sequence[ArrayNode]
    kept: frozenset[int]
    references: References
    reused: Mapping[int, int]
    in_place: bool
    _functions: dict[tuple[object, ...], str] = member(
        default_factory=dict[tuple[object, ...], str]
    )

    @property
    def _w(self) -> FunctionWriter:
        return self.finder.w

    def acquire(self) -> None:
        """Find or make an array for each output."""
        for index, leaf in enumerate(self.outputs):
            lengths = self._lengths(index)
            if index in self.reused:
                place = self._w.offset(self.references.base, 8 * self.reused[index])
                array = self.finder.reused(leaf, place, lengths)
            elif index in self.kept:
                array = self._find(leaf, index, lengths)
            else:
                array = self.finder.new(leaf, lengths)
            self.references.fail_if_null(array, index)
            self._w.store(array, self._w.offset(self.references.pending, 8 * index))

    def keep(self) -> None:
        """Keep the arrays that were made, in place of the older one of the two."""
        if not self.kept:
            return
        w, function = self._w, f"{self._w.name}.keep"
        for index in sorted(self.kept):
            array, places = field(w, self.references.pending, 8 * index), self._places(index)
            known = [w.icmp("ne", array, field(w, places, 8 * place)) for place in range(PLACES)]
            with w.when(reduce(w.and_, known), hint="keep"):
                w.call_void(function, [places, array], is_rare=True)
        self._write_keep(function)

    def _places(self, index: int) -> Register:
        pool = array_data(self._w, from_state(self._w, POOL))
        return self._w.offset(pool, 8 * PLACES * index)

    def _lengths(self, index: int) -> Register:
        leaves = (*self.inputs, *self.outputs)
        return lengths_of(self._w, self.finder.entry, leaves, len(self.inputs) + index)

    def _find(self, leaf: ArrayNode, index: int, lengths: Register) -> Register:
        if self.in_place:
            return self.finder.recycled(leaf, self._places(index), lengths)
        w = self._w
        arguments = [w.parameters[0], self._places(index), *([lengths] if leaf.shape else [])]
        return w.call(self._function(leaf), PTR, arguments)

    def _function(self, leaf: ArrayNode) -> str:
        """`ptr find(ptr self, ptr places, ptr lengths)`: an array for a leaf of this kind, of any shape, or null.

        Without axes, there are no lengths.
        """
        free = tuple(_free_strides(leaf))
        kind = leaf.dtype, len(leaf.shape), layout.fresh_flags(leaf.shape), free
        if kind not in self._functions:
            name = f"{self._w.name}.find.{len(self._functions)}"
            parameters = [Argument(PTR)] * (3 if leaf.shape else 2)
            w = self.finder.module.function(name, parameters, PTR, linkage="internal")
            _, places, *lengths = w.parameters
            w.ret(replace(self.finder, w=w).recycled(leaf, places, next(iter(lengths), NULL)))
            self._functions[kind] = name
        return self._functions[kind]

    def _write_keep(self, name: str) -> None:
        """`void keep(ptr places, ptr array)`: the array comes first, the first second, and the
        second goes.

        The array was made by this call and nobody else has seen it, so it has one reference.
        """
        w = self.finder.module.function(
            name,
            [Argument(PTR), Argument(PTR)],
            None,
            linkage="internal",
            attributes=QUICKLY_COMPILED,
        )
        newer, array = w.parameters
        older = w.offset(newer, 8)
        dropped = w.load(older, PTR)
        w.store(w.load(newer, PTR), older)
        w.store(array, newer)
        w.store(constant(I32, 2), w.offset(array, layout.REFERENCES))
        w.call_void("Py_DecRef", [dropped])
        w.ret()


def outputs_to_recycle(
    outputs: Sequence[ArrayNode], limit: int, reused: Collection[int] = ()
) -> frozenset[int]:
    """Which outputs to recycle: the smallest, as many as together stay within `limit` bytes.

    Not those that are donated again: an array that is kept here is never the caller's alone.
    """
    kept: set[int] = set()
    candidates = (index for index in range(len(outputs)) if index not in reused)
    for index in sorted(candidates, key=lambda index: outputs[index].bytes):
        limit -= PLACES * outputs[index].bytes
        if limit < 0:
            break
        kept.add(index)
    return frozenset(kept)


def _free_strides(leaf: ArrayNode) -> Iterator[tuple[int, int]]:
    """The strides that being contiguous does not settle: where there is at most one element."""
    strides = layout.fresh_strides(leaf.shape, leaf.storage.itemsize)
    for axis, (length, stride) in enumerate(zip(leaf.shape, strides, strict=True)):
        if length <= 1 or math.prod(leaf.shape) == 0:
            yield axis, stride
