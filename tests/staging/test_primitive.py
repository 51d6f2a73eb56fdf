"""What the shape rules of ops say of types whose extents are not known, over the samples of every op."""

from __future__ import annotations

import pytest

from nnkit.core.errors import DTypeError, RankError, ShapeError
from nnkit.core.ops import BitCast, Builtin, Convolve, Scatter, ScatterAdd, ShapeCast, Slice
from nnkit.core.types import TensorType
from nnkit.staging.spec import TensorSpec
from tests.rows import each

from ..core.ops.catalogue import ERRORS, SAMPLES
from ..core.ops.samples import ErrorSample, Sample

NAMES_EXTENTS = (BitCast, Builtin, Convolve, Scatter, ScatterAdd, ShapeCast, Slice)
"""Ops whose attributes only fit certain extents: staged code makes them when those are known."""


def unknown(types: tuple[TensorType, ...]) -> list[TensorSpec]:
    """The types as staging knows them."""
    return [TensorSpec(type.rank, type.dtype) for type in types]


@each("sample", SAMPLES, ids=str)
def test_rank_and_element_type_do_not_depend_on_extents(sample: Sample) -> None:
    known = sample.op.infer(*sample.types)
    assert isinstance(known, TensorType)
    try:
        found = sample.op.infer(*unknown(sample.types))
    except ShapeError:
        assert isinstance(sample.op, NAMES_EXTENTS)
        return
    assert isinstance(found, TensorType)
    assert (found.rank, found.dtype) == (known.rank, known.dtype)


@each("sample", [s for s in ERRORS if s.error in (RankError, DTypeError)], ids=str)
def test_mistakes_in_rank_and_element_type_are_found_without_extents(sample: ErrorSample) -> None:
    with pytest.raises(sample.error) as caught:
        sample.op.infer(*unknown(sample.types))
    assert not any(type.words in str(caught.value) for type in sample.types)
