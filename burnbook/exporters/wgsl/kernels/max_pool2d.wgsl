// The largest number of every window. x [planes, HEIGHT, WIDTH]
fn by_thread(place: u32) {
  let j = place % OUT_WIDTH;
  let i = place / OUT_WIDTH % OUT_HEIGHT;
  let plane = place / (OUT_WIDTH * OUT_HEIGHT);
  var most = -infinity();
  for (var k = 0u; k < KERNEL_HEIGHT; k++) {
    let row = i * STRIDE_HEIGHT + k * DILATION_HEIGHT - PADDING_HEIGHT;
    for (var m = 0u; m < KERNEL_WIDTH; m++) {
      let column = j * STRIDE_WIDTH + m * DILATION_WIDTH - PADDING_WIDTH;
      if (row < HEIGHT && column < WIDTH) {
        most = larger(most, x[(plane * HEIGHT + row) * WIDTH + column]);
      }
    }
  }
  out[place] = most;
}
