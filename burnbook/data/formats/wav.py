"""Sound in WAV files as floats from −1 to 1."""

from __future__ import annotations

import io
import wave
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.core.errors import DataError
from burnbook.core.files import PathLike, printable, read_whole, within_memory

CURE = "another copy of the file, or saving it as PCM with 8, 16, 24 or 32 bits"


def read_wav(path: PathLike) -> tuple[NDArray[np.float32], int]:
    """Read a WAV file: samples as floats from −1 to 1, and the sample rate.

    Shapes: the file -> [samples], or [samples, channels] if there are several
    """
    name = printable(path)
    with within_memory(f"wav {name}"):
        return parse_wav(read_whole(path), name)


def parse_wav(data: bytes, name: str) -> tuple[NDArray[np.float32], int]:
    """Turn the bytes of a WAV file into samples: sample = whole number / 2^(bits − 1).

    Shapes: data -> [samples], or [samples, channels] if there are several
    """
    try:
        with wave.open(io.BytesIO(data), "rb") as file:
            width, channels = file.getsampwidth(), file.getnchannels()
            rate, promised = file.getframerate(), file.getnframes()
            raw = file.readframes(min(promised, len(data)))
    except Exception as error:  # wave, its chunks and struct each raise their own
        text = str(error) or "it is cut off"
        what = f"{name} is not a readable WAV file: {text}"
        raise DataError("wav", what, cure=CURE) from None
    if width not in (1, 2, 3, 4) or channels < 1 or rate < 1:
        facts = [("bytes per sample", str(width)), ("channels", str(channels))]
        facts.append(("samples per second", str(rate)))
        raise DataError("wav", f"{name} is not a readable WAV file", facts, CURE)
    if len(raw) != promised * width * channels:
        what = f"{name} is cut off"
        facts = [
            ("header", f"{promised * width * channels:,} bytes of sound"),
            ("file", f"{len(raw):,} bytes of sound"),
        ]
        raise DataError("wav", what, facts, CURE)
    samples = _as_floats(raw, width)
    return (samples.reshape(-1, channels) if channels > 1 else samples), rate


def _as_floats(raw: bytes, width: int) -> NDArray[np.float32]:
    if width == 1:  # 8 bits count from 0
        whole: NDArray[Any] = np.frombuffer(raw, np.uint8).astype(np.int16) - 128
    elif width == 3:
        padded = np.zeros((len(raw) // 3, 4), np.uint8)
        padded[:, 1:] = np.frombuffer(raw, np.uint8).reshape(-1, 3)
        whole = padded.view("<i4")[:, 0] >> 8
    else:
        whole = np.frombuffer(raw, f"<i{width}")
    return (whole / 2.0 ** (8 * width - 1)).astype(np.float32)
