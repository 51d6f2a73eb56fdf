"""Conventions of derivatives, for docs/functions.md: what a docstring says, or else a line from here.

Whoever adds a function says in its docstring what its derivative is at kinks, ties, poles and boundaries, or adds its
name to `SMOOTH`.  What has a result of integers or truth values is in `NONE`, which a test compares with the results.
"""

from __future__ import annotations

import re

NONE = set(
    """allclose isclose isfinite isinf isnan signbit logical_and logical_not logical_or logical_xor bitwise_and
    bitwise_not bitwise_or bitwise_xor left_shift right_shift floor_divide truncate_divide all any argmax argmin
    argsort count_nonzero argwhere flatnonzero nonzero searchsorted diag_indices linalg.matrix_rank
    random.bernoulli random.categorical random.key random.randint random.split""".split()
)
"""Functions whose results are integers or truth values: nothing flows through them."""

PERMUTATION = (
    "that of the permutation: of equal elements to the one that stands there, in stable order"
)
TIES = "ties share it evenly, at every position of the result"
UPDATES = "of an index that repeats 1 by the last update, 0 by those it replaces; ties of max and min share it evenly"
OF_NANS = "0 by the elements that are NaN"
LINES = {
    "nanmean": OF_NANS,
    "nanmedian": f"{PERMUTATION}; {OF_NANS}",
    "nanprod": f"{OF_NANS}; by the others the product of the rest",
    "nansum": OF_NANS,
    "nanvar": OF_NANS,
    "bincount": "by the weights alone",
    "sort": PERMUTATION,
    "top_k": f"{PERMUTATION}; none by the indices",
    "median": PERMUTATION,
    "quantile": f"{PERMUTATION}; none by q",
    "percentile": f"{PERMUTATION}; none by q",
    "cummax": TIES,
    "cummin": TIES,
    "segment_max": "ties of a segment share it evenly",
    "segment_min": "ties of a segment share it evenly",
    "segment_prod": "the product of the others, at any number of zeros",
    "prod": "the product of the others, at any number of zeros",
    "cumprod": "the product of the others, at any number of zeros",
    "max_pool1d": "ties of a window share it evenly",
    "max_pool2d": "ties of a window share it evenly",
    "max_pool3d": "ties of a window share it evenly",
    "put_along_axis": "of an index that repeats 1 by the last update, 0 by those it replaces",
    "scatter": UPDATES,
    "take": "by a alone; what is read several times adds up",
    "take_along_axis": "by arr alone; what is read several times adds up",
    "one_hot": "none: it is of integers",
    "smooth_l1": "at d = beta that of the parabola, to the second order",
    "linalg.solve": "infinite or NaN where a is singular, as the result",
    "linalg.solve_triangular": "infinite or NaN where a is singular; 0 by the triangle that is not read",
    "linalg.cholesky_solve": "infinite or NaN where the factor is singular; 0 by the triangle that is not read",
    "linalg.inv": "infinite or NaN where a is singular, as the result",
    "linalg.slogdet": "0 of the sign; infinite or NaN where a is singular",
    "linalg.eigvalsh": "at equal values, too; 0 by the triangle that is not read",
    "linalg.svdvals": "at equal values, too; as |x| at 0",
    "linalg.lstsq": "that among matrices of one rank; the rank itself has none",
    "linalg.cond": "that of the norms it is made of, NaN where x is singular",
    "interpolate": "by `nearest` 1 at the element that is taken",
    "clip": "1 from the one bound to the other, both included; outside 0, and 1 by the bound",
    "Rep.at": UPDATES,
    "Rep.cast": "none through integers and truth values, also back to floats",
    "Rep.filter": "1 by the elements that are there, none of the count",
    "nn.mlp": "that of the activation",
}
SMOOTH = set(
    """add cos cosh sin sinh tan tanh degrees radians erf erfc exp exp2 expm1 mul negate sub square sigmoid asinh
    atan gelu log_sigmoid mish selu silu swish softmax log_softmax layer_norm cross_entropy binary_cross_entropy
    mse batch_norm group_norm instance_norm mean sum cumsum var segment_sum segment_mean arange full iota ones
    ones_like zeros zeros_like eye linspace tri const broadcast_to concat flip pad stack expand_dims moveaxis
    ravel repeat roll squeeze swapaxes tile array_split meshgrid diag diagonal trace tril triu diff trapezoid
    polyval named zip zip_with convolve correlate cross einsum inner kron outer tensordot vdot conv1d conv2d
    conv3d conv_transpose1d conv_transpose2d conv_transpose3d avg_pool1d avg_pool2d avg_pool3d linalg.expm
    linalg.matrix_power random.cauchy random.choice random.exponential random.gumbel random.laplace
    random.logistic random.normal random.permutation random.truncated_normal random.uniform nn.attention
    nn.conv1d nn.conv2d nn.conv3d nn.embedding nn.gru nn.gru_cell nn.layer_norm nn.linear nn.lstm nn.lstm_cell
    nn.rms_norm
    Rep.T Rep.mT Rep.flatten Rep.fold Rep.map Rep.scan Rep.named Rep.reshape Rep.transpose Rep.shape Bool t.cast
    t.item t.numpy t.tolist""".split()
)
"""Linear maps, what no tensor of floats goes into, and functions without kinks, poles and boundaries."""


def derivative_of(name: str, text: str) -> str:
    """The sentence for a name whose docstring is `text`; nothing if that has one, or none is needed."""
    if is_said(text):
        return ""
    short = name.removeprefix("Rep.") if name not in LINES and name not in SMOOTH else name
    if short in NONE:
        return "No derivative: its results are integers or truth values."
    return f"Derivative: {LINES[short]}." if short in LINES else ""


def is_said(text: str) -> bool:
    """Whether a docstring speaks of it, or refers to that of another function."""
    return re.search(r"derivative|gradient|differentia|\bAs `", text) is not None
