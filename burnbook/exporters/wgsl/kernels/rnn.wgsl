// Carry one state along sequences: hₜ = tanh(gatesₜ + hₜ₋₁ U). out [BATCH, STEPS, SIZE]
//
// A workgroup has a sequence: step by step, each thread makes some numbers of the state.
var<workgroup> state: array<f32, SIZE>;
var<workgroup> next: array<f32, SIZE>;

fn by_workgroup(row: u32, lane: u32) {
  for (var i = lane; i < SIZE; i += WORKGROUP) { state[i] = hidden[row * SIZE + i]; }
  workgroupBarrier();
  for (var s = 0u; s < STEPS; s++) {
    let step = row * STEPS + select(s, STEPS - 1u - s, REVERSE);
    for (var i = lane; i < SIZE; i += WORKGROUP) {
      var z = gates[step * SIZE + i];
      for (var k = 0u; k < SIZE; k++) { z += state[k] * recurrent[k * SIZE + i]; }
      next[i] = squashed(z);
    }
    workgroupBarrier();
    for (var i = lane; i < SIZE; i += WORKGROUP) {
      state[i] = next[i];
      out[step * SIZE + i] = next[i];
    }
    workgroupBarrier();
  }
}
