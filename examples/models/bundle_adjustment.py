"""Cameras and points from what the cameras saw: bundle adjustment by Gauss and Newton."""

import nnkit as nk
import numpy as np
from nnkit import Rep, Tensor1D, Tensor2D, Tensor3D, f64

CAMERAS, POINTS = 4, 20


def rotate(by: Rep[Tensor1D[f64]], x: Rep[Tensor2D[f64]]) -> Rep[Tensor2D[f64]]:
    """Rotate points about an axis by an angle, its length, by the formula of Rodrigues."""
    angle = nk.sqrt(by @ by + 1e-30)
    axis = by / angle
    along = (x @ axis)[:, None] * axis
    return x * nk.cos(angle) + nk.cross(axis, x) * nk.sin(angle) + along * (1 - nk.cos(angle))


@nk.staged
def project(camera: Rep[Tensor1D[f64]], points: Rep[Tensor2D[f64]]) -> Rep[Tensor2D[f64]]:
    """What a camera sees; it has a rotation, a place and a focal length."""
    seen = rotate(camera[:3], points) + camera[3:6]
    return camera[6] * seen[:, :2] / seen[:, 2:]


@nk.staged
def residuals(unknown: Rep[Tensor1D[f64]], seen: Rep[Tensor3D[f64]]) -> Rep[Tensor3D[f64]]:
    cameras = unknown[: 7 * CAMERAS].reshape(CAMERAS, 7)
    points = unknown[7 * CAMERAS :].reshape(POINTS, 3)
    return nk.vmap(project)(cameras, points) - seen


def scene(rng: np.random.Generator) -> Tensor1D[f64]:
    turns = 0.1 * rng.normal(size=(CAMERAS, 3))
    places = np.array([0.0, 0.0, 5.0]) + 0.1 * rng.normal(size=(CAMERAS, 3))
    cameras = np.hstack([turns, places, np.ones((CAMERAS, 1))])
    return Tensor1D(np.concatenate([cameras.ravel(), rng.normal(size=POINTS * 3)]), f64)


def main() -> None:
    rng = np.random.default_rng(0)
    truth = scene(rng)
    seen = residuals(truth, Tensor3D(np.zeros((CAMERAS, POINTS, 2))))
    unknown = Tensor1D(truth + 0.05 * rng.normal(size=len(truth)), f64)
    improve = nk.optim.gauss_newton(residuals)
    for k in range(10):
        unknown, errors = improve(unknown, f64(1e-3 / 4**k), seen)
        print(f"{k}: misses by {np.sqrt(np.mean(errors.numpy() ** 2)):.2e}")


if __name__ == "__main__":
    main()
