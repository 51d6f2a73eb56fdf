"""Small compiled programs for the tests of entries: the classes they work on, and kernels as LLVM text."""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from nnkit.jit.entry import ArrayNode, Signature, bind, entry_text
from nnkit.jit.llvm import compile_module

Array: TypeAlias = npt.NDArray[Any]
Program: TypeAlias = Callable[..., Any]


class Tensor:
    """As the tensors of the library: one slot, in the base class."""

    __slots__ = ("__weakref__", "_array")

    _array: Array

    @property
    def array(self) -> Array:
        """What the slot holds."""
        return self._array


class Tensor0D(Tensor):
    """A scalar."""

    __slots__ = ()


class Tensor2D(Tensor):
    """A matrix."""

    __slots__ = ()


class Struct:
    """As the structs of the library; its subclasses have a dictionary as well."""

    __slots__ = ("_fields",)

    _fields: tuple[Any, ...]

    @property
    def fields(self) -> tuple[Any, ...]:
        """What the slot holds."""
        return self._fields


class Layer(Struct):
    """Two fields."""


class Model(Struct):
    """Structs in a struct."""


def tensor(cls: type[Tensor], array: object) -> Any:
    """An instance with its slot set."""
    made = object.__new__(cls)
    object.__setattr__(made, "_array", array)
    return made


def struct(cls: type[Struct], *fields: object) -> Any:
    """An instance with its slot set."""
    made = object.__new__(cls)
    object.__setattr__(made, "_fields", fields)
    return made


class FallbackCalled(Exception):
    """The entry did not take the arguments."""


def refuse(*_: object, **__: object) -> NoReturn:
    """A fallback for programs that should not need it."""
    raise FallbackCalled


def explain(code: int, first: int, second: int) -> NoReturn:
    """Raise what the kernel said."""
    raise IndexError(code, first, second)


class Memory:
    """Aligned memory, of which a weak reference can be had."""

    def __init__(self, size: int = 64) -> None:
        self.array = np.zeros(size + 64, np.uint8)
        self.address = -(-self.array.ctypes.data // 64) * 64

    def words(self, count: int) -> list[int]:
        """The first words."""
        return [*(ctypes.c_int64 * count).from_address(self.address)]


@dataclass(frozen=True)
class Compiler:
    """Compiles programs with the native entry, or with the one in Python."""

    native: bool

    def __call__(
        self,
        signature: Signature,
        kernel: str,
        *,
        fallback: Callable[..., object] = refuse,
        explain: Callable[[int, int, int], object] = explain,
        kept_bytes: int = 1 << 20,
        keep_alive: object = None,
        name: str = "program",
        markers: Sequence[object] = (),
        holds_arrays: bool = False,
    ) -> Program:
        """The program with the kernel `@kernel`."""
        entry = entry_text(
            signature,
            "kernel",
            "entry",
            kept_bytes=kept_bytes,
            native=self.native,
            holds_arrays=holds_arrays,
        )
        module = compile_module(kernel + entry.text, entry.symbols)
        memory = Memory()
        return bind(
            module.address(entry.name),
            signature=signature,
            arena=memory.address,
            fallback=fallback,
            explain=explain,
            keep_alive=(module, memory, keep_alive),
            name=name,
            native=self.native,
            markers=markers,
        )


def copying(signature: Signature, sources: Sequence[int]) -> str:
    """The kernel that copies to each output the input of that number."""
    outputs = signature.outputs
    return _kernel(
        signature,
        *(
            f"call void @llvm.memcpy.p0.p0.i64(ptr %out{index}, ptr %in{source}, "
            f"i64 {outputs[index].bytes}, i1 false)"
            for index, source in enumerate(sources)
        ),
        "ret i64 0",
    )


def filling(signature: Signature) -> str:
    """The kernel that writes the number in the first input, an i64, to every i64 of every output."""
    lines: list[str] = ["%value = load i64, ptr %in0"]
    for index, leaf in enumerate(signature.outputs):
        for element in range(leaf.bytes // 8):
            lines.append(
                f"%at{index}.{element} = getelementptr i64, ptr %out{index}, i64 {element}"
            )
            lines.append(f"store i64 %value, ptr %at{index}.{element}")
    return _kernel(signature, *lines, "ret i64 0")


def failing(signature: Signature) -> str:
    """The kernel that returns its first input, an i64, and leaves 7 and -9 in the arena."""
    return _kernel(
        signature,
        "store i64 7, ptr %arena",
        "%second = getelementptr i64, ptr %arena, i64 1",
        "store i64 -9, ptr %second",
        "%code = load i64, ptr %in0",
        "ret i64 %code",
    )


def _kernel(signature: Signature, *lines: str) -> str:
    parameters = [f"ptr %in{index}" for index in range(len(signature.inputs))]
    parameters += [f"ptr %out{index}" for index in range(len(signature.outputs))]
    body = "\n  ".join(lines)
    declaration = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
    return f"{declaration}define i64 @kernel({', '.join([*parameters, 'ptr %arena'])}) {{\n  {body}\n}}\n"


def example(leaf: ArrayNode, seed: int = 0) -> Array:
    """An array for a leaf, with all its values different where the dtype has as many."""
    count = max(leaf.bytes // leaf.storage.itemsize, 0)
    return (np.arange(count) + 1 + seed).astype(leaf.storage).reshape(leaf.shape)
