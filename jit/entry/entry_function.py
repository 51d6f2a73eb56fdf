"""The LLVM text of the native entry: the C function that Python calls, which calls the kernel.

1. Check the arguments and take their data pointers (`arguments`); on any mismatch call `fallback` instead.
2. Find or make the arrays of the results (`outputs`).
3. Take an arena, where the kernel may give up the GIL (`arenas`), and call the kernel. If a check of its own failed,
   call `explain`, which raises; if it was interrupted, an exception is set.
4. Wrap the results (`results`).

The GIL is held but for what the kernel does without it. The text says nothing of this process but where classes have
their slots, and nothing of the shapes: it is the same for all programs of such arguments and results.
"""

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import reduce
from typing import Final

from ...core.lazy_dataclass import dataclass
from ..emit.arena_header import INTERRUPTED
from ..emit.stack_use import STACK_BYTES, frame_address, stack_limit
from ..emit.writer import (
    I32,
    I64,
    PTR,
    Argument,
    FunctionWriter,
    LLVMType,
    ModuleWriter,
    Register,
    constant,
)
from .access import NULL, QUICKLY_COMPILED, array_data, equals, field, from_state, lengths_name
from .arenas import acquire_arena
from .arguments import ArgumentReader, Leaves, ObjectReader, require_counts
from .capi import COMPARE, symbols
from .outputs import ArrayFinder, OutputWriter, outputs_to_recycle
from .overlaps import require_disjoint
from .references import References, hold, take
from .results import ResultWriter, pending_places
from .selftest import is_supported
from .signature import Signature
from .state import ARENA, BLOCKS, ERROR, EXPLAIN, FALLBACK, GUARD, UNEXPLAINED, State

KEPT_BYTES: Final = 64 << 20
"""How much memory an entry keeps for its results by default: twice the 32 MiB from which glibc's `malloc` maps memory
for each call, which makes outputs of 40 MB take 8.8 ms rather than 3.8."""

_MOST_IN_PLACE: Final = 8
"""With more leaves, code for one is in functions: a tenth of the time to compile, for 5 % of the time to call."""


@dataclass(frozen=True, slots=True)
class EntryText:
    """LLVM text of an entry, and the addresses of what it declares.

    `name` is the function whose address `bind` wants: the entry, or the kernel itself where native
    entries are not supported and the texts are empty.
    `functions` are the same for all kernels and shapes.  `lengths`, of the axes of all leaves, goes with the kernel.
    """

    name: str
    functions: str
    lengths: str
    declarations: str
    symbols: Mapping[str, int]

    @property
    def text(self) -> str:
        """All of it, to append to the module of the kernel."""
        return self.lengths + self.functions

    @property
    def module(self) -> str:
        """The functions as a module of their own, to link with that of the kernel and the lengths."""
        return self.declarations + self.functions


def entry_text(
    signature: Signature,
    kernel_name: str,
    entry_name: str,
    *,
    kept_bytes: int = KEPT_BYTES,
    native: bool | None = None,
    private_arena: int | None = None,
    holds_arrays: bool = False,
    stack: int = 0,
) -> EntryText:
    """The entry for the kernel `i64 @kernel_name(ptr inputs…, ptr outputs…, ptr arena)`.

    `private_arena` is the size of the arena in bytes, for a kernel that may give up the GIL: then calls at the same
    time have one each.
    `holds_arrays`: other Python code may run while the kernel does, and might donate its arguments.
    `stack` is how many bytes of the stack the kernel takes, where that is worth asking for: where less is left, the
    fallback is called.
    `kept_bytes` bounds the memory for recycled results; with 0 every call makes new arrays.
    `native` is for tests; by default it is what this process supports.
    """
    if not (is_supported() if native is None else native):
        return EntryText(kernel_name, "", "", "", {})
    if not re.fullmatch(r"[\w.$-]+", entry_name, re.ASCII):
        raise ValueError(f"{entry_name!r} is not a name of LLVM")
    text = ModuleWriter()
    in_place = len(signature.inputs) + len(signature.outputs) <= _MOST_IN_PLACE
    w = text.function(
        entry_name,
        [Argument(type) for type in (PTR, PTR, I64, PTR)],
        PTR,
        attributes=QUICKLY_COMPILED,
    )
    parts = _Entry(text, w, signature, kernel_name, private_arena, in_place, holds_arrays, stack)
    parts.write(kept_bytes)
    _write_release(text, f"{entry_name}.release")
    _write_explain(text, f"{entry_name}.explain", f"{entry_name}.release")
    leaves = (*signature.inputs, *signature.outputs)
    lengths = [f"i64 {length}" for leaf in leaves for length in leaf.shape]
    table = f"@{lengths_name(entry_name)} ="
    pointers = ", ".join(["ptr"] * (len(leaves) + 1))
    return EntryText(
        name=entry_name,
        functions=text.text(),
        lengths=f"{table} constant [{len(lengths)} x i64] [{', '.join(lengths)}], align 8\n",
        declarations=f"{table} external global i8\ndeclare i64 @{kernel_name}({pointers})\n",
        symbols=symbols(),
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    """Writes one entry."""

    module: ModuleWriter
    w: FunctionWriter
    signature: Signature
    kernel: str
    private_arena: int | None
    in_place: bool
    holds_arrays: bool
    stack: int

    def write(self, kept_bytes: int) -> None:
        """Checks, arrays, the call and its result; behind them, where arguments do not match."""
        w, signature, state = self.w, self.signature, State.of(self.signature)
        mismatch = w.new_label("mismatch")
        require_counts(w, signature, mismatch)
        self._require_guard(mismatch)
        self._require_stack(mismatch)
        found, references = self._read(state, mismatch)
        outputs = signature.outputs
        kept: OutputWriter | None = None
        if signature.given_result:
            start = len(signature.inputs)
            written = [field(w, found.pointers, 8 * (start + n)) for n in range(len(outputs))]
        else:
            finder = ArrayFinder(self.module, w, state, w.name)
            reused = {result: leaf for leaf, result in signature.reused}
            recycled = outputs_to_recycle(outputs, kept_bytes, reused)
            kept = OutputWriter(
                finder,
                signature.inputs,
                outputs,
                recycled,
                references,
                reused,
                in_place=self.in_place,
            )
            kept.acquire()
            made = (field(w, references.pending, 8 * n) for n in range(len(outputs)))
            written = [array_data(w, array) for array in made]
        read = [field(w, found.pointers, 8 * n) for n in range(len(signature.inputs))]
        pending = 0 if signature.given_result else len(outputs)
        call = _KernelCall(self.module, w, self.kernel, references, pending)
        call.write([*read, *written], self.private_arena)
        if kept is None:
            result = field(w, w.parameters[1], 8 * len(signature.arguments))
            w.call_void("Py_IncRef", [result])
        else:
            kept.keep()
            result = ResultWriter(w, state, signature, references).build()
        references.drop_held()
        w.ret(result)
        self._write_mismatch(mismatch)

    def _require_guard(self, mismatch: str) -> None:
        """Branch to the label unless each pair of the guard holds; an address is read once those before it hold."""
        w, guard = self.w, self.signature.guard
        if guard is None:
            return
        pairs = array_data(w, from_state(w, GUARD))
        count = len(guard.pairs)
        if count <= _MOST_IN_PLACE:
            for number in range(count):
                self._require_pair(w.offset(pairs, 16 * number), mismatch)
        else:
            with w.loop(constant(I64, 0), constant(I64, 2 * count), constant(I64, 2)) as each:
                self._require_pair(w.gep(pairs, I64, each.index), mismatch)
        if len(guard.blocks):
            self._require_blocks(len(guard.blocks), mismatch)

    def _require_blocks(self, count: int, mismatch: str) -> None:
        """Branch to the label unless each block of the guard is what it was."""
        w = self.w
        w.declare(COMPARE, I32, [PTR, PTR, I64])
        blocks = array_data(w, from_state(w, BLOCKS))
        with w.loop(constant(I64, 0), constant(I64, 3 * count), constant(I64, 3)) as each:
            block = w.gep(blocks, I64, each.index)
            passed = [w.load(block, PTR), field(w, block, 8), field(w, block, 16, I64)]
            inside = ", ".join(register.typed for register in passed)
            differs = w.value(I32, f"call i32 @{COMPARE}({inside})")
            proceed = w.new_label("same")
            w.branch_if(w.icmp("eq", differs, constant(I32, 0)), proceed, mismatch)
            w.begin(proceed)

    def _require_pair(self, pair: Register, mismatch: str) -> None:
        w = self.w
        proceed = w.new_label("same")
        held = w.load(w.load(pair, PTR), I64)
        expected = field(w, pair, 8, I64)
        w.branch_if(w.icmp("eq", held, expected), proceed, mismatch)
        w.begin(proceed)

    def _require_stack(self, mismatch: str) -> None:
        """Branch to the label unless what the kernel takes of the stack is left."""
        w = self.w
        if not self.stack:
            return
        limit = stack_limit(self.module, w, STACK_BYTES)
        enough = w.new_label("enough")
        w.branch_if(
            w.icmp("ult", frame_address(w, self.stack), limit), mismatch, enough, rarely=True
        )
        w.begin(enough)

    def _read(self, state: State, mismatch: str) -> tuple[Leaves, References]:
        """Check the arguments, and own what the call needs to."""
        w, signature = self.w, self.signature
        given = len(signature.outputs) if signature.given_result else 0
        count = len(signature.inputs) + given
        donates = bool(signature.donated)
        held = count if donates or self.holds_arrays else 0
        pending = 0 if signature.given_result else pending_places(signature)
        references = References.allocate(w, held, pending, f"{w.name}.release")
        found = Leaves(
            w.allocate(PTR, max(count, 1), align=8),
            references.base if held else None,
            w.allocate(PTR, max(count, 1), align=8) if donates else None,
        )
        objects = ObjectReader(w, state, signature, mismatch)
        ArgumentReader(self.module, objects, found, in_place=self.in_place).read()
        if signature.given_result:
            require_disjoint(self.module, w, signature, found.pointers, mismatch)
        if donates:
            take(self.module, w, state, signature, found, mismatch)
        elif held:
            hold(w, references.base, held)
        return found, references

    def _write_mismatch(self, label: str) -> None:
        """Have the fallback called."""
        w = self.w
        w.begin(label)
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
    references: References
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
        self.references.fail(self.outputs)


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
