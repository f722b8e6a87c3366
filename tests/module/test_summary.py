"""The summary of a model: shapes, parameters and FLOPs, layer by layer."""

import json
import re

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ArgumentError, ShapeError
from burnbook.core.op import OPS, draw, split_sample
from burnbook.examples.guide.model import ModelConfig
from burnbook.module import DisplaySettings, Lora, Module, Param, flops, summary
from burnbook.nn.check import check_module
from burnbook.tensor import Tensor
from tests.support.refusals import refused

PLAIN = Numpy()
AD = Autodiff(Numpy())

TABLE = """\
layer         type               input            output            params      FLOPs
─────────────────────────────────────────────────────────────────────────────────────
Model         Model              [1, 28, 28]      [1, 10]          531,178  2,517,354
  conv1       Conv2d             [1, 1, 28, 28]   [1, 8, 26, 26]        80    102,752
  conv2       Conv2d             [1, 8, 26, 26]   [1, 16, 24, 24]    1,168  1,336,320
  pool        AdaptiveAvgPool2d  [1, 16, 24, 24]  [1, 16, 8, 8]          0      9,216
  dropout     Dropout × 3        [1, 8, 26, 26]   [1, 8, 26, 26]         0          0
  linear1     Linear             [1, 1024]        [1, 512]         524,800  1,049,088
  linear2     Linear             [1, 512]         [1, 10]            5,130     10,250
  activation  Relu × 2           [1, 16, 24, 24]  [1, 16, 24, 24]        0      9,728
─────────────────────────────────────────────────────────────────────────────────────
parameters: 531,178 (2.1 MB)
FLOPs of one forward pass: 2,517,354"""


@pytest.mark.parametrize("device", [PLAIN, AD], ids=repr)
def test_the_summary_of_the_guides_model(device):
    model = ModelConfig(10, 512).init(device)
    assert str(summary(model, [1, 28, 28])) == TABLE
    assert repr(summary(model, (1, 28, 28))) == TABLE


def test_the_model_is_not_changed():
    model = ModelConfig(10, 32).init(AD)
    before = {name: dict(vars(getattr(model, name))) for name in vars(model)}
    AD.seed(1)
    key = AD.next_key()
    AD.seed(1)
    summary(model, [2, 28, 28])
    assert AD.next_key() == key
    for name, held in before.items():
        assert vars(getattr(model, name)) == held


class Block(Module):
    layers: list[nn.Linear]
    again: nn.Linear
    idle: nn.Linear

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.again.forward(self.again.forward(x)) + x

    def forward_twice(self, x):
        return self.forward(self.forward(x))


class Net(Module):
    block: Block
    scale: Param

    def forward(self, x):
        return self.block.forward(x) * self.scale.val()


def net(device=PLAIN):
    def linear():
        return nn.LinearConfig(4, 4).with_bias(False).init(device)

    block = Block([linear(), linear()], linear(), linear())
    return Net(block, Param.from_tensor(Tensor.ones([1, 4], device)))


def test_a_layer_counts_what_is_in_it_and_how_often_it_ran():
    found = summary(net(), [3, 4])
    product = 2 * 3 * 4 * 4
    assert [row.path for row in found.rows] == [
        "",
        "block",
        "block.layers.0",
        "block.layers.1",
        "block.again",
        "block.idle",
    ]
    assert found["block.layers.0"].flops == product
    assert found["block.again"].flops == 2 * product
    assert found["block.again"].calls == 2
    assert (found["block.idle"].calls, found["block.idle"].params) == (0, 16)
    assert found["block.idle"].inputs is None
    assert found["block"].flops == 4 * product + 12
    assert found.flops == found["block"].flops + 12
    assert found.params == 4 * 16 + 4
    text = str(found)
    assert re.search(r"\n    layers\.1 +Linear +\[3, 4\] +\[3, 4\] +16 +96\n", text)
    assert re.search(r"\n    again +Linear × 2 ", text)
    assert re.search(r"\n    idle +Linear +– +– +16  not run\n", text)


def test_one_method_that_calls_another_is_one_layer():
    found = summary(net().block, [3, 4], method="forward_twice")
    assert found.rows[0].calls == 1
    assert found.flops == 2 * (4 * 96 + 12)


def test_a_table_of_the_first_levels():
    found = summary(net(), [3, 4], depth=1)
    lines = str(found).splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["Net", "block"]
    assert lines[4].startswith("─")
    assert len(found.rows) == 6


def test_parameters_that_the_layer_above_uses_are_not_idle():
    found = summary(nn.LstmConfig(3, 4, True).init(PLAIN), [2, 5, 3])
    gate = found["input_gate"]
    assert gate.fused
    assert not gate.calls
    assert re.search(r"\n  input_gate +GateController +– +– +36 +above\n", str(found))
    assert re.search(r"\n  gate_activation +Sigmoid +– +– +0 +–\n", str(found))
    products = 2 * 10 * (3 * 16 + 4 * 16)
    assert products < found.flops < 1.25 * products
    assert not summary(net(), [1, 4])["block.idle"].fused


def test_tied_weights_are_one_parameter():
    layer = nn.LinearConfig(4, 4).init(PLAIN)
    found = summary(Block([layer, layer], layer, layer), [1, 4])
    assert found.params == 20
    assert found.param_bytes == 80


def test_frozen_parameters_are_told_apart():
    model = net(AD)
    model = model.replace(block=model.block.no_grad())
    found = summary(model, [1, 4])
    assert (found.params, found.trainable) == (68, 4)
    assert "parameters: 68, 64 of them frozen (272 B)" in str(found)


def test_an_adapter_counts_its_parameters_and_no_operations():
    model = net(AD).apply_lora(Lora(2, 1.0))
    found = summary(model, [1, 4])
    assert found["block.again"].params == 16 + 2 * 8
    assert found["block.again"].trainable == 16
    assert found["block.again"].flops == 2 * 32


class Wanted:
    """An input that holds tensors, as that of attention does."""

    def __init__(self, query, note):
        self.query, self.note = query, note


class Picks(Module):
    table: Param

    def forward(self, indices, wanted, flag=False):
        rows = self.table.val().select(0, indices)
        return {"rows": rows @ wanted.query, "pair": (rows, [indices]), "flag": flag}


def test_inputs_and_outputs_of_any_kind():
    model = Picks(Param.from_tensor(Tensor.ones([5, 2], AD)))
    wanted = Wanted(Tensor.ones([2, 3], AD), "a note")
    found = summary(model, Tensor.from_ints([1, 2, 4], AD), wanted, True)
    row = found.rows[0]
    assert row.inputs == [[3], {"query": [2, 3]}, None]
    assert row.outputs["rows"] == [3, 3]
    assert row.outputs["pair"] == ([3, 2], ([3],))
    assert found.flops == 2 * 3 * 2 * 3
    assert "[3], query [2, 3]" in str(found)
    assert "rows [3, 3], pair [3, 2], [3]" in str(found)
    assert wanted.query.device() is AD


def test_the_data_is_plain():
    found = summary(net(), [3, 4])
    data = json.loads(json.dumps(found.to_dict()))
    assert data["flops"] == found.flops
    assert data["layers"][2] == {
        "path": "block.layers.0",
        "type": "Linear",
        "depth": 2,
        "inputs": [[3, 4]],
        "outputs": [3, 4],
        "params": 16,
        "trainable": 16,
        "statistics": 0,
        "flops": 96,
        "calls": 1,
        "fused": False,
    }


def test_the_page_shows_the_same_table():
    class Odd(Module):
        def forward(self, x):
            return x

    found = summary(net(), [3, 4])
    page = found._repr_html_()
    assert page.count("<tr>") == 1 + len(found.rows)
    cells = re.findall(r"<td style='text-align:(left|right)'>([^<]*)</td>", page)
    assert ("left", "&emsp;&emsp;again") in cells
    assert ("right", "192") in cells
    assert "FLOPs of one forward pass: 408" in page
    assert page == summary(net(), [3, 4])._repr_html_()


def test_an_input_that_does_not_fit_is_explained_with_the_layer():
    where = "Net.block.layers.0: linear: 5 ≠ 4"
    refused(ShapeError, lambda: summary(net(), [3, 5]), where)


@pytest.mark.parametrize(
    ("layer", "x", "wanted"),
    [
        (nn.LinearConfig(5, 3), [2, 7, 5], 2 * 7 * 3 * (2 * 5 + 1)),
        (nn.Conv1dConfig(4, 6, 3).with_groups(2), [1, 4, 9], 6 * 7 * (2 * 2 * 3 + 1)),
        (nn.Conv2dConfig([2, 3], [3, 2]), [2, 2, 5, 5], 2 * 3 * 3 * 4 * (2 * 12 + 1)),
        (
            nn.ConvTranspose2dConfig([2, 3], [2, 2]).with_stride([2, 2]),
            [1, 2, 4, 4],
            2 * (2 * 16) * (3 * 4) + 3 * 64,
        ),
        (nn.LayerNormConfig(6), [3, 6], 7 * 18),
    ],
    ids=lambda v: type(v).__name__ if not isinstance(v, list | int) else str(v),
)
def test_flops_are_what_the_formula_asks_for(layer, x, wanted):
    assert summary(layer.init(PLAIN), x).flops == wanted


def test_pooling_looks_at_every_window():
    pool = nn.AvgPool2dConfig([3, 2]).init()
    found = summary(pool, Tensor.ones([1, 2, 6, 6], PLAIN))
    assert found.flops == 2 * 4 * 5 * 6


def loops(name, arrays):
    """How many products and sums the loops of a product take."""
    if name == "matmul":
        (*rest, m, k), n = arrays[0].shape, arrays[1].shape[-1]
        return sum(2 for _ in np.ndindex(*rest, m, n, k))
    x, weight, bias = arrays
    rows = x.size // x.shape[-1]
    return sum(2 for _ in np.ndindex(rows, *weight.shape)) + rows * bias.size


@pytest.mark.parametrize("name", ["matmul", "linear"])
def test_products_count_two_for_every_step_of_their_loops(name):
    op = OPS[name]
    specs, attrs = split_sample(op.samples[0])
    arrays = [draw(spec, np.random.default_rng(0)) for spec in specs]
    out = op.forward(np, *arrays, **attrs)
    shapes = [a.shape for a in arrays]
    assert flops.flops(name, shapes, out.shape) == loops(name, arrays)


def test_attention_counts_scores_weights_and_values():
    shapes = [(2, 4, 5, 8), (2, 4, 7, 8), (2, 4, 7, 6)]
    scores, values = 2 * 8, 2 * 6
    wanted = 8 * 5 * 7 * (scores + values + 3)
    assert flops.flops("attention", shapes, (2, 4, 5, 6)) == wanted


def test_recurrent_layers_count_both_products_of_every_step():
    shapes = [(2, 10, 3), (3, 16), (4, 16), (16,)]
    wanted = 2 * 20 * (48 + 64) + 9 * 2 * 10 * 4
    assert flops.flops("lstm", shapes, (2, 10, 4)) == wanted


def test_every_name_of_the_tables_is_an_op():
    names = {*flops.MOVES, *flops.REDUCTIONS, *flops.PASSES, *flops.WINDOWS}
    assert names | set(flops.GATES) | set(flops.PRODUCTS) <= set(OPS)


def test_counts_tell_what_is_learned_from_statistics_and_count_tied_once():
    class Tied(Module):
        first: nn.Linear
        again: nn.Linear
        norm: nn.BatchNorm
        last: nn.Linear

        def forward(self, x):
            return self.last(self.norm(self.again(self.first(x))))

    device = Autodiff(Numpy(compiled=False))
    shared = nn.LinearConfig(4, 4).init(device)
    last = nn.LinearConfig(4, 2).init(device).no_grad()
    model = Tied(shared, shared, nn.BatchNormConfig(4).init(device), last)
    learned, frozen, statistics = 20 + 8, 10, 8
    assert model.num_trainable_params() == learned
    assert model.num_frozen_params() == frozen
    assert model.num_statistics() == statistics
    assert model.num_params() == learned + frozen + statistics
    found = summary(model, [3, 4])
    assert (found.trainable, found.statistics) == (learned, statistics)
    assert found["norm"].statistics == 8
    assert found.to_dict()["statistics"] == statistics
    assert "parameters: 46, 10 of them frozen, 8 running statistics" in str(found)
    text = model.format(DisplaySettings().with_show_param_kinds(True))
    assert "  trainable: 28\n  frozen: 10\n  statistics: 8\n  params: 46\n" in text
    assert "epsilon: 0.00001, trainable: 8, statistics: 8, params: 16}" in text
    assert "trainable" not in str(model)
    for made in (model.eval(), model.valid().train()):
        assert made.num_statistics() == statistics
        assert made.num_trainable_params() == learned


class Product(Module):
    first: nn.Linear

    def forward(self, x: Tensor, graph: Tensor, scale: float = 1.0) -> Tensor:
        return graph.matmul(self.first.forward(x)) * scale


@pytest.mark.parametrize(
    ("inputs", "what"),
    [
        ([[4, 3]], "no input for graph of forward"),
        ([], "no input for x, graph of forward"),
        ([[4, 3], [4, 4], 2.0, 1.0], "forward takes 3 arguments, 4 are given"),
    ],
)
def test_a_missing_input_is_named(inputs, what):
    model = Product(nn.LinearConfig(3, 2).init(PLAIN))
    with pytest.raises(ArgumentError, match=what) as caught:
        summary(model, *inputs)
    assert caught.value.cure == "one shape or tensor for each argument"
    with pytest.raises(ArgumentError, match=what) as caught:
        check_module(model, *inputs)
    assert caught.value.cure == "one shape, tensor or function for each argument"
    assert summary(model, [4, 3], [4, 4])["first"].outputs == [4, 2]
    assert check_module(model, [4, 3], [4, 4]).passed
    two = check_module(model, [4, 3], forward=lambda m, x: m.first.forward(x))
    assert two.passed
