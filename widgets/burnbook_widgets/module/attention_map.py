"""A heat map of attention weights between tokens, as a still picture."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from burnbook_widgets.drawing import LIGHT
from burnbook_widgets.tensor.still import LEVELS, drawn, runs, strength, stroke, words

MOST = 48  # tokens of a still picture
LETTER = 6.2  # the usual width of one, in pixels


@dataclass(frozen=True)
class AttentionWeights:
    """How much each query attends to each key: values and hidden [queries, keys]."""

    values: np.ndarray
    hidden: np.ndarray
    queries: Sequence[str]
    keys: Sequence[str]


def percent(share: float) -> str:
    """A share as text.

    Example:
        >>> percent(0.625), percent(0.00001)
        ('62.5 %', '0.0 %')
    """
    return f"{100 * float(share):.1f} %"


def heat_map(weights: AttentionWeights, chosen: int, title: str) -> str:
    """The map as SVG: deeper for more, crosses where hidden, one row framed."""
    values = weights.values[:MOST, :MOST]
    hidden = weights.hidden[:MOST, :MOST]
    rows, columns = values.shape
    side = round(min(28.0, 420 / max(rows, columns)), 2)
    levels = np.rint(values / max(float(values.max()), 1e-9) * LEVELS).astype(int)
    body = [
        f'<path class="train-fill" fill="{LIGHT["train"]}" '
        f'opacity="{strength(level):g}" d="{runs(levels == level, side, side)}"/>'
        for level in range(1, LEVELS + 1)
        if (levels == level).any()
    ]
    arm = round(side * 0.22, 2)
    crosses = "".join(
        f"M{(c + 0.5) * side - arm:.5g} {(r + 0.5) * side - arm:.5g}l{2 * arm:g} "
        f"{2 * arm:g}m0 -{2 * arm:g}l-{2 * arm:g} {2 * arm:g}"
        for r, c in np.argwhere(hidden).tolist()
    )
    wide, high = columns * side, rows * side
    body.append(
        f'<rect class="quiet-line" stroke="{LIGHT["quiet"]}" fill="none" '
        f'width="{wide:g}" height="{high:g}"/>'
    )
    if crosses:
        body.append(stroke(crosses, 1))
    if chosen < rows:
        body.append(stroke(f"M0 {chosen * side:.5g}h{wide:g}v{side:g}h-{wide:g}z", 2))
    every = max(1, int(np.ceil(12 / side)))
    left = top = 10.0
    for at, name in list(enumerate(weights.queries[:rows]))[::every]:
        short = _cut(name)
        body.append(words(-6, (at + 0.5) * side + 4, short, "end"))
        left = max(left, 12 + LETTER * len(short))
    for at, name in list(enumerate(weights.keys[:columns]))[::every]:
        short = _cut(name)
        x = (at + 0.5) * side + 4
        turned = words(0, 0, short)
        body.append(f'<g transform="translate({x:g},-5) rotate(-60)">{turned}</g>')
        top = max(top, 14 + 0.87 * LETTER * len(short))
    last = list(weights.keys)[columns - 1]
    slant = 0.5 * LETTER * len(_cut(last))
    size = (left + wide + max(6, slant), top + high + 4)
    return drawn(title, *size, (left, top), body)


def _cut(name: str) -> str:
    return name if len(name) <= 14 else f"{name[:13]}…"
