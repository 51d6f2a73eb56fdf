"""Any legal sequence of rewrites on any kernel leaves what it computes, to the bit unless it is reassociated.

Parallel loops are run from the last iteration to the first as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nnkit.core.ir.instruction import Block, Instruction
from nnkit.core.kernels.bounds import accesses_outside
from nnkit.core.kernels.cse import cse
from nnkit.core.kernels.errors import IllegalRewrite
from nnkit.core.kernels.fuse import fuse
from nnkit.core.kernels.hoist import hoist, hoist_all
from nnkit.core.kernels.indices import IndexSum, fold_indices, replace_index
from nnkit.core.kernels.interchange import interchange
from nnkit.core.kernels.loops import body_of, loop_op, loops_of, make_index
from nnkit.core.kernels.parallelise import parallelise
from nnkit.core.kernels.promote import promote
from nnkit.core.kernels.split import peel, split, split_balanced
from nnkit.core.kernels.unroll import unroll, unroll_and_jam
from nnkit.core.kernels.vectorise import vectorise
from nnkit.core.text import parse_module, print_module
from nnkit.core.verify import verify
from tests.core.kernels.kernel_programs import Program, kernels
from tests.values import Draw, same_bits

Rewrite: TypeAlias = Callable[[Draw, Block, Instruction], Any]

SMALL = 6
"""Iterations that are written out, so that programs stay short."""


def _unroll(draw: Draw, block: Block, loop: Instruction) -> None:
    _require_few(loop)
    unroll(block, loop)


def _jam(draw: Draw, block: Block, loop: Instruction) -> None:
    _require_few(loop)
    unroll_and_jam(block, loop)


def _fuse(draw: Draw, block: Block, loop: Instruction) -> None:
    loops = loops_of(block)
    alike = [other for other in loops[loops.index(loop) + 1 :] if other.op == loop.op]
    if not alike:
        raise IllegalRewrite("there is no other loop like it")
    fuse(block, loop, alike[0])


def _vectorise(draw: Draw, block: Block, loop: Instruction) -> None:
    lanes = draw(st.sampled_from((4, 2, 8, 16)))
    if not loop.operands and loop_op(loop).count > lanes:
        block, loop = body_of((pair := split(block, loop, lanes)).outer), pair.inner
    vectorise(block, loop, lanes)


def _vectorise_reduction(draw: Draw, block: Block, loop: Instruction) -> None:
    if not loop.operands:
        raise IllegalRewrite("this is no reduction")
    vectorise(block, loop, draw(st.sampled_from((2, 4))), reassociate=True)


def _require_few(loop: Instruction) -> None:
    if loop_op(loop).count > SMALL:
        raise IllegalRewrite("this would be long")


REWRITES: Mapping[str, Rewrite] = {
    "split": lambda draw, block, loop: split(block, loop, draw(st.integers(1, 4))),
    "split_balanced": lambda draw, block, loop: split_balanced(
        block, loop, draw(st.integers(1, 4))
    ),
    "peel": lambda draw, block, loop: peel(block, loop, draw(st.integers(1, 4))),
    "unroll": _unroll,
    "unroll_and_jam": _jam,
    "vectorise": _vectorise,
    "vectorise_reduction": _vectorise_reduction,
    "cse": lambda draw, block, loop: cse(block),
    "hoist": lambda draw, block, loop: hoist(block, loop),
    "hoist_all": lambda draw, block, loop: hoist_all(block),
    "interchange": lambda draw, block, loop: interchange(block, loop),
    "fuse": _fuse,
    "promote": lambda draw, block, loop: promote(block, loop),
    "parallelise": lambda draw, block, loop: parallelise(block, loop, draw(st.integers(1, 3))),
    "fold_indices": lambda draw, block, loop: fold_indices(block),
}
WEIGHTED = [
    *REWRITES,
    *["vectorise", "parallelise", "interchange", "promote"],
    *["fuse", "vectorise_reduction"] * 3,
]
"""Those that are seldom legal are tried oftener."""
applied: dict[str, int] = dict.fromkeys(REWRITES, 0)
"""How often each was legal."""


def all_loops(block: Block) -> list[tuple[Block, Instruction]]:
    """Every loop with the block in which it stands."""
    found: list[tuple[Block, Instruction]] = []
    pending = [block]
    while pending:
        inner = pending.pop()
        for loop in loops_of(inner):
            found.append((inner, loop))
            pending.append(body_of(loop))
    return found


@given(st.data(), kernels())
def test_rewrites_keep_results(data: st.DataObject, program: Program) -> None:
    verify(program.module)
    assert not list(accesses_outside(program.block))
    expected = program.run()
    is_exact = rewrite_at_random(data.draw, program)
    verify(program.module)
    text = print_module(program.module)
    assert print_module(parse_module(text)) == text
    assert not [x.reason for x in accesses_outside(program.block)], program
    found = program.run()
    if is_exact:
        assert same_bits(found, expected), program
    else:
        assert all(map(is_close, found, expected)), program
    if reverse_parallel_loops(program.block):
        assert same_bits(program.run(), found), program


def rewrite_at_random(draw: Draw, program: Program) -> bool:
    """Apply some rewrites; whether none of them may round differently."""
    is_exact = True
    for _ in range(draw(st.integers(1, 8))):
        loops = all_loops(program.block)
        if not loops:
            break
        name = draw(st.sampled_from(WEIGHTED))
        start = draw(st.integers(0, len(loops) - 1))
        for block, loop in [*loops[start:], *loops[:start]]:
            carries_floats = any(x.tensor.dtype.is_float for x in loop.operands)
            rounds = name == "vectorise_reduction" and carries_floats
            if rounds and not program.is_tame:
                continue
            try:
                REWRITES[name](draw, block, loop)
            except IllegalRewrite:
                continue
            program.steps.append(name)
            applied[name] += 1
            is_exact = is_exact and not rounds
            break
    return is_exact


def reverse_parallel_loops(block: Block) -> bool:
    """Have the iterations of parallel loops run from the last to the first; whether there are some."""
    parallel = [loop for _, loop in all_loops(block) if loop_op(loop).grain]
    for loop in parallel:
        op, body = loop_op(loop), body_of(loop)
        old, new = body.arguments[0], make_index()
        body.arguments[0] = new
        replace_index(body, old, IndexSum(2 * op.lower + (op.count - 1) * op.step, {new: -1}))
    return bool(parallel)


def is_close(one: Any, other: Any) -> bool:
    """Whether results agree but for rounding, which a difference of large numbers makes large."""
    a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
    largest = np.max(np.abs(b), initial=1.0, where=np.isfinite(b))
    with np.errstate(all="ignore"):
        return bool(np.allclose(a, b, rtol=1e-3, atol=1e-3 * largest, equal_nan=True))
