"""Ahead-of-time compilation: scheduled functions as object code with a C interface, for this machine or another.

1. Every exported function gets its kernel (`emit.program`) and a wrapper with C's types, which finds memory for the
   kernel's arena: on the stack when it is small, else from `malloc`.  So calls share nothing, and may run at once.
2. Constants are data of the module; what a check's number means is a table of strings.
3. All but the exported functions is internal.
4. LLVM makes bitcode, assembly or an object of it, for any of its targets.

Nothing refers to Python, NumPy or a LAPACK (`Target.has_lapack=False`). f16 brings its conversions along, where the
machine has none (`half`).
What remains is the C library, as `malloc`, `memset` and functions of `libm`, and what the module declares as extern.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from llvmlite import binding

from ..core.errors import InternalError, UnsupportedError
from ..core.ir import Module
from ..core.lazy_dataclass import dataclass
from ..core.schedule.target import Target as ScheduleTarget
from ..core.types import written
from .cpus import CPUFeatures, find_cpu_features
from .emit.alignment import emit_aligned, emit_malloc
from .emit.extern import PREFIX
from .emit.program import EmittedProgram, emit_program
from .emit.sites import CheckSite, Problem
from .emit.values import XMM_BYTES, ZMM_BYTES
from .emit.writer import I8, I32, I64, PTR, Argument, ModuleWriter, constant
from .half import conversions_for
from .header import OUT_OF_MEMORY, Export, Interface
from .llvm import TargetMachine, host_machine, optimization_level, use_registers
from .triples import ARCHITECTURES, SUPPORTED, is_like, normalized

STACK_BYTES: Final = 16 * 1024
"""Arenas up to this size lie on the stack: an eighth of the smallest that systems give, musl's 128 KiB. Any from 1 KiB
on saves the 16 ns of `malloc` and `free` where they would count."""

NATIVE: Final = "native"
GENERIC: Final = "generic"


@dataclass(frozen=True)
class Library:
    """LLVM text of a module's exported functions; `messages` are what the codes 1, 2, … mean."""

    text: str
    interface: Interface
    messages: tuple[str, ...]


def find_target(triple: str | None = None, cpu: str | None = None) -> TargetMachine:
    """The machine that options name: by default any of this machine's architecture; `native` is this very one.

    Raises: UnsupportedError when LLVM does not know it, or our code does not fit it.
    """
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    wanted = normalized(triple) if triple else host_triple()
    if cpu == NATIVE and is_like(wanted, host_triple()):
        return replace(host_machine(), triple=wanted)
    if cpu == NATIVE:
        raise UnsupportedError(
            f"native is the CPU of this machine, which is no {triple}: name a CPU"
        )
    try:
        found = binding.Target.from_triple(wanted)
    except (RuntimeError, UnicodeError):
        raise UnsupportedError(
            f"LLVM has no target {(triple or wanted)!r}; a triple is like aarch64-linux-gnu"
        ) from None
    if (
        found.name not in ARCHITECTURES
        or "p:32" in str(found.create_target_machine().target_data)  # as x32
    ):
        raise UnsupportedError(
            f"there is no code for {triple or wanted}: the architectures are {SUPPORTED}, with addresses of 64 bits"
        )
    named = "" if cpu in (None, GENERIC) else str(cpu)
    is_arm = wanted.startswith(("aarch64", "arm64"))
    baseline = ARCHITECTURES[found.name]
    known = (
        find_cpu_features(wanted, named, baseline.features)
        if named
        else CPUFeatures(XMM_BYTES, baseline.fma)
    )
    return TargetMachine(
        triple=wanted,
        cpu=named,
        # of CPUs that are tuned for half vectors: our kernels choose their width themselves
        features="-prefer-256-bit" if known.vector_bytes == ZMM_BYTES else baseline.features,
        vector_bytes=known.vector_bytes,
        vector_registers=32 if is_arm or known.vector_bytes == ZMM_BYTES else 16,
        scalef=known.vector_bytes == ZMM_BYTES,
        fma=known.fma,
    )


def host_triple() -> str:
    """The triple of this machine."""
    triple: str = binding.get_process_triple()
    return triple


def schedule_target(target: TargetMachine) -> ScheduleTarget:
    """The scheduling target for a target machine; it has no LAPACK."""
    return ScheduleTarget(
        vector_bytes=target.vector_bytes,
        registers=target.vector_registers,
        fma=target.fma,
        has_lapack=False,
    )


def write_library(module: Module, interface: Interface, target: TargetMachine) -> Library:
    """The text of the exported functions of a module in stage schedule."""
    writer = ModuleWriter(scalef=target.scalef, fma=target.fma)
    sites: list[CheckSite] = []  # of all, as functions that are values may be called from anywhere
    for number, export in enumerate(interface.exports):
        function = module.functions[export.name]
        program = emit_program(
            writer, function, f"kernel.{number}", functions=module.functions, sites=sites
        )
        _embed(writer, program)
        _write_wrapper(writer, export, program, _temporary(number))
    messages = list(map(_meaning, sites))
    text = "\n".join([writer.text(), _messages_text(messages)])
    return Library(text, interface, tuple(messages))


class LibraryCompiler:
    """Compiles the LLVM module of a library to text, bitcode, assembly or an object file.  Use as a context manager."""

    def __init__(self, library: Library, target: TargetMachine, *, level: int = 2) -> None:
        self.machine = binding.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu,
            features=target.features,
            opt=optimization_level(library.text, level),
            reloc="pic",
            codemodel="default"
            if target.triple.startswith(("arm64-apple", "aarch64-apple"))
            else "small",
        )
        try:
            text = library.text + conversions_for(library.text, self.machine)
            self.module = binding.parse_assembly(text, binding.create_context())
            self.module.triple = target.triple
            self.module.data_layout = str(self.machine.target_data)
            self.module.name = library.interface.module
            self.module.verify()
            use_registers(self.module, self.machine, library.text)
        except RuntimeError as error:
            raise InternalError(
                f"LLVM refused the code of {library.interface.module}: {error}"
            ) from None
        _publish(self.module, library.interface)

    def __enter__(self) -> LibraryCompiler:
        return self

    def __exit__(self, *_: object) -> None:
        self.module.close()

    def llvm(self) -> str:
        """LLVM IR as text."""
        return str(self.module)

    def bitcode(self) -> bytes:
        """LLVM IR as bitcode."""
        code: bytes = self.module.as_bitcode()
        return code

    def assembly(self) -> str:
        """Assembly of the target."""
        text: str = self.machine.emit_assembly(self.module)
        return text

    def object_code(self) -> bytes:
        """An object file of the target."""
        code: bytes = self.machine.emit_object(self.module)
        return code


def _temporary(number: int) -> str:
    """The temporary symbol of an exported function, distinct from our own and libm's."""
    return f"export.{number}"


_MESSAGE: Final = "export.message"


def _publish(module: binding.ModuleRef, interface: Interface) -> None:
    """Give the exported functions their names, and make all others internal."""
    names = {_temporary(n): export.symbol for n, export in enumerate(interface.exports)}
    outside = [f.name for f in module.functions if f.name.startswith(PREFIX)]
    names |= {name: name.removeprefix(PREFIX) for name in outside}
    names[_MESSAGE] = interface.message
    for function in list(module.functions):
        if function.name in names:
            wanted = names[function.name]
            is_outside = function.name in outside
            function.name = wanted
            if function.name != wanted and is_outside:
                raise UnsupportedError(
                    f"{written('@', wanted)} is extern, and a function that compiled code calls itself: "
                    "choose another name"
                )
            if function.name != wanted:
                raise InternalError(f"the name {wanted} is taken by the compiler itself")
        elif not function.is_declaration:
            function.linkage = "internal"


def _embed(writer: ModuleWriter, program: EmittedProgram) -> None:
    """Make data of the constants that a program keeps outside of its text."""
    kept = {memory.ctypes.data: memory for memory in program.data}
    for name, address in program.symbols.items():
        if address not in kept:
            raise InternalError(f"compiled ahead of time, a program must not need {name}")
        writer.data(name, kept[address].tobytes())


def _write_wrapper(
    writer: ModuleWriter, export: Export, program: EmittedProgram, name: str
) -> None:
    """Write the function that C calls: its own arena, and the kernel's code, which no other one returns."""
    count = len(export.inputs) + len(export.outputs)
    w = writer.function(name, [Argument(PTR)] * count, I32)
    if program.arena_bytes <= STACK_BYTES:
        arena = w.allocate(I8, program.arena_bytes)
        found = w.call(program.name, I64, [*w.parameters, arena])
    else:
        memory = emit_malloc(w, program.arena_bytes)
        failed, done = w.new_label("failed"), w.new_label("done")
        w.branch_if(w.icmp("eq", memory, constant(PTR, 0)), failed, done, rarely=True)
        w.begin(failed)
        w.ret(constant(I32, OUT_OF_MEMORY))
        w.begin(done)
        found = w.call(program.name, I64, [*w.parameters, emit_aligned(w, memory)])
        w.call_void("free", [memory])
    w.ret(w.trunc(found, "i32"))


def _messages_text(messages: Sequence[str]) -> str:
    """The function that says what a code means, and its table: code -1 first, then 0, 1, …"""
    texts = ["out of memory", "", *messages]
    lines: list[str] = []
    for number, message in enumerate(texts):
        data = message.encode() + b"\0"
        escaped = "".join(f"\\{byte:02X}" for byte in data)
        lines.append(
            f'@message.{number} = private unnamed_addr constant [{len(data)} x i8] c"{escaped}"'
        )
    count = len(texts)
    pointers = ", ".join(f"ptr @message.{number}" for number in range(count))
    lines.append(f"@messages = private unnamed_addr constant [{count} x ptr] [{pointers}]")
    return "\n".join([*lines, _MESSAGE_FUNCTION % count])


_MESSAGE_FUNCTION: Final = """\
define ptr @export.message(i32 %%code) nounwind {
entry:
  %%moved = add i32 %%code, 1
  %%known = icmp ult i32 %%moved, %d
  %%number = select i1 %%known, i32 %%moved, i32 1
  %%index = zext i32 %%number to i64
  %%place = getelementptr ptr, ptr @messages, i64 %%index
  %%message = load ptr, ptr %%place
  ret ptr %%message
}
"""


_MEANINGS: Final[Mapping[Problem, str]] = MappingProxyType(
    {
        Problem.INDEX: "an index is out of range",
        Problem.TRIPS: "a loop does not run once per element of what it stacks",
        Problem.DEPTH: "is called too deeply for the stack",
        Problem.MEMORY: "is called too deeply for the memory there is",
        Problem.KEPT: "out of memory",
        Problem.EXTERN: "has failed",
    }
)


def _meaning(site: CheckSite) -> str:
    """What a failed check means, with its place in the program."""
    place = site.location.resolve() if site.location is not None else None
    where = f"{place.file}, line {place.line}: " if place is not None else ""
    callee = f"{written('@', site.callee)} " if site.callee else ""
    if site.problem in (Problem.STOP, Problem.CHECK):
        return f"{where}{site.text}"
    if site.problem is Problem.ADDRESS:
        return f"{where}{site.text} null, or memory out of bounds"
    return f"{where}{callee}{_MEANINGS.get(site.problem, site.problem.value)}"
