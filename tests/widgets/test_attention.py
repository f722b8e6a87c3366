"""The attention view without a browser: rows, heads, masks, controls, still form."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("anywidget", reason="the widgets need anywidget")

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.core.errors import ConfigError, DimError, ShapeError
from burnbook.tensor import Tensor
from burnbook_widgets import AttentionView
from tests.support.widget_state import state_size

WORDS = ["the", "cat", "sat", "down"]
WEIGHTS = np.random.default_rng(3).dirichlet(np.ones(4), (2, 3, 4))  # [b, heads, s, t]


def shares_of(view):
    """What the page is told, as shares."""
    return np.frombuffer(view.panel.data[: 2 * view.shares.size], "<u2") / 65535


def test_a_layers_output_is_shown_head_by_head():
    device = Numpy()
    layer = nn.MultiHeadAttentionConfig(8, 2).init(device)
    x = Tensor.random([1, 4, 8], device=device)
    mask = nn.generate_autoregressive_mask(1, 4, device)
    out = layer.forward(nn.MhaInput.self_attn(x).mask_attn(mask))
    view = AttentionView(out, WORDS, attn=mask)
    weights = np.asarray(out.weights)[0]
    np.testing.assert_allclose(view.shares, weights.mean(0), rtol=1e-6)
    np.testing.assert_allclose(shares_of(view), weights.mean(0).ravel(), atol=1e-5)
    view.head = 1
    np.testing.assert_allclose(shares_of(view), weights[1].ravel(), atol=1e-5)
    assert view.panel.frame["hidden"] == 6
    hidden = np.unpackbits(np.frombuffer(view.panel.data[32:], np.uint8))
    np.testing.assert_array_equal(hidden.reshape(4, 4), np.triu(np.ones((4, 4)), 1))
    assert view.reading == "“the” attends to “the” 100.0 %"
    view.key = 2
    assert view.reading == "“the” attends to “sat”: hidden, 0.0 %"


def test_a_row_is_read_most_first():
    weights = [[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]]
    view = AttentionView(weights, ["a", "b"], ["x", "y", "z"])
    assert view.reading == "“a” attends to “z” 70.0 %, “y” 20.0 %, “x” 10.0 %"
    view.query = -1
    assert view.reading == "“b” attends to “x” 50.0 %, “y” 25.0 %, “z” 25.0 %"
    view.close()
    many = AttentionView(np.full((1, 20), 0.05))
    assert many.reading.endswith("“7” 5.0 %, 12 more")
    assert many.tokens[0] == ["0"]


def test_controls_and_twins_stay_together():
    names = [WORDS, ["a", "dog", "ran", "<pad>"]]
    view = AttentionView(WEIGHTS, names, pad=[[0, 0, 0, 0], [0, 0, 0, 1]])
    assert view.head is None
    view.head_control.value = 2
    view.query_control.value = 3
    view.item_control.value = 1
    assert (view.head, view.query, view.item) == (2, 3, 1)
    assert view.panel.frame["tokens"] == names[1]
    assert view.panel.frame["hidden"] == 4
    assert view.panel.at == [3]
    np.testing.assert_allclose(shares_of(view), WEIGHTS[1, 2].ravel(), atol=1e-5)
    view.panel.at = [0, 1]
    assert (view.query, view.key) == (0, 1)
    assert view.query_control.value == 0
    view.panel.at = [2]
    assert (view.query, view.key) == (2, None)
    view.panel._handle_custom_msg({"head": 0}, [])
    assert (view.head, view.head_control.value) == (0, 0)
    view.panel._handle_custom_msg({"head": -1}, [])
    assert view.head is None
    view.panel._handle_custom_msg({"head": 9}, [])
    assert (
        view.panel.fault
        == "AttentionView: there is no head 9: there are 3 · try: 0 … 2"
    )
    view.head = 1
    assert view.head_control.value == 1


def test_every_head_has_a_small_picture():
    view = AttentionView(WEIGHTS[0], WORDS)
    thumbs = np.frombuffer(view.panel.thumbs, np.uint8).reshape(4, 4, 4)
    assert thumbs.max(axis=(1, 2)).tolist() == [255] * 4
    mean = WEIGHTS[0].mean(0)
    np.testing.assert_allclose(thumbs[0], mean / mean.max() * 255, atol=0.51)
    view.close()
    many = np.full((12, 120, 120), 0.001)
    many[5, 100, 30] = 0.9
    view = AttentionView(many)  # N25: there were none
    rows, columns = view.panel.frame["thumb"]
    thumbs = np.frombuffer(view.panel.thumbs, np.uint8).reshape(13, rows, columns)
    place = (100 * rows // 120, 30 * columns // 120)
    assert thumbs[6][place] == 255  # the most of a block, so that nothing is lost
    assert np.count_nonzero(thumbs[6] > 9) == 1
    view.close()
    view = AttentionView(WEIGHTS[0, 0])
    assert view.panel.thumbs == b""
    assert len(view.head_control.options) == 1


def test_what_cannot_be_shown_is_explained():
    for kind, told, *given in (
        (ConfigError, "weights lie between 0 and 1", [[1.0, -2.0]]),
        (ConfigError, "weights lie between 0 and 1", [[0.5, np.nan]]),
        (ShapeError, "129 tokens are more than 128", np.zeros((2, 129))),
        (ShapeError, r"\[3\] are not weights", [0.2, 0.3, 0.5]),
        (ShapeError, "3 tokens for 4", WEIGHTS, WORDS[:3]),
        (ShapeError, r"pad is \[3\]", WEIGHTS, WORDS, None, [True, False, False]),
    ):
        with pytest.raises(kind, match=told):
            AttentionView(*given)
    view = AttentionView(WEIGHTS, WORDS)
    with pytest.raises(DimError, match="there is no query 4: there are 4"):
        view.query = 4


def test_the_largest_state_is_small_and_close_frees_everything(same_widgets):
    before = state_size()
    view = AttentionView(np.full((12, 128, 128), 1 / 128), ["word" * 3] * 128)
    assert state_size() - before < 100_000
    assert len(view.still()) < 100_000
    view.close()
    view.query = 5  # a closed view still answers
    assert "attends to" in view.reading


def test_the_still_form_shows_map_row_and_masks():
    view = AttentionView(WEIGHTS, WORDS, attn=np.triu(np.ones((4, 4)), 1))
    view.query = 2
    html = view.still()
    for text in ("“sat” attends to", "crossed out: hidden by a mask", "rotate(-60)"):
        assert text in html
    assert html.count(">cat<") >= 2
    assert "<script" not in html
    assert view.still() == html
    view.head = 1
    assert view.still() != html
    assert repr(view) == "AttentionView(4 queries, 4 keys, 2 items; 3 heads)"
    view.close()
    assert "<b>" not in AttentionView([[1.0]], ["<b>"]).still().split("</b>", 1)[1]


def test_static_pages_get_no_widget(static):
    view = AttentionView(WEIGHTS, WORDS)
    view.head = 1
    view.query = 2
    assert set(view.bundle()) == {"text/html", "text/plain"}


def test_heads_are_counted_from_zero_everywhere():
    view = AttentionView(WEIGHTS[0], WORDS)
    view.head = 1
    assert view.panel.frame["title"].endswith("head 1 of 0 … 2")  # was: 1 of 3
    names = [name for name, _ in view.head_control.options]
    assert names[1:] == ["head 0", "head 1", "head 2"]
