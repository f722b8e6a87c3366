"""Records of modules: what is in them, and what loading one does."""

from typing import Annotated

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.core.errors import RecordError
from burnbook.module import Module, ParamId, ParamRecord, list_param_ids
from burnbook.nn import LayerNorm, LayerNormConfig, Linear, LinearConfig, Relu
from burnbook.record import BinBytesRecorder, NamedMpkBytesRecorder
from burnbook.tensor import TensorData
from tests.support.modules import (
    AD,
    PLAIN,
    block,
    guide,
    mixed,
    net,
    same_values,
    values,
)
from tests.support.refusals import refused


def test_a_union_of_modules_is_recorded_as_an_enum():
    record = block(dws=False).into_record()
    assert list(record) == ["conv", "norm"]
    assert list(record["conv"]) == ["Conv2d"]
    made = block(dws=False).load_record(record)
    assert list_param_ids(made) == list_param_ids(made.load_record(record))
    fact = "conv  record Conv2d, module DwsConv"
    load = block(dws=True).load_record
    refused(RecordError, lambda: load(record), "load into Block: ", fact)


class Nested(Module):
    first: Annotated[Linear | LayerNorm, "Plain"] | Annotated[Relu, "Act"]
    second: Annotated[Linear | LayerNorm, "Plain"] | Annotated[Relu, "Act"] | None


def nested(first, second=None):
    return Nested(first, second)


@pytest.mark.parametrize("recorder", [BinBytesRecorder(), NamedMpkBytesRecorder()])
def test_a_union_in_a_union_is_an_enum_in_an_enum(recorder):
    linear = LinearConfig(2, 3).init(PLAIN)
    model = nested(linear, Relu())
    record = model.into_record()
    assert record == {
        "first": {"Plain": {"Linear": linear.into_record()}},
        "second": {"Act": None},
    }
    other = nested(LinearConfig(2, 3).init(PLAIN), Relu())
    loaded = other.load_record(recorder.load(recorder.record(record)))
    assert same_values(loaded, model)
    norm = nested(LayerNormConfig(3).init(PLAIN), Relu())
    with pytest.raises(RecordError, match="first"):
        norm.load_record(recorder.load(recorder.record(record)))


# Records


def test_a_record_has_the_names_of_the_module():
    record = mixed().into_record()
    assert record["factor"] == ParamRecord(
        "0400000000000", TensorData(np.ones((2, 3), "f"))
    )
    assert {name: record[name] for name in list(record)[1:]} == {
        "mask": None,
        "constant": None,
        "ratio": None,
        "name": None,
        "flag": None,
        "pair": (None, None),
        "odd": (None, None),
        "empty": [],
        "nothing": None,
    }


def test_modules_without_parameters_are_one_none():
    record = guide(PLAIN).into_record()
    assert list(record) == [
        "conv1",
        "conv2",
        "pool",
        "dropout",
        "linear1",
        "linear2",
        "activation",
    ]
    assert (record["pool"], record["dropout"], record["activation"]) == (None,) * 3
    assert list(record["conv1"]) == [
        "weight",
        "bias",
        "stride",
        "kernel_size",
        "dilation",
        "groups",
        "padding",
    ]


def test_a_record_restores_values_ids_and_not_the_flags():
    source, target = guide(AD), guide(AD).no_grad()
    loaded = target.load_record(source.into_record())
    assert same_values(loaded, source)
    assert list_param_ids(loaded) == list_param_ids(source)
    assert not loaded.conv1.weight.val().is_require_grad()
    assert not same_values(target, source)


def test_a_plain_dict_is_a_parameter_too():
    linear = LinearConfig(1, 2).with_bias(False).init(PLAIN)
    record = {"weight": {"id": "04", "param": TensorData([[1.0, 2.0]])}, "bias": None}
    assert np.array_equal(linear.load_record(record).weight.val(), [[1.0, 2.0]])


def test_a_record_converts_to_the_element_type_of_the_device():
    source = LinearConfig(2, 2).init(Numpy(float="f64"))
    loaded = LinearConfig(2, 2).init(PLAIN).load_record(source.into_record())
    assert loaded.weight.val().dtype == "f32"


def test_every_misfit_is_in_one_error_and_the_module_stays():
    small, large = net(), guide(PLAIN)
    record = guide(PLAIN, 128).into_record()
    record["conv1"].pop("bias")
    record["conv2"]["weight"] = ParamRecord(
        "0", TensorData(np.ones((16, 8, 3, 3), "i4"))
    )
    record["extra"] = small.gate.into_record()
    before = values(large)
    facts = (
        "\n  conv1.bias                     not in the record\n"
        "  conv2.weight                   record Int, module Float\n"
        "  linear1.weight                 record [1024, 128], module [1024, 512]\n"
        "  linear1.bias                   record [128], module [512]\n"
        "  linear2.weight                 record [128, 10], module [512, 10]\n"
        "  extra.input_transform.weight   not in the module\n"
        "  extra.input_transform.bias     not in the module\n"
        "  extra.hidden_transform.weight  not in the module\n"
        "  extra.hidden_transform.bias    not in the module\n"
        "  try: the config that the record was made with, or "
        "load_record(record, partial=True) to keep the module's own values"
    )
    refused(RecordError, lambda: large.load_record(record), "load into Model: 9", facts)
    for old, new in zip(before, values(large), strict=True):
        assert np.array_equal(old, new)


def test_partial_loading_keeps_what_does_not_match():
    model, record = guide(PLAIN), guide(PLAIN, 128).into_record()
    loaded = model.load_record(record, partial=True)
    assert loaded.conv1.weight.id == ParamId.deserialize(record["conv1"]["weight"].id)
    assert loaded.linear1.weight is model.linear1.weight


def test_partial_loading_reports_every_parameter():
    class Small(Module):
        first: Linear
        head: Linear
        extra: Linear | None
        layers: list[Linear]

    def small(width, bias=True, extra=None, layers=1):
        config = LinearConfig(2, width).with_bias(bias)
        same = LinearConfig(2, 2).init
        return Small(same(PLAIN), config.init(PLAIN), extra, [same(PLAIN)] * layers)

    old = small(3, False, LinearConfig(2, 2).init(PLAIN), layers=2)
    model, new = small(4), small(4)
    loaded, report = model.load_partial(old.into_record())
    assert same_values(loaded.first, old.first)
    assert loaded.head.bias is model.head.bias
    assert str(report) == (
        "Small: 2 of 6 parameters loaded\n"
        "  loaded  first.weight\n"
        "  loaded  first.bias\n"
        "  kept    head.weight      record [2, 3], module [2, 4]\n"
        "  kept    head.bias        left out in the record\n"
        "  kept    layers.0.weight  record a list of 2, module a list of 1\n"
        "  kept    layers.0.bias    record a list of 2, module a list of 1\n"
        "  unused  extra.weight     not in the module\n"
        "  unused  extra.bias       not in the module"
    )
    assert repr(report) == "LoadReport(Small: 2 loaded, 4 kept, 2 unused)"
    whole = model.load_partial(new.into_record())[1]
    assert whole.complete
    assert (len(whole.loaded), report.complete) == (6, False)
    with pytest.raises(RecordError, match="is not a record"):
        model.load_partial("model.mpk")


def test_an_option_follows_the_record():
    linear = LinearConfig(2, 2).init(PLAIN)
    plain = LinearConfig(2, 2).with_bias(False).init(PLAIN)
    with pytest.warns(UserWarning, match="bias  left out in the record"):
        assert linear.load_record(plain.into_record()).bias is None
    assert linear.load_record(plain.into_record(), partial=True).bias is linear.bias
    with pytest.raises(RecordError, match="bias  not in the module") as caught:
        plain.load_record(linear.into_record())
    assert caught.value.cure.startswith("with_bias(True) in the config")
    assert plain.load_record(linear.into_record().allow_unused()).bias is None


def test_lists_must_have_the_same_length():
    record = net().into_record()
    record["layers"].pop()
    fact = "\n  layers  record a list of 1, module a list of 2\n"
    refused(RecordError, lambda: net().load_record(record), "load into Net: 1", fact)


@pytest.mark.parametrize("record", [None, [], "text", 3, {"gate": 1, "layers": None}])
def test_what_is_no_record_is_refused(record):
    with pytest.raises(RecordError, match="load into Net"):
        net().load_record(record)


def test_save_file_and_load_file_use_the_recorder():
    class Memory:
        def record(self, record, path):
            self.held = (path, record)

        def load(self, path, device):
            self.device = device
            return self.held[1]

    recorder, model = Memory(), net(AD)
    model.save_file("model", recorder)
    assert recorder.held[0] == "model"
    assert same_values(net(AD).load_file("model", recorder, AD), model)
    net(AD).load_file("model", recorder)
    assert recorder.device is AD


class Wide(Module):
    part: Annotated[list[Linear], "Many"] | Annotated[Linear, "One"]


def wide(count):
    return Wide([LinearConfig(2, 2).init(PLAIN) for _ in range(count)])


@pytest.mark.parametrize("count", [1, 2])
def test_a_list_in_a_union_has_a_variant_that_a_flat_format_may_lack(count):
    module = wide(count)
    held = module.into_record()["part"]["Many"]
    by_place = {str(place): part for place, part in enumerate(held)}
    for record in ({"Many": held}, held, by_place):
        loaded = wide(count).load_record({"part": record})
        assert list_param_ids(loaded) == list_param_ids(module)
    with pytest.raises(RecordError) as caught:
        module.load_record({"part": {"One": held[0]}})
    assert "record One, module Many" in str(caught.value)
