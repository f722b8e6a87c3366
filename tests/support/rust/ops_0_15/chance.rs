//! Everything is drawn from one seed: numbers, shapes, tensors.
use super::*;

thread_local! {
    pub static STATE: RefCell<u64> = const { RefCell::new(0) };
}

pub fn below(limit: usize) -> usize {
    STATE.with(|state| {
        let mut state = state.borrow_mut();
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % limit.max(1) as u64) as usize
    })
}

pub fn percent(share: usize) -> bool {
    below(100) < share
}

pub fn pick<T: Clone>(list: &[T]) -> T {
    list[below(list.len())].clone()
}

/// A number from -2 to 2 with three digits.
pub fn number() -> f32 {
    (below(4001) as f32 - 2000.0) / 1000.0
}

/// A number from 0.05 to 2.05.
pub fn positive() -> f32 {
    (below(2001) as f32 + 50.0) / 1000.0
}

pub const STRANGE: [f32; 20] = [
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    0.0,
    -0.0,
    1e-40,
    3e38,
    -3e38,
    1e-8,
    1e8,
    0.5,
    2.5,
    -1.5,
    16777217.0,
    -2147483904.0,
    88.5,
    -104.0,
    1.0,
    -1.0,
    3.4e-5,
];
pub const LARGE: [i64; 14] = [
    i64::MAX,
    i64::MIN,
    1 << 31,
    -(1 << 31),
    (1 << 53) + 1,
    1 << 62,
    -(1 << 62),
    255,
    256,
    -1,
    0,
    16777217,
    i64::MAX - 1,
    1 << 40,
];

/// As one chooses numbers: the same mood for all of a tensor.
pub fn float() -> Box<dyn Fn() -> f32> {
    match below(20) {
        0..=10 => Box::new(number),
        11..=13 => Box::new(|| (below(5) as f32 - 2.0) / 2.0),
        14..=15 => Box::new(|| {
            if percent(30) {
                pick(&STRANGE)
            } else {
                number()
            }
        }),
        16 => Box::new(positive),
        17 => Box::new(|| number() * 10f32.powi(below(13) as i32 - 6)),
        18 => Box::new(|| pick(&[f32::INFINITY, 1.0, f32::NEG_INFINITY, -0.5])),
        _ => Box::new(|| number() * 40.0),
    }
}

pub fn int() -> Box<dyn Fn() -> i64> {
    match below(10) {
        0..=5 => Box::new(|| below(19) as i64 - 9),
        6..=7 => Box::new(|| below(3) as i64),
        8 => Box::new(|| {
            if percent(40) {
                pick(&LARGE)
            } else {
                below(9) as i64
            }
        }),
        _ => Box::new(|| (below(2_000_001) as i64 - 1_000_000) * 7919),
    }
}

pub fn shape<const D: usize>() -> [usize; D] {
    let most = [11, 5, 4, 3, 3][D - 1];
    std::array::from_fn(|_| match below(100) {
        0..=1 => 0,
        2..=16 => 1,
        _ => 1 + below(most),
    })
}

/// A shape without a size of 0.
pub fn full_shape<const D: usize>() -> [usize; D] {
    shape().map(|size| size.max(1))
}

/// A shape to stretch with: some sizes of 1, rarely another size.
pub fn partner<const D: usize>(of: [usize; D]) -> [usize; D] {
    of.map(|size| match below(40) {
        0 => size + 1,
        1..=6 => 1,
        _ => size,
    })
}

pub fn dim<const D: usize>() -> usize {
    if percent(4) {
        D
    } else {
        below(D)
    }
}

pub fn filled<E: Element, K: BasicOps<B>, const D: usize>(
    shape: [usize; D],
    next: &dyn Fn() -> E,
) -> Tensor<B, D, K> {
    let count = shape.iter().product();
    if count == 0 {
        return Tensor::empty(shape, &device());
    }
    let values: Vec<E> = (0..count).map(|_| next()).collect();
    viewed(Tensor::from_data(TensorData::new(values, shape), &device()))
}

/// The same elements, sometimes in another order in memory.
pub fn viewed<K: BasicOps<B>, const D: usize>(x: Tensor<B, D, K>) -> Tensor<B, D, K> {
    if D == 1 || percent(60) {
        return x;
    }
    let (one, other) = (below(D), D - 1);
    let swapped = x.swap_dims(one, other).into_data();
    Tensor::<B, D, K>::from_data(swapped, &device()).swap_dims(one, other)
}

pub fn floats<const D: usize>(shape: [usize; D]) -> F<D> {
    filled(shape, &float())
}

pub fn numbers<const D: usize>(shape: [usize; D]) -> F<D> {
    filled(shape, &number)
}

/// Numbers that lie in memory row by row.
pub fn straight<const D: usize>(shape: [usize; D]) -> F<D> {
    F::from_data(numbers(shape).into_data(), &device())
}

pub fn positives<const D: usize>(shape: [usize; D]) -> F<D> {
    filled(shape, &positive)
}

pub fn ints<const D: usize>(shape: [usize; D]) -> I<D> {
    filled(shape, &int())
}

pub fn under<const D: usize>(shape: [usize; D], limit: usize) -> I<D> {
    filled(shape, &|| below(limit) as i64)
}

pub fn truths<const D: usize>(shape: [usize; D]) -> L<D> {
    let share = pick(&[50, 50, 50, 10, 90, 0, 100]);
    filled(shape, &|| percent(share))
}
