"""The programs of `memory_programs` by JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final

import jax
import jax.numpy as jnp

from .memory_programs import Array, Program, Shapes, arguments_of

NAMES: Final[Any] = SimpleNamespace(**vars(jnp), softmax=jax.nn.softmax, fori=jax.lax.fori_loop)


def planned_bytes(program: Program) -> int:
    """What JAX says a call needs besides its arguments: outputs without aliases, and temporaries."""
    stats = _lowered(program, arguments_of(program.shapes)).memory_analysis()
    total: int = stats.output_size_in_bytes - stats.alias_size_in_bytes + stats.temp_size_in_bytes
    return total


def compiled(program: Program, shapes: Shapes) -> Callable[[], object]:
    """A call, which has not run yet, or once, for what it donates."""
    arguments = arguments_of(shapes)
    function = _lowered(program, arguments)
    tensors = [jnp.array(one) for one in arguments]
    if program.donated is not None:
        tensors[program.donated] = jax.block_until_ready(function(*tensors))
    return lambda: jax.block_until_ready(function(*tensors))


def _lowered(program: Program, arguments: Sequence[Array]) -> Any:
    def function(*tensors: Any) -> Any:
        return program.function(NAMES, *tensors)

    whole: Callable[..., Any] = function
    if program.is_gradient:
        numbers = tuple(range(len(arguments)))
        whole = jax.grad(lambda *tensors: function(*tensors).sum(), argnums=numbers)
    donated = () if program.donated is None else (program.donated,)
    return jax.jit(whole, donate_argnums=donated).lower(*arguments).compile()
