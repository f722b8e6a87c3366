//! Chapter 3.3: a loss, its gradient, and the config of a training run.
use burn_book::twin;

// ANCHOR: setup
use burn::backend::{Autodiff, NdArray};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::AdamConfig;
use burn::prelude::*;

type B = Autodiff<NdArray>;
// ANCHOR_END: setup

// ANCHOR: training-config
#[derive(Config)]
pub struct ModelConfig {
    num_classes: usize,
    hidden_size: usize,
    #[config(default = "0.5")]
    dropout: f64,
}

#[derive(Config)]
pub struct TrainingConfig {
    pub model: ModelConfig,
    pub optimizer: AdamConfig,
    #[config(default = 10)]
    pub num_epochs: usize,
    #[config(default = 64)]
    pub batch_size: usize,
    #[config(default = 4)]
    pub num_workers: usize,
    #[config(default = 42)]
    pub seed: u64,
    #[config(default = 1.0e-4)]
    pub learning_rate: f64,
}

// ANCHOR_END: training-config
fn main() {
    twin("cross-entropy");
    // ANCHOR: cross-entropy
    let device = Default::default();
    let logits = [[2.0, 1.0, 0.1], [0.5, 2.5, 0.0]];
    let z = Tensor::<B, 2>::from_floats(logits, &device).require_grad();
    let targets = Tensor::<B, 1, Int>::from_ints([0, 2], &device);

    let cross_entropy = CrossEntropyLossConfig::new().init(&device);
    let loss = cross_entropy.forward(z.clone(), targets.clone());
    let by_hand = 1.5569;
    let close = (loss.clone() - by_hand).abs().into_scalar() < 1e-4;
    println!("{close}: {:?}", loss.dims());
    // ANCHOR_END: cross-entropy

    twin("gradients");
    // ANCHOR: gradients
    let softmax = burn::tensor::activation::softmax(z.clone(), 1);
    let one_hot = Tensor::<B, 2>::eye(3, &device).select(0, targets);
    let by_hand = (softmax - one_hot).inner() / 2.0;

    let found = z.grad(&loss.backward()).unwrap();
    println!("{}", by_hand.all_close(found, None, Some(1e-6)));
    // ANCHOR_END: gradients

    twin("training-config");
    // ANCHOR: training-config
    let config =
        TrainingConfig::new(ModelConfig::new(10, 64), AdamConfig::new())
            .with_num_workers(2)
            .with_learning_rate(1e-3);
    println!("{} epochs at {}", config.num_epochs, config.learning_rate);
    // ANCHOR_END: training-config

    twin("artifact-dir");
    // ANCHOR: artifact-dir
    let artifacts = std::env::temp_dir().join("burn-book-training");
    std::fs::remove_dir_all(&artifacts).ok();
    std::fs::create_dir_all(&artifacts).unwrap();

    let path = artifacts.join("config.json");
    config
        .save(&path)
        .expect("Config should be saved successfully");
    B::seed(config.seed);
    println!("{} …", &std::fs::read_to_string(path).unwrap()[..60]);
    // ANCHOR_END: artifact-dir
}
