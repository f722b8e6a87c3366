// out = x · weight + bias. x [ROWS, INPUTS], weight [INPUTS, OUTPUTS], bias [OUTPUTS]
//
// A workgroup makes one tile of the output. It walks along the inputs tile by tile: its
// threads load a tile of x and one of weight once, and read them TILE times from there.
const TILE = 16u;
var<workgroup> x_tile: array<array<f32, TILE>, TILE>;
var<workgroup> weight_tile: array<array<f32, TILE>, TILE>;

fn by_tile(matrix: u32, row: u32, column: u32, local: vec2u) {
  var total = 0.0;
  for (var begin = 0u; begin < INPUTS; begin += TILE) {
    let across = begin + local.x;
    let down = begin + local.y;
    var from_x = 0.0;
    var from_weight = 0.0;
    if (row < ROWS && across < INPUTS) { from_x = x[row * INPUTS + across]; }
    if (down < INPUTS && column < OUTPUTS) { from_weight = weight[down * OUTPUTS + column]; }
    x_tile[local.y][local.x] = from_x;
    weight_tile[local.y][local.x] = from_weight;
    workgroupBarrier();
    for (var k = 0u; k < TILE; k++) {
      total += x_tile[local.y][k] * weight_tile[k][local.x];
    }
    workgroupBarrier();
  }
  if (row < ROWS && column < OUTPUTS) {
    out[row * OUTPUTS + column] = total + bias[column];
  }
}
