// A running sum, scaled on the way: outᵢ = xᵢ + aᵢ outᵢ₋₁. x [OUTER, COUNT, INNER]
fn by_thread(line: u32) {
  let start = line / INNER * COUNT * INNER + line % INNER;
  var last = 0.0;
  for (var i = 0u; i < COUNT; i++) {
    let at = start + i * INNER;
    last = x[at] + select(0.0, a[at] * last, i > 0u);
    out[at] = last;
  }
}
