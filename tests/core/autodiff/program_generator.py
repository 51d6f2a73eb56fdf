"""Random differentiable programs of structured control flow, for the laws of derivatives.

`differentiable_programs()` is a Hypothesis strategy over modules with arguments.  `main` takes a few floats (numbers
and small tensors) and integers, and returns several of what it computes:

    calls       of shared functions, some of which are checkpoints, and of functions that call themselves and each other
                with a falling counter
    if          nested; a body may yield what is around it, or a constant
    for         bounds of literals or known when it runs, from below zero, empty; what is carried starts constant or
                not, is replaced, added to, swapped, passed through, or put back; results stacked; the index is used
    while       a counter and perhaps a number decide; no iterations, too
    rows        read and written at an index, inside and outside of the range

All instructions are smooth, but for `abs`, `max`, `min`, `select` and comparisons.  All programs end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from nnkit.core import ops
from nnkit.core.ir import Block, Builder, Function, Module, Region, Value
from nnkit.core.ir.surgery import walk
from nnkit.core.text import print_module
from nnkit.core.types import (
    F64,
    DType,
    FunctionType,
    TensorType,
    Type,
    one_or_tuple,
    scalar,
)

from .body_writer import COUNT, BodyWriter, Draw, is_float


@dataclass(frozen=True)
class DifferentiableProgram:
    """A module whose `main` is called with `arguments`, and what to ask of its derivatives."""

    module: Module
    arguments: tuple[Any, ...]
    wrt: tuple[int, ...]
    sources: tuple[int, ...]
    keeping: tuple[int, ...]

    @property
    def type(self) -> FunctionType:
        return self.module.functions["main"].type

    @property
    def has_stops(self) -> bool:
        """Whether a derivative is not that of the function, as a value is held fixed."""
        bodies = [f.body for f in self.module.functions.values() if f.body is not None]
        return any(isinstance(i.op, ops.StopGradient) for body in bodies for i in walk(body))

    def __repr__(self) -> str:
        asked = f"wrt={self.wrt}, sources={self.sources}, keeping={self.keeping}"
        return f"{print_module(self.module)}\narguments: {self.arguments!r}\n{asked}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How Hypothesis shows a failing example."""
        printer.text(repr(self))


@st.composite
def differentiable_programs(
    draw: Draw, *, dtypes: Sequence[DType] = (F64,), unbounded: bool = False
) -> DifferentiableProgram:
    """A program with floats of `dtypes`; with `unbounded`, one of loops and recursions that are recorded on tapes."""
    module = Module()
    for number in range(draw(st.integers(0, 0 if unbounded else 2))):
        _helper(draw, dtypes, module, f"helper{number}")
    if unbounded or draw(st.booleans()):
        _recursive(draw, dtypes, module)
    entry = Builder(Block(name="entry"))
    main = BodyWriter(draw, dtypes, module, entry, depth=2 if unbounded else 3, unbounded=unbounded)
    main.parameters(draw(st.integers(1, 3)), draw(st.integers(0, 2)))
    for _ in range(draw(st.integers(1, 2 if unbounded else 3))):
        main.steps(draw(st.integers(0, 2)))
        main.structured()
    _finish(module, "main", main, main.returned())
    type = module.functions["main"].type
    arguments = tuple(
        _argument(draw, parameter, number) for number, parameter in enumerate(type.parameters)
    )
    wrt = _some(draw, [k for k, parameter in enumerate(type.parameters) if is_float(parameter)])
    sources = _some(draw, [k for k, result in enumerate(type.results) if is_float(result)])
    keeping = _some(draw, range(len(type.results))) if draw(st.booleans()) else ()
    return DifferentiableProgram(module, arguments, wrt, sources, keeping)


def _some(draw: Draw, positions: Sequence[int]) -> tuple[int, ...]:
    """All of them, in order, or some, in any order."""
    if draw(st.integers(0, 3)) < 3:
        return tuple(positions)
    count = draw(st.integers(1, len(positions)))
    return tuple(draw(st.permutations(positions))[:count])


def _argument(draw: Draw, type: Type, number: int) -> Any:
    assert isinstance(type, TensorType)
    if not type.dtype.is_float:
        return np.asarray(draw(st.integers(-2, 5)), type.dtype.numpy)
    numbers = [draw(st.integers(-9, 9)) for _ in range(type.size)]
    # no two are equal, nor is a literal of the program, so that no comparison is at its edge
    away = 0.0173 + 0.00137 * (np.arange(type.size) + 7 * number)
    return np.asarray(np.asarray(numbers) / 6.1 + away, type.dtype.numpy).reshape(type.shape)


def _finish(module: Module, name: str, body: BodyWriter, returned: Sequence[Value]) -> None:
    body.b.emit_many(ops.Return(), returned)
    block = body.b.block
    type = FunctionType(
        tuple(x.type for x in block.arguments), one_or_tuple([x.type for x in returned])
    )
    if name not in module.functions:
        module.add(Function(name, type))
    function = module.functions[name]
    assert function.type == type
    function.body = Region([block])


def _helper(draw: Draw, dtypes: Sequence[DType], module: Module, name: str) -> None:
    body = BodyWriter(draw, dtypes, module, Builder(Block(name="entry")), depth=1)
    body.parameters(draw(st.integers(1, 2)), draw(st.integers(0, 1)))
    body.steps(draw(st.integers(1, 3)))
    _finish(module, name, body, body.returned())
    if draw(st.integers(0, 2)) == 2:
        module.functions[name].attributes = ("checkpoint",)


def _recursive(draw: Draw, dtypes: Sequence[DType], module: Module) -> None:
    """One or two functions, which call themselves and each other while their first parameter is above zero."""
    types = [BodyWriter(draw, dtypes, module, Builder(Block()), depth=0).float_type()]
    types += [scalar(F64) for _ in range(draw(st.integers(0, 1)))]
    type = FunctionType((COUNT, *types), one_or_tuple(types))
    names = [f"recursive{number}" for number in range(draw(st.integers(1, 2)))]
    for name in names:
        module.add(Function(name, type))
    bodies: list[tuple[BodyWriter, Sequence[Value]]] = []
    for _ in names:
        body = BodyWriter(draw, dtypes, module, Builder(Block(name="entry")), depth=2)
        counter = body.argument(COUNT)
        for given in types:
            body.argument(given)
        more = body.b.emit(ops.GreaterThan(), counter, body.number(COUNT, 0))
        deeper, flat = body.inside("then"), body.inside("else")
        fewer = deeper.b.emit(ops.Subtract(), counter, deeper.number(COUNT, 1))
        for _ in range(body.integer(1, 2)):
            deeper.steps(body.integer(0, 1))
            callee = names[body.integer(0, len(names) - 1)]
            arguments = [fewer, *(deeper.of(given) for given in types)]
            deeper.values += deeper.b.emit_many(ops.Apply(callee, type), arguments)
        deeper.steps(body.integer(0, 1))
        flat.steps(body.integer(0, 1))
        regions = [inner.region([inner.given(t) for t in types]) for inner in (deeper, flat)]
        bodies.append((body, body.b.emit_many(ops.If(tuple(types)), [more], regions)))
    # at the end, so that none of them is called anywhere else in the others, where nothing falls
    for name, (body, results) in zip(names, bodies, strict=True):
        _finish(module, name, body, results)
