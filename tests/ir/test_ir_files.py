"""The programs in `tests/ir`: their RUN lines, as lit has them, and calls with what they give.

`lit tests/ir` runs the RUN lines; here they run in this process (`run_lines`).  Each `// run:` line goes through the
evaluator and the compiler:

    // run: @f(1.0, [2.0, 3.0]) == [3.0, 4.0]       equal (a NaN to a NaN)
    // run: @f(1.0) ~ 0.8414710                     equal to five digits, or two in f16 and bf16
    // run: @f([1.0], 3) error: index 3             an IndexOutOfRangeError that says so
    // run: @f(0) trap: load from null              a TrapError that says so

Tensors are lists, tuples and structs are in parentheses.
"""

from __future__ import annotations

import ast
import functools
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnkit.core.driver.differentiate import Differentiate
from nnkit.core.driver.stages import DIFFERENTIABLE, advance
from nnkit.core.errors import IndexOutOfRangeError, TrapError
from nnkit.core.evaluate import evaluate
from nnkit.core.ir import Module
from nnkit.core.passes.base import apply_pass
from nnkit.core.passes.flatten import Flatten
from nnkit.core.passes.pipeline import run_pipeline
from nnkit.core.stage import Stage
from nnkit.core.text import parse_module, print_module
from nnkit.core.types import Array, TensorType, Type, elements_of
from nnkit.core.verify import verify
from nnkit.jit.executable import host_target
from tests.core.text.laws import reread
from tests.ir.run_lines import RunLine, execute, run_lines
from tests.jit.emit.running import CheckFailed
from tests.jit.emit.running import run as run_compiled
from tests.programs import flat
from tests.rows import each

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.rglob("*.dl"))
BIN = str(Path(sys.executable).parent)
NAMES = {"inf": np.inf, "nan": np.nan, "true": True, "false": False}


@dataclass(frozen=True)
class Run:
    """A call and what it must give: a value, or part of an error's message."""

    path: Path
    line: int
    name: str
    arguments: tuple[Any, ...]
    relation: str
    expected: Any

    def __str__(self) -> str:
        return f"{self.path.stem}:{self.line}"


def value_of(node: ast.expr) -> Any:
    """A number, a list for a tensor, a tuple for a tuple."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            return NAMES[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -value_of(operand)
        case ast.List(elts=elements):
            return [value_of(element) for element in elements]
        case ast.Tuple(elts=elements):
            return tuple(value_of(element) for element in elements)
        case _:
            raise ValueError(f"{ast.unparse(node)} is no value")


def name_of(path: Path) -> str:
    return str(path.relative_to(FOLDER).with_suffix(""))


ERRORS = {"error:": IndexOutOfRangeError, "trap:": TrapError}

RUN = re.compile(r"// run: @(\w+)(\(.*\)) (==|~|error:|trap:) (.*)")


def runs_in(path: Path) -> list[Run]:
    found: list[Run] = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("// run:"):
            match = RUN.fullmatch(line)
            assert match is not None, f"{path.name}:{number}: {line}"
            name, arguments, relation, expected = match.groups()
            call = ast.parse(f"f{arguments}", mode="eval").body
            assert isinstance(call, ast.Call)
            wanted = expected
            if relation not in ERRORS:
                wanted = value_of(ast.parse(expected, mode="eval").body)
            given = tuple(map(value_of, call.args))
            found.append(Run(path, number, name, given, relation, wanted))
    return found


RUNS = [run for path in FILES for run in runs_in(path)]
PROGRAMS = sorted({run.path for run in RUNS})
NAN_BITS = {"exact:97", "exact:98"}
"""The calls of what sees the bits of a NaN that is a literal, which text writes as any other: `nan`."""
LINES = [line for path in FILES for line in run_lines(path)]


def as_data(type: Type, value: Any) -> Any:
    """What the evaluator takes for `value`."""
    elements = elements_of(type)
    if elements is not None:
        return tuple(map(as_data, elements, value))
    assert isinstance(type, TensorType)
    return type.dtype.round(np.asarray(value)).reshape(type.shape)


def leaves_of(type: Type) -> list[TensorType]:
    elements = elements_of(type)
    if elements is None:
        assert isinstance(type, TensorType)
        return [type]
    return [leaf for element in elements for leaf in leaves_of(element)]


def compare(run: Run, type: Type, found: list[Array]) -> None:
    wanted = flat(as_data(type, run.expected))
    for leaf, one, other in zip(leaves_of(type), found, wanted, strict=True):
        assert one.dtype == leaf.dtype.numpy and one.shape == leaf.shape
        if not leaf.dtype.is_float:
            np.testing.assert_array_equal(one, other)
            continue
        digits = 0.0 if run.relation == "==" else 1e-2 if leaf.dtype.bytes == 2 else 2e-5
        np.testing.assert_allclose(
            one.astype(np.float64), other.astype(np.float64), rtol=digits, atol=digits
        )


@functools.cache
def module_of(path: Path) -> Module:
    """The program, valid and never changed."""
    module = parse_module(path.read_text(), str(path))
    verify(module)
    return module


@functools.cache
def differentiated(path: Path) -> Module:
    """The program with the bodies of its derivatives; never changed."""
    module = parse_module(path.read_text(), str(path))
    if any(f.body is None for f in module.functions.values()):
        run_pipeline(module, DIFFERENTIABLE)
        for a_pass in (Flatten(), Differentiate(laws=False)):
            apply_pass(a_pass, module)
        verify(module)
    return module


@functools.cache
def optimizable(path: Path) -> str:
    """The text of the program in this stage, which does not depend on the function that is called, or a later one."""
    module = parse_module(path.read_text(), str(path))
    if not module.stage.has_reached(Stage.OPTIMIZABLE):
        advance(module, Stage.OPTIMIZABLE)
    return print_module(reread(module))


@each("path", FILES, ids=name_of)
def test_every_file_has_a_run_line(path: Path) -> None:
    assert run_lines(path), "lit does not take a file without one"


@pytest.mark.parametrize("line", LINES, ids=str)
def test_run_lines(line: RunLine, tmp_path: Path) -> None:
    execute(line, tmp_path)


@pytest.mark.parametrize("path", PROGRAMS, ids=name_of)
def test_programs_are_valid_and_read_back(path: Path) -> None:
    module = parse_module(path.read_text(), str(path))
    verify(module)
    text = print_module(module)
    assert print_module(parse_module(text)) == text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("lit", path=BIN) is None, reason="lit is not installed")
def test_lit_runs_the_same_files() -> None:
    files = [FOLDER / "arithmetic.dl", sorted((FOLDER / "tools").glob("*.dl"))[0]]
    lit = shutil.which("lit", path=BIN)
    assert lit is not None
    finished = subprocess.run(
        [lit, "-v", "-j2", *map(str, files)], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert f"Passed: {len(files)}" in finished.stdout


def check(run: Run, type: Type, call: Callable[[], Any], *, says: bool = True) -> None:
    """Assert that a call gives what the line says, as one result or several; of an error what it `says`, too."""
    if run.relation not in ERRORS:
        compare(run, type, list(flat(call())))
        return
    with pytest.raises((ERRORS[run.relation], CheckFailed)) as failed:
        call()
    error = failed.value.error if isinstance(failed.value, CheckFailed) else failed.value
    assert isinstance(error, ERRORS[run.relation])
    assert not says or re.search(run.expected, str(error))


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_evaluated(run: Run) -> None:
    module, type = differentiated(run.path), module_of(run.path).functions[run.name].type
    data = [as_data(*pair) for pair in zip(type.parameters, run.arguments, strict=True)]
    check(run, type.result, lambda: evaluate(module, run.name, *data, type=type))


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_compiled(run: Run) -> None:
    """By way of the text of every stage, which is evaluated.

    Once memory is lowered to bytes, the evaluator traps at the same programs for reasons of its own.
    """
    called = module_of(run.path).functions[run.name].type
    type = called.result
    data = [as_data(*pair) for pair in zip(called.parameters, run.arguments, strict=True)]
    is_read_back = str(run) not in NAN_BITS
    text = optimizable(run.path) if is_read_back else run.path.read_text()
    module = parse_module(text, str(run.path))
    for stage in module_of(run.path).stage.steps_to(Stage.SCHEDULE):
        if module.stage is not stage:
            advance(module, stage, run.name, target=host_target())
            again = reread(module)
            module = again if is_read_back else module
        early = not stage.has_reached(Stage.COMPUTE)
        check(run, type, partial(evaluate, module, run.name, *data, type=called), says=early)
    entry = module.functions[run.name]
    arrays = list(flat(tuple(data)))
    check(run, type, lambda: tuple(run_compiled(entry, arrays, module.functions)))
