"""Functions on trees of tensors: see `nnkit.trees`."""

from .trees import leaves, map, reduce

__all__ = ["leaves", "map", "reduce"]
