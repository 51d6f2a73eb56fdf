"""A variational autoencoder of handwritten digits."""

from pathlib import Path

import nnkit as nk
import numpy as np
from nnkit import Field, Rep, Scalar, Struct, Tensor2D, f32, i64, nn

DIGITS = Path(__file__).parents[1] / "data/digits.csv.gz"
BATCH, EPOCHS = 64, 30


class Autoencoder(Struct):
    encode: Field[nn.Linear]
    mean: Field[nn.Linear]
    log_variance: Field[nn.Linear]
    decode: Field[nn.Linear]
    pixels: Field[nn.Linear]


@nk.staged
def generate(p: Rep[Autoencoder], code: Rep[Tensor2D[f32]]) -> Rep[Tensor2D[f32]]:
    """The logits of pixels."""
    return nn.linear(p[Autoencoder.pixels], nk.relu(nn.linear(p[Autoencoder.decode], code)))


@nk.staged
def loss(p: Rep[Autoencoder], x: Rep[Tensor2D[f32]], key: Rep[Scalar[i64]]) -> Rep[Scalar[f32]]:
    """The negative evidence lower bound, per image."""
    hidden = nk.relu(nn.linear(p[Autoencoder.encode], x))
    mean = nn.linear(p[Autoencoder.mean], hidden)
    log_variance = nn.linear(p[Autoencoder.log_variance], hidden)
    code = mean + nk.exp(log_variance / 2) * nk.random.normal(key, mean.shape)
    misfit = nk.binary_cross_entropy(generate(p, code), x, reduction="none").sum(axis=1)
    divergence = (nk.square(mean) + nk.exp(log_variance) - 1 - log_variance).sum(axis=1) / 2
    return (misfit + divergence).mean()


def main() -> None:
    rng, keys = np.random.default_rng(0), iter(nk.random.split(nk.random.key(0), 1000))
    images = Tensor2D(np.loadtxt(DIGITS, np.float32, delimiter=",")[:, :64] / 16, f32)
    sizes = (64, 128), (128, 8), (128, 8), (8, 128), (128, 64)
    p = Autoencoder(*(nn.Linear.init(next(keys), n, m) for n, m in sizes))
    optimizer = nk.optim.adam(2e-3)
    step, state = nk.optim.training_step(loss, optimizer=optimizer), optimizer.init(p)
    for epoch in range(1, EPOCHS + 1):
        losses = list[float]()
        for batch in np.array_split(rng.permutation(len(images)), len(images) // BATCH):
            p, state, value = step(p, state, images[batch], next(keys))
            losses.append(float(value))
        if epoch % 10 == 0:
            print(f"{epoch:2}: bound {np.mean(losses):.2f}")
    logits = generate(p, nk.random.normal(next(keys), (4, 8))).numpy()
    print((9 / (1 + np.exp(-logits[0]))).round().astype(int).reshape(8, 8))


if __name__ == "__main__":
    main()
