"""Recurrent layers: Rnn, Gru and Lstm of ONNX, in both directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from burnbook import ops
from burnbook.core.errors import ArgumentError
from burnbook.importers.onnx.operators.joining import concat, narrow
from burnbook.importers.onnx.operators.registry import operator
from burnbook.importers.onnx.values import (
    Value,
    aligned,
    as_array,
    as_tensor,
    mask_of,
    reshape,
)
from burnbook.tensor import Tensor, activation
from burnbook.tensor.methods import apply

Curve = Callable[[Tensor], Tensor]


def _curve(name: str, alpha: float | None, beta: float | None) -> Curve:
    """An activation by ONNX's name and its two numbers."""
    a = 0.0 if alpha is None else alpha
    b = 0.0 if beta is None else beta
    curves: dict[str, Curve] = {
        "relu": activation.relu,
        "tanh": activation.tanh,
        "sigmoid": activation.sigmoid,
        "affine": lambda x: x * (1.0 if alpha is None else a) + b,
        "leakyrelu": lambda x: activation.leaky_relu(x, 0.01 if alpha is None else a),
        "thresholdedrelu": lambda x: activation.thresholded_relu(
            x, 1.0 if alpha is None else a
        ),
        "scaledtanh": lambda x: (
            activation.tanh(x * (1.0 if beta is None else b))
            * (1.0 if alpha is None else a)
        ),
        "hardsigmoid": lambda x: activation.hard_sigmoid(
            x, 0.2 if alpha is None else a, 0.5 if beta is None else b
        ),
        "elu": lambda x: activation.elu(x, 1.0 if alpha is None else a),
        "softsign": activation.softsign,
        "softplus": lambda x: activation.softplus(x, 1.0),
    }
    if name.lower() not in curves:
        raise ArgumentError("onnx", f"no activation is called {name!r}")
    return curves[name.lower()]


def _curves(
    names: Sequence[str],
    alphas: Sequence[float],
    betas: Sequence[float],
    usual: list[str],
    directions: int,
) -> list[Curve]:
    names = list(names) or usual * directions
    alphas, betas = list(alphas), list(betas)
    found = []
    takes_alpha = {
        "affine",
        "leakyrelu",
        "thresholdedrelu",
        "scaledtanh",
        "hardsigmoid",
        "elu",
    }
    takes_beta = {"affine", "scaledtanh", "hardsigmoid"}
    for name in names:
        key = name.lower()
        a = alphas.pop(0) if alphas and key in takes_alpha else None
        b = betas.pop(0) if betas and key in takes_beta else None
        found.append(_curve(name, a, b))
    return found


def _direction(x: Tensor, d: int) -> Tensor:
    """One direction of a value whose first dim counts them."""
    shape = tuple(x.value.shape)
    return reshape(narrow(x, 0, d, 1), shape[1:])


def _transposed(x: Tensor) -> Tensor:
    return apply(ops.permute, x, axes=(1, 0))


def _dot(x: Tensor, y: Tensor) -> Tensor:
    return apply(ops.matmul, x, y)


def _plus(x: Tensor, y: Tensor) -> Tensor:
    return apply(ops.add, *aligned(x, y))


def _held(x: Tensor, clip: float | None) -> Tensor:
    return x if clip is None else apply(ops.clamp, x, min=-clip, max=clip)


def _zeros(shape: Sequence[int], like: Tensor) -> Tensor:
    return as_tensor(np.zeros(tuple(shape), np.dtype(like.value.dtype)), like.backend)


def _stepped(
    x: Tensor,
    lengths: Value,
    direction: str,
    layout: int,
    starts: list[Tensor | None],
    hidden: int,
    run: Callable[[int, Tensor, list[Tensor]], list[Tensor]],
) -> tuple[Tensor, ...]:
    """Steps of all sequences in one or both directions.

    run(d, the step's x, states) gives the new states; the first is the output. Returns
    all outputs and the last states, in ONNX's layouts.
    """
    if layout:
        x = apply(ops.permute, x, axes=(1, 0, 2))
        starts = [
            None if s is None else apply(ops.permute, s, axes=(1, 0, 2)) for s in starts
        ]
    steps, batch, _ = tuple(x.value.shape)
    ways = {"forward": [0], "reverse": [1], "bidirectional": [0, 1]}[direction]
    rows: list[Tensor] = []
    lasts: list[list[Tensor]] = [[] for _ in starts]
    ends = None if lengths is None else as_array(lengths).reshape(-1)
    for d, way in enumerate(ways):
        states = [
            _zeros((batch, hidden), x) if s is None else _direction(s, d)
            for s in starts
        ]
        outs: list[Any] = [None] * steps
        for t in reversed(range(steps)) if way else range(steps):
            one = reshape(narrow(x, 0, t, 1), tuple(x.value.shape)[1:])
            new = run(d, one, states)
            if ends is not None and (ends <= t).any():
                over = np.broadcast_to((ends <= t)[:, None], (batch, hidden))
                mask = mask_of(over, x)
                outs[t] = apply(ops.mask_fill, new[0], mask, value=0.0)
                new = [
                    apply(ops.mask_where, n, mask, s)
                    for n, s in zip(new, states, strict=True)
                ]
            else:
                outs[t] = new[0]
            states = new
        rows.append(concat(*[reshape(o, (1, 1, batch, hidden)) for o in outs], axis=0))
        for kept, state in zip(lasts, states, strict=True):
            kept.append(reshape(state, (1, batch, hidden)))
    y = concat(*rows, axis=1)
    ends_of = [concat(*kept, axis=0) for kept in lasts]
    if layout:
        y = apply(ops.permute, y, axes=(2, 0, 1, 3))
        ends_of = [apply(ops.permute, e, axes=(1, 0, 2)) for e in ends_of]
    return (y, *ends_of)


def _directions(direction: str) -> int:
    return 2 if direction == "bidirectional" else 1


@operator("RNN", many=True)
def rnn(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    sequence_lens: Value = None,
    initial_h: Tensor | None = None,
    *,
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    activations: Sequence[str] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int,
    layout: int = 0,
    outputs: int = 1,
) -> tuple[Tensor, ...]:
    """h = f(x W + h R + b) from step to step; all h, and the last."""
    count = _directions(direction)
    curves = _curves(activations, activation_alpha, activation_beta, ["Tanh"], count)

    def run(d: int, x: Tensor, states: list[Tensor]) -> list[Tensor]:
        z = _plus(
            _dot(x, _transposed(_direction(w, d))),
            _dot(states[0], _transposed(_direction(r, d))),
        )
        if b is not None:
            both = _direction(b, d)
            z = _plus(z, narrow(both, 0, 0, hidden_size))
            z = _plus(z, narrow(both, 0, hidden_size, hidden_size))
        return [curves[d](_held(z, clip))]

    return _stepped(x, sequence_lens, direction, layout, [initial_h], hidden_size, run)


@operator("GRU", many=True)
def gru(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    sequence_lens: Value = None,
    initial_h: Tensor | None = None,
    *,
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    activations: Sequence[str] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int,
    layout: int = 0,
    linear_before_reset: int = 0,
    outputs: int = 1,
) -> tuple[Tensor, ...]:
    """Gated states: update z, reset r, new n; h = (1 − z) n + z h."""
    count, n = _directions(direction), hidden_size
    is_usual = _is_usual(activations, "sigmoid tanh", count)
    if clip is None and is_usual and not layout and _are_whole(sequence_lens, x):
        after = bool(linear_before_reset)
        return _gru_at_once(x, w, r, b, initial_h, direction, after)
    usual = ["Sigmoid", "Tanh"]
    curves = _curves(activations, activation_alpha, activation_beta, usual, count)

    def run(d: int, x: Tensor, states: list[Tensor]) -> list[Tensor]:
        (h,) = states
        gate, bend = curves[2 * d], curves[2 * d + 1]
        weights, across = _direction(w, d), _direction(r, d)
        bias = _zeros((6 * n,), x) if b is None else _direction(b, d)
        given = _plus(_dot(x, _transposed(weights)), narrow(bias, 0, 0, 3 * n))
        zr = _dot(h, _transposed(narrow(across, 0, 0, 2 * n)))
        zr = _plus(_plus(zr, narrow(bias, 0, 3 * n, 2 * n)), narrow(given, 1, 0, 2 * n))
        zr = gate(_held(zr, clip))
        z, reset = narrow(zr, 1, 0, n), narrow(zr, 1, n, n)
        last, tail = _transposed(narrow(across, 0, 2 * n, n)), narrow(bias, 0, 5 * n, n)
        if linear_before_reset:
            inner = apply(ops.mul, reset, _plus(_dot(h, last), tail))
        else:
            inner = _plus(_dot(apply(ops.mul, reset, h), last), tail)
        new = bend(_held(_plus(narrow(given, 1, 2 * n, n), inner), clip))
        kept = apply(ops.mul, z, h)
        return [_plus(apply(ops.mul, 1.0 - z, new), kept)]

    return _stepped(x, sequence_lens, direction, layout, [initial_h], n, run)


@operator("LSTM", many=True)
def lstm(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    sequence_lens: Value = None,
    initial_h: Tensor | None = None,
    initial_c: Tensor | None = None,
    p: Tensor | None = None,
    *,
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    activations: Sequence[str] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int,
    input_forget: int = 0,
    layout: int = 0,
    outputs: int = 1,
) -> tuple[Tensor, ...]:
    """A state and a memory: gates i, o, f and new values c, with peepholes p."""
    count, n = _directions(direction), hidden_size
    if clip is None and p is None and not input_forget and not layout:
        is_usual = _is_usual(activations, "sigmoid tanh tanh", count)
        if is_usual and _are_whole(sequence_lens, x):
            return _lstm_at_once(x, w, r, b, initial_h, initial_c, direction)
    usual = ["Sigmoid", "Tanh", "Tanh"]
    curves = _curves(activations, activation_alpha, activation_beta, usual, count)

    def peep(d: int, k: int, z: Tensor, cell: Tensor) -> Tensor:
        if p is None:
            return z
        line = narrow(_direction(p, d), 0, k * n, n)
        return _plus(z, apply(ops.mul, *aligned(cell, line)))

    def run(d: int, x: Tensor, states: list[Tensor]) -> list[Tensor]:
        h, cell = states
        gate, bend, out_bend = curves[3 * d : 3 * d + 3]
        z = _plus(
            _dot(x, _transposed(_direction(w, d))),
            _dot(h, _transposed(_direction(r, d))),
        )
        if b is not None:
            both = _direction(b, d)
            z = _plus(
                _plus(z, narrow(both, 0, 0, 4 * n)), narrow(both, 0, 4 * n, 4 * n)
            )
        zi, zo, zf, zc = (narrow(z, 1, k * n, n) for k in range(4))
        i = gate(_held(peep(d, 0, zi, cell), clip))
        f = 1.0 - i if input_forget else gate(_held(peep(d, 2, zf, cell), clip))
        c = bend(_held(zc, clip))
        cell = _plus(apply(ops.mul, f, cell), apply(ops.mul, i, c))
        o = gate(_held(peep(d, 1, zo, cell), clip))
        return [apply(ops.mul, o, out_bend(cell)), cell]

    return _stepped(x, sequence_lens, direction, layout, [initial_h, initial_c], n, run)


def _is_usual(names: Sequence[str], usual: str, directions: int) -> bool:
    """Whether activations are those that the ops have."""
    return not names or [n.lower() for n in names] == usual.split() * directions


def _are_whole(lengths: Value, x: Tensor) -> bool:
    """Whether every sequence is as long as all of them."""
    return lengths is None or bool((as_array(lengths) == x.value.shape[0]).all())


def _lstm_at_once(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None,
    h: Tensor | None,
    c: Tensor | None,
    direction: str,
) -> tuple[Tensor, ...]:
    """All steps of an LSTM as one op."""
    rows, batch, steps, size = apply(ops.permute, x, axes=(1, 0, 2)), *_sizes(x, r)
    found: list[list[Tensor]] = []
    for d, reverse in enumerate(WAYS[direction]):
        parts = [_in_order(_direction(m, d), size, (0, 2, 1, 3)) for m in (w, r)]
        given = [rows, *map(_transposed, parts), _sum_of_biases(b, d, size, parts[0])]
        given += [
            _zeros((batch, size), x) if s is None else _direction(s, d) for s in (c, h)
        ]
        made = apply(ops.lstm, *given, reverse=reverse)
        y = reshape(narrow(made, 0, 0, batch * steps), (batch, steps, size))
        found.append([*_y_and_last(y, reverse), narrow(made, 0, batch * steps, batch)])
    return _joined(found, batch, size)


def _gru_at_once(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None,
    h: Tensor | None,
    direction: str,
    after: bool,
) -> tuple[Tensor, ...]:
    """All steps of a GRU as one op."""
    rows, batch, _, size = apply(ops.permute, x, axes=(1, 0, 2)), *_sizes(x, r)
    found: list[list[Tensor]] = []
    for d, reverse in enumerate(WAYS[direction]):
        biases = [_zeros((3 * size,), x)] * 2
        if b is not None:
            line = _direction(b, d)
            biases = [narrow(line, 0, k * 3 * size, 3 * size) for k in (0, 1)]
        given = [rows, *(_transposed(_direction(m, d)) for m in (w, r)), *biases]
        given += [_zeros((batch, size), x) if h is None else _direction(h, d)]
        y = apply(ops.gru, *given, reset_after=after, reverse=reverse)
        found.append(_y_and_last(y, reverse))
    return _joined(found, batch, size)


WAYS = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}


def _sizes(x: Tensor, r: Tensor) -> tuple[int, int, int]:
    """Of the batch, of the sequences, and of a state."""
    steps, batch, _ = tuple(x.value.shape)
    return batch, steps, r.value.shape[2]


def _in_order(rows: Tensor, size: int, order: Sequence[int]) -> Tensor:
    """The rows of the gates in another order."""
    return concat(*[narrow(rows, 0, k * size, size) for k in order], axis=0)


def _sum_of_biases(b: Tensor | None, d: int, size: int, like: Tensor) -> Tensor:
    if b is None:
        return _zeros((4 * size,), like)
    line = _direction(b, d)
    both = (narrow(line, 0, k * 4 * size, 4 * size) for k in (0, 1))
    return _in_order(apply(ops.add, *both), size, (0, 2, 1, 3))


def _y_and_last(y: Tensor, reverse: bool) -> list[Tensor]:
    """All states in ONNX's layout, and the last one.

    Shapes: y [b, s, n] -> [s, 1, b, n], [b, n]
    """
    batch, steps, size = tuple(y.value.shape)
    last = narrow(y, 1, 0 if reverse else steps - 1, 1)
    turned = apply(ops.permute, y, axes=(1, 0, 2))
    return [reshape(turned, (steps, 1, batch, size)), reshape(last, (batch, size))]


def _joined(found: list[list[Tensor]], batch: int, size: int) -> tuple[Tensor, ...]:
    """The results of the directions, beside each other."""
    rows, *lasts = zip(*found, strict=True)
    ends = [[reshape(s, (1, batch, size)) for s in states] for states in lasts]
    return (concat(*rows, axis=1), *(concat(*states, axis=0) for states in ends))
