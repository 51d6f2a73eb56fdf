"""Emits the argument checks of an entry: types, dtypes, shapes and layout must be those of the signature.

A leaf is a plain ndarray, or an instance of exactly the wrapper class with one in its slot, of the
dtype in this machine's byte order, of the shape, contiguous in C order and aligned. A record is an
instance of exactly its class with a tuple of its fields in its slot. Whatever else comes (lists,
scalars, subclasses, views with gaps) is for Python to deal with: control goes to `mismatch`.

Nothing between here and the kernel runs Python code, so what was checked stays true.

With few leaves the checks are written in place; with many there is a function for each kind of
leaf, which is told the shape, since LLVM takes long over long functions and over many.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...core.lazy_dataclass import dataclass
from ..emit.writer import (
    I1,
    I8,
    I32,
    I64,
    PTR,
    Argument,
    FunctionWriter,
    ModuleWriter,
    Register,
    constant,
)
from . import layout
from .access import (
    NULL,
    array_data,
    equals,
    field,
    from_state,
    lengths_of,
    require,
    words_alike,
)
from .signature import ArrayNode, Node, RecordNode, Signature, TupleNode
from .state import ARRAY_TYPE, OUT_NAME, TUPLE_TYPE, State

_COUNT_MASK = (1 << 63) - 1
"""The top bit of nargsf lets the callee use the place before the arguments (`PY_VECTORCALL_ARGUMENTS_OFFSET`)."""


@dataclass(frozen=True, slots=True)
class ObjectReader:
    """Writes the checks of single objects; `mismatch` is the label to go to when one does not hold."""

    w: FunctionWriter
    state: State
    signature: Signature
    mismatch: str

    def array(
        self,
        leaf: ArrayNode,
        value: Register,
        *,
        written: bool = False,
        lengths: Register,
    ) -> Register:
        """The array of a leaf; one that is written to is in its wrapper, and writable.

        Its shape is the one at the address `lengths`.
        """
        w = self.w
        if leaf.wrapper is None:
            array = value
        elif written:
            require(w, [self._is_of_class(value, self.state.cls(leaf.wrapper))], self.mismatch)
            array = self._slot(leaf.wrapper, self.signature.array_slot, value)
        else:
            array = self._unwrap(leaf.wrapper, value)
        require(w, [self._is_of_class(array, ARRAY_TYPE)], self.mismatch)
        self._require_dtype(leaf, array)
        wanted = layout.C_CONTIGUOUS | layout.ALIGNED | (layout.WRITABLE if written else 0)
        flags = w.and_(field(w, array, layout.ARRAY_FLAGS, I32), constant(I32, wanted))
        rank = field(w, array, layout.ARRAY_RANK, I32)
        require(w, [equals(w, flags, wanted), equals(w, rank, len(leaf.shape))], self.mismatch)
        if leaf.shape:
            shape = field(w, array, layout.ARRAY_SHAPE)
            require(w, words_alike(w, shape, lengths, len(leaf.shape)), self.mismatch)
        return array

    def fields(self, record: RecordNode, value: Register) -> Register:
        """The tuple of the fields of a record."""
        require(self.w, [self._is_of_class(value, self.state.cls(record.cls))], self.mismatch)
        return self._slot(record.cls, self.signature.fields_slot, value)

    def items(self, value: Register, count: int) -> Iterator[Register]:
        """The items of a tuple, each read when it is asked for."""
        w = self.w
        require(w, [self._is_of_class(value, TUPLE_TYPE)], self.mismatch)
        require(w, [equals(w, field(w, value, layout.TUPLE_SIZE, I64), count)], self.mismatch)
        return (field(w, value, layout.TUPLE_ITEMS + 8 * index) for index in range(count))

    def _require_dtype(self, leaf: ArrayNode, array: Register) -> None:
        """The dtype is the one object that NumPy shares, or says the same: pickle makes others."""
        w = self.w
        same, other = w.new_label("dtype"), w.new_label("dtype.other")
        dtype = field(w, array, layout.ARRAY_DTYPE)
        known = from_state(w, self.state.dtype(leaf.dtype))
        w.branch_if(w.icmp("eq", dtype, known), same, other)
        w.begin(other)
        number = field(w, dtype, layout.DTYPE_NUMBER, I32)
        matches = constant(I1, 0)
        for candidate in layout.type_numbers(leaf.storage):
            matches = w.or_(matches, equals(w, number, candidate))
        order = field(w, dtype, layout.DTYPE_BYTE_ORDER, I8)
        native = equals(w, order, ord("|" if leaf.storage.itemsize == 1 else "="))
        w.branch_if(w.and_(matches, native), same, self.mismatch)
        w.begin(same)

    def _unwrap(self, wrapper: type[object], value: Register) -> Register:
        """The array in the slot of the wrapper; the value itself if it is something else."""
        w = self.w
        wrapped, bare, done = w.new_label("wrapped"), w.new_label("bare"), w.new_label("array")
        w.branch_if(self._is_of_class(value, self.state.cls(wrapper)), wrapped, bare)
        w.begin(wrapped)
        content = self._slot(wrapper, self.signature.array_slot, value)
        unwrapped = w.block
        w.branch(done)
        w.begin(bare)
        w.branch(done)
        w.begin(done)
        array = w.phi(value.type)
        array.add_incoming(content, unwrapped)
        array.add_incoming(value, bare)
        return array.register

    def _slot(self, cls: type[object], name: str, value: Register) -> Register:
        """The content of a slot, which must have been set."""
        content = field(self.w, value, layout.slot_offset(cls, name))
        require(self.w, [self.w.icmp("ne", content, NULL)], self.mismatch)
        return content

    def _is_of_class(self, value: Register, position: int) -> Register:
        found = field(self.w, value, layout.TYPE)
        return self.w.icmp("eq", found, from_state(self.w, position))


@dataclass(frozen=True, slots=True)
class Leaves:
    """Memory of a call for what is read of each leaf: the address of its data, and, where they are asked for, the array
    and what the caller gave, which is the array or a wrapper of it.
    """

    pointers: Register
    arrays: Register | None = None
    given: Register | None = None


def require_counts(w: FunctionWriter, signature: Signature, mismatch: str) -> None:
    """Branch to the label `mismatch` unless there are so many arguments, and `out` by keyword if a result is given.

    The values of keywords lie behind the arguments.
    """
    _, _, flagged_count, keywords = w.parameters
    count = w.and_(flagged_count, constant(I64, _COUNT_MASK))
    if not signature.given_result:
        conditions = [equals(w, count, len(signature.arguments)), w.icmp("eq", keywords, NULL)]
        require(w, conditions, mismatch)
        return
    conditions = [equals(w, count, len(signature.arguments)), w.icmp("ne", keywords, NULL)]
    require(w, conditions, mismatch)
    require(w, [equals(w, field(w, keywords, layout.TUPLE_SIZE, I64), 1)], mismatch)
    name = field(w, keywords, layout.TUPLE_ITEMS)
    require(w, [w.icmp("eq", name, from_state(w, OUT_NAME))], mismatch)


class ArgumentReader:
    """Writes the checks of all arguments of an entry, and stores what is read of their leaves."""

    __slots__ = ("_data", "_functions", "_in_place", "_leaves", "_module", "_objects", "_w")

    def __init__(
        self, module: ModuleWriter, objects: ObjectReader, leaves: Leaves, *, in_place: bool
    ) -> None:
        self._module = module
        self._objects = objects
        self._w = objects.w
        self._leaves = leaves
        self._in_place = in_place
        self._functions: dict[tuple[object, ...], str] = {}
        self._data = 0

    def read(self) -> None:
        """Check the arguments of the call, and the arrays to write to, one leaf after the other."""
        w, signature = self._w, self._objects.signature
        expected = signature.arguments
        written = (signature.result,) if signature.given_result else ()
        arguments = w.parameters[1]
        total = len(expected) + len(written)
        values = (field(w, arguments, 8 * index) for index in range(total))
        self._read_all(expected, itertools.islice(values, len(expected)))
        self._read_all(written, values, written=True)

    def _read_all(
        self, nodes: Sequence[Node], values: Iterator[Register], *, written: bool = False
    ) -> None:
        for node, value in zip(nodes, values, strict=True):
            match node:
                case ArrayNode():
                    self._read_leaf(node, value, written=written)
                case TupleNode(items):
                    self._read_all(items, self._objects.items(value, len(items)), written=written)
                case RecordNode(_, fields):
                    contents = self._objects.fields(node, value)
                    inside = self._objects.items(contents, len(fields))
                    self._read_all(fields, inside, written=written)

    def _read_leaf(self, leaf: ArrayNode, value: Register, *, written: bool) -> None:
        array = self._array(leaf, value, written=written)
        found = self._leaves
        self._store(array_data(self._w, array), found.pointers)
        if found.arrays is not None:
            self._store(array, found.arrays)
        if found.given is not None:
            self._store(value, found.given)
        self._data += 1

    def _store(self, value: Register, into: Register) -> None:
        self._w.store(value, self._w.offset(into, 8 * self._data))

    def _array(self, leaf: ArrayNode, value: Register, *, written: bool) -> Register:
        w, signature = self._w, self._objects.signature
        leaves = (*signature.inputs, *signature.outputs)
        lengths = lengths_of(w, w.name, leaves, self._data)
        if self._in_place:
            return self._objects.array(leaf, value, written=written, lengths=lengths)
        passed = [w.parameters[0], value, *([lengths] if leaf.shape else [])]
        array = w.call(self._function(leaf, written=written), PTR, passed)
        require(w, [w.icmp("ne", array, NULL)], self._objects.mismatch)
        return array

    def _function(self, leaf: ArrayNode, *, written: bool) -> str:
        """`ptr read(ptr self, ptr value, ptr lengths)`: the array of a leaf of this kind, of any shape, or null.

        Without axes, there are no lengths.
        """
        kind = leaf.dtype, len(leaf.shape), leaf.wrapper, written
        if kind not in self._functions:
            name = f"{self._w.name}.read.{len(self._functions)}"
            parameters = [Argument(PTR)] * (3 if leaf.shape else 2)
            w = self._module.function(name, parameters, PTR, linkage="internal")
            mismatch = w.new_label("mismatch")
            objects = replace(self._objects, w=w, mismatch=mismatch)
            _, value, *lengths = w.parameters
            w.ret(objects.array(leaf, value, written=written, lengths=next(iter(lengths), NULL)))
            w.begin(mismatch)
            w.ret(NULL)
            self._functions[kind] = name
        return self._functions[kind]
