//! unusual FILE…
//!
//! Loads NAME.bin, NAME.mpk or NAME.json with Burn 0.15.0 and prints one line of JSON for
//! each file. A module: everything that is in it, and it is written again beside the file
//! as NAME_again. An optimizer: the model after the fourth step. A schedule: its next
//! rates.
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use burn::grad_clipping::GradientClippingConfig;
use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::lr_scheduler::exponential::ExponentialLrSchedulerConfig;
use burn::lr_scheduler::linear::LinearLrSchedulerConfig;
use burn::lr_scheduler::noam::NoamLrSchedulerConfig;
use burn::lr_scheduler::LrScheduler;
use burn::module::{Module, Param, ParamId};
use burn::nn::attention::MultiHeadAttentionConfig;
use burn::nn::conv::{Conv1dConfig, Conv3dConfig, ConvTranspose3dConfig, DeformConv2dConfig};
use burn::nn::transformer::{TransformerDecoderConfig, TransformerEncoderConfig};
use burn::nn::{
    BatchNormConfig, BiLstmConfig, Dropout, DropoutConfig, InstanceNormConfig, LayerNorm,
    LayerNormConfig, Linear, LinearConfig, PReluConfig, PositionalEncodingConfig, Relu,
    RotaryEncodingConfig, SwiGluConfig,
};
use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{
    AdaGradConfig, AdamConfig, AdamWConfig, Optimizer, RmsPropConfig, SgdConfig, SimpleOptimizer,
};
use burn::record::{
    BinFileRecorder, FullPrecisionSettings as Full, NamedMpkFileRecorder, PrettyJsonFileRecorder,
    Record, Recorder,
};
use burn::tensor::backend::Backend;
use burn::tensor::{Bool, Device, Int, Tensor};
use serde_json::{json, Value};

use burn_records::training::{Adaptor, Small, STEPS};
use burn_records::tree::{flatten, item, Ramp};
use burn_records::{Plain, Train};

#[derive(Module, Debug)]
pub enum Choice<B: Backend> {
    Dense(Linear<B>),
    Norm(LayerNorm<B>),
    Nothing(Dropout),
}

#[derive(Module, Debug)]
pub struct Leaf<B: Backend> {
    gain: Param<Tensor<B, 1>>,
    size: usize,
    act: Relu,
    none: Option<Linear<B>>,
    name: String,
}

#[derive(Module, Debug)]
pub struct Boxed<B: Backend> {
    inner: Choice<B>,
    more: Vec<Choice<B>>,
}

#[derive(Module, Debug)]
pub enum Deep<B: Backend> {
    Boxed(Boxed<B>),
    One(Choice<B>),
    Cell(Leaf<B>),
    Act(Relu),
}

#[derive(Module, Debug)]
pub struct Lists<B: Backend> {
    of_options: Vec<Option<Linear<B>>>,
    nested: Vec<Vec<Leaf<B>>>,
    optional: Option<Vec<Linear<B>>>,
    absent: Option<Vec<Linear<B>>>,
    of_choices: Vec<Choice<B>>,
    of_pairs: Vec<(Linear<B>, Dropout)>,
    of_nothing: Vec<Relu>,
    empty: Vec<Vec<Linear<B>>>,
    rates: Vec<f64>,
    of_arrays: Vec<[usize; 2]>,
}

#[derive(Module, Debug)]
pub struct Tuples<B: Backend> {
    three: (Linear<B>, Option<Linear<B>>, Vec<Leaf<B>>),
    grid: [[Linear<B>; 2]; 2],
    options: [Option<Leaf<B>>; 2],
    deep: (([Param<Tensor<B, 1>>; 2], Dropout), Choice<B>),
    maybe: Option<[usize; 2]>,
    some: Option<(Linear<B>, Linear<B>)>,
    none: Option<(Linear<B>, Linear<B>)>,
    numbers: (usize, f64, bool),
    word: Option<String>,
    prob: Option<Dropout>,
}

#[derive(Module, Debug)]
pub struct Choices<B: Backend> {
    some: Option<Choice<B>>,
    none: Option<Choice<B>>,
    one: Deep<B>,
    cell: Deep<B>,
    act: Deep<B>,
    list: Vec<Option<Deep<B>>>,
    pair: [Choice<B>; 2],
}

#[derive(Module, Debug)]
pub enum Wide<B: Backend> {
    Many(Vec<Linear<B>>),
    Pairs(Vec<(Linear<B>, Dropout)>),
    Two((Linear<B>, Linear<B>)),
    Gain(Param<Tensor<B, 1>>),
    Size(usize),
}

#[derive(Module, Debug)]
pub struct Wides<B: Backend> {
    list: Vec<Wide<B>>,
    some: Option<Wide<B>>,
    none: Option<Wide<B>>,
}

#[derive(Module, Debug)]
pub struct Params<B: Backend> {
    some: Option<Param<Tensor<B, 2>>>,
    none: Option<Param<Tensor<B, 2>>>,
    list: Vec<Param<Tensor<B, 1>>>,
    pair: (Param<Tensor<B, 1, Int>>, Param<Tensor<B, 3, Bool>>),
    constants: Vec<Tensor<B, 1>>,
    maybe: Option<Tensor<B, 1>>,
    bare: (Tensor<B, 1, Int>, Param<Tensor<B, 1>>),
}

fn linear(bias: bool) -> Linear<Plain> {
    LinearConfig::new(2, 2).with_bias(bias).init(&Default::default())
}

fn gain() -> Param<Tensor<Plain, 1>> {
    Param::from_tensor(Tensor::ones([2], &Default::default()))
}

fn leaf() -> Leaf<Plain> {
    Leaf { gain: gain(), size: 3, act: Relu::new(), none: None, name: "leaf".into() }
}

fn dense() -> Choice<Plain> {
    Choice::Dense(linear(true))
}

fn norm() -> Choice<Plain> {
    Choice::Norm(LayerNormConfig::new(2).init(&Default::default()))
}

fn boxed(inner: Choice<Plain>) -> Deep<Plain> {
    Deep::Boxed(Boxed { inner, more: vec![norm(), Choice::Nothing(dropout()), dense()] })
}

fn dropout() -> Dropout {
    DropoutConfig::new(0.5).init()
}

fn lists() -> Lists<Plain> {
    Lists {
        of_options: vec![Some(linear(true)), None, Some(linear(false))],
        nested: vec![vec![leaf()], vec![], vec![leaf(), leaf()]],
        optional: Some(vec![linear(false), linear(true)]),
        absent: None,
        of_choices: vec![norm(), Choice::Nothing(dropout()), dense()],
        of_pairs: vec![(linear(true), dropout()), (linear(false), dropout())],
        of_nothing: vec![Relu::new(), Relu::new()],
        empty: vec![],
        rates: vec![0.5, 1.5],
        of_arrays: vec![[1, 2], [3, 4], [5, 6]],
    }
}

fn tuples() -> Tuples<Plain> {
    Tuples {
        three: (linear(true), Some(linear(false)), vec![leaf(), leaf()]),
        grid: [[linear(true), linear(false)], [linear(false), linear(true)]],
        options: [Some(leaf()), None],
        deep: (([gain(), gain()], dropout()), norm()),
        maybe: Some([1, 2]),
        some: Some((linear(false), linear(true))),
        none: None,
        numbers: (1, 0.5, true),
        word: Some("word".into()),
        prob: Some(dropout()),
    }
}

fn choices() -> Choices<Plain> {
    Choices {
        some: Some(norm()),
        none: None,
        one: boxed(dense()),
        cell: Deep::Cell(leaf()),
        act: Deep::Act(Relu::new()),
        list: vec![
            Some(boxed(Choice::Nothing(dropout()))),
            None,
            Some(Deep::Cell(leaf())),
            Some(Deep::One(dense())),
            Some(Deep::One(Choice::Nothing(dropout()))),
        ],
        pair: [Choice::Nothing(dropout()), dense()],
    }
}

fn wides() -> Wides<Plain> {
    let pairs = || Wide::Pairs(vec![(linear(false), dropout()), (linear(true), dropout())]);
    Wides {
        list: vec![
            Wide::Many(vec![linear(true), linear(false)]),
            pairs(),
            Wide::Two((linear(true), linear(false))),
            Wide::Gain(gain()),
            Wide::Size(3),
        ],
        some: Some(pairs()),
        none: None,
    }
}

fn params() -> Params<Plain> {
    let d = Default::default();
    let ints = Tensor::<Plain, 1, Int>::from_ints([1, 2, 3], &d);
    let flags = Tensor::<Plain, 3, Int>::ones([1, 2, 2], &d).bool();
    Params {
        some: Some(Param::from_tensor(Tensor::ones([2, 1], &d))),
        none: None,
        list: vec![gain(), gain(), gain()],
        pair: (
            Param::initialized(ParamId::new(), ints.clone()),
            Param::initialized(ParamId::new(), flags),
        ),
        constants: vec![Tensor::ones([2], &d), Tensor::ones([3], &d)],
        maybe: Some(Tensor::ones([1], &d)),
        bare: (ints, gain()),
    }
}

fn load<B: Backend, R: Record<B>>(stem: &Path, format: &str) -> R {
    let (path, device) = (stem.to_path_buf(), Default::default());
    let found = match format {
        "bin" => Recorder::<B>::load(&BinFileRecorder::<Full>::default(), path, &device),
        "mpk" => Recorder::<B>::load(&NamedMpkFileRecorder::<Full>::default(), path, &device),
        _ => Recorder::<B>::load(&PrettyJsonFileRecorder::<Full>::default(), path, &device),
    };
    found.unwrap_or_else(|error| panic!("{error:?}"))
}

fn save<B: Backend, R: Record<B>>(record: R, path: PathBuf, format: &str) {
    match format {
        "bin" => Recorder::<B>::record(&BinFileRecorder::<Full>::default(), record, path),
        "mpk" => Recorder::<B>::record(&NamedMpkFileRecorder::<Full>::default(), record, path),
        _ => Recorder::<B>::record(&PrettyJsonFileRecorder::<Full>::default(), record, path),
    }
    .unwrap()
}

/// One file, and how to read it.
struct Source<'a>(&'a Path, &'a str);

impl Source<'_> {
    fn part<M: Module<Plain> + ToString>(&self, module: M) -> Value {
        let record = load::<Plain, M::Record>(self.0, self.1);
        let module = module.map(&mut Ramp(40)).load_record(record);
        let name = self.0.file_name().unwrap().to_string_lossy();
        let again = self.0.with_file_name(format!("{name}_again"));
        let text = self.0.with_file_name(format!("{name}_text"));
        std::fs::write(text, module.to_string()).unwrap();
        save::<Plain, _>(module.clone().into_record(), again, self.1);
        Value::Object(flatten(&item::<Plain, Full, _>(module.into_record())))
    }

    fn optim<O: SimpleOptimizer<Plain>>(&self, optim: Adaptor<O>) -> Value {
        let device = Default::default();
        let mut model = Small::known(&device);
        let mut own = optim.clone();
        for step in 0..STEPS {
            model = model.step(&mut own, step).0;
        }
        let record = load::<Train, _>(self.0, self.1);
        let mut loaded = optim.load_record(record);
        let (_, report) = model.step(&mut loaded, STEPS);
        report["after"].clone()
    }

    fn schedule<L: LrScheduler>(&self, scheduler: L) -> Value {
        let record = load::<Plain, _>(self.0, self.1);
        let mut loaded = scheduler.load_record::<Plain>(record);
        let rates: Vec<f64> = (0..8).map(|_| loaded.step()).collect();
        json!(rates)
    }

    fn check(&self, name: &str) -> Value {
        let d: Device<Plain> = Default::default();
        let decay = || Some(WeightDecayConfig::new(0.1));
        let value = || Some(GradientClippingConfig::Value(0.01));
        let norm = || Some(GradientClippingConfig::Norm(0.02));
        match name {
            "lists" => self.part(lists()),
            "tuples" => self.part(tuples()),
            "choices" => self.part(choices()),
            "params" => self.part(params()),
            "wides" => self.part(wides()),
            "bi_lstm" => self.part(BiLstmConfig::new(3, 2, false).init::<Plain>(&d)),
            "conv1d" => self.part(
                Conv1dConfig::new(4, 4, 3)
                    .with_groups(4)
                    .with_dilation(2)
                    .with_bias(false)
                    .init::<Plain>(&d),
            ),
            "conv3d" => self.part(
                Conv3dConfig::new([2, 4], [1, 2, 2])
                    .with_groups(2)
                    .with_stride([1, 2, 1])
                    .init::<Plain>(&d),
            ),
            "conv_transpose3d" => self.part(
                ConvTranspose3dConfig::new([2, 6], [2, 1, 2])
                    .with_groups(2)
                    .with_stride([2, 1, 1])
                    .with_padding([0, 0, 1])
                    .with_padding_out([1, 0, 0])
                    .with_bias(false)
                    .init::<Plain>(&d),
            ),
            "deform_conv2d" => self.part(
                DeformConv2dConfig::new([4, 2], [2, 2])
                    .with_weight_groups(2)
                    .with_offset_groups(2)
                    .with_bias(false)
                    .init::<Plain>(&d),
            ),
            "attention" => self.part(
                MultiHeadAttentionConfig::new(6, 3)
                    .with_dropout(0.3)
                    .with_min_float(-1e3)
                    .with_quiet_softmax(true)
                    .init::<Plain>(&d),
            ),
            "encoder" => self.part(
                TransformerEncoderConfig::new(4, 6, 2, 3)
                    .with_norm_first(true)
                    .with_quiet_softmax(true)
                    .init::<Plain>(&d),
            ),
            "decoder" => self.part(
                TransformerDecoderConfig::new(4, 6, 2, 3)
                    .with_dropout(0.0)
                    .init::<Plain>(&d),
            ),
            "instance_norm" => {
                self.part(InstanceNormConfig::new(3).with_affine(false).init::<Plain>(&d))
            }
            "batch_norm" => {
                self.part(BatchNormConfig::new(3).with_momentum(0.5).init::<Plain, 1>(&d))
            }
            "swiglu" => self.part(SwiGluConfig::new(3, 4).init::<Plain>(&d)),
            "rotary" => {
                self.part(RotaryEncodingConfig::new(6, 8).with_theta(100.0).init::<Plain>(&d))
            }
            "positional" => self.part(
                PositionalEncodingConfig::new(6)
                    .with_max_sequence_size(5)
                    .with_max_timescale(100)
                    .init::<Plain>(&d),
            ),
            "prelu" => self.part(PReluConfig::new().with_alpha(0.5).init::<Plain>(&d)),
            "optim-sgd" => {
                let momentum = MomentumConfig::new().with_momentum(0.5).with_dampening(0.3);
                let config = SgdConfig::new().with_momentum(Some(momentum.with_nesterov(true)));
                let config = config.with_weight_decay(decay());
                self.optim(config.with_gradient_clipping(norm()).init())
            }
            "optim-adam" => {
                let config = AdamConfig::new().with_epsilon(0.01).with_beta_1(0.5);
                let config = config.with_weight_decay(decay());
                self.optim(config.with_grad_clipping(value()).init())
            }
            "optim-adamw" => {
                let config = AdamWConfig::new().with_epsilon(0.01).with_weight_decay(0.5);
                self.optim(config.with_beta_1(0.7).with_grad_clipping(value()).init())
            }
            "optim-adagrad" => {
                let config = AdaGradConfig::new().with_epsilon(0.1).with_lr_decay(0.5);
                let config = config.with_weight_decay(decay());
                self.optim(config.with_grad_clipping(norm()).init())
            }
            "optim-rmsprop" => {
                let config = RmsPropConfig::new().with_alpha(0.5).with_epsilon(0.01);
                let config = config.with_momentum(0.3).with_centered(true);
                let config = config.with_weight_decay(decay());
                self.optim(config.with_grad_clipping(value()).init())
            }
            "schedule-linear" => self.schedule(LinearLrSchedulerConfig::new(1.0, 0.0, 1).init()),
            "schedule-cosine" => {
                let config = CosineAnnealingLrSchedulerConfig::new(0.5, 1).with_min_lr(0.5);
                self.schedule(config.init())
            }
            "schedule-exponential" => {
                self.schedule(ExponentialLrSchedulerConfig::new(1.0, 1.0).init())
            }
            "schedule-noam" => {
                let config = NoamLrSchedulerConfig::new(3.0).with_warmup_steps(1);
                self.schedule(config.with_model_size(1).init())
            }
            other => panic!("no case {other}"),
        }
    }
}

fn main() {
    std::panic::set_hook(Box::new(|_| {})); // what went wrong is in the line of the file
    for file in std::env::args().skip(1) {
        let path = Path::new(&file);
        let stem = path.with_extension("");
        let name = stem.file_name().unwrap().to_string_lossy().to_string();
        let format = path.extension().unwrap().to_string_lossy().to_string();
        let work = || Source(&stem, &format).check(&name);
        let line = match catch_unwind(AssertUnwindSafe(work)) {
            Ok(found) => json!({ "name": name, "format": format, "found": found }),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or(panic.downcast_ref::<&str>().map(|text| text.to_string()));
                json!({ "name": name, "format": format, "error": text.unwrap_or_default() })
            }
        };
        println!("{line}");
    }
}
