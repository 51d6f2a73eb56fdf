"""Modules from text, and what tools ask of them first."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ..core.ir import Function, Module
from ..core.ir.surgery import walk
from ..core.stage import Stage
from ..core.text import parse_module, print_module
from ..core.types import TensorType, written
from ..core.verify import verify
from .command import InputError
from .files import read_text, shown

_UNKNOWN_MEMORY = 1 << 40
"""Bytes, where the system does not say: more than machines have, so that nothing is refused."""

__all__ = ["defined", "print_module", "read_module", "refuse_huge", "refuse_return"]


def read_module(path: str, *, verified: bool = True) -> Module:
    """The module in a file, `-` being stdin.

    Raises: InputError when the file cannot be read, ParseError when it is no IR, VerifyError when the IR breaks a
        rule and `verified` asks.
    """
    module = parse_module(read_text(path), shown(path))
    if verified:
        verify(module)
    return module


def refuse_return(here: Stage, wanted: Stage) -> None:
    """Raises: InputError when a module in stage `here` is beyond the stage that is wanted."""
    if not wanted.has_reached(here):
        raise InputError(
            f"the module is in stage {here.value} and cannot go back to {wanted.value}"
        )


def defined(module: Module) -> tuple[str, ...]:
    """The functions that have a body, or a declaration that gives them one."""
    return tuple(
        name
        for name, function in module.functions.items()
        if function.body is not None or function.primal is not None
    )


def refuse_huge(functions: Iterable[Function]) -> None:
    """Raises: InputError for a tensor that this machine cannot hold."""
    memory = _memory_bytes()
    for function in functions:
        if function.body is None:
            continue
        values = [*function.parameters]
        for instruction in walk(function.body):
            values.extend(instruction.results)
        for value in values:
            if isinstance(value.type, TensorType) and value.type.spanned_bytes > memory:
                raise InputError(
                    f"{written('@', function.name)} holds a {value.type}, for which the {memory} bytes of "
                    "memory of this machine are not enough"
                )


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return _UNKNOWN_MEMORY
