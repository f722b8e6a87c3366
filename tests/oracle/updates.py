"""Slow updates: the formula of an optimizer, one number at a time."""

import math

import numpy as np

from tests.oracle.loops import each


def one_by_one(rule, *arrays):
    """Apply a rule that gives several numbers; an array for each of them."""
    count = len(rule(*[float(x.reshape(-1)[0]) for x in arrays]))
    return tuple(
        each(lambda *numbers, i=i: rule(*numbers)[i], *arrays) for i in range(count)
    )


def sgd_step(param, grad, lr, penalty=0.0):
    return each(lambda p, g: p - lr * (g + penalty * p), param, grad)


def momentum_step(
    *arrays, lr, momentum=0.9, dampening=0.0, nesterov=False, penalty=0.0
):
    def rule(p, g, v):
        g += penalty * p
        v = momentum * v + (1 - dampening) * g
        return p - lr * (g + momentum * v if nesterov else v), v

    return one_by_one(rule, *arrays)


def adam_step(
    *arrays,
    lr=1e-3,
    beta_1=0.9,
    beta_2=0.999,
    epsilon=1e-5,
    penalty=0.0,
    decay=0.0,
    cautious=False,
    time,
):
    def rule(p, g, m, v, *largest):
        g += penalty * p
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g * g
        largest = [max(x, v) for x in largest]
        square = largest[0] if largest else v
        m_hat, v_hat = m / (1 - beta_1**time), square / (1 - beta_2**time)
        if not cautious or (p >= 0) == (m >= 0):
            p -= lr * decay * p
        return p - lr * m_hat / (math.sqrt(v_hat) + epsilon), m, v, *largest

    return one_by_one(rule, *arrays)


amsgrad_step = adam_step


def adagrad_step(param, grad, total, lr, epsilon=1e-5, penalty=0.0):
    def rule(p, g, s):
        g += penalty * p
        s += g * g
        return p - lr * g / (math.sqrt(s) + epsilon), s

    return one_by_one(rule, param, grad, total)


def rmsprop_step(*arrays, lr, alpha=0.99, momentum=0.9, epsilon=1e-5, penalty=0.0):
    def rule(p, g, s, *more):
        g += penalty * p
        s = alpha * s + (1 - alpha) * g * g
        found, square = [s], s
        if len(more) == 2:
            a = alpha * more[1] + (1 - alpha) * g
            square = s - a * a
            found = [s, a]
        u = g / (math.sqrt(max(square, 0.0)) + epsilon)
        if more:
            u += momentum * more[0]
            found.insert(1, u)
        return p - lr * u, *found

    return one_by_one(rule, *arrays)


rmsprop_momentum_step = rmsprop_centered_step = rmsprop_step


def adan_step(
    *arrays,
    lr=1e-3,
    beta_1=0.98,
    beta_2=0.92,
    beta_3=0.99,
    epsilon=1e-8,
    decay=0.0,
    no_prox=False,
    time,
):
    def rule(p, g, m, n, w, pre):
        d = g + pre
        m = beta_1 * m + (1 - beta_1) * g
        w = beta_2 * w + (1 - beta_2) * d
        n = beta_3 * n + (1 - beta_3) * (g + beta_2 * d) ** 2
        under = math.sqrt(n) / math.sqrt(1 - beta_3**time) + epsilon
        u = m / (1 - beta_1**time) / under
        u += beta_2 * (w / (1 - beta_2**time)) / under
        if no_prox:
            p = p * (1 - lr * decay) - lr * u
        else:
            p = (p - lr * u) / (1 + lr * decay)
        return p, m, n, w, -g

    return one_by_one(rule, *arrays)


def length(x):
    return np.array([math.sqrt(math.fsum(float(a) ** 2 for a in x.reshape(-1)))])


def clip_scale(*lengths, threshold, tiny=0.0):
    total = math.sqrt(math.fsum(float(part[0]) ** 2 for part in lengths))
    return np.array([min(1.0, threshold / (total + tiny))])


def product(x, y):
    out = np.zeros((x.shape[0], y.shape[1]))
    for i, j in np.ndindex(out.shape):
        out[i, j] = math.fsum(x[i, k] * y[k, j] for k in range(x.shape[1]))
    return out


def newton_schulz(x, coefficients=(3.4445, -4.775, 2.0315), steps=5, epsilon=1e-7):
    a, b, c = coefficients
    if x.shape[0] > x.shape[1]:
        return newton_schulz(x.T, coefficients, steps, epsilon).T
    x = x / max(float(length(x)[0]), epsilon)
    for _ in range(steps):
        square = product(x, x.T)
        x = a * x + product(b * square + c * product(square, square), x)
    return x


def lbfgs_direction(*vectors, rho, scale):
    """−H g, where H grows from scale · 1 by each pair's BFGS formula."""
    g, count = vectors[0], len(rho)
    h, one = np.eye(len(g)) * scale, np.eye(len(g))
    for i in range(count):
        s, y = vectors[1 + i], vectors[1 + count + i]
        left = one - rho[i] * np.outer(s, y)
        h = left @ h @ left.T + rho[i] * np.outer(s, s)
    return -h @ g
