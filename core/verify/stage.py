"""Rules 22 and 32: which ops stand in functions, and in the bodies of structured ops, of which stage; and their form.

To let an op stand in a late stage, name it in the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..compute.ops import Call, CallAddress, MatrixProduct
from ..ir import NOT_PLACED, Function, Instruction, Op, Stage
from ..ops import (
    Aggregate,
    Builtin,
    Extract,
    Folding,
    For,
    If,
    Insert,
    Literal,
    Nest,
    Random,
    Return,
    Scan,
    ShapeCast,
    ShapeQuery,
    While,
    Yield,
)
from ..ops.bytes import BYTES, CheckAddress, FreeBytes, MoveBytes, StopIf, WriteBytes
from ..ops.stopping import IDENTITIES
from ..schedule.ops import SCHEDULED
from ..types import TensorType

EARLY: tuple[type[Op], ...] = (Builtin, ShapeQuery, Random, Folding, *IDENTITIES)
"""What stands in stage raw only: `expand` and differentiation write it out, which later stages rely on."""

_BOTH: tuple[type[Op], ...] = (
    *(Literal, ShapeCast, Aggregate, Return, Yield),
    *(WriteBytes, MoveBytes, FreeBytes, CheckAddress, StopIf),
)
_COMPUTE: tuple[type[Op], ...] = (Nest, MatrixProduct, Call)
_PLACED: tuple[type[Op], ...] = (*BYTES, Call, CallAddress, If, While, For)
LATE: Mapping[Stage, tuple[type[Op], ...]] = {
    Stage.COMPUTE: (*_BOTH, *_COMPUTE, *_PLACED, Scan),
    Stage.SCHEDULE: (*_BOTH, *_PLACED, *SCHEDULED),
}
"""What stands in the stages that are near the machine, kinds of ops as well as single ones."""

HOME: Mapping[type[Op], Stage] = {
    **dict.fromkeys(_COMPUTE, Stage.COMPUTE),
    **dict.fromkeys(SCHEDULED, Stage.SCHEDULE),
}
"""The ops that no earlier stage has."""


def stage_violations(instruction: Instruction, stage: Stage) -> Iterator[str]:
    """Whether `stage` has the op; what stands in the body of a nest has a rule of its own."""
    op = type(instruction.op)
    if stage is not Stage.RAW and _is_written_out(instruction):
        yield f"{op.name} stands in stage {stage.value}; it belongs to stage raw"
        return
    home, allowed = HOME.get(op, Stage.RAW), LATE.get(stage)
    if allowed is None and home is not Stage.RAW:
        yield f"{op.name} stands in stage {stage.value}; it belongs to stage {home.value}"
    elif allowed is not None and (
        home is Stage.SCHEDULE is not stage or not issubclass(op, allowed)
    ):
        yield f"{op.name} has no place in stage {stage.value}"
    if instruction.placement != NOT_PLACED and stage is not Stage.SCHEDULE:
        yield f"places are said in stage schedule, not in {stage.value}"


def _is_written_out(instruction: Instruction) -> bool:
    """Whether nothing of the kind is left after stage raw; of `extract` and `insert`, what leads into a tensor."""
    if isinstance(instruction.op, Extract | Insert):
        x = instruction.operands[-1]
        return isinstance(Extract(instruction.op.keys[:-1]).infer(x.type), TensorType)
    return isinstance(instruction.op, EARLY)


def form_violations(function: Function, stage: Stage) -> Iterator[str]:
    """Whether a function of `stage` has its body, and one of a single block."""
    if stage is Stage.RAW:
        return
    if function.primal is not None:
        yield f"is declared as a derivative in stage {stage.value}; only in stage raw it has no body"
    if function.body is not None and len(function.body.blocks) > 1:
        yield f"has {len(function.body.blocks)} blocks in stage {stage.value}; only in stage raw they branch"


def needs_closed_bodies(stage: Stage) -> bool:
    """Whether bodies use nothing from around them in `stage`: code is generated for each by itself."""
    return stage.has_reached(Stage.OPTIMIZED)
