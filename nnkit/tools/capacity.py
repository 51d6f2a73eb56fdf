"""Refuses programs whose values exceed this machine's memory, before anything is allocated."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ..core.ir import Function
from ..core.ir.surgery import walk
from ..core.types import TensorType, written
from .command import InputError


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
        return 1 << 40
