"""Functions that are written elsewhere, as staged functions: `foreign` in C, `callback` in Python.

Both have the C interface of what `dlc` compiles, `int32_t f(const T *input…, T *output…)`: contiguous tensors by
pointer, row by row, and 0 when all went well.  Compiled code calls them directly, with the GIL.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from .callables import StagedFunction, check_staged
from .compile import Specialization
from .core.host_calls import c_function
from .core.ir import Extern
from .core.lazy_dataclass import dataclass
from .core.types import FunctionType
from .introspection import name_of
from .staging.derivatives import finished_callee
from .staging.expression import CalleeKey, ForeignCallee, Shapes
from .staging.names import identifier
from .staging.primitive import staging_error
from .staging.reached import note_host_function
from .staging.spec import Spec
from .staging.staged_functions import PythonFunction, Stageable, known_or_made


def foreign(
    function: Any, signature: StagedFunction, /, *, vjp: Callable[..., Any] | None = None
) -> StagedFunction:
    """A C function as a staged function, called from compiled code: by pointer, or by the name of a symbol.

    `function` is a function of a `ctypes` library, an address, or the name of a function that the process has.
    `signature` is a staged function of the same parameters: what it would return has the types and shapes of the
    results, and it is never run.  A code that is not 0 is a TrapError.  The function must not keep pointers, nor write
    to its inputs.  `vjp` is the rule of its derivative, staged code as `defvjp` takes it: of the arguments and the
    cotangent of the result, a tuple of the cotangents of the arguments.  Without one, a derivative that comes to the
    function is a DifferentiationError with the line of the call.
    Raises: StagingError when the process has no such symbol.
    """
    check_staged(signature, "foreign")
    address = _address(function)
    name = function if isinstance(function, str) else getattr(function, "__name__", "")
    made = ForeignFunction(signature, lambda _, __: Extern(address, function), name)
    return _with_rule(made, vjp)


def callback(
    function: Callable[..., Any],
    signature: StagedFunction,
    /,
    *,
    vjp: Callable[..., Any] | None = None,
) -> StagedFunction:
    """A function of Python on NumPy arrays as a staged function, called back from compiled code: some 10 µs a call.

    It gets copies of the arguments (bf16 as f32), and returns an array of the type and shape that `signature`, a staged
    function of the same parameters, would return, or a tuple of them.  What it raises comes out of the call.
    `vjp` is that of `foreign`.
    """
    check_staged(signature, "callback")
    if not callable(function):
        raise staging_error(f"callback takes a function of Python, not a {type(function).__name__}")
    note_host_function(function)

    def implement(name: str, flat: FunctionType) -> Extern:
        made = c_function(function, name, flat)
        return Extern(ctypes.cast(made, ctypes.c_void_p).value or 0, made)

    return _with_rule(ForeignFunction(signature, implement, name_of(function)), vjp)


def _with_rule(made: ForeignFunction, vjp: Callable[..., Any] | None) -> StagedFunction:
    """The function, or one that calls it and has the rule."""
    if vjp is None:
        return made
    caller = made.caller()
    caller.defvjp(vjp)
    return caller


class ForeignFunction(StagedFunction):
    """A staged function without code of ours."""

    __slots__ = ()

    def __init__(self, signature: StagedFunction, implement: _Implement, name: str = "") -> None:
        stageable = _Foreign(signature.stageable, implement, name)
        super().__init__(stageable)
        self.declared = signature.declared

    def caller(self) -> StagedFunction:
        """A staged function that calls it and does nothing else."""
        names, place = self.stageable.parameter_names, self.stageable.location
        return StagedFunction(
            PythonFunction(self, self.stageable.name, names, self.declared, None, place)
        )

    def _specialization(self, values: Sequence[Any]) -> Specialization:
        """Of a function that calls it: what is compiled has a body."""
        return self.caller()._specialization(values)


_Implement: TypeAlias = "Callable[[str, FunctionType], Extern]"


@dataclass(eq=False)
class _Foreign(Stageable):
    """A function that is defined elsewhere, with the types of `signature`."""

    signature: Stageable
    implement: _Implement
    named: str = ""

    def __post_init__(self) -> None:
        self.name = self.named or self.signature.name
        self.parameter_names = self.signature.parameter_names
        self.location = self.signature.location
        self._known: dict[CalleeKey, ForeignCallee] = {}

    def callee(self, specs: tuple[Spec, ...], shapes: Shapes | None = None) -> ForeignCallee:
        return known_or_made(self, self._known, specs, shapes, self._make)

    def _make(self, specs: tuple[Spec, ...], shapes: Shapes | None) -> ForeignCallee:
        promised = finished_callee(self.signature, specs, shapes)
        if promised.captures:
            raise staging_error(f"the signature of {self.name} uses Reps of an enclosing function")
        return ForeignCallee(
            identifier(self.name).replace(".", "_"),
            specs,
            promised.result,
            location=self.location,
            parameter_names=self.parameter_names,
            origin=self,
            shapes=None if promised.shapes is None else shapes,
            signature=promised,
            implement=self.implement,
        )


def _address(function: Any) -> int:
    """Where a C function lies."""
    if isinstance(function, str):
        try:
            function = getattr(ctypes.CDLL(None), function)
        except AttributeError:
            raise staging_error(
                f"no library of this process has a function {function!r}",
                "load one, ctypes.CDLL(path, ctypes.RTLD_GLOBAL), or pass its function",
            ) from None
    if isinstance(function, int) and not isinstance(function, bool):
        return function
    try:
        address = ctypes.cast(function, ctypes.c_void_p).value
    except ctypes.ArgumentError:
        address = None
    if not address:
        raise staging_error(
            f"foreign takes a function of ctypes, an address or a name, not {function!r}"
        )
    return address
