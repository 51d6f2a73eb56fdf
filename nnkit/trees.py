"""Functions on trees: structs, and tuples and lists, of tensors, concrete or staged.

The leaves of a tree are what is no struct, tuple or list, from left to right.

>>> from nnkit import f32
>>> reduce(lambda total, x: total + float(x), (f32(1.0), [f32(2.0)]), 0.0)
3.0
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Sequence
from typing import Any

from .core.errors import DTypeError, ShapeError
from .reps import check_fields
from .staging.aggregates import aggregate_of
from .staging.expression import MakeAggregate
from .staging.leafwise import TreeNode, node_of
from .staging.primitive import located
from .staging.rep import Rep
from .staging.spec import StructSpec, TupleSpec, another, is_sequence, is_tuple
from .staging.tracing import current_trace, make
from .structs import Struct, assemble, struct_node
from .tensors import AnyTensor

__all__ = ["leaves", "map", "reduce"]


def map(function: Callable[..., Any], tree: Any, /, *rest: Any) -> Any:
    """The tree of what `function` returns for the leaves at one place of all trees, which have one structure.

    A struct's leaves stay of the rank and element type that its class declares.  A Rep that `function` makes of
    concrete leaves is evaluated, unless a function is being staged.
    Raises: DTypeError, ShapeError where trees differ in structure; RankError, DTypeError for other leaves.
    """
    return _map(function, (tree, *rest), "")


def leaves(tree: Any, /) -> list[Any]:
    """The leaves, from left to right."""
    node = _node(tree)
    return [tree] if node is None else [leaf for part in node.parts for leaf in leaves(part)]


def reduce(function: Callable[[Any, Any], Any], tree: Any, init: Any, /) -> Any:
    """`function(… function(function(init, leaf_0), leaf_1) …)`."""
    return functools.reduce(function, leaves(tree), init)


def _node(tree: Any) -> TreeNode | None:
    if isinstance(tree, Rep):
        node = None if tree.is_function else node_of(tree.expression)
        return node and TreeNode(node.cls, node.names, [Rep(part) for part in node.parts])
    return struct_node(tuple(tree) if is_sequence(tree) else tree)


def _map(function: Callable[..., Any], trees: Sequence[Any], path: str) -> Any:
    nodes = [_node(tree) for tree in trees]
    first = nodes[0]
    for number, node in enumerate(nodes[1:], 2):
        _check_alike(first, node, number, path)
    if isinstance(trees[0], dict):
        raise located(
            DTypeError(
                "tree.map goes through structs, tuples and lists, and a dict is none of them"
            ),
            "`{key: nk.tree.map(function, value) for key, value in tree.items()}`",
        )
    if first is None:
        made = function(*trees)
        is_staged = current_trace() is not None or any(isinstance(one, Rep) for one in trees)
        return made if is_staged else _value(made)
    inside = zip(first.names, *(node.parts for node in nodes if node), strict=True)
    parts = [_map(function, below, path + name) for name, *below in inside]
    return _rebuilt(trees[0], first, parts)


def _check_alike(first: TreeNode | None, other: TreeNode | None, number: int, path: str) -> None:
    """Raises: DTypeError, ShapeError when two trees are not of one structure."""
    where = f" at {path.lstrip('.')}" if path else ""
    shown = [f"a {node.words}" if node else "a leaf" for node in (first, other)]
    if first is None or other is None or first.cls is not other.cls:
        if first is None and other is None:
            return
        if first and other and first.cls and other.cls:
            shown[1] = another(first.cls, other.cls) or shown[1]
        raise located(
            DTypeError(
                f"tree.map: the first tree has {shown[0]}{where}, and tree {number} {shown[1]}"
            )
        )
    if len(first.parts) != len(other.parts):
        raise located(
            ShapeError(
                f"tree.map: the first tree has {len(first.parts)} values{where}, and tree {number} "
                f"{len(other.parts)}"
            )
        )


def _rebuilt(like: Any, node: TreeNode, parts: list[Any]) -> Any:
    """A tree like another one, of other parts."""
    if isinstance(like, Rep) or (
        isinstance(like, Struct)
        and current_trace() is not None
        and any(isinstance(one, Rep) for one in leaves(parts))
    ):
        return _staged(node, parts)
    if node.cls is None:
        return parts if isinstance(like, list) else tuple(parts)
    if builtins.all(builtins.map(_same_type, parts, node.parts)):
        return assemble(node.cls, parts)
    return node.cls(*parts)


def _staged(node: TreeNode, parts: Sequence[Any]) -> Rep:
    made = [aggregate_of(part) for part in parts]
    spec: StructSpec | TupleSpec = TupleSpec(tuple(part.type for part in made))
    if node.cls is not None:
        named = zip(node.names, made, strict=True)
        spec = StructSpec(node.cls, tuple((name[1:], part.type) for name, part in named))
        kept = [isinstance(one, Rep) and one.spec for one in node.parts]
        if kept != [part.type for part in made]:
            check_fields(node.cls, made)
    return Rep(make(MakeAggregate(spec), made, spec))


def _value(leaf: Any) -> Any:
    """A Rep's value; anything else is one."""
    return leaf.eval() if isinstance(leaf, Rep) and not leaf.is_function else leaf


def _same_type(new: Any, old: Any) -> bool:
    """Whether a part may take the place of another one without a look at what the class declares."""
    if isinstance(new, AnyTensor):
        return type(new) is type(old) and new.dtype is old.dtype
    if is_tuple(new) and is_tuple(old):
        return len(new) == len(old) and builtins.all(builtins.map(_same_type, new, old))
    return isinstance(new, Struct) and type(new) is type(old)
