"""Random well-typed programs, for tests that hold for every program.

`programs()` is a Hypothesis strategy over modules with their arguments: all ops, small shapes with
broadcasting, empty and unit axes, every element type, constants, calls, tuples and structs.  An
instruction takes operands that exist if some fit, and otherwise a new constant or parameter; so every
choice gives a program, and programs shrink well.

    programs()                                straight-line code
    programs(control=True)                    and `if`, `while`, `for` inside each other, calls in bodies
    programs(control=True, memory=True)       and loads and stores of global variables, anywhere
    graphs()                                  `main` is a graph of blocks: loops, irreducible ones, `branchEnum`
    graphs(control=True, memory=True)         with structured ops and memory in its blocks

All programs end (see `tests.flow`).  The stage is raw, and the module is valid.  With `memory`, what is left
in the global variables is part of the result, so that the order of effects shows: `main` returns a tuple
of what it would return, and of the variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from nnkit.core.ir import Function, Module, Op, finish_function, start_function
from nnkit.core.ops import (
    ALL,
    Aggregate,
    Apply,
    Elementwise,
    Extract,
    Load,
    Reference,
    Return,
)
from nnkit.core.ops.aggregate import packed, unpacked
from nnkit.core.text import print_module
from nnkit.core.types import (
    DTYPES,
    DType,
    PointerType,
    StructType,
    TupleType,
    elements_of,
)
from tests.flow import add_enum, add_memory, graph, structured, touch_memory
from tests.recipes import RECIPES, Draft, Options, elementwise, operand_count
from tests.values import Draw, arguments_of, flat, same_bits, tensor_types

__all__ = ["Program", "describe", "flat", "graphs", "programs", "same_bits"]

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
    control: bool = False,
    memory: bool = False,
) -> Program:
    """A program whose function `main` may call others.

    `ops` are the ops to use, `dtypes` the element types of parameters and constants.  `tame` takes only
    small finite numbers, so that results mostly are finite too.  `control` adds structured ops, `memory`
    global variables that all functions load from and store to.
    """
    options = Options(tuple(ops), tuple(dtypes), aggregates, tame)
    module = _module(draw, options, calls=calls, depth=2 if control else 0, memory=memory)
    length = draw(st.integers(1, max_instructions))
    main = module.add(_function(draw, module, "main", length, options, depth=2 if control else 0))
    types = main.type.parameters
    arguments = tuple(draw(arguments_of(type, tame=tame)) for type in types)
    return _with_memory(module, arguments) if memory else Program(module, arguments)


@st.composite
def graphs(
    draw: Draw,
    *,
    ops: Sequence[type[Op]] = ALL,
    dtypes: Sequence[DType] = tuple(DTYPES.values()),
    calls: bool = True,
    aggregates: bool = True,
    tame: bool = False,
    control: bool = False,
    memory: bool = False,
) -> Program:
    """A program whose function `main` is a graph of blocks that branch; options as of `programs`."""
    options = Options(tuple(ops), tuple(dtypes), aggregates, tame)
    depth = 1 if control else 0
    module = _module(draw, options, calls=calls, depth=depth, memory=memory)
    if draw(st.booleans()):
        add_enum(module)
    draft = Draft(draw, module, options, start_function(()))
    for _ in range(draw(st.integers(0, 2))):
        draft.values.append(draft.builder.argument(draw(tensor_types(dtypes))))
    main = module.add(graph(draft, "main", _step, depth))
    types = main.type.parameters[:-1]
    arguments = tuple(draw(arguments_of(type, tame=tame)) for type in types)
    arguments = (*arguments, np.asarray(draw(st.integers(0, 12))))
    return _with_memory(module, arguments) if memory else Program(module, arguments)


def _module(draw: Draw, options: Options, *, calls: bool, depth: int, memory: bool) -> Module:
    """What `main` can use."""
    module = Module()
    if memory:
        add_memory(module)
    if options.aggregates and draw(st.booleans()):
        first, second = (draw(tensor_types(options.dtypes)) for _ in range(2))
        module.add_structs(StructType(PAIR, (("a", first), ("b", second))))
    for number in range(draw(st.integers(0, 2)) if calls else 0):
        length = draw(st.integers(1, 3))
        module.add(_function(draw, module, f"f{number}", length, options, depth=depth))
    return module


def _with_memory(module: Module, arguments: tuple[Any, ...]) -> Program:
    """`main` becomes a function that calls it, and then looks at the variables."""
    inner = module.functions.pop("main")
    inner.name = "run"
    module.add(inner)
    b = start_function(inner.type.parameters)
    ran = b.emit_many(Apply("run", inner.type), b.block.arguments)
    results = [packed(b, inner.type.result, ran)]
    for name, variable in module.variables.items():
        results.append(b.emit(Load(), b.emit(Reference(name, PointerType(variable.type)))))
    whole = b.emit(Aggregate(TupleType(tuple(x.type for x in results))), *results)
    b.emit_many(Return(), unpacked(b, whole))
    module.add(finish_function("main", b, whole.type))
    return Program(module, arguments)


def describe(module: Module) -> str:
    """The module as text."""
    return print_module(module)


def _function(
    draw: Draw, module: Module, name: str, length: int, options: Options, *, depth: int = 0
) -> Function:
    draft = Draft(draw, module, options, start_function(()))
    draft.fresh(draw(tensor_types(options.dtypes)))
    for _ in range(length):
        if depth and draft.integer(0, 2) == 0:
            structured(draft, _step, depth)
        else:
            _step(draft)
    count = draft.integer(1, 5) if options.aggregates else 1
    results = draft.values[-count:]
    result = results[0]
    if len(results) > 1:
        result = draft.emit(Aggregate(TupleType(tuple(x.type for x in results))), *results)
    draft.builder.emit_many(Return(), unpacked(draft.builder, result))
    return finish_function(name, draft.builder, result.type)


def _step(draft: Draft) -> None:
    """One more instruction."""
    kind = draft.integer(0, 9)
    if draft.module.variables and draft.integer(0, 2) == 0:
        touch_memory(draft)
    elif kind == 9 and draft.module.functions:
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
    results = draft.builder.emit_many(Apply(callee.name, callee.type), arguments)
    draft.values.append(packed(draft.builder, callee.type.result, results))


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
