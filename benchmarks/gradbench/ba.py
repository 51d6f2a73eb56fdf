"""ba: the errors of bundle adjustment, and their sparse Jacobian in compressed rows.

All observations at once, each of 15 numbers: camera, point and weight.  As its errors depend on these alone, the
gradient of a sum of errors over all observations has a row of each one's 2×15 derivatives.  (`vmap` of the gradient of
one observation is to take its place.)
"""

from __future__ import annotations

import numpy as np

import nnkit as nk
from nnkit import Field, Rep, Struct, Tensor1D, Tensor2D, f64, i64

from .compressed_rows import CompressedRows
from .protocol import Function, Json
from .rotation import rotate

Matrix = Tensor2D[f64]
Vector = Tensor1D[f64]


class Scene(Struct):
    cameras: Field[Matrix]  # (n, 11)
    points: Field[Matrix]  # (m, 3)
    weights: Field[Vector]  # (p)
    features: Field[Matrix]  # (p, 2)
    camera: Field[Tensor1D[i64]]  # (p)  which one an observation is made by
    point: Field[Tensor1D[i64]]  # (p)   and of
    first: Field[
        Tensor1D[i64]
    ]  # (3)   columns where the derivatives by cameras, points, weights begin


class Observations(Struct):
    """A number of each observation in each field, in the order of columns in the Jacobian."""

    r0: Field[Vector]
    r1: Field[Vector]
    r2: Field[Vector]
    c0: Field[Vector]
    c1: Field[Vector]
    c2: Field[Vector]
    focus: Field[Vector]
    u: Field[Vector]
    v: Field[Vector]
    k1: Field[Vector]
    k2: Field[Vector]
    x: Field[Vector]
    y: Field[Vector]
    z: Field[Vector]
    weight: Field[Vector]


FIELDS = nk.fields(Observations)


@nk.staged
def project(o: Rep[Observations], feature: Rep[Matrix]) -> tuple[Rep[Vector], Rep[Vector]]:
    """The errors of reprojection along both axes of the image, whose features are rows."""
    r0, r1, r2, c0, c1, c2, focus, u0, v0, k1, k2, px, py, pz, weight = (o[f] for f in FIELDS)
    x, y, z = rotate((r0, r1, r2), (px - c0, py - c1, pz - c2))
    u, v = x / z, y / z
    square = u * u + v * v
    factor = focus * (1.0 + square * (k1 + square * k2))
    return weight * (u * factor + u0 - feature[0]), weight * (v * factor + v0 - feature[1])


rows_of_u = nk.gradient(of=project, wrt=0, from_=0)
rows_of_v = nk.gradient(of=project, wrt=0, from_=1)


@nk.staged
def errors(scene: Rep[Scene]) -> tuple[Rep[Matrix], Rep[Vector]]:
    """(p, 2) of reprojection and (p) of weights."""
    weights = scene[Scene.weights]
    both = project(observations(scene), scene[Scene.features].T).unpack()
    return nk.stack(both, axis=1), 1.0 - weights * weights


@nk.staged
def jacobian(scene: Rep[Scene]) -> tuple[Rep[Vector], Rep[Tensor1D[i64]]]:
    """The values that are not 0 and their columns, row by row: two of 15 per observation, then those of weights."""
    made, features = observations(scene), scene[Scene.features].T
    pair = rows_of_u(made, features), rows_of_v(made, features)
    values = nk.stack([rows[field] for rows in pair for field in FIELDS], axis=1)  # (p, 30)
    return nk.concat([values.reshape(-1), -2.0 * scene[Scene.weights]]), columns(scene)


def observations(scene: Rep[Scene]) -> Rep[Observations]:
    """What is observed in every observation."""
    cameras = nk.take(scene[Scene.cameras], scene[Scene.camera]).T
    points = nk.take(scene[Scene.points], scene[Scene.point]).T
    rows = [cameras[k] for k in range(11)] + [points[k] for k in range(3)]
    rows.append(scene[Scene.weights])
    return nk.build(Observations, *(f << row for f, row in zip(FIELDS, rows, strict=True)))


def columns(scene: Rep[Scene]) -> Rep[Tensor1D[i64]]:
    first = scene[Scene.first]
    by_camera = first[0] + 11 * scene[Scene.camera].expand_dims(1) + nk.arange(11, i64)
    by_point = first[1] + 3 * scene[Scene.point].expand_dims(1) + nk.arange(3, i64)
    by_weight = first[2] + nk.cumsum(nk.ones_like(scene[Scene.camera]), axis=0) - 1
    row = nk.concat([by_camera, by_point, by_weight.expand_dims(1)], axis=1)
    return nk.concat([nk.stack([row, row], axis=1).reshape(-1), by_weight])


def run_jacobian(scene: Scene) -> CompressedRows:
    values, where = jacobian(scene)
    p = len(scene.weights.numpy())
    begins = np.concatenate([np.arange(0, 30 * p, 15), np.arange(30 * p, 31 * p + 1)])
    return CompressedRows(begins, where, values)


def prepare(given: Json) -> tuple[Scene]:
    n, m, p = (int(given[name]) for name in ("n", "m", "p"))
    rows = (given["cam"], n), (given["x"], m), (given["feat"], p)
    cameras, points, features = (Tensor2D(np.tile([row], (count, 1)), f64) for row, count in rows)
    weights, first = Tensor1D(np.full(p, given["w"]), f64), np.array([0, 11 * n, 11 * n + 3 * m])
    i = np.arange(p)
    at, camera, point = (Tensor1D(each, i64) for each in (first, i % n, i % m))
    return (Scene(cameras, points, weights, features, camera, point, at),)


def encode_errors(errors: tuple[Matrix, Vector]) -> Json:
    reprojection, weight = (error.numpy() for error in errors)
    p = len(weight)
    return {
        "reproj_error": {"elements": reprojection[0].tolist(), "repeated": p},
        "w_err": {"element": float(weight[0]), "repeated": p},
    }


FUNCTIONS = {
    "objective": Function(prepare, errors, encode_errors),
    "jacobian": Function(prepare, run_jacobian, CompressedRows.encode),
}
