"""`Tensor[2]`, `Tensor[1, Int]`, `Tensor[B, 2]`: a promise.

The spec forwards everything to Tensor and checks what comes out. It is for
construction, `isinstance` and for reading; it never checks annotations.
"""

import inspect
from typing import Any

from burnbook.backend.base import Backend
from burnbook.core.dtypes import Float, KindType
from burnbook.core.errors import BackendError, KindError, ShapeError
from burnbook.tensor.facts import kind_and_shape


class TensorSpec:
    """A rank, a kind and perhaps a backend that tensors made through it must have."""

    __slots__ = ("_backend", "_kind", "_rank", "_tensor")

    def __init__(self, tensor: type, rank: int, kind: KindType, backend: Any):
        self._tensor = tensor
        self._rank = rank
        self._kind = kind
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._tensor, name)
        if name.startswith("_") or not callable(found):
            return found
        takes = inspect.signature(found).parameters

        def checked(*args: Any, **kwargs: Any) -> Any:
            at = list(takes).index("kind") if "kind" in takes else len(args)
            if at == len(args) - 1 and isinstance(args[at], KindType):
                self._agree(name, args[at])  # Tensor[2].from_data(x, device, Float)
            elif "kind" in takes and "kind" not in kwargs:
                kwargs["kind"] = self._kind
            if "rank" in takes and "rank" not in kwargs and name == "one_hot":
                kwargs["rank"] = self._rank
            self._place(name, takes, args, kwargs)
            out = found(*args, **kwargs)
            if isinstance(out, self._tensor):
                self._confirm(name, out)
            return out

        checked.__name__ = name
        checked.__doc__ = found.__doc__
        return checked

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, self._tensor) and self.allows(
            value.rank, value.kind, value.backend
        )

    def allows(self, rank: int, kind: Any, backend: Any) -> bool:
        """Whether a tensor with these three is one of the spec."""
        return (
            rank == self._rank
            and kind is self._kind
            and (self._backend is None or backend is self._backend)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __or__(self, other: Any) -> Any:
        return Any

    __ror__ = __or__

    def __repr__(self) -> str:
        parts = [] if self._backend is None else [repr(self._backend)]
        parts.append(str(self._rank))
        if self._kind is not Float:
            parts.append(self._kind.__name__)
        return f"Tensor[{', '.join(parts)}]"

    def _place(self, name: str, takes: Any, args: Any, kwargs: Any) -> None:
        """Fill in the backend of the spec, or refuse another one."""
        if self._backend is None or "device" not in takes:
            return
        at = list(takes).index("device")
        given = args[at] if len(args) > at else kwargs.get("device")
        if given is None and len(args) <= at:
            kwargs["device"] = self._backend
        elif given is not None and given is not self._backend:
            raise BackendError(
                f"{self!r}.{name}",
                "the device is not the backend of the type",
                [("type", repr(self._backend)), ("device", repr(given))],
            )

    def _agree(self, name: str, kind: KindType) -> None:
        if kind is not self._kind:
            what = f"{kind.__name__} is not the kind of the type"
            cure = f"Tensor[{self._rank}, {kind.__name__}].{name}(…)"
            raise KindError(f"{self!r}.{name}", what, cure=cure)

    def _confirm(self, name: str, out: Any) -> None:
        if out.rank != self._rank:
            raise ShapeError(
                f"{self!r}.{name}",
                f"the result has rank {out.rank}, not {self._rank}",
                [("result", kind_and_shape(out))],
                f"Tensor[{out.rank}]",
            )
        if out.kind is not self._kind:
            raise KindError(
                f"{self!r}.{name}",
                f"the result is {out.kind.__name__}, not {self._kind.__name__}",
                cure=f"Tensor[{self._rank}, {out.kind.__name__}]",
            )


def spec_of(tensor: type, item: Any) -> TensorSpec:
    """Read `2`, `1, Int`, `B, 2` or `B, 2, Int` as a spec."""
    parts = list(item) if isinstance(item, tuple) else [item]
    backend = None
    if parts and (isinstance(parts[0], Backend) or _is_backend_type(parts[0])):
        first = parts.pop(0)
        backend = first() if isinstance(first, type) else first
    kind = parts.pop() if len(parts) == 2 else Float
    if (
        len(parts) != 1
        or not isinstance(parts[0], int)
        or parts[0] < 1
        or not isinstance(kind, KindType)
    ):
        raise ShapeError(
            "Tensor[…]",
            f"{item!r} is not a rank, or a rank and a kind",
            cure="Tensor[2], Tensor[1, Int], Tensor[backend, 2] "
            "or Tensor[backend, 2, Int]",
        )
    return TensorSpec(tensor, parts[0], kind, backend)


def _is_backend_type(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Backend)
