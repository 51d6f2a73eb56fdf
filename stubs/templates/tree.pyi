# Written by stubs/generate.py; do not edit.
from collections.abc import Callable
from typing import Any, overload

from typing_extensions import TypeVar

from . import Rep, Struct

TREE = TypeVar("TREE", bound=Struct | tuple[Any, ...] | list[Any])
STRUCT = TypeVar("STRUCT", bound=Struct | tuple[Any, ...])
C = TypeVar("C")
@overload
def map(function: Callable[[Rep[Any]], Any], tree: Rep[STRUCT], /) -> Rep[STRUCT]:
    """The tree of what `function` returns for the leaves at one place of all trees, which have one structure."""
@overload
def map(function: Callable[[Rep[Any], Rep[Any]], Any], tree: Rep[STRUCT], a: Rep[STRUCT], /) -> Rep[STRUCT]: ...
@overload
def map(function: Callable[[Rep[Any], Rep[Any], Rep[Any]], Any], tree: Rep[STRUCT], a: Rep[STRUCT], b: Rep[STRUCT], /) -> Rep[STRUCT]: ...
@overload
def map(function: Callable[..., Any], tree: Rep[STRUCT], /, *rest: Rep[STRUCT]) -> Rep[STRUCT]: ...
@overload
def map(function: Callable[[Any], Any], tree: TREE, /) -> TREE: ...
@overload
def map(function: Callable[[Any, Any], Any], tree: TREE, a: TREE, /) -> TREE: ...
@overload
def map(function: Callable[[Any, Any, Any], Any], tree: TREE, a: TREE, b: TREE, /) -> TREE: ...
@overload
def map(function: Callable[..., Any], tree: TREE, /, *rest: TREE) -> TREE: ...
@overload
def leaves(tree: Rep[Any], /) -> list[Rep[Any]]:
    """The tensors inside, from left to right."""
@overload
def leaves(tree: Struct | tuple[Any, ...] | list[Any], /) -> list[Any]: ...
@overload
def reduce(function: Callable[[C, Rep[Any]], C], tree: Rep[Any], init: C, /) -> C:
    """`function(… function(function(init, leaf_0), leaf_1) …)`."""
@overload
def reduce(function: Callable[[C, Any], C], tree: Struct | tuple[Any, ...] | list[Any], init: C, /) -> C: ...
