"""Expressions: the DAG that tracing a staged Python function builds.

A node has a *rule* that says how it becomes IR once shapes are known, operands, a staging-time type, the
place in the user's program, and the trace it was made in.  Sharing is by identity: a node used twice is
computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Literal, TypeAlias

from ..core.ir import Extern, Op, SavePolicy, Value
from ..core.lazy_dataclass import dataclass
from ..core.location import HasLocation
from ..core.types import Array, DType, FunctionType, Shape
from .epochs import this_epoch
from .spec import Spec, StructSpec, TupleSpec

Shapes: TypeAlias = tuple[Shape, ...]
"""Of the tensors in arguments, from left to right."""
CalleeKey: TypeAlias = tuple[tuple[Spec, ...], "Shapes | None"]
"""The types of the arguments, and their shapes where the callee is for these alone."""


@dataclass(frozen=True)
class Parameter:
    """Parameter number `index` of the function being traced."""

    index: int
    name: str


@dataclass(frozen=True, eq=False)
class Constant:
    """A concrete tensor; the array is ours and never written."""

    dtype: DType
    array: Array


@dataclass(frozen=True)
class Primitive:
    """An op of the IR whose attributes do not depend on shapes."""

    op: Op


@dataclass(frozen=True, eq=False)
class ShapeDependent:
    """Instructions that depend on the operands' shapes: `build` emits them at specialisation."""

    name: str
    build: Callable[..., Value]


@dataclass(frozen=True)
class SideEffect:
    """An op of the IR without results, for what it does: it is one of the `effects` of the trace it was made in."""

    op: Op


@dataclass(frozen=True)
class GetElement:
    """Element `position` of a tuple, or the field of that position of a struct."""

    position: int


@dataclass(frozen=True)
class MakeAggregate:
    """A tuple or struct of the operands."""

    spec: TupleSpec | StructSpec


@dataclass(frozen=True, eq=False)
class StagedCall:
    """A call of another staged function: it stays a call in the IR."""

    callee: Callee


@dataclass(frozen=True, eq=False)
class IfElse:
    """An `if`: the operand chooses the body that runs."""

    then: TracedBody
    otherwise: TracedBody

    @property
    def bodies(self) -> tuple[TracedBody, ...]:
        return self.then, self.otherwise


@dataclass(frozen=True, eq=False)
class WhileLoop:
    """A `while` loop: `step` maps carried values to the next ones for as long as `test` is true of them."""

    test: TracedBody
    step: TracedBody
    carried: int
    what: str = "while_loop"
    """What the user called."""

    @property
    def bodies(self) -> tuple[TracedBody, ...]:
        return self.test, self.step


@dataclass(frozen=True, eq=False)
class ForLoop:
    """A `for` loop: `step` maps the index and carried values to the next carried values.

    The first operands are the bounds, or `over` tensors whose leading axes are the range; those carried follow.
    What `step` gives besides the next values of these is stacked.
    """

    step: TracedBody
    carried: int
    over: int
    what: str

    @property
    def bodies(self) -> tuple[TracedBody, ...]:
        return (self.step,)


@dataclass(frozen=True)
class Result:
    """Result `position` of an operand that has several: of a choice or a loop."""

    position: int


@dataclass(frozen=True)
class UnknownResult:
    """Placeholder for the result of a recursive call, while the function is traced to infer its result type."""


StructuredOperation: TypeAlias = IfElse | WhileLoop | ForLoop
"""Operations with regions; the values that regions capture follow their own operands."""
Operation: TypeAlias = (
    Parameter
    | Constant
    | Primitive
    | ShapeDependent
    | SideEffect
    | GetElement
    | MakeAggregate
    | StagedCall
    | StructuredOperation
    | Result
    | UnknownResult
)


@dataclass(eq=False, slots=True, repr=False)
class Expression:
    """One node of the DAG."""

    operation: Operation
    operands: tuple[Expression, ...]
    type: Spec
    location: HasLocation | None
    trace: Trace | None

    def __repr__(self) -> str:
        """Only the node itself: what it is made of may be the whole program."""
        return (
            f"<{type(self.operation).__name__} of {len(self.operands)} operands: {self.type.words}>"
        )


@dataclass(eq=False, repr=False)
class Callee:
    """What can be called in the IR: a traced function, or a derivative of another callee.

    `captures` are expressions of enclosing traces that the body uses; a call passes them as further
    arguments.
    """

    name: str
    parameters: tuple[Spec, ...]
    result: Spec = field(default_factory=lambda: TupleSpec(()))
    captures: tuple[Expression, ...] = ()
    location: HasLocation | None = None
    parameter_names: tuple[str, ...] = ()
    origin: object = None
    """The staged function this came from."""
    is_wrapper: bool = False
    """Whether the body is NNKit's own, around a function of the user's: what it calls is at no line of the user's."""
    epoch: int = field(default_factory=this_epoch)
    """In which it was made."""
    shapes: Shapes | None = None
    """The shapes of the arguments' tensors, if it is for these alone: see `known_shapes`."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def has_effects(self) -> bool:
        """Whether calls of it do more than compute a result."""
        return False


@dataclass(eq=False)
class TracedRules:
    """What derivatives of a trace are computed by in place of it: see `custom_rules`."""

    jvp: Callee | None = None
    vjp: Callee | None = None
    saving: Callee | None = None

    def callees(self) -> list[Callee]:
        """Those there are."""
        return [one for one in (self.jvp, self.vjp, self.saving) if one is not None]


@dataclass(eq=False, repr=False)
class Trace(Callee):
    """One run of a Python function on symbolic parameters."""

    inputs: tuple[Expression, ...] = ()
    output: Expression | None = None
    effects: list[Expression] = field(default_factory=list[Expression])
    """What is done whether the output needs it or not, in this order: side effects, and what has such inside."""
    is_determined: bool = True
    """Whether `result` is what it returns; if not, the function is run to find that out."""
    progress: PendingTrace | None = None
    """What is still open, from the beginning of the run until all is known that the trace depends on."""
    attributes: tuple[str, ...] = ()
    """Those of the function in the IR."""
    expanded: dict[object, Any] = field(default_factory=dict[object, Any])
    """Functions that functions returned to this one, by what they were called with."""
    rules: TracedRules | None = None
    used: dict[object, None] = field(default_factory=dict[object, None])
    """The functions that were called while it was traced, by what was called, not by types of arguments."""
    has_traced_rules: bool = False
    """Whether a derivative has asked for the rules of this one and of all that it calls."""
    types: Any = None
    """Finds the types of values while it is run for known shapes: a `known_shapes.TypeLookup`."""
    at_hand: Shapes | tuple[Expression, ...] | None = None
    """While it is run: of the call that it is run for, the shapes of the arguments, or the arguments."""

    @property
    def key(self) -> CalleeKey:
        """What tells it from other traces of the same function."""
        return self.parameters, self.shapes

    @property
    def has_effects(self) -> bool:
        return bool(self.effects)


@dataclass(eq=False, repr=False)
class TracedBody(Trace):
    """The trace of a region: a branch, a loop's condition or its body."""

    outputs: tuple[Expression, ...] = ()
    site: Expression | None = None
    """The node that this is a body of."""
    may_be_skipped: bool = True
    """Whether it may not run at all, so that a recursion in it can end."""
    is_branch: bool = False
    """Whether it is that of a choice, which has no parameters."""
    starts: dict[Expression, Expression] = field(default_factory=dict["Expression", "Expression"])
    """The first value of each input that a loop carries: all others are of its type."""
    refs: dict[Any, Any] = field(default_factory=dict[Any, Any])
    """What refs from outside hold here (`staging.refs`)."""


@dataclass(eq=False)
class PendingTrace:
    """What a trace waits for: see `recursion`."""

    waits: set[Trace] = field(default_factory=set[Trace])
    """Enclosing functions that it calls."""
    assumes: set[Trace] = field(default_factory=set[Trace])
    """Those of them of which it did not know what they return."""
    guesses: bool = False
    """Whether a call of itself had an unknown result."""
    members: dict[tuple[object, CalleeKey], Trace] = field(
        default_factory=dict[tuple[object, "CalleeKey"], Trace]
    )
    """Traces that are complete but for what they wait for, at the latest this one."""


@dataclass(eq=False, repr=False)
class ForeignCallee(Callee):
    """A function that is defined elsewhere; `signature` would return results of the same types and shapes.

    `implement` gives the declaration for the name and the type of the function in the IR.
    """

    signature: Callee | None = None
    implement: Callable[[str, FunctionType], Extern] | None = None


@dataclass(eq=False, repr=False)
class DerivativeCallee(Callee):
    """A derivative of `primal`, as the IR declares it (indices are those of the primal's parameters).

    `sources=None` means the only result.  The last `given` parameters are seeds or tangents.
    """

    primal: Callee | None = None
    wrt: tuple[int, ...] = ()
    sources: tuple[int, ...] | None = None
    keeping: tuple[int, ...] = ()
    given: int = 0

    @property
    def has_effects(self) -> bool:
        return self.primal is not None and self.primal.has_effects


@dataclass(eq=False, repr=False)
class GradientCallee(DerivativeCallee):
    """Reverse mode: cotangents of `wrt`; what is given are seeds of the sources."""

    save: SavePolicy | None = None


@dataclass(eq=False, repr=False)
class TangentCallee(DerivativeCallee):
    """Forward mode: tangents of the sources, up to `order`; what is given are those of `wrt`."""

    order: int = 1


@dataclass(eq=False, repr=False)
class JacobianCallee(DerivativeCallee):
    """The Jacobians of all sources by all of `wrt`, source by source."""

    mode: Mode = "auto"


@dataclass(eq=False, repr=False)
class BatchCallee(Callee):
    """`primal` for all elements of a batch at once, as the IR declares it.

    `along` has the axis of each argument and capture that the elements lie along, `into` that of each result; None
    where there is none.  `data_names` are the parameters that are no functions.
    """

    primal: Callee | None = None
    along: tuple[int | None, ...] = ()
    into: tuple[int | None, ...] = ()
    axis: str | None = None
    data_names: tuple[str, ...] = ()


Mode: TypeAlias = Literal["auto", "forward", "reverse"]
"""How Jacobians are computed: column by column, or row by row; `auto` takes whichever are fewer."""


def depends_on_parameters(root: Expression) -> bool:
    """Whether the value of `root` waits for an argument of a staged function."""
    seen: set[Expression] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node.operation, Parameter):
            return True
        if node not in seen:
            seen.add(node)
            stack.extend(node.operands)
    return False


def free_expressions(roots: Sequence[Expression], trace: Trace) -> tuple[Expression, ...]:
    """The nodes of enclosing traces that `roots` use, in order of first use."""
    found: dict[Expression, None] = {}
    seen: set[Expression] = set()
    stack = [*reversed(roots)]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.trace is not None and node.trace is not trace:
            found.setdefault(node)
        else:
            stack.extend(reversed(node.operands))
    return tuple(found)
