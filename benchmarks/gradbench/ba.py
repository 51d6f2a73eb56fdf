"""ba: the errors of bundle adjustment, and their sparse Jacobian in compressed rows.

All observations at once, in columns: camera (11, p), point (3, p), weight (p).  An observation has a block of 2×15
derivatives, by its camera, point and weight; as no other depends on these, the gradient of the sum of a component over
all observations has the rows of all blocks.  (`vmap` of the gradient of one observation is to take its place.)
"""

from __future__ import annotations

import numpy as np

import nnkit as nk
from nnkit import Field, Rep, Struct, Tensor1D, Tensor2D, f64, i64

from .compressed_rows import CompressedRows
from .protocol import Function, Json

Matrix = Tensor2D[f64]
Vector = Tensor1D[f64]
Three = tuple[Rep[Vector], Rep[Vector], Rep[Vector]]


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


@nk.staged
def project(
    camera: Rep[Matrix], point: Rep[Matrix], weight: Rep[Vector], feature: Rep[Matrix]
) -> tuple[Rep[Vector], Rep[Vector]]:
    """The errors of reprojection along both axes of the image."""
    seen = (point[0] - camera[3], point[1] - camera[4], point[2] - camera[5])
    x, y, z = rotate((camera[0], camera[1], camera[2]), seen)
    u, v = x / z, y / z
    square = u * u + v * v
    factor = camera[6] * (1.0 + square * (camera[9] + square * camera[10]))
    du, dv = u * factor + camera[7] - feature[0], v * factor + camera[8] - feature[1]
    return weight * du, weight * dv


def rotate(r: Three, x: Three) -> Three:
    """x turned around the axis r by the angle |r| (Rodrigues); x + r × x where that is 0."""
    angle = nk.sqrt(dot(r, r))
    sine, cosine = nk.sin(angle), nk.cos(angle)
    axis = (r[0] / angle, r[1] / angle, r[2] / angle)
    along = dot(axis, x) * (1.0 - cosine)
    turned, small = cross(axis, x), cross(r, x)
    a, b, c = (
        nk.select(angle == 0.0, x[k] + small[k], x[k] * cosine + turned[k] * sine + axis[k] * along)
        for k in range(3)
    )
    return a, b, c


def dot(a: Three, b: Three) -> Rep[Vector]:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Three, b: Three) -> Three:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


rows_of_u = nk.gradient(of=project, wrt=(0, 1, 2), from_=0)
rows_of_v = nk.gradient(of=project, wrt=(0, 1, 2), from_=1)


@nk.staged
def errors(scene: Rep[Scene]) -> tuple[Rep[Matrix], Rep[Vector]]:
    """(p, 2) of reprojection and (p) of weights."""
    camera, point = observed(scene)
    weights = scene[Scene.weights]
    both = project(camera, point, weights, scene[Scene.features].T).unpack()
    return nk.stack(both, axis=1), 1.0 - weights * weights


@nk.staged
def jacobian(scene: Rep[Scene]) -> tuple[Rep[Vector], Rep[Tensor1D[i64]]]:
    """The values that are not 0 and their columns, row by row: two of 15 per observation, then those of weights."""
    camera, point = observed(scene)
    weights, features = scene[Scene.weights], scene[Scene.features].T
    rows: list[Rep[Matrix]] = []
    for rows_of in (rows_of_u, rows_of_v):
        block = rows_of(camera, point, weights, features).unpack()
        rows.append(nk.concat([block[0], block[1], block[2].expand_dims(0)]))
    values = nk.stack(rows).transpose(2, 0, 1)  # (p, 2, 15)
    return nk.concat([values.reshape(-1), -2.0 * weights]), columns(scene)


def observed(scene: Rep[Scene]) -> tuple[Rep[Matrix], Rep[Matrix]]:
    """The camera and the point of each observation, in columns."""
    cameras = nk.take(scene[Scene.cameras], scene[Scene.camera])
    return cameras.T, nk.take(scene[Scene.points], scene[Scene.point]).T


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
