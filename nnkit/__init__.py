"""NNKit: differentiable tensor programs as typed, staged Python functions, compiled to native code."""

from .core.errors import (
    DifferentiationError,
    DTypeError,
    IndexOutOfRangeError,
    InternalError,
    NNKitError,
    ParseError,
    RankError,
    ShapeError,
    StagingError,
    UnsupportedError,
    VerifyError,
)
from .structs import Binding, Field, Lens, Struct, fields
from .tensors import (
    AnyTensor,
    Batched,
    Bool,
    Dim,
    DType,
    Float,
    Integer,
    Logical,
    Number,
    Numpy,
    Ranked,
    Scalar,
    Tensor0D,
    Tensor1D,
    Tensor2D,
    Tensor3D,
    Tensor4D,
    bf16,
    boolean,
    f16,
    f32,
    f64,
    i8,
    i32,
    i64,
    named,
)

__version__ = "0.1.0"

__version__ = "0.1.0"
