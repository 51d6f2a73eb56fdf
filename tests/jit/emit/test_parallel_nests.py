"""Nests as jobs of the pool: random ones, in random orders, have the bits that one thread computes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from nnkit.core.ops import ALL
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
