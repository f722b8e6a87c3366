//! Conversions of elements, and quantization.
use super::*;

pub fn elements() {
    macro_rules! elem {
        ($value:expr, $from_type:ident => $($to_type:ident)*) => {$({
            let value = $value;
            let (from, to) = (stringify!($from_type), stringify!($to_type));
            case! { "element", "elem", [], {value, from, to}, value.elem::<$to_type>() }
        })*};
    }
    elem!(if percent(50) { pick(&STRANGE) } else { number() * 300.0 },
        f32 => f32 f64 i8 u8 i32 i64 bool);
    elem!(if percent(50) { pick(&STRANGE) as f64 } else { number() as f64 * 1e3 },
        f64 => f32 f64 i8 u8 i32 i64 bool);
    elem!(if percent(60) { pick(&LARGE) } else { below(600) as i64 - 300 },
        i64 => f32 f64 i8 u8 i32 i64 bool);
    elem!(below(600) as i32 - 300, i32 => f32 f64 i8 u8 i32 i64 bool);
    elem!(below(256) as u8, u8 => f32 f64 i8 u8 i32 i64 bool);
    elem!(percent(50), bool => f32 f64 i8 u8 i32 i64 bool);
    macro_rules! convert {
        ($x:ident: $($to:ident)*) => {$({
            let dtype = stringify!($to);
            case! { "element", "convert", [$x], {dtype}, $x.into_data().convert::<$to>() }
        })*};
    }
    let x = floats(shape::<1>());
    convert!(x: f32 f64 i8 u8 i32 i64 bool);
    let x = numbers(shape::<2>()).abs() * 90.0;
    convert!(x: f64 i8 u8 i32 i64 bool);
    let x = ints(shape::<2>());
    convert!(x: f32 f64 i8 u8 i32 i64 bool);
    let x = under(shape::<3>(), 3);
    convert!(x: f32 f64 i8 u8 i32 i64 bool);
}

// Quantization.

pub fn scheme(name: &str) -> QuantizationScheme {
    match name {
        "affine" => QuantizationScheme::PerTensorAffine(QuantizationType::QInt8),
        _ => QuantizationScheme::PerTensorSymmetric(QuantizationType::QInt8),
    }
}

/// The codes, and what they stand for.
pub struct Codes(Vec<Value>);

impl Outcome for Codes {
    fn outputs(self) -> Vec<Value> {
        self.0
    }
}

pub fn codes<const D: usize>(x: F<D>) -> Codes {
    let found = x.into_data();
    let DType::QFloat(strategy) = found.dtype else {
        panic!("not quantized");
    };
    let told = match strategy {
        QuantizationStrategy::PerTensorAffineInt8(q) => {
            json!({ "scale": q.scale as f64, "offset": q.offset })
        }
        QuantizationStrategy::PerTensorSymmetricInt8(q) => json!({ "scale": q.scale as f64 }),
    };
    let bytes = found.bytes.iter().take(found.num_elements()); // the parameters follow
    let codes: Vec<i8> = bytes.map(|byte| *byte as i8).collect();
    let codes = json!({ "dtype": "i8", "shape": found.shape, "data": codes });
    Codes(vec![codes, json!({ "value": told })])
}

pub fn quantized<const D: usize>() {
    for scheme in ["affine", "symmetric"] {
        let sizes = full_shape::<D>();
        let grow = pick(&[1.0, 100.0, 1e-3, 1e-30]);
        let x = match below(6) {
            0 => positives(sizes) * grow,
            1 => positives(sizes) * -grow,
            2 => filled(sizes, &|| (below(5) as f32 - 2.0) / 2.0),
            _ => numbers(sizes) * grow,
        };
        case! { "quantization", "quantize_dynamic", [x], {scheme},
        codes(x.quantize_dynamic(&self::scheme(scheme))) }
        case! { "quantization", "dequantize", [x], {scheme},
        x.quantize_dynamic(&self::scheme(scheme)).dequantize() }
        case! { "quantization", "compute_q_params", [x], {scheme}, {
            let range = MinMaxCalibration {}.compute_range(&x);
            let found = self::scheme(scheme).compute_q_params(range);
            (found.scale, found.offset)
        } }
        let scale = pick(&[0.014173228, 0.5, 0.001, 1.0]);
        if scheme == "affine" {
            let offset = below(256) as i64 - 128;
            case! { "quantization", "quantize", [x], {scheme, scale, offset},
            codes(x.quantize(&self::scheme(scheme), QuantizationParameters {
                scale: Tensor::from_floats([scale], &device()),
                offset: Some(Tensor::from_ints([offset], &device())),
            })) }
        } else {
            case! { "quantization", "quantize", [x], {scheme, scale},
            codes(x.quantize(&self::scheme(scheme), QuantizationParameters {
                scale: Tensor::from_floats([scale], &device()),
                offset: None,
            })) }
        }
        if D > 1 {
            let mut other = sizes;
            other.swap(D - 1, D - 2);
            let y = numbers(other);
            case! { "quantization", "quantized_matmul", [x, y], {scheme},
            x.quantize_dynamic(&self::scheme(scheme))
                .matmul(y.quantize_dynamic(&self::scheme(scheme))).dequantize() }
        }
    }
}
