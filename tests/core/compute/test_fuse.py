"""Fusion keeps every result, joins what belongs together, and never does work many times over."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given

from nnkit.core.compute.bodies import base_of
from nnkit.core.compute.fuse import LARGEST_BODY, fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.driver.stages import advance, passes_to
from nnkit.core.errors import IndexOutOfRangeError, InternalError
from nnkit.core.ir import Builder, Module, Value
from nnkit.core.ops import (
    Add,
    Bounds,
    Broadcast,
    Combinator,
    Concatenate,
    Cos,
    Divide,
    Dot,
    Equal,
    Exp,
    Gather,
    GreaterThan,
    Iota,
    Literal,
    Maximum,
    Multiply,
    Negate,
    Pad,
    PadShape,
    Reduce,
    Relu,
    Reverse,
    Scan,
    ScatterAdd,
    Select,
    ShapeCast,
    Slice,
    Square,
    SqueezeShape,
    Subtract,
    Tanh,
    Transpose,
    constant,
    splat,
)
from nnkit.core.passes.flatten import Flatten
from nnkit.core.passes.pipeline import run_pipeline
from nnkit.core.stage import Stage
from nnkit.core.text import parse_module
from nnkit.core.types import F32, I32, I64, Array, TensorType, scalar
from nnkit.core.verify import verify
from tests.patience import PATIENCE
from tests.programs import Program, programs
from tests.values import flat

from .building import (
    arguments_for,
    assert_close,
    body_names,
    cross_entropy_gradient,
    f32,
    fused,
    gelu_value_and_gradient,
    module_of,
    nests,
    results,
    softmax,
)


@given(programs(tame=True, max_instructions=25))
def test_fusion_keeps_the_results(program: Program) -> None:
    program.module.stage = Stage.OPTIMIZABLE
    run_pipeline(program.module, (Flatten(), *passes_to(Stage.OPTIMIZED, program.entry)))
    arguments = flat(program.arguments)
    expected = results(program.module, arguments, program.entry)
    generate_compute(program.module)
    before = len(nests(program.module, program.entry))
    fuse(program.module)
    verify(program.module)
    assert len(nests(program.module, program.entry)) <= before
    found = results(program.module, arguments, program.entry)
    assert_close(expected, found, sums_at_poles=True)


# What becomes one nest.


def test_softmax_is_three_nests() -> None:
    module = fused(module_of(softmax, f32(5, 7)))
    assert [body_names(nest) for nest in nests(module)] == [[], ["subtract", "exp"], ["divide"]]


def test_value_and_gradient_of_a_sum_is_one_nest() -> None:
    module = fused(module_of(gelu_value_and_gradient, f32(50)))
    (nest,) = nests(module)
    assert body_names(nest).count("erf") == 1


def test_cross_entropy_and_its_gradient() -> None:
    module = fused(module_of(cross_entropy_gradient, f32(6, 9), TensorType((6,), I32)))
    assert sum(body_names(nest).count("exp") for nest in nests(module)) == 1
    wide = [nest for nest in nests(module) if len(nest.regions[0].entry.arguments) > 3]
    assert len(nests(module)) <= 5
    assert len(wide) <= 3


def test_a_layer_adds_nests_only_between_its_products() -> None:
    def build(b: Builder, x: Value, w: Value, v: Value, bias: Value, ct: Value) -> list[Value]:
        zero = constant(b, scalar(F32), 0)
        hidden = b.emit(Maximum(), b.emit(Add(), b.emit(Dot(), x, w), bias), zero)
        out = b.emit(Dot(), hidden, v)
        back = b.emit(Multiply(), b.emit(Dot(), ct, b.emit(Transpose(), v)), hidden)
        db = b.emit(Reduce(Combinator.ADD, (0,)), back)
        return [out, b.emit(Dot(), b.emit(Transpose(), x), back), db]

    module = fused(module_of(build, f32(32, 48), f32(48, 40), f32(40, 32), f32(40), f32(32, 32)))
    ops = [i.op.name for i in module.functions["main"].entry.instructions]
    assert ops.count("matrixProduct") == 4
    assert ops.count("nest") == 2
    assert "transpose" not in ops


def test_movement_costs_nothing() -> None:
    def build(b: Builder, x: Value, y: Value) -> Value:
        x = b.emit(Reverse((0,)), b.emit(Transpose(), x))
        x = b.emit(Slice((1, 0), (4, 6), (1, 2)), x)
        return b.emit(
            Multiply(), b.emit(Exp(), x), b.emit(Broadcast((3, 3)), b.emit(PadShape(0), y))
        )

    module = fused(module_of(build, f32(6, 4), f32(3)))
    (nest,) = nests(module)
    assert body_names(nest) == ["exp", "multiply"]


def test_axes_of_extent_1_do_not_stop_fusion() -> None:
    def build(b: Builder, x: Value) -> Value:
        x = b.emit(Exp(), x)
        x = b.emit(Negate(), b.emit(PadShape(1), x))
        x = b.emit(Cos(), b.emit(ShapeCast((1, 4, 1, 3)), x))
        return b.emit(Tanh(), b.emit(SqueezeShape(2), x))

    assert len(nests(fused(module_of(build, f32(4, 3))))) == 1


def test_a_tensor_split_into_more_axes_is_read_through() -> None:
    def build(b: Builder, x: Value) -> Value:
        return b.emit(Negate(), b.emit(ShapeCast((4, 2, 3)), b.emit(Exp(), x)))

    assert len(nests(fused(module_of(build, f32(8, 3))))) == 1


def test_repeated_elements_become_constants() -> None:
    def build(b: Builder, x: Value) -> Value:
        return b.emit(Add(), x, b.emit(splat(f32(4, 5), 3)))

    (nest,) = nests(fused(module_of(build, f32(4, 5))))
    assert len(nest.operands) == 1


def test_several_results_of_one_walk() -> None:
    def build(b: Builder, p: Value, g: Value, m: Value) -> list[Value]:
        rate = constant(b, scalar(F32), 0.9)
        m = b.emit(Add(), b.emit(Multiply(), m, rate), g)
        return [b.emit(Subtract(), p, m), m]

    (nest,) = nests(fused(module_of(build, f32(4, 5), f32(4, 5), f32(4, 5))))
    assert len(nest.results) == 2


def test_sums_over_different_axes_stay_apart() -> None:
    def build(b: Builder, x: Value) -> list[Value]:
        return [b.emit(Reduce(Combinator.ADD, (axis,)), x) for axis in (0, 1)]

    assert len(nests(fused(module_of(build, f32(4, 5))))) == 2


# What must not be done twice, or not be moved.


def test_expensive_values_are_not_computed_again() -> None:
    def build(b: Builder, x: Value) -> Value:
        y = b.emit(Tanh(), x)
        return b.emit(Add(), b.emit(Transpose(), y), b.emit(Reverse((0,)), y))

    module = fused(module_of(build, f32(5, 5)))
    assert sum(body_names(nest).count("tanh") for nest in nests(module)) == 1


def test_what_several_nests_need_is_computed_twice_at_most() -> None:
    """Four chains that are too long for one nest each begin with a number of its own that follows from one tanh."""

    def build(b: Builder, x: Value, *others: Value) -> tuple[Value, ...]:
        y = b.emit(Tanh(), x)
        found: list[Value] = []
        numbers = [b.emit(splat(scalar(F32), k + 1.5)) for k, _ in enumerate(others)]
        starts = [b.emit(Add(), y, number) for number in numbers]
        for chain, z in zip(starts, others, strict=True):
            for _ in range(LARGEST_BODY // 2):
                chain = b.emit(Add(), b.emit(Multiply(), chain, z), z)
            found.append(chain)
        return tuple(found)

    module = fused(module_of(build, *[f32(40)] * 5))
    assert sum(body_names(nest).count("tanh") for nest in nests(module)) <= 2


def test_a_value_per_row_is_not_computed_per_element_of_a_product() -> None:
    def build(b: Builder, x: Value, w: Value) -> Value:
        return b.emit(Dot(), b.emit(Exp(), x), w)

    module = fused(module_of(build, f32(4, 5), f32(5, 6)))
    assert [body_names(nest) for nest in nests(module)] == [["exp"], ["multiply"]]


def test_a_nest_between_does_not_make_a_circle() -> None:
    def build(b: Builder, x: Value) -> list[Value]:
        y = b.emit(Exp(), x)
        total = b.emit(Reduce(Combinator.ADD, (0,)), y)
        return [b.emit(Divide(), y, total), y]

    module = fused(module_of(build, f32(9)))
    assert len(nests(module)) == 2


def test_library_ops_keep_their_place() -> None:
    def build(b: Builder, x: Value, w: Value) -> list[Value]:
        y = b.emit(Tanh(), x)
        product = b.emit(Dot(), y, w)
        scanned = b.emit(Scan(Combinator.ADD, 0), b.emit(Add(), product, y))
        return [b.emit(Multiply(), scanned, y), b.emit(Exp(), y)]

    fused(module_of(build, f32(32, 32), f32(32, 32)))


@pytest.mark.parametrize("bounds", [Bounds.ZERO, Bounds.CLIP])
@pytest.mark.parametrize("moved", [True, False])
def test_what_is_read_outside_stays_what_it_is(bounds: Bounds, moved: bool) -> None:
    def build(b: Builder, x: Value, indices: Value) -> Value:
        y = b.emit(Transpose(), x) if moved else b.emit(Add(), x, constant(b, scalar(F32), 1))
        return b.emit(Gather(0, bounds), y, indices)

    module = module_of(build, f32(3, 3), TensorType((7,), I64))
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    arguments: list[Array] = [x, np.arange(-2, 5)]
    expected = results(module, arguments)
    generate_compute(module)
    fuse(module)
    assert_close(expected, results(module, arguments))
    is_right_to_move = moved or bounds is Bounds.CLIP
    assert len(nests(module)) == (1 if is_right_to_move else 2)


def test_a_check_is_kept() -> None:
    def build(b: Builder, x: Value, indices: Value) -> Value:
        return b.emit(Gather(1), b.emit(Add(), x, x), indices)

    module = fused(module_of(build, f32(3, 5), TensorType((2,), I64)))
    assert len(nests(module)) == 1
    with pytest.raises(IndexOutOfRangeError):
        results(module, [np.zeros((3, 5), np.float32), np.array([0, 5])])


def test_a_check_that_no_read_makes_keeps_its_tensor() -> None:
    def build(b: Builder, indices: Value) -> Value:
        return b.emit(Gather(0), b.emit(Iota((5,), 0, F32)), indices)

    module = fused(module_of(build, TensorType((2,), I64)))
    assert len(nests(module)) == 2
    with pytest.raises(IndexOutOfRangeError):
        results(module, [np.array([0, 5])])


def test_padding_and_concatenation() -> None:
    def build(b: Builder, x: Value, y: Value) -> Value:
        padded = b.emit(Pad((1, 0), (0, 2)), b.emit(Exp(), x), constant(b, scalar(F32), 0))
        return b.emit(Tanh(), b.emit(Concatenate(0), padded, b.emit(Negate(), y)))

    fused(module_of(build, f32(3, 2), f32(2, 4)))


def test_a_scatter_computes_its_updates() -> None:
    def build(b: Builder, x: Value, indices: Value) -> Value:
        scattered = b.emit(ScatterAdd((5,), 0), b.emit(Exp(), x), indices)
        return b.emit(Add(), scattered, constant(b, scalar(F32), 1))

    module = fused(module_of(build, f32(7), TensorType((7,), I64)))
    assert [body_names(nest)[:1] for nest in nests(module)] == [["exp"], ["literal"]]


@pytest.mark.parametrize("shape", [(), (0,), (1,), (0, 3), (3, 0)], ids=str)
def test_scalars_and_empty_tensors(shape: tuple[int, ...]) -> None:
    def build(b: Builder, x: Value) -> list[Value]:
        y = b.emit(Exp(), b.emit(Add(), x, x))
        axes = tuple(range(len(shape)))
        return [b.emit(Reduce(Combinator.ADD, axes), y), b.emit(Transpose(), y), x]

    fused(module_of(build, f32(*shape)))


def test_parameters_and_literals_may_be_returned() -> None:
    def build(b: Builder, x: Value) -> list[Value]:
        return [x, x, b.emit(splat(f32(2), 1)), b.emit(ShapeCast((3, 1)), x)]

    module = fused(module_of(build, f32(3)))
    assert all(not isinstance(nest.op, Literal) for nest in nests(module))


# Time and size.


def chain(kind: str, length: int) -> Module:
    """A long program of small tensors."""

    def build(b: Builder, x: Value, y: Value) -> Value:
        for _ in range(length):
            match kind:
                case "sum":
                    x = b.emit(Add(), x, y)
                case "twice":
                    x = b.emit(Add(), x, x)
                case "fibonacci":
                    x, y = b.emit(Add(), x, y), x
                case "turned":
                    x, y = b.emit(Add(), x, b.emit(Transpose(), y)), x
                case _:
                    row = b.emit(PadShape(1), b.emit(Reduce(Combinator.MAX, (1,)), x))
                    x = b.emit(Subtract(), x, row)
        return x

    return module_of(build, f32(3, 3), f32(3, 3))


@pytest.mark.parametrize("kind", ["sum", "twice", "fibonacci", "turned", "rows"])
def test_long_chains_stay_linear(kind: str) -> None:
    module = fused(chain(kind, 400))
    sizes = [len(nest.regions[0].entry.instructions) for nest in nests(module)]
    assert max(sizes) <= LARGEST_BODY
    assert sum(sizes) <= 5 * 400


def test_ten_thousand_additions_take_seconds_at_most() -> None:
    module = chain("fibonacci", 10_000)
    start = time.process_time()
    generate_compute(module)
    fuse(module)
    assert time.process_time() - start < 6 * PATIENCE
    assert len(nests(module)) <= 10_000 // 100


def test_the_stage_is_checked() -> None:
    module = module_of(lambda b, x: b.emit(Add(), x, x), f32(2))
    with pytest.raises(InternalError, match="has no nests to fuse"):
        fuse(module)


def test_results_have_the_types_they_had() -> None:
    module = module_of(lambda b, x: b.emit(Transpose((1, 0)), x), f32(1, 4))
    arguments = arguments_for(module)
    fused(module)
    assert results(module, arguments)[0].shape == (4, 1)
    assert not nests(module)


def test_an_optimizer_step_is_one_nest_per_parameter() -> None:
    def build(b: Builder, p: Value, g: Value, m: Value, v: Value) -> list[Value]:
        keep, new = (constant(b, scalar(F32), n) for n in (0.9, 0.1))
        m = b.emit(Add(), b.emit(Multiply(), keep, m), b.emit(Multiply(), new, g))
        change = b.emit(Multiply(), new, m)
        v = b.emit(Add(), b.emit(Multiply(), keep, v), b.emit(Multiply(), new, b.emit(Square(), g)))
        step = b.emit(Divide(), change, b.emit(Add(), b.emit(Exp(), v), new))
        return [b.emit(Subtract(), p, step), m, v]

    (nest,) = nests(fused(module_of(build, *(f32(4, 5) for _ in range(4)))))
    assert len(nest.results) == 3
    assert body_names(nest).count("square") == 1


def test_what_two_nests_have_inlined_brings_them_together() -> None:
    def build(b: Builder, x: Value, labels: Value) -> list[Value]:
        hot = b.emit(Equal(), b.emit(Iota((7,), 0, I64)), b.emit(PadShape(1), labels))
        zero, one = (constant(b, scalar(F32), n) for n in (0, 1))
        chosen = b.emit(Select(), b.emit(Multiply(), x, x), zero, hot)
        picked = b.emit(Select(), one, zero, hot)
        return [b.emit(Reduce(Combinator.ADD, (1,)), y) for y in (chosen, picked)]

    (nest,) = nests(fused(module_of(build, f32(5, 7), TensorType((5,), I64))))
    assert body_names(nest).count("equal") == 1


def test_indices_of_any_integer_type_stand_for_coordinates() -> None:
    """Whether a pad is inside of its operand is asked of the index that is read, which is of i32."""
    module = parse_module("""module "m"
stage raw
func @main: (<2 x 3 x i8>) -> <0 x 0 x i8> {
'entry(%x: <2 x 3 x i8>):
    %one = literal 1: i8
    %p = pad %x: <2 x 3 x i8> by %one: i8 low (0, 0) high (0, 1)
    %s = slice %p: <2 x 4 x i8> from (0, 0) upto (0, 0)
    %i = literal zero: <0 x i32>
    %y = gather %s: <0 x 0 x i8> at %i: <0 x i32> along 1 bounds inside
    return %y: <0 x 0 x i8>
}
""")
    advance(module, Stage.COMPUTE, "main")
    verify(module)


def test_what_follows_from_a_result_that_is_stored_is_not_stored_too() -> None:
    """1 − y² of y = tanh(x) is computed from y where it is read, not kept beside it."""

    def build(b: Builder, x: Value, w: Value) -> list[Value]:
        y = b.emit(Tanh(), b.emit(Dot(), x, w))
        slope = b.emit(Subtract(), constant(b, y.tensor, 1), b.emit(Square(), y))
        return [b.emit(Multiply(), b.emit(Dot(), b.emit(Dot(), y, w), w), slope)]

    found = nests(fused(module_of(build, f32(40, 40), f32(40, 40))))
    assert [len(nest.results) for nest in found] == [1, 1]
    assert [body_names(nest).count("tanh") for nest in found] == [1, 0]


def test_what_follows_from_a_result_that_is_stored_does_not_have_its_operand_stored() -> None:
    """Where y = relu(x · w + b) is positive, asked of the y that is read anyway: x · w has one reader."""

    def build(b: Builder, x: Value, w: Value, bias: Value) -> list[Value]:
        y = b.emit(Relu(), b.emit(Add(), b.emit(Dot(), x, w), bias))
        slope = b.emit(Dot(), b.emit(Dot(), y, w), w)
        zero = constant(b, scalar(F32), 0)
        is_positive = b.emit(GreaterThan(), y, zero)
        return [b.emit(Select(), slope, b.emit(Multiply(), slope, y), is_positive)]

    found = nests(fused(module_of(build, f32(256, 1024), f32(1024, 1024), f32(1024))))
    assert [body_names(nest).count("relu") for nest in found] == [1, 0]
    assert [len(nest.operands) for nest in found] == [2, 2]


def test_slices_are_read_where_a_pad_reads_them_if_they_end_where_their_tensor_does() -> None:
    """All slices of five elements, with zeros around: right, and copied only where a read would find more."""
    cases = [
        (start, stop, low, high)
        for start in range(5)
        for stop in range(start + 1, 6)
        for low in range(3)
        for high in range(3)
    ]

    def pads(b: Builder, x: Value) -> list[Value]:
        zero = constant(b, scalar(F32), 0)
        return [
            b.emit(Pad((0, low), (0, high)), b.emit(Slice((0, start), (2, stop)), x), zero)
            for start, stop, low, high in cases
        ]

    module = module_of(pads, f32(2, 5))
    x = np.arange(1, 11, dtype=np.float32).reshape(2, 5)
    expected = results(module, [x])
    generate_compute(module)
    fuse(module)
    verify(module)
    for one, other in zip(expected, results(module, [x]), strict=True):
        np.testing.assert_array_equal(one, other)
    returned = module.functions["main"].entry.terminator.operands
    for value, (start, stop, low, high) in zip(returned, cases, strict=True):
        maker = base_of(value).producer
        assert maker is not None
        ends = (not low or not start) and (not high or stop == 5)
        # an axis of one element is none
        if stop - start > 1:
            assert (maker.operands[0] is module.functions["main"].parameters[0]) == ends
