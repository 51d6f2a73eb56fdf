"""Effects of instructions, bodies, calls, recursion, and functions of which little is known."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from nnkit.core.analysis import EVERYTHING, Effects
from nnkit.core.analysis.effects import OwnEffects
from nnkit.core.ir import (
    Builder,
    Effect,
    Extern,
    Function,
    GradientOf,
    Instruction,
    Module,
    Op,
    Region,
    Value,
    finish_function,
    start_function,
)
from nnkit.core.ops import Apply, If, Negate, Return, Yield
from nnkit.core.ops.memory import AllocateHeap, AllocateStack, Deallocate, Load, Retain, Store
from nnkit.core.ops.reference import Reference
from nnkit.core.ops.stack import CreateStack, Pop, Push
from nnkit.core.ops.trap import Trap
from nnkit.core.types import BOOL, F32, VOID, FunctionType, PointerType, scalar
from tests.patience import PATIENCE

S = scalar(F32)
P = PointerType(S)
UNARY = FunctionType((S,), S)


def function(name: str, *build: Callable[[Builder], object]) -> Function:
    """@name: (bool, f32, *f32) -> void, whose instructions `build` adds."""
    b = start_function([scalar(BOOL), S, P])
    for step in build:
        step(b)
    b.emit_many(Return(), [])
    return finish_function(name, b, VOID)


TYPE = function("f").type


def module_of(*functions: Function) -> Module:
    return Module(functions={function.name: function for function in functions})


def call(name: str) -> Callable[[Builder], object]:
    return lambda b: b.emit_many(Apply(name, TYPE), b.block.arguments)


def store(b: Builder) -> None:
    b.emit_many(Store(), b.block.arguments[1:])


def load(b: Builder) -> None:
    b.emit(Load(), b.block.arguments[2])


def trap(b: Builder) -> None:
    b.emit_many(Trap(), [])


def choose(*bodies: Callable[[Builder], object]) -> Callable[[Builder], object]:
    """An `if` with these bodies; they build with the arguments of the function."""

    def build(b: Builder) -> None:
        regions: list[Region] = []
        for body in bodies:
            inner = Builder()
            inner.block.arguments = b.block.arguments
            body(inner)
            inner.block.arguments = []
            inner.emit_many(Yield(), [])
            regions.append(Region([inner.block]))
        b.emit_many(If(), b.block.arguments[:1], regions)

    return build


def nothing(b: Builder) -> None:
    """An empty body."""


@pytest.mark.parametrize(
    ("op", "effect", "is_removable"),
    [
        (Negate(), Effect.NONE, True),
        (Load(), Effect.READ, True),
        (Store(), Effect.WRITE, False),
        (AllocateStack(S, 1), Effect.ALLOCATE, True),
        (AllocateHeap(S), Effect.ALLOCATE, True),
        (CreateStack(), Effect.ALLOCATE, True),
        (Deallocate(), Effect.WRITE, False),
        (Retain(), Effect.WRITE, False),
        (Push(), Effect.WRITE, False),
        (Pop(S), Effect.READ | Effect.WRITE, False),
        (Trap(), Effect.TRAP, False),
    ],
    ids=str,
)
def test_effects_of_single_instructions(op: Op, effect: Effect, is_removable: bool) -> None:
    instruction = Instruction(op, (), ())
    effects = Effects(Module())
    assert effects.of(instruction) == effect
    assert effects.is_removable(instruction) == is_removable
    assert effects.is_pure(instruction) == (effect == Effect.NONE)


def test_bodies_are_included() -> None:
    f = function(
        "f", choose(choose(load, nothing), choose(nothing, trap)), choose(nothing, nothing)
    )
    outer, empty, _ = f.entry.instructions
    effects = Effects(module_of(f))
    assert effects.of(outer) == Effect.READ | Effect.TRAP
    inner = [r.entry.instructions[0] for r in outer.regions]
    assert [effects.of(i) for i in inner] == [Effect.READ, Effect.TRAP]
    assert [effects.is_removable(i) for i in (outer, *inner, empty)] == [False, True, False, True]
    assert effects.is_pure(empty)


def test_calls_do_what_the_callee_does() -> None:
    module = module_of(
        function("f", call("g"), call("h")), function("g", store), function("h", choose(load, load))
    )
    first, second, _ = module.functions["f"].entry.instructions
    effects = Effects(module)
    assert (effects.of(first), effects.of(second)) == (Effect.WRITE, Effect.READ)
    assert effects.of_function("f") == Effect.READ | Effect.WRITE
    assert not effects.is_removable(first) and effects.is_removable(second)


def test_recursion_does_what_any_of_it_does() -> None:
    module = module_of(
        function("main", call("even")),
        function("even", call("odd"), load),
        function("odd", choose(call("even"), call("print")), call("odd")),
        function("print", store),
        function("alone", call("alone")),
    )
    effects = Effects(module)
    both = Effect.READ | Effect.WRITE
    assert [effects.of_function(f) for f in module.functions] == [
        both, both, both, Effect.WRITE, Effect.NONE,
    ]  # fmt: skip


def test_what_is_not_known_does_everything() -> None:
    extern = Function("e", TYPE, None, Extern())
    effects = Effects(module_of(extern, function("f", call("e")), function("g", call("missing"))))
    for name in ("e", "f", "g", "missing"):
        assert effects.of_function(name) == EVERYTHING


def test_a_declared_derivative_does_what_its_primal_does() -> None:
    pure, writing = function("pure"), function("writing", store)
    gradients = [
        Function(f"d_{f}", TYPE, None, GradientOf(f, wrt=(1,))) for f in ("pure", "writing")
    ]
    by_memory = FunctionType((*TYPE.parameters, P), S)
    shadows = Function("shadows", by_memory, None, GradientOf("pure", wrt=(1, 2)))
    effects = Effects(module_of(pure, writing, shadows, *gradients))
    assert effects.of_function("d_pure") == Effect.NONE
    assert effects.of_function("d_writing") == Effect.WRITE
    assert effects.of_function("shadows") == Effect.READ | Effect.WRITE


class CallValue(Negate):
    """Calls its first operand, whatever that is."""

    effect = Effect.CALL


def test_function_values_are_followed_to_their_reference() -> None:
    f = function("f", store)
    b = Builder()
    known = b.emit(Reference("f", TYPE))
    unknown = b.argument(TYPE)
    effects = Effects(module_of(f))

    def effect(*operands: Value) -> Effect:
        return effects.of(Instruction(CallValue(), operands, ()))

    assert effect(known) == effect(known, b.argument(S), known) == Effect.WRITE
    assert effect(unknown) == effect(known, unknown) == effect() == EVERYTHING


def test_what_changed_is_seen_by_new_effects() -> None:
    f, g = function("f", choose(call("g"), nothing)), function("g")
    module, own = module_of(f, g), dict[Function, OwnEffects]()
    effects = Effects(module, own)
    [instruction, _] = f.entry.instructions
    assert effects.is_pure(instruction)
    store_there = function("x", store).entry.instructions[0]
    g.entry.instructions.insert(0, store_there)
    assert list(own) == [f, g]
    # what f does by itself stays known, and that it calls g
    del own[g]
    effects = Effects(module, own)
    assert effects.of(instruction) == Effect.WRITE == effects.of_function("f")


def test_long_chains_and_deep_bodies_take_little_time() -> None:
    count = 20_000
    functions = [function(f"f{n}", call(f"f{(n + 1) % count}")) for n in range(count)]
    functions[77].entry.instructions.insert(0, function("x", store).entry.instructions[0])
    build: Callable[[Builder], object] = store
    for _ in range(900):
        build = choose(build, nothing)
    deep = function("deep", build)
    start = time.process_time()
    effects = Effects(module_of(*functions, deep))
    assert effects.of_function("f0") == effects.of_function("f19999") == Effect.WRITE
    instruction = deep.entry.instructions[0]
    while instruction.regions:
        assert effects.of(instruction) == Effect.WRITE
        instruction = instruction.regions[0].entry.instructions[0]
    assert time.process_time() - start < 3 * PATIENCE
