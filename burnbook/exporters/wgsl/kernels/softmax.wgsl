// Numbers that add up to 1 along a dim: a workgroup for each line. x [OUTER, COUNT, INNER]
fn by_workgroup(row: u32, lane: u32) {
  let start = row / INNER * COUNT * INNER + row % INNER;
  var most = -infinity();
  for (var i = lane; i < COUNT; i += WORKGROUP) { most = max(most, x[start + i * INNER]); }
  most = largest_of_lanes(lane, most);
  var total = 0.0;
  for (var i = lane; i < COUNT; i += WORKGROUP) {
    let value = exp(x[start + i * INNER] - most);
    out[start + i * INNER] = value;
    total += value;
  }
  total = sum_of_lanes(lane, total);
  for (var i = lane; i < COUNT; i += WORKGROUP) { out[start + i * INNER] /= total; }
}
