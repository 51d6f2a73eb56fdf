"""What one core of this machine can do at most, measured: multiply-adds a second, and bytes a second.

1. The peak is that of a loop of independent fused multiply-adds of the widest vectors, all in registers, for a tenth
   of a millisecond.  What the machine keeps up (`sustained`) is that of one tile of a product, whose operands lie in
   the nearest cache, for as long as a row is measured: loads beside multiply-adds lower the clock of some machines.
2. Bandwidths are those of a sum (reads alone) and of a triad a = b + s·c (two reads, one write), for working sets
   that lie in each level of the memory.
3. A program that does `Work` takes at least the longer of its operations at the peak and its bytes at the bandwidth
   of the smallest working set that holds them: a roofline.

Each number but those of `sustained` is the best of many short runs, which other programs make longer, never shorter.

Source: Williams, Waterman & Patterson 2009; McCalpin's STREAM.
"""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nnkit.jit.llvm import CompiledModule, compile_module, host_machine

from .problems import Work
from .timing import BATCH_SECONDS, batch, calibrate

TYPES: Final = ("f32", "f64")
KIB: Final = 1024
WORKING_SETS: Final = {
    "16 KiB": 16 * KIB,
    "1 MiB": KIB**2,
    "16 MiB": 16 * KIB**2,
    "256 MiB": 256 * KIB**2,
}
"""Half of usual caches of the first and of the second level, a share of the third, and what lies beyond."""
ACCUMULATORS: Final = 12
"""More than latency times throughput of any multiply-add unit known, fewer than there are registers."""
STEPS: Final = 20_000
"""Of a run of the peak: a tenth of a millisecond, which few interruptions fall into."""
RUNS: Final = 60
BYTES_A_RUN: Final = 4 * KIB**2
"""What a run of a small working set moves at least."""
MOSTLY_READS: Final = 0.9


@dataclass(frozen=True)
class Limits:
    """Measured: operations a second by type, and bytes a second by working set."""

    operations: Mapping[str, float]
    reading: Mapping[str, float]
    triad: Mapping[str, float]
    sustained: Mapping[str, float]
    """Operations a second for some milliseconds on end, by type."""

    def seconds(self, work: Work, *, threads: int = 1, sustained: bool = False) -> float:
        """The least time that a program takes, at the sustained peak if said; cores are taken to share nothing."""
        operations = self.sustained if sustained else self.operations
        moved = work.read + work.written
        bandwidths = self.reading if work.read >= MOSTLY_READS * moved else self.triad
        fitting = [name for name, size in WORKING_SETS.items() if moved <= size]
        bandwidth = bandwidths[fitting[0] if fitting else list(WORKING_SETS)[-1]]
        return max(work.operations / operations[work.type], moved / bandwidth) / threads


PEAK: Final = """
define void @peak_{name}(i64 %n, ptr %out) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}
{steps}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
{stores}
  ret void
}}
declare {vector} @llvm.fma.v{lanes}{name}({vector}, {vector}, {vector})
"""

TILE: Final = """
define void @tile_{name}(ptr %a, ptr %b, ptr %out, i64 %times) {{
entry:
  br label %again
again:
  %time = phi i64 [ 0, %entry ], [ %later, %swept ]
{outer}
  br label %loop
loop:
  %i = phi i64 [ 0, %again ], [ %next, %loop ]
{inner}
  %ia = mul i64 %i, {rows}
  %ib = mul i64 %i, {columns}
{vectors}
{steps}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {depth}
  br i1 %more, label %loop, label %swept
swept:
  %later = add i64 %time, 1
  %unfinished = icmp ult i64 %later, %times
  br i1 %unfinished, label %again, label %done
done:
{stores}
  ret void
}}
"""

MOVE: Final = """
define void @{name}(ptr %a, ptr %b, ptr %c, i64 %n, i64 %times) {{
entry:
  br label %again
again:
  %time = phi i64 [ 0, %entry ], [ %later, %swept ]
  br label %loop
loop:
  %i = phi i64 [ 0, %again ], [ %next, %loop ]
{phis}
{steps}
  %next = add i64 %i, {stride}
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %swept
swept:
{stores}
  %later = add i64 %time, 1
  %unfinished = icmp ult i64 %later, %times
  br i1 %unfinished, label %again, label %done
done:
  ret void
}}
"""
DEPTH: Final = 128
"""Products of a sum of the tile: its operands lie in any first cache."""
TILE_VECTORS: Final = 2
JAMMED: Final = 8
"""Vectors of an iteration of the loops that move memory."""


def measure_limits(sizes: Mapping[str, int] = WORKING_SETS) -> Limits:
    """Of this machine, in a second."""
    code = _compiled()
    operations = {type: _peak(code, type) for type in TYPES}
    reading = {name: _bandwidth(code, "sum", 1, size) for name, size in sizes.items()}
    triad = {name: _bandwidth(code, "triad", 3, size) for name, size in sizes.items()}
    return Limits(operations, reading, triad, sustained_peaks())


def sustained_peaks(clock: Callable[[], float] = time.perf_counter) -> dict[str, float]:
    """Operations a second by type, in one batch that takes as long as that of a row."""
    return {type: _sustained(type, clock) for type in TYPES}


def best(one: Limits, other: Limits) -> Limits:
    """The larger of each of two measurements."""

    def larger(x: Mapping[str, float], y: Mapping[str, float]) -> dict[str, float]:
        return {name: max(x[name], y[name]) for name in x}

    return Limits(
        larger(one.operations, other.operations),
        larger(one.reading, other.reading),
        larger(one.triad, other.triad),
        larger(one.sustained, other.sustained),
    )


def table(limits: Limits) -> str:
    """In Markdown."""
    sizes = list(limits.reading)
    lines = [
        f"| one core | operations, f32 | operations, f64 | bytes of {' | '.join(sizes)} |",
        f"|---|---|---|{'---|' * len(sizes)}",
    ]
    rates = [f"{limits.operations[type] / 1e9:.0f} GF/s" for type in TYPES]
    for title, found in (("sum, reads alone", limits.reading), ("triad", limits.triad)):
        cells = [*rates, *(f"{found[size] / 1e9:.0f} GB/s" for size in sizes)]
        lines.append(f"| {title} | {' | '.join(cells)} |")
        rates = ["", ""]
    cells = [f"{limits.sustained[type] / 1e9:.0f} GF/s" for type in TYPES] + [""] * len(sizes)
    lines.append(
        f"| products of the nearest cache, {BATCH_SECONDS * 1e3:.0f} ms on end | {' | '.join(cells)} |"
    )
    return "\n".join(lines)


@functools.cache
def _compiled() -> CompiledModule:
    """The loops, compiled once."""
    return compile_module(
        "\n".join([*map(_peak_text, TYPES), *map(_tile_text, TYPES), _sum_text(), _triad_text()])
    )


def _lanes(type: str) -> int:
    return host_machine().vector_bytes // (4 if type == "f32" else 8)


def _peak_text(type: str) -> str:
    """A loop that adds x·x to each of some accumulators; what they are does not matter."""
    lanes, scalar = _lanes(type), "float" if type == "f32" else "double"
    vector = f"<{lanes} x {scalar}>"
    numbers = range(ACCUMULATORS)
    call = f"call {vector} @llvm.fma.v{lanes}{type}"
    step = f"{call}({vector} %x{{k}}, {vector} %x0, {vector} %x{{k}})"
    return PEAK.format(
        name=type,
        vector=vector,
        lanes=lanes,
        phis=_each(
            f"  %x{{k}} = phi {vector} [ zeroinitializer, %entry ], [ %y{{k}}, %loop ]", numbers
        ),
        steps=_each(f"  %y{{k}} = {step}", numbers),
        stores=_each(f"  store volatile {vector} %y{{k}}, ptr %out, align 4", numbers),
    )


def _tile_rows() -> int:
    """Rows of a tile whose sums fill the registers but for a few."""
    return (host_machine().vector_registers - TILE_VECTORS - 2) // TILE_VECTORS // 2 * 2


def _tile_text(type: str) -> str:
    """A tile of a product, again and again, of the same rows and columns."""
    lanes, scalar = _lanes(type), "float" if type == "f32" else "double"
    vector, rows = f"<{lanes} x {scalar}>", _tile_rows()
    sums, halves = range(rows * TILE_VECTORS), range(TILE_VECTORS)
    vectors = _each(
        f"""  %j{{k}} = add i64 %ib, {{at}}
  %p{{k}} = getelementptr {scalar}, ptr %b, i64 %j{{k}}
  %v{{k}} = load {vector}, ptr %p{{k}}, align 64""",
        halves,
        lanes,
    )
    steps: list[str] = []
    for row in range(rows):
        steps.append(
            f"""  %r{row} = add i64 %ia, {row}
  %q{row} = getelementptr {scalar}, ptr %a, i64 %r{row}
  %e{row} = load {scalar}, ptr %q{row}
  %n{row} = insertelement {vector} poison, {scalar} %e{row}, i32 0
  %w{row} = shufflevector {vector} %n{row}, {vector} poison, <{lanes} x i32> zeroinitializer"""
        )
        steps += [
            f"  %z{k} = call {vector} @llvm.fma.v{lanes}{type}"
            f"({vector} %w{row}, {vector} %v{k % TILE_VECTORS}, {vector} %y{k})"
            for k in range(row * TILE_VECTORS, (row + 1) * TILE_VECTORS)
        ]
    return TILE.format(
        name=type,
        rows=rows,
        columns=TILE_VECTORS * lanes,
        depth=DEPTH,
        outer=_each(
            f"  %x{{k}} = phi {vector} [ zeroinitializer, %entry ], [ %z{{k}}, %swept ]", sums
        ),
        inner=_each(f"  %y{{k}} = phi {vector} [ %x{{k}}, %again ], [ %z{{k}}, %loop ]", sums),
        vectors=vectors,
        steps="\n".join(steps),
        stores=_each(f"  store volatile {vector} %z{{k}}, ptr %out, align 4", sums),
    )


def _sum_text() -> str:
    lanes = _lanes("f32")
    vector = f"<{lanes} x float>"
    numbers = range(JAMMED)
    steps = _each(
        f"""  %j{{k}} = add i64 %i, {{at}}
  %p{{k}} = getelementptr float, ptr %a, i64 %j{{k}}
  %v{{k}} = load {vector}, ptr %p{{k}}, align 64
  %y{{k}} = fadd {vector} %x{{k}}, %v{{k}}""",
        numbers,
        lanes,
    )
    return MOVE.format(
        name="sum",
        stride=lanes * JAMMED,
        phis=_each(
            f"  %x{{k}} = phi {vector} [ zeroinitializer, %again ], [ %y{{k}}, %loop ]", numbers
        ),
        steps=steps,
        stores=_each(f"  store volatile {vector} %y{{k}}, ptr %c, align 4", numbers),
    )


def _triad_text() -> str:
    lanes = _lanes("f32")
    vector = f"<{lanes} x float>"
    steps = _each(
        f"""  %j{{k}} = add i64 %i, {{at}}
  %a{{k}} = getelementptr float, ptr %a, i64 %j{{k}}
  %b{{k}} = getelementptr float, ptr %b, i64 %j{{k}}
  %c{{k}} = getelementptr float, ptr %c, i64 %j{{k}}
  %u{{k}} = load {vector}, ptr %b{{k}}, align 64
  %v{{k}} = load {vector}, ptr %c{{k}}, align 64
  %w{{k}} = fmul {vector} %v{{k}}, %v{{k}}
  %y{{k}} = fadd {vector} %u{{k}}, %w{{k}}
  store {vector} %y{{k}}, ptr %a{{k}}, align 64""",
        range(JAMMED),
        lanes,
    )
    return MOVE.format(name="triad", stride=lanes * JAMMED, phis="", steps=steps, stores="")


def _each(line: str, numbers: Sequence[int], lanes: int = 0) -> str:
    return "\n".join(line.format(k=k, at=k * lanes) for k in numbers)


def _function(code: CompiledModule, name: str, *types: Any) -> Callable[..., None]:
    made: Callable[..., None] = ctypes.CFUNCTYPE(None, *types)(code.address(name))
    return made


def _peak(code: CompiledModule, type: str) -> float:
    """Operations a second."""
    out = np.zeros(64)
    run = _function(code, f"peak_{type}", ctypes.c_int64, ctypes.c_void_p)
    seconds = _shortest(lambda: run(STEPS, out.ctypes.data))
    return 2 * ACCUMULATORS * _lanes(type) * STEPS / seconds


def _sustained(type: str, clock: Callable[[], float]) -> float:
    """Operations a second of a tile, over a batch."""
    lanes, rows = _lanes(type), _tile_rows()
    a, b = (_aligned(2 * DEPTH * count) for count in (rows, TILE_VECTORS * lanes))
    for operand in (a, b):
        operand.view(f"{type[0]}{int(type[1:]) // 8}")[:] = 0.5
    out = np.zeros(64)
    run = _function(_compiled(), f"tile_{type}", *[ctypes.c_void_p] * 3, ctypes.c_int64)
    times = STEPS // DEPTH

    def seconds(count: int) -> float:
        return batch(
            lambda: run(a.ctypes.data, b.ctypes.data, out.ctypes.data, times), count, clock=clock
        )

    return 2 * rows * TILE_VECTORS * lanes * DEPTH * times / seconds(calibrate(seconds))


def _bandwidth(code: CompiledModule, name: str, arrays: int, size: int) -> float:
    """Bytes a second of a loop over so many arrays, which take `size` bytes together."""
    step = _lanes("f32") * JAMMED
    count = max(step, size // 4 // arrays // step * step)
    memory = [_aligned(count) for _ in range(arrays)]
    out = np.zeros(64)
    addresses = [array.ctypes.data for array in memory]
    addresses += [out.ctypes.data] * (3 - arrays)
    run = _function(code, name, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 2)
    moved = 4 * count * arrays
    times = max(1, BYTES_A_RUN // moved)
    return moved * times / _shortest(lambda: run(*addresses, count, times))


def _aligned(count: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Zeros at the beginning of a cache line."""
    raw = np.zeros(count + 16, np.float32)
    begin = -raw.ctypes.data // 4 % 16
    return raw[begin : begin + count]


def _shortest(run: Callable[[], object]) -> float:
    """Seconds of the best of several runs."""
    run()
    found: list[float] = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        run()
        found.append(time.perf_counter() - begin)
        if sum(found) > 0.5 and len(found) > 4:
            break
    return min(found)


if __name__ == "__main__":
    print(table(measure_limits()))
