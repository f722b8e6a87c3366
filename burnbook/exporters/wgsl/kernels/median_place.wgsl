// Of places in order, the one in the middle; where there is NaN, that of the first NaN.
// x [OUTER, COUNT, INNER]
fn by_thread(line: u32) {
  let start = line / INNER * COUNT * INNER + line % INNER;
  var i = (COUNT - 1u) / 2u;
  if (is_nan(x[start + u32(places[start + (COUNT - 1u) * INNER]) * INNER])) {
    for (i = 0u; !is_nan(x[start + u32(places[start + i * INNER]) * INNER]); i++) {}
  }
  out[line] = places[start + i * INNER];
}
