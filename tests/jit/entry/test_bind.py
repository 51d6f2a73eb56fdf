"""References: nothing leaks, nothing dangles, from any number of threads."""

import ctypes
import gc
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable

import numpy as np
import pytest

from nnkit.jit.entry import ArrayNode, RecordNode, Signature, TupleNode, drop_kept_results, rebind

from .programs import (
    Compiler,
    Layer,
    Memory,
    Program,
    Tensor2D,
    copying,
    example,
    failing,
    filling,
    refuse,
    struct,
    tensor,
)

MATRIX = ArrayNode("i64", (2, 3), Tensor2D)
COUNT = ArrayNode("i64", ())
LAYER = RecordNode(Layer, (MATRIX, MATRIX))


def growth(call: Callable[[], object], calls: int) -> float:
    """Bytes per call that stay, after as many calls to fill caches. The smallest object has 16."""
    gc.collect()
    tracemalloc.start()
    try:
        held: list[int] = []
        for _ in range(2):
            for _ in range(calls):
                call()
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    return (held[1] - held[0]) / calls


def test_calls_leak_nothing(compiler: Compiler) -> None:
    signature = Signature((LAYER, MATRIX), TupleNode((LAYER, MATRIX, MATRIX)))
    program = compiler(signature, copying(signature, [0, 1, 2, 2]))
    x = example(MATRIX)
    given = (struct(Layer, tensor(Tensor2D, x), x), tensor(Tensor2D, x))
    watched = (x, *given, Layer, Tensor2D, np.ndarray, np.dtype(np.int64), None, program)
    assert growth(lambda: program(*given), 10_000 if compiler.native else 3_000) < 8
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(1_000):
        program(*given)
    after = [sys.getrefcount(item) for item in watched]
    assert all(abs(y - x) < 10 for x, y in zip(before, after, strict=True)), (before, after)


def count_of(item: object) -> int:
    """The word in which CPython counts references, flags of immortal objects included."""
    return ctypes.c_uint64.from_address(id(item)).value


IMMORTAL = (None, True, False, 0, 1, 7, -1, (), "", object, tuple, SystemError)
"""Never freed from 3.12 on; an entry keeps, passes or drops some of them in each of the ways below."""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="no object is immortal")
def test_counts_of_immortal_objects_stay_as_they_are(native: Compiler) -> None:
    """Results kept, made anew, held, wrapped and dropped; failures, whose numbers are small; mismatches."""
    signature = Signature((COUNT,), TupleNode((LAYER, MATRIX, COUNT)))
    kept = native(signature, filling(signature), fallback=lambda *_: None)
    unkept = native(signature, filling(signature), kept_bytes=0)
    fails = native(signature, failing(signature), explain=lambda *_: None)
    before = [count_of(item) for item in IMMORTAL]
    held: list[object] = []
    for value in range(300):
        for program in (kept, unkept):
            held.append(program(np.array(value)))
        with pytest.raises(SystemError):  # `explain` returned None instead of raising
            fails(np.array(1 + value % 3))
        assert kept(None) is None
        if value % 7 == 0:
            held.clear()
            drop_kept_results(kept)
    assert [count_of(item) for item in IMMORTAL] == before


def test_results_that_are_held_leak_nothing(compiler: Compiler) -> None:
    signature = Signature((COUNT,), TupleNode((LAYER, MATRIX)))
    program = compiler(signature, filling(signature))
    assert growth(lambda: [program(np.array(1)) for _ in range(10)], 300) < 80


def test_failures_leak_nothing(compiler: Compiler) -> None:
    signature = Signature((COUNT,), TupleNode((LAYER, MATRIX)))
    program = compiler(signature, failing(signature))
    x = np.array(5)

    def fail() -> None:
        try:
            program(x)
        except IndexError:
            return
        raise AssertionError("the kernel did not fail")

    assert growth(fail, 3_000) < 8
    before = sys.getrefcount(x)
    fail()
    assert sys.getrefcount(x) == before


def test_fallbacks_leak_nothing(compiler: Compiler) -> None:
    signature = Signature((MATRIX,), MATRIX)
    program = compiler(signature, copying(signature, [0]), fallback=lambda *_, **__: None)
    assert growth(lambda: program(1, 2.5, named="x"), 1_000) < 8


def test_the_callable_keeps_what_it_needs_and_no_longer(compiler: Compiler) -> None:
    kept = Memory()
    reference = weakref.ref(kept)
    signature = Signature((MATRIX,), MATRIX)
    program = compiler(signature, copying(signature, [0]), keep_alive=kept)
    del kept
    gc.collect()
    assert reference() is not None
    y = program(example(MATRIX))
    del program
    gc.collect()
    assert reference() is None
    np.testing.assert_array_equal(y.array, example(MATRIX))


def test_a_program_that_refers_to_itself_is_collected(compiler: Compiler) -> None:
    class Owner:
        """Holds the program, whose fallback it is."""

        program: Program

        def fall_back(self, *_: object) -> object:
            return self

    owner = Owner()
    signature = Signature((MATRIX,), MATRIX)
    owner.program = compiler(signature, copying(signature, [0]), fallback=owner.fall_back)
    assert owner.program(1) is owner
    reference = weakref.ref(owner)
    del owner
    gc.collect()
    assert reference() is None


def test_another_fallback_for_the_same_code(compiler: Compiler) -> None:
    """Both callables work, whichever goes first, and the code goes with the last."""
    kept = Memory()
    reference = weakref.ref(kept)
    signature = Signature((MATRIX,), MATRIX)
    first = compiler(
        signature, copying(signature, [0]), keep_alive=kept, fallback=lambda *_: "first"
    )
    del kept
    second = rebind(first, lambda *_: "second")
    third = rebind(second, first)
    x = example(MATRIX)
    for program, other in ((first, "first"), (second, "second"), (third, "first")):
        np.testing.assert_array_equal(program(x).array, x)
        assert program(1) == program() == other
    if compiler.native:  # what is kept for results is shared, too
        places = {id(first(x).array) for _ in range(4)} | {id(second(x).array) for _ in range(4)}
        assert len(places) <= 2
    del first, program
    gc.collect()
    np.testing.assert_array_equal(second(x).array, x)
    assert third(1) == "first"
    del third
    gc.collect()
    assert second(None) == "second" and reference() is not None
    del second
    gc.collect()
    assert reference() is None


def test_a_call_keeps_the_chain_that_it_goes_through(compiler: Compiler) -> None:
    """Dropped by the fallback at its end, while the code of all of it is on the stack."""
    signature = Signature((MATRIX,), MATRIX)
    chain: list[Program] = []

    def end(*_: object) -> object:
        chain.clear()
        gc.collect()
        return "ended"

    program = compiler(signature, copying(signature, [0]), fallback=end)
    chain.append(program)
    for _ in range(6):
        chain[0] = rebind(program, chain[0])
    del program
    assert chain[0](3.5) == "ended"
    assert chain == []


def test_making_chains_leaks_nothing(compiler: Compiler) -> None:
    signature = Signature((MATRIX,), MATRIX)
    program = compiler(signature, copying(signature, [0]))
    assert growth(lambda: rebind(rebind(program, len), refuse), 1_000) < 8


def test_the_callable_has_a_name(native: Compiler) -> None:
    signature = Signature((MATRIX,), MATRIX)
    assert native(signature, copying(signature, [0]), name="layer").__name__ == "layer"


def test_an_argument_is_let_go(compiler: Compiler) -> None:
    signature = Signature((MATRIX,), MATRIX)
    program = compiler(signature, copying(signature, [0]))
    x = tensor(Tensor2D, example(MATRIX))
    reference = weakref.ref(x)
    program(x)
    del x
    assert reference() is None


def test_garbage_collected_during_a_call(compiler: Compiler) -> None:
    """A collection in the middle of a call may run Python code that calls the same program."""
    signature = Signature((COUNT,), TupleNode((LAYER, MATRIX)))
    program = compiler(signature, filling(signature))
    found: list[bool] = []

    def check(value: int) -> None:
        layer, matrix = program(np.array(value))
        items = [item.array for item in (*layer.fields, matrix)]
        found.append(all((item == value).all() for item in items))

    class Garbage:
        """Refers to itself, and calls when it is collected."""

        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            check(-1)

    thresholds = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for value in range(200):
            Garbage()
            check(value)
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    assert len(found) == 400
    assert all(found)


def test_many_threads(compiler: Compiler) -> None:
    """Each thread asks for its own numbers, and gets them."""
    signature = Signature((COUNT,), TupleNode((LAYER, MATRIX)))
    program = compiler(signature, filling(signature))
    wrong: list[int] = []

    def work(start: int) -> None:
        held: list[tuple[int, np.ndarray]] = []
        for value in range(start, start + (2_000 if compiler.native else 300)):
            layer, matrix = program(np.array(value))
            for item in (*layer.fields, matrix):
                held.append((value, item.array))
            del held[:-20]
            wrong.extend(value for value, array in held if (array != value).any())

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(10_000 * index,)) for index in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


def test_many_threads_whose_kernels_fail(compiler: Compiler) -> None:
    """The details are those of the call, whatever other threads do to the arena."""
    signature = Signature((COUNT,), MATRIX)
    own = "%own = load i64, ptr %in0\n  store i64 %own, ptr %arena"
    kernel = failing(signature).replace("store i64 7, ptr %arena", own)
    program = compiler(signature, kernel)
    wrong: list[tuple[int, tuple[object, ...]]] = []

    def work(value: int) -> None:
        for _ in range(500):
            try:
                program(np.array(value))
            except IndexError as error:
                if error.args != (value, value, -9):
                    wrong.append((value, error.args))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(index + 1,)) for index in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []
