"""`docs/ir.md` lists every instruction, and its examples parse."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nnkit.core.ir import Op
from nnkit.core.text import parse_module, print_module
from nnkit.core.text.operations import OPS
from nnkit.core.verify import verify

PAGE = (Path(__file__).parents[3] / "docs/ir.md").read_text()
TABLES = [line for line in PAGE.splitlines() if line.startswith("| `")]


@pytest.mark.parametrize("op", OPS.values(), ids=lambda op: op.name)
def test_every_instruction_is_on_the_page_once(op: type[Op]) -> None:
    assert sum(line.count(f"`{op.syntax}`") for line in TABLES) == 1


def test_the_page_has_no_other_instructions() -> None:
    syntax = {op.syntax for op in OPS.values()}
    listed = {found for line in TABLES for found in re.findall(r"`(\w+ \{\w[^`]*)`", line)}
    assert listed == syntax


def test_the_module_on_the_page_is_valid_and_prints_as_it_stands() -> None:
    text = PAGE.split("```")[1].lstrip("\n")
    module = parse_module(text)
    verify(module)
    assert print_module(module) == text


def test_the_nest_on_the_page_is_valid() -> None:
    nest = re.search(r"```\n(%c = nest .*?)```", PAGE, re.DOTALL)
    assert nest is not None
    verify(
        parse_module(
            'module "m" stage compute func @f: (<2 x 3 x f32>, <3 x 2 x f32>) -> <2 x 2 x f32> {'
            f"'b(%a: <2 x 3 x f32>, %b: <3 x 2 x f32>): {nest[1]} return %c: <2 x 2 x f32> }}"
        )
    )
