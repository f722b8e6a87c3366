"""Fashion-MNIST: clothes in the shape of MNIST.

Xiao, Rasul, Vollgraf, 2017, arXiv:1708.07747. Its items are those of MNIST, so what
was written for digits runs on it unchanged; it is only harder.
"""

from __future__ import annotations

from typing import Self

from burnbook.data.dataset.source.download import RemoteFile, Report
from burnbook.data.dataset.source.downloaded import (
    Checksums,
    DownloadedDataset,
    Source,
)
from burnbook.data.dataset.vision.mnist import MnistItem, labeled_images

VARIABLE = "BURNBOOK_FASHION_MNIST_MIRROR"
MIRRORS = [
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
]


def _file(name: str, size: int, packed_checksum: str) -> RemoteFile:
    return RemoteFile(name, size, packed_checksum=packed_checksum)


FILES = {
    "train": (
        _file(
            "train-images-idx3-ubyte",
            47_040_016,
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        ),
        _file(
            "train-labels-idx1-ubyte",
            60_008,
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        ),
    ),
    "test": (
        _file(
            "t10k-images-idx3-ubyte",
            7_840_016,
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        ),
        _file(
            "t10k-labels-idx1-ubyte",
            10_008,
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        ),
    ),
}


class FashionMnistDataset(DownloadedDataset[MnistItem]):
    """Clothes of ten kinds: 60,000 images for training, 10,000 for testing.

    The first use downloads the files (31 MB) and checks them; later uses read the
    cache. `BURNBOOK_FASHION_MNIST_MIRROR` names a mirror to try first; `checksums`
    gives the SHA-256 or MD5 of files (unpacked) that are not the original ones.
    """

    classes = (
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    )

    @classmethod
    def _load(cls, split: str, progress: Report | None, checksums: Checksums) -> Self:
        files = cls.source().obtain(split, progress, checksums)
        return cls(labeled_images(files), split)

    @classmethod
    def source(cls) -> Source:
        """Return where the files come from, and where they are kept."""
        return Source(
            "fashion_mnist",
            VARIABLE,
            MIRRORS,
            FILES,
            "DigitsDataset, which needs no network; or put the four files into "
            "{folder}; or {variable}=file:///folder/with/them",
        )
