"""Kernels that visit each row once: nests over the same rows, in one loop over these.

    loop i {                                            the rows
        max  = reduceLanes (loop j by 16 { … })          a *pass* over the elements of a row
        sum  = reduceLanes (loop j by 16 { … })
        loop j by 16 { … }
    }

What has one element per row is a scalar: no memory is touched between the nest that computes it and those that read it.
What has a row of elements is stored where it is a result, in the place of another result that is written later, or in
a buffer of one row; in the pass that makes it, it is a register.  Nests of a pass share its loops and loads.

Of each pass, whole vectors come first, those of float sums in loops that bound the rounding (`row_sums`), then a part
of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

from ..compute.bodies import base_of
from ..ir.instruction import Emitter, Value
from ..lazy_dataclass import dataclass
from ..ops.nest import Affine
from ..types import TensorType
from .build import KernelBuilder
from .indices import IndexSum
from .row_nests import RowNest, is_constant
from .row_passes import PassForm, RowAhead, RowPass
from .row_writer import Rows, RowWriter


@dataclass(frozen=True)
class RowPlan:
    """Nests as passes over rows.

    `outputs` are the results that others read, or that rows lie in.  `homes` says for a result with rows that later
    passes read, and that is no output itself, in which output its rows lie meanwhile, or in the buffer of which earlier
    result; None for a buffer of one row.
    """

    passes: Sequence[Sequence[RowNest]]
    outputs: Sequence[Value]
    homes: Mapping[Value, Value | None]
    overwriting: tuple[tuple[Value, Value], ...] = ()
    """Operands, and outputs that may be made in their places."""
    rows_ahead: int = 0
    """How many rows before they are needed elements are brought to the nearest cache; 0 if they are not."""
    grains: Sequence[int] = ()
    """Of the loops over rows that threads share."""

    def length_of(self, result: Value) -> int:
        """How many elements a row of a result has."""
        return next(x.length for nests in self.passes for x in nests if result in x.nest.results)


def operands_of(plan: RowPlan) -> list[Value]:
    """What the kernel reads: operands that none of the nests makes, and that are no constants."""
    nests = [one for group in plan.passes for one in group]
    made = {result for one in nests for result in one.nest.results}
    found = [x for one in nests for x in one.nest.operands]
    return list(dict.fromkeys(x for x in found if base_of(x) not in made and not is_constant(x)))


def build_rows(
    b: Emitter, plan: RowPlan, vector_bytes: int, *, has_fma: bool = False
) -> tuple[Value, ...]:
    """Emit the kernel of a plan; its results are the outputs of the plan.

    Raises: IllegalRewrite when a nest cannot be a part of it.
    """
    operands = operands_of(plan)
    build = KernelBuilder([x.tensor for x in operands], [x.tensor for x in plan.outputs])
    writer = RowWriter(build, vector_bytes, has_fma)
    writer.buffers.update(zip(operands, build.operands, strict=True))
    with ExitStack() as loops:
        rows = plan.passes[0][0].rows
        for extent, grain in zip(rows, plan.grains or (0,) * len(rows), strict=True):
            if extent == 1:
                writer.indices.append(IndexSum(0, {}))
            else:
                loop = loops.enter_context(build.loop(extent, grain=grain))
                writer.indices.append(IndexSum(0, {loop.index: 1}))
        _place(build, plan, writer)
        write_passes(plan, writer)
    pairs = [
        (operands.index(x), list(plan.outputs).index(result)) for x, result in plan.overwriting
    ]
    return build.kernel(b, *operands, overwriting=tuple(pairs))


def write_passes(plan: RowPlan, writer: RowWriter) -> None:
    """What is done at the row that the writer is at.

    Raises: IllegalRewrite when a nest cannot be a part of it.
    """
    forms = [PassForm(nests, writer.vector_bytes) for nests in plan.passes]
    longest = max(forms, key=lambda form: form.length and 1 + form.cost)
    for form, nests in zip(forms, plan.passes, strict=True):
        if nests[0].length:
            ahead = list(_rows_ahead(plan, writer, form.length)) if form is longest else []
            RowPass(writer, form, ahead).write()
        else:
            for one in nests:
                writer.write_scalars(one)


def _rows_ahead(plan: RowPlan, writer: RowWriter, length: int) -> Iterator[RowAhead]:
    """Rows of this length that are read and written, some iterations later, at the element of the pass.

    Indices may leave the last axis and even the buffer: nothing but an address is made of them.
    """
    if not plan.rows_ahead:
        return
    seen: set[Value] = set()
    for one in (one for nests in plan.passes for one in nests if one.length == length):
        found: list[tuple[Value, tuple[Affine, ...]]] = []
        for number, operand in enumerate(one.nest.operands):
            if operand in writer.buffers and one.is_at_point(number):
                element = writer.location(one, number)
                found.append((element.buffer, element.indices))
        for number, result in enumerate(one.nest.results):
            rows = writer.rows.get(result)
            if rows is not None and rows.is_whole and one.has_rows(number):
                found.append((rows.buffer, one.written_into(number, rows.shape)))
        for buffer, (*outer, last) in found:
            if buffer not in seen:
                seen.add(buffer)
                yield RowAhead(buffer, (*outer, last + plan.rows_ahead * length))


def _place(build: KernelBuilder, plan: RowPlan, writer: RowWriter) -> None:
    """Find buffers for rows."""
    outputs = dict(zip(plan.outputs, build.outputs, strict=True))
    for result, buffer in outputs.items():
        writer.rows[result] = Rows(buffer, result.tensor.shape, is_whole=True)
    for result, home in plan.homes.items():
        if home is not None:
            writer.rows[result] = writer.rows[home]
        else:
            shape = (plan.length_of(result),)
            local = build.local(TensorType(shape, result.tensor.dtype))
            writer.rows[result] = Rows(local, shape, is_whole=False)
