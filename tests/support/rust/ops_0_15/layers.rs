//! Layers and losses, from their configs.
use super::*;

pub fn initializer() -> Initializer {
    pick(&[
        Initializer::Zeros,
        Initializer::Ones,
        Initializer::Constant { value: 0.25 },
        Initializer::Uniform {
            min: -0.5,
            max: 1e-7,
        },
        Initializer::Normal {
            mean: 0.5,
            std: 2.0,
        },
        Initializer::XavierUniform { gain: 1.5 },
        Initializer::XavierNormal { gain: 1.0 },
        Initializer::KaimingNormal {
            gain: 0.5,
            fan_out_only: true,
        },
    ])
}

pub fn padding_1d() -> PaddingConfig1d {
    pick(&[
        PaddingConfig1d::Valid,
        PaddingConfig1d::Same,
        PaddingConfig1d::Explicit(1),
    ])
}

pub fn padding_2d() -> PaddingConfig2d {
    pick(&[
        PaddingConfig2d::Valid,
        PaddingConfig2d::Same,
        PaddingConfig2d::Explicit(1, 0),
        PaddingConfig2d::Explicit(1, 1),
    ])
}

pub fn norms<const D: usize>() {
    let mut sizes = full_shape::<D>().map(|size| size + 2); // gradients of two values cancel
    sizes[1 % D] = 4;
    let wrong = percent(8);
    let n = if wrong { 3 } else { 4 };
    let x = numbers(sizes);
    let epsilon = pick(&[1e-5, 0.1, 1e-3]);
    let config = GroupNormConfig::new(if D == 2 { pick(&[1, 4]) } else { pick(&[1, 2]) }, n)
        .with_epsilon(epsilon)
        .with_affine(percent(60));
    layer! { "layer", "GroupNorm", config, m = config.init::<B>(&device()), [x], {}, m.forward(x) }
    trained! { "gradient", "GroupNorm", config, m = config.init::<Ad>(&device()), [x], [], {},
    m.forward(x) }
    let config = InstanceNormConfig::new(n)
        .with_epsilon(epsilon)
        .with_affine(wrong || percent(60));
    layer! { "layer", "InstanceNorm", config, m = config.init::<B>(&device()), [x], {},
    m.forward(x) }
    trained! { "gradient", "InstanceNorm", config, m = config.init::<Ad>(&device()), [x], [], {},
    m.forward(x) }
    let config = BatchNormConfig::new(n)
        .with_epsilon(epsilon)
        .with_momentum(pick(&[0.1, 0.5]));
    macro_rules! batch_norm {
        ($($dims:literal)*) => {$(if D == $dims + 2 {
            let dims = $dims;
            layer! { "layer", "BatchNorm", config, m = config.init::<B, $dims>(&device()), [x],
                {dims}, m.forward(x) }
            trained! { "gradient", "BatchNorm", config, m = config.init::<Ad, $dims>(&device()),
                [x], [], {dims}, m.forward(x) }
            let y = numbers(sizes);
            layer! { "layer", "BatchNormTraining", config,
                m = config.init::<B, $dims>(&device()), [x, y], {dims}, {
                let _ = m;
                let norm = config.init::<Ad, $dims>(&device());
                let (one, other) = (norm.forward(x.lift()), norm.forward(y.lift()));
                let norm = norm.valid();
                let told = (norm.running_mean.value_sync(), norm.running_var.value_sync());
                ((one, other), told, norm.forward(x))
            } }
        })*};
    }
    batch_norm!(0 1 2 3);
    sizes[D - 1] = 4;
    let x = numbers(sizes);
    let config = LayerNormConfig::new(n).with_epsilon(epsilon);
    layer! { "layer", "LayerNorm", config, m = config.init::<B>(&device()), [x], {}, m.forward(x) }
    trained! { "gradient", "LayerNorm", config, m = config.init::<Ad>(&device()), [x], [], {},
    m.forward(x) }
    let config = RmsNormConfig::new(n).with_epsilon(epsilon);
    layer! { "layer", "RmsNorm", config, m = config.init::<B>(&device()), [x], {}, m.forward(x) }
    trained! { "gradient", "RmsNorm", config, m = config.init::<Ad>(&device()), [x], [], {},
    m.forward(x) }
    let out = 1 + below(5);
    let config = LinearConfig::new(n, out)
        .with_bias(percent(60))
        .with_initializer(initializer());
    layer! { "layer", "Linear", config, m = config.init::<B>(&device()), [x], {}, m.forward(x) }
    trained! { "gradient", "Linear", config, m = config.init::<Ad>(&device()), [x], [], {},
    m.forward(x) }
    let config = SwiGluConfig::new(n, out).with_bias(percent(50));
    layer! { "layer", "SwiGlu", config, m = config.init::<B>(&device()), [x], {}, m.forward(x) }
    trained! { "gradient", "SwiGlu", config, m = config.init::<Ad>(&device()), [x], [], {},
    m.forward(x) }
    let config = PositionWiseFeedForwardConfig::new(n, 3).with_dropout(0.0);
    layer! { "layer", "PositionWiseFeedForward", config, m = config.init::<B>(&device()), [x], {},
    m.forward(x) }
    trained! { "gradient", "PositionWiseFeedForward", config, m = config.init::<Ad>(&device()),
    [x], [], {}, m.forward(x) }
    let config = PReluConfig::new()
        .with_num_parameters(if percent(50) { 1 } else { sizes[1 % D] })
        .with_alpha(pick(&[0.25, -1.0]));
    layer! { "layer", "PRelu", config, m = config.init::<B>(&device()), [x], {}, m.forward(x) }
    trained! { "gradient", "PRelu", config, m = config.init::<Ad>(&device()), [x], [], {},
    m.forward(x) }
    let x = floats(sizes);
    let config = LeakyReluConfig::new().with_negative_slope(pick(&[0.2, 0.0, -0.5]));
    layer! { "layer", "LeakyRelu", config, m = config.init(), [x], {}, m.forward(x) }
    let config = HardSigmoidConfig::new()
        .with_alpha(pick(&[0.3, 1.0]))
        .with_beta(0.1);
    layer! { "layer", "HardSigmoid", config, m = config.init(), [x], {}, m.forward(x) }
    let config = DropoutConfig::new(pick(&[0.0, 0.3, 0.99]));
    layer! { "layer", "Dropout", config, m = config.init(), [x], {}, m.forward(x) }
    case! { "layer", "Relu", [x], {}, Relu::new().forward(x) }
    case! { "layer", "Gelu", [x], {}, Gelu::new().forward(x) }
    case! { "layer", "Sigmoid", [x], {}, Sigmoid::new().forward(x) }
    case! { "layer", "Tanh", [x], {}, Tanh::new().forward(x) }
}

pub fn sliding() {
    let two = |least: usize, most: usize| [least + below(most), least + below(most)];
    let three =
        |least: usize, most: usize| std::array::from_fn::<usize, 3, _>(|_| least + below(most));
    let wrong = usize::from(percent(6));
    for _ in 0..3 {
        let groups = pick(&[1, 1, 2]);
        let x = numbers([1 + below(3), 2 + wrong, 6 + below(5)]);
        let config = Conv1dConfig::new(2, 4, 1 + below(4))
            .with_stride(1 + below(3))
            .with_dilation(1 + below(2))
            .with_groups(groups)
            .with_padding(padding_1d())
            .with_bias(percent(60))
            .with_initializer(initializer());
        layer! { "layer", "Conv1d", config, m = config.init::<B>(&device()), [x], {}, m.forward(x) }
        trained! { "gradient", "Conv1d", config, m = config.init::<Ad>(&device()), [x], [], {},
        m.forward(x) }
        let config = ConvTranspose1dConfig::new([2, 4], 1 + below(4))
            .with_stride(1 + below(3))
            .with_dilation(1 + below(2))
            .with_groups(groups)
            .with_padding(below(2))
            .with_padding_out(below(2))
            .with_bias(percent(60));
        layer! { "layer", "ConvTranspose1d", config, m = config.init::<B>(&device()), [x], {},
        m.forward(x) }
        trained! { "gradient", "ConvTranspose1d", config, m = config.init::<Ad>(&device()), [x], [],
        {}, m.forward(x) }
        let x = numbers([1 + below(2), 2, 5 + below(4), 5 + below(4)]);
        let config = Conv2dConfig::new([2, 4], two(1, 3))
            .with_stride(two(1, 2))
            .with_dilation(two(1, 2))
            .with_groups(groups)
            .with_padding(padding_2d())
            .with_bias(percent(60))
            .with_initializer(initializer());
        layer! { "layer", "Conv2d", config, m = config.init::<B>(&device()), [x], {}, m.forward(x) }
        trained! { "gradient", "Conv2d", config, m = config.init::<Ad>(&device()), [x], [], {},
        m.forward(x) }
        let config = ConvTranspose2dConfig::new([2, 4], two(1, 3))
            .with_stride(two(1, 2))
            .with_dilation(two(1, 2))
            .with_groups(groups)
            .with_padding(two(0, 2))
            .with_padding_out(two(0, 2))
            .with_bias(percent(60));
        layer! { "layer", "ConvTranspose2d", config, m = config.init::<B>(&device()), [x], {},
        m.forward(x) }
        trained! { "gradient", "ConvTranspose2d", config, m = config.init::<Ad>(&device()), [x], [],
        {}, m.forward(x) }
        let x = numbers([1, 2, 4, 3 + below(3), 5]);
        let config = Conv3dConfig::new([2, 2], three(1, 3))
            .with_stride(three(1, 2))
            .with_groups(groups)
            .with_bias(percent(60))
            .with_padding(pick(&[
                PaddingConfig3d::Valid,
                PaddingConfig3d::Explicit(1, 0, 2),
                PaddingConfig3d::Same,
            ]));
        layer! { "layer", "Conv3d", config, m = config.init::<B>(&device()), [x], {}, m.forward(x) }
        trained! { "gradient", "Conv3d", config, m = config.init::<Ad>(&device()), [x], [], {},
        m.forward(x) }
        let x = numbers([1, 2, 2, 3, 2]);
        let config = ConvTranspose3dConfig::new([2, 2], three(1, 2))
            .with_stride(three(1, 2))
            .with_groups(groups)
            .with_bias(percent(60))
            .with_padding(three(0, 2))
            .with_padding_out(three(0, 2))
            .with_dilation(three(1, 2));
        layer! { "layer", "ConvTranspose3d", config, m = config.init::<B>(&device()), [x], {},
        m.forward(x) }
        trained! { "gradient", "ConvTranspose3d", config, m = config.init::<Ad>(&device()), [x], [],
        {}, m.forward(x) }
        let (weight_groups, offset_groups) = (pick(&[1, 2]), pick(&[1, 1, 2]));
        let x = straight([1, 2, 5, 4]);
        let offset = straight([1, 8 * offset_groups, 4, 3]) * 0.8;
        let mask = straight([1, 4 * offset_groups, 4, 3]);
        let config = DeformConv2dConfig::new([2, 4], [2, 2])
            .with_weight_groups(weight_groups)
            .with_offset_groups(offset_groups)
            .with_bias(percent(60));
        layer! { "layer", "DeformConv2d", config, m = config.init::<B>(&device()),
        [x, offset, mask], {}, m.forward(x, offset, Some(mask)) }
        layer! { "layer", "DeformConv2d", config, m = config.init::<B>(&device()),
        [x, offset], {}, m.forward(x, offset, None) }
    }
}

pub fn pooling() {
    let two = |least: usize, most: usize| [least + below(most), least + below(most)];
    for _ in 0..4 {
        let x = floats([1 + below(2), 2, 4 + below(6)]);
        let config = AvgPool1dConfig::new(1 + below(3))
            .with_stride(1 + below(3))
            .with_padding(padding_1d())
            .with_count_include_pad(percent(50));
        layer! { "layer", "AvgPool1d", config, m = config.init(), [x], {}, m.forward(x) }
        let config = MaxPool1dConfig::new(2 + below(2))
            .with_stride(1 + below(3))
            .with_padding(padding_1d())
            .with_dilation(1 + below(2));
        layer! { "layer", "MaxPool1d", config, m = config.init(), [x], {}, m.forward(x) }
        let config = AdaptiveAvgPool1dConfig::new(1 + below(11));
        layer! { "layer", "AdaptiveAvgPool1d", config, m = config.init(), [x], {}, m.forward(x) }
        let x = numbers(x.dims());
        let modes = [
            InterpolateMode::Nearest,
            InterpolateMode::Linear,
            InterpolateMode::Cubic,
        ];
        let config = match percent(60) {
            true => Interpolate1dConfig::new().with_output_size(Some(1 + below(12))),
            _ => Interpolate1dConfig::new().with_scale_factor(Some(pick(&[0.5, 2.0, 1.3, 0.3]))),
        };
        let config = config.with_mode(pick(&modes));
        layer! { "layer", "Interpolate1d", config, m = config.clone().init(), [x], {},
        m.forward(x) }
        let (kernel_size, stride, padding, dilation) = (2, 1 + below(2), below(2), 1);
        case! { "layer", "max_pool1d_with_indices", [x], {kernel_size, stride, padding, dilation},
        burn::tensor::module::max_pool1d_with_indices(
            x, kernel_size, stride, padding, dilation) }
        let side = 4 + below(4);
        let x = numbers([1 + below(2), 2, side, if percent(50) { side } else { 5 }]);
        let config = AvgPool2dConfig::new(two(1, 3))
            .with_strides(two(1, 2))
            .with_padding(padding_2d())
            .with_count_include_pad(percent(50));
        layer! { "layer", "AvgPool2d", config, m = config.init(), [x], {}, m.forward(x) }
        let config = MaxPool2dConfig::new(two(2, 2))
            .with_strides(two(1, 2))
            .with_padding(padding_2d())
            .with_dilation(two(1, 2));
        layer! { "layer", "MaxPool2d", config, m = config.init(), [x], {}, m.forward(x) }
        let config = AdaptiveAvgPool2dConfig::new(two(1, 8));
        layer! { "layer", "AdaptiveAvgPool2d", config, m = config.init(), [x], {}, m.forward(x) }
        let config = Unfold4dConfig::new(two(1, 3))
            .with_stride(two(1, 2))
            .with_padding(two(0, 2))
            .with_dilation(two(1, 2));
        layer! { "layer", "Unfold4d", config, m = config.init(), [x], {}, m.forward(x) }
        let config = match percent(60) {
            true => Interpolate2dConfig::new().with_output_size(Some(two(1, 9))),
            _ => Interpolate2dConfig::new()
                .with_scale_factor(Some([pick(&[0.5, 2.0, 1.3]), pick(&[1.0, 0.7])])),
        };
        let config = config.with_mode(pick(&modes));
        layer! { "layer", "Interpolate2d", config, m = config.clone().init(), [x], {},
        m.forward(x) }
        let (kernel_size, stride, padding, dilation) = (two(2, 2), two(1, 2), two(0, 2), [1, 1]);
        case! { "layer", "max_pool2d_with_indices", [x], {kernel_size, stride, padding, dilation},
        burn::tensor::module::max_pool2d_with_indices(
            x, kernel_size, stride, padding, dilation) }
    }
}

pub fn sequences() {
    let (b, n, d) = (1 + below(3), 1 + below(4), 1 + below(3));
    let h = 1 + below(4);
    let x = numbers([b, n, d]);
    let config = LstmConfig::new(d, h, percent(60));
    layer! { "layer", "Lstm", config, m = config.init::<B>(&device()), [x], {}, {
        let (y, state) = m.forward(x, None);
        (y, state.cell, state.hidden)
    } }
    let (cell, hidden) = (numbers([b, h]), numbers([b, h]));
    layer! { "layer", "Lstm", config, m = config.init::<B>(&device()), [x, cell, hidden], {}, {
        let (y, state) = m.forward(x, Some(LstmState::new(cell, hidden)));
        (y, state.cell, state.hidden)
    } }
    trained! { "gradient", "Lstm", config, m = config.init::<Ad>(&device()), [x], [], {},
    m.forward(x, None).0 }
    let config = BiLstmConfig::new(d, h, percent(60));
    layer! { "layer", "BiLstm", config, m = config.init::<B>(&device()), [x], {}, {
        let (y, state) = m.forward(x, None);
        (y, state.cell, state.hidden)
    } }
    let (cell, hidden) = (numbers([2, b, h]), numbers([2, b, h]));
    layer! { "layer", "BiLstm", config, m = config.init::<B>(&device()), [x, cell, hidden], {}, {
        let (y, state) = m.forward(x, Some(LstmState::new(cell, hidden)));
        (y, state.cell, state.hidden)
    } }
    trained! { "gradient", "BiLstm", config, m = config.init::<Ad>(&device()), [x], [], {},
    m.forward(x, None).0 }
    let x = numbers([b, 1, d]);
    let config = GruConfig::new(d, h, percent(60));
    layer! { "layer", "Gru", config, m = config.init::<B>(&device()), [x], {}, m.forward(x, None) }
    let state = numbers([b, 1, h]);
    layer! { "layer", "Gru", config, m = config.init::<B>(&device()), [x, state], {},
    m.forward(x, Some(state)) }
    trained! { "gradient", "Gru", config, m = config.init::<Ad>(&device()), [x], [], {},
    m.forward(x, None) }
    let (b, n, model) = (1 + below(2), 2 + below(3), pick(&[4, 6]));
    let x = numbers([b, n, model]);
    let config = PositionalEncodingConfig::new(model)
        .with_max_sequence_size(4 + below(3))
        .with_max_timescale(pick(&[10_000, 100]));
    layer! { "layer", "PositionalEncoding", config, m = config.init::<B>(&device()), [x], {},
    m.forward(x) }
    let (length, d_model, max_timescale) = (1 + below(6), pick(&[2, 4, 3]), pick(&[10_000, 50]));
    case! { "layer", "generate_sinusoids", [], {length, d_model, max_timescale},
    generate_sinusoids::<B>(length, d_model, max_timescale, &device()) }
    let config = RotaryEncodingConfig::new(10, model).with_theta(pick(&[10000.0, 500.0]));
    let x = numbers([b, 2, n, model]);
    layer! { "layer", "RotaryEncoding", config, m = config.init::<B>(&device()), [x], {},
    m.forward(x) }
    let start = below(9);
    layer! { "layer", "RotaryEncoding", config, m = config.init::<B>(&device()), [x], {start},
    m.apply(x, start) }
    let (batch_size, seq_length) = (1 + below(3), 1 + below(5));
    case! { "layer", "generate_autoregressive_mask", [], {batch_size, seq_length},
    generate_autoregressive_mask::<B>(batch_size, seq_length, &device()) }
    let (pad_token, max_seq_length) = (below(2), pick(&[None, Some(2), Some(5)]));
    let tokens_list: Vec<Vec<usize>> = (0..1 + below(3))
        .map(|_| (0..1 + below(4)).map(|_| below(4)).collect())
        .collect();
    case! { "layer", "generate_padding_mask", [], {pad_token, tokens_list, max_seq_length}, {
        let made = generate_padding_mask::<B>(
            pad_token, tokens_list.clone(), max_seq_length, &device());
        (made.tensor, made.mask)
    } }
    let x = under([1 + below(3), 1 + below(3)], 5);
    let config = EmbeddingConfig::new(5, 1 + below(4)).with_initializer(initializer());
    layer! { "layer", "Embedding", config, m = config.init::<B>(&device()), [x], {}, m.forward(x) }
}

pub fn transformers() {
    let (b, n, d) = (1 + below(2), 2 + below(3), 4);
    let x = numbers([b, n, d]);
    let memory = numbers([b, 1 + below(4), d]);
    let config = MultiHeadAttentionConfig::new(d, pick(&[1, 2, 4]))
        .with_dropout(0.0)
        .with_min_float(pick(&[-1e4, -1.0]))
        .with_quiet_softmax(percent(20));
    let (mask_pad, mask_attn) = (
        filled::<_, Bool, 2>([b, n], &|| percent(20)),
        filled::<_, Bool, 3>([b, n, n], &|| percent(30)),
    );
    layer! { "layer", "MultiHeadAttention", config, m = config.init::<B>(&device()), [x], {}, {
        let out = m.forward(MhaInput::self_attn(x));
        (out.weights, out.context)
    } }
    layer! { "layer", "MultiHeadAttention", config, m = config.init::<B>(&device()),
        [x, mask_pad, mask_attn], {}, {
        let out = m.forward(MhaInput::self_attn(x).mask_pad(mask_pad).mask_attn(mask_attn));
        (out.weights, out.context)
    } }
    layer! { "layer", "MultiHeadAttention", config, m = config.init::<B>(&device()),
        [x, memory], {}, {
        let out = m.forward(MhaInput::new(x, memory.clone(), memory));
        (out.weights, out.context)
    } }
    trained! { "gradient", "MultiHeadAttention", config, m = config.init::<Ad>(&device()),
    [x], [mask_pad], {}, m.forward(MhaInput::self_attn(x).mask_pad(mask_pad)).context }
    let encoder = TransformerEncoderConfig::new(d, 1 + below(6), pick(&[1, 2]), 1 + below(2))
        .with_dropout(0.0)
        .with_norm_first(percent(50))
        .with_quiet_softmax(percent(20));
    layer! { "layer", "TransformerEncoder", encoder, m = encoder.init::<B>(&device()), [x], {},
    m.forward(TransformerEncoderInput::new(x)) }
    layer! { "layer", "TransformerEncoder", encoder, m = encoder.init::<B>(&device()),
    [x, mask_pad, mask_attn], {},
    m.forward(TransformerEncoderInput::new(x).mask_pad(mask_pad).mask_attn(mask_attn)) }
    trained! { "gradient", "TransformerEncoder", encoder, m = encoder.init::<Ad>(&device()), [x],
    [], {}, m.forward(TransformerEncoderInput::new(x)) }
    let decoder = TransformerDecoderConfig::new(d, 1 + below(6), pick(&[1, 2]), 1 + below(2))
        .with_dropout(0.0)
        .with_norm_first(percent(50))
        .with_quiet_softmax(percent(20));
    layer! { "layer", "TransformerDecoder", decoder, m = decoder.init::<B>(&device()),
    [x, memory], {}, m.forward(TransformerDecoderInput::new(x, memory)) }
    let (target_mask_pad, target_mask_attn) = (mask_pad, mask_attn);
    let memory_mask_pad = filled::<_, Bool, 2>([b, memory.dims()[1]], &|| percent(20));
    let memory_mask_attn = filled::<_, Bool, 3>([b, n, memory.dims()[1]], &|| percent(20));
    layer! { "layer", "TransformerDecoder", decoder, m = decoder.init::<B>(&device()),
    [x, memory, target_mask_pad, target_mask_attn, memory_mask_pad, memory_mask_attn], {},
    m.forward(TransformerDecoderInput::new(x, memory).target_mask_pad(target_mask_pad)
        .target_mask_attn(target_mask_attn).memory_mask_pad(memory_mask_pad)
        .memory_mask_attn(memory_mask_attn)) }
    trained! { "gradient", "TransformerDecoder", decoder, m = decoder.init::<Ad>(&device()),
    [x, memory], [], {}, m.forward(TransformerDecoderInput::new(x, memory)) }
    let x = numbers([1, n, d]);
    let memory = numbers([1, 1 + below(4), d]);
    let part = |x: &F<3>, to: usize| x.clone().slice([0..1, 0..to]);
    layer! { "layer", "MultiHeadAttentionCache", config, m = config.init::<B>(&device()), [x], {}, {
        let mut cache = MhaCache::autoregressive();
        (1..n + 1).map(|to| {
            let mask = generate_autoregressive_mask(1, to, &device());
            let given = MhaInput::self_attn(part(&x, to)).mask_attn(mask);
            let out = m.forward_cache(given, &mut cache);
            (out.weights, out.context)
        }).collect::<Vec<_>>()
    } }
    layer! { "layer", "MultiHeadAttentionCrossCache", config, m = config.init::<B>(&device()),
        [x, memory], {}, {
        let mut cache = MhaCache::autoregressive_cross_attention();
        (1..n + 1).map(|to| {
            let given = MhaInput::new(part(&x, to), memory.clone(), memory.clone());
            let out = m.forward_cache(given, &mut cache);
            (out.weights, out.context)
        }).collect::<Vec<_>>()
    } }
    layer! { "layer", "TransformerEncoderCache", encoder, m = encoder.init::<B>(&device()), [x], {}, {
        let mut cache = m.new_autoregressive_cache();
        (1..n + 1).map(|to| {
            let mask = generate_autoregressive_mask(1, to, &device());
            let given = TransformerEncoderInput::new(part(&x, to)).mask_attn(mask);
            m.forward_autoregressive_inference(given, &mut cache)
        }).collect::<Vec<_>>()
    } }
    layer! { "layer", "TransformerDecoderCache", decoder, m = decoder.init::<B>(&device()),
        [x, memory], {}, {
        let mut cache = m.new_autoregressive_cache();
        (1..n + 1).map(|to| {
            let mask = generate_autoregressive_mask(1, to, &device());
            let given = TransformerDecoderInput::new(part(&x, to), memory.clone())
                .target_mask_attn(mask);
            m.forward_autoregressive_inference(given, &mut cache)
        }).collect::<Vec<_>>()
    } }
}

pub fn losses<const D: usize>() {
    let sizes = full_shape::<D>();
    let (x, y) = (
        numbers(sizes),
        numbers(if percent(10) { partner(sizes) } else { sizes }),
    );
    for reduction in ["Mean", "Sum", "Auto"] {
        let by_name = || match reduction {
            "Mean" => Reduction::Mean,
            "Sum" => Reduction::Sum,
            _ => Reduction::Auto,
        };
        case! { "loss", "MseLoss", [x, y], {reduction}, MseLoss::new().forward(x, y, by_name()) }
        let config = HuberLossConfig::new(pick(&[0.5, 1.5, 0.05]));
        layer! { "loss", "HuberLoss", config, m = config.init(), [x, y], {reduction},
        m.forward(x, y, by_name()) }
    }
    let config = HuberLossConfig::new(0.7);
    layer! { "loss", "HuberLossNoReduction", config, m = config.init(), [x, y], {},
    m.forward_no_reduction(x, y) }
    case! { "loss", "MseLossNoReduction", [x, y], {}, MseLoss::new().forward_no_reduction(x, y) }
    let (n, classes) = (1 + below(5), 2 + below(3));
    let logits = percent(70);
    let x = if logits {
        numbers([n, classes])
    } else {
        softmax(numbers([n, classes]), 1)
    };
    let y = under([n], classes + usize::from(percent(4)));
    let weights: Vec<f32> = (0..classes).map(|_| positive()).collect();
    let config = CrossEntropyLossConfig::new()
        .with_logits(logits)
        .with_weights(percent(40).then(|| weights.clone()))
        .with_pad_tokens(pick(&[None, None, Some(vec![0]), Some(vec![0, 1])]))
        .with_smoothing(pick(&[
            None,
            None,
            Some(0.1),
            Some(0.5),
            Some(0.0),
            Some(1.0),
        ]));
    layer! { "loss", "CrossEntropyLoss", config, m = config.init::<B>(&device()), [x, y], {},
    m.forward(x, y) }
    let pad_index = pick(&[None, Some(0), Some(1)]);
    case! { "loss", "CrossEntropyLossNew", [x, y], {pad_index},
    CrossEntropyLoss::<B>::new(pad_index, &device()).forward(x, y) }
    grad! { "loss", "CrossEntropyLossGradient", [x], [y], {},
    CrossEntropyLossConfig::new().init(&device()).forward(x, y) }
    let logits = percent(50);
    let x = if logits {
        numbers(sizes)
    } else {
        sigmoid(numbers(sizes))
    };
    let y = under(sizes, 2);
    let last = if D == 1 { 1 } else { sizes[D - 1] };
    let weights: Vec<f32> = (0..last).map(|_| positive()).collect();
    let config = BinaryCrossEntropyLossConfig::new()
        .with_logits(logits)
        .with_weights((D > 1 && percent(40)).then_some(weights))
        .with_smoothing(pick(&[None, Some(0.1), Some(0.4)]));
    layer! { "loss", "BinaryCrossEntropyLoss", config, m = config.init::<B>(&device()), [x, y], {},
    m.forward(x, y) }
}
