"""The dataset browser: pages of items, and what went wrong.

Before a training it shows what there is: items, how many of each class, what a
transform does, what a batch looks like. After it: what was taken for what, the worst
mistakes, and the item behind each.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets
import numpy as np

from burnbook.core.errors import ConfigError
from burnbook.data import as_dataset
from burnbook_widgets.dataset.cards import (
    LARGE,
    PAGE,
    PAGES,
    batch_cards,
    card,
    facts,
    see,
)
from burnbook_widgets.dataset.columns import Columns
from burnbook_widgets.dataset.controls import Controls, ItemView
from burnbook_widgets.dataset.items import label_name, parts_of
from burnbook_widgets.dataset.labels import STEP, Labels, items_at
from burnbook_widgets.dataset.pixels import Pack, loud, sound_uri
from burnbook_widgets.dataset.scores import Scores
from burnbook_widgets.dataset.still import still_page
from burnbook_widgets.view import View

PATIENCE = 2.0  # seconds that reading labels or searching may take at a time
MATRIX = 20  # with more classes, a list of what was confused most replaces the matrix
WHERE = "DatasetBrowser"


class DatasetBrowser(View):
    """Look through a dataset; every control has a method or attribute of its name.

    label: the name of the part that is the label, a function of an item, or all labels
    classes: their names, in the order of label numbers or of scores
    before: the same items before their transforms, shown beside them
    batcher: adds a view of the batch that it makes of the items of a page
    predictions: scores [n, classes] or predicted labels [n]; adds mistakes, confusion

    Example:
        browser = DatasetBrowser(DigitsDataset.test(), predictions=scores)
        browser.filter(label=3); browser.page = 2; browser.select(17)
        browser.view = "confusion"
    """

    def __init__(
        self,
        dataset: Any,
        label: Any = None,
        classes: Sequence[Any] | None = None,
        *,
        before: Any = None,
        batcher: Any = None,
        predictions: Any = None,
        page_size: int | None = None,
    ) -> None:
        super().__init__()
        self.dataset = as_dataset(dataset)
        self.before = None if before is None else as_dataset(before)
        self.batcher = batcher
        self._check_before()
        self.labels = Labels(self.dataset, label, classes)
        fixed = _is_static() or predictions is not None
        self.labels.read(None if fixed else PATIENCE)
        self.scores = None if predictions is None else Scores(predictions, self.labels)
        first = items_at(self.dataset, [0])[0] if len(self.dataset) else None
        self.kind = "row" if first is None else see(first).kind
        named = first is not None and not isinstance(first, Exception)
        own = label_name(parts_of(first)) if named and label is None else None
        self._part: str = label if isinstance(label, str) else own or ""
        self.page_size = page_size or self._usual_size()
        self.views = ["items"]
        if self.scores is not None:
            self.views += ["mistakes", "confusion"]
        if batcher is not None:
            self.views.append("batch")
        self.fault = self.said = ""
        self.selected: int | None = None
        self._view, self._page = "items", 1
        self._label: int | None = None
        self._predicted: int | None = None
        self._words, self._matching = "", None
        self._searched = 0
        self.widget: ItemView | None = None
        self._controls: Controls | None = None
        self.columns = Columns(self.dataset)
        self._sorted: tuple[str, bool] | None = None
        if self.kind == "row":
            self.columns.read(None if _is_static() else PATIENCE)
        self._list()
        self.open()

    def _check_before(self) -> None:
        if self.before is not None and len(self.before) != len(self.dataset):
            raise ConfigError(
                WHERE,
                f"{len(self.before):,} items before, {len(self.dataset):,} after",
                cure="before=, the dataset that the transforms were applied to",
            )

    def _usual_size(self) -> int:
        size = PAGES[self.kind]
        return size // 2 if self.before is not None else size

    # ── what is shown ───────────────────────────────────────────────────────

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return max(1, -(-len(self.found) // self.page_size))

    @property
    def page(self) -> int:
        """The page that is shown, from 1; set it to turn to another."""
        return self._page

    @page.setter
    def page(self, number: int) -> None:
        if not 1 <= number <= self.pages:
            what = f"no page {number}"
            raise ConfigError(WHERE, what, [("pages", f"1 … {self.pages}")])
        self._page = int(number)
        self.said = f"Page {number} of {self.pages}."
        self._refresh()

    @property
    def view(self) -> str:
        """What is shown: items, mistakes, confusion or batch; set it to change."""
        return self._view

    @view.setter
    def view(self, name: str) -> None:
        if name not in self.views:
            facts = [("views", ", ".join(self.views))]
            cure = {
                "batch": "batcher=, what makes a batch of items",
                "mistakes": "predictions=, the scores of a model",
                "confusion": "predictions=, the scores of a model",
            }.get(name)
            raise ConfigError(WHERE, f"no view {name!r}", facts, cure)
        self._view = name
        self.said = f"{name.capitalize()}."
        self._list()
        self._refresh()

    @property
    def shown(self) -> list[int]:
        """The items of this page, by their place in the dataset."""
        start = (self._page - 1) * self.page_size
        return self.found[start : start + self.page_size]

    @property
    def counts(self) -> dict[str, int]:
        """How many items each class has, among those read so far."""
        return dict(zip(self.labels.names, self.labels.counts(), strict=True))

    @property
    def confusion(self) -> np.ndarray | None:
        """How often each class (row) was taken for each (column)."""
        return None if self.scores is None else self.scores.confusion()

    @property
    def mistakes(self) -> list[int]:
        """The items whose class was not found, the worst first."""
        return [] if self.scores is None else self.scores.mistakes()

    def filter(self, label: Any = None, predicted: Any = None) -> None:
        """Show only items of a class, or predicted as one; without, all of them."""
        if predicted is not None and self.scores is None:
            cure = "predictions=, the scores of a model"
            raise ConfigError(WHERE, "nothing was predicted", cure=cure)
        code = None if label is None else self.labels.code_of(label)
        guess = None if predicted is None else self.labels.code_of(predicted)
        self._narrow(code, guess)

    def _narrow(self, code: int | None, guess: int | None = None) -> None:
        self._label, self._predicted = code, guess
        if self._view in ("confusion", "batch"):
            self._view = "items"
        self._list()
        self.said = f"{_count(len(self.found), 'item')}."
        self._refresh()

    def search(self, words: str) -> None:
        """Show only items whose texts, fields or class names hold all these words.

        #17 is item 17, and a text in which #17 stands as a word.
        """
        self._words = words.strip()
        if self._view in ("confusion", "batch"):
            self._view = "items"
        self._matching = self._search() if self._words else None
        self._list()
        self.said = f"{_count(len(self.found), 'item')}."
        self._refresh()

    @property
    def sorted_by(self) -> tuple[str, bool] | None:
        """The column that items are sorted by, and whether from high to low."""
        return self._sorted

    def sort(self, by: str | None = None, descending: bool = False) -> None:
        """Show items by a column (a part of the items); without, in their own order."""
        if by is not None:
            self.columns.read(None if _is_static() else PATIENCE)
            if by not in self.columns.values:
                facts = [("columns", ", ".join(self.columns.values) or "none")]
                raise ConfigError(WHERE, f"there is no column {by!r}", facts)
        self._sorted = None if by is None else (by, bool(descending))
        if self._view in ("confusion", "batch"):
            self._view = "items"
        self._list()
        way = "from high to low" if descending else "from low to high"
        self.said = f"Sorted by {by}, {way}." if by else "In their own order."
        self._refresh()

    @property
    def statistics(self) -> dict[str, dict[str, str]]:
        """Of each column of a table its extremes and mean, or its different values."""
        return self.columns.statistics(self._part) if self.kind == "row" else {}

    def clear(self) -> None:
        """Show everything again: no filter, no search, in their own order."""
        self._words, self._matching, self._sorted = "", None, None
        self._narrow(None)

    def select(self, index: int | None) -> None:
        """Look at one item closely, or at none; turns to its page if it has one."""
        if index is not None and not 0 <= index < len(self.dataset):
            facts = [("items", f"0 … {len(self.dataset) - 1:,}")]
            raise ConfigError(WHERE, f"no item {index}", facts)
        self.selected = index
        if index is not None and index in self.found:
            self._page = self.found.index(index) // self.page_size + 1
        self.said = "" if index is None else f"Item {index}."
        self._refresh()

    def play(self, index: int | None = None) -> None:
        """Let the page play a sound, ten seconds of it at most; it becomes selected."""
        if index is not None and index != self.selected:
            self.select(index)
        item = None if self.selected is None else self.dataset.get(self.selected)
        seen = None if item is None else see(item)
        if seen is None or seen.array is None or not seen.rate:
            cure = "select an item with samples and their rate"
            raise ConfigError(WHERE, "no sound is selected", cure=cure)
        if self.widget is not None:
            data = loud(seen.array[: 10 * seen.rate])
            self.widget.send({"play": self.selected, "rate": seen.rate}, [data])

    def read_all(self) -> None:
        """Read the labels of all items, however long it takes."""
        self.labels.read()
        self._list()
        self.said = f"Labels of {self.labels.read_count:,} items read."
        self._refresh()

    # ── finding items ───────────────────────────────────────────────────────

    def _list(self) -> None:
        """Find the items to page through."""
        found: Sequence[int] = range(len(self.dataset))
        if self._view == "mistakes":
            found = self.mistakes
        elif self._matching is not None:
            found = self._matching
        if self._view == "mistakes" and self._matching is not None:
            wanted = set(self._matching)
            found = [index for index in found if index in wanted]
        if self._label is not None:
            codes, known = self.labels.codes, self.labels.read_count
            found = [i for i in found if i < known and self._label in codes[i]]
        if self._predicted is not None and self.scores is not None:
            guesses = self.scores.predicted
            found = [i for i in found if guesses[i] == self._predicted]
        if self._sorted is not None and self._view != "mistakes":
            wanted = set(found)
            found = [i for i in self.columns.order(*self._sorted) if i in wanted]
        self.found = list(found)
        self._page = 1

    def _search(self) -> list[int]:
        """The items that hold all the words, as far as there is time to look."""
        ends = None if _is_static() else time.monotonic() + PATIENCE
        words = self._words.casefold().split()
        found: list[int] = []
        self._searched = 0
        total = len(self.dataset)
        while self._searched < total:
            some = range(self._searched, min(self._searched + STEP, total))
            for index, item in zip(some, items_at(self.dataset, some), strict=True):
                names = " ".join(self.labels.names_of(index)).casefold()
                text = f"{see(item).words} {names} #{index}"
                if all(_holds(text, word) for word in words):
                    found.append(index)
            self._searched = some.stop
            if ends is not None and time.monotonic() >= ends:
                break
        return found

    # ── what the page is told ───────────────────────────────────────────────

    def attempt(self, action: Callable[..., None], *arguments: Any) -> None:
        """Do what a click asks for; what goes wrong is said in the view."""
        self.fault = ""
        try:
            action(*arguments)
        except Exception as error:
            self.fault = f"{type(error).__name__}: {error}".partition("\n")[0]
            if self.widget is not None:
                self.widget.status = self._status()

    def heard(self, message: dict[str, Any]) -> None:
        """A click or key inside the view."""
        match message:
            case {"do": "select", "item": int(index)}:
                self.select(index)
            case {"do": "unselect"}:
                self.select(None)
            case {"do": "class", "code": int(code)}:
                self._narrow(None if code == self._label else code)
            case {"do": "cell", "truth": int(truth), "predicted": int(guess)}:
                self._narrow(truth, guess)
            case {"do": "play"}:
                self.play(message.get("item"))
            case {"do": "sort", "by": str(by)}:
                self._turn_order(by)
            case {"do": "turn", "by": int(by)}:
                self.page = min(max(1, self.page + by), self.pages)
            case _:
                raise ConfigError(WHERE, "the page says what nobody knows")

    def _turn_order(self, by: str) -> None:
        """A head was pressed: from low to high, from high to low, as they were."""
        if self._sorted == (by, True):
            self.sort()
        else:
            self.sort(by, descending=self._sorted == (by, False))

    def _refresh(self) -> None:
        if self.widget is None or self._controls is None:
            return
        told = self._told()
        told["detail"].pop("sound", None)  # the page asks for it when it plays
        with self.widget.hold_sync():
            for name, value in told.items():
                setattr(self.widget, name, value)
        self._controls.follow()

    def _told(self) -> dict[str, Any]:
        """Everything that the view and the still picture show."""
        pack, large = Pack(), Pack()
        page: dict[str, Any] = {"view": self._view, "kind": self.kind, "items": []}
        if self._view == "batch":
            items = items_at(self.dataset, self.shown)
            page["parts"] = batch_cards(self.batcher, items, pack) if items else []
            page["count"] = len(items)
        elif self._view != "confusion":
            share = PAGE // max(1, self.page_size * (1 + (self.before is not None)))
            page["items"] = self._cards(self.shown, pack, share, 320)
            page["empty"] = "" if page["items"] else self._why_empty()
            if self.kind == "row":
                page["statistics"] = self.statistics
                page["sorted"] = list(self._sorted or ())
                page["label"] = self._label_column()
        return {
            "page": page,
            "data": bytes(pack.data),
            "balance": self._balance(),
            "grid": self._grid() if self._view == "confusion" else {},
            "detail": self._detail(large),
            "large": bytes(large.data),
            "status": self._status(),
        }

    def _why_empty(self) -> str:
        if not len(self.dataset):
            return "The dataset is empty: it has no items."
        return "No item matches. “Show all” clears class and search."

    def _label_column(self) -> str:
        """The part of an item that is its label; empty where there is none."""
        return self._part if self._part in self.columns.values else ""

    def _cards(
        self, indices: Sequence[int], pack: Pack, budget: int, most: int
    ) -> list[dict[str, Any]]:
        made = []
        items = items_at(self.dataset, indices)
        older = items_at(self.before, indices) if self.before is not None else []
        for place, (index, item) in enumerate(zip(indices, items, strict=True)):
            seen = see(item)
            one = card(index, seen, pack, budget, most)
            if most > 1000:
                one["facts"] = facts(seen)
                if one.get("sounds") and seen.array is not None:
                    one["sound"] = sound_uri(seen.array, seen.rate)
            one["label"] = ", ".join(self._names(index, item))
            if older:
                one["before"] = card(index, see(older[place]), pack, budget, most)
            if self.scores is not None:
                one["guess"] = self.scores.names[self.scores.predicted[index]]
                one["wrong"] = self.scores.is_wrong(index)
            made.append(one)
        return made

    def _names(self, index: int, item: Any) -> list[str]:
        if index < self.labels.read_count or isinstance(item, Exception):
            return self.labels.names_of(index)
        return self.labels.of_item(item)

    def _detail(self, pack: Pack) -> dict[str, Any]:
        if self.selected is None:
            return {}
        budget = LARGE // (1 + (self.before is not None))
        detail = self._cards([self.selected], pack, budget, 4000)[0]
        if self.scores is not None:
            detail["top"] = self.scores.top(self.selected)
        return detail

    def _balance(self) -> list[list[Any]]:
        whole = self.labels.counts()
        narrowed = self._matching is not None or self._predicted is not None
        narrowed = narrowed or self._view == "mistakes"
        shown = self.labels.counts(self.found) if narrowed else whole
        names = self.labels.names
        return [[n, a, b] for n, a, b in zip(names, shown, whole, strict=True)]

    def _grid(self) -> dict[str, Any]:
        assert self.scores is not None
        counts = self.scores.confusion()
        names = self.scores.names
        if len(names) <= MATRIX:
            return {"names": names, "counts": counts.tolist()}
        wrong = counts.copy()
        np.fill_diagonal(wrong, 0)
        order = np.argsort(-wrong, axis=None, kind="stable")[:MATRIX]
        pairs = [divmod(int(place), len(names)) for place in order]
        worst = [[a, b, int(wrong[a, b])] for a, b in pairs if wrong[a, b]]
        return {"names": names, "worst": worst}

    def _status(self) -> dict[str, Any]:
        total = len(self.dataset)
        found = len(self.found)
        many = _count(total, "item")
        headline = many if found == total else f"{found:,} of {many}"
        if self._view == "mistakes":
            headline = f"{_count(found, 'mistake')}, the worst first"
        notes = []
        if self._label is not None:
            notes.append(f"class {self.labels.names[self._label]}")
        if self._predicted is not None:
            notes.append(f"predicted {self.labels.names[self._predicted]}")
        if self._words:
            notes.append(f"“{self._words}”")
            if self._searched < total:
                notes.append(f"searched the first {self._searched:,}")
        if self._sorted is not None and self._view != "mistakes":
            way = "high to low" if self._sorted[1] else "low to high"
            notes.append(f"by {self._sorted[0]}, {way}")
        if self.kind == "row" and not self.columns.complete:
            notes.append(f"columns of the first {self.columns.read_count:,} read")
        if self.scores is not None:
            notes.append(f"accuracy {100 * self.scores.accuracy():.2f} %")
        if not self.labels.complete:
            notes.append(f"labels of the first {self.labels.read_count:,} read")
        return {
            "headline": headline,
            "notes": notes,
            "code": -1 if self._label is None else self._label,
            "selected": -1 if self.selected is None else self.selected,
            "page": [1, 1] if self._view == "confusion" else [self._page, self.pages],
            "said": self.said,
            "fault": self.fault,
        }

    # ── what stays ──────────────────────────────────────────────────────────

    def still(self) -> str:
        """What is shown now, as HTML without JavaScript."""
        return still_page(self._told())

    def _build(self) -> ipywidgets.VBox:
        self.widget = ItemView()
        self._controls = Controls(self)
        return self._controls.box

    def _show(self) -> None:
        self._refresh()

    def close(self) -> None:
        """Free the widgets; what the page shows by then stays."""
        controls = self._controls
        super().close()
        if controls is not None:
            controls.close()
        self.widget = self._controls = None

    def __repr__(self) -> str:
        count = len(self.dataset)
        classes = len(self.labels.names)
        facts = [_count(count, "item")]
        if classes:
            facts[0] += f" of {classes:,} class{'es' * (classes != 1)}"
        facts.append(f"{self._view}, page {self._page:,} of {self.pages:,}")
        if self.scores is not None:
            facts.append(_count(len(self.mistakes), "mistake"))
        return f"DatasetBrowser({'; '.join(facts)})"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _is_static() -> bool:
    return os.environ.get("BURNBOOK_DISPLAY") == "static"


def _holds(text: str, word: str) -> bool:
    """Whether a word of a search occurs; a number such as #17 only as a whole."""
    return word in (text.split() if word.startswith("#") else text)
