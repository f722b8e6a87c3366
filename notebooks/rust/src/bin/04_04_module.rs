//! Chapter 4.4: modules.
use burn_book::twin;

// ANCHOR: setup
use burn::backend::{Autodiff, NdArray};
use burn::module::{
    AutodiffModule, Content, DisplaySettings, Module, ModuleDisplay,
    ModuleMapper, ModuleVisitor, Param, ParamId,
};
use burn::nn;
use burn::tensor::backend::Backend;
use burn::tensor::{ElementConversion, Tensor};

type MyBackend = Autodiff<NdArray>;
// ANCHOR_END: setup

// ANCHOR: feed-forward
#[derive(Module, Debug)]
pub struct PositionWiseFeedForward<B: Backend> {
    linear_inner: nn::Linear<B>,
    linear_outer: nn::Linear<B>,
    dropout: nn::Dropout,
    gelu: nn::Gelu,
}

impl<B: Backend> PositionWiseFeedForward<B> {
    pub fn forward<const D: usize>(&self, x: Tensor<B, D>) -> Tensor<B, D> {
        let x = self.gelu.forward(self.linear_inner.forward(x));
        self.linear_outer.forward(self.dropout.forward(x))
    }
}
// ANCHOR_END: feed-forward

// ANCHOR: shapes
struct Shapes;

impl<B: Backend> ModuleVisitor<B> for Shapes {
    fn visit_float<const D: usize>(&mut self, _: ParamId, t: &Tensor<B, D>) {
        println!("{:?}", t.dims());
    }
}

// ANCHOR_END: shapes
// ANCHOR: param
#[derive(Module, Debug)]
pub struct Scaled<B: Backend> {
    gain: Param<Tensor<B, 1>>,
    offset: Param<Tensor<B, 1>>,
    table: Tensor<B, 1>,
}

impl<B: Backend> Scaled<B> {
    pub fn forward(&self, x: Tensor<B, 1>) -> Tensor<B, 1> {
        x * self.gain.val() + self.offset.val() + self.table.clone()
    }
}

// ANCHOR_END: param
// ANCHOR: visitor
struct Largest {
    found: f64,
}

impl<B: Backend> ModuleVisitor<B> for Largest {
    fn visit_float<const D: usize>(&mut self, _: ParamId, t: &Tensor<B, D>) {
        let largest: f64 = t.clone().abs().max().into_scalar().elem();
        self.found = self.found.max(largest);
    }
}

struct Clip;

impl<B: Backend> ModuleMapper<B> for Clip {
    fn map_float<const D: usize>(
        &mut self,
        _: ParamId,
        tensor: Tensor<B, D>,
    ) -> Tensor<B, D> {
        tensor.clamp(-0.1, 0.1)
    }
}
// ANCHOR_END: visitor

// ANCHOR: enum-module
#[derive(Module, Debug)]
pub enum Layer<B: Backend> {
    Linear(nn::Linear<B>),
    Conv1d(nn::conv::Conv1d<B>),
}

#[derive(Module, Debug)]
pub struct Head<B: Backend> {
    layer: Layer<B>,
}

// ANCHOR_END: enum-module
// ANCHOR: display
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Shown<B: Backend> {
    linear_inner: nn::Linear<B>,
    linear_outer: nn::Linear<B>,
}

impl<B: Backend> ModuleDisplay for Shown<B> {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new()
            .with_show_all_attributes(false)
            .with_new_line_after_attribute(true)
            .with_show_num_parameters(true)
            .with_indentation_size(2)
            .with_show_param_id(false)
            .optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        content
            .add("linear_inner", &self.linear_inner)
            .add("linear_outer", &self.linear_outer)
            .add("anything", "anything_else")
            .optional()
    }
}

// ANCHOR_END: display
fn main() {
    twin("make");
    // ANCHOR: make
    let device = Default::default();
    let block = PositionWiseFeedForward::<MyBackend> {
        linear_inner: nn::LinearConfig::new(4, 8).init(&device),
        linear_outer: nn::LinearConfig::new(8, 4).init(&device),
        dropout: nn::DropoutConfig::new(0.1).init(),
        gelu: nn::Gelu::new(),
    };
    let x = Tensor::from_floats([[[0.5, -1.0, 2.0, 0.0]]], &device);
    println!("{:?}", block.forward::<3>(x).dims());
    // ANCHOR_END: make

    twin("print");
    // ANCHOR: print
    println!("{block}");
    // ANCHOR_END: print

    twin("shapes");
    // ANCHOR: shapes
    block.visit(&mut Shapes);
    // ANCHOR_END: shapes

    twin("into_record");
    // ANCHOR: into_record
    let ones = Tensor::<MyBackend, 1>::ones([4], &device);
    let offset = Param::from_tensor(ones.clone() * 2.0);
    let scaled = Scaled {
        gain: Param::from_tensor(ones.clone()),
        offset: offset.set_require_grad(false),
        table: ones.clone() * 3.0,
    };
    let grads = scaled.forward(ones).sum().backward();
    println!("gain:   {}", scaled.gain.val().grad(&grads).unwrap());
    let offset = scaled.offset.val().grad(&grads);
    println!("offset: {:?}", offset.map(|grad| grad.to_data()));
    let record = scaled.into_record(); // has the fields gain, offset, table
    assert_eq!(record.gain.val().dims(), [4]);
    // ANCHOR_END: into_record

    twin("fork");
    // ANCHOR: fork
    let frozen = block.clone().no_grad(); // no parameter is trained
    let valid = block.valid(); // the same without autodiff: dropout is off
    let copy = block.clone().fork(&device); // detached from its graph
    println!("{} {}", copy.num_params(), frozen.num_params());
    let x = Tensor::<NdArray, 3>::ones([1, 1, 4], &device);
    assert_eq!(valid.forward(x).dims(), [1, 1, 4]);
    // ANCHOR_END: fork

    twin("visit");
    // ANCHOR: visit
    let mut after = Largest { found: 0.0 };
    let clipped = block.map(&mut Clip);
    clipped.visit(&mut after);
    println!("{:.4}", after.found);
    // ANCHOR_END: visit

    twin("enum-module");
    // ANCHOR: enum-module
    let config = nn::LinearConfig::new(4, 2).with_bias(false);
    let layer = Layer::Linear(config.init::<MyBackend>(&device));
    println!("{}", Head { layer });
    let config = nn::conv::Conv1dConfig::new(4, 2, 3);
    let layer = Layer::Conv1d(config.init::<MyBackend>(&device));
    assert_eq!(Head { layer }.num_params(), 26);
    // ANCHOR_END: enum-module

    twin("display-use");
    // ANCHOR: display-use
    let shown = Shown {
        linear_inner: clipped.linear_inner,
        linear_outer: clipped.linear_outer,
    };
    println!("{shown}");
    // ANCHOR_END: display-use
}
