// A transposed convolution: a thread gathers what was spread to its element.
// x [batch, CHANNELS, DEPTH, HEIGHT, WIDTH], weight [CHANNELS, FILTERS / GROUPS, kernel]
fn by_thread(place: u32) {
  let j = place % OUT_WIDTH;
  let i = place / OUT_WIDTH % OUT_HEIGHT;
  let h = place / (OUT_WIDTH * OUT_HEIGHT) % OUT_DEPTH;
  let filter_ = place / (OUT_WIDTH * OUT_HEIGHT * OUT_DEPTH) % FILTERS;
  let sample = place / (OUT_WIDTH * OUT_HEIGHT * OUT_DEPTH * FILTERS);
  let each = FILTERS / GROUPS;
  let group = filter_ / each;
  let channels = CHANNELS / GROUPS;
  var total = bias[filter_];
  for (var c = group * channels; c < (group + 1u) * channels; c++) {
    let own = (c * each + filter_ % each) * KERNEL_DEPTH;
    for (var d = 0u; d < KERNEL_DEPTH; d++) {
      let slice = h + PADDING_DEPTH - d * DILATION_DEPTH;
      for (var k = 0u; k < KERNEL_HEIGHT; k++) {
        let row = i + PADDING_HEIGHT - k * DILATION_HEIGHT;
        for (var m = 0u; m < KERNEL_WIDTH; m++) {
          let column = j + PADDING_WIDTH - m * DILATION_WIDTH;
          let meets = slice % STRIDE_DEPTH == 0u && row % STRIDE_HEIGHT == 0u
            && column % STRIDE_WIDTH == 0u;
          let inside = slice / STRIDE_DEPTH < DEPTH && row / STRIDE_HEIGHT < HEIGHT
            && column / STRIDE_WIDTH < WIDTH;
          // A negative difference wraps around, to a number far beyond the sizes.
          if (meets && inside) {
            let plane = (sample * CHANNELS + c) * DEPTH + slice / STRIDE_DEPTH;
            let source = (plane * HEIGHT + row / STRIDE_HEIGHT) * WIDTH + column / STRIDE_WIDTH;
            let at = ((own + d) * KERNEL_HEIGHT + k) * KERNEL_WIDTH + m;
            total += x[source] * weight[at];
          }
        }
      }
    }
  }
  out[place] = total;
}
