"""The network of `digits.pt`, written once more, and loaded from that file.

PyTorch 2.13 trained it on the digits that come with scikit-learn, and wrote the file
with `torch.save(model.state_dict(), path)`; chapter 7.3 has the program.
"""

from __future__ import annotations

from pathlib import Path

from burnbook.backend.base import Backend
from burnbook.importers import PyTorchFileRecorder
from burnbook.module import Module
from burnbook.nn import BatchNorm, BatchNormConfig, Linear, LinearConfig
from burnbook.nn.conv import Conv2d, Conv2dConfig
from burnbook.record import FullPrecisionSettings
from burnbook.tensor import Tensor
from burnbook.tensor.activation import relu

#: What `torch.save` has written.
DIGITS_PT = Path(__file__).with_name("digits.pt")


class Net(Module):
    """Two convolutions, a norm and a linear layer, under the names they have there.

    Shapes: images [batch_size, 28, 28] -> [batch_size, 10]
    """

    conv1: Conv2d
    conv2: Conv2d
    norm1: BatchNorm
    fc1: Linear

    @classmethod
    def init(cls, device: Backend) -> Net:
        """A network with random weights, on a device."""
        return cls(
            conv1=Conv2dConfig([1, 4], [3, 3], stride=[2, 2]).init(device),
            conv2=Conv2dConfig([4, 8], [3, 3], stride=[2, 2]).init(device),
            norm1=BatchNormConfig(8).init(device),
            fc1=LinearConfig(288, 10).init(device),
        )

    def forward(self, images: Tensor) -> Tensor:
        """The logits of ten classes."""
        x = relu(self.conv1.forward(images.unsqueeze_dim(1)))
        x = self.norm1.forward(relu(self.conv2.forward(x)))
        return self.fc1.forward(x.flatten(1, 3))


def load(device: Backend) -> Net:
    """The network with PyTorch's weights."""
    record = PyTorchFileRecorder(FullPrecisionSettings).load(DIGITS_PT, device)
    return Net.init(device).load_record(record)
