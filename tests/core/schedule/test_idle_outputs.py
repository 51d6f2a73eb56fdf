"""Outputs hold other values until their own are made, and nothing that does not fit or lives on."""

from __future__ import annotations

from nnkit.core.ir import HEADER_BYTES, Builder, Value
from nnkit.core.ir.placement import Place, output
from nnkit.core.kernels.ops import Kernel
from nnkit.core.ops import Add, Cholesky, Dot, Multiply, Transpose
from nnkit.core.schedule.idle_outputs import LEAST_BYTES, IdleOutput, IdleOutputs
from nnkit.core.schedule.plan import arena_bytes
from nnkit.core.schedule.target import Target
from nnkit.core.types import BOOL, F32, F64, TensorType
from tests.core.compute.building import f32, module_of

from .test_buffer_assignment import check_memory, places, scheduled

N = LEAST_BYTES


def test_the_smallest_that_fits_is_taken_and_of_one_size_the_first_to_be_needed() -> None:
    idle = IdleOutputs()
    sizes = ((4 * N, 9), (2 * N, 7), (2 * N, 5), (N - 4, 9))
    for number, (size, until) in enumerate(sizes):
        idle.give_back(IdleOutput.of(TensorType((size // 4,), F32), output(number), until))
    taken = [idle.take(TensorType((N // 4,), F32), end) for end in (4, 5, 6, 8, 9)]
    assert [one and one.place for one in taken] == [
        output(2), output(1), output(0), None, None
    ]  # fmt: skip
    assert taken[0] is not None
    idle.give_back(taken[0])
    assert idle.take(TensorType((N,), F32), 0) is None
    assert idle.take(TensorType((N // 8 - 1,), F32), 0) is None


def test_elements_are_aligned() -> None:
    """A buffer of bools begins wherever a caller's does."""
    idle = IdleOutputs()
    idle.give_back(IdleOutput.of(TensorType((16 * N,), BOOL), output(0), 9))
    assert idle.take(TensorType((N,), F32), 0) is None
    assert idle.take(TensorType((N,), BOOL), 0) is not None
    wide = IdleOutput.of(TensorType((N,), F64), output(1), 9)
    assert wide.may_hold(TensorType((N,), F32), 8)
    assert not wide.may_hold(TensorType((N,), F32), 9)


def test_what_is_saved_lies_where_gradients_will() -> None:
    """xᵢ₊₁ = (xᵢ · xᵢ)² forwards, results last to first: each xᵢ is dead before its result is written."""

    def build(b: Builder, x: Value) -> list[Value]:
        layers = [x]
        for _ in range(6):
            layers.append(b.emit(Cholesky(), layers[-1]))
        made: list[Value] = []
        cotangent = layers[-1]
        for layer in reversed(layers[:-1]):
            cotangent = b.emit(Dot(), cotangent, layer)
            made.append(b.emit(Cholesky(), cotangent))
        return made[::-1]

    function = scheduled(module_of(build, f32(128, 128)))
    check_memory(function)
    size = 128 * 128 * 4
    assert arena_bytes(function) - HEADER_BYTES <= 4 * size < 6 * size
    assert sum(place.space == "output" for place in places(function).values()) >= 6 + 4


def test_of_values_in_a_row_those_lie_in_the_output_that_leave_one_buffer() -> None:
    """x₁ → x₂ → … → result: what the last instruction reads cannot, so of four x₃ and x₁ do, of three x₂."""
    for count in (2, 3, 4, 5):

        def build(b: Builder, x: Value, count: int = count) -> list[Value]:
            for _ in range(count + 1):
                x = b.emit(Cholesky(), x)
            return [x]

        function = scheduled(module_of(build, f32(128, 128)))
        check_memory(function)
        assert arena_bytes(function) - HEADER_BYTES == 128 * 128 * 4
        inside = [place for place in places(function).values() if place.space == "output"]
        assert len(inside) == 1 + count // 2


FUSED = Target(vector_bytes=64, registers=32, fma=True, threads=3)


def test_what_threads_share_lies_in_an_output_that_is_not_made_yet() -> None:
    """The gradient by the weights turns a matrix, and comes first: that by the input has room for it."""

    def build(b: Builder, x: Value, w: Value, g: Value) -> list[Value]:
        turned = b.emit(Transpose((1, 0)), x)
        return [b.emit(Dot(), g, b.emit(Transpose((1, 0)), w)), b.emit(Dot(), turned, g)]

    function = scheduled(module_of(build, f32(256, 3136), f32(3136, 512), f32(256, 512)), FUSED)
    check_memory(function)
    first, second = (i for i in function.entry.instructions if i.op.name == "kernel")
    assert first.placement.results == (output(1),)
    assert output(0) in first.placement.scratch and output(1) not in first.placement.scratch
    assert all(place.space == "arena" for place in second.placement.scratch)
    assert isinstance(second.op, Kernel)
    assert max(second.op.copies) == FUSED.threads


def test_a_product_is_made_before_the_place_of_its_epilogue_so_that_its_operands_die() -> None:
    """Updates of all weights stand at the end; of each, the product is made where its operands are."""

    def build(b: Builder, *weights: Value) -> list[Value]:
        products: list[Value] = []
        x = weights[0]
        for _ in weights:
            x = b.emit(Cholesky(), x)
            products.append(b.emit(Dot(), x, x))
        return [b.emit(Add(), w, y) for w, y in zip(weights, products, strict=True)]

    function = scheduled(module_of(build, *[f32(300, 300)] * 5), FUSED)
    check_memory(function)
    names = [i.op.name for i in function.entry.instructions]
    assert names == ["cholesky", "kernel"] * 5 + ["return"]


def test_a_value_that_is_read_with_a_result_does_not_lie_there() -> None:
    def build(b: Builder, x: Value) -> list[Value]:
        y = b.emit(Cholesky(), x)
        turned = b.emit(Cholesky(), y)
        return [b.emit(Dot(), turned, y), b.emit(Multiply(), b.emit(Add(), y, y), y)]

    function = scheduled(module_of(build, f32(128, 128)))
    check_memory(function)
    (y, turned, *_) = [place for value, place in places(function).items() if value.tensor.rank == 2]
    assert y != Place("output", 0) != turned
