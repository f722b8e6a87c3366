// The first place of the WORD along a dim: a workgroup for each line. x [OUTER, COUNT, INNER]
var<workgroup> places: array<u32, WORKGROUP>;
var<workgroup> bests: array<ELEMENT, WORKGROUP>;

fn by_workgroup(row: u32, lane: u32) {
  let start = row / INNER * COUNT * INNER + row % INNER;
  var found = min(lane, COUNT - 1u);
  var best = order_of(x[start + found * INNER]);
  for (var i = lane; i < COUNT; i += WORKGROUP) {
    let value = order_of(x[start + i * INNER]);
    if (value BETTER best) {
      found = i;
      best = value;
    }
  }
  places[lane] = found;
  bests[lane] = best;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (lane < half) {
      let value = bests[lane + half];
      let place = places[lane + half];
      if (value BETTER best || (value == best && place < found)) {
        found = place;
        best = value;
        places[lane] = found;
        bests[lane] = best;
      }
    }
    workgroupBarrier();
  }
  if (lane == 0u) { out[row] = i32(found); }
}
