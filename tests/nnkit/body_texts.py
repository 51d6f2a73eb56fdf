"""Writes lines of random programs of the language: what stands in a function; see `program_texts`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

Choose = Callable[[int, int], int]
"""A number between two, both included."""

N, V, M, I, P = "Number", "Vector", "Matrix", "Count", "Pair"
FLOATS: Final = (N, V, M)
LETTERS: Final = {N: "s", V: "v", M: "m", I: "n", P: "p"}

UNARY: Final = (
    "sin({})", "tanh({})", "cos({})", "-{}", "square({})", "absolute({})", "exp(tanh({}))",
    "sqrt(square({}) + 1.0)", "{} * 0.5", "1.0 - {}", "by_jvp({})", "by_vjp({})", "by_both({})",
)  # fmt: skip
BINARY: Final = (
    "{} + {}", "{} - {}", "tanh({} * {})", "{} * sin({})", "maximum({}, {})", "minimum({}, {})",
    "{} / (square({}) + 1.0)",
)  # fmt: skip
WRITES: Final = ("=", "=", "+=", "+=", "*=", "-=")
STACKED: Final = {N: V, V: M}
"""Three of a kind."""

UPDATES: Final = ("put", "added", "multiplied", "greatest", "least")


@dataclass(frozen=True)
class Signature:
    name: str
    parameters: tuple[str, ...]
    results: tuple[str, ...]


@dataclass
class BodyText:
    """Lines in the making; `names` and `refs` are what the line to be written sees, `functions` what it may call."""

    choose: Choose
    lines: list[str] = field(default_factory=list[str])
    depth: int = 1
    names: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    refs: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    functions: list[Signature] = field(default_factory=list[Signature])
    read_only: int = 0
    """How many of the refs cannot be written here: the order of elements is not known in `map`."""
    count: int = 0
    nesting: int = 0
    most_nesting: int = 2

    # what is chosen

    def flag(self, of: int = 2) -> bool:
        """True once in `of`."""
        return self.choose(1, of) == of

    def pick(self, items: Sequence[str]) -> str:
        return items[self.choose(0, len(items) - 1)]

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def of(self, type: str) -> str:
        """A value of that type: mostly one of the last."""
        found = [name for name, each in self.names if each == type]
        if found and not self.flag(10):
            last = len(found) - 1
            return found[last - min(self.choose(0, last), self.choose(0, 2 * last))]
        return self.literal(type)

    def literal(self, type: str) -> str:
        number = self.pick(("0.0", "1.0", "0.5", "-0.75", "1.5"))
        if type == I:
            return f"whole({self.choose(-1, 3)})"
        if type == P:
            return f"pair({self.of(V)}, {self.of(N)})"
        return {N: f"real({number})", V: f"row({number})", M: f"table({number})"}[type]

    def keep(self, type: str, text: str) -> str:
        """A line that gives what `text` is a name."""
        name = self.fresh(LETTERS[type])
        self.line(f"{name} = {text}")
        self.names.append((name, type))
        return name

    def small(self) -> str:
        """A count from −1 to 2, known when the program runs."""
        return f"({self.of(I)} % 4 - 1)"

    def index(self) -> str:
        """Of three elements."""
        kind = self.choose(0, 5)
        if kind < 2:
            return str(self.choose(-3, 2))
        return f"argmax({self.of(V)})" if kind == 2 else f"{self.of(I)} % 3"

    def condition(self) -> str:
        if self.flag():
            return f"{self.of(I)} % 2 == 0"
        number = self.pick(("0.0", "0.3"))
        return f"{self.of(N)} {self.pick(('>', '<', '>=', '<='))} {number}"

    # lines

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()

    def step(self) -> None:
        kinds = [
            self.unary, self.binary, self.binary, self.moved, self.element, self.updated, self.counted, self.chosen,
            self.paired, self.made_ref,
        ]  # fmt: skip
        if self.refs:
            kinds += [self.read_ref]
        if self.writable:
            kinds += [self.write_ref, self.write_ref]
        if self.functions:
            kinds += [self.call, self.call, self.batch]
        if self.nesting < self.most_nesting:
            kinds += [self.cond, self.fori, self.fori, self.while_loop, self.rows]
        kinds[self.choose(0, len(kinds) - 1)]()

    def unary(self) -> None:
        type = self.pick(FLOATS)
        if self.flag(8):
            root = self.pick(("rooted", "solved"))
            self.keep(N, f"{root}(square({self.of(N)}) + 1.0)")
            return
        self.keep(type, self.pick(UNARY).format(self.of(type)))

    def binary(self) -> None:
        type = self.pick(FLOATS)
        x, y = self.of(type), self.of(self.pick((type, type, N)))
        if self.flag(4) and type == M:
            x, y = self.of(M), self.of(V)
        self.keep(type, self.pick(BINARY).format(x, y))

    def moved(self) -> None:
        kind = self.choose(0, 9)
        x, y, m = self.of(V), self.of(V), self.of(M)
        moves = [
            (N, f"{x}.sum()"), (N, f"{m}.mean()"), (N, f"{x}.max()"), (V, f"{m}.sum({self.choose(0, 1)})"),
            (V, f"tanh({m} @ {x})"), (M, f"outer({x}, {y})"), (M, f"tanh({m} @ {self.of(M)})"), (M, f"{m}.T"),
            (N, f"tanh({x} @ {y})"), (V, f"stacked({self.of(N)}, {self.of(N)}, {self.of(N)})"),
        ]  # fmt: skip
        self.keep(*moves[kind])

    def element(self) -> None:
        kind = self.choose(0, 3)
        if kind == 0:
            self.keep(N, f"{self.of(V)}[{self.index()}]")
        elif kind == 1:
            self.keep(V, f"{self.of(M)}[{self.index()}]")
        elif kind == 2:
            self.keep(N, f"{self.of(M)}[{self.index()}, {self.index()}]")
        else:
            self.keep(V, f"taken({self.of(V)}, AT)")

    def updated(self) -> None:
        update = self.pick(UPDATES)
        if self.flag():
            self.keep(V, f"{update}({self.of(V)}, {self.index()}, {self.of(N)})")
        elif self.flag():
            self.keep(V, f"{update}({self.of(V)}, AT, {self.of(V)})")
        else:
            self.keep(M, f"{update}({self.of(M)}, {self.index()}, {self.of(V)})")

    def counted(self) -> None:
        kind = self.choose(0, 2)
        if kind == 0:
            self.keep(I, f"{self.of(I)} {self.pick(('+', '-'))} {self.of(I)} % 3")
        elif kind == 1:
            self.keep(N, f"{self.of(N)} * as_real({self.of(I)} % 5)")
        else:
            self.keep(I, f"wide(argmax({self.of(V)}))")

    def chosen(self) -> None:
        """What is not chosen may be no number."""
        x = self.of(V)
        kind = self.choose(0, 4)
        if kind == 0:
            self.keep(V, f"select({x} > 0.3, sqrt({x} - 0.3), {x} * 2.0)")
        elif kind == 1:
            self.keep(V, f"select({x} > {self.of(V)}, {x}, {self.of(V)})")
        elif kind == 2:
            s = self.of(N)
            self.keep(N, f"select({s} > 0.3, log({s} - 0.3), {self.of(N)})")
        elif kind == 3:
            self.keep(V, f"{x} * mask()")
        else:
            self.line(f"check({self.of(I)} % 4 > -9, 'a remainder')")

    def paired(self) -> None:
        if self.flag():
            self.keep(P, self.literal(P))
        else:
            p = self.of(P)
            self.keep(*((V, f"{p}[ROW]") if self.flag() else (N, f"{p}[NUMBER]")))

    # refs

    def made_ref(self) -> None:
        type = self.pick((V, V, M, N))
        name = self.fresh("r")
        self.line(f"{name} = ref({self.of(type)})")
        self.refs.append((name, type))

    def read_ref(self) -> None:
        name, type = self.refs[self.choose(0, len(self.refs) - 1)]
        if type == N or self.flag(3):
            self.keep(type, f"{name}[...]")
        elif type == V:
            self.keep(N, f"{name}[{self.index()}]")
        elif self.flag():
            self.keep(V, f"{name}[{self.index()}]")
        else:
            self.keep(N, f"{name}[{self.index()}, {self.index()}]")

    @property
    def writable(self) -> list[tuple[str, str]]:
        return self.refs[self.read_only :]

    def write_ref(self) -> None:
        name, type = self.writable[self.choose(0, len(self.writable) - 1)]
        by = self.pick(WRITES)
        if type == N or self.flag(5):
            self.line(f"{name}[...] {by} {self.of(type)}")
        elif type == V:
            kind = self.choose(0, 4)
            if kind == 4:
                self.line(f"{name}[1:] {by} {self.of(V)}[:2]")
            elif kind == 3:
                self.line(f"{name}[AT] = {self.of(V)}")
            else:
                self.line(f"{name}[{self.index()}] {by} {self.of(N)}")
        elif self.flag():
            self.line(f"{name}[{self.index()}] {by} {self.of(self.pick((V, N)))}")
        else:
            self.line(f"{name}[{self.index()}, {self.index()}] {by} {self.of(N)}")

    # calls

    def call(self) -> None:
        callee = self.functions[self.choose(0, len(self.functions) - 1)]
        first = (
            [self.small()]
            if callee.name.startswith("recursive")
            else [self.of(callee.parameters[0])]
        )
        given = first + [self.of(type) for type in callee.parameters[1:]]
        self.unpacked(callee.results, f"{callee.name}({', '.join(given)})")

    def unpacked(self, types: Sequence[str], text: str) -> None:
        """A line that gives each of several values a name."""
        if not types:
            self.line(text)
        elif len(types) == 1:
            self.keep(types[0], text)
        else:
            self.keep_all(types, text)

    def keep_all(self, types: Sequence[str], text: str) -> None:
        names = [self.fresh(LETTERS[type]) for type in types]
        self.line(f"{', '.join(names)} = {text}")
        self.names += zip(names, types, strict=True)

    def batch(self) -> None:
        """A function of one element for three, of which all results are added up."""
        callee = self.functions[self.choose(0, len(self.functions) - 1)]
        given: list[str] = []
        axes: list[str] = []
        for type in callee.parameters:
            differs = type in (N, V, I) and (not self.flag(3))
            axis = self.choose(0, 1) if type == V else 0
            axes.append(str(axis) if differs else "None")
            if not differs:
                given.append(self.small() if type == I else self.of(type))
            else:
                given.append("COUNTS" if type == I else self.of(STACKED[type]))
        if all(axis == "None" for axis in axes):
            return
        out = self.choose(0, 1) if callee.results == (V,) else 0
        made = (
            f"vmap({callee.name}, in_axes=({', '.join(axes)},), out_axes={out})({', '.join(given)})"
        )
        self.unpacked([STACKED[type] for type in callee.results], made)

    # bodies

    def body(
        self,
        header: str,
        parameters: Sequence[tuple[str, str]],
        results: Sequence[str],
        *,
        first: Sequence[str] = (),
        counter: str = "",
        write: Callable[[], None] | None = None,
    ) -> None:
        """A function inside, which sees what is around it; `counter` is returned before its results."""
        names, refs = list(self.names), list(self.refs)
        self.line(header)
        self.depth += 1
        self.nesting += 1
        for line in first:
            self.line(line)
        self.names += parameters
        if write:
            write()
        else:
            self.steps(self.choose(1, 3))
        if not results:
            self.refs = refs  # one from outside
        if self.writable and (self.flag() or not results):
            self.write_ref()
        returned = [*filter(None, [counter]), *map(self.given, results)]
        self.line(f"return {several(returned)}" if returned else "pass")
        self.nesting -= 1
        self.depth -= 1
        self.names, self.refs = names, refs

    def given(self, type: str) -> str:
        """What a body gives, kept from growing."""
        if self.flag(3) or type in (I, P):
            return self.of(type)
        return f"tanh({self.of(type)}) * 2.0" if self.flag() else f"{self.of(type)} * 0.7"

    def types(self, most: int) -> list[str]:
        return [self.pick((N, V, V, M, P, I)) for _ in range(self.choose(1, most))]

    def cond(self) -> None:
        then, otherwise = self.fresh("then"), self.fresh("otherwise")
        results = [] if self.writable and self.flag(4) else self.types(2)
        condition = self.condition()
        for name in (then, otherwise):
            self.body(f"def {name}():", (), results)
        self.unpacked(results, f"cond({condition}, {then}, {otherwise})")

    def bounds(self) -> str:
        low = self.choose(-1, 1)
        if self.flag():
            return f"{low}, {self.choose(-1, 4)}"
        return f"{low}, {self.small()} + {self.choose(0, 2)}"

    def schedule(self) -> str:
        """Loops with schedules are functions of their own, which refs from around are not seen in."""
        return ", checkpoint=SCHEDULE" if not self.refs and self.flag() else ""

    def fori(self) -> None:
        bounds = self.bounds()
        name, i = self.fresh("body"), self.fresh("i")
        carried = [] if self.writable and self.flag(3) else self.types(3)
        names, first, header = self.carries(carried)
        parameters = [*zip(names, carried, strict=True), (i, I)]
        first = [f"{i} = wide({i})", *first]
        self.body(
            f"def {name}({', '.join(filter(None, (i, header)))}):", parameters, carried, first=first
        )
        init = f", {several([self.of(type) for type in carried])}" if carried else ""
        self.unpacked(carried, f"fori({bounds}, {name}{init}{self.schedule()})")

    def carries(self, types: Sequence[str]) -> tuple[list[str], list[str], str]:
        """Names of what is carried, how they come out of the parameter of a body, and this one."""
        names = [self.fresh("c") for _ in types]
        if len(names) < 2:
            return names, [], "".join(names)
        c = self.fresh("c")
        return names, [f"{', '.join(names)} = {c}"], c

    def while_loop(self) -> None:
        """By a counter, and a number that may end it before."""
        test, name = self.fresh("test"), self.fresh("body")
        carried = [self.pick((N, V)), *self.types(2)]
        names, first, c = self.carries([I, *carried])
        size = f"{c}[1]" if carried[0] == N else f"{c}[1].sum()"
        also = f" & (absolute({size}) < 1.7)" if self.flag() else ""
        self.line(f"def {test}({c}):")
        self.line(f"    return ({c}[0] < 3){also}")
        parameters = [*zip(names, [I, *carried], strict=True)]
        counter = f"{names[0]} + 1"
        self.body(f"def {name}({c}):", parameters, carried, first=first, counter=counter)
        start = self.small() if self.flag() else f"whole({self.choose(0, 3)})"
        init = several([start, *(self.of(type) for type in carried)])
        self.unpacked([I, *carried], f"while_loop({test}, {name}, {init}{self.schedule()})")

    def rows(self) -> None:
        """`map`, `fold` or `scan` of the elements of a vector or the rows of a matrix."""
        whole = self.pick((V, M))
        each = {V: N, M: V}[whole]
        name, e, c = self.fresh("body"), self.fresh("e"), self.fresh("c")
        xs, kind, made = self.of(whole), self.pick(("map", "fold", "scan")), self.pick((N, V))
        if kind == "map":
            before, self.read_only = self.read_only, len(self.refs)
            self.body(f"def {name}({e}):", [(e, each)], [made])
            self.read_only = before
            self.keep(STACKED[made], f"mapped({xs}, {name})")
            return
        carried = self.pick((N, V, P))
        results = [carried] if kind == "fold" else [carried, made]
        self.body(f"def {name}({c}, {e}):", [(c, carried), (e, each)], results)
        kept = [carried] if kind == "fold" else [carried, STACKED[made]]
        rest = f"({xs}, {self.of(carried)}, {name}{self.schedule()})"
        self.unpacked(kept, f"{'folded' if kind == 'fold' else 'scanned'}{rest}")


def several(texts: Sequence[str]) -> str:
    """One, or a tuple."""
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
