"""Random kernels that stay inside of their buffers, and what runs them.

`random_kernel` makes a module whose function `main` is one kernel, and arguments for it: loops in loops, some of which
carry values, with loads and stores at constant, shifted, reversed, strided and summed indices, of buffers of several
element types, of which some are results, some the kernel's own, and some others under another shape.  Some kernels are
`guarded` as well: with loads and stores where a condition holds, at indices that are read, with checks, which may
fail, and with buffers that are filled and copied as a whole.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module, Stage, finish_function, start_function
from nnkit.core.ir.instruction import Block, Instruction, Op, Value
from nnkit.core.ir.placement import Placement, output
from nnkit.core.kernels.build import KernelBuilder
from nnkit.core.kernels.dependence import root_of
from nnkit.core.kernels.indices import IndexSum
from nnkit.core.kernels.ops import Fma
from nnkit.core.ops import (
    Abs,
    Add,
    DataTypeCast,
    Exp,
    LessThan,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Return,
    Select,
    Subtract,
)
from nnkit.core.text import print_module
from nnkit.core.types import F32, F64, I32, I64, Array, DType, TensorType, TupleType
from tests.values import numbers

DTYPES = (F32, F32, F64, I32)
EXTENTS = (1, 2, 3, 4, 5, 6, 8, 9)
COUNTS = (4, 3, 2, 1, 5, 6, 8, 9, 0)
BOUNDS = ((0, 1), (0, 1), (0, 1), (0, 2), (1, 1), (2, 3))
"""First index and step."""
MOST_RUNS = 200
"""Iterations of all loops around a place."""
UNARY: tuple[Op, ...] = (Negate(), Abs())
BINARY: tuple[Op, ...] = (Add(), Subtract(), Multiply(), Minimum(), Maximum())
REDUCTIONS: tuple[Op, ...] = (Add(), Add(), Multiply(), Minimum(), Maximum(), Subtract())


@dataclass(repr=False)
class Program:
    """A module whose function `main` is one kernel."""

    module: Module
    arguments: tuple[Array, ...]
    is_tame: bool
    """Whether its numbers are small and finite."""
    is_guarded: bool = False
    steps: list[str] = field(default_factory=list[str])
    """What was done to it, for the message of a failure."""

    def __post_init__(self) -> None:
        self.drawn = print_module(self.module)

    def __repr__(self) -> str:
        now = print_module(self.module)
        return f"{self.drawn}\n{self.steps}\n{now}\narguments: {self.arguments!r}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How Hypothesis shows a failing example."""
        printer.text(repr(self))

    @property
    def kernel(self) -> Instruction:
        body = self.module.functions["main"].body
        assert body is not None
        return body.entry.instructions[0]

    @property
    def block(self) -> Block:
        return self.kernel.regions[0].entry

    def run(self) -> tuple[Array, ...] | str:
        """The results, or which check failed."""
        try:
            found = evaluate(self.module, "main", *self.arguments)
        except IndexError as error:
            return str(error)
        return found if isinstance(found, tuple) else (found,)


def module_of(build: KernelBuilder) -> Module:
    """A function `main` that is this kernel."""
    b = start_function(build.operand_types)
    body = build.kernel(b, *b.block.arguments)
    places = tuple(output(k) for k in range(len(build.output_types)))
    b.block.instructions[-1].placement = Placement(places)
    b.emit_many(Return(), body)
    types = [value.type for value in body]
    result = types[0] if len(types) == 1 else TupleType(tuple(types))
    module = Module(stage=Stage.SCHEDULE)
    module.add(finish_function("main", b, result))
    return module


def random_kernel(seed: int) -> Program:
    """The random kernel of that number, with arguments.

    Numbers decide and not a strategy of Hypothesis: that draws small programs, and numbers that are nearly all the
    same, in which no wrong order shows.
    """
    rng = Random(seed)
    types = [
        TensorType(tuple(rng.choices(EXTENTS, k=rng.randint(0, 3))), rng.choice(DTYPES))
        for _ in range(rng.randint(2, 5))
    ]
    count = rng.randint(1, min(2, len(types) - 1))
    build = KernelBuilder(types[count:], types[:count])
    draft = _Draft(rng, build, is_tame=rng.random() < 0.5, is_guarded=rng.random() < 0.4)
    draft.block(0, 1)
    draft.block(0, 1)
    data = np.random.default_rng(seed)
    arguments = tuple(_numbers(type, draft.is_tame, data) for type in build.operand_types)
    return Program(module_of(build), arguments, draft.is_tame, draft.is_guarded)


def _numbers(type: TensorType, is_tame: bool, rng: np.random.Generator) -> Array:
    """Small whole numbers, and among them those that break careless laws unless they are to be tame."""
    values = rng.integers(-4, 5, type.shape).astype(type.dtype.numpy)
    if not is_tame:
        odd = np.array(numbers(type.dtype, tame=False), type.dtype.numpy)
        values = np.where(rng.random(type.shape) < 0.2, rng.choice(odd, type.shape), values)
    return np.asarray(values, type.dtype.numpy)


@dataclass
class _Draft:
    """A kernel while it is drawn: what a place in it sees."""

    rng: Random
    build: KernelBuilder
    is_tame: bool
    is_guarded: bool = False
    indices: list[tuple[Value, int, int]] = field(default_factory=list[tuple[Value, int, int]])
    """Indices of loops with their smallest and largest number."""
    counts: list[int] = field(default_factory=list[int])
    scalars: list[Value] = field(default_factory=list[Value])
    locals: list[Value] = field(default_factory=list[Value])

    def block(self, depth: int, runs: int) -> None:
        """A few statements: loops as long as it is not deep, stores, updates, local buffers."""
        kinds = ["loop", "loop", "loop", "nest"] if depth < 4 else []
        others = ["store", "update", "local", "scalar", *(["reduce"] if kinds else [])]
        others += ["where", "where", "check", "fill", "copy", "view"] if self.is_guarded else []
        kinds += ["bounded"] * (self.is_guarded and depth < 4)
        for _ in range(self.rng.randint(1, 3)):
            kind = self.rng.choice([*kinds, *others])
            seen = len(self.scalars), len(self.locals)
            if kind == "loop":
                self.loop(depth, runs, carries=False)
            elif kind == "bounded":
                self.loop(depth, runs, carries=self.rng.random() < 0.5, is_bounded=True)
            elif kind == "reduce":
                self.loop(depth, runs, carries=True)
            elif kind == "local":
                self.local()
            elif kind == "scalar":  # which is used later, perhaps behind stores
                self.scalars.append(self.value(depth=3))
            elif kind == "nest":
                self.nest(runs)
            elif kind in ("where", "check", "fill", "copy", "view"):
                getattr(self, kind)()
            else:
                self.store(is_update=kind == "update")
            if kind not in ("reduce", "local", "scalar", "view"):
                del self.scalars[seen[0] :], self.locals[seen[1] :]

    def nest(self, runs: int) -> None:
        """Loops of which each stands alone in that around it, and a store or an update."""
        with ExitStack() as loops:
            seen = len(self.indices)
            for _ in range(self.rng.randint(1, 3)):
                count = self.count(runs)
                runs *= max(1, count)
                made = loops.enter_context(self.build.loop(count))
                self.indices.append((made.index, 0, max(0, count - 1)))
            self.store(is_update=self.rng.random() < 0.5)
            del self.indices[seen:]

    def count(self, runs: int) -> int:
        """How often a loop runs: often as another does, so that loops can be fused."""
        fitting = [count for count in (*self.counts * 2, *COUNTS) if count * runs <= MOST_RUNS]
        self.counts.append(self.rng.choice(fitting))
        return self.counts[-1]

    def loop(self, depth: int, runs: int, *, carries: bool, is_bounded: bool = False) -> None:
        """A loop; one that is bounded begins and ends at indices that are read, an outer one's, or anywhere."""
        count = self.count(runs)
        lower, step = self.rng.choice(BOUNDS[:2] if is_bounded else BOUNDS)
        last = lower + max(0, count - 1) * step
        start = [self.value(depth=0) for _ in range(self.rng.randint(1, 2) if carries else 0)]
        seen = len(self.scalars), len(self.locals)
        upper = last + self.rng.choice((1, step)) if count else lower
        loop = (
            self.build.bounded_loop(self.bound(), self.bound(), upper, lower=lower, carrying=start)
            if is_bounded
            else self.build.loop(upper, lower=lower, step=step, carrying=start)
        )
        with loop as made:
            self.indices.append((made.index, lower, last))
            if depth < 3 and self.rng.random() < 0.5:
                self.block(depth + 1, max(1, runs * count))
            elif not carries:
                self.store(is_update=self.rng.random() < 0.5)
            made.yields(*[self.combined(x) for x in made.carried])
            self.indices.pop()
            del self.scalars[seen[0] :], self.locals[seen[1] :]
        self.scalars += made.results

    def bound(self) -> Value:
        """Where a bounded loop begins or ends, perhaps far outside of the indices that it may have."""
        if self.indices and self.rng.random() < 0.5:
            return self.index()
        if self.rng.random() < 0.5:
            return self.build.constant(I64, self.rng.choice((-(2**63), -3, 0, 1, 2, 7, 2**63 - 1)))
        return self.read_index(6)

    def combined(self, carried: Value) -> Value:
        """What an iteration makes of a carried value: mostly a step of a reduction."""
        dtype = carried.tensor.dtype
        x = self.value(dtype)
        if self.rng.randint(0, 5) == 0:
            return x
        if dtype.is_float and self.rng.randint(0, 3) == 0:
            return self.build.emit(Fma(), x, self.value(dtype), carried)
        return self.build.emit(self.rng.choice(REDUCTIONS), carried, x)

    def local(self) -> None:
        """A buffer of the kernel's own, of which everything is written."""
        extent = self.rng.choice(EXTENTS[1:6])
        dtype = self.rng.choice(DTYPES)
        buffer = self.build.local(TensorType((extent,), dtype))
        with self.build.loop(extent) as made:
            self.indices.append((made.index, 0, extent - 1))
            self.build.store(self.value(dtype), buffer, made.index)
            self.indices.pop()
        self.locals.append(buffer)

    def where(self) -> None:
        """A store where a condition holds, perhaps of what was there."""
        buffer = self.rng.choice([*self.build.outputs, *self.locals])
        places = self.guarded(buffer)
        value = self.value(_tensor(buffer).dtype)
        if self.rng.random() < 0.3:
            old = self.build.load_where(self.condition(), buffer, *places)
            value = self.build.emit(self.rng.choice(REDUCTIONS), old, value)
        self.build.store_where(self.condition(), value, buffer, *places)

    def check(self) -> None:
        """A check that may fail, seldom."""
        self.build.check(self.read_index(4), self.rng.choice((2, 4, 5, 5, 5, 5)))

    def fill(self) -> None:
        buffer = self.rng.choice([*self.build.outputs, *self.locals])
        self.build.fill(buffer, self.build.constant(_tensor(buffer).dtype, self.rng.randint(-2, 3)))

    def copy(self) -> None:
        """Of a buffer that has the type of another."""
        target = self.rng.choice([*self.build.outputs, *self.locals])
        others = [*self.build.operands, *self.build.outputs, *self.locals]
        alike = [x for x in others if x.type == target.type and _root(x) is not _root(target)]
        if alike:
            self.build.copy(self.rng.choice(alike), target)

    def view(self) -> None:
        """The elements of a buffer in one row."""
        buffer = self.rng.choice([*self.build.outputs, *self.locals])
        tensor = _tensor(buffer)
        self.locals.append(self.build.reshape(buffer, tensor.with_shape((tensor.size,))))

    def condition(self) -> Value:
        dtype = self.rng.choice(DTYPES)
        return self.build.emit(LessThan(), self.value(dtype, 1), self.value(dtype, 1))

    def read_index(self, last: int) -> Value:
        """An index from 0 to `last` that is read, or computed."""
        index = self.build.emit(DataTypeCast(I64), self.value(I32, 1))
        least = self.build.emit(Maximum(), index, self.build.constant(I64, 0))
        return self.build.emit(Minimum(), least, self.build.constant(I64, last))

    def guarded(self, buffer: Value) -> list[Value | IndexSum]:
        return [
            self.read_index(extent - 1) if self.rng.random() < 0.5 else self.along(extent)
            for extent in _tensor(buffer).shape
        ]

    def store(self, *, is_update: bool) -> None:
        buffer = self.rng.choice([*self.build.outputs, *self.locals])
        places = self.places(buffer)
        value = self.value(_tensor(buffer).dtype)
        if is_update:
            old = self.build.load(buffer, *places)
            value = self.build.emit(self.rng.choice(REDUCTIONS), old, value)
        self.build.store(value, buffer, *places)

    def value(self, dtype: DType | None = None, depth: int = 2) -> Value:
        """A scalar: loaded, constant, one that there is, an index, or computed from others."""
        dtype = dtype or self.rng.choice(DTYPES)
        known = [x for x in self.scalars if x.tensor.dtype == dtype]
        buffers = [*self.build.operands, *self.build.outputs * 3, *self.locals * 2]
        buffers = [x for x in buffers if _tensor(x).dtype == dtype]
        kinds = ["constant", *["load"] * 4 * bool(buffers), *["known"] * bool(known)]
        kinds += ["op"] * 2 * depth + ["index"] * (bool(self.indices) and depth > 0)
        kind = self.rng.choice(kinds)
        if kind == "load":
            buffer = self.rng.choice(buffers)
            if self.is_guarded and depth and self.rng.random() < 0.3:
                return self.build.load_where(self.condition(), buffer, *self.guarded(buffer))
            return self.build.load(buffer, *self.places(buffer))
        if kind == "known":
            return self.rng.choice(known)
        if kind == "constant":
            return self.build.constant(dtype, self.rng.randint(-2, 3))
        if kind == "index":
            return self.build.emit(DataTypeCast(dtype), self.index())
        return self.computed(dtype, depth - 1)

    def index(self) -> Value:
        """A number that depends on an index: itself, or a sum."""
        index, _, _ = self.rng.choice(self.indices)
        if self.rng.random() < 0.5:
            return index
        other, _, _ = self.rng.choice(self.indices)
        sum = IndexSum(self.rng.randint(-2, 2), {index: 3}).plus(IndexSum(0, {other: -1}))
        return self.build.index_value(sum)

    def computed(self, dtype: DType, depth: int) -> Value:
        emit = self.build.emit
        kind = self.rng.choice(("unary", "binary", "binary", "select", "cast", "special"))
        x = self.value(dtype, depth)
        if kind == "unary":
            return emit(self.rng.choice(UNARY), x)
        if kind == "cast":
            return emit(DataTypeCast(dtype), emit(DataTypeCast(F64 if dtype == F32 else F32), x))
        if kind == "special" and dtype.is_float:
            return emit(Fma(), x, x, self.value(dtype, 0)) if depth else emit(Exp(), x)
        y = self.value(dtype, depth)
        if kind == "select":
            return emit(Select(), x, y, emit(LessThan(), x, self.value(dtype, 0)))
        return emit(self.rng.choice(BINARY), x, y)

    def places(self, buffer: Value) -> list[IndexSum]:
        return [self.along(extent) for extent in _tensor(buffer).shape]

    def along(self, extent: int) -> IndexSum:
        """An index that is inside of an axis."""
        rng = self.rng
        forms = [(IndexSum(0, {}), 0, 0)]
        for index, low, high in self.indices:
            one = IndexSum(0, {index: 1})
            forms += [(one, low, high), (one, low, high)]
            forms.append((IndexSum(0, {index: -1}), -high, -low))
            forms.append((IndexSum(0, {index: 2}), 2 * low, 2 * high))
            for other, lower, upper in self.indices:
                if other is not index:
                    both = one.plus(IndexSum(0, {other: 1}))
                    forms.append((both, low + lower, high + upper))
        fitting = [form for form in forms if form[2] - form[1] < extent]
        form, low, high = rng.choice(fitting[1:] or fitting)
        if rng.randint(0, 7) == 0:
            form, low, high = fitting[0]
        is_shifted = rng.randint(0, 2) == 0 or low < 0 or high >= extent
        return form.plus(rng.randint(-low, extent - 1 - high) if is_shifted else 0)


def _root(buffer: Value) -> Value:
    return root_of(buffer, ())


def _tensor(buffer: Value) -> TensorType:
    type = buffer.type
    pointee = getattr(type, "pointee", None)
    assert isinstance(pointee, TensorType)
    return pointee
