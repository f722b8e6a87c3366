//! Values as JSON: inputs, arguments, outputs.
use super::*;

/// A number with the fewest digits that name it; what JSON cannot write, as a text.
pub fn short(value: f32) -> Value {
    match value.to_string().parse::<f64>() {
        Ok(number) if number.is_finite() => json!(number),
        _ => json!(value.to_string()),
    }
}

pub fn double(value: f64) -> Value {
    if value.is_finite() {
        json!(value)
    } else {
        json!(value.to_string())
    }
}

pub fn data(data: &TensorData) -> Value {
    let (dtype, values): (&str, Vec<Value>) = match data.dtype {
        DType::F64 => ("f64", data.iter::<f64>().map(double).collect()),
        DType::F32 => ("f32", data.iter::<f32>().map(short).collect()),
        DType::I64 => ("i64", data.iter::<i64>().map(Value::from).collect()),
        DType::I32 => ("i32", data.iter::<i64>().map(Value::from).collect()),
        DType::I8 => ("i8", data.iter::<i64>().map(Value::from).collect()),
        DType::U8 => ("u8", data.iter::<i64>().map(Value::from).collect()),
        DType::Bool => ("bool", data.bytes.iter().map(|b| json!(*b != 0)).collect()),
        DType::QFloat(_) => ("i8", data.bytes.iter().map(|b| json!(*b as i8)).collect()),
        other => panic!("no way to tell {other:?}"),
    };
    json!({ "dtype": dtype, "shape": data.shape, "data": values })
}

pub fn input<Bk: Backend, const D: usize, K: BasicOps<Bk>>(
    name: &str,
    tensor: &Tensor<Bk, D, K>,
) -> Value {
    let found = tensor.to_data();
    let mut told = data(&found);
    if found.dtype == DType::F32 {
        let signed = |x: f32| x.is_nan() && x.is_sign_negative();
        let one = |x| if signed(x) { json!("-NaN") } else { short(x) };
        told["data"] = found.iter::<f32>().map(one).collect();
    }
    told["name"] = json!(name);
    told
}

/// What a call may give: one or more outputs.
pub trait Outcome {
    fn outputs(self) -> Vec<Value>;
}

impl<Bk: Backend, const D: usize, K: BasicOps<Bk>> Outcome for Tensor<Bk, D, K> {
    fn outputs(self) -> Vec<Value> {
        vec![data(&self.to_data())]
    }
}

impl Outcome for TensorData {
    fn outputs(self) -> Vec<Value> {
        vec![data(&self)]
    }
}

impl Outcome for String {
    fn outputs(self) -> Vec<Value> {
        vec![json!({ "text": self })]
    }
}

impl Outcome for () {
    fn outputs(self) -> Vec<Value> {
        vec![]
    }
}

impl Outcome for Shape {
    fn outputs(self) -> Vec<Value> {
        vec![json!({ "value": self.dims })]
    }
}

impl Outcome for Value {
    fn outputs(self) -> Vec<Value> {
        vec![json!({ "value": self })]
    }
}

impl<T: Outcome> Outcome for Option<T> {
    fn outputs(self) -> Vec<Value> {
        self.map_or(vec![json!({ "value": null })], Outcome::outputs)
    }
}

impl<T: Outcome> Outcome for Vec<T> {
    fn outputs(self) -> Vec<Value> {
        self.into_iter().flat_map(Outcome::outputs).collect()
    }
}

impl<S: Outcome, T: Outcome> Outcome for (S, T) {
    fn outputs(self) -> Vec<Value> {
        [self.0.outputs(), self.1.outputs()].concat()
    }
}

impl<S: Outcome, T: Outcome, U: Outcome> Outcome for (S, T, U) {
    fn outputs(self) -> Vec<Value> {
        [self.0.outputs(), self.1.outputs(), self.2.outputs()].concat()
    }
}

/// An argument, as JSON.
pub trait Arg {
    fn told(&self) -> Value;
}

macro_rules! plain_args {
    ($($kind:ty)*) => {$(
        impl Arg for $kind {
            fn told(&self) -> Value {
                json!(self)
            }
        }
        impl Outcome for $kind {
            fn outputs(self) -> Vec<Value> {
                vec![json!({ "value": self })]
            }
        }
    )*};
}
plain_args!(bool usize i64 i32 i8 u8);

impl Arg for f64 {
    fn told(&self) -> Value {
        double(*self)
    }
}

impl Arg for f32 {
    fn told(&self) -> Value {
        short(*self)
    }
}

impl Outcome for f32 {
    fn outputs(self) -> Vec<Value> {
        vec![json!({ "value": short(self) })]
    }
}

impl Outcome for f64 {
    fn outputs(self) -> Vec<Value> {
        vec![json!({ "value": double(self) })]
    }
}

impl Arg for &str {
    fn told(&self) -> Value {
        json!(self)
    }
}

impl<T: Arg, const N: usize> Arg for [T; N] {
    fn told(&self) -> Value {
        self.iter().map(Arg::told).collect()
    }
}

impl<T: Arg> Arg for Vec<T> {
    fn told(&self) -> Value {
        self.iter().map(Arg::told).collect()
    }
}

impl<T: Arg> Arg for Option<T> {
    fn told(&self) -> Value {
        self.as_ref().map_or(Value::Null, Arg::told)
    }
}

impl<S: Arg, T: Arg> Arg for (S, T) {
    fn told(&self) -> Value {
        json!([self.0.told(), self.1.told()])
    }
}

impl<T: Arg> Arg for (T, T, T, T) {
    fn told(&self) -> Value {
        json!([self.0.told(), self.1.told(), self.2.told(), self.3.told()])
    }
}

impl<T: Arg> Arg for std::ops::Range<T> {
    fn told(&self) -> Value {
        json!([self.start.told(), self.end.told()])
    }
}

/// Indices: a list in lists.
impl<const D: usize> Arg for I<D> {
    fn told(&self) -> Value {
        let flat: Vec<i64> = self.to_data().iter().collect();
        let mut lists: Vec<Value> = flat.into_iter().map(Value::from).collect();
        for size in self.dims().into_iter().skip(1).rev() {
            lists = lists.chunks(size).map(|part| json!(part)).collect();
        }
        json!(lists)
    }
}
