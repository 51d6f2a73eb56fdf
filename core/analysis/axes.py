"""Whether every name of a batch's axis is one: of a batch that the function runs in, by way of calls or derivatives."""

from __future__ import annotations

from ..errors import StagingError
from ..ir import BatchOf, Instruction, Module
from ..ir.surgery import walk
from ..location import located
from .call_graph import symbols


def check_axes(module: Module) -> None:
    """Look at all that is run from the functions that no other one needs, before batches have bodies.

    Raises: StagingError for a name that no batch around has, with those that there are.
    """
    uses = {name: _combining(module, name) for name in module.functions}
    if not any(uses.values()):
        return
    needed = {name: symbols(function) for name, function in module.functions.items()}
    others = {used for name, names in needed.items() for used in names if used != name}
    pending = [(name, frozenset[str]()) for name in module.functions if name not in others]
    seen = set(pending)
    while pending:
        name, around = pending.pop()
        for instruction in uses[name]:
            if instruction.op.axis_name not in around:
                raise located(StagingError(_message(instruction, around)), instruction.location)
        declaration = module.functions[name].declaration
        inside = around
        if isinstance(declaration, BatchOf) and declaration.axis is not None:
            inside = around | {declaration.axis}
        for used in needed[name]:
            state = used, inside
            if used in module.functions and state not in seen:
                seen.add(state)
                pending.append(state)


def _combining(module: Module, name: str) -> list[Instruction]:
    body = module.functions[name].body
    return [] if body is None else [i for i in walk(body) if i.op.axis_name is not None]


def _message(instruction: Instruction, around: frozenset[str]) -> str:
    axis = instruction.op.axis_name
    if around:
        names = " and ".join(repr(name) for name in sorted(around))
        return f"no batch is called {axis!r} here: the axes that have a name are {names}"
    return (
        f"no batch is called {axis!r} here: none has a name, vmap(f, axis_name={axis!r}) gives one"
    )
