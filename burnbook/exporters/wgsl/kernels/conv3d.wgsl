// Slide weight over volumes: a thread for each element of the output.
// x [batch, CHANNELS, DEPTH, HEIGHT, WIDTH]
fn by_thread(place: u32) {
  let j = place % OUT_WIDTH;
  let i = place / OUT_WIDTH % OUT_HEIGHT;
  let h = place / (OUT_WIDTH * OUT_HEIGHT) % OUT_DEPTH;
  let filter_ = place / (OUT_WIDTH * OUT_HEIGHT * OUT_DEPTH) % FILTERS;
  let sample = place / (OUT_WIDTH * OUT_HEIGHT * OUT_DEPTH * FILTERS);
  let each = CHANNELS / GROUPS;
  let first = sample * CHANNELS + filter_ / (FILTERS / GROUPS) * each;
  var at = filter_ * each * KERNEL_DEPTH * KERNEL_HEIGHT * KERNEL_WIDTH;
  var total = bias[filter_];
  for (var c = first; c < first + each; c++) {
    for (var d = 0u; d < KERNEL_DEPTH; d++) {
      let slice = h * STRIDE_DEPTH + d * DILATION_DEPTH - PADDING_DEPTH;
      for (var k = 0u; k < KERNEL_HEIGHT; k++) {
        let row = i * STRIDE_HEIGHT + k * DILATION_HEIGHT - PADDING_HEIGHT;
        for (var m = 0u; m < KERNEL_WIDTH; m++) {
          let column = j * STRIDE_WIDTH + m * DILATION_WIDTH - PADDING_WIDTH;
          if (slice < DEPTH && row < HEIGHT && column < WIDTH) {
            total += weight[at] * x[((c * DEPTH + slice) * HEIGHT + row) * WIDTH + column];
          }
          at++;
        }
      }
    }
  }
  out[place] = total;
}
