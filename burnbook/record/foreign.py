"""What a file is that a recorder could not read."""

from __future__ import annotations

FROM_TORCH = (
    "burnbook import-pytorch FILE, or PyTorchFileRecorder in burnbook.importers.pytorch"
)
FROM_ONNX = "burnbook import-onnx FILE, or load in burnbook.importers.onnx"
KERAS = (
    "save_file({v.path: v.numpy() for v in model.weights}, 'model.safetensors') in "
    "Keras, with safetensors.numpy"
)
MOST_NAMES = 100_000_000  # bytes that the names in safetensors take
_SIGNS = [
    (
        b"GGUF",
        "a GGUF file of llama.cpp",
        "the model's safetensors, or gguf.GGUFReader(path) of the package gguf",
    ),
    (b"\x89HDF\r\n", "HDF5, perhaps of Keras", KERAS),
    (b"\x93NUMPY", "an array of NumPy", "Tensor.from_data(numpy.load(path), device)"),
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


FROM_TFLITE = "python -m tf2onnx.convert --tflite FILE --output model.onnx"
FROM_ORT = "the .onnx file that it was made from, which import-onnx reads"
FROM_NPZ = "Tensor.from_data(numpy.load(path)[name], device)"
FROM_EXPORT = "torch.save(torch.export.load(path).state_dict, 'model.pt') in PyTorch"
FROM_PACKAGE = (
    "torch.save(torch.package.PackageImporter(path).load_pickle(package, name)"
    ".state_dict(), 'model.pt') in PyTorch"
)


def _in_zip(data: bytes) -> tuple[str, str] | None:
    """What an archive is by the name of its first member."""
    size = int.from_bytes(data[26:28], "little")
    return kind_of_member(data[30 : 30 + size].decode("latin-1"))


def kind_of_member(name: str) -> tuple[str, str] | None:
    """What an archive is that has a member of this name, and what to do."""
    if name.endswith(".npy"):
        return "an archive of NumPy", FROM_NPZ
    if name in ("metadata.json", "config.json", "model.weights.h5"):
        return "a model of Keras", KERAS
    if name.endswith(".data/extern_modules"):
        return "an archive of torch.package", FROM_PACKAGE
    if name.endswith(("archive_format", "models/model.json")):
        return "a program that torch.export has saved", FROM_EXPORT
    return None


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
    if data[4:8] == b"TFL3":
        return "a model of TensorFlow Lite", FROM_TFLITE
    if data[4:8] == b"ORTM":
        return "ONNX Runtime's own form of a model", FROM_ORT
    if data[:4] == b"PK\x03\x04" and (told := _in_zip(data)):
        return told
    for sign, kind, cure in _SIGNS:
        if data.startswith(sign):
            return kind, cure
    return "", ""
