"""Where NaNs and infinities come from: the first instruction that made one, of those that a result has.

1. An instruction *makes* them if its operands are finite and a result is not.
2. Another one passes on what its operands have: of several origins, the earliest.  So what a choice or a
   multiplication by zero drops again is nobody's fault.
3. What arguments and literals bring along has no origin.

Arrays are told apart by identity: they go through calls, bodies and branches as they are.  What comes out of stacked
results and enums is taken to be of the earliest origin so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any, TypeGuard, cast

import numpy as np

from ..errors import NonFiniteError
from ..ir import Instruction
from ..lazy_dataclass import dataclass
from ..location import DerivativeLocation, located
from ..types import Array


@dataclass(frozen=True)
class NonFiniteOrigin:
    """An instruction that made a number that is not finite, as the `step`-th of a run."""

    step: int
    instruction: Instruction
    operands: Sequence[Array]
    result: Array

    def error(self) -> NonFiniteError:
        """What to tell the user."""
        at = self.instruction
        place, name = at.location, at.op.name
        what = "nan" if np.isnan(self.result).any() else "inf"
        is_derivative = isinstance(place, DerivativeLocation)
        who = f"the derivative of {place.op}" if isinstance(place, DerivativeLocation) else name
        error = NonFiniteError(f"{who} makes {what} from finite values")
        located(error, place)
        if is_derivative:
            error.add_note(f"  note: it is computed by {name}")
        for value, data in zip(at.operands, self.operands, strict=True):
            error.add_note(f"  note: an operand is {value.type}{summary(data)}")
        error.add_note(f"  note: the result is {at.results[0].type}{summary(self.result)}")
        return error


@dataclass
class NonFiniteOrigins:
    """The origins of all that is not finite in one run of the evaluator, which is told of every instruction."""

    _step: int = 0
    _first: NonFiniteOrigin | None = None
    _known: dict[int, tuple[Array, NonFiniteOrigin | None]] = field(
        default_factory=dict[int, "tuple[Array, NonFiniteOrigin | None]"]
    )

    def observe(
        self, instruction: Instruction, operands: Sequence[Any], results: Sequence[Any]
    ) -> None:
        """The evaluator has run an instruction."""
        self._step += 1
        for result in results:
            if _is_not_finite(result):
                self._known[id(result)] = result, self._origin(instruction, operands, result)

    def check(self, results: Iterable[Any]) -> None:
        """Raises: NonFiniteError when one of the results has a number that is not finite, and that was made."""
        found = [self._of(result) for result in results if _is_not_finite(result)]
        made = [origin for origin in found if origin is not None]
        if made:
            raise min(made, key=lambda origin: origin.step).error()

    def _origin(
        self, instruction: Instruction, operands: Sequence[Any], result: Array
    ) -> NonFiniteOrigin | None:
        passed = [self._of(operand) for operand in operands if _is_not_finite(operand)]
        if passed:
            made = [origin for origin in passed if origin is not None]
            return min(made, key=lambda origin: origin.step) if made else None
        if not operands:
            return None
        if not all(isinstance(operand, np.ndarray) for operand in operands):
            return self._first
        origin = NonFiniteOrigin(self._step, instruction, operands, result)
        self._first = self._first or origin
        return origin

    def _of(self, array: Array) -> NonFiniteOrigin | None:
        known = self._known.get(id(array))
        return known[1] if known is not None else self._first


def summary(data: Array) -> str:
    """Of numbers: ` from 0.0 to 2.5`, and how many are not finite."""
    if data.size == 0 or data.dtype.kind != "f":
        return f" {data[()]}" if data.size == 1 else ""
    finite = data[np.isfinite(data)]
    counts = [
        (count, word)
        for word, count in (("nan", np.isnan(data).sum()), ("inf", np.isinf(data).sum()))
        if count
    ]
    if data.size == 1:
        return f" {data[()]}" if data.ndim == 0 else f" {data.ravel()[0]}"
    said = [f"from {finite.min()} to {finite.max()}"] if finite.size else []
    for count, word in counts:
        test = np.isnan(data) if word == "nan" else np.isinf(data)
        first = ", ".join(map(str, np.argwhere(test)[0]))
        said.append(f"{count} of {data.size} elements {word}, the first at [{first}]")
    return f" {', '.join(said)}"


def _is_not_finite(data: Any) -> TypeGuard[Array]:
    if not isinstance(data, np.ndarray):
        return False
    array = cast("Array", data)
    return array.dtype.kind == "f" and not np.isfinite(array).all()
