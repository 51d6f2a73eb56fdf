"""What an AttributeError says of a name that does not exist: the nearest one that does.

In this order: what the tables (`nnkit.equivalents`, `nnkit.equivalents_in_modules`, `nnkit.equivalent_methods`) have
for it, a method or function of that name elsewhere, a name spelled alike.  PyTorch's names of changes in place end in
an underscore: what is said of them is said of the name without.  What only NumPy has is said to be for data.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from opcode import opmap
from types import FrameType, MappingProxyType, ModuleType

import numpy as np

from .equivalent_methods import OF_FUNCTION, OF_REP, OF_TENSOR
from .equivalents import OF_PACKAGE
from .equivalents_in_modules import OF_LINALG, OF_NN, OF_OPTIM, OF_RANDOM, OF_TREE
from .staging.rep import Rep

_LIKE = 0.75
"""How much alike (`difflib`'s ratio) names are that may be meant for each other: two letters of eight may differ."""

_TABLES: Mapping[str, str] = MappingProxyType(
    {"linalg": OF_LINALG, "nn": OF_NN, "optim": OF_OPTIM, "random": OF_RANDOM, "tree": OF_TREE}
)
"""Of each module of the package, what its names are called elsewhere."""

_IN_PLACE = "values do not change: it makes a new one"


def of_package(name: str, public: Iterable[str], asking: FrameType) -> Exception:
    """Of `nk.name`, where `public` names exist: an ImportError if the frame that is `asking` imports it.

    (Python would drop the words of an AttributeError then.)
    """
    found = _of_package(name) or _alike(name, public, "nk.{}") or _of_numpy(np, "np", name)
    code, at = asking.f_code, asking.f_lasti
    if code.co_code[at] == opmap["IMPORT_FROM"]:
        operation, argument = code.co_code[at - 2 : at]
        if operation == opmap["IMPORT_NAME"] and "." in code.co_names[argument]:
            return AttributeError(name)  # `import nnkit.name as n` finds what it has imported
        words = f"cannot import name {name!r} from {__package__!r}"
        return ImportError(with_help(words, found), name=__package__)
    return AttributeError(with_help(f"module {__package__!r} has no attribute {name!r}", found))


def of_module(module: str, name: str, public: Iterable[str]) -> Exception:
    """Of `nk.module.name`, where `public` names exist: an ImportError if the user's line imports it."""
    found = _equivalent(_TABLES[module], name) or _spelled(name, public, f"nk.{module}.{{}}")
    found = found or (f"`nk.{name}`: in nnkit itself" if name in _public() else "")
    found = found or _of_package(name) or _alike(name, public, f"nk.{module}.{{}}")
    its: ModuleType | None = getattr(np, module, None)
    found = found or (_of_numpy(its, f"np.{module}", name) if its else "")
    whole = f"{__package__}.{module}"
    asking = _outside()
    if asking is not None and asking.f_code.co_code[asking.f_lasti] == opmap["IMPORT_FROM"]:
        words = f"cannot import name {name!r} from {whole!r}"
        return ImportError(with_help(words, found), name=whole)
    return AttributeError(with_help(f"module {whole!r} has no attribute {name!r}", found))


def of_rep(name: str, public: Iterable[str]) -> str:
    """What to write instead of `x.name` of a staged value."""
    return _of_rep(name) or _alike(name, public, "x.{}") or _of_package(name)


def of_tensor(name: str, public: Iterable[str]) -> str:
    """What to write instead of `t.name` of a concrete tensor."""
    found = _equivalent(OF_TENSOR, name)
    if not found and name in _methods():
        found = f"`t.numpy().{name}()`, or `x.{name}()` inside a staged function"
    if not found and not name.startswith("_") and hasattr(np.ndarray, name):
        found = f"`t.numpy().{name}`: NumPy's, of its memory as an array"
    if not found and name not in rows(OF_REP) and _function(name, "t"):
        found = f"`nk.{name}(x)` inside a staged function; of data, `nk.{name}(nk.const(t)).eval()`"
    staged = "" if found else _of_rep(name)
    found = found or (f"inside a staged function, {staged}" if staged else "")
    found = found or _alike(name, public, "t.{}")
    staged = "" if found else _of_package(name)
    return found or (f"inside a staged function, {staged}" if staged else "")


def of_function(name: str, public: Iterable[str]) -> AttributeError:
    """Of `f.name` of a staged function."""
    private = name.startswith("_")
    found = "" if private else _equivalent(OF_FUNCTION, name) or _alike(name, public, "f.{}")
    return AttributeError(with_help(f"a staged function has no attribute {name!r}", found))


def with_help(words: str, found: str) -> str:
    """The message, with the remedy if there is one."""
    return f"{words}\n  help: {found}" if found else words


def _of_package(name: str) -> str:
    """What there is for a function of that name."""
    return (
        _equivalent(OF_PACKAGE, name)
        or _inside(name)
        or (f"`x.{name}(...)`: a method of staged values" if name in _methods() else "")
        or _in_place(name, _function_itself)
        or _elsewhere(name)
    )


def _of_rep(name: str) -> str:
    """What there is for a method of that name."""
    return (
        _equivalent(OF_REP, name)
        or _function(name, "x")
        or _in_place(name, _method_or_function)
        or (_inside(name) if _is_linear_algebra(name) else "")
    )


def _in_place(name: str, of: Callable[[str], str]) -> str:
    """Of a name that ends in an underscore, as PyTorch's that change a tensor: the remedy of the name without."""
    return of(name[:-1]) if name.endswith("_") and name[0] != "_" else ""


def _function_itself(name: str) -> str:
    return f"`nk.{name}(x)`: {_IN_PLACE}" if name in _public() else _of_package(name)


def _method_or_function(name: str) -> str:
    if name in _methods():
        return f"`x.{name}(...)`: {_IN_PLACE}"
    if found := _equivalent(OF_REP, name):
        return found
    return f"`nk.{name}(x)`: {_IN_PLACE}" if _function(name, "x") else _of_rep(name)


def _is_linear_algebra(name: str) -> bool:
    return name in getattr(_package(), "linalg").__all__  # noqa: B009  # not known to checkers


def _elsewhere(name: str) -> str:
    """What the tables of the modules have for it."""
    return next(filter(None, (_equivalent(table, name) for table in _TABLES.values())), "")


def _of_numpy(module: ModuleType, called: str, name: str) -> str:
    """That NumPy has the name, if it does: for data, outside of staged functions."""
    if name.startswith("_") or name not in dir(module):
        return ""
    return f"`{called}.{name}` of data, outside of staged functions: NNKit has none; docs/functions.md has all names"


def _outside() -> FrameType | None:
    """The frame that asks for a name: the first one outside of the package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_of_package(frame):
        frame = frame.f_back
    return frame


def _is_of_package(frame: FrameType) -> bool:
    home = str(frame.f_globals.get("__name__", ""))
    return home == __package__ or home.startswith(f"{__package__}.")


def _equivalent(table: str, name: str) -> str:
    if name not in rows(table):
        return ""
    ours, why = rows(table)[name]
    return f"`{ours}`: {why}"


@cache
def rows(table: str) -> dict[str, tuple[str, str]]:
    """What a table has for each name: what to write instead, and why."""
    found: dict[str, tuple[str, str]] = {}
    for line in table.strip().splitlines():
        names, rest = line.split(" | ", 1)
        ours, why = rest.rsplit(" | ", 1)
        found |= dict.fromkeys(names.split(), (ours, why))
    return found


def _package() -> ModuleType:
    return sys.modules[__name__.rpartition(".")[0]]


def _inside(name: str) -> str:
    """Where in a module of the package the name is, if it is."""
    package = _package()
    for home in _TABLES:
        if name in getattr(package, home).__all__:
            return f"`nk.{home}.{name}`: in nk.{home}"
    return ""


def _methods() -> frozenset[str]:
    """The public methods of staged values."""
    return frozenset(name for name in dir(Rep) if name[0] != "_")


def _public() -> Iterable[str]:
    """The public names of the package."""
    homes: dict[str, str] = vars(_package())["_HOME_OF"]
    return homes


def _function(name: str, operand: str) -> str:
    """`nk.name(x)`, if there is such a function."""
    if name not in _public():
        return ""
    value: object = getattr(_package(), name)
    return "" if isinstance(value, ModuleType | type) else f"`nk.{name}({operand})`: a function"


def _spelled(name: str, public: Iterable[str], form: str) -> str:
    """The public name that has the same letters; capitals and underscores do not count."""
    for each in sorted(public):
        if each[0] != "_" and _letters(each) == _letters(name):
            return f"did you mean `{form.format(each)}`?"
    return ""


def _alike(name: str, public: Iterable[str], form: str) -> str:
    """The public name that is spelled most alike, and begins alike; capitals and underscores do not count."""
    if name.startswith("_"):
        return ""
    spelled = {_letters(each): each for each in sorted(public) if each[0] != "_"}
    close = get_close_matches(_letters(name), spelled, n=3, cutoff=_LIKE)
    begins = [each for each in close if each[:1] == _letters(name)[:1]]
    return f"did you mean `{form.format(spelled[begins[0]])}`?" if begins else ""


def _letters(name: str) -> str:
    return re.sub("_", "", name).lower()
