"""All operations: plain array code, one file per family."""

from burnbook.ops.activation import (
    elu as elu,
    gelu as gelu,
    leaky_relu as leaky_relu,
    log_sigmoid as log_sigmoid,
    mish as mish,
    silu as silu,
    softplus as softplus,
)
from burnbook.ops.attention import attention as attention
from burnbook.ops.batch_norm import (
    batch_norm as batch_norm,
    batch_norm_known as batch_norm_known,
    neighbor_sum as neighbor_sum,
)
from burnbook.ops.bits import (
    bitwise_and as bitwise_and,
    bitwise_left_shift as bitwise_left_shift,
    bitwise_not as bitwise_not,
    bitwise_or as bitwise_or,
    bitwise_right_shift as bitwise_right_shift,
    bitwise_xor as bitwise_xor,
)
from burnbook.ops.compare import (
    bool_and as bool_and,
    bool_not as bool_not,
    bool_or as bool_or,
    bool_xor as bool_xor,
    equal as equal,
    greater as greater,
    greater_equal as greater_equal,
    is_finite as is_finite,
    is_inf as is_inf,
    is_nan as is_nan,
    lower as lower,
    lower_equal as lower_equal,
    not_equal as not_equal,
    to_bool as to_bool,
)
from burnbook.ops.conv.conv import (
    conv as conv,
    conv2d as conv2d,
    conv2d_weight as conv2d_weight,
    conv2d_x as conv2d_x,
    conv_weight as conv_weight,
    conv_x as conv_x,
)
from burnbook.ops.conv.conv_transpose import conv_transpose as conv_transpose
from burnbook.ops.conv.deform import (
    deform_corners as deform_corners,
    deform_corners_x as deform_corners_x,
    deform_patches as deform_patches,
)
from burnbook.ops.elementwise import (
    abs as abs,
    add as add,
    ceil as ceil,
    clamp as clamp,
    cos as cos,
    div as div,
    exp as exp,
    floor as floor,
    log as log,
    log1p as log1p,
    max_pair as max_pair,
    min_pair as min_pair,
    mul as mul,
    neg as neg,
    powf as powf,
    recip as recip,
    relu as relu,
    remainder as remainder,
    round as round,
    sigmoid as sigmoid,
    sign as sign,
    sin as sin,
    sqrt as sqrt,
    sub as sub,
    tanh as tanh,
)
from burnbook.ops.embedding import (
    embedding as embedding,
    embedding_weight as embedding_weight,
)
from burnbook.ops.erf import erf as erf
from burnbook.ops.gru import gru as gru
from burnbook.ops.index import (
    argwhere as argwhere,
    gather as gather,
    hot_rows as hot_rows,
    last_of_equals as last_of_equals,
    mask_fill as mask_fill,
    mask_where as mask_where,
    scatter as scatter,
    select as select,
    select_assign as select_assign,
    select_put as select_put,
)
from burnbook.ops.interpolate import (
    interpolate as interpolate,
    interpolate_x as interpolate_x,
)
from burnbook.ops.lbfgs import (
    clip_scale as clip_scale,
    lbfgs_direction as lbfgs_direction,
    length as length,
    newton_schulz as newton_schulz,
)
from burnbook.ops.linear import linear as linear, matmul as matmul
from burnbook.ops.loss import (
    cross_entropy as cross_entropy,
    cross_entropy_logits as cross_entropy_logits,
)
from burnbook.ops.lstm import lstm as lstm
from burnbook.ops.norm import (
    group_norm as group_norm,
    layer_norm as layer_norm,
    rms_norm as rms_norm,
)
from burnbook.ops.optimizer_steps import (
    adagrad_step as adagrad_step,
    adam_step as adam_step,
    adan_step as adan_step,
    amsgrad_step as amsgrad_step,
    momentum_step as momentum_step,
    rmsprop_centered_step as rmsprop_centered_step,
    rmsprop_momentum_step as rmsprop_momentum_step,
    rmsprop_step as rmsprop_step,
    sgd_step as sgd_step,
)
from burnbook.ops.pool.pool import (
    adaptive_avg_pool as adaptive_avg_pool,
    adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_avg_pool2d_x as adaptive_avg_pool2d_x,
    adaptive_avg_pool_x as adaptive_avg_pool_x,
    avg_pool as avg_pool,
    avg_pool2d as avg_pool2d,
    avg_pool2d_x as avg_pool2d_x,
    avg_pool_x as avg_pool_x,
    max_pool as max_pool,
    max_pool2d as max_pool2d,
    max_pool2d_pick as max_pool2d_pick,
    max_pool2d_x as max_pool2d_x,
    max_pool_indices as max_pool_indices,
    max_pool_pick as max_pool_pick,
    max_pool_x as max_pool_x,
)
from burnbook.ops.quantize import (
    from_codes as from_codes,
    pack as pack,
    to_codes as to_codes,
    unpack as unpack,
)
from burnbook.ops.random import (
    bernoulli as bernoulli,
    dropout as dropout,
    normal as normal,
    orthogonal as orthogonal,
    uniform as uniform,
)
from burnbook.ops.reduce import (
    all as all,
    all_dim as all_dim,
    any as any,
    any_dim as any_dim,
    argmax as argmax,
    argmin as argmin,
    length_dim as length_dim,
    max as max,
    max_dim as max_dim,
    mean as mean,
    mean_dim as mean_dim,
    min as min,
    min_dim as min_dim,
    sum as sum,
    sum_dim as sum_dim,
    sum_to as sum_to,
)
from burnbook.ops.rnn import rnn as rnn
from burnbook.ops.rotary import rotary as rotary, rotary_turns as rotary_turns
from burnbook.ops.rounding import (
    fmod as fmod,
    power as power,
    square as square,
    trunc as trunc,
)
from burnbook.ops.scan import (
    cummax as cummax,
    cummin as cummin,
    cumprod as cumprod,
    cumsum as cumsum,
    linear_scan as linear_scan,
    newest as newest,
    prod as prod,
    prod_dim as prod_dim,
)
from burnbook.ops.sequence_loss import (
    ctc_labels as ctc_labels,
    ctc_loss as ctc_loss,
    ctc_skips as ctc_skips,
    log_softmax_at as log_softmax_at,
    rnnt_labels as rnnt_labels,
    rnnt_loss as rnnt_loss,
)
from burnbook.ops.shape import (
    cast as cast,
    cat as cat,
    expand as expand,
    flip as flip,
    pad as pad,
    permute as permute,
    recast as recast,
    reshape as reshape,
    roll as roll,
    slice_ as slice_,
    slice_assign as slice_assign,
    slice_spread as slice_spread,
    slide as slide,
    slide_back as slide_back,
    swap_dims as swap_dims,
)
from burnbook.ops.softmax import log_softmax as log_softmax, softmax as softmax
from burnbook.ops.solve import (
    cofactor as cofactor,
    cofactor_x as cofactor_x,
    det as det,
    det_sign as det_sign,
    inverse as inverse,
    log_det as log_det,
    solve as solve,
)
from burnbook.ops.sorting import (
    argmedian as argmedian,
    argsort as argsort,
    argtopk as argtopk,
    sort as sort,
)
from burnbook.ops.spectrum import (
    fft_pairs as fft_pairs,
    irfft_back as irfft_back,
    irfft_pairs as irfft_pairs,
    rfft_back as rfft_back,
    rfft_pairs as rfft_pairs,
)
from burnbook.ops.trigonometry import (
    acos as acos,
    acosh as acosh,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    cosh as cosh,
    hypot as hypot,
    sinh as sinh,
    tan as tan,
)
from burnbook.ops.unfold import fold4d as fold4d, unfold4d as unfold4d
