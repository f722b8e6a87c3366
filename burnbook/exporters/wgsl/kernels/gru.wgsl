// Carry one state along sequences; the gates are z, r and n.
// gates [BATCH, STEPS, 3 · SIZE] = x W + b, bias: of the state, out [BATCH, STEPS, SIZE]
//
// A workgroup has a sequence: step by step, each thread makes some numbers of the state.
var<workgroup> state: array<f32, SIZE>;
var<workgroup> kept: array<f32, SIZE>;
var<workgroup> share: array<f32, SIZE>;
var<workgroup> next: array<f32, SIZE>;

fn seen(i: u32, gate: u32) -> f32 {
  var total = bias[gate * SIZE + i];
  for (var k = 0u; k < SIZE; k++) {
    total += state[k] * recurrent[(k * 3u + gate) * SIZE + i];
  }
  return total;
}

fn by_workgroup(row: u32, lane: u32) {
  for (var i = lane; i < SIZE; i += WORKGROUP) { state[i] = hidden[row * SIZE + i]; }
  workgroupBarrier();
  for (var s = 0u; s < STEPS; s++) {
    let step = row * STEPS + select(s, STEPS - 1u - s, REVERSE);
    for (var i = lane; i < SIZE; i += WORKGROUP) {
      let at = step * 3u * SIZE + i;
      share[i] = sigmoid(gates[at] + seen(i, 0u));
      let r = sigmoid(gates[at + SIZE] + seen(i, 1u));
      if (RESET_AFTER) { kept[i] = r * seen(i, 2u); } else { kept[i] = r * state[i]; }
    }
    workgroupBarrier();
    for (var i = lane; i < SIZE; i += WORKGROUP) {
      var inner = kept[i];
      if (!RESET_AFTER) {
        inner = bias[2u * SIZE + i];
        for (var k = 0u; k < SIZE; k++) { inner += kept[k] * recurrent[(k * 3u + 2u) * SIZE + i]; }
      }
      let fresh = squashed(gates[step * 3u * SIZE + 2u * SIZE + i] + inner);
      next[i] = fresh + share[i] * (state[i] - fresh);
    }
    workgroupBarrier();
    for (var i = lane; i < SIZE; i += WORKGROUP) {
      state[i] = next[i];
      out[step * SIZE + i] = next[i];
    }
    workgroupBarrier();
  }
}
