"""Whichever way weights are loaded, a disagreement has the same verdict and report.

WAYS are all ways to load a file into a module, CASES all ways in which the two may
disagree. Strict, anything missing, left over or of another shape is refused, and the
error names it; in part, what fits is loaded and nothing is taken away.
"""

import warnings

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.core.errors import RecordError
from burnbook.exporters.pytorch import to_pytorch
from burnbook.importers import (
    PyTorchFileRecorder,
    PytorchStore,
    SafetensorsStore,
)
from burnbook.importers.safetensors import (
    AdapterType,
    LoadArgs as SafeArgs,
    SafetensorsFileRecorder,
)
from burnbook.module import Module
from burnbook.record import (
    BinFileRecorder,
    BinGzFileRecorder,
    BurnpackRecorder,
    FullPrecisionSettings,
    JsonGzFileRecorder,
    NamedMpkFileRecorder,
    NamedMpkGzFileRecorder,
    PrettyJsonFileRecorder,
    SafetensorsRecorder,
)

DEVICE = Numpy()


class Net(Module):
    fc: nn.Linear
    norm: nn.LayerNorm
    extra: nn.Linear | None


def net(width=3, bias=True, extra=False):
    linear = nn.LinearConfig(2, width).with_bias(bias).init(DEVICE)
    more = nn.LinearConfig(2, 2).init(DEVICE) if extra else None
    return Net(linear, nn.LayerNormConfig(4).init(DEVICE), more)


class Other(Module):
    other: nn.Linear


def other():
    return Other(nn.LinearConfig(2, 3).init(DEVICE))


#: What the module is, what the file was made of, and what strictness has to name.
CASES = {
    "all fits": (net, net, {}),
    "a bias is missing": (net, lambda: net(bias=False), {"fc.bias": "missing"}),
    "a bias is left over": (lambda: net(bias=False), net, {"fc.bias": "left over"}),
    "a layer is missing": (
        lambda: net(extra=True),
        net,
        {"extra.weight": "missing", "extra.bias": "missing"},
    ),
    "a layer is left over": (
        net,
        lambda: net(extra=True),
        {"extra.weight": "left over", "extra.bias": "left over"},
    ),
    "another shape": (net, lambda: net(5), {"fc.weight": "shape", "fc.bias": "shape"}),
    "nothing in common": (
        other,
        net,
        {"other.weight": "missing", "other.bias": "missing", "fc.weight": "left over"},
    ),
}
RECORDERS = {
    type(recorder).__name__: recorder
    for recorder in (
        NamedMpkFileRecorder(FullPrecisionSettings),
        NamedMpkGzFileRecorder(FullPrecisionSettings),
        BinFileRecorder(FullPrecisionSettings),
        BinGzFileRecorder(FullPrecisionSettings),
        JsonGzFileRecorder(FullPrecisionSettings),
        PrettyJsonFileRecorder(FullPrecisionSettings),
        BurnpackRecorder(FullPrecisionSettings),
        SafetensorsRecorder(FullPrecisionSettings),
    )
}


def from_pytorch(source, path):
    file = to_pytorch(source, path / "x.pt")
    return PyTorchFileRecorder(FullPrecisionSettings).load(file, DEVICE)


def from_safetensors(source, path):
    store = SafetensorsStore.from_file(path / "x.safetensors")
    args = SafeArgs(source.save_into(store))
    args = args.with_adapter_type(AdapterType.NoAdapter)
    return SafetensorsFileRecorder(FullPrecisionSettings).load(args, DEVICE)


def store_of_pytorch(source, path):
    return PytorchStore.from_file(to_pytorch(source, path / "x.pt"))


def store_of_safetensors(source, path):
    store = SafetensorsStore.from_file(path / "x.safetensors")
    source.save_into(store)
    return SafetensorsStore.from_file(path / "x.safetensors")


RECORDS = {
    "record": lambda source, path: source.into_record(),
    "PyTorchFileRecorder": from_pytorch,
    "SafetensorsFileRecorder": from_safetensors,
    **{
        name: lambda source, path, each=each: each.load(
            each.record(source.into_record(), path / "x"), DEVICE
        )
        for name, each in RECORDERS.items()
    },
}
STORES = {"PytorchStore": store_of_pytorch, "SafetensorsStore": store_of_safetensors}
#: Records that say what their module has not: there it is a decision.
SAY_NONE = {"record", *RECORDERS} - {"BurnpackRecorder", "SafetensorsRecorder"}
#: Without names, a file of another structure cannot be read at all.
WITHOUT_NAMES = {"BinFileRecorder", "BinGzFileRecorder"}


def seen(text, path):
    """What an error says about a path."""
    row = next((r.strip() for r in text.splitlines() if r.strip().startswith(path)), "")
    for words, kind in (
        ("not in the record", "missing"),
        ("missing", "missing"),
        ("not in the module", "left over"),
        ("module [", "shape"),
    ):
        if words in row:
            return kind
    return row


def strict(way, module, source, path):
    if way in STORES:
        return module.load_from(STORES[way](source, path))[0]
    return module.load_record(RECORDS[way](source, path))


def partly(way, module, source, path):
    """The module and the names that were loaded, kept and left over."""
    if way in STORES:
        store = STORES[way](source, path).allow_partial(True)
        made, found = module.load_from(store)
        kept = {name for name, _ in found.missing} | {e.path for e in found.errors}
        return made, set(found.applied), kept, set(found.unused)
    made, found = module.load_partial(RECORDS[way](source, path))
    return made, set(found.loaded), set(found.kept), set(found.unused)


PAIRS = [(way, case) for way in [*RECORDS, *STORES] for case in CASES]


@pytest.mark.parametrize(("way", "case"), PAIRS)
def test_strict_is_strict_in_both_directions(way, case, tmp_path):
    module, source, wanted = CASES[case]
    if not wanted:
        loaded = strict(way, module(), source(), tmp_path)
        assert loaded.num_params() == module().num_params()
        return
    absent = {"a bias is missing", "a layer is missing"}
    if way in SAY_NONE and case in absent:
        with pytest.warns(UserWarning, match="left out in the record") as told:
            strict(way, module(), source(), tmp_path)
        assert all(path in str(told[0].message) for path in wanted)
        return
    with pytest.raises(RecordError) as error:
        strict(way, module(), source(), tmp_path)
    if way in WITHOUT_NAMES and case in ("nothing in common", "a layer is left over"):
        return
    text = str(error.value)
    assert {path: seen(text, path) for path in wanted} == wanted
    assert error.value.cure


@pytest.mark.parametrize(("way", "case"), PAIRS)
def test_a_partial_load_takes_what_fits_and_removes_nothing(way, case, tmp_path):
    module, source, wanted = CASES[case]
    if way in WITHOUT_NAMES and case in ("nothing in common", "a layer is left over"):
        return
    model = module()
    names = {path for path, _ in model.named_params()}
    kept = {path for path, why in wanted.items() if why != "left over"}
    if kept == names:
        with pytest.warns(UserWarning, match=r"0 of 2 parameters .*loaded") as told:
            found = partly(way, model, source(), tmp_path)
        assert told[0].filename == __file__
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = partly(way, model, source(), tmp_path)
    made, loaded, held, unused = found
    assert {path for path, _ in made.named_params()} == names
    assert (loaded, held) == (names - kept, kept)
    assert unused >= {path for path, why in wanted.items() if why == "left over"}
    for path, param in made.named_params():
        if path in kept:
            assert param is dict(model.named_params())[path]


@pytest.mark.parametrize("way", [*RECORDS, *STORES])
def test_what_is_left_over_may_be_allowed(way, tmp_path):
    source = net(extra=True)
    if way in STORES:
        made, _ = net().load_from(STORES[way](source, tmp_path).allow_unused(True))
    elif way in WITHOUT_NAMES:
        return
    else:
        made = net().load_record(RECORDS[way](source, tmp_path).allow_unused(True))
    wanted = np.asarray(source.fc.weight.val())
    np.testing.assert_array_equal(np.asarray(made.fc.weight.val()), wanted)
