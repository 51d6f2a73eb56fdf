"""How values and IR look in notebooks: their `_repr_html_`."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any

import numpy as np

_MOST_ROWS = 10
"""Of a table: what a screen shows without scrolling, beside other cells."""
_MOST_COLUMNS = 10
"""Of a table: numbers of six digits that fit the width of a notebook."""


class IRText(str):
    """The text of IR or code: a str that a notebook shows as it is written."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self)}</pre>"


def tensor_html(words: str, values: Any) -> str:
    """A line of type and shape, and a table of the numbers, of the last two axes at the first places of the others."""
    array = np.asarray(values)
    shown = array[(0,) * max(0, array.ndim - 2)] if array.size else array
    lines = [f"<code>{html.escape(words)}</code>"]
    if array.size:
        where = f"[{', '.join('0' * (array.ndim - 2))}]" if array.ndim > 2 else ""
        lines.append(f"{where}{_table(np.atleast_2d(shown))}")
    return "".join(lines)


def fields_html(name: str, fields: Iterable[tuple[str, str]]) -> str:
    """A struct as a table of its fields."""
    rows = "".join(
        f"<tr><th>{html.escape(field)}</th><td><code>{html.escape(text)}</code></td></tr>"
        for field, text in fields
    )
    return f"<code>{html.escape(name)}</code><table>{rows}</table>"


def _table(matrix: Any) -> str:
    rows = [
        "<tr>" + "".join(f"<td>{html.escape(_number(one))}</td>" for one in row[:_MOST_COLUMNS])
        + _more(len(row) - _MOST_COLUMNS) + "</tr>"
        for row in matrix[:_MOST_ROWS]
    ]  # fmt: skip
    return f"<table>{''.join(rows)}{_last_row(len(matrix) - _MOST_ROWS)}</table>"


def _more(count: int) -> str:
    return f"<td>… {count} more</td>" if count > 0 else ""


def _last_row(count: int) -> str:
    return f"<tr>{_more(count)}</tr>" if count > 0 else ""


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, np.floating) else str(value)
