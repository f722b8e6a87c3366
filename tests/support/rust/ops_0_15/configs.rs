//! Configs, and modules under several settings.
use super::*;

macro_rules! config {
    ($op:literal, $config:expr) => {{
        let text = $config.to_string();
        let mut more = Map::new();
        more.insert("config".into(), serde_json::from_str(&text).unwrap());
        let call = Call {
            group: "config",
            op: $op,
            call: "",
            inputs: vec![],
            args: Map::new(),
            more,
        };
        push(call, || text.outputs());
    }};
}

pub fn configs() {
    let c = 1 + below(3);
    let (a, b) = (2 * c * (1 + below(4)), 2 * c * (1 + below(3)));
    let real = || pick(&[0.1, 1e-5, 1e-7, 0.25, 0.999, 1e-10, 0.30000000000000004]);
    config! { "LinearConfig", LinearConfig::new(a, b).with_bias(percent(50))
    .with_initializer(initializer()) }
    config! { "EmbeddingConfig", EmbeddingConfig::new(a, b).with_initializer(initializer()) }
    config! { "Conv1dConfig", Conv1dConfig::new(a, b, c).with_padding(padding_1d())
    .with_initializer(initializer()).with_groups(c) }
    config! { "Conv2dConfig", Conv2dConfig::new([a, b], [c, 2]).with_padding(padding_2d())
    .with_stride([c, 1]).with_bias(false).with_initializer(initializer()) }
    config! { "Conv3dConfig", Conv3dConfig::new([a, b], [c, 2, 1])
    .with_padding(PaddingConfig3d::Explicit(a, b, c)).with_dilation([1, c, 2]) }
    config! { "ConvTranspose1dConfig", ConvTranspose1dConfig::new([a, b], c).with_padding_out(c) }
    config! { "ConvTranspose2dConfig", ConvTranspose2dConfig::new([a, b], [c, c])
    .with_padding([a, c]).with_groups(2) }
    config! { "ConvTranspose3dConfig", ConvTranspose3dConfig::new([a, b], [c, c, 1])
    .with_stride([a, 1, c]) }
    config! { "DeformConv2dConfig", DeformConv2dConfig::new([a, b], [c, c]).with_offset_groups(c)
    .with_padding(padding_2d()) }
    config! { "AvgPool1dConfig", AvgPool1dConfig::new(a).with_padding(padding_1d()) }
    config! { "AvgPool2dConfig", AvgPool2dConfig::new([a, b]).with_count_include_pad(false) }
    config! { "MaxPool1dConfig", MaxPool1dConfig::new(a).with_dilation(c) }
    config! { "MaxPool2dConfig", MaxPool2dConfig::new([a, b]).with_padding(padding_2d()) }
    config! { "AdaptiveAvgPool1dConfig", AdaptiveAvgPool1dConfig::new(a) }
    config! { "AdaptiveAvgPool2dConfig", AdaptiveAvgPool2dConfig::new([a, b]) }
    config! { "Unfold4dConfig", Unfold4dConfig::new([a, b]).with_padding([c, 0]) }
    config! { "Interpolate1dConfig", Interpolate1dConfig::new().with_output_size(Some(a))
    .with_mode(InterpolateMode::Cubic) }
    config! { "Interpolate2dConfig", Interpolate2dConfig::new()
    .with_scale_factor(Some([positive(), 2.0])).with_mode(InterpolateMode::Linear) }
    config! { "BatchNormConfig", BatchNormConfig::new(a).with_epsilon(real()).with_momentum(real()) }
    config! { "LayerNormConfig", LayerNormConfig::new(a).with_epsilon(real()) }
    config! { "GroupNormConfig", GroupNormConfig::new(c, b).with_epsilon(real()).with_affine(false) }
    config! { "InstanceNormConfig", InstanceNormConfig::new(a).with_epsilon(real()) }
    config! { "RmsNormConfig", RmsNormConfig::new(a).with_epsilon(real()) }
    config! { "DropoutConfig", DropoutConfig::new(real()) }
    config! { "PReluConfig", PReluConfig::new().with_num_parameters(a).with_alpha(real()) }
    config! { "LeakyReluConfig", LeakyReluConfig::new().with_negative_slope(real()) }
    config! { "HardSigmoidConfig", HardSigmoidConfig::new().with_alpha(real()).with_beta(real()) }
    config! { "SwiGluConfig", SwiGluConfig::new(a, b).with_bias(percent(50))
    .with_initializer(initializer()) }
    config! { "PositionWiseFeedForwardConfig", PositionWiseFeedForwardConfig::new(a, b)
    .with_dropout(real()).with_initializer(initializer()) }
    config! { "LstmConfig", LstmConfig::new(a, b, percent(50)).with_initializer(initializer()) }
    config! { "BiLstmConfig", BiLstmConfig::new(a, b, percent(50)).with_initializer(initializer()) }
    config! { "GruConfig", GruConfig::new(a, b, percent(50)).with_initializer(initializer()) }
    config! { "MultiHeadAttentionConfig", MultiHeadAttentionConfig::new(a, c).with_min_float(-real())
    .with_quiet_softmax(true).with_dropout(real()).with_initializer(initializer()) }
    config! { "TransformerEncoderConfig", TransformerEncoderConfig::new(a, b, c, 1)
    .with_norm_first(true).with_dropout(real()).with_initializer(initializer()) }
    config! { "TransformerDecoderConfig", TransformerDecoderConfig::new(a, b, c, 1)
    .with_quiet_softmax(true).with_initializer(initializer()) }
    config! { "PositionalEncodingConfig", PositionalEncodingConfig::new(a)
    .with_max_sequence_size(b).with_max_timescale(b + c) }
    config! { "RotaryEncodingConfig", RotaryEncodingConfig::new(a, b).with_theta(real() as f32) }
    config! { "CrossEntropyLossConfig", CrossEntropyLossConfig::new()
    .with_pad_tokens(Some(vec![a, b])).with_weights(Some(vec![positive(), 1.0]))
    .with_smoothing(Some(real() as f32)).with_logits(percent(50)) }
    config! { "BinaryCrossEntropyLossConfig", BinaryCrossEntropyLossConfig::new()
    .with_weights(Some(vec![positive(), 0.1])).with_smoothing(Some(real() as f32)) }
    config! { "HuberLossConfig", HuberLossConfig::new(real() as f32) }
    let decay = Some(WeightDecayConfig::new(real()));
    let momentum = Some(
        MomentumConfig::new()
            .with_momentum(real())
            .with_nesterov(percent(50)),
    );
    let clipping = pick(&[
        Some(GradientClippingConfig::Norm(2.5)),
        Some(GradientClippingConfig::Value(0.5)),
        None,
    ]);
    config! { "SgdConfig", SgdConfig::new().with_weight_decay(decay.clone())
    .with_momentum(momentum.clone()).with_gradient_clipping(clipping.clone()) }
    config! { "AdamConfig", AdamConfig::new().with_weight_decay(decay.clone())
    .with_beta_1(0.5).with_beta_2(real() as f32).with_epsilon(real() as f32)
    .with_grad_clipping(clipping.clone()) }
    config! { "AdamWConfig", AdamWConfig::new().with_weight_decay(real() as f32)
    .with_epsilon(real() as f32).with_grad_clipping(clipping.clone()) }
    config! { "AdaGradConfig", AdaGradConfig::new().with_weight_decay(decay.clone())
    .with_lr_decay(real()).with_epsilon(real() as f32).with_grad_clipping(clipping.clone()) }
    config! { "RmsPropConfig", RmsPropConfig::new().with_centered(true).with_alpha(0.5)
    .with_momentum(0.25).with_weight_decay(decay)
    .with_epsilon(real() as f32).with_grad_clipping(clipping) }
}

/// Modules under several settings: any layer, made from its config.
pub fn modules() {
    macro_rules! shown {
        ($name:literal, $config:ident, $init:expr) => {{
            let made = $init;
            let text = $config.to_string();
            let mut more = Map::new();
            more.insert("config".into(), serde_json::from_str(&text).unwrap());
            let module = $name;
            let settings = [
                (
                    "all_attributes",
                    DisplaySettings::new()
                        .with_show_all_attributes(true)
                        .with_show_num_parameters(true),
                ),
                (
                    "one_line",
                    DisplaySettings::new().with_new_line_after_attribute(false),
                ),
                (
                    "more_lines",
                    DisplaySettings::new()
                        .with_new_line_after_attribute(true)
                        .with_indentation_size(4),
                ),
                (
                    "no_count",
                    DisplaySettings::new().with_show_num_parameters(false),
                ),
            ];
            for (op, settings) in settings {
                let call = Call {
                    group: "module",
                    op,
                    call: stringify!($init),
                    inputs: vec![],
                    args: told!(module),
                    more: more.clone(),
                };
                let made = made.clone();
                push(call, move || {
                    burn::module::ModuleDisplay::format(&made, settings).outputs()
                });
            }
        }};
    }
    let (a, b, c) = (1 + below(5), 1 + below(5), 1 + below(3));
    let config = Conv1dConfig::new(a, b, c)
        .with_padding(padding_1d())
        .with_bias(percent(50));
    shown! { "Conv1d", config, config.init::<B>(&device()) }
    let config = Conv2dConfig::new([a, b], [c, 2])
        .with_padding(padding_2d())
        .with_bias(false);
    shown! { "Conv2d", config, config.init::<B>(&device()) }
    let config = Conv3dConfig::new([a, b], [c, 2, 1]).with_stride([c, 1, 1]);
    shown! { "Conv3d", config, config.init::<B>(&device()) }
    let config = ConvTranspose1dConfig::new([a, b], c).with_padding_out(1);
    shown! { "ConvTranspose1d", config, config.init::<B>(&device()) }
    let config = ConvTranspose2dConfig::new([a, b], [c, 1]).with_padding([1, 2]);
    shown! { "ConvTranspose2d", config, config.init::<B>(&device()) }
    let config = ConvTranspose3dConfig::new([a, b], [c, 1, 2]);
    shown! { "ConvTranspose3d", config, config.init::<B>(&device()) }
    let config = DeformConv2dConfig::new([a, b], [c, 1]).with_padding(padding_2d());
    shown! { "DeformConv2d", config, config.init::<B>(&device()) }
    let config = LinearConfig::new(a, b).with_bias(percent(50));
    shown! { "Linear", config, config.init::<B>(&device()) }
    let config = EmbeddingConfig::new(a, b);
    shown! { "Embedding", config, config.init::<B>(&device()) }
    let config = LayerNormConfig::new(a).with_epsilon(1e-7);
    shown! { "LayerNorm", config, config.init::<B>(&device()) }
    let config = RmsNormConfig::new(a).with_epsilon(0.5);
    shown! { "RmsNorm", config, config.init::<B>(&device()) }
    let config = GroupNormConfig::new(1, a).with_affine(percent(50));
    shown! { "GroupNorm", config, config.init::<B>(&device()) }
    let config = InstanceNormConfig::new(a).with_affine(percent(50));
    shown! { "InstanceNorm", config, config.init::<B>(&device()) }
    let config = PReluConfig::new().with_num_parameters(a);
    shown! { "PRelu", config, config.init::<B>(&device()) }
    let config = SwiGluConfig::new(a, b);
    shown! { "SwiGlu", config, config.init::<B>(&device()) }
    let config = PositionWiseFeedForwardConfig::new(a, b);
    shown! { "PositionWiseFeedForward", config, config.init::<B>(&device()) }
    let config = BiLstmConfig::new(a, b, percent(50));
    shown! { "BiLstm", config, config.init::<B>(&device()) }
    let config = MultiHeadAttentionConfig::new(4, 2).with_quiet_softmax(percent(50));
    shown! { "MultiHeadAttention", config, config.init::<B>(&device()) }
    let config = TransformerDecoderConfig::new(4, a, 2, c).with_norm_first(percent(50));
    shown! { "TransformerDecoder", config, config.init::<B>(&device()) }
    let config = TransformerEncoderConfig::new(4, a, 2, c).with_norm_first(percent(50));
    shown! { "TransformerEncoder", config, config.init::<B>(&device()) }
    let config = PositionalEncodingConfig::new(4).with_max_sequence_size(a);
    shown! { "PositionalEncoding", config, config.init::<B>(&device()) }
    let config = RotaryEncodingConfig::new(a, 4);
    shown! { "RotaryEncoding", config, config.init::<B>(&device()) }
    let config = AvgPool1dConfig::new(a).with_padding(padding_1d());
    shown! { "AvgPool1d", config, config.init() }
    let config = AvgPool2dConfig::new([a, b]).with_padding(padding_2d());
    shown! { "AvgPool2d", config, config.init() }
    let config = MaxPool1dConfig::new(a).with_padding(padding_1d());
    shown! { "MaxPool1d", config, config.init() }
    let config = MaxPool2dConfig::new([a, b]).with_padding(padding_2d());
    shown! { "MaxPool2d", config, config.init() }
    let config = AdaptiveAvgPool1dConfig::new(a);
    shown! { "AdaptiveAvgPool1d", config, config.init() }
    let config = AdaptiveAvgPool2dConfig::new([a, b]);
    shown! { "AdaptiveAvgPool2d", config, config.init() }
    let config = Unfold4dConfig::new([a, b]);
    shown! { "Unfold4d", config, config.init() }
    let config = Interpolate1dConfig::new().with_output_size(Some(a));
    shown! { "Interpolate1d", config, config.clone().init() }
    let config = Interpolate2dConfig::new().with_scale_factor(Some([0.5, 1.5]));
    shown! { "Interpolate2d", config, config.clone().init() }
    let config = LeakyReluConfig::new().with_negative_slope(1e-6);
    shown! { "LeakyRelu", config, config.init() }
    let config = HardSigmoidConfig::new();
    shown! { "HardSigmoid", config, config.init() }
    let config = HuberLossConfig::new(0.3);
    shown! { "HuberLoss", config, config.init() }
    let config = CrossEntropyLossConfig::new()
        .with_smoothing(Some(0.1))
        .with_logits(false);
    shown! { "CrossEntropyLoss", config, config.init::<B>(&device()) }
    let config = BinaryCrossEntropyLossConfig::new().with_weights(Some(vec![1.0, 0.1]));
    shown! { "BinaryCrossEntropyLoss", config, config.init::<B>(&device()) }
}
