"""Safetensors: the format of Hugging Face and of burn-store.

Eight bytes with the length of a JSON text, the text (names, types, shapes, positions),
and the elements without gaps. Ids of parameters have no place in it: a module that
loads such a file keeps its own.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

from burnbook.core.errors import RecordError
from burnbook.core.files import PathLike
from burnbook.record import json_text
from burnbook.record.burnpack import NamedMetadata, NamedTensorRecorder
from burnbook.record.flat import Named, Slot, flatten, nest, read_slots
from burnbook.record.layout import Lowering, Pieces
from burnbook.record.quantized import DEQUANTIZE
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

HEAD = 8
TEXTS = "__metadata__"
# From the widest type to the narrowest, so that every tensor starts at a multiple of
# its element's size; in the order of the format's own writer.
ORDER: dict[str, int] = {
    name: place
    for place, name in enumerate(
        "U64 I64 F64 F32 U32 I32 BF16 F16 U16 I16 I8 U8 BOOL".split()  # noqa: SIM905
    )
}


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
            warnings.warn(doubtful(where, why), stacklevel=4)

    def encode(self, record: BurnRecord, lower: Lowering) -> Pieces:
        """The record as safetensors, the widest types first."""
        parts: list[Named] = []
        for part in flatten(record.item, lower):
            if not isinstance(part, Named):
                what = f"{short(part[0])} is a number; only tensors fit here"
                raise Trouble(what, cure=OTHERWISE)
            if part.name == TEXTS:
                raise Trouble(f"{TEXTS} is not the name of a tensor", "another name")
            if not isinstance(part.dtype, str):
                what = f"{short(part.name)} is quantized, which this format cannot say"
                raise Trouble(what, cure=DEQUANTIZE)
            parts.append(part._replace(dtype=part.dtype.upper()))
        parts.sort(key=lambda part: (ORDER[part.dtype], part.name))
        top: dict[str, Any] = {}
        texts = self.texts(record)
        if record.metadata is self.metadata and layout_of(record.item, texts)[0] == "?":
            texts = {"producer": "burnbook"} | texts
        if texts:
            top[TEXTS] = texts
        end = 0
        for part in parts:
            span = [end, end := end + len(part.content)]
            top[part.name] = {
                "dtype": part.dtype,
                "shape": part.shape,
                "data_offsets": span,
            }
        try:
            text = json.dumps(top, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:
            raise Trouble("a name is not Unicode", "whole characters") from None
        text += b" " * (-len(text) % 8)
        yield len(text).to_bytes(HEAD, "little") + text
        for part in parts:
            yield part.content

    def decode(self, data: bytes) -> BurnRecord:
        """Read safetensors; anything incomplete raises Trouble."""
        length = int.from_bytes(data[:HEAD], "little")
        if len(data) < HEAD or length > len(data) - HEAD:
            what = "the file ends inside its names"
            found = f"{max(len(data) - HEAD, 0)} bytes"
            raise Trouble(what, f"{length} bytes", found)
        top = json_text.decode(data[HEAD : HEAD + length])
        if not isinstance(top, dict):
            raise Trouble("the names are not a map", "tensors by name")
        texts = top.pop(TEXTS, {})
        if not isinstance(texts, dict) or not all(
            isinstance(text, str) for text in texts.values()
        ):
            raise Trouble(f"{TEXTS} holds no texts", "names and texts")
        slots = [_slot(name, about) for name, about in top.items()]
        leaves = read_slots(slots, memoryview(data)[HEAD + length :], gaps=False)
        metadata = NamedMetadata("", "", self.written, "", "", texts)
        return BurnRecord(metadata, nest(leaves, len(data)))


def _slot(name: str, about: Any) -> Slot:
    keys = ("dtype", "shape", "data_offsets")
    if not isinstance(about, dict) or about.keys() != set(keys):
        raise Trouble(f"{short(name)} is not described", ", ".join(keys))
    dtype = "Bool" if about["dtype"] == "BOOL" else about["dtype"]
    return Slot(name, dtype, about["shape"], about["data_offsets"])
