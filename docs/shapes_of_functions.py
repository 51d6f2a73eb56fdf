"""The shapes of functions, for docs/functions.md: what stands behind `Shapes:` in a docstring, or else here.

A line has forms, separated by semicolons, each `arguments → results [words] [for `keyword=value`]`:

- `x (…, n), w (n, m) → (…, m)`: an argument has the name of a parameter, or none if it is the first one.  A form
  without arguments has those of the form before it; one with `(n, k) or (k)` is two.  `xs (n) and (m)` are several
  tensors in one argument, `→ (n) and (m)` two results.
- A letter is an extent, with one meaning in a form, or an expression of letters.  `…` and `p…` are any axes.  A letter
  that is only in the result can be anything.  The name of a parameter is its value: `x (…) → (…, num_classes)`;
  `shape (…)` is a parameter that is a shape itself.
- `of integers` and `of truth values` stand behind an argument that has no floats.

tests/test_shapes_of_functions.py takes the lines at their word, of random extents.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

REDUCTION = "a (…, n) → (…) for `axis=-1`; a (…, n) → (…, 1) for `axis=-1, keepdims=True`; a (…) → () of all axes"
RUNNING = "a (n, …) → (n, …) for `axis=0`; a (n, m) → (n · m) without `axis`"
SEGMENT = "data (n, q…), segment_ids (n) of integers → (num_segments, q…)"
LOSS = 'predictions (…), targets (…) → (); → (…) for `reduction="none"`'
SAMPLE = "key () of integers, shape (…) → (…)"
QUANTILE = "a (…, n), q () → (…) for `axis=-1`; a (…, n), q (m) → (m, …) for `axis=-1`"

LINES = {
    "arange": "→ (start), without `stop`",
    "broadcast_to": "array (…), shape (p…, …) → (p…, …)",
    "concat": "arrays (n, …) and (m, …) → (n + m, …); arrays (…, n) and (…, m) → (…, n + m) for `axis=-1`",
    "full": "shape (…) → (…)",
    "iota": "shape (n, …) → (n, …)",
    "matmul": "x (…, n, k), y (…, k, m) → (…, n, m), leading axes broadcast; x (k), y (k, m) → (m); "
    "x (n, k), y (k) → (n)",
    "one_hot": "x (…) of integers → (…, num_classes)",
    "ones": "shape (…) → (…)",
    "zeros": "shape (…) → (…)",
    "pad": "array (n, m) → (n + 2 · pad_width, m + 2 · pad_width) for a number; "
    "array (n, m) → (n + 1, m + 5) for `pad_width=((0, 1), (2, 3))`",
    "select": "pred (…) of truth values, on_true (…), on_false (…) → (…), broadcast",
    "stack": "arrays (n, …) and (n, …) → (2, n, …); → (n, …, 2) for `axis=-1`",
    "take": "a (n, q…), indices (k) of integers → (k, q…); a (q…, n), indices (k) of integers → (q…, k) for `axis=-1`",
    "layer_norm": "x (…, n), scale (n), offset (n) → (…, n)",
    "axis_max": "x (…) → (…), the same for each element of the batch",
    "allclose": "a (…), b (…) → ()",
    "Rep.clip": "x (…), min (…), max (…) → (…), broadcast",
    "clip": "a (…), a_min (…), a_max (…) → (…), broadcast",
    "where": "condition (…) of truth values, x (…), y (…) → (…), broadcast",
    "convolve": 'a (n), v (m) → (n + m − 1); → (max(n, m)) for `mode="same"`; '
    '→ (max(n, m) − min(n, m) + 1) for `mode="valid"`',
    "correlate": 'a (n), v (m) → (max(n, m) − min(n, m) + 1); → (max(n, m)) for `mode="same"`; '
    '→ (n + m − 1) for `mode="full"`',
    "einsum": 'operands (n, k) and (k, m) → (n, m) for `subscripts="ij,jk->ik"`',
    "inner": "a (p…, n), b (q, n) → (p…, q)",
    "tensordot": "a (p, n, m), b (n, m, q) → (p, q)",
    "vdot": "a (…), b (…) → ()",
    "diag": "v (n) → (n, n); v (n, m) → (min(n, m))",
    "diag_indices": "→ (n) and (n)",
    "diagonal": "a (n, m) → (min(n, m)); a (n, m, …) → (…, min(n, m))",
    "trace": "a (n, m) → (); a (n, m, …) → (…)",
    "tri": "→ (N, M)",
    "tril": "m (…, p, q) → (…, p, q)",
    "triu": "m (…, p, q) → (…, p, q)",
    "dropout": "x (…), key () of integers → (…)",
    "diff": "a (…, k) → (…, k − n)",
    "polyval": "p (n), x (…) → (…)",
    "trapezoid": "y (…, n) → (…)",
    "linalg.norm": "x (…) → (); x (…, n) → (…) for `axis=-1`; x (…, m, n) → (…) for `axis=(-2, -1)`",
    "split": "ary (2 · n, …) → (n, …) and (n, …) for `indices_or_sections=2`",
    "array_split": "ary (2 · n + 1, …) → (n + 1, …) and (n, …) for `indices_or_sections=2`",
    "binary_cross_entropy": 'logits (…), labels (…) → (); → (…) for `reduction="none"`',
    "cosine_similarity": "x (…, n), y (…, n) → (…)",
    "random.bernoulli": "key () of integers, shape (…) → (…); key () of integers, p (…) → (…)",
    "random.categorical": "key () of integers, logits (…, n) → (…)",
    "random.choice": "key () of integers, a (n), shape (…) → (…)",
    "random.permutation": "key () of integers, x (n, …) → (n, …)",
    "random.split": "key () of integers → () and (), `num` keys",
    "random.key": "seed () of integers → ()",
    "bincount": "x (n) of integers → (length)",
    "put_along_axis": "arr (p…, n), indices (p…, k) of integers, values (p…, k) → (p…, n)",
    "flatnonzero": "a (…) → (size)",
    "nonzero": "a (n, m) → (size) and (size), a vector for each axis",
    "expand_dims": "a (…) → (1, …) for `axis=0`; → (…, 1) for `axis=-1`",
    "eye": "→ (N, M)",
    "linspace": "→ (num)",
    "meshgrid": 'xi (n) and (m) → (m, n) and (m, n); → (n, m) and (n, m) for `indexing="ij"`',
    "moveaxis": "a (n, …) → (…, n) for `source=0, destination=-1`",
    "ravel": "a (n, m) → (n · m)",
    "repeat": "a (n, …) → (n · repeats, …) for `axis=0`; a (n, m) → (n · m · repeats) without `axis`",
    "roll": "a (…) → (…)",
    "squeeze": "a (…, 1) → (…) for `axis=-1`",
    "swapaxes": "a (n, …, m) → (m, …, n) for `axis1=0, axis2=-1`",
    "tile": "A (n, m) → (2 · n, 3 · m) for `reps=(2, 3)`",
    "softmax": "x (…, n) → (…, n)",
    "log_softmax": "x (…, n) → (…, n)",
    "normalize": "x (…, n) → (…, n)",
    "argsort": "a (…, n) → (…, n)",
    "sort": "a (…, n) → (…, n)",
    "top_k": "operand (…, n) → (…, k) and (…, k)",
    "const": "value (…) → (…)",
    "Bool": "x () → ()",
    "Rep.T": "(n, m) → (m, n)",
    "Rep.mT": "(…, n, m) → (…, m, n)",
    "Rep.at": "x (n, q…), i (k), v (k, q…): `x.at[i].set(v)` (n, q…)",
    "Rep.filter": "x (n, q…), `predicate` of (q…) to () → (n, q…) and ()",
    "Rep.fold": "x (n, q…), init (c…), `fn` of (c…) and (q…) to (c…) → (c…)",
    "Rep.map": "x (n, q…), `fn` of (q…) to (r…) → (n, r…)",
    "Rep.scan": "x (n, q…), init (c…), `fn` of (c…) and (q…) to (c…) and (r…) → (c…) and (n, r…)",
    "Rep.flatten": "(n, m) → (n · m)",
    "Rep.reshape": "x (n, m) → `dims` of n · m elements",
    "Rep.transpose": "(n, m, k) → (k, m, n); → (m, n, k) for `permutation=(1, 0, 2)`",
    "Rep.shape": "x (n, …) → n, …, as integers",
    "zip_with": "a (n, p…), b (n, q…), `fn` of (p…) and (q…) to (r…) → (n, r…)",
    "zip": "a (n, p…), b (n, q…) → n pairs of (p…) and (q…)",
    "t.cast": "(…) → (…)",
    "t.item": "one element → a number",
    "t.numpy": "(…) → an array (…)",
    "t.tolist": "(…) → nested lists",
}

UNARY = set(
    """stop_gradient ones_like zeros_like flip round nan_to_num isnan isinf isfinite signbit
    bitwise_not logical_not named Rep.astype Rep.cast Rep.named""".split()
)
"""Of one tensor, and of its shape; so is whatever has one parameter, or one and numbers (`elu`)."""
BINARY = set(
    """bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor left_shift right_shift isclose""".split()
)
WITHOUT = {
    "functions of functions": """axis_mean axis_min axis_sum vmap vmap2 staged check_gradients binomial checkpoint
        every_sqrt cond fix fori while_loop differentiate_as donate gradient gradient_dynamic value_and_gradient hvp
        jvp taylor vjp
        linearize saved fixed_point callback foreign fn optim.training_step tree.map tree.reduce""",
    "effects, and what is no function of tensors": """spec debug_nans check print set_cache_limit asdict fields
        tree.leaves build tup ref optim.adam optim.adamw optim.clip_by_global_norm optim.gauss_newton
        optim.global_norm optim.momentum optim.sgd optim.adagrad optim.rmsprop nn.init""",
    "what has no shape": """Rep.ndim Rep.size Rep.eval Rep.unpack Rep.set f.asm f.cache_size f.clear_cache f.compile
        f.defjvp f.defvjp f.ir f.llvm f.memory_analysis f.partial t.dtype t.is_donated t.ndim t.rank t.shape t.size""",
}
"""The names that have no line, by reason; types and errors have none either."""
EXEMPT = {name for names in WITHOUT.values() for name in names.split()}


def shapes_of(name: str, value: Any, text: str, functions: dict[str, Any]) -> str:
    """The line of a name whose docstring is `text`; methods have that of the function called so."""
    if said := re.search(r"Shapes:\s+(.*?)\.?\s*(?=\n\n|\Z|\n[A-Z]\w+: )", text, re.DOTALL):
        return " ".join(said[1].split())
    if name in LINES:
        return LINES[name]
    if name in EXEMPT or isinstance(value, type):
        return ""
    short = name.rpartition(".")[2]
    if name.startswith("Rep.") and short in functions:
        function = functions[short]
        line = shapes_of(short, function, inspect.getdoc(function) or "", functions)
        return re.sub(rf"\b{first_of(function)} (?=\()", "x ", line)
    return family_of(name, value)


def family_of(name: str, value: Any) -> str:
    """The line of a function that is like others, by its parameters."""
    if not callable(value):
        return ""
    parameters = inspect.signature(value).parameters
    names = [one for one in parameters if one != "self"]
    first = "" if not names else f"{names[0]} "
    if {"axis", "keepdims"} <= {*names}:
        line = QUANTILE if names[1] == "q" else REDUCTION.replace("a (", f"{first}(")
        return line.replace(" →", " of truth values →") if name in ("all", "any") else line
    if name.startswith("random.") and {"key", "shape"} <= {*names}:
        return SAMPLE
    if name.startswith("cum"):
        return RUNNING
    if name.startswith("segment_"):
        return SEGMENT
    if names[:2] == ["predictions", "targets"]:
        return LOSS
    if name in BINARY or (names[:2] == ["x", "y"] and len(names) == 2):
        return f"{names[0]} (…), {names[1]} (…) → (…), broadcast"
    numbers = [parameters[one].default for one in names[1:]]
    if name in UNARY or (names and all(isinstance(one, bool | float) for one in numbers)):
        return f"{first}(…) → (…)"
    return ""


def first_of(function: Any) -> str:
    return next(iter(inspect.signature(function).parameters))
