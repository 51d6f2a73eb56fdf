"""A perceptron with dropout, trained by Adam to read digits."""

from pathlib import Path

import nnkit as nk
import numpy as np
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, f32, i64, nn

DIGITS = Path(__file__).parents[1] / "data/digits.csv.gz"
Matrix = Tensor2D[f32]
Key = Scalar[i64]


class Network(Struct):
    first: Field[nn.Linear]
    second: Field[nn.Linear]
    last: Field[nn.Linear]


@nk.staged
def logits(p: Rep[Network], x: Rep[Matrix], key: Rep[Key], rate: float = 0.2) -> Rep[Matrix]:
    one, two = nk.random.split(key)
    x = nk.dropout(nk.relu(nn.linear(p[Network.first], x)), rate, one)
    x = nk.dropout(nk.relu(nn.linear(p[Network.second], x)), rate, two)
    return nn.linear(p[Network.last], x)


@nk.staged
def loss(p: Rep[Network], x: Rep[Matrix], y: Rep[Tensor1D[i64]], key: Rep[Key]) -> Rep[Scalar[f32]]:
    return nk.cross_entropy(logits(p, x, key), y)


def load(rng: np.random.Generator) -> tuple[Matrix, Tensor1D[i64]]:
    table = rng.permutation(np.loadtxt(DIGITS, np.float32, delimiter=","))
    return Tensor2D(table[:, :64] / 16, f32), Tensor1D(table[:, 64].astype(np.int64))


def main() -> None:
    rng, keys = np.random.default_rng(0), iter(nk.random.split(nk.random.key(0), 1000))
    images, labels = load(rng)
    p = Network(*(nn.Linear.init(next(keys), *nm) for nm in ((64, 128), (128, 128), (128, 10))))
    optimizer = nk.optim.adam(2e-3)
    step, state = nk.optim.training_step(loss, optimizer=optimizer), optimizer.init(p)
    for _ in range(30):
        for batch in np.array_split(rng.permutation(len(images) - 360) + 360, 22):
            p, state, _ = step(p, state, images[batch], labels[batch], next(keys))
    found = np.argmax(logits(p, images[:360], next(keys), rate=0.0), axis=1)
    print(f"{np.mean(found == labels[:360]):.1%} of 360 unseen digits read right")


if __name__ == "__main__":
    main()
