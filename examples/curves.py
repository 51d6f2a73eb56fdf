"""Draw curves and points in a plane."""

# pyright: reportUnknownMemberType=false
# (the types of matplotlib are not complete)

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

Array = npt.NDArray[np.float64]
Curve = tuple[Array, Array]


def draw_curves(
    file: Path,
    title: str,
    lines: Mapping[str, Curve],
    dots: Mapping[str, Curve],
    *,
    aspect: Literal["auto", "equal"] = "auto",
) -> None:
    """Write a PNG of x and y of each line, the later the darker, and of each set of dots.

    Shapes: x and y of one curve have one length.
    """
    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.add_subplot(title=title, aspect=aspect)
    for k, (label, curve) in enumerate(lines.items()):
        axes.plot(*curve, color=str(0.8 * (1 - (k + 1) / len(lines))), label=label)
    for label, curve in dots.items():
        axes.plot(*curve, ".", label=label)
    axes.legend()
    file.parent.mkdir(exist_ok=True)
    figure.savefig(file)
