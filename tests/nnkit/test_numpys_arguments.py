"""Parameters are NumPy's, and JAX's and PyTorch's of what NumPy lacks: names, order, defaults.

NumPy's are asked of itself, for every function that it has, too.  What differs is in tables, with the reason; what is
missing has a remedy in `nnkit.staging.wrong_calls`.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from inspect import Parameter
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import nnkit as nk
from nnkit import StagingError, f32, f64, i32
from nnkit.staging.rep import Rep
from nnkit.staging.wrong_calls import ABSENT, OTHER_NAMES
from tests.nnkit.function_laws import Row, check

OTHERS: Final = {
    "fix": "recursion; NumPy's is `trunc`",
    "gradient": "the derivative; NumPy's differences are `diff`",
    "select": "JAX's choice by a mask; NumPy's is among lists",
    "einsum": "operands follow the subscripts only",
    "matmul": "`@` has no options, and `accumulate` is ours",
    "arange": "its signature says `start_or_stop` in some versions: see `test_makers`",
    "norm": "of all axes; NumPy's is `linalg.norm`",
}
"""What is called alike and means something else, or has no parameters in NumPy to compare with."""
OTHER_DEFAULTS: Final = {
    "take.axis": (0, "rows, as models look them up; of all elements it is `take(x.ravel(), i)`"),
    "take.mode": ("error", "which accepts NumPy's name of it, 'raise', too"),
    "eye.dtype": (None, "f32"),
    "tri.dtype": (None, "f32"),
    "put_along_axis.axis": (-1, "as of `take_along_axis`"),
    "split.indices_or_sections": (None, "a staged function has none"),
    "diff.prepend": (None, "NumPy has an object of its own"),
    "diff.append": (None, "NumPy has an object of its own"),
    "clip.a_min": (None, "NumPy has an object of its own"),
    "clip.a_max": (None, "NumPy has an object of its own"),
    "clip.min": (None, "NumPy has an object of its own"),
    "clip.max": (None, "NumPy has an object of its own"),
    "linspace.dtype": (None, "that of a staged end, or f32"),
}
OURS: Final = {
    "accumulate": "sums in a wider type",
    "keepdims": "of all reductions",
    "descending": "JAX's",
    "fill_value": "JAX's, of mode='fill'",
    "size": "JAX's: extents do not depend on data",
    "mode": "JAX's: what indices outside do",
    "length": "JAX's",
    "total_repeat_length": "JAX's",
    "constant_values": "NumPy's, among its `**kwargs`",
    "wrt": "of a staged function",
    "save": "of a staged function",
    "dtype": "of `linspace`, `arange` and others that NumPy has it of, too",
    "upper": "NumPy's, since 2.0",
}
"""Parameters that NumPy has not, or has not of every function that has them here."""
TWO: Final = {"x", "y"}
"""Of ufuncs, which take their operands by position only."""


def in_numpy() -> Iterator[tuple[str, Callable[..., Any], Any]]:
    """Our functions that NumPy has, too, and its."""
    for space, its in ((nk, np), (nk.linalg, np.linalg)):
        for name in dir(space):
            ours, other = getattr(space, name), getattr(its, name, None)
            is_public = inspect.isfunction(ours) and name[0] != "_"
            if is_public and callable(other) and name not in OTHERS:
                yield name, ours, other


@cache
def parameters(function: Any) -> dict[str, Parameter]:
    return dict(inspect.signature(function).parameters)


def by_place(of: Mapping[str, Parameter]) -> list[str]:
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in of.values() if p.kind in kinds]


def absent() -> set[str]:
    """All that have a remedy."""
    rows = [row.partition("|")[0].split() for row in ABSENT.strip().splitlines()]
    renamed = [row.partition("|")[0].split() for row in OTHER_NAMES.strip().splitlines()]
    return {name for names in (*rows, *renamed) for name in names}


def test_names_order_and_defaults_are_numpys() -> None:
    compared, remedied = 0, absent()
    for name, function, its in in_numpy():
        ours = parameters(function)
        if isinstance(its, np.ufunc):
            operands = [p for p in ours if p not in OURS]
            assert len(operands) == its.nin and {*operands} <= TWO, (name, ours)
            continue
        try:
            theirs = parameters(its)
        except ValueError:  # of C, in older versions
            continue
        compared += 1
        places, found = by_place(ours), by_place(theirs)
        shared = next((k for k, p in enumerate(found) if p not in ours), len(found))
        # those behind one that is missing have another place, and so are given by name
        assert places == found[:shared], (name, places, found)
        for parameter in theirs.values():
            if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
                continue
            mine = ours.get(parameter.name)
            if mine is None:
                assert parameter.name in remedied, (name, parameter.name)
                continue
            is_named = parameter.kind is not Parameter.POSITIONAL_ONLY
            assert not is_named or mine.kind is not Parameter.POSITIONAL_ONLY, (name, parameter)
            expected, _ = OTHER_DEFAULTS.get(f"{name}.{mine.name}", (parameter.default, ""))
            if "no value" not in repr(expected):
                assert mine.default == expected, (name, mine, expected)
        assert {*ours} - {*theirs} <= {*OURS, "xi"}, (name, ours)
    assert compared > 70


def test_methods_have_the_parameters_of_functions() -> None:
    """Those of arrays, too; a method of a Rep takes what the function of its name takes besides the tensor."""
    compared = 0
    for name in dir(Rep):
        function, method = getattr(nk, name, None), getattr(Rep, name)
        if name[0] == "_" or not inspect.isfunction(function) or not inspect.isfunction(method):
            continue
        own, others = ([*parameters(one).values()][1:] for one in (method, function))
        if name == "clip":  # NumPy's method has one name for each bound, its function two
            others = [p for p in others if p.name in ("min", "max")]
        for mine, other in zip(own, others, strict=False):
            assert (mine.name, mine.default) == (other.name, other.default), (name, own, others)
        compared += 1
    assert compared > 20


JAXS: Final = """
    random.key(seed)
    random.split(key, num=2)
    random.uniform(key, shape=(), dtype=f32, minval=0.0, maxval=1.0)
    random.normal(key, shape=(), dtype=f32)
    random.gumbel(key, shape=(), dtype=f32)
    random.exponential(key, shape=(), dtype=f32)
    random.laplace(key, shape=(), dtype=f32)
    random.logistic(key, shape=(), dtype=f32)
    random.cauchy(key, shape=(), dtype=f32)
    random.randint(key, shape, minval, maxval, dtype=i64)
    random.bernoulli(key, p=0.5, shape=None)
    random.categorical(key, logits, axis=-1, shape=None)
    random.choice(key, a, shape=(), replace=True, p=None)
    random.permutation(key, x)
    random.truncated_normal(key, lower, upper, shape=None, dtype=f32)
    relu(x)
    relu6(x)
    sigmoid(x)
    softplus(x)
    silu(x)
    swish(x)
    mish(x)
    selu(x)
    log_sigmoid(x)
    hard_sigmoid(x)
    hard_swish(x)
    hard_tanh(x)
    elu(x, alpha=1.0)
    celu(x, alpha=1.0)
    leaky_relu(x, negative_slope=0.01)
    gelu(x, approximate=False)
    softmax(x, axis=-1)
    log_softmax(x, axis=-1)
    logsumexp(a, axis=None, *, keepdims=False)
    one_hot(x, num_classes, dtype=None, axis=-1)
    top_k(operand, k, axis=-1)
    select(pred, on_true, on_false)
    stop_gradient(x)
    rsqrt(x)
    segment_sum(data, segment_ids, num_segments, *, mode='error')
    linalg.expm(A)
    linalg.solve_triangular(a, b, *, lower=False, trans=0, unit_diagonal=False)
    conv2d(input, weight, bias=None, *, stride=1, padding=0, dilation=1, groups=1)
    conv_transpose1d(input, weight, bias=None, *, stride=1, padding=0, output_padding=0, groups=1, dilation=1)
    max_pool2d(input, kernel_size, stride=None, *, padding=0, ceil_mode=False)
    avg_pool1d(input, kernel_size, stride=None, *, padding=0, ceil_mode=False, count_include_pad=True)
    interpolate(input, size=None, *, scale_factor=None, mode='nearest', align_corners=False)
    cross_entropy(logits, labels, *, weight=None, ignore_index=None, reduction='mean', label_smoothing=0.0)
    optim.adam(learning_rate=0.001, *, beta1=0.9, beta2=0.999, eps=1e-08)
"""
"""Of functions that NumPy has not: from `jax.random`, `jax.nn`, `jax.lax`, `jax.ops`, `jax.scipy` and
`torch.nn.functional`.  Default element types are those of the reference; gelu is exact, as PyTorch's."""


def test_others_have_jaxs_and_pytorchs() -> None:
    for line in JAXS.strip().splitlines():
        name, _, _ = line.strip().partition("(")
        function: Any = nk
        for part in name.split("."):
            function = getattr(function, part)
        shown = re.sub(r"<class 'nnkit.tensors.(\w+)'>", r"\1", _without_types(function))
        assert f"{name}{shown}" == line.strip()


def _without_types(function: Any) -> str:
    plain = [p.replace(annotation=Parameter.empty) for p in parameters(function).values()]
    return str(inspect.Signature(plain))


def stub_signatures(path: Path) -> Iterator[tuple[str, list[str], list[str], list[str]]]:
    """Of every overload in a stub, also of classes of functions: the names given by place, either way, and by name."""
    tree = ast.parse(path.read_text())
    calls = {
        node.name: [member for member in node.body if getattr(member, "name", "") == "__call__"]
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    for node in tree.body:
        match node:
            case ast.FunctionDef(name, args):
                found: list[Any] = [args]
            case ast.AnnAssign(target=ast.Name(name), annotation=ast.Name(kind)):
                found = [getattr(member, "args", None) for member in calls.get(kind, [])]
            case _:
                continue
        for one in found:
            places, either, named = (
                [a.arg for a in group] for group in (one.posonlyargs, one.args, one.kwonlyargs)
            )
            if "self" in (*places, *either):
                (places or either).remove("self")
            # a name of the stub alone is what a checker shows: no one gives it
            yield name, places, either, [a for a in named if not a.startswith("_")]


def test_stubs_have_the_parameters_of_functions() -> None:
    """The same names at the same places; an overload for one use may leave out or insist on a way of giving them."""
    folder, compared = Path(nk.__file__).parent, 0
    for path, module in (
        ("__init__.pyi", nk),
        ("linalg.pyi", nk.linalg),
        ("random.pyi", nk.random),
    ):
        for name, places, either, named in stub_signatures(folder / path):
            function = getattr(module, name, None)
            if not inspect.isfunction(function) or name in ("staged", "split"):
                continue
            ours = parameters(function)
            if any(p.kind is Parameter.VAR_POSITIONAL for p in ours.values()):
                continue
            assert [*places, *either] == by_place(ours)[: len(places) + len(either)], (
                name,
                places,
                either,
            )
            assert {*named} <= {p for p in ours if ours[p].kind is not Parameter.POSITIONAL_ONLY}, (
                name,
                named,
            )
            only = [p for p in either if ours[p].kind is Parameter.POSITIONAL_ONLY]
            assert not only, (name, only)
            compared += 1
    assert compared > 1000


X: Final = np.array([[-1.5, 0.5, 2.5], [3.25, -0.75, 1.0]])
V: Final = X[0]
I: Final = np.array([0, 2, 1, 2])
F: Final = np.float32


def made(ours: Callable[..., Any], theirs: Any, *arguments: Any) -> Row:
    """A row for a maker, whose element type is checked, too."""
    return Row(ours, lambda *_: theirs, arguments)


def test_makers() -> None:
    """Values and element types, by default and as asked for, of numbers and of sizes."""
    check(
        {
            "zeros": made(lambda: nk.zeros(3), np.zeros(3, F)),
            "zeros of a shape": made(lambda: nk.zeros(shape=(2, 3)), np.zeros((2, 3), F)),
            "zeros of integers": made(lambda: nk.zeros((2,), i32), np.zeros(2, np.int32)),
            "ones by a size": Row(
                lambda x: nk.ones(x.shape[1]), lambda x: np.ones(3, F), (X.astype(F),)
            ),
            "full of an int": made(lambda: nk.full(2, 7), np.full(2, 7)),
            "full of a float": made(lambda: nk.full((2, 1), 0.5), np.full((2, 1), 0.5, F)),
            "full of a bool": made(lambda: nk.full(2, fill_value=True), np.full(2, True)),
            "full, cast": Row(
                lambda a: nk.full(2, a, f32), lambda a: np.full(2, a, F), (V[0].astype(F),)
            ),
            "arange": made(lambda: nk.arange(4), np.arange(4)),
            "arange from": made(lambda: nk.arange(1, 4), np.arange(1, 4)),
            "arange down": made(lambda: nk.arange(5, 0, -2), np.arange(5, 0, -2)),
            "arange of none": made(lambda: nk.arange(4, 1), np.arange(4, 1)),
            "arange of a float": made(lambda: nk.arange(3.0), np.arange(3.0, dtype=F)),
            "arange by parts": made(
                lambda: nk.arange(0.0, 1.0, 0.3, f64), np.arange(0.0, 1.0, 0.3)
            ),
            "arange by quarters": made(lambda: nk.arange(0.5, 2, 0.25), np.arange(0.5, 2, 0.25, F)),
            "arange of a type": made(lambda: nk.arange(3, i32), np.arange(3, dtype=np.int32)),
            "arange by names": made(
                lambda: nk.arange(start=1, stop=3, dtype=f64), np.arange(1.0, 3.0)
            ),
            "arange of sizes": Row(
                lambda x: nk.arange(x.shape[0], 9, x.shape[1]),
                lambda x: np.arange(2, 9, 3),
                (X.astype(F),),
            ),
            "arange down by a size": Row(
                lambda x: nk.arange(x.shape[1], -4, -x.shape[0]),
                lambda x: np.arange(3, -4, -2),
                (X.astype(F),),
            ),
            "like": Row(
                lambda x: nk.zeros_like(x, i32),
                lambda x: np.zeros_like(x, np.int32),
                (X.astype(F),),
            ),
            "like of a shape": Row(
                lambda x: nk.ones_like(a=x, shape=4),
                lambda x: np.ones_like(x, shape=4),
                (X.astype(F),),
            ),
            "eye": made(lambda: nk.eye(2), np.eye(2, dtype=F)),
            "eye by names": made(lambda: nk.eye(N=2, M=3, k=1, dtype=f64), np.eye(N=2, M=3, k=1)),
            "tri": made(lambda: nk.tri(2, 3), np.tri(2, 3, dtype=F)),
            "linspace": made(lambda: nk.linspace(0.0, 1.0, 5), np.linspace(0, 1, 5, dtype=F)),
        }
    )


def same(name: str, *arguments: Any, given: tuple[Any, ...] = (), **options: Any) -> Row:
    """`nk.name(*arguments, *given, **options)`, as NumPy's of the same."""
    return Row(
        lambda *tensors: getattr(nk, name)(*tensors, *given, **options),
        lambda *arrays: getattr(np, name)(*arrays, *given, **options),
        arguments,
    )


def gelu_by_tanh(x: Any) -> Any:
    """PyTorch's formula."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def test_calls_as_numpy_takes_them() -> None:
    """By the same positions and names: one table for both."""
    check(
        {
            "roll": same("roll", X, shift=1),
            "tile": same("tile", X, reps=(2, 1)),
            "repeat": same("repeat", V, repeats=2),
            "split": same("split", X, indices_or_sections=3, axis=1),
            "clip": same("clip", X, a_min=0.1, a_max=None),
            "clip by max": same("clip", X, max=0.9),
            "clip by place": same("clip", X, given=(-1.0, 2.0)),
            "searchsorted": Row(
                lambda a, v: nk.searchsorted(a=nk.sort(a), v=v, side="right"),
                lambda a, v: np.searchsorted(a=np.sort(a), v=v, side="right"), (V, X), wrt=(),
            ),
            "bincount": same("bincount", I, minlength=3),
            "bincount of weights": Row(
                lambda i, w: nk.bincount(i, w, 4), lambda i, w: np.bincount(i, w, 4), (I[:3], V), batched=(1,)
            ),
            "flip": same("flip", X),
            "flip of two": same("flip", X, axis=(0, 1)),
            "pad": same("pad", V, given=(1,)),
            "pad of all": same("pad", X, pad_width=(1, 2), constant_values=0.5),
            "pad of one pair": same("pad", X, given=(((1, 2),),)),
            "take": same("take", V, given=([0, 2],)),
            "take along": same("take", X, indices=[[0, 2], [1, 1]], axis=1, mode="raise"),
            "diff": same("diff", X, axis=0, prepend=0.0, append=X),
            "diff twice": same("diff", X, given=(2,), prepend=X),
            "cross": same("cross", X, X[::-1] + 1.0, axisc=0),
            "cross along": same("cross", X.T.copy(), X + 1.0, axisa=0, axisb=1),
            "nan_to_num": same("nan_to_num", X, given=(True, 1.0)),
            "round": same("round", X * 3.17, decimals=1),
            "round to tens": same("round", X * 31.0, given=(-1,)),
            "round of integers": same("round", I, given=(2,)),
            "gelu": Row(lambda x: nk.gelu(x, approximate="tanh"), gelu_by_tanh, (X,), tolerance=1e-12),
            "gelu of JAX": Row(lambda x: nk.gelu(x, True), gelu_by_tanh, (20.0 * X,), tolerance=1e-12, order=1),
            "full of a scalar": Row(lambda a: nk.full(2, a), lambda a: np.full(2, a), (V[0],)),
            "std": same("std", X, axis=0, ddof=1),
            "quantile": same("quantile", X, given=(0.25,), axis=1),
            "linalg": Row(
                lambda a, b: nk.linalg.norm(nk.linalg.solve(a=a, b=b), ord=None, axis=0),
                lambda a, b: np.linalg.norm(np.linalg.solve(a=a, b=b), ord=None, axis=0),
                (X[:, :2], X),
            ),
        }
    )  # fmt: skip


def test_halves_round_to_even() -> None:
    halves = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, np.inf, np.nan])
    check({"round": Row(nk.round, np.round, (halves,), wrt=())})
    slopes = nk.gradient(of=nk.staged(lambda x: (x.round(1) + nk.round(x)).sum()), wrt=0)(
        halves[:6]
    )
    np.testing.assert_array_equal(np.asarray(slopes), 0)


K: Final = nk.random.key(3)
double: Any = nk.staged(lambda x: x * 2.0)
MISUSES: Final[dict[str, tuple[Callable[..., Any], str]]] = {
    "dim": (
        lambda x: nk.sum(x, dim=0),
        "sum has no argument 'dim': it is sum(a, axis=None, *, keepdims=False, ",
    ),
    "dim of a method": (
        lambda x: x.mean(dim=0),
        "x.mean has no argument 'dim'.*write `axis=` for `dim=`",
    ),
    "keepdim": (lambda x: x.max(0, keepdim=True), "write `keepdims=` for `keepdim=`"),
    "size": (lambda x: nk.random.normal(K, size=(3,)), "write `shape=` for `size=`"),
    "low": (lambda x: nk.random.uniform(K, (3,), low=0.0), "write `minval=` for `low=`"),
    "shifts": (lambda x: nk.roll(x, shifts=1), "write `shift=` for `shifts=`"),
    "input": (lambda x: nk.exp(input=x), "write `x=` for `input=`"),
    "other": (
        lambda x: nk.add(x, other=x),
        "add has no argument 'other'.*give it by position",
    ),
    "out": (lambda x: nk.exp(x, out=x), "values do not change: use the result"),
    "dtype": (lambda x: nk.sum(x, dtype=f32), "cast before it"),
    "misspelled": (lambda x: nk.linspace(0, 1, edpoint=False), "write `endpoint=` for `edpoint=`"),
    "unknown": (
        lambda x: nk.softmax(x, colour=1),
        "softmax has no argument 'colour': it is softmax(x, axis=-1)",
    ),
    "places": (
        lambda x: nk.sum(x, 0, True),
        "takes at most 2 arguments by position, not 3.*`keepdims=`",
    ),
    "missing": (
        lambda x: nk.zeros(),
        "zeros is called without 'shape': it is zeros(shape, dtype=None)",
    ),
    "a gradient by place": (
        lambda x: nk.gradient(double, 0),
        "gradient takes no arguments by position, not 2.*write `gradient\\(of=f, wrt=0\\)`",
    ),
    "argnums": (lambda x: nk.jacobian(double, argnums=0), "write `wrt=` for `argnums=`"),
    "axes of vmap": (lambda x: nk.vmap(double, 0), "vmap takes at most 1 argument.*`in_axes=`"),
    "several missing": (lambda x: nk.interp(x[0]), "called without 'xp' and 'fp'"),
    "segments": (
        lambda x: nk.segment_sum(x, nk.arange(2)),
        "without 'num_segments'.*extent cannot depend on data",
    ),
    "classes": (
        lambda x: nk.one_hot(nk.arange(2)),
        "without 'num_classes'.*extent cannot depend on data",
    ),
    "no key": (lambda x: nk.dropout(x, 0.5), r"without 'key'.*`nk.random.key\(0\)`"),
    "given by name": (
        lambda x: nk.where(x > 0, y=x),
        "where has no argument 'y'.*give y by position",
    ),
    "twice": (lambda x: x.sum(0, axis=1), "x.sum is given 'axis' twice"),
    "both bounds": (lambda x: nk.clip(x, 0.0, min=0.0), "takes a bound once"),
    "bincount": (lambda x: nk.bincount(nk.arange(3)), "say how many there are, `bincount"),
    "copy": (lambda x: nk.nan_to_num(x, 0.5), "copy is True or False, not 0.5"),
    "step": (lambda x: nk.arange(0, 3, 0), "the step of arange is not 0"),
    "arange of data": (lambda x: nk.arange(x), "arange takes Python numbers and sizes"),
    "two types": (lambda x: nk.arange(3, f32, dtype=f32), "takes one element type"),
    "too far": (lambda x: nk.arange(100, 200, dtype=nk.i8), "is out of range for i8"),
    "type in the place of a size": (
        lambda x: nk.eye(3, f32),
        "the element type by its name, `dtype=`",
    ),
    "pad mode": (
        lambda x: nk.pad(x, 1, "reflect"),
        "pad puts a number around a tensor, not 'reflect'",
    ),
    "indices": (lambda x: nk.take(x, [0.5]), "indices are ints"),
    "decimals": (lambda x: nk.round(x, 0.5), "decimals are a Python int, not 0.5"),
    "approximate": (lambda x: nk.gelu(x, "erf"), "approximate is False, True, 'none' or 'tanh'"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuse_says_what_to_write(name: str) -> None:
    wrong, words = MISUSES[name]
    with pytest.raises(nk.NNKitError) as caught:
        nk.staged(wrong).ir(nk.spec((2, 3), f64))
    message = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    pattern = words if ".*" in words else re.escape(words)
    assert re.search(pattern, message, re.DOTALL), message
    assert "test_numpys_arguments.py" in message


def test_a_mistake_inside_a_function_stays_what_it_is() -> None:
    """Only arguments that do not fit are explained; a function of the user that does not fit is Python's to say."""
    with pytest.raises(TypeError) as caught:
        nk.tree.map(lambda one: one(), (1,))
    assert not isinstance(caught.value, StagingError)
