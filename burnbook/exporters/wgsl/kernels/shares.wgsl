// The shares of attention: softmax of rows, but all 0 where everything is hidden by −∞.
// QUIET: as if there were one more score of 0. x [ROWS, COUNT]
fn by_workgroup(row: u32, lane: u32) {
  let start = row * COUNT;
  var most = select(-3.4028234663852886e38, 0.0, QUIET);
  for (var i = lane; i < COUNT; i += WORKGROUP) { most = max(most, x[start + i]); }
  most = largest_of_lanes(lane, most);
  var total = 0.0;
  for (var i = lane; i < COUNT; i += WORKGROUP) {
    let value = exp(x[start + i] - most);
    out[start + i] = value;
    total += value;
  }
  total = sum_of_lanes(lane, total) + select(0.0, exp(-most), QUIET);
  total = larger(total, 1.1754943508222875e-38);
  for (var i = lane; i < COUNT; i += WORKGROUP) { out[start + i] /= total; }
}
