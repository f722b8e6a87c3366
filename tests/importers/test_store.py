"""Stores: names, filters, adapters, and what an ApplyResult says."""

import re

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ConfigError, RecordError
from burnbook.importers import (
    ApplyError,
    ApplyResult,
    FloatCastAdapter,
    HalfPrecisionAdapter,
    IdentityAdapter,
    KeyRemapper,
    LazyArray,
    ModuleStore,
    NotApplied,
    PathFilter,
    PyTorchToBurnAdapter,
)
from burnbook.importers.apply_result import jaro
from burnbook.importers.key_remap import contiguous, replace_all, rust_regex
from burnbook.importers.pytorch import PytorchStore
from burnbook.module import Module
from burnbook.tensor import Tensor, activation
from burnbook.tensor.data import TensorData
from tests.support.cases import cases

DEVICE = Numpy()


class Given(ModuleStore):
    """Arrays that are there already."""

    def __init__(self, arrays, adapter=None):
        super().__init__(adapter)
        self.given = arrays

    def read_arrays(self):
        rows = self.given.items()
        return {name: LazyArray.of(name, TensorData(data)) for name, data in rows}

    @property
    def source(self):
        return "memory"


def torch_store(arrays):
    store = Given(arrays, PyTorchToBurnAdapter())
    return store.map_indices_contiguous().skip_enum_variants()


class Net(Module):
    fc: nn.Linear
    norm: nn.LayerNorm
    blocks: list[nn.Linear]


def net():
    blocks = [nn.LinearConfig(2, 2).init(DEVICE) for _ in range(2)]
    linear = nn.LinearConfig(3, 2).init(DEVICE)
    return Net(linear, nn.LayerNormConfig(2).init(DEVICE), blocks)


RNG = np.random.default_rng(3)


def drawn(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def arrays():
    return {
        "fc.weight": drawn(2, 3),
        "fc.bias": drawn(2),
        "norm.weight": drawn(2),
        "norm.bias": drawn(2),
        "blocks.1.weight": drawn(2, 2),
        "blocks.1.bias": drawn(2),
        "blocks.4.weight": drawn(2, 2),
        "blocks.4.bias": drawn(2),
    }


def test_everything_is_applied():
    given, model = arrays(), net()
    made, result = model.load_from(torch_store(given))
    assert (len(result.applied), result.unused) == (8, ())
    assert np.array_equal(np.asarray(made.fc.weight.val()), given["fc.weight"].T)
    wanted = given["blocks.4.weight"].T
    assert np.array_equal(np.asarray(made.blocks[1].weight.val()), wanted)
    assert made.fc.weight.id == model.fc.weight.id


def test_gaps_stay_where_they_shall():
    store = torch_store(arrays()).map_indices_contiguous(False)
    with pytest.raises(NotApplied) as error:
        net().load_from(store)
    paths = [path for path, _ in error.value.result.missing]
    assert paths == ["blocks.0.weight", "blocks.0.bias"]


def test_what_is_missing_is_an_error_unless_partial_is_allowed():
    given = arrays()
    given["fc.wieght"] = given.pop("fc.weight")
    with pytest.raises(NotApplied, match=r"did you mean fc\.wieght\?") as error:
        net().load_from(torch_store(given))
    assert error.value.result.unused == ("fc.wieght",)
    model = net()
    made, result = model.load_from(torch_store(given).allow_partial())
    assert result.missing == (("fc.weight", "Struct:Net.Struct:Linear"),)
    assert made.fc.weight is model.fc.weight


def test_misfits_are_errors_unless_they_are_not_validated():
    given = arrays() | {"fc.weight": drawn(3, 2), "fc.bias": np.array([1, 2])}
    with pytest.raises(NotApplied, match=r"file \[2, 3\], module \[3, 2\]"):
        net().load_from(torch_store(given))
    _, result = net().load_from(torch_store(given).validate(False))
    assert [error.kind for error in result.errors] == ["shape", "dtype"]
    assert not result.is_success()


def test_filters_hold_back():
    store = torch_store(arrays()).with_regex(r"^blocks\.").with_full_path("fc.bias")
    _, result = net().load_from(store)
    assert len(result.applied) == 5
    assert result.skipped == ("fc.weight", "norm.gamma", "norm.beta")
    linear = PathFilter().with_predicate(lambda path, around: around.endswith("Linear"))
    _, result = net().load_from(torch_store(arrays()).filter(linear))
    assert result.skipped == ("norm.gamma", "norm.beta")
    _, result = net().load_from(torch_store(arrays()).filter(PathFilter()))
    assert result.skipped == ()


def test_rules_rename_and_keys_tell():
    given = {f"module.{name}": data for name, data in arrays().items()}
    store = torch_store(given).with_key_remapping(r"^module\.", "")
    assert store.keys()[0] == "blocks.0.bias"
    assert store.get_snapshot("blocks.1.weight").name == "module.blocks.4.weight"
    _, result = net().load_from(store)
    assert len(result.applied) == 8
    plain = torch_store(given).allow_partial().remap(KeyRemapper())
    with pytest.warns(UserWarning, match=r"with_key_remapping\(r\"\^module"):
        _, result = net().load_from(plain)
    assert len(result.unused) == 8


class Choice(Module):
    part: nn.Linear | nn.Embedding


def test_variants_of_unions_may_stand_in_names():
    model = Choice(nn.LinearConfig(2, 2, bias=False).init(DEVICE))
    plain = {"part.weight": drawn(2, 2)}
    named = {"part.Linear.weight": drawn(2, 2)}
    _, result = model.load_from(torch_store(plain))
    assert result.applied == ("part.weight",)
    store = Given(named).skip_enum_variants(False)
    assert model.load_from(store)[1].applied == ("part.Linear.weight",)
    with pytest.raises(NotApplied) as error:
        model.load_from(Given(plain).skip_enum_variants(False))
    text = str(error.value.result)
    assert "1 paths contain enum variants" in text
    assert "Did you mean: 'part.weight'?" in text


def test_sequential_keeps_the_numbers_of_its_functions():
    layers = nn.LinearConfig(2, 3).init(DEVICE), nn.LinearConfig(3, 2).init(DEVICE)
    model = nn.Sequential(layers[0], activation.relu, layers[1])
    given = {"0.weight": drawn(3, 2), "0.bias": drawn(3)}
    given |= {"2.weight": drawn(2, 3), "2.bias": drawn(2)}
    made, result = model.load_from(torch_store(given))
    assert len(result.applied) == 4
    assert np.array_equal(np.asarray(made[2].weight.val()), given["2.weight"].T)


class Deep(Module):
    layers: list[nn.Linear | nn.Relu]


def test_a_list_with_activations_in_it():
    layers = [nn.LinearConfig(2, 2).init(DEVICE) for _ in range(2)]
    model = Deep([layers[0], nn.Relu(), layers[1]])
    given = {}
    for i in (0, 2):
        given |= {f"layers.{i}.weight": drawn(2, 2), f"layers.{i}.bias": drawn(2)}
    made, _ = model.load_from(torch_store(given))
    wanted = given["layers.2.weight"].T
    assert np.array_equal(np.asarray(made.layers[2].weight.val()), wanted)


def test_tied_parameters_stay_tied():
    class Tied(Module):
        a: nn.Linear
        b: nn.Linear

    layer = nn.LinearConfig(2, 2, bias=False).init(DEVICE)
    weight = drawn(2, 2)
    given = {"a.weight": weight, "b.weight": weight}
    made, result = Tied(layer, layer).load_from(torch_store(given))
    assert result.applied == ("a.weight", "b.weight")
    assert made.a.weight is made.b.weight


def test_a_model_that_learns_goes_on_learning():
    device = Autodiff(Numpy())
    layer = nn.LinearConfig(3, 2).init(device)
    given = {"weight": drawn(2, 3), "bias": drawn(2)}
    made, _ = layer.load_from(torch_store(given))
    loss = made(Tensor.from_data(drawn(4, 3), device)).sum()
    assert made.weight.val().grad(loss.backward()).shape == (3, 2)


def test_adapters():
    given = {"weight": np.full((2, 3), 0.1, np.float32), "bias": drawn(2)}
    layer = nn.LinearConfig(3, 2).init(DEVICE)
    half = np.float32(np.float16(0.1))
    for adapter in (HalfPrecisionAdapter(), FloatCastAdapter.to("F16")):
        store = torch_store(given)
        store = store.with_from_adapter(PyTorchToBurnAdapter().chain(adapter))
        made, _ = layer.load_from(store)
        assert np.all(np.asarray(made.weight.val()) == half)
    none = HalfPrecisionAdapter().without_module("Linear")
    store = torch_store(given).with_from_adapter(PyTorchToBurnAdapter().chain(none))
    made, _ = layer.load_from(store)
    assert np.all(np.asarray(made.weight.val()) == np.float32(0.1))
    collected = FloatCastAdapter.to("f16").collect(layer)
    assert {array.dtype for array in collected.values()} == {"f16"}
    assert list(IdentityAdapter().collect(layer)) == ["weight", "bias"]
    with pytest.raises(ConfigError, match="is no float type"):
        FloatCastAdapter.to("i8")
    with pytest.raises(ConfigError, match="is no adapter"):
        torch_store(given).with_from_adapter("half")


def test_a_store_of_pytorch_only_reads(tmp_path):
    store = PytorchStore.from_file(tmp_path / "none.pt")
    with pytest.raises(RecordError, match="PytorchStore only reads"):
        net().save_into(store)
    with pytest.raises(RecordError, match="there is no such file"):
        net().load_from(store)


def test_the_box_is_that_of_burn():
    missing = tuple((f"layers.{i}.weight", "Struct:Net") for i in range(11))
    errors = (
        ApplyError("shape", "fc.weight", "[2, 3]", "[3, 2]"),
        ApplyError("load", "fc.bias", found="the file is damaged"),
    )
    result = ApplyResult(("a",), (), missing, ("layer.0.weight", "z"), errors)
    assert str(result).splitlines() == [
        "┌─ Tensor Loading Summary ─────────────────────────",
        "│",
        "│ ✓ Successfully applied: 1 tensors",
        "│ ⊘ Skipped (filtered):  0 tensors",
        "│ ✗ Missing in source:    11 tensors",
        "│ ? Unused in target:     2 tensors",
        "│ ! Errors:               2 errors",
        "│",
        "├─ Missing Tensors (requested by model but not found in source)",
        "│",
        "│  First 10 missing tensors:",
        *(
            line
            for i in range(10)
            for line in (
                f"│    • layers.{i}.weight",
                "│        Did you mean: 'layer.0.weight'?",
            )
        ),
        "│    ... and 1 more",
        "│",
        "├─ Unused Tensors (in source but not used by model)",
        "│",
        "│  First 10 unused tensors:",
        "│    • layer.0.weight",
        "│    • z",
        "│",
        "├─ Errors",
        "│",
        "│  ⚠️  Shape mismatch for 'fc.weight': expected [2, 3], found [3, 2]",
        "│  ⚠️  Load error for 'fc.bias': the file is damaged",
        "│",
        "└───────────────────────────────────────────────────",
    ]


@cases(
    "a b wanted",
    ("MARTHA", "MARHTA", 0.9444),
    ("DIXON", "DICKSONX", 0.7667),
    ("JELLYFISH", "SMELLYFISH", 0.8963),
    ("same", "same", 1.0),
    ("abc", "xyz", 0.0),
    ("", "", 1.0),
)
def test_jaro(a, b, wanted):
    assert round(jaro(a, b), 4) == wanted


# Patterns as in Rust


@cases(
    "pattern replacement text wanted",
    (r"conv\.(.*)", "$1", "conv.conv1.weight", "conv1.weight"),
    (r"(.+)\.block\.0\.(.+)", "$1.conv.$2", "a.block.0.weight", "a.conv.weight"),
    (r"layer\.([0-9])\.(.+)", "layer.blocks.$1.$2", "layer.3.w", "layer.blocks.3.w"),
    ("a", "b", "banana", "bbnbnb"),  # everywhere
    ("(a)(b)", "$2$1", "ab", "ba"),
    ("(a)", "${1}x", "a", "ax"),
    ("(a)", "$1x", "a", ""),  # a group called 1x
    ("(?P<n>a)", "$n-${n}", "a", "a-a"),
    ("(?<n>a)", "<$n>", "a", "<a>"),
    ("a", "$$1", "a", "$1"),
    ("a", r"\1", "a", r"\1"),
    ("a", "$", "a", "$"),
    ("a", "$9", "a", ""),
    ("(a)|(b)", "[$1$2]", "ab", "[a][b]"),
    ("x*", "-", "abxd", "-a-b-d-"),
    (r"[[:digit:]]+", "#", "a12", "a#"),
    (r"w\z", "v", "w.w", "w.v"),
    ("(?i)CONV", "c", "conv.w", "c.w"),
)
def test_replacements_are_those_of_rust(pattern, replacement, text, wanted):
    assert replace_all(rust_regex(pattern), replacement, text) == wanted
    assert KeyRemapper(((pattern, replacement),)).renamed(text) == wanted


@cases(
    "pattern", "(a", r"(a)\1", "a(?=b)", "(?<!a)b", r"\p{Greek}", "[[:no:]]", "a{2,1}"
)
def test_what_rust_s_patterns_have_not_is_refused(pattern):
    with pytest.raises(ConfigError, match="key remap"):
        KeyRemapper().add_pattern(pattern, "")
    with pytest.raises(ConfigError, match=re.escape(repr(pattern)[:20])):
        PathFilter().with_regex(pattern)


def test_rules_run_in_their_order():
    chained = KeyRemapper.from_patterns([("a", "b"), ("b", "c")])
    assert chained.renamed("ab") == "cc"
    assert KeyRemapper.from_patterns([("b", "c"), ("a", "b")]).renamed("ab") == "bc"


def test_numbers_without_gaps():
    keys = ["a.3.b.7.w", "a.3.b.9.w", "a.5.b.1.w", "c.0.w", "d.x"]
    assert list(contiguous(keys).values()) == [
        *("a.0.b.0.w", "a.0.b.1.w", "a.1.b.0.w", "c.0.w", "d.x"),
    ]


def test_filters_answer():
    chosen = PathFilter().with_regexes(["^a", "b$"]).with_full_paths(["x", "y"])
    found = [chosen.matches(path) for path in ("a.c", "c.b", "x", "xy")]
    assert found == [True, True, True, False]
    assert chosen.criteria_count() == 4
    assert not PathFilter.none().matches("a")
    assert PathFilter.all().matches("a")
    assert PathFilter.none().or_(PathFilter.all()).matches("a")
    assert PathFilter().match_all().criteria_count() == 1
