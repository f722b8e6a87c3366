//! configs FILE…
//!
//! Reads each NAME.json with Burn 0.22.1's config of this name, as a project does with
//! its config.json, and writes it again beside the file as NAME_again.json. Prints one
//! line of JSON for each file: null, or why it could not be read.
use std::path::Path;

use burn::config::Config;
use burn::lr_scheduler::composed::*;
use burn::lr_scheduler::cosine::*;
use burn::lr_scheduler::exponential::*;
use burn::lr_scheduler::linear::*;
use burn::lr_scheduler::noam::*;
use burn::lr_scheduler::sequential::*;
use burn::lr_scheduler::step::*;
use burn::nn::activation::*;
use burn::nn::attention::*;
use burn::nn::conv::*;
use burn::nn::interpolate::*;
use burn::nn::loss::*;
use burn::nn::pool::*;
use burn::nn::transformer::*;
use burn::nn::*;
use burn::optim::decay::*;
use burn::optim::momentum::*;
use burn::optim::*;

macro_rules! read_as_one_of {
    ($name:expr, $path:expr, $again:expr; $($config:ident),* $(,)?) => {
        match $name {
            $(stringify!($config) => $config::load($path).map(|it| it.save($again)),)*
            other => panic!("{other} is not in the list"),
        }
    };
}

fn main() {
    for path in std::env::args().skip(1) {
        let path = Path::new(&path);
        let name = path.file_stem().unwrap().to_str().unwrap();
        let again = path.with_file_name(format!("{name}_again.json"));
        let read = read_as_one_of!(name, path, again;
            AdaGradConfig,
            AdafactorConfig,
            AdamConfig,
            AdamWConfig,
            AdanConfig,
            AdaptiveAvgPool1dConfig,
            AdaptiveAvgPool2dConfig,
            AdaptiveAvgPool3dConfig,
            AvgPool1dConfig,
            AvgPool2dConfig,
            BatchNormConfig,
            BiGruConfig,
            BiLstmConfig,
            BiRnnConfig,
            BinaryCrossEntropyLossConfig,
            CTCLossConfig,
            CeluConfig,
            ComposedLrSchedulerConfig,
            Conv1dConfig,
            Conv2dConfig,
            Conv3dConfig,
            ConvTranspose1dConfig,
            ConvTranspose2dConfig,
            ConvTranspose3dConfig,
            CosineAnnealingLrSchedulerConfig,
            CosineEmbeddingLossConfig,
            CosineSimilarityConfig,
            CrossAttentionConfig,
            CrossEntropyLossConfig,
            DeformConv2dConfig,
            DropoutConfig,
            EluConfig,
            EmbeddingConfig,
            ExponentialLrSchedulerConfig,
            Fold4dConfig,
            GaussianNLLLossConfig,
            GaussianNoiseConfig,
            GroupNormConfig,
            GruConfig,
            HardShrinkConfig,
            HardSigmoidConfig,
            HardtanhConfig,
            HingeEmbeddingLossConfig,
            HuberLossConfig,
            InstanceNormConfig,
            Interpolate1dConfig,
            Interpolate2dConfig,
            KLDivLossConfig,
            LBFGSConfig,
            LambConfig,
            LayerNormConfig,
            LeakyReluConfig,
            LinearConfig,
            LinearLrSchedulerConfig,
            LionConfig,
            LocalResponseNormConfig,
            LpLossConfig,
            LstmConfig,
            MarginRankingLossConfig,
            MaxPool1dConfig,
            MaxPool2dConfig,
            MomentumConfig,
            MultiHeadAttentionConfig,
            MultiMarginLossConfig,
            MuonConfig,
            NoamLrSchedulerConfig,
            PReluConfig,
            PairwiseDistanceConfig,
            PixelShuffleConfig,
            PixelUnshuffleConfig,
            PoissonNllLossConfig,
            PositionWiseFeedForwardConfig,
            PositionalEncodingConfig,
            RNNTLossConfig,
            RReluConfig,
            RmsNormConfig,
            RmsPropConfig,
            RnnConfig,
            RotaryEncodingConfig,
            SequentialLrSchedulerConfig,
            SgdConfig,
            ShrinkConfig,
            SmoothL1LossConfig,
            SoftShrinkConfig,
            SoftplusConfig,
            StepLrSchedulerConfig,
            SwiGluConfig,
            ThresholdConfig,
            ThresholdedReluConfig,
            TransformerDecoderConfig,
            TransformerEncoderConfig,
            TripletMarginLossConfig,
            Unfold4dConfig,
            WeightDecayConfig,
        );
        let said = read.err().map(|error| error.to_string());
        println!("{}", serde_json::to_string(&said).unwrap());
    }
}
