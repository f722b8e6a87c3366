//! unusual FILE…
//!
//! Loads NAME.bpk with Burn 0.22.1 and prints one line of JSON for each file. A module:
//! everything that is in it, and it is written again beside the file as NAME_again.bpk.
//! An optimizer: its model, NAME_model.bpk, after one step more. A schedule: its next
//! rates.
#![allow(dead_code)]
#[path = "../show.rs"]
mod show;
#[path = "../small.rs"]
mod small;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use burn::grad_clipping::GradientClippingConfig;
use burn::lr_scheduler::composed::{ComposedLrSchedulerConfig, SchedulerReduction};
use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::lr_scheduler::exponential::ExponentialLrSchedulerConfig;
use burn::lr_scheduler::linear::LinearLrSchedulerConfig;
use burn::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use burn::lr_scheduler::noam::NoamLrSchedulerConfig;
use burn::lr_scheduler::sequential::SequentialLrSchedulerConfig;
use burn::lr_scheduler::step::StepLrSchedulerConfig;
use burn::lr_scheduler::{LrSchedulerConfig, LrSchedulerRecord};
use burn::module::{Module, Param, ParamGroup, ParamId};
use burn::nn::activation::ActivationConfig;
use burn::nn::conv::{Conv3dConfig, ConvTranspose3dConfig};
use burn::nn::transformer::PositionWiseFeedForwardConfig;
use burn::nn::*;
use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{
    AdaGradConfig, AdafactorConfig, AdamConfig, AdamWConfig, LambConfig, LionConfig,
    ModuleOptimizer, RmsPropConfig, SgdConfig,
};
use burn::prelude::*;
use burn::store::ModuleRecord;
use serde_json::{Value, json};
use small::Small;

#[derive(Module, Debug)]
pub enum Choice {
    Dense(Linear),
    Norm(LayerNorm),
    Nothing(Dropout),
}

#[derive(Module, Debug)]
pub struct Leaf {
    gain: Param<Tensor<1>>,
    size: usize,
    act: Relu,
    none: Option<Linear>,
    name: String,
}

#[derive(Module, Debug)]
pub struct Boxed {
    inner: Choice,
    more: Vec<Choice>,
}

#[derive(Module, Debug)]
pub enum Deep {
    Boxed(Boxed),
    One(Choice),
    Cell(Leaf),
    Act(Relu),
}

#[derive(Module, Debug)]
pub struct Lists {
    of_options: Vec<Option<Linear>>,
    nested: Vec<Vec<Leaf>>,
    optional: Option<Vec<Linear>>,
    absent: Option<Vec<Linear>>,
    of_choices: Vec<Choice>,
    of_pairs: Vec<(Linear, Dropout)>,
    of_nothing: Vec<Relu>,
    empty: Vec<Vec<Linear>>,
}

#[derive(Module, Debug)]
pub struct Tuples {
    three: (Linear, Option<Linear>, Vec<Leaf>),
    grid: [[Linear; 2]; 2],
    options: [Option<Leaf>; 2],
    deep: (([Param<Tensor<1>>; 2], Dropout), Choice),
    some: Option<(Linear, Linear)>,
    none: Option<(Linear, Linear)>,
    prob: Option<Dropout>,
}

#[derive(Module, Debug)]
pub struct Choices {
    some: Option<Choice>,
    none: Option<Choice>,
    one: Deep,
    cell: Deep,
    act: Deep,
    list: Vec<Option<Deep>>,
    pair: [Choice; 2],
}

#[derive(Module, Debug)]
pub enum Wide {
    Many(Vec<Linear>),
    Pairs(Vec<(Linear, Dropout)>),
    Two((Linear, Linear)),
    Gain(Param<Tensor<1>>),
    Size(usize),
}

#[derive(Module, Debug)]
pub struct Wides {
    list: Vec<Wide>,
    some: Option<Wide>,
    none: Option<Wide>,
}

#[derive(Module, Debug)]
pub struct Params {
    some: Option<Param<Tensor<2>>>,
    none: Option<Param<Tensor<2>>>,
    list: Vec<Param<Tensor<1>>>,
    pair: (Param<Tensor<1, Int>>, Param<Tensor<3, Bool>>),
    bare: (Tensor<1, Int>, Param<Tensor<1>>),
}

fn linear(bias: bool) -> Linear {
    LinearConfig::new(2, 2).with_bias(bias).init(&Device::default())
}

fn gain() -> Param<Tensor<1>> {
    Initializer::Ones.init([2], &Device::default())
}

fn leaf() -> Leaf {
    Leaf { gain: gain(), size: 3, act: Relu::new(), none: None, name: "leaf".into() }
}

fn dense() -> Choice {
    Choice::Dense(linear(true))
}

fn norm() -> Choice {
    Choice::Norm(LayerNormConfig::new(2).init(&Device::default()))
}

fn boxed(inner: Choice) -> Deep {
    Deep::Boxed(Boxed { inner, more: vec![norm(), Choice::Nothing(dropout()), dense()] })
}

fn dropout() -> Dropout {
    DropoutConfig::new(0.5).init()
}

fn lists() -> Lists {
    Lists {
        of_options: vec![Some(linear(true)), None, Some(linear(false))],
        nested: vec![vec![leaf()], vec![], vec![leaf(), leaf()]],
        optional: Some(vec![linear(false), linear(true)]),
        absent: None,
        of_choices: vec![norm(), Choice::Nothing(dropout()), dense()],
        of_pairs: vec![(linear(true), dropout()), (linear(false), dropout())],
        of_nothing: vec![Relu::new(), Relu::new()],
        empty: vec![],
    }
}

fn tuples() -> Tuples {
    Tuples {
        three: (linear(true), Some(linear(false)), vec![leaf(), leaf()]),
        grid: [[linear(true), linear(false)], [linear(false), linear(true)]],
        options: [Some(leaf()), None],
        deep: (([gain(), gain()], dropout()), norm()),
        some: Some((linear(false), linear(true))),
        none: None,
        prob: Some(dropout()),
    }
}

fn choices() -> Choices {
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

fn wides() -> Wides {
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

fn params() -> Params {
    let d = Device::default();
    let ints = Tensor::<1, Int>::from_data([1i64, 2, 3], &d);
    let flags = Tensor::<3, Int>::ones([1, 2, 2], &d).bool();
    Params {
        some: Some(Initializer::Ones.init([2, 1], &d)),
        none: None,
        list: vec![gain(), gain(), gain()],
        pair: (
            Param::initialized(ParamId::new(), ints.clone()),
            Param::initialized(ParamId::new(), flags),
        ),
        bare: (ints, gain()),
    }
}

fn part<M: Module>(module: M, file: &Path) -> Value {
    let record = ModuleRecord::load(file).unwrap_or_else(|error| panic!("{error}"));
    let module = module.try_load_record(record).unwrap_or_else(|error| panic!("{error}"));
    let name = file.file_stem().unwrap().to_string_lossy();
    let again = file.with_file_name(format!("{name}_again.bpk"));
    module.clone().save_file(again).unwrap_or_else(|error| panic!("{error}"));
    show::tensors(&module)
}

fn optim(optim: ModuleOptimizer, file: &Path) -> Value {
    let d = Device::default().autodiff();
    let name = file.file_stem().unwrap().to_string_lossy();
    let record = ModuleRecord::load(file.with_file_name(format!("{name}_model.bpk")));
    let model = Small::new(&d).try_load_record(record.unwrap()).unwrap();
    let mut optim = optim.load(file).unwrap_or_else(|error| panic!("{error}"));
    show::tensors(&small::train_step(model, &mut optim, &d).0)
}

fn schedule(made: Result<ModuleLrScheduler, String>, file: &Path) -> Value {
    let record = LrSchedulerRecord::load(file).unwrap_or_else(|error| panic!("{error}"));
    let mut schedule = made.unwrap().load_record(record);
    let rates: Vec<f64> = (0..8).map(|_| schedule.step().base()).collect();
    json!(rates)
}

fn sequential() -> SequentialLrSchedulerConfig {
    let inside = ComposedLrSchedulerConfig::new()
        .with_reduction(SchedulerReduction::Sum)
        .cosine(CosineAnnealingLrSchedulerConfig::new(0.5, 3))
        .step(StepLrSchedulerConfig::new(0.25, 2).with_gamma(0.5))
        .constant(0.125);
    SequentialLrSchedulerConfig::new(
        vec![
            LrSchedulerConfig::Linear(LinearLrSchedulerConfig::new(0.1, 0.5, 4)),
            LrSchedulerConfig::Composed(inside),
            LrSchedulerConfig::Noam(NoamLrSchedulerConfig::new(0.5).with_warmup_steps(2)),
        ],
        vec![2, 6],
    )
}

fn composed() -> ComposedLrSchedulerConfig {
    let inside = ComposedLrSchedulerConfig::new()
        .exponential(ExponentialLrSchedulerConfig::new(0.5, 0.9))
        .linear(LinearLrSchedulerConfig::new(1.0, 0.5, 3));
    ComposedLrSchedulerConfig::new()
        .with_reduction(SchedulerReduction::Avg)
        .step(StepLrSchedulerConfig::new(0.5, 3))
        .composed(inside)
        .noam(NoamLrSchedulerConfig::new(0.5).with_warmup_steps(4))
}

fn check(name: &str, file: &Path) -> Value {
    let d = Device::default();
    let decay = || Some(WeightDecayConfig::new(0.1));
    let value = || Some(GradientClippingConfig::Value(0.5));
    let norm = || Some(GradientClippingConfig::Norm(0.25));
    let prelu = || ActivationConfig::PRelu(PReluConfig::new().with_alpha(0.5));
    match name {
        "lists" => part(lists(), file),
        "tuples" => part(tuples(), file),
        "choices" => part(choices(), file),
        "params" => part(params(), file),
        "wides" => part(wides(), file),
        "bi_lstm" => part(BiLstmConfig::new(3, 2, false).with_input_forget(true).init(&d), file),
        "lstm" => part(LstmConfig::new(3, 2, true).with_cell_activation(prelu()).init(&d), file),
        "feed_forward" => part(
            PositionWiseFeedForwardConfig::new(3, 4).with_activation(prelu()).init(&d),
            file,
        ),
        "layer_norm" => part(LayerNormConfig::new(3).with_bias(false).init(&d), file),
        "group_norm" => part(GroupNormConfig::new(3, 6).with_affine(false).init(&d), file),
        "conv3d" => part(
            Conv3dConfig::new([2, 4], [1, 2, 2]).with_groups(2).with_bias(false).init(&d),
            file,
        ),
        "conv_transpose3d" => part(
            ConvTranspose3dConfig::new([2, 6], [2, 1, 2]).with_groups(2).init(&d),
            file,
        ),
        "rotary" => part(RotaryEncodingConfig::new(6, 8).with_theta(100.0).init(&d), file),
        "optim-sgd" => {
            let momentum = MomentumConfig::new().with_momentum(0.5).with_dampening(0.3);
            let config = SgdConfig::new().with_momentum(Some(momentum.with_nesterov(true)));
            let config = config.with_weight_decay(decay());
            optim(config.with_gradient_clipping(norm()).init(), file)
        }
        "optim-adam" => {
            let config = AdamConfig::new().with_amsgrad(true).with_weight_decay(decay());
            optim(config.with_grad_clipping(value()).init(), file)
        }
        "optim-adagrad" => {
            let config = AdaGradConfig::new().with_epsilon(0.1).with_lr_decay(0.5);
            optim(config.with_weight_decay(decay()).with_grad_clipping(norm()).init(), file)
        }
        "optim-rmsprop" => {
            let config = RmsPropConfig::new().with_alpha(0.5).with_epsilon(0.01);
            let config = config.with_momentum(0.3).with_centered(true);
            optim(config.with_weight_decay(decay()).with_grad_clipping(value()).init(), file)
        }
        "optim-lamb" => {
            let config = LambConfig::new().with_weight_decay(0.1).with_epsilon(0.01);
            optim(config.with_grad_clipping(norm()).init(), file)
        }
        "optim-lion" => {
            let config = LionConfig::new().with_weight_decay(0.1).with_beta_1(0.5);
            optim(config.with_grad_clipping(value()).init(), file)
        }
        "optim-adafactor" => {
            let config = AdafactorConfig::new().with_weight_decay(0.1).with_clip_threshold(0.5);
            optim(config.with_relative_step(false).with_grad_clipping(norm()).init(), file)
        }
        "optim-groups" => {
            let group = ParamGroup::from_predicate("linear");
            let inner = AdamWConfig::new().with_weight_decay(0.1).build();
            optim(SgdConfig::new().init().with_group(group, inner, None), file)
        }
        "schedule-sequential" => schedule(sequential().init(), file),
        "schedule-composed" => schedule(composed().init(), file),
        "schedule-both" => schedule(composed().composed(composed()).init(), file),
        other => panic!("no case {other}"),
    }
}

fn main() {
    std::panic::set_hook(Box::new(|_| {})); // what went wrong is in the line of the file
    for file in std::env::args().skip(1) {
        let path = Path::new(&file);
        let name = path.file_stem().unwrap().to_string_lossy().to_string();
        let line = match catch_unwind(AssertUnwindSafe(|| check(&name, path))) {
            Ok(found) => json!({ "name": name, "found": found }),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or(panic.downcast_ref::<&str>().map(|text| text.to_string()));
                json!({ "name": name, "error": text.unwrap_or_default() })
            }
        };
        println!("{line}");
    }
}
