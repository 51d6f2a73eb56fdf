"""Measures the functions of floats, into docs/accuracy.json, and writes the tables of docs/vector-math.md from that.

    python docs/generate_accuracy.py                    write the tables
    python docs/generate_accuracy.py floats [NAME …]    errors at all 2³² floats of 32 bits: a minute a function
    python docs/generate_accuracy.py samples [NAME …]   errors at a million samples of f64, and of what `floats` lacks
    python docs/generate_accuracy.py composed [NAME …]  errors at a million samples of functions made of others
    python docs/generate_accuracy.py speed              nanoseconds an element

1. The bounds, and the samples, are those of `tests.accuracy`, which the tests take too, only fewer.
2. The truth of floats is double precision, that of samples quad precision (`accuracy_oracles`), compared with mpmath
   at some of them.
3. Measured are compiled code with fma and without, and the evaluator; of all floats in vectors of 512 bits, which
   must agree in every sixteenth block of 4,096 floats with those of 256 and 128 to the bit.

It needs gcc.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import mpmath  # type: ignore[import-untyped]
import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from accuracy_oracles import DoubleOracle, QuadOracle, Way  # noqa: E402
from function_speeds import measure_speeds  # noqa: E402

import nnkit as nk  # noqa: E402
from nnkit.core.ops import ALL  # noqa: E402
from nnkit.jit.emit.math import FUNCTIONS as EMIT  # noqa: E402
from tests.accuracy import FUNCTIONS, NEAR_A_ROOT, Array, sample, samples, truth  # noqa: E402
from tests.accuracy_of_composed import COMPOSED  # noqa: E402
from tests.jit.emit.compiled import elementwise, loop_over_arrays  # noqa: E402

PAGE: Final = ROOT / "docs" / "vector-math.md"
FOUND: Final = ROOT / "docs" / "accuracy.json"
BEGIN: Final = "<!-- tables: written by docs/generate_accuracy.py -->"
END: Final = "<!-- end of tables -->"
COUNT: Final = 1_000_000
"""Samples of each function and type."""
COUNT_IN_DECIMALS: Final = 10_000
"""Where the evaluator takes 100 µs for each."""
IN_DECIMALS: Final = ("erfc", "lgamma", "digamma", "trigamma")
SLOPES: Final = {"lgamma": "digamma", "digamma": "trigamma"}
CHUNK: Final = 1 << 24
"""Floats at once, a second or less."""

Float: TypeAlias = type[np.floating[Any]]
WAYS: Final = ("fma", "baseline", "evaluator")
TYPES: Final[dict[Float, str]] = {np.float32: "f32", np.float64: "f64"}
Worst: TypeAlias = "tuple[float, list[float]]"
"""The largest error found, and the operands there."""


def measure_floats(oracle: DoubleOracle, name: str) -> dict[str, Worst]:
    """The worst of a function of one operand at all floats.

    Raises: ArithmeticError where a bit differs between widths of vectors.
    """
    loops = [
        (loop_over_arrays(EMIT[name], "float", lanes, fma=fma, scalef=lanes == 16), same)
        for lanes, fma, same in (
            (16, True, -1),
            (8, True, 0),
            (4, True, 0),
            (16, False, -1),
            (4, False, 3),
        )
    ]
    ways = [Way(loop.address, same) for loop, same in loops]
    found = [(0.0, 0.0)] * len(ways)
    for first in range(0, 1 << 31, CHUNK):
        for way, worst in enumerate(oracle.examine(name, ways, range(first, first + CHUNK))):
            found[way] = max(found[way], worst, key=lambda pair: pair[0])
    if any(found[way][0] for way in (1, 2, 4)):
        raise ArithmeticError(f"{name}: the bits depend on the width of vectors")
    return {"fma": (found[0][0], [found[0][1]]), "baseline": (found[3][0], [found[3][1]])}


def measure_samples(oracle: QuadOracle, name: str, type: Float, count: int) -> dict[str, Worst]:
    """The worst of one function and type at samples; `evaluator` only where it has the function."""
    row = FUNCTIONS[name]
    # `samples` takes so many of each kind: bits, sizes, each range, and four around points
    kinds = 6 if row.operands == 2 else 2 + len(row.ranges) + 4 * bool(row.points)
    _compare(oracle, name, type)

    def worst(function: Callable[..., Array], count: int) -> Worst:
        operands, exact, slack = cases(count)
        errors = oracle.distances(exact, function(*operands), slack)
        index = int(errors.argmax())
        return float(errors[index]), [float(operand[index]) for operand in operands]

    known: dict[int, tuple[tuple[Array, ...], Array, Array | None]] = {}

    def cases(count: int) -> tuple[tuple[Array, ...], Array, Array | None]:
        if count not in known:
            with np.errstate(all="ignore"):
                operands = samples(name, type, count // kinds)
            exact = oracle.evaluate(name, *operands)
            known[count] = operands, exact, _slack(oracle, name, type, operands[0], exact)
        return known[count]

    scalar = "float" if type is np.float32 else "double"
    found = {
        way: worst(
            elementwise(EMIT[name], scalar, 8, operands=row.operands, fma=fma, scalef=fma), count
        )
        for way, fma in (("fma", True), ("baseline", False))
    }
    for op in (op for op in ALL if op.name == name):
        few = min(count, COUNT_IN_DECIMALS) if name in IN_DECIMALS else count
        found["evaluator"] = worst(op().evaluate, few)
    return found


def measure_composed(oracle: QuadOracle, name: str, type: Float, count: int) -> Worst:
    """The worst of a function that is composed of others, compiled for this machine."""
    row = COMPOSED[name]
    low, high = row.domain
    ranges = ((low, high), (max(low, -1.5), 1.5), (max(low, -20), 20))
    operands = [sample(type, count // 4, *ranges, seed=seed) for seed in range(row.operands)]
    with np.errstate(all="ignore"):
        wide = [operand.astype(np.float64) for operand in operands]
        slack = None if row.slack is None else row.slack(*wide, float(np.finfo(type).eps))
    result = np.asarray(nk.staged(getattr(nk, name))(*operands))
    slack = None if slack is None else np.nan_to_num(slack, posinf=0)
    errors = oracle.distances(oracle.evaluate(name, *wide), result, slack)
    index = int(errors.argmax())
    return float(errors[index]), [float(operand[index]) for operand in wide]


def _slack(oracle: QuadOracle, name: str, type: Float, x: Array, exact: Array) -> Array | None:
    """What errors are measured against near roots."""
    if name not in SLOPES:
        return None
    value, _ = oracle.parts(exact)
    slope, _ = oracle.parts(oracle.evaluate(SLOPES[name], x))
    with np.errstate(all="ignore"):
        slack = np.abs(x.astype(np.float64) * slope) * float(np.finfo(type).eps)
    return np.where(np.isfinite(slack) & (np.abs(value) < NEAR_A_ROOT), slack, 0.0)


def _compare(oracle: QuadOracle, name: str, type: Float) -> None:
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


def tables(found: dict[str, Any]) -> Iterator[str]:
    """All of them, in Markdown."""
    for type in TYPES:
        yield "\n".join(_table_of_errors(found, type))
    some = [name for name in FUNCTIONS if name not in found["floats"]]
    yield f"Of f32 with fma and without: all 2³² floats, but for {', '.join(some)}, whose floats were sampled."
    yield "\n".join(_table_of_composed(found["composed"]))
    yield "\n".join(_table_of_speeds(found["speed"]))
    yield "\n".join(_table_of_ends())


def _table_of_errors(found: dict[str, Any], type: Float) -> Iterator[str]:
    yield f"| {TYPES[type]} | at most | with fma | at | without fma | at | evaluator | at |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, row in FUNCTIONS.items():
        sampled = found["samples"][TYPES[type]][name]
        worst = sampled | (found["floats"].get(name, {}) if type is np.float32 else {})
        cells = [cell for way in WAYS for cell in _cells(worst.get(way))]
        yield f"| {name} | {row.bound(type):g} | {' | '.join(cells)} |"


def _table_of_composed(found: dict[str, Any]) -> Iterator[str]:
    yield "| composed | f32 at most | found | at | f64 at most | found | at |"
    yield "|---|---|---|---|---|---|---|"
    for name, row in COMPOSED.items():
        cells = (
            cell
            for type, word in TYPES.items()
            for cell in (f"{row.bound(type):g}", *_cells(found[word].get(name)))
        )
        yield f"| {name} | {' | '.join(cells)} |"


def _cells(worst: Sequence[Any] | None) -> tuple[str, str]:
    if worst is None:
        return "", ""
    error, operands = worst
    return f"{error:.2f}", ", ".join(f"{operand:.9g}" for operand in operands)


def _table_of_speeds(found: dict[str, Any]) -> Iterator[str]:
    yield "| ns an element | f32 | ÷ copy | f64 | ÷ copy |"
    yield "|---|---|---|---|---|"
    copy = found["copy"]
    for name, times in found.items():
        cells = (f"{times[type]:.2f} | {times[type] / copy[type]:.1f}" for type in TYPES.values())
        yield f"| {name} | {' | '.join(cells)} |"


def _table_of_ends() -> Iterator[str]:
    yield "| function | of −∞ | of −0 | of +0 | of +∞ |"
    yield "|---|---|---|---|---|"
    for name, row in FUNCTIONS.items():
        if row.operands == 1:
            yield f"| {name} | {' | '.join(map(_end, row.ends))} |"


def _end(value: Any) -> str:
    number = float(value)
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "+∞" if number > 0 else "−∞"
    if number == 0:
        return "−0" if np.signbit(number) else "+0"
    named = {np.pi / 2: "π/2", -np.pi / 2: "−π/2"}
    return named.get(number, f"{number:g}".replace("-", "−"))


def write_page(found: dict[str, Any]) -> str:
    """The page with tables of what was found."""
    head, rest = PAGE.read_text().split(BEGIN)
    _, tail = rest.split(END)
    return f"{head}{BEGIN}\n\n" + "\n\n".join(tables(found)) + f"\n\n{END}{tail}"


def _store(found: dict[str, Any]) -> None:
    """In the order of `FUNCTIONS`, a function a line."""
    FOUND.write_text(_lines(found, 3) + "\n")


def _lines(value: Any, depth: int) -> str:
    if depth == 0 or not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    inner = (f"{json.dumps(key)}: {_lines(item, depth - 1)}" for key, item in value.items())
    return "{\n" + ",\n".join(inner) + "\n}"


def main() -> None:
    what, *names = sys.argv[1:] or ["page"]
    found = json.loads(FOUND.read_text())
    if what == "floats":
        some = names or [name for name, row in FUNCTIONS.items() if row.operands == 1]
        fast = DoubleOracle()
        for name in some:
            found["floats"][name] = measure_floats(fast, name)
            print(name, found["floats"][name], flush=True)
            _store(found)
    elif what == "samples":
        oracle = QuadOracle()
        for type, word in TYPES.items():
            for name in names or FUNCTIONS:
                found["samples"][word][name] = measure_samples(oracle, name, type, COUNT)
                print(word, name, found["samples"][word][name], flush=True)
                _store(found)
    elif what == "composed":
        oracle = QuadOracle()
        for type, word in TYPES.items():
            for name in names or COMPOSED:
                found["composed"][word][name] = measure_composed(oracle, name, type, COUNT)
                print(word, name, found["composed"][word][name], flush=True)
                _store(found)
    elif what == "speed":
        found["speed"] = measure_speeds()
        _store(found)
    else:
        PAGE.write_text(write_page(found))


if __name__ == "__main__":
    main()
