"""Layers of networks as structs of their parameters, with functions of the same names that apply them.

    class Network(Struct):
        first: Field[nn.Linear[f32, Pixel, Hidden]]
        last: Field[nn.Linear[f32, Hidden, Digit]]

    network = nn.init(Network, nk.random.key(0), Pixel=64, Hidden=128, Digit=10)
    nn.linear(p[Network.first], x)  # in a staged function of p

A layer has nothing but parameters: it is differentiated, updated, saved and printed as any struct.  It is written in
the public language, and so may be one of a user.  `initial` has the values that parameters start from; `linear_layers`,
`convolutional`, `normalizing`, `embeddings`, `recurrent` and `attentive` have the layers.
"""

from typing import NoReturn as _NoReturn

from .. import missing_names
from ..staging import tracebacks
from .attentive import MultiHeadAttention, attention
from .convolutional import Conv1d, Conv2d, Conv3d, conv1d, conv2d, conv3d
from .embeddings import Embedding, embedding
from .initial import init
from .linear_layers import MLP, Linear, linear, mlp
from .normalizing import LayerNorm, RMSNorm, layer_norm, rms_norm
from .recurrent import GRU, LSTM, gru, gru_cell, lstm, lstm_cell

__all__ = [
    "GRU",
    "LSTM",
    "MLP",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "Embedding",
    "LayerNorm",
    "Linear",
    "MultiHeadAttention",
    "RMSNorm",
    "attention",
    "conv1d",
    "conv2d",
    "conv3d",
    "embedding",
    "gru",
    "gru_cell",
    "init",
    "layer_norm",
    "linear",
    "lstm",
    "lstm_cell",
    "mlp",
    "rms_norm",
]
tracebacks.publish(globals(), [name for name in __all__ if name.islower()])
for _name in __all__:
    if not _name.islower():
        tracebacks.public_methods(globals()[_name])


@tracebacks.public
def __getattr__(name: str) -> _NoReturn:
    raise missing_names.of_module("nn", name, __all__)


def __dir__() -> list[str]:
    return [*__all__]
