"""The functions of neural networks: activations, losses, normalisations."""

from __future__ import annotations

from collections.abc import Iterator

from .expressions import (
    COMMON_LAST,
    any_axis,
    define_for_tensors,
    dims,
    refused,
    rep,
    tensor,
    title,
    without,
)

MEAN = "reduction: Literal['mean', 'sum'] = 'mean'"
NONE = "reduction: Literal['none']"


def networks() -> Iterator[str]:
    yield title("neural networks")
    yield from _activations()
    yield from _losses()
    yield from _normalizations()


def _activations() -> Iterator[str]:
    plain = "silu swish mish log_sigmoid selu relu6 hard_tanh hard_sigmoid hard_swish"
    options = dict.fromkeys(plain.split(), "")
    options["gelu"] = ", approximate: bool | Literal['none', 'tanh'] = False"
    options |= {
        "leaky_relu": ", negative_slope: float = 0.01",
        "elu": ", alpha: float = 1.0",
        "celu": ", alpha: float = 1.0",
    }
    for name, option in options.items():
        yield from define_for_tensors(name, [f"(x: Rep[FT]{option}) -> Rep[FT]"])


def _losses() -> Iterator[str]:
    """Numbers, or with `reduction="none"` one for each element."""
    for name, option in {
        "mse": "",
        "huber": "delta: float = 1.0, ",
        "smooth_l1": "beta: float = 1.0, ",
    }.items():
        yield from define_for_tensors(
            name, _pairs("predictions", "targets", option, ["{same}", "float"])
        )
    kinds = ["boolean", "Z", "{same}", "float"]
    weight = "View[AnyTensor[Float]] | float | None = None"
    weights = f"weight: {weight}, pos_weight: {weight}, "
    yield from define_for_tensors(
        "binary_cross_entropy", _pairs("logits", "labels", weights, kinds)
    )
    yield from define_for_tensors("kl_divergence", _divergence())


def _pairs(one: str, other: str, option: str, kinds: list[str]) -> Iterator[str]:
    wanted = refused("TensorLikeTheFirst")
    yield f"({one}: Rep[Y], {other}: {wanted}, *, {option}{MEAN}) -> Rep[Tensor0D[Any]]"
    for kind in kinds:
        for r in COMMON_LAST:
            x = rep(tensor(r, None, "F"))
            y = {"{same}": x, "float": "float"}.get(kind) or rep(tensor(r, None, kind))
            yield f"({one}: {x}, {other}: {y}, *, {option}{NONE}) -> {x}"
            yield f"({one}: {x}, {other}: {y}, *, {option}{MEAN}) -> Rep[Tensor0D[F]]"


def _divergence() -> Iterator[str]:
    wanted = refused("TensorLikeTheFirst")
    yield f"(log_predictions: Rep[Y], targets: {wanted}, *, {MEAN}) -> Rep[Tensor0D[Any]]"
    for r in COMMON_LAST[1:]:
        x = rep(tensor(r, None, "F"))
        rows = rep(without(r, r - 1, dtype="F"))
        yield f"(log_predictions: {x}, targets: {x}, *, {NONE}) -> {rows}"
        yield f"(log_predictions: {x}, targets: {x}, *, {MEAN}) -> Rep[Tensor0D[F]]"


def _normalizations() -> Iterator[str]:
    epsilon = "epsilon: float = 1e-5"
    wanted = refused("VectorsLikeTheChannels")
    statistics = {"batch_norm": "mean: {v}, var: {v}, ", "group_norm": "", "instance_norm": ""}
    for name, given in statistics.items():
        groups = ", groups: int" if name == "group_norm" else ""
        yield from define_for_tensors(
            name, _by_channels(groups, given, wanted, 3 if "inst" in name else 2)
        )
    wanted = refused("VectorsLikeTheLastAxis")
    scaled = [
        f"(x: {rep(tensor(r, None, 'F'))}, scale: {rep(tensor(1, dims(r)[-1:], 'F'))}, *, {epsilon})"
        f" -> {rep(tensor(r, None, 'F'))}"
        for r in COMMON_LAST[1:]
    ]
    refusal = f"(x: Rep[Y], scale: {wanted}, *, {epsilon}) -> Rep[Y]"
    yield from define_for_tensors(
        "rms_norm", [refusal, f"(x: Rep[FT], *, {epsilon}) -> Rep[FT]", *scaled]
    )
    along = [
        f"(x: {rep(tensor(r, None, 'F'))}, axis: {any_axis(r)}, *, epsilon: float = 1e-12)"
        f" -> {rep(tensor(r, None, 'F'))}"
        for r in COMMON_LAST[1:]
    ]
    last = "(x: Rep[FT], *, epsilon: float = 1e-12) -> Rep[FT]"
    yield from define_for_tensors("normalize", [last, *along])
    yield from define_for_tensors("cosine_similarity", _similarity())


def _by_channels(groups: str, statistics: str, wanted: str, least: int) -> Iterator[str]:
    epsilon = "epsilon: float = 1e-5"
    yield f"(x: Rep[Y]{groups}, scale: {wanted}, offset: Rep[M], *, {epsilon}) -> Rep[Y]"
    yield f"(x: Rep[FT]{groups}, *, {epsilon}) -> Rep[FT]"
    for r in COMMON_LAST:
        if r >= least:
            x, v = rep(tensor(r, None, "F")), rep(tensor(1, ["J"], "F"))
            for given in ["", statistics.format(v=v)] if statistics else [""]:
                if given:
                    yield f"(x: {x}{groups}, *, {given}{epsilon}) -> {x}"
                yield f"(x: {x}{groups}, scale: {v}, offset: {v}, *, {given}{epsilon}) -> {x}"


def _similarity() -> Iterator[str]:
    wanted = refused("TensorLikeTheFirst")
    option = "*, epsilon: float = 1e-8"
    yield f"(x: Rep[Y], y: {wanted}, axis: int = -1, {option}) -> Rep[Any]"
    for r in COMMON_LAST[1:]:
        x = rep(tensor(r, None, "F"))
        for axis in range(r):
            default = " = -1" if axis == r - 1 else ""
            at = f"axis: Literal[{axis}, {axis - r}]{default}"
            yield f"(x: {x}, y: {x}, {at}, {option}) -> {rep(without(r, axis, dtype='F'))}"
