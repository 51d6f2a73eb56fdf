"""Nests as jobs of the pool: random ones, in random orders, have the bits that one thread computes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from nnkit.core.ir import Builder, Value
from nnkit.core.kernels.ops import is_kernel
from nnkit.core.ops import ALL, Combinator, Erf, Reduce
from nnkit.core.schedule.plan import schedule
from nnkit.core.schedule.target import Target
from nnkit.core.types import TensorType
from tests.core.compute.building import arguments_for, f32, fused, module_of
from tests.jit.sharing import alone, sharing_everything
from tests.programs import Program, programs
from tests.values import same_bits

from .running import agree, run
from .test_program import EXACT, SEEDS, UNSTABLE, scheduled_entry


@settings(max_examples=30)
@given(programs(ops=EXACT), SEEDS, st.booleans())
def test_exact_programs_agree(program: Program, seed: int, fused: bool) -> None:
    function, arrays = scheduled_entry(program, seed, fused=fused)
    with sharing_everything():
        agree(function, arrays)


@settings(max_examples=30)
@given(programs(ops=[op for op in ALL if op not in UNSTABLE], tame=True), SEEDS, st.booleans())
def test_bits_do_not_depend_on_threads(program: Program, seed: int, fused: bool) -> None:
    function, arrays = scheduled_entry(program, seed, fused=fused)
    with sharing_everything():
        found = run(function, arrays)
        with alone():
            wanted = run(function, arrays)
    assert all(same_bits(x, y) for x, y in zip(found, wanted, strict=True))


def test_totals_of_several_registers_have_room_for_each_block() -> None:
    """A total of 64 lanes: 256 bytes, and the blocks of other threads behind them."""
    module = fused(module_of(_sum_of_errors, f32(1 << 16)))
    arrays = arguments_for(module)
    with sharing_everything():
        schedule(module, Target(vector_bytes=64, registers=32))
        function = module.functions["main"]
        (kernel,) = filter(is_kernel, function.entry.instructions)
        total = kernel.op.using[0]
        assert isinstance(total, TensorType) and total.shape[0] > 9 and total.shape[1] == 64
        agree(function, arrays, exact=False)


def _sum_of_errors(b: Builder, x: Value) -> Value:
    return b.emit(Reduce(Combinator.ADD, (0,)), b.emit(Erf(), x))
