"""What a file is that a recorder could not read."""

from __future__ import annotations

FROM_TORCH = "PyTorchFileRecorder in burnbook.importers.pytorch"
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


def guess(data: bytes) -> tuple[str, str]:
    """What the first bytes look like, and what to try then; two empty texts if unknown.

    Example:
        >>> guess(b"{}")
        ('JSON', 'PrettyJsonFileRecorder')
    """
    if not data:
        return "an empty file", "the file as it was written; this one was cut off"
    if data[8:9] == b"{" and int.from_bytes(data[:8], "little") < len(data):
        return "safetensors", "SafetensorsRecorder"
    for sign, kind, cure in _SIGNS:
        if data.startswith(sign):
            return kind, cure
    return "", ""
