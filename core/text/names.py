"""What values and blocks are called in the text: their own names where those are unique, else numbers.

A value without a name is `%B.I` (instruction I of block B, counted through the function) or `%B.I.K`, an
argument `%B^A`.  Names are given before anything is printed, as a block may use what one below it defines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from ..ir import Block, Instruction, Region, Value
from ..ir.surgery import walk_blocks
from ..lazy_dataclass import dataclass
from .lexer import is_counted, written


@dataclass
class Names:
    """The names in a function; `taken` are those in scope in order, `numbers` the last one appended to a name."""

    values: dict[Value, str] = field(default_factory=dict[Value, str])
    labels: dict[Block, str] = field(default_factory=dict[Block, str])
    taken: dict[str, None] = field(default_factory=dict[str, None])
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    blocks: int = 0

    def give(self, body: Region) -> None:
        """Name everything in the body of a function."""
        open = [self._region(body)]
        while open:
            inner = next(open[-1], None)
            if inner is None:
                open.pop()
            else:
                open.append(self._region(inner))

    def _region(self, region: Region) -> Iterator[Region]:
        """Name what the region defines; yields the regions inside it where their names are due.

        With several blocks, the region's own names come first: any block may use them, before and after
        the bodies in between.
        """
        outside = len(self.taken)
        self._label_blocks(region)
        inner: list[tuple[int, Region]] = []
        is_graph = len(region.blocks) > 1
        for block in region.blocks:
            number = self.blocks
            self.blocks += 1
            for position, argument in enumerate(block.arguments):
                self._name(argument, f"{number}^{position}")
            for position, instruction in enumerate(block.instructions):
                if instruction.regions:
                    for body in instruction.regions:
                        if is_graph:
                            inner.append((self.blocks, body))
                            self.blocks += sum(1 for _ in walk_blocks(body))
                        else:
                            yield body
                self._name_results(instruction, f"{number}.{position}")
        after = self.blocks
        for self.blocks, body in inner:
            yield body
        self.blocks = after
        while len(self.taken) > outside:
            self.taken.popitem()

    def _name_results(self, instruction: Instruction, place: str) -> None:
        results = instruction.results
        if len(results) == 1:
            self._name(results[0], place)
            return
        for index, result in enumerate(results):
            self._name(result, f"{place}.{index}")

    def _label_blocks(self, region: Region) -> None:
        taken: set[str] = set()
        for number, block in enumerate(region.blocks, self.blocks):
            label = block.name if block.name and not is_counted(block.name) else str(number)
            while label in taken:
                label = f"{label}_{number}"
            taken.add(label)
            self.labels[block] = f"'{label}" if label.isdecimal() else written("'", label)

    def _name(self, value: Value, place: str) -> None:
        own = value.name
        wanted = own if own and not is_counted(own) else place
        name = wanted
        while name in self.taken:
            number = self.numbers[wanted] = self.numbers.get(wanted, 0) + 1
            name = f"{wanted}_{number}"
        self.taken[name] = None
        self.values[value] = f"%{name}" if wanted is place else written("%", name)
