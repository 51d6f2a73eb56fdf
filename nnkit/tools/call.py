"""Calls as text: `@f(1, <2, 3>, {#a = 4})`, whose types are those of the function; results as literals."""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import NNKitError, UnsupportedError
from ..core.evaluate import EnumValue, FunctionValue, evaluate
from ..core.ir import Function, Module
from ..core.ir.surgery import clone_module, walk
from ..core.ops import dense
from ..core.passes.pipeline import MEMORY, STRUCTURED, run_pipeline
from ..core.text.cursor import Cursor
from ..core.text.lexer import Token, name_of, written
from ..core.text.literals import literal_of, parse_elements, print_elements
from ..core.text.types import parse_type
from ..core.types import (
    ArrayType,
    EnumType,
    FunctionType,
    StructType,
    TensorType,
    TupleType,
    Type,
    elements_of,
)
from ..lowering import Differentiate
from .command import InputError, load


class Difference(NNKitError):
    """The evaluator and compiled code give different results."""


def run_call(module: Module, text: str, runner: str) -> str:
    """What a call returns, as a literal; `runner` is `evaluator`, `jit` or `both`.

    Derivatives that are declared get their bodies in a copy of the module, where blocks and memory are brought
    into the form that can be differentiated.
    Raises: ParseError when the call is written wrongly, Difference when both are asked for and differ.
    """
    _refuse_huge(module)
    function, arguments = parse_call(module, text)
    if any(one.primal is not None for one in module.functions.values()):
        module = clone_module(module)
        run_pipeline(module, (*STRUCTURED, *MEMORY, Differentiate()))
        _refuse_huge(module)
    result = function.type.result
    found: dict[str, Any] = {}
    if runner != "jit":
        found["evaluator"] = evaluate(module, function.name, *arguments)
    if runner != "evaluator":
        run = load("native").run
        found["jit"] = run(clone_module(module), function.name, arguments)
    if len(found) == 2 and not same(result, found["evaluator"], found["jit"]):
        lines = [f"  {name}: {print_value(result, value)}" for name, value in found.items()]
        raise Difference("\n".join([f"{text}: the evaluator and compiled code differ", *lines]))
    return print_value(result, next(iter(found.values())))


def parse_call(module: Module, text: str) -> tuple[Function, tuple[Any, ...]]:
    """The function that `text` calls, and the arguments as the evaluator takes them."""
    cursor = Cursor(text, "--run")
    named: dict[str, Type] = {**module.structs, **module.enums, **module.aliases}

    def type_of(token: Token) -> Type:
        if name_of(token) not in named:
            raise cursor.error_at(token, f"the module has no type {token.text}")
        return named[name_of(token)]

    cursor.type_of = type_of
    token = cursor.token
    name = cursor.name("@", "a call of a function")
    function = module.functions.get(name)
    if function is None:
        near = difflib.get_close_matches(name, module.functions, n=1)
        meant = f"; did you mean {written('@', near[0])}?" if near else ""
        raise cursor.error_at(token, f"the module has no function {token.text}{meant}")
    types = function.type.parameters
    cursor.expect("(")
    arguments: list[Any] = []
    while cursor.separated(")", not arguments):
        if len(arguments) == len(types):
            raise cursor.error(f"{token.text} takes {len(types)} arguments, this is one more")
        arguments.append(_parse_value(cursor, types[len(arguments)]))
    if len(arguments) < len(types):
        message = f"{token.text} takes {len(types)} arguments, not {len(arguments)}"
        raise cursor.error(message, cursor.position - 1)
    if cursor.token.kind != "end":
        raise cursor.error(f"the call should end here, not go on with {cursor.token.shown}")
    return function, tuple(arguments)


def print_value(type: Type, data: Any) -> str:
    """A value as a literal with its type; however deeply an enum contains itself."""
    texts: list[str] = []
    pending: list[str | tuple[Type, Any]] = [(type, data)]
    while pending:
        piece = pending.pop()
        if isinstance(piece, str):
            texts.append(piece)
        else:
            pending += reversed([*_pieces(*piece), f": {piece[0]}"])
    return "".join(texts)


def _pieces(type: Type, data: Any) -> list[str | tuple[Type, Any]]:
    """A value as text and the values inside it."""
    match type:
        case TensorType():
            return [print_elements(dense(type, np.asarray(data)))]
        case TupleType(elements):
            return ["(", *_listed(elements, data), ")"]
        case ArrayType(count, element):
            return ["[", *_listed((element,) * count, data), "]"]
        case StructType(fields=fields):
            types = tuple(element for _, element in fields)
            return [
                "{",
                *_listed(types, data, [f"{written('#', name)} = " for name, _ in fields]),
                "}",
            ]
        case EnumType() if isinstance(data, EnumValue):
            carried = _listed(type.carried(data.case), data.carried)
            return [written("?", data.case), *(["(", *carried, ")"] if carried else [])]
        case FunctionType() if isinstance(data, FunctionValue):
            return [written("@", data.name)]
        case _:
            raise UnsupportedError(f"a value of type {type} has no text: return what it is made of")


def _listed(
    types: Sequence[Type], data: Sequence[Any], heads: Sequence[str] = ()
) -> list[str | tuple[Type, Any]]:
    pieces: list[str | tuple[Type, Any]] = []
    for number, pair in enumerate(zip(types, data, strict=True)):
        head = heads[number] if heads else ""
        pieces += [f", {head}" if number else head, pair]
    return pieces


def same(type: Type, x: Any, y: Any) -> bool:
    """Whether two values are the same to the bit; NaNs are equal."""
    elements = elements_of(type)
    if elements is not None:
        return all(map(same, elements, x, y))
    if not isinstance(type, TensorType):
        return bool(x == y)
    one, other = np.asarray(x), np.asarray(y)
    if not type.dtype.is_float:
        return np.array_equal(one, other)
    signs = np.isnan(one) | (np.signbit(one) == np.signbit(other))
    return np.array_equal(one, other, equal_nan=True) and bool(np.all(signs))


def _parse_value(cursor: Cursor, type: Type) -> Any:
    """A literal of this type; types may be written behind it and its parts."""
    cursor.descend()
    value: Any
    match type:
        case TensorType():
            elements = literal_of(cursor, parse_elements(cursor), type).elements()
            value = np.array(np.broadcast_to(elements, type.shape))
        case TupleType(parts):
            value = _parse_row(cursor, "(", ")", parts)
        case ArrayType(count, element):
            value = _parse_row(cursor, "[", "]", (element,) * count)
        case StructType():
            value = _parse_fields(cursor, type)
        case EnumType():
            value = _parse_case(cursor, type)
        case FunctionType():
            value = FunctionValue(cursor.name("@", "a function"))
        case _:
            raise UnsupportedError(f"an argument of type {type} cannot be written")
    if cursor.accept(":"):
        position = cursor.position
        claimed = parse_type(cursor)
        if claimed != type:
            raise cursor.error(f"a {type} is expected here, not a {claimed}", position)
    cursor.ascend()
    return value


def _parse_row(
    cursor: Cursor, opening: str, closing: str, types: tuple[Type, ...]
) -> tuple[Any, ...]:
    cursor.expect(opening)
    values: list[Any] = []
    while cursor.separated(closing, not values):
        if len(values) == len(types):
            raise cursor.error(f"{closing!r} was expected after {len(types)} elements")
        values.append(_parse_value(cursor, types[len(values)]))
    if len(values) < len(types):
        message = f"{len(types)} elements were expected, not {len(values)}"
        raise cursor.error(message, cursor.position - 1)
    return tuple(values)


def _parse_case(cursor: Cursor, type: EnumType) -> EnumValue:
    token = cursor.token
    case = cursor.name("?", "a case")
    if case not in dict(type.cases):
        cases = ", ".join(written("?", name) for name, _ in type.cases)
        raise cursor.error_at(token, f"{type} has no case {token.text}; its cases are {cases}")
    carried = type.carried(case)
    return EnumValue(case, _parse_row(cursor, "(", ")", carried) if carried else ())


def _parse_fields(cursor: Cursor, type: StructType) -> tuple[Any, ...]:
    cursor.expect("{")
    fields = dict(type.fields)
    values: dict[str, Any] = {}
    while cursor.separated("}", not values):
        token = cursor.token
        name = cursor.name("#", "a field")
        if name not in fields or name in values:
            problem = "is given twice" if name in values else f"is no field of {type}"
            raise cursor.error_at(token, f"{token.text} {problem}")
        cursor.expect("=")
        values[name] = _parse_value(cursor, fields[name])
    for name in fields:
        if name not in values:
            message = f"the field {written('#', name)} of {type} is missing"
            raise cursor.error(message, cursor.position - 1)
    return tuple(values[name] for name in fields)


def _refuse_huge(module: Module) -> None:
    """Raise for a tensor that this machine cannot hold, before anything is allocated."""
    memory = _memory_bytes()
    for function in module.functions.values():
        values = [] if function.body is None else [*function.parameters]
        for instruction in walk(function.body) if function.body is not None else ():
            values.extend(instruction.results)
        for value in values:
            if isinstance(value.type, TensorType) and _addressed_bytes(value.type) > memory:
                raise InputError(
                    f"@{function.name} holds a {value.type}, for which the {memory} bytes of memory of this "
                    "machine are not enough"
                )


def _addressed_bytes(type: TensorType) -> int:
    """The bytes that NumPy counts: an extent of 0 does not make the others small."""
    return math.prod(max(extent, 1) for extent in type.shape) * type.dtype.bytes


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 40
