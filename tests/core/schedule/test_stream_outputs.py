"""Large results are written past the caches where that pays, and nowhere else; the evaluator finds the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from nnkit.core.ir import Block, Builder, Module, Value
from nnkit.core.kernels.access_ops import PrefetchAt, StreamInto
from nnkit.core.kernels.loops import inside
from nnkit.core.ops import Add, Combinator, Exp, Multiply, Reduce, Subtract
from nnkit.core.schedule import stream_outputs
from nnkit.core.schedule.target import Target
from nnkit.core.types import TensorType
from tests.core.compute.building import arguments_for, assert_close, f32, fused, module_of, results
from tests.rows import each

from .checked import kernels_in

TARGET = Target(vector_bytes=64, registers=32, fma=True, l2_bytes=1 << 12)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors of a few KiB are large."""
    monkeypatch.setattr(stream_outputs, "LEAST_STREAMED", 4096)
    monkeypatch.setattr(stream_outputs, "_STAGED", 256)


def _scheduled(build: Callable[..., object], *types: TensorType) -> tuple[Module, list[Block]]:
    """A module, and the bodies of its kernels."""
    module = fused(module_of(build, *types))
    return module, [kernel.regions[0].entry for kernel in kernels_in(module, TARGET)]


def _streams(bodies: list[Block]) -> list[int]:
    """How many loops of each kernel copy what they made."""
    return [sum(isinstance(one.op, StreamInto) for one in inside(body)) for body in bodies]


def _line(b: Builder, x: Value, y: Value) -> Value:
    return b.emit(Add(), b.emit(Multiply(), x, x), y)


def _polynomial(b: Builder, x: Value, *, degree: int) -> Value:
    y = x
    for _ in range(degree):
        y = b.emit(Add(), b.emit(Multiply(), y, x), x)
    return y


def _exp(b: Builder, x: Value) -> Value:
    return b.emit(Exp(), x)


def _outer(b: Builder, x: Value, y: Value) -> Value:
    return b.emit(Multiply(), x, y)


def _twice(b: Builder, x: Value) -> list[Value]:
    return [b.emit(Add(), x, x), b.emit(Multiply(), x, x)]


def _shifted(b: Builder, x: Value) -> Value:
    """The last nest may write where the first one has."""
    y = b.emit(Exp(), x)
    return b.emit(Subtract(), y, b.emit(Reduce(Combinator.ADD, (0,)), y))


@each(
    ("build", "types", "streams"),
    [
        (_line, (f32(5003), f32(5003)), [1]),  # vectors side by side
        (_twice, (f32(5003),), [2]),  # two results
        (_line, (f32(1000), f32(1000)), [0]),  # what is small
        (_line, (f32(30, 1024), f32(1024)), [1]),  # rows of whole lines
        (_line, (f32(30, 1001), f32(1001)), [0]),  # rows of odd length, which begin within lines
        (_line, (f32(300, 32), f32(32)), [1]),  # rows shorter than what is staged
        (partial(_polynomial, degree=6), (f32(5003),), [1]),  # little to compute
        (partial(_polynomial, degree=16), (f32(5003),), [0]),  # much to compute
        (_exp, (f32(5003),), [0]),  # a function
        (_outer, (f32(64, 1), f32(64)), [0]),  # little to read
    ],
)
def test_which_results_are_streamed(
    build: Callable[..., object], types: tuple[TensorType, ...], streams: list[int]
) -> None:
    before = module_of(build, *types)
    arguments = arguments_for(before)
    expected = results(before, arguments)
    module, bodies = _scheduled(build, *types)
    assert _streams(bodies) == streams
    assert_close(expected, results(module, arguments))


def test_what_is_staged_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetches() -> int:
        _, (body,) = _scheduled(_line, f32(5120), f32(5120))
        return sum(isinstance(one.op, PrefetchAt) for one in inside(body))

    assert fetches() == 0
    monkeypatch.setenv("NNKIT_DISABLE", "stream")
    assert fetches() == 3


def test_what_lies_where_an_operand_did_is_not_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _streams(_scheduled(_shifted, f32(5003))[1])[-1] == 0
    monkeypatch.setenv("NNKIT_DISABLE", "in-place")
    assert _streams(_scheduled(_shifted, f32(5003))[1])[-1] == 1
