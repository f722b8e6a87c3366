//! What Burn prints: tensors, data, comparisons.
use super::*;

pub fn displays<const D: usize>() {
    let sizes = shape::<D>();
    let x = floats(sizes);
    case! { "display", "display", [x], {}, x.to_string() }
    let precision = below(6);
    case! { "display", "display", [x], {precision}, format!("{x:.precision$}") }
    case! { "display", "data_display", [x], {}, x.into_data().to_string() }
    case! { "display", "shape_debug", [x], {}, format!("{:?}", x.shape()) }
    case! { "display", "shape_num_elements", [x], {}, x.shape().num_elements() }
    case! { "display", "shape_num_dims", [x], {}, x.shape().num_dims() }
    let (threshold, edge_items) = (pick(&[0, 5, 20, 1000]), 1 + below(3));
    let precision = pick(&[None, Some(0), Some(2), Some(7)]);
    case! { "display", "display_options", [x], {threshold, edge_items, precision}, {
        set_print_options(PrintOptions { threshold, edge_items, precision });
        let text = x.to_string();
        set_print_options(PrintOptions::default());
        text
    } }
    case! { "display", "display_autodiff", [x], {}, x.lift().to_string() }
    let x = ints(sizes);
    case! { "display", "display", [x], {}, x.to_string() }
    case! { "display", "data_display", [x], {}, x.into_data().to_string() }
    case! { "display", "display_options", [x], {threshold, edge_items, precision}, {
        set_print_options(PrintOptions { threshold, edge_items, precision });
        let text = x.to_string();
        set_print_options(PrintOptions::default());
        text
    } }
    case! { "display", "display_autodiff", [x], {}, x.lift().to_string() }
    let x = truths(sizes);
    case! { "display", "display", [x], {}, x.to_string() }
    case! { "display", "data_display", [x], {}, x.into_data().to_string() }
    case! { "display", "display_autodiff", [x], {}, x.lift().to_string() }
    let x = numbers(sizes);
    let y = x.clone() + numbers(sizes) * pick(&[0.0, 1e-4, 1e-2, 1.0]);
    let y = if percent(10) {
        numbers(shape::<D>())
    } else {
        y
    };
    let precision = 1 + below(5);
    case! { "display", "assert_approx_eq", [x, y], {precision},
    x.into_data().assert_approx_eq(&y.into_data(), precision) }
    let tolerance = pick(&[1e-3, 0.5, 0.0]);
    case! { "display", "assert_approx_eq_diff", [x, y], {tolerance},
    x.into_data().assert_approx_eq_diff(&y.into_data(), tolerance) }
    let strict = percent(50);
    case! { "display", "assert_eq", [x, y], {strict},
    x.into_data().assert_eq(&y.into_data(), strict) }
    let (start, end) = (-1.0 - positive(), positive());
    case! { "display", "assert_within_range", [x], {start, end},
    x.into_data().assert_within_range(start..end) }
    let x = ints(sizes);
    let y = if percent(50) { ints(sizes) } else { x.clone() };
    case! { "display", "assert_eq", [x, y], {strict},
    x.into_data().assert_eq(&y.into_data(), strict) }
    case! { "display", "assert_approx_eq", [x, y], {precision},
    x.into_data().assert_approx_eq(&y.into_data(), precision) }
    let y = x.clone().float();
    case! { "display", "assert_eq", [x, y], {strict},
    x.into_data().assert_eq(&y.into_data(), strict) }
    let (x, y) = (truths(sizes), truths(sizes));
    case! { "display", "assert_eq", [x, y], {strict},
    x.into_data().assert_eq(&y.into_data(), strict) }
    let shape = sizes.to_vec();
    case! { "display", "data_ones", [], {shape}, TensorData::ones::<f32, _>(shape.clone()) }
    case! { "display", "data_zeros", [], {shape}, TensorData::zeros::<f32, _>(shape.clone()) }
    let values: Vec<f32> = (0..1 + below(6)).map(|_| number()).collect();
    let shape = vec![1 + below(3), 1 + below(2)];
    case! { "display", "data_new", [], {values, shape},
    TensorData::new(values.clone(), shape.clone()) }
}

/// Long lines and tall tables.
pub fn long_displays() {
    let x = filled::<f32, Float, 1>([700 + below(600)], &number);
    case! { "display", "display", [x], {}, x.to_string() }
    let x = filled::<i64, Int, 2>([40 + below(20), 30], &|| below(1000) as i64);
    case! { "display", "display", [x], {}, x.to_string() }
    let x = truths([11, 1 + below(9), 13]);
    case! { "display", "display", [x], {}, x.to_string() }
    let x = numbers([2, 8 + below(4), 9, 8]);
    case! { "display", "display", [x], {}, x.to_string() }
    let x = filled::<f32, Float, 2>([3, 4], &|| number() * 10f32.powi(below(77) as i32 - 38));
    case! { "display", "display", [x], {}, x.to_string() }
    let precision = below(9);
    case! { "display", "display", [x], {precision}, format!("{x:.precision$}") }
}

/// check_closeness prints: a child of ours does, and its lines are read.
pub fn closeness() {
    let count = 1 + below(12);
    let output = floats([count]);
    let spread = pick(&[0.0, 1e-7, 1e-5, 1e-3, 1e-2, 0.3]);
    let expected = match below(6) {
        0 => floats([count]),
        _ => output.clone() + numbers([count]) * spread,
    };
    let given = json!([
        output
            .to_data()
            .to_vec::<f32>()
            .unwrap()
            .iter()
            .map(|x| x.to_bits())
            .collect::<Vec<_>>(),
        expected
            .to_data()
            .to_vec::<f32>()
            .unwrap()
            .iter()
            .map(|x| x.to_bits())
            .collect::<Vec<_>>(),
    ])
    .to_string();
    for color in [true, false] {
        case! { "closeness", "check_closeness", [output, expected], {color}, {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            let child = child.args(["--closeness", &given]);
            let child = child.env(if color { "CLICOLOR_FORCE" } else { "NO_COLOR" }, "1");
            String::from_utf8(child.output().unwrap().stdout).unwrap()
        } }
    }
}

pub fn print_closeness() {
    let given = std::env::args().nth(2).unwrap();
    let bits: Vec<Vec<u32>> = serde_json::from_str(&given).unwrap();
    let tensors = bits.into_iter().map(|one| {
        let values: Vec<f32> = one.into_iter().map(f32::from_bits).collect();
        F::<1>::from_floats(&values[..], &device())
    });
    let [output, expected]: [F<1>; 2] = tensors.collect::<Vec<_>>().try_into().unwrap();
    check_closeness(&output, &expected);
}
