"""Param: a tensor that a module learns, known by its id.

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
from types import GenericAlias
from typing import Any, Self

from burnbook.backend.base import Backend, plain_backend
from burnbook.core.dropped import result_matters
from burnbook.core.dtypes import Float, Kind
from burnbook.core.errors import KindError, RecordError
from burnbook.core.other_names import FixedName, answers
from burnbook.module.cuts import note_cut
from burnbook.tensor import Shape, Tensor, TensorData
from burnbook.tensor.facts import kind_and_shape
from burnbook.tensor.quantized import QuantizedTensor

Init = Callable[[Backend, bool], Tensor]


class Flag(int):
    """True or False, which may be called as well: what a parameter answers.

    Example:
        >>> Flag(True), Flag(True)(), bool(Flag(False))
        (True, True, False)

    Why: a tensor is asked `is_require_grad()`, and so is a parameter in Burn; without
    the parentheses a method would count as true, whatever it says.
    """

    stands_for = "bool"  # where an argument is one

    __slots__ = ()

    def __call__(self) -> bool:
        """The same as a plain bool."""
        return bool(self)

    def __repr__(self) -> str:
        return repr(bool(self))

    __str__ = __repr__


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


@answers("Param", FixedName)
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

    __slots__ = (
        "_device",
        "_init",
        "_kind",
        "_require_grad",
        "_shape",
        "_trainable",
        "_value",
        "id",
    )

    id: ParamId

    def __class_getitem__(cls, item: object) -> Any:
        """The type of a field: `Param[Tensor[2]]`, whose rank and kind are checked."""
        return GenericAlias(cls, (item,))

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
        trainable: bool | None = None,
    ):
        """Use the class methods; this only puts the parts together.

        trainable: whether `Module.train` lets it learn; without, as require_grad.
        """
        self.id = id
        self._value = value
        self._init = init or _made
        self._device = device
        self._require_grad = bool(require_grad)
        self._trainable = bool(require_grad if trainable is None else trainable)
        self._shape = None if shape is None else Shape(shape)
        self._kind = kind

    @classmethod
    def from_tensor(cls, value: Tensor) -> Self:
        """A new parameter with these values; a Float one is to be learned."""
        learned = value.kind is Float
        held = leaf(value, learned, "Param.from_tensor")
        return cls(ParamId.new(), held, require_grad=learned)

    @classmethod
    def from_data(cls, data: object, device: Backend, kind: Kind = Float) -> Self:
        """A new parameter from data, on a device."""
        return cls.from_tensor(Tensor.from_data(data, device, kind))

    @classmethod
    def initialized(cls, id: ParamId, value: Tensor) -> Self:  # noqa: A002
        """The tensor exactly as it is, under a known id.

        A leaf of the graph is learned. A tensor that was computed stays in its graph,
        so it is not: `from_tensor` makes a leaf of it.
        """
        flag = value.is_require_grad()
        plain = not value.backend.ad_enabled  # where nothing says it is frozen
        return cls(id, value, require_grad=flag, trainable=flag or plain)

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

    def _no_number(self, *others: object) -> Any:
        """A parameter is no number: its tensor is."""
        what = "a parameter holds a tensor and is not one itself"
        raise KindError("Param", what, cure="param.val(), which is its tensor")

    __mul__ = __rmul__ = __add__ = __radd__ = __sub__ = __rsub__ = _no_number
    __truediv__ = __rtruediv__ = __pow__ = __neg__ = __matmul__ = _no_number

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

    @result_matters("layer = layer.replace(weight=layer.weight.map(…))")
    def map(self, change: Callable[[Tensor], Tensor]) -> "Param":
        """The parameter `change` makes of this one: another tensor, the same id.

        It is a leaf, cut from the graph it was computed in, and learns if this one
        does. A change of the gradient flag alone, as by `set_require_grad`, counts.
        """
        return self.replaced(change(self.val()), "Param.map")

    def replaced(self, made: Any, where: str) -> "Param":
        """The same parameter with the tensor that a mapper, called `where`, made."""
        value = self.val()
        if made is value:
            return self
        check_mapped(made, value, where)
        quantized = isinstance(made, QuantizedTensor)  # codes have no gradient
        kept = not _asks_for_none(made, value)
        flag = made.is_require_grad() or (self._require_grad and kept and not quantized)
        return type(self)(
            self.id,
            leaf(made, flag, where),
            require_grad=flag,
            trainable=flag or (self._trainable and kept),
        )

    def unshared(self) -> "Param":
        """The parameter for another module: the same one, as it never changes."""
        return self

    def rooted(self) -> "Param":
        """The same parameter as a leaf, to be learned, if it was computed from one."""
        value = self._value
        if value is None or value.is_require_grad() or not hasattr(value.value, "node"):
            return self
        made = leaf(value, True, "apply_reparameterization")
        return type(self)(self.id, made, require_grad=True)

    @result_matters("model = model.freeze_group(ParamGroup…), or unfreeze_group")
    def set_require_grad(self, require_grad: bool) -> "Param":
        """The same parameter, to be learned or to be left alone; stays lazy."""
        return self.derive(
            lambda value, _: leaf(value, require_grad),
            self.device,
            require_grad,
            require_grad,
        )

    def derive(
        self,
        change: Callable[[Tensor, Backend], Tensor],
        device: Backend,
        require_grad: bool,
        trainable: bool | None = None,
    ) -> "Param":
        """The same parameter in another form; the change waits while this one is lazy.

        A Float value is changed by `change(value, device)`, which sets its gradient
        flag as well. trainable: whether `Module.train` lets it learn; else as here.
        """
        trainable = self._trainable if trainable is None else trainable
        if self._value is not None:
            value = change(self._value, device)
            return type(self)(
                self.id, value, require_grad=require_grad, trainable=trainable
            )
        return type(self)(
            self.id,
            None,
            require_grad=require_grad,
            init=lambda there, _: change(self.val(), there),
            device=device,
            shape=self._shape,
            kind=self._kind,
            trainable=trainable,
        )

    @property
    def is_initialized(self) -> Flag:
        """Whether the values exist already."""
        return Flag(self._value is not None)

    @property
    def is_shaped(self) -> Flag:
        """Whether the sizes are known without making the values."""
        return Flag(self._value is not None or self._shape is not None)

    @property
    def is_require_grad(self) -> Flag:
        """Whether the parameter is to be learned."""
        return Flag(self._require_grad)

    @property
    def is_trainable(self) -> Flag:
        """Whether it is learned, or was before `valid()`, so that `train()` does."""
        return Flag(self._trainable)

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

    @property
    def saved_shape(self) -> Shape:
        """The sizes that the parameter has in a record."""
        return self.shape

    def to_saved(self) -> TensorData:
        """The elements for a record."""
        return self.val().to_data()

    def from_saved(self, value: Tensor) -> Tensor:
        """The value, from the one that a record holds."""
        return value

    def _materialize(self) -> Tensor:
        with _MAKING:
            if self._value is None:
                with plain_backend(self.device).aside():
                    value = self._init(self.device, self._require_grad)
                    if self._require_grad and not is_rooted(value):
                        value = leaf(value, required=True)
                self._value, self._init = value, _made
            return self._value

    def __str__(self) -> str:
        return f"Param: {self.id}"

    def __repr__(self) -> str:
        shown = f"Param {self.kind.__name__} {list(self.shape)} on {self.device!r}"
        return shown if self.is_initialized else f"{shown}, lazy"

    def __reduce__(self) -> Any:
        value = self.val()
        flags = self._require_grad, self._trainable
        parts = (value.to_data(), value.backend, self.kind, *flags)
        return _rebuild, (type(self), int(self.id), *parts)


class TransposedParam(Param):
    """A matrix that records hold the other way round, as Burn does with some of them.

    Everybody else sees it as it is: what `val()` gives has the shape of the parameter.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> weight = TransposedParam.of(Param.from_data([[1.0, 2.0]], Numpy()))
        >>> weight.shape, weight.to_saved().shape
        ((1, 2), (2, 1))
    """

    __slots__ = ()

    @classmethod
    def of(cls, param: Param) -> Self:
        """The same parameter, recorded the other way round; stays lazy."""
        made = object.__new__(cls)
        for name in Param.__slots__:
            setattr(made, name, getattr(param, name))
        return made

    @property
    def saved_shape(self) -> Shape:
        """The sizes in a record: [n, m] for [m, n]."""
        return Shape(reversed(self.shape))

    def to_saved(self) -> TensorData:
        """The elements for a record."""
        return self.val().set_require_grad(False).transpose().to_data()

    def from_saved(self, value: Tensor) -> Tensor:
        """The value, from the one that a record holds."""
        return value.transpose()


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
    trainable: bool | None = None,
) -> Param:
    value = leaf(Tensor.from_data(data, device, kind), require_grad)
    number = ParamId(number)
    return cls(number, value, require_grad=require_grad, trainable=trainable)


def leaf(value: Tensor, required: bool, where: str = "") -> Tensor:
    """The tensor cut from its graph; gradients reach it again if that is required.

    Where Autodiff is around Autodiff that holds for every level, so a model learns from
    a loss that is made of gradients. where: who cuts it, if errors shall tell.
    """
    plain = value.set_require_grad(False)
    if hasattr(plain.value, "node"):
        plain = Tensor.from_inner(leaf(plain.inner(), required=False), value.backend)
    if not required:
        return plain
    made = plain.require_grad()
    return note_cut(made, value, where) if where else made


def is_rooted(value: Tensor) -> bool:
    """Whether gradients of every level reach a tensor that is to be learned."""
    raw, depth = value.value, getattr(value.backend, "depth", 0)
    for _ in range(depth + 1):
        if not hasattr(raw, "node"):
            return False
        raw = raw.value
    return True


def check_mapped(made: object, value: Tensor, where: str) -> None:
    """Raise for what a mapper may not make of a value: no tensor, or another kind."""
    kind = value.kind.__name__
    facts = [("param", kind_and_shape(value))]
    if not isinstance(made, Tensor):
        name = "None" if made is None else type(made).__name__
        cure = "return the tensor, even where it is unchanged"
        cure = cure if made is None else "Tensor.from_data(…, tensor.device())"
        raise KindError(
            where, f"it made {name} of a parameter, not a Tensor", facts, cure
        )
    if made.kind is not value.kind:
        facts.append(("made", kind_and_shape(made)))
        what = f"it made {made.kind.__name__} of a {kind} parameter"
        raise KindError(where, what, facts, f"a {kind} tensor")


def _asks_for_none(made: Tensor, value: Tensor) -> bool:
    """Whether a mapper changed nothing but the gradient flag, and took it away."""
    if not made.backend.ad_enabled or hasattr(made.value, "node"):
        return False
    raw = value.value
    return made.value is (raw.value if hasattr(raw, "node") else raw)
