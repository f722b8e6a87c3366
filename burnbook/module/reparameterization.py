"""Reparameterization: a parameter computed from others.

The parameter stays where it is in the module, and the layers that read it know nothing:
`val()` gives what the attached module makes of the stored value. `Lora` is one, and
`WeightNorm`; one of your own takes ten lines:

    class Symmetric(Module):
        NAME = "symmetric"

        def materialize(self, base):
            return (base + base.transpose()) / 2

    class MakeSymmetric:
        def reparameterize(self, path, param):
            square = len(param.shape) == 2 and len(set(param.shape)) == 1
            return param, Symmetric() if square else None

    model = model.apply_reparameterization(MakeSymmetric())

`model.valid()` puts the values in the place of what they were computed from, and
`Param.reparameterization()` says what is attached.
"""

import difflib
import re
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from burnbook.backend.base import Backend
from burnbook.core.dtypes import Kind
from burnbook.core.errors import ConfigError
from burnbook.module.param import Flag, Param, ParamId, check_mapped, leaf
from burnbook.tensor import Shape, Tensor

MOST_PATHS = 8  # of parameters, in an error


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


def members(where: str, group: Group, rows: list[tuple[str, Param]]) -> set[ParamId]:
    """The ids of the parameters of a group; a ConfigError if there are none.

    Why: a misspelled group would freeze, tune or quantize nothing, and say nothing.
    """
    found = {param.id for path, param in rows if group.matches(param.id, path)}
    if found or not rows:
        return found
    raise no_member(where, group, [path for path, _ in rows])


def no_member(where: str, group: Group, paths: list[str]) -> ConfigError:
    """The error for a group that no parameter belongs to."""
    texts = re.findall(r"'([^']+)'", getattr(group, "text", ""))
    parts = {part: path for path in reversed(paths) for part in path.split(".")}
    near = []
    for text in texts:
        known = [*paths, *parts]
        near += difflib.get_close_matches(text, known, 3, 0.6)
    facts = [("group", repr(group))]
    if near:
        facts.append(("near", ", ".join(dict.fromkeys(near))))
    more = f", … ({len(paths)})" if len(paths) > MOST_PATHS else ""
    facts.append(("paths", ", ".join(paths[:MOST_PATHS]) + more))
    what = "no parameter of the module belongs to this group"
    cure = "the paths that model.named_params() gives"
    return ConfigError(where, what, facts, cure)


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

    def replaced(self, made: Any, where: str) -> Param:
        """A plain parameter with what a mapper made of the value."""
        check_mapped(made, self.stored.val(), where)
        flag = self.is_trainable()
        kind = type(self.stored)
        return kind(self.id, leaf(made, flag, where), require_grad=flag)

    def rooted(self) -> Param:
        """The same with the stored parameter cut from the graph."""
        return Reparameterized(self.stored.rooted(), self.attached)

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
        trainable: bool | None = None,
    ) -> Param:
        """The same with the stored parameter in another form."""
        stored = self.stored.derive(change, device, require_grad, trainable)
        return Reparameterized(stored, self.attached)

    @property
    def is_initialized(self) -> Flag:
        """Whether the stored value exists already."""
        return self.stored.is_initialized

    @property
    def is_shaped(self) -> Flag:
        """Whether the sizes are known without making the values."""
        return self.stored.is_shaped

    @property
    def is_require_grad(self) -> Flag:
        """Whether the stored parameter is to be learned."""
        return self.stored.is_require_grad

    @property
    def is_trainable(self) -> Flag:
        """Whether the stored parameter is learned, now or after `train()`."""
        return self.stored.is_trainable

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
