"""Emitted functions as callables on NumPy arrays."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from nnkit.jit.emit.writer import (
    I64,
    PTR,
    Argument,
    FunctionWriter,
    ModuleWriter,
    Register,
    ScalarName,
    constant,
    llvm_type,
)
from nnkit.jit.llvm import CompiledModule, Engine, compile_module, host_engine, host_machine

Array = np.ndarray[Any, np.dtype[Any]]

NUMPY: dict[ScalarName, type[np.generic]] = {
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "half": np.float16,
    "float": np.float32,
    "double": np.float64,
}


@dataclass(frozen=True)
class NativeLoop:
    """A loop over arrays, of the addresses of operands and result, and their length: `f(x, …, out, count)`."""

    address: int
    native: Callable[..., None]
    keep: CompiledModule

    def __call__(self, *arguments: int) -> None:
        self.native(*arguments)


def elementwise(
    emit: Callable[..., Register],
    scalar: ScalarName,
    lanes: int,
    *,
    operands: int = 1,
    result: ScalarName | None = None,
    scalef: bool = True,
    fma: bool = True,
    engine: Engine | None = None,
) -> Callable[..., Array]:
    """`emit` in a loop over arrays whose length is a multiple of `lanes`. bfloat arrays are of uint16.

    `scalef` and `fma` allow these instructions, where this machine has them.
    """
    native = loop_over_arrays(
        emit,
        scalar,
        lanes,
        operands=operands,
        result=result,
        scalef=scalef,
        fma=fma,
        engine=engine,
    )

    def call(*arrays: Array) -> Array:
        arrays = tuple(np.ascontiguousarray(array) for array in arrays)
        length = arrays[0].size
        padded = [np.resize(array, length + -length % lanes) for array in arrays]
        out = np.empty(padded[0].size, NUMPY.get(result or scalar, np.uint16))
        native(*(array.ctypes.data for array in padded), out.ctypes.data, out.size)
        return out[:length]

    return call


def loop_over_arrays(
    emit: Callable[..., Register],
    scalar: ScalarName,
    lanes: int,
    *,
    operands: int = 1,
    result: ScalarName | None = None,
    scalef: bool = True,
    fma: bool = True,
    engine: Engine | None = None,
    rounds: int = 1,
) -> NativeLoop:
    """The loop by itself: of the addresses of operands and result, and their length, a multiple of `lanes`.

    It is run so many `rounds` in a call, to be timed.
    """
    host = host_machine()
    module = ModuleWriter(scalef=scalef and host.scalef, fma=fma and host.fma)
    w = module.function("f", [Argument(PTR)] * (operands + 1) + [Argument(I64)], None)
    *sources, target, count = w.parameters
    target_scalar = result or scalar
    with (
        w.loop(constant(I64, 0), constant(I64, rounds), constant(I64, 1)),
        w.loop(constant(I64, 0), count, constant(I64, lanes)) as loop,
    ):
        values = [
            w.load(w.gep(source, llvm_type(scalar), loop.index), llvm_type(scalar, lanes))
            for source in sources
        ]
        w.store(emit(w, *values), w.gep(target, llvm_type(target_scalar), loop.index))
    w.ret()
    compiled = (engine or host_engine()).compile_module(module.text())
    types = [ctypes.c_void_p] * (operands + 1) + [ctypes.c_int64]
    native = ctypes.CFUNCTYPE(None, *types)(compiled.address("f"))

    return NativeLoop(compiled.address("f"), native, compiled)


def straight(
    emit: Callable[[FunctionWriter], Register], result: Literal["i64", "float"] = "i64"
) -> int | float:
    """The value of a function without parameters."""
    module = ModuleWriter()
    w = module.function("f", [], llvm_type(result))
    w.ret(emit(w))
    compiled = compile_module(module.text())
    address = compiled.address("f")
    value: int | float
    if result == "i64":
        value = ctypes.CFUNCTYPE(ctypes.c_int64)(address)()
    else:
        value = ctypes.CFUNCTYPE(ctypes.c_float)(address)()
    return value
