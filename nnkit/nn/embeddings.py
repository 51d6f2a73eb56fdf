"""Vectors for symbols."""

from __future__ import annotations

from typing import Any, Generic, overload

from nnkit import Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor3D, Tensor4D, Tensor5D

from .parameters import A, D, E, F, I, J, K, Key, L, Symbols, Width, initialized, normal, parameters


class Embedding(Struct, Generic[D, Symbols, Width]):
    """A vector for each symbol: `nn.embedding(p, indices)`.

    Shapes: weight (symbols, width).
    """

    weight: Field[Tensor2D[D, Symbols, Width]]

    @staticmethod
    def init(
        key: Key, symbols: int, width: int, /, *, dtype: type[E] | None = None
    ) -> Embedding[E]:
        """PyTorch's values: numbers of the standard normal distribution."""
        made: Embedding[E] = initialized(Embedding, key, dtype, [normal((symbols, width))])
        return made


@overload
def embedding(p: Rep[Embedding[F, Any, A]], indices: Rep[Scalar[L]], /) -> Rep[Tensor1D[F, A]]: ...
@overload
def embedding(
    p: Rep[Embedding[F, Any, A]], indices: Rep[Tensor1D[L, I]], /
) -> Rep[Tensor2D[F, I, A]]: ...
@overload
def embedding(
    p: Rep[Embedding[F, Any, A]], indices: Rep[Tensor3D[L, I, J, K]], /
) -> Rep[Tensor4D[F, I, J, K, A]]: ...
@overload
def embedding(
    p: Rep[Embedding[F, Any, A]], indices: Rep[Tensor4D[L, I, J, K, Any]], /
) -> Rep[Tensor5D[F, I, J, K, Any, A]]: ...
@overload
def embedding(
    p: Rep[Embedding[F, Any, A]], indices: Rep[Tensor2D[L, I, J]], /
) -> Rep[Tensor3D[F, I, J, A]]: ...
def embedding(p: Any, indices: Any, /) -> Rep[Any]:
    """The vectors of symbols, which are numbers of rows.

    Shapes: p of width n, indices (…) of integers → (…, n).
    Raises: IndexOutOfRangeError when run with the number of no symbol.
    """
    (weight,) = parameters(p, Embedding, "embedding")
    made: Rep[Any] = weight[indices]
    return made
