"""Random programs about pointers, as text: what leads where is as unclear as it can be made.

`@main(%x: i64)` has cells on the stack, on the heap and in a box, parts of tensors and structs, global
variables, pointers stored in memory, pointers that were cast, and a stack of values.  Statements load, store,
copy, push and call; choices and loops are structured ops, or at the outermost level also blocks.  The result is
everything that is in memory at the end, so that every store counts.  Everything ends, and nothing is used after
it is given back.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.values import Draw

HEAD = """module "m"
stage raw
struct $P { #a: i64, #b: <3 x i64> }
var @g: i64
var @h: i64
func @touch: (i64) -> i64 {
'entry(%x: i64):
    %p = literal @g: *i64
    %o = load %p: *i64
    store %x: i64 to %p: *i64
    return %o: i64
}
func @add: (*i64, *i64) -> i64 {
'entry(%p: *i64, %q: *i64):
    %u = load %p: *i64
    %v = load %q: *i64
    %s = add %u: i64, %v: i64
    store %s: i64 to %p: *i64
    %w = load %q: *i64
    return %w: i64
}
func @same: (*i64) -> *i64 {
'entry(%p: *i64):
    return %p: *i64
}
func @local: (i64) -> i64 {
'entry(%x: i64):
    %p = allocateStack i64 count 1
    %one = literal 1: i64
    %q = allocateHeap i64 count %one: i64
    store %x: i64 to %p: *i64
    store %one: i64 to %q: *i64
    %r = apply @add(%p, %q): (*i64, *i64) -> i64
    %l = load %p: *i64
    deallocate %q: *i64
    %s = multiply %r: i64, %l: i64
    return %s: i64
}
func @down: (i64, *i64) -> i64 {
'entry(%n: i64, %p: *i64):
    %more = greaterThan %n: i64, 0: i64
    %r = if %more: bool -> i64 {
    't():
        %u = load %p: *i64
        %v = add %u: i64, %n: i64
        store %v: i64 to %p: *i64
        %m = subtract %n: i64, 1: i64
        %w = apply @down(%m, %p): (i64, *i64) -> i64
        yield %w: i64
    } else {
    'e():
        %u = load %p: *i64
        yield %u: i64
    }
    return %r: i64
}
func @main: (i64) -> (i64, i64, i64, i64, i64, $P, <3 x i64>, <2 x i64>) {
'entry(%x: i64):
    %two = literal 2: i64
    %p = allocateStack i64 count 1
    %t = allocateStack <3 x i64> count 1
    %e0 = elementPointer %t: *<3 x i64> at 0
    %e1 = elementPointer %t: *<3 x i64> at 1
    %ei = elementPointer %t: *<3 x i64> at %x: i64
    %s = allocateHeap $P count %two: i64
    %s1 = offset %s: *$P by 1: i64
    %sa = elementPointer %s1: *$P at #a
    %sb = elementPointer %s1: *$P at #b, 2
    %a = allocateHeap i64 count %two: i64
    %a1 = offset %a: *i64 by 1: i64
    %ax = offset %a: *i64 by %x: i64
    %bx = allocateBox i64
    %b = projectBox %bx: box{i64}
    %k = allocateStack <2 x i64> count 1
    %k0 = elementPointer %k: *<2 x i64> at 0
    %kc = bitCast %k: *<2 x i64> to *i64
    %kn = bitCast %k0: *i64 to i64
    %k8 = add %kn: i64, 8: i64
    %k1 = bitCast %k8: i64 to *i64
    %g = literal @g: *i64
    %h = literal @h: *i64
    %pp = allocateStack *i64 count 1
    %st = createStack
"""

TAIL = """
    %r0 = load %p: *i64
    %r1 = load %g: *i64
    %r2 = load %h: *i64
    %r3 = load %b: *i64
    %ra = load %a: *i64
    %rb = load %a1: *i64
    %rc = multiply %rb: i64, 31: i64
    %r4 = add %ra: i64, %rc: i64
    %r5 = load %s1: *$P
    %r6 = load %t: *<3 x i64>
    %r7 = load %k: *<2 x i64>
    deallocate %s: *$P
    deallocate %a: *i64
    release %bx: box{i64}
    destroyStack %st: stack
    %r = literal (%r0: i64, %r1: i64, %r2: i64, %r3: i64, %r4: i64, %r5: $P, %r6: <3 x i64>, %r7: <2 x i64>): (
        i64, i64, i64, i64, i64, $P, <3 x i64>, <2 x i64>)
    return %r: (i64, i64, i64, i64, i64, $P, <3 x i64>, <2 x i64>)
}
"""

POINTERS = tuple("%p %e0 %e1 %ei %sa %sb %a %a1 %ax %b %g %h %q %k0 %kc %k1".split())


@dataclass
class _Writer:
    draw: Draw
    lines: list[str] = field(default_factory=list[str])
    count: int = 0

    def fresh(self) -> int:
        self.count += 1
        return self.count

    def pointer(self) -> str:
        return str(self.draw(st.sampled_from(POINTERS)))

    def number(self) -> int:
        """The number of a value `%v…` that is new."""
        k = self.fresh()
        kind = self.draw(st.integers(0, 3))
        if kind == 0:
            self.lines.append(f"%v{k} = literal {self.draw(st.integers(-3, 3))}: i64")
        elif kind == 1:
            self.lines.append(f"%v{k} = add %x: i64, {self.draw(st.integers(-1, 1))}: i64")
        else:
            self.lines.append(f"%v{k} = load {self.pointer()}: *i64")
        return k

    def statements(self, depth: int, *, blocks: bool) -> None:
        """Up to five statements, with bodies nested up to `depth`."""
        for _ in range(self.draw(st.integers(1, 5))):
            kind = self.draw(st.integers(0, 10 if depth else 7))
            if kind <= 7:
                self.simple(kind)
            elif kind == 8:
                self.choice(depth, blocks=blocks and self.draw(st.booleans()))
            elif kind == 9:
                self.loop(depth, blocks=blocks and self.draw(st.booleans()))
            else:
                self.repetition(depth)

    def simple(self, kind: int) -> None:
        k = self.fresh()
        add = self.lines.append
        match kind:
            case 0 | 1:
                u, v = self.number(), self.number()
                add(f"%m{k} = multiply %v{u}: i64, 3: i64")
                add(f"%n{k} = add %m{k}: i64, %v{v}: i64")
                add(f"store %n{k}: i64 to {self.pointer()}: *i64")
            case 2:
                add(f"store {self.draw(st.integers(-3, 3))}: i64 to {self.pointer()}: *i64")
            case 3:
                add(f"%c{k} = literal 1: i64")
                add(f"copy from {self.pointer()}: *i64 to {self.pointer()}: *i64 count %c{k}: i64")
            case 4:
                add(f"%f{k} = apply @add({self.pointer()}, {self.pointer()}): (*i64, *i64) -> i64")
                add(f"store %f{k}: i64 to {self.pointer()}: *i64")
            case 5:
                u = self.number()
                callee = self.draw(st.sampled_from(("touch", "local")))
                add(f"%f{k} = apply @{callee}(%v{u}): (i64) -> i64")
                if self.draw(st.booleans()):
                    add(f"store %f{k}: i64 to {self.pointer()}: *i64")
            case 6:
                u = self.number()
                add(f"push %v{u}: i64 to %st: stack")
                add(f"%f{k} = apply @down(%two, {self.pointer()}): (i64, *i64) -> i64")
                add(f"%o{k} = pop i64 from %st: stack")
                add(f"store %o{k}: i64 to {self.pointer()}: *i64")
            case _:
                add(f"%q{k} = apply @same({self.pointer()}): (*i64) -> *i64")
                u = self.number()
                add(f"store %v{u}: i64 to %q{k}: *i64")

    def condition(self, k: int) -> None:
        u = self.number()
        bound = self.draw(st.integers(-1, 2))
        self.lines.append(f"%c{k} = greaterThan %v{u}: i64, {bound}: i64")

    def choice(self, depth: int, *, blocks: bool) -> None:
        k = self.fresh()
        self.condition(k)
        if blocks:
            self.lines.append(f"conditional %c{k}: bool then 't{k}() else 'e{k}()")
            for name in ("t", "e"):
                self.lines.append(f"'{name}{k}():")
                self.statements(depth - 1, blocks=True)
                self.lines.append(f"branch 'j{k}()")
            self.lines.append(f"'j{k}():")
            return
        self.lines += [f"%y{k} = if %c{k}: bool -> i64 {{", f"'t{k}():"]
        self.statements(depth - 1, blocks=False)
        self.lines += [f"yield %v{self.number()}: i64", "} else {", f"'e{k}():"]
        self.statements(depth - 1, blocks=False)
        self.lines += [f"yield %v{self.number()}: i64", "}"]
        self.lines.append(f"store %y{k}: i64 to {self.pointer()}: *i64")

    def loop(self, depth: int, *, blocks: bool) -> None:
        k = self.fresh()
        trips = self.draw(st.integers(0, 2))
        if blocks:
            self.lines += [
                f"branch 'h{k}(0: i64)",
                f"'h{k}(%i{k}: i64):",
                f"%c{k} = lessThan %i{k}: i64, {trips}: i64",
                f"conditional %c{k}: bool then 'b{k}() else 'o{k}()",
                f"'b{k}():",
            ]
            self.statements(depth - 1, blocks=True)
            self.lines += [
                f"%j{k} = add %i{k}: i64, 1: i64",
                f"branch 'h{k}(%j{k}: i64)",
                f"'o{k}():",
            ]
            return
        u = self.number()
        self.lines += [
            f"%y{k} = for 0: i64 upto {trips}: i64 carrying %v{u}: i64 {{",
            f"'b{k}(%i{k}: i64, %w{k}: i64):",
        ]
        self.statements(depth - 1, blocks=False)
        self.lines += [
            f"store %w{k}: i64 to {self.pointer()}: *i64",
            f"yield %v{self.number()}: i64",
            "}",
            f"store %y{k}: i64 to {self.pointer()}: *i64",
        ]

    def repetition(self, depth: int) -> None:
        """A `while`, whose condition may store, too."""
        k = self.fresh()
        self.lines += [f"%y{k} = while carrying 0: i64 {{", f"'c{k}(%i{k}: i64):"]
        if self.draw(st.booleans()):
            self.simple(self.draw(st.integers(0, 5)))
        self.lines += [
            f"%c{k} = lessThan %i{k}: i64, {self.draw(st.integers(0, 2))}: i64",
            f"yield %c{k}: bool",
            "} do {",
            f"'d{k}(%j{k}: i64):",
        ]
        self.statements(depth - 1, blocks=False)
        self.lines += [f"%n{k} = add %j{k}: i64, 1: i64", f"yield %n{k}: i64", "}"]


@st.composite
def pointer_programs(draw: Draw) -> str:
    """The text of a module; `main` takes 0 or 1."""
    writer = _Writer(draw)
    kept = draw(st.sampled_from([p for p in POINTERS if p != "%q"]))
    writer.lines += [f"store {kept}: *i64 to %pp: **i64", "%q = load %pp: **i64"]
    for cell in ("%p", "%a", "%a1", "%b"):
        if draw(st.booleans()):
            writer.lines.append(f"store {draw(st.integers(-3, 3))}: i64 to {cell}: *i64")
    writer.statements(2, blocks=True)
    return HEAD + "\n".join(writer.lines) + TAIL
