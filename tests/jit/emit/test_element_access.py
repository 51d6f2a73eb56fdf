"""Nothing is read or written beside the elements of a tensor, on any machine, whatever LLVM makes of masks.

1. What LLVM does wrong, in as few lines as show it: told when it is mended, or when more goes wrong.
2. What `memory` writes for lanes of which some are active stores these and no other byte, and reads no other.
3. Whole kernels between guard pages, in a process of their own: a short form of `tests/fuzz/test_guard_pages.py`.
"""

from __future__ import annotations

import ctypes
import itertools
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import settings
from llvmlite import binding

from nnkit.core.ops import ALL
from nnkit.core.types import DTYPES, DType
from nnkit.jit.ahead_of_time import find_target
from nnkit.jit.emit.element_access import (
    Lanes,
    Pointers,
    _pieces,
    define_zero_element,
    load_elements,
    store_elements,
)
from nnkit.jit.emit.elements import register_type
from nnkit.jit.emit.writer import (
    I8,
    PTR,
    Argument,
    FunctionWriter,
    LLVMType,
    ModuleWriter,
    Register,
    constant,
    constants,
    llvm_type,
)
from nnkit.jit.llvm import Engine, host_machine, optimization_level
from tests.jit.guard_pages import CANARY, CPUS, HOST, PAGE, Region, engine_for, report_cases, survey
from tests.jit.guarded_gradients import LEVELS, Derivative, missing_derivatives
from tests.jit.guarded_programs import RECIPES
from tests.jit.guarded_sweep import chosen, sweep

from .lowering import check

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or sys.platform != "linux", reason="guard pages of x86-64 Linux"
)

I8_, I32_, I64_ = DTYPES["i8"], DTYPES["i32"], DTYPES["i64"]

# 1. LLVM.

STORE = """
declare void @llvm.masked.store.v8i32.p0(<8 x i32>, ptr, <8 x i1>)
define void @f(ptr %p, <8 x i64> %x) {
  %y = trunc <8 x i64> %x to <8 x i32>
  call void @llvm.masked.store.v8i32.p0(<8 x i32> %y, ptr align 4 %p, <8 x i1> <MASK>)
  ret void
}
"""
FOLDED = """
declare void @llvm.masked.store.v8i32.p0(<8 x i32>, ptr, <8 x i1>)
define void @f(ptr %p, <8 x i64> %x) {
  %y = trunc <8 x i64> %x to <8 x i32>
  %m = icmp eq <8 x i64> <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>, zeroinitializer
  call void @llvm.masked.store.v8i32.p0(<8 x i32> %y, ptr align 4 %p, <8 x i1> %m)
  ret void
}
"""
SELECTED = """
define void @f(ptr %p, <8 x i64> %x) {
  %y = trunc <8 x i64> %x to <8 x i32>
  %o = load <8 x i32>, ptr %p, align 4
  %s = select <8 x i1> <MASK>, <8 x i32> %y, <8 x i32> %o
  store <8 x i32> %s, ptr %p, align 4
  ret void
}
"""
LOAD = """
declare <8 x i8> @llvm.masked.load.v8i8.p0(ptr, <8 x i1>, <8 x i8>)
define <8 x i64> @f(ptr %p) {
  %y = call <8 x i8> @llvm.masked.load.v8i8.p0(ptr align 1 %p, <8 x i1> <MASK>, <8 x i8> zeroinitializer)
  %z = sext <8 x i8> %y to <8 x i64>
  ret <8 x i64> %z
}
"""
WHOLE_STORES = ("vmovlps", "vmovq", "vpextrq", "movq", "vmovsd")
"""Instructions that store 8 bytes."""


def masked(text: str, lanes: set[int]) -> str:
    return text.replace("MASK", ", ".join(f"i1 {str(lane in lanes).lower()}" for lane in range(8)))


def stores_of(text: str, cpu: str) -> list[str]:
    """The instructions that write to the memory of the first parameter, of optimized code at any `--level`."""
    with mock.patch.object(optimization_level, "__defaults__", (2,)):
        engine = Engine(find_target("x86_64-linux-gnu", cpu))
        text = engine.assembly(text)
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    return [line.split()[0] for line in lines if line.endswith("(%rdi)") or "(%rdi) {" in line]


@pytest.mark.parametrize("text", [STORE, FOLDED, SELECTED], ids=["store", "folded", "selected"])
@pytest.mark.parametrize("cpu", ["x86-64", "haswell", "skylake-avx512", "znver4"])
def test_llvm_stores_what_was_not_truncated_under_a_mask_of_one_lane(text: str, cpu: str) -> None:
    """If this fails with a newer LLVM, decision 0017 says what can be taken back."""
    is_wrong = binding.llvm_version_info[0] == 22 and cpu in ("skylake-avx512", "znver4")
    stores = stores_of(masked(text, {0}), cpu)
    assert stores
    assert any(store in WHOLE_STORES for store in stores) == is_wrong, stores


@pytest.mark.parametrize("lanes", [{0, 1}, {0, 1, 2}, {3, 4}, set(range(7))], ids=str)
def test_llvm_is_right_where_the_mask_has_more_lanes(lanes: set[int]) -> None:
    assert stores_of(masked(STORE, lanes), "skylake-avx512") == ["vpmovqd"]


@pytest.mark.parametrize("cpu", ["x86-64", "haswell", "skylake-avx512", "znver4"])
def test_llvm_reads_one_element_under_a_mask_of_one_lane(cpu: str) -> None:
    engine = Engine(find_target("x86_64-linux-gnu", cpu))
    lines = engine.assembly(masked(LOAD, {2})).splitlines()
    (access,) = [line.split()[0] for line in lines if "2(%rdi)" in line]
    assert access in ("movzbl", "movsbq", "vpinsrb", "vmovdqu8", "movsbl")


# 2. What `memory` writes.

TRUNCATED = [
    (I64_, I32_), (I64_, DTYPES["i16"]), (I64_, I8_), (I32_, DTYPES["i16"]), (I32_, I8_),
    (DTYPES["i16"], I8_), (DTYPES["f32"], DTYPES["bf16"]), (DTYPES["f32"], DTYPES["f16"]),
    (DTYPES["f64"], DTYPES["f32"]), (DTYPES["bool"], DTYPES["bool"]),
]  # fmt: skip
"""What is computed, and what is stored of it."""


def ranges() -> Iterator[tuple[Lanes, bool]]:
    """Steps some of whose lanes are active, forwards and backwards."""
    for count in (2, 4, 8, 16, 32):
        for active in (*range(1, min(count, 10) + 1), *range(max(count - 1, 11), count + 1)):
            yield from ((Lanes(count, active), False), (Lanes(count, active), True))


def narrowed(w: FunctionWriter, x: Register, source: DType, dtype: DType) -> Register:
    if source.is_integer and source.bits > dtype.bits:
        return w.trunc(x, register_type(dtype).scalar)
    return w.fptrunc(x, "float") if source.name == "f64" else x


def pointers(
    pointer: Register, dtype: DType, backwards: bool, condition: Register | None
) -> Pointers:
    return Pointers(dtype, pointer, -1 if backwards else 1, None, condition, True)


Write = Callable[[FunctionWriter, str], None]


def compiled(engine: Engine, functions: dict[str, Write]) -> dict[str, Callable[..., None]]:
    """Functions of two pointers."""
    module = ModuleWriter(scalef=engine.target.scalef, fma=engine.target.fma)
    define_zero_element(module)
    for name, emit in functions.items():
        w = module.function(name, [Argument(PTR), Argument(PTR)], None)
        emit(w, name)
        w.ret()
    loaded = engine.compile_module(module.text())
    native = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    kept = {name: native(loaded.address(name)) for name in functions}

    def caller(name: str) -> Callable[..., None]:
        return lambda *pointers: (kept[name](*pointers), loaded)[0]

    return {name: caller(name) for name in functions}


@pytest.mark.parametrize("cpu", ["haswell", "skylake-avx512", HOST])
@pytest.mark.parametrize(("source", "dtype"), TRUNCATED, ids=lambda pair: str(pair))
def test_active_lanes_alone_are_stored(source: DType, dtype: DType, cpu: str) -> None:
    """Once as they come, once under a condition that is a constant in the end, where one lane is left."""
    cases: dict[str, tuple[Lanes, bool, int | None]] = {}
    functions: dict[str, Write] = {}
    for lanes, backwards in ranges():
        chosen = [None] if backwards else [None, 0, lanes.active // 2, lanes.active - 1]
        for only in chosen:
            name = f"f{len(cases)}"
            cases[name] = lanes, backwards, only

            def emit(
                w: FunctionWriter,
                _: str,
                lanes: Lanes = lanes,
                backwards: bool = backwards,
                only: int | None = only,
            ) -> None:
                target, given = w.parameters
                x = w.load(given, register_memory(source, lanes.count), align=1)
                x = w.trunc(x, "i1") if source.kind == "boolean" else x
                condition = None
                if only is not None:
                    numbers = w.lane_numbers("i64", lanes.count)
                    condition = w.icmp("eq", numbers, constant(numbers.type, only))
                value = narrowed(w, x, source, dtype)
                store_elements(w, pointers(target, dtype, backwards, condition), value, lanes)

            functions[name] = emit
    calls = compiled(engine_for(cpu), functions)
    region, numbers = Region(PAGE), np.full(32 * 8, 0xFF, np.uint8)
    if source.is_float:
        numbers = np.full(32, -1.5, source.storage)
    for name, (lanes, backwards, only) in cases.items():
        region.bytes[:] = CANARY
        size = dtype.bytes
        first = PAGE // 2
        pointer = region.first + first + ((lanes.active - 1) * size if backwards else 0)
        calls[name](pointer, numbers.ctypes.data)
        changed = np.flatnonzero(region.bytes != CANARY)
        if only is not None:
            first += only * size
        wanted = np.arange(first, first + (size if only is not None else lanes.active * size))
        np.testing.assert_array_equal(changed, wanted, err_msg=f"{lanes} {backwards=} {only=}")


def register_memory(dtype: DType, lanes: int) -> LLVMType:
    """The type whose vectors in memory are what is computed with."""
    return llvm_type("i8", lanes) if dtype.kind == "boolean" else register_type(dtype, lanes)


@pytest.mark.parametrize("cpu", CPUS[2:] if settings().max_examples > 100 else ["haswell", HOST])
def test_active_lanes_alone_are_read(cpu: str) -> None:
    """Up to the page behind, down to the page before; what is read is widened."""
    found = survey("tests.jit.emit.test_element_access", cpu)
    assert not found.failures, "\n".join(map(str, found.failures))
    assert found.cases == len(DTYPES)


def read_ranges(dtype: DType, cpu: str) -> None:
    """Read all ranges of lanes between guard pages, in the process that the test watches.

    Under a condition that LLVM does not know, too: it holds, as `out` is zero and stays so.  And by pieces, as all of a
    short tensor is.
    """
    ways = (True, False), (False, False), (True, True)
    cases = {
        f"f{number}": (*case, known, is_short)
        for number, (case, (known, is_short)) in enumerate(itertools.product(ranges(), ways))
        if not is_short or (not case[1] and case[0].active < case[0].count <= 32 // dtype.bytes)
    }

    def emit(w: FunctionWriter, name: str) -> None:
        lanes, backwards, known, is_short = cases[name]
        source, target = w.parameters
        first = None if known else w.icmp("eq", w.load(target, I8, align=1), constant(I8, 0))
        at = replace(pointers(source, dtype, backwards, first), is_short=is_short)
        value = load_elements(w, at, lanes)
        if value.type.scalar == "i1":
            value = w.zext(value, "i64")
        elif value.type.is_integer and value.type.bits < 64:
            value = w.sext(value, "i64")
        w.store(value, target, align=1)

    calls = compiled(engine_for(cpu), dict.fromkeys(cases, emit))
    region, out = Region(PAGE), np.zeros(32 * 8, np.uint8)
    region.bytes[:] = 0
    for name, (lanes, backwards, *_) in cases.items():
        size = dtype.bytes
        end = PAGE - size if backwards else PAGE - lanes.active * size
        start = (lanes.active - 1) * size if backwards else 0
        for offset in (end, start):
            calls[name](region.first + offset, out.ctypes.data)


def test_pieces_cover_the_lanes() -> None:
    for first, end in itertools.combinations(range(66), 2):
        pieces = _pieces(first, end)
        covered = {lane for first, count in pieces for lane in range(first, first + count)}
        assert covered == set(range(first, end))
        assert len(pieces) <= 2
        assert all(count.bit_count() == 1 for _, count in pieces)


def test_stores_under_constant_masks_are_refused() -> None:
    w = ModuleWriter().function("f", [Argument(PTR)], None)
    with pytest.raises(ValueError, match="constant mask"):
        w.masked_store(constant(I8.with_lanes(2), 0), w.parameters[0], constants("i1", [1, 0]))


IN_PLACE = """
func @f: (<{n} x {source}>, <{n} x {target}>) -> <{n} x {target}> {{
'entry(%x: <{n} x {source}>, %y: <{n} x {target}>):
    %z = for 0: i64 upto 3: i64 carrying %y: <{n} x {target}> {{
    'body(%i: i64, %c: <{n} x {target}>):
        %j = iota {n} along 0 as i64
        %m = equal %j: <{n} x i64>, {lane}: i64
        %t = dataTypeCast %x: <{n} x {source}> to {target}
        %s = select %t: <{n} x {target}>, %c: <{n} x {target}> by %m: <{n} x bool>
        yield %s: <{n} x {target}>
    }}
    return %z: <{n} x {target}>
}}
"""
IN_ARENA = """
func @f: (<{n} x {source}>, <{n} x {target}>) -> <{n} x {target}> {{
'entry(%x: <{n} x {source}>, %y: <{n} x {target}>):
    %first = add %y: <{n} x {target}>, 1: {target}
    %last = for 0: i64 upto 2: i64 carrying %first: <{n} x {target}> {{
    'outer(%h: i64, %d: <{n} x {target}>):
        %z = for 0: i64 upto 3: i64 carrying %d: <{n} x {target}> {{
        'inner(%i: i64, %c: <{n} x {target}>):
            %j = iota {n} along 0 as i64
            %m = equal %j: <{n} x i64>, {lane}: i64
            %t = dataTypeCast %x: <{n} x {source}> to {target}
            %s = select %t: <{n} x {target}>, %c: <{n} x {target}> by %m: <{n} x bool>
            yield %s: <{n} x {target}>
        }}
        yield %z: <{n} x {target}>
    }}
    %q = reduce %last: <{n} x {target}> by add along 0
    %r = add %last: <{n} x {target}>, %q: {target}
    return %r: <{n} x {target}>
}}
"""


@pytest.mark.parametrize("text", [IN_PLACE, IN_ARENA], ids=["output", "arena"])
@pytest.mark.parametrize(("n", "lane"), [(8, 2), (8, 7), (16, 3), (5, 4)])
@pytest.mark.parametrize(("source", "target"), [("i64", "i32"), ("i64", "i8"), ("i32", "i16")])
def test_one_element_is_replaced_where_the_others_lie(
    source: str, target: str, n: int, lane: int, text: str
) -> None:
    """LLVM makes a masked store of it."""
    numpy = [np.dtype(name.replace("i", "int")) for name in (source, target)]
    program = text.format(n=n, lane=lane, source=source, target=target)
    check(program, np.full(n, -2, numpy[0]), np.arange(n).astype(numpy[1]))


# 3. Kernels.

REPORTED = """
import numpy as np
import nnkit as nk
from nnkit import Rep, Tensor2D, bf16, i64

@nk.staged
def f(x: Rep[Tensor2D[i64]]):
    return x.cast(nk.i32), x.min(axis=1)

@nk.staged
def g(x: Rep[Tensor2D[bf16]]):
    return nk.softmax(x, axis=1)

for columns in (2, 3, 5, 9, 17, 33):
    kept = []
    for _ in range(50):
        cast, least = f(np.ones((2, columns), np.int64))
        assert (cast.numpy() == 1).all() and (least.numpy() == 1).all()
        kept.append((cast, least, g(Tensor2D([[0.5] * columns] * 2, bf16))))
"""


def test_the_heap_stays_sound() -> None:
    """The report: what was written behind a result ended the process in `malloc`, now or later."""
    ran = subprocess.run(
        [sys.executable, "-c", REPORTED], capture_output=True, text=True, check=False,
        cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert ran.returncode == 0, (ran.returncode, ran.stderr)


def test_every_op_has_a_recipe() -> None:
    assert set(RECIPES) == set(ALL)


@pytest.mark.parametrize("cpu", ["haswell", HOST])
def test_kernels_stay_inside_of_their_tensors(cpu: str) -> None:
    """A part of all ops, element types and machines; `make fuzz` runs all."""
    if engine_for(cpu).target.vector_bytes > host_machine().vector_bytes:
        pytest.skip("this machine has no such vectors")
    found = sweep("ops", cpu, (5, 17, 33), share=0.1)
    assert not found.failures, "\n".join(map(str, found.failures))
    assert found.cases > (800 if cpu == HOST else 100)


@pytest.mark.parametrize("cpu", ["x86-64", "haswell", HOST])
def test_nests_that_write_beyond_their_results_stay_inside(cpu: str) -> None:
    """At 57, 8 of 32 lanes are known to lie outside, and the others are not known."""
    if engine_for(cpu).target.vector_bytes > host_machine().vector_bytes:
        pytest.skip("this machine has no such vectors")
    found = sweep("nests", cpu, (57,))
    assert not found.failures, "\n".join(map(str, found.failures))
    assert found.cases == sum(1 for _ in chosen("nests", cpu, (57,), 1, 1.0))


def test_every_op_with_a_derivative_has_it_among_the_cases() -> None:
    """In both modes and for all float types, by two levels of optimisation."""
    taken = list(chosen("gradients", HOST, EXTENTS, 1, SHARE))
    assert not missing_derivatives(taken)
    levels = Counter(case.level for case in taken if isinstance(case, Derivative))
    assert min(levels[level] for level in LEVELS) > 100


def test_derivatives_stay_inside_of_their_tensors() -> None:
    """Seeds, tangents and what both directions keep are tensors as any others."""
    found = sweep("gradients", HOST, EXTENTS, share=SHARE)
    assert not found.failures, "\n".join(map(str, found.failures))
    assert found.cases == sum(1 for _ in chosen("gradients", HOST, EXTENTS, 1, SHARE))


EXTENTS, SHARE = (5, 17, 33), 0.06
"""Of the short form of derivatives."""


if __name__ == "__main__":
    machine, number = sys.argv[1:]
    reads = ((str(dtype), partial(read_ranges, dtype, machine)) for dtype in DTYPES.values())
    report_cases(reads, int(number))
