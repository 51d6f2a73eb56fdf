"""Any legal sequence of rewrites on any kernel leaves what it computes, to the bit unless it is reassociated.

Parallel loops are run from the last iteration to the first as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, TypeAlias

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from nnkit.core.ir import Builder
from nnkit.core.ir.instruction import Block, Instruction, Value
from nnkit.core.kernels.access_ops import buffer_of
from nnkit.core.kernels.bounds import accesses_outside
from nnkit.core.kernels.cse import cse, drop_dead_code
from nnkit.core.kernels.dependence import root_of
from nnkit.core.kernels.distribute import distribute
from nnkit.core.kernels.errors import IllegalRewrite
from nnkit.core.kernels.fuse import fuse
from nnkit.core.kernels.hoist import hoist, hoist_all
from nnkit.core.kernels.indices import (
    IndexSum,
    access_of,
    accesses_of,
    element_of,
    fold_indices,
    replace_index,
)
from nnkit.core.kernels.interchange import interchange
from nnkit.core.kernels.loops import body_of, inside, is_loop, loop_op, loops_of, make_index
from nnkit.core.kernels.ops import AllocateLocal
from nnkit.core.kernels.order import shorten_live_ranges
from nnkit.core.kernels.pack import Panel, read_packed, write_panel
from nnkit.core.kernels.parallelise import parallelise
from nnkit.core.kernels.prefetch import fetch_ahead, fetch_before_loops
from nnkit.core.kernels.promote import promote
from nnkit.core.kernels.split import peel, split, split_balanced
from nnkit.core.kernels.stage_stores import LoopRows, stage_stores, stored_rows
from nnkit.core.kernels.unroll import unroll, unroll_and_jam
from nnkit.core.kernels.vectorise import vectorise
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import TensorType
from nnkit.core.verify import verify
from tests.core.kernels.kernel_programs import Program, random_kernel
from tests.values import same_bits

Rewrite: TypeAlias = Callable[[Random, Block, Instruction], Any]

MOST_WRITTEN = 60
"""Instructions that are written out in place of a loop, so that programs stay short."""

MOST_PACKED = 200
"""Numbers that are copied, for the same reason."""

MOST_TRIED = 8
"""Loops that one rewrite is tried on, for the same reason."""


def _unroll(rng: Random, block: Block, loop: Instruction) -> None:
    _require_few(loop)
    unroll(block, loop)


def _jam(rng: Random, block: Block, loop: Instruction) -> None:
    _require_few(loop)
    unroll_and_jam(block, loop)


def _fuse(rng: Random, block: Block, loop: Instruction) -> None:
    loops = loops_of(block)
    alike = [other for other in loops[loops.index(loop) + 1 :] if other.op == loop.op]
    if not alike:
        raise IllegalRewrite("there is no other loop like it")
    fuse(block, loop, alike[0])


def _vectorise(rng: Random, block: Block, loop: Instruction) -> None:
    lanes = rng.choice((4, 2, 8, 16))
    if not loop.operands and loop_op(loop).count > lanes:
        block, loop = body_of((pair := split(block, loop, lanes)).outer), pair.inner
    vectorise(block, loop, lanes)


def _vectorise_reduction(rng: Random, block: Block, loop: Instruction) -> None:
    if not loop.operands:
        raise IllegalRewrite("this is no reduction")
    vectorise(block, loop, rng.choice((2, 4)), reassociate=True)


def _pack(rng: Random, block: Block, loop: Instruction) -> None:
    """Copy a matrix that a block only reads, by rows or columns, and read all of it there."""
    accesses = [a for one in inside(block) for a in accesses_of(one)]
    others = {root_of(a.buffer, ()) for a in accesses if a.is_store or a.touched != max(a.lanes, 1)}
    kept = {buffer for buffer in _buffers(block) if root_of(buffer, ()) not in others}
    matrices = [x for x in kept if x in _outside(block) and len(_shape(x)) == 2]
    if not matrices:
        raise IllegalRewrite("no matrix is only read here")
    buffer, lanes, row_axis = rng.choice(matrices), rng.choice((2, 4, 8)), rng.randint(0, 1)
    rows, columns = _shape(buffer)[row_axis], _shape(buffer)[1 - row_axis]
    stride = -(-columns // lanes) * lanes + rng.randint(0, 2) * lanes
    begin = IndexSum(0, {})
    panel = Panel(buffer, begin, begin, rows, columns, lanes, row_axis, 1 - row_axis, stride)
    size = rows * stride
    if size > MOST_PACKED:
        raise IllegalRewrite("this would be long")
    b = Builder(Block())
    packed = b.emit(AllocateLocal(TensorType((size,), _tensor(buffer).dtype)))
    around = read_packed(block, panel, packed)
    assert around == []
    write_panel(b, panel, packed, around)
    block.instructions[:0] = b.block.instructions


def _stage_stores(rng: Random, block: Block, loop: Instruction) -> None:
    """Fill rows of a buffer of the kernel elsewhere: those it stores, or from the element on that a store is at."""
    body = body_of(loop)
    stores = [a for one in inside(body) if (a := access_of(one)) is not None and a.is_store]
    moving = [
        (a.buffer, element)
        for a in stores
        if a.buffer not in _made(body)
        and (element := element_of(a.buffer, a.indices)).coefficient(body.arguments[0]) > 0
    ]
    if not moving:
        raise IllegalRewrite("nothing is stored elsewhere in each iteration")
    buffer, element = rng.choice(moving)
    found = stored_rows(loop, buffer)
    if found and rng.random() < 0.7:
        rows = rng.choice(found)
    else:
        stride = element.coefficient(body.arguments[0])
        same = [e.constant for x, e in moving if root_of(x, ()) is root_of(buffer, ())]
        rows = LoopRows(stride, IndexSum(rng.choice(same), {}))
    stage_stores(loop, buffer, rows)


def _made(block: Block) -> set[Value]:
    return {x for i in inside(block) for x in i.results}


def _outside(block: Block) -> set[Value]:
    """What is used in a block and not made there."""
    return {x for i in inside(block) for x in i.operands} - _made(block)


def _tensor(buffer: Value) -> TensorType:
    return buffer_of("pack", buffer.type)


def _shape(buffer: Value) -> tuple[int, ...]:
    return _tensor(buffer).shape


def _buffers(block: Block) -> set[Value]:
    """What a block loads and stores."""
    found = filter(None, map(access_of, inside(block)))
    return {access.buffer for access in found}


def _require_few(loop: Instruction) -> None:
    length = sum(1 for _ in inside(body_of(loop)))
    if loop_op(loop).count * length > MOST_WRITTEN:
        raise IllegalRewrite("this would be long")


REWRITES: Mapping[str, Rewrite] = {
    "split": lambda rng, block, loop: split(block, loop, rng.randint(1, 4)),
    "split_balanced": lambda rng, block, loop: split_balanced(block, loop, rng.randint(1, 4)),
    "peel": lambda rng, block, loop: peel(block, loop, rng.randint(1, 4)),
    "unroll": _unroll,
    "unroll_and_jam": _jam,
    "vectorise": _vectorise,
    "vectorise_reduction": _vectorise_reduction,
    "cse": lambda rng, block, loop: cse(block),
    "hoist": lambda rng, block, loop: hoist(block, loop),
    "hoist_all": lambda rng, block, loop: hoist_all(block),
    "interchange": lambda rng, block, loop: interchange(block, loop),
    "fuse": _fuse,
    "distribute": lambda rng, block, loop: distribute(
        block, loop, rng.choice(body_of(loop).instructions)
    ),
    "promote": lambda rng, block, loop: promote(block, loop),
    "parallelise": lambda rng, block, loop: parallelise(block, loop, rng.randint(1, 3)),
    "fold_indices": lambda rng, block, loop: fold_indices(block),
    "shorten_live_ranges": lambda rng, block, loop: shorten_live_ranges(block),
    "drop_dead_code": lambda rng, block, loop: drop_dead_code(block),
    "fetch_ahead": lambda rng, block, loop: fetch_ahead(block, dict.fromkeys(_buffers(block), 7)),
    "pack": _pack,
    "stage_stores": _stage_stores,
    "fetch_before_loops": lambda rng, block, loop: fetch_before_loops(block, _buffers(block)),
}
SELDOM = (
    "fuse",
    "distribute",
    "vectorise_reduction",
    "interchange",
    "vectorise",
    "unroll_and_jam",
    "pack",
    "stage_stores",
)
"""Rewrites that few loops allow: they are tried oftener, and on more loops."""
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


@given(st.integers(0, 2**32 - 1))
@settings(
    phases=[Phase.generate],  # seeds do not shrink
    max_examples=3 * (settings.default or settings()).max_examples,  # each is quick
)
def test_rewrites_keep_results(seed: int) -> None:
    program = random_kernel(seed)
    verify(program.module)
    assert not list(accesses_outside(program.block))
    expected = program.run()
    is_exact = rewrite_at_random(Random(seed), program)
    verify(program.module)
    text = print_module(program.module)
    assert print_module(parse_module(text)) == text
    assert not [x.reason for x in accesses_outside(program.block)], program
    found = program.run()
    if isinstance(found, str) or isinstance(expected, str):
        assert found == expected, program
        return
    if is_exact:
        assert same_bits(found, expected), program
    else:
        assert all(map(is_close, found, expected)), program
    if reverse_parallel_loops(program.block):
        assert same_bits(program.run(), found), program


def rewrite_at_random(rng: Random, program: Program) -> bool:
    """Apply some rewrites, to one loop or to all where they are legal; whether none may round differently."""
    is_exact = True
    for _ in range(rng.randint(3, 9)):
        name = rng.choice([*REWRITES, *SELDOM * 2])
        is_everywhere = name in SELDOM or rng.random() < 0.3
        tried: set[Instruction] = set()
        while loops := [found for found in all_loops(program.block) if found[1] not in tried]:
            if len(tried) == MOST_TRIED:
                break
            block, loop = loops[rng.randint(0, len(loops) - 1)]
            tried.add(loop)
            carries_floats = any(x.tensor.dtype.is_float for x in loop.operands)
            rounds = name == "vectorise_reduction" and carries_floats
            if rounds and not program.is_tame:
                continue
            try:
                REWRITES[name](rng, block, loop)
            except IllegalRewrite:
                continue
            program.steps.append(name)
            applied[name] += 1
            is_exact = is_exact and not rounds
            if not is_everywhere:
                break
    return is_exact


def reverse_parallel_loops(block: Block) -> bool:
    """Have the iterations of parallel loops run from the last to the first; whether there are some."""
    parallel = [loop for _, loop in all_loops(block) if is_loop(loop) and loop_op(loop).grain]
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
