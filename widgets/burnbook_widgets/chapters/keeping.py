"""Building blocks · Config. The exercises about configs, records, data and files.

They belong to chapters 4.9 to 4.11 and 6; see exercises.py for the others.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from burnbook import record
from burnbook.config import Config, ConfigEnum
from burnbook.data import Dataset, MapperDataset, MnistItem
from burnbook.nn import LinearConfig
from burnbook.prelude import Numpy
from burnbook_widgets.chapters.answers import Holds, Value


def stack_config(kind: Any) -> str | None:
    """Ask for width, depth = 2, and no depth below 1."""
    if not (isinstance(kind, type) and issubclass(kind, Config)):
        return "it should be a class of configs"
    make: Any = kind
    tree = json.loads(make(8).to_json())
    if tree != {"width": 8, "depth": 2}:
        return f"with width 8 it holds {tree}"
    make(8).with_depth(1)
    for depth in (0, -1):
        try:
            make(8).with_depth(depth)
        except ValueError:
            continue
        return f"a depth of {depth} passes"
    return None


def label_choice(kind: Any) -> str | None:
    """Ask for Off, Smooth with a number, Mix with two names."""
    if not (isinstance(kind, type) and issubclass(kind, ConfigEnum)):
        return "it should be a class of choices"
    holder: Any = type("Holder", (Config,), {"__annotations__": {"labels": kind}})
    for part in ("Off", {"Smooth": 0.1}, {"Mix": {"alpha": 0.2, "classes": 10}}):
        text = json.dumps({"labels": part})
        if json.loads(holder.from_json(text).to_json()) != json.loads(text):
            return f"{part} comes back as another JSON"
    return None


def six_runs(configs: Any) -> str | None:
    """Ask for three rates and two sizes, rate by rate."""
    rates = [rate for rate in (1e-2, 1e-3, 1e-4) for _ in range(2)]
    found = [(config.learning_rate, tuple(config.sizes)) for config in configs]
    right = list(zip(rates, [(28, 28), (32, 32)] * 3, strict=True))
    if len(found) != 6:
        return f"there are {len(found)}, and should be 6"
    wrong = [i for i in range(6) if found[i] != right[i]]
    return f"number {wrong[0]} has {found[wrong[0]]}" if wrong else None


def lasting_recorder(recorder: Any) -> str | None:
    """Ask for names, a checksum, and at least 32 bits."""
    if not isinstance(recorder, record.Recorder):
        return "it is not a recorder"
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
        return None if Path(str(made)) == wanted else "it returns something else"


def renaming(rename: Any) -> str | None:
    """Ask for the same tree with one part under another name."""
    tree = {"body": {"weight": 1}, "fc": {"body": 2}}
    found = rename(tree, "body", "trunk")
    if found is ... or found is None:
        return "it returns nothing yet"
    if found != {"trunk": {"weight": 1}, "fc": {"body": 2}}:
        return f"it returns {found}"
    return None if "body" in tree else "the record that was given has changed"


def revival(revive: Any) -> str | None:
    """Ask for the model that the bytes were made of."""
    config = LinearConfig(2, 3)
    layer = config.init(Numpy())
    data = record.BinBytesRecorder().record(layer.into_record())
    made = revive(data, config, Numpy())
    if not hasattr(made, "weight"):
        return "it returns no layer yet"
    right = np.array_equal(made.weight.val(), layer.weight.val())
    return None if right else "its weights are others"


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
        return None if made.metadata.settings == wanted else "it has another precision"


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
    if not isinstance(dataset, Dataset):
        return "it is not a dataset"
    found = [dataset.get(i) for i in range(len(dataset))]
    if found != [2, -1, 5]:
        return f"it holds {found}"
    lazy = isinstance(dataset, MapperDataset)
    return None if lazy else "nothing in it maps"


def two_parts(parts: Any) -> str | None:
    """Ask for 70 and 30 of 0 … 99, mixed, each number once."""
    sizes = [len(part) for part in parts]
    if sizes != [70, 30]:
        return f"their lengths are {sizes}"
    one, other = (list(part) for part in parts)
    if sorted(one + other) != list(range(100)):
        return "some numbers are missing, or come twice"
    return "they are not mixed" if one == sorted(one) else None


def mirroring(mapper: Any) -> str | None:
    """Ask for the image turned left to right, with its label."""
    image = np.arange(784, dtype=np.float32).reshape(28, 28)
    made = mapper.map(MnistItem(image, 3))
    if not hasattr(made, "image"):
        return "it returns no item yet"
    if made.label != 3:
        return "its label is another"
    return None if np.array_equal(made.image, image[:, ::-1]) else "not that image"


KEEPING: dict[str, Value | Holds] = {
    "4.9.1": Value(
        lambda: ["d_model", "bias", "note", "dropout"],
        "first what must be given, then options, then defaults",
    ),
    "4.9.2": Holds(stack_config, "width: int, depth: int = 2, and a method validate"),
    "4.9.3": Holds(label_choice, "unit(), holding(float), holding(name=type, …)"),
    "4.9.4": Holds(six_runs, "run.with_learning_rate(…).with_sizes(…), two loops"),
    "4.10.1": Value(lambda: 200_960, "two bytes per element, of weights and biases"),
    "4.10.2": Holds(lasting_recorder, "names, gzip, full precision"),
    "4.10.3": Holds(conversion, "source.load(path), then target.record(…, path)"),
    "4.10.4": Holds(renaming, "a dict with one key exchanged; leave the parts alone"),
    "4.11.1": Value(lambda: 8_737, "n items have n − size + 1 windows"),
    "4.11.2": Holds(differences, "windows of two, then a mapper"),
    "4.11.3": Holds(two_parts, "shuffle first, then two views"),
    "4.11.4": Holds(mirroring, "image[:, ::-1]"),
    "6.1": Value(lambda: "model.mpk.gz", "what is behind the last dot is replaced"),
    "6.2": Holds(revival, "BinBytesRecorder(…).load, config.init, load_record"),
    "6.3": Holds(two_files, "config.save, model.save_file; which recorder is compact?"),
    "6.4": Holds(careful_loading, "try, and except RecordError"),
}
