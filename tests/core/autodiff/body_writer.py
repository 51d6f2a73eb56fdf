"""Writes the bodies of random differentiable programs, one instruction after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st

from nnkit.core import ops
from nnkit.core.ir import Block, Builder, Module, Op, Region, Value
from nnkit.core.ops import Bounds, Combinator
from nnkit.core.types import (
    BOOL,
    I64,
    DType,
    TensorType,
    Type,
    scalar,
)

Draw = Callable[[st.SearchStrategy[Any]], Any]

COUNT: Final = scalar(I64)
FLAG: Final = scalar(BOOL)
MOST_ELEMENTS: Final = 24
MOST_TRIPS: Final = 4

UNARY: Final[tuple[Op, ...]] = (
    ops.Sin(), ops.Tanh(), ops.Negate(), ops.Cos(), ops.Atan(), ops.Square(), ops.Abs(), ops.Erf(),
)  # fmt: skip
COMPARISONS: Final[tuple[Op, ...]] = (
    ops.GreaterThan(), ops.LessThan(), ops.LessThanOrEqual(), ops.GreaterThanOrEqual(),
)  # fmt: skip


def is_float(type: Type) -> bool:
    return isinstance(type, TensorType) and type.dtype.is_float


@dataclass
class BodyWriter:
    """A block in the making, with the `values` that it sees.

    With `unbounded`, the iterations of loops are known only when the program runs, and there are some.
    """

    draw: Draw
    dtypes: Sequence[DType]
    module: Module
    b: Builder
    depth: int
    values: list[Value] = field(default_factory=list[Value])
    unbounded: bool = False

    # what is drawn

    def integer(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def flag(self) -> bool:
        return bool(self.draw(st.booleans()))

    def pick(self, items: Sequence[Any]) -> Any:
        return items[self.integer(0, len(items) - 1)]

    def float_type(self) -> TensorType:
        dtype = self.pick(self.dtypes)
        return TensorType(self.pick([(), (3,), (2, 3)]), dtype)

    # values

    def argument(self, type: Type) -> Value:
        value = self.b.argument(type)
        self.values.append(value)
        return value

    def parameters(self, floats: int, integers: int) -> None:
        for _ in range(floats):
            self.argument(self.float_type())
        for _ in range(integers):
            self.argument(COUNT)

    def number(self, type: TensorType, number: float) -> Value:
        return ops.constant(self.b, type, number)

    def fresh(self, type: TensorType) -> Value:
        """A new constant."""
        if type.dtype.is_integer:
            return self.number(type, self.integer(-1, 3))
        if not type.dtype.is_float:
            return self.number(type, self.integer(0, 1))
        return self.number(type, self.pick([0.0, 1.0, 0.5, -0.75, 1.5]))

    def of(self, type: Type) -> Value:
        """A value of `type`: one that there is, the last ones most of all, or a constant."""
        assert isinstance(type, TensorType)
        found = [x for x in self.values if x.type == type]
        if not found or self.integer(0, 9) == 9:
            return self.fresh(type)
        return self.one_of(found)

    def one_of(self, found: Sequence[Value]) -> Value:
        """Any, or rather one of the last."""
        last = len(found) - 1
        return found[last - min(self.integer(0, last), self.integer(0, 2 * last))]

    def float_value(self) -> Value:
        found = [x for x in self.values if is_float(x.type)]
        if not found:
            return self.fresh(self.float_type())
        return self.one_of(found)

    def add(self, op: Op, *operands: Value) -> Value:
        value = self.b.emit(op, *operands)
        self.values.append(value)
        return value

    def small_count(self) -> Value:
        """An integer from −1 up to 3, or 1 up to 3 if unbounded, known only when the program runs."""
        if self.unbounded:
            x = self.b.emit(ops.Modulo(), self.of(COUNT), self.number(COUNT, 3))
            return self.b.emit(ops.Add(), x, self.number(COUNT, 1))
        x = self.b.emit(ops.Modulo(), self.of(COUNT), self.number(COUNT, 5))
        return self.b.emit(ops.Subtract(), x, self.number(COUNT, 1))

    def scalar_of(self, x: Value) -> Value:
        """A number that depends on all elements of `x`."""
        if x.tensor.rank:
            return self.b.emit(ops.Reduce(Combinator.ADD, tuple(range(x.tensor.rank))), x)
        return x

    def condition(self) -> Value:
        """Of an integer or a float, or one that there is."""
        if self.integer(0, 4) == 4:
            return self.of(FLAG)
        if self.flag():
            two = self.number(COUNT, 2)
            parity = self.b.emit(ops.Modulo(), self.of(COUNT), two)
            return self.b.emit(ops.Equal(), parity, self.number(COUNT, 0))
        x = self.scalar_of(self.float_value())
        return self.b.emit(self.pick(COMPARISONS), x, self.number(x.tensor, self.pick([0.0, 0.3])))

    def latest(self, type: Type) -> Value:
        """What was computed last, summed up or spread if that is how it becomes a value of `type`."""
        assert isinstance(type, TensorType)
        if not type.dtype.is_float:
            return self.of(type)
        found = [x for x in self.values if is_float(x.type)]
        x = found[-1 - self.integer(0, min(2, len(found) - 1))] if found else self.fresh(type)
        if x.tensor.dtype != type.dtype:
            x = self.b.emit(ops.DataTypeCast(type.dtype), x)
        if x.type == type:
            return x
        x = self.scalar_of(x)
        return self.b.emit(ops.Broadcast(type.shape), x) if type.rank else x

    def given(self, type: Type) -> Value:
        """What a body gives: new, from around it, or a constant."""
        return self.latest(type) if self.integer(0, 3) else self.of(type)

    def bounded(self, x: Value) -> Value:
        """x, or what keeps it from growing."""
        return self.b.emit(ops.Tanh(), x) if self.flag() else x

    # instructions

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()

    def step(self) -> None:
        kinds = [self.unary, self.binary, self.binary, self.move, self.count, self.rows]
        if self.depth:
            kinds += [self.call, self.structured, self.structured]
        self.pick(kinds)()

    def structured(self) -> None:
        """An instruction with bodies."""
        kinds = [self.choice, self.counted_loop, self.counted_loop, self.loop]
        self.pick([self.loop, self.call, self.counted_loop, *kinds] if self.unbounded else kinds)()

    def unary(self) -> None:
        x = self.float_value()
        kind = self.integer(0, len(UNARY) + 2)
        if kind < len(UNARY):
            self.add(UNARY[kind], x)
        elif kind == len(UNARY):
            self.add(ops.Exp(), self.b.emit(ops.Tanh(), x))
        elif kind == len(UNARY) + 1:
            one = self.b.emit(ops.Square(), x)
            self.add(
                ops.Sqrt(), self.b.emit(ops.Add(), one, self.number(x.tensor.with_shape(()), 1))
            )
        else:
            self.add(ops.StopGradient(), x)

    def binary(self) -> None:
        x = self.float_value()
        y = self.of(x.tensor if self.flag() else x.tensor.with_shape(()))
        kind = self.integer(0, 6)
        if kind == 0:
            self.values.append(self.bounded(self.b.emit(ops.Multiply(), x, y)))
        elif kind == 1:
            self.add(ops.Add(), x, y)
        elif kind == 2:
            self.add(ops.Subtract(), y, x)
        elif kind == 3:
            one = self.number(y.tensor.with_shape(()), 1)
            self.add(ops.Divide(), x, self.b.emit(ops.Add(), self.b.emit(ops.Square(), y), one))
        elif kind == 4:
            self.add(ops.Maximum() if self.flag() else ops.Minimum(), x, y)
        elif kind == 5:
            self.add(ops.Select(), x, y, self.b.emit(self.pick(COMPARISONS), x, y))
        else:
            self.add(ops.Multiply(), x, self.b.emit(ops.Sin(), y))

    def move(self) -> None:
        """A value of another shape or element type."""
        x = self.float_value()
        type = x.tensor
        kind = self.integer(0, 5)
        if kind == 0 and type.rank:
            joined = Combinator.MULTIPLY if self.integer(0, 3) == 3 else Combinator.ADD
            self.add(ops.Reduce(joined, (self.integer(0, type.rank - 1),)), x)
        elif kind == 1 and type.rank == 0:
            self.add(ops.Broadcast(self.pick([(3,), (2, 3)])), x)
        elif kind == 2 and type.rank == 2:
            self.add(ops.Transpose((1, 0)), x)
        elif kind == 3 and type.rank and type.shape[0] and type.size <= MOST_ELEMENTS // 2:
            self.add(ops.Concatenate(0), x, self.of(type))
        elif kind == 4 and type.rank == 1:
            self.add(ops.Dot(), x, self.of(type))
        elif len(self.dtypes) > 1:
            self.add(ops.DataTypeCast(self.pick(self.dtypes)), x)
        else:
            self.add(ops.Scan(Combinator.ADD, 0) if type.rank else ops.Sin(), x)

    def count(self) -> None:
        """An integer, or a float made of one."""
        x = self.of(COUNT)
        if self.flag():
            self.add(self.pick([ops.Add(), ops.Subtract(), ops.Multiply()]), x, self.of(COUNT))
            return
        small = self.b.emit(ops.Modulo(), x, self.number(COUNT, 4))
        self.add(ops.DataTypeCast(self.pick(self.dtypes)), small)

    def rows(self) -> None:
        """Read a row, or write one, at an index that may be outside."""
        found = [x for x in self.values if is_float(x.type) and x.tensor.rank and x.tensor.shape[0]]
        if not found:
            return self.move()
        x = self.pick(found)
        at, bounds = self.of(COUNT), self.pick([Bounds.CLIP, Bounds.ZERO, Bounds.CHECK])
        if bounds is Bounds.CHECK:
            at = self.b.emit(ops.Modulo(), at, self.number(COUNT, x.tensor.shape[0]))
        row = self.b.emit(ops.Gather(0, bounds), x, at)
        if self.flag():
            self.values.append(row)
            return None
        if self.flag():
            change = self.b.emit(ops.Subtract(), self.of(row.type), row)
            written = self.b.emit(ops.ScatterAdd(x.tensor.shape, 0, bounds), change, at)
            self.add(ops.Add(), x, written)
            return None
        update = self.pick(list(ops.Update))
        if self.flag():
            self.add(ops.Scatter(0, update, bounds=bounds), self.of(row.type), x, at)
        else:
            start = self.integer(0, x.tensor.shape[0] - 1)
            part = self.b.emit(ops.ShapeCast((1, *row.tensor.shape)), self.of(row.type))
            place = (start, *[0] * row.tensor.rank)
            self.add(ops.Scatter(0, update, place, bounds=Bounds.INSIDE), part, x)
        return None

    def call(self) -> None:
        callees = [f for f in self.module.functions.values() if f.body is not None]
        if not callees:
            return self.unary()
        callee = self.pick(callees)
        arguments = [self.of(type) for type in callee.type.parameters]
        if callee.name.startswith("recursive"):
            arguments[0] = self.small_count()
        self.values += self.b.emit_many(ops.Apply(callee.name, callee.type), arguments)
        return None

    # bodies

    def inside(self, name: str) -> BodyWriter:
        b = Builder(Block(name=name))
        values = list(self.values)
        depth = self.depth - 1
        return BodyWriter(self.draw, self.dtypes, self.module, b, depth, values, self.unbounded)

    def region(self, yielded: Sequence[Value]) -> Region:
        self.b.emit_many(ops.Yield(), yielded)
        return Region([self.b.block])

    def keep(self, results: Sequence[Value]) -> None:
        """What goes on with results; others are not used by anything."""
        self.values += [x for x in results if self.integer(0, 3) < 3]

    def choice(self) -> None:
        condition = self.condition()
        bodies = [self.inside("then"), self.inside("else")]
        for body in bodies:
            body.steps(self.integer(0, 2))
        types = [self.float_type() for _ in range(self.integer(1, 3))]
        if self.flag():
            types.append(self.pick([COUNT, FLAG]))
        regions = [body.region([body.given(type) for type in types]) for body in bodies]
        self.keep(self.b.emit_many(ops.If(tuple(types)), [condition], regions))

    def starts(self) -> list[Value]:
        """What a loop carries at first."""
        counts = [1, 2] if self.unbounded else [1, 2, 0, 1, 2]
        found = [self.float_value() for _ in range(self.pick(counts))]
        starts = [self.fresh(x.tensor) if self.integer(0, 2) == 2 else x for x in found]
        if starts and self.flag():
            starts.append(self.of(starts[0].type))  # two of a type, which may be swapped
        if self.integer(0, 3) == 3:
            starts.append(self.of(self.pick([COUNT, FLAG])))
        return starts

    def following(self, carried: Sequence[Value]) -> list[Value]:
        """What is carried next; if unbounded, made of products that have to be recorded."""
        if self.unbounded:
            for x in carried:
                if is_float(x.type):
                    self.add(ops.Sin(), self.b.emit(ops.Multiply(), x, self.latest(x.type)))
        return [self.next_of(x, carried) for x in carried]

    def next_of(self, x: Value, carried: Sequence[Value]) -> Value:
        kind = self.integer(0, 7)
        if kind == 0:
            return x
        if kind == 1:
            return self.fresh(x.tensor)
        if kind == 2:
            # another one, which this one may replace: they are swapped
            same = [y for y in carried if y.type == x.type]
            return same[self.integer(0, len(same) - 1)]
        if kind == 3:
            return self.of(x.type)
        if x.type == FLAG:
            return self.condition()
        y = self.latest(x.type)
        if kind == 4:
            return self.b.emit(ops.Add(), x, y)
        return self.bounded(y) if is_float(x.type) else y

    def counted_loop(self) -> None:
        lower = self.integer(-2, 2)
        trips = self.integer(-1, MOST_TRIPS)
        is_known = not self.unbounded and self.flag()
        bounds = [self.number(COUNT, lower), self.number(COUNT, lower + trips)]
        if not is_known:
            bounds[1] = self.b.emit(ops.Add(), bounds[0], self.small_count())
        starts = self.starts()
        body = self.inside("body")
        body.argument(COUNT)
        carried = [body.argument(x.type) for x in starts]
        body.steps(self.integer(1, 3))
        yielded = body.following(carried)
        stacked: list[TensorType] = []
        trips = max(trips, 0)
        for _ in range(self.integer(0, 2) if is_known else 0):
            x = body.of(COUNT) if body.integer(0, 7) == 7 else body.float_value()
            if x.tensor.rank < 3 and x.tensor.size * trips <= MOST_ELEMENTS:
                yielded.append(x)
                stacked.append(x.tensor.with_shape((trips, *x.tensor.shape)))
        op = ops.For(tuple(stacked))
        self.keep(self.b.emit_many(op, [*bounds, *starts], [body.region(yielded)]))

    def loop(self) -> None:
        starts = [self.number(COUNT, self.integer(0, 1 if self.unbounded else 3)), *self.starts()]
        test = self.inside("condition")
        counter, *carried = [test.argument(x.type) for x in starts]
        more = test.b.emit(ops.LessThan(), counter, test.number(COUNT, 3))
        floats = [x for x in carried if is_float(x.type)]
        if floats and self.flag():
            size = test.b.emit(ops.Abs(), test.scalar_of(floats[0]))
            small = test.b.emit(ops.LessThan(), size, test.number(size.tensor, 1.3))
            more = test.b.emit(ops.And(), more, small)
        body = self.inside("body")
        counter, *carried = [body.argument(x.type) for x in starts]
        body.steps(self.integer(1, 3))
        next_count = body.b.emit(ops.Add(), counter, body.number(COUNT, 1))
        regions = [test.region([more]), body.region([next_count, *body.following(carried)])]
        self.keep(self.b.emit_many(ops.While(), starts, regions))

    def returned(self) -> list[Value]:
        """One to four values: a float among them, which may depend on all that were computed."""
        floats = [x for x in self.values if is_float(x.type)]
        others = [self.one_of(self.values) for _ in range(self.integer(0, 3))]
        is_last = self.flag() and not self.unbounded
        return [floats[-1] if is_last else self.total(floats), *others]

    def total(self, floats: Sequence[Value]) -> Value:
        """The sum of the sines of all elements."""
        type = scalar(self.dtypes[0])
        total = self.number(type, 0)
        for x in floats:
            part = self.scalar_of(self.b.emit(ops.Sin(), x))
            if part.type != type:
                part = self.b.emit(ops.DataTypeCast(type.dtype), part)
            total = self.b.emit(ops.Add(), total, part)
        return total
