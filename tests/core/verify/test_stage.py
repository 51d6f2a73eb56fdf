"""Rule 22."""

from __future__ import annotations

import pytest

from nnkit.core.ir import (
    Module,
    Stage,
)
from nnkit.core.verify import violations

from .building import (
    LOOPS,
    PLAIN,
    module_of,
    negated,
    with_nest,
)


@pytest.mark.parametrize("stage", Stage)
def test_rule_22_stages(stage: Stage) -> None:
    def said(module: Module) -> str:
        module.stage = stage
        return "".join(violations(module))

    late = stage in (Stage.COMPUTE, Stage.SCHEDULE)
    assert ("negate has no place in stage" in said(module_of(negated()))) == late
    nest = said(with_nest(PLAIN))
    assert ("nest stands in stage" in nest) == (not late)
    assert ("nest has no place in stage schedule" in nest) == (stage is Stage.SCHEDULE)
    loops = said(with_nest(LOOPS))
    assert ("loops stands in stage" in loops) == (not late)
    assert ("loops has no place in stage compute" in loops) == (stage is Stage.COMPUTE)
