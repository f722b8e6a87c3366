// out = x · y, for each of COUNT matrices. x [COUNT, ROWS, INNER], y [COUNT, INNER, COLUMNS]
//
// A workgroup makes one tile of the output, as in linear. A stride of 0 repeats a matrix.
const TILE = 16u;
var<workgroup> x_tile: array<array<f32, TILE>, TILE>;
var<workgroup> y_tile: array<array<f32, TILE>, TILE>;

@compute @workgroup_size(TILE, TILE)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(local_invocation_id) local: vec3u,
) {
  let row = group.y * TILE + local.y;
  let column = group.x * TILE + local.x;
  let x_start = group.z * X_STRIDE;
  let y_start = group.z * Y_STRIDE;
  var total = 0.0;
  for (var begin = 0u; begin < INNER; begin += TILE) {
    let across = begin + local.x;
    let down = begin + local.y;
    var from_x = 0.0;
    var from_y = 0.0;
    if (row < ROWS && across < INNER) { from_x = x[x_start + row * INNER + across]; }
    if (down < INNER && column < COLUMNS) { from_y = y[y_start + down * COLUMNS + column]; }
    x_tile[local.y][local.x] = from_x;
    y_tile[local.y][local.x] = from_y;
    workgroupBarrier();
    for (var k = 0u; k < TILE; k++) {
      total += x_tile[local.y][k] * y_tile[k][local.x];
    }
    workgroupBarrier();
  }
  if (row < ROWS && column < COLUMNS) {
    out[(group.z * ROWS + row) * COLUMNS + column] = total;
  }
}
