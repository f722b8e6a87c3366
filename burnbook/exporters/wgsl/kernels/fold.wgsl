// Columns of patches added up to images: a thread gathers what belongs to its pixel.
// x [batch, CHANNELS · kernel · kernel, stops], out [batch, CHANNELS, HEIGHT, WIDTH]
fn by_thread(place: u32) {
  let column = place % WIDTH;
  let row = place / WIDTH % HEIGHT;
  let plane = place / (WIDTH * HEIGHT);
  var total = 0.0;
  for (var k = 0u; k < KERNEL_HEIGHT; k++) {
    let down = row + PADDING_HEIGHT - k * DILATION_HEIGHT;
    for (var m = 0u; m < KERNEL_WIDTH; m++) {
      let right = column + PADDING_WIDTH - m * DILATION_WIDTH;
      let meets = down % STRIDE_HEIGHT == 0u && right % STRIDE_WIDTH == 0u;
      let i = down / STRIDE_HEIGHT;
      let j = right / STRIDE_WIDTH;
      if (meets && i < OUT_HEIGHT && j < OUT_WIDTH) {
        let own = (plane * KERNEL_HEIGHT + k) * KERNEL_WIDTH + m;
        total += x[(own * OUT_HEIGHT + i) * OUT_WIDTH + j];
      }
    }
  }
  out[place] = total;
}
