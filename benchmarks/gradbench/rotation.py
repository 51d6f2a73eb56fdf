"""Rotations of a vector around an axis."""

from __future__ import annotations

import nnkit as nk
from nnkit import Rep, Scalar, f64

Number = Scalar[f64]
Three = tuple[Rep[Number], Rep[Number], Rep[Number]]
"""The coordinates of a vector in space."""


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


def dot(a: Three, b: Three) -> Rep[Number]:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Three, b: Three) -> Three:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
