"""RunningState: what training keeps up to date by averaging.

A running mean is no parameter to be learned, but it belongs to the model: it is saved,
moved, visited and counted like one. It is the one thing in a module that changes in
place, because a forward pass updates it and returns something else.
"""

import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self

from burnbook.backend.base import Backend
from burnbook.core.dropped import result_matters
from burnbook.core.dtypes import Float, Kind
from burnbook.module.param import Init, Param, ParamId, leaf
from burnbook.module.tree import MODULES, Tree
from burnbook.tensor import Tensor


class RunningState(Param):
    """A value that forward passes update and no gradient reaches.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> state = RunningState.from_tensor(Tensor.zeros([2], Numpy()))
        >>> state.update(Tensor.ones([2], Numpy()))
        >>> state.value().to_data().to_list(), state.value_sync().to_data().to_list()
        ([0.0, 0.0], [1.0, 1.0])

    For statistics of all training data, pass it once through the model on Autodiff: the
    graph is dropped with the output where nothing asks it for `backward()`.

    Why: several threads may train one module. An update waits, one for each thread,
    until `value_sync` (or saving, moving, visiting) puts their average in its place.
    """

    __slots__ = ("_waiting", "is_frozen")

    def __init__(
        self,
        id: ParamId,  # noqa: A002 - Burn's word
        value: Tensor | None,
        *,
        require_grad: bool = False,
        init: Init | None = None,
        device: Backend | None = None,
        shape: Iterable[int] | None = None,
        kind: Kind = Float,
        trainable: bool | None = None,
    ):
        """The same parts as those of a Param; nothing here requires a gradient."""
        super().__init__(
            id,
            None if value is None else leaf(value, required=False),
            require_grad=False,
            init=init and _without_gradient(init),
            device=device,
            shape=shape,
            kind=kind,
        )
        self._waiting: dict[int, Tensor] = {}
        self.is_frozen = False  # so that no update moves it, see set_require_grad

    @classmethod
    def of(cls, param: Param) -> Self:
        """The state that starts as this parameter would, drawn when it is needed."""
        return cls(
            param.id,
            None,
            init=lambda device, _: param.val(),
            device=param.device,
            shape=param.shape,
        )

    def value(self) -> Tensor:
        """The value without the updates that wait, so the old one after a forward pass.

        `val()` and `value_sync()` have the new one. In Burn it is the same.
        """
        return super().val()

    def value_sync(self) -> Tensor:
        """The value, after taking in what waits if this thread has an update there."""
        if threading.get_ident() in self._waiting:
            return self.val()
        return self.value()

    def val(self) -> Tensor:
        """The value with the updates of all threads."""
        if self._waiting:
            with _LOCK:
                waiting = list(self._waiting.values())
                self._waiting.clear()
                if waiting:
                    self._value = _average(waiting)
        return super().val()

    def update(self, value: Tensor) -> None:
        """Set the value; it waits until somebody asks, and an older one moves up.

        One that is frozen, as `Module.no_grad` does it, stays as it is.
        """
        if self.is_frozen:
            return
        self.value_sync()
        if (tell := _WATCHED.get()) is not None:
            tell(self)
        with _LOCK:
            self._waiting[threading.get_ident()] = leaf(value, required=False)

    def swap(self, value: Tensor) -> Tensor:
        """Put a value in the place of the one that is there, which is given back."""
        old = self.val()
        self._value = value
        return old

    def derive(
        self,
        change: Callable[[Tensor, Backend], Tensor],
        device: Backend,
        require_grad: bool,
        trainable: bool | None = None,
    ) -> Param:
        """A state of its own that starts from the value of this one."""
        self.val()
        made = super().derive(change, device, require_grad=False)
        made.is_frozen = self.is_frozen  # type: ignore[attr-defined] # of the same class
        return made

    @result_matters("model = model.no_grad()")
    def set_require_grad(self, require_grad: bool) -> Param:
        """A state of its own that forward passes move (True) or leave alone (False)."""
        made = self.unshared()
        made.is_frozen = not require_grad  # type: ignore[attr-defined] # of the same class
        return made

    def unshared(self) -> Param:
        """A state of its own for another module, whose forward passes move it alone."""
        return self.derive(lambda value, _: value, self.device, require_grad=False)

    def __repr__(self) -> str:
        return super().__repr__().replace("Param", "RunningState", 1)

    def __reduce__(self) -> Any:
        return _rebuild, (*super().__reduce__(), self.is_frozen)


@contextmanager
def watched(tell: Callable[[RunningState], None]) -> Generator[None]:
    """Call `tell` with each state of this thread that is about to be updated."""
    token = _WATCHED.set(tell)
    try:
        yield
    finally:
        _WATCHED.reset(token)


def average_running_states(module: Tree, replicas: Sequence[Tree]) -> None:
    """Give every running state of a module the mean of those of its replicas.

    Data-parallel training calls this after each round, in which every replica saw
    another part of the batch.
    """
    trees = (module, *replicas)
    states = [MODULES.collect(tree, RunningState, []) for tree in trees]
    for own, *others in zip(*states, strict=True):
        if own.is_frozen:
            continue
        device = own.device
        own.update(_average([state.val().to_device(device) for state in others]))


def _rebuild(
    make: Callable[..., RunningState], parts: tuple[Any, ...], is_frozen: bool
) -> RunningState:
    made = make(*parts)
    made.is_frozen = is_frozen
    return made


def _average(values: Sequence[Tensor]) -> Tensor:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total if len(values) == 1 else total / float(len(values))


def _without_gradient(init: Init) -> Init:
    return lambda device, _: leaf(init(device, False), required=False)


_LOCK = threading.RLock()
_WATCHED: ContextVar[Callable[[RunningState], None] | None] = ContextVar(
    "watched", default=None
)
