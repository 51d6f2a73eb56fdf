"""The entry in Python, through ctypes, for interpreters whose object layout the native entry does not know.

The same checks, results and errors as the native entry, at some microseconds a call and with new
arrays each time, unless they are given: who else has a reference to a donated array is not known
here. The kernel is called through `PYFUNCTYPE`, which holds the GIL and raises what the kernel
leaves raised; where there is no GIL, the lock keeps the arena to one call. Kernels that give up the
GIL get a new arena for each call, and no lock.
"""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from threading import RLock
from typing import cast

import numpy as np

from ...core.lazy_dataclass import dataclass
from ...core.types import Array
from ..emit.alignment import allocate_aligned
from .layout import slot_of, type_numbers
from .signature import ArrayNode, Node, RecordNode, Signature, TupleNode
from .state import OUT, UNEXPLAINED


@dataclass(frozen=True, slots=True)
class PythonEntry:
    """A compiled program as a Python callable: `call`."""

    kernel: Callable[..., int]
    signature: Signature
    arena: int
    fallback: Callable[..., object]
    explain: Callable[[int, int, int], object]
    kept: object
    lock: AbstractContextManager[object]
    private_arena: int | None = None
    markers: Sequence[object] = ()

    def call(self, *arguments: object, **keywords: object) -> object:
        """Run the kernel, or call `fallback` where the arguments do not match the signature."""
        signature = self.signature
        expected = {OUT} if signature.given_result else set[str]()
        given = tuple(keywords.values())
        inputs = _inputs(signature, arguments) if keywords.keys() == expected else None
        outputs = _given(signature, given) if signature.given_result else _new(signature)
        if inputs is None or outputs is None or (given and _overlap(inputs, outputs)):
            return self.fallback(*arguments, **keywords)
        if signature.donated and not self._take(arguments):
            return self.fallback(*arguments, **keywords)
        pointers = [array.ctypes.data for array in (*inputs, *outputs)]
        if self.private_arena is None:
            with self.lock:
                code, details = self._run(pointers, self.arena)
        else:
            memory = allocate_aligned(self.private_arena)
            code, details = self._run(pointers, memory.ctypes.data)
        if code:
            self.explain(code, *details)
            raise SystemError(UNEXPLAINED)
        return given[0] if given else _result(signature, signature.result, iter(outputs))

    def _take(self, arguments: Sequence[object]) -> bool:
        """Empty the wrappers of donated arguments, unless one of them is an argument twice."""
        wrapped = [
            [*_wrappers(self.signature, node, value)]
            for node, value in zip(self.signature.arguments, arguments, strict=True)
        ]
        donated = {id(one) for number in self.signature.donated for one, _ in wrapped[number]}
        everywhere = [id(one) for each in wrapped for one, _ in each]
        if any(everywhere.count(one) > 1 for one in donated):
            return False
        for number, marker in zip(self.signature.donated, self.markers, strict=True):
            for one, cls in wrapped[number]:
                slot_of(cls, self.signature.array_slot).__set__(one, marker)
        return True

    def _run(self, pointers: Sequence[int], arena: int) -> tuple[int, Sequence[int]]:
        """What the kernel returns, and the details of a failure."""
        code = self.kernel(*pointers, arena)
        return code, (ctypes.c_int64 * 2).from_address(arena)[:] if code else ()


def python_entry(
    kernel_address: int,
    *,
    signature: Signature,
    arena: int,
    fallback: Callable[..., object],
    explain: Callable[[int, int, int], object],
    keep_alive: object,
    private_arena: int | None = None,
    markers: Sequence[object] = (),
) -> Callable[..., object]:
    """Make the callable; `private_arena` as for `entry_text`, `markers` as for `bind`."""
    pointers = len(signature.inputs) + len(signature.outputs) + 1
    kernel = ctypes.PYFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * pointers)(kernel_address)
    return PythonEntry(
        kernel, signature, arena, fallback, explain, keep_alive, RLock(), private_arena, markers
    ).call


def _new(signature: Signature) -> list[Array]:
    return [np.empty(leaf.shape, leaf.storage) for leaf in signature.outputs]


def _given(signature: Signature, given: tuple[object, ...]) -> list[Array] | None:
    """The arrays to write to; None if they are not as the result is."""
    try:
        found = [*_read_all(signature, (signature.result,), given)]
        _require(all(array.flags.writeable for array in found))
        wrapped = sum(1 for _ in _wrappers(signature, signature.result, given[0]))
        _require(wrapped == sum(leaf.wrapper is not None for leaf in signature.outputs))
    except _MismatchError:
        return None
    return found


def _overlap(inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
    """Whether a result has a byte in common with an argument or another result."""
    ranges = [range(a.ctypes.data, a.ctypes.data + a.nbytes) for a in (*inputs, *outputs)]
    return any(
        range(max(x.start, y.start), min(x.stop, y.stop))
        for n, x in enumerate(ranges[len(inputs) :], len(inputs))
        for y in ranges[:n]
        if x and y
    )


def _wrappers(
    signature: Signature, node: Node, value: object
) -> Iterator[tuple[object, type[object]]]:
    """The wrappers in a value that matches, with their classes."""
    match node:
        case ArrayNode(_, _, wrapper):
            if wrapper is not None and type(value) is wrapper:
                yield value, wrapper
        case TupleNode(items):
            for item, part in zip(items, cast(tuple[object, ...], value), strict=True):
                yield from _wrappers(signature, item, part)
        case RecordNode(cls, fields):
            parts = cast(tuple[object, ...], _slot(cls, signature.fields_slot, value))
            for item, part in zip(fields, parts, strict=True):
                yield from _wrappers(signature, item, part)


def _inputs(signature: Signature, arguments: tuple[object, ...]) -> list[Array] | None:
    """The arrays of the leaves; None if anything is not exactly as in the signature."""
    try:
        return [*_read_all(signature, signature.arguments, arguments)]
    except _MismatchError:
        return None


class _MismatchError(Exception):
    """An argument is not what the program was compiled for."""


def _require(condition: bool) -> None:
    if not condition:
        raise _MismatchError


def _read_all(signature: Signature, nodes: Sequence[Node], values: object) -> Iterator[Array]:
    _require(type(values) is tuple)
    items = cast(tuple[object, ...], values)
    _require(len(items) == len(nodes))
    for node, value in zip(nodes, items, strict=True):
        match node:
            case ArrayNode():
                yield _read_leaf(signature, node, value)
            case TupleNode(children):
                yield from _read_all(signature, children, value)
            case RecordNode(cls, fields):
                _require(type(value) is cls)
                yield from _read_all(signature, fields, _slot(cls, signature.fields_slot, value))


def _read_leaf(signature: Signature, leaf: ArrayNode, value: object) -> Array:
    if leaf.wrapper is not None and type(value) is leaf.wrapper:
        value = _slot(leaf.wrapper, signature.array_slot, value)
    if type(value) is not np.ndarray:
        raise _MismatchError
    array: Array = value
    _require(array.dtype.num in type_numbers(leaf.storage) and array.dtype.isnative)
    _require(array.shape == leaf.shape)
    _require(array.flags.c_contiguous and array.flags.aligned)
    return array


def _slot(cls: type[object], name: str, value: object) -> object:
    """The content of a slot, which must have been set."""
    try:
        content: object = slot_of(cls, name).__get__(value, cls)
    except AttributeError:
        raise _MismatchError from None
    return content


def _result(signature: Signature, node: Node, outputs: Iterator[Array]) -> object:
    match node:
        case ArrayNode(_, _, wrapper):
            array = next(outputs)
            return array if wrapper is None else _instance(wrapper, signature.array_slot, array)
        case TupleNode(items):
            return tuple(_result(signature, item, outputs) for item in items)
        case RecordNode(cls, fields):
            contents = tuple(_result(signature, item, outputs) for item in fields)
            return _instance(cls, signature.fields_slot, contents)


def _instance(cls: type[object], name: str, content: object) -> object:
    """An instance of a class, made without calling it, with one slot set."""
    instance: object = object.__new__(cls)
    slot_of(cls, name).__set__(instance, content)
    return instance
