"""Sums written out, as one would write them on paper."""

import numpy as np

from burnbook_widgets.tensor.numbers import short

MOST_TERMS = 12


def signed(value: float) -> str:
    """A number to stand after a plus or a times sign.

    Example:
        >>> signed(0.25), signed(-2.0)
        ('0.25', '(−2)')
    """
    text = short(value).replace("-", "−")
    return f"({text})" if text.startswith("−") else text


def total(window: np.ndarray, weight: np.ndarray) -> float:
    """The sum of the products, in double precision."""
    return float(np.sum(window.astype(np.float64) * weight.astype(np.float64)))


def products(window: np.ndarray, weight: np.ndarray) -> str:
    """The products of a window and its weights: all of few, of many the largest.

    Example:
        >>> products(np.array([[1.0, 2.0]]), np.array([[0.5, -1.0]]))
        '1·0.5 + 2·(−1)'
    """
    pairs = list(zip(window.ravel().tolist(), weight.ravel().tolist(), strict=True))
    shown = pairs
    if len(pairs) > MOST_TERMS:
        sizes = np.abs((window * weight).ravel())
        kept = set(np.argsort(-sizes, kind="stable")[:MOST_TERMS].tolist())
        shown = [pair for at, pair in enumerate(pairs) if at in kept and sizes[at] > 0]
    terms = [f"{_first(x)}·{signed(w)}" for x, w in shown]
    left = len(pairs) - len(shown)
    if left:
        rest = total(window, weight) - sum(x * w for x, w in shown)
        terms.append(f"{signed(round(rest, 12))} ({left} other products)")
    return " + ".join(terms)


def _first(value: float) -> str:
    return short(value).replace("-", "−")
