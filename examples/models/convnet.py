"""A convolutional network reads handwritten digits."""

from pathlib import Path

import nnkit as nk
import numpy as np
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor4D, f32, i64, nn

DIGITS = Path(__file__).parents[1] / "data/digits.csv.gz"


class Network(Struct):
    first: Field[nn.Conv2d]
    second: Field[nn.Conv2d]
    last: Field[nn.Linear]


@nk.staged
def logits(p: Rep[Network], x: Rep[Tensor4D[f32]]) -> Rep[Tensor2D[f32]]:
    x = nk.max_pool2d(nk.relu(nn.conv2d(p[Network.first], x, padding="same")), 2)
    x = nk.max_pool2d(nk.relu(nn.conv2d(p[Network.second], x, padding="same")), 2)
    return nn.linear(p[Network.last], x.reshape(x.shape[0], -1))


@nk.staged
def loss(p: Rep[Network], x: Rep[Tensor4D[f32]], y: Rep[Tensor1D[i64]]) -> Rep[Scalar[f32]]:
    return nk.cross_entropy(logits(p, x), y)


def load(rng: np.random.Generator) -> tuple[Tensor4D[f32], Tensor1D[i64]]:
    table = rng.permutation(np.loadtxt(DIGITS, np.float32, delimiter=","))
    images = Tensor4D(table[:, :64].reshape(-1, 1, 8, 8) / 16, f32)
    return images, Tensor1D(table[:, 64].astype(np.int64))


def main() -> None:
    rng, optimizer = np.random.default_rng(0), nk.optim.adam(3e-3)
    images, labels = load(rng)
    one, two, three = nk.random.split(nk.random.key(0), 3)
    convolutions = nn.Conv2d.init(one, 1, 16, 3), nn.Conv2d.init(two, 16, 32, 3)
    p = Network(*convolutions, nn.Linear.init(three, 32 * 2 * 2, 10))
    step, state = nk.optim.training_step(loss, optimizer=optimizer), optimizer.init(p)
    for epoch in range(1, 16):
        losses = list[float]()
        for batch in np.array_split(rng.permutation(len(images) - 360) + 360, 22):
            p, state, value = step(p, state, images[batch], labels[batch])
            losses.append(float(value))
        if epoch % 5 == 0:
            print(f"{epoch:2}: loss {np.mean(losses):.4f}")
    right = np.argmax(logits(p, images[:360]), axis=1) == labels[:360].numpy()
    print(f"{right.mean():.1%} of 360 unseen digits read right")


if __name__ == "__main__":
    main()
