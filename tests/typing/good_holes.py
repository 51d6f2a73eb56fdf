"""Accepted, although wrong: what types cannot say.  Each of these functions is refused at run time, which `test_typing` checks."""
from __future__ import annotations
from typing import TypeAlias
import numpy as np
import numpy.typing as npt
import nnkit as nk
from nnkit import Dim, Field, Rep, Scalar, Struct, Tensor1D, Tensor2D, boolean, cond, const, f32, fori, gradient, i32, staged
Float1D: TypeAlias = Tensor1D[f32]
Float2D: TypeAlias = Tensor2D[f32]
class Rows(Dim): ...
class Columns(Dim): ...
class Params(Struct):
    w: Field[Float2D]
    b: Field[Float1D]
@staged
def two(x: Rep[Float2D], w: Rep[Float2D]) -> tuple[Rep[Float2D], Rep[Float2D]]:
    return x @ w, w
def vector() -> Rep[Float1D]:
    return const(Tensor1D([1.0, 2.0, 3.0], f32))
def matrix() -> Rep[Float2D]:
    return const(Tensor2D([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], f32))
def whole() -> Rep[Tensor1D[i32]]:
    return const(Tensor1D([1, 2, 3], i32))
def mask() -> Rep[Tensor1D[boolean]]:
    return vector() > 0.0
def number() -> Rep[Scalar[f32]]:
    return vector().sum()

# sizes are no part of types
def sizes_of_a_product() -> None: (matrix() @ matrix()).eval()
def sizes_of_a_sum() -> None: (matrix() + matrix().T).eval()
def sizes_of_a_reshape() -> None: matrix().reshape(4, 2).eval()
def sizes_of_a_concatenation() -> None: nk.concat([matrix(), matrix()[:, 1:]], axis=0).eval()
def size_of_a_squeezed_axis() -> None: matrix().squeeze(0).eval()
def an_index_beyond_the_axis() -> None: vector()[7].eval()
def no_tensors_at_all() -> None: nk.concat([])
# any two Python values can be compared, so a wrong operand of == and != makes a bool
def an_integer_equals_a_fraction() -> None: whole() == 0.5
def a_number_equals_a_mask() -> None: mask() != 1
# a Python bool is an int, and an int a float
def adds_a_bool() -> None: vector() + True
# the default axis of a function that wants one
def softmax_of_a_number() -> None: nk.softmax(number())
def norm_of_a_number_over_its_last_axis() -> None: nk.layer_norm(number())
# structs: names of fields as keywords, completeness
def replaces_a_field_that_is_not_there(p: Params = Params(Tensor2D([[1.0]], f32), Tensor1D([1.0], f32))) -> None: p.replace(v=p.w)
def replaces_by_a_value_of_another_type(p: Params = Params(Tensor2D([[1.0]], f32), Tensor1D([1.0], f32))) -> None: p.replace(w=p.b)
def builds_without_a_field() -> None: nk.build(Params, Params.w << matrix())
def builds_with_a_field_twice() -> None: nk.build(Params, Params.w << matrix(), Params.w << matrix(), Params.b << vector())
# what is only known when it is differentiated
def differentiates_a_result_that_is_not_there() -> None: gradient(of=two, wrt=1, from_=3)
def selects_a_parameter_twice() -> None: gradient(of=two, wrt=lambda x, w: (w, w))
def names_indices_dynamically() -> None: nk.gradient_dynamic(of=two, wrt=[2])
# what NumPy does not know of an array
def wraps_an_array_of_unknown_rank(x: npt.NDArray[np.float32] = np.zeros(3, np.float32)) -> None: Tensor2D(x)
def wraps_an_array_of_unknown_type(x: npt.NDArray[np.generic] = np.zeros((2, 3))) -> None: Tensor2D(x, f32)
# recursion
@staged
def endless(x: Rep[Float1D]) -> Rep[Float1D]:
    return endless(x)
def longer(x: Rep[Float1D]) -> Rep[Float1D]:
    return nk.concat([x, x])
@staged
def growing(x: Rep[Float1D]) -> Rep[Float1D]:
    return cond(x[0] > 0.0, lambda: x[:1], lambda: growing(longer(x)))
def recursion_without_end() -> None: endless(vector())
def recursion_with_ever_new_shapes() -> None: growing(vector()).eval()
def branches_of_other_sizes() -> None: cond(number() > 0.0, lambda: vector(), lambda: vector()[1:]).eval()
def a_carry_of_another_size() -> None: fori(0, 3, lambda i, c: nk.concat([c, c]), vector()).eval()
# Python's `and` and `or` ask for a truth value
def joins_masks_by_and() -> None: (vector() > 0.0) and (vector() < 1.0)
