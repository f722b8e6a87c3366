// The WORD along a dim: a workgroup for each line. x [OUTER, COUNT, INNER]
//
// Each thread joins every WORKGROUP-th element; then halves of the threads join in turn.
var<workgroup> parts: array<ELEMENT, WORKGROUP>;

fn by_workgroup(row: u32, lane: u32) {
  let start = row / INNER * COUNT * INNER + row % INNER;
  var found = BEGIN;
  for (var i = lane; i < COUNT; i += WORKGROUP) {
    let value = VALUE;
    found = JOINED;
  }
  parts[lane] = found;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (lane < half) {
      let value = parts[lane + half];
      found = JOINED;
      parts[lane] = found;
    }
    workgroupBarrier();
  }
  if (lane == 0u) { out[row] = END; }
}
