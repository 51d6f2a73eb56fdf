"""Runs kernels on memory with an inaccessible page right before and right behind each tensor.

Every argument and result, and the arena, lies twice: once its last byte touches the page behind, once its first byte
the page before.  So an access outside ends the process; it is a process of its own (`survey`), and the test names the
case that ended it.  What is written between a tensor and the page that it does not touch is found as well, as are
writes to arguments, whose pages are read-only.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from llvmlite import binding

from nnkit.core.ir.module import Function
from nnkit.core.types import Array, TensorType
from nnkit.jit.ahead_of_time import find_target
from nnkit.jit.cpus import find_cpu_features
from nnkit.jit.emit.program import EmittedProgram
from nnkit.jit.llvm import Engine, TargetMachine, host_machine

Side: TypeAlias = Literal["start", "end"]

PAGE = mmap.PAGESIZE
CANARY = 0xFE
"""All of memory before a kernel writes it: as floats huge or NaN, so that what is read of it shows in results."""
ALIGNMENT = 64
"""Of the arena; all else is aligned to its elements alone."""
_READ, _WRITE = 1, 2
_LIBC = ctypes.CDLL(None, use_errno=True)

HOST = "host"
CPUS = ("x86-64", "x86-64-v2", "haswell", "skylake-avx512", "znver4", HOST)
"""The machines to compile for, from vectors of 16 bytes without masks to all that this one has."""


class Stray(Exception):
    """A byte was written that belongs to nobody."""


class Region:
    """Pages between two that nobody may touch."""

    def __init__(self, size: int) -> None:
        self.size = -(-max(size, 1) // PAGE) * PAGE
        self._map = mmap.mmap(-1, self.size + 2 * PAGE)
        self.first = ctypes.addressof(ctypes.c_char.from_buffer(self._map)) + PAGE
        self.bytes: Array = np.frombuffer(self._map, np.uint8)[PAGE:-PAGE]
        _protect(self.first - PAGE, PAGE, 0)
        _protect(self.first + self.size, PAGE, 0)

    def protect(self, *, writable: bool) -> None:
        _protect(self.first, self.size, _READ | (_WRITE if writable else 0))

    def slot(self, size: int, side: Side, alignment: int = 1) -> slice:
        """Where `size` bytes lie that touch a guard, the one behind as nearly as they may."""
        if side == "start":
            return slice(0, size)
        first = (self.size - size) // alignment * alignment
        return slice(first, first + size)

    def check(self, slot: slice, what: str) -> None:
        """Raises: Stray when a byte outside of the slot is not what it was."""
        for part, where in (
            (self.bytes[: slot.start], "before"),
            (self.bytes[slot.stop :], "behind"),
        ):
            changed = np.flatnonzero(part != CANARY)
            if changed.size:
                raise Stray(f"{changed.size} bytes {where} {what} have been written")


def _protect(address: int, size: int, rights: int) -> None:
    if _LIBC.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), rights):
        raise OSError(ctypes.get_errno(), "mprotect")


class Guarded:
    """Regions for the tensors of one call after the other."""

    def __init__(self) -> None:
        self._regions: list[Region] = []

    def _region(self, number: int, size: int) -> Region:
        while len(self._regions) <= number:
            self._regions.append(Region(16 * PAGE))
        if self._regions[number].size < size:
            self._regions[number] = Region(size)
        return self._regions[number]

    def call(
        self,
        address: int,
        inputs: Sequence[Array],
        output_bytes: Sequence[int],
        arena_bytes: int | None,
        side: Side,
    ) -> tuple[int, list[Array]]:
        """What a kernel at `address` returns, and the bytes of its results.

        `arena_bytes` is for kernels, which get an arena and return an `i64`; functions of `dlc` return an `i32`.
        Raises: Stray when it wrote where nothing of it lies.
        """
        sizes = [array.nbytes for array in inputs] + list(output_bytes)
        sizes += [] if arena_bytes is None else [-(-arena_bytes // ALIGNMENT) * ALIGNMENT]
        regions = [self._region(number, size) for number, size in enumerate(sizes)]
        alignments = (
            [1] * len(sizes) if arena_bytes is None else [1] * (len(sizes) - 1) + [ALIGNMENT]
        )
        slots = [
            region.slot(size, side, alignment)
            for region, size, alignment in zip(regions, sizes, alignments, strict=True)
        ]
        for region in regions:
            region.bytes[:] = CANARY
        for region, slot, array in zip(regions, slots, inputs, strict=False):
            region.bytes[slot] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            region.protect(writable=False)
        pointers = [region.first + slot.start for region, slot in zip(regions, slots, strict=True)]
        result = ctypes.c_int32 if arena_bytes is None else ctypes.c_int64
        kernel = ctypes.CFUNCTYPE(result, *[ctypes.c_void_p] * len(pointers))(address)
        code = int(kernel(*pointers))
        for region in regions[: len(inputs)]:
            region.protect(writable=True)
        written = list(zip(regions, slots, strict=True))[len(inputs) :]
        for number, (region, slot) in enumerate(written):
            is_arena = arena_bytes is not None and number == len(written) - 1
            region.check(slot, "the arena" if is_arena else f"result {number}")
        return code, [region.bytes[slot].copy() for region, slot in written[: len(output_bytes)]]


def run_kernel(
    guarded: Guarded,
    address: int,
    program: EmittedProgram,
    function: Function,
    arrays: Sequence[Array],
    side: Side,
) -> list[Array]:
    """The results of a kernel of a scheduled function."""
    inputs = [
        parameter.tensor.dtype.store(np.asarray(array)).astype(parameter.tensor.dtype.storage)
        for parameter, array in zip(function.parameters, arrays, strict=True)
    ]
    results = [value.tensor for value in function.entry.terminator.operands]
    return run_stored(guarded, address, inputs, results, program.arena_bytes, side)


def run_stored(
    guarded: Guarded,
    address: int,
    inputs: Sequence[Array],
    results: Sequence[TensorType],
    arena_bytes: int | None,
    side: Side,
) -> list[Array]:
    """The same with arguments as they are stored.  Raises: Stray also when the code is not 0."""
    code, found = guarded.call(address, inputs, [type.bytes for type in results], arena_bytes, side)
    if code:
        raise Stray(f"the code is {code}")
    return [
        type.dtype.load(stored.view(type.dtype.storage).reshape(type.shape))
        for type, stored in zip(results, found, strict=True)
    ]


# Machines.


@cache
def engine_for(cpu: str) -> Engine:
    """Compiles for another CPU, as far as this machine can run it: what it lacks is left out."""
    return Engine(target_for(cpu))


@cache
def target_for(cpu: str) -> TargetMachine:
    if cpu == HOST:
        return host_machine()
    target = find_target(cpu=cpu)
    has = binding.get_host_cpu_features()
    lacking = ",".join(f"-{name}" for name, there in has.items() if not there)
    features = ",".join(filter(None, (target.features, lacking)))
    facts = find_cpu_features(target.triple, target.cpu, features)
    return replace(
        target,
        features=features,
        vector_bytes=facts.vector_bytes,
        vector_registers=32 if facts.vector_bytes == 64 else target.vector_registers,
        scalef=facts.vector_bytes == 64,
        fma=facts.fma,
    )


# Cases in a process of their own.


@dataclass(frozen=True)
class Failure:
    """A case, and what became of it."""

    case: str
    why: str

    def __str__(self) -> str:
        return f"{self.case}: {self.why}"


@dataclass(frozen=True)
class Survey:
    """How many cases ran, and which failed."""

    cases: int
    failures: tuple[Failure, ...]


def survey(
    module: str, *arguments: str, most: int = 20, environment: Mapping[str, str] | None = None
) -> Survey:
    """Run `python -m module arguments first`, which calls `report_cases`, again behind each case that ends it."""
    ran, failures, first = 0, list[Failure](), 0
    while len(failures) < most:
        process = subprocess.run(
            [sys.executable, "-m", module, *arguments, str(first)],
            capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
        current, ended = "", False
        for line in process.stdout.splitlines():
            if not line.startswith("{"):  # a library complains, of its arguments perhaps
                failures.append(Failure(current, f"printed {line}"))
                continue
            event = json.loads(line)
            if event["event"] == "case":
                ran, current, first = ran + 1, event["name"], event["number"] + 1
            elif event["event"] == "failure":
                failures.append(Failure(current, event["why"]))
            else:
                ended = True
        if ended:
            break
        failures.append(Failure(current, f"exit {process.returncode}\n{process.stderr[-2000:]}"))
        if not current:
            break
    return Survey(ran, tuple(failures))


def report_cases(cases: Iterator[tuple[str, Any]], first: int) -> None:
    """Run (name, function without parameters) from case `first` on, telling the parent before each."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number, (name, run) in enumerate(cases):
        if number < first:
            continue
        _tell({"event": "case", "number": number, "name": name})
        try:
            run()
        except Exception as error:
            _tell({"event": "failure", "why": f"{type(error).__name__}: {error}"[:2000]})
    _tell({"event": "end"})


def _tell(event: dict[str, Any]) -> None:
    os.write(1, (json.dumps(event) + "\n").encode())
