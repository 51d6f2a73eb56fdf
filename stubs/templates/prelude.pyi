# Written by stubs/generate.py; do not edit.
# pyright: reportIncompatibleMethodOverride=false
# mypy: ignore-errors
# (mypy then skips its quadratic overlap check of overloads; a test checks this file without the line)
import os
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from types import EllipsisType
from typing import TYPE_CHECKING as MYPY   # which mypy takes for true by its name, and pyright does not know
from typing import Any, ClassVar, Generic, Literal, Never, ParamSpec, Protocol, Self, SupportsAbs, TypeAlias, overload

import numpy as np
from typing_extensions import TypeVar, TypeVarTuple, Unpack, dataclass_transform

from . import linalg as linalg
from . import nn as nn
from . import optim as optim
from . import random as random
from . import tree as tree

D = TypeVar("D", bound=DType)
D_co = TypeVar("D_co", bound=DType, covariant=True)
E = TypeVar("E", bound=DType)
N = TypeVar("N", bound=Number)
F = TypeVar("F", bound=Float)
Z = TypeVar("Z", bound=Integer)
B = TypeVar("B", bound=Logical)
NP = TypeVar("NP", bound=np.generic)
np_unknown = TypeVar("np_unknown", bound=np.void)
SHAPELESS = TypeVar("SHAPELESS", bound=tuple[UnknownExtent])
NP_co = TypeVar("NP_co", bound=np.generic, covariant=True)
X = TypeVar("X")
X_co = TypeVar("X_co", covariant=True)
X_contra = TypeVar("X_contra", contravariant=True)
Y = TypeVar("Y")
CONTENT = TypeVar("CONTENT", default=Rep[Y])
VALUE = TypeVar("VALUE", bound=AnyTensor[Any] | Struct | tuple[Any, ...])
M = TypeVar("M")
R = TypeVar("R")
G = TypeVar("G", bound=AnyTensor[Float] | Struct | tuple[AnyTensor[Float] | Struct, ...])
S = TypeVar("S", bound=Struct)
TT = TypeVar("TT", bound=AnyTensor[Any])
TU = TypeVar("TU", bound=AnyTensor[Any])
NT = TypeVar("NT", bound=AnyTensor[Number])
FT = TypeVar("FT", bound=AnyTensor[Float])
ZT = TypeVar("ZT", bound=AnyTensor[Integer])
LT = TypeVar("LT", bound=AnyTensor[Logical])
OUT = TypeVar("OUT", bound=AnyTensor[Float] | tuple[Any, ...])
Ts = TypeVarTuple("Ts")
HALF = TypeVar("HALF")
OTHER = TypeVar("OTHER")
MADE = TypeVar("MADE", covariant=True)
class Unnamed:   # dimensions; an alias is what mypy does not count as an Any that makes several overloads fit
    Any: TypeAlias = typing.Any
NoLambda: TypeAlias = Callable[[Never, Never, Never, Never, Never, Never, Never, Never, Never, Never, Never, Never], Never]   # what mypy takes a lambda for, beside a protocol, and it does not fit
DATA = TypeVar("DATA", bound=AnyTensor[Any] | Struct)
STATIC = TypeVar("STATIC", bound=complex | str | bytes | Enum | tuple[Any, ...] | frozenset[Any] | type[Any] | PythonFunction | DataclassInstance | None)
STATIC_contra = TypeVar("STATIC_contra", contravariant=True)
TAKEN = ParamSpec("TAKEN")
GIVEN = ParamSpec("GIVEN")
UP = TypeVar("UP", covariant=True)
MASK = TypeVar("MASK", covariant=True)
ELEM = TypeVar("ELEM", covariant=True)
OPERAND = TypeVar("OPERAND")
OPERAND_co = TypeVar("OPERAND_co", covariant=True)
