"""A variational autoencoder of handwritten digits."""

from pathlib import Path

import numpy as np

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, f32, i64

DIGITS = Path(__file__).parents[1] / "data/digits.csv.gz"
PIXELS, HIDDEN, CODE, BATCH, EPOCHS = 64, 128, 8, 64, 30
Matrix = Tensor2D[f32]
Key = Scalar[i64]


class Layer(Struct):
    w: Field[Matrix]
    b: Field[Tensor1D[f32]]


class Autoencoder(Struct):
    encode: Field[Layer]
    mean: Field[Layer]
    log_variance: Field[Layer]
    decode: Field[Layer]
    pixels: Field[Layer]


def affine(layer: Rep[Layer], x: Rep[Matrix]) -> Rep[Matrix]:
    return x @ layer[Layer.w] + layer[Layer.b]


@nk.staged
def generate(p: Rep[Autoencoder], code: Rep[Matrix]) -> Rep[Matrix]:
    """The logits of pixels."""
    return affine(p[Autoencoder.pixels], nk.relu(affine(p[Autoencoder.decode], code)))


@nk.staged
def loss(p: Rep[Autoencoder], x: Rep[Matrix], key: Rep[Key]) -> Rep[Scalar[f32]]:
    """The negative evidence lower bound, per image."""
    hidden = nk.relu(affine(p[Autoencoder.encode], x))
    mean = affine(p[Autoencoder.mean], hidden)
    log_variance = affine(p[Autoencoder.log_variance], hidden)
    code = mean + nk.exp(log_variance / 2) * nk.random.normal(key, mean.shape)
    misfit = nk.binary_cross_entropy(generate(p, code), x, reduction="none").sum(axis=1)
    divergence = (nk.square(mean) + nk.exp(log_variance) - 1 - log_variance).sum(axis=1) / 2
    return (misfit + divergence).mean()


def layer(rng: np.random.Generator, n: int, m: int) -> Layer:
    w = rng.normal(0, n**-0.5, (n, m)).astype(np.float32)
    return Layer(Tensor2D(w), Tensor1D(np.zeros(m, np.float32)))


def main() -> None:
    rng, keys = np.random.default_rng(0), iter(nk.random.split(nk.random.key(0), 1000))
    images = Tensor2D(np.loadtxt(DIGITS, np.float32, delimiter=",")[:, :64] / 16, f32)
    widths = [(PIXELS, HIDDEN), (HIDDEN, CODE), (HIDDEN, CODE), (CODE, HIDDEN), (HIDDEN, PIXELS)]
    p, optimizer = Autoencoder(*(layer(rng, n, m) for n, m in widths)), nk.optim.adam(2e-3)
    step, state = nk.optim.training_step(loss, optimizer=optimizer), optimizer.init(p)
    for epoch in range(1, EPOCHS + 1):
        losses = list[float]()
        for batch in np.array_split(rng.permutation(len(images)), len(images) // BATCH):
            p, state, value = step(p, state, images[batch], next(keys))
            losses.append(float(value))
        if epoch % 10 == 0:
            print(f"{epoch:2}: bound {np.mean(losses):.2f}")
    logits = generate(p, nk.random.normal(next(keys), (4, CODE))).numpy()
    print((9 / (1 + np.exp(-logits[0]))).round().astype(int).reshape(8, 8))


if __name__ == "__main__":
    main()
