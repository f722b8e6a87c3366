// Functions that kernels call; those that one needs are copied into it.

var<workgroup> lanes: array<f32, WORKGROUP>;

// The sum of a number of each thread: halves of the threads add in turn.
fn sum_of_lanes(lane: u32, value: f32) -> f32 {
  lanes[lane] = value;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (lane < half) { lanes[lane] += lanes[lane + half]; }
    workgroupBarrier();
  }
  let found = lanes[0];
  workgroupBarrier();
  return found;
}

// The largest number of all threads.
fn largest_of_lanes(lane: u32, value: f32) -> f32 {
  lanes[lane] = value;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (lane < half) { lanes[lane] = max(lanes[lane], lanes[lane + half]); }
    workgroupBarrier();
  }
  let found = lanes[0];
  workgroupBarrier();
  return found;
}

// ∞, which no literal may be.
fn infinity() -> f32 {
  var bits = 0x7f800000u;
  return bitcast<f32>(bits);
}

// NaN, which no literal may be either.
fn not_a_number() -> f32 {
  var bits = 0x7fc00000u;
  return bitcast<f32>(bits);
}

// Whether x is NaN, from its bits: a compiler may take x != x for false.
fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

// Whether x is ∞ or −∞.
fn is_inf(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u;
}

// NaN where x is, else what was found from x: functions of WGSL may lose it.
fn or_nan(x: f32, found: f32) -> f32 {
  return select(found, x, is_nan(x));
}

// The larger of two, NaN if one of them is.
fn larger(x: f32, y: f32) -> f32 {
  return or_nan(x, or_nan(y, max(x, y)));
}

// The smaller of two, NaN if one of them is.
fn smaller(x: f32, y: f32) -> f32 {
  return or_nan(x, or_nan(y, min(x, y)));
}

// x · y where one of them is 0: compilers take it for 0, whatever the other is.
fn times_zero(x: f32, y: f32) -> f32 {
  if (is_nan(x) || is_nan(y) || is_inf(x) || is_inf(y)) { return not_a_number(); }
  return bitcast<f32>((bitcast<u32>(x) ^ bitcast<u32>(y)) & 0x80000000u);
}

// tanh x, which not every driver survives for a large x.
fn squashed(x: f32) -> f32 {
  return or_nan(x, tanh(clamp(x, -15.0, 15.0)));
}

// 1 / (1 + e⁻ˣ), from e^−|x|, which never overflows.
fn sigmoid(x: f32) -> f32 {
  let e = exp(-abs(x));
  return or_nan(x, select(e, 1.0, x >= 0.0) / (1.0 + e));
}

// The angle of the point (x, y), also on the axes and at infinity, which atan2 leaves open.
fn angle(y: f32, x: f32) -> f32 {
  if (is_nan(x) || is_nan(y)) { return not_a_number(); }
  let is_left = (bitcast<u32>(x) & 0x80000000u) != 0u;
  let is_below = (bitcast<u32>(y) & 0x80000000u) != 0u;
  var size = 0.0;
  if (is_inf(y)) {
    size = select(1.5707964, select(0.7853982, 2.3561945, is_left), is_inf(x));
  } else if (y == 0.0 || is_inf(x)) {
    size = select(0.0, 3.1415927, is_left);
  } else if (x == 0.0) {
    size = 1.5707964;
  } else {
    return atan2(y, x);
  }
  return select(size, -size, is_below);
}

// The angle whose sine is x, to more digits than some drivers have for asin.
fn arcsine(x: f32) -> f32 {
  if (abs(x) > 1.0) { return not_a_number(); }
  return angle(x, sqrt((1.0 - x) * (1.0 + x)));
}

// ln(1 + x), exact near 0.
fn log1p(x: f32) -> f32 {
  let y = 1.0 + x;
  if (y == 1.0) { return x; }
  if (y == x) { return log(x); }
  return log(y) * (x / (y - 1.0));
}

// ln(1 + eˣ), without overflow.
fn softplus(x: f32) -> f32 {
  return max(x, 0.0) + log1p(exp(-abs(x)));
}

// The error function, to 1.2e-7 of 1 − erf x: a fit by Chebyshev polynomials.
fn erf(x: f32) -> f32 {
  let t = 1.0 / (1.0 + 0.5 * abs(x));
  var power = 0.17087277;
  power = power * t - 0.82215223;
  power = power * t + 1.48851587;
  power = power * t - 1.13520398;
  power = power * t + 0.27886807;
  power = power * t - 0.18628806;
  power = power * t + 0.09678418;
  power = power * t + 0.37409196;
  power = power * t + 1.00002368;
  power = power * t - 1.26551223;
  let rest = t * exp(power - x * x);
  return select(rest - 1.0, 1.0 - rest, x >= 0.0);
}

// xʸ, which pow knows for finite x > 0 alone; below zero where y is a whole number.
fn power(x: f32, y: f32) -> f32 {
  if (y == 0.0 || x == 1.0 || (x == -1.0 && is_inf(y))) { return 1.0; }
  if (is_nan(x) || is_nan(y)) { return not_a_number(); }
  let base = abs(x);
  var size = 0.0;
  if (x == 0.0 || is_inf(x)) {
    size = select(0.0, infinity(), (x != 0.0) == (y > 0.0));
  } else if (is_inf(y)) {
    size = select(0.0, infinity(), (base > 1.0) == (y > 0.0));
  } else {
    size = pow(base, y);
  }
  if ((bitcast<u32>(x) & 0x80000000u) == 0u || is_inf(y)) { return size; }
  if (floor(y) == y) { return select(size, -size, abs(y) % 2.0 == 1.0); }
  return select(not_a_number(), size, x == 0.0 || is_inf(x));
}

// The root of x, but ∞ for −∞ and 0 for −0.
fn half_power(x: f32) -> f32 {
  if (is_inf(x)) { return infinity(); }
  if (x == 0.0) { return 0.0; }
  return sqrt(x);
}

// The rest of a division, with the sign of x.
fn fmod(x: f32, y: f32) -> f32 {
  if (y == 0.0 || is_inf(x) || is_nan(x) || is_nan(y)) { return not_a_number(); }
  if (is_inf(y)) { return x; }
  return x % y;
}

// The rest of a division, with the sign of y.
fn remainder(x: f32, y: f32) -> f32 {
  let found = fmod(x, y);
  return select(found, found + y, found != 0.0 && (found < 0.0) != (y < 0.0));
}

// xʸ of whole numbers.
fn whole_power(x: i32, y: i32) -> i32 {
  var found = 1;
  for (var i = 0; i < y; i++) { found *= x; }
  return found;
}

// A whole number that is ordered as x is, NaN last.
fn order_of(x: f32) -> i32 {
  if (is_nan(x)) { return 2147483647; }
  if (x == 0.0) { return 0; }
  let bits = bitcast<i32>(x);
  return select(bits, bits ^ 0x7fffffff, bits < 0);
}
