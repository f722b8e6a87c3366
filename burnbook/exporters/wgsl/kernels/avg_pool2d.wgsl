// The mean of every window; all lie inside. x [planes, HEIGHT, WIDTH]
fn by_thread(place: u32) {
  let j = place % OUT_WIDTH;
  let i = place / OUT_WIDTH % OUT_HEIGHT;
  let plane = place / (OUT_WIDTH * OUT_HEIGHT);
  var total = 0.0;
  for (var k = 0u; k < KERNEL_HEIGHT; k++) {
    let line = (plane * HEIGHT + i * STRIDE_HEIGHT + k) * WIDTH + j * STRIDE_WIDTH;
    for (var m = 0u; m < KERNEL_WIDTH; m++) { total += x[line + m]; }
  }
  out[place] = total / f32(KERNEL_HEIGHT * KERNEL_WIDTH);
}
