"""Speech commands: one second, one spoken word.

P. Warden, "Speech Commands: a dataset for limited-vocabulary speech recognition",
2018, arXiv:1804.03209, version 0.02: 35 words by 2,618 people, and recorded noise.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from burnbook.core.errors import ConfigError, DataError
from burnbook.core.files import (
    cache_dir,
    fixed,
    read_whole,
)
from burnbook.data.dataset.base import Dataset, no_number
from burnbook.data.dataset.source.download import (
    Archive,
    Report,
    archives_of,
    as_checksum,
    default_report,
    obtain_folder,
)
from burnbook.data.dataset.source.downloaded import Checksums
from burnbook.data.dataset.split import SplitDataset
from burnbook.data.dataset.transform.transform import Mapper, MapperDataset
from burnbook.data.formats.archive import Bounds
from burnbook.data.formats.idx import AGAIN
from burnbook.data.formats.wav import parse_wav

VARIABLE = "BURNBOOK_SPEECH_COMMANDS_MIRROR"
BOUNDS = Bounds(files=120_000, size=6 << 30)
FOLDERS = (
    "https://storage.googleapis.com/download.tensorflow.org/data/",
    "http://download.tensorflow.org/data/",
)
KNOWN = {
    "train": Archive(
        "speech_commands_v0.02.tar.gz",
        2_428_923_189,
        "af14739ee7dc311471de98f5f9d2c9191b18aedfe957f4a6ff791c709868ff58",
        BOUNDS,
    ),
    "test": Archive("speech_commands_test_set_v0.02.tar.gz", 112_563_277, None, BOUNDS),
}
NOISE = ("_background_noise_", "_silence_")  # its names in the two archives
NOISE_OF_VALIDATION = "_background_noise_/running_tap.wav"


class SpeechCommandClass(IntEnum):
    """What was said."""

    Yes = 0
    No = 1
    Up = 2
    Down = 3
    Left = 4
    Right = 5
    On = 6
    Off = 7
    Stop = 8
    Go = 9
    Zero = 10
    One = 11
    Two = 12
    Three = 13
    Four = 14
    Five = 15
    Six = 16
    Seven = 17
    Eight = 18
    Nine = 19
    Bed = 20
    Bird = 21
    Cat = 22
    Dog = 23
    Happy = 24
    House = 25
    Marvin = 26
    Sheila = 27
    Tree = 28
    Wow = 29
    Backward = 30
    Forward = 31
    Follow = 32
    Learn = 33
    Visual = 34
    Silence = 35
    Other = 36


CLASS_OF = {
    **{one.name.lower(): one for one in SpeechCommandClass},
    **dict.fromkeys(NOISE, SpeechCommandClass.Silence),
}


@dataclass(frozen=True, slots=True)
class SpeechItemRaw:
    """A recording as it is stored: the bytes of its file, what was said, and where.

    `is_unknown` says that the word is not one of the ten commands Yes … Go.
    """

    audio_bytes: bytes
    label: SpeechCommandClass
    is_unknown: bool
    path: str


@dataclass(frozen=True, slots=True, eq=False)
class SpeechItem:
    """A recording: samples from −1 to 1, the sample rate, and what was said.

    Shapes: audio_samples [samples]
    """

    audio_samples: NDArray[np.float32]
    sample_rate: int
    label: SpeechCommandClass

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SpeechItem):
            return NotImplemented
        same = np.array_equal(self.audio_samples, other.audio_samples)
        return same and (self.sample_rate, self.label) == (
            other.sample_rate,
            other.label,
        )

    def __repr__(self) -> str:
        seconds = len(self.audio_samples) / self.sample_rate
        return f"SpeechItem({self.label.name}, {seconds:.2f} s, {self.sample_rate} Hz)"


class ConvertSamples(Mapper[SpeechItemRaw, SpeechItem]):
    """Turn the bytes of a WAV file into samples."""

    def map(self, item: SpeechItemRaw) -> SpeechItem:
        """Return the recording as floats."""
        samples, rate = parse_wav(item.audio_bytes, item.path)
        return SpeechItem(samples.reshape(-1), rate, item.label)


class Recordings(Dataset[SpeechItemRaw]):
    """WAV files and what is said in each; a file is read when it is asked for."""

    def __init__(self, files: list[tuple[Path, str]]) -> None:
        self.files = files  # place, word

    def get(self, index: int) -> SpeechItemRaw | None:
        """Return recording `index`, or None where there is none."""
        try:
            index = operator.index(index)
        except TypeError as error:
            raise no_number(self, index) from error
        if not 0 <= index < len(self.files):
            return None
        path, word = self.files[index]
        label = CLASS_OF[word]
        known = label <= SpeechCommandClass.Go or label is SpeechCommandClass.Silence
        return SpeechItemRaw(read_whole(path), label, not known, str(path))

    def __len__(self) -> int:
        return len(self.files)


class SpeechCommandsDataset(SplitDataset[SpeechItem]):
    """Spoken words: 84,848 for training, 9,982 for validation, 4,890 for testing.

    The first use downloads and unpacks an archive (2.4 GB; 113 MB for the test part);
    later uses read the cache. `BURNBOOK_SPEECH_COMMANDS_MIRROR` names a folder with the
    archives to try first; `checksums` gives the SHA-256 or MD5 of archives that are not
    the original ones. The parts are those of Hugging Face, which Burn uses; the label
    follows the word (Burn takes Hugging Face's number of noise for `Other`).

    Shapes: audio_samples [samples], most of them 16,000
    """

    classes = tuple(one.name for one in SpeechCommandClass)

    @classmethod
    def train(cls, progress: Report | None = None, checksums: Checksums = None) -> Self:
        """Return what is in neither list of the archive."""
        folder = _folder("train", progress, checksums)
        held = {*_listed(folder, "validation"), *_listed(folder, "testing")}
        chosen = [name for name in _names(folder) if name not in held]
        return cls._of(folder, chosen, "train")

    @classmethod
    def validation(
        cls, progress: Report | None = None, checksums: Checksums = None
    ) -> Self:
        """Return what the archive lists for validation, and one piece of noise."""
        folder = _folder("train", progress, checksums)
        held = set(_listed(folder, "validation"))
        chosen = [name for name in _names(folder) if name in held]
        return cls._of(folder, chosen, "validation")

    @classmethod
    def test(cls, progress: Report | None = None, checksums: Checksums = None) -> Self:
        """Return the test set, which is an archive of its own."""
        folder = _folder("test", progress, checksums)
        return cls._of(folder, list(_names(folder)), "test")

    @classmethod
    def from_folder(cls, root: str | Path) -> Self:
        """Take every recording `root/<word>/<name>.wav`."""
        folder = fixed(root)
        return cls._of(folder, list(_names(folder)), folder.name)

    @classmethod
    def _of(cls, folder: Path, names: list[str], split: str) -> Self:
        if not names:
            what = f"there are no recordings of known words for {split} in {folder}"
            raise DataError("speech commands", what, cure=AGAIN)
        files = [(folder / name, _word(name)) for name in names]
        return cls(MapperDataset(Recordings(files), ConvertSamples()), split)


def _folder(split: str, progress: Report | None, checksums: Checksums) -> Path:
    """Fetch and unpack the archive of one part."""
    known = KNOWN[split]
    own = dict(checksums or {})
    unknown = sorted(set(own) - {archive.url for archive in KNOWN.values()})
    if unknown:
        what = f"there is no archive {unknown[0]!r}"
        facts = [("archives", ", ".join(archive.url for archive in KNOWN.values()))]
        raise ConfigError("checksums", what, facts)
    if known.url in own:
        known = replace(known, size=None, checksum=as_checksum(own[known.url]))
    archives = [replace(known, url=folder + known.url) for folder in FOLDERS]
    place = cache_dir() / "speech_commands" / known.url.removesuffix(".tar.gz")
    offline = (
        f"put {known.url} into {place.parent}; "
        f"or {VARIABLE}=file:///folder/with/it; or SpeechCommandsDataset.from_folder"
    )
    mirrors = archives_of(VARIABLE, archives)
    return obtain_folder(place, mirrors, offline, progress or default_report())


def _names(folder: Path) -> Iterator[str]:
    """Give the recordings of known words as `word/name.wav`, in order."""
    if not folder.is_dir():
        raise DataError("speech commands", f"there is no folder {folder}")
    for inside in sorted(folder.iterdir()):
        if inside.name in CLASS_OF or inside.name == "_unknown_":
            for path in sorted(inside.glob("*.wav")):
                name = f"{inside.name}/{path.name}"
                if _word(name) in CLASS_OF:
                    yield name


def _word(name: str) -> str:
    """Return what is said: the folder, or in `_unknown_` the name's beginning."""
    folder, _, file = name.partition("/")
    return file.partition("_")[0] if folder == "_unknown_" else folder


def _listed(folder: Path, part: str) -> list[str]:
    """Return the names that a list of the archive holds."""
    lines = read_whole(folder / f"{part}_list.txt").decode("utf-8", errors="replace")
    names = [line.strip() for line in lines.splitlines() if line.strip()]
    return [*names, NOISE_OF_VALIDATION] if part == "validation" else names
