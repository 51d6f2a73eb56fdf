"""Random programs whose memory holds values of all kinds, as text: nested structs, arrays, enums, pointers to
pointers, functions, stacks, global variables; and the same bytes seen as other types.

`@main(%x: i64)` has allocations of each kind and derives *places* from them: a name and a type of what lies there.
Statements store what they load elsewhere, what they make, and what functions and enums give; they move values by
their bytes, push and pop them.  All that can be read of every allocation is the result.  An index, a null or an
empty stack may stop the program; nothing is used after it is given back, and nothing left that was allocated.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from nnkit.core.compute.lower_memory.data_layout import DataLayout
from nnkit.core.ops.memory import pointee_at
from nnkit.core.types import (
    BOOL,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    ArrayType,
    EnumType,
    FunctionType,
    PointerType,
    StructType,
    TensorType,
    TupleType,
    Type,
    scalar,
)
from tests.values import Draw

N = scalar(I64)
P = PointerType(N)
PLAIN = StructType("Plain", (("a", scalar(I8)), ("b", TensorType((2,), F32)), ("c", scalar(F64))))
ENUM = EnumType("E")
ENUM.define([("none", ()), ("one", (N,)), ("two", (scalar(F32), P, ENUM))])
CALL = FunctionType((N,), N)
MIXED = StructType(
    "Mixed",
    (
        ("flag", scalar(BOOL)),
        ("rows", ArrayType(2, TupleType((PLAIN, P)))),
        ("e", ENUM),
        ("f", CALL),
        ("q", PointerType(P)),
    ),
)
TABLE = TensorType((2, 3), I32)
SEVERAL = ArrayType(3, TupleType((scalar(I16), TABLE)))

ALLOCATED: tuple[tuple[str, Type], ...] = (
    ("n", N), ("m", N), ("p", P), ("q", PointerType(P)), ("plain", PLAIN), ("mixed", MIXED), ("other", MIXED),
    ("e", ENUM), ("f", CALL), ("table", TABLE), ("several", SEVERAL),
)  # fmt: skip
WAYS = ("stack", "heap", "box", "variable")
VIEWS: tuple[Type, ...] = (
    PLAIN, TABLE, SEVERAL, N, TensorType((3,), F32), TensorType((2, 2), I16), scalar(F64), scalar(I8),
    TupleType((scalar(I8), scalar(I32))),
)  # fmt: skip
"""What bytes that hold numbers only are seen as."""

HEAD = f"""module "m"
stage raw
struct $Plain {{ {", ".join(f"#{name}: {type}" for name, type in PLAIN.fields)} }}
struct $Mixed {{ {", ".join(f"#{name}: {type}" for name, type in MIXED.fields)} }}
enum $E {{ ?none(), ?one(i64), ?two(f32, *i64, $E) }}
func @up: (i64) -> i64 {{
'entry(%n: i64):
    %m = add %n: i64, 1: i64
    return %m: i64
}}
func @twice: (i64) -> i64 {{
'entry(%n: i64):
    %p = allocateStack i64 count 2
    %q = offset %p: *i64 by 1: i64
    store %n: i64 to %q: *i64
    %a = load %q: *i64
    %b = load %p: *i64
    %c = add %a: i64, %b: i64
    %m = add %c: i64, %n: i64
    return %m: i64
}}
func @swap: (*i64, *i64) -> void {{
'entry(%p: *i64, %q: *i64):
    %a = load %p: *i64
    %b = load %q: *i64
    store %b: i64 to %p: *i64
    store %a: i64 to %q: *i64
    return
}}
"""


@dataclass
class _Writer:
    draw: Draw
    lines: list[str] = field(default_factory=list[str])
    places: list[tuple[str, Type]] = field(default_factory=list[tuple[str, Type]])
    layout: DataLayout = field(default_factory=DataLayout)
    count: int = 0

    def write(self, text: str) -> str:
        """Write an instruction that has a result; what that is called."""
        self.count += 1
        self.lines.append(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def place(self, type: Type) -> str:
        """A place of the type: there always is an allocation."""
        return str(self.draw(st.sampled_from([p for p, t in self.places if t == type])))

    def pick(self) -> tuple[str, Type]:
        """Any place; each type is as likely."""
        type = self.draw(st.sampled_from(list(dict.fromkeys(t for _, t in self.places))))
        return self.place(type), type

    def value(self, type: Type) -> str:
        """A new value of the type, or what lies at another place."""
        if self.draw(st.integers(0, 2)) == 0:
            return self.load(self.place(type), type)
        match type:
            case TensorType():
                if type == N and self.draw(st.booleans()):
                    return self.write(f"add %x: i64, {self.draw(st.integers(-2, 2))}: i64")
                return self.write(f"literal {self.draw(st.integers(0, 1))}: {type}")
            case PointerType():
                return self.place(type.pointee)
            case FunctionType():
                return self.write(f"literal @{self.draw(st.sampled_from(['up', 'twice']))}: {type}")
            case EnumType():
                return self.case()
            case _:
                return self.load(self.place(type), type)

    def case(self) -> str:
        which = self.draw(st.integers(0, 2))
        if which == 0:
            return self.write("literal ?none(): $E")
        if which == 1:
            return self.write(f"literal ?one({self.value(N)}: i64): $E")
        inner = self.load(self.place(ENUM), ENUM)
        return self.write(f"literal ?two(1.5: f32, {self.place(N)}: *i64, {inner}: $E): $E")

    def load(self, place: str, type: Type) -> str:
        return self.write(f"load {place}: *{type}")

    def store(self, value: str, type: Type, place: str) -> None:
        self.lines.append(f"store {value}: {type} to {place}: *{type}")

    def derive(self) -> None:
        """A place inside of another one."""
        place, type = self.pick()
        match type:
            case StructType(fields=fields):
                key, found = self.draw(st.sampled_from(fields))
                key = f"#{key}"
            case TupleType(elements):
                position = self.draw(st.integers(0, len(elements) - 1))
                key, found = str(position), elements[position]
            case ArrayType() | TensorType(shape=(_, *_)):
                key = self.draw(st.sampled_from(["0", "1", "%x: i64"]))
                found = pointee_at(type, None)
            case _:
                return
        self.places.append((self.write(f"elementPointer {place}: *{type} at {key}"), found))

    def view(self) -> None:
        """The same bytes, or some of them, as another type."""
        plain = [t for t in dict.fromkeys(t for _, t in self.places) if self.is_plain(t)]
        type = self.draw(st.sampled_from(plain))
        place, room = self.place(type), self.layout.extent(type).bytes
        seen = self.draw(st.sampled_from(VIEWS))
        size = self.layout.extent(seen).bytes
        if size > room:
            return
        start = self.draw(st.integers(0, room - size))
        address = self.write(f"bitCast {place}: *{type} to *i8")
        if self.draw(st.booleans()):
            moved = self.write(f"offset {address}: *i8 by {start}: i64")
        else:
            number = self.write(f"bitCast {address}: *i8 to i64")
            further = self.write(f"add {number}: i64, {start}: i64")
            moved = self.write(f"bitCast {further}: i64 to *i8")
        self.places.append((self.write(f"bitCast {moved}: *i8 to *{seen}"), seen))

    def is_plain(self, type: Type) -> bool:
        """Whether any bytes are a value of the type."""
        leaves = [leaf for _, leaf in self.layout.every_leaf(type)]
        return all(isinstance(leaf, TensorType) and leaf.dtype != BOOL for leaf in leaves)

    def statement(self, depth: int) -> None:
        kind = self.draw(st.integers(0, 11 if depth else 9))
        match kind:
            case 0 | 1:
                self.derive()
            case 2:
                self.view()
            case 3 | 4:
                place, type = self.pick()
                self.store(self.value(type), type, place)
            case 5:
                self.move()
            case 6:
                type = self.draw(st.sampled_from([t for _, t in ALLOCATED]))
                value = self.load(self.place(type), type)
                self.lines.append(f"push {value}: {type} to %st: stack")
                self.store(self.write(f"pop {type} from %st: stack"), type, self.place(type))
            case 7:
                function = self.load(self.place(CALL), CALL)
                called = self.write(f"apply {function}({self.value(N)}): (i64) -> i64")
                self.store(called, N, self.place(N))
            case 8:
                self.look()
            case 9:
                pointer = self.load(self.place(P), P)
                self.write(f"apply @swap({pointer}, {self.place(N)}): (*i64, *i64) -> void")
            case 10:
                condition = self.write(f"greaterThan {self.value(N)}: i64, 0: i64")
                self.lines.append(f"if {condition}: bool {{\n't{self.count}():")
                self.body(depth)
                self.lines.append(f"}} else {{\n'e{self.count}():")
                self.body(depth)
                self.lines.append("}")
            case _:
                self.count += 1
                self.lines.append(
                    f"for 0: i64 upto 2: i64 {{\n'b{self.count}(%i{self.count}: i64):"
                )
                self.body(depth)
                self.lines.append("}")

    def body(self, depth: int) -> None:
        outside = list(self.places)
        for _ in range(self.draw(st.integers(1, 3))):
            self.statement(depth - 1)
        self.lines.append("yield")
        self.places = outside

    def move(self) -> None:
        """Copy a value, as it is or as the words that it is made of."""
        source, type = self.pick()
        target, extent = self.place(type), self.layout.extent(type)
        if extent.alignment == 8 and self.draw(st.booleans()):
            words = TensorType((extent.bytes // 8,), I64)
            source, target = (
                self.write(f"bitCast {p}: *{type} to *{words}") for p in (source, target)
            )
            type = words
        self.lines.append(f"copy from {source}: *{type} to {target}: *{type} count 1: i64")

    def look(self) -> None:
        """Take an enum apart."""
        value = self.load(self.place(ENUM), ENUM)
        self.store(self.write(f"payload ?one 0 of {value}: $E"), N, self.place(N))
        if self.draw(st.booleans()):
            self.store(self.write(f"payload ?two 1 of {value}: $E"), P, self.place(P))
            self.store(self.write(f"payload ?two 2 of {value}: $E"), ENUM, self.place(ENUM))

    def result(self) -> str:
        """What can be compared of all allocations: numbers, and whether words are zero."""
        found: list[tuple[str, Type]] = []
        for place, whole in self.places[: len(ALLOCATED)]:
            start = self.write(f"bitCast {place}: *{whole} to *i8")
            for offset, leaf in self.layout.every_leaf(whole):
                at = self.write(f"offset {start}: *i8 by {offset}: i64")
                seen = leaf if isinstance(leaf, TensorType) else N
                value = self.load(self.write(f"bitCast {at}: *i8 to *{seen}"), seen)
                if leaf != seen:
                    value, seen = self.write(f"notEqual {value}: i64, 0: i64"), scalar(BOOL)
                found.append((value, seen))
        type = TupleType(tuple(t for _, t in found))
        values = ", ".join(f"{value}: {t}" for value, t in found)
        self.lines.append(f"return {self.write(f'literal ({values}): {type}')}: {type}")
        return str(type)


@st.composite
def memory_programs(draw: Draw) -> str:
    """The text of a module; `main` takes 0 or 1."""
    writer = _Writer(draw)
    variables: list[str] = []
    for name, type in ALLOCATED:
        match draw(st.sampled_from(WAYS)):
            case "stack":
                writer.lines.append(f"%{name} = allocateStack {type} count 1")
            case "heap":
                writer.lines.append(f"%{name} = allocateHeap {type} count 1: i64")
            case "box":
                box = writer.write(f"allocateBox {type}")
                writer.lines.append(f"%{name} = projectBox {box}: box{{{type}}}")
            case _:
                variables.append(f"var @{name}: {type}\n")
                writer.lines.append(f"%{name} = literal @{name}: *{type}")
        writer.places.append((f"%{name}", type))
    writer.lines.append("%st = createStack")
    for name, type in ALLOCATED[:-2]:
        if type not in (PLAIN, MIXED) and (type in (P, CALL) or draw(st.booleans())):
            writer.store(writer.value(type), type, f"%{name}")
    for _ in range(draw(st.integers(3, 20))):
        writer.statement(2)
    result = writer.result()
    head = f"{''.join(variables)}func @main: (i64) -> {result} {{\n'entry(%x: i64):\n    "
    return HEAD + head + "\n    ".join(writer.lines) + "\n}\n"
