"""Building blocks · Record. Safetensors: the format of Hugging Face and of burn-store.

Eight bytes with the length of a JSON text, the text (names, types, shapes, places), and
the elements without gaps. Ids of parameters have no place in it: a module that loads
such a file keeps its own.
"""

from __future__ import annotations

import json
from typing import Any

from burnbook.record import json_text
from burnbook.record.burnpack import NamedMetadata, NamedTensorRecorder
from burnbook.record.flat import NO_TREE, Named, Slot, flatten, nest, read_slots
from burnbook.record.layout import Lowering, Pieces
from burnbook.record.tree import BurnRecord, Trouble, short

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

    The names are those of this module, not PyTorch's, and nothing is transposed.

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

    def encode(self, record: BurnRecord, lower: Lowering) -> Pieces:
        """The record as safetensors, the widest types first."""
        parts: list[Named] = []
        for part in flatten(record.item, lower):
            if not isinstance(part, Named):
                what = f"{short(part[0])} is a number, and here are only tensors"
                raise Trouble(what, cure=NO_TREE)
            if part.name == TEXTS:
                raise Trouble(f"{TEXTS} is not the name of a tensor", "another name")
            parts.append(part._replace(dtype=part.dtype.upper()))
        parts.sort(key=lambda part: (ORDER[part.dtype], part.name))
        top: dict[str, Any] = {}
        if self.texts(record):
            top[TEXTS] = self.texts(record)
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
        """Read safetensors; whatever is not whole is Trouble."""
        length = int.from_bytes(data[:HEAD], "little")
        if len(data) < HEAD or length > len(data) - HEAD:
            what = "the file ends inside its names"
            found = f"{max(len(data) - HEAD, 0)} bytes"
            raise Trouble(what, f"{length} bytes", found)
        top = json_text.decode(data[HEAD : HEAD + length])
        if not isinstance(top, dict):
            raise Trouble("the names are no map", "tensors by name")
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
