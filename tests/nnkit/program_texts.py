"""Random well-typed programs of the language, as the text that a user would have written.

`program_text(choices)` is a module of staged functions, of which `main` is to be differentiated:

    calls       of functions, checkpoints, functions with rules of their own, functions with structs; recursion, by one
                function or two, once or twice in a body; batches of all of them
    choices     closures that return one value or several, or only write to refs
    loops       `fori` with bounds of literals or known when it runs, from below zero, by steps, empty, without a carry;
                `while_loop` by a counter and a number; `fold`, `scan`, `map` of rows; tuples and structs are carried
    refs        of vectors and matrices: read, written and added to at literals, counters, what is computed, indices
                that repeat, slices and as a whole, inside and around all of these
    values      `x.at`, rows, products, reductions, choices behind which there is no number, random masks, checks

The same text means the same in NumPy (`numpy_language`), so that values and differences are computed without the
compiler.  All programs end: what counts is small, and falls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from .body_texts import FLOATS, BodyText, Choose, I, M, N, P, Signature, V, several


class ProgramText(BodyText):
    """A module of functions in the making."""

    def function(
        self,
        name: str,
        parameters: Sequence[str],
        results: Sequence[str],
        write: Callable[[], Sequence[str]],
    ) -> None:
        names = [self.fresh("a") for _ in parameters]
        typed = ", ".join(
            f"{one}: Rep[{type}]" for one, type in zip(names, parameters, strict=True)
        )
        result = (
            f"Rep[{results[0]}]"
            if len(results) == 1
            else f"tuple[{', '.join(f'Rep[{each}]' for each in results)}]"
        )
        self.names, self.refs = [*zip(names, parameters, strict=True)], []
        self.lines.append("@staged")
        self.lines.append(f"def {name}({typed}) -> {result}:")
        self.line(f"return {several(write())}")
        self.lines.append("")

    def helper(self, name: str) -> None:
        parameters = [self.pick((N, V, V, P, I)) for _ in range(self.choose(1, 3))]
        if I in parameters[:1]:
            parameters[0] = V
        results = [self.pick((N, V)) for _ in range(self.choose(1, 2))]

        def write() -> Sequence[str]:
            self.steps(self.choose(1, 4))
            return [self.given(type) for type in results]

        self.most_nesting = 1
        self.function(name, parameters, results, write)
        self.most_nesting = 2
        if self.flag(4):
            self.lines += [f"{name} = checkpoint({name})", ""]
        self.functions.append(Signature(name, tuple(parameters), tuple(results)))

    def recursive(self) -> None:
        """One or two functions, which call themselves and each other while their first parameter is above zero."""
        types = (I, *(self.pick((N, V)) for _ in range(self.choose(1, 2))))
        result = self.pick((N, V))
        names = [f"recursive{number}" for number in range(self.choose(1, 2))]
        known = list(self.functions)
        self.most_nesting = 1
        for name in names:
            self.function(name, types, [result], partial(self.chosen_call, names, types, result))
        self.most_nesting = 2
        self.functions = [*known, *(Signature(name, types, (result,)) for name in names)]

    def chosen_call(
        self, callees: Sequence[str], types: Sequence[str], result: str
    ) -> Sequence[str]:
        n = self.names[0][0]

        def deeper() -> None:
            for _ in range(self.choose(1, 2)):
                self.steps(self.choose(0, 1))
                given = [f"{n} - 1", *(self.given(type) for type in types[1:])]
                self.keep(result, f"{self.pick(callees)}({', '.join(given)})")
            self.steps(self.choose(0, 1))

        if self.flag(3):
            self.step()
        self.body("def deeper():", (), [result], write=deeper)
        self.body("def flat():", (), [result], write=lambda: self.steps(self.choose(0, 3)))
        return [f"cond({n} > 0, deeper, flat)"]

    def main(self) -> None:
        parameters = [V, N, M, I]

        def write() -> Sequence[str]:
            self.steps(self.choose(1, 3))
            structured = [self.cond, self.fori, self.while_loop, self.rows]
            for _ in range(self.choose(1, 2)):
                structured[self.choose(0, 3)]()
                self.steps(self.choose(0, 2))
            floats = [(name, type) for name, type in self.names if type in FLOATS][-6:]
            parts = [f"sin({name})" + (".sum()" if type != N else "") for name, type in floats]
            parts += [f"{name}[...].sum()" for name, type in self.refs]
            return [" + ".join(parts), self.of(V)]

        self.function("main", parameters, [N, V], write)


def program_text(choose: Choose) -> str:
    """A module of staged functions, the last of them `main(x: Vector, s: Number, m: Matrix, n: Count)`."""
    writer = ProgramText(choose)
    for number in range(choose(0, 2)):
        writer.helper(f"helper{number}")
    if choose(0, 1):
        writer.recursive()
    writer.main()
    return "\n".join(writer.lines)
