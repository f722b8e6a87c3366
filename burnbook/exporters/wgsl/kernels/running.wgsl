// The WORD along a dim: a thread for each line. x [OUTER, COUNT, INNER]
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let line = id.x + id.y * groups.x * WORKGROUP;
  if (line >= OUTER * INNER) { return; }
  let start = line / INNER * COUNT * INNER + line % INNER;
  var found = BEGIN;
  for (var i = 0u; i < COUNT; i++) {
    let value = x[start + i * INNER];
    found = JOINED;
    out[start + i * INNER] = found;
  }
}
