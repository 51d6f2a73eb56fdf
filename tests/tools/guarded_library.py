"""Runs the functions of a library of `dlc` between guard pages: the process that `survey` watches.

    python -m tests.tools.guarded_library TEXT LIBRARY FIRST

LIBRARY is a shared library, or an object (`.o`) that is loaded by this process.
"""

from __future__ import annotations

import ctypes
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Function, Module
from nnkit.core.text import parse_module
from nnkit.core.types import TensorType, elements_of
from nnkit.jit.llvm import host_engine
from tests.jit.emit.running import sample, tolerance
from tests.jit.guard_pages import Guarded, report_cases, run_stored


def addresses(path: Path, names: list[str]) -> dict[str, int]:
    """Where the functions are; the library stays loaded."""
    if path.suffix == ".o":
        loaded = host_engine().load_object(path.read_bytes())
        _KEPT.append(loaded)
        return {name: loaded.address(name) for name in names}
    library = ctypes.CDLL(str(path))
    functions = {name: ctypes.cast(getattr(library, name), ctypes.c_void_p) for name in names}
    return {name: function.value or 0 for name, function in functions.items()}


_KEPT: list[object] = []


def run(guarded: Guarded, module: Module, function: Function, address: int) -> None:
    """Raises: what is wrong."""
    types = [type for type in function.type.parameters if isinstance(type, TensorType)]
    seed = zlib.crc32(function.name.encode())
    arrays = [sample(type, seed + number) for number, type in enumerate(types)]
    wanted = evaluate(module, function.name, *arrays)
    wanted = list(wanted) if isinstance(wanted, tuple) else [wanted]
    result = function.type.result
    results = [x for x in elements_of(result) or (result,) if isinstance(x, TensorType)]
    stored = [
        type.dtype.store(array).astype(type.dtype.storage)
        for type, array in zip(types, arrays, strict=True)
    ]
    for side in ("end", "start"):
        found = run_stored(guarded, address, stored, results, None, side)
        for type, x, y in zip(results, wanted, found, strict=True):
            np.testing.assert_allclose(y, x, rtol=8 * tolerance(type.dtype))


def main(text: str, library: str, first: str) -> None:
    module = parse_module(Path(text).read_text())
    found = addresses(Path(library), list(module.functions))
    guarded = Guarded()

    def cases() -> Iterator[tuple[str, Callable[[], None]]]:
        for name, function in module.functions.items():
            yield name, partial(run, guarded, module, function, found[name])

    report_cases(cases(), int(first))


if __name__ == "__main__":
    main(*sys.argv[1:])
