"""What attention layers share: heads, masks, checks."""

import numpy as np

from burnbook.core.dtypes import Bool, numpy_dtype
from burnbook.core.errors import ShapeError, explain, warn_caller
from burnbook.tensor import Tensor
from burnbook.tensor.attention import no_bool_mask


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Split the last dim into heads.

    Shapes: x [b, s, heads · d] -> [b, heads, s, d]
    """
    batch, steps, width = x.dims()
    return x.reshape([batch, steps, heads, width // heads]).swap_dims(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """Join the heads along the last dim: the inverse of `split_heads`.

    Shapes: x [b, heads, s, d] -> [b, s, heads · d]
    """
    batch, heads, steps, size = x.dims()
    return x.swap_dims(1, 2).reshape([batch, steps, heads * size])


def repeat_heads(x: Tensor, times: int) -> Tensor:
    """Repeat each head of keys or values for the heads of queries that share it.

    Shapes: x [b, heads, s, d] -> [b, heads · times, s, d]
    """
    if times == 1:
        return x
    batch, heads, steps, size = x.dims()
    apart = x.reshape([batch, heads, 1, steps, size])
    spread = apart.expand([batch, heads, times, steps, size])
    return spread.reshape([batch, heads * times, steps, size])


def hidden_score(min_float: float, like: Tensor) -> float:
    """The score of what a mask hides: `min_float`, or far below all scores.

    Why: beside allowed scores below it, Burn's default of -10000 would be the largest,
    and what is hidden be seen. Where all is hidden, all get the same share either way.
    """
    if min_float > BURN_HIDES:
        return min_float
    return float(np.finfo(numpy_dtype(like.dtype)).min) / 2


BURN_HIDES = -1.0e4  # Burn's default, and whatever is below it


def check_sequences(
    query: Tensor, key: Tensor, value: Tensor, widths: tuple[int, int, int]
) -> None:
    """Check that the shapes of sequences fit a layer and one another.

    Raises:
        ShapeError: one is not [batch, steps, width] with its width in `widths`, batch
            sizes differ, or there are not as many values as keys.
    """
    given = {"query": query.dims(), "key": key.dims(), "value": value.dims()}
    facts = [(name, str(list(dims))) for name, dims in given.items()]
    for (name, dims), width in zip(given.items(), widths, strict=True):
        if len(dims) != 3 or dims[2] != width:
            what = f"{name} must be [batch, steps, {width}], it is {list(dims)}"
            raise ShapeError("attention", what, facts)
        if dims[0] != query.dims()[0]:
            what = f"{query.dims()[0]} ≠ {dims[0]}: {name} has another batch size"
            raise ShapeError("attention", what, facts)
    if key.dims()[1] != value.dims()[1]:
        what = f"{key.dims()[1]} ≠ {value.dims()[1]}: every key needs a value"
        raise ShapeError("attention", what, facts)


def _warn_if_all_hidden(name: str, mask: Tensor) -> None:
    """Warn if a mask hides every key of a sample: often it says what to keep.

    Why: what is hidden from all is seen by all alike, so nothing looks wrong.
    """
    value = mask.value
    while hasattr(value, "node"):
        value = value.value
    if not isinstance(value, np.ndarray) or not value.size:
        return  # of a graph that is captured, or on another device
    if value.reshape(len(value), -1).all(1).any():
        what = f"{name} hides every key of a sample: True is hidden, not kept"
        warn_caller(explain("attention", what, cure=f"{name}(mask.bool_not())"))
    elif name == "mask_attn" and value[0, 0, 0] and value[0, -1, -1]:
        _warn_if_turned(value)


AUTOREGRESSIVE = "mask_attn(generate_autoregressive_mask(batch, steps, device))"


def _warn_if_turned(value: np.ndarray) -> None:
    """Warn of triangles that hide the position itself: those of what is to be kept.

    Why: no text is read by hiding the past and the present, or the present alone from
    its first word; both look like training.
    """
    steps, others = value.shape[1:]
    if steps != others or steps < 2:
        return
    whole = np.ones((steps, others), bool)
    if (value == np.tril(whole)).all():
        what = "mask_attn hides the past and shows the future: True is hidden, not kept"
        warn_caller(explain("attention", what, cure="mask_attn(mask.bool_not())"))
    elif (value == np.triu(whole)).all():
        what = "mask_attn hides the position itself, and from the first one everything"
        warn_caller(explain("attention", what, cure=AUTOREGRESSIVE))


def join_masks(
    query: Tensor, key: Tensor, pad: Tensor | None, attn: Tensor | None
) -> Tensor | None:
    """One mask that hides what either hides, for all heads; None if there is none.

    Shapes: pad [b, t], attn [b, s, t] -> [b, 1, 1, t] or [b, 1, s, t]

    Raises:
        KindError: a mask is not Bool.
        ShapeError: a mask has another shape.
    """
    batch, steps, _ = query.dims()
    others = key.dims()[1]
    wide = None
    for name, mask, wanted in (
        ("mask_pad", pad, (batch, others)),
        ("mask_attn", attn, (batch, steps, others)),
    ):
        if mask is None:
            continue
        if mask.kind is not Bool:
            raise no_bool_mask("attention", name, mask)
        if mask.dims() != wanted:
            what = f"{name} must be {list(wanted)}, it is {list(mask.dims())}"
            facts = [("query", str(list(query.dims()))), ("key", str(list(key.dims())))]
            fits = wanted[1:] == mask.dims() and name == "mask_attn"
            cure = f"mask.expand({list(wanted)}), one for all of the batch"
            raise ShapeError("attention", what, facts, cure if fits else None)
        _warn_if_all_hidden(name, mask)
        shaped = mask.reshape([batch, 1, wanted[1] if mask is attn else 1, others])
        wide = shaped if wide is None else wide.bool_or(shaped)
    return wide
