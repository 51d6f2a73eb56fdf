"""What docs/functions.md says of shapes and derivatives: every function has a line, and calls give what it says.

The lines are those of docstrings and of `docs/shapes_of_functions.py`, which says how they are read; calls of random
extents are traced.  Conventions of derivatives are those of docstrings and of `docs/derivatives_of_functions.py`.
"""

from __future__ import annotations

import ast
import inspect
import random
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnkit as nk

sys.path.insert(0, str(Path(__file__).parent.parent / "docs"))
import generate_functions as page
from derivatives_of_functions import NONE, SMOOTH, derivative_of, is_said
from shapes_of_functions import EXEMPT, shapes_of

ENTRIES = {
    entry.name: entry
    for _, entries in page.sections()
    for entry in entries
    if not isinstance(entry.value, type)
}
FUNCTIONS = {name: entry.value for name, entry in ENTRIES.items()}
LINES = {
    name: shapes_of(name, entry.value, entry.text, FUNCTIONS) for name, entry in ENTRIES.items()
}
GIVEN: dict[str, Any] = {
    "fill_value": 1.0, "dtype": nk.f32, "shift": 1, "rate": 0.5, "accumulate": nk.f64, "epsilon": 1e-5,
    "minval": 0, "maxval": 9, "lower": -1.0, "upper": 1.0, "start": 0.0, "stop": 1.0, "groups": 1, "kernel_size": 2,
}  # fmt: skip
"""Arguments that have no shape, where one is needed."""
INTEGERS = set(
    "bitwise_and bitwise_or bitwise_xor bitwise_not left_shift right_shift floor_divide truncate_divide".split()
)
UNCHECKED = set(
    """hessian jacobian axis_max zip zip_with Rep.at Rep.filter Rep.fold Rep.map Rep.scan Rep.shape Rep.reshape
    Rep.named named nn.attention nn.conv1d nn.conv2d nn.conv3d nn.embedding nn.gru nn.gru_cell nn.layer_norm nn.linear
    nn.lstm nn.lstm_cell nn.mlp nn.rms_norm random.key Bool t.cast t.item t.numpy t.tolist""".split()
)
"""Of functions, of structs and of tensors that hold data: tests of their own call them."""
GROUP = r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)"
ARGUMENT = re.compile(rf"(?:\b(\w+) )?({GROUP}(?: and {GROUP})*)( of integers| of truth values|)")


@dataclass
class Form:
    """One form of a line: the shapes of arguments and results as they are written, and what else is given."""

    arguments: list[tuple[str, list[str], str]]
    results: list[str]
    keywords: dict[str, Any] = field(default_factory=dict)


def alternatives(line: str) -> Iterator[str]:
    """The forms of a line; one with `(n, k) or (k)` is two."""
    for text in line.split(";"):
        either = rf"({GROUP}) or ({GROUP})"
        yield from dict.fromkeys([re.sub(either, r"\1", text), re.sub(either, r"\3", text)])


def forms_of(line: str) -> Iterator[Form]:
    before: list[tuple[str, list[str], str]] = []
    for text in alternatives(line):
        left, _, right = text.partition("→")
        found = [
            (each[1] or "", [one[1] for one in re.finditer(GROUP, each[2])], each[each.re.groups])
            for each in ARGUMENT.finditer(left)
        ]
        before = found or before
        results = re.match(rf"\s*(?:(?:, | and )?{GROUP})+", right)
        if not results:
            continue
        options = ", ".join(re.findall(r"`(\w+=[^`]*)`", right))
        call = ast.parse(f"f({options})", mode="eval").body
        assert isinstance(call, ast.Call)
        yield Form(
            before,
            [one[1] for one in re.finditer(GROUP, results[0])],
            {one.arg or "": ast.literal_eval(one.value) for one in call.keywords},
        )


class Extents(dict[str, Any]):
    """Values of letters, drawn when they are first met; of `p…`, tuples of them."""

    def __init__(self, seed: str) -> None:
        super().__init__(min=min, max=max)
        self.rng = random.Random(seed)
        self.order = self.rng.sample(range(4, 12), 8)

    def __missing__(self, name: str) -> Any:
        if name.endswith("_"):
            self[name] = (self.rng.randrange(3, 7),)
        else:
            self[name] = (
                self.rng.randrange(2, 4) if name == "k" else self.order.pop()
            )  # a small one
        return self[name]

    def shape(self, text: str, known: bool = True) -> tuple[int | None, ...]:
        """The extents that a shape means; None for a letter that only stands in a result."""
        parts = re.split(r",\s*(?![^(]*\))", text.strip()) if text.strip() else []
        found: list[int | None] = []
        for part in parts:
            if part.endswith("…"):
                found += self[f"axes{part[:-1]}_"]
            elif not known and part.isidentifier() and part not in self:
                found.append(None)
            else:
                code = part.replace("·", "*").replace("−", "-").replace("/", "//")
                found.append(eval(re.sub(r"(\d) (\w)", r"\1 * \2", code), {}, self))
        return tuple(found)


def test_every_function_has_a_line() -> None:
    table = {name for name, entry in ENTRIES.items() if page.is_in_table(entry)}
    missing = {name for name, line in LINES.items() if not line} - EXEMPT - table
    assert not missing, f"write `Shapes: x (…) → (…).` into the docstrings of {sorted(missing)}"
    assert {*ENTRIES} >= EXEMPT, sorted(EXEMPT - {*ENTRIES})


def test_every_function_says_its_derivative_or_is_smooth() -> None:
    silent = {
        name
        for name, entry in ENTRIES.items()
        if not (is_said(entry.text) or derivative_of(name, entry.text))
        and not {name, name.removeprefix("Rep.")} & (SMOOTH | EXEMPT)
        and not is_said(getattr(FUNCTIONS.get(name.removeprefix("Rep.")), "__doc__", "") or "")
    }
    assert not silent, (
        f"say in docstrings what derivatives at kinks, ties, poles and boundaries are, "
        f"or add to docs/derivatives_of_functions.py: {sorted(silent)}"
    )


def call_of(name: str, form: Form, extents: Extents) -> Callable[[], Any]:
    """A call of the function with tensors of the shapes of a form."""
    function = FUNCTIONS[name]
    is_property = isinstance(function, property)
    parameters = {} if is_property else dict(inspect.signature(function).parameters)
    receiver = parameters.pop("self", None) is not None or is_property
    given = dict(form.keywords)
    for one, parameter in parameters.items():
        default = parameter.default
        if re.search(rf"\b{one}\b", " ".join(form.results)):  # an extent of the result
            given[one] = default if isinstance(default, int) else extents.rng.randrange(1, 3)
        elif default is inspect.Parameter.empty and one in GIVEN:
            given[one] = GIVEN[one]
        if isinstance(value := given.get(one, default), int):
            extents[one] = value
    tensors: list[Any] = []
    for label, groups, kind in form.arguments:
        shapes = [extents.shape(group) for group in groups]
        integers = kind == " of integers" or name.rpartition(".")[2] in INTEGERS
        dtype = np.int64 if integers else bool if kind else np.float32
        tensors = [nk.const(np.ones(shape, dtype)) for shape in shapes]
        if receiver is True:
            receiver = tensors[0]
        elif label == "shape":
            given[label] = shapes[0]
        else:
            given[label or next(iter(parameters))] = tensors[0] if len(tensors) == 1 else tensors
    if is_property:
        return partial(function.fget, receiver)
    return bound(function, parameters, given, *[receiver] * (receiver is not False))


def bound(
    function: Any, parameters: dict[str, Any], given: dict[str, Any], *positional: Any
) -> Callable[[], Any]:
    """The call, by position as long as there is no gap."""
    positional = [*positional]
    for one, parameter in parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            rest = given.pop(one, ())
            positional += rest if isinstance(rest, tuple | list) else [rest]
        elif one not in given or parameter.kind is parameter.KEYWORD_ONLY:
            break
        else:
            positional.append(given.pop(one))
    return partial(function, *positional, **given)


def parts_of(result: Any) -> list[Any]:
    """The tensors in what a function returned, in order."""
    if isinstance(result, tuple | list):
        return [each for part in result for each in parts_of(part)]
    try:
        return parts_of(result.unpack())
    except nk.NNKitError:
        return [result]


def test_the_lines_are_true() -> None:
    """All calls are traced in one program, whose type has the shapes of all results."""
    told: list[tuple[str, tuple[int | None, ...]]] = []
    calls: list[tuple[str, Callable[[], Any], int]] = []  # traced code that uses `eval` is slow
    for name, line in LINES.items():
        for number, form in enumerate(forms_of(line) if name not in UNCHECKED else ()):
            extents = Extents(f"{name} {number}")
            said = f"{name}: {line}"
            calls.append((said, call_of(name, form, extents), len(form.results)))
            told.extend((said, extents.shape(each, known=False)) for each in form.results)

    def together() -> Any:
        results: list[Any] = []
        for line, call, count in calls:
            try:
                parts = parts_of(call())
            except Exception as error:
                pytest.fail(f"{line}: {type(error).__name__}: {error}")
            assert len(parts) == count, line
            results += parts
        return nk.tup(*results)

    text = nk.fn()(together).ir()
    types = re.findall(r"^func @\S+: \(\) -> \((.*)\) \{$", text, re.MULTILINE)[-1].split(", ")
    has_floats: dict[str, bool] = defaultdict(bool)
    for (line, shape), each in zip(told, types, strict=True):
        has_floats[line.partition(":")[0]] |= re.search(r"[bf]f?\d\d", each) is not None
        assert agree(tuple(map(int, re.findall(r"\d+(?= x)", each))), shape), f"{line}: {each}"
    assert len(told) > 350
    functions = {name for name in has_floats if not name.startswith("Rep.")}
    without = {name for name in functions if not has_floats[name]}
    assert without - {"arange", "bincount"} == NONE & functions, (
        "docs/derivatives_of_functions.py: NONE"
    )


def agree(found: tuple[int, ...], told: tuple[int | None, ...]) -> bool:
    return len(found) == len(told) and all(b in (a, None) for a, b in zip(found, told, strict=True))
