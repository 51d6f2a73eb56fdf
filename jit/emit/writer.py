"""Functions and modules of LLVM IR as text: blocks, phis, structured loops, globals.

llvmlite.ir would do the same with an object per instruction, which costs more time to import and to
build than LLVM takes to parse the text.

>>> module = ModuleWriter()
>>> w = module.function("twice", [Argument(FLOAT)], FLOAT)
>>> w.ret(w.fadd(w.parameters[0], w.parameters[0]))
>>> print(module.text())
define float @twice(float %p0) nounwind {
entry:
  %0 = fadd float %p0, %p0
  ret float %0
}
<BLANKLINE>
!0 = !{!"branch_weights", i32 1, i32 1000000}
<BLANKLINE>
"""

import re
from collections.abc import Callable, Generator, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol

from ...core.ir import ALIGNMENT
from ...core.lazy_dataclass import dataclass
from .frames import StackFrame
from .instructions import FloatPredicate, InstructionWriter, IntegerPredicate, Reduction
from .values import (
    DOUBLE,
    FLOAT,
    HALF,
    I1,
    I8,
    I16,
    I32,
    I64,
    PTR,
    LLVMType,
    Register,
    ScalarName,
    constant,
    constant_bits,
    constants,
    llvm_type,
    poison,
    rounds_of,
    runs_at_least_once,
)

__all__ = [
    "DOUBLE",
    "FLOAT",
    "HALF",
    "I1",
    "I8",
    "I16",
    "I32",
    "I64",
    "PTR",
    "Argument",
    "FloatPredicate",
    "FunctionWriter",
    "IntegerPredicate",
    "LLVMType",
    "ModuleWriter",
    "OpenLoop",
    "Phi",
    "Reduction",
    "Register",
    "ScalarName",
    "constant",
    "constant_bits",
    "constants",
    "llvm_type",
    "poison",
]


# What `!prof !0` refers to.
_METADATA = """\
!0 = !{!"branch_weights", i32 1, i32 1000000}
"""


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of a function, with its LLVM attributes (`noalias readonly align 64`)."""

    type: LLVMType
    attributes: str = ""


class Phi:
    """A phi whose incoming values are added as the blocks that bring them get written."""

    __slots__ = ("_incoming", "_lines", "_position", "register")

    def __init__(self, register: Register, lines: list[str]) -> None:
        self.register = register
        self._lines = lines
        self._position = len(lines)
        self._incoming: list[str] = []
        lines.append("")

    def add_incoming(self, value: Register, block: str) -> None:
        """Say what the value is when control comes from `block`."""
        self._incoming.append(f"[ {value.text}, %{block} ]")
        register = self.register
        inside = ", ".join(self._incoming)
        self._lines[self._position] = f"  {register.text} = phi {register.type.text} {inside}"


class OpenLoop:
    """A loop being written: its index and carried values inside, its results after the end."""

    __slots__ = ("index", "next_values", "results", "values")

    def __init__(self, index: Register, values: tuple[Register, ...]) -> None:
        self.index = index
        self.values = values
        self.next_values = values
        self.results: tuple[Register, ...] = ()

    def carry(self, *values: Register) -> None:
        """Set what the carried values are in the next round, all of them, before the `with` ends."""
        if len(values) != len(self.values):
            raise ValueError(f"the loop carries {len(self.values)} values, not {len(values)}")
        self.next_values = values


class LoopPolls(Protocol):
    """Chooses, among loops emitted while it is active, those that poll."""

    def divided(self, rounds: int | None) -> AbstractContextManager[int]:
        """Around a loop of so many rounds, if that is known: after how many of them to poll; 0 for never."""
        ...

    def job_length(self, blocks: int) -> int:
        """How many blocks of a parallel loop, of so many, are run between two polls; 0 for all."""
        ...

    def poll(self, rounds: int) -> None:
        """Write a poll before so many rounds of the loop, or blocks."""
        ...


MOST_IN_PLACE = 16
"""Uses of a routine in a module that are written in place.

40 sines in a row compile in 95 ms; 150 if all are in place, 54 with 4, and run equally fast.
"""


_PARAMETER: Final = re.compile(r"%p\d+")
"""What parameters of functions are called in the text."""


class FunctionWriter(InstructionWriter):
    """Writes one function, block after block. The first block is `entry` and is open from the start."""

    __slots__ = (
        "_head", "_is_taken", "_labels", "_module", "arguments", "attributes", "block", "frame", "name", "pacing",
        "parameters",
    )  # fmt: skip

    def __init__(
        self,
        declarations: MutableMapping[str, str],
        name: str,
        parameters: Sequence[Argument],
        result: LLVMType | None,
        *,
        linkage: str = "",
        attributes: str = "nounwind",
        scalef: bool = False,
        fma: bool = False,
        module: "ModuleWriter | None" = None,
    ) -> None:
        super().__init__(declarations, scalef=scalef, fma=fma)
        self._module = module
        self.name = name
        self.parameters = tuple(
            Register(f"%p{index}", parameter.type) for index, parameter in enumerate(parameters)
        )
        self._head = " ".join(filter(None, ("define", linkage, result.text if result else "void")))
        self.arguments = tuple(parameters)
        self._is_taken = [True] * len(self.parameters)
        self.attributes = attributes
        self.frame = StackFrame()
        self._labels = 0
        self.block = "entry"
        self.pacing: LoopPolls | None = None
        """Where loops poll that are written now."""

    def add_attribute(self, attribute: str) -> None:
        """Have the function carry a further attribute."""
        self.attributes += f" {attribute}"

    def drop_unused_parameters(self) -> list[int]:
        """Have a function that is done take only what it uses; which of its parameters these are."""
        used = set(_PARAMETER.findall("\n".join(self.lines)))
        self._is_taken = [register.text in used for register in self.parameters]
        return [number for number, is_taken in enumerate(self._is_taken) if is_taken]

    # Blocks.

    def new_label(self, hint: str = "block") -> str:
        """A label that no other block of the function has."""
        self._labels += 1
        return f"{hint}.{self._labels}"

    def begin(self, label: str) -> None:
        """Open the block `label`; the one before must have been ended by a branch or return."""
        self.lines.append(f"{label}:")
        self.block = label

    def branch(self, label: str) -> None:
        """End the block by going to `label`."""
        self.line(f"br label %{label}")

    def branch_if(
        self, condition: Register, then: str, otherwise: str, *, rarely: bool = False
    ) -> None:
        """End the block by going to one of two; `rarely` keeps the first, and its spills, aside."""
        weights = ", !prof !0" if rarely else ""
        self.line(f"br i1 {condition.text}, label %{then}, label %{otherwise}{weights}")

    def ret(self, value: Register | None = None) -> None:
        """End the block by returning."""
        self.line("ret void" if value is None else f"ret {value.typed}")

    def phi(self, type: LLVMType) -> Phi:
        """Begin a phi; only at the start of a block."""
        register = Register(f"%{self._counter}", type)
        self._counter += 1
        return Phi(register, self.lines)

    def allocate(self, type: LLVMType, count: int = 1, *, align: int = ALIGNMENT) -> Register:
        """Stack memory for `count` values, for the whole call, wherever in the function this is asked for."""
        return self.frame.allocate(type, count, align)

    def release(self, memory: Register) -> None:
        """Let what is allocated later have memory that nothing uses any more."""
        self.frame.release(memory)

    # Structure.

    @contextmanager
    def loop(
        self,
        start: Register,
        stop: Register,
        step: Register,
        carried: Sequence[Register] = (),
        *,
        hint: str = "loop",
        guarded: bool = True,
        most: int | None = None,
    ) -> Generator[OpenLoop]:
        """Write `for index in range(start, stop, step)`, step > 0, with values carried from round
        to round.

        The test is at the bottom, behind a guard that is left out when the constants show it to
        hold, or the caller knows (`guarded`). There are at `most` so many rounds, if bounds are no
        constants. Inside, read `index` and `values` and say `carry(...)`; then read `results`.
        """
        if self.pacing is None:
            with self._loop(start, stop, step, carried, hint=hint, guarded=guarded) as loop:
                yield loop
            return
        with self.pacing.divided(most or rounds_of(start, stop, step)) as together:
            if not together:
                with self._loop(start, stop, step, carried, hint=hint, guarded=guarded) as loop:
                    yield loop
                return
            length = constant(start.type, together * int(step.text))
            with self._loop(start, stop, length, carried, hint=f"{hint}.paced") as outer:
                self.pacing.poll(together)
                type = start.type.text
                end = self.value(start.type, f"add nsw {type} {outer.index.text}, {length.text}")
                end = self.smin(end, stop)
                with self._loop(outer.index, end, step, outer.values, guarded=False) as loop:
                    yield loop
                outer.carry(*loop.results)
            loop.results = outer.results

    @contextmanager
    def _loop(
        self,
        start: Register,
        stop: Register,
        step: Register,
        carried: Sequence[Register],
        *,
        hint: str = "loop",
        guarded: bool = True,
    ) -> Generator[OpenLoop]:
        """The same without polls."""
        body, done = self.new_label(hint), self.new_label(f"{hint}.done")
        before = self.block
        guarded = guarded and not runs_at_least_once(start, stop)
        if guarded:
            self.branch_if(self.icmp("slt", start, stop), body, done)
        else:
            self.branch(body)
        self.begin(body)
        index = self.phi(start.type)
        phis = [self.phi(value.type) for value in carried]
        state = OpenLoop(index.register, tuple(phi.register for phi in phis))
        yield state
        following = self.value(
            start.type, f"add nsw {start.type.text} {index.register.text}, {step.text}"
        )
        last = self.block
        self.branch_if(self.icmp("slt", following, stop), body, done)
        for phi, first, then in zip(
            (index, *phis), (start, *carried), (following, *state.next_values), strict=True
        ):
            phi.add_incoming(first, before)
            phi.add_incoming(then, last)
        self.begin(done)
        state.results = state.next_values
        if guarded:
            state.results = self._merge(carried, before, state.next_values, last)

    def _merge(
        self, first: Sequence[Register], source: str, then: Sequence[Register], other: str
    ) -> tuple[Register, ...]:
        merged: list[Register] = []
        for x, y in zip(first, then, strict=True):
            phi = self.phi(x.type)
            phi.add_incoming(x, source)
            phi.add_incoming(y, other)
            merged.append(phi.register)
        return tuple(merged)

    @contextmanager
    def when(
        self, condition: Register, *, rarely: bool = False, hint: str = "when"
    ) -> Generator[None]:
        """Emit a branch around what is written inside, taken unless the condition (an `i1`) holds."""
        body, done = self.new_label(hint), self.new_label(f"{hint}.done")
        self.branch_if(condition, body, done, rarely=rarely)
        self.begin(body)
        yield
        self.branch(done)
        self.begin(done)

    def per_lane(self, name: str, arguments: Sequence[Register]) -> Register:
        """Call a scalar function of the process once for each lane, in a loop.

        It must be of the arguments' type: of libm, `sin` is of doubles and `sinf` of floats.
        """
        type = arguments[0].type
        if type.lanes == 1:
            return self.call(name, type, arguments)
        scalar = type.with_lanes(1)
        sources = [self.allocate(type) for _ in arguments]
        target = self.allocate(type)
        for source, argument in zip(sources, arguments, strict=True):
            self.store(argument, source)
        with self.loop(
            constant(I64, 0), constant(I64, type.lanes), constant(I64, 1), hint=name
        ) as loop:
            lanes = [self.load(self.gep(source, scalar, loop.index), scalar) for source in sources]
            self.store(self.call(name, scalar, lanes), self.gep(target, scalar, loop.index))
        return self.load(target, type)

    def replace_rarely(
        self, rare: Register, usual: Register, compute: Callable[[], Register]
    ) -> Register:
        """`compute()` in the lanes where `rare` holds, if there are any, `usual` elsewhere."""
        slow, done = self.new_label("rare"), self.new_label("rare.done")
        before = self.block
        self.branch_if(self.reduce("or", rare), slow, done, rarely=True)
        self.begin(slow)
        mixed = self.select(rare, compute(), usual)
        last = self.block
        self.branch(done)
        self.begin(done)
        result = self.phi(usual.type)
        result.add_incoming(usual, before)
        result.add_incoming(mixed, last)
        return result.register

    def routine(
        self,
        name: str,
        arguments: Sequence[Register],
        write: Callable[..., Register],
    ) -> Register:
        """`write(self, *arguments)`, whose result has the type of the first argument.

        Written in place for the first uses in a module, which LLVM makes fastest; from then on a call of one
        function, so that the size of a program does not grow with every sine in it.
        """
        type = arguments[0].type
        symbol = f"nnkit.{name}.{type.suffix}"
        if self._module is None or self._module.use(symbol) <= MOST_IN_PLACE:
            return write(self, *arguments)
        if not self._module.has(symbol):
            parameters = [Argument(argument.type) for argument in arguments]
            inner = self._module.function(
                symbol, parameters, type, linkage="internal", attributes="nounwind noinline"
            )
            inner.ret(write(inner, *inner.parameters))
        return self.call(symbol, type, arguments)

    def text(self) -> str:
        """The function as LLVM reads it."""
        inside = ", ".join(
            " ".join(filter(None, (given.type.text, given.attributes, register.text)))
            for given, register, is_taken in zip(
                self.arguments, self.parameters, self._is_taken, strict=True
            )
            if is_taken
        )
        header = f"{self._head} @{self.name}({inside}) {self.attributes} {{"
        return "\n".join((header, "entry:", *self.frame.lines, *self.lines, "}\n"))


class ModuleWriter:
    """Collects the functions, declarations and data that LLVM compiles together.

    `scalef` and `fma`: whether the target multiplies by powers of two, and multiplies and adds with one
    rounding, in one instruction (`Target.scalef`, `Target.fma`); right code either way.
    """

    __slots__ = ("_data", "_declarations", "_fma", "_scalef", "_uses", "functions")

    def __init__(self, *, scalef: bool = False, fma: bool = False) -> None:
        self._scalef = scalef
        self._fma = fma
        self.functions: list[FunctionWriter] = []
        self._declarations: dict[str, str] = {}
        self._data: dict[str, str] = {}
        self._uses: dict[str, int] = {}

    def use(self, symbol: str) -> int:
        """Count one more use of `symbol`; how many there are."""
        self._uses[symbol] = self._uses.get(symbol, 0) + 1
        return self._uses[symbol]

    def has(self, name: str) -> bool:
        """Whether the function `name` has been begun."""
        return any(function.name == name for function in self.functions)

    def function(
        self,
        name: str,
        parameters: Sequence[Argument],
        result: LLVMType | None,
        *,
        linkage: str = "",
        attributes: str = "nounwind",
    ) -> FunctionWriter:
        """Begin a function; `linkage="internal"` for those that only this module calls."""
        writer = FunctionWriter(
            self._declarations,
            name,
            parameters,
            result,
            linkage=linkage,
            attributes=attributes,
            scalef=self._scalef,
            fma=self._fma,
            module=self,
        )
        self.functions.append(writer)
        return writer

    def data(self, name: str, contents: bytes, *, align: int = ALIGNMENT) -> Register:
        """A constant array of bytes; its address. Asked for twice under one name it is written once."""
        escaped = "".join(f"\\{byte:02X}" for byte in contents)
        self._data[name] = (
            f'@{name} = private unnamed_addr constant [{len(contents)} x i8] c"{escaped}", align {align}'
        )
        return Register(f"@{name}", PTR)

    def variable(self, name: str, size: int) -> Register:
        """Zeroed memory of `size` bytes that lives as long as the compiled module; its address."""
        self._data[name] = (
            f"@{name} = internal global [{size} x i8] zeroinitializer, align {ALIGNMENT}"
        )
        return Register(f"@{name}", PTR)

    def external(self, name: str) -> Register:
        """The address of a symbol that is given when the module is loaded."""
        self._data[name] = f"@{name} = external global i8"
        return Register(f"@{name}", PTR)

    def text(self) -> str:
        """The module as LLVM reads it."""
        defined = {function.name for function in self.functions}
        declared = (line for name, line in self._declarations.items() if name not in defined)
        parts = [*self._data.values(), *declared]
        functions = [function.text() for function in self.functions]
        return "\n".join((*parts, *functions, _METADATA))
