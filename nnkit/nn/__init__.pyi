# Written by stubs/generate.py; do not edit.
import typing
from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, TypeAlias, overload

from typing_extensions import TypeVar

from .. import AnyTensor, Field, Float, Integer, Rep, Scalar, Struct, Tensor1D, Tensor2D, Tensor3D, Tensor4D, Tensor5D
from .. import f32, i64

class _Unnamed:   # dimensions
    Any: TypeAlias = typing.Any
_Key: TypeAlias = Scalar[i64]
_D = TypeVar('_D', bound=Float, default=f32)
_E = TypeVar('_E', bound=Float, default=f32)
_F = TypeVar('_F', bound=Float)
_In = TypeVar('_In', bound=int, default=_Unnamed.Any)
_Out = TypeVar('_Out', bound=int, default=_Unnamed.Any)
_Hidden = TypeVar('_Hidden', bound=int, default=_Unnamed.Any)
_Symbols = TypeVar('_Symbols', bound=int, default=_Unnamed.Any)
_Width = TypeVar('_Width', bound=int, default=_Unnamed.Any)
_Size = TypeVar('_Size', bound=int, default=_Unnamed.Any)
_A = TypeVar('_A', bound=int)
_B = TypeVar('_B', bound=int)
_I = TypeVar('_I', bound=int)
_J = TypeVar('_J', bound=int)
_K = TypeVar('_K', bound=int)
_L = TypeVar('_L', bound=Integer)
_S = TypeVar('_S', bound=Struct)
def init(cls: type[_S], key: _Key, /, **sizes: int) -> _S: ...
class Linear(Struct, Generic[_D, _In, _Out]):
    weight: Field[Tensor2D[_D, _In, _Out]]
    bias: Field[Tensor1D[_D, _Out]]
    @staticmethod
    def init(key: _Key, inputs: int, outputs: int, /, *, dtype: type[_E] | None=None) -> Linear[_E]: ...
@overload
def linear(p: Rep[Linear[_F, _A, _B]], x: Rep[Tensor1D[_F, _A]], /) -> Rep[Tensor1D[_F, _B]]: ...
@overload
def linear(p: Rep[Linear[_F, _A, _B]], x: Rep[Tensor3D[_F, _I, _J, _A]], /) -> Rep[Tensor3D[_F, _I, _J, _B]]: ...
@overload
def linear(p: Rep[Linear[_F, _A, _B]], x: Rep[Tensor4D[_F, _I, _J, _K, _A]], /) -> Rep[Tensor4D[_F, _I, _J, _K, _B]]: ...
@overload
def linear(p: Rep[Linear[_F, _A, _B]], x: Rep[Tensor5D[_F, _I, _J, _K, Any, _A]], /) -> Rep[Tensor5D[_F, _I, _J, _K, Any, _B]]: ...
@overload
def linear(p: Rep[Linear[_F, _A, _B]], x: Rep[Tensor2D[_F, _I, _A]], /) -> Rep[Tensor2D[_F, _I, _B]]: ...
class MLP(Struct, Generic[_D]):
    layers: Field[list[Linear[_D]]]
    @staticmethod
    def init(key: _Key, widths: Sequence[int], /, *, dtype: type[_E] | None=None) -> MLP[_E]: ...
@overload
def mlp(p: Rep[MLP[_F]], x: Rep[Tensor1D[_F, _I]], /, *, activation: Callable[[Rep[Any]], Any]=...) -> Rep[Tensor1D[_F]]: ...
@overload
def mlp(p: Rep[MLP[_F]], x: Rep[Tensor3D[_F, _I, _J, _K]], /, *, activation: Callable[[Rep[Any]], Any]=...) -> Rep[Tensor3D[_F, _I, _J]]: ...
@overload
def mlp(p: Rep[MLP[_F]], x: Rep[Tensor2D[_F, _I, _J]], /, *, activation: Callable[[Rep[Any]], Any]=...) -> Rep[Tensor2D[_F, _I]]: ...
_LayerPadding: TypeAlias = int | tuple[int, ...] | list[int | tuple[int, int]] | Literal['same', 'valid']
class Conv1d(Struct, Generic[_D, _In, _Out, _Size]):
    weight: Field[Tensor3D[_D, _Out, _In, _Size]]
    bias: Field[Tensor1D[_D, _Out]]
    @staticmethod
    def init(key: _Key, inputs: int, outputs: int, size: int, /, *, dtype: type[_E] | None=None) -> Conv1d[_E]: ...
class Conv2d(Struct, Generic[_D, _In, _Out, _Size]):
    weight: Field[Tensor4D[_D, _Out, _In, _Size, _Size]]
    bias: Field[Tensor1D[_D, _Out]]
    @staticmethod
    def init(key: _Key, inputs: int, outputs: int, size: int, /, *, dtype: type[_E] | None=None) -> Conv2d[_E]: ...
class Conv3d(Struct, Generic[_D, _In, _Out, _Size]):
    weight: Field[Tensor5D[_D, _Out, _In, _Size, _Size, _Size]]
    bias: Field[Tensor1D[_D, _Out]]
    @staticmethod
    def init(key: _Key, inputs: int, outputs: int, size: int, /, *, dtype: type[_E] | None=None) -> Conv3d[_E]: ...
def conv1d(p: Rep[Conv1d[_F, _A, _B, Any]], x: Rep[Tensor3D[_F, _I, _A, Any]], /, *, stride: int=1, padding: _LayerPadding=0, dilation: int=1) -> Rep[Tensor3D[_F, _I, _B, Any]]: ...
def conv2d(p: Rep[Conv2d[_F, _A, _B, Any]], x: Rep[Tensor4D[_F, _I, _A, Any, Any]], /, *, stride: int | tuple[int, int]=1, padding: _LayerPadding=0, dilation: int | tuple[int, int]=1) -> Rep[Tensor4D[_F, _I, _B, Any, Any]]: ...
def conv3d(p: Rep[Conv3d[_F, _A, _B, Any]], x: Rep[Tensor5D[_F, _I, _A, Any, Any, Any]], /, *, stride: int | tuple[int, int, int]=1, padding: _LayerPadding=0, dilation: int | tuple[int, int, int]=1) -> Rep[Tensor5D[_F, _I, _B, Any, Any, Any]]: ...
_T = TypeVar('_T', bound=AnyTensor[Any])
class LayerNorm(Struct, Generic[_D, _Width]):
    weight: Field[Tensor1D[_D, _Width]]
    bias: Field[Tensor1D[_D, _Width]]
    @staticmethod
    def init(key: _Key, width: int, /, *, dtype: type[_E] | None=None) -> LayerNorm[_E]: ...
class RMSNorm(Struct, Generic[_D, _Width]):
    weight: Field[Tensor1D[_D, _Width]]
    @staticmethod
    def init(key: _Key, width: int, /, *, dtype: type[_E] | None=None) -> RMSNorm[_E]: ...
def layer_norm(p: Rep[LayerNorm[Any, Any]], x: Rep[_T], /, *, epsilon: float=1e-05) -> Rep[_T]: ...
def rms_norm(p: Rep[RMSNorm[Any, Any]], x: Rep[_T], /, *, epsilon: float=1e-05) -> Rep[_T]: ...
class Embedding(Struct, Generic[_D, _Symbols, _Width]):
    weight: Field[Tensor2D[_D, _Symbols, _Width]]
    @staticmethod
    def init(key: _Key, symbols: int, width: int, /, *, dtype: type[_E] | None=None) -> Embedding[_E]: ...
@overload
def embedding(p: Rep[Embedding[_F, Any, _A]], indices: Rep[Scalar[_L]], /) -> Rep[Tensor1D[_F, _A]]: ...
@overload
def embedding(p: Rep[Embedding[_F, Any, _A]], indices: Rep[Tensor1D[_L, _I]], /) -> Rep[Tensor2D[_F, _I, _A]]: ...
@overload
def embedding(p: Rep[Embedding[_F, Any, _A]], indices: Rep[Tensor3D[_L, _I, _J, _K]], /) -> Rep[Tensor4D[_F, _I, _J, _K, _A]]: ...
@overload
def embedding(p: Rep[Embedding[_F, Any, _A]], indices: Rep[Tensor4D[_L, _I, _J, _K, Any]], /) -> Rep[Tensor5D[_F, _I, _J, _K, Any, _A]]: ...
@overload
def embedding(p: Rep[Embedding[_F, Any, _A]], indices: Rep[Tensor2D[_L, _I, _J]], /) -> Rep[Tensor3D[_F, _I, _J, _A]]: ...
_G = TypeVar('_G', bound=Float)
_P = TypeVar('_P', bound=int)
_Q = TypeVar('_Q', bound=int)
_LSTMState: TypeAlias = tuple[Rep[Tensor2D[_G, _P, _Q]], Rep[Tensor2D[_G, _P, _Q]]]
class LSTM(Struct, Generic[_D, _In, _Hidden]):
    input_weight: Field[Tensor2D[_D, _In]]
    hidden_weight: Field[Tensor2D[_D, _Hidden]]
    bias: Field[Tensor1D[_D]]
    @staticmethod
    def init(key: _Key, inputs: int, hidden: int, /, *, dtype: type[_E] | None=None) -> LSTM[_E]: ...
class GRU(Struct, Generic[_D, _In, _Hidden]):
    input_weight: Field[Tensor2D[_D, _In]]
    hidden_weight: Field[Tensor2D[_D, _Hidden]]
    input_bias: Field[Tensor1D[_D]]
    hidden_bias: Field[Tensor1D[_D]]
    @staticmethod
    def init(key: _Key, inputs: int, hidden: int, /, *, dtype: type[_E] | None=None) -> GRU[_E]: ...
def lstm_cell(p: Rep[LSTM[_F, _A, _B]], x: Rep[Tensor2D[_F, _I, _A]], state: _LSTMState[_F, _I, _B], /) -> _LSTMState[_F, _I, _B]: ...
def lstm(p: Rep[LSTM[_F, _A, _B]], x: Rep[Tensor3D[_F, _J, _I, _A]], /, state: _LSTMState[_F, _I, _B] | None=None) -> tuple[Rep[Tensor3D[_F, _J, _I, _B]], _LSTMState[_F, _I, _B]]: ...
def gru_cell(p: Rep[GRU[_F, _A, _B]], x: Rep[Tensor2D[_F, _I, _A]], hidden: Rep[Tensor2D[_F, _I, _B]], /) -> Rep[Tensor2D[_F, _I, _B]]: ...
def gru(p: Rep[GRU[_F, _A, _B]], x: Rep[Tensor3D[_F, _J, _I, _A]], /, hidden: Rep[Tensor2D[_F, _I, _B]] | None=None) -> tuple[Rep[Tensor3D[_F, _J, _I, _B]], Rep[Tensor2D[_F, _I, _B]]]: ...
class MultiHeadAttention(Struct, Generic[_D, _Width]):
    query: Field[Tensor2D[_D, _Width, _Width]]
    key: Field[Tensor2D[_D, _Width, _Width]]
    value: Field[Tensor2D[_D, _Width, _Width]]
    output: Field[Tensor2D[_D, _Width, _Width]]
    bias: Field[Tensor1D[_D, _Width]]
    @staticmethod
    def init(key: _Key, width: int, /, *, dtype: type[_E] | None=None) -> MultiHeadAttention[_E]: ...
def attention(p: Rep[MultiHeadAttention[_F, _A]], x: Rep[Tensor3D[_F, _I, _J, _A]], /, context: Rep[Tensor3D[_F, _I, Any, _A]] | None=None, *, heads: int=1, causal: bool=False) -> Rep[Tensor3D[_F, _I, _J, _A]]: ...
