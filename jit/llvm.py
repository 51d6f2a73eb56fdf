"""Compile LLVM IR text to native code of this machine, in this process.

1. `parse_assembly` and `verify` turn the text into a module, in an LLVM context of its own.
2. It brings the conversions of f16 along that the machine has no instructions for (`half`).
   In functions with the attribute `"nnkit-registers"`, those with control flow, SROA turns variables into
   registers. No other IR passes run: the text is finished SSA with explicit vectors, and passes were measured to
   cost more than they give.
   A `TargetMachine` for the host emits an object file.
3. LLJIT links the object against the given addresses and the symbols of the process (libm), and
   keeps it loaded until the `CompiledModule` is dropped.

An LLJIT keeps 9 KiB of each module that was loaded into it, dropped or not, and takes 120 KiB for itself.  So
one serves for a few modules, and is dropped after the last of them.

The object file is bytes, so that it can be stored and loaded again without steps 1 and 2.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cache, lru_cache
from itertools import count
from threading import Lock
from types import MappingProxyType
from typing import Final, TypeVar

from llvmlite import binding

from ..core.errors import UnsupportedError
from ..core.lazy_dataclass import dataclass
from .emit.values import XMM_BYTES, YMM_BYTES, ZMM_BYTES
from .half import conversions_for

REGISTERS: Final = "nnkit-registers"
"""The attribute of functions whose variables become registers."""

MODULES_PER_LLJIT: Final = 16
"""Modules that an LLJIT serves before the next one is made. With 16, a module takes 8 KiB of the LLJIT's own memory,
and 0.1 ms of the time to make one; a module that stays while the others go keeps 135 KiB of theirs."""

OBJECTS_KEPT: Final = 128
"""Objects of shared modules that are kept: some 20 KB each, with the text."""

CPU_VARIABLE: Final = "NNKIT_CPU"

X86_LEVELS: Final[Mapping[str, tuple[int, str]]] = MappingProxyType(
    {
        "x86-64": (XMM_BYTES, ""),
        "x86-64-v2": (XMM_BYTES, "popcnt sse4.2"),
        "x86-64-v3": (YMM_BYTES, "avx2 bmi2 f16c fma movbe"),
        "x86-64-v4": (ZMM_BYTES, "avx2 bmi2 f16c fma movbe avx512bw avx512cd avx512dq avx512vl"),
    }
)
"""The levels of the psABI of x86-64: the width of vectors, and LLVM's names of the features that tell them apart."""

DEEP_LOOPS: Final = "nnkit-deep-loops"
"""The attribute of functions whose loops are nested too deeply for LLVM to optimize their module: of 2,000 loops
inside each other it was measured to take 60 s, growing with the cube of their number, and 0.1 s without."""

UNOPTIMIZED: Final = "nnkit-unoptimized"
"""The attribute of functions whose module LLVM need not optimize: where compiling it takes longer than running it."""

T = TypeVar("T")

_NO_SYMBOLS: Final[Mapping[str, int]] = MappingProxyType({})


class LLVMError(Exception):
    """LLVM rejected our code, or a symbol is missing: a bug of this compiler, never of the user.

    `text` is the LLVM IR, empty if the error came from loading an object.
    """

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.message = message
        self.text = text


@dataclass(frozen=True, slots=True)
class TargetMachine:
    """The machine that code is emitted for."""

    triple: str
    cpu: str
    features: str
    vector_bytes: int
    """The widest vectors that the instructions work on."""
    vector_registers: int
    scalef: bool
    """Whether multiplying by a power of two is one instruction, for `ModuleWriter`."""
    fma: bool
    """Whether multiplying and adding with one rounding is; where it is not, LLVM calls `fma` of the C
    library for each lane."""

    @property
    def identity(self) -> str:
        """What compiled objects depend on besides their text, LLVM's version included; for cache keys."""
        version = ".".join(map(str, binding.llvm_version_info))
        return f"llvm {version} {self.triple} {self.cpu} {self.features}"


@dataclass(eq=False, slots=True)
class CompiledModule:
    """Loaded code. Addresses are good as long as this is referenced."""

    object_bytes: int
    _jit: binding.LLJIT
    _library: str
    _keep: binding.ResourceTracker
    _lock: Lock
    """The engine's: LLVM runs in one thread at a time, and who drops one of two answers unloads the code."""
    _found: dict[str, binding.ResourceTracker] = field(
        default_factory=dict[str, binding.ResourceTracker]
    )

    def address(self, name: str) -> int:
        """Where the function or variable `name` of the module is. Raises LLVMError if there is none."""
        with self._lock:
            if name not in self._found:
                try:
                    self._found[name] = self._jit.lookup(self._library, name)
                except RuntimeError as error:
                    message = f"cannot find {name!r} in the compiled module: {error}"
                    raise LLVMError(message, "") from None
            return self._found[name][name]


class Engine:
    """Compiles for one target. Safe to use from several threads; LLVM runs in one at a time."""

    def __init__(self, target: TargetMachine) -> None:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        self.target = target
        self._machine = self._machine_at(optimization_level(""))
        self._quick: binding.TargetMachine | None = None
        self._jit: binding.LLJIT | None = None
        self._numbers = count()
        self._lock = Lock()
        self._kept = lru_cache(OBJECTS_KEPT)(self.object_code)

    def _machine_at(self, level: int) -> binding.TargetMachine:
        # Small position independent code reaches constants relative to the instruction; the large
        # model, the default for JITs, would load the address of each constant first.
        return binding.Target.from_triple(self.target.triple).create_target_machine(
            cpu=self.target.cpu,
            features=self.target.features,
            opt=level,
            reloc="pic",
            codemodel="small",
        )

    def _machine_for(self, text: str) -> binding.TargetMachine:
        """The llvmlite target machine for a module: the usual one, or one that does not optimize."""
        level = optimization_level(text)
        if level == optimization_level(""):
            return self._machine
        if self._quick is None:
            self._quick = self._machine_at(level)
        return self._quick

    def compile_module(
        self, text: str, symbols: Mapping[str, int] = _NO_SYMBOLS, *, shared: str = ""
    ) -> CompiledModule:
        """Compile and load; `symbols` are addresses of what the process does not export.

        `shared` is the text of another module to link with it, which others have as well: its object code is kept.
        Raises: LLVMError when LLVM rejects the text.
        """
        made = self.object_code(text)
        if not shared:
            return self.load_object(made, symbols)
        return self.load_object(made, symbols, self.kept_object(shared))

    def object_code(self, text: str) -> bytes:
        """Compile without loading: the object file."""
        with self._lock:
            return self._emit(text, binding.TargetMachine.emit_object)

    def kept_object(self, text: str) -> bytes:
        """The same for a text that comes again."""
        return self._kept(text)

    def load_object(
        self,
        object_code: bytes,
        symbols: Mapping[str, int] = _NO_SYMBOLS,
        shared: bytes = b"",
    ) -> CompiledModule:
        """Load an object file made by `object_code` for the same target, linked with another one if there is one."""
        library = binding.JITLibraryBuilder().add_object_img(object_code).add_current_process()
        if shared:
            library.add_object_img(shared)
        for name, address in symbols.items():
            library.import_symbol(name, address)
        with self._lock:
            number = next(self._numbers)
            if self._jit is None or number % MODULES_PER_LLJIT == 0:
                self._jit = binding.create_lljit_compiler(
                    self._machine, use_jit_link=True, suppress_errors=True
                )
            name = f"nnkit.{number}"
            try:
                tracker = library.link(self._jit, name)
            except RuntimeError as error:
                raise LLVMError(f"cannot load the object code: {error}", "") from None
            return CompiledModule(
                len(object_code) + len(shared), self._jit, name, tracker, self._lock
            )

    def assembly(self, text: str) -> str:
        """The assembly that LLVM makes of the text, for people to read."""
        with self._lock:
            return self._emit(text, binding.TargetMachine.emit_assembly)

    def _emit(self, text: str, emit: Callable[[binding.TargetMachine, binding.ModuleRef], T]) -> T:
        module = _parse(text + conversions_for(text, self._machine))
        try:
            machine = self._machine_for(text)
            use_registers(module, machine, text)
            return emit(machine, module)
        except RuntimeError as error:
            raise LLVMError(str(error), text) from None
        finally:
            module.close()


@cache
def host_machine() -> TargetMachine:
    """The machine that this process runs on, or what `NNKIT_CPU` says to be compiled for on it.

    Raises: UnsupportedError when that is no such level, or one whose instructions this machine has not.
    """
    level = os.environ.get(CPU_VARIABLE, "")
    return _host() if level in ("", "native") else _of_level(level, _host())


def _of_level(name: str, host: TargetMachine) -> TargetMachine:
    """A level of instructions that the host has, too."""
    levels = X86_LEVELS if host.triple.startswith("x86_64") else {"generic": (XMM_BYTES, "")}
    if name not in levels:
        known = ", ".join(("native", *levels))
        raise UnsupportedError(f"{CPU_VARIABLE} is {name!r}; what it knows is {known}")
    width, needed = levels[name]
    missing = [each for each in needed.split() if f"+{each}" not in host.features.split(",")]
    if missing:
        lacks = ", ".join(missing)
        raise UnsupportedError(f"{CPU_VARIABLE} is {name!r}, and this machine has no {lacks}")
    is_arm = not host.triple.startswith("x86_64")
    return TargetMachine(
        triple=host.triple,
        cpu=name,
        features="",
        vector_bytes=width,
        vector_registers=32 if is_arm or width == ZMM_BYTES else 16,
        scalef=width == ZMM_BYTES,
        fma=is_arm or "fma" in needed,
    )


def _host() -> TargetMachine:
    features = binding.get_host_cpu_features()
    triple = binding.get_process_triple()
    x86_512 = features.get("avx512f", False)
    flat = features.flatten()
    if x86_512:
        # Many Intel CPUs are tuned for half vectors; our kernels choose their width themselves.
        flat += ",-prefer-256-bit"
    return TargetMachine(
        triple=triple,
        cpu=binding.get_host_cpu_name(),
        features=flat,
        vector_bytes=ZMM_BYTES
        if x86_512
        else YMM_BYTES
        if features.get("avx2", False)
        else XMM_BYTES,
        # AVX-512 and NEON have 32, AVX2 and SSE2 16
        vector_registers=32 if x86_512 or features.get("neon", False) else 16,
        scalef=x86_512,
        fma=features.get("fma", not triple.startswith("x86_64")),  # elsewhere every CPU has it
    )


@cache
def host_engine() -> Engine:
    """The engine for this machine, made on first use."""
    return Engine(host_machine())


def compile_module(
    text: str, symbols: Mapping[str, int] = _NO_SYMBOLS, *, shared: str = ""
) -> CompiledModule:
    """Compile LLVM IR for this machine and load it: `Engine.compile_module` of the host's engine."""
    return host_engine().compile_module(text, symbols, shared=shared)


def optimization_level(text: str, level: int = 2) -> int:
    """LLVM's optimization level for a module: `level`, and 0 where the text wants none, or its loops are too deep."""
    return 0 if DEEP_LOOPS in text or UNOPTIMIZED in text else level


def use_registers(module: binding.ModuleRef, machine: binding.TargetMachine, text: str) -> None:
    """Run mem2reg (SROA) on the functions of `module`, parsed from `text`, that have the attribute for it."""
    if REGISTERS not in text:
        return
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options())
    passes = binding.create_new_function_pass_manager()
    passes.add_sroa_pass()
    wanted = REGISTERS.encode()
    for function in module.functions:
        if not function.is_declaration and any(wanted in a for a in function.attributes):
            passes.run(function, builder)


def _parse(text: str) -> binding.ModuleRef:
    try:
        module = binding.parse_assembly(text, binding.create_context())
        module.verify()
    except RuntimeError as error:
        raise LLVMError(str(error), text) from None
    return module
