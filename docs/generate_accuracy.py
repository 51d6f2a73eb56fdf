"""Writes the tables of errors in docs/semantics.md: the worst that are found at a million samples a function.

    python docs/generate_accuracy.py                measure all and write them; takes some minutes and needs gcc
    python docs/generate_accuracy.py COUNT NAME …   measure these at so many samples, and print them

1. The samples and the bounds are those of `tests.accuracy`, which the tests take too, only fewer.
2. The truth is quad precision by `accuracy_oracle.c`, compared with mpmath at some of the samples.
3. Measured are compiled code with fma and without, and the evaluator.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import mpmath  # type: ignore[import-untyped]
import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from nnkit.core.ops import ALL  # noqa: E402
from nnkit.jit.emit.math import FUNCTIONS as EMIT  # noqa: E402
from tests.accuracy import FUNCTIONS, NEAR_A_ROOT, Array, samples, truth  # noqa: E402
from tests.jit.emit.compiled import elementwise  # noqa: E402

PAGE = ROOT / "docs" / "semantics.md"
BEGIN = "<!-- errors: written by docs/generate_accuracy.py -->"
END = "<!-- end of errors -->"
COUNT: Final = 1_000_000
"""Samples of each function and type."""
COUNT_IN_DECIMALS: Final = 10_000
"""Where the evaluator takes 100 µs for each."""
IN_DECIMALS: Final = ("erfc", "lgamma", "digamma", "trigamma")
SLOPES: Final = {"lgamma": "digamma", "digamma": "trigamma"}

Float: TypeAlias = type[np.floating[Any]]
TYPES: Final[dict[Float, str]] = {np.float32: "f32", np.float64: "f64"}


@dataclass(frozen=True)
class Worst:
    """The largest error found, and where."""

    ulps: float
    operands: tuple[float, ...]

    def cells(self) -> tuple[str, str]:
        places = ", ".join(f"{operand:.9g}" for operand in self.operands)
        return f"{self.ulps:.2f}", places


@dataclass(frozen=True)
class Line:
    """What was found of one function and one type; None where the evaluator lacks it."""

    name: str
    bound: float
    fma: Worst
    baseline: Worst
    evaluator: Worst | None


class Oracle:
    """`accuracy_oracle.c`, compiled and loaded."""

    def __init__(self) -> None:
        source = Path(__file__).with_name("accuracy_oracle.c")
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "oracle.so"
            command = ["gcc", "-O2", "-shared", "-fPIC", str(source), "-o", str(library)]
            subprocess.run([*command, "-lquadmath"], check=True)
            self._library = ctypes.CDLL(str(library))

    def evaluate(self, name: str, *operands: Array) -> Array:
        """Quads, as 16 bytes each."""
        arrays = [np.ascontiguousarray(operand, np.float64) for operand in operands]
        exact = np.empty(16 * arrays[0].size, np.uint8)
        second = arrays[1] if len(arrays) > 1 else arrays[0]
        found = self._library.evaluate(
            name.encode(), ctypes.c_long(arrays[0].size), *map(_address, (arrays[0], second, exact))
        )
        if found != 0:
            raise LookupError(f"{name} is not in {Path(__file__).with_name('accuracy_oracle.c')}")
        return exact

    def parts(self, exact: Array) -> tuple[Array, Array]:
        """Quads as sums of two doubles."""
        size = exact.size // 16
        high, low = np.empty(size), np.empty(size)
        self._library.parts(ctypes.c_long(size), *map(_address, (exact, high, low)))
        return high, low

    def distances(self, exact: Array, result: Array, slack: Array | None) -> Array:
        """Errors as `tests.accuracy.ulps` has them."""
        info = np.finfo(result.dtype)
        wide = np.ascontiguousarray(result, np.float64)
        out = np.empty(result.size)
        self._library.distances(
            ctypes.c_long(result.size),
            _address(exact),
            _address(wide),
            None if slack is None else _address(slack),
            int(info.nmant) + 1,
            int(info.minexp) + 1,
            int(info.maxexp),
            _address(out),
        )
        return out


def _address(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def evaluator(name: str) -> Callable[..., Array] | None:
    """How the op of that name is evaluated."""
    found = [op for op in ALL if op.name == name]
    return found[0]().evaluate if found else None


def measure(oracle: Oracle, name: str, type: Float, count: int) -> Line:
    """The worst of one function and type."""
    row = FUNCTIONS[name]
    # `samples` takes so many of each kind: bits, sizes, each range, and four around points
    kinds = 6 if row.operands == 2 else 2 + len(row.ranges) + 4 * bool(row.points)
    with np.errstate(all="ignore"):
        operands = samples(name, type, count // kinds)
    exact = oracle.evaluate(name, *operands)
    slack = _slack(oracle, name, type, operands[0], exact)
    _compare(oracle, name, type)

    def worst(function: Callable[..., Array], some: Sequence[Array], exact: Array) -> Worst:
        errors = oracle.distances(exact, function(*some), slack if some is operands else some_slack)
        index = int(errors.argmax())
        return Worst(float(errors[index]), tuple(float(operand[index]) for operand in some))

    scalar = "float" if type is np.float32 else "double"
    ways = [
        elementwise(EMIT[name], scalar, 8, operands=row.operands, fma=fma, scalef=fma)
        for fma in (True, False)
    ]
    fma, baseline = (worst(way, operands, exact) for way in ways)
    some, some_exact, some_slack = operands, exact, slack
    if name in IN_DECIMALS:
        some = samples(name, type, min(count, COUNT_IN_DECIMALS) // kinds)
        some_exact = oracle.evaluate(name, *some)
        some_slack = _slack(oracle, name, type, some[0], some_exact)
    evaluate = evaluator(name)
    reference = None if evaluate is None else worst(evaluate, some, some_exact)
    return Line(name, row.bound(type), fma, baseline, reference)


def _slack(oracle: Oracle, name: str, type: Float, x: Array, exact: Array) -> Array | None:
    """What errors are measured against near roots."""
    if name not in SLOPES:
        return None
    value, _ = oracle.parts(exact)
    slope, _ = oracle.parts(oracle.evaluate(SLOPES[name], x))
    with np.errstate(all="ignore"):
        slack = np.abs(x.astype(np.float64) * slope) * float(np.finfo(type).eps)
    return np.where(np.isfinite(slack) & (np.abs(value) < NEAR_A_ROOT), slack, 0.0)


def _compare(oracle: Oracle, name: str, type: Float) -> None:
    """Raises: ArithmeticError where quad precision and mpmath differ by more than 2⁻⁸⁰ of the result, or of what
    errors near a root are measured against."""
    operands = samples(name, type, 20)
    highs, lows = oracle.parts(oracle.evaluate(name, *operands))
    known = truth(name, type, *operands)
    with mpmath.workprec(200):
        for high, low, right, slack in zip(
            highs.tolist(), lows.tolist(), known.exact, known.slack, strict=True
        ):
            if not np.isfinite(high) or low == 0 or not mpmath.isfinite(right):
                continue
            error = abs(mpmath.mpf(high) + mpmath.mpf(low) - right)
            unit = mpmath.ldexp(abs(right), -80) + mpmath.ldexp(slack, -30)
            if error > unit + mpmath.ldexp(1, -1074):
                raise ArithmeticError(f"{name}: {high} + {low} is not {right}")


def table(type: Float, lines: Sequence[Line]) -> Iterator[str]:
    """Of one type, in Markdown."""
    yield f"| {TYPES[type]} | at most | compiled, with fma | at | without fma | at | evaluator | at |"
    yield "|---|---|---|---|---|---|---|---|"
    for line in lines:
        worst = [line.fma, line.baseline, line.evaluator]
        cells = [cell for found in worst for cell in (found.cells() if found else ("", ""))]
        yield f"| {line.name} | {line.bound:g} | {' | '.join(cells)} |"


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    names = sys.argv[2:] or list(FUNCTIONS)
    oracle = Oracle()
    parts = []
    for type in TYPES:
        lines = []
        for name in names:
            lines.append(measure(oracle, name, type, count))
            print(*list(table(type, lines))[-1:], flush=True)
        parts.append("\n".join(table(type, lines)))
    if len(sys.argv) == 1:
        text = PAGE.read_text()
        head, rest = text.split(BEGIN)
        _, tail = rest.split(END)
        PAGE.write_text(f"{head}{BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{END}{tail}")


if __name__ == "__main__":
    main()
