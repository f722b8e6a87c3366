"""Metrics of text: perplexity, error rates, BLEU, ROUGE-L."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from burnbook.train import (
    BleuScore,
    BleuSmoothing,
    CharErrorRate,
    MetricEntry,
    PerplexityMetric,
    RougeLScore,
    WordErrorRate,
)
from burnbook.train.metric.bleu import corpus_bleu
from burnbook.train.metric.sequences import common_length, edit_distance
from tests.support.metric_tools import cut, epoch_value, floats, ints, update

WORDS = st.lists(st.integers(0, 3), max_size=7)


# Perplexity


def test_perplexity_is_e_to_the_log_loss_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    scores = rng.uniform(-3, 3, (50, 7)).astype(np.float32)
    targets = rng.integers(0, 7, 50)
    parts = [(floats(scores[p]), ints(targets[p])) for p in cut(50, 20, 1)]
    shares = np.exp(scores.astype(float))
    shares /= shares.sum(axis=1, keepdims=True)
    loss = metrics.log_loss(targets, shares, labels=range(7))
    assert epoch_value(PerplexityMetric(), parts) == pytest.approx(math.exp(loss))


def test_perplexity_of_a_guess_among_all_is_their_number():
    entry = update(PerplexityMetric(), floats(np.zeros((3, 5))), ints([0, 4, 2]))
    assert entry.formatted == "epoch 5.00 - batch 5.00"
    value, count = entry.serialize.split(",")
    assert (float(value), count) == (pytest.approx(5.0), "3")


def test_the_epochs_perplexity_weighs_words_not_batches():
    metric = PerplexityMetric()
    update(metric, floats(np.zeros((3, 4))), ints([0, 1, 2]))
    sure = floats([[800.0, 0.0, 0.0, 0.0]])
    entry = update(metric, sure, ints([0]))
    assert metric.value() == 1.0
    epoch = 4 ** (3 / 4)
    assert entry.formatted == f"epoch {epoch:.2f} - batch 1.00"
    line = metric.compute().serialize
    assert float(line.removesuffix(",final")) == pytest.approx(epoch)
    assert line.endswith(",final")


def test_perplexity_leaves_padding_out_whatever_its_number():
    metric = PerplexityMetric().with_pad_token(-100)
    scores = floats([[0.0, 0.0], [9.0, -9.0]])
    entry = update(metric, scores, ints([1, -100]))
    assert entry.serialize == "2,1"
    padding = update(metric, scores, ints([-100, -100]))
    assert padding.formatted == "epoch 2.00 - batch inf"
    assert padding.serialize == "inf,0"
    assert metric.compute().serialize == "2,final"


def test_perplexity_can_be_infinite_and_without_words_is():
    metric = PerplexityMetric(0)
    assert metric.compute() is None
    update(metric, floats([[0.0, 0.0]]), ints([0]))
    assert metric.compute().serialize == "inf,final"
    metric = PerplexityMetric()
    update(metric, floats([[2000.0, 0.0]]), ints([1]))
    assert metric.value() == math.inf


# Edits


@cache
def edits(a, b):
    """By the definition: replace, delete, insert."""
    if not a or not b:
        return len(a) + len(b)
    if a[0] == b[0]:
        return edits(a[1:], b[1:])
    return 1 + min(edits(a[1:], b[1:]), edits(a[1:], b), edits(a, b[1:]))


@cache
def common(a, b):
    if not a or not b:
        return 0
    if a[0] == b[0]:
        return 1 + common(a[1:], b[1:])
    return max(common(a[1:], b), common(a, b[1:]))


@settings(max_examples=100)
@given(WORDS, WORDS)
def test_distance_and_common_length_follow_their_definitions(a, b):
    assert edit_distance(a, b) == edits(tuple(a), tuple(b))
    assert common_length(a, b) == common(tuple(a), tuple(b))


def letters(*words):
    """Words as rows of numbers, padded with 0."""
    width = max(len(word) for word in words)
    return ints([[ord(c) for c in word] + [0] * (width - len(word)) for word in words])


def test_error_rates_are_edits_per_length_of_the_references():
    for metric, name in ((CharErrorRate(0), "CER"), (WordErrorRate(0), "WER")):
        entry = update(metric, letters("kitten", "law"), letters("sitting", "flaw"))
        rate = 100 * (3 + 1) / (7 + 4)
        text = f"epoch {rate:.2f} % - batch {rate:.2f} %"
        assert entry == MetricEntry(name, text, f"{rate},11")
        assert update(metric, letters("ab"), letters("ab")).serialize == "0,2"


def test_the_epochs_error_rate_is_that_of_all_its_text():
    outputs, targets = ["ab", "xyz", "abcdefgh"], ["ac", "xyz", "abcdefgX"]
    parts = [
        (letters(one), letters(other))
        for one, other in zip(outputs, targets, strict=True)
    ]
    assert epoch_value(CharErrorRate(0), parts) == pytest.approx(100 * 2 / 13)


def test_without_a_pad_token_every_token_counts():
    entry = update(WordErrorRate(), ints([[1, 0, 0]]), ints([[1, 2, 0]]))
    assert entry.serialize == f"{100 / 3},3"


def test_padding_within_a_sequence_is_cut_differently_as_in_burn():
    output, target = ints([[1, 0, 2, 3]]), ints([[1, 0, 2, 3]])
    assert update(CharErrorRate(0), output, target).serialize == "0,3"
    assert update(WordErrorRate(0), output, target).serialize == "0,1"


def test_references_of_nothing_weigh_one_token_where_something_was_said():
    metric = WordErrorRate(0)
    entry = update(metric, ints([[0, 0]]), ints([[0, 0]]))
    assert (entry.formatted, entry.serialize) == ("epoch NaN % - batch 0.00e0 %", "0,0")
    entry = update(metric, ints([[5, 6]]), ints([[0, 0]]))
    assert entry.serialize == "200,1"
    entry = update(metric, ints([[5, 6]]), ints([[5, 7]]))
    assert entry.formatted == "epoch 100.00 % - batch 50.00 %"


# BLEU and ROUGE-L


def test_bleu_clips_counts_and_punishes_short_outputs():
    # Papineni et al.: "the" seven times, of which the reference has two
    the = update(BleuScore(1), ints([[7] * 7]), ints([[7, 1, 2, 3, 7, 4, 5]]))
    assert the.serialize == f"{100 * math.exp(math.log(2 / 7))},1"
    metric = BleuScore(2).with_pad_token(0)
    short = update(metric, ints([[1, 2, 3, 0, 0]]), ints([[1, 2, 3, 4, 5]]))
    score = 100 * math.exp(1 - 5 / 3)  # all its runs are right
    assert short.formatted == f"epoch {score:.2f} % - batch {score:.2f} %"


def test_bleu_sums_counts_over_a_batch_and_means_over_batches():
    metric = BleuScore(1)
    both = update(metric, ints([[1, 2], [3, 4]]), ints([[1, 2], [5, 6]]))
    assert float(both.serialize.split(",")[0]) == pytest.approx(50.0)
    one = (ints([[1, 2]]), ints([[1, 2]]))
    two = (ints([[3, 4], [3, 4]]), ints([[5, 6], [5, 6]]))
    assert epoch_value(metric, [one, two]) == pytest.approx(100 / 3)


def test_bleu_without_a_match_is_zero_unless_smoothed():
    output, target = ints([[1, 2, 9, 4]]), ints([[1, 2, 3, 4]])
    assert update(BleuScore(), output, target).serialize == "0,1"

    def smoothed(smoothing):
        entry = update(BleuScore().with_smoothing(smoothing), output, target)
        return float(entry.serialize.split(",")[0])

    known = 3 / 4 * 1 / 3  # runs of 1 and 2; none of the 2 and the 1 longer ones
    expected = (known * 0.1 / 2 * 0.1 / 1) ** 0.25
    added = smoothed(BleuSmoothing.AddEpsilon(0.1))
    assert added == pytest.approx(100 * expected)
    expected = (known * 1 / (2 * 2) * 1 / (4 * 1)) ** 0.25
    assert smoothed(BleuSmoothing.Exponential()) == pytest.approx(100 * expected)


def test_bleu_of_too_few_words_is_zero_smoothed_or_not():
    for smoothing in (None, BleuSmoothing.Exponential()):
        metric = BleuScore(4, smoothing=smoothing)
        assert update(metric, ints([[1, 2]]), ints([[1, 2]])).serialize == "0,1"
    assert update(BleuScore(1, 0), ints([[0, 0]]), ints([[1, 2]])).serialize == "0,1"


@settings(max_examples=60)
@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=3), st.integers(1, 3))
def test_bleu_lies_between_zero_and_one_and_is_one_for_the_reference(pairs, n):
    assert 0.0 <= corpus_bleu(pairs, n) <= 1.0
    assert 0.0 <= corpus_bleu(pairs, n, BleuSmoothing.Exponential()) <= 1.0
    same = [(target, target) for _, target in pairs]
    if any(len(target) >= n for _, target in pairs):
        assert corpus_bleu(same, n) == 1.0


def test_rouge_l_is_the_mean_f1_of_common_words():
    metric = RougeLScore().with_pad_token(0)
    outputs, targets = ints([[1, 2, 3, 0], [5, 0, 0, 0]]), ints([[1, 3, 0], [6, 7, 8]])
    entry = update(metric, outputs, targets)
    text = "epoch 40.00 % - batch 40.00 %"
    assert entry == MetricEntry("ROUGE-L", text, "40,2")


def test_rouge_l_leaves_two_empty_texts_out_and_of_one_it_is_nothing():
    metric = RougeLScore(0)
    assert update(metric, ints([[0], [0]]), ints([[0], [4]])).serialize == "0,1"


def test_text_metrics_name_themselves_and_their_padding():
    made = [PerplexityMetric(), CharErrorRate(3), WordErrorRate(), RougeLScore(1)]
    assert [repr(one) for one in made] == [
        "PerplexityMetric()",
        "CharErrorRate(pad_token=3)",
        "WordErrorRate()",
        "RougeLScore(pad_token=1)",
    ]
    assert (
        repr(BleuScore.with_max_n(2).with_pad_token(0)) == "BleuScore(2, pad_token=0)"
    )
