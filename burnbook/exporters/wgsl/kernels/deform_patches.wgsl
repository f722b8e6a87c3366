// Images read where each tap was moved to, between four pixels.
// out [batch, OUT_HEIGHT · OUT_WIDTH, taps, CHANNELS]
fn pixel(plane: u32, row: i32, column: i32) -> f32 {
  if (row < 0 || row >= i32(HEIGHT) || column < 0 || column >= i32(WIDTH)) { return 0.0; }
  return x[plane + u32(row) * WIDTH + u32(column)];
}

fn by_thread(place: u32) {
  let taps = KERNEL_HEIGHT * KERNEL_WIDTH;
  let stops = OUT_HEIGHT * OUT_WIDTH;
  let c = place % CHANNELS;
  let tap = place / CHANNELS % taps;
  let stop = place / (CHANNELS * taps) % stops;
  let sample = place / (CHANNELS * taps * stops);
  let group = sample * OFFSET_GROUPS + c / (CHANNELS / OFFSET_GROUPS);
  let moved = (group * taps + tap) * 2u * stops + stop;
  let down = offset[moved];
  let right = offset[moved + stops];
  let top = stop / OUT_WIDTH * STRIDE_HEIGHT + tap / KERNEL_WIDTH * DILATION_HEIGHT;
  let left = stop % OUT_WIDTH * STRIDE_WIDTH + tap % KERNEL_WIDTH * DILATION_WIDTH;
  let row = i32(top) - i32(PADDING_HEIGHT) + i32(floor(down));
  let column = i32(left) - i32(PADDING_WIDTH) + i32(floor(right));
  let plane = (sample * CHANNELS + c) * HEIGHT * WIDTH;
  let beside = right - floor(right);
  let upper = mix(pixel(plane, row, column), pixel(plane, row, column + 1), beside);
  let lower = mix(pixel(plane, row + 1, column), pixel(plane, row + 1, column + 1), beside);
  out[place] = mix(upper, lower, down - floor(down)) * mask[(group * taps + tap) * stops + stop];
}
