// The patches of images as columns. out [batch, CHANNELS · kernel · kernel, stops]
fn by_thread(place: u32) {
  let j = place % OUT_WIDTH;
  let i = place / OUT_WIDTH % OUT_HEIGHT;
  let m = place / (OUT_WIDTH * OUT_HEIGHT) % KERNEL_WIDTH;
  let k = place / (OUT_WIDTH * OUT_HEIGHT * KERNEL_WIDTH) % KERNEL_HEIGHT;
  let plane = place / (OUT_WIDTH * OUT_HEIGHT * KERNEL_WIDTH * KERNEL_HEIGHT);
  let row = i * STRIDE_HEIGHT + k * DILATION_HEIGHT - PADDING_HEIGHT;
  let column = j * STRIDE_WIDTH + m * DILATION_WIDTH - PADDING_WIDTH;
  var value = 0.0;
  if (row < HEIGHT && column < WIDTH) { value = x[(plane * HEIGHT + row) * WIDTH + column]; }
  out[place] = value;
}
