"""Weight normalization: the direction of a weight and its length are learned apart."""

from typing import ClassVar

from burnbook.core.dtypes import Float
from burnbook.core.errors import ConfigError
from burnbook.module.module import Module
from burnbook.module.param import Param
from burnbook.module.reparameterization import Group
from burnbook.tensor import Tensor


class WeightGain(Module):
    """What is attached to a weight v: val = g · v / ‖v‖, a length for each output.

    Shapes: g [1, d_out], base [d_in, d_out] -> [d_in, d_out]; of a convolution g
        [c_out, 1, ...], base [c_out, c_in, ...] -> [c_out, c_in, ...]
    """

    NAME: ClassVar[str] = "weight_norm"

    g: Param

    def materialize(self, base: Tensor) -> Tensor:
        """The weight that has the direction of the stored one, and the length g."""
        g = self.g.val()
        return base * (g / _length(base, g.dims()))


class WeightNorm:
    """Weight normalization: `model.apply_reparameterization(WeightNorm())`.

    Every Float parameter of rank 2 and more in the group is stored as before, and gets
    a length g for each of its outputs. At first g is the length that it has, so that
    nothing changes but how it learns. `model.valid()` makes it plain again.

    dim: the dim of the outputs; None, the default: the last one of a matrix, as Linear
        has it, and the first one of a convolution. Of an Embedding it is 0.

    Example:
        >>> from burnbook import nn
        >>> from burnbook.backend.numpy import Numpy
        >>> layer = nn.Conv1dConfig(4, 8, 3).init(Numpy())
        >>> layer = layer.apply_reparameterization(WeightNorm())
        >>> [(path, tuple(param.shape)) for path, param in layer.named_params()]
        ... # doctest: +NORMALIZE_WHITESPACE
        [('weight', (8, 4, 3)), ('weight.weight_norm.g', (8, 1, 1)), ('bias', (8,))]

    Raises:
        ConfigError: in `apply_reparameterization`: a weight has no such dim, or the
            group has no members.

    Source: Salimans and Kingma, Weight Normalization, 2016.
    """

    def __init__(self, dim: int | None = None):
        self.dim = dim
        self.param_group: Group | None = None

    def set_param_group(self, group: Group) -> "WeightNorm":
        """The same for some of the parameters; the others stay as they are."""
        made = WeightNorm(self.dim)
        made.param_group = group
        return made

    def reparameterize(
        self, path: str, param: Param
    ) -> tuple[Param, WeightGain | None]:
        """The parameter, with its lengths if it is a weight of the group."""
        rank, group = len(param.shape), self.param_group
        chosen = group is None or group.matches(param.id, path)
        if rank < 2 or param.kind is not Float or not chosen:
            return param, None
        dim = self.dim
        if dim is None:
            dim = 1 if rank == 2 else 0
        if not -rank <= dim < rank:
            what = f"dim {dim} is not one of the {rank} dims of {path}"
            raise ConfigError("WeightNorm", what, cure="WeightNorm()")
        shape = [1] * rank
        shape[dim] = param.shape[dim]
        g = Param.from_tensor(_length(param.val(), shape))
        return param, WeightGain(g if param.is_trainable else g.set_require_grad(False))

    def __repr__(self) -> str:
        return f"WeightNorm({'' if self.dim is None else f'dim={self.dim}'})"


def _length(weight: Tensor, shape: list[int] | tuple[int, ...]) -> Tensor:
    """‖v‖ along all dims but that of the outputs, which `shape` has."""
    total = weight.square()
    for dim, size in enumerate(shape):
        if size == 1:
            total = total.sum_dim(dim)
    return total.sqrt()
