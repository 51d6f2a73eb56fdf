"""What a Rep shows of itself: how it prints, what `dir` offers, and what to write in place of a NumPy function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..core.errors import NNKitError
from .expression import Constant, Parameter
from .known_shapes import shapes_in_sight
from .primitive import staging_error
from .rep_base import RepBase, help_for_missing
from .spec import StructSpec, TensorSpec, TupleSpec

_OF_ALL: Final = ("eval",)
_OF_FUNCTIONS: Final = (
    "asm", "cache_size", "clear_cache", "compile", "defjvp", "defvjp", "eval", "ir", "llvm", "memory_analysis",
    "partial",
)  # fmt: skip
_OF_STRUCTS: Final = (*_OF_ALL, "set")
_OF_TUPLES: Final = (*_OF_ALL, "unpack", "map")
_INTERNAL: Final = ("expression", "is_function", "lift", "spec")
_NOT_OF_TENSORS: Final = {*_OF_FUNCTIONS, "set", "unpack", *_INTERNAL} - {*_OF_ALL}


def described(rep: RepBase) -> str:
    """Rank, element type and shape: that of the call at hand or, where none is known, a name for each extent."""
    words = f"<Rep of {rep.spec.words}"
    if not isinstance(rep.spec, TensorSpec) or not rep.spec.rank:
        return f"{words}>"
    if (shapes := shapes_in_sight([rep.expression])) is not None:
        return f"{words} of shape {shapes[0]}>"
    match rep.expression.operation:
        case Parameter(name=name):
            extents = [f"{name}.shape[{axis}]" for axis in range(rep.spec.rank)]
        case Constant(array=array):
            extents = [str(extent) for extent in array.shape]
        case _:
            extents = ["…"] * rep.spec.rank
    return f"{words} of shape ({', '.join(extents)}{',' * (len(extents) == 1)})>"


def offered(rep: RepBase) -> list[str]:
    """For `dir`: what a value of its kind has for users."""
    special = [name for name in object.__dir__(rep) if name.startswith("__")]
    public = [name for name in object.__dir__(rep) if not name.startswith("_")]
    if rep.is_function:
        return [*special, *(name for name in public if name in _OF_FUNCTIONS)]
    match rep.spec:
        case StructSpec():
            return [*special, *_OF_STRUCTS]
        case TupleSpec():
            return [*special, *_OF_TUPLES]
        case _:
            return [*special, *(name for name in public if name not in _NOT_OF_TENSORS)]


def instead_of(rep: RepBase, name: str) -> str:
    """What to write in place of the function `name` of NumPy."""
    name = _NUMPY_NAMES.get(name, name)
    if hasattr(type(rep), name) and name not in _NOT_OF_TENSORS:
        return f"`x.{name}(...)`: a method of staged values"
    found = help_for_missing(rep, name)
    return found.replace(": a function", "") if found.startswith("`") else ""


_NUMPY_NAMES: Final[Mapping[str, str]] = {
    "absolute": "abs",
    "concatenate": "concat",
    "amax": "max",
    "amin": "min",
    "true_divide": "div",
    "divide": "div",
    "bitwise_count": "popcount",
}
"""What NumPy calls otherwise."""


def numpy_words(function: Any) -> str:
    """`np.linalg.inv`."""
    module = str(getattr(function, "__module__", "") or "numpy").replace("numpy", "np", 1)
    inner = module if module in ("np.linalg", "np.fft", "np.random") else "np"
    return f"{inner}.{function.__name__}"


def not_there(what: str, help: str = "") -> NNKitError:
    """What is to be said where Python asks for a number."""
    remedy = (
        "keep computing with Reps, as by `nk.exp` for `math.exp`, "
        "or call the staged function with concrete tensors"
    )
    return staging_error(f"{what} needs a value, and a Rep has none while staging", help or remedy)
