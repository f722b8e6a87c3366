//! Chapter 5: training without the learner.
use burn_book::twin;

// ANCHOR: setup
use std::marker::PhantomData;

use burn::backend::{Autodiff, NdArray};
use burn::module::AutodiffModule;
use burn::nn::loss::{CrossEntropyLossConfig, MseLoss, Reduction};
use burn::optim::{
    AdamConfig, GradientsAccumulator, GradientsParams, Optimizer, SgdConfig,
};
use burn::prelude::*;
use burn::tensor::backend::AutodiffBackend;

type MyBackend = Autodiff<NdArray>;
// ANCHOR_END: setup

// ANCHOR: config
#[derive(Config)]
pub struct ModelConfig {
    num_classes: usize,
    hidden_size: usize,
}

#[derive(Config)]
pub struct MnistTrainingConfig {
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
    #[config(default = 1e-4)]
    pub lr: f64,
}

// ANCHOR_END: config
// ANCHOR: evaluate
fn accuracy<B: Backend>(
    output: Tensor<B, 2>,
    targets: Tensor<B, 1, Int>,
) -> f32 {
    let [count] = targets.dims();
    let predictions = output.argmax(1).squeeze(1);
    let correct = predictions.equal(targets).int().sum().into_scalar();
    correct.elem::<f32>() / count as f32 * 100.0
}

fn evaluate<B: Backend>(
    model: &nn::Linear<B>,
    images: Tensor<B, 2>,
    targets: Tensor<B, 1, Int>,
) -> (Tensor<B, 1>, f32) {
    let output = model.forward(images);
    let cross_entropy = CrossEntropyLossConfig::new().init(&output.device());
    let loss = cross_entropy.forward(output.clone(), targets.clone());
    (loss, accuracy(output, targets))
}

// ANCHOR_END: evaluate
// ANCHOR: learner-model
struct Learner<M, O> {
    model: M,
    optim: O,
}

impl<M, O> Learner<M, O> {
    fn step<B>(&mut self, lr: f64, loss_of: impl Fn(&M) -> Tensor<B, 1>)
    where
        B: AutodiffBackend,
        M: AutodiffModule<B>,
        O: Optimizer<M, B>,
    {
        let loss = loss_of(&self.model);
        let grads = GradientsParams::from_grads(loss.backward(), &self.model);
        self.model = self.optim.step(lr, self.model.clone(), grads);
    }
}

// ANCHOR_END: learner-model
// ANCHOR: learner-phantom
pub struct PatientLearner<B, M, O>
where
    B: AutodiffBackend,
    M: AutodiffModule<B>,
    O: Optimizer<M, B>,
{
    model: M,
    optim: O,
    every: usize,
    waiting: usize,
    accumulator: GradientsAccumulator<M>,
    _backend: PhantomData<B>,
}
// ANCHOR_END: learner-phantom

// ANCHOR: add
impl<B, M, O> PatientLearner<B, M, O>
where
    B: AutodiffBackend,
    M: AutodiffModule<B>,
    O: Optimizer<M, B>,
{
    fn add(&mut self, lr: f64, loss: Tensor<B, 1>) {
        let share = loss / self.every as f64; // so that the sum is a mean
        let grads = GradientsParams::from_grads(share.backward(), &self.model);
        self.accumulator.accumulate(&self.model, grads);
        self.waiting = (self.waiting + 1) % self.every;
        if self.waiting == 0 {
            let sums = self.accumulator.grads();
            self.model = self.optim.step(lr, self.model.clone(), sums);
        }
    }
}
// ANCHOR_END: add

// ANCHOR: accumulate
/// Two layers, so that each can have its own optimizer.
#[derive(Module, Debug)]
struct TwoLayers<B: Backend> {
    conv1: nn::conv::Conv2d<B>,
    linear1: nn::Linear<B>,
}

// ANCHOR_END: accumulate
fn main() {
    twin("try-it");
    // ANCHOR: try-it
    let device = Default::default();
    let x = [[0.0], [1.0], [2.0], [3.0]];
    let x = Tensor::<MyBackend, 2>::from_data(x, &device);
    let y = x.clone() * 2.0 + 1.0;

    let start = nn::LinearConfig::new(1, 1)
        .with_initializer(nn::Initializer::Zeros)
        .init::<MyBackend>(&device);
    let (mut model, mut optim) = (start.clone(), SgdConfig::new().init());
    let mse = MseLoss::new();
    let mut last = f32::NAN;
    for _ in 0..20 {
        let out = model.forward(x.clone());
        let loss = mse.forward(out, y.clone(), Reduction::Mean);
        last = loss.clone().into_scalar();
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        model = optim.step(0.1, model, grads);
    }
    println!("loss after 20 steps: {last:.3}");
    // ANCHOR_END: try-it

    twin("by-hand");
    // ANCHOR: by-hand
    let [xs, ys] = [[0.0f64, 1.0, 2.0, 3.0], [1.0, 3.0, 5.0, 7.0]];
    let (mut w, mut b) = (0.0f64, 0.0);
    for _ in 0..20 {
        let error: Vec<f64> = (0..4).map(|i| w * xs[i] + b - ys[i]).collect();
        let slope = (0..4).map(|i| error[i] * xs[i]).sum::<f64>() / 2.0;
        (w, b) = (w - 0.1 * slope, b - 0.05 * error.iter().sum::<f64>());
    }

    for (param, by_hand) in [
        (model.weight.val().reshape([1]), w),
        (model.bias.as_ref().unwrap().val(), b),
    ] {
        let close = (param.clone() - by_hand).abs().into_scalar() < 1e-4;
        println!("{close}: {:?}", param.dims());
    }
    // ANCHOR_END: by-hand

    twin("config");
    // ANCHOR: config
    let model_config = ModelConfig::new(10, 64);
    let config = MnistTrainingConfig::new(model_config, AdamConfig::new())
        .with_num_epochs(3)
        .with_num_workers(2)
        .with_lr(2e-3);
    println!("{} epochs at {}", config.num_epochs, config.lr);
    // ANCHOR_END: config

    // What `evaluate` says of two rows of which one is right.
    let eye = Tensor::<MyBackend, 2>::eye(2, &device);
    let layer = nn::Linear {
        weight: burn::module::Param::from_tensor(eye.clone()),
        bias: None,
    };
    let targets = Tensor::<MyBackend, 1, Int>::from_ints([0, 0], &device);
    let (loss, right) = evaluate(&layer, eye, targets);
    assert_eq!((loss.dims(), right), ([1], 50.0));

    twin("accumulate");
    // ANCHOR: accumulate
    let two = TwoLayers::<MyBackend> {
        conv1: nn::conv::Conv2dConfig::new([1, 8], [3, 3]).init(&device),
        linear1: nn::LinearConfig::new(8, 4).init(&device),
    };
    let loss = |two: &TwoLayers<MyBackend>| {
        let image = Tensor::ones([1, 1, 3, 3], &device);
        let x = two.conv1.forward(image).reshape([1, 8]);
        two.linear1.forward(x).sum()
    };

    let mut accumulator = GradientsAccumulator::new();
    for _ in 0..4 {
        let grads = loss(&two).backward();
        let grads = GradientsParams::from_grads(grads, &two);
        accumulator.accumulate(&two, grads);
    }
    let sums = accumulator.grads();
    assert_eq!(sums.len(), 4);
    // ANCHOR_END: accumulate

    twin("accumulated");
    // ANCHOR: accumulated
    let whole = GradientsParams::from_grads(loss(&two).backward(), &two);
    let name = two.conv1.weight.id;
    let sum = sums.get::<NdArray, 4>(name).unwrap();
    let whole = whole.get::<NdArray, 4>(name).unwrap();
    let close = (sum.clone() / 4.0).all_close(whole, None, Some(1e-5));
    println!("{close}: shape {:?}", sum.dims());
    // ANCHOR_END: accumulated

    twin("several-optimizers");
    // ANCHOR: several-optimizers
    let mut grads = loss(&two).backward();
    let grads_conv1 = GradientsParams::from_module(&mut grads, &two.conv1);
    let bias = two.linear1.bias.as_ref().unwrap();
    let grads_bias =
        GradientsParams::from_params(&mut grads, &two.linear1, &[bias.id]);
    println!("{} gradients", grads_conv1.len());
    println!("{} gradients", grads_bias.len());
    let rest = GradientsParams::from_grads(grads, &two);
    // ANCHOR_END: several-optimizers
    assert_eq!(rest.len(), 1);

    twin("two-rules");
    // ANCHOR: two-rules
    let (mut plain, mut adam) =
        (SgdConfig::new().init(), AdamConfig::new().init());
    let stepped = plain.step(0.1 * 2.0, two.clone(), grads_conv1);
    let stepped = plain.step(0.1 * 0.1, stepped, grads_bias);
    let stepped = adam.step(1e-3, stepped, rest);
    println!("shape {:?}", stepped.conv1.weight.dims());
    // ANCHOR_END: two-rules

    twin("learner-use");
    // ANCHOR: learner-use
    let off_the_line = |model: &nn::Linear<MyBackend>| {
        let out = model.forward(x.clone());
        mse.forward(out, y.clone(), Reduction::Mean)
    };
    let optim = SgdConfig::new().init::<MyBackend, _>();
    let mut learner = Learner {
        model: start.clone(),
        optim,
    };
    for _ in 0..20 {
        learner.step(0.1, off_the_line);
    }
    let weight = learner.model.weight.val();
    let same = weight.clone().equal(model.weight.val()).all();
    println!("{}: {:?}", same.into_scalar(), weight.dims());
    // ANCHOR_END: learner-use

    twin("patient");
    // ANCHOR: patient
    let mut patient = PatientLearner {
        model: two.clone(),
        optim: SgdConfig::new().init(),
        every: 4,
        waiting: 0,
        accumulator: GradientsAccumulator::new(),
        _backend: PhantomData,
    };
    for _ in 0..4 {
        patient.add(0.1, loss(&two));
    }
    let whole = GradientsParams::from_grads(loss(&two).backward(), &two);
    let at_once = SgdConfig::new().init().step(0.1, two, whole);
    let weight = patient.model.conv1.weight.val();
    let at_once = at_once.conv1.weight.val();
    let close = weight.clone().all_close(at_once, None, Some(1e-5));
    println!("{close}: shape {:?}", weight.dims());
    // ANCHOR_END: patient
}
