"""Building blocks · Module. Reparameterization: a parameter computed from others.

The parameter stays where it is in the module, and the layers that read it know nothing:
`val()` gives what the attached module makes of the stored value. LoRA is the best known
one; weight normalization takes ten lines:

    class WeightNorm(Module):
        NAME = "weight_norm"
        g: Param

        def materialize(self, base):
            return base * (self.g.val() / base.square().sum_dim(0).sqrt())
"""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from burnbook.backend.base import Backend
from burnbook.kinds import Kind
from burnbook.module.param import Param, ParamId
from burnbook.tensor import Shape, Tensor


class Reparameterization(Protocol):
    """What may be attached to a parameter: a module with these two.

    NAME: what its parameters are called in records and paths, "weight.lora.a".
    """

    NAME: ClassVar[str]

    def materialize(self, base: Tensor) -> Tensor:
        """The value that the layers see, from the one that is stored."""
        ...


class Reparameterizer(Protocol):
    """What decides which parameters are computed from which."""

    def reparameterize(
        self, path: str, param: Param
    ) -> tuple[Param, Reparameterization | None]:
        """The parameter to store in place of this one, and what to attach to it."""
        ...


class Group(Protocol):
    """Some parameters of a module, as optimizers know them: a `ParamGroup`."""

    def matches(self, id: ParamId, path: str) -> bool:  # noqa: A002 - Burn's word
        """Whether the parameter with this id, at this path, belongs to it."""
        ...


class Reparameterized(Param):
    """A parameter whose value is made from a stored one by an attached module.

    Walks over a module, and so optimizers and records, meet the stored parameter and
    those of the attached module, never this one.
    """

    __slots__ = ("attached", "stored")

    def __init__(self, stored: Param, attached: Any):
        self.id = stored.id
        self.stored = stored
        self.attached = attached

    def val(self) -> Tensor:
        """What the attached module makes of the stored value, computed now."""
        return self.attached.materialize(self.stored.val())

    def base(self) -> Tensor:
        """The stored value."""
        return self.stored.val()

    def reparameterization(self, cls: type[Any] | None = None) -> Any:
        """The attached module, if it is of this class."""
        return self.attached if isinstance(self.attached, cls or object) else None

    def map(self, change: Callable[[Tensor], Tensor]) -> Param:
        """A plain parameter with what `change` makes of the value."""
        return Param.initialized(self.id, change(self.val()))

    def set_require_grad(self, require_grad: bool) -> Param:
        """The same with the stored parameter to be learned or left alone."""
        return Reparameterized(
            self.stored.set_require_grad(require_grad), self.attached
        )

    def derive(
        self,
        change: Callable[[Tensor, Backend], Tensor],
        device: Backend,
        require_grad: bool,
    ) -> Param:
        """The same with the stored parameter in another form."""
        stored = self.stored.derive(change, device, require_grad)
        return Reparameterized(stored, self.attached)

    @property
    def is_initialized(self) -> bool:
        """Whether the stored value exists already."""
        return self.stored.is_initialized

    @property
    def is_require_grad(self) -> bool:
        """Whether the stored parameter is to be learned."""
        return self.stored.is_require_grad

    @property
    def device(self) -> Backend:
        """Where the stored value is, or will be."""
        return self.stored.device

    @property
    def kind(self) -> Kind:
        """Float, as only such parameters are computed from others."""
        return self.stored.kind

    @property
    def shape(self) -> Shape:
        """The sizes, which stay those of the stored value."""
        return self.stored.shape

    def __repr__(self) -> str:
        return f"{self.stored!r} with {self.attached.NAME}"

    def __reduce__(self) -> Any:
        return Reparameterized, (self.stored, self.attached)
