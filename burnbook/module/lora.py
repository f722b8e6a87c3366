"""LoRA: fine-tuning by a small change of each weight.

The model stays frozen. Beside each matrix stand two narrow ones whose product is added
to it, so only a few numbers are learned, saved and exchanged.
"""

from typing import Any, ClassVar

from burnbook.core.dtypes import Float
from burnbook.core.errors import ConfigError
from burnbook.module.module import Module
from burnbook.module.param import Param
from burnbook.module.reparameterization import Group
from burnbook.tensor import Distribution, Tensor


class LoraAdapter(Module):
    """What is added to a frozen weight: val = base + scale · a b.

    Shapes: a [d_in, rank], b [rank, d_out], base [d_in, d_out] -> [d_in, d_out]
    """

    NAME: ClassVar[str] = "lora"

    a: Param
    b: Param
    scale: float

    def delta(self) -> Tensor:
        """The change: scale · a b."""
        return (self.a.val() @ self.b.val()) * self.scale

    def materialize(self, base: Tensor) -> Tensor:
        """The frozen weight with the change."""
        return base + self.delta()


class Lora:
    """Low-rank adaptation: `model.apply_lora(Lora(rank, alpha))`.

    Every Float parameter is frozen, and each one of rank 2 in the group gets an adapter
    with scale = alpha / rank. a is drawn with a spread of 1 / rank and b is zero, so at
    first nothing changes.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> class Model(Module):
        ...     weight: Param
        >>> model = Model(Param.from_tensor(Tensor.ones([8, 6], Numpy())))
        >>> tuned = model.apply_lora(Lora(2, 4.0))
        >>> tuned.num_params()  # 8 · 6 frozen, 8 · 2 + 2 · 6 to learn
        76
        >>> [path for path, _ in tuned.named_params()]
        ['weight', 'weight.lora.a', 'weight.lora.b']

    Source: Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, 2021.
    """

    def __init__(self, rank: int, alpha: float, init_std: float | None = None):
        if rank < 1:
            raise ConfigError("Lora", f"rank is {rank}, it must be at least 1")
        self.rank = rank
        self.alpha = alpha
        self.init_std = init_std
        self.param_group: Group | None = None

    def set_param_group(self, group: Group) -> "Lora":
        """The same for some of the parameters; the others are only frozen."""
        made = Lora(self.rank, self.alpha, self.init_std)
        made.param_group = group
        return made

    def reparameterize(
        self, path: str, param: Param
    ) -> tuple[Param, LoraAdapter | None]:
        """The parameter, frozen, with an adapter if it is a matrix of the group."""
        frozen = param.set_require_grad(False)
        group = self.param_group
        chosen = group is None or group.matches(param.id, path)
        if len(param.shape) != 2 or not chosen:
            return frozen, None
        d_in, d_out = param.shape
        device, spread = param.device, self.init_std
        draw = Distribution.Normal(0.0, 1 / self.rank if spread is None else spread)
        a = Tensor.random([d_in, self.rank], draw, device)
        b = Tensor.zeros([self.rank, d_out], device)
        parts = Param.from_tensor(a), Param.from_tensor(b)
        return frozen, LoraAdapter(*parts, self.alpha / self.rank)

    def __repr__(self) -> str:
        return f"Lora(rank={self.rank}, alpha={self.alpha})"


class QLora:
    """LoRA on quantized weights: `model.apply_qlora(QLora(lora, quantizer))`.

    The frozen parameters are what the quantizer, a ModuleMapper, makes of them.

    Source: Dettmers et al., QLoRA: Efficient Finetuning of Quantized LLMs, 2023.
    """

    def __init__(self, lora: Lora, quantizer: Any):
        self.lora = lora
        self.quantizer = quantizer

    def reparameterize(
        self, path: str, param: Param
    ) -> tuple[Param, LoraAdapter | None]:
        """The parameter, quantized and frozen, with an adapter where LoRA gives one."""
        if param.kind is Float:
            value = param.val().set_require_grad(False)  # codes have no gradient
            param = param.initialized(
                param.id, self.quantizer.map_float(param.id, value)
            )
        return self.lora.reparameterize(path, param)

    @property
    def param_group(self) -> Group | None:
        """The parameters that get an adapter; None for all matrices."""
        return self.lora.param_group

    def __repr__(self) -> str:
        return f"QLora({self.lora!r}, {self.quantizer!r})"
