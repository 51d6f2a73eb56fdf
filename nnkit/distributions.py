"""Samples of distributions, as pure functions of a key and of parameters that are numbers or tensors.

A number whose distribution has an inverse is that function of a uniform one, and has derivatives by the parameters.
Choices among finitely many, and integers, have none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from .callables import StagedFunction
from .conversion import spec_of, tensor_from
from .core.types import F32, I64, DType
from .elementwise import erf, floor_divide, log, log1p, maximum, minimum, modulo, tan
from .functions import broadcast_to, select, take, zeros_like
from .inverse_error_function import erf_inverse
from .lambdas import fn
from .random_bits import bits_of, checked_key, counters, float_type, unit_of
from .reductions import cumsum
from .reps import const
from .sampling import MOST_KEPT, Sizes
from .sorting import argsort, searchsorted
from .staging import primitive
from .staging.extents import Extent, ShapeLike, Size, is_symbolic, product
from .staging.primitive import dtype_error, rank_error, shape_error
from .staging.rep import Rep
from .staging.rep_base import is_number
from .staging.static import core_dtype, sizes_of
from .tensors import DTYPES, RANKED, f32, i64


def bernoulli(key: Any, p: Any = 0.5, shape: ShapeLike | None = None) -> Any:
    """True with probability p: a number or a tensor, that broadcasts to `shape` (its own by default)."""
    if is_number(p):
        if not 0 <= p <= 1:
            raise shape_error(f"a probability lies between 0 and 1, not {p}")
        extents = sizes_of(() if shape is None else shape, "bernoulli")
        return _draw(_bernoulli, key, p=float(p), shape=extents)
    return _draw(_bernoulli, key, p, shape=_optional(shape, "bernoulli"))


def randint(key: Any, shape: ShapeLike, minval: Any, maxval: Any, dtype: Any = i64) -> Any:
    """Integers from `minval` up to, but not including, `maxval`, equally likely; both ints, or scalars of integers."""
    extents, core = sizes_of(shape, "randint"), core_dtype(dtype)
    if not core.is_integer:
        raise dtype_error(f"randint makes integers, not {core}", "`uniform` makes floats")
    if not (primitive.is_index(minval) and primitive.is_index(maxval)):
        bounds = [np.int64(x) if primitive.is_index(x) else x for x in (minval, maxval)]
        return _draw(_randint, key, *bounds, shape=extents, dtype=core)
    if isinstance(minval, Extent) or isinstance(maxval, Extent):
        return _draw(_randint, key, low=minval, high=maxval, shape=extents, dtype=core)
    if minval >= maxval:
        raise shape_error(
            f"randint takes minval < maxval, not {minval} and {maxval}: there is no such integer"
        )
    primitive.literal(int(minval), core)
    primitive.literal(int(maxval) - 1, core)
    # the range is what remainders in i64 are taken by
    if maxval - minval > np.iinfo(np.int64).max:
        raise shape_error(
            f"randint takes a range of less than 2**63 integers, not {maxval - minval}"
        )
    return _draw(_randint, key, low=int(minval), high=int(maxval), shape=extents, dtype=core)


def categorical(key: Any, logits: Any, axis: int = -1, shape: ShapeLike | None = None) -> Any:
    """Indices along `axis` with probabilities softmax(logits); where one is NaN, it is the index of that.

    `shape` ends in that of the logits without the axis, and draws so many of each.
    """
    rank = primitive.tensor_of(const(logits).expression, "categorical").rank
    position = primitive.normalize_axis(axis, rank)
    extents = _optional(shape, "categorical")
    if extents is not None and len(extents) < rank - 1:
        raise rank_error(f"shape {list(extents)} has fewer axes than the distributions: {rank - 1}")
    return _draw(_categorical, key, logits, axis=position, shape=extents)


def permutation(key: Any, x: Any) -> Any:
    """The numbers from 0 up to an int x, or the rows of a tensor x, in an order of which all are equally likely."""
    if primitive.is_index(x):
        (count,) = sizes_of([x], "permutation")
        return _draw(_permuted_numbers, key, count=count)
    if primitive.tensor_of(const(x).expression, "permutation").rank == 0:
        raise rank_error("permutation takes an int, or a tensor of rank 1 or more")
    return _draw(_permuted_rows, key, x)


def choice(key: Any, a: Any, shape: ShapeLike = (), replace: bool = True, p: Any = None) -> Any:
    """Some of the numbers from 0 up to an int a, or of the rows of a tensor a.

    Without `replace` they differ; p has the probabilities, or numbers proportional to them: a vector.
    Raises: ShapeError for more than there are, without `replace`.
    """
    sizes = sizes_of(shape, "choice")
    weights = () if p is None else (p,)
    if p is not None:
        spec = primitive.tensor_of(const(p).expression, "choice")
        if spec.rank != 1 or not spec.dtype.is_float:
            raise dtype_error(f"probabilities are a vector of floats, not a {spec.words}")
    if primitive.is_index(a):
        (count,) = sizes_of([a], "choice")
        _check_count(product(sizes), count, replace)
        numbers: Callable[..., Rep] = _chosen_numbers if p is None else _chosen
        return _draw(numbers, key, *weights, count=count, shape=sizes, replace=replace)
    if primitive.tensor_of(const(a).expression, "choice").rank == 0:
        raise rank_error("choice takes an int, or a tensor of rank 1 or more")
    rows: Callable[..., Rep] = _chosen_of if p is None else _chosen_by
    return _draw(rows, key, a, *weights, shape=sizes, replace=replace)


def gumbel(key: Any, shape: ShapeLike = (), dtype: Any = f32) -> Any:
    """Numbers of the standard Gumbel distribution, that of the maximum of many: −log(−log u)."""
    return _inverse(_gumbel_of, key, shape, dtype, "gumbel")


def exponential(key: Any, shape: ShapeLike = (), dtype: Any = f32) -> Any:
    """Numbers of the exponential distribution of mean 1."""
    return _inverse(_exponential_of, key, shape, dtype, "exponential")


def laplace(key: Any, shape: ShapeLike = (), dtype: Any = f32) -> Any:
    """Numbers of the Laplace distribution of mean 0 and scale 1."""
    return _inverse(_laplace_of, key, shape, dtype, "laplace")


def logistic(key: Any, shape: ShapeLike = (), dtype: Any = f32) -> Any:
    """Numbers of the standard logistic distribution."""
    return _inverse(_logistic_of, key, shape, dtype, "logistic")


def cauchy(key: Any, shape: ShapeLike = (), dtype: Any = f32) -> Any:
    """Numbers of the standard Cauchy distribution."""
    return _inverse(_cauchy_of, key, shape, dtype, "cauchy")


def truncated_normal(
    key: Any,
    lower: Any,
    upper: Any,
    shape: ShapeLike | None = None,
    dtype: Any = f32,
) -> Any:
    """Numbers of the standard normal distribution between `lower` and `upper`: numbers, or tensors that broadcast.

    Exact to about the precision of `erf`: bounds on one side of 0, further than 4 (f32) or 7 (f64) from it, are
    too close to 1 for it.
    """
    extents = _optional(shape, "truncated_normal")
    if is_number(lower) and is_number(upper):
        if not lower < upper:
            raise shape_error(f"truncated_normal takes lower < upper, not {lower} and {upper}")
        given = {"lower": float(lower), "upper": float(upper), "dtype": float_type(dtype)}
        return _draw(_truncated, key, shape=extents or (), **given)
    known = primitive.tensor_of(
        const(upper if is_number(lower) else lower).expression, "truncated_normal"
    )
    bounds = [known.dtype.nearest(x) if is_number(x) else x for x in (lower, upper)]
    return _draw(_truncated, key, *bounds, shape=extents, dtype=float_type(known.dtype))


def dropout(x: Any, rate: Any, key: Any) -> Any:
    """x with each element set to 0 with probability `rate`, the others divided by 1 − rate.

    All of them are 0 where the rate is 1.  The derivative is that of the choice which was made.
    """
    spec = primitive.tensor_of(const(x).expression, "dropout")
    if not spec.dtype.is_float:
        raise dtype_error(f"dropout takes floats, not a {spec.words}", "cast it, `x.cast(dtype)`")
    if is_number(key):
        raise dtype_error(
            f"dropout(x, rate, key) takes a key last, not the number {key!r}",
            "`nk.dropout(x, 0.5, nk.random.key(0))`",
        )
    if not is_number(rate):
        return _draw(_dropout, key, x, rate)
    if not 0 <= rate <= 1:
        raise shape_error(f"a rate lies between 0 and 1, not {rate}")
    return _draw(_dropout, key, x, rate=float(rate))


def _bernoulli(key: Rep, p: Any, *, shape: Sizes | None) -> Rep:
    if not isinstance(p, Rep):
        chosen: Rep = unit_of(bits_of(key, counters(shape or ())), F32) < p
        return chosen
    (likely,), at = _lined_up([p], shape)
    dtype = _wide(likely)
    return unit_of(bits_of(key, at), dtype) < likely.cast(DTYPES[dtype])


def _randint(key: Rep, low: Any, high: Any, *, shape: Sizes, dtype: DType) -> Rep:
    first, end = (x.cast(i64) if isinstance(x, Rep) else x for x in (low, high))
    numbers = modulo(bits_of(key, counters(shape)), end - first)
    return (numbers + first).cast(DTYPES[dtype])


def _categorical(key: Rep, logits: Rep, *, axis: int, shape: Sizes | None) -> Rep:
    rank = primitive.tensor_of(logits.expression, "categorical").rank
    dtype = _wide(logits)
    last = logits.transpose(*(a for a in range(rank) if a != axis), axis)
    wide = last.cast(DTYPES[dtype])
    if shape is not None:
        wide = broadcast_to(wide, (*shape, wide.shape[-1]))
    noise = _gumbel_of(_open_unit(key, counters(wide.shape), dtype))
    return (wide + noise).argmax(-1)


def _permuted_numbers(key: Rep, *, count: Size) -> Rep:
    return argsort(bits_of(key, counters((count,))))


def _permuted_rows(key: Rep, x: Rep) -> Rep:
    return take(x, _permuted_numbers(key, count=x.shape[0]))


def _chosen(key: Rep, p: Rep | None, *, count: Size, shape: Sizes, replace: bool) -> Rep:
    """Numbers below `count`."""
    if p is None and replace:
        return _randint(key, 0, count, shape=shape, dtype=I64)
    if p is None:
        order = _permuted_numbers(key, count=count)
    else:
        wide = p.cast(DTYPES[_wide(p)]).reshape(count)  # as many as there are numbers
        if replace:
            sums = cumsum(wide, 0)
            unit = unit_of(bits_of(key, counters(shape)), _wide(p))
            return searchsorted(sums, unit * sums[-1], side="right")
        noise = _gumbel_of(_open_unit(key, counters((count,)), _wide(p)))
        order = argsort(log(wide) + noise, descending=True)
    first: Rep = order[: product(shape)]
    return first.reshape(*shape)


def _chosen_of(key: Rep, a: Rep, *, shape: Sizes, replace: bool) -> Rep:
    return take(a, _chosen(key, None, count=a.shape[0], shape=shape, replace=replace))


def _chosen_by(key: Rep, a: Rep, p: Rep, *, shape: Sizes, replace: bool) -> Rep:
    return take(a, _chosen(key, p, count=a.shape[0], shape=shape, replace=replace))


def _chosen_numbers(key: Rep, *, count: Size, shape: Sizes, replace: bool) -> Rep:
    return _chosen(key, None, count=count, shape=shape, replace=replace)


def _check_count(wanted: Any, count: Any, replace: bool) -> None:
    """Raises: ShapeError where both are known, and there are not so many."""
    if isinstance(wanted, Extent) or isinstance(count, Extent):
        return
    if (0 < wanted and count < 1) or (not replace and wanted > count):
        raise shape_error(
            f"choice of {wanted} from {count} without replacement"
            if count
            else "choice from nothing"
        )


def _gumbel_of(unit: Rep) -> Rep:
    return -log(-log(unit))


def _exponential_of(unit: Rep) -> Rep:
    return -log(unit)


def _laplace_of(unit: Rep) -> Rep:
    return select(unit < 0.5, log(unit * 2.0), -log((1.0 - unit) * 2.0))


def _logistic_of(unit: Rep) -> Rep:
    return log(unit) - log1p(-unit)


def _cauchy_of(unit: Rep) -> Rep:
    return tan((unit - 0.5) * math.pi)


def _inverse(
    quantile: Callable[[Rep], Rep], key: Any, shape: ShapeLike, dtype: Any, name: str
) -> Any:
    """Numbers whose distribution has the inverse `quantile`."""
    extents, core = sizes_of(shape, name), float_type(dtype)
    return _draw(_quantiles, key, quantile=quantile, shape=extents, dtype=core)


def _quantiles(key: Rep, *, quantile: Callable[[Rep], Rep], shape: Sizes, dtype: DType) -> Rep:
    wide = F32 if dtype.bits == 16 else dtype
    return quantile(_open_unit(key, counters(shape), wide)).cast(DTYPES[dtype])


def _truncated(key: Rep, lower: Any, upper: Any, *, shape: Sizes | None, dtype: DType) -> Rep:
    wide = F32 if dtype.bits == 16 else dtype
    if isinstance(lower, Rep):
        (lower, upper), at = _lined_up([lower.cast(DTYPES[wide]), upper.cast(DTYPES[wide])], shape)
        ends: tuple[Any, Any] = (erf(lower * math.sqrt(0.5)), erf(upper * math.sqrt(0.5)))
    else:
        at = counters(shape or ())
        ends = (math.erf(lower * math.sqrt(0.5)), math.erf(upper * math.sqrt(0.5)))
    low, high = ends
    between = _open_unit(key, at, wide) * (high - low) + low
    number = erf_inverse(between) * math.sqrt(2.0)
    return maximum(minimum(number, upper), lower).cast(DTYPES[dtype])


def _dropout(key: Rep, x: Rep, rate: Any) -> Rep:
    if not isinstance(rate, Rep) and rate in (0, 1):
        return zeros_like(x) if rate else x
    dtype = DTYPES[primitive.tensor_of(x.expression, "dropout").dtype]
    unit = unit_of(bits_of(key, counters(x.shape)), F32)
    if isinstance(rate, Rep):
        return select(unit >= rate.cast(f32), x / (1.0 - rate).cast(dtype), 0.0)
    return select(unit >= rate, x / (1.0 - rate), 0.0)


def _lined_up(parameters: Sequence[Rep], shape: Sizes | None) -> tuple[list[Rep], Rep]:
    """Parameters of the shape of the numbers, and the counters of these."""
    if shape is not None:
        return [broadcast_to(x, shape) for x in parameters], counters(shape)
    whole = parameters[0]
    for x in parameters[1:]:
        whole = whole + x
    return list(parameters), counters(whole.shape)


def _open_unit(key: Rep, at: Rep, dtype: DType) -> Rep:
    """Numbers in (0, 1), neither of which it is: odd multiples of a power of two."""
    digits = dtype.digits - 1
    number = floor_divide(bits_of(key, at), 1 << (64 - digits)) + (1 << (digits - 1))
    return (number.cast(DTYPES[dtype]) + 0.5) * 2.0**-digits


def _wide(x: Rep) -> DType:
    """The element type to compute in: f32 for shorter ones."""
    dtype = float_type(primitive.tensor_of(x.expression, "random").dtype)
    return F32 if dtype.bits == 16 else dtype


def _optional(shape: ShapeLike | None, what: str) -> Sizes | None:
    return None if shape is None else sizes_of(shape, what)


def _draw(body: Callable[..., Rep], key: Any, *tensors: Any, **known: Any) -> Any:
    """`body` of the key and of tensors, compiled or staged once for what is known besides."""
    checked_key(key)
    given = [x if isinstance(x, Rep) else tensor_from(x, "a parameter") for x in tensors]
    if is_symbolic(tuple(known.values())):
        return body(const(key), *map(const, given), **known)
    specs = tuple(x.spec if isinstance(x, Rep) else spec_of(x) for x in given)
    return _staged(body, tuple(known.items()), specs)(key, *given)


@lru_cache(MOST_KEPT)
def _staged(
    body: Callable[..., Rep], known: tuple[tuple[str, Any], ...], specs: tuple[Any, ...]
) -> StagedFunction:
    ranked: Any = RANKED
    types = [ranked[spec.rank][DTYPES[spec.dtype]] for spec in specs]
    return fn(ranked[0][i64], *types)(partial(body, **dict(known)))
