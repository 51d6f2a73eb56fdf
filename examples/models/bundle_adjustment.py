"""Cameras and points from what the cameras saw: bundle adjustment by Gauss and Newton."""

import numpy as np

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, Tensor3D, f64

CAMERAS, POINTS = 4, 20
Vector = Tensor1D[f64]
Matrix = Tensor2D[f64]


@nk.staged
def rotate(by: Rep[Vector], x: Rep[Matrix]) -> Rep[Matrix]:
    """Rotate points about an axis by an angle, its length, by the formula of Rodrigues."""
    angle = nk.sqrt(by @ by + 1e-30)
    axis = by / angle
    u, v, w = axis[0], axis[1], axis[2]
    across = nk.stack(
        [v * x[:, 2] - w * x[:, 1], w * x[:, 0] - u * x[:, 2], u * x[:, 1] - v * x[:, 0]], axis=1
    )
    along = (x @ axis)[:, None] * axis
    return x * nk.cos(angle) + across * nk.sin(angle) + along * (1 - nk.cos(angle))


@nk.staged
def project(camera: Rep[Vector], points: Rep[Matrix]) -> Rep[Matrix]:
    """What a camera sees; it has a rotation, a place and a focal length."""
    seen = rotate(camera[:3], points) + camera[3:6]
    return camera[6] * seen[:, :2] / seen[:, 2:]


@nk.staged
def residuals(unknown: Rep[Vector], seen: Rep[Tensor3D[f64]]) -> Rep[Vector]:
    cameras = unknown[: 7 * CAMERAS].reshape(CAMERAS, 7)
    points = unknown[7 * CAMERAS :].reshape(POINTS, 3)
    return (nk.vmap(project)(cameras, points) - seen).reshape(-1)


@nk.staged
def improve(
    unknown: Rep[Vector], seen: Rep[Tensor3D[f64]], damping: Rep[Scalar[f64]]
) -> tuple[Rep[Vector], Rep[Vector]]:
    errors, jacobian = residuals(unknown, seen), nk.jacobian(of=residuals, wrt=0)(unknown, seen)
    normal = jacobian.T @ jacobian + damping * nk.eye(unknown.shape[0], dtype=f64)
    return unknown - nk.linalg.solve(normal, jacobian.T @ errors), errors


def scene(rng: np.random.Generator) -> Vector:
    turns = 0.1 * rng.normal(size=(CAMERAS, 3))
    places = np.array([0.0, 0.0, 5.0]) + 0.1 * rng.normal(size=(CAMERAS, 3))
    cameras = np.hstack([turns, places, np.ones((CAMERAS, 1))])
    return Tensor1D(np.concatenate([cameras.ravel(), rng.normal(size=POINTS * 3)]), f64)


def main() -> None:
    rng = np.random.default_rng(0)
    truth = scene(rng)
    nothing = Tensor3D(np.zeros((CAMERAS, POINTS, 2)))
    seen = Tensor3D(residuals(truth, nothing).numpy().reshape(CAMERAS, POINTS, 2), f64)
    unknown = Tensor1D(truth + 0.05 * rng.normal(size=len(truth)), f64)
    for k in range(10):
        unknown, errors = improve(unknown, seen, f64(1e-3 / 4**k))
        print(f"{k}: misses by {np.sqrt(np.mean(errors.numpy() ** 2)):.2e}")


if __name__ == "__main__":
    main()
