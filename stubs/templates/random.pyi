# Written by stubs/generate.py; do not edit.
from typing import Any, Literal, overload

from typing_extensions import TypeVar

from . import DType, Float, Integer, Rep, Tensor0D, Tensor1D, Tensor2D, Tensor3D, Tensor4D, Tensor5D, boolean, f32, i64

D = TypeVar("D", bound=DType)
F = TypeVar("F", bound=Float)
Z = TypeVar("Z", bound=Integer)
I = TypeVar("I", bound=int)
J = TypeVar("J", bound=int)
K = TypeVar("K", bound=int)
L = TypeVar("L", bound=int)
H = TypeVar("H", bound=int)
def key(seed: int) -> Tensor0D[i64]: ...
