"""Laws of aggregates and enums: taking apart undoes putting together, and the other way round."""

from __future__ import annotations

from ...ir import Builder, Instruction, Value
from ...ops import Aggregate, EnumCase, Extract, Insert, IsCase, Payload, Undefined, splat
from ...ops.aggregate import type_at
from ...ops.leaves import parts_by_key
from ...types import TensorType
from ..rewrite import Laws

FURTHEST = 64
"""So many `insert` are looked through for an element: each of many looking through many would take their product."""


def simplify_extract(b: Builder, instruction: Instruction[Extract]) -> Value | None:
    (x,) = instruction.operands
    op = instruction.op
    keys = op.keys
    steps = 0
    while keys:
        match x.op, x.producer:
            # extract k from (…, xₖ, …) = xₖ
            case Aggregate(), Instruction(operands=elements):
                (position,) = Extract(keys[:1]).positions(x.type)
                x, keys = elements[position], keys[1:]
            # extract k from (insert e to y at k) = e, and another element is that of y
            case Insert() as insert, Instruction(operands=(element, y)):
                steps += 1
                if steps > FURTHEST:
                    return None
                found = _after_insert(insert, element, y, keys)
                if found is None:
                    break
                x, keys = found
            # extract k from (extract j from x) = extract j, k from x
            case Extract(before), Instruction(operands=(y,)):
                x, keys = y, (*before, *keys)
            case _:
                break
    if not keys:
        return x
    # an element of what is undefined is undefined
    if isinstance(x.op, Undefined):
        return b.emit(Undefined(instruction.result.type))
    return None if x is instruction.operands[0] else b.emit(Extract(keys), x)


def simplify_aggregate(b: Builder, instruction: Instruction[Aggregate]) -> Value | None:
    """All elements of one value, in their order, make that value."""
    op, elements = instruction.op, instruction.operands
    sources: list[tuple[Value, tuple[int | str, ...]]] = []
    for (key, _), element in zip(parts_by_key(op.type), elements, strict=True):
        match element.op, element.producer:
            case Extract(keys=(*path, last)), Instruction(operands=(x,)) if last == key:
                sources.append((x, tuple(path)))
            case _:
                return None
    if not sources or any(source != sources[0] for source in sources):
        return None
    whole, keys = sources[0]
    if Extract(keys).infer(whole.type) != op.type:
        return None
    # (extract 0 from x, extract 1 from x, …) = x
    return b.emit(Extract(keys), whole) if keys else whole


def simplify_is_case(b: Builder, instruction: Instruction[IsCase]) -> Value | None:
    (x,) = instruction.operands
    op = instruction.op
    # whether ?a(…) is ?b is known
    if isinstance(x.op, EnumCase):
        return b.emit(splat(instruction.result.tensor, x.op.case == op.case))
    return None


def simplify_payload(b: Builder, instruction: Instruction[Payload]) -> Value | None:
    (x,) = instruction.operands
    op = instruction.op
    # what ?a(…, xₖ, …) carries at k is xₖ
    if isinstance(x.op, EnumCase) and x.producer is not None and x.op.case == op.case:
        return x.producer.operands[op.index]
    return None


def _after_insert(
    op: Insert, element: Value, whole: Value, keys: tuple[int | str, ...]
) -> tuple[Value, tuple[int | str, ...]] | None:
    """Where `keys` of what was inserted into lead to; None if to more than the element, or into a tensor."""
    common = min(len(op.keys), len(keys))
    if isinstance(type_at(whole.type, op.keys[:-1]), TensorType):
        return None
    if op.keys[:common] != keys[:common]:
        return whole, keys
    return (element, keys[common:]) if common == len(op.keys) else None


AGGREGATE: Laws = {
    Extract: (simplify_extract,),
    Aggregate: (simplify_aggregate,),
    IsCase: (simplify_is_case,),
    Payload: (simplify_payload,),
}
