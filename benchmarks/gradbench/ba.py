"""ba: the errors of bundle adjustment, and their sparse Jacobian in compressed rows.

One observation has two errors, of 15 numbers: camera, point and weight.  `vmap` of its Jacobian, 2×15, gives the blocks
of all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, f64, i64

from .compressed_rows import CompressedRows
from .protocol import Function, Json
from .rotation import rotate

Matrix = Tensor2D[f64]
Number = Scalar[f64]
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


@nk.staged
def project(
    camera: Rep[Vector], point: Rep[Vector], weight: Rep[Number], feature: Rep[Vector]
) -> Rep[Vector]:
    """The two errors of one observation: a camera of 11 numbers sees a point of 3 at an image's feature."""
    axis, centre = (camera[0], camera[1], camera[2]), (camera[3], camera[4], camera[5])
    x, y, z = rotate(axis, (point[0] - centre[0], point[1] - centre[1], point[2] - centre[2]))
    u, v = x / z, y / z
    square = u * u + v * v
    factor = camera[6] * (1.0 + square * (camera[9] + square * camera[10]))
    seen = nk.stack([u * factor + camera[7], v * factor + camera[8]])
    return weight * (seen - feature)


project_all = nk.vmap(project, in_axes=0)
block = nk.jacobian(
    of=project, wrt=(0, 1, 2)
)  # a name of its own: pyright takes minutes for both in one
blocks = nk.vmap(block, in_axes=0)


@nk.staged
def errors(scene: Rep[Scene]) -> tuple[Rep[Matrix], Rep[Vector]]:
    """(p, 2) of reprojection and (p) of weights."""
    weights = scene[Scene.weights]
    return project_all(*observations(scene)), 1.0 - weights * weights


@nk.staged
def jacobian(
    scene: Rep[Scene],
) -> tuple[Rep[Vector], Rep[Tensor1D[i64]], Rep[Tensor1D[i64]]]:
    """The values that are not 0, their columns, and where rows begin: two of 15 per observation, then weights."""
    by_camera, by_point, by_weight = blocks(*observations(scene)).unpack()
    values = nk.concat([by_camera, by_point, by_weight.expand_dims(2)], axis=2)  # (p, 2, 15)
    weights = scene[Scene.weights]
    p = weights.shape[0]
    values = nk.concat([values.reshape(-1), -2.0 * weights])
    begins = nk.concat([nk.arange(0, 30 * p, 15, i64), nk.arange(30 * p, 31 * p + 1, 1, i64)])
    return values, columns(scene), begins


def observations(scene: Rep[Scene]) -> tuple[Rep[Matrix], Rep[Matrix], Rep[Vector], Rep[Matrix]]:
    """The arguments of `project` for each observation."""
    cameras = nk.take(scene[Scene.cameras], scene[Scene.camera])
    points = nk.take(scene[Scene.points], scene[Scene.point])
    return cameras, points, scene[Scene.weights], scene[Scene.features]


def columns(scene: Rep[Scene]) -> Rep[Tensor1D[i64]]:
    first = scene[Scene.first]
    by_camera = first[0] + 11 * scene[Scene.camera].expand_dims(1) + nk.arange(11, i64)
    by_point = first[1] + 3 * scene[Scene.point].expand_dims(1) + nk.arange(3, i64)
    by_weight = first[2] + nk.arange(scene[Scene.camera].shape[0], i64)
    row = nk.concat([by_camera, by_point, by_weight.expand_dims(1)], axis=1)
    return nk.concat([nk.stack([row, row], axis=1).reshape(-1), by_weight])


class Room(NamedTuple):
    """The arrays of a Jacobian, which each run fills anew, as those of the tools in C++ do."""

    values: Vector
    columns: Tensor1D[i64]
    begins: Tensor1D[i64]


def run_jacobian(scene: Scene, room: Room) -> CompressedRows:
    values, columns, begins = jacobian(scene, out=(room.values, room.columns, room.begins))
    return CompressedRows(begins, columns, values)


def prepare(given: Json) -> tuple[Scene]:
    n, m, p = (int(given[name]) for name in ("n", "m", "p"))
    rows = (given["cam"], n), (given["x"], m), (given["feat"], p)
    cameras, points, features = (Tensor2D(np.tile([row], (count, 1)), f64) for row, count in rows)
    weights, first = Tensor1D(np.full(p, given["w"]), f64), np.array([0, 11 * n, 11 * n + 3 * m])
    i = np.arange(p)
    at, camera, point = (Tensor1D(each, i64) for each in (first, i % n, i % m))
    return (Scene(cameras, points, weights, features, camera, point, at),)


def prepare_jacobian(given: Json) -> tuple[Scene, Room]:
    p = int(given["p"])
    values = Tensor1D(np.zeros(31 * p), f64)
    columns, begins = (Tensor1D(np.zeros(size, np.int64), i64) for size in (31 * p, 3 * p + 1))
    return *prepare(given), Room(values, columns, begins)


def encode_errors(errors: tuple[Matrix, Vector]) -> Json:
    reprojection, weight = (error.numpy() for error in errors)
    p = len(weight)
    return {
        "reproj_error": {"elements": reprojection[0].tolist(), "repeated": p},
        "w_err": {"element": float(weight[0]), "repeated": p},
    }


FUNCTIONS = {
    "objective": Function(prepare, errors, encode_errors),
    "jacobian": Function(prepare_jacobian, run_jacobian, CompressedRows.encode),
}
