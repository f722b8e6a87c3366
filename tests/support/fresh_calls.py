"""A first call of every public class and function, for processes that have run nothing.

A row is the name that a reader imports and an expression that uses it as a reader does,
with everything at its default. `n` is 2 or 32: the size of what it is given. Names that
are used in the row of another need no row of their own (`LinearConfig` makes `Linear`).
"""

import importlib
import re

SIZES = {"small": 2, "large": 32}


def each(names: str, text: str) -> dict[str, str]:
    """The same expression for many names, which stand in it as NAME."""
    return {name: text.replace("NAME", name) for name in names.split()}


# name: expression. `[n, 3]` is a Float input of that shape, `below(k, shape)` are whole
# numbers, `share(shape)` numbers between 0.2 and 0.8, `sign(shape)` 1 and −1.
NN = {
    "Linear": "layer(nn.LinearConfig(8, 5), [n**2, 8])",
    "Dropout": "layer(nn.DropoutConfig(0.5), [n**3, 8])",
    "GaussianNoise": "layer(nn.GaussianNoiseConfig(0.5), [n**3, 8])",
    "Identity": "layer(nn.Identity(), [n, 3])",
    "PixelShuffle": "layer(nn.PixelShuffleConfig(2), [n, 4, n, n])",
    "PixelUnshuffle": "layer(nn.PixelUnshuffleConfig(2), [n, 3, 2 * n, 2 * n])",
    "CosineSimilarity": "layer(nn.CosineSimilarityConfig(), [n**2, 8], [n**2, 8])",
    "PairwiseDistance": "layer(nn.PairwiseDistanceConfig(), [n**2, 8], [n**2, 8])",
    "Interpolate1d": (
        "layer(nn.Interpolate1dConfig().with_output_size(3 * n), [n, 3, 2 * n])"
    ),
    "Interpolate2d": (
        "layer(nn.Interpolate2dConfig().with_scale_factor([2.0, 1.5]), [n, 3, n, n])"
    ),
    "InterpolateMode": (
        "[layer(nn.Interpolate2dConfig().with_output_size([9, 7]).with_mode(mode),"
        " [n, 3, n, n]) for mode in (nn.InterpolateMode.Nearest,"
        " nn.InterpolateMode.Linear, nn.InterpolateMode.Cubic)]"
    ),
    "Unfold4d": "layer(nn.Unfold4dConfig([2, 2]), [n, 3, n, n])",
    "Fold4d": "layer(nn.Fold4dConfig([n + 1, n], [2, 1]), [2, 6, n * n])",
    "Initializer": "initialize()",
    # normalization
    "LayerNorm": "layer(nn.LayerNormConfig(16), [n, n, 16])",
    "BatchNorm": "layer(nn.BatchNormConfig(4), [n, 4, n, n])",
    "GroupNorm": "layer(nn.GroupNormConfig(2, 4), [n, 4, n, n])",
    "InstanceNorm": "layer(nn.InstanceNormConfig(4), [n, 4, n, n])",
    "RmsNorm": "layer(nn.RmsNormConfig(16), [n, n, 16])",
    "LocalResponseNorm": "layer(nn.LocalResponseNormConfig(3), [n, 4, n, n])",
    "Normalization": (
        "layer(nn.NormalizationConfig.Layer(nn.LayerNormConfig(6)), [n**2, 6])"
    ),
    # activations
    **each(
        "Relu Relu6 Gelu Sigmoid LogSigmoid Tanh SiLU Silu Swish Tanhshrink "
        "Softsign HardSwish Mish Selu",
        "layer(nn.NAME(), [n**3, 8])",
    ),
    **each(
        "Softmax LogSoftmax Softmin QuietSoftmax Glu GLU",
        "layer(nn.NAME(1), [n**3, 8])",
    ),
    **each(
        "LeakyRelu PRelu Prelu RRelu Elu Celu HardSigmoid Hardtanh Softplus "
        "Shrink HardShrink SoftShrink",
        "layer(nn.NAMEConfig(), [n**3, 8])",
    ),
    "Threshold": "layer(nn.ThresholdConfig(0.1, 0.2), [n**3, 8])",
    "ThresholdedRelu": "layer(nn.ThresholdedReluConfig(alpha=0.1), [n**3, 8])",
    "SwiGlu": "layer(nn.SwiGluConfig(8, 5), [n**2, 8])",
    "Activation": "layer(nn.ActivationConfig.Gelu, [n**2, 8])",
    # convolutions
    "Conv1d": "layer(nn.Conv1dConfig(4, 8, 3), [n, 4, 8 * n])",
    "Conv2d": "layer(nn.Conv2dConfig([4, 8], [3, 3]), [n, 4, n + 4, n + 4])",
    "Conv3d": "layer(nn.Conv3dConfig([2, 3], [2, 2, 2]), [2, 2, n, n, n])",
    "ConvTranspose1d": "layer(nn.ConvTranspose1dConfig([4, 8], 3), [n, 4, 8 * n])",
    "ConvTranspose2d": "layer(nn.ConvTranspose2dConfig([4, 3], [3, 3]), [n, 4, n, n])",
    "ConvTranspose3d": (
        "layer(nn.ConvTranspose3dConfig([2, 3], [2, 2, 2]), [2, 2, n // 2, n, n])"
    ),
    "DeformConv2d": (
        "layer(nn.DeformConv2dConfig([4, 2], [2, 2]), [1, 4, n + 1, n + 1],"
        " [1, 8, n, n], [1, 4, n, n])"
    ),
    "PaddingConfig1d": (
        "[layer(nn.Conv1dConfig(2, 3, 3).with_padding(p), [n, 2, 8 * n])"
        " for p in (nn.PaddingConfig1d.Valid, nn.PaddingConfig1d.Same)]"
    ),
    "PaddingConfig2d": (
        "layer(nn.Conv2dConfig([2, 3], [3, 3]).with_padding(nn.PaddingConfig2d.Same),"
        " [n, 2, n, n])"
    ),
    "PaddingConfig3d": (
        "layer(nn.Conv3dConfig([2, 3], [3, 3, 3])"
        ".with_padding(nn.PaddingConfig3d.Same), [2, 2, n, n, n // 2])"
    ),
    # pooling
    "AvgPool1d": "layer(nn.AvgPool1dConfig(3), [n, 4, 8 * n])",
    "AvgPool2d": "layer(nn.AvgPool2dConfig([2, 2]), [n, 4, n, n])",
    "MaxPool1d": "layer(nn.MaxPool1dConfig(3), [n, 4, 8 * n])",
    "MaxPool2d": "layer(nn.MaxPool2dConfig([2, 2]), [n, 4, n, n])",
    "AdaptiveAvgPool1d": "layer(nn.AdaptiveAvgPool1dConfig(3), [n, 4, 8 * n])",
    "AdaptiveAvgPool2d": "layer(nn.AdaptiveAvgPool2dConfig([3, 2]), [n, 4, n + 3, n])",
    "AdaptiveAvgPool3d": (
        "layer(nn.AdaptiveAvgPool3dConfig([2, 2, 2]), [2, 2, n + 1, n, n])"
    ),
    # recurrent
    "GateController": (
        "layer(nn.GateController.new(8, 5, True, KAIMING, device), [n**2, 8],"
        " [n**2, 5])"
    ),
    "Lstm": "layer(nn.LstmConfig(8, 16, True), [n, n, 8])",
    "BiLstm": "layer(nn.BiLstmConfig(8, 16, True), [n, n, 8])",
    "LstmState": (
        "nn.LstmConfig(8, 4, True).init(device).forward(some([n, n, 8]),"
        " nn.LstmState(some([n, 4]), some([n, 4])))"
    ),
    "Gru": "layer(nn.GruConfig(8, 16, True), [n, n, 8])",
    "BiGru": "layer(nn.BiGruConfig(8, 16, True), [n, n, 8])",
    "Rnn": "layer(nn.RnnConfig(8, 16, True), [n, n, 8])",
    "BiRnn": "layer(nn.BiRnnConfig(8, 16, True), [n, n, 8])",
    "RnnState": (
        "nn.RnnConfig(8, 4, True).init(device).forward(some([n, n, 8]),"
        " nn.RnnState(some([n, 4])))"
    ),
    # attention and transformers
    "Embedding": "layer(nn.EmbeddingConfig(50, 16), below(50, [n, n]))",
    "PositionalEncoding": "layer(nn.PositionalEncodingConfig(16), [n, n, 16])",
    "RotaryEncoding": "layer(nn.RotaryEncodingConfig(64, 16), [n, n, 16])",
    "MultiHeadAttention": (
        "layer(nn.MultiHeadAttentionConfig(16, 4), *3 * [[n, n, 16]],"
        " forward=lambda m, q, k, v: m.forward(nn.MhaInput.new(q, k, v)).context)"
    ),
    "MhaOutput": (
        "isinstance(nn.MultiHeadAttentionConfig(16, 4).init(device)"
        ".forward(nn.MhaInput.self_attn(some([n, n, 16]))), nn.MhaOutput)"
    ),
    "MhaCache": (
        "nn.MultiHeadAttentionConfig(16, 4).init(device.inner).forward_cache("
        "nn.MhaInput.self_attn(some([n, n, 16]).inner()),"
        " nn.MhaCache.autoregressive())"
    ),
    "CrossAttention": (
        "layer(nn.CrossAttentionConfig(16, 12, 4, 2, 8), [n, n, 16], [n, n, 12])"
    ),
    "CrossAttentionCache": (
        "nn.CrossAttentionConfig(16, 12, 4, 2, 8).init(device.inner).forward_cache("
        "some([n, 3, 16]).inner(), some([n, 5, 12]).inner(), None,"
        " nn.CrossAttentionCache.new())"
    ),
    "PositionWiseFeedForward": (
        "layer(nn.PositionWiseFeedForwardConfig(16, 32), [n, n, 16])"
    ),
    "TransformerEncoder": (
        "layer(nn.TransformerEncoderConfig(16, 32, 4, 2), [n, n, 16],"
        " forward=lambda m, x: m.forward(nn.TransformerEncoderInput.new(x)))"
    ),
    "TransformerEncoderLayer": (
        "layer(nn.TransformerEncoderLayer.new("
        "nn.TransformerEncoderConfig(16, 32, 4, 2), device), [n, n, 16])"
    ),
    "TransformerEncoderAutoregressiveCache": "write_on(encoder=True)",
    "TransformerDecoder": (
        "layer(nn.TransformerDecoderConfig(16, 32, 4, 2), [n, n, 16], [n, n, 16],"
        " forward=lambda m, x, y: m.forward(nn.TransformerDecoderInput.new(x, y)))"
    ),
    "TransformerDecoderLayer": (
        "layer(nn.TransformerDecoderLayer.new("
        "nn.TransformerDecoderConfig(16, 32, 4, 2), device), [n, n, 16], [n, n, 16],"
        " forward=lambda m, x, y: m.forward(nn.TransformerDecoderInput.new(x, y)))"
    ),
    "TransformerDecoderAutoregressiveCache": "write_on(encoder=False)",
    "TensorCache": "nn.TensorCache.empty().append(some([n, 1, 8]), 1)",
    "generate_autoregressive_mask": "nn.generate_autoregressive_mask(n, n, device)",
    "generate_padding_mask": (
        "nn.generate_padding_mask(0, [[1] * n, [2]], nn.SeqLengthOption.NoMax, device)"
    ),
    "GeneratePaddingMask": (
        "isinstance(nn.generate_padding_mask(0, [[1, 2]], 5, device),"
        " nn.GeneratePaddingMask)"
    ),
    "generate_sinusoids": "nn.generate_sinusoids(n, 8, 10_000, device)",
    # losses
    "CrossEntropyLoss": (
        "layer(nn.CrossEntropyLossConfig(), [n**2, 5], below(5, [n**2]))"
    ),
    "BinaryCrossEntropyLoss": (
        "layer(nn.BinaryCrossEntropyLossConfig().with_logits(True), [n**2],"
        " below(2, [n**2]))"
    ),
    "MseLoss": "layer(nn.MseLoss(), [n**2, 3], [n**2, 3])",
    "HuberLoss": "layer(nn.HuberLossConfig(0.5), [n**2, 3], [n**2, 3])",
    "SmoothL1Loss": "layer(nn.SmoothL1LossConfig(), [n**2, 3], [n**2, 3])",
    "LpLoss": "layer(nn.LpLossConfig(3.0), [n**2, 3], [n**2, 3])",
    "KLDivLoss": "layer(nn.KLDivLossConfig(), [n**2, 3], share([n**2, 3]))",
    "PoissonNllLoss": "layer(nn.PoissonNllLossConfig(), [n**2, 3], share([n**2, 3]))",
    "GaussianNLLLoss": (
        "layer(nn.GaussianNLLLossConfig(), [n**2, 3], [n**2, 3], share([n**2, 3]))"
    ),
    "CosineEmbeddingLoss": (
        "layer(nn.CosineEmbeddingLossConfig(), *2 * [[n**2, 3]], sign([n**2], int))"
    ),
    "HingeEmbeddingLoss": (
        "layer(nn.HingeEmbeddingLossConfig(), [n**2], sign([n**2], float))"
    ),
    "MarginRankingLoss": (
        "layer(nn.MarginRankingLossConfig(), *2 * [[n**2]], sign([n**2], float))"
    ),
    "MultiMarginLoss": "layer(nn.MultiMarginLossConfig(), [n**2, 5], below(5, [n**2]))",
    "SoftMarginLoss": "layer(nn.SoftMarginLoss(), [n**2], sign([n**2], float))",
    "TripletMarginLoss": "layer(nn.TripletMarginLossConfig(), *3 * [[n**2, 3]])",
    "GramMatrixLoss": (
        "layer(nn.GramMatrixLoss([1.0, 0.5], features()), *2 * [[n, 3, 8, 8]])"
    ),
    "CTCLoss": (
        "layer(nn.CTCLossConfig(), [2 * n, n, 6], above(1, 6, [n, n]),"
        " np.full(n, 2 * n), np.full(n, n // 2))"
    ),
    "RNNTLoss": (
        "layer(nn.RNNTLossConfig(), [n // 2, 2 * n, n + 1, 6],"
        " above(1, 6, [n // 2, n]), np.full(n // 2, 2 * n), np.full(n // 2, n))"
    ),
    "Reduction": ("nn.MseLoss().forward(some([n]), some([n]), nn.Reduction.Sum)"),
    "check_module": "nn.check_module(nn.LinearConfig(3, 2), [n, 3]).passed",
    "ModuleReport": ("isinstance(nn.check_module(nn.Tanh(), [n, 3]), nn.ModuleReport)"),
}
# What only others make, and classes that only others inherit from.
NN_USED_BY: dict[str, str] = {
    "GramMatrixLossConfig": "GramMatrixLoss",  # its default network is a download
}

PLAIN = ("Adam", "AdamW", "AdaGrad", "RmsProp", "Adan", "Sgd")
OPTIM = {
    **each(
        "Adam AdamW AdaGrad RmsProp Adan Sgd",
        "learn(optim.NAMEConfig())",
    ),
    "Muon": "learn(optim.MuonConfig(), bias=False)",
    **{
        f"{name}State": f"state_of(optim.{name}Config(), optim.{name}State)"
        for name in PLAIN
    },
    "MuonState": "state_of(optim.MuonConfig(), optim.MuonState, bias=False)",
    "MomentumState": (
        "state_of(optim.SgdConfig(momentum=optim.MomentumConfig()),"
        " optim.MomentumState)"
    ),
    "WeightDecayConfig": (
        "learn(optim.SgdConfig(weight_decay=optim.WeightDecayConfig(0.1)))"
    ),
    "LBFGS": "learn_all_at_once()",
    "LBFGSState": "isinstance(optim.LBFGSConfig().init().state, optim.LBFGSState)",
    "LineSearchFn": (
        "learn_all_at_once(line_search_fn=optim.LineSearchFn.StrongWolfe)"
    ),
    "GradientsParams": "len(gradients(model())) == 2 or fail()",
    "GradientsAccumulator": "accumulate()",
    "MultiGradientsParams": "sum_up()",
    "ParamGroup": (
        "learn(optim.SgdConfig(), rate=optim.ModuleLearningRate(0.1)"
        ".with_group(optim.ParamGroup.from_predicate('bias'), 0.2))"
    ),
    "ModuleOptimizer": (
        "learn(lambda: optim.ModuleOptimizer(optim.AdamConfig().build()).with_group("
        "optim.ParamGroup.from_predicate('bias'), optim.SgdConfig()))"
    ),
    "OptimizerAdaptor": (
        "isinstance(optim.AdamConfig().init(), optim.OptimizerAdaptor) or fail()"
    ),
    "AdjustLrFn": (
        "learn(optim.MuonConfig(adjust_lr_fn=optim.AdjustLrFn.MatchRmsAdamW),"
        " bias=False)"
    ),
}
OPTIM_USED_BY = {
    **dict.fromkeys(("AdaptiveMomentumState", "SquareAvgState"), "Adam"),
    **dict.fromkeys(("LrDecayState", "AdaptiveNesterovMomentumState"), "Adan"),
    **dict.fromkeys(("CenteredState", "RmsPropMomentumState"), "RmsProp"),
    **dict.fromkeys(("Optimizer", "SimpleOptimizer"), "OptimizerAdaptor"),
}
GRAD_CLIPPING = {
    "GradientClippingConfig": (
        "[learn(optim.AdamConfig(grad_clipping=each(0.1))) for each in"
        " (grad_clipping.GradientClippingConfig.Value,"
        " grad_clipping.GradientClippingConfig.Norm)]"
    ),
    "GradientClipping": (
        "grad_clipping.GradientClipping.by_norm(1.0).clip_gradient(some([n, n]))"
    ),
}
LR_SCHEDULER = {
    "ConstantLr": "schedule(lr_scheduler.ConstantLr(0.3))",
    "LinearLrScheduler": "schedule(lr_scheduler.LinearLrSchedulerConfig(0.9, 0.5, n))",
    "CosineAnnealingLrScheduler": (
        "schedule(lr_scheduler.CosineAnnealingLrSchedulerConfig(1.0, n))"
    ),
    "ExponentialLrScheduler": (
        "schedule(lr_scheduler.ExponentialLrSchedulerConfig(0.8, 0.1))"
    ),
    "NoamLrScheduler": "schedule(lr_scheduler.NoamLrSchedulerConfig(0.01))",
    "StepLrScheduler": "schedule(lr_scheduler.StepLrSchedulerConfig(0.5, n))",
    "ComposedLrScheduler": (
        "schedule(lr_scheduler.ComposedLrSchedulerConfig().constant(0.5)"
        ".linear(lr_scheduler.LinearLrSchedulerConfig(1.0, 0.2, n)))"
    ),
    "SchedulerReduction": (
        "schedule(lr_scheduler.ComposedLrSchedulerConfig("
        "reduction=lr_scheduler.SchedulerReduction.Avg).constant(0.5).constant(1.0))"
    ),
    "SequentialLrScheduler": (
        "schedule(lr_scheduler.SequentialLrSchedulerConfig("
        "[lr_scheduler.LrSchedulerConfig.Constant(0.4)], []))"
    ),
    "ModuleLrScheduler": (
        "schedule(lr_scheduler.ModuleLrScheduler(1e-4)"
        ".with_group(optim.ParamGroup.from_predicate('bias'), 1e-3))"
    ),
    "as_scheduler": "schedule(lr_scheduler.as_scheduler(0.1))",
}
LR_SCHEDULER_USED_BY = {"LrScheduler": "ConstantLr"}

SCORES = "[4 * n, 5], below(5, [4 * n])"
WORDS = "below(9, [n, 8]), below(9, [n, 8])"
PICTURES = "share([2, 3, {0}, {0}]), share([2, 3, {0}, {0}])"
YES_NO = "share([4 * n, 3]), below(2, [4 * n, 3]) > 0"
METRIC = {
    "AccuracyMetric": f"measure(metric.AccuracyMetric(), {SCORES})",
    "TopKAccuracyMetric": f"measure(metric.TopKAccuracyMetric(2), {SCORES})",
    "LossMetric": "measure(metric.LossMetric(), [1])",
    "PerplexityMetric": f"measure(metric.PerplexityMetric(), {SCORES})",
    "HammingScore": ("measure(metric.HammingScore(), share([n, 3]), below(2, [n, 3]))"),
    "PrecisionMetric": f"measure(metric.PrecisionMetric.binary(0.5), {YES_NO})",
    "RecallMetric": f"measure(metric.RecallMetric.binary(0.5), {YES_NO})",
    "FBetaScoreMetric": f"measure(metric.FBetaScoreMetric.binary(1.0, 0.5), {YES_NO})",
    "AurocMetric": f"measure(metric.AurocMetric(), {YES_NO})",
    "AucPrMetric": f"measure(metric.AucPrMetric(), {YES_NO})",
    "BleuScore": f"measure(metric.BleuScore(), {WORDS})",
    "RougeLScore": f"measure(metric.RougeLScore(), {WORDS})",
    "CharErrorRate": f"measure(metric.CharErrorRate(), {WORDS})",
    "WordErrorRate": f"measure(metric.WordErrorRate(), {WORDS})",
    "PsnrMetric": (
        f"measure(metric.PsnrMetric(metric.PsnrMetricConfig(1.0)),"
        f" {PICTURES.format('n + 12')})"
    ),
    "SsimMetric": (
        f"measure(metric.SsimMetric(metric.SsimMetricConfig(1.0)),"
        f" {PICTURES.format('n + 12')})"
    ),
    "MsSsimMetric": (
        f"measure(metric.MsSsimMetric(metric.MsSsimMetricConfig(1.0)),"
        f" {PICTURES.format('176')})"
    ),
    "DiceMetric": (
        "measure(metric.DiceMetric(metric.DiceMetricConfig()),"
        " below(2, [2, 3, n, n]), below(2, [2, 3, n, n]))"
    ),
    **each(
        "CpuMemory CpuTemperature CpuUse CudaMetric GpuTemperature "
        "IterationSpeedMetric LearningRateMetric",
        "measure(metric.NAME())",
    ),
    "ConfusionStats": (
        "metric.ConfusionStats(confused(metric), metric.DecisionRule.Threshold(0.5),"
        " metric.ClassReduction.Micro)"
    ),
    "BleuSmoothing": (
        "measure(metric.BleuScore(smoothing=metric.BleuSmoothing.Exponential()),"
        f" {WORDS})"
    ),
    "FormatOptions": "str(metric.FormatOptions('Loss'))",
    "NumericMetricState": (
        "metric.NumericMetricState().update(1.0, n, metric.FormatOptions('Loss'))"
    ),
    "NumericEntry": (
        "metric.NumericEntry.deserialize("
        "metric.NumericMetricState().update(1.0, n, metric.FormatOptions('Loss'))"
        ".serialize)"
    ),
    "metric_name": "metric.metric_name(metric.LossMetric())",
}
SCORED = (
    "Accuracy",
    "Dice",
    "Loss",
    "MsSsim",
    "Perplexity",
    "Psnr",
    "Ssim",
    "TopKAccuracy",
)
METRIC_USED_BY = {
    **{f"{name}Input": f"{name}Metric" for name in SCORED},
    **dict.fromkeys(("Metric", "NumericMetric", "MetricEntry"), "AccuracyMetric"),
    **dict.fromkeys(("MetricMetadata", "MetricState"), "AccuracyMetric"),
    **dict.fromkeys(("ConfusionMetric", "ConfusionStatsInput"), "PrecisionMetric"),
    "BleuInput": "BleuScore",
    "CerInput": "CharErrorRate",
    "HammingScoreInput": "HammingScore",
    "RougeLInput": "RougeLScore",
    "WerInput": "WordErrorRate",
}

NUMBERS = "data.InMemDataset(range(8 * n))"
DATA = {
    "InMemDataset": f"sum({NUMBERS})",
    "Dataset": f"isinstance({NUMBERS}, data.Dataset) or fail()",
    "Batcher": "batch_up()",
    "DataLoaderBuilder": (
        f"list(data.DataLoaderBuilder(sum).batch_size(3).shuffle(1).build({NUMBERS}))"
    ),
    "DataLoader": (
        "isinstance(data.DataLoaderBuilder(sum).batch_size(3)"
        f".build({NUMBERS}), data.DataLoader) or fail()"
    ),
    "DataLoaderIterator": (
        "isinstance(iter(data.DataLoaderBuilder(sum).batch_size(3)"
        f".build({NUMBERS})), data.DataLoaderIterator) or fail()"
    ),
    "split_dataloader": (
        "[list(part) for part in data.split_dataloader("
        "data.DataLoaderBuilder(lambda x: sum(x)).batch_size(3)"
        f".build({NUMBERS}), [device, device])]"
    ),
    "Progress": "data.Progress(1, n)",
    "FixBatchStrategy": "data.FixBatchStrategy(2).batch(force=True)",
    "BatchStrategy": "issubclass(data.FixBatchStrategy, data.BatchStrategy) or fail()",
    "MapperDataset": f"list(data.MapperDataset({NUMBERS}, lambda x: x * 10))",
    "Mapper": "map_up()",
    "PartialDataset": f"[list(p) for p in data.PartialDataset.split({NUMBERS}, 2)]",
    "ComposedDataset": f"list(data.ComposedDataset([{NUMBERS}, {NUMBERS}]))",
    "WindowsDataset": f"list(data.WindowsDataset({NUMBERS}, 3))",
    "SelectionDataset": (
        f"list(data.SelectionDataset.from_indices_checked({NUMBERS}, [3, 0]))"
    ),
    "ShuffledDataset": f"list(data.ShuffledDataset.with_seed({NUMBERS}, 42))",
    "SamplerDataset": f"list(data.SamplerDataset.without_replacement({NUMBERS}, 5))",
    "SamplerDatasetOptions": (
        f"list(data.SamplerDataset({NUMBERS},"
        " data.SamplerDatasetOptions().with_replacement()))"
    ),
    "random_split": f"[list(p) for p in data.random_split({NUMBERS}, [0.75, 0.25])]",
    "FakeDataset": "list(data.FakeDataset(8 * n, data.AgNewsItem, seed=1))",
    "DataframeDataset": "from_frame()",
    "DigitsDataset": "data.DigitsDataset.train().get(0), data.MnistItem",
    "DiabetesDataset": "data.DiabetesDataset.new().get(0)",
    "SqliteDataset": "write_rows()",
    "SqliteDatasetWriter": "write_rows()",
    "SqliteDatasetStorage": "data.SqliteDatasetStorage.from_name('x').db_file()",
    "ImageFolderDataset": "look_at_folder()",
    "TextFolderDataset": "read_folder()",
    "read_idx": "write_idx()",
    "BoundingBoxes": (
        "data.BoundingBoxes((data.BoundingBox((0.0, 0.0, 1.0, 1.0), 0),))"
    ),
    "Label": "data.Label(1)",
    "MultiLabel": "data.MultiLabel((1, 2))",
    "SegmentationMask": "data.SegmentationMask(np.zeros((n, n), np.int64))",
    "available_datasets": (
        "all(isinstance(i, data.DatasetInfo) for i in data.available_datasets())"
        " or fail()"
    ),
    "cache_dir": "data.cache_dir()",
    "CifarType": "[str(each) for each in data.CifarType]",
    "SpeechCommandClass": "list(data.SpeechCommandClass)",
    **each(
        "AgNewsDataset Cifar10Dataset Cifar100Dataset DbPediaDataset "
        "FashionMnistDataset HousingDataset MnistDataset SpeechCommandsDataset",
        "offline(data.NAME.train)",
    ),
    "CifarDataset": "offline(data.CifarDataset(data.CifarType.Cifar10).train)",
    "HuggingfaceDatasetLoader": (
        "offline(data.HuggingfaceDatasetLoader.new('ag_news').dataset, 'train',"
        " data.AgNewsItem)"
    ),
}
DATA_USED_BY = {
    "DbPediaItem": "DbPediaDataset",
    "ImageDatasetItem": "ImageFolderDataset",
    "SpeechItem": "SpeechCommandsDataset",
    "TextDatasetItem": "TextFolderDataset",
}

RECORD = {
    **each(
        "BinFileRecorder BinGzFileRecorder BurnpackRecorder CompactRecorder "
        "DebugRecordSettings DefaultFileRecorder DefaultRecorder "
        "JsonGzFileRecorder NamedMpkFileRecorder NamedMpkGzFileRecorder "
        "NoStdTrainingRecorder PrettyJsonFileRecorder SafetensorsRecorder "
        "SensitiveCompactRecorder",
        "keep(record.NAME())",
    ),
    **each(
        "BinBytesRecorder NamedMpkBytesRecorder NoStdInferenceRecorder",
        "keep_in_memory(record.NAME())",
    ),
    **each(
        "FullPrecisionSettings HalfPrecisionSettings DoublePrecisionSettings",
        "keep(record.NamedMpkFileRecorder(record.NAME))",
    ),
    "convert": (
        "record.convert(keep(record.NamedMpkFileRecorder()), folder / 'm.safetensors')"
    ),
    "describe": "str(record.describe(keep(record.NamedMpkFileRecorder())))",
    "RecordError": "issubclass(record.RecordError, Exception) or fail()",
}
RECORD_USED_BY = {
    **dict.fromkeys(("Entry", "RecordSummary"), "describe"),
    **dict.fromkeys(("BurnRecord", "Metadata", "SealedRecord"), "BinFileRecorder"),
    **dict.fromkeys(("FileRecorder", "Recorder"), "DefaultRecorder"),
    "PrecisionSettings": "HalfPrecisionSettings",
}

TABLES: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "nn": ("burnbook.nn", NN, NN_USED_BY),
    "optim": ("burnbook.optim", OPTIM, OPTIM_USED_BY),
    "grad_clipping": ("burnbook.grad_clipping", GRAD_CLIPPING, {}),
    "lr_scheduler": ("burnbook.lr_scheduler", LR_SCHEDULER, LR_SCHEDULER_USED_BY),
    "metric": ("burnbook.train.metric", METRIC, METRIC_USED_BY),
    "data": ("burnbook.data", DATA, DATA_USED_BY),
    "record": ("burnbook.record", RECORD, RECORD_USED_BY),
}


def rows() -> list[str]:
    """`nn.Linear`, `optim.Adam`, … : every row."""
    return [
        f"{table}.{name}" for table, (_, made, _) in TABLES.items() for name in made
    ]


def missing(table: str) -> set[str]:
    """The public names that no row uses."""
    module, made, used_by = TABLES[table]
    assert not {*used_by.values()} - {*made}, "used by a row that is not there"
    words = {word for text in made.values() for word in re.findall(r"\w+", text)}
    words |= {*made, *used_by} | {word.removesuffix("Config") for word in words}
    words |= {f"{name}Config" for name in made if f"{name}Config(" in made[name]}
    return {*importlib.import_module(module).__all__} - words
