"""Random texts through parser, verifier, pipeline and evaluator: bytes, tokens, and valid modules with mistakes.

Each property has as many cases as the profile says: `make fuzz` runs 10,000 in all.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nnkit.core.ops import ALL
from nnkit.core.types import DTYPES
from tests.fuzz.surviving import survive
from tests.tools.running import dlopt_of

FOLDER = Path(__file__).parent.parent / "ir"
FILES = sorted(FOLDER.rglob("*.dl"))
TEXTS = [
    "\n".join(line for line in path.read_text().splitlines() if not line.startswith("//"))
    for path in FILES
]
_TOKEN = re.compile(r"[@%'$#?!]?\w+(?:\.\w+)*|\s+|->|.", re.DOTALL)
TOKENS = [_TOKEN.findall(text) for text in TEXTS]
WORDS = sorted({token for tokens in TOKENS for token in tokens if not token.isspace()})
TYPES = [
    "bool", "i8", "i64", "f16", "f32", "f64", "<2 x f32>", "<3 x 2 x i64>", "<0 x f32>", "(f32, i64)",
    "()", "void", "(f32) -> f32", "$Nothing", "*f32", "[2 x f32]", "stack", "box{f32}",
    "<9223372036854775807 x f32>",
]  # fmt: skip
NUMBERS = [
    "0", "1", "-1", "2", "3", "7", "100", "127", "128", "4294967296", "9223372036854775807",
    "9223372036854775808", "-9223372036854775809", "1e400", "nan", "inf", "1" * 500,
]  # fmt: skip

OPERATIONS = sorted({op.name for op in ALL})
EDITS = ["similar"] * 4 + ["word"] * 2 + ["delete", "double", "swap", "replace", "copy", "cut"]


def _kind(token: str) -> str:
    """What a token could be exchanged for and still be read: a name of its sigil, a number, a type, a word."""
    if token[:1] in "@%'$#?!" or not token[:1].isalnum():
        return token[:1]
    if token[0].isdigit():
        return "0"
    return "f32" if token in DTYPES else "word"


fuzzed = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@fuzzed
@given(st.binary(max_size=300))
def test_random_bytes(data: bytes) -> None:
    finished = dlopt_of(data, "-O2")
    assert finished.code in (0, 1), finished.err
    assert finished.err.startswith("dlopt: error: ") or not finished.err


@fuzzed
@given(st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join), st.booleans())
def test_random_tokens(text: str, headed: bool) -> None:
    survive(f'module "m" {text}' if headed else text)


@fuzzed
@given(st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join), st.booleans())
def test_random_tokens_in_a_function(text: str, closed: bool) -> None:
    end = "\n return %x: f32 }" if closed else ""
    survive(f'module "m" func @f: (f32) -> f32 {{ \'entry(%x: f32): {text}{end}')


@st.composite
def mistaken(draw: st.DrawFn) -> str:
    """A valid module with some tokens deleted, doubled, exchanged, replaced or cut off."""
    tokens = list(draw(st.sampled_from(TOKENS)))
    for _ in range(draw(st.integers(1, 4))):
        if not tokens:
            break
        at = draw(st.integers(0, len(tokens) - 1))
        other = draw(st.integers(0, len(tokens) - 1))
        match draw(st.sampled_from(EDITS)):
            case "similar":
                alike = [token for token in tokens if _kind(token) == _kind(tokens[at])]
                tokens[at] = draw(st.sampled_from(alike))
            case "word":
                words = [at for at, token in enumerate(tokens) if token in OPERATIONS]
                if words:
                    tokens[draw(st.sampled_from(words))] = draw(st.sampled_from(OPERATIONS))
            case "delete":
                del tokens[at]
            case "double":
                tokens.insert(at, tokens[at])
            case "swap":
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case "replace":
                tokens[at] = draw(st.sampled_from(WORDS))
            case "copy":
                tokens[at] = tokens[other]
            case _:
                first, last = sorted((at, other))
                del tokens[first : min(last, first + 30)]
    return "".join(tokens)


@fuzzed
@given(mistaken())
def test_modules_with_mistakes(text: str) -> None:
    survive(text)


@st.composite
def retyped(draw: st.DrawFn) -> str:
    """A valid module with some types or numbers replaced: everywhere, or in one place."""
    tokens = list(draw(st.sampled_from(TOKENS)))
    for _ in range(draw(st.integers(1, 3))):
        choices = NUMBERS if draw(st.booleans()) else TYPES
        kind = re.compile(r"-?\d+" if choices is NUMBERS else r"bool|i\d+|b?f\d+|\$\w+")
        places = [at for at, token in enumerate(tokens) if kind.fullmatch(token)]
        if not places:
            continue
        at = draw(st.sampled_from(places))
        new = draw(st.sampled_from(choices))
        old = tokens[at]
        if draw(st.booleans()):
            tokens = [new if token == old else token for token in tokens]
        else:
            tokens[at] = new
    return "".join(tokens)


@fuzzed
@given(retyped())
def test_modules_with_other_types(text: str) -> None:
    survive(text)


@pytest.mark.parametrize("name", ["slides", "structs"])
def test_truncated_at_every_byte(name: str) -> None:
    text = TEXTS[FILES.index(FOLDER / f"{name}.dl")]
    ends = {survive(text[:size]) for size in range(0, len(text), 7)}
    assert "parse" in ends
    for size in range(len(text.encode())):
        finished = dlopt_of(text.encode()[:size])
        assert finished.code in (0, 1) and "internal" not in finished.err, (size, finished.err)
