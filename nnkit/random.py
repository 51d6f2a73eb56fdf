"""Random numbers from explicit keys: see `nnkit.sampling`."""

from .sampling import key, normal, split, uniform

__all__ = ["key", "normal", "split", "uniform"]
