"""Compiling and loading LLVM IR: symbols, errors, lifetimes, threads."""

import ctypes
import gc
import re
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest

from nnkit.core.errors import UnsupportedError
from nnkit.jit import llvm

SQUARE = """
define double @square(double %x) nounwind {
  %1 = fmul double %x, %x
  ret double %1
}
"""
CALLER = """
declare double @pow(double, double)
declare double @given(double)
define double @f(double %x) nounwind {
  %1 = call double @pow(double %x, double 3.0)
  %2 = call double @given(double %1)
  ret double %2
}
"""
Unary = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)


def test_many_threads_may_ask_for_an_address_first() -> None:
    """What LLVM answers keeps the code loaded: of two answers to one question none may be dropped."""
    for _ in range(20):
        compiled = llvm.compile_module(SQUARE)
        barrier = Barrier(16)

        def ask(compiled: llvm.CompiledModule = compiled, barrier: Barrier = barrier) -> float:
            barrier.wait()
            return Unary(compiled.address("square"))(3.0)

        with ThreadPoolExecutor(16) as threads:
            asked = [threads.submit(ask) for _ in range(16)]
        assert [one.result() for one in asked] == [9.0] * 16
        gc.collect()
        assert Unary(compiled.address("square"))(3.0) == 9.0


def test_compile_and_call() -> None:
    compiled = llvm.compile_module(SQUARE)
    assert Unary(compiled.address("square"))(3.0) == 9.0
    assert compiled.address("square") == compiled.address("square")


def test_symbols_of_process_and_given_ones() -> None:
    given = Unary(lambda x: x + 1)
    address = ctypes.cast(given, ctypes.c_void_p).value
    assert address is not None
    compiled = llvm.compile_module(CALLER, {"given": address})
    assert Unary(compiled.address("f"))(2.0) == 9.0


def test_given_data_symbol() -> None:
    text = "@table = external global i8\ndefine ptr @f() {\n ret ptr @table\n}\n"
    value = ctypes.c_double(2.5)
    compiled = llvm.compile_module(text, {"table": ctypes.addressof(value)})
    function = ctypes.CFUNCTYPE(ctypes.c_void_p)(compiled.address("f"))
    assert function() == ctypes.addressof(value)


def test_objects_can_be_stored_and_loaded() -> None:
    code = llvm.host_engine().object_code(SQUARE)
    assert isinstance(code, bytes)
    assert code == llvm.host_engine().object_code(SQUARE)
    assert llvm.host_engine().load_object(code).object_bytes == len(code)
    assert Unary(llvm.host_engine().load_object(code).address("square"))(-2.0) == 4.0


def test_same_name_in_two_modules() -> None:
    one = llvm.compile_module("define i64 @f() {\n ret i64 1\n}")
    two = llvm.compile_module("define i64 @f() {\n ret i64 2\n}")
    assert [ctypes.CFUNCTYPE(ctypes.c_int64)(module.address("f"))() for module in (one, two)] == [
        1,
        2,
    ]


def test_syntax_error_names_the_place() -> None:
    text = "define float @f() {\n ret i32 0\n}"
    with pytest.raises(llvm.LLVMError, match="2:6: error: value doesn't match") as caught:
        llvm.compile_module(text)
    assert caught.value.text == text


def test_invalid_module() -> None:
    text = "define i32 @f() {\n %1 = add i32 %2, 1\n %2 = add i32 %1, 1\n ret i32 %2\n}"
    with pytest.raises(llvm.LLVMError, match="does not dominate"):
        llvm.compile_module(text)


def test_missing_symbol() -> None:
    compiled = llvm.compile_module(
        "declare void @nowhere()\ndefine void @f() {\n call void @nowhere()\n ret void\n}"
    )
    with pytest.raises(llvm.LLVMError, match="'f'"):
        compiled.address("f")


def test_missing_function() -> None:
    with pytest.raises(llvm.LLVMError, match="'other'"):
        llvm.compile_module(SQUARE).address("other")


def test_broken_object() -> None:
    with pytest.raises(llvm.LLVMError, match="object"):
        llvm.host_engine().load_object(b"not an object file")


def test_assembly() -> None:
    assert re.search(r"^square:", llvm.host_engine().assembly(SQUARE), re.MULTILINE)


def test_code_is_dropped_with_its_module() -> None:
    compiled = llvm.compile_module(SQUARE)
    tracker = weakref.ref(compiled._keep)
    del compiled
    gc.collect()
    assert tracker() is None


def test_a_module_outlives_the_engine_and_its_neighbours() -> None:
    engine = llvm.Engine(llvm.host_machine())
    modules = [engine.compile_module(SQUARE) for _ in range(2 * llvm.MODULES_PER_LLJIT + 1)]
    compilers = [weakref.ref(module._jit) for module in modules]
    assert len({*map(id, (module._jit for module in modules))}) == 3
    del engine, modules[1:]
    gc.collect()
    assert [compiler() is None for compiler in compilers].count(False) == llvm.MODULES_PER_LLJIT
    assert Unary(modules[0].address("square"))(3.0) == 9.0
    modules.clear()
    gc.collect()
    assert all(compiler() is None for compiler in compilers)


def test_dropped_modules_leave_nothing() -> None:
    """In the C heap; an LLJIT itself keeps 9 KiB of each module that was dropped."""
    engine, held = llvm.host_engine(), []
    code = engine.object_code(SQUARE)
    for _ in range(3):
        for _ in range(4 * llvm.MODULES_PER_LLJIT):
            engine.load_object(code).address("square")
        gc.collect()
        held.append(heap_bytes())
    assert held[2] - held[1] < 64 << 10, held


def heap_bytes() -> int:
    """What `malloc` has given out, by glibc."""

    class Information(ctypes.Structure):
        _fields_ = tuple((name, ctypes.c_size_t) for name in "abcdefghij")

    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = Information
    found = mallinfo()
    return int(found.h) + int(found.e)  # in the heap, and mapped by themselves


def test_target() -> None:
    target = llvm.host_machine()
    assert target.vector_bytes in (16, 32, 64)
    assert target.vector_registers in (16, 32)
    assert target.scalef == (target.vector_bytes == 64)
    assert target.fma or target.vector_bytes == 16
    assert target.cpu in target.identity
    assert target is llvm.host_machine()


@pytest.mark.skipif(not llvm.host_machine().triple.startswith("x86_64"), reason="levels of x86-64")
def test_levels_of_instructions_that_the_machine_has() -> None:
    host = replace(llvm.host_machine(), features="+popcnt,+sse4.2,-avx2")
    found = llvm._of_level("x86-64-v2", host)
    assert (found.cpu, found.features, found.vector_bytes, found.fma) == (
        "x86-64-v2",
        "",
        16,
        False,
    )
    with pytest.raises(UnsupportedError, match="'x86-64-v3', and this machine has no avx2, bmi2"):
        llvm._of_level("x86-64-v3", host)
    with pytest.raises(
        UnsupportedError, match="NNKIT_CPU is 'zen99'; what it knows is native, x86-64, x86-64-v2"
    ):
        llvm._of_level("zen99", host)
    with pytest.raises(UnsupportedError, match="what it knows is native, generic"):
        llvm._of_level("x86-64", replace(host, triple="aarch64-linux-gnu"))


def test_threads() -> None:
    def work(number: int) -> int:
        text = f"define i64 @f() {{\n ret i64 {number}\n}}"
        compiled = llvm.compile_module(text)
        result: int = ctypes.CFUNCTYPE(ctypes.c_int64)(compiled.address("f"))()
        return result

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(40))) == list(range(40))


def test_import_is_lazy_and_exit_is_clean() -> None:
    program = (
        "import sys, nnkit.jit\n"
        "assert 'llvmlite' not in sys.modules\n"
        "from nnkit.jit.llvm import compile_module\n"
        "kept = compile_module('define void @f() {\\n ret void\\n}')\n"
        "kept.address('f')\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=Path(llvm.__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
