"""The base class of Rep and its constructors, for modules that `rep` itself imports.

Concrete values and compiled code are not known to staging: what makes a constant of the one, and runs the other, is
registered by `nnkit.reps`, and so are the functions that methods stand for.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from functools import singledispatch
from typing import Any, ClassVar, Final

import numpy as np
from typing_extensions import TypeIs

from ..core.errors import InternalError, NNKitError
from .expression import Expression, Trace
from .extents import SymbolicNumber
from .primitive import dtype_error
from .spec import Spec


class RepBase:
    """Base of `Rep`: a value that is known only symbolically."""

    __slots__ = ("expression",)
    is_function: ClassVar[bool] = False

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    @property
    def spec(self) -> Spec:
        """What is known of the value: rank and element type."""
        return self.expression.type


@singledispatch
def rep_of(expression: Expression) -> Any:
    """The Rep that the user sees of an expression."""
    raise InternalError(f"there is no Rep of {expression}")


@singledispatch
def constant_of(value: object) -> Expression:
    """A concrete value as a constant."""
    raise dtype_error(f"a {type(value).__name__} cannot be used in a staged function")


@singledispatch
def value_of(trace: Trace) -> Any:
    """What a function without parameters returns, computed now."""
    raise InternalError(f"{trace} cannot be run")


@singledispatch
def help_for_missing(rep: object, name: str) -> str:
    """What to write instead of an attribute that the Rep has not: empty where nothing is known."""
    return ""


@singledispatch
def function_of(rep: object, name: str) -> Callable[..., Any]:
    """The function of the language of that name, for the method of a Rep."""
    raise InternalError(f"there is no function {name}")


def list_error(other: object) -> NNKitError:
    """The error for a list beside a tensor: Python's numbers have no element type."""
    error: NNKitError = dtype_error(
        f"a list is no operand of a tensor: {reprlib.repr(other)}",
        "make it a tensor of an element type, `Tensor1D([...], f32)`",
    )
    return error


def is_number(value: object) -> TypeIs[float]:
    """Whether it is a Python number, or one computed from sizes, which has no element type of its own."""
    return isinstance(value, bool | int | float | SymbolicNumber)


REFLECTED: Final[Mapping[Any, str]] = {
    np.add: "__radd__",
    np.subtract: "__rsub__",
    np.multiply: "__rmul__",
    np.true_divide: "__rtruediv__",
    np.floor_divide: "__rfloordiv__",
    np.remainder: "__rmod__",
    np.power: "__rpow__",
    np.matmul: "__rmatmul__",
    np.bitwise_and: "__rand__",
    np.bitwise_or: "__ror__",
    np.bitwise_xor: "__rxor__",
    np.left_shift: "__rlshift__",
    np.right_shift: "__rrshift__",
    np.less: "__gt__",
    np.less_equal: "__ge__",
    np.greater: "__lt__",
    np.greater_equal: "__le__",
    np.equal: "__eq__",
    np.not_equal: "__ne__",
}
"""What an operator of NumPy with an array on its left asks the operand on its right."""
