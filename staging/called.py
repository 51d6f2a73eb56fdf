"""What traced functions call."""

from __future__ import annotations

from collections.abc import Iterator

from .expression import (
    BatchCallee,
    Callee,
    DerivativeCallee,
    Expression,
    ForLoop,
    IfElse,
    StagedCall,
    Trace,
    WhileLoop,
)


def called_by(callee: Callee) -> list[Callee]:
    """What `callee` calls, or is a derivative or a batch of."""
    if isinstance(callee, DerivativeCallee | BatchCallee):
        return [] if callee.primal is None else [callee.primal]
    if isinstance(callee, Trace) and callee.output is not None:
        return [*called_in(callee.output)]
    return []


def called_in(output: Expression) -> Iterator[Callee]:
    """What is called below `output`, in bodies too."""
    seen: set[Expression] = set()
    pending = [output]
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        pending += node.operands
        match node.operation:
            case StagedCall(callee):
                yield callee
            case IfElse() | WhileLoop() | ForLoop() as structured:
                pending += (x for body in structured.bodies for x in body.outputs)
            case _:
                pass
