"""Parts of tensors, `x.at[key]`, and mutable arrays, `ref(x)`."""

from __future__ import annotations

from collections.abc import Iterator

from .expressions import LITERALS, method, template, title
from .staged import indexing

WRITTEN = {family: f"{literal} | View[AnyTensor[{family}]]" for family, literal in LITERALS.items()}
"""What may be written to elements of a family."""
WRITTEN["Logical"] = "bool | View[AnyTensor[Logical]]"


def updates() -> Iterator[str]:
    yield title("parts of tensors and mutable arrays")
    yield from template("updates")
    yield "class Part(PartView[X], Generic[X]):"
    yield '    """`x.at[key]`: each method gives the whole tensor with this part updated."""'
    for name in ("set", "add", "multiply", "min", "max"):
        yield from method(
            name,
            [
                f"(self: PartView[AnyTensor[{family}]], value: {value} | AnyTensor[{family}], /, *,"
                " mode: WriteMode = 'error') -> Rep[X]"
                for family, value in WRITTEN.items()
                if name == "set" or family != "Logical"
            ],
        )
    yield "class Ref(RefView[X], Generic[X]):"
    yield '    """A mutable array of a staged function."""'
    whole = "(self, key: EllipsisType, /) -> Rep[X]"
    reads = (signature.replace("View[", "RefView[", 1) for signature in indexing())
    yield from method("__getitem__", [whole, *reads])
    yield from method(
        "__setitem__",
        [
            f"(self: RefView[AnyTensor[{family}]], key: Key, value: {value} | AnyTensor[{family}], /)"
            " -> None"
            for family, value in WRITTEN.items()
        ],
    )
    yield "    @property"
    yield "    def value(self) -> Rep[X]: ..."
    yield "    @value.setter"
    yield "    def value(self, value: Rep[X], /) -> None: ..."
    yield "@overload"
    yield "def ref(x: Rep[TT], /) -> Ref[TT]:"
    yield '    """A mutable array of a staged function, which holds x at first."""'
    yield "@overload"
    yield "def ref(x: TT, /) -> Ref[TT]: ..."
