"""Messages about activations, losses and normalisations."""

from __future__ import annotations

import numpy as np
import pytest

import nnkit as nk
from nnkit import DTypeError, RankError, ShapeError, StagingError

from .messages import M, N, Table, V, on, ones

ROWS = Table()
row = ROWS.row
D = np.ones((2, 3))

# fmt: off

row("activation of integers", DTypeError, "elu takes float elements, not Tensor1D[i32]", "nk.elu(n)",
    "help: cast it, `x.cast(dtype)`")(on(lambda n: nk.elu(n), N))
row("silu of integers", DTypeError, "silu takes float elements, not Tensor1D[i32]", "nk.silu(n)")(
    on(lambda n: nk.silu(n), N))
row("ranks of a loss", RankError, "mse takes two tensors of one shape, not Tensor2D[f32] and Tensor1D[f32]",
    "nk.mse(x, y)", "help: say what is meant")(on(lambda x, y: nk.mse(x, y), M, V))
row("shapes of a loss", ShapeError, "huber takes two tensors of one shape, not f32[2, 3] and f32[2, 1]",
    "nk.huber(x, y)")(on(lambda x, y: nk.huber(x, y), M, ones(2, 1)))
row("types of a loss", DTypeError,
    "mse takes tensors of one element type, not Tensor2D[f32] and Tensor2D[f64]", "nk.mse(x, y)",
    "help: cast one of them")(on(lambda x, y: nk.mse(x, y), M, D))
row("reduction", ShapeError, "smooth_l1: reduction is 'mean', 'sum' or 'none', not 'average'",
    'nk.smooth_l1(x, x, reduction="average")')(on(lambda x: nk.smooth_l1(x, x, reduction="average"), M))
row("delta", ShapeError, "huber: delta is a positive number, not 0", "nk.huber(x, x, delta=0)")(
    on(lambda x: nk.huber(x, x, delta=0), M))
row("weights", ShapeError, "binary_cross_entropy: weights f32[3] do not fit f32[2, 2]",
    "nk.binary_cross_entropy(x[:, :2], 1.0, pos_weight=v)")(
    on(lambda x, v: nk.binary_cross_entropy(x[:, :2], 1.0, pos_weight=v), M, V))
row("weights of integers", DTypeError,
    "binary_cross_entropy of Tensor1D[f32] takes such weights, not Tensor1D[i32]")(
    on(lambda x, n: nk.binary_cross_entropy(x, 1.0, weight=n), V, N))
row("class weights", RankError, "the weight of cross_entropy for a Tensor2D[f32] is a vector of f32",
    "nk.cross_entropy(x, x, weight=x)")(on(lambda x: nk.cross_entropy(x, x, weight=x), M))
row("ignored probabilities", DTypeError, "ignore_index is a class number, and labels are probabilities")(
    on(lambda x: nk.cross_entropy(x, x, ignore_index=1), M))
row("smoothing", ShapeError, "cross_entropy: label_smoothing is a number from 0 to 1, not 2")(
    on(lambda x: nk.cross_entropy(x, x, label_smoothing=2), M))
row("reduction of classes", ShapeError, "cross_entropy: reduction is 'mean', 'sum' or 'none', not 'all'")(
    on(lambda x: nk.cross_entropy(x, x, reduction="all"), M))
row("divergence of numbers", RankError, "kl_divergence sums along the last axis, which a scalar has not")(
    on(lambda x: nk.kl_divergence(x[0], x[0]), V))
row("batch_norm of a vector", RankError, "batch_norm takes a tensor of rank 2 at least, not a Tensor1D[f32]",
    "nk.batch_norm(x)")(on(lambda x: nk.batch_norm(x), V))
row("mean without var", StagingError, "batch_norm takes both mean and var, or none of them",
    "nk.batch_norm(x, mean=v)")(on(lambda x, v: nk.batch_norm(x, mean=v), M, V))
row("scale without offset", StagingError, "batch_norm takes both scale and offset, or none of them",
    "nk.batch_norm(x, v)")(on(lambda x, v: nk.batch_norm(x, v), M, V))
row("matrix as scale", RankError, "rms_norm takes vectors beside x, not a Tensor2D[f32]", "nk.rms_norm(x, x)")(
    on(lambda x: nk.rms_norm(x, x), M))
row("groups", ShapeError, "group_norm: 3 channels of f32[2, 3] cannot be split into 2 groups",
    "nk.group_norm(x, 2)")(on(lambda x: nk.group_norm(x, 2), M))
row("no groups", ShapeError, "group_norm: groups is a positive int, not 0", "nk.group_norm(x, 0)")(
    on(lambda x: nk.group_norm(x, 0), M))
row("axis of normalize", RankError, "axis 2 does not exist: the tensor has rank 2", "nk.normalize(x, 2)")(
    on(lambda x: nk.normalize(x, 2), M))

# fmt: on


@pytest.mark.parametrize("name", ROWS)
def test_message(name: str) -> None:
    ROWS[name].check("test_errors_of_networks.py")
