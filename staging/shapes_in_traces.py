"""Types of values in the middle of a trace whose arguments have known shapes.

The expressions that a value is made of are specialised to types alone, as the result of a recursion is
(`Specializer.probe`).  What was found is kept, so that each expression is visited once; functions inside of one another
share it, as the inner ones capture values of the outer ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from ..core.ir import Builder, Value, start_function
from ..core.lazy_dataclass import dataclass
from ..core.types import StructType, TensorType, TupleType, Type
from .expression import Expression, Parameter, Shapes, Trace, TracedBody, UnknownResult
from .known_shapes import TypeLookup
from .postorder import postorder
from .spec import TensorSpec
from .specialize import Specializer
from .tracing import active_traces


@dataclass(eq=False)
class _Types:
    """The values that stand for expressions, of which only the types matter."""

    specializer: Specializer = field(default_factory=Specializer)
    builder: Builder = field(default_factory=lambda: start_function((), []))
    values: dict[Expression, Value | None] = field(default_factory=dict[Expression, "Value | None"])

    def bind(self, trace: Trace, shapes: Shapes) -> None:
        """Give the parameters of `trace` these shapes."""
        rest = list(shapes)
        for parameter in trace.inputs:
            self.values[parameter] = Value(self.specializer.types.of(parameter.type, rest))

    def shapes_of(self, values: Sequence[Expression]) -> Shapes | None:
        for trace in active_traces():
            if isinstance(trace, TracedBody):
                self._enter(trace)
        types = self._types_of(values)
        return None if types is None else tuple(leaf for type in types for leaf in _leaves(type))

    def _enter(self, body: TracedBody) -> None:
        """What a loop carries has the types of what it carries at first; else a body has scalars alone."""
        for parameter in dict.fromkeys((*body.inputs, *body.starts)):
            if parameter in self.values:
                continue
            start, spec = body.starts.get(parameter), parameter.type
            types = None if start is None else self._types_of([start])
            if types is not None:
                self.values[parameter] = Value(types[0])
            elif start is None and isinstance(spec, TensorSpec) and not spec.rank:
                self.values[parameter] = Value(TensorType((), spec.dtype))

    def _types_of(self, outputs: Sequence[Expression]) -> list[Type] | None:
        missing = postorder(outputs, self.values)
        if any(isinstance(node.operation, Parameter | UnknownResult) for node in missing):
            return None
        found = self.specializer.probe(self.builder, outputs, self.values)
        types = [value.type for value in found if value is not None]
        if len(types) == len(found):
            return types
        for node in missing:  # more may be known later
            if self.values.get(node) is None:
                self.values.pop(node, None)
        return None


def types_in(trace: Trace, shapes: Shapes) -> TypeLookup:
    """What finds types in `trace`, where the tensors in its arguments have these shapes."""
    around = next((one.types for one in reversed(active_traces()) if one.types is not None), None)
    types = around if isinstance(around, _Types) else _Types()
    types.bind(trace, shapes)
    return types


def _leaves(type: Type) -> Iterator[tuple[int, ...]]:
    match type:
        case TensorType(shape=shape):
            yield shape
        case TupleType(elements):
            for element in elements:
                yield from _leaves(element)
        case StructType(fields=fields):
            for _, element in fields:
                yield from _leaves(element)
        case _:
            pass
