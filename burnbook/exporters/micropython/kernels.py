"""What a small network needs, in the part of Python that MicroPython has.

The source of those functions that a model uses is copied into its file. They work on
flat arrays, give their results in an array that they are handed, and make no lists:
memory is what the file says at its beginning. In the int8 functions `x` and `out` hold
whole numbers from -127 to 127, and weights come row by row, so that they may stay in
the file.
"""

# pyright: basic
# Annotations would only be read, and kept in memory, by a small machine.

from binascii import a2b_base64
from math import copysign, exp, log, sqrt, tanh

INF = float("inf")
NAN = float("nan")


class Rows:
    """Weights as lines at the end of this file, read one after the other."""

    def __init__(self, path, start, count):
        self.path, self.start, self.count = path, start, count

    def __iter__(self):
        self.file = open(self.path, "rb")  # noqa: SIM115 - closed after the last row
        self.file.seek(self.start, 2)
        self.left = self.count
        return self

    def __next__(self):
        line = self.file.readline() if self.left else b""
        if line[:3] != b"#: ":
            self.file.close()
            if self.left:
                raise ValueError("the lines with the weights are damaged")
            raise StopIteration
        self.left -= 1
        return a2b_base64(line[3:])


class Held:
    """Weights as bytes, row by row."""

    def __init__(self, data, size):
        self.data, self.size = memoryview(data), size

    def __iter__(self):
        self.at = 0
        return self

    def __next__(self):
        if self.at >= len(self.data):
            raise StopIteration
        self.at += self.size
        return self.data[self.at - self.size : self.at]


def linear(x, weight, bias, out, rows, inputs, outputs):
    """out = x * weight + bias."""
    for r in range(rows):
        to = r * outputs
        for j in range(outputs):
            out[to + j] = bias[j]
        for i in range(inputs):
            value = x[r * inputs + i]
            if value:
                at = i * outputs
                for j in range(outputs):
                    out[to + j] += value * weight[at + j]


def conv(x, weight, bias, out, form):
    """Slide weight over x; form: sizes of x, weight and out, steps, groups."""
    _, taps, stops, _, _, _, _ = form
    size = taps[0] * taps[1] * taps[2]
    columns = stops[2]
    for o in range(stops[0]):
        for i in range(stops[1]):
            at = (o * stops[1] + i) * columns
            line = out[at : at + columns]
            for j in range(columns):
                line[j] = bias[o]
            add_taps(x, weight, o * size, o, i, line, form, 0)


def add_taps(x, weight, at, o, i, line, form, signed):
    """Add what each tap of filter o sees to a row of results; signed: 256 for bytes."""
    size, taps, stops, stride, padding, dilation, groups = form
    first = o // (stops[0] // groups) * taps[0]
    pace = stride[1]
    for c in range(first, first + taps[0]):
        for k in range(taps[1]):
            row = i * stride[0] - padding[0] + k * dilation[0]
            if 0 <= row < size[1]:
                begin = (c * size[1] + row) * size[2]
                for m in range(taps[2]):
                    factor = weight[at + m]
                    if signed and factor > 127:
                        factor -= signed
                    shift = m * dilation[1] - padding[1]
                    low = max(0, -(shift // pace)) if shift < 0 else 0
                    high = min(len(line), (size[2] - 1 - shift) // pace + 1)
                    place = begin + shift + low * pace
                    for j in range(low, high):
                        line[j] += factor * x[place]
                        place += pace
            at += taps[2]


def max_pool(x, out, form):
    """The largest number of every window; form: sizes and steps of the windows."""
    size, taps, stops, stride, padding, dilation = form
    place = 0
    for c in range(size[0]):
        for i in range(stops[0]):
            for j in range(stops[1]):
                best = None
                for k in range(taps[0] * taps[1]):
                    row = i * stride[0] - padding[0] + k // taps[1] * dilation[0]
                    col = j * stride[1] - padding[1] + k % taps[1] * dilation[1]
                    if 0 <= row < size[1] and 0 <= col < size[2]:
                        value = x[(c * size[1] + row) * size[2] + col]
                        best = value if best is None else max(best, value)
                out[place] = best
                place += 1


def average(x, out, size, ranges, scale):
    """The mean of every window; ranges: where rows and columns of windows lie."""
    channels, height, width = size
    place = 0
    for c in range(channels):
        for top, bottom, tall in ranges[0]:
            for left, right, broad in ranges[1]:
                total = 0
                for row in range(top, bottom):
                    line = (c * height + row) * width
                    for col in range(left, right):
                        total += x[line + col]
                out[place] = total * scale / (tall * broad)
                place += 1


def each(function, x, out):
    """A function of every number."""
    for i in range(len(out)):
        out[i] = function(x[i])


def pairs(function, x, y, out, inner_x, count_x, inner_y, count_y):
    """A function of two numbers; the smaller array is repeated."""
    for i in range(len(out)):
        out[i] = function(x[i // inner_x % count_x], y[i // inner_y % count_y])


def softmax(x, out, outer, count, inner):
    """Numbers that add up to 1 along a dim."""
    for a in range(outer):
        for b in range(inner):
            at = a * count * inner + b
            most = x[at]
            for i in range(1, count):
                most = max(most, x[at + i * inner])
            total = 0
            for i in range(count):
                value = exp(x[at + i * inner] - most)
                out[at + i * inner] = value
                total += value
            for i in range(count):
                out[at + i * inner] /= total


def log_softmax(x, out, outer, count, inner):
    """The logarithms of softmax, of numbers however far apart."""
    for a in range(outer):
        for b in range(inner):
            at = a * count * inner + b
            most = x[at]
            for i in range(1, count):
                most = max(most, x[at + i * inner])
            total = 0
            for i in range(count):
                total += exp(x[at + i * inner] - most)
            total = log(total)
            for i in range(count):
                out[at + i * inner] = x[at + i * inner] - most - total


def layer_norm(x, gamma, beta, out, rows, size, epsilon):
    """Mean 0 and variance 1 for every row, then gamma and beta."""
    for r in range(rows):
        at = r * size
        mean = 0
        for i in range(size):
            mean += x[at + i]
        mean /= size
        var = 0
        for i in range(size):
            var += (x[at + i] - mean) ** 2
        factor = 1 / sqrt(var / size + epsilon)
        for i in range(size):
            out[at + i] = (x[at + i] - mean) * factor * gamma[i] + beta[i]


def pick(x, out, sizes, strides, start):
    """Numbers of x in another order: sizes of the result, and their steps in x."""
    place = [0] * len(sizes)
    at = start
    for i in range(len(out)):
        out[i] = x[at]
        for d in range(len(sizes) - 1, -1, -1):
            place[d] += 1
            at += strides[d]
            if place[d] < sizes[d]:
                break
            at -= strides[d] * sizes[d]
            place[d] = 0


def embedding(weight, indices, out, size):
    """Rows of a table."""
    for i in range(len(out) // size):
        at = int(indices[i]) * size
        for j in range(size):
            out[i * size + j] = weight[at + j]


def sigmoid(x):
    """1 / (1 + e^-x), without overflow."""
    if x < 0:
        grown = exp(x)
        return grown / (1 + grown)
    return 1 / (1 + exp(-x))


def defined(function, x, other):
    """A function of x, or another number where Python has an error instead."""
    try:
        return function(x)
    except (OverflowError, ValueError):
        return other


def divide(x, y):
    """x / y, by zero too: an infinity, or NaN of zero."""
    return x / y if y else x * copysign(INF, y)


def power(x, y):
    """x to the power of y: infinity or NaN where Python has an error instead."""
    if y != y or (-INF < x < 0 and 0 < y % 1 < 1):
        return NAN if x != 1 else 1.0
    try:
        found = abs(x) ** y
    except (OverflowError, ZeroDivisionError):
        found = INF
    return copysign(found, x) if y % 2 == 1 else found


def log1p(x):
    """The logarithm of 1 + x, exact near zero, which some machines do not have."""
    near = 1 + x
    if not 0 < near < INF:
        return near if near > 0 else NAN if near else -INF
    return x if near == 1 else log(near) * (x / (near - 1))


def lstm(x, weight, recurrent, bias, out, steps, inputs, size, state):
    """The states of every step, then the last memory; the gates are i f o n."""
    gates, memory = state
    for i in range(size):
        memory[i] = 0
    for t in range(steps):
        for j in range(4 * size):
            total = bias[j]
            for i in range(inputs):
                total += x[t * inputs + i] * weight[i * 4 * size + j]
            if t:
                for i in range(size):
                    total += out[(t - 1) * size + i] * recurrent[i * 4 * size + j]
            gates[j] = total
        for i in range(size):
            new = tanh(gates[3 * size + i]) * sigmoid(gates[i])
            memory[i] = memory[i] * sigmoid(gates[size + i]) + new
            out[t * size + i] = tanh(memory[i]) * sigmoid(gates[2 * size + i])
    for i in range(size):
        out[steps * size + i] = memory[i]


def to_int8(x, out, scale):
    """The nearest whole numbers: x / scale, from -127 to 127."""
    for i in range(len(out)):
        value = min(max(x[i] / scale, -127), 127)
        out[i] = int(value + 127.5) - 127


def to_float(x, out, scale):
    """What whole numbers stand for."""
    for i in range(len(out)):
        out[i] = x[i] * scale


def linear_int8(x, weight, bias, out, sums, factor, low):
    """out = factor (x * weight) + bias; a row of weights for each input.

    low: the least result, as a whole number; None leaves results as they are.
    """
    count = len(bias)
    for j in range(count):
        sums[j] = 0
    for i, row in enumerate(weight):
        value = x[i]
        if value:
            for j in range(count):
                byte = row[j]
                sums[j] += value * (byte if byte < 128 else byte - 256)
    finish(sums, factor, bias, 0, 1, out, 0, low)


def conv_int8(x, weight, bias, out, sums, form, factor, low):
    """Slide weight over x; a row of weights for each filter; low as in linear_int8."""
    rows, columns = form[2][1], form[2][2]
    line = sums[:columns]
    for o, held in enumerate(weight):
        for i in range(rows):
            for j in range(columns):
                line[j] = 0
            add_taps(x, held, 0, o, i, line, form, 256)
            finish(line, factor, bias, o, 0, out, (o * rows + i) * columns, low)


def finish(sums, factor, bias, first, step, out, place, low):
    """Sums as results: scaled, with the bias, and rounded unless low is None."""
    for j in range(len(sums)):
        value = sums[j] * factor + bias[first + j * step]
        if low is not None:
            value = int(min(max(value, low), 127) + 127.5) - 127
        out[place + j] = value


def by_table(table, x, out):
    """A function of every whole number, looked up."""
    for i in range(len(out)):
        out[i] = table[x[i] + 127]
