// Slide weight over images: a thread for each element of the output.
// x [batch, CHANNELS, HEIGHT, WIDTH], weight [FILTERS, CHANNELS / GROUPS, kernel, kernel]
fn by_thread(place: u32) {
  let j = place % OUT_WIDTH;
  let i = place / OUT_WIDTH % OUT_HEIGHT;
  let filter_ = place / (OUT_WIDTH * OUT_HEIGHT) % FILTERS;
  let sample = place / (OUT_WIDTH * OUT_HEIGHT * FILTERS);
  let each = CHANNELS / GROUPS;
  let first = sample * CHANNELS + filter_ / (FILTERS / GROUPS) * each;
  var at = filter_ * each * KERNEL_HEIGHT * KERNEL_WIDTH;
  var total = bias[filter_];
  for (var c = first; c < first + each; c++) {
    for (var k = 0u; k < KERNEL_HEIGHT; k++) {
      let row = i * STRIDE_HEIGHT + k * DILATION_HEIGHT - PADDING_HEIGHT;
      for (var m = 0u; m < KERNEL_WIDTH; m++) {
        let column = j * STRIDE_WIDTH + m * DILATION_WIDTH - PADDING_WIDTH;
        // Before the first row or column the difference wraps around, to a large number.
        if (row < HEIGHT && column < WIDTH) {
          total += weight[at] * x[(c * HEIGHT + row) * WIDTH + column];
        }
        at++;
      }
    }
  }
  out[place] = total;
}
