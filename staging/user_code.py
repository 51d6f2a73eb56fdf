"""Which modules and files are the user's: not NNKit's, nor Python's own, and installed ones if they use NNKit."""

from __future__ import annotations

import sys
import sysconfig
from functools import lru_cache
from types import FunctionType, ModuleType
from typing import Any, Final

from .location import is_own_file


def is_user_module(module: ModuleType | None) -> bool:
    """Whether its variables may be given other values, and its functions read them."""
    if module is None or module.__name__ == "__main__":
        return True  # a namespace that code was executed in; or what a library runs, as `python -m pytest` does
    file = getattr(module, "__file__", None)
    if file is None:
        return module.__spec__ is None
    return not is_own_file(file) and (not is_library(file) or _uses_nnkit(file, module.__name__))


def is_user_class(cls: type[Any]) -> bool:
    """Whether it is defined in such a module."""
    return is_user_module(sys.modules.get(cls.__module__))


def is_user_function(function: FunctionType) -> bool:
    """Whether what it reads is looked for."""
    file = function.__code__.co_filename
    if is_own_file(file):
        return False
    return not is_library(file) or _uses_nnkit(file, function.__module__)


@lru_cache(1024)
def is_library(file: str) -> bool:
    """Whether a file belongs to Python or to an installed package."""
    return file.startswith((*_LIBRARIES, "<frozen"))


@lru_cache(1024)
def _uses_nnkit(file: str, name: str) -> bool:
    """Whether a module, of this name in this file, holds something of NNKit's: an installed package of models does."""
    held = [*vars(sys.modules[name]).values()] if name in sys.modules else []
    return file.startswith(_INSTALLED) and any(_home_of(one) == _OURS for one in held)


def _home_of(value: object) -> str:
    """The package that a module is in, or that a function or class was defined in."""
    name: object = getattr(value, "__name__" if isinstance(value, ModuleType) else "__module__", "")
    return name.split(".")[0] if isinstance(name, str) else ""


def _paths(*names: str) -> tuple[str, ...]:
    return tuple({path for name in names if (path := sysconfig.get_path(name))})


_LIBRARIES: Final = _paths("stdlib", "platstdlib", "purelib", "platlib")
_INSTALLED: Final = _paths("purelib", "platlib")
_OURS: Final = __name__.split(".")[0]
