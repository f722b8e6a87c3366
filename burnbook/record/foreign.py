"""What a file is that a recorder could not read."""

from __future__ import annotations

FROM_TORCH = (
    "burnbook import-pytorch FILE, or PyTorchFileRecorder in burnbook.importers.pytorch"
)
FROM_ONNX = "burnbook import-onnx FILE, or load in burnbook.importers.onnx"
MOST_NAMES = 100_000_000  # bytes that the names in safetensors take
_SIGNS = [
    (b"\x1f\x8b", "gzip", "NamedMpkGzFileRecorder or JsonGzFileRecorder"),
    (b"NRUB", "burnpack", "BurnpackRecorder"),
    (b"PK\x03\x04", "a zip archive, perhaps of PyTorch", FROM_TORCH),
    (b"\x80\x02", "a pickle, perhaps of PyTorch", FROM_TORCH),
    (b"\x03f32\x03i32", "bincode", "BinFileRecorder"),
    (b"\x17half::binary16", "bincode", "BinFileRecorder"),
    (b"version https://git-lfs", "a pointer of Git LFS", "git lfs pull"),
    (b"<", "a web page or XML", "downloading the file itself"),
    (b"{", "JSON", "PrettyJsonFileRecorder"),
    (b"\x83\xa8metadata", "named MessagePack", "NamedMpkFileRecorder"),
]


# The key of what follows the version in an ONNX model: texts, a graph, or an opset.
_AFTER_IR = {bytes([field << 3 | 2]) for field in (2, 3, 4, 6, 7, 8, 14)} | {b"\x28"}


def guess(data: bytes) -> tuple[str, str]:
    """What a file that begins like this is, and what to try; empty texts if unknown.

    Example:
        >>> guess(b"{}")
        ('JSON', 'PrettyJsonFileRecorder')
        >>> guess(bytes([8, 10]) + b":") == ("an ONNX model", FROM_ONNX)
        True
    """
    if not data:
        return "an empty file", "the file as it was written; this one was cut off"
    if data[8:9] == b"{" and int.from_bytes(data[:8], "little") <= MOST_NAMES:
        return "safetensors", "SafetensorsRecorder, or burnbook inspect FILE"
    if data[:1] == b"\x08" and b"\0" < data[1:2] < b" " and data[2:3] in _AFTER_IR:
        return "an ONNX model", FROM_ONNX
    for sign, kind, cure in _SIGNS:
        if data.startswith(sign):
            return kind, cure
    return "", ""
