//! Chapter 4.5: optimizers.
use burn_book::twin;

// ANCHOR: setup
use burn::backend::{Autodiff, NdArray};
use burn::grad_clipping::GradientClippingConfig;
use burn::module::{Module, Param};
use burn::nn;
use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::*;
use burn::record::Record;
use burn::tensor::backend::Backend;
use burn::tensor::{ElementConversion, Tensor};

type MyBackend = Autodiff<NdArray>;
// ANCHOR_END: setup

// ANCHOR: valley
#[derive(Module, Debug)]
pub struct Valley<B: Backend> {
    place: Param<Tensor<B, 2>>, // a matrix of one row
}

impl<B: Backend> Valley<B> {
    pub fn forward(&self) -> Tensor<B, 1> {
        let place = self.place.val();
        let steepness = [[1.0, 25.0]];
        let steepness = Tensor::from_floats(steepness, &place.device());
        (place.clone() * place * steepness).sum() * 0.5
    }
}

// ANCHOR_END: valley
// ANCHOR: adam
fn slopes(model: &Valley<MyBackend>) -> GradientsParams {
    GradientsParams::from_grads(model.forward().backward(), model)
}

// ANCHOR_END: adam
// ANCHOR: walk
fn walk(
    mut optimizer: impl Optimizer<Valley<MyBackend>, MyBackend>,
    lr: f64,
    steps: usize,
    mut model: Valley<MyBackend>,
) -> Valley<MyBackend> {
    for _ in 0..steps {
        let grads = slopes(&model);
        model = optimizer.step(lr, model, grads);
    }
    model
}

// ANCHOR_END: walk
// ANCHOR: all
fn good(
    name: &str,
    lr: f64,
    optimizer: impl Optimizer<Valley<MyBackend>, MyBackend>,
    valley: &Valley<MyBackend>,
) {
    let found = walk(optimizer, lr, 300, valley.clone());
    let loss: f32 = found.forward().into_scalar();
    println!("{name:9} loss < 0.1 {}", loss < 0.1);
}

// ANCHOR_END: all
// ANCHOR: lion
#[derive(Clone)]
struct Lion;

#[derive(Record, Clone)]
struct LionState<B: Backend, const D: usize> {
    average: Tensor<B, D>,
}

impl<B: Backend> SimpleOptimizer<B> for Lion {
    type State<const D: usize> = LionState<B, D>;

    fn step<const D: usize>(
        &self,
        lr: f64,
        tensor: Tensor<B, D>,
        grad: Tensor<B, D>,
        state: Option<Self::State<D>>,
    ) -> (Tensor<B, D>, Option<Self::State<D>>) {
        let old = match state {
            Some(state) => state.average,
            None => grad.zeros_like(),
        };
        let direction = (old.clone() * 0.9 + grad.clone() * 0.1).sign();
        let average = old * 0.99 + grad * 0.01;
        (tensor - direction * lr, Some(LionState { average }))
    }

    fn to_device<const D: usize>(
        state: Self::State<D>,
        device: &B::Device,
    ) -> Self::State<D> {
        LionState {
            average: state.average.to_device(device),
        }
    }
}

// ANCHOR_END: lion
fn main() {
    twin("valley");
    // ANCHOR: valley
    let device = Default::default();
    let start = Tensor::from_floats([[4.0, 1.0]], &device);
    let valley = Valley {
        place: Param::from_tensor(start),
    };
    println!("{}", valley.forward().into_scalar());
    // ANCHOR_END: valley

    twin("adam");
    // ANCHOR: adam
    let mut adam = AdamConfig::new().init();
    let moved = adam.step(0.1, valley.clone(), slopes(&valley));
    for model in [&valley, &moved] {
        println!("{:.2}", model.place.val().to_data());
    }
    // ANCHOR_END: adam

    twin("walk");
    // ANCHOR: walk
    let found = walk(AdamConfig::new().init(), 0.1, 30, valley.clone());
    println!("{:?}", found.place.val().dims());
    // ANCHOR_END: walk

    twin("all");
    // ANCHOR: all
    let sgd = SgdConfig::new();
    let momentum = MomentumConfig::new();
    let nesterov = momentum.clone().with_nesterov(true);
    let momentum = sgd.clone().with_momentum(Some(momentum));
    let nesterov = sgd.clone().with_momentum(Some(nesterov));
    let rms_prop = RmsPropConfig::new().with_centered(true);
    good("Sgd", 0.03, sgd.init(), &valley);
    good("momentum", 0.01, momentum.init(), &valley);
    good("nesterov", 0.01, nesterov.init(), &valley);
    good("AdaGrad", 1.0, AdaGradConfig::new().init(), &valley);
    good("RmsProp", 0.02, rms_prop.init(), &valley);
    good("Adam", 0.1, AdamConfig::new().init(), &valley);
    good("AdamW", 0.1, AdamWConfig::new().init(), &valley);
    // ANCHOR_END: all

    twin("from_params");
    // ANCHOR: from_params
    let two = nn::LinearConfig::new(2, 2).init::<MyBackend>(&device);
    let x = Tensor::<MyBackend, 2>::from_floats([[1.0, -2.0]], &device);
    let mut grads = two.forward(x).backward();
    let bias = two.bias.as_ref().unwrap();
    let only_bias = GradientsParams::from_params(&mut grads, &two, &[bias.id]);
    let after = AdamConfig::new().init().step(0.1, two.clone(), only_bias);
    let same = two.weight.val().equal(after.weight.val());
    println!("{}", same.all().into_scalar());
    let moved = bias.val() - 0.1;
    let after = after.bias.unwrap().val();
    println!("{}", moved.all_close(after, None, Some(1e-4)));
    // ANCHOR_END: from_params

    twin("clipping");
    // ANCHOR: clipping
    let gradient = Tensor::<NdArray, 1>::from_floats([3.0, -4.0], &device);
    let value = GradientClippingConfig::Value(3.5).init();
    let norm = GradientClippingConfig::Norm(1.0).init();
    let clipped = value.clip_gradient(gradient.clone());
    println!("Value(3.5) {:.4}", clipped.to_data());
    println!("Norm(1.0) {:.4}", norm.clip_gradient(gradient).to_data());
    // ANCHOR_END: clipping

    twin("with-options");
    // ANCHOR: with-options
    let config = AdamConfig::new()
        .with_weight_decay(Some(WeightDecayConfig::new(5e-5)))
        .with_grad_clipping(Some(GradientClippingConfig::Norm(1.0)));
    let found = walk(config.init(), 0.1, 300, valley.clone());
    assert!(found.forward().into_scalar().elem::<f64>() < 0.1);
    // ANCHOR_END: with-options

    twin("record");
    // ANCHOR: record
    let mut steady = AdamConfig::new().init();
    let mut half = valley.clone();
    for _ in 0..10 {
        let grads = slopes(&half);
        half = steady.step(0.1, half, grads);
    }
    let resumed = AdamConfig::new().init();
    let resumed = resumed.load_record(steady.to_record());
    let straight = walk(steady, 0.1, 10, half.clone()).place.val();
    let again = walk(resumed, 0.1, 10, half).place.val();
    println!("{}", straight.equal(again).all().into_scalar());
    // ANCHOR_END: record

    twin("lion-use");
    // ANCHOR: lion-use
    type Adaptor<M> = adaptor::OptimizerAdaptor<Lion, M, MyBackend>;
    let lion = || Adaptor::<Valley<MyBackend>>::from(Lion);
    let found = walk(lion(), 0.04, 300, valley);
    let found = walk(lion(), 0.004, 300, found);
    let loss: f32 = found.forward().into_scalar();
    println!("loss < 0.1 {}", loss < 0.1);
    // ANCHOR_END: lion-use
}
