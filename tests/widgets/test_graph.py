"""The graph view without a browser: parts, values, steps, layout, still form."""

from __future__ import annotations

from itertools import pairwise

import pytest

pytest.importorskip("anywidget", reason="the widgets need anywidget")

import numpy as np

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.backend.autodiff import BalancedCheckpointing
from burnbook.core.errors import ConfigError, GraphError
from burnbook.core.op import OPS
from burnbook.module import Module
from burnbook.ops import dropout, matmul
from burnbook.tensor import Int, Tensor
from burnbook_widgets import GraphView
from burnbook_widgets.autodiff.groups import Group, around
from burnbook_widgets.autodiff.layout import ACROSS, WIDTH, lay_out
from burnbook_widgets.autodiff.parts import brief, fitted, text_width
from burnbook_widgets.autodiff.rules import rule_text, rules_of, sentence
from burnbook_widgets.autodiff.still import ROOM
from tests.support.widget_state import state_size, widget_count

AD = Autodiff(Numpy())


def leaf(values, device=AD):
    return Tensor.from_data(values, device).require_grad()


def small(device=AD):
    x = Tensor.from_data([[1.0, 2.0], [3.0, 4.0]], device)
    w, b = leaf([[0.5], [-0.5]], device), leaf([[0.1]], device)
    y = (x @ w + b).tanh()
    loss = (y * y * 2.0).mean()
    return GraphView(loss), x, w, b, y, loss


def by_name(view):
    return {part.called: part for part in view.parts}


def test_names_are_those_of_the_variables_around():
    view, *_ = small()
    labels = [part.label for part in view.parts]
    assert sorted(labels) == sorted(
        ["w", "b", "x", "matmul", "add", "y = tanh", "mul 1", "2", "mul 2",
         "loss = mean"]
    )  # fmt: skip
    assert repr(view) == "GraphView(loss = mean [1]; 6 ops, 2 leaves, step 14 of 14)"


@pytest.mark.parametrize(
    "device", [AD, Autodiff(Numpy(), checkpointing=BalancedCheckpointing())], ids=repr
)
def test_every_value_and_gradient_is_right(device):
    view, x, w, b, _, loss = small(device)
    a, v, c = (np.asarray(t) for t in (x, w, b))
    out = np.tanh(a @ v + c)
    expected = {
        "matmul": a @ v, "add": a @ v + c, "y": out, "mul 1": out * out,
        "mul 2": 2 * out * out, "loss": [(2 * out * out).mean()], "2": 2.0,
    }  # fmt: skip
    for name, value in expected.items():
        assert np.allclose(view.value(name), value, rtol=1e-6), name
    assert np.allclose(view.gradient("y"), 2 * out)
    assert np.allclose(view.gradient("mul 2"), 0.5)
    assert view.gradient("x") is None
    grads = loss.backward()  # the view has used nothing up
    for name, tensor in (("w", w), ("b", b)):
        assert np.array_equal(view.gradient(name), np.asarray(tensor.grad(grads)))


def test_where_a_value_is_known_from_is_said():
    view, *_ = small()
    parts = by_name(view)
    assert parts["y"].origin == "the tensor itself"
    assert parts["x"].origin == "the tape keeps it: matmul asks for its x"
    assert parts["add"].origin == "not kept, so computed again from its inputs"
    x = leaf([1.0, 2.0])
    view = GraphView((x + 1.0).sum(), x=x)
    lost = next(part for part in view.parts if part.kind == "lost")
    assert (lost.value, by_name(view)["add"].value) == (None, None)
    assert "no rule" in lost.origin
    assert view.value("x").tolist() == [1.0, 2.0]


def test_names_can_be_given_and_modules_name_their_parameters():
    model = nn.LinearConfig(2, 3).init(AD)
    x = Tensor.ones([4, 2], AD)
    targets = Tensor.from_ints([0, 1, 2, 0], AD)
    loss = nn.CrossEntropyLossConfig().init(AD).forward(model.forward(x), targets)
    view = GraphView(loss, net=model, inputs=x)
    parts = by_name(view)
    assert {"net.weight", "net.bias", "inputs", "targets"} <= set(parts)
    assert parts["targets"].value.tolist() == [0, 1, 2, 0]
    given = np.asarray(x) @ np.asarray(model.weight.val())
    assert np.allclose(view.value("linear"), given + np.asarray(model.bias.val()))
    assert view.gradient("net.weight").shape == (2, 3)


def test_a_bias_that_may_not_be_there_is_not_made_up():
    for bias in (True, False):
        layer = nn.LinearConfig(2, 2, bias=bias).init(AD)
        y = layer.forward(leaf([[1.0, 2.0]]))
        view = GraphView(y.sum(), layer=layer, y=y)
        assert np.array_equal(view.value("y"), np.asarray(y))
        view.close()
        view = GraphView(y.sum(), layer=layer)
        assert (view.value("linear") is None) == (not bias)
        view.close()


def test_stepping_shows_values_forward_then_gradients_back():
    view, *_ = small()
    view.start()
    assert view.step == 0
    assert view.caption() == "Step 0 of 14: the inputs are there, nothing has run."
    shown = dict(zip([p.called for p in view.parts], view._seen(), strict=True))
    assert shown == {
        "w": 1, "b": 1, "x": 1, "matmul": 0, "add": 0, "y": 0, "mul 1": 0, "2": 1,
        "mul 2": 0, "loss": 0,
    }  # fmt: skip
    view.forward()
    assert view.caption() == "Step 1 of 14, forward: matmul makes [2, 1] from x and w."
    assert view.parts[view.chosen].called == "matmul"
    view.step = 6
    assert view.panel.stage["seen"].count(0) == 0
    view.forward()
    assert view.caption().startswith("Step 7 of 14, back: loss [1] begins with")
    seen, visited = view._seen(), []
    for _ in range(view.step, view.steps):
        view.forward()
        [changed] = [i for i, (a, b) in enumerate(zip(seen, view._seen(), strict=True))
                     if a != b]  # fmt: skip
        seen = view._seen()
        visited.append(view.parts[changed].called)
    assert visited == ["mul 2", "mul 1", "y", "add", "matmul", "b", "w"]
    view.forward()  # stays at the end
    assert (view.step, view.forward_control.disabled) == (14, True)
    view.back()
    assert view.panel.stage["now"] == [p.called for p in view.parts].index("b")


def test_a_value_that_is_used_twice_gets_the_sum():
    s = leaf([2.0])
    loss = s * s * s + s
    view = GraphView(loss)
    assert view.gradient("s").tolist() == [13.0]
    names = [part.called for part in view.parts]
    users = [names[b] for a, b in view._edges if names[a] == "s"]
    assert users == ["mul 1", "mul 1", "mul 2", "loss"]


@pytest.mark.parametrize("way", ["opened", "end", "each step", "back", "start"])
def test_the_chosen_part_is_the_one_that_the_caption_speaks_of(way):
    view, *_ = small()
    walks = {"end": [view.end], "back": [view.back] * 14, "start": [view.start]}
    walks["each step"] = [view.start, *[view.forward] * 14]
    for move in walks.get(way, [lambda: None]):
        move()
        if view.step:
            assert view.chosen == view._now()
            assert view.panel.chosen == view.panel.stage["now"]
            part = view.parts[view.chosen]
            assert part.called in view.caption() or part.op in view.caption()


def test_buttons_slider_and_keys_do_what_the_twins_do():
    view, *_ = small()
    view.start_control.click()
    assert (view.step, view.step_control.value) == (0, 0)
    assert view.back_control.disabled
    view.forward_control.click()
    view.panel._handle_custom_msg({"do": "forward"}, [])
    assert view.step == 2
    view.back_control.click()
    assert view.step_control.value == 1
    view.step_control.value = 9
    assert view.step == 9
    assert view.panel.said == view.caption()
    view.panel._handle_custom_msg({"do": "choose", "part": 0}, [])
    assert view.chosen == 0
    view.panel._handle_custom_msg({"do": "choose", "part": 77}, [])
    assert view.panel.fault == "GraphView: there is no part 77"
    view.end_control.click()
    assert (view.step, view.panel.fault) == (14, "")
    with pytest.raises(ConfigError, match="there is no step 15"):
        view.step = 15
    with pytest.raises(ConfigError, match="there is no part 'z'"):
        view.chosen = "z"


def test_the_facts_of_a_part_follow_the_step():
    view, *_ = small()
    view.chosen = "y"
    facts = {name: text for name, text, _ in view.panel.facts}
    assert facts["op"].startswith("The hyperbolic tangent: out =")
    assert facts["rule toward x"] == "g * (1 - out * out)"
    assert facts["inputs"] == "x = add"
    assert facts["value"].startswith("[[-0.379")
    assert facts["gradient"].startswith("[[-0.759")
    view.step = 4
    view.chosen = "y"
    facts = {name: text for name, text, _ in view.panel.facts}
    assert facts["gradient"] == "not there yet"
    view.start()
    view.chosen = "y"
    assert "value" not in {name for name, _, _ in view.panel.facts}


def test_rules_are_told_as_formulas_or_sentences():
    assert rules_of(matmul) == [
        ("x", "matmul_x: ∂x = g · yᵀ."),
        ("y", "matmul_y: ∂y = xᵀ · g."),
    ]
    assert rule_text(dropout).startswith("dropout: Set values to zero with chance prob")
    assert sentence(matmul).startswith("Multiply matrices")

    def own(g, x):
        return g

    assert rule_text(own) == "own(g, x)"
    for op in OPS.values():
        for name, text in rules_of(op):
            assert text, (op.name, name)


def test_boxes_never_overlap_and_stand_below_what_they_are_made_from():
    rng = np.random.default_rng(3)
    for count in (1, 5, 30, 120):
        edges = [
            (int(a), b) for b in range(1, count) for a in rng.integers(0, b, 2)
        ]  # fmt: skip
        placed = lay_out(count, edges)
        assert lay_out(count, edges).middles == placed.middles
        for a, b in edges:
            assert placed.middles[a][1] < placed.middles[b][1]
        rows = {}
        for x, y in placed.middles:
            rows.setdefault(y, []).append(x)
        for row in rows.values():
            for left, right in pairwise(sorted(row)):
                assert right - left >= WIDTH + ACROSS - 1e-6
        xs = [x for x, _ in placed.middles]
        assert min(xs) >= WIDTH / 2
        assert max(xs) <= placed.width - WIDTH / 2


def test_two_chains_do_not_cross():
    placed = lay_out(6, [(0, 3), (1, 2), (2, 4), (3, 5)])
    x = [x for x, _ in placed.middles]
    assert (x[0] < x[1]) == (x[3] < x[2]) == (x[5] < x[4])


def test_graphs_too_large_and_used_up_are_refused():
    x = leaf([1.0])
    for _ in range(5000):
        x = x * 1.0
    with pytest.raises(GraphError, match="5,001 steps, more than 5,000") as told:
        GraphView(x)
    assert "print(loss.graph())" in str(told.value)
    loss = leaf([1.0]).exp().exp()
    loss.backward()
    with pytest.raises(GraphError, match="used up"):
        GraphView(loss)
    with pytest.raises(GraphError, match="requires a gradient"):
        GraphView(Tensor.ones([1], AD))


def test_the_state_of_a_large_graph_stays_small():
    x = leaf(np.linspace(0, 1, 10_000))
    y = x
    for _ in range(1999):
        y = y * 1.0001
    before = state_size()
    view = GraphView(y.sum())
    assert len(view.parts) == 4000
    view.step = 50
    view.unfold(view.groups[0], view.groups[1])
    assert state_size() - before < 120_000
    assert len(view.still()) < 400_000


# ── groups (N13) ────────────────────────────────────────────────────────────


class Block(Module):
    """Two layers with a way around them, as in real networks."""

    first: nn.Linear
    second: nn.Linear

    def forward(self, x):
        return x + self.second.forward(self.first.forward(x).relu())


class Net(Module):
    blocks: list[Block]
    head: nn.Linear

    def forward(self, x):
        for block in self.blocks:
            x = block.forward(x)
        return self.head.forward(x)


def blocks(count):
    def linear():
        return nn.LinearConfig(4, 4).init(AD)

    net = Net([Block(linear(), linear()) for _ in range(count)], linear())
    loss = net.forward(Tensor.ones([2, 4], AD)).square().mean()
    return net, loss


def edges_go_down(view):
    return all(a < b for a, b in view._lines)


def test_steps_form_groups_by_the_paths_of_their_parameters():
    net, loss = blocks(2)
    view = GraphView(loss, net=net)
    assert view.groups == [
        "net", "net.blocks", "net.blocks.0", "net.blocks.0.first",
        "net.blocks.0.second", "net.blocks.1", "net.blocks.1.first",
        "net.blocks.1.second", "net.head",
    ]  # fmt: skip
    assert view.unfolded == view.groups  # a small graph shows everything
    relu = next(i for i, part in enumerate(view.parts) if part.op == "relu")
    assert around(view._whole, relu) == ["net", "net.blocks", "net.blocks.0"]
    view.fold("net.blocks.0")
    boxes = [b.name for b in view._boxes if isinstance(b, Group)]
    assert boxes == ["net.blocks.0"]
    assert edges_go_down(view)
    second = view.parts[view._last_of("net.blocks.0")]
    shown = next(texts for texts in view._shown() if texts[1] == "net.blocks.0")
    assert shown[2] == f"3 ops → {second.size}"
    assert shown[3] == brief(second.value, ROOM)
    view.fold()
    assert isinstance(view._boxes[0], Group)
    assert len(view._boxes) == 3  # net, square, mean
    view.unfold("net.blocks.1.first")
    assert view.unfolded == ["net", "net.blocks", "net.blocks.1", "net.blocks.1.first"]
    with pytest.raises(ConfigError, match=r"no group 'net\.tail'"):
        view.fold("net.tail")


def test_a_large_model_is_shown_closed_and_opens_where_one_looks():
    net, loss = blocks(30)
    view = GraphView(loss, net=net)
    assert len(view.parts) > 200
    assert len(view._boxes) <= 60
    assert edges_go_down(view)
    view.start()
    for _ in range(40):
        view.forward()
        stage = view.panel.stage
        assert stage["now"] == view._box_of[view.chosen]  # what it is about is seen
        assert view.panel.chosen == stage["now"]
    view.chosen = "net.blocks.7.second.weight"
    assert {"net.blocks.7", "net.blocks.7.second"} <= set(view.unfolded)
    assert view._boxes[view.panel.chosen] == view.chosen
    closed = view._seen_boxes()
    assert set(closed) <= {0, 1, 2}
    view.end()
    for texts, known in zip(view._shown(), view._seen_boxes(), strict=True):
        assert known == (2 if texts[0] in ("op", "leaf", "group") else 1), texts
    view.close()


def test_two_thousand_steps_without_modules_are_cut_into_runs():
    x = leaf([1.0])
    y = x
    for _ in range(2000):
        y = y * 1.0001
    view = GraphView(y.sum())
    names = [box.name for box in view._boxes if isinstance(box, Group)]
    assert len(view._boxes) <= 60
    assert names[0].startswith("steps 1–")
    assert len(set(view.groups)) == len(view.groups)
    view.chosen = "mul 700"
    assert view._boxes[view.panel.chosen] == view.chosen
    with pytest.raises(ConfigError, match="boxes cannot be told apart"):
        view.unfold()
    assert len(view._boxes) <= 600
    assert view.gradient("x")[0] == pytest.approx(1.0001**2000, rel=1e-3)


def test_a_module_that_runs_twice_has_two_groups():
    layer = nn.LinearConfig(3, 3).init(AD)
    x = Tensor.ones([1, 3], AD)
    y = layer.forward(layer.forward(x).tanh()).sum()
    view = GraphView(y, cell=layer)
    view.fold()
    assert edges_go_down(view)
    assert set(view.groups) <= {"cell", "cell (2)"}


def test_clicks_on_groups_do_what_the_twins_do():
    net, loss = blocks(2)
    view = GraphView(loss, net=net)
    view.panel._handle_custom_msg({"do": "fold", "group": ""}, [])
    assert view.unfolded == []
    view.panel._handle_custom_msg({"do": "unfold", "group": "net"}, [])
    assert view.panel.scene["open"] == ["net"]
    assert view.parts[view.chosen].op == "linear"
    view.panel._handle_custom_msg({"do": "unfold", "group": "nowhere"}, [])
    assert "no group 'nowhere'" in view.panel.fault
    view.panel._handle_custom_msg({"do": "unfold all"}, [])
    assert (view.unfolded, view.panel.fault) == (view.groups, "")


# ── values of every step (N13) ──────────────────────────────────────────────


def test_a_computation_as_a_function_shows_the_value_of_every_step():
    x = leaf([1.0, 2.0])
    targets = Tensor.from_data([0.5, 0.5], AD)
    view = GraphView(lambda: ((x + 1.0).tanh() - targets + 3.0).mean())
    assert view.value("add 1").tolist() == [2.0, 3.0]
    assert all(part.value is not None for part in view.parts)
    assert by_name(view)["add 1"].origin == "recorded as it ran"
    assert "targets" in by_name(view)
    assert "value not kept" not in view.still()
    assert "run" not in vars(AD)  # afterwards nothing is written down any more
    loss = (x + 1.0).mean()
    view = GraphView(loss)
    assert "GraphView(lambda: …)" in by_name(view)["add"].origin
    view.close()
    with pytest.raises(ConfigError, match="the function gives int, not a tensor"):
        GraphView(lambda: 3)
    assert "run" not in vars(AD)


@pytest.mark.parametrize("scale", [1.0, -1.23456e-5, 1.23456e30, np.nan, np.inf])
def test_texts_stay_inside_of_their_boxes(scale):
    model = {"a_model_with_a_very_long_name.and.a.path.weight": leaf([[scale] * 40])}
    named = dict(model)
    loss = (next(iter(model.values())) * 2.0).sum()
    view = GraphView(loss, **named)
    for _, label, size, value, gradient in view._shown():
        for text in (value, f"∂ {gradient}"):
            assert text_width(text, 11.0) <= WIDTH or text.count(" ") <= 2, text
        assert text_width(fitted(label, ROOM, 12.0, True), 12.0, True) <= ROOM
        assert text_width(fitted(size, ROOM, 11.0), 11.0) <= ROOM


def test_numbers_are_never_cut_in_the_middle():
    array = np.array([-0.000123456, 12345.678, 1.0, 2.0])
    for room in range(30, 200, 5):
        shown = brief(array, room).removesuffix(" …").split()
        assert set(shown) <= {"−0.000123", "1.23e+04", "1"}
        assert shown


def test_the_still_form_shows_what_the_step_shows():
    view, *_ = small()
    html = view.still()
    for text in ("loss = mean", "y = tanh", "∂ ", "−0.38 −0.38", "As a table"):
        assert text in html
    assert "<script" not in html
    assert small()[0].still() == html
    view.start()
    assert "∂ " not in view.still()
    assert "−0.38" not in view.still()


def test_static_pages_get_no_widget(static):
    view, *_ = small()
    view.step = 3
    view.chosen = "y"
    assert set(view.bundle()) == {"text/html", "text/plain"}


def test_close_frees_every_widget(same_widgets):
    before = widget_count()
    view, *_ = small()
    assert widget_count() > before
    view.close()
    view.step = 2  # a closed view still answers
    assert "Step 2 of 14" in view.caption()


def test_integers_and_numbers_have_a_short_form():
    i = Tensor[1, Int].from_ints([2, 0], AD)
    x = leaf([1.0, -2.0, 3.0])
    view = GraphView(x.select(0, i).sum(), x=x, i=i)
    assert by_name(view)["i"].value.tolist() == [2, 0]
    assert "1 −2 3" in view.still()
    assert view.gradient("x").tolist() == [1.0, 0.0, 1.0]


def test_graphs_across_devices_of_gradients_and_of_many_inputs():
    there = Autodiff(Numpy(float="f64"))
    x = leaf([[1.0, 2.0]])
    loss = ((x * x).to_device(there) * 3.0).sum()
    view = GraphView(loss)
    assert view.gradient("x").tolist() == [[6.0, 12.0]]
    twice = Autodiff(AD)
    low = leaf([2.0, 3.0])
    high = Tensor.from_inner(low, twice).require_grad()
    slope = high.grad((high * high * high).sum().backward())
    view = GraphView(slope)
    assert view.gradient("low").tolist() == [12.0, 18.0]
    view = GraphView(Tensor.cat([x, x * 2.0], 0).sum())
    part = by_name(view)["cat"]
    assert [name for name, _ in part.inputs] == ["xs[0]", "xs[1]"]
    assert part.value.tolist() == [[1.0, 2.0], [2.0, 4.0]]


def test_graphs_of_nothing_and_of_no_numbers():
    for tensor in (Tensor.zeros([0, 3], AD), Tensor.from_data([0.0, -1.0], AD)):
        view = GraphView(tensor.require_grad().log().sum())
        for number in range(len(view.parts)):
            view.chosen = number
            assert view.facts()
        assert "<svg" in view.still()
        view.close()
