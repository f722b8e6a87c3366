"""Building blocks · Module. Param: a tensor that a module learns, known by its id.

The id follows a parameter wherever it goes: into records, through `map`, to another
device, into the state of an optimizer. A fresh parameter is lazy: `config.init(device)`
only reserves its random key, and the numbers are drawn at the first use, if a record
has not replaced it before.
"""

import base64
import os
import struct
import threading
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self

from burnbook.backend.base import Backend
from burnbook.errors import RecordError
from burnbook.kinds import Float, Kind
from burnbook.tensor import Shape, Tensor, TensorData

Init = Callable[[Backend, bool], Tensor]


class ParamId(int):
    """The name of a parameter: 64 random bits, written as 13 characters.

    Example:
        >>> print(ParamId(1), ParamId(123456))
        0400000000000 83h0200000000
        >>> int(ParamId.deserialize("83h0200000000"))
        123456
    """

    __slots__ = ()

    @classmethod
    def new(cls) -> Self:
        """An id that nobody else has; independent of every seed."""
        return cls(int.from_bytes(os.urandom(8), "little"))

    def serialize(self) -> str:
        """The 13 characters: base32 (0-9a-v) of the 8 bytes, lowest byte first."""
        text = base64.b32hexencode(struct.pack("<Q", self)).decode()
        return text.rstrip("=").lower()

    @classmethod
    def deserialize(cls, text: str) -> Self:
        """Read an id that Burn wrote: base32 of at most 8 bytes, or an old UUID."""
        padded = text.upper() + "=" * (-len(text) % 8)
        try:
            if len(text) <= 13:
                return cls(int.from_bytes(base64.b32hexdecode(padded), "little"))
            old = uuid.UUID(text).bytes
        except ValueError:
            raise RecordError(
                "ParamId",
                f"{text[:40]!r} is not the id of a parameter",
                cure="13 characters of 0-9 and a-v",
            ) from None
        return cls(int.from_bytes(blake2b(old, digest_size=8).digest(), "little"))

    def __str__(self) -> str:
        return self.serialize()

    def __repr__(self) -> str:
        return f"ParamId({self.serialize()})"

    def __format__(self, spec: str) -> str:
        return format(self.serialize(), spec)


@dataclass(frozen=True)
class ParamRecord:
    """A parameter in a record: the text of its id, and its elements."""

    id: str
    param: TensorData


class Param:
    """A tensor that belongs to a module; `val()` gives it, drawing it if it is lazy.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> weight = Param.from_tensor(Tensor.ones([2, 3], Numpy()))
        >>> weight.val().shape, weight.shape
        ((2, 3), (2, 3))

    Why: nothing here changes a parameter; `map` and `set_require_grad` make another
    one with the same id, so an old model stays as it was.
    """

    __slots__ = ("_device", "_init", "_kind", "_require_grad", "_shape", "_value", "id")

    id: ParamId

    def __init__(
        self,
        id: ParamId,  # noqa: A002 - Burn's word
        value: Tensor | None,
        *,
        require_grad: bool,
        init: Init | None = None,
        device: Backend | None = None,
        shape: Iterable[int] | None = None,
        kind: Kind = Float,
    ):
        """Use the class methods; this only puts the parts together."""
        self.id = id
        self._value = value
        self._init = init or _made
        self._device = device
        self._require_grad = require_grad
        self._shape = None if shape is None else Shape(shape)
        self._kind = kind

    @classmethod
    def from_tensor(cls, value: Tensor) -> Self:
        """A new parameter with these values; a Float one is to be learned."""
        learned = value.kind is Float
        return cls(ParamId.new(), leaf(value, learned), require_grad=learned)

    @classmethod
    def from_data(cls, data: Any, device: Backend, kind: Kind = Float) -> Self:
        """A new parameter from data, on a device."""
        return cls.from_tensor(Tensor.from_data(data, device, kind))

    @classmethod
    def initialized(cls, id: ParamId, value: Tensor) -> Self:  # noqa: A002
        """The tensor exactly as it is, under a known id."""
        return cls(id, value, require_grad=value.is_require_grad())

    @classmethod
    def uninitialized(
        cls,
        id: ParamId,  # noqa: A002 - Burn's word
        init: Init,
        device: Backend,
        require_grad: bool,
        shape: Iterable[int] | None = None,
        kind: Kind = Float,
    ) -> Self:
        """A lazy parameter: `init(device, require_grad)` runs at the first `val()`.

        With `shape` given, asking for the shape does not make the values.
        """
        return cls(
            id,
            None,
            require_grad=require_grad,
            init=init,
            device=device,
            shape=shape,
            kind=kind,
        )

    def val(self) -> Tensor:
        """The tensor; made now if nobody has asked for it before."""
        value = self._value
        return self._materialize() if value is None else value

    def base(self) -> Tensor:
        """The stored value: that of `val()`, unless a module is attached."""
        return self.val()

    def reparameterization(self, cls: type[Any] | None = None) -> Any:
        """The module that makes the value from the stored one, if it is of this class.

        Mostly none is attached, and the answer is None.
        """
        return None

    def adapter(self) -> Any:
        """The LoRA adapter that is attached, or None."""
        found = self.reparameterization()
        return found if getattr(found, "NAME", "") == "lora" else None

    def into_value(self) -> Tensor:
        """The same as `val()`."""
        return self.val()

    def consume(self) -> tuple[ParamId, Tensor]:
        """The id and the tensor."""
        return self.id, self.val()

    def map(self, change: Callable[[Tensor], Tensor]) -> "Param":
        """The parameter `change` makes of this one: another tensor, the same id."""
        return self.initialized(self.id, change(self.val()))

    def set_require_grad(self, require_grad: bool) -> "Param":
        """The same parameter, to be learned or to be left alone; stays lazy."""
        return self.derive(
            lambda value, _: leaf(value, require_grad),
            self.device,
            require_grad,
        )

    def derive(
        self,
        change: Callable[[Tensor, Backend], Tensor],
        device: Backend,
        require_grad: bool,
    ) -> "Param":
        """The same parameter in another form; the change waits while this one is lazy.

        A Float value is changed by `change(value, device)`, which sets its gradient
        flag as well.
        """
        if self._value is not None:
            value = change(self._value, device)
            return type(self)(self.id, value, require_grad=require_grad)
        return type(self)(
            self.id,
            None,
            require_grad=require_grad,
            init=lambda there, _: change(self.val(), there),
            device=device,
            shape=self._shape,
            kind=self._kind,
        )

    @property
    def is_initialized(self) -> bool:
        """Whether the values exist already."""
        return self._value is not None

    @property
    def is_require_grad(self) -> bool:
        """Whether the parameter is to be learned."""
        return self._require_grad

    @property
    def device(self) -> Backend:
        """Where the values are, or will be."""
        value, device = self._value, self._device
        return device if device is not None and value is None else self.val().backend

    @property
    def kind(self) -> Kind:
        """Float, Int or Bool."""
        return self._kind if self._value is None else self._value.kind

    @property
    def shape(self) -> Shape:
        """The sizes; known without making the values where the init declared them."""
        if self._value is None and self._shape is not None:
            return self._shape
        return self.val().shape

    def _materialize(self) -> Tensor:
        with _MAKING:
            if self._value is None:
                self._value = self._init(self.device, self._require_grad)
                self._init = _made
            return self._value

    def __str__(self) -> str:
        return f"Param: {self.id}"

    def __repr__(self) -> str:
        shown = f"Param {self.kind.__name__} {list(self.shape)} on {self.device!r}"
        return shown if self.is_initialized else f"{shown}, lazy"

    def __reduce__(self) -> Any:
        value = self.val()
        parts = (value.to_data(), value.backend, self.kind, self._require_grad)
        return _rebuild, (type(self), int(self.id), *parts)


def _made(device: Backend, require_grad: bool) -> Tensor:
    """The init of a parameter that needs none any more."""
    raise RuntimeError("the values exist already")


# One lock for all: values are made once in the life of a parameter, and one parameter
# may be made from another, in whatever order.
_MAKING = threading.RLock()


def _rebuild(
    cls: type[Param],
    number: int,
    data: TensorData,
    device: Backend,
    kind: Kind,
    require_grad: bool,
) -> Param:
    value = Tensor.from_data(data, device, kind)
    return cls(ParamId(number), leaf(value, require_grad), require_grad=require_grad)


def leaf(value: Tensor, required: bool) -> Tensor:
    """The tensor cut from its graph; gradients reach it again if that is required."""
    plain = value.set_require_grad(False)
    return plain.require_grad() if required else plain
