"""print ∘ parse ∘ print = print on random modules of everything that can be written, and parsing loses nothing."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from nnkit.core.ir import Module, Region
from nnkit.core.ir.surgery import walk, walk_blocks
from nnkit.core.text import parse_module, print_module

from .grammar import recognizes
from .modules import modules

SETTINGS = settings(
    max_examples=max(60, settings().max_examples // 2),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def shape_of(region: Region | None) -> list[object]:
    """Everything in a region but names: ops, and which values and blocks are the same ones."""
    if region is None:
        return []
    values: dict[object, int] = {}
    blocks = {block: number for number, block in enumerate(walk_blocks(region))}
    for block in blocks:
        for value in block.arguments:
            values[value] = len(values)
        for instruction in block.instructions:
            for value in instruction.results:
                values[value] = len(values)
    arguments = [[value.type for value in block.arguments] for block in blocks]
    return [
        arguments,
        *(
            (
                instruction.op,
                [values[value] for value in instruction.operands],
                [value.type for value in instruction.results],
                [blocks[block] for block in instruction.successors],
                len(instruction.regions),
            )
            for instruction in walk(region)
        ),
    ]


@SETTINGS
@given(module=modules())
def test_a_random_module_reads_back_as_itself(module: Module) -> None:
    text = print_module(module)
    again = parse_module(text)
    assert print_module(again) == text
    assert (again.name, again.stage, again.variables) == (
        module.name,
        module.stage,
        module.variables,
    )
    assert {name: again.aliases[name] for name in module.aliases} == module.aliases
    assert list(again.functions) == list(module.functions)
    for name, function in module.functions.items():
        found = again.functions[name]
        assert (found.type, found.declaration, found.attributes) == (
            function.type,
            function.declaration,
            function.attributes,
        )
        assert shape_of(found.body) == shape_of(function.body)


@settings(SETTINGS, max_examples=30)
@given(module=modules())
def test_a_random_module_is_in_the_grammar(module: Module) -> None:
    assert recognizes("module", print_module(module))
