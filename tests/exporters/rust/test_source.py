"""Rust for Burn as text: every layer and model is written, and says what it should."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff
from burnbook.core.errors import GraphError, RecordError
from burnbook.core.op import OPS
from burnbook.examples.guide.model import ModelConfig
from burnbook.exporters.rust import rust_model, to_rust
from burnbook.exporters.rust.calls import captured
from burnbook.exporters.rust.functions import arguments_of
from burnbook.exporters.rust.layers import BOTH, NEW
from burnbook.exporters.rust.operations import NEWER, PUBLIC, RULES
from burnbook.module import Module
from burnbook.record import FullPrecisionSettings, NamedMpkFileRecorder
from burnbook.record.settings import HalfPrecisionSettings
from burnbook.tensor import Tensor, activation
from tests.support import rust_models, rust_operations
from tests.support.rust_models import DEVICE, floats, ints

HERE = Path(__file__).parent
OLD = rust_models.rows(rust_models.layers)
OWN = rust_models.rows(rust_models.own)
NEWEST = rust_models.rows(rust_models.newer_layers)
OPERATIONS = rust_models.rows(rust_operations.operations)
NEWER_OPERATIONS = rust_models.rows(rust_operations.newer_operations)
VERSIONS = ("0.15", "0.22")


def of_both():
    """Every model with each release that it can be written for."""
    for version in VERSIONS:
        for name, row in {**OLD, **OWN, **OPERATIONS}.items():
            yield pytest.param(*row, version, id=f"{name}-{version}")
    for name, row in {**NEWEST, **NEWER_OPERATIONS}.items():
        yield pytest.param(*row, "0.22", id=f"{name}-0.22")


@cache
def made(model, inputs, version):
    return rust_model(model, *inputs, version=version)


def source(model, *inputs, **named):
    return rust_model(model, *inputs, **named).source


def body(text, name="forward"):
    """The lines of a method, without the shapes behind them."""
    found = re.search(rf"pub fn {name}.*?\{{\n(.*?)\n    \}}\n", text, re.DOTALL)
    lines = [line.partition(" // ")[0].strip() for line in found[1].splitlines()]
    return [line for line in lines if line]


@pytest.mark.parametrize(("model", "inputs", "version"), list(of_both()))
def test_everything_that_is_used_is_imported_and_brackets_close(model, inputs, version):
    text = made(model, inputs, version).source
    code = re.sub(r"//.*", "", text)
    for left, right in ("()", "[]", "{}"):
        assert code.count(left) == code.count(right)
    imported = re.search(r"use std.*?\n\n(.*?)\n\n", text, re.DOTALL)[1]
    rest = code[code.index(imported) + len(imported) :]
    declared = set(re.findall(r"pub struct (\w+)", rest))
    known = set(re.findall(r"\b[A-Z]\w+\b", imported)) | declared
    known |= {"Self", "Ok", "Some", "None", "Result", "Vec", "Into", "PathBuf", "AsRef"}
    known |= {"Path", "Debug", "Clone"}
    # a name in capitals that no other name qualifies, outside of strings
    plain = re.sub(r'"[^"]*"', "", rest)
    used = set(re.findall(r"(?<![:\w])([A-Z]\w+)\b(?!:\s)", plain))
    assert used <= known
    for name in re.findall(r"\b[A-Z]\w+\b", imported):
        traits = ("Module", "Config", "Recorder", "ElementConversion")
        assert name in rest or name in traits


@pytest.mark.parametrize(("model", "inputs", "version"), list(of_both()))
def test_record_has_the_fields_of_the_structs(model, inputs, version):
    found = made(model, inputs, version)
    structs = {
        name: re.findall(r"pub (\w+): ([^\n]*),\n", fields)
        for name, fields in re.findall(
            r"pub struct (\w+)(?:<B: Backend>)? \{\n(.*?)\}", found.source, re.DOTALL
        )
    }

    def compare(record, kind):
        base = re.sub(r"<.*", "", kind)
        if kind.startswith("Vec<"):
            assert isinstance(record, list)
            for part in record:
                compare(part, kind[4:-1])
        elif base in structs and record is not None:
            assert list(record) == [name for name, _ in structs[base]]
            for name, inner in structs[base]:
                compare(record[name], inner)

    root = re.search(r"pub struct (\w+)", found.source)[1]
    compare(found.record, root)


@pytest.mark.parametrize("version", VERSIONS)
def test_guide_reads_like_one_written_by_hand(version):
    model = ModelConfig(10, 32).init(DEVICE)
    text = source(model, floats(2, 28, 28), version=version)
    golden = HERE / f"guide_{version.replace('.', '_')}.rs"
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["residual", "tagger"])
def test_model_of_ones_own_reads_like_one_written_by_hand(name):
    model, inputs = OWN[name]
    assert source(model, *inputs) == (HERE / f"{name}.rs").read_text(encoding="utf-8")


def test_equal_blocks_are_one_struct_and_others_their_own():
    model, inputs = OWN["residual"]
    text = source(model, *inputs)
    assert re.findall(r"pub struct (\w+)<", text) == ["Residual", "Block", "Block2"]
    assert "pub blocks: (Block<B>, Block2<B>, Block<B>)," in text


def test_default_of_a_config_says_only_what_differs():
    model, inputs = OWN["residual"]
    text = source(model, *inputs)
    assert '#[config(default = "BlockConfig::new()")]' in text
    changed = re.search(r'default = "(BlockConfig::new\(\)\..*)"', text)[1]
    assert ".with_conv1(Conv2dConfig::new([3, 4], [3, 3])" in changed
    assert ".with_norm(BatchNormConfig::new(4))" in changed


def test_tensor_that_is_used_again_is_cloned_and_the_last_use_consumes_it():
    class Twice(Module):
        def forward(self, x):
            return x * x.exp() + x

    assert body(source(Twice(), floats(2, 3))) == [
        "let x2 = x.clone().exp();",
        "let x2 = x.clone() * x2;",
        "x2 + x",
    ]


def test_what_leads_to_no_result_is_left_out():
    class Idle(Module):
        linear: nn.Linear

        def forward(self, x):
            self.linear.forward(x).exp()
            return -x

    model = Idle(nn.LinearConfig(3, 3).init(DEVICE))
    assert body(source(model, floats(2, 3))) == ["-x"]


def test_sizes_of_the_batch_are_computed_from_an_argument():
    class Halves(Module):
        def forward(self, x):
            n, c = x.dims()
            return x.reshape([n * 2, c // 2]).slice([(0, n * 2 - 1)])

    assert body(source(Halves(), floats(2, 4))) == [
        "let n = x.dims()[0];",
        "let x = x.reshape([2 * n, 2]);",
        "x.slice([0..2 * n - 1])",
    ]


def test_fixed_batch_has_numbers_only():
    class Flat(Module):
        def forward(self, x):
            return x.reshape([x.dims()[0] * x.dims()[1]])

    text = source(Flat(), floats(2, 4), batch=None)
    assert body(text) == ["x.reshape([8])"]


def test_small_constant_stands_in_the_code_and_a_larger_one_in_the_record():
    class Shifted(Module):
        def forward(self, x):
            few = Tensor.from_data([[1.0, 2.0, 4.0]], x.device())
            many = Tensor.from_numpy(np.arange(30, dtype=np.float32), x.device())
            x = x + few + Tensor.full([1, 3], 0.5, x.device())
            return x.sum_dim(1) + many.reshape([1, 30])

    made = rust_model(Shifted(), floats(2, 3))
    assert "Tensor::<B, 2>::from_data([[1.0, 2.0, 4.0]], &device)" in made.source
    assert "Tensor::<B, 2>::full([1, 3], 0.5, &device)" in made.source
    assert "pub constant1: Param<Tensor<B, 1>>," in made.source
    stored = made.record["constant1"].param
    assert np.array_equal(np.asarray(stored.array), np.arange(30, dtype=np.float32))


def test_numbers_of_python_are_numbers_and_have_no_field():
    model, inputs = OWN["stack"]
    text = source(model, *inputs)
    assert "count" not in text
    assert any(line == "let x = x / 3.0;" for line in body(text))


def test_method_beside_forward_is_written_when_it_runs():
    class Coder(Module):
        linear: nn.Linear

        def forward_code(self, x):
            return activation.relu(self.linear.forward(x))

        def forward(self, x):
            return self.forward_code(x) - 1.0

    model = Coder(nn.LinearConfig(3, 3).init(DEVICE))
    text = source(model, floats(2, 3))
    assert body(text)[0] == "let x = self.forward_code(x);"
    assert body(text, "forward_code")[-1] == "activation::relu(x)"
    alone = source(model, floats(2, 3), method="forward_code")
    assert "pub fn forward(" not in alone


def test_part_that_is_called_with_other_ranks_has_a_method_for_each():
    class Norm(Module):
        linear: nn.Linear

        def forward(self, x):
            return self.linear.forward(x) * 2.0

    class Both(Module):
        norm: Norm

        def forward(self, x):
            n, c = x.dims()
            y = self.norm.forward(x.reshape([n, 1, c])).reshape([n, c])
            return self.norm.forward(x) + y

    model = Both(Norm(nn.LinearConfig(3, 3).init(DEVICE)))
    text = source(model, floats(2, 3))
    assert text.count("pub fn forward") == 3
    assert "self.norm.forward_2(" in text


def test_layer_that_burn_lacks_is_written_as_its_operations():
    linear = nn.LinearConfig(3, 3).init(DEVICE)
    model = nn.Sequential(linear, nn.SiLU())
    old, new = (source(model, floats(2, 3), version=v) for v in VERSIONS)
    assert "activation::silu(input)" in old
    assert "pub layer1: SiLULayer," in old
    assert "pub layer1: SiLU," in new


def test_parts_of_a_sequential_have_names_that_rust_accepts_in_both():
    model, inputs = OWN["sequential"]
    made = rust_model(model, *inputs)
    assert set(made.record) == {"layer0", "layer2"}
    assert set(made.record["layer0"]) == {"layer0", "layer1"}


def test_field_with_a_word_of_rust_gets_a_line_behind_it():
    class Typed(Module):
        type: nn.Linear

        def forward(self, x):
            return self.type.forward(x)

    made = rust_model(Typed(nn.LinearConfig(3, 3).init(DEVICE)), floats(2, 3))
    assert "pub type_: Linear<B>," in made.source
    assert list(made.record) == ["type_"]


def test_names_that_burn_has_for_itself_get_something_behind_them():
    model, inputs = OWN["names"]
    made = rust_model(model, *inputs)
    kinds = re.findall(r"pub struct (\w+)<B", made.source)
    assert kinds == [
        "Names2", "B2", "S2", "B3", "Self2", "Default2", "Clone2", "NamesRecord",
        "Some2", "Visitor2",
    ]  # fmt: skip
    assert list(made.record) == [
        "b", "s", "device_", "mapper_", "visitor_", "record_", "content_", "type_",
        "constant1", "constant2",
    ]  # fmt: skip
    assert list(made.record["s"]) == ["a_b", "a_b_2"]


def test_parts_of_two_tuples_have_settings_of_their_own():
    class Both(Module):
        left: tuple[Module, ...]
        right: tuple[Module, ...]

        def forward(self, x):
            for part in (*self.left, *self.right):
                x = part.forward(x)
            return x

    block = nn.Sequential(nn.LinearConfig(3, 3).init(DEVICE))
    norm = nn.LayerNormConfig(3).init(DEVICE)
    text = source(Both((block, norm), (norm, block)), floats(2, 3))
    fields = re.findall(r"pub (\w+): \w+Config,", text)
    assert fields[:4] == ["left_0", "left_1", "right_0", "right_1"]


REFUSED = {
    "gru": (nn.GruConfig(4, 3, True), (floats(2, 5, 4),), "never reads its own"),
    "quiet": (
        nn.TransformerEncoderConfig(4, 6, 2, 1).with_quiet_softmax(True),
        (nn.TransformerEncoderInput(floats(2, 5, 4)),),
        "quiet_softmax of Burn 0.15",
    ),
    "groups": (
        nn.ConvTranspose2dConfig([4, 4], [2, 2]).with_groups(2),
        (floats(2, 4, 5, 5),),
        "mixes up the groups",
    ),
    "mode": (
        nn.Interpolate2dConfig()
        .with_output_size([5, 5])
        .with_mode(nn.InterpolateMode.Lanczos),
        (floats(2, 4, 8, 8),),
        "mode Lanczos is not in Burn 0.15",
    ),
    "epsilon": (
        nn.GroupNormConfig(2, 4).with_epsilon_inside(True),
        (floats(2, 4, 5),),
        "adds epsilon to the deviation",
    ),
    "rows": (
        nn.RotaryEncodingConfig(8, 4),
        (floats(2, 5, 4),),
        "rotates tensors of four dims",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_burn_cannot_say_is_listed_by_name(name, tmp_path):
    config, inputs, reason = REFUSED[name]
    part = config.init(DEVICE) if name != "mode" else config.init()
    model = nn.Sequential(bad=part)
    with pytest.raises(RecordError, match=re.escape(reason)) as caught:
        to_rust(model, tmp_path / "crate", *inputs)
    assert caught.value.facts[0][0].startswith("bad")
    assert not (tmp_path / "crate").exists()


def test_all_that_is_refused_is_in_one_error():
    gru = nn.GruConfig(4, 4, True).init(DEVICE)
    norm = nn.GroupNormConfig(1, 5).with_epsilon_inside(True).init(DEVICE)
    model = nn.Sequential(one=gru, two=gru.replace(), three=norm)
    with pytest.raises(RecordError, match="no word for 3 parts") as caught:
        rust_model(model, floats(2, 5, 4))
    assert [name for name, _ in caught.value.facts] == ["one", "two", "three"]


def test_operation_that_burn_lacks_is_named_with_its_line():
    class Running(Module):
        def forward(self, x):
            return x.cumsum(1)

    with pytest.raises(RecordError, match="has no cumsum") as caught:
        rust_model(Running(), floats(2, 3))
    assert "return x.cumsum(1)" in str(caught.value)
    assert "x.cumsum(1)" in source(Running(), floats(2, 3), version="0.22")


@pytest.mark.parametrize(("version", "inside"), [("0.15", True), ("0.22", False)])
@pytest.mark.parametrize("name", ["GroupNorm", "InstanceNorm"])
def test_norm_is_refused_with_the_setting_that_burn_has(name, version, inside):
    config = {"GroupNorm": nn.GroupNormConfig(2, 4)}.get(name, nn.InstanceNormConfig(4))
    model = nn.Sequential(norm=config.with_epsilon_inside(inside).init(DEVICE))
    with pytest.raises(RecordError) as caught:
        rust_model(model, floats(2, 4, 8), version=version)
    setting = f"{name}Config(…).with_epsilon_inside({not inside})"
    assert setting in str(caught.value)
    model = nn.Sequential(norm=config.with_epsilon_inside(not inside).init(DEVICE))
    assert "norm: " in source(model, floats(2, 4, 8), version=version)


def test_every_operation_that_burn_lacks_is_listed_by_the_name_that_people_use():
    class Inner(Module):
        def forward(self, x):
            return x.cumsum(1)

    class Several(Module):
        inner: Inner

        def forward(self, x):
            windows = self.inner.forward(x).unfold(1, 2, 1)
            windows = windows.unfold(1, 2, 1).sum() * x.prod()
            hot = (x > 0.0).int().one_hot_fill(2, 3.0, 1.0)
            return windows + hot.float().sum() + x.median(1).sum()

    with pytest.raises(RecordError, match="no word for 6 parts") as caught:
        rust_model(Several(Inner()), floats(2, 4))
    rows = [
        (name, fact.split(", test_source.py")[0]) for name, fact in caught.value.facts
    ]
    assert [name for name, _ in rows] == ["inner.forward"] + 5 * ["Several.forward"]
    assert [fact for _, fact in rows] == [
        "Burn 0.15.0 has no cumsum",
        "Burn 0.15.0 has no unfold",
        "Burn 0.15.0 has no unfold",
        "prod: Burn 0.15 computes exp(Σ log x), which is NaN where a factor is below 0",
        "Burn 0.15.0 has no one_hot_fill (or one_hot)",
        "Burn 0.15.0 has no median",
    ]


def test_operation_is_refused_by_the_name_of_a_function():
    assert not {*PUBLIC} & {*RULES, *NEWER}
    assert {*PUBLIC} <= {*OPS}


def test_release_without_rust_is_refused():
    with pytest.raises(RecordError, match=r"no Rust for Burn '0\.18'"):
        rust_model(nn.Relu(), floats(2, 3), version="0.18")


def test_python_that_looks_at_numbers_is_refused_with_its_line():
    class Looking(Module):
        def forward(self, x):
            return x if float(x.sum().into_scalar()) > 0 else -x

    with pytest.raises(GraphError, match="capture"):
        rust_model(Looking(), floats(2, 3))


def test_something_else_is_no_module():
    with pytest.raises(RecordError, match="LinearConfig is not a module"):
        rust_model(nn.LinearConfig(2, 3), floats(2, 2))


@pytest.mark.parametrize("name", [*BOTH, *NEW])
def test_every_layer_of_the_table_is_one_of_ours(name):
    assert name in dir(nn) or hasattr(nn.loss, name) or hasattr(nn.transformer, name)


@pytest.mark.parametrize("name", [*RULES, *NEWER])
def test_every_operation_of_the_table_is_one_of_ours(name):
    assert name in OPS or name == "_mark"


def test_every_layer_of_the_table_is_among_the_models():
    kinds = {type(model).__name__ for model, _ in {**OLD, **NEWEST}.values()}
    kinds -= {"Sequential"}
    unproven = {"GaussianNoise", "GateController"}  # no forward that is always the same
    assert {*BOTH, *NEW} - kinds <= unproven


def test_every_operation_of_the_table_is_among_the_models():
    rows = {**OLD, **OWN, **NEWEST, **OPERATIONS, **NEWER_OPERATIONS}.values()
    programs = [captured(model, inputs, "forward", 0)[0] for model, inputs in rows]
    used = {step.op.name for program in programs for step in program.steps}
    assert {*RULES, *NEWER} - used <= {"max_pool2d"}  # which max_pool does now


def test_product_is_refused_where_burn_computes_it_by_logarithms():
    for operation in (Tensor.prod, lambda x: x.prod_dim(1)):
        model = nn.Sequential(operation)
        with pytest.raises(RecordError, match="NaN where a factor is below 0") as error:
            rust_model(model, floats(2, 3))
        assert 'version="0.22"' in str(error.value)
        assert ".prod" in source(model, floats(2, 3), version="0.22")


def test_operation_with_a_number_that_burn_lacks_is_refused():
    model = nn.Sequential(lambda i: i.fmod_scalar(3))
    with pytest.raises(RecordError, match="no fmod of Int"):
        rust_model(model, ints(2, 3, below=9), version="0.22")


def test_model_that_runs_with_some_sizes_of_the_batch_only_is_written():
    class Third(Module):
        def forward(self, x):
            return x.slice([(2, 3)]) + x.select(0, Tensor.from_data([2], x.device()))

    assert body(source(Third(), floats(3, 4)))[-1] == "x2 + x"


def test_values_of_a_model_on_autodiff_are_those_of_its_record(tmp_path):
    model = ModelConfig(10, 16).init(Autodiff(DEVICE))
    folder = to_rust(model, tmp_path / "digits", floats(1, 28, 28))
    names = sorted(str(p.relative_to(folder)) for p in folder.rglob("*.*"))
    assert names == [
        "Cargo.lock", "Cargo.toml", "model.mpk", "src/main.rs", "src/model.rs",
    ]  # fmt: skip
    again = ModelConfig(10, 16).init(DEVICE)
    recorder = NamedMpkFileRecorder(FullPrecisionSettings)
    again = again.load_file(folder / "model.mpk", recorder)
    x = floats(2, 28, 28)
    assert np.array_equal(
        np.asarray(again.forward(x)), np.asarray(model.valid().forward(x))
    )


def test_half_precision_is_that_of_the_record_and_of_its_recorder(tmp_path):
    model = nn.Sequential(nn.LinearConfig(40, 40).init(DEVICE))
    sizes = []
    for settings in (FullPrecisionSettings, HalfPrecisionSettings):
        folder = tmp_path / settings.__name__
        to_rust(model, folder, floats(2, 40), settings=settings)
        sizes.append((folder / "model.mpk").stat().st_size)
        assert settings.__name__ in (folder / "src/model.rs").read_text()
    assert sizes[1] < 0.6 * sizes[0]


def test_newest_record_is_burnpack(tmp_path):
    model = nn.Sequential(fc=nn.LinearConfig(3, 2).init(DEVICE))
    folder = to_rust(model, tmp_path / "Net 2", floats(2, 3), version="0.22")
    assert (folder / "model.bpk").read_bytes()[:4] == b"NRUB"
    assert 'burn = { version = "=0.22.1"' in (folder / "Cargo.toml").read_text()
    assert 'name = "net-2"' in (folder / "Cargo.toml").read_text()


def test_example_names_the_inputs_that_it_reads(tmp_path):
    model, inputs = OLD["encoder"]
    made = rust_model(model, *inputs)
    names = [path for path, _ in arguments_of(made.function.call.inside)]
    assert names == ["input_tensor", "input_attn"]
    folder = to_rust(model, tmp_path / "e", *inputs)
    main = (folder / "src/main.rs").read_text()
    assert 'const INPUTS: [&str; 2] = ["input_tensor", "input_attn"];' in main


def test_tokens_are_ints_and_masks_are_bools():
    model, _ = OWN["tagger"]
    text = source(model, ints(2, 5, below=9))
    assert "tokens: Tensor<B, 2, Int>" in text
    assert "use burn::tensor::{Int, Tensor};" in text


@pytest.mark.parametrize("name", ["Cargo.toml", "src/main.rs", "src/model.rs"])
@pytest.mark.parametrize("version", VERSIONS)
def test_crate_of_somebody_else_is_replaced_only_when_asked(name, version, tmp_path):
    model = nn.Sequential(fc=nn.LinearConfig(3, 2).init(DEVICE))
    foreign = tmp_path / name
    foreign.parent.mkdir(exist_ok=True)
    foreign.write_text("// by hand\n")
    with pytest.raises(RecordError, match="not written by this exporter") as caught:
        to_rust(model, tmp_path, floats(2, 3), version=version)
    assert caught.value.facts == [name]
    assert "overwrite=True" in str(caught.value)
    assert foreign.read_text() == "// by hand\n"
    assert [path for path in tmp_path.rglob("*.*") if path.is_file()] == [foreign]
    to_rust(model, tmp_path, floats(2, 3), version=version, overwrite=True)
    assert foreign.read_text() != "// by hand\n"
    to_rust(model, tmp_path, floats(2, 3), version=version)  # now it is ours


def test_record_of_somebody_else_is_no_part_of_a_crate(tmp_path):
    model = nn.Sequential(fc=nn.LinearConfig(3, 2).init(DEVICE))
    path = model.save_file(
        tmp_path / "model", NamedMpkFileRecorder(FullPrecisionSettings)
    )
    before = path.read_bytes()
    with pytest.raises(RecordError, match="not written by this exporter"):
        to_rust(model, tmp_path, floats(2, 3))
    assert path.read_bytes() == before
