"""Emits the fused block: live clusters and library ops in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..analysis import Effects
from ..ir import Block, Builder, Instruction, Value
from ..ops.movement import ShapeCast
from .block_uses import BlockUses
from .cluster import Cluster


def emit_clusters(
    block: Block,
    survey: BlockUses,
    clusters: Sequence[Cluster],
    libraries: Sequence[tuple[int, Instruction]],
    effects: Effects,
) -> Block:
    """Write clusters and library ops (with their positions) in order, then the end of the old block."""
    b = Builder(Block(list(block.arguments), name=block.name))
    writer = _ClusterEmitter(survey, b, {argument: argument for argument in block.arguments})
    for item, live in _live(survey, clusters, libraries, effects):
        if isinstance(item, Cluster):
            for source in item.sources(live):
                writer.materialize(source)
            writer.values.update(item.emit(b, writer.values, live))
        else:
            b.location = item.location
            operands = [writer.materialize(operand) for operand in item.operands]
            results = b.emit_many(item.op, operands, item.regions)
            writer.values.update(zip(item.results, results, strict=True))
    return b.block


def _live(
    survey: BlockUses,
    clusters: Sequence[Cluster],
    libraries: Sequence[tuple[int, Instruction]],
    effects: Effects,
) -> list[tuple[Cluster | Instruction, set[Value]]]:
    """The live clusters and ops, in order, each with its live results."""
    items: list[tuple[int, Cluster | Instruction]] = [
        *((cluster.sequence, cluster) for cluster in clusters),
        *libraries,
    ]
    items.sort(key=lambda item: item[0])
    needed = {survey.source(x) for instruction in survey.ending for x in instruction.operands}
    kept: list[tuple[Cluster | Instruction, set[Value]]] = []
    for _, item in reversed(items):
        made = [w.value for w in item.results] if isinstance(item, Cluster) else item.results
        live = needed.intersection(made)
        if live or not (isinstance(item, Cluster) or effects.is_removable(item)):
            sources = item.sources(live) if isinstance(item, Cluster) else item.operands
            needed.update(survey.source(source) for source in sources)
            kept.append((item, live))
    ending: list[tuple[Cluster | Instruction, set[Value]]] = [(i, set()) for i in survey.ending]
    return kept[::-1] + ending


@dataclass
class _ClusterEmitter:
    """The new values of old ones."""

    survey: BlockUses
    b: Builder
    values: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def materialize(self, value: Value) -> Value:
        """The new value that holds the bytes of `value`, in its shape."""
        if value not in self.values:
            source = self.survey.source(value)
            if source not in self.values and source.op is not None and source.op.is_constant:
                self.values[source] = self.b.emit(source.op)
            found = self.values[source]
            if value.type != source.type:
                found = self.b.emit(ShapeCast(value.tensor.shape), found)
            self.values[value] = found
        return self.values[value]
