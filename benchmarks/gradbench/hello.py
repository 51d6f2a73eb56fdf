"""hello: x² and its derivative."""

from __future__ import annotations

import nnkit as nk
from nnkit import Rep, Scalar, f64

from .protocol import Function, Json


@nk.staged
def square(x: Rep[Scalar[f64]]) -> Rep[Scalar[f64]]:
    return x * x


double = nk.gradient(of=square, wrt=0)


def prepare(given: Json) -> tuple[Scalar[f64]]:
    return (nk.f64(given),)


FUNCTIONS = {
    "square": Function(prepare, square, float),
    "double": Function(prepare, double, float),
}
