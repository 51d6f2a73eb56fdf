"""The LLVM text of the native entry: the C function that Python calls, which calls the kernel.

1. Check the arguments and take their data pointers (`arguments`); on any mismatch call `fallback` instead.
2. Find or make the arrays of the results (`outputs`).
3. Take an arena, where the kernel may give up the GIL (`arenas`), and call the kernel. If a check of its own failed,
   call `explain`, which raises; if it was interrupted, an exception is set.
4. Wrap the results (`results`).

The GIL is held but for what the kernel does without it. The text goes into the module of the kernel, and says
nothing of this process but where classes have their slots.
"""

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Final

from ..emit.arena_header import INTERRUPTED
from ..emit.writer import (
    I64,
    PTR,
    Argument,
    FunctionWriter,
    LLVMType,
    ModuleWriter,
    Register,
    constant,
)
from .access import NULL, QUICKLY_COMPILED, array_data, equals, field, from_state
from .arenas import acquire_arena
from .arguments import ArgumentReader, ObjectReader
from .capi import symbols
from .outputs import ArrayFinder, OutputWriter, outputs_to_recycle
from .results import ResultWriter, pending_places
from .selftest import is_supported
from .signature import Signature
from .state import ARENA, ERROR, EXPLAIN, FALLBACK, UNEXPLAINED, State

KEPT_BYTES: Final = 64 << 20
"""How much memory an entry keeps for its results by default: twice the 32 MiB from which glibc's `malloc` maps memory
for each call, which makes outputs of 40 MB take 8.8 ms rather than 3.8."""

_MOST_IN_PLACE: Final = 8
"""With more leaves, code for one is in functions, and the entry itself is compiled without
optimising: a tenth of the time to compile, for 5 % of the time to call."""


@dataclass(frozen=True, slots=True)
class EntryText:
    """LLVM text to append to the module of the kernel, and the addresses of what it declares.

    `name` is the function whose address `bind` wants: the entry, or the kernel itself where native
    entries are not supported and the text is empty.
    """

    name: str
    text: str
    symbols: Mapping[str, int]


def entry_text(
    signature: Signature,
    kernel_name: str,
    entry_name: str,
    *,
    kept_bytes: int = KEPT_BYTES,
    native: bool | None = None,
    module: ModuleWriter | None = None,
    private_arena: int | None = None,
) -> EntryText:
    """The entry for the kernel `i64 @kernel_name(ptr inputs…, ptr outputs…, ptr arena)`.

    `private_arena` is the size of the arena in bytes, for a kernel that may give up the GIL: then calls at the same
    time have one each.
    `kept_bytes` bounds the memory for recycled results; with 0 every call makes new arrays.
    `native` is for tests; by default it is what this process supports.
    """
    if not (is_supported() if native is None else native):
        return EntryText(kernel_name, "", {})
    if not re.fullmatch(r"[\w.$-]+", entry_name, re.ASCII):
        raise ValueError(f"{entry_name!r} is not a name of LLVM")
    text = ModuleWriter() if module is None else module
    in_place = len(signature.inputs) + len(signature.outputs) <= _MOST_IN_PLACE
    w = text.function(
        entry_name,
        [Argument(type) for type in (PTR, PTR, I64, PTR)],
        PTR,
        attributes="nounwind" if in_place else QUICKLY_COMPILED,
    )
    _write_entry(text, w, signature, kernel_name, kept_bytes, private_arena, in_place=in_place)
    _write_release(text, f"{entry_name}.release")
    _write_explain(text, f"{entry_name}.explain", f"{entry_name}.release")
    return EntryText(entry_name, text.text() if module is None else "", symbols())


def _write_entry(
    module: ModuleWriter,
    w: FunctionWriter,
    signature: Signature,
    kernel: str,
    kept_bytes: int,
    private_arena: int | None,
    *,
    in_place: bool,
) -> None:
    state, mismatch, release = State.of(signature), w.new_label("mismatch"), f"{w.name}.release"
    inputs, outputs = signature.inputs, signature.outputs
    pointers = w.allocate(PTR, max(len(inputs), 1), align=8)
    pending = w.allocate(PTR, max(pending_places(signature), 1), align=8)

    objects = ObjectReader(w, state, signature, mismatch)
    ArgumentReader(module, objects, pointers, in_place=in_place).read()
    finder = ArrayFinder(module, w, state, w.name)
    kept = outputs_to_recycle(outputs, kept_bytes)
    arrays = OutputWriter(finder, outputs, kept, pending, release, in_place=in_place)
    arrays.acquire()
    read = [field(w, pointers, 8 * index) for index in range(len(inputs))]
    written = [array_data(w, field(w, pending, 8 * index)) for index in range(len(outputs))]
    call = _KernelCall(module, w, kernel, pending, len(outputs))
    call.write([*read, *written], private_arena)
    arrays.keep()
    w.ret(ResultWriter(w, state, signature, pending, release).build())

    w.begin(mismatch)
    _, arguments, count, keywords = w.parameters
    w.declare("PyObject_Vectorcall", PTR, [PTR, PTR, I64, PTR])
    passed = (from_state(w, FALLBACK), arguments, count, keywords)
    inside = ", ".join(register.typed for register in passed)
    w.ret(w.value(PTR, f"tail call ptr @PyObject_Vectorcall({inside}) cold"))


@dataclass(frozen=True, slots=True)
class _KernelCall:
    """Writes the call of the kernel; where it fails, the references to the outputs are dropped."""

    module: ModuleWriter
    w: FunctionWriter
    kernel: str
    pending: Register
    outputs: int

    def write(self, data: list[Register], private_arena: int | None) -> None:
        """With the entry's arena, or with one that this call has taken."""
        w = self.w
        arena = array_data(w, from_state(w, ARENA))
        if private_arena is None:
            code = self._call(data, arena)
            with self._failing(code):
                self._explain(code, arena)
            return
        unable = w.new_label("no_arena")
        taken = acquire_arena(self.module, w, arena, private_arena, unable)
        code = self._call(data, taken.address)
        with self._failing(code):
            with w.when(w.icmp("ne", code, constant(I64, INTERRUPTED))):
                self._explain(code, taken.address)
            taken.give_back(w)
        taken.give_back(w)
        done = w.new_label("done")
        w.branch(done)
        w.begin(unable)
        self._fail()
        w.begin(done)

    def _call(self, data: list[Register], arena: Register) -> Register:
        inside = ", ".join(register.typed for register in (*data, arena))
        return self.w.value(I64, f"call i64 @{self.kernel}({inside})")

    @contextmanager
    def _failing(self, code: Register) -> Generator[None]:
        """Emit the failure path, taken before the entry returns if the code is not 0."""
        w = self.w
        failed, done = w.new_label("failed"), w.new_label("done")
        w.branch_if(equals(w, code, 0), done, failed)
        w.begin(failed)
        yield
        self._fail()
        w.begin(done)

    def _explain(self, code: Register, arena: Register) -> None:
        self.w.call_void(
            f"{self.w.name}.explain", [self.w.parameters[0], code, arena], is_rare=True
        )

    def _fail(self) -> None:
        count = constant(I64, self.outputs)
        self.w.call_void(f"{self.w.name}.release", [self.pending, count], is_rare=True)
        self.w.ret(NULL)


def _write_release(module: ModuleWriter, name: str) -> None:
    """`void release(ptr references, i64 count)`: drop references, some of which may be null."""
    w = _cold_function(module, name, [PTR, I64])
    references, count = w.parameters
    with w.loop(constant(I64, 0), count, constant(I64, 1)) as each:
        w.call_void("Py_DecRef", [w.load(w.gep(references, PTR, each.index), PTR)])
    w.ret()


def _write_explain(module: ModuleWriter, name: str, release: str) -> None:
    """`void explain(ptr self, i64 code, ptr arena)`: have the failure of the kernel raised as an
    exception.

    The details are read here, since by the time Python code runs another thread may use the arena.
    """
    w = _cold_function(module, name, [PTR, I64, PTR])
    _, code, arena = w.parameters
    numbers = w.allocate(PTR, 3, align=8)
    words = (code, w.load(arena, I64), w.load(w.offset(arena, 8), I64))
    made = [w.call("PyLong_FromLongLong", PTR, [word]) for word in words]
    for index, number in enumerate(made):
        w.store(number, w.offset(numbers, 8 * index))
    with w.when(reduce(w.and_, [w.icmp("ne", number, NULL) for number in made])):
        count = constant(I64, len(made))
        passed = [from_state(w, EXPLAIN), numbers, count, NULL]
        answer = w.call("PyObject_Vectorcall", PTR, passed)
        with w.when(w.icmp("ne", answer, NULL)):
            w.call_void("Py_DecRef", [answer])
            message = module.data(f"{name}.message", UNEXPLAINED.encode() + b"\0", align=1)
            w.call_void("PyErr_SetString", [from_state(w, ERROR), message])
    w.call_void(release, [numbers, constant(I64, len(made))])
    w.ret()


def _cold_function(module: ModuleWriter, name: str, parameters: list[LLVMType]) -> FunctionWriter:
    return module.function(
        name, [*map(Argument, parameters)], None, linkage="internal", attributes=QUICKLY_COMPILED
    )
