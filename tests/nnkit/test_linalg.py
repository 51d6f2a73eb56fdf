"""Linear algebra against numpy.linalg: values, derivatives, batches, edges, and misuse.

Many expressions stand in one staged function, so that few are compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnkit as nk
from nnkit import Rep, Scalar, Tensor1D, Tensor2D, f32, f64, staged
from nnkit.core.errors import NNKitError, UnsupportedError
from nnkit.jit import executable
from nnkit.tensors import DTYPES, RANKED

NK: Any = nk
"""What is called with arguments that checkers refuse, or know too little of."""
LINALG: Any = nk.linalg
_RANDOM = np.random.default_rng(3)
Pair = tuple[Callable[..., Any], Callable[..., Any]]


def regular(*shape: int) -> Any:
    *_, rows, columns = shape
    return 0.5 * _RANDOM.normal(size=shape) + 2 * np.eye(rows, columns)


def positive(*shape: int) -> Any:
    x = regular(*shape)
    return x @ x.swapaxes(-1, -2)


def leaves(value: Any) -> list[Any]:
    return (
        [leaf for part in value for leaf in leaves(part)] if isinstance(value, tuple) else [value]
    )


def run(functions: list[Callable[..., Any]], *arrays: Any, dtype: Any = f64) -> list[Any]:
    """The results of all functions of these arrays, by one compiled function."""
    types = [RANKED[x.ndim][dtype] for x in arrays]
    names = "abc"[: len(arrays)]
    given = ", ".join(names)
    body = {"body": lambda *xs: NK.tup(*(leaf for f in functions for leaf in leaves(f(*xs))))}
    stage = NK.fn(*types)(eval(f"lambda {given}: body({given})", body))
    numpy = DTYPES[dtype.core].core.numpy
    return [np.asarray(x) for x in stage(*(x.astype(numpy) for x in arrays))]


def agree(pairs: list[Pair], *arrays: Any) -> None:
    """In f64, and square matrices of three rows in f32, too."""
    short = [(f32, 2e-4)] if arrays[0].shape[-2:] == (3, 3) else []
    for dtype, tolerance in ((f64, 1e-10), *short):
        found = run([ours for ours, _ in pairs], *arrays, dtype=dtype)
        expected = [leaf for _, theirs in pairs for leaf in leaves(theirs(*arrays))]
        for value, exact in zip(found, expected, strict=True):
            assert value.shape == np.shape(exact)
            scale = max(1.0, float(np.abs(exact).max(initial=0)))
            np.testing.assert_allclose(value, exact, rtol=tolerance, atol=tolerance * scale)


def in_tuple(function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's named tuples as plain ones."""
    return lambda *xs: tuple(function(*xs))


def rebuilt(function: str) -> Pair:
    """What a decomposition is multiplied to, as its signs may differ."""
    if function == "eigh":
        return lambda a: _of_eigh(*LINALG.eigh(a)), lambda a: (np.linalg.eigvalsh(a), a)
    return lambda a: _of_svd(*LINALG.svd(a, False)), lambda a: (
        np.linalg.svd(a, compute_uv=False),
        a,
    )


def _of_eigh(w: Rep[Any], v: Rep[Any]) -> Any:
    rows = v.transpose(*range(v.ndim - 2), v.ndim - 1, v.ndim - 2)
    return w, (v * w.expand_dims(w.ndim - 1)) @ rows


def _of_svd(u: Rep[Any], s: Rep[Any], vh: Rep[Any]) -> Any:
    return s, (u * s.expand_dims(s.ndim - 1)) @ vh


SQUARE: list[Pair] = [
    (LINALG.inv, np.linalg.inv),
    (LINALG.det, np.linalg.det),
    (LINALG.slogdet, in_tuple(np.linalg.slogdet)),
    (lambda a: LINALG.matrix_power(a, 5), lambda a: np.linalg.matrix_power(a, 5)),
    (lambda a: LINALG.matrix_power(a, -2), lambda a: np.linalg.matrix_power(a, -2)),
    (lambda a: LINALG.matrix_power(a, 0), lambda a: np.linalg.matrix_power(a, 0)),
]
ANY: list[Pair] = [
    (LINALG.qr, in_tuple(np.linalg.qr)),
    (lambda a: LINALG.qr(a, "r"), lambda a: np.linalg.qr(a)[1]),
    (LINALG.svdvals, lambda a: np.linalg.svd(a, compute_uv=False)),
    rebuilt("svd"),
    (LINALG.pinv, np.linalg.pinv),
]
SYMMETRIC: list[Pair] = [
    (LINALG.cholesky, np.linalg.cholesky),
    (
        lambda a: LINALG.cholesky(a, upper=True),
        lambda a: np.linalg.cholesky(a).swapaxes(-1, -2),
    ),
    (LINALG.eigvalsh, np.linalg.eigvalsh),
    (lambda a: LINALG.eigvalsh(a, "U"), np.linalg.eigvalsh),
    rebuilt("eigh"),
]


@pytest.mark.parametrize("shape", [(3, 3), (0, 0), (2, 5, 5), (2, 1, 1, 1)])
def test_square_matrices(shape: tuple[int, ...]) -> None:
    agree(SQUARE, regular(*shape))
    agree(SYMMETRIC, positive(*shape))


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 2), (1, 3), (2, 0), (0, 2)])
def test_matrices_of_any_shape(shape: tuple[int, ...]) -> None:
    agree(ANY, regular(*shape))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 3), (3,)),
        ((3, 3), (3, 2)),
        ((2, 3, 3), (3,)),
        ((2, 3, 3), (3, 2)),
        ((3, 3), (2, 3, 2)),
        ((2, 1, 3, 3), (4, 3, 1)),
        ((0, 0), (0, 2)),
        ((1, 1), (1, 0)),
    ],
)
def test_systems_of_equations(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    def triangular(ours: dict[str, Any], of: Callable[[Any], Any]) -> Pair:
        return (
            lambda a, b: LINALG.solve_triangular(a, b, **ours),
            lambda a, b: np.linalg.solve(of(a), b),
        )

    def unit(a: Any) -> Any:
        return np.tril(a, -1) + np.eye(a.shape[-1])

    agree(
        [
            (LINALG.solve, np.linalg.solve),
            triangular({}, np.triu),
            triangular({"lower": True}, np.tril),
            triangular({"lower": True, "unit_diagonal": True}, unit),
            triangular({"trans": 1}, lambda a: np.triu(a).swapaxes(-1, -2)),
        ],
        regular(*a),
        _RANDOM.normal(size=b),
    )


def test_least_squares_and_ranks() -> None:
    tall, wide = regular(5, 3), regular(2, 4)
    for b in (np.arange(5.0), regular(5, 2)):
        agree([(LINALG.lstsq, lambda a, b: tuple(np.linalg.lstsq(a, b)))], tall, b)
    agree([(solution_alone, lambda a, b: np.linalg.lstsq(a, b)[0])], wide, np.ones((2, 3)))
    batch = np.stack([tall, 2 * tall])
    found = run([LINALG.lstsq], batch, regular(2, 5, 1))
    assert [part.shape for part in found] == [(2, 3, 1), (2, 1), (2,), (2, 3)]
    factor = np.linalg.cholesky(positive(3, 3))
    sides = (np.ones(3), regular(3, 2))
    for b in sides:
        wanted = np.linalg.solve(factor @ factor.T, b)
        solved = (LINALG.cholesky_solve, lambda b, _, wanted=wanted: wanted)
        agree(
            [solved, (lambda b, l: LINALG.cholesky_solve(b, l.T, upper=True), solved[1])], b, factor
        )
    low = np.outer([1.0, 2, 3], [1.0, -1, 2])
    agree([(LINALG.pinv, np.linalg.pinv)], low)
    ranks = run(
        [LINALG.matrix_rank, lambda a: LINALG.matrix_rank(a, 1e3)], np.stack([low, np.eye(3)])
    )
    assert [rank.tolist() for rank in ranks] == [[1, 3], [0, 0]]


def test_norms() -> None:
    def pair(*arguments: Any, **options: Any) -> Pair:
        return (
            lambda x: LINALG.norm(x, *arguments, **options),
            lambda x: np.linalg.norm(x, *arguments, **options),
        )

    matrices = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)
    vectors = (None, 0, 1, 2, 3, 0.5, -1, math.inf, -math.inf)
    agree([pair(), *(pair(ord) for ord in matrices)], regular(3, 4))
    agree([pair(), *(pair(ord) for ord in vectors)], _RANDOM.normal(size=5))
    agree(
        [
            *(pair(ord, (0, 2), keepdims=True) for ord in matrices),
            *(pair(ord, (-1, 0)) for ord in matrices),
            *(pair(ord, 1) for ord in vectors),
            pair(axis=-1, keepdims=True),
        ],
        regular(2, 3, 4),
    )


def test_the_matrix_exponential() -> None:
    a = _RANDOM.normal(size=(4, 3, 3)) * np.array([0.01, 1, 6, 40])[:, None, None]
    values, vectors = np.linalg.eig(a)
    exact = ((vectors * np.exp(values)[:, None]) @ np.linalg.inv(vectors)).real
    found, zero = run([LINALG.expm, lambda a: LINALG.expm(a * 0.0)], a)
    for one, other in zip(found, exact, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12 * np.abs(other).max())
    np.testing.assert_allclose(zero, np.broadcast_to(np.eye(3), a.shape), rtol=2e-16)
    [short] = run([LINALG.expm], a[:2], dtype=f32)
    np.testing.assert_allclose(short, exact[:2], rtol=1e-4, atol=1e-5)
    [nilpotent] = run([LINALG.expm], np.array([[0.0, 1], [0, 0]]))
    np.testing.assert_allclose(nilpotent, [[1, 1], [0, 1]], atol=1e-15)
    [missing] = run([LINALG.expm], np.array([[np.nan, 1], [0, 0]]))
    assert np.isnan(missing).any()


def test_what_has_no_result_is_nan_alone() -> None:
    a = np.stack([np.eye(2), [[np.nan, 0], [0, 1]], [[1, 1], [1, 1]], [[np.inf, 0], [0, 1]]])
    functions = [
        LINALG.inv,
        LINALG.cholesky,
        LINALG.solve_triangular,
        LINALG.eigvalsh,
        LINALG.svdvals,
        LINALG.pinv,
    ]
    found = run(
        [lambda a, f=f: f(a, a) if f is LINALG.solve_triangular else f(a) for f in functions], a
    )
    for name, value in zip(functions, found, strict=True):
        missing = [bool(np.isnan(x).all()) for x in value]
        assert missing == [False, True, name in functions[:2], True], name
    sign, log = run([LINALG.slogdet], np.zeros((1, 2, 2)))
    assert sign.tolist() == [0] and log.tolist() == [-math.inf]
    assert run([LINALG.det], np.zeros((2, 2)))[0] == 0


def test_parts_have_the_names_that_numpy_gives_them() -> None:
    x = positive(3, 3)
    for name in ("eigh", "qr", "slogdet", "svd"):
        ours, theirs = getattr(LINALG, name), getattr(np.linalg, name)(x)

        def by_names(a: Any, ours: Any = ours, theirs: Any = theirs) -> Any:
            parts = ours(a)
            assert type(parts).__name__ == type(theirs).__name__
            return tuple(getattr(parts, field) for field in theirs._fields)

        for value, exact in zip(run([by_names], x), theirs, strict=True):
            # signs of vectors are not determined
            np.testing.assert_allclose(abs(value), abs(exact), rtol=1e-10, atol=1e-10)
    decompose = nk.staged(lambda a: LINALG.eigh(a))
    values, vectors = decompose(nk.Tensor2D(x))
    np.testing.assert_allclose((vectors * values).numpy() @ vectors.numpy().T, x, rtol=1e-10)


def solution_alone(a: Rep[Any], b: Rep[Any]) -> Any:
    return LINALG.lstsq(a, b)[0]


def test_complete_and_full_forms() -> None:
    for shape in ((4, 2), (2, 4), (3, 3), (2, 4, 3), (3, 0), (0, 3)):
        a = regular(*shape)
        forms = [
            (lambda a: LINALG.qr(a, "complete"), lambda a: tuple(np.linalg.qr(a, "complete"))),
            (
                lambda a: LINALG.svd(a, compute_uv=False),
                lambda a: np.linalg.svd(a, compute_uv=False),
            ),
        ]
        agree(forms, a)
        u, s, vh = run([LINALG.svd], a)
        wanted = np.linalg.svd(a)
        assert [x.shape for x in (u, s, vh)] == [x.shape for x in wanted]
        np.testing.assert_allclose(s, wanted[1], atol=1e-12)
        for x in (u, vh):
            one = np.broadcast_to(np.eye(x.shape[-1]), x.shape)
            np.testing.assert_allclose(x @ x.swapaxes(-1, -2), one, atol=1e-12)
        k = s.shape[-1]
        product = (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]
        np.testing.assert_allclose(product, a, atol=1e-12)
    slopes = NK.gradient(of=staged(lambda a: LINALG.svd(a)[1].sum()), wrt=0)
    a = regular(4, 2)
    u, _, vh = np.linalg.svd(a, full_matrices=False)
    np.testing.assert_allclose(np.asarray(slopes(a)), u @ vh, atol=1e-12)


def test_condition_numbers() -> None:
    ways = (None, 2, -2, 1, -1, math.inf, -math.inf, "fro")
    pairs: list[Pair] = [
        (lambda a, p=p: LINALG.cond(a, p), lambda a, p=p: np.linalg.cond(a, p)) for p in ways
    ]
    a = regular(3, 3)
    found = run([ours for ours, _ in pairs], np.stack([a, np.diag([1.0, 0, 2])]))
    for (value, singular), (_, theirs), p in zip(found, pairs, ways, strict=True):
        np.testing.assert_allclose(value, theirs(a), rtol=1e-12)
        assert singular == (0 if p == -2 else math.inf), p
    assert run([LINALG.cond], np.ones((3, 1)))[0] == 1


def cofactors(a: Any) -> Any:
    minors = [
        [np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(len(a))]
        for i in range(len(a))
    ]
    signs = (-1.0) ** np.add.outer(np.arange(len(a)), np.arange(len(a)))
    return np.asarray(minors).reshape(a.shape) * signs


def test_determinants_of_singular_matrices_have_derivatives() -> None:
    """The gradient has the cofactors, whatever the rank, and the Hessian their derivatives."""
    matrices = [
        regular(3, 3),
        np.array([[1.0, 2, 3], [4, 5, 6], [5, 7, 9]]),
        np.outer([1.0, 2, 3], [1.0, -1, 2]),
        np.zeros((3, 3)),
        np.eye(3),
        np.diag([1.0, 0, 0]),
    ]
    slope = NK.gradient(of=staged(lambda a: LINALG.det(a)), wrt=0)
    curved = NK.hvp(staged(lambda a: LINALG.det(a)), wrt=0)
    direction, h = regular(3, 3), 1e-3
    for a in matrices:
        np.testing.assert_allclose(np.asarray(slope(a)), cofactors(a), atol=1e-13)
        # cofactors of 3 rows are quadratic: central differences are exact
        ends = (cofactors(a + sign * h * direction) for sign in (1, -1))
        change = np.subtract(*ends) / (2 * h)
        np.testing.assert_allclose(np.asarray(curved(a, direction)), change, atol=1e-10)
    wanted = [cofactors(a) for a in matrices]
    batch = np.stack(matrices)
    together = NK.gradient(of=staged(lambda a: LINALG.det(a).sum()), wrt=0)
    for found in (together(batch), NK.vmap(slope)(batch)):
        np.testing.assert_allclose(np.asarray(found), wanted, atol=1e-13)


def test_derivatives() -> None:
    """Of sums that depend on every element, of first order and, by the laws of ops, of all."""

    @staged
    def total(
        a: Rep[Tensor2D[f64]], s: Rep[Tensor2D[f64]], v: Rep[Tensor1D[f64]]
    ) -> Rep[Scalar[f64]]:
        q, r = LINALG.qr(a)
        w, vectors = LINALG.eigh(s)
        u, sigma, vh = LINALG.svd(a)
        return (
            (q @ NK.tanh(r)).sum()
            + (LINALG.solve(s, v) * v).sum()
            + LINALG.det(a)
            + (NK.sin(w) * vectors[0] ** 2.0).sum()
            + ((u * NK.sin(sigma)) @ vh).sum()
            + NK.log(LINALG.cholesky(s)[1, 1])
            + LINALG.norm(a, "nuc")
            + LINALG.pinv(a)[0, 1]
        )

    NK.check_gradients(
        total, regular(3, 3), positive(3, 3) + np.diag([0.0, 3, 7]), np.ones(3), order=1
    )


def test_the_derivative_of_the_exponential() -> None:
    """At λ I + N it is known: exp(λ) (I + N) for a nilpotent N."""
    direction = np.array([[0.0, 1], [0, 0]])

    @staged
    def along(t: Rep[Scalar[f64]]) -> Rep[Tensor2D[f64]]:
        return LINALG.expm(NK.const(np.eye(2)) * t * 7.0 + NK.const(direction) * t)

    value, slope = NK.jvp(along)(f64(1.0), f64(1.0))
    np.testing.assert_allclose(np.asarray(value), math.exp(7) * (np.eye(2) + direction))
    exact = math.exp(7) * (7 * np.eye(2) + 8 * direction)
    np.testing.assert_allclose(np.asarray(slope), exact)
    pulled = NK.gradient(of=along, wrt=0)(f64(1.0))
    assert float(pulled) == pytest.approx(exact.sum())


def test_a_gaussian_log_density_has_a_hessian() -> None:
    """The second derivatives of log det and of a quadratic form, at a matrix with equal eigenvalues."""

    @staged
    def density(scale: Rep[Tensor1D[f64]], x: Rep[Tensor1D[f64]]) -> Rep[Scalar[f64]]:
        covariance = scale.expand_dims(1) * scale * NK.const(np.eye(2))
        return LINALG.slogdet(covariance)[1] + (x * LINALG.solve(covariance, x)).sum()

    found = np.asarray(NK.hessian(density)(np.array([1.0, 1.0]), np.array([0.5, 2.0])))
    np.testing.assert_allclose(found, np.diag([-2 + 6 * 0.25, -2 + 6 * 4.0]), atol=1e-10)


def test_functions_of_equal_eigenvalues_have_derivatives() -> None:
    @staged
    def values(a: Rep[Tensor2D[f64]]) -> Rep[Scalar[f64]]:
        return LINALG.eigvalsh(a).sum() + LINALG.svdvals(a).sum() + LINALG.norm(a, "nuc")

    np.testing.assert_allclose(
        np.asarray(NK.gradient(of=values, wrt=0)(np.eye(3))), 3 * np.eye(3), atol=1e-14
    )


def test_a_batch_is_a_loop() -> None:
    @staged
    def one(a: Rep[Tensor2D[f64]], b: Rep[Tensor1D[f64]]) -> Rep[Scalar[f64]]:
        return LINALG.solve(a, b).sum() + LINALG.det(a)

    a, b = regular(4, 3, 3), np.arange(3.0)
    together = np.asarray(NK.vmap(one, in_axes=(0, None))(a, b))
    np.testing.assert_allclose(together, [float(one(x, b)) for x in a], rtol=1e-12)
    slopes = NK.vmap(NK.gradient(of=one, wrt=0), in_axes=(0, None))(a, b)
    alone = [np.asarray(NK.gradient(of=one, wrt=0)(x, b)) for x in a]
    np.testing.assert_allclose(np.asarray(slopes), alone, rtol=1e-10, atol=1e-12)


def slope_of(function: Callable[..., Any]) -> Any:
    return NK.gradient(of=staged(lambda a: function(a).sum()), wrt=0)


MATRIX = np.ones((2, 3))
MISUSE: list[tuple[Callable[[], Any], str]] = [
    (lambda: LINALG.inv(np.ones(3)), "inv takes matrices, of rank 2 or more, not a Tensor1D[f64]"),
    (lambda: LINALG.inv(np.ones((2, 2), int)), "inv takes matrices of f32 or f64, not a Tensor2D[i64]"),
    (lambda: LINALG.inv(Tensor2D(np.ones((2, 2), np.float16))), "not a Tensor2D[f16]"),
    (lambda: LINALG.solve(np.eye(2), np.float64(1)), "right-hand sides of rank 1 or more"),
    (lambda: LINALG.solve(np.eye(2), np.ones(2, np.float32)), "element types f64 and f32 differ"),
    (lambda: LINALG.qr(MATRIX, "raw"), "qr has the modes 'reduced', 'complete' and 'r', not 'raw'"),
    (lambda: slope_of(lambda a: LINALG.svd(a)[0])(MATRIX), "a full decomposition of matrices that are not square"),
    (lambda: slope_of(lambda a: LINALG.qr(a.T, "complete")[0])(MATRIX), "help: the reduced form has one"),
    (lambda: LINALG.eigh(np.eye(2), "X"), "UPLO is 'L' or 'U', not 'X'"),
    (lambda: LINALG.solve_triangular(np.eye(2), np.ones(2), trans=2), "trans is 0, or 1"),
    (lambda: LINALG.matrix_power(np.eye(2), 0.5), "matrix_power takes an int, not 0.5"),
    (lambda: LINALG.norm(MATRIX, "max"), "not 'max'"),
    (lambda: LINALG.norm(np.ones(3), "fro"), "a number for ord, not 'fro'"),
    (lambda: LINALG.norm(np.ones((2, 2, 2)), 2), "wants an axis"),
    (lambda: LINALG.norm(MATRIX, 2, (0, 0)), "two different ones, not (0, 0)"),
    (lambda: LINALG.norm(np.ones(3, int)), "norm takes floats"),
    (lambda: LINALG.pinv(MATRIX, -1.0), "rcond is a number of at least 0, not -1.0"),
    (lambda: LINALG.cholseky(MATRIX), "cholesky"),
]  # fmt: skip
UNFIT: list[tuple[Callable[..., Any], str]] = [
    (LINALG.inv, "inv takes square matrices, not f64[2, 3]"),
    (LINALG.eigh, "eigh takes square matrices, not f64[2, 3]"),
    (lambda a: LINALG.cond(a, 1), "cond takes square matrices, not f64[2, 3]"),
    (LINALG.expm, "expm takes square matrices, not f64[2, 3]"),
    (lambda a: LINALG.matrix_power(a, 2), "matrix_power takes square matrices, not f64[2, 3]"),
    (lambda a: LINALG.solve(a @ a.T, a.T), "right-hand sides f64[3, 2] do not fit f64[2, 2]"),
]


def test_misuse_is_explained() -> None:
    for call, message in MISUSE:
        with pytest.raises((NNKitError, AttributeError)) as caught:
            call()
        assert message in str(caught.value), message
    for function, message in UNFIT:
        with pytest.raises(NNKitError) as unfit:
            run([function], MATRIX)
        assert message in str(unfit.value), message


def test_without_a_lapack_there_is_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    without = executable.Target(has_lapack=False)
    monkeypatch.setattr(executable, "host_target", lambda: without)
    with pytest.raises(UnsupportedError, match="needs a LAPACK"):
        run([LINALG.inv], np.eye(2))
