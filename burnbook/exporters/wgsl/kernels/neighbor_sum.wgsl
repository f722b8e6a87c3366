// Each channel and its neighbors, summed. x [outer, COUNT, INNER]
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let place = id.x + id.y * groups.x * WORKGROUP;
  if (place >= TOTAL) { return; }
  let b = place % INNER;
  let c = place / INNER % COUNT;
  let a = place / (INNER * COUNT);
  var total = 0.0;
  for (var i = c - min(c, BEFORE); i <= min(COUNT - 1u, c + AFTER); i++) {
    total += x[(a * COUNT + i) * INNER + b];
  }
  out[place] = total;
}
