# Written by stubs/generate.py; do not edit.
from collections.abc import Callable
from typing import Any, overload

from typing_extensions import TypeVar

from . import Rep, Struct

_TREE = TypeVar("_TREE", bound=Struct | tuple[Any, ...] | list[Any])
_STRUCT = TypeVar("_STRUCT", bound=Struct | tuple[Any, ...])
_C = TypeVar("_C")
@overload
def map(function: Callable[[Rep[Any]], Any], tree: Rep[_STRUCT], /) -> Rep[_STRUCT]:
    """The tree of what `function` returns for the leaves at one place of all trees, which have one structure."""
@overload
def map(function: Callable[[Rep[Any], Rep[Any]], Any], tree: Rep[_STRUCT], a: Rep[_STRUCT], /) -> Rep[_STRUCT]: ...
@overload
def map(function: Callable[[Rep[Any], Rep[Any], Rep[Any]], Any], tree: Rep[_STRUCT], a: Rep[_STRUCT], b: Rep[_STRUCT], /) -> Rep[_STRUCT]: ...
@overload
def map(function: Callable[..., Any], tree: Rep[_STRUCT], /, *rest: Rep[_STRUCT]) -> Rep[_STRUCT]: ...
@overload
def map(function: Callable[[Any], Any], tree: _TREE, /) -> _TREE: ...
@overload
def map(function: Callable[[Any, Any], Any], tree: _TREE, a: _TREE, /) -> _TREE: ...
@overload
def map(function: Callable[[Any, Any, Any], Any], tree: _TREE, a: _TREE, b: _TREE, /) -> _TREE: ...
@overload
def map(function: Callable[..., Any], tree: _TREE, /, *rest: _TREE) -> _TREE: ...
@overload
def leaves(tree: Rep[Any], /) -> list[Rep[Any]]:
    """The tensors inside, from left to right."""
@overload
def leaves(tree: Struct | tuple[Any, ...] | list[Any], /) -> list[Any]: ...
@overload
def reduce(function: Callable[[_C, Rep[Any]], _C], tree: Rep[Any], init: _C, /) -> _C:
    """`function(… function(function(init, leaf_0), leaf_1) …)`."""
@overload
def reduce(function: Callable[[_C, Any], _C], tree: Struct | tuple[Any, ...] | list[Any], init: _C, /) -> _C: ...
