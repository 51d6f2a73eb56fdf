"""The halves of a gradient as things to call: for fixed shapes, and linked into each module that calls them.

`forward` takes the arguments and gives the results and the residuals; `backward` takes the residuals and the seeds and
gives the derivatives.  Which residuals there are depends on shapes, so the gradient is made for certain shapes before
anything can call a half (`core.driver.halves`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Literal, Protocol, TypeAlias

from ..core.errors import ShapeError
from ..core.ir import Builder, Function, Module, Value, finish_function, start_function
from ..core.lazy_dataclass import dataclass
from ..core.location import Location
from ..core.ops import Return, ShapeCast
from ..core.ops.aggregate import unpacked
from ..core.ops.leaves import leaves_of, put_together, take_apart
from ..core.ops.literal import constant
from ..core.types import TensorType, Type
from .expression import Callee, Shapes
from .primitive import MAX_RANK, located, staging_error
from .reads import Reads
from .spec import Spec, TensorSpec, TupleSpec
from .staged_functions import (
    PythonFunction,
    Stageable,
    argument_error,
    arity_error,
    note_use,
)

HalfPart: TypeAlias = Literal["forward", "saving", "backward"]
"""`saving` is the forward half that returns only those residuals that are neither arguments nor results."""
TypeOf: TypeAlias = "Callable[[Spec, list[tuple[int, ...]]], Type]"
"""The IR type of a value whose tensors have these shapes."""


class KeptValue(Protocol):
    """What `core.driver.halves` says of a residual."""

    @property
    def kind(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def type(self) -> Type: ...
    @property
    def op(self) -> str | None: ...
    @property
    def location(self) -> Location | None: ...


class LinkableHalves(Protocol):
    """What `core.driver.halves` makes; that loads with the passes, when something is compiled."""

    @property
    def residuals(self) -> Sequence[KeptValue]: ...

    @property
    def has_while(self) -> bool: ...

    def linked(self, module: Module, known: dict[tuple[int, str], str]) -> LinkableHalves: ...

    def emit_forward(
        self, b: Builder, arguments: Sequence[Value]
    ) -> tuple[list[Value], list[Value]]: ...

    def emit_backward(
        self, b: Builder, residuals: Sequence[Value], seeds: Sequence[Value]
    ) -> list[Value]: ...


@dataclass(eq=False, repr=False)
class HalfCallee(Callee):
    """One half of `halves`; `shapes` are those of all tensors that it takes, `result_shapes` those it returns."""

    halves: LinkableHalves | None = None
    part: HalfPart = "forward"
    shapes: Shapes | None = ()
    result_shapes: tuple[tuple[int, ...], ...] = ()
    functions: tuple[PythonFunction, ...] = ()
    """Those that were traced for them."""
    reads: Reads | None = None
    """What these read, as it was then."""

    def result_type(self, type_of: TypeOf) -> Type:
        """The IR type of what it returns."""
        return type_of(self.result, list(self.result_shapes))

    def define(
        self,
        name: str,
        module: Module,
        types: Sequence[Type],
        type_of: TypeOf,
        linked: dict[tuple[int, str], str],
    ) -> Function:
        """The IR function `@name` for arguments of these types; what it calls is added to `module`.

        Raises: ShapeError when the types are not those that the gradient was split for.
        """
        assert self.halves is not None
        self._check(types)
        result = self.result_type(type_of)
        b = start_function(types, [*self.parameter_names])
        arguments = list(b.block.arguments)
        halves = self.halves.linked(module, linked)
        if self.part == "backward":
            found = self._backward(b, halves, arguments, result)
        else:
            found = self._forward(b, halves, arguments)
        whole = put_together(b, result, iter(found))
        b.emit_many(Return(), unpacked(b, whole))
        return finish_function(name, b, result)

    def _forward(
        self, b: Builder, halves: LinkableHalves, arguments: Sequence[Value]
    ) -> list[Value]:
        flat = [leaf for x in arguments for leaf in take_apart(b, x)]
        results, residuals = halves.emit_forward(b, flat)
        described = zip(residuals, halves.residuals, strict=True)
        kept = [x for x, about in described if self.part == "forward" or about.kind == "saved"]
        return [*results, *(_reshaped(b, x, narrow_shape(x.tensor.shape)) for x in kept)]

    def _backward(
        self, b: Builder, halves: LinkableHalves, arguments: Sequence[Value], result: Type
    ) -> list[Value]:
        residuals, seed = arguments
        wanted = [about.type for about in halves.residuals]
        given = [
            _reshaped(b, x, type.shape) if isinstance(type, TensorType) else x
            for x, type in zip(take_apart(b, residuals), wanted, strict=True)
        ]
        floats = [x for x in take_apart(b, seed) if x.tensor.dtype.is_float]
        found = iter(halves.emit_backward(b, given, floats))
        leaves = (leaf.type for leaf in leaves_of(result))
        return [next(found) if _is_float(type) else _zero(b, type) for type in leaves]

    def _check(self, types: Sequence[Type]) -> None:
        given = [leaf.type for type in types for leaf in leaves_of(type)]
        found = [type.shape for type in given if isinstance(type, TensorType)]
        taken = self.shapes or ()
        if tuple(found) != taken:
            kept = len(self.halves.residuals) if self.halves else 0
            if self.part == "backward" and tuple(found[:kept]) == taken[:kept]:
                wanted, seeds = (", ".join(map(_shown, of[kept:])) for of in (taken, tuple(found)))
                raise located(
                    ShapeError(
                        f"the seed of {self.name} has the shape {wanted}, like the result, not {seeds}"
                    )
                )
            wanted = ", ".join(map(_shown, taken))
            raise located(
                ShapeError(
                    f"{self.name} takes tensors of shapes {wanted}, not {', '.join(map(_shown, found))}"
                ),
                "split it for these shapes, too",
            )


@dataclass(eq=False)
class Half(Stageable):
    """A half as something to call: of the types that `made` takes, and no others."""

    made: HalfCallee
    name: str = field(init=False)
    parameter_names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.name, self.parameter_names = self.made.name, self.made.parameter_names

    def callee(self, specs: tuple[Spec, ...], shapes: Shapes | None = None) -> HalfCallee:
        if len(specs) != len(self.parameter_names):
            raise arity_error(self, len(specs))
        for name, wanted, given in zip(
            self.parameter_names, self.made.parameters, specs, strict=True
        ):
            if wanted != given:
                raise argument_error(self, name, wanted, given)
        for function in self.made.functions:
            note_use(function)
        changed = None if self.made.reads is None else self.made.reads.changed()
        if changed is not None:
            what = changed.name if isinstance(changed.name, str) else "something"
            raise staging_error(
                f"{self.name} was made before {what}, which the function reads, was given another value",
                "split the function again, `split(f).at(...)`",
            )
        return self.made


def residual_spec(halves: LinkableHalves) -> TupleSpec:
    """The staging-time type of the tuple of all residuals, which are tensors."""
    return TupleSpec(tuple(_spec(about.type) for about in halves.residuals))


def narrow_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a residual as a tensor that has a class: the first axes are joined."""
    extra = len(shape) - MAX_RANK
    if extra <= 0:
        return shape
    first = 1
    for extent in shape[: extra + 1]:
        first *= extent
    return (first, *shape[extra + 1 :])


def _spec(type: Type) -> Spec:
    assert isinstance(type, TensorType)
    return TensorSpec(len(narrow_shape(type.shape)), type.dtype)


def _reshaped(b: Builder, x: Value, shape: tuple[int, ...]) -> Value:
    return x if x.tensor.shape == shape else b.emit(ShapeCast(shape), x)


def _is_float(type: Type) -> bool:
    return isinstance(type, TensorType) and type.dtype.is_float


def _zero(b: Builder, type: Type) -> Value:
    assert isinstance(type, TensorType)
    return constant(b, type, 0)


def _shown(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"
