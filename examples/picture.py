"""Draw how a classifier learned, and what it still misreads."""

# pyright: reportUnknownMemberType=false
# (the types of matplotlib are not complete)

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

Integers = npt.NDArray[np.int64]
PLACES = (5, 6, 7, 8, 13, 14, 15, 16)  # the right half of a grid of 2 × 8


def draw(
    file: Path,
    losses: Sequence[float],
    accuracies: Sequence[float],
    images: npt.NDArray[np.float32],
    labels: Integers,
    readings: Integers,
) -> None:
    """Write a PNG: on the left the learning curve, on the right up to eight misread digits.

    Shapes: one loss a step, one accuracy an epoch; images (n, 64), labels and readings (n).
    """
    figure = Figure(figsize=(12, 4), layout="constrained")
    axes = figure.add_subplot(1, 2, 1, xlabel="epoch", title="Learning curve")
    epochs = np.arange(1, len(losses) + 1) * len(accuracies) / len(losses)
    axes.semilogy(epochs, losses, linewidth=0.5, label="training loss")
    axes.semilogy(np.arange(1, len(accuracies) + 1), accuracies, label="held-out accuracy")
    axes.legend()
    for place, i in zip(PLACES, np.flatnonzero(labels != readings), strict=False):
        title = f"{labels[i]} read as {readings[i]}"
        axes = figure.add_subplot(2, 8, place, title=title, xticks=[], yticks=[])
        axes.imshow(images[i].reshape(8, 8), cmap="gray_r")
    figure.savefig(file)
