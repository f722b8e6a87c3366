"""GramMatrixLoss: the difference between the styles of two images.

The style of an image is described by the correlations of its features, regardless of
their positions. The features are those of the first layers of VGG19.
"""

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.core.errors import ConfigError, ShapeError
from burnbook.module import Module
from burnbook.nn.conv import Conv2d, Conv2dConfig
from burnbook.nn.loss.checks import fit_one_shape
from burnbook.nn.loss.reduction import ElementwiseLoss
from burnbook.nn.shared import PaddingConfig2d
from burnbook.tensor import Tensor
from burnbook.tensor.facts import facts_of
from burnbook.tensor.module import avg_pool2d, max_pool2d

# Each block ends with a pool; its first layer is one that the loss looks at.
BLOCKS = (
    ("conv1_1", "conv1_2"),
    ("conv2_1", "conv2_2"),
    ("conv3_1", "conv3_2", "conv3_3", "conv3_4"),
    ("conv4_1", "conv4_2", "conv4_3", "conv4_4"),
    ("conv5_1",),
)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's colors


class GramMatrixLossConfig(Config):
    """How to make a GramMatrixLoss.

    layer_weights: the weight of each of the five layers, none below 0.
    use_avg_pool: whether to pool by the mean instead of the maximum, which makes
        smoother images (default False).

    Example:
        >>> GramMatrixLossConfig([1.0, 1.0, 1.0, 1.0])
        Traceback (most recent call last):
        ...
        burnbook.core.errors.ConfigError: GramMatrixLossConfig: 4 layer_weights, not 5
    """

    layer_weights: list[float]
    use_avg_pool: bool = False

    def validate(self) -> None:
        """Refuse weights below 0, and any number of them but five."""
        count = len(self.layer_weights)
        if count != len(BLOCKS):
            what = f"{count} layer_weights, not {len(BLOCKS)}"
            raise ConfigError("GramMatrixLossConfig", what)
        if not all(weight >= 0 for weight in self.layer_weights):
            what = f"layer_weights are {self.layer_weights}, none may lie below 0"
            raise ConfigError("GramMatrixLossConfig", what)

    def init(
        self, device: Backend, feat_extractor: Module | None = None
    ) -> "GramMatrixLoss":
        """The loss on a device, with an extractor of one's own or a fresh VGG19.

        Why: the trained weights of VGG19 are a download of 80 MB; `loss.load_file(path,
        recorder)` loads a record of them. `Vgg19.sources()` names the tensors of
        torchvision's file. An untrained network works too, but less well.
        """
        if feat_extractor is None:
            feat_extractor = Vgg19.new(self.use_avg_pool, device)
        return GramMatrixLoss(self.layer_weights, feat_extractor.no_grad())


class GramMatrixLoss(ElementwiseLoss):
    """The distance of styles: loss = Σₗ wₗ Σᵢⱼ (Gᵢⱼ − G'ᵢⱼ)² / (4 c² h² w²), G = F Fᵀ.

    F [c, h w] are the features of an image at layer l. Images have values in 0 … 1.

    Shapes: predictions [n, 3, h, w], targets [n, 3, h, w] -> [1]

    Source: Gatys, Ecker and Bethge, Image Style Transfer Using CNNs, 2016.
    """

    layer_weights: list[float]
    feat_extractor: Module

    def forward_no_reduction(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """The loss of each image.

        Shapes: predictions [n, 3, h, w], targets [n, 3, h, w] -> [n]
        """
        given = {"predictions": predictions, "targets": targets}
        fit_one_shape("gram_matrix", given)
        if predictions.rank != 4 or predictions.dims()[1] != 3:
            what = "predictions and targets must be images [n, 3, h, w]"
            raise ShapeError("gram_matrix", what, facts_of(**given))
        ours = self.feat_extractor(_normal(predictions))
        theirs = self.feat_extractor(_normal(targets))
        losses = Tensor.zeros([predictions.dims()[0], 1, 1], predictions.device())
        for weight, x, y in zip(self.layer_weights, ours, theirs, strict=True):
            _, c, size = x.dims()
            apart = x.matmul(x.transpose()) - y.matmul(y.transpose())
            total = apart.square().sum_dims([1, 2])
            losses = losses + total * (weight / (4.0 * c * c * size * size))
        return losses.flatten(0, 2)


class Vgg19(Module):
    """The layers of VGG19 up to the first of its fifth block.

    Shapes: x [n, 3, h, w] -> five times [n, c, h w]

    Source: Simonyan and Zisserman, Very Deep Convolutional Networks, 2014.
    """

    use_avg_pool: bool
    conv1_1: Conv2d
    conv1_2: Conv2d
    conv2_1: Conv2d
    conv2_2: Conv2d
    conv3_1: Conv2d
    conv3_2: Conv2d
    conv3_3: Conv2d
    conv3_4: Conv2d
    conv4_1: Conv2d
    conv4_2: Conv2d
    conv4_3: Conv2d
    conv4_4: Conv2d
    conv5_1: Conv2d

    @classmethod
    def new(cls, use_avg_pool: bool, device: Backend) -> "Vgg19":
        """The network with random weights."""
        layers: list[Conv2d] = []
        channels = 3
        for number, block in enumerate(BLOCKS):
            wide = min(64 << number, 512)
            for _ in block:
                config = Conv2dConfig([channels, wide], [3, 3])
                layers.append(config.with_padding(PaddingConfig2d.Same).init(device))
                channels = wide
        return cls(use_avg_pool, *layers)

    @staticmethod
    def sources() -> dict[str, str]:
        """Where torchvision's vgg19 has each layer: {"conv1_1": "features.0", …}."""
        found: dict[str, str] = {}
        place = 0
        for block in BLOCKS:
            for name in block:
                found[name] = f"features.{place}"
                place += 2  # a relu follows
            place += 1  # a pool follows
        return found

    def forward(self, x: Tensor) -> list[Tensor]:
        """The features of the first layer of each block."""
        pool = avg_pool2d if self.use_avg_pool else max_pool2d
        seen: list[Tensor] = []
        for block in BLOCKS:
            if seen:
                x = pool(x, 2, 2)
            for name in block:
                x = getattr(self, name).forward(x).relu()
                if name == block[0]:
                    seen.append(x.flatten(2, 3))
        return seen


def _normal(images: Tensor) -> Tensor:
    """Images normalized by the mean and standard deviation of ImageNet."""
    device = images.device()
    mean = Tensor.from_floats(MEAN, device).reshape([1, 3, 1, 1])
    std = Tensor.from_floats(STD, device).reshape([1, 3, 1, 1])
    return (images - mean) / std
