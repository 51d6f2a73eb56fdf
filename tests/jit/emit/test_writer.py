"""Every instruction does what its docstring says, on one lane and on many."""

import ctypes

import numpy as np
import pytest

from nnkit.jit.emit.writer import (
    DOUBLE,
    FLOAT,
    I64,
    PTR,
    Argument,
    FunctionWriter,
    ModuleWriter,
    Register,
    ScalarName,
    constant,
    constants,
    llvm_type,
    poison,
)
from nnkit.jit.llvm import compile_module

from .compiled import NUMPY, Array, elementwise, straight

LANES = [1, 4, 16]
INTEGERS = np.array([0, 1, -1, 2, 7, -7, 100, -100, 2**31 - 1, -(2**31)], np.int32)
FLOATS = np.array([0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 3e38, 1e-45, 7.0], np.float32)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "and_", "or_", "xor", "smin", "smax"])
def test_integer_arithmetic(name: str, lanes: int) -> None:
    x, y = (grid.ravel() for grid in np.meshgrid(INTEGERS, INTEGERS))
    reference = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "and_": np.bitwise_and,
        "or_": np.bitwise_or, "xor": np.bitwise_xor, "smin": np.minimum, "smax": np.maximum,
    }[name]  # fmt: skip
    result = elementwise(getattr(FunctionWriter, name), "i32", lanes, operands=2)(x, y)
    np.testing.assert_array_equal(result, reference(x, y))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("name", ["fadd", "fsub", "fmul", "fdiv", "copysign"])
def test_float_arithmetic(name: str, lanes: int) -> None:
    x, y = (grid.ravel() for grid in np.meshgrid(FLOATS, FLOATS))
    reference = {
        "fadd": np.add, "fsub": np.subtract, "fmul": np.multiply, "fdiv": np.divide,
        "copysign": np.copysign,
    }[name]  # fmt: skip
    result = elementwise(getattr(FunctionWriter, name), "float", lanes, operands=2)(x, y)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(result, reference(x, y))


@pytest.mark.parametrize("lanes", LANES)
def test_division_and_shifts(lanes: int) -> None:
    x = np.array([7, -7, 100, -(2**31)], np.int32)
    for name, expected in {
        "sdiv": [2, -2, 33, -715827882],
        "shl": [56, -56, 800, 0],
        "lshr": [0, 536870911, 12, 268435456],
        "ashr": [0, -1, 12, -268435456],
    }.items():

        def emit(w: FunctionWriter, x: Register, name: str = name) -> Register:
            result: Register = getattr(w, name)(x, constant(x.type, 3))
            return result

        np.testing.assert_array_equal(elementwise(emit, "i32", lanes)(x), expected, name)


@pytest.mark.parametrize("lanes", LANES)
def test_compare_and_select(lanes: int) -> None:
    def greater_or_nan(w: FunctionWriter, x: Register, y: Register) -> Register:
        return w.select(w.fcmp("uge", x, y), x, y)

    x, y = (grid.ravel() for grid in np.meshgrid(FLOATS, FLOATS))
    result = elementwise(greater_or_nan, "float", lanes, operands=2)(x, y)
    np.testing.assert_array_equal(result, np.where(~(x < y), x, y))


def test_fma_rounds_once() -> None:
    x = np.array([1 + 2**-30], np.float64)
    result = elementwise(lambda w, x: w.fma(x, x, constant(x.type, -1.0)), "double", 1)(x)
    assert result[0] == 2**-29 + 2**-60


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("target", ["i8", "i32", "i64"])
def test_fptosi_saturates(target: ScalarName, lanes: int) -> None:
    x = np.array([0.9, -0.9, 126.7, 3e38, -3e38, np.nan, np.inf, -np.inf], np.float32)
    result = elementwise(lambda w, x: w.fptosi(x, target), "float", lanes, result=target)(x)
    half: int = 2 ** (llvm_type(target).bits - 1)
    expected = [0, 0, 126, half - 1, -half, 0, half - 1, -half]
    np.testing.assert_array_equal(result, np.array(expected, NUMPY[target]))


def bfloat_of(x: Array) -> Array:
    """Round float32 or float64 to the 16 bits of bfloat, by exact arithmetic."""
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        _, exponent = np.frexp(wide)
        unit = np.ldexp(1.0, np.maximum(exponent, -125) - 8)
        rounded = np.where(np.isfinite(wide), np.rint(wide / unit) * unit, wide)
        return np.asarray(rounded.astype(np.float32).view(np.uint32) >> 16, np.uint16)


def patterns(scalar: ScalarName, count: int) -> Array:
    """Random bits read as floats (every exponent, subnormals, nans), and ties of narrower types."""
    random = np.random.default_rng(7)
    bits = 8 * np.dtype(NUMPY[scalar]).itemsize
    raw = random.integers(0, 2**bits, count, f"u{bits // 8}")
    ordinary = random.normal(size=count).astype(np.float16).astype(NUMPY[scalar])
    steps = random.integers(-3, 4, count)
    ties = (ordinary * (1 + steps * 2.0**-12)).astype(NUMPY[scalar])
    return np.concatenate([raw.view(NUMPY[scalar]), ordinary, ties])


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("source", ["float", "double"])
def test_truncation_to_half_types(source: ScalarName, lanes: int) -> None:
    x = patterns(source, 20000)
    with np.errstate(all="ignore"):
        half = elementwise(lambda w, x: w.fptrunc(x, "half"), source, lanes, result="half")(x)
        np.testing.assert_array_equal(half, x.astype(np.float16))
    narrow = elementwise(lambda w, x: w.fptrunc(x, "bfloat"), source, lanes, result="bfloat")(x)
    regular = ~np.isnan(x)
    np.testing.assert_array_equal(narrow[regular], bfloat_of(x)[regular])
    assert ((narrow[~regular] & 0x7FFF) > 0x7F80).all()


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("target", ["float", "double"])
def test_extension_of_half_types(target: ScalarName, lanes: int) -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    wide = elementwise(lambda w, x: w.fpext(x, target), "half", lanes, result=target)(
        bits.view(np.float16)
    )
    np.testing.assert_array_equal(wide, bits.view(np.float16).astype(NUMPY[target]))
    wide = elementwise(lambda w, x: w.fpext(x, target), "bfloat", lanes, result=target)(bits)
    with np.errstate(invalid="ignore"):
        expected = (bits.astype(np.uint32) << 16).view(np.float32).astype(NUMPY[target])
    np.testing.assert_array_equal(wide, expected)


def test_integer_to_half_types_rounds_once() -> None:
    x = np.array([0, 1, -1, 257, 2049, 2**24 + 1, 2**31 - 1, 2**17 + 2**9 + 1], np.int32)
    half = elementwise(lambda w, x: w.sitofp(x, "half"), "i32", 4, result="half")(x)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(half, x.astype(np.float64).astype(np.float16))
    narrow = elementwise(lambda w, x: w.sitofp(x, "bfloat"), "i32", 4, result="bfloat")(x)
    np.testing.assert_array_equal(narrow, bfloat_of(x.astype(np.float64)))


def test_masks_and_gather() -> None:
    vector = llvm_type("float", 8)

    def emit(w: FunctionWriter) -> Register:
        memory = w.allocate(vector, 2)
        numbers = w.sitofp(w.lane_numbers("i32", 8), "float")
        w.store(numbers, memory)
        mask = w.icmp(
            "slt", w.lane_numbers("i64", 8), w.splat(w.add(constant(I64, 1), constant(I64, 2)), 8)
        )
        loaded = w.masked_load(memory, mask, constant(vector, 100.0))
        indices = constants("i64", [7, 6, 5, 4, 3, 2, 1, 0])
        gathered = w.gather(w.gep(memory, FLOAT, indices), vector)
        second = w.offset(memory, 32)
        w.store(constant(vector, 0.0), second)
        w.masked_store(gathered, second, mask)
        total = w.fadd(w.reduce("fadd", loaded), w.reduce("fadd", w.load(second, vector)))
        return total

    # lanes 0…2 of the first, 100 elsewhere; then 7 + 6 + 5
    assert straight(emit, "float") == 3 + 500 + 18


def test_lanes() -> None:
    def emit(w: FunctionWriter) -> Register:
        x = w.add(w.lane_numbers("i64", 4), w.splat(w.add(constant(I64, 1), constant(I64, 0)), 4))
        reversed = w.shuffle(x, None, [3, 2, 1, 0])
        joined = w.shuffle(x, reversed, [0, 5, -1, 6])
        changed = w.insert(joined, constant(I64, 50), 2)
        return w.add(w.extract(changed, constant(I64, 1)), w.reduce("add", changed))

    assert straight(emit) == 3 + (1 + 3 + 50 + 2)


@pytest.mark.parametrize("bounds", [(0, 10, 3), (5, 5, 1), (7, 3, 1), (-2, 1, 1)])
@pytest.mark.parametrize("literal", [True, False])
def test_loop(bounds: tuple[int, int, int], literal: bool) -> None:
    def emit(w: FunctionWriter) -> Register:
        start, stop, step = (constant(I64, bound) for bound in bounds)
        if not literal:
            memory = w.allocate(I64)
            w.store(stop, memory)
            stop = w.load(memory, I64)
        with w.loop(start, stop, step, [constant(I64, 0), constant(I64, 1)]) as loop:
            total, product = loop.values
            with w.loop(constant(I64, 0), constant(I64, 2), constant(I64, 1), [total]) as inner:
                inner.carry(w.add(inner.values[0], loop.index))
            loop.carry(inner.results[0], w.mul(product, constant(I64, 3)))
        return w.add(loop.results[0], loop.results[1])

    rounds = range(*bounds)
    assert straight(emit) == 2 * sum(rounds) + 3 ** len(rounds)


def test_carrying_another_number_of_values() -> None:
    w = ModuleWriter().function("f", [], None)
    one = constant(I64, 1)
    with w.loop(one, one, one, [one]) as loop, pytest.raises(ValueError, match="1 values, not 2"):
        loop.carry(one, one)


@pytest.mark.parametrize("rarely", [True, False])
def test_when(rarely: bool) -> None:
    def emit(w: FunctionWriter) -> Register:
        memory = w.allocate(I64)
        w.store(constant(I64, 0), memory)
        for x in (1, 2, 3):
            odd = w.icmp("ne", constant(I64, x % 2), constant(I64, 0))
            with w.when(odd, rarely=rarely):
                w.store(w.add(w.load(memory, I64), constant(I64, x)), memory)
        return w.load(memory, I64)

    assert straight(emit) == 4


@pytest.mark.parametrize("lanes", LANES)
def test_replace_rarely(lanes: int) -> None:
    def emit(w: FunctionWriter, x: Register) -> Register:
        rare = w.fcmp("ogt", x, constant(x.type, 10.0))
        return w.replace_rarely(rare, w.fneg(x), lambda: w.per_lane("sqrt", [x]))

    x = np.array([1.0, 2.0, 100.0, 4.0] + [3.0] * 16)
    np.testing.assert_array_equal(elementwise(emit, "double", lanes)(x), np.where(x > 10, 10.0, -x))


def test_calls_between_functions_and_modules_data() -> None:
    module = ModuleWriter()
    table = module.data("table", np.arange(4.0).tobytes())
    counter = module.variable("counter", 8)
    w = module.function("main", [Argument(I64)], DOUBLE)
    w.call_void("count", [])
    w.call_void("count", [])
    calls = w.sitofp(w.load(counter, I64), "double")
    pointer = w.load(module.data("pointer", bytes(8)), PTR)
    same = w.icmp("eq", pointer, constant(PTR, 0))
    picked = w.call("pick", DOUBLE, [w.parameters[0]])
    w.ret(w.select(same, w.fadd(picked, calls), poison(DOUBLE)))
    w = module.function("pick", [Argument(I64)], DOUBLE, linkage="internal", attributes="noinline")
    w.ret(w.load(w.gep(table, DOUBLE, w.parameters[0]), DOUBLE))
    w = module.function("count", [], None)
    w.store(w.add(w.load(counter, I64), constant(I64, 1)), counter, align=64)
    w.ret()
    compiled = compile_module(module.text())
    main = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(compiled.address("main"))
    assert (main(3), main(1)) == (3 + 2, 1 + 4)


def test_call_of_a_pointer_and_external_symbol() -> None:
    module = ModuleWriter()
    here = module.external("here")
    w = module.function("main", [Argument(PTR)], DOUBLE)
    value = w.call_pointer(w.parameters[0], DOUBLE, [constant(DOUBLE, 4.0)])
    w.ret(w.fadd(value, w.load(here, DOUBLE)))
    number = ctypes.c_double(0.5)
    compiled = compile_module(module.text(), {"here": ctypes.addressof(number)})
    unary = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    function = unary(lambda x: x * 10)
    main = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)(compiled.address("main"))
    assert main(ctypes.cast(function, ctypes.c_void_p)) == 40.5


def test_unreachable_blocks_and_phi() -> None:
    module = ModuleWriter()
    w = module.function("f", [Argument(I64)], I64)
    negative, positive, done = (w.new_label() for _ in range(3))
    w.branch_if(w.icmp("slt", w.parameters[0], constant(I64, 0)), negative, positive)
    w.begin(negative)
    flipped = w.sub(constant(I64, 0), w.parameters[0])
    w.branch(done)
    w.begin(positive)
    w.branch(done)
    w.begin(done)
    phi = w.phi(I64)
    phi.add_incoming(flipped, negative)
    phi.add_incoming(w.parameters[0], positive)
    w.ret(phi.register)
    compiled = compile_module(module.text())
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(compiled.address("f"))
    assert (function(-3), function(4)) == (3, 4)
