// Length √COUNT for every row, then gamma: a workgroup for each row. x [ROWS, COUNT]
fn by_workgroup(row: u32, lane: u32) {
  let start = row * COUNT;
  var squares = 0.0;
  for (var i = lane; i < COUNT; i += WORKGROUP) { squares += x[start + i] * x[start + i]; }
  let scale = 1.0 / sqrt(sum_of_lanes(lane, squares) / f32(COUNT) + EPSILON);
  for (var i = lane; i < COUNT; i += WORKGROUP) {
    out[start + i] = x[start + i] * scale * gamma[i];
  }
}
