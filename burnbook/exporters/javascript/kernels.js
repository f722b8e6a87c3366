// The kernels of JavaScript files: those that a program uses are copied into its file.
//
// They work on flat typed arrays, write their results into one that they are handed,
// and sum in double precision where they can. Sizes come by name, in the last argument.

/** The numbers of an input as float32s. */
function floatsOf(given) {
  return given instanceof Float32Array ? given : Float32Array.from(given);
}

/** The elements of an input as 0 and 1: what counts as true is 1. */
function bitsOf(given) {
  const bits = new Uint8Array(given.length);
  for (let i = 0; i < bits.length; i++) bits[i] = given[i] ? 1 : 0;
  return bits;
}

/** out = x · weight + bias. x [rows, inputs], weight [inputs, outputs] */
function linear(x, weight, bias, out, { rows, inputs, outputs }) {
  for (let r = 0; r < rows; r++) {
    for (let j = 0; j < outputs; j++) out[r * outputs + j] = bias[j];
  }
  addProduct(x, 0, weight, 0, out, 0, rows, inputs, outputs);
}

/** out = x · y, for each of `count` matrices; a stride of 0 repeats the same one. */
function matmul(x, y, out, { count, rows, inner, columns, xStride, yStride }) {
  out.fill(0, 0, count * rows * columns);
  for (let c = 0; c < count; c++) {
    const to = c * rows * columns;
    addProduct(x, c * xStride, y, c * yStride, out, to, rows, inner, columns);
  }
}

/**
 * out += x · y, in blocks: 64 rows of y stay in the cache while all rows of x pass, and
 * four of them are added at once, so that a row of out is read and written less often.
 */
function addProduct(x, xAt, y, yAt, out, outAt, rows, inner, columns) {
  const BLOCK = 64;
  for (let begin = 0; begin < inner; begin += BLOCK) {
    const end = Math.min(begin + BLOCK, inner);
    for (let r = 0; r < rows; r++) {
      const from = xAt + r * inner;
      const to = outAt + r * columns;
      let k = begin;
      for (; k + 3 < end; k += 4) {
        const a = x[from + k];
        const b = x[from + k + 1];
        const c = x[from + k + 2];
        const d = x[from + k + 3];
        const first = yAt + k * columns;
        const second = first + columns;
        const third = second + columns;
        const fourth = third + columns;
        for (let j = 0; j < columns; j++) {
          out[to + j] +=
            a * y[first + j] + b * y[second + j] + c * y[third + j] + d * y[fourth + j];
        }
      }
      for (; k < end; k++) {
        const a = x[from + k];
        const row = yAt + k * columns;
        for (let j = 0; j < columns; j++) out[to + j] += a * y[row + j];
      }
    }
  }
}

/** Slide weight over images. x [batch, channels, height, width] */
function conv2d(x, weight, bias, out, size) {
  const { batch, channels, height, width, filters, groups } = size;
  const { outHeight, outWidth, kernelHeight, kernelWidth } = size;
  const { strideHeight, strideWidth, paddingHeight, paddingWidth } = size;
  const { dilationHeight, dilationWidth } = size;
  const each = channels / groups;
  const places = outHeight * outWidth;
  for (let n = 0; n < batch; n++) {
    for (let f = 0; f < filters; f++) {
      const plane = (n * filters + f) * places;
      out.fill(bias[f], plane, plane + places);
      const first = Math.floor(f / (filters / groups)) * each;
      let at = f * each * kernelHeight * kernelWidth;
      for (let c = 0; c < each; c++) {
        const image = (n * channels + first + c) * height * width;
        for (let k = 0; k < kernelHeight; k++) {
          const top = k * dilationHeight - paddingHeight;
          for (let m = 0; m < kernelWidth; m += 3) {
            const taps = Math.min(3, kernelWidth - m);
            const left = m * dilationWidth - paddingWidth;
            for (let i = 0; i < outHeight; i++) {
              const row = i * strideHeight + top;
              if (row < 0 || row >= height) continue;
              const line = image + row * width;
              addTaps(x, line, width, left, dilationWidth, strideWidth, weight, at, taps,
                out, plane + i * outWidth, outWidth);
            }
            at += taps;
          }
        }
      }
    }
  }
}

/**
 * Add what up to three taps see of a line: those places at once that all three see, the
 * edges tap by tap. out is read and written a third as often.
 */
function addTaps(x, line, width, left, dilation, stride, weight, at, taps, out, to, count) {
  const first = Math.max(0, Math.ceil(-left / stride));
  let begin = count;
  let end = count;
  if (taps === 3) {
    const last = Math.floor((width - 1 - left - 2 * dilation) / stride) + 1;
    begin = Math.min(first, count);
    end = Math.max(begin, Math.min(count, last));
    const a = weight[at];
    const b = weight[at + 1];
    const c = weight[at + 2];
    for (let j = begin, from = line + left + begin * stride; j < end; j++, from += stride) {
      out[to + j] += a * x[from] + b * x[from + dilation] + c * x[from + 2 * dilation];
    }
    if (begin === 0 && end === count) return;
  }
  for (let m = 0; m < taps; m++) {
    const start = left + m * dilation;
    const factor = weight[at + m];
    const low = Math.max(0, Math.ceil(-start / stride));
    const high = Math.min(count, Math.floor((width - 1 - start) / stride) + 1);
    for (let j = low; j < Math.min(begin, high); j++) {
      out[to + j] += factor * x[line + start + j * stride];
    }
    for (let j = Math.max(end, low); j < high; j++) {
      out[to + j] += factor * x[line + start + j * stride];
    }
  }
}

/** Slide weight over volumes. x [batch, channels, depth, height, width] */
function conv3d(x, weight, bias, out, size) {
  const { batch, channels, depth, height, width, filters, groups } = size;
  const { outDepth, outHeight, outWidth } = size;
  const { kernelDepth, kernelHeight, kernelWidth } = size;
  const { strideDepth, strideHeight, strideWidth } = size;
  const { paddingDepth, paddingHeight, paddingWidth } = size;
  const { dilationDepth, dilationHeight, dilationWidth } = size;
  const each = channels / groups;
  let place = 0;
  for (let n = 0; n < batch; n++) {
    for (let f = 0; f < filters; f++) {
      const first = n * channels + Math.floor(f / (filters / groups)) * each;
      for (let h = 0; h < outDepth; h++) {
        for (let i = 0; i < outHeight; i++) {
          for (let j = 0; j < outWidth; j++) {
            let total = bias[f];
            let at = f * each * kernelDepth * kernelHeight * kernelWidth;
            for (let c = first; c < first + each; c++) {
              for (let d = 0; d < kernelDepth; d++) {
                const slice = h * strideDepth + d * dilationDepth - paddingDepth;
                for (let k = 0; k < kernelHeight; k++) {
                  const row = i * strideHeight + k * dilationHeight - paddingHeight;
                  const inside = slice >= 0 && slice < depth && row >= 0 && row < height;
                  const line = ((c * depth + slice) * height + row) * width;
                  for (let m = 0; m < kernelWidth; m++, at++) {
                    const column = j * strideWidth + m * dilationWidth - paddingWidth;
                    if (inside && column >= 0 && column < width) {
                      total += weight[at] * x[line + column];
                    }
                  }
                }
              }
            }
            out[place++] = total;
          }
        }
      }
    }
  }
}

/** Spread weight over the output, once for every element of x. weight [c, o, ...] */
function convTranspose(x, weight, bias, out, size) {
  const { batch, channels, depth, height, width, filters, groups } = size;
  const { outDepth, outHeight, outWidth } = size;
  const { kernelDepth, kernelHeight, kernelWidth } = size;
  const { strideDepth, strideHeight, strideWidth } = size;
  const { paddingDepth, paddingHeight, paddingWidth } = size;
  const { dilationDepth, dilationHeight, dilationWidth } = size;
  const each = filters / groups;
  const places = outDepth * outHeight * outWidth;
  for (let n = 0; n < batch; n++) {
    for (let f = 0; f < filters; f++) {
      const plane = (n * filters + f) * places;
      out.fill(bias[f], plane, plane + places);
    }
    for (let c = 0; c < channels; c++) {
      const first = Math.floor(c / (channels / groups)) * each;
      let from = (n * channels + c) * depth * height * width;
      for (let h = 0; h < depth; h++) {
        for (let i = 0; i < height; i++) {
          for (let j = 0; j < width; j++) {
            const value = x[from++];
            let at = c * each * kernelDepth * kernelHeight * kernelWidth;
            for (let f = first; f < first + each; f++) {
              const plane = (n * filters + f) * places;
              for (let d = 0; d < kernelDepth; d++) {
                const slice = h * strideDepth + d * dilationDepth - paddingDepth;
                for (let k = 0; k < kernelHeight; k++) {
                  const row = i * strideHeight + k * dilationHeight - paddingHeight;
                  const inside =
                    slice >= 0 && slice < outDepth && row >= 0 && row < outHeight;
                  const line = plane + (slice * outHeight + row) * outWidth;
                  for (let m = 0; m < kernelWidth; m++, at++) {
                    const column = j * strideWidth + m * dilationWidth - paddingWidth;
                    if (inside && column >= 0 && column < outWidth) {
                      out[line + column] += value * weight[at];
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}

/** Read images where each tap was moved to, between four pixels. out [n, stops, taps, c] */
function deformPatches(x, offset, mask, out, size) {
  const { batch, channels, height, width, offsetGroups } = size;
  const { outHeight, outWidth, kernelHeight, kernelWidth } = size;
  const { strideHeight, strideWidth, paddingHeight, paddingWidth } = size;
  const { dilationHeight, dilationWidth } = size;
  const taps = kernelHeight * kernelWidth;
  const stops = outHeight * outWidth;
  const each = channels / offsetGroups;
  const pixel = (plane, row, column) =>
    row >= 0 && row < height && column >= 0 && column < width
      ? x[plane + row * width + column]
      : 0;
  let place = 0;
  for (let n = 0; n < batch; n++) {
    for (let stop = 0; stop < stops; stop++) {
      for (let tap = 0; tap < taps; tap++) {
        for (let c = 0; c < channels; c++) {
          const group = n * offsetGroups + Math.floor(c / each);
          const moved = (group * taps + tap) * 2 * stops + stop;
          const top = Math.floor(stop / outWidth) * strideHeight - paddingHeight;
          const left = (stop % outWidth) * strideWidth - paddingWidth;
          const down = offset[moved];
          const right = offset[moved + stops];
          const row = top + Math.floor(tap / kernelWidth) * dilationHeight + Math.floor(down);
          const column = left + (tap % kernelWidth) * dilationWidth + Math.floor(right);
          const below = down - Math.floor(down);
          const beside = right - Math.floor(right);
          const plane = (n * channels + c) * height * width;
          const upper =
            pixel(plane, row, column) * (1 - beside) + pixel(plane, row, column + 1) * beside;
          const lower =
            pixel(plane, row + 1, column) * (1 - beside) +
            pixel(plane, row + 1, column + 1) * beside;
          const factor = mask[(group * taps + tap) * stops + stop];
          out[place++] = (upper * (1 - below) + lower * below) * factor;
        }
      }
    }
  }
}

/** The patches of images as columns. out [batch, channels · taps, stops] */
function unfold(x, out, size) {
  const { batch, channels, height, width } = size;
  const { outHeight, outWidth, kernelHeight, kernelWidth } = size;
  const { strideHeight, strideWidth, paddingHeight, paddingWidth } = size;
  const { dilationHeight, dilationWidth } = size;
  let place = 0;
  for (let plane = 0; plane < batch * channels; plane++) {
    for (let k = 0; k < kernelHeight; k++) {
      for (let m = 0; m < kernelWidth; m++) {
        for (let i = 0; i < outHeight; i++) {
          const row = i * strideHeight + k * dilationHeight - paddingHeight;
          for (let j = 0; j < outWidth; j++) {
            const column = j * strideWidth + m * dilationWidth - paddingWidth;
            const inside = row >= 0 && row < height && column >= 0 && column < width;
            out[place++] = inside ? x[(plane * height + row) * width + column] : 0;
          }
        }
      }
    }
  }
}

/** Columns of patches added up to images; the opposite of unfold. */
function fold(x, out, size) {
  const { batch, channels, height, width } = size;
  const { outHeight, outWidth, kernelHeight, kernelWidth } = size;
  const { strideHeight, strideWidth, paddingHeight, paddingWidth } = size;
  const { dilationHeight, dilationWidth } = size;
  out.fill(0, 0, batch * channels * height * width);
  let place = 0;
  for (let plane = 0; plane < batch * channels; plane++) {
    for (let k = 0; k < kernelHeight; k++) {
      for (let m = 0; m < kernelWidth; m++) {
        for (let i = 0; i < outHeight; i++) {
          const row = i * strideHeight + k * dilationHeight - paddingHeight;
          for (let j = 0; j < outWidth; j++, place++) {
            const column = j * strideWidth + m * dilationWidth - paddingWidth;
            if (row >= 0 && row < height && column >= 0 && column < width) {
              out[(plane * height + row) * width + column] += x[place];
            }
          }
        }
      }
    }
  }
}

/** The largest number of every window. x [planes, height, width] */
function maxPool2d(x, out, size) {
  const { planes, height, width, outHeight, outWidth, kernelHeight, kernelWidth } = size;
  const { strideHeight, strideWidth, paddingHeight, paddingWidth } = size;
  const { dilationHeight, dilationWidth } = size;
  let place = 0;
  for (let p = 0; p < planes; p++) {
    for (let i = 0; i < outHeight; i++) {
      for (let j = 0; j < outWidth; j++) {
        let most = -Infinity;
        for (let k = 0; k < kernelHeight; k++) {
          const row = i * strideHeight + k * dilationHeight - paddingHeight;
          if (row < 0 || row >= height) continue;
          for (let m = 0; m < kernelWidth; m++) {
            const column = j * strideWidth + m * dilationWidth - paddingWidth;
            if (column < 0 || column >= width) continue;
            most = Math.max(most, x[(p * height + row) * width + column]);
          }
        }
        out[place++] = most;
      }
    }
  }
}

/** The mean of every window; all lie inside. x [planes, height, width] */
function avgPool2d(x, out, size) {
  const { planes, height, width, outHeight, outWidth, kernelHeight, kernelWidth } = size;
  const { strideHeight, strideWidth } = size;
  const share = 1 / (kernelHeight * kernelWidth);
  let place = 0;
  for (let p = 0; p < planes; p++) {
    for (let i = 0; i < outHeight; i++) {
      for (let j = 0; j < outWidth; j++) {
        let total = 0;
        for (let k = 0; k < kernelHeight; k++) {
          const line = (p * height + i * strideHeight + k) * width + j * strideWidth;
          for (let m = 0; m < kernelWidth; m++) total += x[line + m];
        }
        out[place++] = total * share;
      }
    }
  }
}

/** Each place of a dim is a weighted sum of some places. x [outer, sizeIn, inner] */
function mix(x, places, weights, out, { outer, sizeIn, sizeOut, inner, taps }) {
  for (let a = 0; a < outer; a++) {
    for (let i = 0; i < sizeOut; i++) {
      for (let b = 0; b < inner; b++) {
        let total = 0;
        for (let k = i * taps; k < (i + 1) * taps; k++) {
          total += weights[k] * x[(a * sizeIn + places[k]) * inner + b];
        }
        out[(a * sizeOut + i) * inner + b] = total;
      }
    }
  }
}

/** Numbers that add up to 1 along a dim. x [outer, count, inner] */
function softmax(x, out, { outer, count, inner }) {
  for (let a = 0; a < outer; a++) {
    for (let b = 0; b < inner; b++) {
      const at = a * count * inner + b;
      let most = -Infinity;
      for (let i = 0; i < count; i++) most = Math.max(most, x[at + i * inner]);
      let total = 0;
      for (let i = 0; i < count; i++) {
        const value = Math.exp(x[at + i * inner] - most);
        out[at + i * inner] = value;
        total += value;
      }
      for (let i = 0; i < count; i++) out[at + i * inner] /= total;
    }
  }
}

/** The logarithms of softmax. x [outer, count, inner] */
function logSoftmax(x, out, { outer, count, inner }) {
  for (let a = 0; a < outer; a++) {
    for (let b = 0; b < inner; b++) {
      const at = a * count * inner + b;
      let most = -Infinity;
      for (let i = 0; i < count; i++) most = Math.max(most, x[at + i * inner]);
      let total = 0;
      for (let i = 0; i < count; i++) total += Math.exp(x[at + i * inner] - most);
      const shift = most + Math.log(total);
      for (let i = 0; i < count; i++) out[at + i * inner] = x[at + i * inner] - shift;
    }
  }
}

/**
 * The shares of attention: softmax, but all 0 where everything is hidden by −∞.
 * quiet: as if there were one more score of 0. x [rows, count]
 */
function shares(x, out, { rows, count, quiet }) {
  for (let r = 0; r < rows; r++) {
    const at = r * count;
    let most = quiet ? 0 : -3.4028234663852886e38;
    for (let i = 0; i < count; i++) most = Math.max(most, x[at + i]);
    let total = quiet ? Math.exp(-most) : 0;
    for (let i = 0; i < count; i++) {
      const value = Math.exp(x[at + i] - most);
      out[at + i] = value;
      total += value;
    }
    total = Math.max(total, 1.1754943508222875e-38);
    for (let i = 0; i < count; i++) out[at + i] /= total;
  }
}

/** Mean 0 and variance 1 for every row, then gamma and beta. x [rows, count] */
function layerNorm(x, gamma, beta, out, { rows, count, epsilon }) {
  for (let r = 0; r < rows; r++) {
    const at = r * count;
    let mean = 0;
    for (let i = 0; i < count; i++) mean += x[at + i];
    mean /= count;
    let variance = 0;
    for (let i = 0; i < count; i++) variance += (x[at + i] - mean) ** 2;
    const scale = 1 / Math.sqrt(variance / count + epsilon);
    for (let i = 0; i < count; i++) {
      out[at + i] = (x[at + i] - mean) * scale * gamma[i] + beta[i];
    }
  }
}

/** Length √count for every row, then gamma. x [rows, count] */
function rmsNorm(x, gamma, out, { rows, count, epsilon }) {
  for (let r = 0; r < rows; r++) {
    const at = r * count;
    let power = 0;
    for (let i = 0; i < count; i++) power += x[at + i] ** 2;
    const scale = 1 / Math.sqrt(power / count + epsilon);
    for (let i = 0; i < count; i++) out[at + i] = x[at + i] * scale * gamma[i];
  }
}

/** The same for groups of channels. x [rows, channels, places], rows = batch · groups */
function groupNorm(x, gamma, beta, out, size) {
  const { rows, groups, channels, places, epsilon, inside } = size;
  const count = channels * places;
  for (let r = 0; r < rows; r++) {
    const at = r * count;
    let mean = 0;
    for (let i = 0; i < count; i++) mean += x[at + i];
    mean /= count;
    let variance = 0;
    for (let i = 0; i < count; i++) variance += (x[at + i] - mean) ** 2;
    variance /= count;
    const scale = 1 / (inside ? Math.sqrt(variance + epsilon) : Math.sqrt(variance) + epsilon);
    for (let i = 0; i < count; i++) {
      const channel = (r % groups) * channels + Math.floor(i / places);
      out[at + i] = (x[at + i] - mean) * scale * gamma[channel] + beta[channel];
    }
  }
}

/** A running sum, scaled on the way: outᵢ = xᵢ + aᵢ outᵢ₋₁. x [outer, count, inner] */
function linearScan(x, a, out, { outer, count, inner }) {
  for (let o = 0; o < outer; o++) {
    for (let b = 0; b < inner; b++) {
      let last = 0;
      for (let i = 0; i < count; i++) {
        const at = (o * count + i) * inner + b;
        last = i ? x[at] + a[at] * last : x[at];
        out[at] = last;
      }
    }
  }
}

/** Whole slices along a dim, by index. x [outer, count, inner], out [outer, picks, inner] */
function select(x, indices, out, { outer, count, inner, picks }) {
  for (let a = 0; a < outer; a++) {
    for (let i = 0; i < picks; i++) {
      const index = indices[i];
      if (index < 0 || index >= count) throw new RangeError(`index ${index} of ${count}`);
      const from = (a * count + index) * inner;
      const to = (a * picks + i) * inner;
      for (let b = 0; b < inner; b++) out[to + b] = x[from + b];
    }
  }
}

/** Elements along a dim, by an index each. x [outer, count, inner], out [outer, picks, inner] */
function gather(x, indices, out, { outer, count, inner, picks }) {
  for (let a = 0; a < outer; a++) {
    for (let i = 0; i < picks; i++) {
      for (let b = 0; b < inner; b++) {
        const place = (a * picks + i) * inner + b;
        const index = indices[place];
        if (index < 0 || index >= count) throw new RangeError(`index ${index} of ${count}`);
        out[place] = x[(a * count + index) * inner + b];
      }
    }
  }
}

/** A row for each index: `on` at the index, `off` elsewhere. out [rows, size] */
function oneHot(x, out, { rows, size, on, off }) {
  out.fill(off, 0, rows * size);
  for (let r = 0; r < rows; r++) {
    const index = x[r];
    if (index < 0 || index >= size) throw new RangeError(`index ${index} of ${size}`);
    out[r * size + index] = on;
  }
}

/** The places of elements in order, equal ones as they stand. x [outer, count, inner] */
function argsort(x, out, { outer, count, inner, descending }) {
  const order = new Int32Array(count);
  for (let a = 0; a < outer; a++) {
    for (let b = 0; b < inner; b++) {
      const at = a * count * inner + b;
      for (let i = 0; i < count; i++) order[i] = i;
      order.sort((i, j) => {
        const [p, q] = [x[at + i * inner], x[at + j * inner]];
        const isLate = Number(Number.isNaN(p)) - Number(Number.isNaN(q));
        const ahead = isLate || p - q || 0;
        return (descending ? -ahead : ahead) || i - j;
      });
      for (let i = 0; i < count; i++) out[at + i * inner] = order[i];
    }
  }
}

/**
 * Of places in order, the one in the middle; where there is NaN, that of the first NaN.
 * x [outer, count, inner]
 */
function medianPlace(x, places, out, { outer, count, inner }) {
  for (let a = 0; a < outer; a++) {
    for (let b = 0; b < inner; b++) {
      const at = a * count * inner + b;
      const placeOf = (i) => places[at + i * inner];
      const isLost = (i) => Number.isNaN(x[at + placeOf(i) * inner]);
      let i = Math.floor((count - 1) / 2);
      if (isLost(count - 1)) for (i = 0; !isLost(i); i++);
      out[a * inner + b] = placeOf(i);
    }
  }
}

/** Each channel and its neighbors, summed. x [outer, count, inner] */
function neighborSum(x, out, { outer, count, inner, before, after }) {
  for (let a = 0; a < outer; a++) {
    for (let c = 0; c < count; c++) {
      const first = Math.max(0, c - before);
      const last = Math.min(count - 1, c + after);
      for (let b = 0; b < inner; b++) {
        let total = 0;
        for (let i = first; i <= last; i++) total += x[(a * count + i) * inner + b];
        out[(a * count + c) * inner + b] = total;
      }
    }
  }
}

/**
 * Carry a state and a memory along sequences; the gates are i, f, o and n.
 * gates [batch, steps, 4 · size] = x W + b, which it adds to;
 * out [batch · steps + batch, size]: all states, then the last memories.
 */
function lstm(gates, recurrent, cell, hidden, out, { batch, steps, size, reverse }) {
  for (let n = 0; n < batch; n++) {
    const memory = (batch * steps + n) * size;
    for (let i = 0; i < size; i++) out[memory + i] = cell[n * size + i];
    let state = hidden;
    let from = n * size;
    for (let s = 0; s < steps; s++) {
      const row = n * steps + (reverse ? steps - 1 - s : s);
      const at = row * 4 * size;
      addProduct(state, from, recurrent, 0, gates, at, 1, size, 4 * size);
      state = out;
      from = row * size;
      for (let i = 0; i < size; i++) {
        const fresh = Math.tanh(gates[at + 3 * size + i]) * sigmoid(gates[at + i]);
        const held = out[memory + i] * sigmoid(gates[at + size + i]) + fresh;
        out[memory + i] = held;
        out[from + i] = Math.tanh(held) * sigmoid(gates[at + 2 * size + i]);
      }
    }
  }
}

/**
 * Carry one state along sequences; the gates are z, r and n.
 * gates [batch, steps, 3 · size] = x W + b; bias: of the state; out [batch, steps, size]
 */
function gru(gates, recurrent, bias, hidden, out, size_) {
  const { batch, steps, size, reverse, resetAfter } = size_;
  const heads = new Float32Array(3 * size);
  const kept = new Float32Array(size);
  for (let n = 0; n < batch; n++) {
    let state = hidden;
    let from = n * size;
    for (let s = 0; s < steps; s++) {
      const row = n * steps + (reverse ? steps - 1 - s : s);
      const at = row * 3 * size;
      for (let i = 0; i < 3 * size; i++) heads[i] = bias[i];
      addProduct(state, from, recurrent, 0, heads, 0, 1, size, 3 * size);
      if (!resetAfter) {
        for (let i = 0; i < size; i++) {
          kept[i] = sigmoid(heads[size + i] + gates[at + size + i]) * state[from + i];
        }
        for (let j = 2 * size; j < 3 * size; j++) {
          let total = bias[j];
          for (let i = 0; i < size; i++) total += kept[i] * recurrent[i * 3 * size + j];
          heads[j] = total;
        }
      }
      for (let i = 0; i < size; i++) {
        const z = sigmoid(heads[i] + gates[at + i]);
        const r = resetAfter ? sigmoid(heads[size + i] + gates[at + size + i]) : 1;
        const fresh = Math.tanh(r * heads[2 * size + i] + gates[at + 2 * size + i]);
        out[row * size + i] = fresh + z * (state[from + i] - fresh);
      }
      state = out;
      from = row * size;
    }
  }
}

/** Carry one state along sequences: hₜ = tanh(gatesₜ + hₜ₋₁ U). out [batch, steps, size] */
function rnn(gates, recurrent, hidden, out, { batch, steps, size, reverse }) {
  for (let n = 0; n < batch; n++) {
    let state = hidden;
    let from = n * size;
    for (let s = 0; s < steps; s++) {
      const row = (n * steps + (reverse ? steps - 1 - s : s)) * size;
      addProduct(state, from, recurrent, 0, gates, row, 1, size, size);
      for (let i = 0; i < size; i++) out[row + i] = Math.tanh(gates[row + i]);
      state = out;
      from = row;
    }
  }
}

/** 1 / (1 + e⁻ˣ); where e⁻ˣ is infinite, 0 is right. */
function sigmoid(x) {
  return 1 / (1 + Math.exp(-x));
}

/** The error function, to 1.2e-7 of 1 − erf x: a fit by Chebyshev polynomials. */
function erf(x) {
  const t = 1 / (1 + 0.5 * Math.abs(x));
  const fit = [
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398,
    1.48851587, -0.82215223, 0.17087277,
  ];
  let power = 0;
  for (let i = fit.length - 1; i >= 0; i--) power = power * t + fit[i];
  const rest = t * Math.exp(-x * x + power);
  return x >= 0 ? 1 - rest : rest - 1;
}

/** The nearest whole number, halves to even. */
function round(x) {
  const near = Math.round(x);
  return near - x === 0.5 && near % 2 !== 0 ? near - 1 : near;
}

/** xʸ, which is 1 for x = 1 and whatever y, and for x = −1 and an infinite y. */
function power(x, y) {
  return x === 1 || (x === -1 && Math.abs(y) === Infinity) ? 1 : x ** y;
}

/** The rest of a division, with the sign of the divisor. */
function remainder(x, y) {
  const rest = x % y;
  return rest !== 0 && rest < 0 !== y < 0 ? rest + y : rest;
}
