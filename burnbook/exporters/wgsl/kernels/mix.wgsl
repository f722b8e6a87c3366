// Each place of a dim is a weighted sum of TAPS places. x [outer, SIZE_IN, INNER]
fn by_thread(place: u32) {
  let b = place % INNER;
  let i = place / INNER % SIZE_OUT;
  let a = place / (INNER * SIZE_OUT);
  var total = 0.0;
  for (var k = i * TAPS; k < (i + 1u) * TAPS; k++) {
    total += weights[k] * x[(a * SIZE_IN + u32(places[k])) * INNER + b];
  }
  out[place] = total;
}
