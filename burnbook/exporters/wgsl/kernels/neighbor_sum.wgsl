// Each channel and its neighbors, summed. x [outer, COUNT, INNER]
fn by_thread(place: u32) {
  let b = place % INNER;
  let c = place / INNER % COUNT;
  let a = place / (INNER * COUNT);
  var total = 0.0;
  for (var i = c - min(c, BEFORE); i <= min(COUNT - 1u, c + AFTER); i++) {
    total += x[(a * COUNT + i) * INNER + b];
  }
  out[place] = total;
}
