"""Laws of the functions of the language: values, derivatives and batches of all rows of a table, compiled together.

A row is a function of ours, an oracle (NumPy's function, or any that takes and gives arrays), and arguments:

    check({
        "hypot": Row(nk.hypot, np.hypot, (X, Y)),
        "axis": Row(lambda x: nk.diff(x, axis=0), lambda x: np.diff(x, axis=0), (X,)),
        "indices": Row(nk.take, lambda x, i: x[i], (X, I), batched=(0,)),
        "counts": Row(nk.count_nonzero, np.count_nonzero, (N,)),
    })

For each row: the results have the shapes, element types and values of the oracle's; compiled code and the evaluator
agree; and where arguments and results are f64: the gradient is that of differences, forward mode agrees with reverse
mode, and so does the second derivative with differences of the first; `vmap` gives what a loop over the elements does.

A table costs one compilation for values, four for derivatives and one for batches, however many rows it has; each row
has parameters of its own in them.  A failure names the row.  `arguments` are arrays or tensors away from kinks; those
of f16, f32 and so on are checked for values and batches only, so rows for derivatives take f64.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import nnkit as nk
from nnkit.core.evaluate import evaluate
from nnkit.core.types import Array

MAX_RANK: Final = 5
STEP: Final = 1e-6
SCALES: Final = (1.0, 0.75, 0.5)
"""Elements of a batch are the arguments times these, so that what is sorted, positive or definite stays so."""


@dataclass(frozen=True)
class Row:
    """`ours(*arguments)` is `oracle(*arguments)`: an array, or a tuple or list of them."""

    ours: Callable[..., Any]
    oracle: Callable[..., Any]
    arguments: tuple[Any, ...]
    wrt: tuple[int, ...] | None = None
    """The arguments to differentiate by: those of f64 by default, `()` for none."""
    order: int = 2
    """Up to which derivatives are checked: 1 where the second one is not there, or jumps."""
    batched: tuple[int, ...] | None = None
    """The arguments that differ among elements of a batch: all by default, `()` for no batches."""
    tolerance: float | None = None
    """Of values, relative and absolute: 32 units in the last place by default."""
    any_dtype: bool = False
    """Whether the oracle's element type is another than ours, as for bf16 and sums of narrow integers."""


def check(rows: Mapping[str, Row]) -> None:
    """All laws for all rows."""
    table = _Table(rows)
    table.check_values()
    table.check_derivatives()
    table.check_batches()


class _Table:
    """The rows, all arguments in one list, and what was found so far."""

    def __init__(self, rows: Mapping[str, Row]) -> None:
        self.rows = dict(rows)
        self.given = [argument for row in rows.values() for argument in row.arguments]
        ends = np.cumsum([len(row.arguments) for row in rows.values()]).tolist()
        starts = [0, *ends[:-1]]
        self.at = {
            name: range(*ends)
            for name, ends in zip(rows, zip(starts, ends, strict=True), strict=True)
        }
        self.values = _staged(self._results, len(self.given))
        self.found: dict[str, list[Any]] = {}

    def _results(self, *arguments: Any) -> tuple[Any, ...]:
        """The results of all rows, in a row."""
        return tuple(result for name in self.rows for result in self._of(name, arguments))

    def _of(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        try:
            found = self.rows[name].ours(*(arguments[k] for k in self.at[name]))
        except Exception as error:
            error.add_note(f"  in row {name!r}")
            raise
        return _listed(found)

    def check_values(self) -> None:
        specialization = self.values._specialization(self.values._values(tuple(self.given)))
        module, entry = specialization.module("raw")
        native = iter(_listed(self.values(*self.given)))
        with np.errstate(all="ignore"):
            plain = iter(_listed(evaluate(module, entry.name, *map(np.asarray, self.given))))
        for name, row in self.rows.items():
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                wanted = _listed(row.oracle(*map(np.asarray, row.arguments)))
            self.found[name] = [next(native) for _ in wanted]
            for place, (got, want) in enumerate(zip(self.found[name], wanted, strict=True)):
                what = f"{name}, result {place}"
                dtype = np.asarray(want).dtype
                assert row.any_dtype or np.asarray(got).dtype == dtype, (
                    f"{what}: {got.dtype}, not {dtype}"
                )
                _agree(f"{what}: not as the oracle", got, want, row)
                _agree(f"{what}: compiled, not as evaluated", got, next(plain), row)
        assert next(native, None) is None, "a row has more results than its oracle"

    def _moved(self, order: int) -> dict[str, list[int]]:
        """The positions to differentiate by, of each row that has some."""
        moved: dict[str, list[int]] = {}
        for name, row in self.rows.items():
            floats = [k for k, one in enumerate(row.arguments) if _is_double(one)]
            chosen = floats if row.wrt is None else row.wrt
            if row.order >= order and chosen and any(map(_is_double, self.found[name])):
                moved[name] = [self.at[name][k] for k in chosen]
        return moved

    def _totals(self, names: Sequence[str]) -> Callable[..., tuple[Any, ...]]:
        """For each row a number that depends on all of its results, unlike a sum on each in another way."""

        def total(name: str, arguments: Sequence[Any]) -> Any:
            found = zip(self._of(name, arguments), self.found[name], strict=True)
            terms = [(rep * _weights(at.shape)).sum() for rep, at in found if _is_double(at)]
            return sum(terms[1:], terms[0])

        return lambda *arguments: tuple(total(name, arguments) for name in names)

    def check_derivatives(self) -> None:
        moved = self._moved(1)
        if not moved:
            return
        wrt = tuple(k for positions in moved.values() for k in positions)
        totals = _staged(self._totals(list(moved)), len(self.given))
        slopes = nk.gradient(of=_staged(lambda *xs: sum(totals(*xs)), len(self.given)), wrt=wrt)
        found = dict(zip(wrt, map(np.asarray, _listed(slopes(*self.given))), strict=True))
        wanted = {k: np.zeros_like(found[k]) for k in wrt}
        for step in range(max(sum(found[k].size for k in ks) for ks in moved.values())):
            places = dict(_nth(step, found, moved))
            above, below = (self._shifted(places, sign) for sign in (STEP, -STEP))
            change = np.subtract(_listed(totals(*above)), _listed(totals(*below))) / (2 * STEP)
            for name, difference in zip(moved, change, strict=True):
                if name in places:
                    wanted[places[name][0]][places[name][1]] = difference
        directions = {k: _weights(found[k].shape, 2.0) for k in wrt}
        pushed = nk.jvp(totals, wrt=wrt)(*self.given, *directions.values())[1]
        for (name, positions), tangent in zip(moved.items(), _listed(pushed), strict=True):
            for k in positions:
                _close(f"{name}: gradient, not as differences", found[k], wanted[k], 2e-6)
            product = sum((found[k] * directions[k]).sum() for k in positions)
            _close(f"{name}: forward, not as reverse", tangent, product, 1e-9)
        self._check_second(self._moved(2), directions)

    def _check_second(
        self, moved: Mapping[str, Sequence[int]], directions: Mapping[int, Array]
    ) -> None:
        if not moved:
            return
        wrt = tuple(k for positions in moved.values() for k in positions)
        totals = self._totals(list(moved))
        total = _staged(lambda *xs: sum(totals(*xs)), len(self.given))
        slopes = nk.gradient(of=total, wrt=wrt)
        found = _listed(nk.hvp(total, wrt=wrt)(*self.given, *(directions[k] for k in wrt)))
        ends = []
        for sign in (STEP, -STEP):
            shifted = list(self.given)
            for k in wrt:
                shifted[k] = np.asarray(shifted[k]) + sign * directions[k]
            ends.append(map(np.asarray, _listed(slopes(*shifted))))
        wanted = {k: (up - down) / (2 * STEP) for k, up, down in zip(wrt, *ends, strict=True)}
        for name, positions in moved.items():
            for k in positions:
                got = np.asarray(found[wrt.index(k)])
                _close(f"{name}: second derivative, not as differences", got, wanted[k], 2e-6)

    def _shifted(self, places: Mapping[str, tuple[int, Any]], step: float) -> list[Any]:
        shifted = list(self.given)
        for position, index in places.values():
            shifted[position] = np.array(shifted[position])
            shifted[position][index] += step
        return shifted

    def check_batches(self) -> None:
        axes: list[int | None] = [None] * len(self.given)
        for name, row in self.rows.items():
            chosen = range(len(row.arguments)) if row.batched is None else row.batched
            sizes = [*(row.arguments[k] for k in chosen), *self.found[name]]
            if chosen and max(map(np.ndim, sizes)) < MAX_RANK:
                for k in chosen:
                    axes[self.at[name][k]] = 0
        names = [name for name in self.rows if any(axes[k] == 0 for k in self.at[name])]
        if not names:
            return
        elements = [[_element(x, b) for b in range(len(SCALES))] for x in self.given]
        given = [
            x if axis is None else np.stack(xs)
            for x, xs, axis in zip(self.given, elements, axes, strict=True)
        ]
        some = _staged(
            lambda *xs: tuple(y for name in names for y in self._of(name, xs)), len(given)
        )
        found = _listed(nk.vmap(some, in_axes=tuple(axes))(*given))
        for b in range(len(SCALES)):
            one = [
                x if axis is None else xs[b]
                for x, xs, axis in zip(self.given, elements, axes, strict=True)
            ]
            results = iter(_listed(self.values(*one)))
            looped = {name: [next(results) for _ in self.found[name]] for name in self.rows}
            batched = iter(found)
            for name in names:
                for want in looped[name]:
                    _agree(
                        f"{name}: vmap, not as a loop",
                        np.asarray(next(batched))[b],
                        want,
                        self.rows[name],
                    )


def _staged(function: Callable[..., Any], count: int) -> Any:
    """Staged, with `count` parameters."""
    names = ", ".join(f"x{k}" for k in range(count))
    return nk.staged(eval(f"lambda {names}: function({names})", {"function": function}))


def _listed(results: Any) -> list[Any]:
    return [*results] if isinstance(results, tuple | list) else [results]


def _is_double(x: Any) -> bool:
    return bool(np.asarray(x).dtype == np.float64)


def _weights(shape: tuple[int, ...], phase: float = 1.0) -> Array:
    """Numbers without a pattern, between 0.5 and 1.5."""
    return np.asarray(1 + 0.5 * np.cos(phase + np.arange(np.prod(shape, dtype=int)) ** 2)).reshape(
        shape
    )


def _nth(
    step: int, found: Mapping[int, Array], moved: Mapping[str, Sequence[int]]
) -> Iterator[tuple[str, tuple[int, Any]]]:
    """Of each row that has so many, the position and index of element number `step` of its arguments."""
    for name, positions in moved.items():
        rest = step
        for k in positions:
            if rest < found[k].size:
                yield name, (k, np.unravel_index(rest, found[k].shape))
                break
            rest -= found[k].size


def _element(x: Any, b: int) -> Array:
    """An argument as element b of a batch has it."""
    array = np.asarray(x)
    return (
        np.asarray(array * array.dtype.type(SCALES[b]))
        if array.dtype.kind == "f"
        else np.roll(array, b)
    )


def _agree(what: str, got: Any, want: Any, row: Row) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: {got.shape}, not {want.shape}"
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    tolerance = 32 * np.finfo(got.dtype).eps if row.tolerance is None else row.tolerance
    np.testing.assert_allclose(
        got.astype(np.float64), want.astype(np.float64), tolerance, tolerance, err_msg=what
    )


def _close(what: str, got: Any, want: Any, tolerance: float) -> None:
    scale = max(1.0, float(np.max(np.abs(want), initial=0)))
    np.testing.assert_allclose(got, want, tolerance, tolerance * scale, err_msg=what)
