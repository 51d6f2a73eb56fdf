"""The programs of `memory_programs` by NNKit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import nnkit as nk

from .memory_programs import Array, Program, Shapes, arguments_of


def planned_bytes(program: Program) -> int:
    """What NNKit says a call needs besides its arguments."""
    arguments = arguments_of(program.shapes)
    found: int = _staged(program, arguments).memory_analysis(*arguments).peak_bytes
    return found


def compiled(program: Program, shapes: Shapes) -> Callable[[], object]:
    """A call, which has not run yet."""
    arguments = arguments_of(shapes)
    function = _staged(program, arguments)
    tensors = [_type_of(one)(one) for one in arguments]
    if program.donated is not None:  # a result, as in a loop of steps: nobody else has its memory
        other = _staged(program, arguments)
        tensors[program.donated] = other(*tensors)
        other.clear_cache()
    function.compile(*tensors)
    return lambda: function(*tensors)


def _staged(program: Program, arguments: Sequence[Array]) -> Any:
    compute = partial(program.function, nk)
    # a staged function has as many parameters as it says
    by_count: dict[int, Any] = {
        1: lambda a: compute(a),
        2: lambda a, b: compute(a, b),
        3: lambda a, b, c: compute(a, b, c),
        4: lambda a, b, c, d: compute(a, b, c, d),
        5: lambda a, b, c, d, e: compute(a, b, c, d, e),
    }
    function: Any = nk.fn(*map(_type_of, arguments))(by_count[len(arguments)])
    if program.is_gradient:
        function = nk.gradient(of=function, wrt=tuple(range(len(arguments))))
    if program.donated is not None:
        function = nk.donate(function, program.donated)
    return function


def _type_of(argument: Array) -> Any:
    ranks: Any = (nk.Scalar, nk.Tensor1D, nk.Tensor2D, nk.Tensor3D)
    return ranks[argument.ndim][nk.f32]
