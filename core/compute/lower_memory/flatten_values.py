"""Lowering rules that flatten values to leaves: aggregates, calls, structured ops and their flows."""

from __future__ import annotations

from collections.abc import Iterable

from ...ir import Instruction, Value
from ...ops.aggregate import Apply, ApplyValue, Extract, Insert
from ...ops.flows import Role, Structured, arguments_of_bodies, flows_in, flows_of, operands_of
from ...ops.nest import Yield
from ...ops.reference import Null, Undefined
from ...ops.terminators import Return
from ...types import TensorType
from ..bodies import unsupported
from ..ops import CallAddress
from .context import LoweringContext


def aggregate(c: LoweringContext, at: Instruction) -> list[list[Value]]:
    return [c.all_leaves(at.operands)]


def extract(c: LoweringContext, at: Instruction[Extract]) -> list[list[Value]]:
    op, (x,) = at.op, at.operands
    if isinstance(x.type, TensorType):
        raise unsupported("extract from a tensor, which the pass expand writes out", at.location)
    found, _ = c.layout.slice_of(x.type, op.keys)
    return [c.leaves(x)[found]]


def insert(c: LoweringContext, at: Instruction[Insert]) -> list[list[Value]]:
    op, (element, x) = at.op, at.operands
    if isinstance(x.type, TensorType):
        raise unsupported("insert to a tensor, which the pass expand writes out", at.location)
    place, _ = c.layout.slice_of(x.type, op.keys)
    leaves = list(c.leaves(x))
    leaves[place] = c.leaves(element)
    return [leaves]


def undefined(c: LoweringContext, at: Instruction[Null | Undefined]) -> list[list[Value]]:
    op = at.op
    return [c.zeros(op.type)]


def trap(c: LoweringContext, at: Instruction) -> list[list[Value]]:
    c.stop("the program stopped at a trap")
    return []


# Calls.


def apply(c: LoweringContext, at: Instruction[Apply]) -> list[list[Value]]:
    op = at.op
    flat = c.layout.flat(op.type)
    return _dealt(c, at, c.b.emit_many(Apply(op.callee, flat), c.all_leaves(at.operands)))


def _dealt(c: LoweringContext, at: Instruction, made: Iterable[Value]) -> list[list[Value]]:
    """For each result its leaves."""
    leaves = iter(made)
    return [[next(leaves) for _ in c.layout.machine_leaves(old.type)] for old in at.results]


def apply_value(c: LoweringContext, at: Instruction[ApplyValue]) -> list[list[Value]]:
    op = at.op
    function, *arguments = at.operands
    address = c.word(function)
    c.check(address, "call")
    flat = c.layout.flat(op.type)
    return _dealt(c, at, c.b.emit_many(CallAddress(flat), [address, *c.all_leaves(arguments)]))


def returned(c: LoweringContext, at: Instruction) -> list[list[Value]]:
    c.b.emit_many(Return(), c.all_leaves(at.operands))
    return []


# Structured ops: their bodies are written by themselves.


def structured(c: LoweringContext, at: Instruction[Structured]) -> list[list[Value]]:
    op = at.op
    valid: dict[Value, bool] = {}
    for flow in flows_in(at, Role.INPUT):
        (given,) = operands_of(at, flow)
        is_valid = all(c.is_valid(leaf) for leaf in c.leaves(given))
        valid.update(dict.fromkeys(arguments_of_bodies(at, flow), is_valid))
    for region in at.regions:
        c.given[region] = [valid.get(argument, False) for argument in region.entry.arguments]
    roles = [
        (flow.role, leaf) for flow in flows_of(at) for leaf in c.layout.machine_leaves(flow.type)
    ]
    return _dealt(c, at, c.b.emit_many(op.with_roles(roles), c.all_leaves(at.operands), at.regions))


def yielded(c: LoweringContext, at: Instruction) -> list[list[Value]]:
    c.b.emit_many(Yield(), c.all_leaves(at.operands))
    return []
