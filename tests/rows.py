"""`each`: a table in one test, where what pytest does for a test takes longer than a row."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from _pytest.mark import ParameterSet

SHOWN: Final = 5
"""Rows that fail are most often wrong for the same reason."""


def each(
    names: str | tuple[str, ...], rows: Iterable[Any], ids: Callable[[Any], str] = str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `pytest.mark.parametrize`, but in one test: every row is tried, and those that fail are named by `ids`.

    A test costs 4 ms, with two processes, before it does anything.
    """
    parameters = (
        tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    )
    table = [_named(row, len(parameters), ids) for row in rows]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def of_every_row(**others: Any) -> None:
            failed: list[Exception] = []
            for row, name in table:
                try:
                    test(**dict(zip(parameters, row, strict=True)), **others)
                except Exception as error:
                    error.add_note(f"in the row {name}")
                    failed.append(error)
            if len(failed) == 1:
                raise failed[0]
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(table)} rows fail", failed[:SHOWN])

        signature = inspect.signature(test)
        kept = [p for name, p in signature.parameters.items() if name not in parameters]
        of_every_row.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return of_every_row

    return decorate


def _named(row: Any, count: int, ids: Callable[[Any], str]) -> tuple[Sequence[Any], str]:
    """The values of a row, which may be a `pytest.param`, and its name."""
    if isinstance(row, ParameterSet):
        assert not row.marks, "give a row with marks to pytest.mark.parametrize"
        values, name = row.values, row.id
    else:
        values, name = row if count > 1 else (row,), None
    return values, str(name or "-".join(map(ids, values)))
