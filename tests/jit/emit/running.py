"""Compiles scheduled functions and runs them beside the reference evaluator."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nnkit.core.errors import NNKitError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir.builder import Builder, finish_function, start_function
from nnkit.core.ir.donation import donations
from nnkit.core.ir.instruction import Value
from nnkit.core.ir.module import Function, Module
from nnkit.core.ir.placement import Place, Placement, arena, output
from nnkit.core.kernels.ops import Kernel
from nnkit.core.ops.nest import Nest
from nnkit.core.ops.terminators import Return
from nnkit.core.schedule.arena import aligned
from nnkit.core.schedule.group import GroupedInstruction
from nnkit.core.schedule.nest_kernels import write_nest_kernels
from nnkit.core.schedule.ops import Loops
from nnkit.core.schedule.plan import scratch_bytes
from nnkit.core.schedule.target import Target
from nnkit.core.types import DTYPES, Array, DType, TensorType, one_or_tuple
from nnkit.jit.emit.checks import error_of
from nnkit.jit.emit.program import EmittedProgram, emit_program
from nnkit.jit.emit.stack_use import STACK_BYTES
from nnkit.jit.emit.writer import ModuleWriter
from nnkit.jit.executable import extern_symbols, print_symbols
from nnkit.jit.llvm import Engine, host_engine
from nnkit.jit.runtime.process import this_process
from tests.values import same_bits


@dataclass(frozen=True)
class Decisions:
    """How a nest is looped; axes in `order` as they come by default."""

    order: tuple[int, ...] | None = None
    vector: int = -1
    lanes: int = 1
    accumulators: int = 1
    group: int = -1
    blocks: tuple[int, ...] = ()
    compensated: bool = False


WIDE = Target(vector_bytes=64, registers=32)


class CheckFailed(Exception):
    """What the kernel reported: site, index, extent."""

    def __init__(self, site: int, index: int, extent: int, error: NNKitError) -> None:
        super().__init__(site, index, extent)
        self.error = error


def scheduled(
    types: Sequence[TensorType],
    build: Callable[..., Sequence[Value]],
    *decisions: Decisions,
    target: Target = WIDE,
) -> Function:
    """The function that `build(builder, *parameters)` writes as nests, looped as decided, one by one, as kernels."""
    b = start_function(types)
    function = finish(b, list(build(b, *b.block.arguments)))
    steps: list[GroupedInstruction] = []
    number = 0
    for instruction in function.entry.instructions:
        loops: Loops | None = None
        if isinstance(instruction.op, Nest):
            decided = decisions[min(number, len(decisions) - 1)] if decisions else Decisions()
            loops = looped(instruction.op, decided)
            number += 1
        steps.append(GroupedInstruction(instruction, loops))
    steps = write_nest_kernels(steps, target)
    function.entry.instructions = [step.instruction for step in steps]
    places = {value: output(n) for n, value in enumerate(function.entry.terminator.operands)}
    arena_bytes = 64

    def room(size: int) -> Place:
        nonlocal arena_bytes
        arena_bytes += aligned(size)
        return arena(arena_bytes - aligned(size))

    for step in steps:
        instruction, op = step.instruction, step.loops or step.instruction.op
        if not isinstance(op, Nest | Kernel):
            continue
        for result in instruction.results:
            if result not in places:
                places[result] = room(result.tensor.bytes)
        scratch = [room(size) for size in scratch_bytes(instruction)]
        instruction.op = op
        instruction.placement = Placement(
            tuple([places[result] for result in instruction.results]), tuple(scratch)
        )
    return function


def finish(b: Builder, returned: Sequence[Value]) -> Function:
    """The function that returns these tensors."""
    b.emit_many(Return(), returned)
    return finish_function("f", b, one_or_tuple([value.type for value in returned]))


def looped(nest: Nest, decided: Decisions) -> Loops:
    """The nest with its loops decided."""
    order = tuple(range(len(nest.extents))) if decided.order is None else decided.order
    return Loops(
        nest.extents,
        nest.accesses,
        nest.outputs,
        order,
        decided.vector,
        decided.lanes,
        decided.accumulators,
        decided.group,
        decided.blocks,
        decided.compensated,
    )


def expected(function: Function, arrays: Sequence[Array]) -> list[Array]:
    """What the reference evaluator returns."""
    result = evaluate(Module(functions={function.name: function}), function.name, *arrays)
    return list(result) if isinstance(result, tuple) else [result]


def run(
    function: Function,
    arrays: Sequence[Array],
    functions: Mapping[str, Function] | None = None,
    *,
    stack_bytes: int | None = None,
    externs: Mapping[str, int] | None = None,
    in_place: bool = False,
) -> list[Array]:
    """What compiled code returns, with the arrays given as the evaluator takes them; `functions` may be called.

    It is code for this process, unless calls may take so many bytes of stack and no more.  With `in_place`, parameters
    that are donated and their results are in one buffer.
    """
    return run_all(
        [function],
        arrays,
        functions=functions,
        stack_bytes=stack_bytes,
        externs=externs,
        in_place=in_place,
    )[0]


def run_all(
    entries: Sequence[Function],
    arrays: Sequence[Array],
    engine: Engine | None = None,
    functions: Mapping[str, Function] | None = None,
    stack_bytes: int | None = None,
    externs: Mapping[str, int] | None = None,
    in_place: bool = False,
) -> list[list[Array]]:
    """The same for several functions of the same parameters, compiled together, for this machine or a lesser one."""
    engine = engine or host_engine()
    module = ModuleWriter(scalef=engine.target.scalef, fma=engine.target.fma)
    programs = [
        emit_program(
            module,
            function,
            f"kernel.{number}",
            functions=functions,
            stack_bytes=stack_bytes or STACK_BYTES,
            process=this_process() if stack_bytes is None else None,
        )
        for number, function in enumerate(entries)
    ]
    symbols = {name: at for program in programs for name, at in program.symbols.items()}
    for program in programs:
        symbols |= extern_symbols(program, externs or {})
    kept = [print_symbols(program) for program in programs]  # until the programs have run
    for _, found in kept:
        symbols |= found
    compiled = engine.compile_module(module.text(), symbols)
    return [
        call(compiled.address(program.name), program, function, arrays, in_place=in_place)
        for program, function in zip(programs, entries, strict=True)
    ]


def call(
    address: int,
    program: EmittedProgram,
    function: Function,
    arrays: Sequence[Array],
    *,
    in_place: bool = False,
) -> list[Array]:
    """The results of a kernel, whose memory starts as garbage.  Raises: CheckFailed."""
    types = [parameter.tensor for parameter in function.parameters]
    inputs = [
        misaligned(type.dtype.store(np.asarray(array)).astype(type.dtype.storage))
        for type, array in zip(types, arrays, strict=True)
    ]
    outputs = [garbage(value.tensor.bytes) for value in function.entry.terminator.operands]
    for parameter, result in donations(function.attributes if in_place else ()):
        outputs[result][: inputs[parameter].nbytes] = np.frombuffer(inputs[parameter], np.uint8)
        inputs[parameter] = outputs[result]
    memory = garbage(program.arena_bytes)
    pointers = [array.ctypes.data for array in (*inputs, *outputs, memory)]
    # which holds the GIL, as the entry does, and raises what is raised
    kernel = ctypes.PYFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * len(pointers))(address)
    site = kernel(*pointers)
    if site:
        index, extent = memory[:16].view(np.int64).tolist()
        raise CheckFailed(site, index, extent, error_of(program.sites[site - 1], index, extent))
    return [
        read_back(value.tensor, stored)
        for value, stored in zip(function.entry.terminator.operands, outputs, strict=True)
    ]


def read_back(type: TensorType, stored: Array) -> Array:
    """Bytes that a kernel wrote, as the evaluator has them."""
    return type.dtype.load(stored[: type.bytes].view(type.dtype.storage).reshape(type.shape))


def garbage(size: int) -> Array:
    """Memory aligned to 64 bytes, full of what must not matter; a guard behind it is checked by nobody.

    As floats it is huge or NaN, so that it does matter to any sum that begins with it.
    """
    memory = np.full(size + 128, 0xFE, np.uint8)
    first = -memory.ctypes.data % 64
    return memory[first : first + max(size, 16)]


def misaligned(array: Array) -> Array:
    """A copy that is aligned to its elements and to no more."""
    memory = np.empty(array.nbytes + 128, np.uint8)
    first = -memory.ctypes.data % 64 + array.itemsize
    copy = memory[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def sample(type: TensorType, seed: int = 0) -> Array:
    """Random elements, small enough that sums and products stay exact enough to compare."""
    random = np.random.default_rng(seed)
    if type.dtype.kind == "boolean":
        return random.integers(0, 2, type.shape).astype(np.bool_)
    if type.dtype.is_integer:
        return random.integers(-9, 10, type.shape).astype(type.dtype.numpy)
    return type.dtype.round(random.normal(size=type.shape))


def tolerance(dtype: DType) -> float:
    """Relative error of a few operations."""
    return {"f16": 4e-3, "bf16": 3e-2, "f32": 2e-6, "f64": 1e-14}.get(dtype.name, 0.0)


def agree(function: Function, arrays: Sequence[Array], *, exact: bool = True) -> None:
    """Assert that compiled code and the evaluator return the same; sums up to rounding unless `exact`."""
    compare(function, expected(function, arrays), run(function, arrays), exact=exact)


def compare(
    function: Function, wanted: Sequence[Array], found: Sequence[Array], *, exact: bool = True
) -> None:
    """Assert that results are the same."""
    for value, x, y in zip(function.entry.terminator.operands, wanted, found, strict=True):
        dtype = value.tensor.dtype
        if exact or not dtype.is_float:
            np.testing.assert_array_equal(y, x, strict=True)
            assert same_bits(y, x), "zeros differ in sign"
        else:
            scale = max(1.0, float(np.max(np.abs(x), initial=0.0, where=np.isfinite(x))))
            np.testing.assert_allclose(y, x, rtol=tolerance(dtype), atol=tolerance(dtype) * scale)


ALL_DTYPES = tuple(DTYPES.values())
