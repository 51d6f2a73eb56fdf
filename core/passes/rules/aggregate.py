"""Laws of tuples and structs: taking apart undoes putting together, and the other way round."""

from __future__ import annotations

from ...ir import Builder, Instruction, Value
from ...ops import Aggregate, Extract
from ...types import StructType, TupleType
from ..rewrite import Laws


def simplify_extract(b: Builder, instruction: Instruction) -> Value | None:
    (x,) = instruction.operands
    op = instruction.op
    assert isinstance(op, Extract)
    keys = op.keys
    while keys:
        match x.op, x.producer:
            # extract k from (…, xₖ, …) = xₖ
            case Aggregate(), Instruction(operands=elements):
                (position,) = Extract(keys[:1]).positions(x.type)
                x, keys = elements[position], keys[1:]
            # extract k from (extract j from x) = extract j, k from x
            case Extract(before), Instruction(operands=(y,)):
                x, keys = y, (*before, *keys)
            case _:
                break
    if not keys:
        return x
    return None if x is instruction.operands[0] else b.emit(Extract(keys), x)


def simplify_aggregate(b: Builder, instruction: Instruction) -> Value | None:
    """All elements of one value, in their order, make that value."""
    op, elements = instruction.op, instruction.operands
    assert isinstance(op, Aggregate)
    sources: list[tuple[Value, tuple[int | str, ...]]] = []
    for key, element in zip(_keys(op.type), elements, strict=True):
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


def _keys(type: TupleType | StructType) -> tuple[int | str, ...]:
    if isinstance(type, StructType):
        return tuple(name for name, _ in type.fields)
    return tuple(range(len(type.elements)))


AGGREGATE: Laws = {Extract: (simplify_extract,), Aggregate: (simplify_aggregate,)}
