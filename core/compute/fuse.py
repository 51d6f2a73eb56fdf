"""Fusion: producers go into their consumers, and nests over the same points become one.

In program order, each nest
1. joins the latest cluster that computes an operand of it point by point, or reads the same operand at the
   same points: what both compute is computed once, and nothing is computed twice;
2. else starts a cluster of its own;
3. and computes an operand itself, in place of reading it, where the producer writes every element from a
   point of its own and this costs no more than storing and loading (`cost`): slices, transposes, and
   broadcasts move into the index maps, and what nobody reads any more is not stored.

Joining keeps the order of the program: everything a nest reads from other clusters must come before the one
it joins, or nobody has read from that one yet, so that it may move down.

Each value is looked at once per use and no body grows beyond `LARGEST_BODY`, so the time is linear in the
length of the program.
Source: XLA's multi-output fusion; Halide's inlining of pure stages (Ragan-Kelley et al. 2013).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..errors import InternalError
from ..ir import Block, Builder, Function, Instruction, Module, Region, Stage, Value
from ..ops.literal import Literal
from ..ops.movement import ShapeCast
from ..ops.nest import Affine, Bounds, Nest, coordinate
from ..types import Shape, scalar
from .cluster import Cluster, Written
from .cost import LOAD, STORE, cost_of
from .lift import Lifted, Request, body_scalars, is_alias, is_constant, lift, place_of, source_of
from .scalars import Computed, Coordinate, Place, Pool, Read, Scalar, Substitution, reachable

LARGEST_BODY = 200
"""Scalars in one nest, reads included: longer chains are cut, which bounds registers and compile time."""

_READERS = 4
"""How many of the clusters that read a value are considered for joining."""


def fuse(module: Module) -> None:
    """Fuse the nests of every function of a module in stage compute."""
    if module.stage is not Stage.COMPUTE:
        raise InternalError(f"a module in stage {module.stage.value} has no nests to fuse")
    for function in module.functions.values():
        if function.body is not None:
            _fuse_function(function)


def _fuse_function(function: Function) -> None:
    block = function.entry
    program = _Program.of(block)
    for instruction in block.instructions:
        program.place(instruction)
    function.body = Region([program.emit(block)])


@dataclass
class _Program:
    """Everything known about the block that is being fused."""

    nests: dict[Instruction, Lifted]
    behind: dict[Value, Value]
    demand: dict[Value, float]
    """How many times elements of a value are read, by all readers together."""
    stored: set[Value]
    """What must be in memory anyway: returned, or read by a library op."""
    pool: Pool = field(default_factory=Pool)
    clusters: list[Cluster] = field(default_factory=list[Cluster])
    written: dict[Value, tuple[Cluster, Written]] = field(
        default_factory=dict[Value, tuple[Cluster, Written]]
    )
    readers: dict[Value, list[tuple[Cluster, Read]]] = field(
        default_factory=dict[Value, list[tuple[Cluster, Read]]]
    )
    libraries: list[tuple[int, Instruction]] = field(default_factory=list[tuple[int, Instruction]])
    position: int = 0
    costs: dict[Scalar, float] = field(default_factory=dict[Scalar, float])

    @classmethod
    def of(cls, block: Block) -> _Program:
        nests: dict[Instruction, Lifted] = {}
        behind: dict[Value, Value] = {}
        demand: dict[Value, float] = {}
        stored: set[Value] = set()
        for instruction in block.instructions:
            if not isinstance(instruction.op, Nest):
                if not isinstance(instruction.op, ShapeCast):
                    stored.update(source_of(operand, behind) for operand in instruction.operands)
                continue
            lifted = lift(instruction, instruction.op, behind)
            if is_alias(lifted, instruction.op):
                behind[instruction.result] = instruction.operands[0]
                continue
            nests[instruction] = lifted
            for request in lifted.requests:
                executions = math.prod(lifted.extents[: request.last_axis + 1])
                demand[request.source] = demand.get(request.source, 0.0) + executions
                stored.add(source_of(request.source, behind)) if isinstance(
                    request.source.op, ShapeCast
                ) else None
        return cls(nests, behind, demand, stored)
