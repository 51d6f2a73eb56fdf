"""Methods that users of NumPy, JAX and PyTorch look for, with what does the same; as in `nnkit.equivalents`."""

from __future__ import annotations

from typing import Final

OF_REP: Final = """
view_as as_strided as_strided_ | x.reshape(2, -1) | one extent may be -1
resize_as | x.reshape(2, -1) | one extent may be -1
ndimension | x.ndim | NumPy's name
char | x.cast(nk.i8) | conversions are written
flat iter_flat | x.ravel() | all elements in a row; x.map(f) goes along the first axis
sum_to_size | x.sum(axis=0) | of the axes that were broadcast
new new_empty_strided | nk.zeros((2, 3), nk.f32) | the shape and the element type are given
is_cuda is_cpu is_meta is_mps is_xpu get_device pin_memory is_pinned share_memory_ is_shared devices sharding platform copy_to_host_async addressable_data addressable_shards global_shards | x | code runs on the CPU, and data stays where it is
is_sparse is_quantized is_nested is_conj is_neg is_signed is_same_size is_inference is_deleted is_ready weak_type aval type_ storage_type untyped_storage storage_offset const_data_ptr | x.spec | its rank and element type, known while staging
to_sparse to_dense coalesce sparse_dim sparse_mask | nk.segment_sum(values, rows, n) | NNKit has no sparse tensors: values with their indices
resolve_conj resolve_neg conj_physical | x | all elements are real
retains_grad register_post_accumulate_grad_hook output_nr | nk.gradient(of=f, wrt=0) | derivatives are of functions: there is no tape
map2_ | nk.zip_with(x, y, f) | along the first axis
name names rename refine_names align_to | nk.Tensor2D[nk.f32, Batch, In] | names of dimensions are in the annotation
format | nk.print(x) | when the program runs
view reshape_as unflatten resize resize_ | x.reshape(2, -1) | one extent may be -1
permute | x.transpose(1, 0) | axes in their new order
t H mH adjoint | x.T | of a matrix; x.transpose(0, 2, 1) of a batch
swapdims moveaxis movedim | x.swapaxes(0, 1) | two axes in each other's place
unsqueeze unsqueeze_ | x.expand_dims(0) | an axis of extent 1
squeeze_ | x.squeeze(0) | values do not change
expand expand_as repeat_interleave | nk.broadcast_to(x, (2, 3)) | operators broadcast by themselves
to type type_as float double half bfloat16 long int bool byte short as_type to_dtype | x.cast(nk.f32) | conversions are written
dtype itemsize element_size | x.spec | its rank and element type, known while staging
nbytes stride strides is_contiguous contiguous layout data_ptr storage | x.spec | a Rep stands for a value: its memory is the compiler's
detach detach_ | nk.stop_gradient(x) | derivatives take it for a constant
backward grad grad_fn requires_grad requires_grad_ retain_grad is_leaf zero_grad register_hook | nk.gradient(of=f, wrt=0) | derivatives are of functions: there is no tape
item tolist numpy cpu cuda device to_device block_until_ready at_host | x.eval() | a value is there when the program runs; return it from the staged function
data values value | x | a Rep is the value, as it will be
argpartition | x.argsort() | all in order
partition | x.sort() | all in order
choose | nk.take(x, i) | rows by their indices
fill | nk.full((2, 3), 7.0, nk.f32) | a new tensor
conj conjugate real imag | x | all elements are real
base ctypes flags setflags byteswap getfield setfield | x | a Rep stands for a value: its memory is the compiler's
dump dumps tobytes tofile | x.eval() | a value is there when the program runs; return it from the staged function
clone copy | x | values do not change, so nothing is copied
add_ sub_ mul_ div_ fill_ zero_ copy_ normal_ uniform_ | x + y | values do not change: an expression makes a new one; nk.ref(x) is a mutable array
add | x + y | an operator
sub subtract | x - y | an operator
mul multiply | x * y | an operator
div divide true_divide | x / y | an operator
floor_divide_ | x // y | an operator
pow pow_ | x ** y | an operator
remainder fmod | x % y | an operator
neg negative | -x | an operator
absolute | abs(x) | Python's
eq | x == y | an operator
ne not_equal | x != y | an operator
lt less | x < y | an operator
gt greater | x > y | an operator
le less_equal | x <= y | an operator
ge greater_equal | x >= y | an operator
logical_and bitwise_and | x & y | an operator
logical_or bitwise_or | x | y | an operator
logical_xor bitwise_xor | x ^ y | an operator
logical_not bitwise_not | ~x | an operator
dot mm bmm mv matmul vdot inner | x @ y | of vectors, matrices and batches
index_select gather take_rows index | nk.take(x, i, axis=0) | rows by their indices
index_put index_put_ index_fill index_copy put fill_diagonal_ itemset | x.at[0].set(v) | values do not change: it makes a new one
index_add index_add_ | x.at[0].add(v) | repeated indices add up
scatter_ | x.scatter(indices, values, axis=0) | values do not change: it makes a new one
scatter_add scatter_add_ | x.scatter(indices, values, axis=0, reduce="add") | repeated indices add up
scatter_reduce scatter_reduce_ | x.scatter(indices, values, axis=0, reduce="max") | or "set", "add", "multiply" and "min"
masked_scatter masked_scatter_ select_scatter slice_scatter | x.at[0].set(v) | a key means what it does in x[...]
where | nk.where(condition, x, y) | or nk.where(condition, x), with 0 elsewhere
masked_fill masked_fill_ | nk.where(mask, a, x) | element by element
masked_select compress | x.filter(lambda row: row > 0) | the extent of a result cannot depend on values: the rest is zeros
size_ numel nelement | x.size | NumPy's name
rank dim | x.ndim | known while staging
clamp clamp_min clamp_max | x.clip(0.0, 1.0) | NumPy's name
round_ rint | x.round() | halves to even, as NumPy's
narrow slice | x[1:3] | slices
amax | x.max(axis=0) | NumPy's name
amin | x.min(axis=0) | NumPy's name
apply apply_ map_ | x.map(f) | along the first axis
reduce | x.fold(init, f) | along the first axis
forward __call___ | f(x) | call the staged function
new_zeros new_ones new_full new_tensor new_empty | nk.zeros((2, 3), nk.f32) | the shape and the element type are given
to_numpy __dlpack__ __array_interface__ | x.eval() | a value is there when the program runs; return it from the staged function
replace _replace | p.set(P.w, w) | a field of a staged struct is replaced by `set`
is_floating_point is_complex | x.spec | its rank and element type, known while staging
"""
"""Of staged values: names | what to write instead | why."""

OF_TENSOR: Final = """
backward grad grad_fn requires_grad requires_grad_ zero_grad retain_grad register_hook is_leaf | nk.gradient(of=f, wrt=0) | derivatives are of functions: there is no tape
detach cpu cuda to_device resolve_conj block_until_ready | t | a tensor is a value in memory, and nothing is recorded
device | t | code runs on the CPU
data values value array _value | t.numpy() | its memory as an array
clone copy | t | values do not change
to astype type type_as float double half long int bool | nk.Tensor2D(t.numpy().astype(np.float64)) | NumPy converts, and the class says the rank
view reshape resize flatten squeeze unsqueeze expand_dims | nk.Tensor2D(t.numpy().reshape(2, -1)) | NumPy does it to the array; inside a staged function a Rep has it
transpose permute swapaxes moveaxis T mT t | nk.Tensor2D(t.numpy().T) | NumPy does it to the array; inside a staged function a Rep has it
dim | t.ndim | NumPy's name
numel nelement | t.size | NumPy's name
nbytes strides stride flags itemsize is_contiguous contiguous data_ptr | t.numpy() | the array has it
at fill_ zero_ copy_ add_ sub_ mul_ div_ fill put itemset | t | values do not change: compute a new one inside a staged function
eval | t | it is a value already
map scan fold filter | @nk.staged | inside a staged function a Rep has it
"""
"""Of concrete tensors."""

OF_FUNCTION: Final = """
forward apply __func__ eval_ run | f(x) | a staged function is called as it is
lower trace graph jaxpr code | f.ir(x) | it prints the program
grad gradient backward value_and_grad | nk.gradient(of=f, wrt=0) | derivatives are functions of functions
vmap batch map | nk.vmap(f) | a function of one element becomes one of a batch
parameters named_parameters state_dict train weight bias | nk.Struct | parameters are arguments: a Struct of them
as_text hlo mlir llvm_ir inspect_llvm | f.llvm(x) | the LLVM IR
inspect_asm disassemble | f.asm(x) | the machine code
cost_analysis memory_stats peak_memory memory peak_bytes | f.memory_analysis(x) | the bytes of a call
warmup precompile aot aot_compile | f.compile(x) | without running
cache_clear clear_cache_ | f.clear_cache() | its compiled specialisations
cache_info _cache_size | f.cache_size() | how many compiled specialisations there are
defvjps def_vjp | f.defvjp | the rule for reverse mode
defjvps def_jvp | f.defjvp | the rule for forward mode
"""
"""Of staged functions."""
