"""Records in files without a recorder, as in Burn 0.22, with files that Burn wrote."""

import numpy as np
import pytest

from burnbook import nn, record, train
from burnbook.backend import Numpy
from burnbook.core.errors import KindError, RecordError
from burnbook.optim import AdamConfig, LBFGSConfig
from burnbook.record import BurnpackRecorder, DoublePrecisionSettings, ModuleRecord
from burnbook.record.recorder import OF_SUFFIX
from burnbook.tensor import Tensor
from tests.golden.shared import BURN
from tests.support.modules import AD, PLAIN, mixed, net, same_values
from tests.support.newest_burn import Small, train_step

NEWEST = BURN / "made-versions" / "v0_22"
needs_files = pytest.mark.skipif(not NEWEST.exists(), reason="Burn's files")
ENDINGS = ["bpk", "mpk", "mpk.gz", "json", "json.gz", "bin", "bin.gz", "safetensors"]


@pytest.mark.parametrize("ending", ["", *(f".{ending}" for ending in ENDINGS)])
def test_a_module_is_saved_and_loaded_by_its_path_alone(ending, tmp_path):
    model = net()
    path = model.save_file(tmp_path / f"model{ending}")
    assert path.name == f"model{ending or '.bpk'}"
    assert same_values(net().load_file(tmp_path / f"model{ending}"), model)
    again = model.into_record().save(tmp_path / f"again{ending}")
    assert again.read_bytes() == path.read_bytes() or ending.startswith(".safe")
    loaded = ModuleRecord.load(again)
    assert same_values(net().load_record(loaded), model)
    assert same_values(net().try_load_record(loaded), model)


def test_element_types_stay(tmp_path):
    model = nn.LinearConfig(2, 3).init(Numpy(float="f64"))
    path = model.save_file(tmp_path / "wide")
    assert ModuleRecord.load(path)["weight"].param.dtype == "f64"
    again = nn.LinearConfig(2, 3).init(Numpy(float="f64")).load_file(path)
    assert np.array_equal(
        np.asarray(again.weight.val()), np.asarray(model.weight.val())
    )
    BurnpackRecorder(DoublePrecisionSettings).record(model.into_record(), path)
    assert same_values(
        nn.LinearConfig(2, 3).init(Numpy(float="f64")).load_file(path), again
    )


@needs_files
@pytest.mark.parametrize("name", ["small.bpk", "small_after_adam.bpk"])
def test_files_of_burn_load_and_come_back_byte_by_byte(name, tmp_path):
    record = ModuleRecord.load(NEWEST / name)
    assert isinstance(record, ModuleRecord)
    assert record.save(tmp_path / name).read_bytes() == (NEWEST / name).read_bytes()
    model = Small.new(PLAIN).load_record(record)
    by_recorder = BurnpackRecorder().load(NEWEST / name, PLAIN)
    assert same_values(model, Small.new(PLAIN).load_record(by_recorder))
    assert same_values(model, Small.new(PLAIN).load_file(NEWEST / name))


@needs_files
def test_an_optimizer_of_burn_loads_and_comes_back_byte_by_byte(tmp_path):
    optim = AdamConfig().init().load(NEWEST / "optim_adam.bpk")
    path = optim.save(tmp_path / "optim")
    assert path.name == "optim.bpk"
    assert (
        AdamConfig().init().load(path).into_record().keys()
        == optim.into_record().keys()
    )


def test_an_optimizer_goes_on_where_it_was_saved(tmp_path):
    model, optim = Small.new(AD), AdamConfig().init()
    model = train_step(model, optim)
    again = AdamConfig().init().load(optim.save(tmp_path / "a"))
    assert again.into_record() == optim.into_record() != {}
    with pytest.raises(RecordError, match="there is no such file"):
        AdamConfig().init().load(tmp_path / "none")
    assert hasattr(LBFGSConfig().init(), "save")


def test_records_say_how_strictly_they_are_loaded(tmp_path):
    wide = nn.LinearConfig(2, 3).init(PLAIN)
    bare = nn.LinearConfig(2, 3).with_bias(False).init(PLAIN)
    path = wide.save_file(tmp_path / "wide")
    with pytest.raises(RecordError, match="bias  not in the module"):
        bare.load_file(path)
    record = ModuleRecord.load(path)
    assert bare.load_record(record.allow_unused(True)).bias is None
    path = bare.save_file(tmp_path / "bare")
    with pytest.raises(RecordError, match="bias  not in the record"):
        wide.try_load_record(ModuleRecord.load(path))
    made = wide.load_record(ModuleRecord.load(path).allow_partial(True))
    assert made.bias is wide.bias


@pytest.mark.parametrize("device", [PLAIN, AD])
def test_cast_changes_the_floats_of_a_module(device):
    model = nn.LinearConfig(2, 3).init(device)
    for dtype in ("f64", "f16", "f32"):
        made = model.cast(dtype)
        assert made.weight.val().dtype == dtype
        assert made.weight.id == model.weight.id
        assert made.weight.is_require_grad() == model.weight.is_require_grad()
        assert made.weight.val().device().ad_enabled == device.ad_enabled
    x = Tensor.ones([1, 2], model.cast("f64").weight.device)
    assert model.cast("f64").forward(x).dtype == "f64"
    assert model.weight.val().dtype == "f32"
    for wrong in ("i32", "bool"):
        with pytest.raises(KindError, match="no type of floats"):
            model.cast(wrong)
    assert mixed().cast("f64").factor.val().dtype == "f64"


def test_the_step_of_validation_has_the_newest_name_too():
    assert train.InferenceStep is train.ValidStep


@pytest.mark.parametrize("name", ["mpk", "bpk", "bin", "json", "safetensors"])
def test_a_file_of_another_recorder_is_told_which_one_reads_it(tmp_path, name):
    known = vars(record)
    code = OF_SUFFIX[f".{name}"]
    layer = nn.LinearConfig(2, 3).init(Numpy())
    layer.save_file(tmp_path / "net", eval(code, dict(known)))
    other = "CompactRecorder()" if name != "mpk" else "BurnpackRecorder()"
    with pytest.raises(RecordError) as caught:
        layer.load_file(tmp_path / "net", eval(other, dict(known)))
    cure = caught.value.cure.partition(" as the recorder")[0]
    assert cure == code
    layer.load_file(tmp_path / "net", eval(cure, dict(known)))
