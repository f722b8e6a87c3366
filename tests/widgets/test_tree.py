"""The module tree without a browser: its nodes, controls, freezing, still form."""

from __future__ import annotations

import pytest

pytest.importorskip("anywidget", reason="the widgets need anywidget")

from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ConfigError, ShapeError
from burnbook.examples.guide.model import ModelConfig
from burnbook.module import Lora, Module, Param, summary
from burnbook.nn import Linear, LinearConfig, LstmConfig
from burnbook.tensor import Tensor
from burnbook_widgets import ModuleTree
from tests.support.widget_state import state_size, widget_count

AD = Autodiff(Numpy())
LAYERS = [
    "", "conv1", "conv2", "pool", "dropout", "linear1", "linear2", "activation",
]  # fmt: skip


class Deep(Module):
    layers: list[Linear]
    head: Linear

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return self.head.forward(x)


def deep(count=3, width=4):
    config = LinearConfig(width, width)
    return Deep([config.init(AD) for _ in range(count)], config.init(AD))


def guide(*inputs):
    return ModuleTree(ModelConfig(10, 512).init(AD), *inputs)


def paths(tree):
    return [line["path"] for line in tree.panel.rows]


def learned(module):
    return {name for name, param in module.named_params() if param.is_require_grad}


def test_the_tree_starts_with_the_layers_and_their_numbers():
    tree = guide([1, 28, 28])
    assert paths(tree) == LAYERS
    lines = {line["path"]: line for line in tree.panel.rows}
    assert lines[""]["params"] == "531,178"
    assert lines[""]["flops"] == "2,517,354"
    assert lines["linear1"]["memory"] == "2.1 MB"
    assert lines["linear1"]["share"] == pytest.approx(524_800 / 531_178, abs=1e-4)
    assert lines["conv1"]["output"] == "[1, 8, 26, 26]"
    assert (lines["conv1"]["open"], lines["pool"]["open"]) == (False, None)
    assert (lines["conv2"]["place"], lines["conv2"]["of"]) == (2, 7)
    found = summary(tree.module, [1, 28, 28])
    for line in lines.values():
        assert line["flops"] == f"{found[line['path']].flops:,}"
    assert repr(tree) == "ModuleTree(Model; 531,178 parameters, learns)"


def test_without_inputs_there_are_no_flops():
    tree = guide()
    assert {line["flops"] for line in tree.panel.rows} == {""}
    assert "FLOPs" not in tree.still()
    assert tree.panel.head["ran"] is False


def test_folding_by_twin_and_by_message():
    tree = guide()
    tree.unfold("conv1")
    assert paths(tree)[1:4] == ["conv1", "conv1.weight", "conv1.bias"]
    line = tree.panel.rows[2]
    found = (line["label"], line["type"], line["output"])
    assert found == ("weight", "Float", "[8, 1, 3, 3]")
    tree.chosen = "conv1.bias"
    tree._told(None, {"do": "fold", "path": "conv1"}, [])
    assert paths(tree) == LAYERS
    assert tree.chosen == "conv1"
    tree._told(None, {"do": "unfold", "path": "linear2"}, [])
    assert paths(tree)[-3:] == ["linear2.weight", "linear2.bias", "activation"]
    tree.unfold_control.click()
    assert len(paths(tree)) == len(LAYERS) + 8
    tree.fold_control.click()
    assert paths(tree) == LAYERS
    tree.fold("")
    assert paths(tree) == [""]
    tree.chosen = "conv2.weight"  # what is chosen is to be seen
    assert "conv2.weight" in paths(tree)


def test_lists_of_layers_are_named_by_their_place():
    tree = ModuleTree(deep(), [2, 4])
    assert paths(tree) == ["", "layers.0", "layers.1", "layers.2", "head"]
    tree.unfold("layers.1")
    line = tree.panel.rows[3]
    assert (line["path"], line["label"], line["level"]) == (
        "layers.1.weight", "weight", 3,
    )  # fmt: skip


def test_freezing_gives_a_new_module_and_leaves_the_old_one():
    model = ModelConfig(10, 32).init(AD)
    tree = ModuleTree(model)
    every = learned(model)
    frozen = tree.freeze("conv1")
    assert frozen is tree.module
    assert learned(frozen) == every - {"conv1.weight", "conv1.bias"}
    assert learned(model) == every
    states = {line["path"]: line["state"] for line in tree.panel.rows}
    assert (states[""], states["conv1"], states["conv2"]) == (
        "partly", "frozen", "learns",
    )  # fmt: skip
    assert "80 frozen" in tree.panel.head["summary"]
    tree.unfreeze("conv1.bias")
    assert learned(tree.module) == every - {"conv1.weight"}
    tree.freeze("")
    assert learned(tree.module) == set()
    tree.unfreeze("")
    assert learned(tree.module) == every
    tree.close()


def test_a_frozen_part_gets_no_gradient():
    tree = ModuleTree(deep())
    module = tree.freeze("head")
    grads = module.forward(Tensor.ones([2, 4], AD)).sum().backward()
    assert module.head.weight.val().grad(grads) is None
    assert module.layers[0].weight.val().grad(grads) is not None
    assert learned(tree.freeze("layers")) == set()  # a list of layers at once


def test_buttons_act_on_what_is_chosen():
    tree = guide()
    tree._told(None, {"do": "choose", "path": "conv2"}, [])
    assert tree.unfreeze_control.disabled
    tree.freeze_control.click()
    assert "conv2.weight" not in learned(tree.module)
    assert tree.freeze_control.disabled
    assert tree.panel.said == "conv2 is frozen"
    tree.unfreeze_control.click()
    assert "conv2.weight" in learned(tree.module)
    tree._told(None, {"do": "freeze", "path": "conv2"}, [])  # the key F goes both ways
    assert "conv2.weight" not in learned(tree.module)
    tree._told(None, {"do": "freeze", "path": "conv2"}, [])
    assert "conv2.weight" in learned(tree.module)
    tree.chosen = "pool"
    assert tree.freeze_control.disabled
    assert tree.unfreeze_control.disabled


def test_faults_are_a_line_in_the_view():
    tree = guide()
    tree.panel._handle_custom_msg({"do": "freeze", "path": "pool"}, [])
    assert tree.panel.fault == "ModuleTree: pool has nothing to learn"
    tree.panel._handle_custom_msg({"do": "choose", "path": "pol"}, [])
    assert tree.panel.fault == "ModuleTree: there is no part 'pol'"
    tree.panel._handle_custom_msg({"do": "choose", "path": "pool"}, [])
    assert tree.panel.fault == ""
    with pytest.raises(ConfigError, match="there is no part 'pol'"):
        tree.freeze("pol")
    with pytest.raises(ShapeError):
        guide([1, 2, 2])


def test_find_shows_what_matches_with_the_layers_around_it():
    tree = guide()
    tree.find_control.value = "BIAS"
    assert paths(tree)[:3] == ["", "conv1", "conv1.bias"]
    assert "pool" not in paths(tree)
    assert tree.panel.said == "4 found"
    tree.find = ""
    assert tree.find_control.value == ""
    assert paths(tree) == LAYERS


def test_the_facts_of_the_chosen_part():
    tree = guide([1, 28, 28])
    tree.chosen = "conv1"
    assert dict(tree.panel.facts) == {
        "path": "conv1",
        "type": "Conv2d",
        "parameters": "80",
        "memory": "320 B",
        "input": "[1, 1, 28, 28]",
        "output": "[1, 8, 26, 26]",
        "output memory": "21.6 kB",
        "FLOPs": "102,752",
    }
    tree.chosen = "dropout"
    assert dict(tree.panel.facts)["calls"] == "3"


def test_tied_attached_and_fused_parameters():
    shared = Param.from_tensor(Tensor.ones([3, 3], AD))

    class Tied(Module):
        one: Param
        two: Param

    tree = ModuleTree(Tied(shared, shared))
    assert tree.panel.rows[0]["params"] == "9"
    tree.freeze("one")
    assert learned(tree.module) == set()

    tree = ModuleTree(deep(1).apply_lora(Lora(rank=2, alpha=2)))
    tree.unfold_all()
    found = [path for path in paths(tree) if "lora" in path]
    assert found
    assert tree.panel.rows[0]["state"] == "partly"

    tree = ModuleTree(LstmConfig(3, 4, bias=True).init(AD), [1, 5, 3])
    fused = [n for n in tree._nodes.values() if n.ran is not None and n.ran.fused]
    assert fused
    tree.chosen = fused[0].path
    assert "used its parameters" in dict(tree.panel.facts)["forward"]


def test_a_module_of_thousands_of_layers_stays_small():
    before = state_size()
    tree = ModuleTree(deep(1500))
    assert tree.panel.head["more"] == 1502 - 200
    tree.unfold_all()
    assert len(paths(tree)) == 200
    assert state_size() - before < 100_000
    assert "and 4,404 more" in tree.still()
    assert len(tree.still()) < 60_000
    tree.find = "layers.77."
    assert paths(tree)[1:] == ["layers.77", "layers.77.weight", "layers.77.bias"]


def test_the_still_form_shows_the_tree_as_it_is_folded():
    tree = guide([1, 28, 28])
    html = tree.still()
    for text in ("▸ conv1", "· pool", "● learns", "2,517,354", "[1, 8, 26, 26]"):
        assert text in html
    assert "conv1.weight" not in html
    tree.freeze("conv1")
    assert "○ frozen" in tree.still()
    assert "◐ partly" in tree.still()
    assert "<script" not in html
    assert guide([1, 28, 28]).still() == html


def test_static_pages_get_no_widget(static):
    tree = guide([1, 28, 28])
    tree.freeze("conv1")
    tree.chosen = "conv2"
    assert set(tree.bundle()) == {"text/html", "text/plain"}
    assert repr(tree) == "ModuleTree(Model; 531,178 parameters, partly)"


def test_close_frees_every_widget(same_widgets):
    before = widget_count()
    tree = guide()
    assert widget_count() > before
    tree.close()
    tree.freeze("conv1")  # a closed view still answers
    assert "conv1.weight" not in learned(tree.module)
