"""A perceptron with dropout, trained by Adam to read digits."""

from itertools import pairwise
from pathlib import Path

import numpy as np

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, f32, i64

DIGITS = Path(__file__).parents[1] / "data/digits.csv.gz"
Matrix = Tensor2D[f32]
Key = Scalar[i64]


class Layer(Struct):
    w: Field[Matrix]
    b: Field[Tensor1D[f32]]


class Network(Struct):
    layers: Field[list[Layer]]


@nk.staged
def logits(p: Rep[Network], x: Rep[Matrix], key: Rep[Key], rate: float = 0.2) -> Rep[Matrix]:
    *hidden, last = p[Network.layers]
    for layer, now in zip(hidden, nk.random.split(key, len(hidden)), strict=True):
        x = nk.dropout(nk.relu(x @ layer[Layer.w] + layer[Layer.b]), rate, now)
    return x @ last[Layer.w] + last[Layer.b]


@nk.staged
def loss(p: Rep[Network], x: Rep[Matrix], y: Rep[Tensor1D[i64]], key: Rep[Key]) -> Rep[Scalar[f32]]:
    return nk.cross_entropy(logits(p, x, key), y)


def load(rng: np.random.Generator) -> tuple[Matrix, Tensor1D[i64]]:
    table = rng.permutation(np.loadtxt(DIGITS, np.float32, delimiter=","))
    return Tensor2D(table[:, :64] / 16, f32), Tensor1D(table[:, 64].astype(np.int64))


def main() -> None:
    rng, keys = np.random.default_rng(0), iter(nk.random.split(nk.random.key(0), 1000))
    images, labels = load(rng)
    params = Network(
        [
            Layer(
                nk.random.normal(next(keys), (n, m)) * (2 / n) ** 0.5,
                Tensor1D(np.zeros(m, np.float32)),
            )
            for n, m in pairwise((64, 128, 128, 10))
        ]
    )
    optimizer = nk.optim.adam(2e-3)
    step, state = nk.optim.training_step(loss, optimizer=optimizer), optimizer.init(params)
    for _ in range(30):
        order = rng.permutation(len(images) - 360) + 360
        for batch in np.array_split(order, 22):
            params, state, _ = step(params, state, images[batch], labels[batch], next(keys))
    found = logits(params, images[:360], next(keys), rate=0.0)
    right = found.numpy().argmax(axis=1) == labels[:360].numpy()
    print(f"{right.mean():.1%} of 360 unseen digits read right")


if __name__ == "__main__":
    main()
