"""Emits the fused block: live clusters and library ops in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ..analysis import Effects
from ..ir import Block, Builder, Instruction, Value
from ..ir.surgery import drop_operands
from ..lazy_dataclass import dataclass
from ..ops.movement import reshaped
from .bodies import base_of
from .cluster import Cluster


def emit_clusters(
    block: Block,
    clusters: Sequence[Cluster],
    libraries: Sequence[tuple[int, Instruction]],
    ending: Sequence[Instruction],
    effects: Effects,
) -> None:
    """Write clusters in place of their nests, and library ops (with their positions) in order; then the `ending`."""
    writer = _ClusterEmitter(Builder())
    kept = writer.b.block.instructions
    for item, live in _live(clusters, libraries, ending, effects):
        if isinstance(item, Cluster):
            for source in item.sources(live):
                writer.materialize(source)
            writer.values.update(item.emit(writer.b, writer.values, live))
        else:
            writer.b.location = item.location
            item.set_operands([writer.materialize(operand) for operand in item.operands])
            kept.append(item)
    drop_operands(set(block.instructions).difference(kept))
    block.instructions = kept


def _live(
    clusters: Sequence[Cluster],
    libraries: Sequence[tuple[int, Instruction]],
    ending: Sequence[Instruction],
    effects: Effects,
) -> list[tuple[Cluster | Instruction, set[Value]]]:
    """The live clusters and ops, in order, each with its live results."""
    items: list[tuple[int, Cluster | Instruction]] = [
        *((cluster.sequence, cluster) for cluster in clusters),
        *libraries,
    ]
    items.sort(key=lambda item: item[0])
    needed = {base_of(x) for instruction in ending for x in instruction.operands}
    kept: list[tuple[Cluster | Instruction, set[Value]]] = []
    for _, item in reversed(items):
        made = [w.value for w in item.results] if isinstance(item, Cluster) else item.results
        live = needed.intersection(made)
        if live or not (isinstance(item, Cluster) or effects.is_removable(item)):
            sources = item.sources(live) if isinstance(item, Cluster) else item.operands
            needed.update(map(base_of, sources))
            kept.append((item, live))
    return [*kept[::-1], *((instruction, set[Value]()) for instruction in ending)]


@dataclass
class _ClusterEmitter:
    """The values that clusters compute, in place of those of nests, and views of them."""

    b: Builder
    values: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def materialize(self, value: Value) -> Value:
        """The new value that holds the bytes of `value`, in its shape."""
        if value not in self.values:
            source = base_of(value)
            if source not in self.values:
                op = source.op
                made = self.b.emit(op) if op is not None and op.is_constant else source
                self.values[source] = made
            self.values[value] = reshaped(self.b, self.values[source], value.tensor.shape)
        return self.values[value]
