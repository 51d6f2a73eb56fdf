"""Donation: calls whose results may take over the memory of arguments.

`step = nk.donate(step, 0)`: a training step `params = step(params, batch)` then updates its parameters in place.  What
was donated cannot be read any more; what else looks at its memory stays as it is, as the memory is taken over only
where nobody else has a reference to it (docs/decisions/0044).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .callables import StagedFunction, check_staged
from .compile import Program, Specialization
from .core.errors import DonationError
from .donated_arrays import DonatedArray
from .staging.primitive import is_index, located, staging_error
from .staging.spec import is_tuple
from .staging.staged_functions import with_definition
from .static_parameters import passing_statics
from .structs import Struct
from .tensors import AnyTensor


class DonatingFunction(StagedFunction):
    """A staged function whose calls with data donate the arguments numbered `donated`."""

    __slots__ = ("_markers", "donated")
    is_variant = True

    def __init__(self, of: StagedFunction, donated: Sequence[int]) -> None:
        super().__init__(of.stageable)
        names = self.stageable.parameter_names
        self.donated = tuple(sorted(set(donated)))
        self._markers = [
            DonatedArray(self.stageable.name, names[number]) for number in self.donated
        ]

    def _values(self, arguments: Sequence[Any], *, specs: bool = False) -> list[Any]:
        values = super()._values(arguments, specs=specs)
        places = [
            (number, id(one)) for number, value in enumerate(values) for one in tensors_in(value)
        ]
        counts = Counter(one for _, one in places)
        for number, one in places:
            if number in self.donated and counts[one] > 1:
                raise self._given_twice(number, [n for n, other in places if other == one])
        return values

    def _given_twice(self, donated: int, places: Sequence[int]) -> Exception:
        names = self.stageable.parameter_names
        others = sorted({names[n] for n in places} - {names[donated]})
        where = f"argument {others[0]}, too" if others else "in that argument twice"
        error = DonationError(
            f"a tensor in argument {names[donated]} of {self.stageable.name}, which is donated, is {where}"
        )
        located(error, "give it a copy, copy.deepcopy(tensor)")
        return with_definition(error, self.stageable)

    def _specialization(self, values: Sequence[Any]) -> Specialization:
        return replace(super()._specialization(values), donated=self.donated)

    def _native(self, specialization: Specialization) -> Program:
        name = self.stageable.name
        return specialization.compiled(self._refuse, name, markers=self._markers)

    def _write_to(self, out: Any, arguments: Sequence[Any]) -> Any:
        raise staging_error(
            f"{self.stageable.name} takes no out=: its results take over what is donated",
            "leave out=, or call the function without donation",
        )

    def _of_data(self, arguments: Sequence[Any]) -> StagedFunction:
        raise self._not_of_data("takes")

    def _whole(self, names: Sequence[str]) -> StagedFunction:
        raise self._not_of_data("returns")

    def _not_of_data(self, does: str) -> Exception:
        return staging_error(
            f"{self.stageable.name} {does} functions: only what has data alone can be donated to",
            "stage a function of tensors, structs and tuples that calls it",
        )


@passing_statics
def donate(of: StagedFunction, /, *arguments: int) -> StagedFunction:
    """The same function, whose calls with data may put results into the memory of these arguments, by number.

    Results take over the memory of donated tensors of their types, in order; `nk.donate(step, 0)` updates parameters in
    place.  Tensors in donated arguments cannot be read after the call.  Memory that something else can see, as a view
    or another tensor, is left as it is, and so are NumPy arrays: there the results are in new memory.
    In staged functions, calls of it and its derivatives are those of the function itself.
    Raises: StagingError for what is not a staged function, and numbers that no parameter has.  Reading what was donated
    is a DonationError, and so is to give a tensor that is donated as another argument, too.
    """
    check_staged(of, "donate")
    names = of.stageable.parameter_names
    for number in arguments:
        if not is_index(number) or not 0 <= int(number) < len(names):
            raise staging_error(
                f"donate takes numbers of parameters, and {of.stageable.name} has {len(names)}, from 0 on: "
                f"there is no {number!r}"
            )
    if not arguments:
        raise staging_error(
            "donate takes the numbers of the parameters that are donated",
            "for example donate(step, 0)",
        )
    before = of.donated if isinstance(of, DonatingFunction) else ()
    return DonatingFunction(of, (*before, *map(int, arguments)))


def tensors_in(value: Any) -> list[AnyTensor]:
    """The tensors in a value, from left to right."""
    inside: Any = value._fields if isinstance(value, Struct) else value
    if is_tuple(inside):
        return [one for part in inside for one in tensors_in(part)]
    return [value] if isinstance(value, AnyTensor) else []
