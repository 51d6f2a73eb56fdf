"""Modules from text, and which of their functions a compilation keeps."""

from __future__ import annotations

from ..core.ir import Module
from ..core.ir.surgery import walk
from ..core.text import parse_module, print_module
from ..core.verify import verify
from .files import read_text, shown

__all__ = ["defined", "print_module", "read_module", "roots"]


def read_module(path: str, *, verified: bool = True) -> Module:
    """The module in a file, `-` being stdin.

    Raises: InputError when the file cannot be read, ParseError when it is no IR, VerifyError when the IR breaks a
        rule and `verified` asks.
    """
    module = parse_module(read_text(path), shown(path))
    if verified:
        verify(module)
    return module


def defined(module: Module) -> tuple[str, ...]:
    """The functions that have a body, or a declaration that gives them one."""
    return tuple(
        name
        for name, function in module.functions.items()
        if function.body is not None or function.primal is not None
    )


def roots(module: Module) -> tuple[str, ...]:
    """Functions from which every defined function is reached by calls: those that no other function calls.

    Of functions that call each other in circles, and are called by none besides, the first.
    """
    names = defined(module)
    calls = {name: _callees(module, name) for name in names}
    called = {callee for name, callees in calls.items() for callee in callees if callee != name}
    reached: set[str] = set()
    kept: set[str] = set()
    for name in (*(name for name in names if name not in called), *names):
        if name not in reached:
            kept.add(name)
            _reach(name, calls, reached)
    return tuple(name for name in names if name in kept)


def _reach(start: str, calls: dict[str, set[str]], reached: set[str]) -> None:
    pending = [start]
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending.extend(calls.get(name, ()))


def _callees(module: Module, name: str) -> set[str]:
    body = module.functions[name].body
    if body is None:
        return set()
    called = (instruction.op.called for instruction in walk(body))
    return {callee for callee in called if callee is not None}
