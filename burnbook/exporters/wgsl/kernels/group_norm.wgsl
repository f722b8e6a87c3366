// Mean 0 and variance 1 for every group of channels, then gamma and beta.
// x [ROWS, CHANNELS, PLACES], ROWS = batch · GROUPS; a workgroup for each row
fn by_workgroup(row: u32, lane: u32) {
  let count = CHANNELS * PLACES;
  let start = row * count;
  var total = 0.0;
  for (var i = lane; i < count; i += WORKGROUP) { total += x[start + i]; }
  let mean = sum_of_lanes(lane, total) / f32(count);
  var squares = 0.0;
  for (var i = lane; i < count; i += WORKGROUP) {
    let apart = x[start + i] - mean;
    squares += apart * apart;
  }
  let variance = sum_of_lanes(lane, squares) / f32(count);
  let scale = 1.0 / select(sqrt(variance) + EPSILON, sqrt(variance + EPSILON), INSIDE);
  for (var i = lane; i < count; i += WORKGROUP) {
    let channel = row % GROUPS * CHANNELS + i / PLACES;
    out[start + i] = (x[start + i] - mean) * scale * gamma[channel] + beta[channel];
  }
}
