"""What is wrong with a call of a public function whose arguments do not fit, and what to write instead.

Arguments have NumPy's names, and those of JAX or PyTorch where NumPy has no such function: see
docs/decisions/0049-names-and-arguments-are-numpys.md.  `OTHER_NAMES` are those that others give them, `ABSENT` the
arguments of NumPy, JAX and PyTorch that a function does not have, each with a remedy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from inspect import Parameter
from types import MappingProxyType
from typing import Any, Final, cast

from ..core.errors import NNKitError, StagingError
from .location import current_location, with_location

OTHER_NAMES: Final = """
    dim dims axes dimension | axis axes
    axis dim dims | axes
    keepdim keep_dims keep_dim | keepdims
    size sizes dims newshape | shape num
    shape output_size | size
    type element_type | dtype
    correction unbiased | ddof
    reverse largest | descending
    low lower minimum min_value | minval a_min min lo
    high upper maximum max_value | maxval a_max max hi
    depth count classes n_classes | num_classes
    count n | num minlength num_segments
    size length minlength | num_segments minlength num
    p prob drop_rate | rate
    rate prob probs | p
    value values fill | constant_values fill_value
    pad padding paddings widths | pad_width
    shifts | shift
    repetitions multiples dims | reps
    repeat n times | repeats
    sections split_size_or_sections num_or_size_splits | indices_or_sections
    index idx ids scatter_indices | indices segment_ids
    sorted_sequence boundaries bins | a
    values query x y | v
    src source updates update | values
    window window_size window_shape pool_size | kernel_size
    kernel filters rhs | weight
    strides window_strides | stride
    dilations rhs_dilation | dilation
    feature_group_count | groups
    gamma weight | scale
    beta bias | offset
    eps | epsilon
    epsilon | eps
    lr step_size | learning_rate
    b1 betas | beta1
    b2 | beta2
    momentum | decay
    other b y x2 rhs | b v y
    target targets label y_true | targets labels
    prediction preds y_pred | predictions logits
    condition cond mask predicate | pred condition
    true_fun true_fn | then
    false_fun false_fn | orelse
    x a | on_true
    y b other | on_false
    cond_fun cond_fn | test
    body_fun body_fn | body
    init_val initial carry | init
    fun func function fn f | of
    argnums argnum | wrt
    in_dims | in_axes
    out_dims | out_axes
    rng prng_key seed generator | key
    alpha slope | negative_slope decay
    negative_slope | alpha
    diagonal offset | k offset
    dim0 dim1 | axis1
    dim2 | axis2
    n | N
    m | M
    end | stop
    steps | num
    order p | ord
    digits ndigits | decimals
    interpolation | method
    input x a m v A arr ary array tensor data xs arrays tensors operand image images features self | FIRST
"""
"""What others call an argument, and what it may be called here, the likeliest first."""

ABSENT: Final = """
    out | values do not change: use the result; `f(x, out=y)` writes what a staged function returns to an array
    where | choose before it, `nk.where(mask, x, 0.0)`
    initial | combine it with the result, as in `nk.maximum(x.max(), 0.0)`
    dtype precision preferred_element_type | cast before it, `x.cast(f64)`; sums have `accumulate=f64`
    order | tensors are in row-major order
    memory_format casting subok signature like | leave it out: there is nothing to choose
    device pin_memory | leave it out: code runs on the CPU
    requires_grad | leave it out: `nk.gradient(of=f, wrt=0)` says what is differentiated
    inplace copy overwrite_input | leave it out: values do not change
    kind stable | leave it out: equal elements stay in order
    sorter | sort before it, `nk.take(a, sorter)`
    sorted | leave it out: the greatest come first
    weights | weigh the elements before it
    retstep | the distance is `(stop - start) / (num - 1)`
    sparse | operators broadcast, `x[:, None] + y[None, :]`
    hermitian | leave it out: `eigh` is for symmetric matrices
    rtol rcond | the bound has another name, or is the default
    mean | leave it out: it is computed once anyway
    b return_sign | weigh the elements before it, `nk.logsumexp(x + nk.log(b))`
    optimize | leave it out: the order of products is chosen anyway
    indices_are_sorted unique_indices | leave it out: it is correct for all indices
    independent | `vmap` permutes each row by a key of its own
    axes | `nk.moveaxis` moves them before it
    axis | `nk.moveaxis` moves it, or `vmap` goes along it
    keepdims | `nk.expand_dims(result, axis)` puts the axis back
"""
"""What a function does not take, and what to do instead."""

HABITS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cond": "write `cond(pred, lambda: f(x), lambda: g(x))`: both by position, without arguments, as they read "
        "what is around them; `select(pred, a, b)` chooses element by element",
        "rmsprop.momentum": "RMSProp has none here: `nk.optim.adam` has a mean of slopes, too",
        "rmsprop.centered": "leave it out: the mean of slopes is not taken off",
        "gradient": "write `gradient(of=f, wrt=0)`: both by name; `wrt` is an index, several, or a field `P.w`",
        "value_and_gradient": "write `value_and_gradient(of=f, wrt=0)`: both by name",
    }
)
"""Of functions that others take in another form, what is said of every call that does not fit; of `function.argument`,
what is said of that.
"""

WITHOUT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "num_segments": "say how many there are: an extent cannot depend on data",
        "num_classes": "say how many there are: an extent cannot depend on data",
        "key": "random numbers are functions of a key, `nk.random.key(0)`",
        "optimizer": "for example `optimizer=nk.optim.adam(1e-3)`",
    }
)
"""What to give where an argument is missing that others do not need."""

_LIKE: Final = 0.6
"""How much alike (`difflib`'s ratio) names are of which one may be meant for the other."""


def wrong_call(
    function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> NNKitError:
    """What is wrong with `function(*arguments, **keywords)`, at the user's line."""
    taken = inspect.signature(function).parameters
    is_method = next(iter(taken), "") == "self"
    own = [p for p in taken.values() if p.name != "self"]
    given = len(arguments) - is_method
    name = f"x.{function.__name__}" if is_method else function.__name__
    words, help = _mistake(name, own, given, keywords)
    habits = [
        HABITS[key] for key in (name, *(f"{name}.{one}" for one in keywords)) if key in HABITS
    ]
    help = habits[0] if habits else help
    return with_location(StagingError(words), current_location(), help)  # type: ignore[no-any-return]


def _mistake(
    name: str, own: Sequence[Parameter], given: int, keywords: Mapping[str, Any]
) -> tuple[str, str]:
    """The message, and what to do."""
    shown = f"{name}({', '.join(_shown(own))})"
    by_name = [
        p.name for p in own if p.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    ]
    by_place = [
        p for p in own if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    ]
    for keyword in keywords:
        if keyword not in by_name:
            taken = {*by_name} & {*keywords} | {p.name for p in by_place[:given]}
            return f"{name} has no argument {keyword!r}: it is {shown}", _remedy(
                keyword, own, taken
            )
    if given > len(by_place):
        others = [p.name for p in own if p.kind is Parameter.KEYWORD_ONLY]
        help = f"others are given by name, `{others[0]}=`" if others else ""
        most = f"at most {len(by_place)}" if by_place else "no"
        return f"{name} takes {most} arguments by position, not {given}: it is {shown}", help
    for parameter in by_place[:given]:
        if parameter.name in keywords:
            return f"{name} is given {parameter.name!r} twice: it is {shown}", ""
    missing = [
        p.name
        for p in [*by_place[given:], *(p for p in own if p.kind is Parameter.KEYWORD_ONLY)]
        if p.default is Parameter.empty and p.name not in keywords
    ]
    help = next((WITHOUT[one] for one in missing if one in WITHOUT), "")
    return f"{name} is called without {' and '.join(map(repr, missing))}: it is {shown}", help


def _remedy(keyword: str, own: Sequence[Parameter], taken: set[str]) -> str:
    """What to write for an argument that there is not."""
    free = {p.name: p for p in own if p.name not in taken}
    if keyword in free:
        return f"give {keyword} by position"
    for others, names in _rows(OTHER_NAMES):
        if keyword in others.split():
            for candidate in names.split():
                meant = own[0].name if candidate == "FIRST" and own else candidate
                if meant in free:
                    is_named = free[meant].kind is not Parameter.POSITIONAL_ONLY
                    return (
                        f"write `{meant}=` for `{keyword}=`" if is_named else "give it by position"
                    )
    for others, remedy in _rows(ABSENT):
        if keyword in others.split():
            return remedy
    alike = get_close_matches(keyword, free, 1, _LIKE)
    return f"write `{alike[0]}=` for `{keyword}=`" if alike else ""


def _rows(table: str) -> list[tuple[str, str]]:
    rows = (row.partition("|") for row in table.strip().splitlines())
    return [(names.strip(), rest.strip()) for names, _, rest in rows]


def _shown(own: Sequence[Parameter]) -> list[str]:
    """The parameters as in the reference."""
    shown: list[str] = []
    for parameter in own:
        if parameter.kind is Parameter.KEYWORD_ONLY and "*" not in "".join(shown):
            shown.append("*")
        name = str(parameter.replace(annotation=Parameter.empty, default=Parameter.empty))
        default = parameter.default
        plain = default is None or isinstance(default, bool | int | float | str | tuple)
        known = repr(cast(object, default)) if plain else "…"
        text = default.__name__ if isinstance(default, type) else known
        shown.append(name if default is Parameter.empty else f"{name}={text}")
    return shown
