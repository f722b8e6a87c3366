//! ops [--seed N] [--rounds N]
//!
//! Calls Burn 0.15.0 with inputs drawn from a seed and prints every call with its result,
//! as JSON: {"burn", "backend", "seed", "cases"}. The fields of a case are those of
//! shared/burn/OPS.md. Every round draws other shapes, numbers and settings. Metrics are
//! not among them: burn-train is no part of this build.
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Display;
use std::io::Write;
use std::panic::{catch_unwind, AssertUnwindSafe};

use burn::backend::{Autodiff, NdArray};
use burn::grad_clipping::GradientClippingConfig;
use burn::module::{AutodiffModule, DisplaySettings, Module, ModuleMapper, ModuleVisitor, ParamId};
use burn::nn::attention::{
    generate_autoregressive_mask, generate_padding_mask, MhaCache, MhaInput,
    MultiHeadAttentionConfig,
};
use burn::nn::conv::*;
use burn::nn::gru::GruConfig;
use burn::nn::interpolate::{Interpolate1dConfig, Interpolate2dConfig, InterpolateMode};
use burn::nn::loss::*;
use burn::nn::pool::*;
use burn::nn::transformer::*;
use burn::nn::*;
use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{AdaGradConfig, AdamConfig, AdamWConfig, RmsPropConfig, SgdConfig};
use burn::record::FullPrecisionSettings;
use burn::tensor::activation::*;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::module as functional;
use burn::tensor::ops::{
    ConvOptions, ConvTransposeOptions, DeformConvOptions, InterpolateMode as Mode,
    InterpolateOptions, UnfoldOptions,
};
use burn::tensor::quantization::{
    Calibration, MinMaxCalibration, QuantizationParameters, QuantizationScheme,
    QuantizationStrategy, QuantizationType,
};
use burn::tensor::{
    check_closeness, set_print_options, BasicOps, Bool, DType, Element, ElementConversion, Float,
    Int, Numeric, PrintOptions, Shape, Tensor, TensorData,
};
use burn_records::tree::{flatten, item};
use serde_json::{json, Map, Value};

#[macro_use]
mod making;
mod chains;
mod chance;
mod configs;
mod elements;
mod gradients;
mod layers;
mod telling;
mod tensors;
mod texts;

use chains::*;
use chance::*;
use configs::*;
use elements::*;
use gradients::*;
use layers::*;
use making::*;
use telling::*;
use tensors::*;
use texts::*;

type B = NdArray<f32>;
type Ad = Autodiff<B>;
type Gradients = <Ad as AutodiffBackend>::Gradients;
type F<const D: usize> = Tensor<B, D>;
type I<const D: usize> = Tensor<B, D, Int>;
type L<const D: usize> = Tensor<B, D, Bool>;
type A<const D: usize> = Tensor<Ad, D>;

fn device<D: Default>() -> D {
    D::default()
}

/// Every op once or several times, with new inputs.
fn one_round() {
    macro_rules! of_kinds {
        ($($rank:literal)*) => {$(
            basic::<Float, $rank>();
            basic::<Int, $rank>();
            basic::<Bool, $rank>();
            numeric::<Float, $rank>();
            numeric::<Int, $rank>();
        )*};
    }
    of_kinds!(1 2 3 4 5);
    macro_rules! flat_kinds {
        ($($rank:literal)*) => {$(
            flat::<Float, $rank>();
            flat::<Int, $rank>();
        )*};
    }
    flat_kinds!(2 3 4 5);
    ranked::<Float>();
    ranked::<Int>();
    ranked::<Bool>();
    ranks!(real made slopes displays quantized losses);
    norms::<2>();
    norms::<3>();
    norms::<4>();
    norms::<5>();
    other_makers();
    other_slopes();
    sliding();
    pooling();
    sequences();
    transformers();
    long_displays();
    closeness();
    elements();
    configs();
    modules();
    chains();
    larger();
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments
        .first()
        .is_some_and(|first| first == "--closeness")
    {
        return print_closeness();
    }
    let given = |name: &str, or: u64| {
        let at = arguments.iter().position(|one| one == name);
        at.map_or(or, |at| arguments[at + 1].parse().expect("a whole number"))
    };
    let seed = given("--seed", 0);
    STATE.with(|state| *state.borrow_mut() = seed);
    std::panic::set_hook(Box::new(|_| {}));
    for _ in 0..given("--rounds", 1) {
        one_round();
    }
    CASES.with(|cases| {
        let told = json!({ "burn": "0.15.0", "backend": "ndarray", "seed": seed,
            "cases": *cases.borrow() });
        let text = serde_json::to_string(&told).unwrap();
        std::io::stdout().write_all(text.as_bytes()).unwrap();
    });
}
