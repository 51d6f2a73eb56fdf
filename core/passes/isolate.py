"""Isolates regions from above: captured values become region arguments.

1. Blocks are visited from the innermost out, so that what an inner body needs is by then an operand of its
   instruction, and counts as used by the block around it.
2. Whatever the bodies of an instruction use and do not define is added to its inputs, once for all bodies.
3. Literals are not passed on: each body gets a copy of those it uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from ..analysis import Analyses, Analysis
from ..errors import UnsupportedError
from ..ir import Block, Instruction, Module, Stage, Value
from ..ir.surgery import clone_instructions, replace_operands, walk
from ..lazy_dataclass import dataclass
from ..location import located
from ..ops.flows import Role, add_flows, arguments_of_bodies
from ..ops.literal import literal_of
from ..types import written
from .base import ModulePass


@dataclass(frozen=True)
class Isolate(ModulePass):
    """Gives every body of an `if`, `while` or `for` all that it uses as arguments; the stage becomes optimized.

    Code is generated for one block at a time, which must not know of the blocks around it.

    Requires: stage optimizable; a module of stage raw, whose bodies are never given values, is left alone.
    Preserves: results.
    Cost: linear in the program, and for each value in the number of bodies it is passed through.
    """

    name: ClassVar[str] = "isolate"
    preserves_analyses: ClassVar[Analysis] = Analysis.FLOW | Analysis.EFFECTS

    def run(self, module: Module, analyses: Analyses) -> bool:
        if module.stage is Stage.RAW:
            return False
        _check_axes(module)
        changed = module.stage is Stage.OPTIMIZABLE
        bodies = [function.body for function in module.functions.values() if function.body]
        blocks = [block for body in bodies for block in body.blocks]
        for block in blocks:  # which grows: outer before inner
            blocks.extend(b for i in _structured(block) for r in i.regions for b in r.blocks)
        for block in reversed(blocks):
            for instruction in _structured(block):
                changed = _close(instruction) or changed
        if module.stage is Stage.OPTIMIZABLE:
            module.stage = Stage.OPTIMIZED
        return changed


def _check_axes(module: Module) -> None:
    """Raises: UnsupportedError for what combines the elements of a batch, outside of one."""
    for function in module.functions.values():
        for instruction in walk(function.body) if function.body else ():
            if instruction.op.axis_name is not None:
                raise located(
                    UnsupportedError(
                        f"{instruction.op.name} stands in {written('@', function.name)}, which is compiled as it is: "
                        "it has a meaning in batches of the function alone"
                    ),
                    instruction.location,
                )


def _structured(block: Block) -> Iterable[Instruction]:
    return (i for i in block.instructions if i.op.is_structured)


def _close(instruction: Instruction) -> bool:
    """Close the bodies of `instruction`, inside of which all bodies are closed."""
    blocks = [block for region in instruction.regions for block in region.blocks]
    captured = [_captured(block) for block in blocks]
    for block, values in zip(blocks, captured, strict=True):
        _copy_literals(block, [v for v in values if literal_of(v)])
    wanted = dict.fromkeys(v for values in captured for v in values if not literal_of(v))
    if wanted:
        flows = add_flows(instruction, Role.INPUT, [*wanted])
        arguments = [arguments_of_bodies(instruction, flow) for flow in flows]
        for block, names in zip(blocks, zip(*arguments, strict=True), strict=True):
            replace_operands(block.instructions, dict(zip(wanted, names, strict=True)))
    return any(captured)


def _captured(block: Block) -> dict[Value, None]:
    """What the block uses and does not define, in order."""
    defined = set(block.arguments)
    found: dict[Value, None] = {}
    for instruction in block.instructions:
        found.update((x, None) for x in instruction.operands if x not in defined)
        defined.update(instruction.results)
    return found


def _copy_literals(block: Block, literals: Iterable[Value]) -> None:
    copies: dict[Value, Value] = {}
    made = Block()
    clone_instructions(made, [x.producer for x in literals if x.producer is not None], copies)
    replace_operands(block.instructions, copies)
    block.instructions[:0] = made.instructions
