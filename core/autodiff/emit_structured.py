"""Emits structured ops, of bodies that are given as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..ir import Block, Builder, Region, Value
from ..ops.literal import constant
from ..ops.nest import Yield
from ..ops.structured import For, If, While
from ..types import I64, TensorType, scalar

COUNTER = scalar(I64)

LoopState: TypeAlias = "Sequence[Value]"
"""What is carried, before some iteration."""


def emit_for(
    b: Builder,
    first: Value,
    last: Value,
    start: LoopState,
    body: Callable[[Builder, Value, LoopState], LoopState],
    stacks: Sequence[TensorType] = (),
) -> LoopState:
    """A `for` that carries values; what `body` gives besides the next of these is stacked, as `stacks`."""
    inner = Builder(Block(name="body"), b.location)
    index = inner.argument(COUNTER, "index")
    arguments = [inner.argument(x.type) for x in start]
    inner.emit_many(Yield(), body(inner, index, arguments))
    return b.emit_many(For(tuple(stacks)), [first, last, *start], [Region([inner.block])])


def emit_while(
    b: Builder,
    start: LoopState,
    test: Callable[[Builder, LoopState], Value],
    body: Callable[[Builder, LoopState], LoopState],
) -> LoopState:
    """A `while` that carries values."""
    asked, inner = Builder(Block(name="test"), b.location), Builder(Block(name="body"), b.location)
    asked.emit_many(Yield(), [test(asked, [asked.argument(x.type) for x in start])])
    inner.emit_many(Yield(), body(inner, [inner.argument(x.type) for x in start]))
    return b.emit_many(While(), start, [Region([asked.block]), Region([inner.block])])


def emit_if(
    b: Builder,
    condition: Value,
    then: Callable[[Builder], LoopState],
    other: Callable[[Builder], LoopState],
) -> LoopState:
    """An `if`, of the values that both branches give."""
    branches = [Builder(Block(name=name), b.location) for name in ("then", "else")]
    given = [emit(inner) for emit, inner in zip((then, other), branches, strict=True)]
    for inner, values in zip(branches, given, strict=True):
        inner.emit_many(Yield(), values)
    types = tuple(x.type for x in given[0])
    return b.emit_many(If(types), [condition], [Region([inner.block]) for inner in branches])


def count_of(b: Builder, number: int) -> Value:
    """A number of iterations."""
    return constant(b, COUNTER, number)
