"""From any format of records to any other: `convert`.

    convert("model.bpk", "model.mpk")
    convert("model.mpk", "small.safetensors", precision=HalfPrecisionSettings)
    convert("model.bin", "model.json", module=ModelConfig(10, 512).init(Numpy()))

Names and element types stay. What a format lacks is added: ids where it has none, lists
where it only has numbered names. Only bincode needs the module, because it has no
names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from burnbook.core.errors import RecordError
from burnbook.core.files import (
    PathLike,
    at_home,
)
from burnbook.module.param import ParamId, ParamRecord
from burnbook.record.binary import BinFileRecorder, SealedRecord
from burnbook.record.burnpack import NamedTensorRecorder
from burnbook.record.burnpack_states import is_optimizer
from burnbook.record.inspection import recorder_for, recorder_to_write
from burnbook.record.settings import (
    DoublePrecisionSettings,
    FullPrecisionSettings,
    HalfPrecisionSettings,
    Settings,
)
from burnbook.record.tree import BurnRecord, tensors
from burnbook.tensor.data import TensorData

PRECISIONS: dict[str, Settings] = {
    "full": FullPrecisionSettings,
    "half": HalfPrecisionSettings,
    "double": DoublePrecisionSettings,
}


def convert(
    source: PathLike,
    target: PathLike,
    *,
    precision: Settings | None = None,
    module: Any = None,
) -> Path:
    """Write the record in `source` into `target`; the names say in which format.

    precision: by default, every tensor keeps its element type. module: a module of that
    structure, which bincode needs; with it, everything is checked against the module.

    Example:
        >>> import tempfile
        >>> from burnbook.record import NamedMpkFileRecorder, describe
        >>> folder = tempfile.TemporaryDirectory()
        >>> record = {"fc": ParamRecord(ParamId(1).serialize(), TensorData([1.0, 2.0]))}
        >>> path = NamedMpkFileRecorder().record(record, folder.name + "/model")
        >>> print(describe(convert(path, folder.name + "/model.safetensors")))
        model.safetensors: SafetensorsRecorder
          fc  [2]  f32
          1 tensors, 2 elements
        >>> folder.cleanup()
    """
    where = f"convert {source}"
    reader = recorder_for(Path(at_home(source)), where)
    writer_type = type(recorder_to_write(Path(at_home(target)), Path(source)))
    needing = [t for t in (type(reader), writer_type) if issubclass(t, BinFileRecorder)]
    if needing and module is None:
        raise RecordError(
            where,
            "bincode has no names, so it needs the module",
            cure="module=… in Python, --module package.file:function as a command",
        )
    record = reader.read(source)
    if module is None and not issubclass(writer_type, type(reader)):
        reader.accept(record, where)
    settings = precision or _settings_of(record, module)
    item = record.item
    if module is not None:
        item = module.load_record(item).into_record()
    if issubclass(writer_type, NamedTensorRecorder):
        texts = getattr(record.metadata, "texts", None)
        writer = writer_type(settings, texts)
    else:
        writer = writer_type(settings)
        flat = isinstance(reader, NamedTensorRecorder) and module is None
        if flat and not is_optimizer(item):
            item = with_lists_and_ids(item)
    if precision is None and module is None:
        return writer.write(BurnRecord(writer.metadata, item), target)
    return writer.record(item, target)


def _settings_of(record: BurnRecord, module: Any) -> Settings:
    """The precision that a file was written with, by its metadata or its tensors."""
    named = {settings.__name__: settings for settings in PRECISIONS.values()}
    if record.metadata.settings in named:
        return named[record.metadata.settings]
    item = record.item
    if isinstance(item, SealedRecord):
        item = item.for_module(module)
    arrays = [data.array for _, data in tensors(item)]
    sizes = [np.dtype(a.dtype).itemsize for a in arrays if a.dtype.kind == "f"]
    by_size: dict[int, Settings] = {
        2: HalfPrecisionSettings,
        8: DoublePrecisionSettings,
    }
    return by_size.get(max(sizes, default=4), FullPrecisionSettings)


def with_lists_and_ids(item: object) -> Any:
    """The tree behind flat names: "0", "1", … are a list, and parameters have ids."""
    if isinstance(item, TensorData):
        return ParamRecord(ParamId.new().serialize(), item)
    if not isinstance(item, dict):
        return item
    parts = {name: with_lists_and_ids(part) for name, part in item.items()}
    places = [str(place) for place in range(len(parts))]
    if parts and sorted(parts) == sorted(places):
        return [parts[place] for place in places]
    return parts
