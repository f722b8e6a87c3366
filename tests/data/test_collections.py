"""CIFAR and Fashion-MNIST: from their files to items, from mirrors and archives."""

import gzip
import hashlib
import io
import struct
import tarfile

import numpy as np
import pytest

from burnbook import data
from burnbook.core.errors import DataError
from burnbook.data.dataset.source.download import Archive, RemoteFile
from burnbook.data.dataset.vision import cifar, fashion_mnist
from burnbook.data.dataset.vision.cifar import parse_cifar
from tests.support import mirrors
from tests.support.mirrors import not_found, send

mirror, impatient = mirrors.mirror, mirrors.impatient  # fixtures
RANDOM = np.random.default_rng(0)


def records(count, label_bytes, classes):
    table = RANDOM.integers(0, 256, (count, label_bytes + 3072), np.uint8)
    table[:, :label_bytes] %= classes
    return table


TEN = {
    file.name: records(20, 1, 10) for part in cifar.FILES_10.values() for file in part
}
HUNDRED = {"train.bin": records(30, 2, 20), "test.bin": records(10, 2, 20)}


def tar(tables):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, table in tables.items():
            entry = tarfile.TarInfo(f"cifar-batches-bin/{name}")
            entry.size = table.nbytes
            archive.addfile(entry, io.BytesIO(table.tobytes()))
    return out.getvalue()


@pytest.fixture
def small_cifar(mirror, monkeypatch, tmp_path):
    """Archives of a few images in the place of the real ones, and an empty cache."""
    monkeypatch.setenv("BURNBOOK_CACHE", str(tmp_path / "cache"))
    servers = []
    for kind, tables in (("10", TEN), ("100", HUNDRED)):
        pack = tar(tables)
        servers.append(mirror(pack))
        url = f"{servers[-1].url}/cifar-{kind}-binary.tar.gz"
        known = Archive(url, len(pack), hashlib.sha256(pack).hexdigest())
        monkeypatch.setattr(cifar, f"MIRRORS_{kind}", [known])
        files = {
            part: [
                RemoteFile(file.name, tables[file.name].nbytes, None, "")
                for file in getattr(cifar, f"FILES_{kind}")[part]
            ]
            for part in ("train", "test")
        }
        monkeypatch.setattr(cifar, f"FILES_{kind}", files)
    return servers


def test_cifar_comes_from_its_archive_once_for_both_parts(small_cifar):
    train, test = data.Cifar10Dataset.train(), data.Cifar10Dataset.test()
    assert (len(train), len(test)) == (100, 20)
    assert len(small_cifar[0].asked) == 1
    third = TEN["data_batch_2.bin"][3]
    item = train.get(23)
    assert item.annotation == data.Label(int(third[0]))
    assert (item.image.shape, item.image.dtype) == ((32, 32, 3), np.uint8)
    for y, x, channel in ((0, 0, 0), (5, 31, 1), (31, 7, 2)):
        assert item.image[y, x, channel] == third[1 + 1024 * channel + 32 * y + x]
    assert (test.get(20), test.get(-1)) == (None, None)
    assert train.get_many([99, 0]) == [train.get(99), train.get(0)]
    assert repr(test) == "Cifar10Dataset(test, 20 items)"
    here = {info.name: info.available for info in data.available_datasets()}
    assert here["Cifar10Dataset"]
    assert not here["Cifar100Dataset"]


def test_an_item_may_be_changed_without_harm(small_cifar):
    test = data.Cifar10Dataset.test()
    test.get(0).image[:] = 0
    assert test.get(0).image.max() > 0


def test_a_hundred_classes_have_their_fine_labels(small_cifar):
    both = data.CifarDataset(data.CifarType.Cifar100)
    train, test = both.train(), both.test()
    assert (len(train), len(test)) == (30, 10)
    assert train.get(4).annotation == data.Label(int(HUNDRED["train.bin"][4, 1]))
    assert (
        len(set(data.Cifar100Dataset.classes))
        == data.Cifar100Dataset.num_classes()
        == 100
    )
    assert list(data.Cifar100Dataset.classes) == sorted(data.Cifar100Dataset.classes)
    assert data.Cifar100Dataset.class_name(99) == "worm"
    assert len(data.CifarDataset(data.CifarType.Cifar10).test()) == 20
    assert data.Cifar10Dataset.class_name(9) == "truck"


def test_unpacked_files_in_a_folder_do_as_well(small_cifar, monkeypatch, tmp_path):
    folder = tmp_path / "unpacked"
    folder.mkdir()
    for name, table in HUNDRED.items():
        (folder / name).write_bytes(table.tobytes())
    monkeypatch.setenv("BURNBOOK_CIFAR100_MIRROR", str(folder))
    assert len(data.Cifar100Dataset.test()) == 10
    assert small_cifar[1].asked == []


def test_a_file_of_cifar_is_checked_before_use():
    table = records(3, 1, 10)
    assert len(parse_cifar(table.tobytes(), "x", 1, 10)) == 3
    for bad in (b"", table.tobytes()[:-1]):
        with pytest.raises(DataError, match="x does not hold a whole number of images"):
            parse_cifar(bad, "x", 1, 10)
    table[2, 0] = 10
    with pytest.raises(DataError, match="x: image 2 has the label 10 of 10 classes"):
        parse_cifar(table.tobytes(), "x", 1, 10)


# Fashion-MNIST


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture
def clothes(mirror, monkeypatch, tmp_path):
    monkeypatch.setenv("BURNBOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(fashion_mnist.VARIABLE, raising=False)
    packs, files = {}, {}
    for split, count in (("train", 5), ("test", 3)):
        images = idx(RANDOM.integers(0, 256, (count, 28, 28)))
        labels = idx(np.arange(count))
        files[split] = []
        for known, content in zip(
            fashion_mnist.FILES[split], (images, labels), strict=True
        ):
            packed = gzip.compress(content)
            packs[f"/data/{known.name}.gz"] = packed
            digest = hashlib.sha256(packed).hexdigest()
            one = RemoteFile(known.name, len(content), packed_checksum=digest)
            files[split].append(one)
    monkeypatch.setattr(fashion_mnist, "FILES", files)

    def answer(request):
        pack = packs.get(request.path)
        send(request, pack) if pack else not_found(request)

    server = mirror(answer)
    monkeypatch.setattr(fashion_mnist, "MIRRORS", [server.url])
    return server, packs


def test_clothes_are_items_of_mnist(clothes):
    server, _ = clothes
    train, test = data.FashionMnistDataset.train(), data.FashionMnistDataset.test()
    assert (len(train), len(test)) == (5, 3)
    item = test.get(2)
    assert isinstance(item, data.MnistItem)
    assert (item.label, data.FashionMnistDataset.class_name(2)) == (2, "Pullover")
    assert (item.image.shape, item.image.dtype) == ((28, 28), np.float32)
    assert test.get(3) is None
    assert repr(train) == "FashionMnistDataset(train, 5 items)"
    assert data.FashionMnistDataset.train().get(4) == train.get(4)
    assert len(server.asked) == 4


def test_clothes_of_another_packing_need_an_own_checksum(clothes, monkeypatch):
    _, packs = clothes
    name = "t10k-labels-idx1-ubyte"
    other = idx(np.array([9, 8, 7]))
    packs[f"/data/{name}.gz"] = gzip.compress(other)
    with pytest.raises(DataError, match="sent different content: expected SHA-256"):
        data.FashionMnistDataset.test()
    own = {name: hashlib.sha256(other).hexdigest()}
    labels = [item.label for item in data.FashionMnistDataset.test(checksums=own)]
    assert labels == [9, 8, 7]


def test_the_real_files_are_named_with_sizes_that_fit():
    for split, count in (("train", 60_000), ("test", 10_000)):
        images, labels = fashion_mnist.FILES[split]
        assert (images.size, labels.size) == (16 + 784 * count, 8 + count)
        parts = cifar.FILES_10[split]
        assert (
            sum(file.size for file in parts) == (50_000, 10_000)[split == "test"] * 3073
        )
    assert len(fashion_mnist.MIRRORS) >= 3
