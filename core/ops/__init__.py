"""The instructions of the IR, each defined once: type rule, meaning, derivative and loop nest.

Read `forms` (the forms of differentiation), `arithmetic` and `comparison` (elementwise ops),
`transcendental`, `special`, `rounding`, `casting`, `bitwise` and `random` (more of them); then `movement`,
`indexing`, `slicing`, `sorting`, `scan`, `scatter`, `reduction`, `contraction`, `window` and `convolution` (each built
on those before it), `axis`, `shape_query`, `bits`, and what is expanded: `expansion`, `builtin`, `ordered_reduction`.
Ops that make up programs are in `literal`, `reference`, `aggregate`, `enums`, `structured`, `terminators`, `trap`,
`effects`, `memory` and `stack`; `nest` is the loop nest they become.
"""

from types import ModuleType

from ..ir.instruction import Op
from . import (
    arithmetic,
    bits,
    bitwise,
    builtin,
    casting,
    comparison,
    contraction,
    convolution,
    indexing,
    movement,
    random,
    reduction,
    rounding,
    scan,
    scatter,
    shape_query,
    slicing,
    sorting,
    special,
    stop_gradient,
    transcendental,
    window,
)  # fmt: skip
from .aggregate import Aggregate, Apply, ApplyValue, Extract, Insert
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
    Relu,
    Sign,
    Square,
    StrongMultiply,
    Subtract,
    TruncateDivide,
)
from .axis import AxisReduce
from .bits import BitCast, Reinterpret
from .bitwise import BitwiseAnd, BitwiseOr, BitwiseXor, ShiftLeft, ShiftRight
from .builtin import Builtin
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
from .convolution import Convolve
from .decomposition import Eigh, Orthonormalize, Svd
from .effects import Check, Print
from .enums import EnumCase, IsCase, Payload
from .flows import Structured
from .forms import Bilinear, Elementwise, Linear, Partial, Pointwise
from .indexing import Gather, Iota, OneHot, ScatterAdd
from .linear_systems import Cholesky, LogDeterminant, Solve, TriangularSolve
from .literal import Literal, constant, dense, splat
from .memory import (
    AllocateBox,
    AllocateHeap,
    AllocateStack,
    Copy,
    Deallocate,
    ElementPointer,
    Load,
    Offset,
    PointerCast,
    ProjectBox,
    Release,
    Retain,
    Store,
)
from .movement import PadShape, Reverse, ShapeCast, SqueezeShape, Transpose
from .nest import Bounds, Nest, Yield
from .ordered_reduction import (
    ORDERED,
    InOrder,
    OrderedReduction,
    ReduceBy,
    ReduceInOrder,
    ReduceWindowBy,
    ReduceWindowInOrder,
    ScanBy,
    ScanInOrder,
)
from .random import Random, Threefry
from .reduction import ArgMax, ArgMin, Broadcast, Reduce, sum_to_shape
from .reference import Null, Reference, Undefined
from .rounding import Ceil, Floor, Rint, Round
from .scan import Scan
from .scatter import Scatter, Update
from .shape_query import Rank, ShapeOf, ShapeQuery, UnitCount
from .singular_values import PseudoInverse
from .slicing import Concatenate, Pad, Slice
from .sorting import ArgSort
from .special import Digamma, Erf, Erfc, Lgamma, Trigamma
from .stack import CreateStack, DestroyStack, Pop, Push
from .stop_gradient import StopGradient, StraightThrough
from .structured import For, If, While
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
    FlushedExp,
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
from .trap import Trap
from .window import PaddingMode, ReduceWindow

FAMILIES: tuple[ModuleType, ...] = (
    arithmetic, transcendental, special, rounding, comparison, casting, stop_gradient, random, movement, reduction,
    slicing, indexing, sorting, scan, scatter, contraction, window, convolution, shape_query, bits, bitwise,
    builtin,
)  # fmt: skip
"""The modules of the ops that compute with tensors."""

MATRIX_FUNCTIONS: tuple[type[Op], ...] = (
    Solve, TriangularSolve, Cholesky, LogDeterminant, Orthonormalize, Eigh, Svd, PseudoInverse,
)  # fmt: skip
"""Functions of matrices by the LAPACK, of f32 and f64 alone: random operands are too near to singular ones for laws."""

PROGRAM: tuple[type[Op], ...] = (
    *MATRIX_FUNCTIONS,
    Literal, Reference, Null, Undefined, Aggregate, EnumCase, IsCase, Payload, Extract, Insert, Apply, ApplyValue,
    AxisReduce, If, While, For, Yield, Return, Branch, Conditional, BranchEnum, Trap, Check, Print,
    AllocateStack, AllocateHeap, AllocateBox, ProjectBox, Retain, Release, Deallocate,
    Load, Store, Copy, ElementPointer, Offset, PointerCast,
    CreateStack, Push, Pop, DestroyStack, Random, ReduceBy, ScanBy, ReduceWindowBy,
    ReduceInOrder, ScanInOrder, ReduceWindowInOrder,
)  # fmt: skip
"""Every other op that stands in the stages before compute: what makes programs of those in `ALL`."""

ALL: tuple[type[Op], ...] = tuple(
    op
    for family in FAMILIES
    for op in vars(family).values()
    if isinstance(op, type) and op.__module__ == family.__name__ and issubclass(op, Op)
    if "name" in vars(op) and op not in PROGRAM
)
"""Every op that computes with tensors, as its family defines them: what the laws in `tests/core/ops` range over."""

__all__ = [
    "ALL",
    "MATRIX_FUNCTIONS",
    "ORDERED",
    "PROGRAM",
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "Aggregate",
    "AllocateBox",
    "AllocateHeap",
    "AllocateStack",
    "And",
    "Apply",
    "ApplyValue",
    "ArgMax",
    "ArgMin",
    "ArgSort",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "AxisReduce",
    "Bilinear",
    "BitCast",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Bounds",
    "Branch",
    "BranchEnum",
    "Broadcast",
    "Builtin",
    "Ceil",
    "Check",
    "Cholesky",
    "Combinator",
    "Concatenate",
    "Conditional",
    "Convolve",
    "Copy",
    "Cos",
    "Cosh",
    "CreateStack",
    "DataTypeCast",
    "Deallocate",
    "DestroyStack",
    "Digamma",
    "Divide",
    "Dot",
    "Eigh",
    "ElementPointer",
    "Elementwise",
    "EnumCase",
    "Equal",
    "Erf",
    "Erfc",
    "Exp",
    "Expm1",
    "Extract",
    "Floor",
    "FloorDivide",
    "FlushedExp",
    "For",
    "Gather",
    "GreaterThan",
    "GreaterThanOrEqual",
    "If",
    "InOrder",
    "Insert",
    "Iota",
    "IsCase",
    "LessThan",
    "LessThanOrEqual",
    "Lgamma",
    "Linear",
    "Literal",
    "Load",
    "Log",
    "Log1p",
    "LogDeterminant",
    "Maximum",
    "Minimum",
    "Modulo",
    "Multiply",
    "Negate",
    "Nest",
    "Not",
    "NotEqual",
    "Null",
    "Offset",
    "OneHot",
    "Or",
    "OrderedReduction",
    "Orthonormalize",
    "Pad",
    "PadShape",
    "PaddingMode",
    "Partial",
    "Payload",
    "PointerCast",
    "Pointwise",
    "Pop",
    "Power",
    "Print",
    "ProjectBox",
    "PseudoInverse",
    "Push",
    "Random",
    "Rank",
    "Reduce",
    "ReduceBy",
    "ReduceInOrder",
    "ReduceWindow",
    "ReduceWindowBy",
    "ReduceWindowInOrder",
    "Reference",
    "Reinterpret",
    "Release",
    "Relu",
    "Retain",
    "Return",
    "Reverse",
    "Rint",
    "Round",
    "Rsqrt",
    "Scan",
    "ScanBy",
    "ScanInOrder",
    "Scatter",
    "ScatterAdd",
    "Select",
    "ShapeCast",
    "ShapeOf",
    "ShapeQuery",
    "ShiftLeft",
    "ShiftRight",
    "Sign",
    "Sin",
    "Sinh",
    "Slice",
    "Solve",
    "Sqrt",
    "Square",
    "SqueezeShape",
    "StopGradient",
    "Store",
    "StraightThrough",
    "StrongMultiply",
    "Structured",
    "Subtract",
    "Svd",
    "Tan",
    "Tanh",
    "Threefry",
    "Transpose",
    "Trap",
    "TriangularSolve",
    "Trigamma",
    "TruncateDivide",
    "Undefined",
    "UnitCount",
    "Update",
    "While",
    "Yield",
    "arguments_of",
    "constant",
    "dense",
    "splat",
    "sum_to_shape",
]  # fmt: skip
