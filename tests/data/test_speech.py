"""Sound: WAV files of every depth, and the parts of the speech commands."""

import io
import struct
import tarfile
import wave

import numpy as np
import pytest

from burnbook.core.errors import ConfigError, DataError
from burnbook.data import SpeechCommandClass, SpeechCommandsDataset
from burnbook.data.dataset.audio import speech
from burnbook.data.dataset.audio.speech import SpeechItem
from burnbook.data.dataset.source.download import Archive
from burnbook.data.formats.archive import Bounds
from burnbook.data.formats.wav import parse_wav, read_wav
from tests.support import mirrors
from tests.support.cases import cases
from tests.support.mirrors import not_found, send

mirror, impatient = mirrors.mirror, mirrors.impatient  # fixtures


def wav(samples, width=2, channels=1, rate=16_000):
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((channels, width, rate, 0, "NONE", ""))
        for sample in samples:
            whole = sample + 128 if width == 1 else sample
            file.writeframesraw(whole.to_bytes(width, "little", signed=width > 1))
    return out.getvalue()


# WAV


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_every_depth_becomes_floats_between_minus_one_and_one(width):
    half = 1 << (8 * width - 2)
    samples, rate = parse_wav(
        wav([0, half, -half, -2 * half, 2 * half - 1], width), "x"
    )
    assert rate == 16_000
    assert samples.dtype == np.float32
    assert samples[:4].tolist() == [0, 0.5, -0.5, -1]
    assert samples[4] == pytest.approx(1, abs=2.0 ** (1 - 8 * width) + 1e-7)


def test_several_channels_stand_side_by_side(tmp_path):
    (tmp_path / "x.wav").write_bytes(
        wav([0, 16384, -16384, -32768], channels=2, rate=8000)
    )
    samples, rate = read_wav(tmp_path / "x.wav")
    assert (rate, samples.tolist()) == (8000, [[0, 0.5], [-0.5, -1]])


@cases(
    "data reason",
    (b"", "is not a readable WAV file"),
    (b"RIFF", "is not a readable WAV file"),
    (b"fLaC" + bytes(100), "is not a readable WAV file"),
    (wav([1] * 100)[:-1], "is cut off"),
    (
        wav([1] * 100).replace(b"\x01\x00\x01\x00\x80", b"\x03\x00\x01\x00\x80"),
        "format",
    ),
    (wav([1])[:40] + struct.pack("<I", 1 << 31) + b"xx", "is cut off"),
)
def test_a_broken_file_is_named(data, reason):
    with pytest.raises(DataError, match=r"x\.wav") as error:
        parse_wav(data, "x.wav")
    assert reason in str(error.value)


# Speech commands


def tar(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(f"./{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


WORDS = ["yes/a_nohash_0.wav", "yes/b_nohash_0.wav", "zero/a_nohash_0.wav"]
NOISE = ["_background_noise_/pink_noise.wav", "_background_noise_/running_tap.wav"]
HELD = ["yes/c_nohash_0.wav", "visual/c_nohash_1.wav"]  # for validation, for testing
MAIN = tar(
    {
        **{name: wav([i, 2 * i]) for i, name in enumerate([*WORDS, *NOISE, *HELD])},
        "validation_list.txt": HELD[0].encode() + b"\n",
        "testing_list.txt": HELD[1].encode() + b"\n",
        "_background_noise_/README.md": b"noise",
        "LICENSE": b"free",
    }
)
TEST = tar(
    {
        "go/a_nohash_0.wav": wav([16384]),
        "_silence_/1.wav": wav([0]),
        "_unknown_/marvin_a_nohash_0.wav": wav([-16384]),
        "_unknown_/robot_a_nohash_0.wav": wav([1]),
    }
)


@pytest.fixture
def archives(mirror, monkeypatch, tmp_path):
    """A mirror with small archives, and an empty cache."""
    packs = {f"/data/{speech.KNOWN['train'].url}": MAIN}
    packs[f"/data/{speech.KNOWN['test'].url}"] = TEST

    def answer(request):
        pack = packs.get(request.path)
        send(request, pack) if pack else not_found(request)

    server = mirror(answer)
    monkeypatch.setenv("BURNBOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(speech.VARIABLE, server.url)
    small = Bounds(100, 1 << 20)
    for split, known in list(speech.KNOWN.items()):
        archive = Archive(known.url, None, None, small)
        monkeypatch.setitem(speech.KNOWN, split, archive)
    return server


def said(dataset):
    names = [raw.path.rpartition("v0.02/")[2] for raw in dataset.dataset.dataset]
    return dict(zip(names, [item.label.name for item in dataset], strict=True))


def test_the_lists_of_the_archive_make_the_parts(archives):
    train, validation = (
        SpeechCommandsDataset.train(),
        SpeechCommandsDataset.validation(),
    )
    assert said(train) == {
        NOISE[0]: "Silence",
        WORDS[0]: "Yes",
        WORDS[1]: "Yes",
        WORDS[2]: "Zero",
    }
    assert said(validation) == {NOISE[1]: "Silence", HELD[0]: "Yes"}
    assert said(SpeechCommandsDataset.test()) == {
        "_silence_/1.wav": "Silence",
        "_unknown_/marvin_a_nohash_0.wav": "Marvin",
        "go/a_nohash_0.wav": "Go",
    }
    assert len(archives.asked) == 2
    SpeechCommandsDataset.train()
    assert len(archives.asked) == 2


def test_an_item_holds_samples_rate_and_word(archives):
    test = SpeechCommandsDataset.test()
    item = test.get(2)
    assert item == SpeechItem(
        np.array([0.5], np.float32), 16_000, SpeechCommandClass.Go
    )
    assert repr(item) == "SpeechItem(Go, 0.00 s, 16000 Hz)"
    assert [raw.is_unknown for raw in test.dataset.dataset] == [False, True, False]
    assert (test.get(3), test.get(-1), test.num_classes()) == (None, None, 37)
    assert test.class_name(35) == "Silence"
    assert test.get_many([2, 2]) == [item, item]


def test_folders_of_recordings_are_read_too(tmp_path):
    for word in ("up", "robot"):
        (tmp_path / word).mkdir()
        (tmp_path / word / "1.wav").write_bytes(wav([16384]))
    dataset = SpeechCommandsDataset.from_folder(tmp_path)
    assert [item.label for item in dataset] == [SpeechCommandClass.Up]


def test_an_archive_with_another_checksum_is_refused(archives, tmp_path):
    name = speech.KNOWN["test"].url
    with pytest.raises(DataError, match="sent different content: expected SHA-256 000"):
        SpeechCommandsDataset.test(checksums={name: "0" * 64})
    assert not (tmp_path / "cache" / "speech_commands").exists()
    with pytest.raises(ConfigError, match="there is no archive 'x'"):
        SpeechCommandsDataset.test(checksums={"x": "0" * 64})


def test_a_broken_recording_is_named_when_it_is_asked_for(archives):
    test = SpeechCommandsDataset.test()
    raw = test.dataset.dataset.get(2)
    with open(raw.path, "wb") as file:
        file.write(raw.audio_bytes[:-1])
    with pytest.raises(DataError, match=r"a_nohash_0\.wav is cut off"):
        test.get(2)
    assert len(test.get(0).audio_samples) == 1
