//! How a case is made: the call with its inputs, and what Burn answered.
use super::*;

thread_local! {
    pub static CASES: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
    static COUNTS: RefCell<HashMap<String, usize>> = RefCell::new(HashMap::new());
}

/// What is known of a call before it is made.
pub struct Call {
    pub group: &'static str,
    pub op: &'static str,
    pub call: &'static str,
    pub inputs: Vec<Value>,
    pub args: Map<String, Value>,
    pub more: Map<String, Value>,
}

pub const WRAPS: [&str; 4] = ["add", "subtract", "multiply", "negate"];

pub fn tried<T>(run: impl FnOnce() -> T) -> Result<T, Value> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|found| {
        let text = match found.downcast::<String>() {
            Ok(text) => *text,
            Err(found) => found
                .downcast::<&str>()
                .map_or("?".into(), |t| t.to_string()),
        };
        json!({ "panic": text })
    })
}

pub fn push(call: Call, run: impl FnOnce() -> Vec<Value>) {
    let outputs = tried(run).map_or_else(|panic| panic, Value::Array);
    if WRAPS
        .iter()
        .any(|text| outputs["panic"] == format!("attempt to {text} with overflow"))
    {
        return; // a check of debug builds: a release wraps round
    }
    let first = call.inputs.first().or_else(|| outputs.as_array()?.first());
    let kind = match first.and_then(|one| one["dtype"].as_str()) {
        Some("f32" | "f64") => "Float",
        Some("bool") => "Bool",
        Some(_) => "Int",
        None => "-",
    };
    let name = format!("{}/{}", call.group, call.op);
    let place = COUNTS.with(|counts| {
        let mut counts = counts.borrow_mut();
        let count = counts.entry(name.clone()).or_insert(0);
        *count += 1;
        *count - 1
    });
    let text = call.call.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut case = json!({
        "id": format!("{name}/{place}"), "group": call.group, "op": call.op, "kind": kind,
        "inputs": call.inputs, "args": call.args, "call": text, "outputs": outputs,
    });
    case.as_object_mut().unwrap().extend(call.more);
    CASES.with(|cases| cases.borrow_mut().push(case));
}

macro_rules! told {
    ($($a:ident),*) => {{
        #[allow(unused_mut)]
        let mut told = Map::new();
        $(told.insert(stringify!($a).trim_start_matches("r#").to_string(), Arg::told(&$a));)*
        told
    }};
}

/// One call: group, op, inputs, arguments by their names, the call.
macro_rules! case {
    ($group:literal, $op:literal, [$($x:ident),*], {$($a:ident),*}, $call:expr) => {{
        let call = Call {
            group: $group,
            op: $op,
            call: stringify!($call),
            inputs: vec![$(input(stringify!($x), &$x)),*],
            args: told!($($a),*),
            more: Map::new(),
        };
        push(call, || {
            $(#[allow(unused_variables)] let $x = $x.clone();)*
            Outcome::outputs($call)
        });
    }};
}

/// A tensor under Autodiff.
pub trait Lift {
    type Lifted;
    fn lift(&self) -> Self::Lifted;
}

impl<const D: usize> Lift for F<D> {
    type Lifted = A<D>;
    fn lift(&self) -> A<D> {
        Tensor::from_inner(self.clone())
    }
}

impl<const D: usize> Lift for I<D> {
    type Lifted = Tensor<Ad, D, Int>;
    fn lift(&self) -> Self::Lifted {
        Tensor::from_inner(self.clone())
    }
}

impl<const D: usize> Lift for L<D> {
    type Lifted = Tensor<Ad, D, Bool>;
    fn lift(&self) -> Self::Lifted {
        Tensor::from_inner(self.clone())
    }
}

pub type Leaf = Box<dyn Fn(&Gradients) -> Value>;

pub fn leaf<const D: usize>(x: &A<D>) -> Leaf {
    let x = x.clone();
    Box::new(move |grads| {
        let found = x.grad(grads);
        found.map_or(Value::Null, |grad| data(&grad.into_data()))
    })
}

/// Gradients of the parameters, by their ids.
pub struct Collect<'a> {
    pub grads: &'a Gradients,
    pub found: HashMap<String, Value>,
}

impl ModuleVisitor<Ad> for Collect<'_> {
    fn visit_float<const D: usize>(&mut self, id: ParamId, tensor: &A<D>) {
        if let Some(grad) = tensor.grad(self.grads) {
            self.found.insert(id.serialize(), data(&grad.into_data()));
        }
    }
}

/// The output, and the gradients of the sum of (output · weights).
pub fn gradients<const D: usize>(out: A<D>, leaves: Vec<Leaf>) -> (Vec<Value>, Gradients) {
    let count = out.shape().num_elements();
    let weights: Vec<f32> = (0..count)
        .map(|k| ((37 * k % 23) as f32 - 11.0) / 10.0)
        .collect();
    let weights = A::<D>::from_data(TensorData::new(weights, out.shape()), &device());
    let grads = (out.clone() * weights).sum().backward();
    let mut told = vec![data(&out.into_data())];
    told.extend(leaves.iter().map(|leaf| leaf(&grads)));
    (told, grads)
}

/// The same under Autodiff: group, op, tracked inputs, other inputs, arguments, the call.
macro_rules! grad {
    ($group:literal, $op:literal, [$($x:ident),*], [$($u:ident),*], {$($a:ident),*}, $call:expr) => {{
        let mut more = Map::new();
        more.insert("tracked".to_string(), json!([$(stringify!($x)),*]));
        let call = Call {
            group: $group,
            op: $op,
            call: stringify!($call),
            inputs: vec![$(input(stringify!($x), &$x),)* $(input(stringify!($u), &$u),)*],
            args: told!($($a),*),
            more,
        };
        push(call, || {
            $(let $x = $x.lift().require_grad();)*
            $(let $u = $u.lift();)*
            let leaves = vec![$(leaf(&$x)),*];
            gradients($call, leaves).0
        });
    }};
}

// Layers.

/// Gives every parameter numbers of our own.
pub struct Draw {
    positive: bool,
}

impl<Bk: Backend> ModuleMapper<Bk> for Draw {
    fn map_float<const D: usize>(&mut self, _: ParamId, old: Tensor<Bk, D>) -> Tensor<Bk, D> {
        let next = || {
            if self.positive {
                positive()
            } else {
                number() / 2.0
            }
        };
        let values: Vec<f32> = (0..old.shape().num_elements()).map(|_| next()).collect();
        let made = Tensor::from_data(TensorData::new(values, old.shape()), &old.device());
        made.set_require_grad(old.is_require_grad())
    }
}

/// Every parameter by its name, with its id.
pub fn params<Bk: Backend, M: Module<Bk>>(module: &M) -> Vec<(Value, Option<String>)> {
    let found = flatten(&item::<Bk, FullPrecisionSettings, _>(
        module.clone().into_record(),
    ));
    let tensors = found
        .into_iter()
        .filter(|(_, one)| one["values"].is_array());
    tensors
        .map(|(name, one)| {
            let told = json!({ "name": name, "dtype": "f32", "shape": one["shape"],
                "data": one["values"] });
            (told, one["id"].as_str().map(String::from))
        })
        .collect()
}

pub fn described<Bk: Backend, M: Module<Bk> + Display>(
    config: &str,
    made: &Result<M, Value>,
) -> Map<String, Value> {
    let mut more = Map::new();
    more.insert("config".into(), serde_json::from_str(config).unwrap());
    if let Ok(made) = made {
        let params: Vec<Value> = params(made).into_iter().map(|one| one.0).collect();
        more.insert("params".into(), json!(params));
        more.insert("display".into(), json!(made.to_string()));
        more.insert("num_params".into(), json!(Module::num_params(made)));
    }
    more
}

pub fn drawn<Bk: Backend, M: Module<Bk>>(name: &str, init: impl FnOnce() -> M) -> Result<M, Value> {
    let positive = name.contains("BatchNorm");
    tried(|| init().map(&mut Draw { positive }))
}

/// A layer: group, op, config, the layer, inputs, arguments, the call.
macro_rules! layer {
    ($group:literal, $op:literal, $config:ident, $m:ident = $init:expr,
     [$($x:ident),*], {$($a:ident),*}, $call:expr) => {{
        let made = drawn::<B, _>($op, || $init);
        let call = Call {
            group: $group,
            op: $op,
            call: stringify!($call),
            inputs: vec![$(input(stringify!($x), &$x)),*],
            args: told!($($a),*),
            more: described::<B, _>(&$config.to_string(), &made),
        };
        push(call, || {
            $(#[allow(unused_variables)] let $x = $x.clone();)*
            let $m = &made.unwrap_or_else(|told| panic!("{}", told["panic"]));
            Outcome::outputs($call)
        });
    }};
}

/// A layer under Autodiff, with the gradients of its parameters.
macro_rules! trained {
    ($group:literal, $op:literal, $config:ident, $m:ident = $init:expr,
     [$($x:ident),*], [$($u:ident),*], {$($a:ident),*}, $call:expr) => {{
        let made = drawn::<Ad, _>($op, || $init);
        let mut more = described::<Ad, _>(&$config.to_string(), &made);
        more.insert("tracked".into(), json!([$(stringify!($x)),*]));
        let call = Call {
            group: $group,
            op: $op,
            call: stringify!($call),
            inputs: vec![$(input(stringify!($x), &$x),)* $(input(stringify!($u), &$u),)*],
            args: told!($($a),*),
            more,
        };
        push(call, || {
            $(let $x = $x.lift().require_grad();)*
            $(let $u = $u.lift();)*
            let leaves = vec![$(leaf(&$x)),*];
            let $m = &made.unwrap_or_else(|told| panic!("{}", told["panic"]));
            let (mut told, grads) = gradients($call, leaves);
            let mut collect = Collect { grads: &grads, found: HashMap::new() };
            $m.visit(&mut collect);
            for (_, id) in params($m) {
                told.push(collect.found.get(&id.unwrap_or_default()).cloned().into());
            }
            told
        });
    }};
}

macro_rules! ranks {
    ($($function:ident)*) => {$(
        $function::<1>();
        $function::<2>();
        $function::<3>();
        $function::<4>();
        $function::<5>();
    )*};
}
