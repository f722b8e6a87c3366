// The patches of images as columns. out [batch, CHANNELS · kernel · kernel, stops]
@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let place = id.x + id.y * groups.x * WORKGROUP;
  if (place >= TOTAL) { return; }
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
