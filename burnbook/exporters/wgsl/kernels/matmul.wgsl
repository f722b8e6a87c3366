// out = x · y, for each of COUNT matrices. x [COUNT, ROWS, INNER], y [COUNT, INNER, COLUMNS]
//
// A workgroup makes one tile of the output, as in linear. A stride of 0 repeats a matrix.
const TILE = 16u;
var<workgroup> x_tile: array<array<ELEMENT, TILE>, TILE>;
var<workgroup> y_tile: array<array<ELEMENT, TILE>, TILE>;

fn by_tile(matrix: u32, row: u32, column: u32, local: vec2u) {
  let x_start = matrix * X_STRIDE;
  let y_start = matrix * Y_STRIDE;
  var total = ELEMENT(0);
  for (var begin = 0u; begin < INNER; begin += TILE) {
    let across = begin + local.x;
    let down = begin + local.y;
    var from_x = ELEMENT(0);
    var from_y = ELEMENT(0);
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
    out[(matrix * ROWS + row) * COLUMNS + column] = total;
  }
}
