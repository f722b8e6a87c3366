"""Every public reader of files, tried on paths in processes with limits.

`python -m tests.support.foreign SECONDS` takes names of readers and paths, and prints
what came of each: "read", or the class and first line of the error. Each has 2 GB and
so many seconds of the processor.
"""

import os
import resource
import signal
import sys
from pathlib import Path

LIMIT = 2 << 30  # bytes of address space


def records(kind):
    def read(path):
        from burnbook import record

        getattr(record, kind)().read(path)

    return read


def mapped_safetensors(path):
    """The names, then every tensor that is in the file."""
    from burnbook.record.safetensors_files import SafetensorsFile

    file = SafetensorsFile(path)
    sum(file[name].num_elements() for name in file)


def pytorch(path):
    from burnbook.importers.pytorch_reader import PytorchReader

    reader = PytorchReader(path)
    reader.plain()
    [reader[name].load() for name in reader]


def config(path):
    from burnbook.nn import LinearConfig

    LinearConfig.load(path)


def idx(path):
    from burnbook.data import read_idx

    read_idx(path)


def wav(path):
    from burnbook.data.formats.wav import read_wav

    read_wav(path)


def image(path):
    from burnbook.data.dataset.vision.image import read_image

    read_image(path)


def mask(path):
    from burnbook.data.dataset.vision.image import read_mask

    read_mask(path)


def images_in_folder(path):
    from burnbook.data import ImageFolderDataset

    folder = Path(path).parent
    ImageFolderDataset.new_classification(folder, classes=["cat", "dog"]).get(0)


def coco(path):
    from burnbook.data import ImageFolderDataset

    ImageFolderDataset.new_coco_detection(path, Path(path).parent)


def text_in_folder(path):
    from burnbook.data import TextFolderDataset

    TextFolderDataset.new_classification(Path(path).parent).get(0)


def csv(path):
    from burnbook.data import InMemDataset

    InMemDataset.from_csv(path)


def json_rows(path):
    from burnbook.data import InMemDataset

    InMemDataset.from_json_rows(path)


def labeled_texts(path):
    from burnbook.data.dataset.csv_rows import LabeledTexts

    texts = LabeledTexts(path, 4)
    for i in range(len(texts)):
        texts.get(i)


def sqlite(path):
    from burnbook.data import SqliteDataset

    data = SqliteDataset.from_db_file(path, "train")
    [data.get(i) for i in range(min(len(data), 100))]


def runs(path):
    """Lists, compares and exports whatever lies in the folder of a run."""
    from burnbook.train import RunStore

    store = RunStore(Path(path).parents[1])
    str(store.sort("Loss")) if store.runs and store.runs[0].metrics else str(store)
    store._repr_html_()
    for per in ("run", "epoch", "batch"):
        store.rows(per)
        store.dataframe(per)
        store.export_csv(Path(path).parents[1] / "out.csv", per)
    if len(store) > 1:
        str(store.compare())


def run_of_a_log(path):
    runs(Path(path).parents[1])


def sweep_state(path):
    from burnbook.train.sweep.trial import Trial, load_state

    trials = [Trial(0, {"lr": 0.1}), Trial(1, {"lr": 0.2})]
    load_state(Path(path).parent, {"seed": 0}, trials)
    str(trials)


def saved_work(path):
    from burnbook.cli.workspace import restore_work

    restore_work(path, folder=Path(path).parent / "restored")


def saved_page(path):
    """A notebook on its way to the disk; what is no notebook is left as it is."""
    import json

    from burnbook.core.files import read_whole
    from burnbook_widgets.saving import keep_still

    try:
        content = json.loads(read_whole(path))
    except (ValueError, RecursionError):
        return
    keep_still({"type": "notebook", "content": content}, path="a.ipynb")
    json.dumps(content)


def tar(path):
    from burnbook.core.files import open_regular
    from burnbook.data.formats.archive import Bounds, read_tar

    with open_regular(path) as file:
        for _, source in read_tar(file, "archive", Bounds(100, 1 << 24)):
            source.read(1 << 20)


# The reader, and the name that a file has which it is made for.
READERS = {
    "mpk": (records("DefaultRecorder"), "a.mpk"),
    "mpk.gz": (records("NamedMpkGzFileRecorder"), "a.mpk.gz"),
    "json": (records("PrettyJsonFileRecorder"), "a.json"),
    "json.gz": (records("JsonGzFileRecorder"), "a.json.gz"),
    "bin": (records("BinFileRecorder"), "a.bin"),
    "bin.gz": (records("BinGzFileRecorder"), "a.bin.gz"),
    "safetensors": (records("SafetensorsRecorder"), "a.safetensors"),
    "safetensors mapped": (mapped_safetensors, "a.safetensors"),
    "safetensors index": (mapped_safetensors, "model.safetensors.index.json"),
    "bpk": (records("BurnpackRecorder"), "a.bpk"),
    "pt": (pytorch, "a.pt"),
    "config": (config, "config.json"),
    "idx": (idx, "images.idx"),
    "idx.gz": (idx, "images.gz"),
    "wav": (wav, "a.wav"),
    "image": (image, "a.png"),
    "mask": (mask, "a.gif"),
    "images": (images_in_folder, "cat/a.png"),
    "coco": (coco, "boxes.json"),
    "text": (text_in_folder, "good/a.txt"),
    "csv": (csv, "a.csv"),
    "csv.gz": (csv, "a.csv.gz"),
    "rows": (json_rows, "a.jsonl"),
    "labeled": (labeled_texts, "a.csv"),
    "labeled.gz": (labeled_texts, "a.csv.gz"),
    "sqlite": (sqlite, "a.db"),
    "run config": (runs, "runs/first/config.json"),
    "run diary": (runs, "runs/first/experiment.log"),
    "run log": (
        lambda path: runs(Path(path).parents[1]),
        "runs/first/valid/epoch-1/Loss.log",
    ),
    "sweep": (sweep_state, "sweep.json"),
    "work": (saved_work, "work.zip"),
    "page": (saved_page, "a.ipynb"),
    "tar": (tar, "a.tar"),
}


def limited(seconds, memory=LIMIT):
    """Let this process take so much and no more."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    signal.alarm(12 * seconds)  # of waiting, which takes no processor time


def outcome(read, path):
    """ "read", or the error that the reader ended with."""
    from burnbook.core.errors import BurnbookError

    try:
        read(path)
    except BurnbookError as error:
        first = str(error).splitlines()[0]
        return f"ours {type(error).__name__}: {first}"
    except BaseException as error:  # whatever it is, it is the finding
        return f"RAW {type(error).__name__}: {str(error)[:200]!r}"
    return "read"


def in_a_fork(read, path, seconds):
    """The outcome in a child of its own, or the signal that ended it."""
    back, there = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            limited(seconds)
            told = outcome(read, path)
            os.write(there, told.encode("utf-8", "backslashreplace")[:4000])
        finally:
            os._exit(0)  # to sweep up what was made takes time, too
    os.close(there)
    told = b""
    while part := os.read(back, 1 << 16):
        told += part
    os.close(back)
    _, status = os.waitpid(child, 0)
    return told.decode() if status == 0 and told else f"DIED {status}: {read}"


def main(seconds):
    """Read `name<TAB>path` from the input, print `name<TAB>outcome` line by line."""
    import numpy

    import burnbook.data
    import burnbook.record
    import burnbook.train  # noqa: F401

    numpy.ones(2)
    for line in sys.stdin:
        name, _, path = line.rstrip("\n").partition("\t")
        told = in_a_fork(READERS[name][0], path, int(seconds))
        sys.stdout.write(f"{name}\t{' '.join(told.split())}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
