"""What each token attends to: the weights between tokens.

    output = layer.forward(MhaInput.self_attn(x))
    view = AttentionView(output, ["the", "cat", "sat"])
    view.head = 2
    view.query = 1
    print(view.reading)

A row of the map is a query: how much of each key is in the mixture it gets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

import anywidget
import ipywidgets
import numpy as np
import traitlets

from burnbook.core.errors import ConfigError, DimError, ShapeError
from burnbook.tensor import Tensor
from burnbook_widgets.module.attention_map import AttentionWeights, heat_map, percent
from burnbook_widgets.page import script, sheet
from burnbook_widgets.view import View, row, table

MOST = 128  # tokens of a sequence
THUMBS = 7_000  # cells of the small pictures of all heads
TOP = 8  # keys that a reading names
MEAN = -1  # a list of choices takes None for no choice at all


class AttentionPanel(anywidget.AnyWidget):
    """The page of attention weights: a map with tokens, the row that is read, heads."""

    _esm = script("attention")
    _css = sheet("attention")

    frame = traitlets.Dict().tag(sync=True)
    data = traitlets.Bytes().tag(sync=True)  # uint16 shares, then a bit where hidden
    thumbs = traitlets.Bytes().tag(sync=True)  # uint8: their mean, then every head
    at = traitlets.List(traitlets.Int()).tag(sync=True)
    fault = traitlets.Unicode().tag(sync=True)

    def __repr__(self) -> str:
        return f"AttentionPanel({self.frame.get('head', '')})"


class AttentionView(View):
    """The weights of attention between tokens, head by head and row by row.

    weights: what MultiHeadAttention gives, or a tensor or array [s, t], [heads, s, t]
    or [batch, heads, s, t]. tokens: what asks, and keys what is asked, if not the same;
    one list, or one for each item of the batch. pad [t] or [batch, t] and attn [s, t]
    or [batch, s, t]: the masks of MhaInput, True where hidden. Every control has a
    twin: `head` (None: the mean of all), `item`, `query`, `key`.

    Example:
        >>> view = AttentionView([[0.75, 0.25], [0.1, 0.9]], ["good", "book"])
        >>> view
        AttentionView(2 queries, 2 keys; 1 head)
        >>> view.query = 1
        >>> print(view.reading)
        “book” attends to “book” 90.0 %, “good” 10.0 %
    """

    def __init__(
        self,
        weights: Any,
        tokens: Sequence[Any] | None = None,
        keys: Sequence[Any] | None = None,
        pad: Any = None,
        attn: Any = None,
    ):
        super().__init__()
        self.weights = _weights(weights)
        batch, heads, queries, count = self.weights.shape
        self.tokens = _names("tokens", tokens, batch, queries)
        if keys is None and tokens is not None and queries == count:
            keys = tokens
        self.keys = _names("keys", keys, batch, count)
        self.hidden = np.zeros((batch, queries, count), bool)
        if pad is not None:
            self.hidden |= _mask("pad", pad, (batch, count))[:, None]
        if attn is not None:
            self.hidden |= _mask("attn", attn, (batch, queries, count))
        self._item = self._query = 0
        self._key: int | None = None
        self._head = None if heads > 1 else 0
        self.open()

    # ── what one can set ────────────────────────────────────────────────────

    @property
    def head(self) -> int | None:
        """Which head is shown; None for the mean of all."""
        return self._head

    @head.setter
    def head(self, head: int | None) -> None:
        count = self.weights.shape[1]
        self._head = None if head is None else _place("head", head, count)
        self._show()

    @property
    def item(self) -> int:
        """Which item of the batch is shown."""
        return self._item

    @item.setter
    def item(self, item: int) -> None:
        self._item = _place("item", item, self.weights.shape[0])
        self._show()

    @property
    def query(self) -> int:
        """The row that is read: the token that asks."""
        return self._query

    @query.setter
    def query(self, query: int) -> None:
        self._query = _place("query", query, self.weights.shape[2])
        self._mirror()

    @property
    def key(self) -> int | None:
        """The cell of the row that is read: the token that is asked; None for all."""
        return self._key

    @key.setter
    def key(self, key: int | None) -> None:
        count = self.weights.shape[3]
        self._key = None if key is None else _place("key", key, count)
        self._mirror()

    # ── what is to be read ──────────────────────────────────────────────────

    @property
    def shares(self) -> np.ndarray:
        """The weights that are shown, [queries, keys]."""
        item = self.weights[self._item]
        return item.mean(0) if self._head is None else item[self._head]

    @property
    def reading(self) -> str:
        """What the query attends to, most first; or how much of the one key."""
        who = quoted(self.tokens[self._item])[self._query]
        names, line = quoted(self.keys[self._item]), self.shares[self._query]
        hidden = self.hidden[self._item, self._query]
        if self._key is not None:
            told = "hidden, " if hidden[self._key] else ""
            return (
                f"{who} attends to {names[self._key]}: {told}{percent(line[self._key])}"
            )
        found = np.argsort(-line, kind="stable")[:TOP]
        shown = [f"{names[k]} {percent(line[k])}" for k in found if not hidden[k]]
        rest = line.size - len(shown) - int(hidden.sum())
        more = [f"{rest} more"] if rest > 0 else []
        return f"{who} attends to {', '.join(shown + more)}"

    def _title(self) -> str:
        queries, keys = self.shares.shape
        heads = self.weights.shape[1]
        which = f"head {self._head} of 0 … {heads - 1}"
        if self._head is None:
            which = f"mean of {heads} heads"
        return (
            f"Attention: {_count(queries, 'query', 'queries')}, "
            f"{_count(keys, 'key', 'keys')}, {which}"
        )

    # ── live ────────────────────────────────────────────────────────────────

    def _build(self) -> ipywidgets.VBox:
        self.panel = AttentionPanel()
        self.panel.observe(self.act(self._walked), "at")
        self.panel.on_msg(self.act(self._told))
        self._mirroring = False
        batch, heads = self.weights.shape[:2]
        names = [(f"head {i}", i) for i in range(heads)]
        if heads > 1:
            names.insert(0, ("mean of all", MEAN))
        self.head_control = ipywidgets.Dropdown(
            options=names,
            description="Head",
            tooltip="Which head is shown",
            style={"description_width": "auto"},
            layout={"width": "170px"},
        )
        self.query_control = ipywidgets.IntSlider(
            max=self.weights.shape[2] - 1,
            description="Query",
            tooltip="The query: the token whose row is read",
            style={"description_width": "auto"},
            layout={"width": "280px"},
        )
        self.item_control = ipywidgets.IntSlider(
            max=batch - 1,
            description="Item",
            tooltip="Which item of the batch",
            style={"description_width": "auto"},
            layout={"width": "220px", "display": None if batch > 1 else "none"},
        )
        self.head_control.observe(self._heard("head"), "value")
        self.query_control.observe(self._heard("query"), "value")
        self.item_control.observe(self._heard("item"), "value")
        controls = row(self.head_control, self.query_control, self.item_control)
        return ipywidgets.VBox([controls, self.panel])

    def _heard(self, name: str) -> Any:
        """A callback that sets the twin of a control."""

        def hear(change: Any) -> None:
            if not self._mirroring:
                value = change["new"]
                setattr(self, name, None if name == "head" and value < 0 else value)

        return self.act(hear)

    def _walked(self, change: Any) -> None:
        """A key or the pointer went to another cell."""
        if not self._mirroring:
            query, *key = change["new"]
            self._key = _place("key", key[0], self.shares.shape[1]) if key else None
            self.query = query

    def _told(self, _: Any, message: Any, __: Any) -> None:
        """A small picture of a head was clicked."""
        head = message.get("head")
        self.head = None if head == MEAN else head

    def _mirror(self) -> None:
        """Put the controls where the view stands, without taking it for a click."""
        if self.panel is None:
            return
        self._mirroring = True
        try:
            self.head_control.value = MEAN if self._head is None else self._head
            self.query_control.value = self._query
            self.item_control.value = self._item
            key = [] if self._key is None else [self._key]
            self.panel.at = [self._query, *key]
        finally:
            self._mirroring = False

    def _show(self) -> None:
        if self.panel is None:
            return
        shares, hidden = self.shares, self.hidden[self._item]
        every = self.weights[self._item]
        shown = thumbnails(every)
        codes = np.rint(shares.clip(0, 1) * 65535).astype("<u2")
        with self.panel.hold_sync():
            self.panel.data = codes.tobytes() + np.packbits(hidden).tobytes()
            self.panel.thumbs = shown.tobytes()
            self.panel.frame = {
                "title": self._title(),
                "tokens": self.tokens[self._item],
                "keys": self.keys[self._item],
                "heads": len(every),
                "thumb": list(shown.shape[1:]),
                "head": MEAN if self._head is None else self._head,
                "most": percent(float(shares.max())),
                "hidden": int(hidden.sum()),
            }
            self._mirror()

    # ── still ───────────────────────────────────────────────────────────────

    def still(self) -> str:
        """The map, and the row that is read, as HTML and SVG without JavaScript."""
        tokens, keys = self.tokens[self._item], self.keys[self._item]
        shown = AttentionWeights(self.shares, self.hidden[self._item], tokens, keys)
        names = quoted(keys)
        line, hidden = self.shares[self._query], self.hidden[self._item, self._query]
        rows = [
            [escape(names[k]), "hidden" if hidden[k] else percent(line[k])]
            for k in np.argsort(-line, kind="stable")[:TOP]
        ]
        who = escape(quoted(tokens)[self._query])
        note = (
            " · crossed out: hidden by a mask"
            if hidden.any() or self.hidden.any()
            else ""
        )
        return (
            f"<div><b>{escape(self._title())}</b></div>\n"
            '<div style="display:flex;flex-wrap:wrap;gap:8px 28px">'
            f"<div>{heat_map(shown, self._query, self._title())}"
            f"<div><small>deepest: {percent(float(self.shares.max()))}{note}</small>"
            f"</div></div>\n"
            f"<div>{table(['key', 'share'], rows, f'{who} attends to')}</div></div>"
        )

    def __repr__(self) -> str:
        batch, heads, queries, keys = self.weights.shape
        parts = [_count(queries, "query", "queries"), _count(keys, "key", "keys")]
        items = [_count(batch, "item", "items")] if batch > 1 else []
        told = ", ".join([*parts, *items])
        return f"AttentionView({told}; {_count(heads, 'head', 'heads')})"


def quoted(names: Sequence[str]) -> list[str]:
    """Words as they are told in a sentence: one that comes again has its place.

    Example:
        >>> quoted(["the", "cat", "the"])
        ['“the” (0)', '“cat”', '“the” (2)']
    """
    count = Counter(names)
    return [
        f"“{name}” ({place})" if count[name] > 1 else f"“{name}”"
        for place, name in enumerate(names)
    ]


def thumbnails(every: np.ndarray) -> np.ndarray:
    """Small pictures of all heads, their mean first; a dot is the most of its block.

    Shapes: every [heads, s, t] -> [heads + 1, rows, columns], bytes; none of one head
    Example:
        >>> thumbnails(np.ones((12, 120, 120), np.float32)).shape
        (13, 20, 20)
    """
    heads, rows, columns = every.shape
    if heads < 2:
        return np.zeros((0, rows, columns), np.uint8)
    shown = np.concatenate([every.mean(0, keepdims=True), every])
    step = 1
    while shown[:, ::step, ::step].size > THUMBS:
        step += 1
    for axis in (1, 2):
        starts = np.arange(0, shown.shape[axis], step)
        shown = np.maximum.reduceat(shown, starts, axis=axis)
    most = np.maximum(shown.max(axis=(1, 2), keepdims=True), 1e-9)
    return np.rint(shown / most * 255).astype(np.uint8)


def _weights(weights: Any) -> np.ndarray:
    """Weights as [batch, heads, queries, keys]."""
    found = getattr(weights, "weights", weights)
    if isinstance(found, Tensor):
        found = found.to_data().to_numpy()
    array = np.asarray(found, dtype=np.float32)
    shape = list(array.shape)
    if array.ndim in (2, 3):
        array = array.reshape((1,) * (4 - array.ndim) + array.shape)
    if array.ndim != 4 or not array.size:
        cure = "[s, t], [heads, s, t] or [batch, heads, s, t]"
        raise ShapeError("AttentionView", f"{shape} are not weights", cure=cure)
    if max(array.shape[2:]) > MOST:
        cure = f"a part, as weights[..., :{MOST}, :{MOST}]"
        what = f"{max(array.shape[2:])} tokens are more than {MOST}"
        raise ShapeError("AttentionView", what, cure=cure)
    if not (array.min() >= 0 and array.max() <= 1.001):
        what = "weights lie between 0 and 1, these do not"
        cure = "softmax(scores, 3)"
        raise ConfigError("AttentionView", what, cure=cure)
    return array


def _names(
    which: str, names: Sequence[Any] | None, batch: int, count: int
) -> list[list[str]]:
    """What each token of each item is called; without names, its place."""
    if names is None:
        names = range(count)
    lists: list[Any] = [names] * batch
    if len(names) == batch and not isinstance(names[0], str | int):
        lists = list(names)
    found = [[str(name) for name in line] for line in lists]
    for line in found:
        if len(line) != count:
            what = f"{len(line)} {which} for {count}"
            raise ShapeError("AttentionView", what, cure="a name for each")
    return found


def _mask(name: str, mask: Any, shape: tuple[int, ...]) -> np.ndarray:
    """A mask for every item; one without a batch is for all."""
    if isinstance(mask, Tensor):
        mask = mask.to_data().to_numpy()
    found = np.asarray(mask, bool)
    if found.shape not in (shape, shape[1:]):
        what = f"{name} is {list(found.shape)}"
        cure = f"{list(shape[1:])} or {list(shape)}, True where hidden"
        raise ShapeError("AttentionView", what, cure=cure)
    return np.broadcast_to(found, shape)


def _place(name: str, place: int, count: int) -> int:
    if not -count <= place < count:
        what = f"there is no {name} {place}: there are {count}"
        raise DimError("AttentionView", what, cure=f"0 … {count - 1}")
    return int(place) % count


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
