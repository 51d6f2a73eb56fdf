# Written by stubs/generate.py; do not edit.
from typing import Any, Generic, Literal, NamedTuple, overload

from typing_extensions import TypeVar

from . import Float, Rep, Tensor0D, Tensor1D, Tensor2D, Tensor3D, Tensor4D, Tensor5D, f32, f64, i64

F = TypeVar("F", f32, f64)
I = TypeVar("I", bound=int)
J = TypeVar("J", bound=int)
K = TypeVar("K", bound=int)
L = TypeVar("L", bound=int)
H = TypeVar("H", bound=int)
P = TypeVar("P", bound=int)
FT = TypeVar("FT", bound=Float)
X = TypeVar("X")
Y = TypeVar("Y")
Z = TypeVar("Z")


class EighResult(NamedTuple, Generic[X, Y]):
    eigenvalues: X
    eigenvectors: Y


class QRResult(NamedTuple, Generic[X, Y]):
    Q: X
    R: Y


class SVDResult(NamedTuple, Generic[X, Y, Z]):
    U: X
    S: Y
    Vh: Z


class SlogdetResult(NamedTuple, Generic[X]):
    sign: X
    logabsdet: X
