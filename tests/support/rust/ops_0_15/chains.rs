//! A few operations in a row, and larger sizes.
use super::*;

pub fn chains() {
    let (a, b) = (3 + below(3), 3 + below(3));
    let (x, y) = (numbers([a, 5]), numbers([5, 4]));
    case! { "chain", "slice_matmul", [x, y], {}, x.slice([1..3]).matmul(y.slice([0..5, 1..3])) }
    let x = floats([1, 3]);
    case! { "chain", "expand_flip_mul", [x], {},
    x.clone().expand([4, 3]).mul(x.expand([4, 3]).flip([0, 1])).sum_dim(0) }
    let x = numbers([a, b]);
    grad! { "chain", "flip_transpose_sort", [x], [], {}, x.flip([1]).transpose().sort(1) }
    let (kept, x) = (x, under([a, b], 90));
    case! { "chain", "transpose_sum_dim", [x], {}, x.transpose().sum_dim(1) / 2 }
    let x = kept;
    case! { "chain", "transpose_var", [x], {}, x.transpose().var(1) }
    case! { "chain", "transpose_display", [x], {}, x.transpose().to_string() }
    case! { "chain", "repeat_chunk", [x], {}, x.repeat(&[2, 1]).chunk(2, 0) }
    let y = numbers([a, 4]);
    case! { "chain", "transpose_matmul", [x, y], {}, x.transpose().matmul(y) }
    case! { "chain", "clamp_int_remainder", [x], {},
    ((x * 10.0).clamp(-7.0, 9.0).int() % 4).float() / 3.0 }
    let i = under([b, 2], a.min(b));
    case! { "chain", "transpose_gather", [x, i], {}, x.transpose().gather(0, i.slice([0..b])) }
    let y = numbers([a, b]);
    case! { "chain", "stack_narrow_squeeze", [x, y], {},
    F::stack::<3>(vec![x, y], 1).narrow(1, 1, 1).squeeze::<2>(1) }
    let x = numbers([2, a, b]);
    case! { "chain", "permute_softmax", [x], {}, softmax(x.permute([1, 2, 0]), 1) }
    let (x, w) = (numbers([1, 5, a + 1, 2]), numbers([3, 2, 3, 3]));
    grad! { "chain", "permute_conv2d", [x, w], [], {},
    functional::conv2d(x.permute([0, 3, 1, 2]), w.transpose(), None,
        ConvOptions::new([1, 1], [1, 0], [1, 1], 1)) }
    let x = numbers([3, 4]);
    case! { "chain", "expand_topk", [x], {},
    x.unsqueeze_dim::<3>(1).expand([3, 2, 4]).topk(2, 2) }
    let x = truths([a, b]);
    case! { "chain", "transpose_argwhere", [x], {}, x.transpose().bool_not().argwhere() }
}

pub fn larger() {
    let x = floats([50 + below(40), 70 + below(20)]);
    let y = floats(x.dims());
    let dim = below(2);
    case! { "larger", "tanh", [x], {}, x.tanh() }
    case! { "larger", "argsort", [x], {dim}, x.argsort(dim) }
    let x = if percent(50) { x } else { numbers(x.dims()) };
    case! { "larger", "exp", [x], {}, x.exp() }
    case! { "larger", "log", [x], {}, x.log() }
    case! { "larger", "erf", [x], {}, x.erf() }
    case! { "larger", "sqrt", [x], {}, x.sqrt() }
    case! { "larger", "max_dim", [x], {dim}, x.max_dim(dim) }
    case! { "larger", "argmax", [x], {dim}, x.argmax(dim) }
    case! { "larger", "sort", [x], {dim}, x.sort(dim) }
    case! { "larger", "add", [x, y], {}, x.add(y) }
    case! { "larger", "div", [x, y], {}, x.div(y) }
    case! { "larger", "greater", [x, y], {}, x.greater(y) }
    case! { "larger", "max_pair", [x, y], {}, x.max_pair(y) }
    case! { "larger", "powf", [x, y], {}, x.powf(y) }
    case! { "larger", "gelu", [x], {}, gelu(x) }
    case! { "larger", "sigmoid", [x], {}, sigmoid(x) }
    case! { "larger", "silu", [x], {}, silu(x) }
    case! { "larger", "mish", [x], {}, mish(x) }
    case! { "larger", "log_sigmoid", [x], {}, log_sigmoid(x) }
    case! { "larger", "softmax", [x], {dim}, softmax(x, dim) }
    case! { "larger", "log_softmax", [x], {dim}, log_softmax(x, dim) }
    let x = numbers([33, 41]);
    case! { "larger", "sum_dim", [x], {dim}, x.sum_dim(dim) }
    case! { "larger", "mean_dim", [x], {dim}, x.mean_dim(dim) }
    case! { "larger", "var", [x], {dim}, x.var(dim) }
    let dim = 1;
    grad! { "larger", "softmax", [x], [], {dim}, softmax(x, dim) }
    let y = numbers([41, 37]);
    grad! { "larger", "matmul", [x, y], [], {}, x.matmul(y) }
    let x = ints([2000]);
    let dim = 0;
    case! { "larger", "sort", [x], {dim}, x.sort(dim) }
    case! { "larger", "sum", [x], {}, x.sum() }
    let x = numbers([2, 3, 15, 13]);
    let config = Conv2dConfig::new([3, 8], [3, 3]).with_padding(padding_2d());
    trained! { "larger", "Conv2d", config, m = config.init::<Ad>(&device()), [x], [], {},
    m.forward(x) }
    let config = ConvTranspose2dConfig::new([3, 4], [3, 3]).with_stride([2, 2]);
    trained! { "larger", "ConvTranspose2d", config, m = config.init::<Ad>(&device()), [x], [], {},
    m.forward(x) }
    let dims = 2;
    let config = BatchNormConfig::new(3);
    trained! { "larger", "BatchNorm", config, m = config.init::<Ad, 2>(&device()), [x], [], {dims},
    m.forward(x) }
    let config = MaxPool2dConfig::new([2, 2]).with_strides([2, 2]);
    layer! { "larger", "MaxPool2d", config, m = config.init(), [x], {}, m.forward(x) }
    let config = AvgPool2dConfig::new([3, 3]);
    layer! { "larger", "AvgPool2d", config, m = config.init(), [x], {}, m.forward(x) }
    let x = numbers([40, 36]);
    let config = LayerNormConfig::new(36);
    trained! { "larger", "LayerNorm", config, m = config.init::<Ad>(&device()), [x], [], {},
    m.forward(x) }
    let config = LinearConfig::new(36, 21);
    trained! { "larger", "Linear", config, m = config.init::<Ad>(&device()), [x], [], {},
    m.forward(x) }
    let x = numbers([3, 7, 5]);
    let config = BiLstmConfig::new(5, 8, true);
    trained! { "larger", "BiLstm", config, m = config.init::<Ad>(&device()), [x], [], {},
    m.forward(x, None).0 }
}
