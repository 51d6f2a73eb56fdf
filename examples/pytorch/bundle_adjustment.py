"""Cameras and points from what the cameras saw: bundle adjustment by Gauss and Newton, in PyTorch."""

import torch
from torch import Tensor
from torch.func import jacrev, vmap

CAMERAS, POINTS = 4, 20


def rotate(by: Tensor, x: Tensor) -> Tensor:
    """Rotate points about an axis by an angle, its length, by the formula of Rodrigues."""
    angle = torch.sqrt(by @ by + 1e-30)
    axis = by / angle
    across = torch.linalg.cross(axis.expand_as(x), x)
    along = (x @ axis)[:, None] * axis
    return x * angle.cos() + across * angle.sin() + along * (1 - angle.cos())


def project(camera: Tensor, points: Tensor) -> Tensor:
    """What a camera sees; it has a rotation, a place and a focal length."""
    seen = rotate(camera[:3], points) + camera[3:6]
    return camera[6] * seen[:, :2] / seen[:, 2:]


def residuals(unknown: Tensor, seen: Tensor) -> Tensor:
    cameras = unknown[: 7 * CAMERAS].reshape(CAMERAS, 7)
    points = unknown[7 * CAMERAS :].reshape(POINTS, 3)
    return (vmap(project, in_dims=(0, None))(cameras, points) - seen).reshape(-1)


def scene() -> Tensor:
    turns = 0.1 * torch.randn(CAMERAS, 3).double()
    places = torch.tensor([0.0, 0.0, 5.0]).double() + 0.1 * torch.randn(CAMERAS, 3).double()
    cameras = torch.cat([turns, places, torch.ones(CAMERAS, 1).double()], dim=1)
    return torch.cat([cameras.reshape(-1), torch.randn(POINTS * 3).double()])


def main() -> None:
    torch.manual_seed(0)
    truth = scene()
    seen = residuals(truth, torch.zeros(CAMERAS, POINTS, 2)).reshape(CAMERAS, POINTS, 2)
    unknown = truth + 0.05 * torch.randn(len(truth)).double()
    damping = 1e-3
    for k in range(10):
        errors = residuals(unknown, seen)
        jacobian = jacrev(residuals)(unknown, seen)
        normal = jacobian.T @ jacobian + damping * torch.eye(len(unknown)).double()
        unknown = unknown - torch.linalg.solve(normal, jacobian.T @ errors)
        damping /= 4
        print(f"{k}: misses by {errors.square().mean().sqrt():.2e}")


if __name__ == "__main__":
    main()
