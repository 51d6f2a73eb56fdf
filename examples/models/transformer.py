"""A transformer block learns to turn sequences around."""

import numpy as np

import nnkit as nk
from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor3D, Tensor4D, f32, i64

LENGTH, SYMBOLS, WIDTH, HEADS, BATCH, STEPS = 12, 10, 64, 4, 64, 400
Vector = Tensor1D[f32]
Matrix = Tensor2D[f32]
Activations = Tensor3D[f32]


class Norm(Struct):
    scale: Field[Vector]
    offset: Field[Vector]


class Block(Struct):
    norms: Field[tuple[Norm, Norm]]
    attention: Field[tuple[Matrix, Matrix, Matrix, Matrix]]
    expand: Field[Matrix]
    contract: Field[Matrix]


class Model(Struct):
    symbols: Field[Matrix]
    places: Field[Matrix]
    block: Field[Block]
    head: Field[Matrix]


def norm(p: Rep[Norm], x: Rep[Activations]) -> Rep[Activations]:
    return nk.layer_norm(x, p[Norm.scale], p[Norm.offset])


def heads(x: Rep[Activations]) -> Rep[Tensor4D[f32]]:
    batch, length, width = x.shape
    return x.reshape(batch, length, HEADS, width // HEADS).transpose(0, 2, 1, 3)


@nk.staged
def attend(p: Rep[Block], x: Rep[Activations]) -> Rep[Activations]:
    *projections, output = p[Block.attention].unpack()
    query, key, value = (heads(x @ w) for w in projections)
    scores = query @ key.transpose(0, 1, 3, 2) * (WIDTH // HEADS) ** -0.5
    mixed = nk.softmax(scores, axis=-1) @ value
    return mixed.transpose(0, 2, 1, 3).reshape(x.shape) @ output


@nk.staged
def block(p: Rep[Block], x: Rep[Activations]) -> Rep[Activations]:
    first, second = p[Block.norms].unpack()
    x = x + attend(p, norm(first, x))
    return x + nk.gelu(norm(second, x) @ p[Block.expand]) @ p[Block.contract]


@nk.staged
def loss(p: Rep[Model], x: Rep[Tensor2D[i64]]) -> Rep[Scalar[f32]]:
    embedded = p[Model.symbols][x] + p[Model.places]
    logits = block(p[Model.block], embedded) @ p[Model.head]
    return nk.cross_entropy(logits.reshape(-1, SYMBOLS), nk.flip(x, 1).reshape(-1))


def start(rng: np.random.Generator) -> Model:
    def random(n: int, m: int) -> Matrix:
        return Tensor2D(rng.normal(0, n**-0.5, (n, m)).astype(np.float32))

    def unit() -> Norm:
        return Norm(Tensor1D(np.ones(WIDTH, np.float32)), Tensor1D(np.zeros(WIDTH, np.float32)))

    square, wide = (WIDTH, WIDTH), 4 * WIDTH
    attention = random(*square), random(*square), random(*square), random(*square)
    middle = Block((unit(), unit()), attention, random(WIDTH, wide), random(wide, WIDTH))
    return Model(random(SYMBOLS, WIDTH), random(LENGTH, WIDTH), middle, random(WIDTH, SYMBOLS))


def main() -> None:
    rng, optimizer = np.random.default_rng(0), nk.optim.adam(1e-3)
    p = start(rng)
    step, state = nk.optim.training_step(loss, optimizer=optimizer), optimizer.init(p)
    for k in range(1, STEPS + 1):
        p, state, value = step(p, state, Tensor2D(rng.integers(SYMBOLS, size=(BATCH, LENGTH))))
        if k % 100 == 0:
            print(f"{k:3}: loss {value:.4f}")


if __name__ == "__main__":
    main()
