"""Slow functions of single numbers: angles, curves, bits."""

import math

from tests.oracle.loops import each


def tan(x):
    return each(lambda a: math.sin(a) / math.cos(a), x)


def asin(x):
    return each(math.asin, x)


def acos(x):
    return each(math.acos, x)


def atan(x):
    return each(math.atan, x)


def sinh(x):
    return each(lambda a: (math.exp(a) - math.exp(-a)) / 2, x)


def cosh(x):
    return each(lambda a: (math.exp(a) + math.exp(-a)) / 2, x)


def asinh(x):
    return each(lambda a: math.log(a + math.sqrt(a * a + 1)), x)


def acosh(x):
    return each(lambda a: math.log(a + math.sqrt(a * a - 1)), x)


def atanh(x):
    return each(lambda a: math.log((1 + a) / (1 - a)) / 2, x)


def atan2(y, x):
    return each(math.atan2, y, x)


def hypot(x, y):
    return each(lambda a, b: math.sqrt(a * a + b * b), x, y)


def trunc(x):
    return each(lambda a: float(int(a)), x)


def fmod(x, y):
    return each(lambda a, b: a - b * int(a / b), x, y)


def square(x):
    return each(lambda a: a * a, x)


def power(x, exponent):
    return each(lambda a: a**exponent, x)


def gelu(x):
    return each(lambda a: a * (1 + math.erf(a / math.sqrt(2))) / 2, x)


def silu(x):
    return each(lambda a: a / (1 + math.exp(-a)), x)


def softplus(x, beta):
    return each(lambda a: math.log(1 + math.exp(beta * a)) / beta, x)


def log_sigmoid(x):
    return each(lambda a: math.log(1 / (1 + math.exp(-a))), x)


def mish(x):
    return each(lambda a: a * math.tanh(math.log(1 + math.exp(a))), x)


def leaky_relu(x, negative_slope):
    return each(lambda a: a if a > 0 else negative_slope * a, x)


def elu(x, alpha):
    return each(lambda a: a if a > 0 else alpha * (math.exp(a) - 1), x)


def bits(function, *numbers):
    """Apply a function to the bits of whole numbers ≥ 0, one bit after the other."""
    return sum(function(*[int(n) >> k & 1 for n in numbers]) << k for k in range(62))


def bitwise_and(x, y):
    return each(lambda a, b: bits(lambda p, q: p * q, a, b), x, y)


def bitwise_or(x, y):
    return each(lambda a, b: bits(lambda p, q: max(p, q), a, b), x, y)


def bitwise_xor(x, y):
    return each(lambda a, b: bits(lambda p, q: (p + q) % 2, a, b), x, y)


def bitwise_not(x):
    return each(lambda a: -a - 1, x)


def bitwise_left_shift(x, y):
    return each(lambda a, b: a * 2**b, x, y)


def bitwise_right_shift(x, y):
    return each(lambda a, b: a // 2**b, x, y)


def is_inf(x):
    return each(math.isinf, x)


def is_finite(x):
    return each(math.isfinite, x)


def bool_xor(x, y):
    return each(lambda a, b: a != b, x, y)
