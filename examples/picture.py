"""Draw how a classifier learned, and what it still misreads."""

# pyright: reportUnknownMemberType=false
# (the types of matplotlib are not complete)

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

Integers = npt.NDArray[np.int64]


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
    grid = figure.add_gridspec(2, 8)
    axes = figure.add_subplot(grid[:, :4], xlabel="epoch", title="Learning curve")
    epochs = np.arange(1, len(losses) + 1) * len(accuracies) / len(losses)
    errors = 1 - np.array(accuracies)
    axes.semilogy(epochs, losses, linewidth=0.5, label="training loss")
    axes.semilogy(np.arange(1, len(errors) + 1), errors, label="held-out digits misread")
    axes.legend()
    for k, i in enumerate(np.flatnonzero(labels != readings)[:8]):
        title = f"{labels[i]} read as {readings[i]}"
        axes = figure.add_subplot(grid[k // 4, 4 + k % 4], title=title, xticks=[], yticks=[])
        axes.imshow(images[i].reshape(8, 8), cmap="gray_r")
    figure.savefig(file)
