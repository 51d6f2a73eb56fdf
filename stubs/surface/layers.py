"""`nnkit.nn`: its sources are typed, as a user's are; the stub has their signatures, and none of what they import."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "nnkit" / "nn"
HEAD = """# Written by stubs/generate.py; do not edit.
import typing
from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, TypeAlias, overload

from typing_extensions import TypeVar

from .. import AnyTensor, Field, Float, Integer, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor3D, Tensor4D, Tensor5D
from .. import f32, i64
"""
FILES = "parameters initial linear_layers convolutional normalizing embeddings recurrent attentive"
"""In the order in which their names are needed."""


def layers() -> Iterator[str]:
    """The submodule `nnkit.nn`."""
    exported = ast.literal_eval(_assigned((FOLDER / "__init__.py").read_text(), "__all__"))
    yield HEAD
    yield "class Unnamed:   # dimensions"
    yield "    Any: TypeAlias = typing.Any"
    for name in FILES.split():
        for node in ast.parse((FOLDER / f"{name}.py").read_text()).body:
            yield from _declaration(node, exported)


def _declaration(node: ast.stmt, exported: list[str]) -> Iterator[str]:
    """A type variable, an alias, a class or a signature, if users see it."""
    match node:
        case ast.Assign(value=ast.Call(func=ast.Name("TypeVar"))):
            # an alias, as in the stub of nnkit: mypy then takes the first overload that fits
            yield ast.unparse(node).replace("default=Any", "default=Unnamed.Any")
        case ast.AnnAssign(target=ast.Name(name), annotation=ast.Name("TypeAlias")):
            if name != "Maker":
                yield ast.unparse(node)
        case ast.FunctionDef(name=name) if name in exported and not _is_implementation(node):
            yield from _signature(node)
        case ast.ClassDef(name=name, bases=bases) if name in exported:
            yield f"class {name}({', '.join(map(ast.unparse, bases))}):"
            for one in node.body:
                if isinstance(one, ast.AnnAssign):
                    yield f"    {ast.unparse(one)}"
                elif isinstance(one, ast.FunctionDef):
                    yield from (f"    {line}" for line in _signature(one))
        case _:
            pass


def _signature(node: ast.FunctionDef) -> Iterator[str]:
    bare = copy.copy(node)
    bare.body = [ast.Expr(ast.Constant(...))]
    *decorators, head, _ = ast.unparse(ast.fix_missing_locations(bare)).strip().splitlines()
    yield from decorators
    yield f"{head} ..."


def _is_implementation(node: ast.FunctionDef) -> bool:
    """Whether its overloads stand before it: its first parameter is of any type."""
    return isinstance(node.args.posonlyargs[0].annotation, ast.Name) and not node.decorator_list


def _assigned(text: str, name: str) -> ast.expr:
    return next(
        node.value
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
    )
