"""Names that users of NumPy, JAX and PyTorch look for here, with what does the same and a clause that says why.

Each line has names, what to write instead, and the clause.  A name that exists is never looked up here, nor one that is
a method where a function is looked for, or the other way round: `nnkit.missing_names` finds these by itself.
"""

from __future__ import annotations

from typing import Final

OF_PACKAGE: Final = """
jit pjit filter_jit script compile njit vectorize | @nk.staged | a staged function is compiled when it is first called with data
function tf_function graph | @nk.staged | it traces a function once per types of its arguments
make_jaxpr trace_jaxpr fx | f.ir(x) | it prints the program that a staged function became
lower | f.ir(x, stage="schedule") | each stage of the compiler can be printed
eval_shape | f.ir(x) | its first line has the types of the results
ShapeDtypeStruct ShapeDtype TensorSpec meta_tensor | nk.spec((2, 3), f32) | it stands for an array where only shape and element type matter
grad autograd autodiff backward elementwise_grad GradientTape filter_grad | nk.gradient(of=f, wrt=0) | derivatives are of functions, and are functions
value_and_grad grad_and_value filter_value_and_grad | nk.value_and_gradient(of=f, wrt=0) | derivatives are of functions, and are functions
gradients gradient_of derivative diff_of d | nk.gradient(of=f, wrt=0) | the function is `of`, the parameters are `wrt`
jacfwd jacrev jacobian_fn | nk.jacobian(f) | `mode=` says forward or reverse
hess | nk.hessian(f) | forward over reverse
pushforward forward_ad forward_gradient | nk.jvp(f) | it takes the arguments, then the tangents
pullback | nk.vjp(f) | it takes the arguments, then the cotangent of the result
hessian_vector_product vhp | nk.hvp(f) | the vector follows the arguments
jet | nk.taylor(f, order=3) | the coefficients of the series along a direction
custom_jvp | f.defjvp | a staged function is given its rule
custom_vjp custom_gradient Function | f.defvjp | a staged function is given its rule
custom_derivatives straight_through | nk.differentiate_as(g) | the values of one function with the derivatives of another
remat | nk.checkpoint(f) | gradients of it compute again what they need
checkpoint_policy checkpoint_policies | nk.gradient(of=f, wrt=0, save="none") | `save=` says what is kept
no_grad inference_mode set_grad_enabled enable_grad is_grad_enabled | nk.stop_gradient(x) | nothing is recorded at run time: a function is differentiated when you ask for its gradient
detach lax_stop_gradient | nk.stop_gradient(x) | derivatives take it for a constant
requires_grad requires_grad_ | nk.gradient(of=f, wrt=0) | `wrt` says what is differentiated
gradcheck check_grads gradgradcheck | nk.check_gradients(f, x) | against finite differences, of both modes
tensor as_tensor from_numpy asarray array ndarray Tensor FloatTensor DoubleTensor LongTensor new_tensor frombuffer fromiter asanyarray ascontiguousarray | nk.Tensor2D(array) | the rank is in the name of the class: Tensor0D to Tensor5D
Tensor6D Tensor7D | nk.Tensor5D(array) | the highest rank is 5
Array DeviceArray ArrayLike | nk.Tensor2D[nk.f32] | an annotation has the rank and the element type
constant | nk.const(x) | a concrete value as a staged one
Parameter Variable variable Buffer | nk.Field[nk.Tensor2D[nk.f32]] | parameters are fields of a Struct, which is passed and returned
Placeholder placeholder Input | nk.Rep[nk.Tensor2D[nk.f32]] | parameters of a staged function stand for values
Module Layer Sequential Model ModuleList ParameterList Flax nnx eqx equinox | nk.Struct | a model is a function of a Struct of its parameters
ModuleDict ParameterDict | nk.Struct | its fields have names
neural stax flax haiku linen | nk.nn | a layer is a Struct of its parameters with a function, nn.linear(p[P.first], x)
Linear Dense linear dense | nk.nn.linear(p[P.layer], x) | P.layer is a Field[nn.Linear]
Bilinear bilinear | (x @ w * y).sum(axis=1) | a layer is an expression
Embedding embedding embedding_lookup | nk.nn.embedding(p[P.table], i) | P.table is a Field[nn.Embedding]; of a matrix it is table[i]
EmbeddingBag embedding_bag | nk.take(table, i) | a row for each index
Flatten flatten | x.reshape(n, -1) | of one axis: x.reshape(-1)
Identity identity_layer | x | nothing to call
LSTM LSTMCell | nk.nn.lstm(p[P.layer], xs) | P.layer is a Field[nn.LSTM]; nn.lstm_cell is one step
GRU GRUCell | nk.nn.gru(p[P.layer], xs) | P.layer is a Field[nn.GRU]; nn.gru_cell is one step
RNN RNNCell | xs.scan(state, step) | a recurrent network is a scan over the first axis of xs
Conv3D | nk.nn.conv3d(p[P.layer], x) | P.layer is a Field[nn.Conv3d]
MultiheadAttention | nk.nn.attention(p[P.layer], x, heads=8) | P.layer is a Field[nn.MultiHeadAttention]
TransformerEncoderLayer scaled_dot_product_attention dot_product_attention | nk.softmax(q @ k.T) @ v | attention is an expression, which is compiled as one
optimizers optax SGD Adam AdamW sgd adam adamw momentum apply_updates Optimizer | nk.optim.adam(1e-3) | nk.optim.training_step makes a step of a loss and of it
Adagrad adagrad | nk.optim.adagrad(1e-2) | nk.optim.training_step makes a step of a loss and of it
RMSprop rmsprop | nk.optim.rmsprop(1e-2) | nk.optim.training_step makes a step of a loss and of it
lamb lion LBFGS ASGD Adadelta Adafactor Adamax Muon NAdam RAdam Rprop SparseAdam | nk.optim.adam(1e-3) | NNKit has sgd, momentum, rmsprop, adagrad, adam and adamw
clip_grad_norm_ clip_grad_norm clip_by_global_norm | nk.optim.clip_by_global_norm(slopes, 1.0) | of a struct of slopes
lr_scheduler scheduler schedules | nk.optim.adam(1e-3) | see its learning_rate
utils data DataLoader Dataset TensorDataset | x[i:i + 64] | batches are slices of arrays, by Python's `for`
functional F ops signal polynomial emath lax numpy jnp np scipy special xp | nk.tanh(x) | all functions are in nnkit itself; docs/functions.md lists them
experimental debug config | nk.debug_nans() | see docs/functions.md for what there is
device cuda mps to cpu gpu devices local_devices device_count device_put device_get default_device set_default_device | nk.staged | code runs on the CPU, and data stays where it is
synchronize block_until_ready | f(x) | a call returns when its results are there
manual_seed seed default_rng RandomState Generator PRNGKey PRNGKeyArray set_seed | nk.random.key(0) | random numbers are functions of a key
rand random_sample random_uniform | nk.random.uniform(key, (2, 3)) | random numbers are functions of a key
randn standard_normal random_normal | nk.random.normal(key, (2, 3)) | random numbers are functions of a key
randn_like normal_like | nk.random.normal(key, (2, 3)) | random numbers are functions of a key
rand_like uniform_like | nk.random.uniform(key, (2, 3)) | random numbers are functions of a key
float32 float float_ single Float32 FloatX | nk.f32 | the element types are f16, bf16, f32, f64, i8, i32, i64 and boolean
float64 double Float64 | nk.f64 | the element types are f16, bf16, f32, f64, i8, i32, i64 and boolean
float16 half Float16 | nk.f16 | the element types are f16, bf16, f32, f64, i8, i32, i64 and boolean
bfloat16 BFloat16 | nk.bf16 | the element types are f16, bf16, f32, f64, i8, i32, i64 and boolean
int8 byte uint8 u8 | nk.i8 | integers are signed: i8, i32 and i64
int32 int_ intc Int32 int16 i16 short uint16 u16 uint32 u32 | nk.i32 | integers are signed: i8, i32 and i64
int64 long Int64 integer_ uint64 u64 | nk.i64 | integers are signed: i8, i32 and i64
int | nk.i64 | an element type has its size in its name
bool bool_ Boolean | nk.boolean | the element type of truth values
complex64 complex128 complex cfloat cdouble c64 c128 float8 float8_e4m3fn float8_e5m2 | nk.f64 | there are no complex numbers, and no floats of 8 bits
dtype result_type promote_types can_cast finfo iinfo | nk.DType | element types are classes, and nothing is promoted
set_default_dtype get_default_dtype default_dtype | nk.f32 | each constant says its element type
astype type convert_element_type cast to_dtype | x.cast(nk.f32) | conversions are written
newaxis | x.expand_dims(0) | an axis of extent 1
pi e euler_gamma inf nan Infinity NaN PINF NINF | math.pi | a number of Python's, as math.inf and math.nan are, has the element type of what it meets
unsqueeze | x.expand_dims(0) | an axis of extent 1
view reshape_as unflatten | x.reshape(2, -1) | one extent may be -1
permute | x.transpose(1, 0) | axes in their new order
t mT matrix_transpose | x.T | of a matrix; x.transpose(0, 2, 1) of a batch
transpose2d swap_axes swapdims | x.transpose(1, 0) | axes in their new order
expand broadcast_in_dim broadcast | nk.broadcast_to(x, (2, 3)) | operators broadcast by themselves
broadcast_arrays broadcast_tensors | nk.broadcast_to(x, (2, 3)) | operators broadcast by themselves
cat concatenate hstack vstack dstack row_stack column_stack append r_ c_ | nk.concat([x, y], axis=0) | along an existing axis; nk.stack makes a new one
index_select take_along gather_rows embedding_rows gather_nd gather dynamic_index_in_dim | nk.take(x, i, axis=0) | rows by their indices
lax_slice narrow slice slice_in_dim select_slice | x[i:i + 3] | of Python ints; from a staged i it is nk.take(x, i + nk.arange(3))
dynamic_slice dynamic_slice_in_dim | nk.take(x, i + nk.arange(3)) | a slice begins at a Python int, indices are staged values
index_update index_put index_put_ dynamic_update_slice dynamic_update_slice_in_dim put copyto place fill_diagonal | x.at[i].set(v) | values do not change: it makes a new one
index_add index_add_ add_at | x.at[i].add(v) | repeated indices add up
scatter_ | nk.scatter(x, indices, values, axis=0) | values do not change: it makes a new one
scatter_add scatter_add_ scatter_sum | nk.scatter(x, indices, values, axis=0, reduce="add") | repeated indices add up; x.at[i].add(rows) adds rows
scatter_reduce scatter_reduce_ scatter_apply scatter_sub | nk.scatter(x, indices, values, axis=0, reduce="max") | or "set", "add", "multiply" and "min"; rows by x.at[i]
scatter_mul scatter_multiply scatter_prod | nk.scatter(x, indices, values, axis=0, reduce="multiply") | rows by x.at[i].multiply(v)
scatter_min | nk.scatter(x, indices, values, axis=0, reduce="min") | rows by x.at[i].min(v)
scatter_max | nk.scatter(x, indices, values, axis=0, reduce="max") | rows by x.at[i].max(v)
scatter_nd scatter_nd_update | x.at[i, j].set(v) | a tensor of indices for each axis
select_scatter slice_scatter diagonal_scatter masked_scatter masked_scatter_ | x.at[i:j].set(v) | a key means what it does in x[...]
masked_fill masked_fill_ putmask lax_select | nk.where(mask, a, x) | element by element
masked_select compress extract where_nonzero boolean_mask | x.filter(lambda row: row > 0) | the extent of a result cannot depend on values: the rest is zeros
copy clone detach_copy | x | values do not change, so nothing is copied
empty empty_like | nk.zeros((2, 3), f32) | nothing is left uninitialised
zeros_ ones_ fill_ | nk.zeros((2, 3), f32) | values do not change
full_like | nk.full(x.shape, 7.0, f32) | the element type is given
fromfunction indices mgrid ogrid lib_index_tricks | nk.iota((2, 3), nk.i64, axis=0) | the index along an axis
range | nk.arange(10, nk.i64) | or Python's `range`, while staging
identity | nk.eye(3) | ones on the diagonal
pow float_power | nk.power(x, y) | of floats; x ** y is the same
remainder_floor | nk.modulo(x, y) | with the sign of y, as Python's %
divide true_divide truediv | nk.div(x, y) | x / y is the same
subtract | nk.sub(x, y) | x - y is the same
multiply | nk.mul(x, y) | x * y is the same
floordiv | nk.floor_divide(x, y) | of integers; x // y is the same
neg negative | nk.negate(x) | -x is the same
positive | x | nothing to compute
absolute fabs | nk.abs(x) | abs(x) is the same
arccos | nk.acos(x) | the inverse has the short name
arcsin | nk.asin(x) | the inverse has the short name
arctan | nk.atan(x) | the inverse has the short name
arccosh | nk.acosh(x) | the inverse has the short name
arcsinh | nk.asinh(x) | the inverse has the short name
arctanh | nk.atanh(x) | the inverse has the short name
gammaln loggamma log_gamma | nk.lgamma(x) | C's name
psi polygamma | nk.digamma(x) | the first derivative of lgamma
erfinv ndtri erf_inv | nk.fixed_point(f, x) | there is no inverse of erf; solve for it
ndtr norm_cdf | 0.5 * nk.erfc(-x / 2**0.5) | the distribution function of the normal distribution
rsqrt_ | nk.rsqrt(x) | values do not change
sigmoid_ expit logistic Sigmoid | nk.sigmoid(x) | a function, without a class
logit | nk.log(x) - nk.log1p(-x) | the inverse of the sigmoid
relu_ ReLU Relu | nk.relu(x) | a function, without a class
ReLU6 | nk.relu6(x) | a function, without a class
hardtanh Hardtanh | nk.hard_tanh(x) | a function, without a class; between other bounds it is nk.clip
prelu PReLU | nk.maximum(x, 0.0) + a * nk.minimum(x, 0.0) | a composition
SELU CELU | nk.selu(x) | functions, and no classes, as nk.celu is
glu GLU swiglu | x[:n] * nk.sigmoid(x[n:]) | of two halves; a composition
softsign Softsign | x / (1 + nk.abs(x)) | a composition
squareplus | (x + nk.sqrt(x * x + 4)) / 2 | a composition
tanhshrink | x - nk.tanh(x) | a composition
softshrink | x - nk.clip(x, -0.5, 0.5) | a composition
hardshrink threshold | nk.where(nk.abs(x) > 0.5, x) | a composition
Mish | x * nk.tanh(nk.softplus(x)) | a composition
GELU gelu_new gelu_fast | nk.gelu(x) | a function, without a class; exact, not by tanh
Softplus SoftPlus | nk.softplus(x) | a function, without a class
Tanh | nk.tanh(x) | a function, without a class
softmin Softmin | nk.softmax(-x, axis=-1) | a composition
Softmax softmax2d Softmax2d | nk.softmax(x, axis=-1) | a function, without a class
LogSoftmax | nk.log_softmax(x, axis=-1) | a function, without a class
logsumexp_ log_sum_exp | nk.logsumexp(x, axis=0) | NumPy's name
CrossEntropyLoss cross_entropy_loss sparse_categorical_crossentropy categorical_crossentropy softmax_cross_entropy softmax_cross_entropy_with_integer_labels NLLLoss nll_loss | nk.cross_entropy(logits, labels) | labels are class numbers or probabilities
LayerNorm LayerNormalization | nk.layer_norm(x, scale, offset) | a function of its parameters
GroupNorm InstanceNorm2d weight_norm spectral_norm local_response_norm | nk.layer_norm(x) | of other axes: (x - mean) / sqrt(var + epsilon), written out
MSELoss mse_loss mean_squared_error | nk.mse(x, y) | a function, without a class
L1Loss l1_loss mae mean_absolute_error | nk.abs(x - y).mean() | a composition
SmoothL1Loss smooth_l1_loss | nk.smooth_l1(x, y) | a function, without a class
HuberLoss huber_loss | nk.huber(x, y) | a function, without a class
BCELoss BCEWithLogitsLoss binary_cross_entropy_with_logits sigmoid_cross_entropy sigmoid_binary_cross_entropy bce bce_loss | nk.binary_cross_entropy(logits, labels) | of logits, in one step
KLDivLoss kl_div kl | nk.kl_divergence(p, q) | a function, without a class
BatchNorm1d BatchNorm2d BatchNorm3d BatchNorm batch_normalization | nk.batch_norm(x) | a function of its parameters
RMSNorm rmsnorm | nk.rms_norm(x) | a function of its parameters
SiLU Swish | nk.silu(x) | a function, without a class
LeakyReLU leakyrelu | nk.leaky_relu(x) | a function, without a class
ELU | nk.elu(x) | a function, without a class
LogSigmoid logsigmoid | nk.log_sigmoid(x) | a function, without a class
Hardswish hardswish | nk.hard_swish(x) | a function, without a class
Hardsigmoid hardsigmoid | nk.hard_sigmoid(x) | a function, without a class
Conv1d Conv1D | nk.conv1d(x, kernel) | a function of its parameters
Conv2d Conv2D conv conv_general_dilated | nk.conv2d(x, kernel) | a function of its parameters
Conv3d | nk.conv3d(x, kernel) | a function of its parameters
ConvTranspose1d ConvTranspose1D Conv1DTranspose | nk.conv_transpose1d(x, kernel) | a function of its parameters
ConvTranspose2d ConvTranspose2D Conv2DTranspose conv_transpose | nk.conv_transpose2d(x, kernel) | a function of its parameters
ConvTranspose3d ConvTranspose3D Conv3DTranspose | nk.conv_transpose3d(x, kernel) | a function of its parameters
MaxPool1d MaxPool1D MaxPooling1D | nk.max_pool1d(x, 2) | a function of its parameters
MaxPool2d MaxPool2D MaxPooling2D max_pool reduce_window | nk.max_pool2d(x, 2) | a function of its parameters
MaxPool3d MaxPool3D MaxPooling3D | nk.max_pool3d(x, 2) | a function of its parameters
AvgPool1d AveragePooling1D mean_pool1d | nk.avg_pool1d(x, 2) | a function of its parameters
AvgPool2d AveragePooling2D avg_pool mean_pool mean_pool2d AdaptiveAvgPool2d | nk.avg_pool2d(x, 2) | a function of its parameters
AvgPool3d AveragePooling3D mean_pool3d AdaptiveAvgPool3d | nk.avg_pool3d(x, 2) | a function of its parameters
Upsample upsample UpSampling3D resize image_resize | nk.interpolate | a function of its parameters
Dropout Dropout2d dropout2d Dropout3d dropout3d | nk.dropout(x, 0.1, key) | a function of a key
clamp clamp_ clip_ clamp_min clamp_max | nk.clip(x, 0.0, 1.0) | NumPy's name
arctan2 | nk.atan2(y, x) | the inverse has the short name
topk | nk.top_k(x, 3) | the greatest, with their indices
segment_reduce | nk.segment_sum(x, i, 3) | and its like
triangular_solve | nk.linalg.solve_triangular(a, b, lower=True) | linear algebra is in nk.linalg
lu lu_solve lu_factor lu_unpack | nk.linalg.solve(a, b) | NNKit has no factors of LU
inverse | nk.linalg.inv(a) | linear algebra is in nk.linalg
matrix_norm vector_norm | nk.linalg.norm(a) | linear algebra is in nk.linalg
eig eigvals schur hessenberg | nk.linalg.eigh(a) | of symmetric matrices; general ones have complex eigenvalues
fft rfft ifft irfft fft2 stft istft | nk.convolve(x, y) | there are no complex numbers and no FFT
cumulative_sum | nk.cumsum(x, axis=0) | NumPy's name
unique unique_counts histogram | nk.bincount | the extent of a result cannot depend on values: count integers
l2_normalize | x / nk.norm(x, axis=-1, keepdims=True) | a composition
sum_ | x.sum() | over all axes, or axis=
average | nk.mean(x, axis=0) | weights are multiplied
amax reduce_max | x.max(axis=0) | NaN wins
amin reduce_min | x.min(axis=0) | NaN wins
reduce_sum | x.sum(axis=0) | NumPy's name
reduce_mean | x.mean(axis=0) | NumPy's name
reduce_prod product | x.prod(axis=0) | NumPy's name
equal not_equal eq ne | x == y | an operator, as != is
greater less greater_equal less_equal gt lt ge le | x > y | an operator, as <, >= and <= are
invert | ~x | an operator
deg2rad rad2deg | nk.radians(x) | nk.degrees is the inverse
digitize bucketize | nk.searchsorted(edges, x) | the edges are sorted
isin in1d | (x.expand_dims(1) == values).any(axis=1) | a composition
fliplr flipud rot90 | nk.flip(x, axis=1) | one axis is reversed
cov | d.T @ d / n | of d = x - x.mean(axis=0)
corrcoef | d.T @ d / n | of d = (x - x.mean(axis=0)) / x.std(axis=0)
logspace geomspace | 10.0 ** nk.linspace(0.0, 3.0, 4, dtype=nk.f32) | a composition
real imag conj angle | x | there are no complex numbers
atleast_1d atleast_2d atleast_3d | x.expand_dims(0) | the rank is part of the type
ptp | x.max() - x.min() | a composition
var_mean std_mean moments | nk.var(x, axis=0) | nk.mean is the other one
array_equal equal_all | nk.abs(x - y) < 1e-6 | or np.testing.assert_allclose on results
dot mm bmm mv matvec vecdot dot_general inner_product | x @ y | of vectors, matrices and batches
addmm baddbmm addmv addbmm | x @ y + z | an expression, which is compiled as one
multi_dot | x @ y @ z | the compiler finds the cheapest order
apply_along_axis apply_over_axes pmap xmap shard_map | nk.vmap(f) | a function of one element becomes one of a batch
vmap_ functorch func torch_func | nk.vmap(f) | a function of one element becomes one of a batch
map imap | x.map(f) | along the first axis
reduce foldl foldr fold_left associative_scan | x.fold(init, f) | along the first axis
scan | xs.scan(init, f) | a method, along the first axis
filter | x.filter(f) | the rest is zeros
switch case | nk.cond(i == 0, f, g) | one inside of the other
if_ ifelse if_then_else lax_cond Cond | nk.cond(p, f, g) | the other branch is not run
while_ whileloop WhileLoop | nk.while_loop(test, body, init) | with what is carried
fori_loop for_loop for_ | nk.fori(0, n, body, init) | with what is carried
fix_point fixedpoint | nk.fixed_point(f, x) | its gradient keeps nothing
recursion Y | nk.fix(f) | a staged function may also call itself
pure_callback io_callback host_callback py_function numpy_function | nk.callback(f, signature) | a function of Python, called from compiled code
ffi ffi_call cpp_extension | nk.foreign(f, signature) | a C function, called from compiled code
debug_print | nk.print(x) | when the program runs
checkify assert_ Assert assert_equal | nk.check(condition, "message") | when the program runs
debugging_nans detect_anomaly set_detect_anomaly set_printoptions | nk.debug_nans() | it names the line that makes a NaN
tree_map tree_unflatten tree_structure tree_transpose | nk.tree.map(f, p) | of several trees, too
tree_leaves tree_flatten | nk.tree.leaves(p) | the tensors in a row
tree_reduce | nk.tree.reduce(f, p) | over all tensors
tree_util pytree | nk.fields(P) | Python's loop over the fields of a Struct runs while staging
NamedTuple dataclass struct pytree_node register_pytree_node PyTreeNode field | nk.Struct | with annotations Field[...]
state_dict load_state_dict save load savez | np.savez("file.npz", w=p.w.numpy()) | fields are tensors, tensors are arrays
numpy_ to_numpy item tolist | t.numpy() | a concrete tensor has it
shape ndim size | t.shape | of a tensor, not a function
is_tensor isarray is_array | isinstance(x, nk.AnyTensor) | concrete tensors have one base class
profiler benchmark | f.asm(x) | see what the code is, or time the calls
clear_caches empty_cache | f.clear_cache() | each staged function has its own
donate_argnums donate_argnames | nk.donate(f, 0) | results may take over the memory of arguments
static_argnums static_argnames partial Partial | @nk.staged | a parameter that is not a Rep is static
in_axes out_axes | nk.vmap(f, in_axes=(0, None)) | arguments of vmap
nanquantile nanpercentile | nk.nanmedian(x, axis=0) | NNKit has the median; other parts are read from nk.sort(x), which has NaN last
nanargmax nanargmin | nk.argmax(nk.where(nk.isnan(x), -math.inf, x), axis=0) | a mask takes NaN out
nancumsum nancumprod | nk.cumsum(nk.where(nk.isnan(x), 0.0, x), axis=0) | a mask takes NaN out
unstack unbind chunk hsplit vsplit dsplit tensor_split split_with_sizes unsafe_chunk unsafe_split | nk.split(x, 2, axis=0) | pieces; x[0], x[1] and so on are rows
isneginf isposinf | x == -math.inf | a comparison
isreal iscomplex isrealobj iscomplexobj is_complex real_if_close | nk.isfinite(x) | NNKit has no complex numbers
fmax | nk.where(nk.isnan(x), y, nk.maximum(x, y)) | nk.maximum keeps NaN
fmin | nk.where(nk.isnan(x), y, nk.minimum(x, y)) | nk.minimum keeps NaN
xlogy xlog1py | nk.where(x == 0, 0.0, x * nk.log(y)) | a composition, without NaN in its derivative
entr rel_entr | nk.where(x > 0, -x * nk.log(x)) | a composition, without NaN in its derivative
erfcx log_ndtr | nk.log(0.5 * nk.erfc(-x / 2**0.5)) | NNKit has none: of arguments above -5 in f32
gamma | nk.exp(nk.lgamma(x)) | of positive x
factorial | nk.exp(nk.lgamma(x + 1.0)) | of floats
comb binom betaln beta poch multigammaln mvlgamma | nk.lgamma(x) + nk.lgamma(y) - nk.lgamma(x + y) | compositions of lgamma
igamma igammac gammainc gammaincc betainc zeta hyp1f1 hyp2f1 exp1 expi expn sici spence fresnel dawsn i0 i0e i1 i1e bessel_j0 bessel_j1 bessel_y0 bessel_y1 bessel_i0e bessel_i1e bessel_jn owens_t wofz airy_ai modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 sph_harm_y | nk.callback(f, signature) | NNKit has none: SciPy's, called from compiled code, with f.defjvp for its derivative
boxcox boxcox1p | (x ** a - 1.0) / a | a composition
lerp mix | x + t * (y - x) | a composition
addcmul | x + a * y * z | an expression, which is compiled as one
addcdiv | x + a * y / z | an expression, which is compiled as one
rsub | y - x | an operator
addr ger | x + nk.outer(y, z) | an expression, which is compiled as one
cdist pdist dist pairwise_distance | nk.norm(x.expand_dims(1) - y, axis=-1) | differences of all pairs
logcumsumexp cumlogsumexp | nk.log(nk.cumsum(nk.exp(x - x.max()), axis=0)) + x.max() | NNKit has none: of one scale
logaddexp2 | nk.logaddexp(x * math.log(2), y * math.log(2)) / math.log(2) | a composition
frexp ldexp modf divmod | x * nk.exp2(n) | NNKit has none: nk.floor, nk.exp2 and x % y make them
frac | x - nk.trunc(x) | a composition
sgn | nk.sign(x) | NumPy's name
positive_part | nk.relu(x) | a function
nextafter spacing | np.nextafter(x, y) | of data, outside of staged functions: NNKit has none
gcd lcm | nk.while_loop(test, body, init) | NNKit has none: Euclid's loop of yours
clz population_count bitwise_count | nk.right_shift(i, 1) & 1 | NNKit counts no bits: shift and mask them
shift_left bitwise_left_shift | x << y | an operator
shift_right_arithmetic shift_right_logical bitwise_right_shift | x >> y | an operator
bitwise_invert | ~x | an operator
rem | nk.fmod(x, y) | with the sign of x, as C's
rev | nk.flip(x, axis=0) | NumPy's name
index_in_dim dynamic_index index_take | x[i] | an int, or a Rep
dynamic_update_index_in_dim | x.at[i].set(v) | values do not change: it makes a new one
broadcast_shapes | np.broadcast_shapes((2, 1), (3,)) | Python's numbers: NumPy computes with them
broadcast_like broadcasted_iota broadcast_to_rank | nk.broadcast_to(x, (2, 3)) | operators broadcast by themselves
collapse | x.reshape(2, -1) | one extent may be -1
permute_dims rollaxis movedim | nk.moveaxis(x, 0, -1) | NumPy's name
integer_pow | x ** 2 | an operator
batch_matmul ragged_dot vecmat dot_product chain_matmul | x @ y | of vectors, matrices and batches
psum all_reduce | nk.axis_sum(x, "batch") | the sum over the elements of vmap(f, axis_name="batch")
pmean | nk.axis_mean(x, "batch") | over the elements of vmap(f, axis_name="batch")
pmax | nk.axis_max(x, "batch") | over the elements of vmap(f, axis_name="batch")
pmin | nk.axis_min(x, "batch") | over the elements of vmap(f, axis_name="batch")
all_gather all_to_all ppermute pshuffle axis_index axis_size psum_scatter | nk.axis_sum(x, "batch") | NNKit combines the elements of a batch by sums, means, minima and maxima
reduce_and | x.all(axis=0) | NumPy's name
reduce_or | x.any(axis=0) | NumPy's name
reduce_precision | x.cast(nk.f16).cast(nk.f32) | conversions are written
select_n | nk.where(i == 0, x, y) | one inside of the other for more
sort_key_val lexsort | nk.take_along_axis(x, nk.argsort(y)) | values in the order of keys
approx_max_k kthvalue mode | nk.top_k(x, 3) | the greatest, with their indices; the k-th is nk.sort(x)[k]
argpartition | nk.argsort(x) | all in order
partition msort | nk.sort(x) | all in order
aminmax | x.min() | and x.max()
cumulative_prod | nk.cumprod(x, axis=0) | NumPy's name
cumulative_trapezoid trapz | nk.trapezoid(y, x) | NumPy's name; running ones are nk.cumsum of its terms
ediff1d | nk.diff(x.ravel()) | of all elements in a row
gradient_numeric | nk.diff(x) / h | differences
take_along_dim | nk.take_along_axis(x, indices, axis=0) | NumPy's name
choose piecewise | nk.where(i == 0, x, y) | one inside of the other for more
index_copy index_fill put_ | x.at[i].set(v) | values do not change: it makes a new one
index_reduce | x.at[i].max(v) | or add, multiply, min
delete trim_zeros | nk.concat([x[:i], x[i + 1:]]) | the extent of a result cannot depend on values
insert | nk.concat([x[:i], v, x[i:]]) | slices and pieces
resize_as_ resize_ | nk.pad(x, 1) | extents are those of the type
diagflat diag_embed | nk.diag(v) | of a vector
diag_indices_from | nk.diag_indices(n, 2) | of an extent
tril_indices tril_indices_from mask_indices | nk.tril(x) | a mask instead of indices: nk.tri(n) is 1 there
triu_indices triu_indices_from | nk.triu(x) | a mask instead of indices: 1 - nk.tri(n, k=-1) is 1 there
unravel_index ravel_multi_index | i // m | row and column of a flat index: i // m and i % m
vander | x.expand_dims(1) ** nk.arange(n, f32) | a composition
block_diag block bmat | nk.concat([nk.concat([a, b], axis=1), nk.concat([c, d], axis=1)]) | rows of blocks
cartesian_prod combinations | nk.meshgrid(x, y, indexing="ij") | the pairs of two vectors
ix_ | nk.meshgrid(i, j, indexing="ij") | or x[i.expand_dims(1), j]
s_ index_exp ds | x[1:3] | Python's slices
repeat_interleave | nk.repeat(x, 3) | NumPy's name
polyfit | nk.linalg.lstsq(x.expand_dims(1) ** nk.arange(n, f32), y) | powers as columns
poly poly1d polyadd polyder polydiv polyint polymul polysub roots | nk.polyval(p, x) | NNKit has polyval; products of polynomials are nk.convolve(p, q), the rest is NumPy's
hamming hanning hann_window hamming_window blackman blackman_window bartlett bartlett_window kaiser kaiser_window | 0.5 - 0.5 * nk.cos(nk.linspace(0.0, 2 * math.pi, n)) | NNKit has none: a window is an expression
histc histogram2d histogramdd histogram_bin_edges | nk.bincount(nk.searchsorted(edges, x), minlength=n) | counts by sorted edges
unwrap | x - 2 * math.pi * nk.round(x / (2 * math.pi)) | NNKit has none: by the nearest turn
intersect1d union1d setdiff1d setxor1d unique_all unique_inverse unique_values unique_consecutive | nk.bincount(i, minlength=n) > 0 | the extent of a result cannot depend on values: sets of integers are masks
array_equiv | nk.all(x == y) | a comparison
around | nk.round(x, 2) | NumPy's other name of it
interpolation map_coordinates grid_sample | nk.interp(x, xp, fp) | NNKit has none of images: gather the neighbours, `image[i, j]`, and weigh them
where_ select_scatter_ | nk.where(c, x, y) | element by element
stats distributions | nk.random.normal(key, (2, 3)) | samplers are in nk.random; a density is an expression
testing | nk.check_gradients(f, x) | results are arrays, for np.testing
image | nk.interpolate(x, scale_factor=2) | images are tensors
export onnx hub torchscript | f.llvm(x) | the code of a staged function, as text
ma masked | nk.where(mask, x) | a mask beside the tensor
nested ragged | nk.segment_sum(x, i, 3) | rows in one tensor, with the numbers of their segments
cosine_embedding_loss triplet_margin_loss margin_ranking_loss hinge_embedding_loss multi_margin_loss | nk.relu(margin - x + y).mean() | NNKit has none: a margin is a line of yours
gaussian_nll_loss poisson_nll_loss ctc_loss soft_margin_loss | nk.cross_entropy(logits, labels) | NNKit has others than this: a loss is a line of yours
max_pool1d_with_indices max_pool2d_with_indices | nk.max_pool2d(x, 2) | its derivative knows the places
rot90_ | nk.flip(x.T, axis=0) | of a matrix
rrelu | nk.leaky_relu(x) | without noise
unfold as_strided sliding_window_view as_strided_ | nk.take(x, i.expand_dims(1) + nk.arange(k)) | windows by indices
glorot_uniform xavier_uniform_ kaiming_normal_ he_normal | nk.nn.init(Net, key) | draws all parameters
randperm shuffle | nk.random.permutation(key, x) | random numbers are functions of a key
randint_like | nk.random.randint(key, x.shape, 0, 10) | random numbers are functions of a key
multinomial poisson | nk.random.categorical(key, logits) | random numbers are functions of a key
get_rng_state set_rng_state initial_seed fork_rng default_generator | nk.random.key(0) | a key is all the state there is
numel | x.size | NumPy's name
typeof typename get_device is_floating_point | x.spec | its rank and element type, known while staging
isdtype issubdtype issubclass_ | x.spec | its rank and element type, known while staging
True_ False_ | True | Python's, which stands for all of a condition
uint uintc uintp ubyte ushort ulong ulonglong longlong intp int2 int4 uint2 uint4 integer signedinteger unsignedinteger | nk.i64 | integers are signed: i8, i32 and i64
float128 longdouble floating inexact number generic float4_e2m1fn float8_e4m3 float8_e4m3fnuz float8_e5m2fnuz | nk.f64 | the element types are f16, bf16, f32, f64, i8, i32, i64 and boolean
csingle clongdouble complexfloating complex_ conjugate conj_physical adjoint view_as_real view_as_complex polar | x | there are no complex numbers
object_ str_ bytes_ void character datetime64 timedelta64 flexible | nk.i64 | elements are numbers and truth values: encode others as integers
quantize_per_tensor dequantize qint8 quint8 qint32 | x.cast(nk.i8) | NNKit has no quantized tensors: scale, round and cast
sparse_coo_tensor sparse_csr_tensor to_sparse sparse | nk.segment_sum(values, rows, n) | NNKit has no sparse tensors: values with their indices
amp autocast GradScaler | nk.matmul(x, y, accumulate=nk.f32) | element types are written: x.cast(nk.f16)
set_num_threads get_num_threads set_flush_denormal use_deterministic_algorithms set_float32_matmul_precision default_matmul_precision | nk.staged | the same results with any number of threads, which NNKIT_NUM_THREADS sets
enable_x64 disable_jit ensure_compile_time_eval | nk.staged | element types are written, and calls are compiled
distributed multiprocessing sharding backends make_mesh Mesh NamedSharding with_sharding_constraint Device | nk.vmap(f) | code runs on the cores of one CPU
closure_convert custom_linear_solve custom_root linear_transpose | nk.linearize(f)(x) | its map has a transpose; nk.fixed_point differentiates a solution
functional_call functionalize stack_module_state | f(params, x) | a model is a function of its parameters already
named_call named_scope | nk.staged | functions have names in f.ir
new_ref empty_ref freeze free_ref array_ref | nk.ref(x) | a mutable array inside a staged function
optimization_barrier | nk.checkpoint(f) | nothing needs to be held back
is_nonzero is_tensor_like iterable isscalar | x.ndim == 0 | known while staging
check_tracer_leaks checking_leaks | nk.debug_nans() | a Rep that leaves its function is an error anyway
fromstring fromfile fromregex genfromtxt loadtxt savetxt from_file | nk.Tensor2D(np.loadtxt("file")) | NumPy reads files
array_repr array_str array2string format_float_positional printoptions get_printoptions | nk.print(x) | when the program runs; outside it is repr(t)
dlpack from_dlpack to_dlpack DLPack | nk.Tensor2D(np.from_dlpack(array)) | by NumPy's array
hard_silu | nk.hard_swish(x) | its other name
standardize | nk.layer_norm(x) | mean 0 and variance 1
logmeanexp | nk.logsumexp(x, axis=0) - math.log(n) | a composition
renorm | nk.normalize(x) | of all rows
channel_shuffle pixel_shuffle pixel_unshuffle | x.reshape(2, 2, -1).transpose(1, 0, 2) | NNKit has none: a reshape and a transpose
gumbel_softmax | nk.softmax(logits + nk.random.gumbel(key, logits.shape)) | a composition
adaptive_avg_pool1d adaptive_avg_pool2d | x.mean(axis=(-2, -1)) | of the whole image; others are nk.avg_pool2d
adaptive_max_pool1d adaptive_max_pool2d | x.max(axis=(-2, -1)) | of the whole image; others are nk.max_pool2d
lp_pool1d lp_pool2d lp_pool3d fractional_max_pool2d fractional_max_pool3d | nk.avg_pool2d(x, 2) | NNKit has means and maxima; others reduce the axes of windows after a reshape
logdet | nk.linalg.slogdet(a)[1] | linear algebra is in nk.linalg
pinverse | nk.linalg.pinv(a) | linear algebra is in nk.linalg
matrix_exp | nk.linalg.expm(a) | linear algebra is in nk.linalg
svd_lowrank pca_lowrank | nk.linalg.svd(a) | linear algebra is in nk.linalg
Size | tuple[int, ...] | a shape is a tuple
"""
"""Of `nnkit` itself: names | what to write instead | why."""
