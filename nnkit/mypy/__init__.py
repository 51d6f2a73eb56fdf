"""A plugin for mypy, `plugins = ["nnkit.mypy"]`, that says what overloads cannot.

Names of dimensions through reshape, concat, einsum and operators whose left operand has none; sizes where types or
expressions have them; words for what is no type error and fails at run time, and for fields that are read as
attributes; static parameters of functions whose types overloads cannot tell apart.  Read `dimensions`, then `results`
and `sizes`, then `refusals`, `fields`, `statics` and `unstaged`.
"""

from .hooks import NNKitPlugin, plugin

__all__ = ["NNKitPlugin", "plugin"]
