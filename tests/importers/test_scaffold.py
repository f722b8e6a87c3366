"""Source of modules that records fit: layers are told by names and shapes."""

import ast
import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from burnbook import nn
from burnbook.core.errors import ArgumentError, RecordError
from burnbook.importers.scaffold import scaffold
from burnbook.module import Module
from burnbook.module.param import ParamId, ParamRecord
from burnbook.record import (
    BinFileRecorder,
    BurnpackRecorder,
    CompactRecorder,
    FullPrecisionSettings,
    NamedMpkFileRecorder,
    PrettyJsonFileRecorder,
    SafetensorsRecorder,
)
from burnbook.tensor.data import TensorData
from tests.support import burn_models, rust_models
from tests.support.rust_models import DEVICE, floats

GOLDEN = Path(__file__).resolve().parents[3] / "shared/golden/burn"
RECORDS = [  # of models, that Burn wrote
    *["c4.mpk", "cnn_half_0.15.mpk", "playground_model_0.16.mpk", "mnist_head.bpk"],
    *[f"made-0.15/{n}.mpk" for n in ("guide-half", "small-full", "everything-full")],
    *["made-0.15/container-full.mpk", "made-0.15/container-full.json.gz"],
    *[f"made-versions/v0_{n}/adam_model.mpk" for n in (14, 17, 19, 21)],
    *[f"made-versions/v0_22/{n}.bpk" for n in ("small", "everything", "container")],
]
NAMED = (NamedMpkFileRecorder, PrettyJsonFileRecorder)
FLAT = (BurnpackRecorder, SafetensorsRecorder)
LAYERS = {
    **rust_models.rows(rust_models.layers),
    **rust_models.rows(rust_models.newer_layers),
}
OWN = rust_models.rows(rust_models.own)


class Holder(Module):
    part: Module
    last: nn.Linear


def held(layer):
    """A module with a layer, and one that has parameters for certain."""
    return Holder(layer, nn.LinearConfig(2, 2).init(DEVICE))


def written(model, folder, recorder=NamedMpkFileRecorder):
    made = recorder(FullPrecisionSettings) if recorder in NAMED else recorder()
    return model.save_file(folder / "model", made)


def imported(path, folder):
    """What the source for a record defines, as a module of Python."""
    text = scaffold(path)
    file = folder / f"scaffolded_{path.name.replace('.', '_')}.py"
    file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def values(module):
    return {path: np.asarray(param.val()) for path, param in module.named_params()}


@pytest.mark.parametrize("name", RECORDS)
def test_record_that_burn_wrote_loads_into_what_is_written_for_it(name, tmp_path):
    path = GOLDEN / name
    if not path.exists():
        pytest.skip(
            "no golden records of Burn: shared/golden lies not beside the project"
        )
    found = imported(path, tmp_path)
    empty = found.ModelConfig().init(DEVICE)
    loaded = found.load(str(path), DEVICE)
    assert [p for p, _ in empty.named_params()] == [p for p, _ in loaded.named_params()]
    before, after = values(empty), values(loaded)
    assert any(not np.array_equal(before[path], after[path]) for path in before)


@pytest.mark.parametrize("recorder", [*NAMED, *FLAT], ids=lambda r: r.__name__)
@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_loads_into_what_is_written_for_it(name, recorder, tmp_path):
    model = held(LAYERS[name][0])
    path = written(model, tmp_path, recorder)
    loaded = imported(path, tmp_path).load(str(path), DEVICE)
    wanted, found = values(model), values(loaded)
    assert sorted(wanted) == sorted(found)  # flat formats are in the order of names
    assert all(np.array_equal(wanted[path], found[path]) for path in wanted)


@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_is_told_by_its_record(name, tmp_path):
    model = held(LAYERS[name][0])
    layer = type(model.part).__name__
    if not list(model.part.named_params()):
        pytest.skip("it has no parameters, so no record tells of it")
    path = written(model, tmp_path)
    found = type(imported(path, tmp_path).ModelConfig().init(DEVICE).part).__name__
    assert found == layer


@pytest.mark.parametrize("recorder", [*NAMED, *FLAT], ids=lambda r: r.__name__)
@pytest.mark.parametrize("name", ["guide", "residual", "stack", "tagger", "pair"])
def test_models_of_ones_own_load_into_what_is_written_for_them(
    name, recorder, tmp_path
):
    model, _ = OWN[name]
    path = written(model, tmp_path, recorder)
    loaded = imported(path, tmp_path).load(str(path), DEVICE)
    wanted, found = values(model), values(loaded)
    assert sorted(wanted) == sorted(found)  # flat formats are in the order of names
    assert all(np.array_equal(wanted[path], found[path]) for path in wanted)


def test_every_kind_of_layer_of_one_record_is_told(tmp_path):
    model = burn_models.everything()
    found = imported(written(model, tmp_path), tmp_path).ModelConfig().init(DEVICE)
    for name, part in vars(found).items():
        assert type(part).__name__ == type(getattr(model, name)).__name__, name


def test_source_is_small_and_parts_have_their_sizes(tmp_path):
    model, _ = OWN["guide"]
    text = scaffold(written(model, tmp_path))
    assert "    conv1: nn.Conv2dConfig = nn.Conv2dConfig([1, 8], [3, 3])\n" in text
    assert "    linear2: nn.LinearConfig = nn.LinearConfig(32, 10)\n" in text
    assert "    # dropout: perhaps nn.Dropout\n" in text
    assert "    # stride, dilation, groups and padding are not in the record\n" in text
    assert max(map(len, text.splitlines())) <= 88


def test_equal_parts_share_a_class_and_say_what_differs(tmp_path):
    model, _ = OWN["residual"]
    text = scaffold(written(model, tmp_path))
    classes = [n.name for n in ast.parse(text).body if isinstance(n, ast.ClassDef)]
    assert classes == [
        "Block", "BlockConfig", "Block2", "Block2Config", "Model", "ModelConfig",
    ]  # fmt: skip
    assert "BlockConfig(conv1=nn.Conv2dConfig([3, 4], [3, 3])" in text


def test_what_flat_names_leave_open_is_said(tmp_path):
    norm = nn.GroupNormConfig(2, 4).init(DEVICE)
    text = scaffold(written(held(norm), tmp_path, BurnpackRecorder))
    assert "# or a GroupNorm or InstanceNorm: the names are the same" in text
    text = scaffold(written(held(norm), tmp_path))
    assert "nn.GroupNormConfig(1, 4)" in text
    assert "# the number of groups, epsilon and epsilon_inside are not in the" in text


@pytest.mark.parametrize("version", ["0.15.0", "0.16.0", "0.17.0", "0.21.0"])
@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("kind", ["Gru", "BiGru"])
def test_gru_computes_the_same_where_its_record_tells(kind, after, version, tmp_path):
    config = getattr(nn, f"{kind}Config")(4, 3, True, reset_after=after)
    model = held(config.init(DEVICE))
    recorder = NamedMpkFileRecorder(FullPrecisionSettings, version=version)
    path = model.save_file(tmp_path / "model", recorder)
    text = scaffold(path)
    is_old = version < "0.17"
    assert ("reset_after=False)" in text) is (is_old and not after)
    assert ("# whether reset_after holds, " in text) is not is_old
    if not is_old:
        return
    found = imported(path, tmp_path).load(str(path), DEVICE)
    x = floats(2, 5, 4)
    pairs = zip(outputs(model.part, x), outputs(found.part, x), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)


def outputs(layer, x):
    found = layer.forward(x)
    found = found if isinstance(found, tuple) else (found,)
    return [np.asarray(one) for one in found]


@pytest.mark.parametrize("recorder", [*NAMED, *FLAT], ids=lambda r: r.__name__)
def test_default_of_a_gru_is_computed_again(recorder, tmp_path):
    model = held(nn.GruConfig(4, 3, True).init(DEVICE))
    path = written(model, tmp_path, recorder)
    found = imported(path, tmp_path).load(str(path), DEVICE)
    x = floats(2, 5, 4)
    assert np.array_equal(outputs(model.part, x)[0], outputs(found.part, x)[0])


OPEN = {
    "lstm": "batch_first, reverse, clip and the activations are",
    "bi_lstm": "batch_first, clip and the activations are",
    "gru": "batch_first, reverse, clip and the activations are",
    "bi_gru": "batch_first, clip and the activations are",
    "rnn": "batch_first, reverse, clip and the activations are",
    "bi_rnn": "batch_first, clip and the activations are",
    "batch_norm1": "epsilon and momentum are",
    "layer_norm": "epsilon is",
    "layer_norm_plain": "epsilon is",
    "rms_norm": "epsilon is",
    "group_norm": "the number of groups, epsilon and epsilon_inside are",
    "instance_norm": "epsilon and epsilon_inside are",
    "feed_forward": "dropout and the activation are",
    "attention": "the number of heads, dropout, min_float and quiet_softmax are",
    "encoder": "the number of heads, norm_first, dropout, quiet_softmax, the activation"
    " and epsilon of the norms are",
}


@pytest.mark.parametrize("name", OPEN)
def test_comment_says_which_settings_no_record_has(name, tmp_path):
    text = scaffold(written(held(LAYERS[name][0]), tmp_path))
    comments = re.sub(r"\n +# ", " ", text)
    assert f"{OPEN[name]} not in the record" in comments


def test_names_that_python_has_for_itself_get_a_line_behind_them(tmp_path):
    linear = nn.LinearConfig(2, 3).init(DEVICE)
    record = {
        name: linear.into_record() for name in ("class", "forward", "nn", "devices")
    }
    path = CompactRecorder().record(record, tmp_path / "odd")
    loaded = imported(path, tmp_path).load(str(path), DEVICE)
    assert {path.partition(".")[0] for path, _ in loaded.named_params()} == set(record)


def test_record_decides_no_code(tmp_path):
    linear = nn.LinearConfig(2, 3).init(DEVICE).into_record()
    names = ['x: int = print("ran")\n', '"""', "a-b", "é"]
    path = CompactRecorder().record(
        {name: dict(linear) for name in names}, tmp_path / "bad"
    )
    tree = ast.parse(scaffold(path, "Net"))
    assert not [
        n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == "print"
    ]


BAD_NAMES = [
    "", "1Bad", "class", "my model", "None", 'Net"""', "a.b", "Module", "nn", "load",
    "CompactRecorder",
]  # fmt: skip


@pytest.mark.parametrize("name", BAD_NAMES)
def test_what_no_class_can_be_called_is_refused(name, tmp_path):
    path = written(nn.Sequential(fc=nn.LinearConfig(2, 3).init(DEVICE)), tmp_path)
    with pytest.raises(ArgumentError, match=re.escape(repr(name))):
        scaffold(path, name)


@pytest.mark.parametrize("name", ["Net", "my_net", "Réseau", "match"])
def test_class_has_the_name_that_was_asked_for(name, tmp_path):
    path = written(nn.Sequential(fc=nn.LinearConfig(2, 3).init(DEVICE)), tmp_path)
    assert f"class {name}(Module):" in scaffold(path, name)


def test_record_without_names_or_parameters_is_refused(tmp_path):
    path = OWN["guide"][0].save_file(
        tmp_path / "model", BinFileRecorder(FullPrecisionSettings)
    )
    with pytest.raises(RecordError, match="this format has no names"):
        scaffold(path)
    path = CompactRecorder().record({"step": 3}, tmp_path / "step")
    with pytest.raises(RecordError, match="no parameters with names"):
        scaffold(path)


def test_record_of_an_optimizer_is_refused():
    path = GOLDEN / "playground_adam_0.16.mpk"
    if not path.exists():
        pytest.skip(
            "no golden records of Burn: shared/golden lies not beside the project"
        )
    with pytest.raises(RecordError, match="record of an optimizer"):
        scaffold(path)


EVIL = "__import__('os').system('touch evil')"
HOSTILE = [
    ["", "..", ".a", "a..b"],
    ["a b", "a_b", "a-b", "a.b c", "a.b_c"],
    ["class", "None", "None.weight", "True.x.y", "self", "init", "__init__", "__x"],
    ["x²", "²", "ﬁ", "fi", "é", "e\u0301", "\u2028", "\x00", "\ud7ff", "１"],
    [f"a: {EVIL}\n    b", f'"""\n{EVIL}\n"""', f"X\n{EVIL}.weight", "\\", "{}", "{x}"],
    ["model.x.y", "model_config.x.y.z", "Module.x", "Config.x", "nn.weight"],
    [f"X', {EVIL}.a.b", f'X", {EVIL}.a.b', "Y.a.b", "weight.weight.weight"],
    ["0.weight", "1.weight", "9.weight", "-1.x", "x.00.a", "x.0.a"],
]


def tensors(folder, names):
    """A file whose tensors have these names, whatever they are."""
    rows, end = {}, 0
    for name in names:
        rows[name] = {"dtype": "F32", "shape": [2], "data_offsets": [end, end + 8]}
        end += 8
    head = json.dumps(rows).encode()
    path = folder / "a.safetensors"
    path.write_bytes(len(head).to_bytes(8, "little") + head + bytes(end))
    return path


def is_harmless(text):
    """Whether all of a source is classes with fields, and one function."""
    tree = ast.parse(text)
    compile(tree, "a", "exec", dont_inherit=True)
    called = {n.func.id for n in ast.walk(tree) if is_call(n)}
    fields = [
        row.target.id
        for one in tree.body
        if isinstance(one, ast.ClassDef)
        for row in one.body
        if isinstance(row, ast.AnnAssign)
    ]
    return not called & {"__import__", "eval"} and all(f.isidentifier() for f in fields)


def is_call(node):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


@pytest.mark.parametrize("names", HOSTILE)
def test_hostile_names_give_valid_source(names, tmp_path):
    try:
        text = scaffold(tensors(tmp_path, names))
    except RecordError:  # names that no tree has, as "a" beside "a.b"
        return
    assert is_harmless(text)


LETTERS = st.sampled_from([*"aX_0.. '\"\\\n{}#é²ﬁ", "class", "weight", "None", "V1"])


@settings(max_examples=60)
@given(st.lists(st.lists(LETTERS, max_size=6).map("".join), min_size=1, max_size=6))
def test_any_names_give_valid_source(tmp_path_factory, names):
    folder = tmp_path_factory.mktemp("a")
    try:
        text = scaffold(tensors(folder, dict.fromkeys(names)))
    except RecordError:
        return
    assert is_harmless(text)


def test_no_tensor_is_lost_because_fields_have_like_names(tmp_path):
    text = scaffold(tensors(tmp_path, ["a b", "a_b", "a-b", ""]))
    (first, *_) = [n for n in ast.parse(text).body if isinstance(n, ast.ClassDef)]
    rows = [row.target.id for row in first.body if isinstance(row, ast.AnnAssign)]
    assert len(set(rows)) == 4
    assert "# in the record: 'a b'" in text
    assert "# in the record: ''" in text


@pytest.mark.parametrize("variant", [f'X", {EVIL}, "', "X\n", "É b"])
def test_a_hostile_variant_gives_valid_source(variant, tmp_path):
    part = {variant: {"gamma_": param(2), "other": None, "no\nname": None}}
    path = tmp_path / "a.mpk"
    record = {"part": part, "next": None, f"x\n{EVIL}": None}
    NamedMpkFileRecorder(FullPrecisionSettings).record(record, path)
    assert is_harmless(scaffold(path))


def param(size):
    data = TensorData(np.zeros(size, np.float32))
    return ParamRecord(ParamId.new().serialize(), data)


@pytest.mark.parametrize("name", ['a"""b', "a\\", "a\\N{x}", 'a"'])
def test_the_name_of_the_file_stays_a_name(name, tmp_path):
    path = tensors(tmp_path, ["w"]).rename(tmp_path / f"{name}.safetensors")
    assert is_harmless(scaffold(path))
