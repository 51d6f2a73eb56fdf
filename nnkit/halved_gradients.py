"""A gradient that is cut in two: the callees of its halves, and what they expect, return and keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .core.lazy_dataclass import dataclass
from .core.types import TensorType
from .residuals import Residual, ValueInfo
from .staging.expression import Callee
from .staging.halves import (
    HalfCallee,
    HalfPart,
    KeptValue,
    LinkableHalves,
    narrow_shape,
    residual_spec,
)
from .staging.reads import Reads
from .staging.spec import Spec, StructSpec, TensorSpec, TupleSpec
from .staging.staged_functions import PythonFunction
from .tensors import DTYPES


@dataclass(frozen=True)
class HalvedGradient:
    """The gradient of `callee` for tensors of these shapes, from which both halves are made."""

    core: LinkableHalves
    callee: Callee
    shapes: tuple[tuple[int, ...], ...]
    result_shapes: tuple[tuple[int, ...], ...]
    derivatives_of: tuple[tuple[str, Spec], ...]
    single: bool
    derivative_shapes: tuple[tuple[int, ...], ...]
    functions: tuple[PythonFunction, ...]
    reads: Reads

    @property
    def derivative(self) -> Spec:
        """The type of all derivatives together."""
        parts = tuple(spec for _, spec in self.derivatives_of)
        return parts[0] if self.single else TupleSpec(parts)

    def half(self, part: HalfPart) -> HalfCallee:
        """One of them, or the forward half without residuals that are at hand."""
        callee, kept = self.callee, residual_spec(self.core)
        about = self.core.residuals
        shapes = [narrow_shape(_tensor(one).shape) for one in about]
        name = f"{callee.name}_{'backward' if part == 'backward' else 'forward'}"
        if part == "backward":
            return HalfCallee(
                name,
                (kept, callee.result),
                self.derivative,
                location=callee.location,
                parameter_names=("residuals", "seed"),
                halves=self.core,
                part=part,
                shapes=(*shapes, *self.result_shapes),
                result_shapes=self.derivative_shapes,
                functions=self.functions,
                reads=self.reads,
            )
        if part == "saving":
            chosen = [k for k, one in enumerate(about) if one.kind == "saved"]
            kept = TupleSpec(tuple(kept.elements[k] for k in chosen))
            shapes = [shapes[k] for k in chosen]
        result = TupleSpec((callee.result, kept)) if kept.elements else callee.result
        return HalfCallee(
            name,
            callee.parameters,
            result if part == "saving" else TupleSpec((callee.result, kept)),
            location=callee.location,
            parameter_names=callee.parameter_names,
            halves=self.core,
            part=part,
            shapes=self.shapes,
            result_shapes=(*self.result_shapes, *shapes),
            functions=self.functions,
            reads=self.reads,
        )

    def arguments(self) -> tuple[ValueInfo, ...]:
        return _described(self.callee.parameter_names, self.callee.parameters, self.shapes)

    def results(self, prefix: str) -> tuple[ValueInfo, ...]:
        """The results, or with the prefix `d` the seeds."""
        name = "seed" if prefix else "value"
        return _described([name], [self.callee.result], self.result_shapes)

    def derivatives(self) -> tuple[ValueInfo, ...]:
        names, specs = zip(*self.derivatives_of, strict=True)
        return _described(names, specs, self.derivative_shapes)

    def residuals(self) -> Iterator[Residual]:
        names = {"argument": self.arguments(), "result": self.results("")}
        for one in self.core.residuals:
            type, place = _tensor(one), one.location
            known = names.get(one.kind)
            name = known[one.number].name if known else f"saved {one.number}"
            line = None
            if place is not None:
                line = place.excerpt().splitlines()[0]
            dtype = DTYPES[type.dtype]
            shape = narrow_shape(type.shape)
            yield Residual(name, shape, dtype, one.kind, one.number, one.op, line)


def _described(
    names: Sequence[str], specs: Sequence[Spec], shapes: Sequence[tuple[int, ...]]
) -> tuple[ValueInfo, ...]:
    rest = iter(shapes)
    return tuple(
        ValueInfo(label, next(rest), DTYPES[leaf.dtype])
        for name, spec in zip(names, specs, strict=True)
        for label, leaf in _labels(name, spec)
    )


def _labels(name: str, spec: Spec) -> Iterator[tuple[str, TensorSpec]]:
    """The tensors inside with what they are called: `p.w`, `seed[0]`."""
    match spec:
        case TensorSpec():
            yield name, spec
        case TupleSpec(elements):
            for k, element in enumerate(elements):
                yield from _labels(f"{name}[{k}]", element)
        case StructSpec(fields=fields):
            for field, element in fields:
                yield from _labels(f"{name}.{field}", element)
        case _:
            pass


def _tensor(residual: KeptValue) -> TensorType:
    assert isinstance(residual.type, TensorType)
    return residual.type
