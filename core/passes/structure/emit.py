"""Converts statements over variables to structured SSA.

1. Statements are executed in order, in a state that says which value each variable has.  Branches and
   bodies change it, and what they changed is undone at their end.
2. A choice becomes an `if` whose results are the variables it sets and that are needed, where its branches
   give them different values.  A truth value that says only which branch was taken is the condition itself.
3. A loop becomes a `while` that carries the variables its body sets and that are needed.

A variable without a value, where one must be passed on, gets an undefined one; nobody will look at it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from ...ir import Block, Builder, Instruction, Op, Region, Value
from ...ir.surgery import clone_instructions
from ...lazy_dataclass import dataclass
from ...ops import If, IsCase, LessThan, Not, Payload, Undefined, While, Yield, splat
from ...types import BOOL, I64, scalar
from .statements import (
    Assign,
    Carried,
    Choice,
    Execute,
    Forget,
    Immediate,
    Repeat,
    Source,
    Statement,
    Test,
)


def emit(
    statements: list[Statement], entry: Block, values: dict[Value, Value], results: list[Value]
) -> list[Value]:
    """Append the program to `entry`; the values that the variables `results` have at the end.

    `values` are those that variables have at the beginning.
    """
    emitter = _Emitter(values)
    returned: list[Value] = []

    def finish() -> None:
        returned.extend(map(emitter.value, results))

    emitter.enter(statements, Builder(entry), finish)
    emitter.run()
    made = emitter.constants.instructions
    entry.instructions[:0] = [i for i in made if i.result.uses or i.result in returned]
    return returned


@dataclass(eq=False)
class _List:
    """A list of statements that is being executed, and what follows it."""

    statements: list[Statement]
    builder: Builder
    finish: Callable[[], None]
    position: int = 0


@dataclass(eq=False)
class _Emitter:
    """The state: `values` of variables, and in `changes` what they were before."""

    values: dict[Value, Value]
    changes: list[tuple[Value, Value | None]] = field(
        default_factory=list[tuple[Value, "Value | None"]]
    )
    lists: list[_List] = field(default_factory=list[_List])
    constants: Block = field(default_factory=Block)
    known: dict[Op, Value] = field(default_factory=dict[Op, Value])
    numbers: dict[Value, bool | int] = field(default_factory=dict[Value, "bool | int"])
    """The constants among the values."""

    def enter(
        self, statements: list[Statement], builder: Builder, finish: Callable[[], None]
    ) -> None:
        """Execute the statements next, then `finish`."""
        self.lists.append(_List(statements, builder, finish))

    def run(self) -> None:
        """Execute until nothing is left to do."""
        while self.lists:
            current = self.lists[-1]
            if current.position == len(current.statements):
                self.lists.pop()
                current.finish()
                continue
            statement = current.statements[current.position]
            current.position += 1
            match statement:
                case Execute(instructions):
                    self._copy(instructions, current.builder)
                case Assign(targets, sources):
                    sources_now = [self._read(source, current.builder) for source in sources]
                    self._set(targets, sources_now)
                case Forget(variables):
                    self._forget(variables)
                case Choice():
                    self._choose(statement, current.builder)
                case Repeat():
                    self._repeat(statement, current.builder)

    def value(self, variable: Value) -> Value:
        """What the variable is now."""
        found = self.values.get(variable)
        return found if found is not None else self._constant(Undefined(variable.type))

    def _set(self, variables: list[Value], values: list[Value]) -> None:
        for variable, value in zip(variables, values, strict=True):
            self.changes.append((variable, self.values.get(variable)))
            self.values[variable] = value

    def _forget(self, variables: list[Value]) -> None:
        for variable in variables:
            if variable in self.values:
                self.changes.append((variable, self.values.pop(variable)))

    def _undo(self, count: int) -> None:
        while len(self.changes) > count:
            variable, value = self.changes.pop()
            if value is None:
                self.values.pop(variable, None)
            else:
                self.values[variable] = value

    def _copy(self, instructions: list[Instruction], b: Builder) -> None:
        results = [x for instruction in instructions for x in instruction.results]
        self.changes += [(x, self.values.get(x)) for x in results]
        clone_instructions(b.block, instructions, self.values)

    def _constant(self, op: Op, number: bool | int | None = None) -> Value:
        """A literal at the beginning of the function."""
        if op not in self.known:
            value = self.known[op] = Builder(self.constants).emit(op)
            if number is not None:
                self.numbers[value] = number
        return self.known[op]

    def _number(self, number: bool | int) -> Value:
        type = scalar(BOOL if isinstance(number, bool) else I64)
        return self._constant(splat(type, number), number)

    def _read(self, source: Source, b: Builder) -> Value:
        match source:
            case Value():
                return self.value(source)
            case Immediate(number):
                return self._number(number)
            case Carried(value, case, index):
                return b.emit(Payload(case, index), self.value(value))

    def _test(self, test: Test, b: Builder) -> Value:
        if test.value is None:
            return self._number(True)
        value = self.value(test.value)
        if test.case is not None:
            value = b.emit(IsCase(test.case), value)
        elif test.below is not None:
            value = b.emit(LessThan(), value, self._number(test.below))
        return self._negated(value, b) if test.negated else value

    def _negated(self, value: Value, b: Builder) -> Value:
        known = self.numbers.get(value)
        return b.emit(Not(), value) if known is None else self._number(not known)

    def _choose(self, choice: Choice, b: Builder) -> None:
        b.location = choice.location
        condition = self._test(choice.test, b)
        known = self.numbers.get(condition)
        if known is not None:
            self.enter(choice.then if known else choice.otherwise, b, lambda: None)
            return
        start = len(self.changes)
        branches = Block(name="then"), Block(name="else")
        finals: list[list[Value | None]] = []

        def leave() -> None:
            finals.append([self.values.get(x) for x in choice.results])
            self._undo(start)

        def leave_first() -> None:
            leave()
            self.enter(choice.otherwise, Builder(branches[1], choice.location), leave_last)

        def leave_last() -> None:
            leave()
            b.location = choice.location
            self._join(choice.results, condition, branches, finals, b)

        self.enter(choice.then, Builder(branches[0], choice.location), leave_first)

    def _join(
        self,
        variables: list[Value],
        condition: Value,
        branches: tuple[Block, Block],
        finals: list[list[Value | None]],
        b: Builder,
    ) -> None:
        """Append the `if`, unless nothing is left of it."""
        inside = {x for block in branches for i in block.instructions for x in i.results}
        joined: dict[Value, Value] = {}
        passed: list[tuple[Value, Value, Value]] = []
        for variable, one, other in zip(variables, *finals, strict=True):
            # where one branch gives no value, that of the other will do
            same = other if one is None else one if other in (None, one) else None
            if same is not None and same not in inside:
                joined[variable] = same
            elif one is not None and other is not None and self._says_which(one, other):
                joined[variable] = condition
            elif one is not None and other is not None and self._says_which(other, one):
                joined[variable] = self._negated(condition, b)
            elif one is not None or other is not None:
                undefined = self._constant(Undefined(variable.type))
                passed.append((variable, one or undefined, other or undefined))
        if passed or any(block.instructions for block in branches):
            for block, values in zip(
                branches, ([y for _, y, _ in passed], [z for *_, z in passed]), strict=True
            ):
                Builder(block, b.location).emit_many(Yield(), values)
            types = tuple(variable.type for variable, *_ in passed)
            regions = [Region([block]) for block in branches]
            results = b.emit_many(If(types), [condition], regions)
            for (variable, *_), value in zip(passed, results, strict=True):
                value.name = variable.name
                joined[variable] = value
        self._set(list(joined), list(joined.values()))

    def _says_which(self, one: Value, other: Value) -> bool:
        return self.numbers.get(one) is True and self.numbers.get(other) is False

    def _repeat(self, loop: Repeat, b: Builder) -> None:
        b.location = loop.location
        start = len(self.changes)
        carried = loop.carried
        initial = [self.value(x) for x in carried]
        head, body = Block(name="condition"), Block(name="body")

        def begin(
            block: Block, statements: list[Statement], finish: Callable[[Builder], None]
        ) -> None:
            inside = Builder(block, loop.location)
            self._set(carried, [inside.argument(x.type, x.name) for x in carried])
            self.enter(statements, inside, lambda: finish(inside))

        def leave_head(inside: Builder) -> None:
            inside.location = loop.location
            inside.emit_many(Yield(), [self._test(loop.test, inside)])
            self._undo(start)
            begin(body, loop.body, leave_body)

        def leave_body(inside: Builder) -> None:
            inside.location = loop.location
            inside.emit_many(Yield(), [self.value(x) for x in carried])
            self._undo(start)
            b.location = loop.location
            regions = [Region([head]), Region([body])]
            results = b.emit_many(While(), initial, regions)
            for variable, value in zip(carried, results, strict=True):
                value.name = variable.name
            self._set(carried, list(results))

        begin(head, loop.head, leave_head)
