"""The file view without a browser: tree, statistics, graph, source, still form."""

from __future__ import annotations

import json
import struct
import sys
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("anywidget", reason="the widgets need anywidget")

from burnbook.core.errors import ConfigError, RecordError
from burnbook.record import (
    BinFileRecorder,
    BurnpackRecorder,
    FullPrecisionSettings,
    JsonGzFileRecorder,
    NamedMpkFileRecorder,
    NamedMpkGzFileRecorder,
    PrettyJsonFileRecorder,
    SafetensorsRecorder,
)
from burnbook.tensor import TensorData
from burnbook_widgets import FileView
from burnbook_widgets.file.rows import DOTS, NameTree
from burnbook_widgets.file.statistics import joined, statistics_of
from burnbook_widgets.tensor.numbers import facts_of
from tests.support.widget_state import state_size, widget_count

WEIGHT = np.array([[1.0, -2.0, np.nan], [0.0, np.inf, 4.0]], np.float32)
TREE = {
    "conv1": {"weight": TensorData(WEIGHT), "bias": TensorData([1, 2, 3])},
    "blocks": [{"weight": TensorData([1.0])}, {"weight": TensorData([2.0])}],
    "step": 3,
}


def labels(view):
    return [line["label"] for line in view.rows()]


@pytest.fixture
def file(tmp_path):
    return NamedMpkFileRecorder(FullPrecisionSettings).record(TREE, tmp_path / "model")


def safetensors(path, names, dtype="F32", width=4):
    """A file of tensors of one zero with these names."""
    step = width
    head = {
        name: {
            "dtype": dtype,
            "shape": [1],
            "data_offsets": [step * at, step * at + step],
        }
        for at, name in enumerate(names)
    }
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(step * len(names)))
    return path


# The tree


def test_groups_fold_by_dotted_path(file):
    view = FileView(file)
    assert labels(view) == [
        "conv1", "weight", "bias", "blocks", "0.weight", "1.weight", "step",
    ]  # fmt: skip
    view.fold("conv1")
    assert labels(view)[:2] == ["conv1", "blocks"]
    view.fold_all()
    assert labels(view) == ["conv1", "blocks", "step"]
    view.unfold("blocks")
    assert labels(view)[2:4] == ["0.weight", "1.weight"]
    view.unfold_all()
    assert len(labels(view)) == 7
    with pytest.raises(ConfigError, match="there is no group 'conv'"):
        view.fold("conv")


def test_rows_say_shape_type_and_size(file):
    view = FileView(file)
    lines = {line["label"]: line for line in view.rows()}
    weight, group, step = lines["weight"], lines["conv1"], lines["step"]
    assert (weight["shape"], weight["dtype"], weight["size"]) == (
        "[2, 3]", "f32", "24 B",
    )  # fmt: skip
    assert (group["shape"], group["open"], group["level"]) == ("2 tensors", True, 1)
    assert (weight["level"], weight["place"], weight["of"]) == (2, 1, 2)
    assert (step["shape"], step["other"]) == ("3", True)


def test_rows_know_the_group_that_they_lie_in(tmp_path):
    names = [f"a.b.w{k}" for k in range(300)] + ["a.c", "z"]
    view = FileView(safetensors(tmp_path / "m.safetensors", names))
    view.unfold_all()
    assert labels(view)[:3] == ["a", "b", "w0"]
    for first in (0, 250):
        view._told(None, {"do": "rows", "first": first}, None)
        held = view.panel.window
        for at, line in enumerate(held["rows"], held["first"]):
            wanted = {"a": -1, "z": -1, "b": 0, "c": 0}.get(line["label"], 1)
            assert line["parent"] == wanted, (at, line)


def test_find_shows_what_matches_with_the_groups_around(file):
    view = FileView(file)
    view.find = "BIAS"
    assert labels(view) == ["conv1.bias"]
    view.find = "weight"
    assert labels(view) == ["conv1.weight", "blocks", "0.weight", "1.weight"]
    assert view.panel.said == "3 found"
    assert view.find_control.value == "weight"
    view.find_control.value = ""
    assert len(labels(view)) == 7


def test_numbers_are_in_the_order_of_numbers():
    tree = NameTree([f"h.{k}.{n}" for k in (0, 1, 10, 2) for n in "ab"], DOTS)
    rows = [row.label for row in tree.rows({"h"})]
    assert rows == ["h", "0", "1", "2", "10"]


def test_odd_names_are_still_rows():
    names = ["", ".", "a..b", "a.", ".a", "a..c", "a"]
    tree = NameTree(names, DOTS)
    groups = {group.path for group in tree.groups(99)}
    numbers = [row.number for row in tree.rows(groups) if hasattr(row, "number")]
    assert sorted(numbers) == list(range(len(names)))


# Reading on demand


def test_a_tensor_is_read_when_it_is_selected_and_not_before(file, monkeypatch):
    view = FileView(file)
    read = []
    pieces = view.file.pieces
    monkeypatch.setattr(view.file, "pieces", lambda n: read.append(n) or pieces(n))
    view.fold("conv1")
    view.find = "w"
    view.find = ""
    view.still()
    assert read == []
    view.selected = "conv1.weight"
    assert set(read) == {"conv1.weight"}
    assert "weight" in labels(view)  # what is selected is to be seen
    count = len(read)
    view.selected = "conv1.weight"
    assert len(read) == count  # once


def test_statistics_are_those_of_the_elements(file):
    view = FileView(file)
    view.selected = "conv1.weight"
    facts = view.statistics().facts
    assert (facts.low, facts.high, facts.nan, facts.inf, facts.zeros) == (
        -2.0, 4.0, 1, 1, 1,
    )  # fmt: skip
    assert facts.mean == pytest.approx(0.75)
    assert facts.std == pytest.approx(np.std([1, -2, 0, 4]))
    assert sum(view.statistics().bars) == 4
    told = view.panel.tensor
    assert dict(told["facts"])["NaN"] == "1"
    assert dict(told["facts"])["min"] == "-2"
    assert told["ends"] == ["-2", "4"]
    assert view.statistics("conv1.bias").kind == "i"


def test_pieces_together_are_the_whole():
    rng = np.random.default_rng(0)
    whole = rng.normal(3, 2, 10_000).astype(np.float32)
    whole[::7] = np.nan
    parts = np.split(whole, [1, 5, 4_000, 9_999])
    found, truth = statistics_of(lambda: parts), facts_of(whole)
    assert found.facts.mean == pytest.approx(truth.mean, rel=1e-9)
    assert found.facts.std == pytest.approx(truth.std, rel=1e-9)
    assert (found.facts.nan, found.facts.known) == (truth.nan, truth.known)
    assert sum(found.bars) == truth.known


def test_halves_and_huge_numbers_do_not_overflow():
    half = np.full(4_000, 60_000, np.float16)
    assert statistics_of(lambda: [half]).facts.mean == pytest.approx(60_000, rel=1e-3)
    huge = np.array([1e308, -1e308])
    facts = joined(facts_of(huge[:1]), facts_of(huge[1:]))
    assert facts.mean == 0
    assert facts.std == np.inf
    assert sum(statistics_of(lambda: [huge]).bars) == 2


def test_nothing_finite_and_nothing_at_all():
    assert statistics_of(lambda: [np.array([np.nan])]).bars == ()
    assert statistics_of(lambda: [np.zeros(0)]).facts.size == 0


def test_what_cannot_be_read_says_so(tmp_path):
    path = safetensors(tmp_path / "m.safetensors", ["a", "b"], dtype="C64", width=8)
    view = FileView(path)
    view.selected = "a"
    assert "C64" in view.trouble
    assert view.panel.tensor["trouble"] == view.trouble
    with pytest.raises(RecordError):
        view.statistics("b")


def test_a_file_that_changed_is_not_read(file, tmp_path):
    view = FileView(file)
    NamedMpkFileRecorder(FullPrecisionSettings).record({"x": 1}, tmp_path / "model")
    view.selected = "conv1.weight"
    assert "has changed since it was opened" in view.trouble
    assert "has changed" in view.panel.tensor["trouble"]
    assert "has changed" in view.still()
    with pytest.raises(RecordError, match="has changed"):
        view.statistics("conv1.bias")


def test_unknown_names_are_refused(file):
    view = FileView(file)
    with pytest.raises(ConfigError, match="there is no tensor 'conv1'"):
        view.selected = "conv1"
    with pytest.raises(ConfigError, match="no tensor is selected"):
        view.statistics()
    with pytest.raises(ConfigError, match="'graph' cannot be shown"):
        view.showing = "graph"
    with pytest.raises(ConfigError, match="has no graph"):
        view.node = "x"
    with pytest.raises(ConfigError, match="has no graph"):
        _ = view.source


RECORDERS = [
    NamedMpkFileRecorder, NamedMpkGzFileRecorder, PrettyJsonFileRecorder,
    JsonGzFileRecorder, SafetensorsRecorder, BurnpackRecorder,
]  # fmt: skip


@pytest.mark.parametrize("recorder", RECORDERS)
def test_every_format_of_records_is_a_tree(recorder, tmp_path):
    if recorder is BurnpackRecorder:
        pytest.importorskip("cbor2", reason="burnpack needs cbor2")
    tree = {"fc": {"weight": TensorData(WEIGHT), "bias": TensorData([1.0])}}
    view = FileView(recorder(FullPrecisionSettings).record(tree, tmp_path / "model"))
    assert sorted(labels(view)) == ["bias", "fc", "weight"]
    view.selected = "fc.weight"
    assert view.statistics().facts.nan == 1
    assert (view.file.load("fc.weight") == WEIGHT).sum() == 5
    assert "TensorData" not in repr(view)


def test_bincode_has_numbers_instead_of_names(tmp_path):
    from burnbook.backend import Numpy
    from burnbook.nn import LinearConfig

    model = LinearConfig(3, 2).init(Numpy())
    path = model.save_file(tmp_path / "m", BinFileRecorder(FullPrecisionSettings))
    view = FileView(path)
    assert [line["shape"] for line in view.rows()] == ["[3, 2]", "[2]"]
    assert np.array_equal(view.file.load("0"), np.asarray(model.weight.val()))


def test_shards_are_one_tree(tmp_path):
    for name in ("a", "b"):
        safetensors(tmp_path / f"{name}.safetensors", [f"{name}.x", f"{name}.y"])
    view = FileView(tmp_path)
    assert labels(view) == ["a", "x", "y", "b", "x", "y"]
    assert "in 2 files" in dict(view.file_facts())["note"]


def test_files_of_pytorch_are_a_tree(tmp_path):
    torch = pytest.importorskip("torch")
    state = {
        "fc.weight": torch.arange(6.0).view(2, 3).T,
        "half": torch.ones(2).bfloat16(),
    }
    torch.save({"state": state, "epoch": 3, "name": "x"}, tmp_path / "m.pt")
    view = FileView(tmp_path / "m.pt")
    view.selected = "state.fc.weight"
    assert view.statistics().facts.high == 5
    assert view.file.load("state.fc.weight").tolist() == [[0, 3], [1, 4], [2, 5]]
    assert view.file.load("state.half").tolist() == [1, 1]
    assert view.file.others == {"epoch": "3", "name": "a text: 'x'"}
    view.selected = "epoch"
    assert dict(view.tensor_facts())["value"] == "3"


# Size


def test_a_hundred_thousand_tensors_come_in_windows(tmp_path):
    names = [f"l{k // 100}.w{k % 100}.weight" for k in range(100_000)]
    before = state_size()
    view = FileView(safetensors(tmp_path / "many.safetensors", names))
    assert len(view.panel.window["rows"]) <= 120
    view.unfold_all()
    assert view.panel.window["total"] == 101_000
    view._told(None, {"do": "rows", "first": 90_000}, [])
    assert view.panel.window["first"] == 90_000
    assert state_size() - before < 100_000
    view.selected = names[77_777]
    at = view.panel.place
    assert view.rows(at, 1)[0]["label"] == "w77.weight"
    view.find = "l77.w3"
    assert len(labels(view)) == 12
    assert len(view.still()) < 100_000


def test_a_name_of_a_thousand_parts_opens_level_by_level(tmp_path):
    long = ".".join("a" * 1000)
    path = safetensors(tmp_path / "deep.safetensors", [long, f"{long}.b", "c" * 5000])
    view = FileView(path)
    view.unfold_all()
    assert len(view._rows) < 60
    view.selected = f"{long}.b"
    assert len(json.dumps(view.panel.window)) < 20_000
    assert len(view.still()) < 50_000


def test_more_groups_than_a_page_holds_are_refused(tmp_path):
    names = [f"g{k // 2}.w{k % 2}" for k in range(101_000)]
    view = FileView(safetensors(tmp_path / "many.safetensors", names))
    with pytest.raises(ConfigError, match="too many to unfold at once"):
        view.unfold_all()


# Messages of the page


def test_rows_are_clicked_by_their_place(file):
    view = FileView(file)

    def send(what, at):
        message = {"do": what, "at": at, "version": view.panel.window["version"]}
        view.panel._handle_custom_msg(message, [])

    send("choose", 1)
    assert view.selected == "conv1.weight"
    send("choose", 0)
    assert labels(view)[1] == "blocks"
    send("unfold", 0)
    send("unfold", 0)
    send("toggle", 2)
    assert view.selected == "conv1.bias"
    send("fold", 0)
    send("choose", 99)
    send("fold", 1)
    assert labels(view) == ["conv1", "blocks", "step"]


def test_a_click_on_rows_that_are_gone_does_nothing(file):
    view = FileView(file)
    view.panel._handle_custom_msg({"do": "choose", "at": 1, "version": -1}, [])
    assert view.selected == ""


# The graph


@pytest.fixture
def onnx():
    return pytest.importorskip("onnx", reason="the source needs onnx")


def two_layers(onnx, names=("/fc1/Gemm", "/Relu", "/fc2/Gemm")):
    """image -> fc1 -> relu -> fc2 -> scores, as PyTorch writes it."""
    make, tensor = onnx.helper, onnx.numpy_helper.from_array
    rng = np.random.default_rng(0)
    weights = {
        "fc1.weight": rng.normal(size=(4, 3)), "fc1.bias": np.zeros(4),
        "fc2.weight": rng.normal(size=(2, 4)), "fc2.bias": np.zeros(2),
    }  # fmt: skip
    node = make.make_node
    nodes = [
        node("Gemm", ["image", "fc1.weight", "fc1.bias"], ["a"], names[0], transB=1),
        node("Relu", ["a"], ["b"], names[1]),
        node("Gemm", ["b", "fc2.weight", "fc2.bias"], ["scores"], names[2], transB=1),
    ]
    value = make.make_tensor_value_info
    graph = make.make_graph(
        nodes, "net", [value("image", 1, [1, 3])], [value("scores", 1, [1, 2])],
        [tensor(array.astype(np.float32), name) for name, array in weights.items()],
    )  # fmt: skip
    opset = [make.make_opsetid("", 20)]
    return make.make_model(graph, opset_imports=opset, producer_name="tests")


@pytest.fixture
def graph_file(onnx, tmp_path):
    onnx.save(two_layers(onnx), tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def test_the_graph_has_inputs_nodes_and_outputs_in_order(graph_file):
    view = FileView(graph_file)
    assert view.showing == "graph"
    boxes = [(box.kind, box.label) for box in view.graph.boxes]
    assert boxes == [
        ("leaf", "image"), ("op", "Gemm"), ("op", "Relu"), ("op", "Gemm"),
        ("data", "scores"),
    ]  # fmt: skip
    assert view.graph.edges == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert dict(view.file_facts())["opset"] == "ai.onnx 20"
    assert dict(view.file_facts())["producer"] == "tests"
    assert len(view.panel.scene["parts"]) == 5


def test_a_node_shows_the_line_that_it_becomes(graph_file):
    view = FileView(graph_file)
    lines = view.source.splitlines()
    for name, text in {
        "/fc1/Gemm": "self.fc1.forward(image)",
        "/Relu": "ops.relu(",
        "scores": "self.fc2.forward(",
    }.items():
        view.node = name
        first, last = view.line
        assert text in "\n".join(lines[first - 1 : last])
        sent = view.panel.source
        assert (sent["from"], sent["to"]) == view.line
        assert sent["lines"] == lines
    assert view.node == "/fc2/Gemm"
    view.panel._handle_custom_msg({"do": "node", "node": 1}, [])
    assert view.node == "/fc1/Gemm"
    view.node = "image"
    assert "def forward(" in lines[view.line[0] - 1]
    view.node = ""
    assert (view.node, view.line) == ("", None)


def test_shapes_that_follow_from_others_become_known(graph_file):
    view = FileView(graph_file)
    assert view.graph.texts(2)[2] == ""
    view.panel._handle_custom_msg({"do": "shapes"}, [])
    assert view.graph.texts(2)[1:3] == ("Relu", "[1, 4]")
    view.node = "/Relu"
    facts = view.panel.node
    assert ["output", "b  f32 [1, 4]"] in facts
    view.node = "/fc1/Gemm"
    assert ["transB", "1"] in view.panel.node
    assert ["input", "fc1.weight  f32 [4, 3], a constant"] in view.panel.node


def test_nodes_that_are_not_known_say_so_and_the_graph_stays(onnx, tmp_path):
    model = two_layers(onnx)
    model.graph.node[1].op_type = "Reluu"
    onnx.save(model, tmp_path / "odd.onnx")
    view = FileView(tmp_path / "odd.onnx")
    view.node = "/Relu"
    assert "1 operator is not known" in view.panel.source["trouble"]
    assert view.line is None
    assert "not known" in view.still()
    assert ["operator", "Reluu (ai.onnx)"] in view.panel.node


def test_without_onnx_the_graph_is_there_and_the_source_says_why_not(
    graph_file, monkeypatch
):
    load = sys.modules["burnbook.importers.onnx.load"]  # the package has a function so
    monkeypatch.setattr(load, "find_spec", lambda _: None)
    view = FileView(graph_file)
    view.selected = "fc1.weight"
    assert view.statistics().facts.size == 12
    view.node = "/Relu"
    assert "pip install onnx" in view.panel.source["trouble"]


def test_groups_of_nodes_open_and_close(onnx, tmp_path):
    make = onnx.helper
    nodes = [
        make.make_node(
            "Relu", [f"x{k}"], [f"x{k + 1}"], f"/blocks.{k // 5}/act{k % 5}/Relu"
        )
        for k in range(100)
    ]
    value = make.make_tensor_value_info
    graph = make.make_graph(
        nodes, "net", [value("x0", 1, [1])], [value("x100", 1, [1])]
    )
    onnx.save(make.make_model(graph), tmp_path / "deep.onnx")
    view = FileView(tmp_path / "deep.onnx")
    assert "blocks.3" in view.groups
    assert len(view.graph.shown) < 60
    view.unfold_nodes("blocks.3")
    assert "blocks.3" in view.panel.scene["open"]
    view.fold_nodes()
    assert view.panel.scene["open"] == []
    view.node = "/blocks.7/act2/Relu"
    assert "blocks.7" in view.panel.scene["open"]
    assert view.panel.chosen == view.graph.place_of[view._node]
    view.unfold_nodes()
    assert len(view.graph.shown) == 102
    with pytest.raises(ConfigError, match=r"there is no group 'blocks\.99'"):
        view.fold_nodes("blocks.99")


def test_nodes_of_inner_graphs_stand_before_the_node_around_them(onnx, tmp_path):
    make = onnx.helper
    value = make.make_tensor_value_info
    out = [value("y", 1, [2])]
    branches = [
        make.make_graph([make.make_node(op, ["x"], ["y"], op)], op, [], out)
        for op in ("Relu", "Neg")
    ]
    node = make.make_node("If", ["c"], ["z"], "choice")
    node.attribute.append(make.make_attribute("then_branch", branches[0]))
    node.attribute.append(make.make_attribute("else_branch", branches[1]))
    inputs = [value("c", onnx.TensorProto.BOOL, []), value("x", 1, [2])]
    graph = make.make_graph([node], "net", inputs, [value("z", 1, [2])])
    opset = [make.make_opsetid("", 20)]
    onnx.save(make.make_model(graph, opset_imports=opset), tmp_path / "if.onnx")
    view = FileView(tmp_path / "if.onnx")
    ops = [box.label for box in view.graph.boxes if box.kind == "op"]
    assert ops == ["Relu", "Neg", "If"]
    view.node = "choice"
    first, last = view.line
    meant = "\n".join(view.source.splitlines()[first - 1 : last])
    assert "def if_then_branch" in meant
    assert "ops.if_(" in meant
    view.node = "Neg"
    assert "inside" in dict(view.panel.node)
    lines = view.source.splitlines()
    assert "neg" in lines[view.line[0] - 1].lower()


def test_a_graph_out_of_order_is_drawn_and_read_as_in_order(onnx, tmp_path, graph_file):
    model = two_layers(onnx)
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(reversed(nodes))
    (tmp_path / "back.onnx").write_bytes(model.SerializeToString())
    view = FileView(tmp_path / "back.onnx")
    assert all(a < b for a, b in view.graph.lines)
    named = FileView(graph_file).source.replace("net.onnx", "back.onnx")
    assert view.source == named
    view.node = "/Relu"
    first, last = view.line
    assert "ops.relu(" in "\n".join(view.source.splitlines()[first - 1 : last])


def test_a_graph_in_a_circle_is_drawn_and_says_why_it_has_no_source(onnx, tmp_path):
    model = two_layers(onnx)
    model.graph.node[0].input[0] = "b"  # of the Relu that waits for it
    (tmp_path / "ring.onnx").write_bytes(model.SerializeToString())
    view = FileView(tmp_path / "ring.onnx")
    assert all(a < b for a, b in view.graph.lines)
    view.node = "/Relu"
    assert "a cycle" in view.panel.source["trouble"]


# Still


def test_the_still_form_is_complete(file):
    view = FileView(file)
    view.selected = "conv1.weight"
    html = view.still()
    for text in ("▾ <bdi>conv1", "[2, 3]", "histogram from -2 to 4", "NaN", "0.75"):
        assert text in html
    assert "<script" not in html
    assert FileView(file).still() != html
    again = FileView(file)
    again.selected = "conv1.weight"
    assert again.still() == html


def test_the_still_form_of_a_graph_shows_the_line(graph_file):
    view = FileView(graph_file)
    view.node = "/Relu"
    html = view.still()
    assert "<svg" in html
    assert "▶         b = ops.relu(fc1)" in html
    assert "Nodes in order" in html
    view.selected = "fc1.weight"
    assert "histogram" in view.still()


def test_static_pages_get_no_widget(static, file):
    view = FileView(file)
    view.selected = "conv1.weight"
    view.find = "bias"
    view.fold_all()
    assert set(view.bundle()) == {"text/html", "text/plain"}
    assert repr(view) == "FileView(model.mpk: NamedMpkFileRecorder, 4 tensors, 44 B)"


def test_close_frees_every_widget(graph_file, same_widgets):
    before = widget_count()
    view = FileView(graph_file)
    assert widget_count() > before
    view.close()
    view.node = "/Relu"  # a closed view still answers
    view.selected = "fc1.bias"
    assert view.line is not None


def test_a_fault_is_a_line_in_the_view(file):
    view = FileView(file)
    view.panel._handle_custom_msg({"do": "node", "node": 3}, [])
    assert view.panel.fault == "FileView: model.mpk has no graph · try: an .onnx file"
    view.panel._handle_custom_msg({"do": "rows", "first": 0}, [])
    assert view.panel.fault == ""


def test_what_is_no_file_of_weights_is_refused(tmp_path):
    (tmp_path / "x.txt").write_text("x")
    for name in ("x.txt", "none.pt", "none.onnx", "none.mpk", ""):
        with pytest.raises(RecordError):
            FileView(tmp_path / name)
    (tmp_path / "bad.onnx").write_bytes(b"not onnx")
    with pytest.raises(RecordError, match="no ONNX file"):
        FileView(tmp_path / "bad.onnx")


def test_hostile_names_are_shown_as_they_can_be_seen(tmp_path):
    names = ["<img src=x onerror=hit()>", "a\u202eb.c", "x" * 3000, "line\nbreak"]
    view = FileView(safetensors(tmp_path / "m.safetensors", names))
    for name in names:
        view.selected = name
        html = view.still()
        assert "<img" not in html
        assert "\u202e" not in html + json.dumps(view.panel.window, ensure_ascii=False)
    assert SimpleNamespace(**view.panel.window).total == 4
