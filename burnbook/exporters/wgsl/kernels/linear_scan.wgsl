// A running sum, scaled on the way: outᵢ = xᵢ + aᵢ outᵢ₋₁. x [OUTER, COUNT, INNER]
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let line = id.x + id.y * groups.x * WORKGROUP;
  if (line >= OUTER * INNER) { return; }
  let start = line / INNER * COUNT * INNER + line % INNER;
  var last = 0.0;
  for (var i = 0u; i < COUNT; i++) {
    let at = start + i * INNER;
    last = x[at] + select(0.0, a[at] * last, i > 0u);
    out[at] = last;
  }
}
