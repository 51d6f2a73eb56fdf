"""What a tensor holds in place of its array once it was donated: whatever is asked of it is an error."""

from __future__ import annotations

from typing import NoReturn

from .core.errors import DonationError
from .core.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class DonatedArray:
    """The array of a tensor that was argument `argument` of a call of `function`."""

    function: str
    argument: str

    def __getattr__(self, name: str) -> NoReturn:
        raise DonationError(
            f"this tensor was donated to {self.function}, as its argument {self.argument}; a result may lie there\n"
            "  help: use what the call returned, or donate a copy, copy.deepcopy(tensor)"
        )
