"""A transformer block learns to turn sequences around."""

import nnkit as nk
import numpy as np
from nnkit import Dim, Field, Rep, Scalar, Struct, Tensor2D, Tensor3D, f32, i64, nn

STEPS, BATCH, SYMBOLS, LENGTH = 400, 64, 10, 12


class Symbol(Dim): ...


class Place(Dim): ...


class Width(Dim): ...


class Wide(Dim): ...


class Block(Struct):
    norm1: Field[nn.LayerNorm[f32, Width]]
    attention: Field[nn.MultiHeadAttention[f32, Width]]
    norm2: Field[nn.LayerNorm[f32, Width]]
    expand: Field[nn.Linear[f32, Width, Wide]]
    contract: Field[nn.Linear[f32, Wide, Width]]


class Model(Struct):
    symbols: Field[nn.Embedding[f32, Symbol, Width]]
    places: Field[Tensor2D[f32, Place, Width]]
    block: Field[Block]
    head: Field[nn.Linear[f32, Width, Symbol]]


@nk.staged
def block(p: Rep[Block], x: Rep[Tensor3D[f32]]) -> Rep[Tensor3D[f32]]:
    x = x + nn.attention(p[Block.attention], nn.layer_norm(p[Block.norm1], x), heads=4)
    wide = nk.gelu(nn.linear(p[Block.expand], nn.layer_norm(p[Block.norm2], x)))
    return x + nn.linear(p[Block.contract], wide)


@nk.staged
def loss(p: Rep[Model], x: Rep[Tensor2D[i64]]) -> Rep[Scalar[f32]]:
    embedded = nn.embedding(p[Model.symbols], x) + p[Model.places]
    logits = nn.linear(p[Model.head], block(p[Model.block], embedded))
    return nk.cross_entropy(logits.reshape(-1, SYMBOLS), nk.flip(x, 1).reshape(-1))


def main() -> None:
    rng, optimizer = np.random.default_rng(0), nk.optim.adam(1e-3)
    p = nn.init(Model, nk.random.key(0), Symbol=SYMBOLS, Place=LENGTH, Width=64, Wide=4 * 64)
    step, state = nk.optim.training_step(loss, optimizer=optimizer), optimizer.init(p)
    for k in range(1, STEPS + 1):
        p, state, value = step(p, state, Tensor2D(rng.integers(SYMBOLS, size=(BATCH, LENGTH))))
        if k % 100 == 0:
            print(f"{k:3}: loss {value:.4f}")


if __name__ == "__main__":
    main()
