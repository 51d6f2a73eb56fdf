"""The order in which expressions are emitted."""

from __future__ import annotations

from collections.abc import Container, Sequence

from .expression import Expression


def postorder(roots: Sequence[Expression], known: Container[Expression]) -> list[Expression]:
    """All nodes below `roots` that are not known yet, operands first."""
    order: list[Expression] = []
    done: set[Expression] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif node not in done and node not in known:
            done.add(node)
            stack.append((node, True))
            stack.extend((operand, False) for operand in reversed(node.operands))
    return order
