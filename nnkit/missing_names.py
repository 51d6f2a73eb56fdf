"""What an AttributeError says of a name that does not exist: the nearest one that does.

In this order: what `nnkit.equivalents` has for it, a method or function of that name elsewhere, a name spelled alike.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from opcode import opmap
from types import FrameType, ModuleType

from .equivalent_methods import OF_FUNCTION, OF_REP, OF_TENSOR
from .equivalents import OF_PACKAGE, OF_RANDOM
from .staging.rep import Rep

_LIKE = 0.75
"""How much alike (`difflib`'s ratio) names are that may be meant for each other: two letters of eight may differ."""

_MODULES = ("linalg", "nn", "optim", "random", "tree")


def of_package(name: str, public: Iterable[str], asking: FrameType) -> Exception:
    """Of `nk.name`, where `public` names exist: an ImportError if the frame that is `asking` imports it.

    (Python would drop the words of an AttributeError then.)
    """
    found = (
        _equivalent(OF_PACKAGE, name)
        or _inside(name)
        or (f"`x.{name}(...)`: a method of staged values" if name in _methods() else "")
        or _alike(name, public, "nk.{}")
    )
    code, at = asking.f_code, asking.f_lasti
    if code.co_code[at] == opmap["IMPORT_FROM"]:
        operation, argument = code.co_code[at - 2 : at]
        if operation == opmap["IMPORT_NAME"] and "." in code.co_names[argument]:
            return AttributeError(name)  # `import nnkit.name as n` finds what it has imported
        words = f"cannot import name {name!r} from {__package__!r}"
        return ImportError(with_help(words, found), name=__package__)
    return AttributeError(with_help(f"module {__package__!r} has no attribute {name!r}", found))


def of_module(module: str, name: str, public: Iterable[str]) -> AttributeError:
    """Of `nk.module.name`, where `public` names exist."""
    table = {"random": OF_RANDOM, "nn": OF_PACKAGE}.get(module, "")
    outside = f"`nk.{name}`: in nnkit itself" if name in _public() else ""
    found = _equivalent(table, name) or outside or _alike(name, public, f"nk.{module}.{{}}")
    return AttributeError(with_help(f"module 'nnkit.{module}' has no attribute {name!r}", found))


def of_rep(name: str, public: Iterable[str]) -> str:
    """What to write instead of `x.name` of a staged value."""
    return _equivalent(OF_REP, name) or _function(name, "x") or _alike(name, public, "x.{}")


def of_tensor(name: str, public: Iterable[str]) -> str:
    """What to write instead of `t.name` of a concrete tensor."""
    found = _equivalent(OF_TENSOR, name)
    if not found and name in _methods():
        found = f"`t.numpy().{name}()`, or `x.{name}()` inside a staged function"
    return found or _function(name, "t") or _alike(name, public, "t.{}")


def of_function(name: str, public: Iterable[str]) -> AttributeError:
    """Of `f.name` of a staged function."""
    private = name.startswith("_")
    found = "" if private else _equivalent(OF_FUNCTION, name) or _alike(name, public, "f.{}")
    return AttributeError(with_help(f"a staged function has no attribute {name!r}", found))


def with_help(words: str, found: str) -> str:
    """The message, with the remedy if there is one."""
    return f"{words}\n  help: {found}" if found else words


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
    for home in _MODULES:
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


def _alike(name: str, public: Iterable[str], form: str) -> str:
    """The public name that is spelled most alike; capitals and underscores do not count."""
    if name.startswith("_"):
        return ""
    spelled = {_letters(each): each for each in sorted(public)}
    close = get_close_matches(_letters(name), spelled, n=1, cutoff=_LIKE)
    return f"did you mean `{form.format(spelled[close[0]])}`?" if close else ""


def _letters(name: str) -> str:
    return re.sub("_", "", name).lower()
