"""Slow functions of single numbers: angles, curves, bits."""

import math

from tests.oracle.loops import by_element

tan = by_element(lambda a: math.sin(a) / math.cos(a))
asin = by_element(math.asin)
acos = by_element(math.acos)
atan = by_element(math.atan)
sinh = by_element(lambda a: (math.exp(a) - math.exp(-a)) / 2)
cosh = by_element(lambda a: (math.exp(a) + math.exp(-a)) / 2)
asinh = by_element(lambda a: math.log(a + math.sqrt(a * a + 1)))
acosh = by_element(lambda a: math.log(a + math.sqrt(a * a - 1)))
atanh = by_element(lambda a: math.log((1 + a) / (1 - a)) / 2)
atan2 = by_element(math.atan2)
hypot = by_element(lambda a, b: math.sqrt(a * a + b * b))
trunc = by_element(lambda a: float(int(a)))
fmod = by_element(lambda a, b: a - b * int(a / b))
square = by_element(lambda a: a * a)
power = by_element(lambda a, exponent: a**exponent)
gelu = by_element(lambda a: a * (1 + math.erf(a / math.sqrt(2))) / 2)
silu = by_element(lambda a: a / (1 + math.exp(-a)))
softplus = by_element(lambda a, beta: math.log(1 + math.exp(beta * a)) / beta)
log_sigmoid = by_element(lambda a: math.log(1 / (1 + math.exp(-a))))
mish = by_element(lambda a: a * math.tanh(math.log(1 + math.exp(a))))
leaky_relu = by_element(lambda a, negative_slope: a if a > 0 else negative_slope * a)
elu = by_element(lambda a, alpha: a if a > 0 else alpha * (math.exp(a) - 1))


def bits(function, *numbers):
    """Apply a function to the bits of whole numbers ≥ 0, one bit after the other."""
    return sum(function(*[int(n) >> k & 1 for n in numbers]) << k for k in range(62))


bitwise_and = by_element(lambda a, b: bits(lambda p, q: p * q, a, b))
bitwise_or = by_element(lambda a, b: bits(lambda p, q: max(p, q), a, b))
bitwise_xor = by_element(lambda a, b: bits(lambda p, q: (p + q) % 2, a, b))
bitwise_not = by_element(lambda a: -a - 1)
bitwise_left_shift = by_element(lambda a, b: a * 2**b)
bitwise_right_shift = by_element(lambda a, b: a // 2**b)
is_inf = by_element(math.isinf)
is_finite = by_element(math.isfinite)
bool_xor = by_element(lambda a, b: a != b)
