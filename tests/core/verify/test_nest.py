"""Rules 26 to 29."""

from __future__ import annotations

from collections.abc import Sequence

from nnkit.core.ir import (
    ALIGNMENT,
    HEADER_BYTES,
    Builder,
    Op,
    Stage,
    Value,
)
from nnkit.core.ir.placement import Place, Placement, arena, output
from nnkit.core.kernels.build import KernelBuilder
from nnkit.core.ops import (
    Reduce,
    Yield,
    constant,
)
from nnkit.core.ops.combinator import Combinator
from nnkit.core.ops.nest import Access, Loaded, Nest, Output
from nnkit.core.schedule.ops import Empty
from nnkit.core.types import (
    F64,
    I64,
    TensorType,
    scalar,
)
from nnkit.core.verify import verify, violations

from .building import (
    PLAIN,
    POINT,
    I,
    S,
    X,
    copying,
    found,
    function,
    module_of,
    with_nest,
)


def test_rule_26_bodies_take_coordinates_and_scalars() -> None:
    def short(b: Builder) -> None:
        b.emit_many(Yield(), [b.argument(S)])

    assert "the body takes (f32); it should take (i64, f32)" in found(with_nest(PLAIN, short))


def test_rule_27_bodies_are_scalar() -> None:
    def reducing(b: Builder) -> None:
        b.argument(scalar(I64), "d0")
        v = b.argument(S, "v")
        b.emit_many(Yield(), [b.emit(Reduce(Combinator.ADD), v)])

    def wide(b: Builder) -> None:
        b.argument(scalar(I64), "d0")
        v = b.argument(S, "v")
        constant(b, TensorType((2,), F64), 1)
        b.emit_many(Yield(), [v])

    def endless(b: Builder) -> None:
        b.argument(scalar(I64), "d0")
        b.argument(S, "v")

    def wrong(b: Builder) -> None:
        b.emit_many(Yield(), [b.argument(scalar(I64), "d0")])
        b.argument(S, "v")

    assert "reduce cannot stand in the body of a nest" in found(with_nest(PLAIN, reducing))
    assert "literal makes more than a scalar in the body" in found(with_nest(PLAIN, wide))
    assert "the body of a nest ends with yield" in "".join(violations(with_nest(PLAIN, endless)))
    assert "the body yields (i64); the outputs hold (f32)" in found(with_nest(PLAIN, wrong))
    assert "a nest writes nothing" in "".join(
        violations(with_nest(Nest((4,), (Access(POINT),), ())))
    )


def test_rule_28_indices_that_are_read() -> None:
    def both(b: Builder) -> None:
        b.argument(scalar(I64), "d0")
        first, second = b.argument(scalar(I64)), b.argument(S)
        assert first.type != second.type
        b.emit_many(Yield(), [second])

    def nest(*accesses: Access) -> Nest:
        return Nest((4,), accesses, (Output(X, POINT),))

    verify(with_nest(nest(Access(POINT), Access((Loaded(0),))), both, I, X))
    late = with_nest(nest(Access((Loaded(1),)), Access(POINT)), both, I, X)
    assert "the index read 1 is read from an operand that does not stand before" in found(late)
    negative = with_nest(nest(Access(POINT), Access((Loaded(-1),))), both, I, X)
    assert "the index read -1 is read from an operand that does not stand before" in found(negative)
    scatter = Nest((4,), (Access(POINT), Access(POINT)), (Output(X, (Loaded(1),)),))
    assert "the index read 1 is read from <4 x f32>, which holds no integers" in found(
        with_nest(scatter, both, I, X)
    )


def placed(b: Builder, op: Op, operands: Sequence[Value], place: Place, *scratch: Place) -> Value:
    """The one result of an op, which lies at `place`."""
    return b.emit_many(op, operands, placement=Placement((place,), scratch))[0]


def test_rule_29_scratch() -> None:
    def kernel(b: Builder, x: Value) -> Value:
        build = KernelBuilder([x.tensor], [x.tensor])
        build.scratch(x.tensor)
        (made,) = build.kernel(b, x)
        b.block.instructions[-1].placement = Placement((output(0),), (output(1),))
        return made

    assert "output 1 is no place for a scratch buffer" in found(
        module_of(function(kernel, X), stage=Stage.SCHEDULE)
    )


def test_rule_29_places() -> None:
    assert HEADER_BYTES % ALIGNMENT == 0
    for place in (arena(0), arena(-64), arena(96), output(1), output(-1), Place("stack", 64)):
        assert f"{place} is no place for a buffer" in found(copying(place))
    assert "0 places for 1 results" in found(copying())
    verify(copying(output(0)))

    def buffer(b: Builder, x: Value) -> Value:
        return placed(b, Empty(X), [], arena(8))

    assert "arena 8 is no place for a buffer" in found(
        module_of(function(buffer, X), stage=Stage.SCHEDULE)
    )
