"""Inputs of the sizes that the evals of GradBench ask for, drawn as they draw them but with a seed always."""

from __future__ import annotations

import numpy as np

from .protocol import Json

SEED = 31337


def lse(n: int) -> Json:
    return {"x": rng().uniform(size=n).tolist()}


def gmm(d: int, k: int, n: int) -> Json:
    draw = rng()
    return {
        "d": d,
        "k": k,
        "n": n,
        "x": draw.normal(size=(n, d)).tolist(),
        "m": 0,
        "gamma": 1.0,
        "mu": draw.uniform(size=(k, d)).tolist(),
        "q": draw.normal(size=(k, d)).tolist(),
        "l": draw.normal(size=(k, d * (d - 1) // 2)).tolist(),
        "alpha": draw.normal(size=k).tolist(),
    }


def entries_of_triangle(d: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Where entry (row, column) of Q is in: its diagonal, below it column by column; 0 is behind these."""
    places = np.full((d, d), d + d * (d - 1) // 2)
    np.fill_diagonal(places, np.arange(d))
    columns, rows = np.triu_indices(d, 1)
    places[rows, columns] = d + np.arange(d * (d - 1) // 2)
    return places


def lstm(layers: int, characters: int, bits: int = 14) -> Json:
    draw = rng()
    return {
        "main_params": draw.uniform(-1, 1, (2 * layers, 4 * bits)).tolist(),
        "extra_params": draw.uniform(-1, 1, (3, bits)).tolist(),
        "state": draw.uniform(-1, 1, (2 * layers, bits)).tolist(),
        "sequence": draw.integers(0, 2, (characters, bits)).tolist(),
    }


def kmeans(k: int, n: int, d: int) -> Json:
    """The last points are the centroids, so that no cluster is empty."""
    points = rng().uniform(size=(n, d)).tolist()
    return {"points": points, "centroids": points[-k:]}


def ba(n: int, m: int, p: int) -> Json:
    """Cameras, points, observations."""
    draw = rng()
    return {
        "n": n,
        "m": m,
        "p": p,
        "cam": draw.uniform(-1, 1, 11).tolist(),
        "x": draw.uniform(-1, 1, 3).tolist(),
        "w": draw.uniform(),
        "feat": draw.uniform(-1, 1, 2).tolist(),
    }


def rng() -> np.random.Generator:
    return np.random.default_rng(SEED)
