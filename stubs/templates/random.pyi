# Written by stubs/generate.py; do not edit.
from typing import overload

from typing_extensions import TypeVar

from . import Float, Rep, Tensor0D, Tensor1D, Tensor2D, Tensor3D, Tensor4D, f32, i64

F = TypeVar("F", bound=Float)
def key(seed: int, /) -> Tensor0D[i64]: ...
