// The places of elements in order: each thread counts who comes before its element.
// x [outer, COUNT, INNER]
fn by_thread(place: u32) {
  let i = place / INNER % COUNT;
  let start = place / (INNER * COUNT) * COUNT * INNER + place % INNER;
  var rank = 0u;
  for (var j = 0u; j < COUNT; j++) {
    let other = order_of(x[start + j * INNER]);
    let own = order_of(x[place]);
    let before = select((other < own), (other > own), DESCENDING);
    if (before || (other == own && j < i)) { rank++; }
  }
  out[start + rank * INNER] = i32(i);
}
