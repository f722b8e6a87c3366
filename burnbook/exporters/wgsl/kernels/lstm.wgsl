// Carry a state and a memory along sequences; the gates are i, f, o and n.
// gates [BATCH, STEPS, 4 · SIZE] = x W + b; out: all states, then the last memories
//
// A workgroup has a sequence: step by step, each thread makes some numbers of the state.
var<workgroup> state: array<f32, SIZE>;
var<workgroup> memory: array<f32, SIZE>;
var<workgroup> next: array<f32, SIZE>;

fn by_workgroup(row: u32, lane: u32) {
  for (var i = lane; i < SIZE; i += WORKGROUP) {
    state[i] = hidden[row * SIZE + i];
    memory[i] = cell[row * SIZE + i];
  }
  workgroupBarrier();
  for (var s = 0u; s < STEPS; s++) {
    let step = row * STEPS + select(s, STEPS - 1u - s, REVERSE);
    for (var i = lane; i < SIZE; i += WORKGROUP) {
      let at = step * 4u * SIZE + i;
      var z = vec4f(gates[at], gates[at + SIZE], gates[at + 2u * SIZE], gates[at + 3u * SIZE]);
      for (var k = 0u; k < SIZE; k++) {
        let source = k * 4u * SIZE + i;
        z += state[k] * vec4f(
          recurrent[source], recurrent[source + SIZE],
          recurrent[source + 2u * SIZE], recurrent[source + 3u * SIZE]);
      }
      let held = memory[i] * sigmoid(z.y) + squashed(z.w) * sigmoid(z.x);
      memory[i] = held;
      next[i] = squashed(held) * sigmoid(z.z);
    }
    workgroupBarrier();
    for (var i = lane; i < SIZE; i += WORKGROUP) {
      state[i] = next[i];
      out[step * SIZE + i] = next[i];
    }
    workgroupBarrier();
  }
  for (var i = lane; i < SIZE; i += WORKGROUP) {
    out[(BATCH * STEPS + row) * SIZE + i] = memory[i];
  }
}
