"""Train a classifier on 1,797 handwritten digits, 8×8 pixels each: typed, one native call a step.

mypy and pyright know rank, element type and dimensions of everything below.  `train` is an ordinary
Python function; calling it compiles the loss, its gradient and Adam's update to one machine program.
"""

import sys
from pathlib import Path

import numpy as np
from picture import draw
from safetensors.numpy import load, save
from tqdm import trange

import nnkit as nk
from nnkit import Dim, Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, f32, i64

HERE = Path(__file__).parent
HELD_OUT, HIDDEN, BATCH, EPOCHS, RATE = 360, 256, 64, 40, 2e-3


# fmt: off
class Batch(Dim): ...
class Pixel(Dim): ...
class Hidden(Dim): ...
class Digit(Dim): ...
# fmt: on


class Params(Struct):
    w1: Field[Tensor2D[f32, Pixel, Hidden]]
    b1: Field[Tensor1D[f32, Hidden]]
    w2: Field[Tensor2D[f32, Hidden, Digit]]
    b2: Field[Tensor1D[f32, Digit]]


class State(Struct):
    params: Field[Params]
    mean: Field[Params]  # of the gradient, and of its square, as Adam keeps them
    square: Field[Params]
    step: Field[Scalar[f32]]


Images = Tensor2D[f32, Batch, Pixel]
Labels = Tensor1D[i64, Batch]


@nk.staged
def logits(p: Rep[Params], images: Rep[Images]) -> Rep[Tensor2D[f32, Batch, Digit]]:
    return nk.relu(images @ p[Params.w1] + p[Params.b1]) @ p[Params.w2] + p[Params.b2]


@nk.staged
def loss(p: Rep[Params], images: Rep[Images], labels: Rep[Labels]) -> Rep[Scalar[f32]]:
    return nk.cross_entropy(logits(p, images), labels)


@nk.staged
def read(p: Rep[Params], images: Rep[Images]) -> Rep[Labels]:
    return logits(p, images).argmax(axis=1)  # mistake: return logits(p, images).argmax()


@nk.staged
def train(s: Rep[State], x: Rep[Images], y: Rep[Labels]) -> tuple[Rep[State], Rep[Scalar[f32]]]:
    value, slope = nk.value_and_gradient(of=loss, wrt=0)(s[State.params], x, y).unpack()
    params, mean, square, step = s[State.params], s[State.mean], s[State.square], s[State.step] + 1
    rate = RATE * nk.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    for field in nk.fields(Params):
        mean = mean.set(field, 0.9 * mean[field] + 0.1 * slope[field])
        square = square.set(field, 0.999 * square[field] + 0.001 * nk.square(slope[field]))
        change = rate * mean[field] / (nk.sqrt(square[field]) + 1e-8)
        params = params.set(field, params[field] - change)
    s = s.set(State.params, params).set(State.mean, mean).set(State.square, square)
    return s.set(State.step, step), value


@nk.staged
def start(key: Rep[Scalar[i64]]) -> Rep[State]:
    one, two = nk.random.split(key)
    w1 = nk.random.normal(one, (64, HIDDEN)) * (2 / 64) ** 0.5
    w2 = nk.random.normal(two, (HIDDEN, 10)) * (2 / HIDDEN) ** 0.5
    b1, b2, step = nk.zeros((HIDDEN,), f32), nk.zeros((10,), f32), nk.zeros((), f32)
    p = nk.build(Params, Params.w1 << w1, Params.b1 << b1, Params.w2 << w2, Params.b2 << b2)
    zero = p
    for field in nk.fields(Params):
        zero = zero.set(field, nk.zeros_like(p[field]))
    S = State
    return nk.build(S, S.params << p, S.mean << zero, S.square << zero, S.step << step)


def main() -> None:
    rng = np.random.default_rng(0)
    table = rng.permutation(np.loadtxt(HERE / "data/digits.csv.gz", np.float32, delimiter=","))
    images, labels = table[:, :64] / 16, table[:, 64].astype(np.int64)
    unseen, answers = Tensor2D(images[:HELD_OUT], f32), labels[:HELD_OUT]
    state, losses, accuracies = start(nk.random.key(0)), list[float](), list[float]()
    for _ in (progress := trange(EPOCHS, unit=" epochs")):
        order = rng.permutation(np.arange(HELD_OUT, len(table)))
        for batch in np.split(order, range(BATCH, len(order), BATCH))[:-1]:
            state, value = train(state, Tensor2D(images[batch], f32), Tensor1D(labels[batch], i64))
            losses.append(float(value))
        accuracies.append(float(np.equal(read(state.params, unseen).numpy(), answers).mean()))
        progress.set_postfix_str(f"held-out accuracy {accuracies[-1]:.1%}", refresh=False)

    p, file = state.params, HERE / "out/digits.safetensors"
    file.parent.mkdir(exist_ok=True)
    saved = {"w1": p.w1.numpy(), "b1": p.b1.numpy(), "w2": p.w2.numpy(), "b2": p.b2.numpy()}
    file.write_bytes(save(saved))
    readings = read(p.replace(**load(file.read_bytes())), unseen).numpy()
    assert all(np.array_equal(w, saved[name]) for name, w in load(file.read_bytes()).items())
    assert np.equal(readings, answers).mean() == accuracies[-1]
    draw(HERE / "out/digits.png", losses, accuracies, unseen.numpy(), answers, readings)
    print(f"{accuracies[-1]:.1%} of {HELD_OUT} held-out digits read right, see {file.parent}")
    sys.exit(0 if accuracies[-1] >= 0.97 else "that is too few")


if __name__ == "__main__":
    main()
