"""Runs a function of a module as compiled code, by the entry that staged functions have too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..core.driver.stages import advance
from ..core.errors import UnsupportedError
from ..core.evaluate import flatten, unflatten
from ..core.ir import Module
from ..core.ops.leaves import leaves_of
from ..core.stage import Stage
from ..core.types import FunctionType, TensorType, Type
from ..jit.entry import ArrayNode, Signature, TupleNode
from ..jit.executable import build, host_target

__all__ = ["host_target", "run"]


def run(module: Module, name: str, type: FunctionType, arguments: Sequence[Any]) -> Any:
    """What `@name(arguments)` returns, both as the evaluator has them.  The module is used up.

    `type` is that of the function before it was flattened.

    Raises: IndexOutOfRangeError when a check of the program fails.
    """
    advance(module, Stage.SCHEDULE, name, target=host_target())
    inputs = [leaf for parameter in type.parameters for leaf in _leaves(parameter)]
    outputs = [*_leaves(type.result)]
    signature = Signature(tuple(map(_node, inputs)), TupleNode(tuple(map(_node, outputs))))
    call = build(module.functions[name], signature, name=name, functions=module.functions).call
    given = [
        _stored(leaf, data)
        for parameter, argument in zip(type.parameters, arguments, strict=True)
        for leaf, data in zip(_leaves(parameter), flatten(parameter, argument), strict=True)
    ]
    returned = zip(_leaves(type.result), call(*given), strict=True)
    return unflatten(type.result, (_loaded(leaf, data) for leaf, data in returned))


def _node(leaf: TensorType) -> ArrayNode:
    return ArrayNode(leaf.dtype.name, leaf.shape)


def _leaves(type: Type) -> Iterator[TensorType]:
    for leaf in leaves_of(type):
        if not isinstance(leaf.type, TensorType):
            raise UnsupportedError(
                f"a value of type {leaf.type} cannot cross to compiled code: use --with evaluator"
            )
        yield leaf.type


def _loaded(type: TensorType, data: Any) -> Any:
    return type.dtype.load(np.asarray(data).view(type.dtype.storage))


def _stored(type: TensorType, data: Any) -> Any:
    return np.array(type.dtype.store(np.asarray(data)), type.dtype.storage, order="C")
