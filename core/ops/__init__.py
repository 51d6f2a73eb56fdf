"""The instructions of the IR, each defined once: type rule, meaning, derivative and loop nest.

Read `forms` (the forms of differentiation), `arithmetic` and `comparison` (elementwise ops),
`transcendental`, `special`, `rounding`, `casting` and `random` (more of them); then `movement`,
`indexing`, `slicing`, `scan`, `reduction` and `contraction` (each built on those before it).  Ops that
make up programs are in `literal`, `aggregate` and `terminators`; `nest` is the loop nest they become.
"""

from ..ir.graph import Op
from .aggregate import Aggregate, Apply, Extract
from .arithmetic import (
    Abs,
    Add,
    Divide,
    FloorDivide,
    Maximum,
    Minimum,
    Modulo,
    Multiply,
    Negate,
    Sign,
    Square,
    Subtract,
    TruncateDivide,
)
from .casting import DataTypeCast
from .combinator import Combinator
from .comparison import (
    And,
    Equal,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
    Not,
    NotEqual,
    Or,
    Select,
)
from .contraction import Dot
from .control import For, If, Structured, While
from .forms import Bilinear, Elementwise, Linear, Partial
from .indexing import Gather, Iota, OneHot, ScatterAdd
from .literal import Literal, constant, dense, splat
from .movement import PadShape, Reverse, ShapeCast, SqueezeShape, Transpose
from .nest import Bounds, Nest, Yield
from .random import Threefry
from .reduction import ArgMax, ArgMin, Broadcast, Reduce, sum_to_shape
from .rounding import Ceil, Floor, Rint, Round
from .scan import Scan
from .slicing import Concatenate, Pad, Slice
from .special import Digamma, Erf, Erfc, Lgamma, Trigamma
from .stopping import StopGradient
from .terminators import Branch, BranchEnum, Conditional, Return, arguments_of
from .transcendental import (
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Cos,
    Cosh,
    Exp,
    Expm1,
    Log,
    Log1p,
    Power,
    Rsqrt,
    Sin,
    Sinh,
    Sqrt,
    Tan,
    Tanh,
)

ALL: tuple[type[Op], ...] = (
    Negate, Abs, Sign, Square, Add, Subtract, Multiply, Divide, TruncateDivide, FloorDivide, Modulo,
    Minimum, Maximum,
    Sqrt, Rsqrt, Exp, Expm1, Log, Log1p, Power, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh,
    Asinh, Acosh, Atanh,
    Erf, Erfc, Lgamma, Digamma, Trigamma,
    Floor, Ceil, Round, Rint,
    LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual, Equal, NotEqual, And, Or, Not, Select,
    DataTypeCast, StopGradient, Threefry,
    Transpose, ShapeCast, PadShape, SqueezeShape, Reverse, Broadcast, Slice, Pad, Concatenate,
    Gather, ScatterAdd, OneHot, Iota,
    Reduce, ArgMax, ArgMin, Scan, Dot,
)  # fmt: skip
"""Every op that computes with tensors: what the laws in `tests/core/ops` range over."""

__all__ = [
    "ALL", "Abs", "Acos", "Acosh", "Add", "Aggregate", "And", "Apply", "ArgMax", "ArgMin", "Asin",
    "Asinh", "Atan", "Atanh", "Bilinear", "Bounds", "Branch", "BranchEnum", "Broadcast", "Ceil",
    "Combinator", "Concatenate", "Conditional", "Cos", "Cosh", "DataTypeCast", "Digamma", "Divide",
    "Dot", "Elementwise", "Equal", "Erf", "Erfc", "Exp", "Expm1", "Extract", "Floor",
    "FloorDivide", "For", "Gather", "GreaterThan", "GreaterThanOrEqual", "If", "Iota", "LessThan",
    "LessThanOrEqual", "Lgamma", "Linear", "Literal", "Log", "Log1p", "Maximum", "Minimum",
    "Modulo", "Multiply", "Negate", "Nest", "Not", "NotEqual", "OneHot", "Or", "Pad", "PadShape",
    "Partial", "Power", "Reduce", "Return", "Reverse", "Rint", "Round", "Rsqrt", "Scan",
    "ScatterAdd", "Select", "ShapeCast", "Sign", "Sin", "Sinh", "Slice", "Sqrt", "Square",
    "SqueezeShape", "StopGradient", "Structured", "Subtract", "Tan", "Tanh", "Threefry",
    "Transpose", "Trigamma", "TruncateDivide", "While", "Yield", "arguments_of", "constant",
    "dense", "splat", "sum_to_shape",
]  # fmt: skip
