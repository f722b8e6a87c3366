// Mean 0 and variance 1 for every row, then gamma and beta: a workgroup for each row.
// x [ROWS, COUNT], gamma [COUNT], beta [COUNT]
fn by_workgroup(row: u32, lane: u32) {
  let start = row * COUNT;
  var total = 0.0;
  for (var i = lane; i < COUNT; i += WORKGROUP) { total += x[start + i]; }
  let mean = sum_of_lanes(lane, total) / f32(COUNT);
  var squares = 0.0;
  for (var i = lane; i < COUNT; i += WORKGROUP) {
    let apart = x[start + i] - mean;
    squares += apart * apart;
  }
  let variance = sum_of_lanes(lane, squares) / f32(COUNT);
  let scale = 1.0 / sqrt(variance + EPSILON);
  for (var i = lane; i < COUNT; i += WORKGROUP) {
    out[start + i] = (x[start + i] - mean) * scale * gamma[i] + beta[i];
  }
}
