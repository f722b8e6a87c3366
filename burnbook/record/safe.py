"""Safetensors: the format of Hugging Face and of burn-store.

Ids of parameters have no place in it: a module that loads such a file keeps its own.
The bytes are described in `safetensors_format`.
"""

from __future__ import annotations

from typing import Any

from burnbook.core.errors import RecordError, warn_caller
from burnbook.core.files import PathLike
from burnbook.record.burnpack import NamedMetadata, NamedTensorRecorder
from burnbook.record.flat import Named, flatten, nest
from burnbook.record.layout import Lowering, Pieces
from burnbook.record.quantized import DEQUANTIZE
from burnbook.record.safetensors_format import Written, encode, read_tensors
from burnbook.record.settings import (
    FullPrecisionSettings,
    PrecisionSettings,
    Settings,
)
from burnbook.record.torch_layout import (
    LAYOUTS,
    TorchRecord,
    doubtful,
    foreign,
    layout_of,
)
from burnbook.record.tree import OTHERWISE, BurnRecord, Trouble, short


class SafetensorsRecorder(NamedTensorRecorder):
    """Safetensors in a file: tensors by name, and a few texts, but no ids.

    layout: "pytorch" turns the weights of Linear and renames those of norms when a
    module loads them; "burn" takes everything as it is. By default, `load` refuses a
    file that PyTorch wrote, and warns where nothing shows whose it is.

    Errors: a file of PyTorch without layout="pytorch", or an incomplete one.

    Example:
        >>> import tempfile
        >>> from burnbook.tensor.data import TensorData
        >>> folder = tempfile.TemporaryDirectory()
        >>> recorder = SafetensorsRecorder(metadata={"author": "me"})
        >>> tree = {"fc": {"weight": TensorData([[1.0, 2.0]])}}
        >>> path = recorder.record(tree, folder.name + "/model")
        >>> recorder.read(path).metadata.texts, recorder.load(path)
        ({'author': 'me'}, {'fc': {'weight': TensorData f32 [1, 2]}})
        >>> folder.cleanup()
    """

    written = "SafetensorsRecorder"
    kind = "safetensors"
    extension = "safetensors"

    def __init__(
        self,
        settings: Settings | PrecisionSettings = FullPrecisionSettings,
        metadata: dict[str, str] | None = None,
        layout: str | None = None,
    ) -> None:
        """Choose the precision, texts to write, and whose layout to read."""
        super().__init__(settings, metadata)
        if layout not in (None, *LAYOUTS):
            what = f"{layout!r} is not a layout"
            raise RecordError("SafetensorsRecorder", what, cure=" or ".join(LAYOUTS))
        self.layout = layout

    def load(self, path: PathLike, device: Any = None) -> Any:
        """Read a record and convert it: to the settings, then to the device's types.

        Of a file in PyTorch's layout it is a record for a module to load.

        Raises:
            RecordError: there is no such file, it cannot be read, it is damaged, or its
                layout is PyTorch's and the recorder was not told so.
        """
        found = super().load(path, device)
        if self.layout == "pytorch" and isinstance(found, dict):
            return TorchRecord(found)
        return found

    def accept(self, record: BurnRecord, where: str) -> None:
        """Raise for a file in PyTorch's layout; warn where the layout is unknown."""
        if self.layout is not None:
            return
        layout, why = layout_of(record.item, self.texts(record))
        if layout == "pytorch":
            raise foreign(where, why)
        if layout == "?":
            warn_caller(doubtful(where, why))

    def encode(self, record: BurnRecord, lower: Lowering) -> Pieces:
        """The record as safetensors, the widest types first."""
        if self.layout == "pytorch":
            what = "this recorder reads PyTorch's layout and writes Burn's"
            raise Trouble(what, cure="burnbook.exporters.to_pytorch(model, path)")
        parts: list[Named] = []
        for part in flatten(record.item, lower):
            if not isinstance(part, Named):
                what = f"{short(part[0])} is a number; only tensors fit here"
                raise Trouble(what, cure=OTHERWISE)
            if not isinstance(part.dtype, str):
                what = f"{short(part.name)} is quantized, which this format cannot say"
                raise Trouble(what, cure=DEQUANTIZE)
            parts.append(part)
        texts = self.texts(record)
        if record.metadata is self.metadata and layout_of(record.item, texts)[0] == "?":
            texts = {"producer": "burnbook"} | texts
        return encode(map(Written.of, parts), texts)

    def decode(self, data: bytes) -> BurnRecord:
        """Read safetensors; anything incomplete raises Trouble."""
        leaves, texts = read_tensors(data)
        metadata = NamedMetadata("", "", self.written, "", "", texts)
        return BurnRecord(metadata, nest(leaves, len(data)))
