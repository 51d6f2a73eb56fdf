"""Programs for guard pages: every op, every element type, extents from 1 to 70, alone and beside other nests.

A case is one op (`RECIPES` says on which operands), and what is done with its result (`ENDINGS`): returned, reduced
beside that, cast, written backwards.  Nests of their own (`nest`) reach what no op does: writes backwards, at a
distance, outside, into what has been written.  The same number always gives the same case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from nnkit.core.compute.fuse import fuse
from nnkit.core.compute.generate import generate_compute
from nnkit.core.compute.lower_memory.lower import lower_memory
from nnkit.core.errors import NNKitError
from nnkit.core.ir import Builder, Function, Module, Op, Stage, Value, start_function
from nnkit.core.ops import (
    ALL,
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
    Elementwise,
    Gather,
    Iota,
    OneHot,
    Pad,
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
    Threefry,
    Transpose,
    UnitCount,
    Update,
    splat,
)
from nnkit.core.ops.combinator import Combinator
from nnkit.core.ops.nest import Access, Affine, Output, build_nest, coordinate
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.types import BOOL, DTYPES, I32, I64, Array, DType, Shape, TensorType
from tests.core.ops.catalogue import SAMPLES
from tests.jit.emit.running import Decisions, finish, scheduled
from tests.recipes import operand_count

Random: TypeAlias = np.random.Generator
Emit: TypeAlias = Callable[..., Sequence[Value]]

MOST = 70
"""The largest extent: a vector of 64 bytes, a little more, and tails of every length."""
_ALL_DTYPES = tuple(DTYPES.values())
_NUMERIC = tuple(dtype for dtype in _ALL_DTYPES if dtype.kind != "boolean")


@dataclass(frozen=True)
class Application:
    """An op and the types of its operands; `given` are operands that must not be random, by number."""

    op: Op
    types: tuple[TensorType, ...]
    given: tuple[tuple[int, Array], ...] = ()


@dataclass(frozen=True)
class Case:
    """A scheduled function, or what becomes one, with its arguments."""

    name: str
    types: tuple[TensorType, ...]
    arrays: tuple[Array, ...]
    build: Emit
    decisions: Decisions | None = None
    """How the nests are looped; by the schedule if not said."""
    fused: bool = True
    op: str = ""
    """The op that it is about, or the builtin, by name."""
    entry: ClassVar[str] = "f"
    """The name of the function."""
    is_rough: ClassVar[bool] = False
    """Whether rounding can be as large as results are."""

    def function(self, target: Target) -> Function:
        """The function in stage schedule."""
        if self.decisions is not None:
            return scheduled(self.types, self.build, self.decisions)
        module = self.module()
        lower_memory(module)
        generate_compute(module)
        if self.fused:
            fuse(module)
        schedule(module, target)
        return module.functions["f"]

    def module(self) -> Module:
        """The function before it is lowered."""
        b = start_function(self.types)
        function = finish(b, list(self.build(b, *b.block.arguments)))
        return Module(functions={"f": function}, stage=Stage.OPTIMIZED)


# Operands.


def operand(random: Random, type: TensorType, *, becomes_float: bool = False) -> Array:
    """Numbers of which few functions make NaN, and no sum leaves f16.

    Integers that become floats are not zero: a product of those may be infinite before it comes to the zero, or not.
    """
    if type.dtype == BOOL:
        return np.asarray(random.random(type.shape) < 0.5)
    if type.dtype.is_integer:
        numbers = random.integers(-9, 10, type.shape)
        return np.where(becomes_float & (numbers == 0), 1, numbers).astype(type.dtype.numpy)
    return type.dtype.round(np.asarray(random.uniform(-1.0, 1.0, type.shape)))


def a_shape(random: Random, extent: int) -> Shape:
    """A small tensor with `extent` as its last, its first or its only axis."""
    few = int(random.integers(1, 4))
    shapes: list[Shape] = [(extent,), (few, extent), (few, extent), (extent, few), (2, few, extent)]
    return shapes[int(random.integers(len(shapes)))]


def pick(random: Random, choices: Sequence[Any]) -> Any:
    """One of them."""
    return choices[int(random.integers(len(choices)))]


def upto(random: Random, low: int, high: int) -> int:
    """A number from `low` to `high`, both included."""
    return int(random.integers(low, high + 1))


def _axis(random: Random, shape: Shape) -> int:
    return int(random.integers(len(shape)))


def _combinator(random: Random, dtype: DType) -> Combinator:
    return Combinator(
        pick(random, [c.value for c in Combinator if c.is_logical == (dtype == BOOL)])
    )


# Recipes: (random, class of the op, extent, dtype) → an application, perhaps one that `infer` refuses.


def _elementwise(random: Random, op: Any, extent: int, dtype: DType) -> Application:
    shape = a_shape(random, extent)
    types = [TensorType(shape, dtype)]
    for _ in range(operand_count(op) - 1):
        other = pick(random, [shape, shape, shape[1:], (), (*shape[:-1], 1)])
        types.append(TensorType(other, dtype))
    return Application(op(), tuple(types))


def _select(random: Random, _: Any, extent: int, dtype: DType) -> Application:
    shape = a_shape(random, extent)
    x = TensorType(shape, dtype)
    return Application(Select(), (x, x, TensorType(pick(random, [shape, shape[-1:]]), BOOL)))


def _threefry(random: Random, _: Any, extent: int, __: DType) -> Application:
    type = TensorType(a_shape(random, extent), I64)
    return Application(Threefry(), (type, type))


def _cast(random: Random, _: Any, extent: int, dtype: DType) -> Application:
    target = pick(random, _ALL_DTYPES)
    return Application(DataTypeCast(target), (TensorType(a_shape(random, extent), dtype),))


def _one(make: Callable[[Random, TensorType], Op]) -> Recipe:
    """Of one operand, from whose type the op is made."""

    def recipe(random: Random, _: Any, extent: int, dtype: DType) -> Application:
        x = TensorType(a_shape(random, extent), dtype)
        return Application(make(random, x), (x,))

    return recipe


def _slice(random: Random, x: TensorType) -> Op:
    ends = [sorted((upto(random, 0, n), upto(random, 0, n))) for n in x.shape]
    strides = tuple(upto(random, 1, 3) for _ in ends) if random.random() < 0.5 else ()
    return Slice(tuple(a for a, _ in ends), tuple(b for _, b in ends), strides)


def _pad(random: Random, _: Any, extent: int, dtype: DType) -> Application:
    x = TensorType(a_shape(random, extent), dtype)
    low, high, gaps = (tuple(upto(random, 0, 2) for _ in x.shape) for _ in range(3))
    op = Pad(low, high, gaps if random.random() < 0.3 else ())
    return Application(op, (x, TensorType((), dtype)))


def _concatenate(random: Random, _: Any, extent: int, dtype: DType) -> Application:
    shape = a_shape(random, extent)
    axis = _axis(random, shape)
    others = [
        (*shape[:axis], upto(random, min(count, 1), 20), *shape[axis + 1 :])
        for count in range(upto(random, 1, 6))
    ]
    types = tuple(TensorType(each, dtype) for each in (shape, *others))
    return Application(Concatenate(axis), types)


def _indices(random: Random, shape: Shape, extent: int, bounds: Bounds) -> Array:
    """Positions in an axis, and beyond it where that is allowed; of either type."""
    beyond = 2 if bounds in (Bounds.ZERO, Bounds.CLIP) else 0
    type = pick(random, (I32, I64)).numpy
    return np.asarray(random.integers(-beyond, extent + beyond, shape), type)


def _index_type(indices: Array) -> TensorType:
    return TensorType(indices.shape, I32 if indices.dtype == np.int32 else I64)


def _gather(random: Random, _: Any, extent: int, dtype: DType) -> Application:
    shape = a_shape(random, extent)
    axis, bounds = _axis(random, shape), pick(random, list(Bounds))
    picked = pick(random, [(extent,), (3,), (), (2, 5), (17,)])
    indices = _indices(random, picked, shape[axis], bounds)
    types = (TensorType(shape, dtype), _index_type(indices))
    return Application(Gather(axis, bounds), types, ((1, indices),))


def _scatter(random: Random, _: Any, extent: int, dtype: DType) -> Application:
    shape = a_shape(random, extent)
    axis, bounds = _axis(random, shape), pick(random, list(Bounds))
    wide = upto(random, 1, 20)
    indices = _indices(random, shape[axis : axis + 1], wide, bounds)
    op = ScatterAdd((*shape[:axis], wide, *shape[axis + 1 :]), axis, bounds)
    return Application(op, (TensorType(shape, dtype), _index_type(indices)), ((1, indices),))


def _update(random: Random, _: Any, extent: int, dtype: DType) -> Application:
    shape = a_shape(random, extent)
    axis, bounds = _axis(random, shape), pick(random, list(Bounds))
    update = pick(random, list(Update)) if dtype.is_numeric else Update.SET
    others = [upto(random, 0, n) for n in shape]
    start = tuple(0 if k == axis else n - others[k] for k, n in enumerate(shape))
    picked = pick(random, [(extent,), (3,), (), (2, 5), (17,)])
    indices = _indices(random, picked, shape[axis], bounds)
    updates = (*others[:axis], *picked, *others[axis + 1 :])
    types = (TensorType(updates, dtype), TensorType(shape, dtype), _index_type(indices))
    return Application(Scatter(axis, update, start, bounds=bounds), types, ((2, indices),))


def _one_hot(random: Random, _: Any, extent: int, dtype: DType) -> Application:
    indices = _indices(random, (upto(random, 1, 5),), extent, Bounds.ZERO)
    return Application(OneHot(extent, dtype), (_index_type(indices),), ((0, indices),))


def _iota(random: Random, _: Any, extent: int, dtype: DType) -> Application:
    shape = a_shape(random, extent)
    return Application(Iota(shape, _axis(random, shape), dtype), ())


def _dot(random: Random, _: Any, extent: int, dtype: DType) -> Application:
    m, k = upto(random, 1, 5), upto(random, 1, 9)
    rows, inner, columns = pick(random, [(m, k, extent), (m, extent, k), (extent, k, m)])
    batch = pick(random, [(), (), (2,)])
    u, v = (*batch, rows, inner), (inner, columns)
    if random.random() < 0.3:
        u = (inner,)
    elif random.random() < 0.3:
        v = (inner,)
    return Application(Dot(), (TensorType(u, dtype), TensorType(v, dtype)))


def _window(random: Random, x: TensorType) -> Op:
    window = tuple(upto(random, 1, min(3, n)) for n in x.shape)
    strides = tuple(upto(random, 1, 2) for _ in x.shape) if random.random() < 0.5 else ()
    padding = tuple((upto(random, 0, 2), upto(random, 0, 2)) for _ in x.shape)
    return ReduceWindow(_combinator(random, x.dtype), window, strides, padding)


def _convolve(random: Random, _: Any, extent: int, dtype: DType) -> Application:
    channels = upto(random, 1, 3)
    spatial = pick(random, [(extent,), (extent, 3), (3, extent)])
    window = tuple(upto(random, 1, min(3, n)) for n in spatial)
    strides, left, right = (
        tuple(upto(random, 1, 2) for _ in spatial) if random.random() < 0.5 else ()
        for _ in range(3)
    )
    padding = tuple((upto(random, 0, 2), upto(random, 0, 2)) for _ in spatial)
    x = TensorType((upto(random, 1, 2), channels, *spatial), dtype)
    kernel = TensorType((upto(random, 1, 3), channels, *window), dtype)
    return Application(Convolve(strides, padding, left, right, 1), (x, kernel))


def _shape_cast(random: Random, x: TensorType) -> Op:
    return ShapeCast(pick(random, [(x.size,), (1, x.size), (x.size, 1), x.shape[::-1]]))


def _bit_cast(random: Random, x: TensorType) -> Op:
    target = pick(random, [dtype for dtype in _NUMERIC if x.bytes % dtype.bytes == 0])
    return BitCast(TensorType((x.bytes // target.bytes,), target))


def _builtin(random: Random, _: Any, extent: int, dtype: DType) -> Application:
    names = {s.op.builtin for s in SAMPLES if isinstance(s.op, Builtin)}
    name = pick(random, sorted(names))
    x = TensorType(a_shape(random, extent), dtype)
    results = [x, x.with_shape(()), x.with_shape(x.shape[:-1])]
    for result in results:
        for types in ((x,), (x, x)):
            if _fits(Builtin(name, result), types):
                return Application(Builtin(name, result), types)
    return Application(Builtin("relu", x), (x,))


def _squeeze(random: Random, _: Any, extent: int, dtype: DType) -> Application:
    return Application(SqueezeShape(1), (TensorType((upto(random, 1, 3), 1, extent), dtype),))


Recipe: TypeAlias = Callable[[Random, Any, int, DType], Application]

RECIPES: dict[type[Op], Recipe] = {
    Select: _select,
    Threefry: _threefry,
    DataTypeCast: _cast,
    Transpose: _one(lambda random, x: Transpose(tuple(map(int, random.permutation(x.rank))))),
    ShapeCast: _one(_shape_cast),
    PadShape: _one(lambda random, x: PadShape(upto(random, 0, x.rank))),
    SqueezeShape: _squeeze,
    Reverse: _one(lambda random, x: Reverse((_axis(random, x.shape),))),
    Broadcast: _one(lambda random, x: Broadcast((upto(random, 1, 3), *x.shape))),
    Slice: _one(_slice),
    Pad: _pad,
    Concatenate: _concatenate,
    Gather: _gather,
    ScatterAdd: _scatter,
    Scatter: _update,
    OneHot: _one_hot,
    Iota: _iota,
    Reduce: _one(
        lambda random, x: Reduce(
            _combinator(random, x.dtype), pick(random, [(0,), (x.rank - 1,), tuple(range(x.rank))])
        )
    ),
    ArgMax: _one(lambda random, x: ArgMax(_axis(random, x.shape))),
    ArgMin: _one(lambda random, x: ArgMin(_axis(random, x.shape))),
    ArgSort: _one(lambda random, x: ArgSort(_axis(random, x.shape), bool(random.random() < 0.5))),
    Scan: _one(
        lambda random, x: Scan(
            _combinator(random, x.dtype),
            _axis(random, x.shape),
            bool(random.random() < 0.5),
            bool(random.random() < 0.5),
        )
    ),
    Dot: _dot,
    ReduceWindow: _one(_window),
    Convolve: _convolve,
    Rank: _one(lambda _, __: Rank()),
    ShapeOf: _one(lambda _, __: ShapeOf()),
    UnitCount: _one(lambda _, __: UnitCount()),
    Reinterpret: _one(
        lambda random, x: Reinterpret(
            pick(random, [d for d in _NUMERIC if d.bits == x.dtype.bits] or [I32])
        )
    ),
    BitCast: _one(_bit_cast),
    Builtin: _builtin,
}
RECIPES |= {op: _elementwise for op in ALL if issubclass(op, Elementwise) and op not in RECIPES}


def _fits(op: Op, types: Sequence[TensorType]) -> bool:
    try:
        return isinstance(op.infer(*types), TensorType)
    except NNKitError:
        return False


# Endings: what is returned besides the result, or instead of it.


def _rows(b: Builder, random: Random, xs: Sequence[Value], y: Value) -> list[Value]:
    return [y, _reduced(b, random, y, y.tensor.rank - 1)]


def _columns(b: Builder, random: Random, xs: Sequence[Value], y: Value) -> list[Value]:
    return [y, _reduced(b, random, y, 0)]


def _cast_rows(b: Builder, random: Random, xs: Sequence[Value], y: Value) -> list[Value]:
    """Another element type of the result, and a reduction of an operand: both are one nest."""
    x = max(xs, key=lambda x: x.tensor.size, default=y)
    x = x if x.tensor.rank else y
    return [_cast(b, random, y), _reduced(b, random, x, x.tensor.rank - 1)]


def _backwards(b: Builder, random: Random, xs: Sequence[Value], y: Value) -> list[Value]:
    reverse = Reverse((y.tensor.rank - 1,))
    return [b.emit(reverse, _cast(b, random, y))]


def _across(b: Builder, random: Random, xs: Sequence[Value], y: Value) -> list[Value]:
    return [b.emit(Transpose(()), y), y]


def _padded(b: Builder, random: Random, xs: Sequence[Value], y: Value) -> list[Value]:
    """Written into the middle of something larger."""
    ones = (1,) * y.tensor.rank
    zero = b.emit(_zero(y.tensor.dtype))
    return [b.emit(Pad(ones, ones, ()), y, zero), _reduced(b, random, y, 0)]


def _cast(b: Builder, random: Random, y: Value) -> Value:
    """Not whether a sum is 0, which is as it was rounded."""
    dtype = pick(random, _ALL_DTYPES)
    is_rounded = y.tensor.dtype.is_float and isinstance(y.op, Convolve | Dot | Reduce)
    return b.emit(DataTypeCast(I32 if is_rounded and dtype is BOOL else dtype), y)


def _zero(dtype: DType) -> Op:
    return splat(TensorType((), dtype), 0)


def _reduced(b: Builder, random: Random, x: Value, axis: int) -> Value:
    combinator = _combinator(random, x.tensor.dtype)
    if (
        isinstance(x.op, Iota) and combinator is Combinator.MULTIPLY
    ):  # 0 · 1 · 2 ·, or from behind ∞ · 0
        combinator = Combinator.ADD
    if (
        isinstance(x.op, BitCast) and x.tensor.dtype.is_float
    ):  # of any size: which sum overflows is a matter of order
        combinator = Combinator.MAX
    return b.emit(Reduce(combinator, (axis,)), x)


ENDINGS: tuple[Callable[[Builder, Random, Sequence[Value], Value], list[Value]] | None, ...] = (
    None, None, _rows, _rows, _columns, _cast_rows, _cast_rows, _backwards, _across, _padded,
)  # fmt: skip
"""None returns the result alone."""


def applied(number: int, op: type[Op], extent: int, dtype: DType) -> Case | None:
    """A case of an op; None if it is not defined for the element type."""
    random = np.random.default_rng([number, extent, ALL.index(op)])
    application = RECIPES[op](random, op, extent, dtype)
    types = application.types
    if not _fits(application.op, types):
        return None
    given = dict(application.given)
    arrays = tuple(
        given[k] if k in given else operand(random, type, becomes_float=op is DataTypeCast)
        for k, type in enumerate(types)
    )
    ending, seed = pick(random, ENDINGS), int(random.integers(1 << 30))

    def build(b: Builder, *xs: Value) -> Sequence[Value]:
        y = b.emit(application.op, *xs)
        if ending is None or not y.tensor.rank:
            return [y]
        return ending(b, np.random.default_rng(seed), xs, y)

    words = ", ".join(type.words for type in types)
    name = f"{application.op!r} of {words}, {ending.__name__.strip('_') if ending else 'alone'}"
    return Case(f"#{number} {name}", types, arrays, build, op=name_of(application.op))


def name_of(op: Op) -> str:
    """A builtin is an op of its own."""
    return op.builtin if isinstance(op, Builtin) else op.name


# Nests of their own.


def nest(number: int, extent: int, dtype: DType) -> Case:
    """One nest over (few, extent) that reads and writes in some way, with decided loops."""
    random = np.random.default_rng([number, extent, 1 << 20])
    few, columns = upto(random, 1, 4), coordinate(1)
    apart = pick(random, [1, 1, 1, 2, 3])
    last = (extent - 1) * apart
    along = pick(random, [columns * apart, columns * -apart + last])
    source, reads = _reads(random, few, extent, dtype, along, last)
    outputs = _outputs(random, few, extent, last, along)
    extents = (few, extent)

    def build(b: Builder, *xs: Value) -> Sequence[Value]:
        def body(inner: Builder, _: Sequence[Value], read: Sequence[Value]) -> Sequence[Value]:
            casts = (DataTypeCast(written.type.dtype) for written in outputs)
            return [read[0] if cast.dtype == dtype else inner.emit(cast, read[0]) for cast in casts]

        return build_nest(b, extents, [(xs[0], reads)], outputs, body)

    decisions = Decisions(
        pick(random, [(0, 1), (0, 1), (1, 0)]),
        pick(random, [1, 1, 1, 0]),
        pick(random, [2, 4, 8, 16, 32]),
        pick(random, [1, 2]),
    )
    name = f"#{number} nest {extents} of {source.words} {reads} to {outputs} {decisions}"
    return Case(name, (source,), (operand(random, source, becomes_float=True),), build, decisions)


def _reads(
    random: Random, few: int, extent: int, dtype: DType, along: Affine, last: int
) -> tuple[TensorType, Access]:
    rows, columns = coordinate(0), coordinate(1)
    return pick(random, [
        (TensorType((few, extent), dtype), Access((rows, columns))),
        (TensorType((few, last + 1), dtype), Access((rows, along))),
        (TensorType((few, extent), dtype), Access((rows, columns + -1), Bounds.ZERO)),
        (TensorType((few, extent), dtype), Access((rows, columns + 2), Bounds.CLIP)),
        (TensorType((extent,), dtype), Access((columns,))),
    ])  # fmt: skip


def _outputs(random: Random, few: int, extent: int, last: int, along: Affine) -> list[Output]:
    """A result that is written everywhere, or where there is room; with a reduction beside it, or without."""
    rows, columns = coordinate(0), coordinate(1)
    dtype = pick(random, _ALL_DTYPES)
    shift = upto(random, -2, 2)
    joining = _combinator(random, dtype)
    first = pick(random, [
        Output(TensorType((few, extent), dtype), (rows, columns)),
        Output(TensorType((few, last + 1), dtype), (rows, along)),
        Output(TensorType((few, max(extent - 1, 1)), dtype), (rows, columns + shift), None, Bounds.ZERO),
        Output(TensorType((1, extent), dtype), (rows, columns), None, Bounds.ZERO),
        Output(TensorType((extent,), dtype), (columns,), joining),
        Output(TensorType((max(extent - 1, 1),), dtype), (columns + shift,), joining, Bounds.ZERO),
        Output(TensorType((last + 1,), dtype), (along,), joining),
    ])  # fmt: skip
    outputs = [first]
    if random.random() < 0.5:
        other = pick(random, _ALL_DTYPES)
        outputs.append(Output(TensorType((few,), other), (rows,), _combinator(random, other)))
    return outputs


# Sequences of cases.


def cases(extents: Sequence[int], rounds: int, share: float = 1.0) -> Iterator[Case]:
    """Every op with every element type and extent, `rounds` times, and as many nests as ops of an extent.

    `share` is the part of them that is taken, at random but the same each time.
    """
    random = np.random.default_rng(0)
    for number in range(rounds):
        for extent in extents:
            for dtype in _ALL_DTYPES:
                for op in ALL:
                    found = applied(number, op, extent, dtype) if random.random() < share else None
                    if found is not None:
                        yield found
                for extra in range(12):
                    if random.random() < share:
                        yield nest(number * 12 + extra, extent, dtype)


def nests(extents: Sequence[int]) -> Iterator[Case]:
    """Nests of their own, of every element type."""
    for extent in extents:
        for dtype in _ALL_DTYPES:
            yield from (nest(number, extent, dtype) for number in range(12))


def kernels_of_samples() -> Iterator[Case]:
    """The tables of samples of all ops."""
    for number, sample in enumerate(SAMPLES):
        arrays = tuple(sample.operands())

        def build(b: Builder, *xs: Value, op: Op = sample.op) -> Sequence[Value]:
            return [b.emit(op, *xs)]

        yield Case(f"sample {number} {sample}", sample.types, arrays, build, op=name_of(sample.op))
