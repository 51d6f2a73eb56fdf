"""Random well-typed straight-line programs, for tests that hold for every program.

`programs()` is a Hypothesis strategy over modules with their arguments: all ops, small shapes with
broadcasting, empty and unit axes, every element type, constants, calls, tuples and structs.  An
instruction takes operands that exist if some fit, and otherwise a new constant or parameter; so every
choice gives a program, and programs shrink well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from nnkit.core.ir import Function, Module, Op, finish_function, start_function
from nnkit.core.ops import (
    ALL,
    Aggregate,
    Apply,
    Elementwise,
    Extract,
    Return,
)
from nnkit.core.types import (
    DTYPES,
    DType,
    FunctionType,
    StructType,
    TupleType,
    elements_of,
)
from tests.recipes import RECIPES, Draft, Options, elementwise, operand_count
from tests.values import Draw, arguments_of, flat, same_bits, tensor_types

__all__ = ["Program", "describe", "flat", "programs", "same_bits"]

PAIR = "Pair"


@dataclass(frozen=True)
class Program:
    """A module, the function to call, and arguments for it."""

    module: Module
    arguments: tuple[Any, ...]
    entry: str = "main"

    def __repr__(self) -> str:
        return f"{describe(self.module)}\narguments: {self.arguments!r}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How Hypothesis shows a failing example."""
        printer.text(repr(self))


@st.composite
def programs(
    draw: Draw,
    *,
    ops: Sequence[type[Op]] = ALL,
    dtypes: Sequence[DType] = tuple(DTYPES.values()),
    max_instructions: int = 10,
    calls: bool = True,
    aggregates: bool = True,
    tame: bool = False,
) -> Program:
    """A program whose function `main` may call others.

    `ops` are the ops to use, `dtypes` the element types of parameters and constants.  `tame` takes only
    small finite numbers, so that results mostly are finite too.
    """
    module = Module()
    if aggregates and draw(st.booleans()):
        first, second = (draw(tensor_types(dtypes)) for _ in range(2))
        module.add_structs(StructType(PAIR, (("a", first), ("b", second))))
    options = Options(tuple(ops), tuple(dtypes), aggregates, tame)
    for number in range(draw(st.integers(0, 2)) if calls else 0):
        module.add(_function(draw, module, f"f{number}", draw(st.integers(1, 3)), options))
    main = module.add(
        _function(draw, module, "main", draw(st.integers(1, max_instructions)), options)
    )
    types = main.type.parameters
    return Program(module, tuple(draw(arguments_of(type, tame=tame)) for type in types))


def describe(module: Module) -> str:
    """The module as text for people; it need not parse."""
    lines: list[str] = []
    for function in module.functions.values():
        names = {p: f"%x{i}" for i, p in enumerate(function.parameters)}
        heads = ", ".join(f"{names[p]}: {p.type}" for p in function.parameters)
        lines.append(f"func @{function.name}({heads}) -> {function.type.result}")
        for instruction in function.entry.instructions:
            operands = ", ".join(names[x] for x in instruction.operands)
            for result in instruction.results:
                names[result] = f"%{len(names)}"
            left = ", ".join(f"{names[r]}: {r.type}" for r in instruction.results)
            lines.append(f"    {left} = {instruction.op!r} {operands}")
    return "\n".join(lines)


def _function(draw: Draw, module: Module, name: str, length: int, options: Options) -> Function:
    draft = Draft(draw, module, options, start_function(()))
    draft.fresh(draw(tensor_types(options.dtypes)))
    for _ in range(length):
        _step(draft)
    count = draft.integer(1, 5) if options.aggregates else 1
    results = draft.values[-count:]
    result = results[0]
    if len(results) > 1:
        result = draft.emit(Aggregate(TupleType(tuple(x.type for x in results))), *results)
    draft.builder.emit_many(Return(), [result])
    return finish_function(name, draft.builder, result.type)


def _step(draft: Draft) -> None:
    """One more instruction."""
    kind = draft.integer(0, 9)
    if kind == 9 and draft.module.functions:
        _call(draft)
    elif kind == 8 and draft.options.aggregates:
        _aggregate(draft)
    else:
        # functions of one operand are two thirds of all ops, and have few laws
        rich = [op for op in draft.options.ops if op in RECIPES or operand_count(op) > 1]
        op_class = draft.pick(rich if rich and draft.flag() else draft.options.ops)
        if draft.latest and draft.integer(0, 3) == 3:
            op_class = draft.latest
        draft.latest = op_class
        recipe = RECIPES.get(op_class, elementwise)
        assert recipe is not elementwise or issubclass(op_class, Elementwise), op_class
        recipe(draft, op_class)


def _call(draft: Draft) -> None:
    callee = draft.pick(list(draft.module.functions.values()))
    arguments = [draft.value(type) for type in callee.type.parameters]
    draft.emit(
        Apply(callee.name, FunctionType(callee.type.parameters, callee.type.result)), *arguments
    )


def _aggregate(draft: Draft) -> None:
    whole = [x for x in draft.values if elements_of(x.type)]
    if whole and draft.flag():
        x = draft.pick(whole)
        keys = [n for n, _ in x.type.fields] if isinstance(x.type, StructType) else None
        draft.emit(Extract((draft.pick(keys or range(len(x.type.elements))),)), x)
        return
    struct = draft.module.structs.get(PAIR)
    if struct is not None and draft.flag():
        draft.value(struct)
        return
    parts = [draft.pick(draft.values) for _ in range(draft.integer(0, 3))]
    draft.emit(Aggregate(TupleType(tuple(part.type for part in parts))), *parts)
