"""Derivatives for guard pages: of every program there is for them, in both modes, fused and not.

A case is a derivative that is declared of another case (`derivative`), and goes through the passes of a compilation.
So seeds, tangents, what is kept and what is computed for both directions have memory of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from nnkit.core.analysis.derivatives import declared_type, elements
from nnkit.core.driver.stages import advance
from nnkit.core.ir import Builder, Function, GradientOf, Module, Stage, TangentOf, Value
from nnkit.core.ops import ALL, Builtin, Elementwise
from nnkit.core.schedule.target import Target
from nnkit.core.types import F64, DType, TensorType
from tests.core.ops.catalogue import SAMPLES
from tests.core.ops.samples import Sample
from tests.recipes import operand_count

from .guarded_products import FLOATS, FORMS, product
from .guarded_programs import Case, Random, applied, name_of, operand, pick, upto

Mode: TypeAlias = Literal["reverse", "forward"]
MODES: tuple[Mode, ...] = ("reverse", "forward")
LEVELS = (0, 2)
"""The numbers after -O: without fusion and laws, and with them."""

DIFFERENTIABLE = tuple(op for op in ALL if not op.not_differentiable or issubclass(op, Builtin))
"""A builtin is expanded into others before."""
_CHAINED = tuple(
    op for op in DIFFERENTIABLE if issubclass(op, Elementwise) and operand_count(op) < 3
)


_WHOLE = GradientOf("f")


@dataclass(frozen=True)
class Derivative(Case):
    """A derivative of a function that `build` writes; its arguments have the seed or the tangents behind them."""

    primal: tuple[TensorType, ...] = ()
    declaration: GradientOf | TangentOf = _WHOLE
    level: int = 2
    entry: ClassVar[str] = "df"
    is_rough: ClassVar[bool] = (
        True  # near poles, and where sums of halves cancel; accuracy is tested elsewhere
    )

    @property
    def mode(self) -> Mode:
        return "reverse" if isinstance(self.declaration, GradientOf) else "forward"

    def function(self, target: Target) -> Function:
        module = self.module()
        advance(module, Stage.SCHEDULE, "df", level=self.level, target=target)
        return module.functions["df"]

    def module(self) -> Module:
        module = Case("f", self.primal, (), self.build).module()
        module.stage = Stage.RAW
        declared = Function("df", module.functions["f"].type, declaration=self.declaration)
        declared.type = declared_type(module.functions["f"].type, declared)
        module.add(declared)
        advance(module, Stage.OPTIMIZABLE, level=self.level)
        return module


def derivative(case: Case, mode: Mode, level: int, random: Random) -> Derivative | None:
    """Of one float result, or of all, by all float parameters; None if there is none of either."""
    primal = Case("f", case.types, (), case.build).module().functions["f"].type
    results = elements(primal.result)
    sources = [number for number, type in enumerate(results) if _is_float(type)]
    wrt = tuple(number for number, type in enumerate(case.types) if _is_float(type))
    if not sources or not wrt:
        return None
    keeping = tuple(n for n in range(len(results)) if random.random() < 0.3)
    source = sources[-1] if random.random() < 0.7 else sources[0]
    seed: list[TensorType] = []
    declaration: GradientOf | TangentOf
    if mode == "reverse":
        seedable = bool(random.random() < 0.8)
        declaration = GradientOf("f", (source,), wrt, keeping, seedable)
        type = results[source]
        if seedable and isinstance(type, TensorType):
            seed = [type]
    else:
        only = (source,) if random.random() < 0.3 else None
        declaration = TangentOf("f", only, wrt, keeping)
        seed = [case.types[number] for number in wrt]
    arrays = (*case.arrays, *(operand(random, type) for type in seed))
    name = f"{mode} derivative at -O{level} of {case.name}"
    return Derivative(
        name, (*case.types, *seed), arrays, case.build,
        op=case.op, primal=case.types, declaration=declaration, level=level,
    )  # fmt: skip


def _is_float(type: object) -> bool:
    return isinstance(type, TensorType) and type.dtype.is_float


def missing_derivatives(cases: Iterable[Case]) -> set[tuple[str, Mode, DType]]:
    """The ops and builtins that have a derivative, with the modes and float types in which none is among the cases."""
    ran = {
        (case.op, case.mode, type.dtype)
        for case in cases
        if isinstance(case, Derivative)
        for type in case.primal
    }
    having = [s for s in SAMPLES if s.has_derivative or isinstance(s.op, Builtin)]
    return {
        (name_of(s.op), mode, dtype) for s in having for mode in MODES for dtype in FLOATS
    } - ran


# Sequences of cases.


def differentiable_samples() -> Iterator[Case]:
    """The rows of the tables of samples that may have a derivative, with each float type."""
    for number, sample in enumerate(SAMPLES):
        if isinstance(sample.op, DIFFERENTIABLE):
            dtypes = FLOATS if any(type.dtype == F64 for type in sample.types) else FLOATS[:1]
            for dtype in dtypes:
                yield _case(number, sample if dtype == F64 else sample.with_floats(dtype))


def _case(number: int, sample: Sample) -> Case:
    def build(b: Builder, *xs: Value) -> Sequence[Value]:
        return [b.emit(sample.op, *xs)]

    arrays, name = tuple(sample.operands()), f"sample {number} {sample}"
    return Case(name, sample.types, arrays, build, op=name_of(sample.op))


def gradients_of_samples(share: float = 1.0, *, seed: int = 0) -> Iterator[Derivative]:
    """Both modes of all samples, or of a share of them with those that are the first of an op and a float type."""
    random, seen = np.random.default_rng(seed), set[tuple[str, Mode, DType]]()
    for case in differentiable_samples():
        for mode in MODES:
            level, is_taken = pick(random, LEVELS), random.random() < share
            key = case.op, mode, next((x.dtype for x in case.types if x.dtype.is_float), F64)
            if not is_taken and key in seen:
                continue
            found = derivative(case, mode, level, random)
            if found is not None:
                seen.add(key)
                yield found


def gradients(extents: Sequence[int], rounds: int, share: float = 1.0) -> Iterator[Derivative]:
    """Derivatives of every op and form of a product with every float type and extent, alone and in a chain of ops.

    Modes take turns from one extent to the next.
    """
    random = np.random.default_rng([0, *extents[:1]])
    for number in range(rounds):
        for turn, extent in enumerate(extents, number):
            for primal in _primals(number, extent, random, share):
                mode, level = MODES[turn % len(MODES)], pick(random, LEVELS)
                found = derivative(primal, mode, level, random)
                if found is not None:
                    yield found


def _primals(number: int, extent: int, random: Random, share: float) -> Iterator[Case]:
    for dtype in FLOATS:
        for op in DIFFERENTIABLE:
            if random.random() < share:
                found = applied(number, op, extent, dtype)
                if found is not None:
                    yield found if random.random() < 0.5 else chain(found, random)
        for form in FORMS:
            if random.random() < share:
                yield product(number, extent, dtype, form)


def chain(case: Case, random: Random) -> Case:
    """The same, its last result put through some elementwise ops if it is of floats."""
    ops = [pick(random, _CHAINED) for _ in range(upto(random, 1, 4))]

    def build(b: Builder, *xs: Value) -> Sequence[Value]:
        *before, y = case.build(b, *xs)
        if not y.tensor.dtype.is_float:
            return [*before, y]
        links = [y]
        for op in ops:
            operands = [links[-1], *links[-2:][::-1]][: operand_count(op)]
            links.append(b.emit(op(), *operands))
        return [*before, links[-1]]

    names = ", ".join(op.name for op in ops)
    return replace(case, name=f"{case.name}, then {names}", build=build)
