// A row for each index: ON at the index, OFF elsewhere. out [rows, SIZE]
fn by_thread(place: u32) {
  out[place] = select(OFF, ON, u32(x[place / SIZE]) == place % SIZE);
}
