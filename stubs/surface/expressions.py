"""Type expressions and definitions of the stub, as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

MAX_RANK = 5
MAX_PARAMETERS = 8
"""Of staged and fn."""
MAX_ARITY = MAX_PARAMETERS + 1
"""Of application, f(...) and f[...]: a gradient may take a seed besides."""
MAX_SELECTED = 6
"""Of the selector form of wrt."""
MAX_INDEX = 3
"""The highest literal index of gradient(wrt=, from_=)."""
MAX_RESULTS = 4
"""Of a staged function."""
MAX_CARRIED = 3
"""Parts of what fold and scan carry; cond, while_loop and fori take as many as a function has results."""
RANKS = range(MAX_RANK + 1)
MAX_LISTED = 4
"""The highest rank whose permutations, sets of axes and operands are listed, each with the names that are left.

Beyond it a table has one line for many, as mypy compares each line of a table with all others.
"""
DIMENSIONS = "IJKLH"
"""The type variables of the names of dimensions."""
OTHER_DIMENSIONS = "PQUVW"
"""Those of a second tensor."""
COMMON_FIRST = (2, 1, 3, 4, 5, 0)
COMMON_LAST = COMMON_FIRST[::-1]
"""The ranks of a table: where no overload fits, mypy speaks of the first one, pyright of the last."""
DTYPES: dict[str, tuple[str, str | None]] = {
    "f16": ("Float", "float16"),
    "bf16": ("Float", None),
    "f32": ("Float", "float32"),
    "f64": ("Float", "float64"),
    "i8": ("Integer", "int8"),
    "i32": ("Integer", "int32"),
    "i64": ("Integer", "int64"),
    "boolean": ("Logical", "bool"),
}
"""Family and NumPy scalar type of each element type: a new one costs this line."""
REFUSED = (
    "FunctionOfFloatsAtIncreasingWrt",
    "NumberFunctionOfFloatsAtIncreasingWrt",
    "TensorLikeTheFirst",
    "TensorsLikeTheMask",
    "LabelsLikeTheLogits",
    "VectorsLikeTheLastAxis",
    "VectorsLikeTheChannels",
    "KernelOfOneRankMoreThanAnElement",
    "TensorsOfOneTypeWithThatAxis",
    "FloatsWithThatAxis",
    "NumbersWithThatAxis",
    "TruthValuesWithThatAxis",
    "TensorWithThatAxis",
    "ContentOfTheField",
    "TypeOfTheFirstBranchAndOfTheResult",
    "DecorateItWithNkStaged",
    "StagedFunction",
    "DecorateTheFunctionWithNkStaged",
    "AnnotateDataAsRep",
    "AtLeastOneTensor",
    "TheElementTypeOfTheArray",
    "ThatOfTheArrayOrCastTheArrayByAstype",
    "ChooseByCondOrSelect",
    "LoopByMapFoldOrScan",
    "ReadItAsAnAttribute",
    "ReturnItFromTheStagedFunction",
    "AShapeThenANumberThenAnElementType",
)
"""What messages say that an argument should have been: see `refused`."""
LITERALS = {"Float": "float", "Integer": "int"}
"""The Python number that may stand for a scalar of the family."""
PYTHON = {"float": "F", "int": "Z", "bool": "B"}
"""The type variable for the element types that a Python value can have."""
VARIABLES = {"Number": "NT", "Float": "FT", "Integer": "ZT"}
"""The type variable for a tensor of the family."""


def template(name: str) -> Iterator[str]:
    """A part that needs no generating, as ordinary stub text."""
    path = Path(__file__).parent.parent / "templates" / f"{name}.pyi"
    yield from path.read_text().strip("\n").split("\n")


def title(text: str) -> str:
    return f"# {'-' * 40} {text}"


def define(
    name: str, signatures: Iterable[str], *, indent: str = "", note: str = ""
) -> Iterator[str]:
    """`def name signature: ...`, as overloads when there are several; `note` goes on the first."""
    distinct = list(dict.fromkeys(signatures))
    for position, signature in enumerate(distinct):
        comment = "" if position else note
        if NOT_DECORATED in signature:
            comment += "  # type: ignore[assignment]"
        if len(distinct) > 1:
            yield f"{indent}@overload{comment}"
        yield f"{indent}def {name}{signature}: ...{comment}"


DECORATE = "DecorateTheFunctionWithNkStaged"
NOT_DECORATED = f"{DECORATE}: Unstaged[TT] = None"
"""A default that is not of its type, which pyright finds when it is used: the name is what it says of data.

It has a type variable, as pyright looks at no other defaults, and stands behind the others: a misfit there counts less,
so that pyright complains about this overload where the others take Reps, and not of a Rep that they do not take.
"""
_OF_TENSOR = re.compile(
    r"\(((?:self, )?)(\w+): (?:View\[AnyTensor|Rep\[(?:Tensor|Y\]|(?:N|F|Z|L|T)T\]))"
)


def define_for_tensors(name: str, signatures: Iterable[str]) -> Iterator[str]:
    """The same with a refusal of data at the end, of a function whose first parameter is a staged tensor."""
    return define(name, without_data(signatures))


def without_data(signatures: Iterable[str]) -> Iterator[str]:
    """A last overload that nobody can call: its name is what checkers say of data."""
    last = None
    for signature in signatures:
        last = _OF_TENSOR.match(signature) or last
        yield signature
    if last is not None:
        yield f"({last[1]}{last[2]}: UnstagedData, /, *others: Any, {NOT_DECORATED}, **options: Any) -> Rep[Any]"


def method(name: str, signatures: Iterable[str], *, note: str = "") -> Iterator[str]:
    return define(name, signatures, indent="    ", note=note)


def for_either(mypy: Iterable[str], pyright: Iterable[str], *, indent: str = "") -> Iterator[str]:
    """Declarations that each of the checkers has its own form of.

    mypy takes MYPY for true by its name, and does not know `os.name`; for pyright it is the other way around.
    """
    yield f"{indent}if MYPY:"
    yield f'{indent}    if os.name == "mypy":   # false for pyright'
    yield from (f"        {line}" for line in mypy)
    yield f"{indent}else:"
    yield from (f"    {line}" for line in pyright)


def commas(parts: Iterable[str]) -> str:
    return ", ".join(parts)


def names(letter: str, count: int, wrap: str = "{}") -> list[str]:
    """names("A", 2, "Rep[{}]") is ["Rep[A0]", "Rep[A1]"]."""
    return [wrap.format(f"{letter}{i}") for i in range(count)]


def dims(rank: int, letters: str = DIMENSIONS) -> list[str]:
    return list(letters[:rank])


def tensor(rank: int, extents: Sequence[str] | None = None, dtype: str = "D") -> str:
    """Tensor2D[D, I, J]; without `extents` the variables I, J, K, L, H.  Trailing Any are left out."""
    arguments = list(dims(rank) if extents is None else extents)
    assert len(arguments) == rank <= MAX_RANK, (rank, extents)
    while arguments and arguments[-1] == "Any":
        arguments.pop()
    return f"Tensor{rank}D[{commas([dtype, *arguments])}]"


def plain(rank: int, dtype: str = "D") -> str:
    """A tensor without named dimensions."""
    return tensor(rank, ["Any"] * rank, dtype)


def without(rank: int, *gone: int, dtype: str = "D") -> str:
    """A tensor of `rank` that has lost some axes."""
    kept = [d for i, d in enumerate(dims(rank)) if i not in gone]
    return tensor(rank - len(gone), kept, dtype)


def operands(rank: int, dtype: str = "D") -> list[str]:
    """The Reps of lower rank that broadcast to a tensor of that rank: with its names, if they are listed."""
    if rank > MAX_LISTED:
        return [f"View[AnyTensor[{dtype}]]"]
    return [rep(tensor(low, dims(rank)[rank - low :], dtype)) for low in range(rank)]


def rep(inner: str) -> str:
    return f"Rep[{inner}]"


def tup(parts: Sequence[str]) -> str:
    return f"tuple[{commas(parts)}]"


def ints(rank: int) -> str:
    """A shape of that rank, as Python ints."""
    return tup(["int"] * rank) if rank else "tuple[()]"


def shape_of(rank: int) -> str:
    """A shape of that rank; that of a vector may be its size."""
    return f"int | {ints(rank)}" if rank == 1 else ints(rank)


def refused(what: str) -> str:
    """A Rep that nobody has: the first overload of a table wants it.

    Where no overload fits, mypy complains about the first one that would fit if all Reps were alike,
    or lists the whole table if there is none.  So the name of this class is what users read.
    """
    assert what in REFUSED, what
    return rep(what)


def with_unstaged(signatures: Iterable[str]) -> Iterator[str]:
    """The table of a function of staged functions, whose first overload is a refusal; and for others one at the end.

    It fits no function, but resembles all that are not staged, so that mypy complains about this one alone.  pyright
    complains about the last one of those with the fewest misfits.  At the end, it costs nothing where another fits.
    """
    first, *others = signatures
    yield first
    yield from others
    yield re.sub(r"of: Rep\[\w+\]", f"of: {unstaged()}", first)


def unstaged() -> str:
    """What a Python function is that is not staged."""
    return function(["DecorateItWithNkStaged"], "StagedFunction")


def function(parameters: Iterable[str], result: str) -> str:
    return f"Callable[[{commas(parameters)}], {result}]"


def masked(dtype: str, mask: str) -> str:
    """A tensor whose comparison gives `mask`."""
    return f"Ranked[{dtype}, Any, {mask}]"


def lifted(up: str) -> str:
    """A tensor that is `up` after one more leading dimension."""
    return f"Ranked[Any, {up}, Any]"


def batched(element: str, depth: int = 1, dtype: str = "Any") -> str:
    """A tensor of any rank >= depth; `element` is its row, or the row of its row, ..."""
    inner = element if depth == 1 else batched(element, depth - 1)
    return f"Batched[{dtype}, Any, Any, {inner}]"


def axis_literal(axis: int, rank: int) -> str:
    """The axis counted from either end."""
    return f"Literal[{axis}, {axis - rank}]"


def any_axis(rank: int) -> str:
    """Any axis of a tensor of that rank, counted from either end."""
    return f"Literal[{commas(map(str, range(-rank, rank)))}]"
