"""The Module chapter of the book: its snippets run, every row of its tables is here."""

import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.module import DisplaySettings, Module, ModuleMapper, Param
from burnbook.tensor import Tensor
from burnbook.tensor.activation import gelu

ROOT = Path(__file__).resolve().parents[2]
PLAIN = Numpy()
AD = Autodiff(Numpy())


@cache
def chapter():
    """The rows of the chapter's tables, with the issue that is still to do each."""
    ledger = tomllib.loads((ROOT / "tests/book/ledger.toml").read_text("utf-8"))
    section = next(part for part in ledger["section"] if part["id"] == "module")
    rows = [entry for entry in section["entries"] if entry["kind"] == "row"]
    return {entry["id"]: entry.get("issue") for entry in rows}


def methods():
    return [row for row in chapter() if not row.startswith("nn-")]


def layers():
    return [row for row in chapter() if row.startswith("nn-")]


@pytest.mark.parametrize("row", methods())
def test_every_method_of_the_table_is_there(row):
    found = getattr(Module, row)
    assert callable(found)
    assert found.__doc__


NEWER = (
    "freeze_group",
    "unfreeze_group",
    "apply_lora",
    "apply_qlora",
    "apply_reparameterization",
    "train",
    "collect_devices",
)


@pytest.mark.parametrize("name", NEWER)
def test_what_newer_burn_adds_is_there_too(name):
    assert callable(getattr(Module, name))


def test_the_tables_were_read():
    assert {"devices", "fork", "valid"} <= set(methods())
    wanted = {"nn-linear", "nn-conv2d", "nn-cross-entropy", "nn-rotary-encoding"}
    assert wanted <= set(layers())
    assert len(chapter()) == 52


@pytest.mark.parametrize("row", layers())
def test_every_built_in_module_of_the_table_is_there(row):
    """By its name, and with a config that makes it."""
    known = {name.lower(): name for name in nn.__all__}
    word = row.removeprefix("nn-").replace("-", "")
    name = known.get(word) or known.get(f"{word}loss")
    if name is None and chapter()[row] is not None:
        pytest.skip(f"planned: issue {chapter()[row]}")
    assert name, f"nn has no {row}"
    assert issubclass(getattr(nn, name), Module)


class PositionWiseFeedForward(Module):
    """The first snippet of the chapter."""

    linear_inner: nn.Linear
    linear_outer: nn.Linear
    dropout: nn.Dropout

    def forward(self, input):  # noqa: A002
        x = self.linear_inner.forward(input)
        x = gelu(x)
        x = self.dropout.forward(x)
        return self.linear_outer.forward(x)


def feed_forward(device=PLAIN):
    return PositionWiseFeedForward(
        nn.LinearConfig(4, 8).init(device),
        nn.LinearConfig(8, 4).init(device),
        nn.DropoutConfig(0.1).init(),
    )


def test_the_first_snippet_runs_and_prints():
    block = feed_forward()
    assert block.forward(Tensor.ones([2, 3, 4], PLAIN)).dims() == (2, 3, 4)
    assert str(block) == (
        "PositionWiseFeedForward {\n"
        "  linear_inner: Linear {d_input: 4, d_output: 8, bias: true, params: 40}\n"
        "  linear_outer: Linear {d_input: 8, d_output: 4, bias: true, params: 36}\n"
        "  dropout: Dropout {prob: 0.1}\n"
        "  params: 76\n"
        "}"
    )


class Three(Module):
    learned: Param
    kept: Param
    constant: Tensor


def test_a_tensor_is_learned_or_kept_or_constant():
    ones = Tensor.ones([2], AD)
    kept = Param.from_tensor(ones).set_require_grad(False)
    module = Three(Param.from_tensor(ones), kept, ones)
    out = (module.learned.val() + module.kept.val() + module.constant).sum()
    grads = out.backward()
    assert module.learned.val().grad(grads) is not None
    assert module.kept.val().grad(grads) is None
    record = module.into_record()
    assert record["constant"] is None
    assert record["kept"].param.shape == (2,)
    assert module.num_params() == 4


class Clamp(ModuleMapper):
    """A mapper for training: what is clamped is learned again."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def map_float(self, key, tensor):
        clamped = tensor.set_require_grad(False).clamp(self.low, self.high)
        return clamped.set_require_grad(tensor.is_require_grad())


def test_a_mapper_keeps_parameters_in_a_range():
    block = feed_forward(AD)
    made = block.map(Clamp(-0.1, 0.1))
    for (_, old), (_, new) in zip(
        block.named_params(), made.named_params(), strict=True
    ):
        assert np.array_equal(new.val(), np.clip(np.asarray(old.val()), -0.1, 0.1))
        assert new.val().is_require_grad()
        assert new.id == old.id


def test_each_option_of_the_display_has_its_effect():
    layer = nn.LinearConfig(2, 3).with_bias(False).init(PLAIN)
    plain = "Linear {d_input: 2, d_output: 3, bias: false, params: 6}"
    assert str(layer) == plain
    some = DisplaySettings().with_show_num_parameters(False)
    assert layer.format(some) == plain.replace(", params: 6", "")
    every = DisplaySettings().with_show_all_attributes(True)
    weight = "weight: ParamTensor {rank: 2, shape: [2, 3], kind: float"
    assert layer.format(every) == f"Linear {{{weight}}}, bias: None, params: 6}}"
    named = every.with_show_param_id(True)
    name = f", id: {layer.weight.id}"
    assert layer.format(named) == f"Linear {{{weight}{name}}}, bias: None, params: 6}}"
    many = DisplaySettings().with_new_line_after_attribute(True)
    lines = ["Linear {", "d_input: 2", "d_output: 3", "bias: false", "params: 6"]
    for size in (2, 4):
        wanted = ("\n" + " " * size).join(lines) + "\n}"
        assert layer.format(many.with_indentation_size(size)) == wanted
