"""Removal of functions, variables and types that nobody needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ..analysis import Analyses, Analysis
from ..analysis.call_graph import check_names, reachable, symbols
from ..ir import Block, Module, Stage, Value, nominals_in
from ..ir.surgery import walk_blocks
from ..lazy_dataclass import dataclass
from ..types import Type
from .base import ModulePass


@dataclass(frozen=True)
class DeadFunctions(ModulePass):
    """Removes the functions and global variables that `roots` do not need; without roots, every function is one.

    After stage raw, definitions of types that nothing is of go too.

    Requires: nothing.
    Preserves: the results of the roots, and the order of functions.
    Cost: linear.
    """

    name: ClassVar[str] = "dead-functions"
    preserves_analyses: ClassVar[Analysis] = Analysis.ALL
    roots: tuple[str, ...] = ()

    def run(self, module: Module, analyses: Analyses) -> bool:
        if not self.roots:
            return False
        check_names(module, self.roots)
        needed = reachable(module, self.roots)
        dead = [name for name in module.functions if name not in needed]
        for name in dead:
            del module.functions[name]
        used = {name for function in module.functions.values() for name in symbols(function)}
        unused = [name for name in module.variables if name not in used]
        for name in unused:
            del module.variables[name]
        return _drop_types(module) or bool(dead or unused)


def _drop_types(module: Module) -> bool:
    if module.stage is Stage.RAW or not (module.structs or module.enums or module.aliases):
        return False
    types: set[Type] = {variable.type for variable in module.variables.values()}
    for function in module.functions.values():
        types.add(function.type)
        if function.body is not None:
            types.update(x.type for block in walk_blocks(function.body) for x in _values(block))
    names = {nominal.name for nominal in nominals_in(*types)}
    unused = [
        (definitions, name)
        for definitions in (module.structs, module.enums, module.aliases)
        for name in definitions
        if name not in names
    ]
    for definitions, name in unused:
        del definitions[name]
    return bool(unused)


def _values(block: Block) -> Iterator[Value]:
    yield from block.arguments
    for instruction in block.instructions:
        yield from instruction.results
