"""Building blocks · Optimizer. From a rule for one tensor to an optimizer of a module.

A SimpleOptimizer knows one parameter: `step(lr, tensor, grad, state)`. The adaptor maps
it over a module, keeps a state for every parameter by its id, and writes and reads
these as a record. A parameter without a gradient stays as it is, and so does its state.
"""

from typing import Any, NamedTuple, Protocol, Self, TypeVar

from burnbook.backend.base import Backend
from burnbook.errors import GraphError, RecordError, ShapeError
from burnbook.kinds import Float
from burnbook.module import Module, Param, ParamId
from burnbook.module.tree import rebuild
from burnbook.optim.clipping import GradientClipping
from burnbook.optim.grads import GradientsParams
from burnbook.optim.state import (
    state_from_record,
    state_tensors,
    state_to_device,
    state_to_record,
)
from burnbook.tensor import Tensor

M = TypeVar("M", bound=Module)

MAX_RANK = 8  # of a parameter, in Burn's record


class SimpleOptimizer(Protocol):
    """How one parameter is updated; pure: all that is remembered is the state.

    state_type: the dataclass of the state, which is what its record is read with.
    """

    state_type: type[Any]

    def step(
        self, lr: float, tensor: Tensor, grad: Tensor, state: Any | None
    ) -> tuple[Tensor, Any | None]:
        """The new tensor and the new state; both tensors are on the inner backend."""
        ...


class Optimizer(Protocol):
    """What the Learner and a training loop need of an optimizer."""

    def step(self, lr: float, module: M, grads: GradientsParams) -> M:
        """The updated module; the one given stays as it was."""
        ...

    def into_record(self) -> Any:
        """The states of all parameters."""
        ...

    def load_record(self, record: Any) -> Self:
        """Take the states of a record."""
        ...


class OptimizerAdaptor:
    """An optimizer of modules made from a rule for tensors.

    Example:
        >>> from burnbook.optim import AdamConfig
        >>> AdamConfig().init()
        OptimizerAdaptor(Adam(beta_1=0.9, beta_2=0.999, epsilon=1e-05), 0 states)
    """

    def __init__(
        self, optim: SimpleOptimizer, grad_clipping: GradientClipping | None = None
    ):
        self.optim = optim
        self.grad_clipping = grad_clipping
        self._states: dict[ParamId, _Held] = {}

    def with_grad_clipping(self, grad_clipping: GradientClipping | None) -> Self:
        """The optimizer with this clipping in place of any other."""
        self.grad_clipping = grad_clipping
        return self

    def step(self, lr: float, module: M, grads: GradientsParams) -> M:
        """The module after one step; each gradient is taken out of `grads`.

        Why: the step count of a parameter is its own, so a part that trains now and
        then is corrected for as many steps as it made.
        """

        if not hasattr(grads, "is_empty"):
            name, cure = type(grads).__name__, "from_grads(loss.backward(), model)"
            what = f"{name} is not GradientsParams"
            raise GraphError("step", what, cure=f"GradientsParams.{cure}")
        states: dict[ParamId, _Held] = {}

        def update(param: Param) -> Param:
            grad = grads.remove(param.id)
            if grad is None or param.kind is not Float:
                return param
            try:
                return self._update(lr, param, grad, states)
            except ShapeError as error:
                path = module.find_part(param)
                error.where = f"step of {type(module).__name__}.{path}"
                raise

        given = len(grads)
        made = rebuild(module, update, _same)
        if given and len(grads) == given:
            raise _strangers(given, module)
        self._states.update(states)
        return made

    def _update(
        self, lr: float, param: Param, grad: Tensor, states: dict[ParamId, "_Held"]
    ) -> Param:
        value, flag = param.val(), param.is_require_grad
        outer = value.backend
        inner = value.inner() if outer.ad_enabled else value
        device, dims = inner.backend, inner.dims()
        if grad.backend is not device:
            grad = grad.to_device(device)
        if grad.dims() != dims:
            what = "the gradient does not have the shape of its parameter"
            facts = [("param", str(list(dims))), ("grad", str(list(grad.dims())))]
            cure = "GradientsParams.from_grads(loss.backward(), model)"
            raise ShapeError("step", what, facts, cure)
        if self.grad_clipping is not None:
            grad = self.grad_clipping.clip_gradient(grad)
        held = self._states.get(param.id)
        if held is not None and (held.device is not device or held.dims != dims):
            held = _settle(held, device, dims)
        state = None if held is None else held.state
        made, state = self.optim.step(lr, inner, grad, state)
        if state is not None:
            states[param.id] = _Held(state, device, dims)
        if outer.ad_enabled:
            made = Tensor.from_inner(made, outer)
            if flag:
                made = made.require_grad()
        return Param(param.id, made, require_grad=flag)

    def into_record(self) -> dict[str, Any]:
        """The states by the ids of their parameters: {id: {"V1": {"Rank2": state}}}."""
        record = {}
        for number, (state, _, _) in self._states.items():
            tensors = state_tensors(state)
            rank = len(tensors[0].shape) if tensors else 1
            if rank > MAX_RANK:
                raise RecordError(
                    "optimizer record",
                    f"a parameter has rank {rank}; at most {MAX_RANK} can be recorded",
                )
            held = {"V1": {f"Rank{rank}": state_to_record(state)}}
            record[number.serialize()] = held
        return record

    to_record = into_record

    def load_record(self, record: Any, device: Backend | None = None) -> Self:
        """Replace all states by those of a record; nothing changes if it is not one.

        Without a device the values wait for the first gradient to say where they go.
        """
        problems: list[str] = []
        states: dict[ParamId, _Held] = {}
        rows = record if isinstance(record, dict) else {"record": None}
        for text, held in rows.items():
            at = str(text)[:40]
            state = self._read(at, held, device, problems)
            try:
                states[ParamId.deserialize(str(text))] = _Held(state, None, None)
            except RecordError:
                problems.append(f"{at} is not the id of a parameter")
        if problems:
            name, count = type(self.optim).__name__, len(problems)
            raise RecordError(
                f"load into {name}",
                f"{count} part{'s do' if count > 1 else ' does'} not match",
                problems,
                f"the record of {name}, not of a model or another optimizer",
            )
        self._states = states
        return self

    def _read(
        self, at: str, held: Any, device: Backend | None, problems: list[str]
    ) -> Any:
        """One state from {"V1": {"Rank2": state}}."""
        inner = held.get("V1") if isinstance(held, dict) and len(held) == 1 else None
        if not isinstance(inner, dict) or len(inner) != 1:
            problems.append(f"{at} does not hold the state of an optimizer")
            return None
        ((rank, fields),) = inner.items()
        state = state_from_record(self.optim.state_type, fields, device, at, problems)
        for tensor in state_tensors(state):
            if f"Rank{len(tensor.shape)}" != rank:
                problems.append(f"{at} is {rank}, its tensors {list(tensor.shape)}")
        return state

    def __repr__(self) -> str:
        count = len(self._states)
        states = f"{count} state{'' if count == 1 else 's'}"
        clipping = f", {self.grad_clipping!r}" if self.grad_clipping else ""
        return f"OptimizerAdaptor({self.optim!r}{clipping}, {states})"


def _strangers(count: int, module: Module) -> GraphError:
    name = type(module).__name__
    return GraphError(
        "step",
        f"none of the {count} gradients belongs to a parameter of {name}",
        cure="GradientsParams.from_grads(loss.backward(), model) with this very model",
    )


class _Held(NamedTuple):
    """The state of one parameter; a loaded one has not met its parameter yet."""

    state: Any
    device: Backend | None
    dims: tuple[int, ...] | None


def _settle(held: _Held, device: Backend, dims: tuple[int, ...]) -> _Held:
    """Bring a loaded or moved state to where its parameter is, if it belongs to it."""
    for tensor in state_tensors(held.state):
        if tuple(tensor.shape) != dims:
            raise ShapeError(
                "step",
                "the state of the optimizer belongs to another shape",
                [("param", str(list(dims))), ("state", str(list(tensor.shape)))],
                "an optimizer record of this very model",
            )
    return _Held(state_to_device(held.state, device), device, dims)


def _same(value: Any) -> Any:
    return value
