"""Random modules that are well typed instruction by instruction: every op, every type, every form.

They need not mean anything: uses may come before definitions, memory is never given back.  What is printed
of them must read back as the same module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from nnkit.core.ir import (
    Block,
    Builder,
    Extern,
    Function,
    GradientOf,
    Module,
    Op,
    Region,
    TangentOf,
    Value,
    Variable,
)
from nnkit.core.ops import (
    Aggregate,
    AllocateBox,
    AllocateHeap,
    AllocateStack,
    Apply,
    ApplyValue,
    Branch,
    BranchEnum,
    Conditional,
    Copy,
    CreateStack,
    Deallocate,
    DestroyStack,
    ElementPointer,
    EnumCase,
    Extract,
    For,
    If,
    Insert,
    Load,
    Null,
    Offset,
    PointerCast,
    Pop,
    ProjectBox,
    Push,
    Reference,
    Release,
    Retain,
    Return,
    Store,
    Trap,
    Undefined,
    While,
    Yield,
    splat,
)
from nnkit.core.ops.ordered_reduction import (
    ORDERED,
    ReduceBy,
    ReduceInOrder,
    ReduceWindowBy,
    ReduceWindowInOrder,
    ScanBy,
    ScanInOrder,
)
from nnkit.core.types import (
    BOOL,
    F32,
    I64,
    STACK,
    VOID,
    ArrayType,
    BoxType,
    EnumType,
    FunctionType,
    OpaqueType,
    PointerType,
    StructType,
    TensorType,
    TupleType,
    Type,
    elements_of,
    results_of,
    scalar,
)
from tests.core.ops.catalogue import SAMPLES

NAMES = st.one_of(
    st.sampled_from(
        ["x", "X", "add", "func", "größe", "层", "a b", '"', "0", "1.5", "0.0", "e5", "nan", ""]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
)
VECTOR = TensorType((3,), F32)
TREE = EnumType("Tree")
PAIR = StructType("Pair", (("a", scalar(F32)), ("a b", TupleType((TREE, VECTOR)))))
TREE.define([("leaf", (scalar(F32),)), ("node", (TREE, TREE)), ("", ()), ("pair", (PAIR,))])
BINARY = FunctionType((scalar(F32), scalar(F32)), scalar(F32))
LEAVES: list[Type] = [
    scalar(F32), scalar(I64), scalar(BOOL), VECTOR, TensorType((2, 0, 1), BOOL), VOID, STACK, TREE, PAIR,
    OpaqueType("Handle"), BINARY,
]  # fmt: skip


def _larger(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    several = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(
        several.map(TupleType),
        st.builds(ArrayType, st.integers(0, 3), inner),
        inner.map(PointerType),
        inner.map(BoxType),
        st.builds(FunctionType, several, inner),
    )


TYPES: st.SearchStrategy[Type] = st.recursive(st.sampled_from(LEAVES), _larger, max_leaves=5)


@dataclass
class _Writer:
    """Fills a function; `pool` are values that may be used anywhere in it."""

    draw: st.DrawFn
    pool: list[Value] = field(default_factory=list[Value])

    def value(self, b: Builder, type: Type) -> Value:
        """One that exists, perhaps further on, or a new one."""
        known = [value for value in self.pool if value.type == type]
        if known and self.draw(st.booleans()):
            return self.draw(st.sampled_from(known))
        return self.emit(b, Undefined(type))

    def values(self, b: Builder, types: Sequence[Type]) -> list[Value]:
        return [self.value(b, type) for type in types]

    def emit(self, b: Builder, op: Op, *operands: Value, regions: Sequence[Region] = ()) -> Value:
        """The first result, if there is one; perhaps it gets a name."""
        results = b.emit_many(op, operands, regions)
        for result in results:
            result.name = self.draw(st.one_of(st.none(), NAMES))
        self.pool += results
        return results[0] if results else Value(VOID)

    def instruction(self, b: Builder, depth: int) -> None:
        draw = self.draw
        kind = draw(
            st.sampled_from(["sample", "aggregate", "call", "memory", "stack", "fold", "control"])
        )
        match kind:
            case "sample":
                sample = draw(st.sampled_from(SAMPLES))
                self.emit(b, sample.op, *self.values(b, sample.types))
            case "aggregate":
                self.aggregate(b, draw(TYPES))
            case "call":
                type = FunctionType(tuple(draw(st.lists(TYPES, max_size=2))), draw(TYPES))
                arguments = self.values(b, type.parameters)
                self.emit(b, Apply(draw(NAMES), type), *arguments)
                self.emit(b, ApplyValue(type), self.value(b, type), *arguments)
            case "memory":
                self.memory(b, draw(TYPES))
            case "stack":
                stack = self.emit(b, CreateStack())
                pushed = self.value(b, draw(TYPES))
                self.emit(b, Push(), pushed, stack)
                self.emit(b, Pop(pushed.type), stack)
                self.emit(b, DestroyStack(), stack)
                self.emit(b, Trap())
            case "fold":
                x, zero, f = self.values(b, [VECTOR, scalar(F32), BINARY])
                self.emit(b, ReduceBy(draw(st.sampled_from([(), (0,)]))), x, f)
                self.emit(b, ScanBy(0, draw(st.booleans()), True), x, zero, f)
                self.emit(b, ReduceWindowBy((2,), (1,), ((1, 0),)), x, zero, f)
                by = draw(st.sampled_from([*ORDERED.values()]))
                self.emit(b, ReduceInOrder((0,), by=by), x)
                self.emit(b, ScanInOrder(0, draw(st.booleans()), True, by=by), x, zero)
                self.emit(b, ReduceWindowInOrder((2,), by=by), x, zero)
            case _ if depth:
                self.control(b, depth - 1)
            case _:
                self.emit(b, splat(VECTOR, draw(st.floats(width=32))))

    def aggregate(self, b: Builder, type: Type) -> None:
        if isinstance(type, PointerType | BoxType):
            self.emit(b, Null(type))
        if isinstance(type, PointerType | FunctionType):
            self.emit(b, Reference(self.draw(NAMES), type))
        if isinstance(type, EnumType):
            case, carried = self.draw(st.sampled_from(type.cases))
            self.emit(b, EnumCase(type, case), *self.values(b, carried))
        elements = elements_of(type)
        if elements is None or not isinstance(type, TupleType | StructType | ArrayType):
            return
        made = self.emit(b, Aggregate(type), *self.values(b, elements))
        if elements:
            position = self.draw(st.integers(0, len(elements) - 1))
            key = type.fields[position][0] if isinstance(type, StructType) else position
            self.emit(b, Insert((key,)), self.emit(b, Extract((key,)), made), made)
            pointer = self.value(b, PointerType(type))
            self.emit(b, ElementPointer((key,)), pointer)
            if isinstance(type, ArrayType):
                self.emit(b, ElementPointer((None,)), pointer, self.value(b, scalar(I64)))

    def memory(self, b: Builder, type: Type) -> None:
        count = self.value(b, scalar(I64))
        heap = self.emit(b, AllocateHeap(type), count)
        other = self.emit(b, AllocateStack(type, self.draw(st.integers(1, 9))))
        box = self.emit(b, AllocateBox(type))
        for op in (ProjectBox(), Retain(), Release()):
            self.emit(b, op, box)
        self.emit(b, Store(), self.emit(b, Load(), heap), other)
        self.emit(b, Copy(), heap, self.emit(b, Offset(), other, count), count)
        number = self.emit(b, PointerCast(scalar(I64)), heap)
        self.emit(b, PointerCast(PointerType(self.draw(TYPES))), number)
        self.emit(b, PointerCast(other.type), heap)
        self.emit(b, Deallocate(), heap)

    def control(self, b: Builder, depth: int) -> None:
        carried = self.values(b, self.draw(st.lists(TYPES, max_size=2)))
        inputs = self.draw(st.integers(0, len(carried)))
        op = self.draw(
            st.sampled_from(
                [If(tuple(v.type for v in carried), inputs), While(inputs), For((VECTOR,), inputs)]
            )
        )
        given = carried[len(carried) - inputs :] if isinstance(op, If) else carried
        fixed: list[Type] = {If: [scalar(BOOL)], While: [], For: [scalar(I64)] * 2}[type(op)]
        operands = [*self.values(b, fixed), *given]
        types = tuple(operand.type for operand in operands)
        regions: list[Region] = []
        for number in range(len(op.bodies)):
            visible = len(self.pool)
            inner = Builder(Block(name=self.draw(st.one_of(st.none(), NAMES))))
            for argument in op.body_arguments(number, types):
                self.pool.append(inner.argument(argument, self.draw(st.one_of(st.none(), NAMES))))
            for _ in range(self.draw(st.integers(0, 2))):
                self.instruction(inner, depth)
            inner.emit_many(Yield(), self.values(inner, op.body_yields(number, types)))
            del self.pool[visible:]
            regions.append(Region([inner.block]))
        self.emit(b, op, *operands, regions=regions)

    def body(self, type: FunctionType) -> Region:
        blocks = [
            Block(name=self.draw(st.one_of(st.none(), NAMES)))
            for _ in range(self.draw(st.integers(1, 4)))
        ]
        for block in blocks:
            parameters = (
                type.parameters if block is blocks[0] else self.draw(st.lists(TYPES, max_size=2))
            )
            for parameter in parameters:
                name = self.draw(st.one_of(st.none(), NAMES))
                self.pool.append(Builder(block).argument(parameter, name))
        for block in self.draw(st.permutations(blocks)):
            b = Builder(block)
            for _ in range(self.draw(st.integers(0, 3))):
                self.instruction(b, 2)
            self.terminator(b, blocks, type.result)
        return Region(blocks)

    def terminator(self, b: Builder, blocks: list[Block], result: Type) -> None:
        to, other = (self.draw(st.sampled_from(blocks)) for _ in range(2))
        first = self.values(b, [argument.type for argument in to.arguments])
        second = self.values(b, [argument.type for argument in other.arguments])
        match self.draw(st.sampled_from(["return", "branch", "conditional", "enum"])):
            case "return":
                b.emit_many(Return(), self.values(b, results_of(result)))
            case "branch":
                b.emit_many(Branch(), first, successors=[to])
            case "conditional":
                operands = [self.value(b, scalar(BOOL)), *first, *second]
                b.emit_many(Conditional(len(first)), operands, successors=[to, other])
            case _:
                cases = tuple(self.draw(st.permutations([name for name, _ in TREE.cases])))
                successors = [self.draw(st.sampled_from(blocks)) for _ in cases]
                b.emit_many(BranchEnum(cases), [self.value(b, TREE)], successors=successors)


@st.composite
def modules(draw: st.DrawFn) -> Module:
    """Types, variables, declarations, and a function or two."""
    module = Module(draw(NAMES))
    for name, type in draw(st.dictionaries(NAMES, TYPES, max_size=2)).items():
        module.aliases[f"alias {name}"] = type
    for name, type in draw(st.dictionaries(NAMES, TYPES, max_size=2)).items():
        module.variables[f"variable {name}"] = Variable(f"variable {name}", type)
    declarations = st.one_of(
        st.just(Extern()),
        st.builds(
            GradientOf,
            NAMES,
            st.none() | _INDICES,
            st.none() | _INDICES,
            _INDICES,
            st.booleans(),
        ),
        st.builds(TangentOf, NAMES, st.none() | _INDICES, st.none() | _INDICES, _INDICES),
        st.none(),
    )
    for name in draw(st.lists(NAMES, max_size=3, unique=True)):
        type = FunctionType(tuple(draw(st.lists(TYPES, max_size=3))), draw(TYPES))
        declaration = draw(declarations)
        body = None if declaration else _Writer(draw).body(type)
        attributes = tuple(draw(st.lists(NAMES, max_size=2)))
        module.functions[name] = Function(name, type, body, declaration, attributes)
    return module


_INDICES = st.lists(st.integers(0, 3), max_size=3).map(tuple)
