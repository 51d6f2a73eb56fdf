"""lse: the logarithm of a sum of exponentials, and its gradient, from the operations that it consists of."""

from __future__ import annotations

import numpy as np

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, f64

from .protocol import Function, Json


@nk.staged
def logsumexp(x: Rep[Tensor1D[f64]]) -> Rep[Scalar[f64]]:
    largest = nk.stop_gradient(x.max())  # which cancels in the derivative
    return largest + nk.log(nk.exp(x - largest).sum())


softmax = nk.gradient(of=logsumexp, wrt=0)


def prepare(given: Json) -> tuple[Tensor1D[f64]]:
    return (Tensor1D(np.array(given["x"], np.float64)),)


FUNCTIONS = {
    "primal": Function(prepare, logsumexp, float),
    "gradient": Function(prepare, softmax, lambda slope: slope.numpy().tolist()),
}
