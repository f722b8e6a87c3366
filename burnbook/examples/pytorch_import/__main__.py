"""Let a network that PyTorch trained read one digit.

python -m burnbook.examples.pytorch_import 15
"""

from __future__ import annotations

import sys

from burnbook.backend import Numpy
from burnbook.core.errors import DataError
from burnbook.data import DigitsDataset
from burnbook.examples.guide.data import MnistBatcher
from burnbook.examples.pytorch_import.model import load

ITEM = 42  # of the test data, as in the book


def main(index: int = ITEM) -> int:
    """Predict which digit a test image shows; returns the prediction.

    Raises:
        DataError: there is no image of this index.
    """
    digits = DigitsDataset.test()
    item = digits.get(index)
    if item is None:
        what = f"there is no image {index}"
        cure = f"an index from 0 to {len(digits) - 1}"
        raise DataError("pytorch_import", what, cure=cure)
    device = Numpy()
    batch = MnistBatcher(device).batch([item])
    output = load(device).forward(batch.images)
    predicted = int(output.argmax(1).flatten(0, 1).into_scalar())
    sys.stdout.write(f"Image {index}: predicted {predicted}, expected {item.label}\n")
    return predicted


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ITEM)
