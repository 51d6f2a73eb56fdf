"""Reference semantics: runs IR in NumPy, at any stage.  The oracle of every test.

Read `runtime_values` (values), `byte_memory` (bytes at addresses), `arguments`, `pure_ops` (instructions that only
compute), `frame` and `machine` (the state of a run), `memory_ops` (loads, stores and allocation), `control_ops`
(calls, branches, bodies) and `run`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import VerifyError
from ..ir import Module
from ..types import FunctionType, written
from .arguments import convert
from .byte_memory import Memory
from .machine import Machine, Observer
from .pure_ops import evaluate_instruction, evaluate_region
from .run import run
from .runtime_values import EnumValue, FunctionValue, flatten, undefined, unflatten, unpacked_data


def evaluate(
    module: Module,
    name: str,
    *arguments: Any,
    externs: Mapping[str, Callable[..., Any]] | None = None,
    seed: int = 0,
    fuel: int | None = None,
    memory: Memory | None = None,
    type: FunctionType | None = None,
    observe: Observer | None = None,
) -> Any:
    """The result of `@name(arguments)`.

    Arguments are arrays (bf16 as float32), tuples of them for tuples, structs and arrays, `EnumValue`,
    `FunctionValue`, and ints for pointers, boxes and stacks: addresses in `memory`; results are the same.

    `externs` are the extern functions, `seed` decides the random numbers, `fuel` is the most instructions that may be
    run, and `memory` has what an earlier run left there, if what it returned leads there.  `type` is what the function
    had before it was flattened, if arguments and result are of that.  `observe` is told of each
    instruction that computes.
    Raises: VerifyError when there is no such function, UnsupportedError when a declaration is called that has
        no body yet, TrapError when the program stops itself, FuelError when the fuel is spent.
    """
    function = module.functions.get(name)
    if function is None:
        raise VerifyError(f"the module {module.name!r} has no function {written('@', name)}")
    type = type or function.type
    given = list(map(convert, type.parameters, arguments))
    given.extend(arguments[len(given) :])
    machine = Machine(module, externs or {}, seed, fuel, memory, observe)
    with np.errstate(all="ignore"):
        if type == function.type:
            return run(machine, name, given)
        leaves = [
            leaf
            for parameter, data in zip(type.parameters, given, strict=True)
            for leaf in flatten(parameter, data, large_arrays=False)
        ]
        results = unpacked_data(function.type.result, run(machine, name, leaves))
        return unflatten(type.result, iter(results), large_arrays=False)


__all__ = [
    "EnumValue", "FunctionValue", "Memory", "evaluate", "evaluate_instruction", "evaluate_region",
    "flatten", "undefined", "unflatten",
]  # fmt: skip
