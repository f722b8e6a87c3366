// Whole slices along a dim, by index. x [outer, COUNT, INNER], out [outer, PICKS, INNER]
fn by_thread(place: u32) {
  let b = place % INNER;
  let i = place / INNER % PICKS;
  let a = place / (INNER * PICKS);
  let index = min(u32(indices[i]), COUNT - 1u);
  out[place] = x[(a * COUNT + index) * INNER + b];
}
