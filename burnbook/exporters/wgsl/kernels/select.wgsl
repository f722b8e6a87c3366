// Whole slices along a dim, by index. x [outer, COUNT, INNER], out [outer, PICKS, INNER]
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let place = id.x + id.y * groups.x * WORKGROUP;
  if (place >= TOTAL) { return; }
  let b = place % INNER;
  let i = place / INNER % PICKS;
  let a = place / (INNER * PICKS);
  let index = min(u32(indices[i]), COUNT - 1u);
  out[place] = x[(a * COUNT + index) * INNER + b];
}
