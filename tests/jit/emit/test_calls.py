"""Calls that stay: recursion through every stage, its limit, and what a failure inside it does."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, f64
from nnkit.core.errors import IndexOutOfRangeError, RecursionDepthError
from nnkit.core.types import Array
from nnkit.jit.emit.calls import ON_STACK

from .lowering import check, scheduled_module
from .running import CheckFailed, run

Row = Tensor1D[f64]
Number = Scalar[f64]

FACTORIAL = """
func @f: (i64) -> i64 {
'entry(%n: i64):
    %done = lessThan %n: i64, 2: i64
    %r = if %done: bool -> i64 {
    'then():
        yield 1: i64
    } else {
    'else():
        %m = subtract %n: i64, 1: i64
        %s = apply @f(%m): (i64) -> i64
        %p = multiply %n: i64, %s: i64
        yield %p: i64
    }
    return %r: i64
}
"""

ACKERMANN = """
func @f: (i64, i64) -> i64 {
'entry(%m: i64, %n: i64):
    %none = equal %m: i64, 0: i64
    %r = if %none: bool -> i64 {
    'then():
        %k = add %n: i64, 1: i64
        yield %k: i64
    } else {
    'else():
        %l = subtract %m: i64, 1: i64
        %zero = equal %n: i64, 0: i64
        %s = if %zero: bool -> i64 {
        'then():
            yield 1: i64
        } else {
        'else():
            %k = subtract %n: i64, 1: i64
            %t = apply @f(%m, %k): (i64, i64) -> i64
            yield %t: i64
        }
        %t = apply @f(%l, %s): (i64, i64) -> i64
        yield %t: i64
    }
    return %r: i64
}
"""

EVEN_AND_ODD = """
func @f: (i64) -> bool {
'entry(%n: i64):
    %done = equal %n: i64, 0: i64
    %r = if %done: bool -> bool {
    'then():
        yield true: bool
    } else {
    'else():
        %m = subtract %n: i64, 1: i64
        %s = apply @odd(%m): (i64) -> bool
        yield %s: bool
    }
    return %r: bool
}

func @odd: (i64) -> bool {
'entry(%n: i64):
    %done = equal %n: i64, 0: i64
    %r = if %done: bool -> bool {
    'then():
        yield false: bool
    } else {
    'else():
        %m = subtract %n: i64, 1: i64
        %s = apply @f(%m): (i64) -> bool
        yield %s: bool
    }
    return %r: bool
}
"""


def halves(size: int) -> str:
    """@f(%x, %n) = (f(x / 2, n - 1) + x, n), on tensors of `size`; the tuple is returned as it came once."""
    type = f"<{size} x f64>"
    return f"""
func @f: ({type}, i64) -> ({type}, i64) {{
'entry(%x: {type}, %n: i64):
    %r = apply @g(%x, %n): ({type}, i64) -> ({type}, i64)
    return %r: ({type}, i64)
}}

func @g: ({type}, i64) -> ({type}, i64) {{
'entry(%x: {type}, %n: i64):
    %more = greaterThan %n: i64, 0: i64
    %y, %k = if %more: bool -> {type}, i64 {{
    'then():
        %m = subtract %n: i64, 1: i64
        %h = multiply %x: {type}, 0.5: f64
        %both = apply @g(%h, %m): ({type}, i64) -> ({type}, i64)
        %z = extract 0 from %both: ({type}, i64)
        %count = extract 1 from %both: ({type}, i64)
        %s = add %z: {type}, %x: {type}
        %c = add %count: i64, 1: i64
        yield %s: {type}, %c: i64
    }} else {{
    'else():
        yield %x: {type}, 0: i64
    }}
    %r = literal (%y: {type}, %k: i64): ({type}, i64)
    return %r: ({type}, i64)
}}
"""


def test_factorial() -> None:
    assert [int(check(FACTORIAL, n)[0]) for n in (0, 1, 5, 20)] == [1, 1, 120, 2432902008176640000]


def test_ackermanns_function() -> None:
    assert [int(check(ACKERMANN, m, n)[0]) for m, n in ((0, 3), (1, 2), (2, 3))] == [4, 4, 9]
    module = scheduled_module(ACKERMANN)
    arguments = [np.asarray(3), np.asarray(6)]
    assert int(run(module.functions["f"], arguments, module.functions)[0]) == 509


def test_mutual_recursion() -> None:
    assert [bool(check(EVEN_AND_ODD, n)[0]) for n in (0, 1, 6, 7)] == [True, False, True, False]


@pytest.mark.parametrize("size", [1, 3, ON_STACK // 8, ON_STACK])
def test_tensors_on_the_stack_and_the_heap(size: int) -> None:
    x = np.arange(size, dtype=np.float64)
    found, count = check(halves(size), x, 5)
    np.testing.assert_array_equal(found, x * (2 - 0.5**5))
    assert count == 5


def test_calls_in_loops_and_loops_in_callees() -> None:
    text = """
func @f: (i64, <4 x i64>) -> (<4 x i64>, <3 x i64>) {
'entry(%n: i64, %x: <4 x i64>):
    %y, %all = for 0: i64 upto 3: i64 carrying %x: <4 x i64> stacking <3 x i64> {
    'body(%i: i64, %v: <4 x i64>):
        %w = apply @sum(%v, %i): (<4 x i64>, i64) -> <4 x i64>
        %k = apply @count(%i): (i64) -> i64
        yield %w: <4 x i64>, %k: i64
    }
    %r = literal (%y: <4 x i64>, %all: <3 x i64>): (<4 x i64>, <3 x i64>)
    return %r: (<4 x i64>, <3 x i64>)
}

func @sum: (<4 x i64>, i64) -> <4 x i64> {
'entry(%x: <4 x i64>, %n: i64):
    %r = for 0: i64 upto %n: i64 carrying %x: <4 x i64> {
    'body(%i: i64, %v: <4 x i64>):
        %t = apply @sum(%v, %i): (<4 x i64>, i64) -> <4 x i64>
        %w = add %t: <4 x i64>, %x: <4 x i64>
        yield %w: <4 x i64>
    }
    return %r: <4 x i64>
}

func @count: (i64) -> i64 {
'entry(%n: i64):
    %r = add %n: i64, 10: i64
    return %r: i64
}
"""
    check(text, 3, np.arange(4))


def fails(module: Any, arguments: list[Array], **options: int) -> Exception:
    with pytest.raises(CheckFailed) as failed:
        run(module.functions["f"], arguments, module.functions, **options)
    return failed.value.error


ENDLESS = """
func @f: (i64) -> i64 {
'entry(%n: i64):
    %m = add %n: i64, 1: i64
    %r = apply @f(%m): (i64) -> i64
    %s = add %r: i64, %n: i64
    return %s: i64
}
"""


def test_an_endless_recursion_is_an_error() -> None:
    module = scheduled_module(ENDLESS)
    for stack_bytes in (1 << 16, 1 << 20):
        error = fails(module, [np.asarray(0)], stack_bytes=stack_bytes)
        assert isinstance(error, RecursionDepthError) and isinstance(error, RecursionError)
        assert (
            f"@f is called too deeply: its calls would take more than {stack_bytes} bytes"
            in str(error)
        )


def test_the_limit_is_one_of_bytes_of_stack() -> None:
    module = scheduled_module(FACTORIAL)
    function, functions = module.functions["f"], module.functions
    assert run(
        function, [np.asarray(4000)], functions, stack_bytes=1 << 20
    )  # some 100 bytes a call
    assert isinstance(fails(module, [np.asarray(4000)], stack_bytes=1 << 16), RecursionDepthError)


@pytest.mark.parametrize("size", [3, ON_STACK])
def test_deep_recursion_in_a_thread(size: int) -> None:
    found: list[Exception] = []
    module = scheduled_module(halves(size))
    arguments = [np.zeros(size), np.asarray(10**6)]
    thread = threading.Thread(target=lambda: found.append(fails(module, arguments)))
    thread.start()
    thread.join()
    assert isinstance(found[0], RecursionDepthError)


def test_a_failure_in_a_callee_is_that_of_the_program() -> None:
    text = """
func @f: (i64, <3 x f32>) -> f32 {
'entry(%n: i64, %x: <3 x f32>):
    %done = equal %n: i64, 0: i64
    %r = if %done: bool -> f32 {
    'then():
        yield 0: f32
    } else {
    'else():
        %m = subtract %n: i64, 1: i64
        %s = apply @f(%m, %x): (i64, <3 x f32>) -> f32
        %at = shapeCast %n: i64 to 1
        %e = gather %x: <3 x f32> at %at: <1 x i64> along 0
        %v = shapeCast %e: <1 x f32> to scalar
        %t = add %s: f32, %v: f32
        yield %t: f32
    }
    return %r: f32
}
"""
    x = np.array([1, 2, 4], np.float32)
    assert float(check(text, 2, x)[0]) == 6
    error = fails(scheduled_module(text), [np.asarray(7), x])
    assert isinstance(error, IndexOutOfRangeError)
    assert str(error) == "index 3 is out of range for an axis of extent 3"


@nk.staged
def step_of_many(x: Rep[Row]) -> Rep[Row]:
    """Larger than what is inlined."""
    for _ in range(12):
        x = nk.tanh(x) * x + nk.sin(x)
    return x


@pytest.mark.parametrize("count", [60, 120])
def test_nothing_lives_through_a_chain_of_calls(count: int) -> None:
    """LLVM's register allocation is quadratic in what is alive times the blocks that it is alive in."""

    @nk.staged
    def f(x: Rep[Row]) -> Rep[Number]:
        for _ in range(count):
            x = step_of_many(x)
        return x.sum()

    text = nk.gradient(of=f, wrt=0).llvm(np.ones(5))
    body = text[text.index("@kernel(") :]
    lines = body[: body.index("\n}")].splitlines()
    made = {m[1]: n for n, line in enumerate(lines) if (m := re.match(r"  (%\d+) =", line))}
    far = {
        name
        for n, line in enumerate(lines)
        for name in re.findall(r"%\d+\b", line.partition("=")[2] or line)
        if n - made.get(name, n) > 80
    }
    assert sum("call i64 @kernel.call" in line for line in lines) >= count
    assert len(far) <= 3
