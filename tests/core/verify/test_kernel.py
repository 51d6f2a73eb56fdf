"""Rules 31 to 33."""

from __future__ import annotations

from collections.abc import Sequence

from nnkit.core.ir import Builder, Module, Region, Stage, Value
from nnkit.core.ir.placement import Placement, arena, output
from nnkit.core.kernels.access_ops import LoadAt, StoreAt
from nnkit.core.kernels.loops import make_index
from nnkit.core.kernels.ops import Kernel, Loop
from nnkit.core.ops import Exp, Reduce, Return, Yield, splat
from nnkit.core.ops.combinator import Combinator
from nnkit.core.ops.nest import Affine
from nnkit.core.types import F32, PointerType, TensorType, Type
from nnkit.core.verify import verify, violations

from .building import X, function, module_of

FIRST = (Affine(),)
BUFFER = PointerType(X)


def with_kernel(
    body: Sequence[Type] = (BUFFER, BUFFER),
    *,
    writes: Sequence[Type] = (X,),
    using: Sequence[Type] = (),
    yielded: bool = False,
    private: Sequence[int] = (),
    scratch: int = 0,
    grain: int = 0,
    inside: Sequence[object] = (),
) -> Module:
    """A function of one kernel of an operand."""

    def build(b: Builder, x: Value) -> Value:
        inner = Builder()
        buffers = [inner.argument(type) for type in body]
        number = inner.emit(LoadAt(FIRST), buffers[0])
        for op in inside:
            if op == "reduce":
                inner.emit(Reduce(Combinator.ADD), number)
            if op == "matrix":
                inner.emit(splat(TensorType((2, 2), F32), 1))
        inner.emit_many(StoreAt(FIRST), [inner.emit(Exp(), number), buffers[-1]])
        if grain:
            loop = Builder()
            loop.argument(make_index().type)
            loop.emit_many(StoreAt(FIRST), [number, buffers[-1]])
            loop.emit_many(Yield(), [])
            inner.emit_many(Loop(0, 10, grain=grain), [], [Region([loop.block])])
        inner.emit_many(Yield(), [number] if yielded else [])
        places = Placement((output(0),), tuple(arena(64 + 64 * k) for k in range(scratch)))
        op = Kernel(tuple(writes), using=tuple(using), private=tuple(private))
        return b.emit_many(op, [x], [Region([inner.block])], placement=places)[0]

    return module_of(function(build, X), stage=Stage.SCHEDULE)


def test_a_kernel_is_valid() -> None:
    verify(with_kernel())
    verify(with_kernel((BUFFER, BUFFER, BUFFER), using=(X,), scratch=1))


def test_rule_31_bodies_take_buffers_and_yield_nothing() -> None:
    short = with_kernel((BUFFER,))
    assert (
        "the body takes (*<4 x f32>); it should take (*<4 x f32>, *<4 x f32>)"
        in violations(short)[0]
    )
    [given] = violations(with_kernel(yielded=True))
    assert "the body of a kernel yields nothing" in given
    [missing] = violations(with_kernel((BUFFER, BUFFER, BUFFER), using=(X,)))
    assert "0 scratch buffers for 1" in missing


def test_rule_31_each_buffer_has_copies_for_threads_or_is_shared() -> None:
    buffers = (BUFFER, BUFFER, BUFFER)
    for copies in (0, 1, 4):
        verify(with_kernel(buffers, using=(X,), scratch=1, private=(copies,), grain=3))
    for private in ((1, 1), (-1,)):
        [wrong] = violations(with_kernel(buffers, using=(X,), scratch=1, private=private))
        assert f"there are {private} copies of 1 buffers" in wrong


def test_rule_32_what_stands_in_kernels() -> None:
    [found] = violations(with_kernel(inside=["reduce"]))
    assert "reduce cannot stand in a kernel" in found


def test_rule_33_values_are_scalars_and_vectors() -> None:
    [found] = violations(with_kernel(inside=["matrix"]))
    assert "values in a kernel are scalars and vectors" in found


def test_what_stands_in_kernels_stands_nowhere_else() -> None:
    def build(b: Builder, x: Value) -> Value:
        inner = Builder()
        inner.argument(Loop(0, 1).body_arguments(0, ())[0])
        inner.emit_many(Yield(), [])
        b.emit_many(Loop(0, 1), [], [Region([inner.block])])
        b.emit_many(Return(), [x])
        return x

    made = function(lambda b, x: x, X)
    made.entry.instructions.clear()
    b = Builder(made.entry)
    build(b, made.parameters[0])
    found = violations(module_of(made, stage=Stage.OPTIMIZABLE))
    assert any(
        "loop stands in stage optimizable; it belongs to stage schedule" in one for one in found
    )
