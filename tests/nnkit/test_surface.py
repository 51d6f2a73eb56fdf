"""The programs that type checkers accept do at run time what their types promise.

They are written for the checkers: functions full of `assert_type`.  Here each function is called with arguments
made from its annotations, every tensor with one element, and `assert_type` compares what is there.
"""

from __future__ import annotations

import inspect
import runpy
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest
import typing_extensions

from nnkit import Rep, ShapeError, Struct, fields, staged
from nnkit.conversion import annotated, declared_type, spec_of
from nnkit.staging.spec import (
    CallableSpec,
    SequenceSpec,
    Spec,
    StructSpec,
    TensorSpec,
    TupleSpec,
    fits,
)
from nnkit.tensors import DTYPES, RANKED, AnyTensor

PROGRAMS = sorted(
    path
    for path in (Path(__file__).parent.parent / "typing").glob("good_*.py")
    if path.stem != "good_holes"  # those are refused at run time, as test_typing checks
)


def promised(value: Any, type: Any) -> Any:
    """What `assert_type` is here."""
    wanted = annotated(type)
    if isinstance(value, Rep):
        assert get_origin(type) is Rep, f"a Rep, not {type}"
        called = get_origin(get_args(type)[0]) is Callable
        if not called and not value.is_function and wanted is not None:
            assert fits(wanted, value.spec), f"{value.spec.words}, not {type}"
    elif isinstance(value, AnyTensor | Struct | tuple):
        found = declared_type(type)
        if found is not None:
            assert fits(found, spec_of(value)), f"{spec_of(value).words}, not {type}"
    return value


def example(spec: Spec) -> Any:
    """A concrete value of one element per tensor."""
    match spec:
        case TensorSpec(rank=rank, dtype=dtype):
            storage = np.zeros((1,) * rank, dtype.storage)
            return RANKED[rank](storage, DTYPES[dtype])
        case TupleSpec(elements):
            return tuple(map(example, elements))
        case SequenceSpec(element):
            return (example(element), example(element))
        case StructSpec(cls, parts):
            return cls(*(example(part) for _, part in parts))
        case _:
            raise AssertionError(spec)


def programs(path: Path) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions of a program whose parameters all have types to make values of."""
    for name, value in runpy.run_path(str(path)).items():
        if inspect.isfunction(value) and value.__code__.co_filename == str(path):
            yield name, value


def kinds_of(function: Callable[..., Any]) -> list[tuple[bool, Spec]] | None:
    """For every parameter whether it is staged, and its type; None where one is open."""
    hints = get_type_hints(function)
    kinds: list[tuple[bool, Spec]] = []
    for name in inspect.signature(function).parameters:
        staged_spec, spec = annotated(hints.get(name)), declared_type(hints.get(name))
        if (staged_spec is None and spec is None) or isinstance(staged_spec, CallableSpec):
            return None
        kinds.append((staged_spec is not None, staged_spec or spec))  # type: ignore[arg-type]
    return kinds


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_accepted_programs_keep_their_promises(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typing_extensions, "assert_type", promised)
    monkeypatch.setattr(Rep, "eval", lambda rep: example(rep.spec))
    for name, function in programs(path):
        kinds = kinds_of(function)
        if kinds is None:
            continue

        def body(*reps: Any, function: Any = function, kinds: Any = kinds) -> Any:
            given = iter(reps)
            function(*(next(given) if is_staged else example(spec) for is_staged, spec in kinds))
            return reps[0]

        reps = [example(spec) for is_staged, spec in kinds if is_staged]
        if reps:
            names = [f"x{k}" for k in range(len(reps))]
            wrapper = eval(f"lambda {', '.join(names)}: body({', '.join(names)})", {"body": body})
            try:
                staged(wrapper).ir(*reps)
            except Exception as error:
                raise AssertionError(f"{path.name}, {name}: {error}") from error
        else:
            with suppress(ShapeError):  # a program may name shapes of its own
                function(*(example(spec) for _, spec in kinds))


def test_every_struct_of_the_programs_can_be_made() -> None:
    for path in PROGRAMS:
        for value in runpy.run_path(str(path)).values():
            if inspect.isclass(value) and issubclass(value, Struct) and value is not Struct:
                spec = declared_type(value)
                if spec is not None:
                    assert len(fields(value)) == len(example(spec)._fields)
