"""The methods of a Rep that NumPy's arrays have: as theirs, which need no table of ours."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import nnkit as nk
from tests.nnkit.function_laws import Row, check

X: Final = np.random.default_rng(3).permutation(12).reshape(3, 4) * 0.7 - 3.13
C: Final = X.reshape(3, 2, 2)
I: Final = np.array([2, 0, 0, 1])


def both(call: Any, *arguments: Any) -> Row:
    """The same method of ours and of NumPy's."""
    return Row(call, call, arguments, batched=tuple(range(len(arguments)))[:1])


def test_methods() -> None:
    check(
        {
            "argsort": both(lambda x: x.argsort(axis=0), X),
            "sort": Row(lambda x: x.sort(0), lambda x: np.sort(x, 0), (X,)),
            "searchsorted": both(lambda x, v: x.searchsorted(v, "right"), np.sort(X[0]), X),
            "nonzero": Row(lambda x: x.nonzero(size=12), lambda x: x.nonzero(), (X,), wrt=()),
            "clip": both(lambda x: x.clip(-1.0, 2.0), X),
            "clip above": both(lambda x: x.clip(max=0.5), X),
            "cumsum": both(lambda x: x.cumsum(axis=1), X),
            "cumprod": both(lambda x: x.cumprod(), X),
            "take": both(lambda x, i: x.take(i, axis=1), X, I),
            "repeat": both(lambda x: x.repeat(2), X),
            "repeat along": both(lambda x: x.repeat([1, 0, 2, 1], axis=1), X),
            "diagonal": both(lambda x: x.diagonal(1), X),
            "trace": both(lambda x: x.trace(-1, 1, 0), C),
            "swapaxes": both(lambda x: x.swapaxes(0, -1), C),
            "flatten": both(lambda x: x.flatten(), C),
            "mT": both(lambda x: x.mT, C),
            "mT of a matrix": both(lambda x: x.mT, X),
            "astype": Row(lambda x: x.astype(nk.i32), lambda x: x.astype(np.int32), (X,)),
        }
    )


def test_no_method_of_arrays_is_missing_without_a_word() -> None:
    """What arrays have and a Rep has not is named in an error, with what to write instead."""
    rep = nk.const(X)
    missing = [name for name in dir(np.ndarray) if name[0] != "_" and not hasattr(type(rep), name)]
    assert "clip" not in missing
    for name in missing:
        with pytest.raises(AttributeError) as raised:
            getattr(rep, name)
        assert "help:" in str(raised.value), name


def test_matrices_are_transposed_and_no_vectors() -> None:
    with pytest.raises(nk.RankError, match="mT takes matrices, of rank 2 or more"):
        nk.staged(lambda x: x.mT)(X[0])
