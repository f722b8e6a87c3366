// Each place of a dim is a weighted sum of TAPS places. x [outer, SIZE_IN, INNER]
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let place = id.x + id.y * groups.x * WORKGROUP;
  if (place >= TOTAL) { return; }
  let b = place % INNER;
  let i = place / INNER % SIZE_OUT;
  let a = place / (INNER * SIZE_OUT);
  var total = 0.0;
  for (var k = i * TAPS; k < (i + 1u) * TAPS; k++) {
    total += weights[k] * x[(a * SIZE_IN + u32(places[k])) * INNER + b];
  }
  out[place] = total;
}
