"""Layers compute PyTorch's formulas, written here in NumPy, and have PyTorch's initial values."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest

import nnkit as nk
from nnkit import (
    Dim,
    Field,
    Rep,
    Scalar,
    Struct,
    Tensor1D,
    Tensor2D,
    Tensor3D,
    f32,
    f64,
    missing_names,  # type: ignore[attr-defined]  # not in the stub
    nn,
)

KEY = nk.random.key(7)
RNG = np.random.default_rng(0)


class Layers(Struct):
    linear: Field[nn.Linear[f64]]
    mlp: Field[nn.MLP[f64]]
    conv1d: Field[nn.Conv1d[f64]]
    conv2d: Field[nn.Conv2d[f64]]
    conv3d: Field[nn.Conv3d[f64]]
    layer_norm: Field[nn.LayerNorm[f64]]
    rms_norm: Field[nn.RMSNorm[f64]]
    embedding: Field[nn.Embedding[f64]]
    lstm: Field[nn.LSTM[f64]]
    gru: Field[nn.GRU[f64]]
    attention: Field[nn.MultiHeadAttention[f64]]


def random(struct: Any) -> Any:
    """The same struct of other numbers, so that ones and zeros hide nothing."""
    return nk.tree.map(lambda leaf: type(leaf)(RNG.normal(size=leaf.shape)), struct)


LAYERS: Layers = random(
    Layers(
        nn.Linear.init(KEY, 4, 6, dtype=f64),
        nn.MLP.init(KEY, (4, 5, 6), dtype=f64),
        nn.Conv1d.init(KEY, 3, 5, 2, dtype=f64),
        nn.Conv2d.init(KEY, 2, 3, 3, dtype=f64),
        nn.Conv3d.init(KEY, 2, 3, 2, dtype=f64),
        nn.LayerNorm.init(KEY, 4, dtype=f64),
        nn.RMSNorm.init(KEY, 4, dtype=f64),
        nn.Embedding.init(KEY, 7, 4, dtype=f64),
        nn.LSTM.init(KEY, 4, 2, dtype=f64),
        nn.GRU.init(KEY, 4, 2, dtype=f64),
        nn.MultiHeadAttention.init(KEY, 4, dtype=f64),
    )
)
X = RNG.normal(size=(3, 2, 4))
"""Two sequences of three steps, or three batches of two."""
INDICES = np.array([[1, 0, 6], [6, 6, 2]])
IMAGES, VOLUMES = RNG.normal(size=(2, 2, 4, 5)), RNG.normal(size=(2, 2, 2, 3, 4))


@nk.staged
def outputs(p: Rep[Layers], x: Rep[Tensor3D[f64]]) -> Any:
    lstm, (hidden, cell) = nn.lstm(p[Layers.lstm], x)
    gru, last = nn.gru(p[Layers.gru], x)
    start = (lstm[0], lstm[0])
    return (
        nn.linear(p[Layers.linear], x),
        nn.linear(p[Layers.linear], x[0, 0]),
        nn.linear(p[Layers.linear], x[None]),
        nn.mlp(p[Layers.mlp], x, activation=nk.tanh),
        nn.conv1d(p[Layers.conv1d], x.transpose(1, 0, 2), padding=1),
        nn.conv2d(p[Layers.conv2d], nk.const(nk.Tensor4D(IMAGES)), stride=2, padding="valid"),
        nn.conv3d(p[Layers.conv3d], nk.const(nk.Tensor5D(VOLUMES)), stride=2),
        nn.layer_norm(p[Layers.layer_norm], x),
        nn.rms_norm(p[Layers.rms_norm], x, epsilon=0.1),
        nn.embedding(p[Layers.embedding], nk.const(Tensor2D(INDICES))),
        lstm,
        hidden,
        cell,
        nn.lstm(p[Layers.lstm], x, start)[0],
        nk.concat(nn.lstm_cell(p[Layers.lstm], x[0], start), axis=1),
        gru,
        last,
        nn.gru_cell(p[Layers.gru], x[0], lstm[0]),
        nn.attention(p[Layers.attention], x, heads=2),
        nn.attention(p[Layers.attention], x, heads=2, causal=True),
        nn.attention(p[Layers.attention], x, nk.flip(x, 1)[:, :1]),
    )


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm_by_hand(p: Any, x: Any, h: Any, c: Any) -> tuple[Any, Any, Any]:
    found: list[Any] = []
    for now in x:
        gates = now @ np.asarray(p.input_weight) + h @ np.asarray(p.hidden_weight) + p.bias.numpy()
        i, f, g, o = np.split(gates, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        found.append(h)
    return np.stack(found), h, c


def gru_by_hand(p: Any, x: Any, h: Any) -> Any:
    found: list[Any] = []
    for now in x:
        of_x = np.split(now @ np.asarray(p.input_weight) + p.input_bias.numpy(), 3, axis=1)
        of_h = np.split(h @ np.asarray(p.hidden_weight) + p.hidden_bias.numpy(), 3, axis=1)
        r, z = (sigmoid(a + b) for a, b in zip(of_x[:2], of_h[:2], strict=True))
        h = (1 - z) * np.tanh(of_x[2] + r * of_h[2]) + z * h
        found.append(h)
    return np.stack(found)


def attention_by_hand(p: Any, x: Any, context: Any, heads: int, causal: bool = False) -> Any:
    query, key, value, output = (np.asarray(w) for w in (p.query, p.key, p.value, p.output))
    found = np.zeros_like(x)
    for b in range(len(x)):
        for head in np.split(np.arange(4), heads):
            q, k, v = x[b] @ query, context[b] @ key, context[b] @ value
            scores = np.exp(q[:, head] @ k[:, head].T / np.sqrt(len(head)))
            scores = np.tril(scores) if causal else scores
            found[b][:, head] = scores / scores.sum(axis=1, keepdims=True) @ v[:, head]
    return found @ output + p.bias.numpy()


def conv_by_hand(weight: Any, bias: Any, x: Any, stride: int) -> Any:
    """Of images or volumes, without padding."""
    sizes = weight.shape[2:]
    places = [(n - k) // stride + 1 for n, k in zip(x.shape[2:], sizes, strict=True)]
    found = np.zeros((len(x), len(weight), *places))
    for place in np.ndindex(*places):
        cut = (slice(p * stride, p * stride + k) for p, k in zip(place, sizes, strict=True))
        part = x[(slice(None), slice(None), *cut)].reshape(len(x), -1)
        found[(..., *place)] = part @ weight.reshape(len(weight), -1).T + bias
    return found


def expected(p: Any) -> list[Any]:
    w, b = np.asarray(p.linear.weight), p.linear.bias.numpy()
    first, last = p.mlp.layers
    hidden = np.tanh(X @ np.asarray(first.weight) + first.bias.numpy())
    signals = np.pad(X.transpose(1, 0, 2), ((0, 0), (0, 0), (1, 1)))
    kernel = np.asarray(p.conv1d.weight)
    windows = np.stack([signals[:, :, t : t + 2] for t in range(5)], axis=1)
    conv1d = np.einsum("ntck,ock->not", windows, kernel) + p.conv1d.bias.numpy()[:, None]
    centered = X - X.mean(axis=-1, keepdims=True)
    normal = centered / np.sqrt(X.var(axis=-1, keepdims=True) + 1e-5)
    root = np.sqrt((X**2).mean(axis=-1, keepdims=True) + 0.1)
    zeros = np.zeros((2, 2))
    lstm, h, c = lstm_by_hand(p.lstm, X, zeros, zeros)
    once = lstm_by_hand(p.lstm, X[:1], lstm[0], lstm[0])
    gru = gru_by_hand(p.gru, X, zeros)
    return [
        X @ w + b,
        X[0, 0] @ w + b,
        X[None] @ w + b,
        hidden @ np.asarray(last.weight) + last.bias.numpy(),
        conv1d,
        conv_by_hand(np.asarray(p.conv2d.weight), p.conv2d.bias.numpy(), IMAGES, 2),
        conv_by_hand(np.asarray(p.conv3d.weight), p.conv3d.bias.numpy(), VOLUMES, 2),
        normal * p.layer_norm.weight.numpy() + p.layer_norm.bias.numpy(),
        X / root * p.rms_norm.weight.numpy(),
        np.asarray(p.embedding.weight)[INDICES],
        lstm,
        h,
        c,
        lstm_by_hand(p.lstm, X, lstm[0], lstm[0])[0],
        np.concatenate(once[1:], axis=1),
        gru,
        gru[-1],
        gru_by_hand(p.gru, X[:1], lstm[0])[0],
        attention_by_hand(p.attention, X, X, 2),
        attention_by_hand(p.attention, X, X, 2, causal=True),
        attention_by_hand(p.attention, X, X[:, ::-1][:, :1], 1),
    ]


def test_layers_compute_the_formulas() -> None:
    for found, wanted in zip(outputs(LAYERS, X), expected(LAYERS), strict=True):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-9, atol=1e-12)


def test_gradients_by_all_parameters_are_those_of_differences() -> None:
    """Along a direction in all parameters and in the data."""

    @nk.staged
    def total(p: Rep[Layers], x: Rep[Tensor3D[f64]]) -> Rep[Scalar[f64]]:
        parts: Any = outputs(p, x)
        return nk.stack([nk.sin(part).mean() for part in parts]).sum()

    slopes = nk.gradient(of=total, wrt=(0, 1))(LAYERS, X)
    step, along = random(LAYERS), RNG.normal(size=X.shape)
    h = 1e-6
    ends = [float(total(LAYERS + t * step, X + t * along)) for t in (h, -h)]
    pairs = zip(nk.tree.leaves(slopes), [*nk.tree.leaves(step), along], strict=True)
    slope = sum(float((np.asarray(one) * np.asarray(other)).sum()) for one, other in pairs)
    assert abs((ends[0] - ends[1]) / (2 * h) - slope) < 1e-7 * max(1, abs(slope))


class Pixel(Dim): ...


class Hidden(Dim): ...


class Named(Struct):
    linear: Field[nn.Linear[f32, Pixel, Hidden]]
    two: Field[tuple[nn.LayerNorm[f32, Hidden], nn.Embedding[f64, Literal[5], Hidden]]]
    conv: Field[nn.Conv2d[f32, Pixel, Hidden, Literal[3]]]
    lstm: Field[nn.LSTM[f32, Pixel, Hidden]]
    gru: Field[nn.GRU[f32, Pixel, Hidden]]
    attention: Field[nn.MultiHeadAttention[f32, Hidden]]
    matrix: Field[Tensor2D[f32, Pixel, Hidden]]
    vector: Field[Tensor1D[f64, Pixel]]


def test_initial_values_are_pytorchs() -> None:
    """Bounds, means and shapes; one key gives one struct, and other keys others."""
    p = nn.init(Named, KEY, Pixel=16, Hidden=64)
    assert p == nn.init(Named, KEY, Hidden=64, Pixel=16)
    assert p.linear != nn.init(Named, nk.random.key(8), Pixel=16, Hidden=64).linear
    bounds = [
        (p.linear.weight, (16, 64), 16**-0.5),
        (p.linear.bias, (64,), 16**-0.5),
        (p.conv.weight, (64, 16, 3, 3), (16 * 9) ** -0.5),
        (p.conv.bias, (64,), (16 * 9) ** -0.5),
        (p.lstm.input_weight, (16, 256), 64**-0.5),
        (p.lstm.hidden_weight, (64, 256), 64**-0.5),
        (p.lstm.bias, (256,), 64**-0.5),
        (p.gru.input_weight, (16, 192), 64**-0.5),
        (p.gru.hidden_bias, (192,), 64**-0.5),
        (p.attention.query, (64, 64), (6 / 128) ** 0.5),
        (p.attention.output, (64, 64), 64**-0.5),
        (p.matrix, (16, 64), 16**-0.5),
    ]
    for tensor, shape, bound in bounds:
        x: Any = tensor.numpy()
        assert x.shape == shape and abs(x).max() <= bound * (1 + 1e-6)
        assert abs(x).max() > 0.85 * bound and abs(x.mean()) < bound / 3 * 5 / np.sqrt(x.size)
    norm, embedding = p.two
    assert (norm.weight.numpy() == 1).all() and (norm.bias.numpy() == 0).all()
    assert embedding.weight.dtype is f64 and embedding.weight.shape == (5, 64)
    assert abs(embedding.weight.numpy().std() - 1) < 0.2
    assert p.vector.dtype is f64 and not p.vector.numpy().any()
    assert not p.attention.bias.numpy().any()


@nk.staged
def misused(p: Rep[Layers], x: Rep[Tensor3D[f64]]) -> Rep[Tensor3D[f64]]:
    return nn.linear(p[Layers.mlp], x)  # type: ignore[call-overload, no-any-return]  # pyright: ignore


@nk.staged
def applied(p: Rep[Layers], x: Rep[Tensor3D[f64]]) -> Rep[Tensor3D[f64]]:
    return nn.linear(p[Layers.linear], x)


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "another layer": (lambda: misused(LAYERS, X), "a staged nn.Linear first, not a MLP"),
    "a concrete layer": (lambda: nn.rms_norm(LAYERS.rms_norm, X), "inside a staged function"),  # type: ignore[type-var]
    "no size": (lambda: nn.init(Named, KEY, Pixel=2), "Hidden has no size: .* of Named.linear"),
    "an unused size": (
        lambda: nn.init(Named, KEY, Pixel=2, Hidden=3, Digit=4),
        "no field of Named has a dimension Digit",
    ),
    "no names": (lambda: nn.init(nn.Linear, KEY), "Linear has a dimension without a name"),
    "no length": (lambda: nn.init(nn.MLP, KEY), "MLP.layers has any length"),
    "size zero": (lambda: nn.Linear.init(KEY, 0, 3), "positive int, not 0"),
    "one width": (lambda: nn.MLP.init(KEY, (3,)), "two widths or more"),
    "another type": (
        lambda: LAYERS.replace(linear=nn.Linear.init(KEY, 4, 6)),
        r"Layers.linear.weight must be a Tensor2D\[f64\], got a Tensor2D\[f32\]",
    ),
    "a size in place of numbers": (
        lambda: nn.Linear(3, 4),  # type: ignore[arg-type]  # pyright: ignore
        r"(?s)Linear.weight: .*help: Linear.init\(key, ...\) makes one",
    ),
    "another size": (lambda: applied(LAYERS, X[:, :, 1:]), "cannot multiply"),
    "heads that do not divide": (
        lambda: nk.staged(lambda p, x: nn.attention(p[Layers.attention], x, heads=3))(LAYERS, X),
        "attention of width 4 in 3 parts: 3 does not divide 4",
    ),
    "no such layer": (lambda: nn.Dense, "has no attribute 'Dense'"),  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named(name: str) -> None:
    call, words = MISTAKES[name]
    with pytest.raises((nk.NNKitError, AttributeError), match=words) as caught:
        call()
    files = {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)}
    assert files <= {__file__, missing_names.__file__, nn.__file__}, (
        "the traceback ends at the user's line"
    )
    assert "nn.linear(p[Layers.linear], x)" in str(caught.value) or name != "another size"


def test_the_names_that_users_need_are_listed() -> None:
    assert sorted(dir(nn)) == sorted(nn.__all__)
