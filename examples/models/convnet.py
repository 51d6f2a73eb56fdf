"""A convolutional network reads handwritten digits."""

from pathlib import Path

import numpy as np

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor4D, f32, i64

DIGITS = Path(__file__).parents[1] / "data/digits.csv.gz"
Images = Tensor4D[f32]
Labels = Tensor1D[i64]


class Network(Struct):
    first: Field[Images]
    second: Field[Images]
    last: Field[Tensor2D[f32]]
    bias: Field[Tensor1D[f32]]


@nk.staged
def logits(p: Rep[Network], x: Rep[Images]) -> Rep[Tensor2D[f32]]:
    x = nk.max_pool2d(nk.relu(nk.conv2d(x, p[Network.first], padding="same")), 2)
    x = nk.max_pool2d(nk.relu(nk.conv2d(x, p[Network.second], padding="same")), 2)
    return x.reshape(x.shape[0], -1) @ p[Network.last] + p[Network.bias]


@nk.staged
def loss(p: Rep[Network], x: Rep[Images], y: Rep[Labels]) -> Rep[Scalar[f32]]:
    return nk.cross_entropy(logits(p, x), y)


def load(rng: np.random.Generator) -> tuple[Images, Labels]:
    table = rng.permutation(np.loadtxt(DIGITS, np.float32, delimiter=","))
    images = Tensor4D(table[:, :64].reshape(-1, 1, 8, 8) / 16, f32)
    return images, Tensor1D(table[:, 64].astype(np.int64))


def main() -> None:
    rng, optimizer = np.random.default_rng(0), nk.optim.adam(3e-3)
    images, labels = load(rng)
    one, two, three = nk.random.split(nk.random.key(0), 3)
    first = nk.random.normal(one, (16, 1, 3, 3)) * (2 / 9) ** 0.5
    second = nk.random.normal(two, (32, 16, 3, 3)) * (2 / 144) ** 0.5
    last = nk.random.normal(three, (128, 10)) * (1 / 128) ** 0.5
    p = Network(first, second, last, Tensor1D(np.zeros(10, np.float32)))
    step, state = nk.optim.training_step(loss, optimizer=optimizer), optimizer.init(p)
    for epoch in range(1, 16):
        losses = list[float]()
        for batch in np.array_split(rng.permutation(len(images) - 360) + 360, 22):
            p, state, value = step(p, state, images[batch], labels[batch])
            losses.append(float(value))
        if epoch % 5 == 0:
            print(f"{epoch:2}: loss {np.mean(losses):.4f}")
    right = logits(p, images[:360]).numpy().argmax(axis=1) == labels[:360].numpy()
    print(f"{right.mean():.1%} of 360 unseen digits read right")


if __name__ == "__main__":
    main()
