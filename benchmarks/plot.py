"""The ratios as a picture: a line for each row, our time over that of each other library, on a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from .report import OURS, Row
from .timing import Spread

COLORS: Final = ("#c2410c", "#1d4ed8", "#0f766e", "#7e22ce")
LINE, TITLES, WIDE, TOP = 24, 430, 470, 70
"""Pixels: the height of a row, the width of titles and of the plot, and the height of the legend."""
LEAST, MOST = 1 / 32, 4.0
"""The ends of the axis; what lies beyond is drawn there."""
TARGET: Final = 'stroke="#666" stroke-width="2"'
TICKS: Final = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0)


def svg(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Dots left of the line at 1 are programs of ours that are faster; a small line is what is to be reached."""
    others = [name for name in columns if name != OURS]
    colors = dict(zip(others, COLORS, strict=False))
    shown = [row for row in rows if row.ratio() is not None]
    height = TOP + LINE * len(shown) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{TITLES + WIDE + 40}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        *_legend(colors),
        *_axis(height),
    ]
    for k, row in enumerate(shown):
        parts += _row(row, TOP + LINE * k + LINE / 2, colors)
    return "\n".join([*parts, "</svg>", ""])


def place(ratio: float) -> float:
    """Where a ratio is, in pixels."""
    within = min(MOST, max(LEAST, ratio))
    return TITLES + WIDE * math.log(within / LEAST) / math.log(MOST / LEAST)


def _legend(colors: dict[str, str]) -> Iterator[str]:
    yield f'<text x="10" y="20" font-weight="bold">time of {OURS} ÷ time of</text>'
    for k, (name, color) in enumerate(colors.items()):
        x = TITLES - 200 + 150 * k
        yield f'<circle cx="{x}" cy="16" r="5" fill="{color}"/>'
        yield f'<text x="{x + 10}" y="20">{escape(name)}</text>'
    x = TITLES - 200 + 150 * len(colors)
    yield f'<line x1="{x}" y1="7" x2="{x}" y2="25" {TARGET}/>'
    yield f'<text x="{x + 10}" y="20">to be at most</text>'


def _axis(height: float) -> Iterator[str]:
    for tick in TICKS:
        x, name = place(tick), f"1/{round(1 / tick)}" if tick < 1 else f"{tick:.0f}"
        stroke = 'stroke="black"' if tick == 1 else 'stroke="#ddd"'
        yield f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{height - 16}" {stroke}/>'
        yield f'<text x="{x:.1f}" y="{TOP - 12}" text-anchor="middle">{name}</text>'


def _row(row: Row, y: float, colors: dict[str, str]) -> Iterator[str]:
    yield f'<text x="{TITLES - 12}" y="{y + 4}" text-anchor="end">{escape(row.title)}</text>'
    if row.target is not None:
        x = place(row.target)
        yield f'<line x1="{x:.1f}" y1="{y - 9}" x2="{x:.1f}" y2="{y + 9}" {TARGET}/>'
    ours = row.cells[OURS]
    for name, color in colors.items():
        other = row.cells.get(name)
        if isinstance(ours, Spread) and isinstance(other, Spread):
            ratio = ours.median / other.median
            title = f"<title>{escape(name)}: {ratio:.2f}</title>"
            yield f'<circle cx="{place(ratio):.1f}" cy="{y}" r="5" fill="{color}">{title}</circle>'
