// Elements along a dim, by an index each. x [outer, COUNT, INNER], out [outer, PICKS, INNER]
fn by_thread(place: u32) {
  let b = place % INNER;
  let a = place / (INNER * PICKS);
  let index = min(u32(indices[place]), COUNT - 1u);
  out[place] = x[(a * COUNT + index) * INNER + b];
}
