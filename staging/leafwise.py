"""Operators on structs: tensor by tensor, of two structs of one type, or of a struct and a number or scalar.

The same for concrete values and for staged ones: what differs is how a value is taken apart and put together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ..core.errors import DTypeError, NNKitError, ShapeError
from ..core.lazy_dataclass import dataclass
from ..core.ops import Elementwise
from ..core.types import BOOL, F32
from .aggregates import aggregate_of, part_of
from .expression import Expression, MakeAggregate
from .primitive import elementwise, literal, located, staging_error
from .rep_base import RepBase, is_number, list_error
from .spec import Spec, StructSpec, TensorSpec, TupleSpec, another
from .tracing import make


@dataclass(frozen=True)
class TreeNode:
    """A struct, or a tuple (`cls` is None), by its parts and what they are called."""

    cls: type[Any] | None
    names: Sequence[str]
    parts: Sequence[Any]

    @property
    def words(self) -> str:
        return self.cls.__name__ if self.cls else f"tuple of {len(self.parts)}"


@dataclass(frozen=True)
class Leafwise:
    """Applies a function of one or two tensors to all tensors of structs."""

    verb: str
    node: Callable[[Any], TreeNode | None]
    """How a value is taken apart; None for one that is no struct or tuple."""
    rebuilt: Callable[[Any, Sequence[Any]], Any]
    """A value with other parts."""
    operate: Callable[..., Any]

    def of(self, x: Any, y: Any, path: str = "") -> Any:
        """The struct of `operate` of the tensors at one place in x and y, of which one may be a number or scalar.

        Raises: DTypeError for structs of different classes, ShapeError for sequences of different lengths.
        """
        a, b = self.node(x), self.node(y)
        known = a or b
        if known is None:
            return self._leaf(x, y, path)
        if a is not None and b is not None:
            self._check_alike(a, b, path)
        xs = a.parts if a else [x] * len(known.parts)
        ys = b.parts if b else [y] * len(known.parts)
        named = zip(xs, ys, known.names, strict=True)
        return self.rebuilt(x if a else y, [self.of(p, q, path + name) for p, q, name in named])

    def of_one(self, x: Any, path: str = "") -> Any:
        """The struct of `operate` of each tensor."""
        node = self.node(x)
        if node is None:
            return self._leaf(x, None, path)
        named = zip(node.parts, node.names, strict=True)
        return self.rebuilt(x, [self.of_one(part, path + name) for part, name in named])

    def _leaf(self, x: Any, y: Any, path: str) -> Any:
        try:
            return self.operate(x) if y is None else self.operate(x, y)
        except NNKitError as error:
            error.add_note(f"  note: this is {path[1:]} of a struct")
            raise

    def _check_alike(self, a: TreeNode, b: TreeNode, path: str) -> None:
        where = f" in {path[1:]}" if path else ""
        if a.cls is not b.cls:
            other = a.cls is not None and b.cls is not None and another(a.cls, b.cls)
            shown = other or f"a {b.words}"
            raise located(
                DTypeError(
                    f"cannot {self.verb} a {a.words} and {shown}{where}: both must be of one class"
                )
            )
        if len(a.parts) != len(b.parts):
            raise located(
                ShapeError(
                    f"cannot {self.verb} sequences of {len(a.parts)} and {len(b.parts)} values{where}"
                )
            )


def is_aggregate(value: object) -> bool:
    """Whether it is a struct, concrete or staged."""
    if isinstance(value, RepBase):
        return not value.is_function and isinstance(value.spec, StructSpec)
    return hasattr(type(value), "_declared")


def is_operand(value: object) -> bool:
    """Whether it can be the operand of an operator: a Rep, a number, a concrete tensor or array.

    Raises: DTypeError for a list.
    """
    if isinstance(value, list):
        raise list_error(cast("object", value))
    return (
        isinstance(value, RepBase | np.ndarray | np.generic)
        or is_number(value)
        or hasattr(value, "_array")
        or is_aggregate(value)
    )


def staged_leafwise(op: Elementwise, x: object, y: object) -> Expression:
    """An operator on two operands, of which at least one is a struct.

    Raises: DTypeError for a struct and a tensor of rank 1 or more; as `Leafwise.of`; StagingError for a comparison.
    """
    verb = op.verb or op.name
    if op.result_dtype(F32) is BOOL:
        raise staging_error(
            "structs are not compared as a whole while staging",
            "compare their fields, or nk.tree.reduce(lambda same, one: ..., tree, init)",
        )
    left, right = (one if is_number(one) else aggregate_of(one) for one in (x, y))
    for one in (left, right):
        if isinstance(one, Expression) and isinstance(one.type, TensorSpec) and one.type.rank:
            raise located(
                DTypeError(
                    f"cannot {verb} a struct and a {one.type.words}: the other operand is a number, a scalar or a "
                    "struct of the same class"
                ),
                "nk.tree.map(lambda leaf: ..., struct)",
            )

    def operate(a: Any, b: Any) -> Expression:
        dtype = (b if isinstance(a, bool | int | float) else a).type.dtype
        operands = [literal(one, dtype) if is_number(one) else one for one in (a, b)]
        return elementwise(op, *operands)

    made: Expression = Leafwise(verb, node_of, rebuilt, operate).of(left, right)
    return made


def staged_leafwise_unary(op: Elementwise, x: Expression) -> Expression:
    """An operator on one struct."""

    def operate(leaf: Any) -> Expression:
        return elementwise(op, leaf)

    made: Expression = Leafwise(op.verb or op.name, node_of, rebuilt, operate).of_one(x)
    return made


def node_of(value: Any) -> TreeNode | None:
    """The parts of a staged struct or tuple."""
    spec = value.type if isinstance(value, Expression) else None
    match spec:
        case StructSpec(cls, fields):
            parts = [part_of(value, k, one) for k, (_, one) in enumerate(fields)]
            return TreeNode(cls, [f".{name}" for name, _ in fields], parts)
        case TupleSpec(elements):
            parts = [part_of(value, k, one) for k, one in enumerate(elements)]
            return TreeNode(None, [f"[{k}]" for k in range(len(parts))], parts)
        case _:
            return None


def rebuilt(like: Expression, parts: Sequence[Expression]) -> Expression:
    """A struct or tuple like another one, of other parts."""
    spec: Spec
    if isinstance(like.type, StructSpec):
        named = zip(like.type.fields, parts, strict=True)
        spec = StructSpec(like.type.cls, tuple((name, part.type) for (name, _), part in named))
    else:
        spec = TupleSpec(tuple(part.type for part in parts))
    return make(MakeAggregate(spec), parts, spec)
