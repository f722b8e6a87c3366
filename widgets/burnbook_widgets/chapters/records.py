"""The exercises about configs, records, data and files.

They belong to chapters 4.9 to 4.11 and 6; see exercises.py for the others.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from burnbook import record
from burnbook.config import Config, ConfigEnum
from burnbook.data import Dataset, Mapper, MapperDataset, MnistItem
from burnbook.nn import LinearConfig
from burnbook.prelude import Numpy
from burnbook_widgets.chapters.answers import (
    FUNCTION,
    Holds,
    Kind,
    Value,
    a_class,
    an,
    compare,
    described,
)


def stack_config(kind: Any) -> str | None:
    """Ask for width, depth = 2, and no depth below 1."""
    make: Any = kind
    if list(make.__annotations__) != ["width", "depth"]:
        return "its fields should be width and depth, in this order"
    tree = json.loads(make(8).to_json())
    if tree != {"width": 8, "depth": 2}:
        return f"with width 8 it holds {tree}, and its depth should be 2"
    _ = make(8).with_depth(1)
    for depth in (0, -1):
        try:
            _ = make(8).with_depth(depth)
        except ValueError:
            continue
        return f"a depth of {depth} passes: validate should raise"
    return None


def label_choice(kind: Any) -> str | None:
    """Ask for Off, Smooth with a number, Mix with two names."""
    holder: Any = type("Holder", (Config,), {"__annotations__": {"labels": kind}})
    for name in ("Off", "Smooth", "Mix"):
        if not hasattr(kind, name):
            return f"it has no choice {name}"
    for part in ("Off", {"Smooth": 0.1}, {"Mix": {"alpha": 0.2, "classes": 10}}):
        text = json.dumps({"labels": part})
        if json.loads(holder.from_json(text).to_json()) != json.loads(text):
            return f"{json.dumps(part)} is read, and comes back as another JSON"
    return None


def six_runs(configs: Any) -> str | None:
    """Ask for three rates and two sizes, rate by rate."""
    rates = [rate for rate in (1e-2, 1e-3, 1e-4) for _ in range(2)]
    if strange := [c for c in configs if not isinstance(c, Config)]:
        return f"it holds {described(strange[0])}, and should hold configs"
    found = [(config.learning_rate, tuple(config.sizes)) for config in configs]
    right = list(zip(rates, [(28, 28), (32, 32)] * 3, strict=True))
    if len(found) != 6:
        return f"there are {len(found)}, and should be 6"
    if found != right and sorted(found) == sorted(right):
        return "the right six in another order: both sizes of a rate, then the next"
    wrong = [i for i in range(6) if found[i] != right[i]]
    if not wrong:
        return None
    return f"number {wrong[0]} (counted from 0) has {found[wrong[0]]}"


def lasting_recorder(recorder: Any) -> str | None:
    """Ask for names, a checksum, and at least 32 bits."""
    if isinstance(recorder, record.BinFileRecorder):
        return "its files have no names"
    if not recorder.extension.endswith(".gz"):
        return "its files have no checksum"
    short = recorder.settings is record.HalfPrecisionSettings
    return "it rounds numbers" if short else None


def conversion(convert: Any) -> str | None:
    """Ask for the same record in another format, beside the first."""
    tree = {"step": 3, "rate": 0.5, "names": ["a", None]}
    source, target = record.DefaultRecorder(), record.DebugRecordSettings()
    with tempfile.TemporaryDirectory() as folder:
        path = source.record(tree, Path(folder) / "state")
        made = convert(path, source, target)
        wanted = Path(folder) / "state.json"
        if not wanted.is_file():
            return "there is no new file beside the first"
        if target.load(wanted) != tree:
            return "the new file holds another record"
        if Path(str(made)) == wanted:
            return None
        return f"the file is right; return its path, not {described(made)}"


def renaming(rename: Any) -> str | None:
    """Ask for the same tree with one part under another name."""
    tree = {"body": {"weight": 1}, "fc": {"body": 2}}
    found = rename(tree, "body", "trunk")
    if not isinstance(found, dict):
        return f"it returns {described(found)}, and should return a dict"
    if found == tree and "body" in tree:
        return "it returns the record as it was"
    if found != {"trunk": {"weight": 1}, "fc": {"body": 2}}:
        if found.get("fc") == {"trunk": 2}:
            return "it also renames what is inside a part; leave the parts alone"
        return f"of {tree} it makes {found}"
    return None if "body" in tree else "the record that was given has changed"


def revival(revive: Any) -> str | None:
    """Ask for the model that the bytes were made of."""
    config = LinearConfig(2, 3)
    layer = config.init(Numpy())
    data = record.BinBytesRecorder().record(layer.into_record())
    made = revive(data, config, Numpy())
    if not hasattr(made, "weight"):
        return f"it returns {described(made)}, and should return a model"
    right = np.array_equal(made.weight.val(), layer.weight.val())
    return None if right else "its weights are new ones, not those of the bytes"


def two_files(keep: Any) -> str | None:
    """Ask for config.json and model.mpk with half precision."""
    config = LinearConfig(2, 3)
    layer = config.init(Numpy())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        keep(config, layer, folder)
        for file in ("config.json", "model.mpk"):
            if not (folder / file).is_file():
                return f"there is no {file}"
        if LinearConfig.load(folder / "config.json") != config:
            return "config.json holds another config"
        made = record.describe(folder / "model.mpk")
        wanted = record.HalfPrecisionSettings.__name__
        if made.metadata.settings == wanted:
            return None
        return "model.mpk is not in half precision"


def careful_loading(load: Any) -> str | None:
    """Ask for the values of a file, or the model as it is."""
    recorder, layer = record.DefaultRecorder(), LinearConfig(2, 3).init(Numpy())
    with tempfile.TemporaryDirectory() as name:
        path = recorder.record(LinearConfig(2, 3).init(Numpy()), Path(name) / "a")
        other = recorder.record(LinearConfig(3, 3).init(Numpy()), Path(name) / "b")
        for wrong in (other, Path(name) / "c"):
            if load(layer, wrong, recorder) is not layer:
                return "it does not return the model when the file does not fit"
        made = load(layer, path, recorder)
        right = recorder.load(path)["weight"].param.to_numpy()
        loaded = np.array_equal(made.weight.val(), right)
        return None if loaded else "it does not load a file that fits"


def differences(dataset: Any) -> str | None:
    """Ask for the steps between 3, 5, 4 and 9, made when they are asked for."""
    found = [dataset.get(i) for i in range(len(dataset))]
    slips = [
        ([-2, 1, -5], "each is the earlier number less the later one"),
        ([8, 9, 13], "those are sums"),
    ]
    if trouble := compare([2, -1, 5], found, slips):
        return f"what it holds: {trouble}"
    lazy = isinstance(dataset, MapperDataset)
    return None if lazy else "nothing in it maps"


def two_parts(parts: Any) -> str | None:
    """Ask for 70 and 30 of 0 … 99, mixed, each number once."""
    if strange := [part for part in parts if not isinstance(part, Dataset)]:
        return f"one of the two is {described(strange[0])}, and should be a dataset"
    sizes = [len(part) for part in parts]
    if sizes == [30, 70]:
        return "the right lengths in another order: first 70, then 30"
    if sizes != [70, 30]:
        return f"their lengths are {sizes}, and should be [70, 30]"
    one, other = (list(part) for part in parts)
    if sorted(one + other) != list(range(100)):
        return "some numbers are missing, or come twice"
    return "they are not mixed" if one == sorted(one) else None


def mirroring(mapper: Any) -> str | None:
    """Ask for the image turned left to right, with its label."""
    image = np.arange(784, dtype=np.float32).reshape(28, 28)
    made = mapper.map(MnistItem(image, 3))
    if not hasattr(made, "image"):
        return f"map returns {described(made)}, and should return a MnistItem"
    if made.label != 3:
        return "the label changed; it should stay"
    if trouble := compare(image[:, ::-1], made.image):
        upside_down = np.array_equal(made.image, image[::-1])
        told = "top became bottom" if upside_down else trouble
        return f"the image: {told}"
    return None


PAIR = Kind(
    "two datasets, as (one, other)",
    lambda thing: isinstance(thing, (tuple, list)) and len(thing) == 2,
)
CONFIGS = an(list, tuple, called="a list of configs")


RECORDS: dict[str, Value | Holds] = {
    "4.9.1": Value(
        lambda: ["d_model", "bias", "note", "dropout"],
        "first what must be given, then options, then defaults",
        [
            (["dropout", "d_model", "note", "bias"], "that is the order of the fields"),
            (["d_model", "bias", "dropout", "note"], "options come before defaults"),
        ],
    ),
    "4.9.2": Holds(
        a_class(Config, "a class of configs"),
        stack_config,
        "width: int, depth: int = 2, and a method validate",
    ),
    "4.9.3": Holds(
        a_class(ConfigEnum, "a class of choices"),
        label_choice,
        "unit(), holding(float), holding(name=type, …)",
    ),
    "4.9.4": Holds(
        CONFIGS, six_runs, "run.with_learning_rate(…).with_sizes(…), two loops"
    ),
    "4.10.1": Value(
        lambda: 200_960,
        "two bytes per element, of weights and biases",
        [
            (401_920, "an element of half precision has two bytes"),
            (200_704, "the biases are missing"),
            (100_480, "those are the elements; each has two bytes"),
        ],
    ),
    "4.10.2": Holds(
        an(record.Recorder, called="a recorder"),
        lasting_recorder,
        "names, gzip, full precision",
    ),
    "4.10.3": Holds(
        FUNCTION, conversion, "source.load(path), then target.record(…, path)"
    ),
    "4.10.4": Holds(
        FUNCTION, renaming, "a dict with one key exchanged; leave the parts alone"
    ),
    "4.11.1": Value(
        lambda: 8_737,
        "n items have n − size + 1 windows",
        [
            (8_760, "the last windows would reach past the end of the year"),
            (365, "a window begins at every hour, not at every day"),
            (8_736, "one more: the last window ends with the year"),
        ],
    ),
    "4.11.2": Holds(
        an(Dataset, called="a dataset"), differences, "windows of two, then a mapper"
    ),
    "4.11.3": Holds(PAIR, two_parts, "shuffle first, then two views"),
    "4.11.4": Holds(an(Mapper, called="a mapper"), mirroring, "image[:, ::-1]"),
    "6.1": Value(
        lambda: "model.v2.mpk.gz",
        "a version in the name is no extension",
        [
            ("model.mpk.gz", "the .v2 is part of the name, and stays"),
            ("runs/model.v2.mpk.gz", "that is the path; asked is the name"),
            ("model.v2.mpk", "this recorder compresses"),
        ],
    ),
    "6.2": Holds(
        FUNCTION, revival, "BinBytesRecorder(…).load, config.init, load_record"
    ),
    "6.3": Holds(
        FUNCTION, two_files, "config.save, model.save_file; which recorder is compact?"
    ),
    "6.4": Holds(FUNCTION, careful_loading, "try, and except RecordError"),
}
