"""Emits the construction of the Python result: wrappers, records and tuples around the output arrays.

Every reference that is owned but not yet inside something else has a place in `pending`, so that
one call frees all of it when a C function fails: first the arrays, one for each leaf, then the
containers.
"""

from ...core.lazy_dataclass import dataclass
from ..emit.writer import I64, PTR, FunctionWriter, Register, constant
from . import layout
from .access import NULL, from_state
from .references import References
from .signature import ArrayNode, Node, RecordNode, Signature, children, walk
from .state import State


def pending_places(signature: Signature) -> int:
    """How many references can be pending: one for each node of the result."""
    return sum(1 for _ in walk(signature.result))


@dataclass(eq=False)
class ResultWriter:
    """Writes the code for one entry that builds its result."""

    w: FunctionWriter
    state: State
    signature: Signature
    references: References

    def __post_init__(self) -> None:
        self._places = pending_places(self.signature)
        self._leaves = 0
        self._containers = len(self.signature.outputs)

    def build(self) -> Register:
        """The result, from the arrays in `pending`."""
        for place in range(self._containers, self._places):
            self._put(NULL, place)
        return self.w.load(self._address(self._build(self.signature.result)), PTR)

    def _build(self, node: Node) -> int:
        """Build a node; the place where it is pending."""
        if isinstance(node, ArrayNode):
            place = self._leaves
            self._leaves += 1
            if node.wrapper is not None:
                array = self.w.load(self._address(place), PTR)
                self._put_instance(node.wrapper, self.signature.array_slot, array, place)
            return place
        items = [self._build(child) for child in children(node)]
        place = self._containers
        self._containers += 1
        contents = self._put_tuple(items, place)
        if isinstance(node, RecordNode):
            self._put_instance(node.cls, self.signature.fields_slot, contents, place)
        return place

    def _put_instance(self, cls: type[object], slot: str, content: Register, place: int) -> None:
        """Make an instance of a class, without calling it, and move the content into its slot."""
        w = self.w
        zero = constant(I64, 0)
        instance = w.call("PyType_GenericAlloc", PTR, [from_state(w, self.state.cls(cls)), zero])
        self.references.fail_if_null(instance, self._places)
        w.store(content, w.offset(instance, layout.slot_offset(cls, slot)))
        self._put(instance, place)

    def _put_tuple(self, items: list[int], place: int) -> Register:
        """Make a tuple and move the pending items into it."""
        w = self.w
        made = w.call("PyTuple_New", PTR, [constant(I64, len(items))])
        self.references.fail_if_null(made, self._places)
        for index, item in enumerate(items):
            content = w.load(self._address(item), PTR)
            w.store(content, w.offset(made, layout.TUPLE_ITEMS + 8 * index))
            self._put(NULL, item)
        self._put(made, place)
        return made

    def _put(self, value: Register, place: int) -> None:
        self.w.store(value, self._address(place))

    def _address(self, place: int) -> Register:
        return self.w.offset(self.references.pending, 8 * place)
