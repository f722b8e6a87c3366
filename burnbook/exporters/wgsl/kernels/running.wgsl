// The WORD along a dim: a thread for each line. x [OUTER, COUNT, INNER]
fn by_thread(line: u32) {
  let start = line / INNER * COUNT * INNER + line % INNER;
  var found = BEGIN;
  for (var i = 0u; i < COUNT; i++) {
    let value = x[start + i * INNER];
    found = JOINED;
    out[start + i * INNER] = found;
  }
}
