"""Which file has the kernels of which ops, and from which size they win.

Measured one by one: what NumPy does element by element or in many calls gains at once;
one call of NumPy gains only from a second thread, which comes to help after some
microseconds, and moving memory even later.
"""

from burnbook import ops
from burnbook.core.op import BackwardOp, Op

# File, from how many elements on, ops (op': its gradient). Elements are those of the
# first value (of the result, where there is none), or with 16@1 those of another one.
# They are compiled in this order: those of the guide's network are ready first.
TABLE = """
conv                     1 conv2d conv2d'
dropout               4096 dropout
activation               1 gelu silu mish log_sigmoid elu softplus erf sigmoid gelu'
                         1 silu' mish' log_sigmoid' elu' softplus' erf' sigmoid'
                      4096 tanh' sqrt' recip' log1p' square' abs' clamp' tan' asin'
                      4096 acos' atan' asinh' acosh' atanh' relu' leaky_relu leaky_relu'
                      4096 sign
                     16384 relu clamp
pool                  4096 adaptive_avg_pool2d avg_pool2d
                       512 adaptive_avg_pool2d_x avg_pool2d_x
linear                 256 linear
loss                    64 cross_entropy
                         1 cross_entropy_logits
optimizer_steps          1 adagrad_step adam_step adan_step amsgrad_step momentum_step
                         1 rmsprop_centered_step rmsprop_momentum_step rmsprop_step
                         1 sgd_step
binary               16384 add sub mul div bitwise_and bitwise_or bitwise_xor
                     16384 bitwise_left_shift bitwise_right_shift
                      1024 max_pair min_pair
                       512 hypot fmod remainder
                   1048576 bool_not bool_and bool_or bool_xor
reduce               16384 sum mean sum_dim mean_dim length_dim sum_to max_dim min_dim
                      4096 argmax argmin prod prod_dim
                    4096@1 max' min' max_dim' min_dim'
softmax                256 softmax softmax' log_softmax log_softmax'
shape                16384 reshape
                     32768 cat roll slice_assign pad cast recast
                       256 expand
                      4096 slice_spread
norm                   256 layer_norm layer_norm' rms_norm rms_norm'
batch_norm             256 group_norm group_norm' batch_norm batch_norm'
                       256 batch_norm_known
attention              256 attention attention'
embedding             1024 embedding_weight
max_pool               256 max_pool2d
                        64 max_pool2d_x
lstm                    64 lstm lstm'
gru                     64 gru gru'
threaded_ufuncs     262144 neg abs floor ceil round trunc sqrt recip square bitwise_not
                    262144 is_nan is_inf is_finite to_bool equal not_equal greater
                    262144 greater_equal lower lower_equal neg' exp' log' floor' ceil'
                    262144 round' sign' trunc'
                    131072 exp log log1p cos sin tanh tan asin acos atan sinh cosh asinh
                    131072 acosh atanh atan2 powf cos' sin' sinh' cosh'
binary_gradients     16384 mul' sub' div'
                       512 max_pair' min_pair'
                      4096 hypot' atan2'
random                1024 normal
index               2048@1 gather scatter
                       256 hot_rows
                      2048 gather'
                     16384 select
                      4096 select' select_assign mask_fill mask_fill' mask_where
                      4096 mask_where' argwhere
conv_line             1024 conv conv' conv_transpose conv_transpose'
max_pool_nd            256 max_pool max_pool_indices
                        64 max_pool_x
interpolate            256 interpolate interpolate_x avg_pool avg_pool_x
                       256 adaptive_avg_pool_x
                    262144 adaptive_avg_pool
solve                  256 det inverse
                        16 cofactor
                      16@1 det'
lbfgs                 4096 lbfgs_direction
product_gradients   4096@1 prod' prod_dim'
scan                  2048 cumsum cumsum' cumprod cumprod' cummax cummax' cummin cummin'
                      2048 linear_scan linear_scan'
sorting               2048 sort sort' argsort argtopk argmedian
powers               32768 power power'
spectrum               256 rfft_pairs rfft_back irfft_pairs irfft_back fft_pairs
sequence_loss           64 ctc_loss rnnt_loss
                      64@1 ctc_loss' rnnt_loss'
                      4096 log_softmax_at
                    4096@1 log_softmax_at'
"""

FAMILIES: dict[str, dict[Op | BackwardOp, int | tuple[int, int]]] = {}


def _op(name: str) -> Op | BackwardOp:
    """The op of a name, or its gradient where the name ends with a prime."""
    found = getattr(ops, name.rstrip("'"))
    return found.backward if name.endswith("'") else found


def _read(table: str) -> None:
    family = ""
    for row in table.strip("\n").splitlines():
        family = row[:18].strip() or family
        size, *names = row[18:].split()
        least, _, place = size.partition("@")
        limit = (int(least), int(place)) if place else int(least)
        FAMILIES.setdefault(family, {}).update({_op(name): limit for name in names})


_read(TABLE)
