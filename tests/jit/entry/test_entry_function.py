"""What an entry does when something fails: in the kernel, in Python, or for lack of memory."""

import sys
from typing import Any

import numpy as np
import pytest

from nnkit.jit.entry import ArrayNode, RecordNode, Signature, TupleNode, bind, entry_text

from .programs import Array, Compiler, Layer, Tensor2D, copying, example, explain, failing, refuse

CODE = ArrayNode("i64", ())
MATRIX = ArrayNode("f32", (2, 3), Tensor2D)
SIGNATURE = Signature((CODE,), TupleNode((MATRIX, RecordNode(Layer, (MATRIX, CODE)))))


def code(value: int) -> Array:
    """An argument."""
    return np.array(value, np.int64)


def test_the_kernel_says_what_went_wrong(compiler: Compiler) -> None:
    program = compiler(SIGNATURE, failing(SIGNATURE))
    for value in (1, 2, 3, 1 << 40):
        with pytest.raises(IndexError) as caught:
            program(code(value))
        assert caught.value.args == (value, 7, -9)
    assert type(program(code(0))) is tuple


def test_an_explanation_must_raise(compiler: Compiler) -> None:
    def say_nothing(_code: int, _first: int, _second: int) -> None:
        return None

    program = compiler(SIGNATURE, failing(SIGNATURE), explain=say_nothing)
    with pytest.raises(SystemError, match="nothing was raised to explain it"):
        program(code(1))


def test_an_explanation_takes_three_arguments(compiler: Compiler) -> None:
    def too_few(_code: int) -> None:
        return None

    wrong: Any = too_few
    with pytest.raises(TypeError, match="explain must take three arguments"):
        compiler(SIGNATURE, failing(SIGNATURE), explain=wrong)


def test_an_exception_of_the_fallback_passes_through(compiler: Compiler) -> None:
    def fallback(*_: object) -> None:
        raise ZeroDivisionError("mine")

    program = compiler(SIGNATURE, failing(SIGNATURE), fallback=fallback)
    with pytest.raises(ZeroDivisionError, match="mine"):
        program(None)


def test_the_fallback_may_call_the_program(compiler: Compiler) -> None:
    program: Any = None

    def convert(x: object) -> object:
        return program(np.asarray(x, np.float32))

    signature = Signature((MATRIX,), MATRIX)
    program = compiler(signature, copying(signature, [0]), fallback=convert)
    np.testing.assert_array_equal(program([[1, 2, 3], [4, 5, 6]]).array, [[1, 2, 3], [4, 5, 6]])


def test_a_misaligned_arena_is_refused(compiler: Compiler) -> None:
    for arena in (0, 8, -64):
        with pytest.raises(ValueError, match="not aligned"):
            bind(
                64,
                signature=SIGNATURE,
                arena=arena,
                fallback=refuse,
                explain=explain,
                keep_alive=None,
                native=compiler.native,
            )


def test_every_allocation_may_fail(native: Compiler) -> None:
    """Whichever allocation of a call fails, there is a MemoryError and nothing is left behind."""
    testing = pytest.importorskip("_testcapi")
    record = RecordNode(Layer, (MATRIX, TupleNode((MATRIX, MATRIX))))
    signature = Signature((MATRIX,), TupleNode((record, MATRIX, record)))
    program = native(signature, copying(signature, [0] * 7), kept_bytes=0)
    x = example(MATRIX)

    def fail_each_once() -> int:
        for start in range(100):
            testing.set_nomemory(start, 0)
            try:
                result = program(x)
            except MemoryError:
                continue
            finally:
                testing.remove_mem_hooks()
            np.testing.assert_array_equal(result[1].array, x)
            return start
        raise AssertionError("the call never succeeded")

    before = 0
    for _ in range(20):
        assert fail_each_once() >= 7
        before = before or sys.getallocatedblocks()
    assert sys.getallocatedblocks() - before < 100


def test_text_depends_on_the_signature_alone() -> None:
    signature = Signature((CODE, RecordNode(Layer, (CODE, MATRIX))), TupleNode((MATRIX, CODE)))
    first, second = (entry_text(signature, "kernel", "entry", native=True) for _ in range(2))
    assert first == second


def test_names_that_llvm_does_not_take() -> None:
    with pytest.raises(ValueError, match="not a name of LLVM"):
        entry_text(SIGNATURE, "kernel", "my entry", native=True)
