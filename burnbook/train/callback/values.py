"""The values of a model's parameters, taken out and put back, by their ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from burnbook.backend import Backend
from burnbook.core.dtypes import Float
from burnbook.core.errors import RecordError
from burnbook.module import Module, Param, ParamId, RunningState
from burnbook.module.param import leaf
from burnbook.module.tree import params_of, rebuild
from burnbook.tensor import Tensor, TensorData

M = TypeVar("M", bound=Module)
Values = dict[ParamId, Tensor]


def values_of(params: Iterable[Param]) -> Values:
    """The values of parameters, on the backend below Autodiff.

    Example:
        >>> from burnbook.backend import Numpy
        >>> from burnbook.nn import LinearConfig
        >>> layer = LinearConfig(2, 3).init(Numpy().autodiff())
        >>> [value.dims() for value in values_of([layer.weight, layer.bias]).values()]
        [(2, 3), (3,)]
    """
    return {param.id: _inner(param.val()) for param in params}


def averaged_params(model: Module, running_states: bool) -> list[Param]:
    """The Float parameters, and on wish the running statistics, each once."""
    found = {
        param.id: param
        for param in params_of(model)
        if param.kind is Float
        and (running_states or not isinstance(param, RunningState))
    }
    return list(found.values())


def with_values(model: M, values: Mapping[ParamId, Tensor]) -> M:
    """The model with these values; parameters without one keep their own.

    Where it is, and what of it learns, stays the same.
    """

    def change(param: Param) -> Param:
        value = values.get(param.id)
        return param.unshared() if value is None else _holding(param, value)

    return rebuild(model, change, lambda tensor: tensor)


def into_record(values: Mapping[ParamId, Tensor]) -> dict[str, TensorData]:
    """The values by the text of their ids, as a record holds them."""
    return {number.serialize(): value.to_data() for number, value in values.items()}


def from_record(where: str, record: Any, model: Module) -> Values:
    """The values of a record, each where the parameter of the model is.

    Raises:
        RecordError: a value belongs to no parameter of the model, or has another shape.
    """
    params = {param.id: param for param in params_of(model)}
    found: Values = {}
    for text, data in record.items():
        param = params.get(ParamId.deserialize(text))
        if param is None or tuple(data.shape) != tuple(param.shape):
            name = type(model).__name__
            what = f"{name} has no parameter {text} of shape {list(data.shape)}"
            cure = "the checkpoint of this very model"
            raise RecordError(f"load into {where}", what, cure=cure)
        found[param.id] = Tensor.from_data(data, _below(param.device), param.kind)
    return found


def _holding(param: Param, value: Tensor) -> Param:
    flag = param.is_require_grad()

    def change(_: Tensor, device: Backend) -> Tensor:
        made = value.to_device(_below(device))
        made = Tensor.from_inner(made, device) if device.ad_enabled else made
        return leaf(made, flag)

    return param.derive(change, param.device, flag)


def _inner(value: Tensor) -> Tensor:
    return value.inner() if value.backend.ad_enabled else value


def _below(device: Backend) -> Backend:
    return device.inner if device.ad_enabled else device
