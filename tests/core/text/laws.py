"""What holds for everything that is printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from nnkit.core.errors import ParseError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module, Value
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import F32, TensorType
from nnkit.core.verify import verify
from tests.programs import same_bits

VECTOR = TensorType((3,), F32)


def reread(module: Module) -> Module:
    """The module after printing and parsing; it is valid and prints as before."""
    text = print_module(module)
    again = parse_module(text)
    assert print_module(again) == text
    assert (again.name, again.stage, list(again.functions)) == (
        module.name,
        module.stage,
        list(module.functions),
    )
    verify(again)
    return again


def check_meaning(module: Module, entry: str, arguments: Sequence[Any]) -> Module:
    """The module after printing and parsing; it also evaluates to the same bits."""
    expected = evaluate(module, entry, *arguments)
    again = reread(module)
    assert same_bits(evaluate(again, entry, *arguments), expected)
    return again


def in_function(body: str, *, parameters: str = "%x: <3 x f32>", result: str = "void") -> str:
    """A module of one function `@f` with these instructions."""
    types = ", ".join(part.split(": ", 1)[1] for part in parameters.split("; ") if part)
    return f"""module "m"
stage raw
func @f: ({types}) -> {result} {{
'entry({parameters.replace("; ", ", ")}):
{body}
}}
"""


def parsed(body: str, *, parameters: str = "%x: <3 x f32>", result: str = "void") -> Module:
    """The module of `in_function`, parsed, valid and read back."""
    module = parse_module(in_function(body, parameters=parameters, result=result))
    verify(module)
    return reread(module)


def last_value(module: Module, name: str = "f") -> Value:
    """What the function returns."""
    return module.functions[name].entry.terminator.operands[0]


def error_of(text: str) -> str:
    """The message of the ParseError that `text` gives."""
    with pytest.raises(ParseError) as caught:
        parse_module(text)
    return str(caught.value)
