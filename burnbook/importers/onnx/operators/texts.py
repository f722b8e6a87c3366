"""Texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from burnbook.importers.onnx.operators.registry import host_operator
from burnbook.importers.onnx.values import Value


@host_operator("StringConcat")
def string_concat(x: Value, y: Value) -> Any:
    """Texts put together; shapes broadcast."""
    return np.asarray(np.add(x, y), object)


@host_operator("StringSplit", many=True)
def string_split(
    x: Value, *, delimiter: str = "", maxsplit: int | None = None, outputs: int = 1
) -> tuple[Any, ...]:
    """The parts of each text, filled up with empty ones; and how many there are."""
    most = -1 if maxsplit is None else maxsplit
    parts = [text.split(delimiter or None, most) for text in x.reshape(-1)]
    width = max((len(p) for p in parts), default=0)
    found = np.full((x.size, width), "", object)
    for row, part in zip(found, parts, strict=True):
        row[: len(part)] = part
    counts = np.array([len(p) for p in parts], np.int64)
    return found.reshape(*x.shape, width), counts.reshape(x.shape)


@host_operator("StringNormalizer")
def string_normalizer(
    x: Value,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str = "",
    stopwords: Sequence[str] = (),
) -> Any:
    """Texts in upper or lower case, without some words."""
    gone = set(stopwords) if is_case_sensitive else {w.lower() for w in stopwords}
    kept = [
        text
        for text in x.reshape(-1)
        if (text if is_case_sensitive else text.lower()) not in gone
    ]
    change = {"UPPER": str.upper, "LOWER": str.lower}.get(case_change_action, str)
    made = np.array([change(text) for text in kept] or [""], object)
    return made.reshape(1, -1) if x.ndim == 2 else made


@host_operator("RegexFullMatch")
def regex_full_match(x: Value, *, pattern: str = "") -> Any:
    """Whether each text as a whole fits a pattern."""
    rule = re.compile(pattern)
    found = [rule.fullmatch(text) is not None for text in x.reshape(-1)]
    return np.array(found, bool).reshape(x.shape)


@host_operator("TfIdfVectorizer")
def tf_idf_vectorizer(
    x: Value,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int] = (),
    pool_strings: Sequence[str] = (),
    weights: Sequence[float] = (),
) -> Any:
    """How often known runs of words (with gaps) occur, weighted."""
    pool = list(pool_strings) or list(pool_int64s)
    grams: dict[tuple[Any, ...], int] = {}
    starts = [*ngram_counts, len(pool)]
    number = 0
    for n in range(1, len(ngram_counts) + 1):
        for at in range(starts[n - 1], starts[n], n):
            if min_gram_length <= n <= max_gram_length:
                grams[tuple(pool[at : at + n])] = number
            number += 1
    width = max(ngram_indexes) + 1
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    found = np.zeros((len(rows), width), np.float32)
    for row, words in zip(found, rows.tolist(), strict=True):
        for gram, k in grams.items():
            row[ngram_indexes[k]] += _occurrences(gram, words, max_skip_count)
    if mode != "TF":
        scale = np.ones(width, np.float32)
        for k, place in enumerate(ngram_indexes):
            scale[place] = weights[k] if weights else 1
        found = scale * (found > 0 if mode == "IDF" else found)
    return found.astype(np.float32)[0] if x.ndim < 2 else found.astype(np.float32)


def _occurrences(gram: tuple[Any, ...], words: list[Any], most: int) -> int:
    """How often words stand one after another, with equal gaps of up to `most`."""
    n, found = len(gram), 0
    for gap in range(1, 2 if n == 1 else most + 2):
        for i in range(len(words) - (n - 1) * gap):
            found += tuple(words[i : i + n * gap : gap][:n]) == gram
    return found
