"""Linearization: the value of a function at a point, and its derivative there as a linear map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import GenericAlias
from typing import Any, ClassVar, cast

import numpy as np

from .callables import StagedFunction, check_staged
from .core.errors import UnsupportedError
from .jacobian_products import jvp, vjp
from .residuals import Residuals
from .splitting import Halves, Split
from .staging.rep import Rep
from .staging.spec import is_tuple
from .staging.staged_functions import arity_error
from .staging.tracebacks import public_methods
from .static_parameters import MOST_VARIANTS
from .structs import Struct, assemble
from .tensors import wrap


@public_methods
class LinearMap:
    """The derivative of a function at a point: maps tangents of its arguments to the tangent of its value.

    `transpose` maps a cotangent of the value to those of the arguments, of the types that `vjp` has.
    """

    transpose: Callable[..., Any]
    __class_getitem__: ClassVar[Any] = cast("Any", classmethod(GenericAlias))

    def __init__(self, apply: Callable[..., Any], transpose: Callable[..., Any]) -> None:
        self._apply, self.transpose = apply, transpose

    def __repr__(self) -> str:
        return "<linear map of tangents; its transpose is one of cotangents>"

    def __call__(self, *tangents: Any) -> Any:
        """The tangent of the value along `tangents`, one for each argument of `wrt`."""
        return self._apply(*tangents)


@public_methods
class Linearization:
    """Called with arguments of a function, gives its value there and its derivative as a `LinearMap`."""

    def __init__(self, of: StagedFunction, wrt: Any) -> None:
        self._of, self._wrt = of, wrt
        self._variants: dict[int, Linearization] = {}
        self._pushed, self._pulled = jvp(of, wrt=wrt), vjp(of, wrt=wrt)
        self._split = Split(of, wrt, "all")
        self._maps: dict[Halves, StagedFunction] = {}

    def __call__(self, *arguments: Any, **statics: Any) -> tuple[Any, LinearMap]:
        """The value at `arguments`, and the linear map there; on data the function runs now, and not again.

        `statics` are values of static parameters of the function.
        """
        of, data = self._of.of_call(arguments, statics)
        return (self if of is self._of else self._variant(of))._at(data)

    def _variant(self, of: StagedFunction) -> Linearization:
        """That of the function for other values of its static parameters."""
        if id(of) not in self._variants:
            while len(self._variants) >= MOST_VARIANTS:
                self._variants.pop(next(iter(self._variants)))
            self._variants[id(of)] = Linearization(of, self._wrt)
        return self._variants[id(of)]

    def _at(self, arguments: Sequence[Any]) -> tuple[Any, LinearMap]:
        if any(isinstance(value, Rep) for value in arguments):
            return self._staged(arguments)
        if len(arguments) != len(self._of.stageable.parameter_names):
            raise arity_error(self._of.stageable, len(arguments))
        values = self._of._values(arguments)
        try:
            halves = self._split.at(*values)
        except (
            UnsupportedError
        ):  # a loop whose iterations are not known keeps nothing that has a shape
            return self._staged(values)
        if halves.ends_by_seed:
            return self._staged(values)
        value, residuals = halves.forward(*values)
        return value, self._of_residuals(halves, value, residuals)

    def _of_residuals(self, halves: Halves, value: Any, residuals: Residuals) -> LinearMap:
        """The backward half is linear in its seed: the transpose of that map is the derivative."""
        if halves not in self._maps:
            self._maps[halves] = vjp(halves.backward, wrt=1)
        pushed, seed, single = self._maps[halves], _zeros_like(value), self._split._single

        def apply(*tangents: Any) -> Any:
            return pushed(residuals, seed, tangents[0] if single else tangents)

        def transpose(cotangent: Any) -> Any:
            return halves.backward(residuals, cotangent)

        return LinearMap(apply, transpose)

    def _staged(self, arguments: Sequence[Any]) -> tuple[Any, LinearMap]:
        """By the tangent and the gradient, of which the compiler shares what they have in common in staged code."""

        def apply(*tangents: Any) -> Any:
            both = self._pushed(*arguments, *tangents)
            return both.unpack()[1] if isinstance(both, Rep) else both[1]

        def transpose(cotangent: Any) -> Any:
            return self._pulled(*arguments, cotangent)

        return self._of(*arguments), LinearMap(apply, transpose)


def linearize(of: StagedFunction, /, *, wrt: Any = None) -> Linearization:
    """`linearize(f)(*arguments)` is the value of `of` there and its derivative by `wrt` as a linear map.

    The map takes tangents as `jvp` does, and its `transpose` a cotangent as `vjp` does, each as often as one likes: the
    function itself is not run again.  (It is, each time, if what a loop keeps has no shape, its iterations not being
    known before it runs, and if the backward half has loops that end by the seed, as that of `fixed_point`.)
    Raises: DifferentiationError for an index out of range or given twice, or a parameter without floats.
    """
    check_staged(of, "linearize")
    return Linearization(of, wrt)


def _zeros_like(value: Any) -> Any:
    if isinstance(value, Struct):
        return assemble(type(value), map(_zeros_like, value._fields))
    if is_tuple(value):
        return tuple(map(_zeros_like, value))
    return wrap(np.zeros_like(value._array))
