"""How a random program applies each op: to operands that exist if some fit, otherwise to new ones."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

from nnkit.core.ir import Builder, Module, Op, Value
from nnkit.core.ops import (
    Aggregate,
    ArgMax,
    ArgMin,
    ArgSort,
    BitCast,
    Bounds,
    Broadcast,
    Builtin,
    Concatenate,
    Convolve,
    DataTypeCast,
    Dot,
    Equal,
    Gather,
    Iota,
    NotEqual,
    OneHot,
    Pad,
    PaddingMode,
    PadShape,
    Rank,
    Reduce,
    ReduceWindow,
    Reinterpret,
    Reverse,
    Scan,
    Scatter,
    ScatterAdd,
    Select,
    ShapeCast,
    ShapeOf,
    Slice,
    SqueezeShape,
    StraightThrough,
    Threefry,
    Transpose,
    UnitCount,
    Update,
    dense,
    splat,
)
from nnkit.core.ops.combinator import Combinator
from nnkit.core.types import (
    BOOL,
    DTYPES,
    I32,
    I64,
    DType,
    Shape,
    StructType,
    TensorType,
    TupleType,
    Type,
    broadcast_shapes,
    elements_of,
)
from tests.values import Draw, arrays, numbers, shapes

Recipe: TypeAlias = "Callable[[Draft, type[Op]], Value]"

MAX_ELEMENTS = 96
MAX_RANK = 5


@dataclass(frozen=True)
class Options:
    """What a program may be made of."""

    ops: tuple[type[Op], ...]
    dtypes: tuple[DType, ...]
    aggregates: bool
    tame: bool


@dataclass
class Draft:
    """A function in the making: what can be used, and how to choose."""

    draw: Draw
    module: Module
    options: Options
    builder: Builder
    values: list[Value] = field(default_factory=list[Value])
    latest: type[Op] | None = None

    def pick(self, choices: Sequence[Any]) -> Any:
        """One of `choices`."""
        return choices[self.draw(st.integers(0, len(choices) - 1))]

    def integer(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return int(self.draw(st.integers(low, high)))

    def flag(self) -> bool:
        return bool(self.draw(st.booleans()))

    def emit(self, op: Op, *operands: Value) -> Value:
        """The instruction, whose result can be used from now on."""
        value = self.builder.emit(op, *operands)
        self.values.append(value)
        return value

    def value(self, type: Type) -> Value:
        """A value of exactly this type."""
        return self.one_of([x for x in self.values if x.type == type], type)

    def one_of(self, candidates: list[Value], otherwise: Type) -> Value:
        """One of the candidates, the last one most of all, or something new."""
        if candidates and self.flag():
            return candidates[-1]
        choice = self.integer(0, len(candidates))
        return candidates[choice] if choice < len(candidates) else self.fresh(otherwise)

    def fresh(self, type: Type) -> Value:
        """A new parameter, constant or aggregate of new ones."""
        elements = elements_of(type)
        if elements is not None and self.flag():
            assert isinstance(type, TupleType | StructType)
            return self.emit(Aggregate(type), *(self.value(element) for element in elements))
        if elements is not None or self.flag():
            value = self.builder.argument(type)
            self.values.append(value)
            return value
        assert isinstance(type, TensorType)
        return self.emit(self.constant(type))

    def constant(self, type: TensorType) -> Op:
        """A literal of `type`: a splat or different elements."""
        if type.size < 2 or self.flag():
            return splat(type, self.pick(numbers(type.dtype, tame=self.options.tame)))
        return dense(type, self.draw(arrays(type, tame=self.options.tame)))

    def tensor(
        self,
        *,
        kinds: Sequence[str] = ("float", "integer", "boolean"),
        dtype: DType | None = None,
        fits: Callable[[Shape], bool] = lambda _: True,
        shape: Shape = (2, 3),
    ) -> Value:
        """A tensor of a kind, or of exactly one dtype, whose shape fits; `shape` is one that does."""
        known = [
            x
            for x in self.values
            if isinstance(x.type, TensorType)
            and (x.type.dtype == dtype if dtype else x.type.dtype.kind in kinds)
            and fits(x.type.shape)
        ]
        allowed = [d for d in self.options.dtypes if d.kind in kinds] or [
            d for d in DTYPES.values() if d.kind in kinds
        ]
        return self.one_of(known, TensorType(shape, dtype or self.pick(allowed)))

    def partner(self, x: Value, dtype: DType | None = None) -> Value:
        """A tensor that broadcasts against `x` to something small."""
        own = x.tensor.shape
        shape = tuple(1 if self.integer(0, 3) == 0 else n for n in own[self.integer(0, len(own)) :])
        return self.tensor(
            dtype=dtype or x.tensor.dtype, fits=lambda s: _broadcasts([own, s]), shape=shape
        )


def elementwise(draft: Draft, op_class: Any) -> Value:
    """Operands that broadcast to something small, now and then the same one twice."""
    count = operand_count(op_class)
    x = draft.tensor(kinds=op_class.accepts, fits=lambda s: len(s) <= MAX_RANK)
    operands = [x]
    for _ in range(count - 1):
        sofar = broadcast_shapes([y.tensor.shape for y in operands])
        if draft.integer(0, 7) == 0:
            operands.append(operands[-1])
            continue
        other = draft.partner(x)
        fits = _broadcasts([sofar, other.tensor.shape])
        operands.append(other if fits else operands[-1])
    return draft.emit(op_class(), *operands)


def _select(draft: Draft, _: type[Op]) -> Value:
    x = draft.tensor()
    y = draft.partner(x) if draft.integer(0, 7) else x
    shape = broadcast_shapes([x.tensor.shape, y.tensor.shape])
    condition = draft.tensor(dtype=BOOL, fits=lambda s: _broadcasts([shape, s]), shape=shape)
    return draft.emit(Select(), x, y, condition)


def _equality(draft: Draft, op_class: Any) -> Value:
    x = draft.tensor()
    return draft.emit(op_class(), x, draft.partner(x) if draft.integer(0, 7) else x)


def _straight_through(draft: Draft, _: type[Op]) -> Value:
    x = draft.tensor(kinds=("float",))
    shape = x.tensor.shape
    like = draft.tensor(dtype=x.tensor.dtype, fits=lambda s: s == shape, shape=shape)
    return draft.emit(StraightThrough(), x, like)


def _threefry(draft: Draft, _: type[Op]) -> Value:
    key = draft.tensor(dtype=I64)
    return draft.emit(Threefry(), key, draft.partner(key))


def _cast(draft: Draft, _: type[Op]) -> Value:
    return draft.emit(DataTypeCast(draft.pick(draft.options.dtypes)), draft.tensor())


def _transpose(draft: Draft, _: type[Op]) -> Value:
    x = draft.tensor()
    order = draft.draw(st.permutations(range(x.tensor.rank)))
    return draft.emit(Transpose(tuple(order) if draft.flag() else ()), x)


def _shape_cast(draft: Draft, _: type[Op]) -> Value:
    x = draft.tensor()
    shape, size = list(x.tensor.shape), x.tensor.size
    options: list[Shape] = [(size,), (1, size), (size, 1), tuple(reversed(shape))]
    options += [(2, size // 2)] if size % 2 == 0 else []
    options += [tuple(n for n in shape if n != 1), (1, *shape)] if len(shape) < MAX_RANK else []
    return draft.emit(ShapeCast(draft.pick(options)), x)


def _pad_shape(draft: Draft, _: type[Op]) -> Value:
    x = draft.tensor(fits=lambda s: len(s) < MAX_RANK)
    return draft.emit(PadShape(draft.integer(0, x.tensor.rank)), x)


def _squeeze_shape(draft: Draft, _: type[Op]) -> Value:
    x = draft.tensor(fits=lambda s: 1 in s, shape=(2, 1))
    units = [axis for axis, n in enumerate(x.tensor.shape) if n == 1]
    return draft.emit(SqueezeShape(draft.pick(units)), x)


def _reverse(draft: Draft, _: type[Op]) -> Value:
    x = draft.tensor()
    return draft.emit(Reverse(_some_axes(draft, x)), x)


def _broadcast(draft: Draft, _: type[Op]) -> Value:
    x = draft.tensor(fits=lambda s: len(s) < MAX_RANK, shape=(1, 3))
    wide = tuple(draft.pick((1, 2, 3)) if n == 1 else n for n in x.tensor.shape)
    leading = tuple(draft.pick((1, 2, 0)) for _ in range(draft.integer(0, MAX_RANK - len(wide))))
    shape = (*leading, *wide)
    return draft.emit(Broadcast(shape if math.prod(shape) <= MAX_ELEMENTS else x.tensor.shape), x)


def _slice(draft: Draft, _: type[Op]) -> Value:
    x = draft.tensor()
    axes = draft.integer(0, x.tensor.rank)
    ends = [sorted((draft.integer(0, n), draft.integer(0, n))) for n in x.tensor.shape[:axes]]
    strides = tuple(draft.integer(1, 3) for _ in range(axes)) if draft.flag() else ()
    return draft.emit(Slice(tuple(a for a, _ in ends), tuple(b for _, b in ends), strides), x)


def _pad(draft: Draft, _: type[Op]) -> Value:
    x = draft.tensor(fits=lambda s: math.prod(s) <= MAX_ELEMENTS // 8)
    low, high, gaps = ([draft.integer(0, 1) for _ in x.tensor.shape] for _ in range(3))
    value = draft.tensor(dtype=x.tensor.dtype, fits=lambda s: s == (), shape=())
    return draft.emit(Pad(tuple(low), tuple(high), tuple(gaps) if draft.flag() else ()), x, value)


def _concatenate(draft: Draft, _: type[Op]) -> Value:
    x = draft.tensor(fits=lambda s: 0 < len(s) and math.prod(s) <= MAX_ELEMENTS // 4)
    axis = draft.integer(0, x.tensor.rank - 1)
    shape = x.tensor.shape

    def fits(other: Shape) -> bool:
        return (
            len(other) == len(shape)
            and math.prod(other) <= MAX_ELEMENTS // 4
            and all(a == b for k, (a, b) in enumerate(zip(shape, other, strict=True)) if k != axis)
        )

    extra = [
        draft.tensor(dtype=x.tensor.dtype, fits=fits, shape=shape)
        for _ in range(draft.integer(0, 2))
    ]
    return draft.emit(Concatenate(axis), x, *extra)


def _indices(draft: Draft, shape: Shape, extent: int, bounds: Bounds) -> Value:
    """Anything where it may be outside; constants inside where it must not."""
    if bounds in (Bounds.CLIP, Bounds.ZERO) and extent:
        return draft.tensor(dtype=draft.pick((I32, I64)), fits=lambda s: s == shape, shape=shape)
    size = math.prod(shape) if extent else 0
    picks = [draft.integer(0, extent - 1) for _ in range(size)]
    type = TensorType(shape if extent else (0,), draft.pick((I32, I64)))
    return draft.emit(dense(type, np.array(picks, type.dtype.numpy).reshape(type.shape)))


def _gather(draft: Draft, _: type[Op]) -> Value:
    x = draft.tensor(fits=lambda s: 0 < len(s) <= 3 and math.prod(s) <= MAX_ELEMENTS // 4)
    axis, bounds = draft.integer(0, x.tensor.rank - 1), draft.pick(list(Bounds))
    indices = _indices(draft, draft.pick(((), (2,), (1, 3))), x.tensor.shape[axis], bounds)
    return draft.emit(Gather(axis, bounds), x, indices)


def _scatter(draft: Draft, _: type[Op]) -> Value:
    updates = draft.tensor(kinds=("float", "integer"), fits=lambda s: 0 < len(s) <= 3)
    axis, bounds = draft.integer(0, updates.tensor.rank - 1), draft.pick(list(Bounds))
    shape, extent = updates.tensor.shape, draft.integer(1, 4)
    indices = _indices(draft, shape[axis : axis + 1], extent, bounds)
    result = (*shape[:axis], extent, *shape[axis + 1 :])
    return draft.emit(ScatterAdd(result, axis, bounds), updates, indices)


def _update(draft: Draft, _: type[Op]) -> Value:
    x = draft.tensor(kinds=("float", "integer"), fits=lambda s: 0 < len(s) <= 2 and 0 not in s)
    shape, axis = x.tensor.shape, draft.integer(0, x.tensor.rank - 1)
    bounds, update = draft.pick(list(Bounds)), draft.pick(list(Update))
    at: Shape = draft.pick(((), (2,), (1, 3)))
    others = [draft.integer(0, extent) for extent in shape]
    start = tuple(0 if k == axis else extent - others[k] for k, extent in enumerate(shape))
    updates = (*others[:axis], *at, *others[axis + 1 :])
    given = draft.tensor(dtype=x.tensor.dtype, fits=lambda s: s == updates, shape=updates)
    indices = _indices(draft, at, shape[axis], bounds)
    return draft.emit(Scatter(axis, update, start, bounds=bounds), given, x, indices)


def _one_hot(draft: Draft, _: type[Op]) -> Value:
    indices = draft.tensor(kinds=("integer",), fits=lambda s: len(s) < MAX_RANK)
    return draft.emit(OneHot(draft.integer(1, 3), draft.pick(draft.options.dtypes)), indices)


def _iota(draft: Draft, _: type[Op]) -> Value:
    shape = draft.draw(shapes()) or (3,)
    numeric = [d for d in draft.options.dtypes if d.is_numeric] or [I64]
    return draft.emit(Iota(shape, draft.integer(0, len(shape) - 1), draft.pick(numeric)))


def _reduce(draft: Draft, _: type[Op]) -> Value:
    x = draft.tensor()
    return draft.emit(Reduce(_combinator(draft, x), _some_axes(draft, x)), x)


def _arg(draft: Draft, op_class: Any) -> Value:
    x = draft.tensor(kinds=("float", "integer"), fits=lambda s: any(s))
    axes = [axis for axis, n in enumerate(x.tensor.shape) if n]
    return draft.emit(op_class(draft.pick(axes)), x)


def _arg_sort(draft: Draft, _: type[Op]) -> Value:
    x = draft.tensor(fits=lambda s: len(s) > 0)
    return draft.emit(ArgSort(draft.integer(0, x.tensor.rank - 1), draft.flag()), x)


def _scan(draft: Draft, _: type[Op]) -> Value:
    x = draft.tensor(fits=lambda s: len(s) > 0)
    axis = draft.integer(0, x.tensor.rank - 1)
    return draft.emit(Scan(_combinator(draft, x), axis, draft.flag(), draft.flag()), x)


def _dot(draft: Draft, _: type[Op]) -> Value:
    u = draft.tensor(kinds=("float", "integer"), fits=lambda s: 0 < len(s) <= 3)
    inner, batch = u.tensor.shape[-1], u.tensor.shape[:-2]

    def fits(other: Shape) -> bool:
        if not 0 < len(other) <= 3 or (other[-2] if len(other) > 1 else other[0]) != inner:
            return False
        return _broadcasts([batch, other[:-2]])

    shape = draft.pick(((inner,), (inner, 2), (inner, 1)))
    v = draft.tensor(dtype=u.tensor.dtype, fits=fits, shape=shape)
    return draft.emit(Dot(), u, v)


def _reduce_window(draft: Draft, _: type[Op]) -> Value:
    x = draft.tensor(fits=lambda s: len(s) <= 3)
    rank = range(x.tensor.rank)
    window = tuple(draft.integer(1, 3) for _ in rank)
    strides = tuple(draft.integer(1, 2) for _ in rank) if draft.flag() else ()
    pairs = tuple((draft.integer(-1, 2), draft.integer(-1, 2)) for _ in rank)
    padding = draft.pick([*PaddingMode, pairs])
    return draft.emit(ReduceWindow(_combinator(draft, x), window, strides, padding), x)


def _convolve(draft: Draft, _: type[Op]) -> Value:
    x = draft.tensor(kinds=("float", "integer"), fits=lambda s: 3 <= len(s), shape=(1, 2, 3))
    groups = draft.pick([n for n in (1, 2, 3) if x.tensor.shape[1] % n == 0])
    spatial = range(x.tensor.rank - 2)
    window = tuple(draft.integer(1, 2) for _ in spatial)
    shape = (groups * draft.integer(0, 2), x.tensor.shape[1] // groups, *window)
    kernel = draft.tensor(dtype=x.tensor.dtype, fits=lambda s: s == shape, shape=shape)
    strides, left, right = (
        tuple(draft.integer(1, 2) for _ in spatial) if draft.flag() else () for _ in range(3)
    )
    padding = tuple((draft.integer(-1, 1), draft.integer(-1, 1)) for _ in spatial)
    return draft.emit(Convolve(strides, padding, left, right, groups), x, kernel)


def _of_any(draft: Draft, op_class: type[Op]) -> Value:
    return draft.emit(op_class(), draft.tensor())


def _reinterpret(draft: Draft, _: type[Op]) -> Value:
    """Of integers: the bits of a NaN need not survive."""
    x = draft.tensor(kinds=("integer",))
    same = [d for d in DTYPES.values() if d.is_numeric and d.bits == x.tensor.dtype.bits]
    return draft.emit(Reinterpret(draft.pick(same)), x)


def _bit_cast(draft: Draft, _: type[Op]) -> Value:
    """Of integers, and to integers where the widths differ, for the same reason."""
    x = draft.tensor(kinds=("integer",))
    target = draft.pick([I32, I64, x.tensor.dtype])
    count, rest = divmod(x.tensor.bytes, target.bytes)
    if rest or count > MAX_ELEMENTS:
        target, count = x.tensor.dtype, x.tensor.size
    return draft.emit(BitCast(TensorType((count,), target)), x)


def _builtin(draft: Draft, _: type[Op]) -> Value:
    name = draft.pick(("relu", "sum", "max", "min"))
    x = draft.tensor(kinds=("float", "integer"))
    if name != "relu" and draft.flag():
        return draft.emit(Builtin(name, x.tensor.with_shape(())), x)
    if name in ("max", "min"):
        return draft.emit(Builtin(name, x.tensor), x, x)
    return draft.emit(Builtin("relu", x.tensor), x)


RECIPES: dict[type[Op], Recipe] = {
    Select: _select,
    Equal: _equality,
    NotEqual: _equality,
    StraightThrough: _straight_through,
    Threefry: _threefry,
    DataTypeCast: _cast,
    Transpose: _transpose,
    ShapeCast: _shape_cast,
    PadShape: _pad_shape,
    SqueezeShape: _squeeze_shape,
    Reverse: _reverse,
    Broadcast: _broadcast,
    Slice: _slice,
    Pad: _pad,
    Concatenate: _concatenate,
    Gather: _gather,
    ScatterAdd: _scatter,
    Scatter: _update,
    OneHot: _one_hot,
    Iota: _iota,
    Reduce: _reduce,
    ArgMax: _arg,
    ArgMin: _arg,
    ArgSort: _arg_sort,
    Scan: _scan,
    Dot: _dot,
    ReduceWindow: _reduce_window,
    Convolve: _convolve,
    Rank: _of_any,
    ShapeOf: _of_any,
    UnitCount: _of_any,
    Reinterpret: _reinterpret,
    BitCast: _bit_cast,
    Builtin: _builtin,
}
"""How to apply the ops that are not simply elementwise."""


def operand_count(op_class: type[Any]) -> int:
    """The number of operands that the op's syntax names."""
    attributes = {f.name for f in fields(op_class)}
    return len([name for name in re.findall(r"\{(\w+)", op_class.syntax) if name not in attributes])


def _combinator(draft: Draft, x: Value) -> Combinator:
    is_logical = x.tensor.dtype == BOOL
    return Combinator(draft.pick([c.value for c in Combinator if c.is_logical == is_logical]))


def _some_axes(draft: Draft, x: Value) -> tuple[int, ...]:
    return tuple(axis for axis in range(x.tensor.rank) if draft.flag())


def _broadcasts(parts: Sequence[Shape]) -> bool:
    """Whether the shapes fit together, to something small."""
    rank = max(map(len, parts))
    aligned = [(1,) * (rank - len(shape)) + tuple(shape) for shape in parts]
    extents = [{n for n in column if n != 1} for column in zip(*aligned, strict=True)]
    if rank > MAX_RANK or any(len(column) > 1 for column in extents):
        return False
    return bool(math.prod(max(column, default=1) for column in extents) <= MAX_ELEMENTS)
