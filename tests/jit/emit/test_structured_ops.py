"""Control flow through every stage and compiled: what it computes, bit by bit."""

from __future__ import annotations

import time
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.driver.stages import passes_to
from nnkit.core.errors import IndexOutOfRangeError, ShapeError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Stage
from nnkit.core.passes.flatten import Flatten
from nnkit.core.passes.pipeline import run_pipeline
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.verify import verify
from nnkit.jit.emit.program import MOST_OPTIMIZED_LOOPS
from nnkit.jit.executable import kernel_text
from nnkit.jit.llvm import DEEP_LOOPS
from tests.patience import PATIENCE
from tests.programs import Program, flat, programs

from .lowering import check, scheduled_module
from .running import CheckFailed, run
from .test_program import EXACT

F32 = np.float32


def counted(count: str, state: str, body: str, *, types: str, result: str | None = None) -> str:
    """@f(%n, state…): `body`, which yields the state, for every index below %n."""
    names = [part.split(":")[0].strip() for part in state.split(", ")]
    plain = [f"{name}0: {type}" for name, type in zip(names, types.split(", "), strict=True)]
    kinds = types.split(", ")
    returned = result or f"({', '.join(kinds)})" if len(kinds) > 1 else kinds[0]
    outs = ", ".join(f"{name}9" for name in names)
    together = (
        f"    %r = literal ({', '.join(f'{n}9: {t}' for n, t in zip(names, kinds, strict=True))}): {returned}\n"
        f"    return %r: {returned}"
        if len(kinds) > 1
        else f"    return {names[0]}9: {kinds[0]}"
    )
    return f"""
func @f: (i64, {types}) -> {returned} {{
'entry(%n: i64, {", ".join(plain)}):
    {outs} = for 0: i64 upto {count} carrying {", ".join(plain)} {{
    'body(%i: i64, {state}):
{body}
    }}
{together}
}}
"""


def test_an_if_runs_one_body() -> None:
    text = """
func @f: (bool, <3 x f32>, <3 x f32>) -> <3 x f32> {
'entry(%c: bool, %x: <3 x f32>, %y: <3 x f32>):
    %r = if %c: bool -> <3 x f32> {
    'then():
        %s = add %x: <3 x f32>, %y: <3 x f32>
        yield %s: <3 x f32>
    } else {
    'else():
        yield %y: <3 x f32>
    }
    return %r: <3 x f32>
}
"""
    x, y = np.arange(3, dtype=F32), np.full(3, 10, F32)
    np.testing.assert_array_equal(check(text, True, x, y)[0], x + y)
    np.testing.assert_array_equal(check(text, False, x, y)[0], y)


def test_an_if_without_results_and_one_that_yields_the_same_twice() -> None:
    text = """
func @f: (bool, f32) -> (f32, f32, f32) {
'entry(%c: bool, %x: f32):
    if %c: bool {
    'then():
        yield
    } else {
    'else():
        yield
    }
    %a, %b, %l = if %c: bool -> f32, f32, f32 {
    'then():
        %s = add %x: f32, 1: f32
        yield %s: f32, %s: f32, 7: f32
    } else {
    'else():
        yield %x: f32, %x: f32, %x: f32
    }
    %r = literal (%a: f32, %b: f32, %l: f32): (f32, f32, f32)
    return %r: (f32, f32, f32)
}
"""
    assert [float(v) for v in check(text, True, F32(2))] == [3, 3, 7]
    assert [float(v) for v in check(text, False, F32(2))] == [2, 2, 2]


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_an_accumulator_is_updated_in_place(n: int) -> None:
    text = """
func @f: (i64, <40 x f32>, <40 x f32>) -> <40 x f32> {
'entry(%n: i64, %a0: <40 x f32>, %x: <40 x f32>):
    %r = for 0: i64 upto %n: i64 carrying %a0: <40 x f32> {
    'body(%i: i64, %a: <40 x f32>):
        %b = add %a: <40 x f32>, %x: <40 x f32>
        yield %b: <40 x f32>
    }
    return %r: <40 x f32>
}
"""
    a, x = np.zeros(40, F32), np.arange(40, dtype=F32)
    np.testing.assert_array_equal(check(text, n, a, x)[0], a + n * x)


def test_conditional_updates_of_an_accumulator() -> None:
    text = """
func @f: (i64, <40 x f32>, <40 x f32>) -> <40 x f32> {
'entry(%n: i64, %a0: <40 x f32>, %x: <40 x f32>):
    %r = for 0: i64 upto %n: i64 carrying %a0: <40 x f32> {
    'body(%i: i64, %a: <40 x f32>):
        %odd = modulo %i: i64, 2: i64
        %c = equal %odd: i64, 1: i64
        %b = if %c: bool -> <40 x f32> {
        'then():
            %s = add %a: <40 x f32>, %x: <40 x f32>
            yield %s: <40 x f32>
        } else {
        'else():
            yield %a: <40 x f32>
        }
        yield %b: <40 x f32>
    }
    return %r: <40 x f32>
}
"""
    x = np.arange(40, dtype=F32)
    np.testing.assert_array_equal(check(text, 5, np.zeros(40, F32), x)[0], 2 * x)


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
@pytest.mark.parametrize("shape", ["f32", "<5 x f32>"])
def test_carried_values_change_places(order: tuple[int, ...], shape: str) -> None:
    names = ["%a", "%b", "%c"]
    body = f"        yield {', '.join(f'{names[k]}: {shape}' for k in order)}"
    state = ", ".join(f"{name}: {shape}" for name in names)
    text = counted("%n: i64", state, body, types=", ".join([shape] * 3))
    size = () if shape == "f32" else (5,)
    values = [np.full(size, k + 1, F32) for k in range(3)]
    for n in (0, 1, 2, 3):
        wanted = list(values)
        for _ in range(n):
            wanted = [wanted[k] for k in order]
        for found, value in zip(check(text, n, *values), wanted, strict=True):
            np.testing.assert_array_equal(found, value)


@pytest.mark.parametrize("shape", ["f32", "<5 x f32>"])
def test_what_is_read_after_its_successor_is_made_stays(shape: str) -> None:
    body = f"""
        %s = add %a: {shape}, %b: {shape}
        %t = multiply %a: {shape}, %s: {shape}
        yield %s: {shape}, %t: {shape}"""
    text = counted("%n: i64", f"%a: {shape}, %b: {shape}", body, types=f"{shape}, {shape}")
    size = () if shape == "f32" else (5,)
    check(text, 4, np.full(size, 2, F32), np.full(size, 3, F32))


@pytest.mark.parametrize("shape", ["i64", "<3 x i64>"])
def test_the_same_value_is_carried_twice_and_yielded_twice(shape: str) -> None:
    text = f"""
func @f: (i64, {shape}) -> ({shape}, {shape}, {shape}) {{
'entry(%n: i64, %x: {shape}):
    %p, %q = for 0: i64 upto %n: i64 carrying %x: {shape}, %x: {shape} {{
    'body(%i: i64, %a: {shape}, %b: {shape}):
        %s = add %a: {shape}, %b: {shape}
        yield %s: {shape}, %s: {shape}
    }}
    %r = literal (%p: {shape}, %q: {shape}, %p: {shape}): ({shape}, {shape}, {shape})
    return %r: ({shape}, {shape}, {shape})
}}
"""
    size = () if shape == "i64" else (3,)
    for found in check(text, 3, np.full(size, 5, np.int64)):
        np.testing.assert_array_equal(found, np.full(size, 40))


def test_a_value_carried_that_is_an_input_too() -> None:
    text = """
func @f: (<4 x f32>) -> (<4 x f32>, <4 x f32>) {
'entry(%x: <4 x f32>):
    %y = add %x: <4 x f32>, %x: <4 x f32>
    %z = for 0: i64 upto 3: i64 carrying %y: <4 x f32> {
    'body(%i: i64, %a: <4 x f32>):
        %s = multiply %a: <4 x f32>, %y: <4 x f32>
        yield %s: <4 x f32>
    }
    %w = for 0: i64 upto 3: i64 carrying %z: <4 x f32> {
    'body(%i: i64, %a: <4 x f32>):
        %s = multiply %a: <4 x f32>, 0.5: f32
        yield %s: <4 x f32>
    }
    %r = literal (%z: <4 x f32>, %w: <4 x f32>): (<4 x f32>, <4 x f32>)
    return %r: (<4 x f32>, <4 x f32>)
}
"""
    check(text, np.arange(4, dtype=F32))


def test_fibonacci_by_while() -> None:
    text = """
func @f: (i64) -> i64 {
'entry(%n: i64):
    %i, %a, %b = while carrying 0: i64, 0: i64, 1: i64 {
    'condition(%i: i64, %a: i64, %b: i64):
        %more = lessThan %i: i64, %n: i64
        yield %more: bool
    } do {
    'body(%i: i64, %a: i64, %b: i64):
        %j = add %i: i64, 1: i64
        %s = add %a: i64, %b: i64
        yield %j: i64, %b: i64, %s: i64
    }
    return %a: i64
}
"""
    assert [int(check(text, n)[0]) for n in (0, 1, 2, 50)] == [0, 1, 1, 12586269025]


def test_newtons_method_on_tensors() -> None:
    text = """
func @f: (<6 x f64>) -> (<6 x f64>, i64) {
'entry(%a: <6 x f64>):
    %x, %k = while carrying %a: <6 x f64>, 0: i64 {
    'condition(%x: <6 x f64>, %k: i64):
        %s = multiply %x: <6 x f64>, %x: <6 x f64>
        %d = subtract %s: <6 x f64>, %a: <6 x f64>
        %e = multiply %d: <6 x f64>, %d: <6 x f64>
        %worst = reduce %e: <6 x f64> by max along 0
        %far = greaterThan %worst: f64, 1e-20: f64
        %few = lessThan %k: i64, 50: i64
        %more = and %far: bool, %few: bool
        yield %more: bool
    } do {
    'body(%x: <6 x f64>, %k: i64):
        %q = divide %a: <6 x f64>, %x: <6 x f64>
        %s = add %q: <6 x f64>, %x: <6 x f64>
        %y = multiply %s: <6 x f64>, 0.5: f64
        %l = add %k: i64, 1: i64
        yield %y: <6 x f64>, %l: i64
    }
    %r = literal (%x: <6 x f64>, %k: i64): (<6 x f64>, i64)
    return %r: (<6 x f64>, i64)
}
"""
    a = np.array([1.0, 2, 3, 4, 100, 0.25])
    found, _ = check(text, a)
    np.testing.assert_allclose(found, np.sqrt(a), rtol=1e-12)


@pytest.mark.parametrize("n", [3, 40])
def test_powers_of_a_matrix(n: int) -> None:
    type = f"<{n} x {n} x f64>"
    text = f"""
func @f: ({type}, i64) -> ({type}, {type}) {{
'entry(%m: {type}, %k: i64):
    %one = add %m: {type}, 0.0: f64
    %p = for 0: i64 upto %k: i64 carrying %one: {type} {{
    'body(%i: i64, %x: {type}):
        %y = dot %x: {type}, %m: {type}
        yield %y: {type}
    }}
    %s = for 0: i64 upto %k: i64 carrying %m: {type} {{
    'body(%i: i64, %x: {type}):
        %y = dot %x: {type}, %x: {type}
        yield %y: {type}
    }}
    %r = literal (%p: {type}, %s: {type}): ({type}, {type})
    return %r: ({type}, {type})
}}
"""
    m = np.random.default_rng(0).integers(0, 2, (n, n)).astype(np.float64)
    power, square = check(text, m, 3)
    np.testing.assert_array_equal(power, np.linalg.matrix_power(m, 4))
    np.testing.assert_array_equal(square, np.linalg.matrix_power(m, 8))


GRID = {
    "G": "<8 x 8 x i32>",
    "B": "<8 x 8 x bool>",
    "A": "<5 x 8 x 8 x i32>",
    "W": "<10 x 10 x i32>",
}
LIFE = """
func @f: ({G}) -> ({G}, {A}, <5 x i32>) {{
'entry(%start: {G}):
    %last, %all, %alive = for 0: i64 upto 5: i64 carrying %start: {G} stacking {A}, <5 x i32> {{
    'body(%i: i64, %g: {G}):
        %wide = pad %g: {G} by 0: i32 low (1, 1) high (1, 1)
        %0 = slice %wide: {W} from (0, 0) upto (8, 8)
        %1 = slice %wide: {W} from (0, 1) upto (8, 9)
        %2 = slice %wide: {W} from (0, 2) upto (8, 10)
        %3 = slice %wide: {W} from (1, 0) upto (9, 8)
        %5 = slice %wide: {W} from (1, 2) upto (9, 10)
        %6 = slice %wide: {W} from (2, 0) upto (10, 8)
        %7 = slice %wide: {W} from (2, 1) upto (10, 9)
        %8 = slice %wide: {W} from (2, 2) upto (10, 10)
        %a = add %0: {G}, %1: {G}
        %b = add %2: {G}, %3: {G}
        %c = add %5: {G}, %6: {G}
        %d = add %7: {G}, %8: {G}
        %e = add %a: {G}, %b: {G}
        %h = add %c: {G}, %d: {G}
        %n = add %e: {G}, %h: {G}
        %three = equal %n: {G}, 3: i32
        %two = equal %n: {G}, 2: i32
        %was = equal %g: {G}, 1: i32
        %stays = and %two: {B}, %was: {B}
        %lives = or %three: {B}, %stays: {B}
        %next = dataTypeCast %lives: {B} to i32
        %count = reduce %next: {G} by add along 0, 1
        yield %next: {G}, %g: {G}, %count: i32
    }}
    %r = literal (%last: {G}, %all: {A}, %alive: <5 x i32>): ({G}, {A}, <5 x i32>)
    return %r: ({G}, {A}, <5 x i32>)
}}
""".format(**GRID)


def test_the_game_of_life_stacks_its_generations() -> None:
    start = np.zeros((8, 8), np.int32)
    start[[0, 1, 2, 2, 2], [1, 2, 0, 1, 2]] = 1  # a glider: moves one place in four generations
    last, generations, alive = check(LIFE, start)
    np.testing.assert_array_equal(generations[4], np.roll(start, (1, 1), (0, 1)))
    np.testing.assert_array_equal(generations[1:].sum((1, 2)), alive[:-1])
    assert last.sum() == alive[-1] == 5


def test_rows_of_what_is_carried_are_read_by_the_index() -> None:
    text = """
func @f: (<6 x 3 x f32>) -> (<3 x f32>, <6 x 3 x f32>) {
'entry(%x: <6 x 3 x f32>):
    %zero = literal 0: <3 x f32>
    %sum, %all = for 0: i64 upto 6: i64 carrying %zero: <3 x f32> stacking <6 x 3 x f32> {
    'body(%i: i64, %s: <3 x f32>):
        %at = shapeCast %i: i64 to 1
        %row = gather %x: <6 x 3 x f32> at %at: <1 x i64> along 0
        %flat = shapeCast %row: <1 x 3 x f32> to 3
        %t = add %s: <3 x f32>, %flat: <3 x f32>
        yield %t: <3 x f32>, %t: <3 x f32>
    }
    %r = literal (%sum: <3 x f32>, %all: <6 x 3 x f32>): (<3 x f32>, <6 x 3 x f32>)
    return %r: (<3 x f32>, <6 x 3 x f32>)
}
"""
    x = np.arange(18, dtype=F32).reshape(6, 3)
    _, found = check(text, x)
    np.testing.assert_array_equal(found, np.cumsum(x, 0))


@pytest.mark.parametrize("dtype", ["bool", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"])
def test_all_element_types_are_carried_and_stacked(dtype: str) -> None:
    row, many, rows = f"<3 x {dtype}>", f"<4 x {dtype}>", f"<4 x 3 x {dtype}>"
    result = f"({dtype}, {row}, {many}, {rows})"
    text = f"""
func @f: ({dtype}, {row}) -> {result} {{
'entry(%x: {dtype}, %y: {row}):
    %a, %b, %p, %q = for 2: i64 upto 6: i64 carrying %x: {dtype}, %y: {row} stacking {many}, {rows} {{
    'body(%i: i64, %u: {dtype}, %v: {row}):
        %w = select %u: {dtype}, %v: {row} by true: bool
        yield %u: {dtype}, %w: {row}, %u: {dtype}, %v: {row}
    }}
    %r = literal (%a: {dtype}, %b: {row}, %p: {many}, %q: {rows}): {result}
    return %r: {result}
}}
"""
    kind = {"bool": np.bool_, "f16": np.float16, "bf16": np.float32, "f32": np.float32}
    numpy = kind.get(dtype) or np.dtype(dtype.replace("i", "int").replace("f", "float"))
    check(text, np.asarray(1, numpy), np.asarray([0, 1, 0], numpy))


def test_empty_ranges_and_empty_tensors() -> None:
    text = """
func @f: (i64, i64, <0 x f32>) -> (<0 x f32>, <0 x 3 x f32>, i64) {
'entry(%lo: i64, %hi: i64, %e: <0 x f32>):
    %x, %k, %all = for %lo: i64 upto %hi: i64 carrying %e: <0 x f32>, 7: i64 stacking <0 x 3 x f32> {
    'body(%i: i64, %x: <0 x f32>, %k: i64):
        %y = add %x: <0 x f32>, 1: f32
        %row = literal 2: <3 x f32>
        yield %y: <0 x f32>, %i: i64, %row: <3 x f32>
    }
    %r = literal (%x: <0 x f32>, %all: <0 x 3 x f32>, %k: i64): (<0 x f32>, <0 x 3 x f32>, i64)
    return %r: (<0 x f32>, <0 x 3 x f32>, i64)
}
"""
    for low, high in ((3, 3), (5, -5), (2**62, -(2**63))):
        assert int(check(text, low, high, np.zeros(0, F32))[2]) == 7


COUNTS = """
func @f: (i64, i64) -> <3 x i64> {
'entry(%lo: i64, %hi: i64):
    %all = for %lo: i64 upto %hi: i64 stacking <3 x i64> {
    'body(%i: i64):
        yield %i: i64
    }
    return %all: <3 x i64>
}
"""


def test_a_for_runs_once_per_element_that_it_stacks() -> None:
    np.testing.assert_array_equal(check(COUNTS, -1, 2)[0], [-1, 0, 1])
    module = scheduled_module(COUNTS)
    for low, high, trips in ((0, 4, 4), (0, 2, 2), (3, 0, 0), (-(2**63), 2**63 - 1, -1)):
        with pytest.raises(CheckFailed) as failed:
            run(module.functions["f"], [np.asarray(low), np.asarray(high)])
        assert failed.value.args[1:] == (trips, 3)
        assert isinstance(failed.value.error, ShapeError)
        assert f"{trips} iterations" in str(failed.value.error)


def test_an_index_outside_is_found_inside_of_loops() -> None:
    text = """
func @f: (i64, <5 x f32>, <2 x i64>) -> <2 x f32> {
'entry(%n: i64, %x: <5 x f32>, %k0: <2 x i64>):
    %zero = literal 0: <2 x f32>
    %k, %s = for 0: i64 upto %n: i64 carrying %k0: <2 x i64>, %zero: <2 x f32> {
    'body(%i: i64, %k: <2 x i64>, %s: <2 x f32>):
        %c = greaterThan %i: i64, 1: i64
        %v = if %c: bool -> <2 x f32> {
        'then():
            %e = gather %x: <5 x f32> at %k: <2 x i64> along 0
            yield %e: <2 x f32>
        } else {
        'else():
            %e = literal 1: <2 x f32>
            yield %e: <2 x f32>
        }
        %t = add %s: <2 x f32>, %v: <2 x f32>
        %l = add %k: <2 x i64>, 1: i64
        yield %l: <2 x i64>, %t: <2 x f32>
    }
    return %s: <2 x f32>
}
"""
    x = np.arange(5, dtype=F32)
    check(text, 4, x, np.array([0, 1]))
    module = scheduled_module(text)
    with pytest.raises(CheckFailed) as failed:
        run(module.functions["f"], [np.asarray(5), x, np.array([0, 1])])
    assert failed.value.args[1:] == (5, 5)
    assert isinstance(failed.value.error, IndexOutOfRangeError)


def test_an_if_inside_a_for_inside_a_while() -> None:
    text = """
func @f: (<4 x f32>, i64) -> (<4 x f32>, i64) {
'entry(%x: <4 x f32>, %n: i64):
    %y, %k = while carrying %x: <4 x f32>, 0: i64 {
    'condition(%v: <4 x f32>, %k: i64):
        %more = lessThan %k: i64, %n: i64
        yield %more: bool
    } do {
    'body(%v: <4 x f32>, %k: i64):
        %w = for 0: i64 upto %k: i64 carrying %v: <4 x f32> {
        'body(%i: i64, %u: <4 x f32>):
            %r = modulo %i: i64, 2: i64
            %c = equal %r: i64, 0: i64
            %t = if %c: bool -> <4 x f32> {
            'then():
                %a = add %u: <4 x f32>, %x: <4 x f32>
                yield %a: <4 x f32>
            } else {
            'else():
                %s = reverse %u: <4 x f32> along 0
                yield %s: <4 x f32>
            }
            yield %t: <4 x f32>
        }
        %l = add %k: i64, 1: i64
        yield %w: <4 x f32>, %l: i64
    }
    %r = literal (%y: <4 x f32>, %k: i64): (<4 x f32>, i64)
    return %r: (<4 x f32>, i64)
}
"""
    check(text, np.arange(4, dtype=F32), 6)


def nested(depth: int, kind: str) -> str:
    """Control flow `depth` levels deep."""
    head = {
        "if": "{0} = if %c: bool -> f32 {{",
        "for": "{0} = for 0: i64 upto 1: i64 carrying {1}: f32 {{",
    }[kind]
    lines = []
    for level in range(depth):
        lines.append(head.format(f"%r{level}", f"%x{level}"))
        argument = f"%i{level}: i64, %x{level + 1}: f32" if kind == "for" else ""
        lines.append(f"'b({argument}):")
        if kind == "if":
            lines.append(f"%x{level + 1} = add %x{level}: f32, 1: f32")
    lines.append(f"%r{depth} = multiply %x{depth}: f32, 2: f32")
    for level in reversed(range(depth)):
        lines.append(f"yield %r{level + 1}: f32\n}}")
        if kind == "if":
            lines[-1] += f" else {{\n'e():\nyield %x{level}: f32\n}}"
    body = "\n".join(lines)
    return f"\nfunc @f: (bool, f32) -> f32 {{\n'entry(%c: bool, %x0: f32):\n{body}\nreturn %r0: f32\n}}\n"


@pytest.mark.parametrize("kind", ["if", "for"])
def test_deep_nesting_compiles(kind: str) -> None:
    module = scheduled_module(nested(200, kind))
    found = run(module.functions["f"], [np.asarray(True), np.asarray(1, F32)])
    assert float(found[0]) == (402 if kind == "if" else 2)


@pytest.mark.parametrize("more", [0, 1])
def test_loops_nested_too_deeply_to_optimize_compile_all_the_same(more: int) -> None:
    function = scheduled_module(nested(MOST_OPTIMIZED_LOOPS + more, "for")).functions["f"]
    assert (DEEP_LOOPS in kernel_text(function)) == bool(more)
    assert float(run(function, [np.asarray(True), np.asarray(1, F32)])[0]) == 2


def test_scalar_loops_are_tight() -> None:
    text = """
func @f: (i64) -> i64 {
'entry(%n: i64):
    %i, %a = while carrying 0: i64, 0: i64 {
    'condition(%i: i64, %a: i64):
        %more = lessThan %i: i64, %n: i64
        yield %more: bool
    } do {
    'body(%i: i64, %a: i64):
        %j = add %i: i64, 1: i64
        %t = multiply %a: i64, 3: i64
        %s = add %t: i64, %i: i64
        yield %j: i64, %s: i64
    }
    return %a: i64
}
"""
    module = scheduled_module(text)
    start = time.perf_counter()
    found = run(module.functions["f"], [np.asarray(10**8)])
    assert time.perf_counter() - start < 10 * PATIENCE
    assert int(found[0]) == _sum_of_powers(10**8)


def _sum_of_powers(n: int) -> int:
    """a ← 3 · a + i for i below n, in 64 bits: (3ⁿ − 2n − 1) / 4."""
    total = (pow(3, n, 1 << 66) - 2 * n - 1) // 4 % (1 << 64)
    return total - (1 << 64) if total >> 63 else total


SCALARS = ("%a", "%b", "%c")
SHAPES = {"f32": (), "<6 x f32>": (6,), "<2 x 3 x f32>": (2, 3), "<4 x 64 x f32>": (4, 64)}


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """Loops over three tensors of any updates, yielded in any order, perhaps as they are."""
    shape = draw(st.sampled_from(list(SHAPES)))
    known = list(SCALARS)
    lines: list[str] = []
    for number in range(draw(st.integers(0, 5))):
        kinds = ["binary", "if", "for", *["rows"] * (len(SHAPES[shape]) == 2)]
        kind = draw(st.sampled_from(kinds))
        x, y = draw(st.sampled_from(known)), draw(st.sampled_from(known))
        name = f"%v{number}"
        if kind == "binary":
            op = draw(st.sampled_from(["add", "subtract", "max"]))
            lines.append(f"{name} = {op} {x}: {shape}, {y}: {shape}")
        elif kind == "rows":
            rows = SHAPES[shape][0]
            lines.append(
                f"""%m{number} = reduce {x}: {shape} by max along 1
                %n{number} = shapeCast %m{number}: <{rows} x f32> to {rows} x 1
                {name} = subtract {y}: {shape}, %n{number}: <{rows} x 1 x f32>"""
            )
        elif kind == "if":
            lines.append(
                f"""{name}, {name}w = if %even: bool -> {shape}, {shape} {{
                't():
                %z{number} = add {x}: {shape}, {y}: {shape}
                yield %z{number}: {shape}, {x}: {shape}
                }} else {{
                'e():
                yield {y}: {shape}, {draw(st.sampled_from(known))}: {shape}
                }}"""
            )
            known.append(f"{name}w")
        else:
            lines.append(
                f"""{name}, {name}w = for 0: i64 upto %i: i64 carrying {x}: {shape}, {y}: {shape} {{
                'b(%k{number}: i64, %p{number}: {shape}, %q{number}: {shape}):
                %z{number} = subtract %q{number}: {shape}, {draw(st.sampled_from(known))}: {shape}
                yield %z{number}: {shape}, %p{number}: {shape}
                }}"""
            )
            known.append(f"{name}w")
        known.append(name)
    yields = ", ".join(f"{draw(st.sampled_from(known))}: {shape}" for _ in SCALARS)
    body = "\n".join(
        [
            "%two = modulo %i: i64, 2: i64",
            "%even = equal %two: i64, 0: i64",
            *lines,
            f"yield {yields}",
        ]
    )
    state = ", ".join(f"{name}: {shape}" for name in SCALARS)
    return counted("%n: i64", state, body, types=", ".join([shape] * 3))


@given(bodies(), st.integers(0, 4))
def test_any_loop_agrees_with_the_evaluator(text: str, n: int) -> None:
    shape = next(shape for type, shape in reversed(SHAPES.items()) if type in text)
    random = np.random.default_rng(0)
    check(text, n, *(random.integers(-9, 9, shape).astype(F32) for _ in SCALARS))


@given(programs(ops=EXACT, control=True), st.booleans())
def test_programs_with_control_flow_agree_bit_by_bit(program: Program, fused: bool) -> None:
    module, arguments = program.module, program.arguments
    wanted = flat(evaluate(module, program.entry, *arguments))
    module.stage = Stage.OPTIMIZABLE
    run_pipeline(module, (Flatten(), *passes_to(Stage.OPTIMIZED, program.entry)))
    generate_compute(module)
    if fused:
        fuse(module)
    schedule(module, Target(vector_bytes=64))
    verify(module)
    found = run(module.functions[program.entry], flat(arguments), module.functions)
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(x, y)
