// A row for each index: ON at the index, OFF elsewhere. out [rows, SIZE]
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let place = id.x + id.y * groups.x * WORKGROUP;
  if (place >= TOTAL) { return; }
  out[place] = select(OFF, ON, u32(x[place / SIZE]) == place % SIZE);
}
