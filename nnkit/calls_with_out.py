"""Calls of a staged function that write to arrays of the caller: `f(x, y, out=z)`.

Such a call goes to native code of its own, which reads `out` behind the arguments, checks it as it checks these, and
returns it.  It is one of the specialisations of the function, tried one after the other.  What does not fit comes here:
1. Arrays in `out` become tensors of their memory; what results cannot be written to is an error.
2. Where `out` shares memory with an argument, the results go to new arrays first, and are copied: each element of the
   argument is read as it was before the call.
3. Of a new shape of arguments, the code is compiled.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Final, cast

import numpy as np

from .arrays import is_masked, is_storage, surface_name
from .compile import Program, Specialization
from .compiled_functions import WithCode
from .conversion import shapes_of, signature_of, spec_of
from .core.errors import (
    DTypeError,
    InternalError,
    NNKitError,
    OutputError,
    RankError,
    ShapeError,
)
from .core.lazy_dataclass import dataclass
from .core.types import Array, DType
from .staging.carry import kind, with_article
from .staging.primitive import located, staging_error
from .staging.rep import Rep
from .staging.spec import Spec, StructSpec, TensorSpec, TupleSpec, is_tuple
from .staging.staged_functions import FunctionResult
from .staging.tracebacks import public
from .staging.tracing import current_trace
from .structs import Struct, assemble
from .tensors import RANKED, AnyTensor, wrap


class WithOut(WithCode):
    """Base of staged functions: their calls with `out=`, whose native code stands among that of calls without."""

    __slots__ = ()

    def _write_to(self, out: Any, arguments: Sequence[Any]) -> Any:
        """A call that no native code takes: write the results to `out`, and return the tensors of its arrays.

        Raises: OutputError, ShapeError, RankError or DTypeError for arrays that results cannot be written to.
        """
        name = self.stageable.name
        if current_trace() is not None or any(isinstance(one, Rep) for one in (*arguments, out)):
            raise staging_error(
                f"{name} takes out= where it runs: in a staged function, its results have no memory of their own",
                "leave it out",
            )
        values = self._values(arguments)
        key = (WITH_OUT, *map(signature_of, values))
        program = self._programs.find(key)
        if program is not None:
            self._enter(program)
        else:
            program = self._compile_with_out(key, values)
        try:
            tree = _Checked(iter(program.result_shapes)).value(out, program.result, "out")
        except NNKitError as error:
            raise located(type(error)(f"{name}: {error}")) from None
        return program.call(*values, out=tree)

    def _compile_with_out(self, key: Hashable, values: Sequence[Any]) -> Program:
        name = self.stageable.name

        def compiled(specialization: Specialization) -> Program:
            return specialization.compiled(self._copied, name, given_result=True)

        try:
            return self._compile(key, values, compiled)
        except FunctionResult:
            raise staging_error(
                f"{name} returns a staged function, which cannot be written to out"
            ) from None

    @public
    def _copied(self, *arguments: Any, out: Any) -> Any:
        """What native code does not take although all fits: memory that is shared, or too small a stack.

        Raises: OutputError when two results share it; DonationError when an argument was donated meanwhile.
        """
        values = self._values(arguments)
        read = [array for value in values for array in arrays_in(value)]
        written = [*arrays_in(out)]
        try:
            _require_disjoint(written)
        except NNKitError as error:
            raise located(type(error)(f"{self.stageable.name}: {error}")) from None
        if not any(_overlap(x, y) for x in read for y in written):
            return self._refuse(*arguments, out=out)
        for target, made in zip(written, arrays_in(self._entry(*values)), strict=True):
            np.copyto(target, made)
        return out


WITH_OUT: Final = "out="
"""What the keys of specialisations for calls with `out=` begin with; no type of an argument is this."""


def copy_to(name: str, out: Any, made: Any) -> Any:
    """Copy a value that a function `name` has returned to the arrays of `out`, which must fit; their tensors."""
    try:
        tree = _Checked(iter(shapes_of(made))).value(out, spec_of(made), "out")
        written = [*arrays_in(tree)]
        _require_disjoint(written)
    except NNKitError as error:
        raise located(type(error)(f"{name}: {error}")) from None
    for target, array in zip(written, arrays_in(made), strict=True):
        np.copyto(target, array)
    return tree


def arrays_in(value: Any) -> Iterator[Array]:
    """The arrays of the tensors in a value, from left to right."""
    if isinstance(value, AnyTensor):
        yield value._array
        return
    for part in value._fields if isinstance(value, Struct) else value:
        yield from arrays_in(part)


@dataclass(frozen=True)
class _Checked:
    """Checks what was given as `out` against the result, whose `shapes` are taken one after the other."""

    shapes: Iterator[tuple[int, ...]]

    def value(self, out: Any, spec: Spec, place: str) -> Any:
        """`out` with tensors in place of arrays; itself if it has only such."""
        match spec:
            case TensorSpec(dtype=dtype):
                return self._tensor(out, next(self.shapes), dtype, place)
            case StructSpec(cls, fields):
                if type(out) is not cls:
                    raise DTypeError(
                        f"{place} must be {with_article(spec.words)}, and is {kind(out)}"
                    )
                parts = [
                    self.value(part, element, f"{place}.{name}")
                    for part, (name, element) in zip(out._fields, fields, strict=True)
                ]
                same = all(x is y for x, y in zip(parts, out._fields, strict=True))
                return out if same else assemble(cls, parts)
            case TupleSpec(elements):
                if not is_tuple(out) or len(out) != len(elements):
                    raise DTypeError(
                        f"{place} must be a tuple of {len(elements)} values, and is {_described(out)}"
                    )
                found = tuple(
                    self.value(part, element, f"{place}[{number}]")
                    for number, (part, element) in enumerate(zip(out, elements, strict=True))
                )
                same = type(out) is tuple and all(map(_is, found, out))
                return out if same else found
            case _:
                raise InternalError(f"{spec} has no counterpart in Python")

    def _tensor(self, out: Any, shape: tuple[int, ...], dtype: DType, place: str) -> AnyTensor:
        array: Array
        if isinstance(out, AnyTensor):
            array = out._array
        elif not is_masked(out) and isinstance(out, np.ndarray):
            array = cast("Array", out)
        else:
            raise DTypeError(f"{place} must be a tensor or a NumPy array, and is {_described(out)}")
        _require_fit(array, shape, dtype, place)
        if isinstance(out, AnyTensor) and type(out) is RANKED[len(shape)] and is_storage(array):
            return out
        return wrap(array.view(np.ndarray).view(dtype.storage))


def _is(x: object, y: object) -> bool:
    return x is y


def _require_fit(array: Array, shape: tuple[int, ...], dtype: DType, place: str) -> None:
    """Raises: DTypeError, RankError, ShapeError or OutputError unless results can be written to the array."""
    storage = dtype.storage
    if array.dtype.kind != storage.kind or array.dtype.itemsize != storage.itemsize:
        raise DTypeError(
            f"{place} must have elements of {surface_name(dtype)}, and has {array.dtype}: results are not converted"
        )
    if array.shape != shape:
        error = ShapeError if array.ndim == len(shape) else RankError
        raise error(f"{place} must have the shape {list(shape)}, and has {list(array.shape)}")
    flags = array.flags
    wrong = [
        words
        for is_wrong, words in (
            (not flags.writeable, "is read-only"),
            (not flags.c_contiguous, "is not contiguous in C order"),
            (not flags.aligned, "is not aligned"),
            (not array.dtype.isnative, "has swapped bytes"),
        )
        if is_wrong
    ]
    if wrong:
        raise OutputError(
            f"{place} {' and '.join(wrong)}\n"
            "  help: give an array as np.empty makes it, and copy from there"
        )


def _require_disjoint(arrays: Sequence[Array]) -> None:
    """Raises: OutputError when two of them share memory."""
    ordered = sorted((a for a in arrays if a.nbytes), key=lambda a: a.ctypes.data)
    for first, second in itertools.pairwise(ordered):
        if _overlap(first, second):
            raise OutputError(
                "two arrays in out share memory\n  help: give each result an array of its own"
            )


def _overlap(x: Array, y: Array) -> bool:
    """Whether two contiguous arrays have a byte in common."""
    return np.may_share_memory(x, y)


def _described(value: Any) -> str:
    return f"a tuple of {len(value)}" if is_tuple(value) else kind(value)
