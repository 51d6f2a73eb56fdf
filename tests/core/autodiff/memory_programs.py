"""Random programs of floats in memory, as text: what is overwritten, aliased, indexed and passed on is up to chance.

`@main(%x: f64, %y: f64, %k: i64) -> f64`, with k in 0 … 2, has memory on the stack, on the heap and in a box, of
numbers, tensors and structs.  Statements load, store, copy and call; choices and loops pass pointers on, and have
memory of their own.  The result is the sum of all that is in memory at the end, so that every store counts, and is
smooth in x and y.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.values import Draw

HEAD = """module "m"
stage raw
struct $P { #a: f64, #n: i64, #b: <3 x f64>, #c: [2 x f64] }
func @mix: (*f64, *f64, f64) -> f64 {
'entry(%p: *f64, %q: *f64, %x: f64):
    %u = load %p: *f64
    %v = load %q: *f64
    %s = multiply %u: f64, %v: f64
    %t = add %s: f64, %x: f64
    %w = sin %t: f64
    store %w: f64 to %p: *f64
    %r = load %q: *f64
    return %r: f64
}
func @scale: (*f64, f64) -> void {
'entry(%p: *f64, %x: f64):
    %u = load %p: *f64
    %v = multiply %u: f64, %x: f64
    store %v: f64 to %p: *f64
    return
}
func @own: (f64) -> f64 {
'entry(%x: f64):
    %p = allocateStack f64 count 2
    %h = allocateHeap f64 count 2: i64
    %q = offset %p: *f64 by 1: i64
    store %x: f64 to %q: *f64
    copy from %p: *f64 to %h: *f64 count 2: i64
    %r = apply @mix(%h, %q, %x): (*f64, *f64, f64) -> f64
    %s = load %h: *f64
    deallocate %h: *f64
    %t = multiply %r: f64, %s: f64
    return %t: f64
}
func @down: (i64, *f64, *f64) -> f64 {
'entry(%n: i64, %p: *f64, %q: *f64):
    %more = greaterThan %n: i64, 0: i64
    %r = if %more: bool -> f64 {
    't():
        %u = load %p: *f64
        %v = cos %u: f64
        store %v: f64 to %q: *f64
        %m = subtract %n: i64, 1: i64
        %w = apply @down(%m, %q, %p): (i64, *f64, *f64) -> f64
        %z = multiply %w: f64, %u: f64
        yield %z: f64
    } else {
    'e():
        %u = load %p: *f64
        yield %u: f64
    }
    return %r: f64
}
func @main: (f64, f64, i64) -> f64 {
'entry(%x: f64, %y: f64, %k: i64):
    %p = allocateStack f64 count 3
    %p1 = offset %p: *f64 by 1: i64
    %pk = offset %p: *f64 by %k: i64
    %t = allocateStack <3 x f64> count 1
    %t0 = elementPointer %t: *<3 x f64> at 0
    %tk = elementPointer %t: *<3 x f64> at %k: i64
    %s = allocateHeap $P count 2: i64
    %s1 = offset %s: *$P by 1: i64
    %sa = elementPointer %s1: *$P at #a
    %sb = elementPointer %s1: *$P at #b
    %sk = elementPointer %s: *$P at #b, %k: i64
    %sc = elementPointer %s: *$P at #c, 1
    %size = add %k: i64, 3: i64
    %h = allocateHeap f64 count %size: i64
    %h2 = offset %h: *f64 by 2: i64
    %hk = offset %h: *f64 by %k: i64
    %bx = allocateBox f64
    %b = projectBox %bx: box{f64}
    %v0 = add %x: f64, 0.0: f64
    %v1 = multiply %x: f64, %y: f64
"""

TAIL = """
    %r0 = for 0: i64 upto 3: i64 carrying 0.0: f64 {
    'sum(%ri: i64, %rs: f64):
        %rp = offset %p: *f64 by %ri: i64
        %rh = offset %h: *f64 by %ri: i64
        %rt = elementPointer %t: *<3 x f64> at %ri: i64
        %ra = load %rp: *f64
        %rb = load %rh: *f64
        %rc = load %rt: *f64
        %rd = multiply %ra: f64, 0.5: f64
        %re = add %rd: f64, %rb: f64
        %rf = multiply %re: f64, 0.7: f64
        %rg = add %rf: f64, %rc: f64
        %rn = add %rs: f64, %rg: f64
        yield %rn: f64
    }
    %r1 = load %b: *f64
    %r2 = load %s1: *$P
    %r3 = extract #a from %r2: $P
    %r4 = extract #b from %r2: $P
    %r5 = reduce %r4: <3 x f64> by add along 0
    %r6 = load %sc: *f64
    %r7 = load %sk: *f64
    deallocate %s: *$P
    deallocate %h: *f64
    release %bx: box{f64}
    %q1 = add %r0: f64, %r1: f64
    %q2 = add %q1: f64, %r3: f64
    %q3 = add %q2: f64, %r5: f64
    %q4 = add %q3: f64, %r6: f64
    %q5 = multiply %q4: f64, 0.9: f64
    %q6 = add %q5: f64, %r7: f64
    return %q6: f64
}
"""

POINTERS = ("%p", "%p1", "%pk", "%t0", "%tk", "%sa", "%sk", "%sc", "%h", "%h2", "%hk", "%b")
TRIPLES = ("%t", "%sb")
"""Pointers to <3 x f64>."""
ROWS = ("%p", "%h")
"""Pointers to three f64 or more, side by side."""


@dataclass
class _Writer:
    draw: Draw
    lines: list[str] = field(default_factory=list[str])
    count: int = 10
    values: list[str] = field(default_factory=lambda: ["%x", "%y", "%v0", "%v1"])
    pointers: list[str] = field(default_factory=lambda: [*POINTERS])
    indices: list[str] = field(default_factory=lambda: ["%k"])
    """Those of i64 in 0 … 2."""

    def fresh(self) -> int:
        self.count += 1
        return self.count

    def one(self, names: list[str] | tuple[str, ...]) -> str:
        return str(self.draw(st.sampled_from(names)))

    def number(self) -> str:
        """A value: one there is, or loaded now."""
        if self.draw(st.booleans()):
            return self.one(self.values)
        k = self.fresh()
        self.lines.append(f"%v{k} = load {self.one(self.pointers)}: *f64")
        self.values.append(f"%v{k}")
        return f"%v{k}"

    def mixed(self) -> str:
        """A new value made of two."""
        u, v = self.number(), self.number()
        k = self.fresh()
        op = self.one(("multiply", "add", "subtract"))
        self.lines += [f"%m{k} = {op} {u}: f64, {v}: f64", f"%v{k} = sin %m{k}: f64"]
        self.values.append(f"%v{k}")
        return f"%v{k}"

    def statements(self, depth: int) -> None:
        for _ in range(self.draw(st.integers(1, 4))):
            kind = self.draw(st.integers(0, 11 if depth else 6))
            match kind:
                case 0 | 1:
                    self.lines.append(
                        f"store {self.mixed()}: f64 to {self.one(self.pointers)}: *f64"
                    )
                case 2:
                    self.move()
                case 3:
                    self.triple()
                case 4 | 5:
                    self.call()
                case 6:
                    self.element()
                case 7 | 8:
                    self.choice(depth)
                case 9 | 10:
                    self.loop(depth)
                case _:
                    self.repetition(depth)

    def inside(self, depth: int) -> tuple[list[str], list[str], list[str]]:
        """The names there are, before a body."""
        names = [*self.values], [*self.pointers], [*self.indices]
        self.statements(depth - 1)
        return names

    def leave(self, names: tuple[list[str], list[str], list[str]]) -> None:
        self.values, self.pointers, self.indices = names

    def move(self) -> None:
        one, other = self.one(ROWS), self.one(ROWS)
        k = self.fresh()
        offsets = self.draw(st.tuples(st.integers(0, 1), st.integers(0, 1)))
        count = self.draw(st.sampled_from(("2: i64", "0: i64", f"{self.one(self.indices)}: i64")))
        self.lines += [
            f"%a{k} = offset {one}: *f64 by {offsets[0]}: i64",
            f"%c{k} = offset {other}: *f64 by {offsets[1]}: i64",
            f"copy from %a{k}: *f64 to %c{k}: *f64 count {count}",
        ]

    def triple(self) -> None:
        k = self.fresh()
        self.lines += [
            f"%l{k} = load {self.one(TRIPLES)}: *<3 x f64>",
            f"%m{k} = multiply %l{k}: <3 x f64>, {self.number()}: f64",
            f"%n{k} = sin %m{k}: <3 x f64>",
            f"%o{k} = add %n{k}: <3 x f64>, {self.number()}: f64",
            f"store %o{k}: <3 x f64> to {self.one(TRIPLES)}: *<3 x f64>",
        ]

    def element(self) -> None:
        """A pointer by an index."""
        k = self.fresh()
        index = self.one(self.indices)
        if self.draw(st.booleans()):
            made = f"elementPointer {self.one(TRIPLES)}: *<3 x f64> at {index}: i64"
        else:
            made = f"offset {self.one(ROWS)}: *f64 by {index}: i64"
        self.lines.append(f"%g{k} = {made}")
        self.pointers.append(f"%g{k}")

    def call(self) -> None:
        k = self.fresh()
        p, q, x = self.one(self.pointers), self.one(self.pointers), self.number()
        match self.draw(st.integers(0, 3)):
            case 0:
                self.lines.append(f"%v{k} = apply @mix({p}, {q}, {x}): (*f64, *f64, f64) -> f64")
            case 1:
                self.lines.append(f"%v{k} = apply @own({x}): (f64) -> f64")
            case 2:
                n = self.one(self.indices)
                self.lines.append(f"%v{k} = apply @down({n}, {p}, {q}): (i64, *f64, *f64) -> f64")
            case _:
                self.lines.append(f"apply @scale({p}, {x}): (*f64, f64) -> void")
                return
        self.values.append(f"%v{k}")

    def choice(self, depth: int) -> None:
        """It yields a value and a pointer."""
        k = self.fresh()
        self.lines.append(
            f"%c{k} = greaterThan {self.one(self.indices)}: i64, {self.draw(st.integers(0, 1))}: i64"
        )
        is_pointer = self.draw(st.booleans())
        results = (
            f"%y{k}, %g{k} = if %c{k}: bool -> f64, *f64"
            if is_pointer
            else f"%y{k} = if %c{k}: bool -> f64"
        )
        self.lines.append(f"{results} {{")
        for name, end in (("t", "} else {"), ("e", "}")):
            self.lines.append(f"'{name}{k}():")
            outer = self.inside(depth)
            value = self.mixed()
            # what has been made in a branch is known afterwards if it leads on by a count, or by an index from around
            chosen = self.one(outer[1]) if is_pointer else ""
            if is_pointer and self.draw(st.booleans()):
                index, j = self.one(outer[2]), self.fresh()
                self.lines.append(f"%g{j} = elementPointer %sb: *<3 x f64> at {index}: i64")
                chosen = f"%g{j}"
            self.lines.append(
                f"yield {value}: f64, {chosen}: *f64" if is_pointer else f"yield {value}: f64"
            )
            self.lines.append(end)
            self.leave(outer)
        self.values.append(f"%y{k}")
        if is_pointer:
            self.pointers.append(f"%g{k}")

    def own_memory(self, k: int) -> str:
        """Memory of a body, which what gives it back is returned."""
        if self.draw(st.booleans()):
            return ""
        kind = self.draw(st.booleans())
        allocated = "allocateHeap f64 count 1: i64" if kind else "allocateStack f64 count 1"
        self.lines += [f"%z{k} = {allocated}", f"store {self.mixed()}: f64 to %z{k}: *f64"]
        self.pointers.append(f"%z{k}")
        return f"deallocate %z{k}: *f64" if kind else ""

    def loop(self, depth: int) -> None:
        """It carries a value, and two pointers that change places or go on."""
        k = self.fresh()
        trips = self.draw(
            st.sampled_from(("2: i64", "3: i64", "0: i64", f"{self.one(self.indices)}: i64"))
        )
        first = self.number()
        carries = self.draw(st.integers(0, 2))
        outer = [*self.values], [*self.pointers], [*self.indices]
        self.indices.append(f"%i{k}")
        if carries == 0:
            head = f"%y{k} = for 0: i64 upto {trips} carrying {first}: f64 {{"
            arguments, end = f"%w{k}: f64", ""
        elif carries == 1:
            p, q = self.one(self.pointers), self.one(self.pointers)
            head = f"%y{k}, %g{k}, %h{k} = for 0: i64 upto {trips} carrying {first}: f64, {p}: *f64, {q}: *f64 {{"
            arguments, end = f"%w{k}: f64, %d{k}: *f64, %e{k}: *f64", f", %e{k}: *f64, %d{k}: *f64"
            self.pointers += [f"%d{k}", f"%e{k}"]
        else:
            trips = "2: i64"
            head = f"%y{k}, %g{k} = for 0: i64 upto {trips} carrying {first}: f64, {self.one(ROWS)}: *f64 {{"
            arguments, end = f"%w{k}: f64, %d{k}: *f64", f", %f{k}: *f64"
            self.pointers.append(f"%d{k}")
        self.lines += [head, f"'b{k}(%i{k}: i64, {arguments}):"]
        self.values.append(f"%w{k}")
        back = self.own_memory(k)
        self.statements(depth - 1)
        value = self.mixed()
        if carries == 2:
            self.lines.append(f"%f{k} = offset %d{k}: *f64 by 1: i64")
        self.lines += [*([back] if back else []), f"yield {value}: f64{end}", "}"]
        self.leave(outer)
        self.values.append(f"%y{k}")
        self.pointers += {0: [], 1: [f"%g{k}", f"%h{k}"], 2: [f"%g{k}"]}[carries]

    def repetition(self, depth: int) -> None:
        k = self.fresh()
        bound = self.one(self.indices)
        self.lines += [
            f"%u{k} = while carrying 0: i64 {{",
            f"'c{k}(%i{k}: i64):",
            f"%c{k} = lessThan %i{k}: i64, {bound}: i64",
            f"yield %c{k}: bool",
            "} do {",
            f"'d{k}(%j{k}: i64):",
        ]
        outer = self.inside(depth)
        self.lines += [f"%n{k} = add %j{k}: i64, 1: i64", f"yield %n{k}: i64", "}"]
        self.leave(outer)


@st.composite
def memory_programs(draw: Draw, depth: int = 2) -> str:
    """The text of a module."""
    writer = _Writer(draw)
    for place in ("%p", "%p1", "%h2", "%b", "%tk", "%sa"):
        if draw(st.booleans()):
            writer.lines.append(f"store {writer.mixed()}: f64 to {place}: *f64")
    writer.statements(depth)
    return HEAD + "\n".join(writer.lines) + TAIL
