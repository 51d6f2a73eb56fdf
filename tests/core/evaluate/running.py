"""Runs programs given as text, which the verifier has looked at."""

from __future__ import annotations

from typing import Any

from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.text import parse_module
from nnkit.core.verify import verify


def module_of(text: str) -> Module:
    """The module of these definitions."""
    module = parse_module(f'module "m"\n{text}')
    verify(module)
    return module


def run(text: str, name: str, *arguments: Any, **options: Any) -> Any:
    """The result of `@name(arguments)`."""
    return evaluate(module_of(text), name, *arguments, **options)
