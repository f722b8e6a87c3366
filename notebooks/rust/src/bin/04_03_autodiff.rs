//! Chapter 4.3: gradients.
use burn_book::twin;

// ANCHOR: setup
use burn::backend::{Autodiff, NdArray};
use burn::nn::LinearConfig;
use burn::optim::GradientsParams;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::Tensor;

type B = Autodiff<NdArray>;
// ANCHOR_END: setup

// ANCHOR: gradients
fn calculate_gradients<B: AutodiffBackend>(
    tensor: Tensor<B, 2>,
) -> B::Gradients {
    let mut gradients = tensor.backward();
    let grad = tensor.grad(&gradients).unwrap();
    println!("grad         {}", grad.to_data());
    let removed = tensor.grad_remove(&mut gradients).unwrap();
    println!("grad_remove  {}", removed.to_data());
    let second = tensor.grad_remove(&mut gradients);
    println!("a second one {:?}", second.map(|g| g.to_data()));
    gradients
}

// ANCHOR_END: gradients
// ANCHOR: inner
fn example_validation<B: AutodiffBackend>(
    tensor: Tensor<B, 1>,
) -> Tensor<B::InnerBackend, 1> {
    tensor.inner() + 5
}

fn example_inference<B: Backend>(tensor: Tensor<B, 1>) -> Tensor<B, 1> {
    tensor + 5
}

// ANCHOR_END: inner
fn main() {
    twin("backward");
    // ANCHOR: backward
    let device = Default::default();
    let data = [[1.0, 2.0], [3.0, 4.0]];
    let x = Tensor::<B, 2>::from_data(data, &device).require_grad();
    let gradients = (x.clone() * x.clone()).backward();
    println!("{}", x.grad(&gradients).unwrap().to_data());
    // ANCHOR_END: backward

    twin("gradients");
    // ANCHOR: gradients
    let leaf = Tensor::<B, 2>::ones([2, 2], &device).require_grad();
    calculate_gradients(leaf); // x was used up: its graph went backward
                               // ANCHOR_END: gradients

    twin("two-leaves");
    // ANCHOR: two-leaves
    let s = Tensor::<B, 1>::from_floats([1.0, 2.0], &device).require_grad();
    let t = Tensor::<B, 1>::from_floats([3.0, 5.0], &device).require_grad();
    let out = s.clone() * t.clone() * s.clone() + t.clone();
    let gradients = out.backward();
    for (leaf, by_hand) in [(&s, [6.0, 20.0]), (&t, [2.0, 5.0])] {
        let found = leaf.grad(&gradients).unwrap();
        let expected = Tensor::from_floats(by_hand, &device);
        let same = found.clone().all_close(expected, None, None);
        println!("{same}: {:?}", found.dims());
    }
    // ANCHOR_END: two-leaves

    twin("is_require_grad");
    // ANCHOR: is_require_grad
    let square = s.clone() * s.clone();
    let untracked = s.clone().set_require_grad(false);
    let asked = [s.clone(), square.clone(), square.detach(), untracked];
    println!("{:?}", asked.map(|tensor| tensor.is_require_grad()));
    // ANCHOR_END: is_require_grad

    twin("detach");
    // ANCHOR: detach
    let both = (s.clone() * s.clone()).backward();
    println!("{}", s.grad(&both).unwrap().to_data());
    let one = (s.clone() * s.clone().detach()).backward();
    println!("{}", s.grad(&one).unwrap().to_data());
    // ANCHOR_END: detach

    twin("inner");
    // ANCHOR: inner
    let plain = Tensor::<NdArray, 1>::from_floats([1.0, 2.0], &device);
    println!("{}", example_validation(s.clone()).to_data());
    println!("{}", example_inference(plain).to_data());
    // ANCHOR_END: inner

    twin("from_inner");
    // ANCHOR: from_inner
    let up = Tensor::<B, 1>::from_inner(s.clone().inner());
    println!("{}", up.is_require_grad());
    // ANCHOR_END: from_inner

    twin("thread");
    // ANCHOR: thread
    let two = (s.clone() * 10.0 + t.clone()).backward();
    let leaf = s.clone();
    let worker = std::thread::spawn(move || leaf.grad(&two).unwrap());
    println!("{}", worker.join().unwrap().to_data());
    // ANCHOR_END: thread

    twin("mask");
    // ANCHOR: mask
    let square = s.clone() * s.clone();
    let mask = s.clone().greater_elem(1.5).float();
    let gradients = (square * mask).backward();
    println!("used     {}", s.grad(&gradients).unwrap().to_data());
    println!("unused   {:?}", t.grad(&gradients).map(|g| g.to_data()));
    // ANCHOR_END: mask

    twin("loss");
    // ANCHOR: loss
    let w = [[0.5], [-0.5]];
    let w = Tensor::<B, 2>::from_data(w, &device).require_grad();
    let y = x.matmul(w.clone()).tanh();
    let loss = (y.clone() * y).mean();
    let grads = loss.backward();
    println!("at w: {:.3}", w.grad(&grads).unwrap().to_data());
    // ANCHOR_END: loss

    twin("linear");
    // ANCHOR: linear
    let model = LinearConfig::new(2, 1).init::<B>(&device);
    let ones = Tensor::<B, 2>::ones([4, 2], &device);
    let gradients = model.forward(ones).backward();
    let by_id = GradientsParams::from_grads(gradients, &model);
    let weight = by_id.get::<NdArray, 2>(model.weight.id).unwrap();
    println!("{} {}", by_id.len(), weight.to_data());
    // ANCHOR_END: linear

    twin("shared");
    // ANCHOR: shared
    let shared = s.clone().exp();
    let out = shared.clone() * 2.0 + shared * 3.0;
    let found = s.grad(&out.backward()).unwrap();
    let expected = s.inner().exp() * 5.0;
    println!("{}", found.all_close(expected, None, None));
    // ANCHOR_END: shared
}
