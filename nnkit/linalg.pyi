# Written by stubs/generate.py; do not edit.
from typing import Any, Literal, overload

from typing_extensions import TypeVar

from . import Float, Rep, Tensor0D, Tensor1D, Tensor2D, Tensor3D, Tensor4D, f32, f64, i64

_F = TypeVar("_F", f32, f64)
_I = TypeVar("_I", bound=int)
_J = TypeVar("_J", bound=int)
_K = TypeVar("_K", bound=int)
_L = TypeVar("_L", bound=int)
_P = TypeVar("_P", bound=int)
_FT = TypeVar("_FT", bound=Float)

@overload
def inv(a: Rep[Tensor2D[_F, _I, _J]], /) -> Rep[Tensor2D[_F, _I, _J]]: ...
@overload
def inv(a: Rep[Tensor3D[_F, _I, _J, _K]], /) -> Rep[Tensor3D[_F, _I, _J, _K]]: ...
@overload
def inv(a: Rep[Tensor4D[_F, _I, _J, _K, _L]], /) -> Rep[Tensor4D[_F, _I, _J, _K, _L]]: ...
@overload
def cholesky(
    a: Rep[Tensor2D[_F, _I, _J]], /, *, upper: bool = False
) -> Rep[Tensor2D[_F, _I, _J]]: ...
@overload
def cholesky(
    a: Rep[Tensor3D[_F, _I, _J, _K]], /, *, upper: bool = False
) -> Rep[Tensor3D[_F, _I, _J, _K]]: ...
@overload
def cholesky(
    a: Rep[Tensor4D[_F, _I, _J, _K, _L]], /, *, upper: bool = False
) -> Rep[Tensor4D[_F, _I, _J, _K, _L]]: ...
@overload
def expm(a: Rep[Tensor2D[_F, _I, _J]], /) -> Rep[Tensor2D[_F, _I, _J]]: ...
@overload
def expm(a: Rep[Tensor3D[_F, _I, _J, _K]], /) -> Rep[Tensor3D[_F, _I, _J, _K]]: ...
@overload
def expm(a: Rep[Tensor4D[_F, _I, _J, _K, _L]], /) -> Rep[Tensor4D[_F, _I, _J, _K, _L]]: ...
@overload
def matrix_power(a: Rep[Tensor2D[_F, _I, _J]], n: int, /) -> Rep[Tensor2D[_F, _I, _J]]: ...
@overload
def matrix_power(a: Rep[Tensor3D[_F, _I, _J, _K]], n: int, /) -> Rep[Tensor3D[_F, _I, _J, _K]]: ...
@overload
def matrix_power(
    a: Rep[Tensor4D[_F, _I, _J, _K, _L]], n: int, /
) -> Rep[Tensor4D[_F, _I, _J, _K, _L]]: ...
@overload
def det(a: Rep[Tensor2D[_F, _I, _J]], /) -> Rep[Tensor0D[_F]]: ...
@overload
def det(a: Rep[Tensor3D[_F, _I, _J, _K]], /) -> Rep[Tensor1D[_F, _I]]: ...
@overload
def det(a: Rep[Tensor4D[_F, _I, _J, _K, _L]], /) -> Rep[Tensor2D[_F, _I, _J]]: ...
@overload
def slogdet(a: Rep[Tensor2D[_F, _I, _J]], /) -> tuple[Rep[Tensor0D[_F]], Rep[Tensor0D[_F]]]: ...
@overload
def slogdet(
    a: Rep[Tensor3D[_F, _I, _J, _K]], /
) -> tuple[Rep[Tensor1D[_F, _I]], Rep[Tensor1D[_F, _I]]]: ...
@overload
def slogdet(
    a: Rep[Tensor4D[_F, _I, _J, _K, _L]], /
) -> tuple[Rep[Tensor2D[_F, _I, _J]], Rep[Tensor2D[_F, _I, _J]]]: ...
@overload
def solve(a: Rep[Tensor2D[_F, _I, _J]], b: Rep[Tensor1D[_F, _I]], /) -> Rep[Tensor1D[_F, _I]]: ...
@overload
def solve(
    a: Rep[Tensor2D[_F, _P, _P]], b: Rep[Tensor2D[_F, _P, _L]], /
) -> Rep[Tensor2D[_F, _P, _L]]: ...
@overload
def solve(
    a: Rep[Tensor2D[_F, _P, _P]], b: Rep[Tensor3D[_F, Any, _P, _L]], /
) -> Rep[Tensor3D[_F, Any, _P, _L]]: ...
@overload
def solve(
    a: Rep[Tensor2D[_F, _P, _P]], b: Rep[Tensor4D[_F, Any, Any, _P, _L]], /
) -> Rep[Tensor4D[_F, Any, Any, _P, _L]]: ...
@overload
def solve(
    a: Rep[Tensor3D[_F, _I, _J, _K]], b: Rep[Tensor1D[_F, _J]], /
) -> Rep[Tensor2D[_F, _I, _J]]: ...
@overload
def solve(
    a: Rep[Tensor3D[_F, Any, _P, _P]], b: Rep[Tensor2D[_F, _P, _L]], /
) -> Rep[Tensor3D[_F, Any, _P, _L]]: ...
@overload
def solve(
    a: Rep[Tensor3D[_F, _I, _P, _P]], b: Rep[Tensor3D[_F, _I, _P, _L]], /
) -> Rep[Tensor3D[_F, _I, _P, _L]]: ...
@overload
def solve(
    a: Rep[Tensor3D[_F, Any, _P, _P]], b: Rep[Tensor4D[_F, Any, Any, _P, _L]], /
) -> Rep[Tensor4D[_F, Any, Any, _P, _L]]: ...
@overload
def solve(
    a: Rep[Tensor4D[_F, _I, _J, _K, _L]], b: Rep[Tensor1D[_F, _K]], /
) -> Rep[Tensor3D[_F, _I, _J, _K]]: ...
@overload
def solve(
    a: Rep[Tensor4D[_F, Any, Any, _P, _P]], b: Rep[Tensor2D[_F, _P, _L]], /
) -> Rep[Tensor4D[_F, Any, Any, _P, _L]]: ...
@overload
def solve(
    a: Rep[Tensor4D[_F, Any, Any, _P, _P]], b: Rep[Tensor3D[_F, Any, _P, _L]], /
) -> Rep[Tensor4D[_F, Any, Any, _P, _L]]: ...
@overload
def solve(
    a: Rep[Tensor4D[_F, _I, _J, _P, _P]], b: Rep[Tensor4D[_F, _I, _J, _P, _L]], /
) -> Rep[Tensor4D[_F, _I, _J, _P, _L]]: ...
@overload
def solve_triangular(
    a: Rep[Tensor2D[_F, _I, _J]],
    b: Rep[Tensor1D[_F, _I]],
    /,
    *,
    lower: bool = False,
    trans: Literal[0, 1] = 0,
    unit_diagonal: bool = False,
) -> Rep[Tensor1D[_F, _I]]: ...
@overload
def solve_triangular(
    a: Rep[Tensor2D[_F, _P, _P]],
    b: Rep[Tensor2D[_F, _P, _L]],
    /,
    *,
    lower: bool = False,
    trans: Literal[0, 1] = 0,
    unit_diagonal: bool = False,
) -> Rep[Tensor2D[_F, _P, _L]]: ...
@overload
def solve_triangular(
    a: Rep[Tensor2D[_F, _P, _P]],
    b: Rep[Tensor3D[_F, Any, _P, _L]],
    /,
    *,
    lower: bool = False,
    trans: Literal[0, 1] = 0,
    unit_diagonal: bool = False,
) -> Rep[Tensor3D[_F, Any, _P, _L]]: ...
@overload
def solve_triangular(
    a: Rep[Tensor2D[_F, _P, _P]],
    b: Rep[Tensor4D[_F, Any, Any, _P, _L]],
    /,
    *,
    lower: bool = False,
    trans: Literal[0, 1] = 0,
    unit_diagonal: bool = False,
) -> Rep[Tensor4D[_F, Any, Any, _P, _L]]: ...
@overload
def solve_triangular(
    a: Rep[Tensor3D[_F, _I, _J, _K]],
    b: Rep[Tensor1D[_F, _J]],
    /,
    *,
    lower: bool = False,
    trans: Literal[0, 1] = 0,
    unit_diagonal: bool = False,
) -> Rep[Tensor2D[_F, _I, _J]]: ...
@overload
def solve_triangular(
    a: Rep[Tensor3D[_F, Any, _P, _P]],
    b: Rep[Tensor2D[_F, _P, _L]],
    /,
    *,
    lower: bool = False,
    trans: Literal[0, 1] = 0,
    unit_diagonal: bool = False,
) -> Rep[Tensor3D[_F, Any, _P, _L]]: ...
@overload
def solve_triangular(
    a: Rep[Tensor3D[_F, _I, _P, _P]],
    b: Rep[Tensor3D[_F, _I, _P, _L]],
    /,
    *,
    lower: bool = False,
    trans: Literal[0, 1] = 0,
    unit_diagonal: bool = False,
) -> Rep[Tensor3D[_F, _I, _P, _L]]: ...
@overload
def solve_triangular(
    a: Rep[Tensor3D[_F, Any, _P, _P]],
    b: Rep[Tensor4D[_F, Any, Any, _P, _L]],
    /,
    *,
    lower: bool = False,
    trans: Literal[0, 1] = 0,
    unit_diagonal: bool = False,
) -> Rep[Tensor4D[_F, Any, Any, _P, _L]]: ...
@overload
def solve_triangular(
    a: Rep[Tensor4D[_F, _I, _J, _K, _L]],
    b: Rep[Tensor1D[_F, _K]],
    /,
    *,
    lower: bool = False,
    trans: Literal[0, 1] = 0,
    unit_diagonal: bool = False,
) -> Rep[Tensor3D[_F, _I, _J, _K]]: ...
@overload
def solve_triangular(
    a: Rep[Tensor4D[_F, Any, Any, _P, _P]],
    b: Rep[Tensor2D[_F, _P, _L]],
    /,
    *,
    lower: bool = False,
    trans: Literal[0, 1] = 0,
    unit_diagonal: bool = False,
) -> Rep[Tensor4D[_F, Any, Any, _P, _L]]: ...
@overload
def solve_triangular(
    a: Rep[Tensor4D[_F, Any, Any, _P, _P]],
    b: Rep[Tensor3D[_F, Any, _P, _L]],
    /,
    *,
    lower: bool = False,
    trans: Literal[0, 1] = 0,
    unit_diagonal: bool = False,
) -> Rep[Tensor4D[_F, Any, Any, _P, _L]]: ...
@overload
def solve_triangular(
    a: Rep[Tensor4D[_F, _I, _J, _P, _P]],
    b: Rep[Tensor4D[_F, _I, _J, _P, _L]],
    /,
    *,
    lower: bool = False,
    trans: Literal[0, 1] = 0,
    unit_diagonal: bool = False,
) -> Rep[Tensor4D[_F, _I, _J, _P, _L]]: ...
@overload
def lstsq(
    a: Rep[Tensor2D[_F, _I, _J]], b: Rep[Tensor1D[_F, _I]], /, rcond: float | None = None
) -> Rep[Tensor1D[_F, _J]]: ...
@overload
def lstsq(
    a: Rep[Tensor2D[_F, _I, _J]], b: Rep[Tensor2D[_F, _I, _P]], /, rcond: float | None = None
) -> Rep[Tensor2D[_F, _J, _P]]: ...
@overload
def lstsq(
    a: Rep[Tensor3D[_F, _I, _J, _K]],
    b: Rep[Tensor3D[_F, _I, _J, _P]],
    /,
    rcond: float | None = None,
) -> Rep[Tensor3D[_F, _I, _K, _P]]: ...
@overload
def lstsq(
    a: Rep[Tensor4D[_F, _I, _J, _K, _L]],
    b: Rep[Tensor4D[_F, _I, _J, _K, _P]],
    /,
    rcond: float | None = None,
) -> Rep[Tensor4D[_F, _I, _J, _L, _P]]: ...
@overload
def qr(
    a: Rep[Tensor2D[_F, _I, _J]], /, mode: Literal["reduced"] = "reduced"
) -> tuple[Rep[Tensor2D[_F, _I]], Rep[Tensor2D[_F, Any, _J]]]: ...
@overload
def qr(a: Rep[Tensor2D[_F, _I, _J]], /, mode: Literal["r"]) -> Rep[Tensor2D[_F, Any, _J]]: ...
@overload
def qr(
    a: Rep[Tensor3D[_F, _I, _J, _K]], /, mode: Literal["reduced"] = "reduced"
) -> tuple[Rep[Tensor3D[_F, _I, _J]], Rep[Tensor3D[_F, _I, Any, _K]]]: ...
@overload
def qr(
    a: Rep[Tensor3D[_F, _I, _J, _K]], /, mode: Literal["r"]
) -> Rep[Tensor3D[_F, _I, Any, _K]]: ...
@overload
def qr(
    a: Rep[Tensor4D[_F, _I, _J, _K, _L]], /, mode: Literal["reduced"] = "reduced"
) -> tuple[Rep[Tensor4D[_F, _I, _J, _K]], Rep[Tensor4D[_F, _I, _J, Any, _L]]]: ...
@overload
def qr(
    a: Rep[Tensor4D[_F, _I, _J, _K, _L]], /, mode: Literal["r"]
) -> Rep[Tensor4D[_F, _I, _J, Any, _L]]: ...
@overload
def eigh(
    a: Rep[Tensor2D[_F, _I, _J]], /, UPLO: Literal["L", "U"] = "L"
) -> tuple[Rep[Tensor1D[_F, _I]], Rep[Tensor2D[_F, _I, _J]]]: ...
@overload
def eigh(
    a: Rep[Tensor3D[_F, _I, _J, _K]], /, UPLO: Literal["L", "U"] = "L"
) -> tuple[Rep[Tensor2D[_F, _I, _J]], Rep[Tensor3D[_F, _I, _J, _K]]]: ...
@overload
def eigh(
    a: Rep[Tensor4D[_F, _I, _J, _K, _L]], /, UPLO: Literal["L", "U"] = "L"
) -> tuple[Rep[Tensor3D[_F, _I, _J, _K]], Rep[Tensor4D[_F, _I, _J, _K, _L]]]: ...
@overload
def eigvalsh(
    a: Rep[Tensor2D[_F, _I, _J]], /, UPLO: Literal["L", "U"] = "L"
) -> Rep[Tensor1D[_F, _I]]: ...
@overload
def eigvalsh(
    a: Rep[Tensor3D[_F, _I, _J, _K]], /, UPLO: Literal["L", "U"] = "L"
) -> Rep[Tensor2D[_F, _I, _J]]: ...
@overload
def eigvalsh(
    a: Rep[Tensor4D[_F, _I, _J, _K, _L]], /, UPLO: Literal["L", "U"] = "L"
) -> Rep[Tensor3D[_F, _I, _J, _K]]: ...
@overload
def svd(
    a: Rep[Tensor2D[_F, _I, _J]], /, full_matrices: Literal[False] = False
) -> tuple[Rep[Tensor2D[_F, _I]], Rep[Tensor1D[_F]], Rep[Tensor2D[_F, Any, _J]]]: ...
@overload
def svd(
    a: Rep[Tensor3D[_F, _I, _J, _K]], /, full_matrices: Literal[False] = False
) -> tuple[Rep[Tensor3D[_F, _I, _J]], Rep[Tensor2D[_F, _I]], Rep[Tensor3D[_F, _I, Any, _K]]]: ...
@overload
def svd(
    a: Rep[Tensor4D[_F, _I, _J, _K, _L]], /, full_matrices: Literal[False] = False
) -> tuple[
    Rep[Tensor4D[_F, _I, _J, _K]], Rep[Tensor3D[_F, _I, _J]], Rep[Tensor4D[_F, _I, _J, Any, _L]]
]: ...
@overload
def svdvals(a: Rep[Tensor2D[_F, _I, _J]], /) -> Rep[Tensor1D[_F]]: ...
@overload
def svdvals(a: Rep[Tensor3D[_F, _I, _J, _K]], /) -> Rep[Tensor2D[_F, _I]]: ...
@overload
def svdvals(a: Rep[Tensor4D[_F, _I, _J, _K, _L]], /) -> Rep[Tensor3D[_F, _I, _J]]: ...
@overload
def pinv(
    a: Rep[Tensor2D[_F, _I, _J]], /, rcond: float | None = None
) -> Rep[Tensor2D[_F, _J, _I]]: ...
@overload
def pinv(
    a: Rep[Tensor3D[_F, _I, _J, _K]], /, rcond: float | None = None
) -> Rep[Tensor3D[_F, _I, _K, _J]]: ...
@overload
def pinv(
    a: Rep[Tensor4D[_F, _I, _J, _K, _L]], /, rcond: float | None = None
) -> Rep[Tensor4D[_F, _I, _J, _L, _K]]: ...
@overload
def matrix_rank(
    a: Rep[Tensor2D[_F, _I, _J]], /, tol: float | None = None
) -> Rep[Tensor0D[i64]]: ...
@overload
def matrix_rank(
    a: Rep[Tensor3D[_F, _I, _J, _K]], /, tol: float | None = None
) -> Rep[Tensor1D[i64, _I]]: ...
@overload
def matrix_rank(
    a: Rep[Tensor4D[_F, _I, _J, _K, _L]], /, tol: float | None = None
) -> Rep[Tensor2D[i64, _I, _J]]: ...
@overload
def norm(
    x: Rep[Tensor1D[_F, _I]], /, ord: float | Literal["fro", "nuc"] | None = None
) -> Rep[Tensor0D[_F]]: ...
@overload
def norm(
    x: Rep[Tensor2D[_F, _I, _J]],
    /,
    ord: float | Literal["fro", "nuc"] | None = None,
    axis: None = None,
) -> Rep[Tensor0D[_F]]: ...
@overload
def norm(
    x: Rep[Tensor2D[_F, _I, _J]],
    /,
    ord: float | Literal["fro", "nuc"] | None = None,
    axis: Any = None,
    *,
    keepdims: Literal[True],
) -> Rep[Tensor2D[_F]]: ...
@overload
def norm(
    x: Rep[Tensor2D[_F, _I, _J]],
    /,
    ord: float | Literal["fro", "nuc"] | None = None,
    *,
    axis: Literal[0, -2],
) -> Rep[Tensor1D[_F, _J]]: ...
@overload
def norm(
    x: Rep[Tensor2D[_F, _I, _J]], /, ord: float | Literal["fro", "nuc"] | None, axis: Literal[0, -2]
) -> Rep[Tensor1D[_F, _J]]: ...
@overload
def norm(
    x: Rep[Tensor2D[_F, _I, _J]],
    /,
    ord: float | Literal["fro", "nuc"] | None = None,
    *,
    axis: Literal[1, -1],
) -> Rep[Tensor1D[_F, _I]]: ...
@overload
def norm(
    x: Rep[Tensor2D[_F, _I, _J]], /, ord: float | Literal["fro", "nuc"] | None, axis: Literal[1, -1]
) -> Rep[Tensor1D[_F, _I]]: ...
@overload
def norm(
    x: Rep[Tensor2D[_F, _I, _J]],
    /,
    ord: float | Literal["fro", "nuc"] | None = None,
    *,
    axis: tuple[Literal[-2, -1, 0, 1], Literal[-2, -1, 0, 1]],
) -> Rep[Tensor0D[_F]]: ...
@overload
def norm(
    x: Rep[Tensor2D[_F, _I, _J]],
    /,
    ord: float | Literal["fro", "nuc"] | None,
    axis: tuple[Literal[-2, -1, 0, 1], Literal[-2, -1, 0, 1]],
) -> Rep[Tensor0D[_F]]: ...
@overload
def norm(
    x: Rep[Tensor1D[_F, _I]], /, ord: float | Literal["fro", "nuc"] | None = None, axis: None = None
) -> Rep[Tensor0D[_F]]: ...
@overload
def norm(
    x: Rep[Tensor1D[_F, _I]],
    /,
    ord: float | Literal["fro", "nuc"] | None = None,
    axis: Any = None,
    *,
    keepdims: Literal[True],
) -> Rep[Tensor1D[_F]]: ...
@overload
def norm(
    x: Rep[Tensor1D[_F, _I]],
    /,
    ord: float | Literal["fro", "nuc"] | None = None,
    *,
    axis: Literal[0, -1],
) -> Rep[Tensor0D[_F]]: ...
@overload
def norm(
    x: Rep[Tensor1D[_F, _I]], /, ord: float | Literal["fro", "nuc"] | None, axis: Literal[0, -1]
) -> Rep[Tensor0D[_F]]: ...
@overload
def norm(
    x: Rep[Tensor3D[_F, _I, _J, _K]], /, ord: None = None, axis: None = None
) -> Rep[Tensor0D[_F]]: ...
@overload
def norm(
    x: Rep[Tensor3D[_F, _I, _J, _K]],
    /,
    ord: float | Literal["fro", "nuc"] | None = None,
    axis: Any = None,
    *,
    keepdims: Literal[True],
) -> Rep[Tensor3D[_F]]: ...
@overload
def norm(
    x: Rep[Tensor3D[_F, _I, _J, _K]],
    /,
    ord: float | Literal["fro", "nuc"] | None = None,
    *,
    axis: Literal[0, -3],
) -> Rep[Tensor2D[_F, _J, _K]]: ...
@overload
def norm(
    x: Rep[Tensor3D[_F, _I, _J, _K]],
    /,
    ord: float | Literal["fro", "nuc"] | None,
    axis: Literal[0, -3],
) -> Rep[Tensor2D[_F, _J, _K]]: ...
@overload
def norm(
    x: Rep[Tensor3D[_F, _I, _J, _K]],
    /,
    ord: float | Literal["fro", "nuc"] | None = None,
    *,
    axis: Literal[1, -2],
) -> Rep[Tensor2D[_F, _I, _K]]: ...
@overload
def norm(
    x: Rep[Tensor3D[_F, _I, _J, _K]],
    /,
    ord: float | Literal["fro", "nuc"] | None,
    axis: Literal[1, -2],
) -> Rep[Tensor2D[_F, _I, _K]]: ...
@overload
def norm(
    x: Rep[Tensor3D[_F, _I, _J, _K]],
    /,
    ord: float | Literal["fro", "nuc"] | None = None,
    *,
    axis: Literal[2, -1],
) -> Rep[Tensor2D[_F, _I, _J]]: ...
@overload
def norm(
    x: Rep[Tensor3D[_F, _I, _J, _K]],
    /,
    ord: float | Literal["fro", "nuc"] | None,
    axis: Literal[2, -1],
) -> Rep[Tensor2D[_F, _I, _J]]: ...
@overload
def norm(
    x: Rep[Tensor3D[_F, _I, _J, _K]],
    /,
    ord: float | Literal["fro", "nuc"] | None = None,
    *,
    axis: tuple[Literal[-3, -2, -1, 0, 1, 2], Literal[-3, -2, -1, 0, 1, 2]],
) -> Rep[Tensor1D[_F]]: ...
@overload
def norm(
    x: Rep[Tensor3D[_F, _I, _J, _K]],
    /,
    ord: float | Literal["fro", "nuc"] | None,
    axis: tuple[Literal[-3, -2, -1, 0, 1, 2], Literal[-3, -2, -1, 0, 1, 2]],
) -> Rep[Tensor1D[_F]]: ...
@overload
def norm(
    x: Rep[Tensor4D[_F, _I, _J, _K, _L]], /, ord: None = None, axis: None = None
) -> Rep[Tensor0D[_F]]: ...
@overload
def norm(
    x: Rep[Tensor4D[_F, _I, _J, _K, _L]],
    /,
    ord: float | Literal["fro", "nuc"] | None = None,
    axis: Any = None,
    *,
    keepdims: Literal[True],
) -> Rep[Tensor4D[_F]]: ...
@overload
def norm(
    x: Rep[Tensor4D[_F, _I, _J, _K, _L]],
    /,
    ord: float | Literal["fro", "nuc"] | None = None,
    *,
    axis: Literal[0, -4],
) -> Rep[Tensor3D[_F, _J, _K, _L]]: ...
@overload
def norm(
    x: Rep[Tensor4D[_F, _I, _J, _K, _L]],
    /,
    ord: float | Literal["fro", "nuc"] | None,
    axis: Literal[0, -4],
) -> Rep[Tensor3D[_F, _J, _K, _L]]: ...
@overload
def norm(
    x: Rep[Tensor4D[_F, _I, _J, _K, _L]],
    /,
    ord: float | Literal["fro", "nuc"] | None = None,
    *,
    axis: Literal[1, -3],
) -> Rep[Tensor3D[_F, _I, _K, _L]]: ...
@overload
def norm(
    x: Rep[Tensor4D[_F, _I, _J, _K, _L]],
    /,
    ord: float | Literal["fro", "nuc"] | None,
    axis: Literal[1, -3],
) -> Rep[Tensor3D[_F, _I, _K, _L]]: ...
@overload
def norm(
    x: Rep[Tensor4D[_F, _I, _J, _K, _L]],
    /,
    ord: float | Literal["fro", "nuc"] | None = None,
    *,
    axis: Literal[2, -2],
) -> Rep[Tensor3D[_F, _I, _J, _L]]: ...
@overload
def norm(
    x: Rep[Tensor4D[_F, _I, _J, _K, _L]],
    /,
    ord: float | Literal["fro", "nuc"] | None,
    axis: Literal[2, -2],
) -> Rep[Tensor3D[_F, _I, _J, _L]]: ...
@overload
def norm(
    x: Rep[Tensor4D[_F, _I, _J, _K, _L]],
    /,
    ord: float | Literal["fro", "nuc"] | None = None,
    *,
    axis: Literal[3, -1],
) -> Rep[Tensor3D[_F, _I, _J, _K]]: ...
@overload
def norm(
    x: Rep[Tensor4D[_F, _I, _J, _K, _L]],
    /,
    ord: float | Literal["fro", "nuc"] | None,
    axis: Literal[3, -1],
) -> Rep[Tensor3D[_F, _I, _J, _K]]: ...
@overload
def norm(
    x: Rep[Tensor4D[_F, _I, _J, _K, _L]],
    /,
    ord: float | Literal["fro", "nuc"] | None = None,
    *,
    axis: tuple[Literal[-4, -3, -2, -1, 0, 1, 2, 3], Literal[-4, -3, -2, -1, 0, 1, 2, 3]],
) -> Rep[Tensor2D[_F]]: ...
@overload
def norm(
    x: Rep[Tensor4D[_F, _I, _J, _K, _L]],
    /,
    ord: float | Literal["fro", "nuc"] | None,
    axis: tuple[Literal[-4, -3, -2, -1, 0, 1, 2, 3], Literal[-4, -3, -2, -1, 0, 1, 2, 3]],
) -> Rep[Tensor2D[_F]]: ...
