"""If, Loop, Scan and SequenceMap: their graphs come as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from burnbook.core.errors import ArgumentError
from burnbook.importers.onnx.operators.indexing import gather, slice_
from burnbook.importers.onnx.operators.joining import concat
from burnbook.importers.onnx.operators.shapes import pad, unsqueeze
from burnbook.importers.onnx.values import Value, dtype_of, ints, number

Body = Callable[..., tuple[Value, ...]]
Row = tuple[str, Sequence[int]]  # type and shape of what a body yields in each turn
MOST_STEPS = 1_000_000  # of a loop, each of which is a run of its graph in Python


def if_(cond: Value, then_branch: Body, else_branch: Body) -> tuple[Value, ...]:
    """One of two graphs, as a truth says."""
    return then_branch() if number(cond) else else_branch()


def loop_(
    trips: Value,
    cond: Value,
    states: Sequence[Value],
    body: Body,
    *,
    scans: int,
    rows: Sequence[Row] = (),
) -> tuple[Value, ...]:
    """A graph again and again; what it yields beside its states is stacked.

    trips: how often at most, or None. cond: whether to begin, or None. rows: what the
    body declares of what is stacked, for a loop that takes no turn.

    Raises:
        ArgumentError: it goes on after MOST_STEPS steps; a file may ask for 2 ** 62.
    """
    most = None if trips is None else number(trips)
    going = True if cond is None else bool(number(cond))
    states, turns = list(states), [[] for _ in range(scans)]
    step = 0
    while going and (most is None or step < most):
        if step >= MOST_STEPS:
            what = f"the loop still goes on after {step:,} steps"
            facts = [("trips", "no limit" if most is None else f"{most:,}")]
            cure = f"{__name__}.MOST_STEPS = … if it ends at all"
            raise ArgumentError("onnx Loop", what, facts, cure)
        going, *found = body(np.int64(step), np.asarray(going), *states)
        going = bool(number(going))
        states, made = found[: len(states)], found[len(states) :]
        for turn, part in zip(turns, made, strict=True):
            turn.append(part)
        step += 1
    return (*states, *_all_stacked(turns, [0] * scans, rows))


def scan_(
    states: Sequence[Value],
    sequences: Sequence[Value],
    body: Body,
    *,
    scans: int,
    scan_input_axes: Sequence[int] = (),
    scan_input_directions: Sequence[int] = (),
    scan_output_axes: Sequence[int] = (),
    scan_output_directions: Sequence[int] = (),
    batched: int = 0,
    directions: Sequence[int] = (),
    lengths: Value = None,
    rows: Sequence[Row] = (),
) -> tuple[Value, ...]:
    """A graph for each element of some sequences, with states from one to the next.

    batched: every value has a batch in front, whose examples may be of different
    `lengths` (opset 8). rows: as in `loop_`.
    """
    if batched:
        return _batched(states, sequences, body, scans, directions, lengths)
    axes = list(scan_input_axes) or [0] * len(sequences)
    ways = list(scan_input_directions) or [0] * len(sequences)
    states, turns = list(states), [[] for _ in range(scans)]
    length = sequences[0].shape[axes[0]]
    for step in range(length):
        parts = [
            taken(x, axis, length - 1 - step if way else step)
            for x, axis, way in zip(sequences, axes, ways, strict=True)
        ]
        found = list(body(*states, *parts))
        states, made = found[: len(states)], found[len(states) :]
        for turn, part in zip(turns, made, strict=True):
            turn.append(part)
    axes = list(scan_output_axes) or [0] * scans
    ways = list(scan_output_directions) or [0] * scans
    turned = [turn[::-1] if w else turn for turn, w in zip(turns, ways, strict=True)]
    return (*states, *_all_stacked(turned, axes, rows))


def _all_stacked(
    turns: Sequence[Sequence[Value]], axes: Sequence[int], rows: Sequence[Row]
) -> list[Value]:
    """What each output yielded along a new axis; nothing, in the shape of a row."""
    declared = [*rows, *[("float32", ())] * (len(turns) - len(rows))]
    return [
        stacked(turn, axis) if turn else _none_of(row, axis)
        for turn, axis, row in zip(turns, axes, declared, strict=True)
    ]


def _none_of(row: Row, axis: int) -> Value:
    """No row, in the type and shape that one would have."""
    name, sizes = row
    shape = [*sizes]
    shape.insert(axis % (len(shape) + 1), 0)
    return np.zeros(shape, dtype_of(name))


def _batched(
    states: Sequence[Value],
    sequences: Sequence[Value],
    body: Body,
    scans: int,
    directions: Sequence[int],
    lengths: Value,
) -> tuple[Value, ...]:
    """A scan for each example of a batch, as long as its sequence is."""
    count = sequences[0].shape[0]
    long = sequences[0].shape[1]
    ends = [long] * count if lengths is None else ints(lengths)
    columns = []
    for i in range(count):
        cut = [_beginning(taken(x, 0, i), ends[i]) for x in sequences]
        found = scan_(
            [taken(s, 0, i) for s in states],
            cut,
            body,
            scans=scans,
            scan_input_directions=directions,
        )
        kept = found[: len(states)]
        rows = [_filled(x, long) for x in found[len(states) :]]
        columns.append((*kept, *rows))
    return tuple(stacked(list(column), 0) for column in zip(*columns, strict=True))


def _beginning(x: Value, length: int) -> Value:
    return slice_(x, np.array([0]), np.array([length]))


def _filled(x: Value, length: int) -> Value:
    rank = len(x.shape)
    more = np.array([0] * rank + [length - x.shape[0]] + [0] * (rank - 1))
    return pad(x, more)


def sequence_map_(inputs: Sequence[Value], body: Body) -> tuple[list[Value], ...]:
    """A graph for each element of a sequence; what is no sequence is given to all."""
    length = len(inputs[0])
    rows = [
        body(*[x[i] if isinstance(x, list) else x for x in inputs])
        for i in range(length)
    ]
    return tuple(list(column) for column in zip(*rows, strict=True))


def taken(x: Value, axis: int, place: int) -> Value:
    """One element along an axis, which goes."""
    return gather(x, np.asarray(place), axis=axis)


def stacked(parts: Sequence[Value], axis: int) -> Value:
    """Values of one shape along a new axis."""
    return concat(*[unsqueeze(part, np.array([axis])) for part in parts], axis=axis)
