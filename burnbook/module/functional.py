"""Run a module with other tensors in the place of its parameters.

A parameter is a leaf, so no gradient flows through it into what it was computed from.
The tensors that `functional_call` is given stay in their graph: adapted weights (MAML),
weights that another network makes (a hypernetwork), weights computed from others.
"""

import difflib
from collections.abc import Mapping
from typing import Any

from burnbook.backend.base import Backend
from burnbook.core.dtypes import Float
from burnbook.core.errors import (
    ArgumentError,
    BackendError,
    ConfigError,
    KindError,
    ShapeError,
)
from burnbook.module.module import Module
from burnbook.module.param import Param
from burnbook.module.running import RunningState
from burnbook.module.tree import rebuild
from burnbook.tensor import Tensor

WHERE = "functional_call"
MOST = 8  # paths in an error


def functional_call(
    module: Module,
    parameters: Mapping[str, Tensor],
    *inputs: Any,
    method: str = "forward",
    **named: Any,
) -> Any:
    """What a module computes with these tensors in the place of its parameters.

    The module stays as it is. Parameters that are not named are its own; one that
    stands in several places is replaced in all of them. Gradients flow into the tensors
    and on into what they were computed from, second derivatives too. Running statistics
    move as in a forward pass of the module, unless they are given as well.

    parameters: tensors by the paths that `module.named_params()` gives.
    method: another one than forward.

    Example:
        >>> from burnbook.backend import Autodiff, Numpy
        >>> from burnbook.nn import LinearConfig
        >>> device = Autodiff(Numpy())
        >>> layer, x = LinearConfig(2, 1).init(device), Tensor.ones([1, 2], device)
        >>> doubled = {"weight": layer.weight.val() * 2.0}
        >>> grads = functional_call(layer, doubled, x).sum().backward()
        >>> layer.weight.val().grad(grads).to_data().to_list()
        [[2.0], [2.0]]

    Raises:
        ArgumentError: `module` is not a module, or `parameters` no dict.
        ConfigError: the module has no parameter at a path, or no such method.
        KindError: a value is not a tensor, or one of another kind.
        ShapeError: a tensor has another shape than its parameter.
        BackendError: the tensors are on several devices, or on another one than the
            parameters that are left.
    """
    _check(module, parameters, method)
    given = _by_param(module, parameters)
    device = _device(module, given)
    moved: list[tuple[RunningState, RunningState]] = []

    def change(param: Param) -> Param:
        value = given.get(param)
        if value is not None:
            return _holding(param, value)
        if device is None or param.device is device:
            return param
        if isinstance(param, RunningState):
            copy = param.derive(lambda held, to: held.to_device(to), device, False)
            assert isinstance(copy, RunningState)
            moved.append((param, copy))
            return copy
        return param

    def constant(tensor: Tensor) -> Tensor:
        return tensor if device is None else tensor.to_device(device)

    made = rebuild(module, change, constant)
    before = [copy.val() for _, copy in moved]
    out = getattr(made, method)(*inputs, **named)
    for (state, copy), held in zip(moved, before, strict=True):
        if copy.val() is not held:
            state.update(copy.val().to_device(state.device))
    return out


def _check(module: object, parameters: object, method: str) -> None:
    cure = 'functional_call(model, {"fc.weight": tensor}, x)'
    if not isinstance(module, Module):
        what = f"{type(module).__name__} is not a module"
        raise ArgumentError(WHERE, what, cure=cure)
    if not isinstance(parameters, Mapping):
        what = f"{type(parameters).__name__} does not say which parameter is which"
        raise ArgumentError(WHERE, what, cure=cure)
    if not callable(getattr(module, method, None)):
        what = f"{type(module).__name__} has no method {method!r}"
        raise ConfigError(WHERE, what, cure='method="forward"')


def _by_param(module: Module, parameters: Mapping[str, Tensor]) -> dict[Param, Tensor]:
    """The tensors by the parameters that they replace, once they are seen to fit."""
    known = dict(module.named_params())
    found: dict[Param, Tensor] = {}
    for path, value in parameters.items():
        param = known.get(path)
        if param is None:
            raise _no_parameter(module, path, list(known))
        _check_value(path, param, value)
        if found.get(param, value) is not value:
            what = f"{path} is tied to another parameter, and gets another tensor"
            raise ConfigError(WHERE, what, cure="one tensor for both, or for one path")
        found[param] = value
    return found


def _check_value(path: str, param: Param, value: object) -> None:
    if not isinstance(value, Tensor):
        what = f"{path} is {type(value).__name__}, not a tensor"
        cure = f"{path!r}: param.val()" if isinstance(value, Param) else None
        cure = cure or "Tensor.from_data(…, device)"
        raise KindError(WHERE, what, cure=cure)
    if value.kind is not param.kind:
        what = f"{path} is {param.kind.__name__}, and the tensor {value.kind.__name__}"
        cure = "tensor.float()" if param.kind is Float else "tensor.int()"
        raise KindError(WHERE, what, cure=cure)
    if tuple(value.shape) != tuple(param.shape):
        sizes = list(param.shape)
        facts = [("parameter", str(sizes)), ("tensor", str(list(value.shape)))]
        what = f"{path} has another shape than its tensor"
        fits = value.shape.num_elements() == param.shape.num_elements()
        cure = f"tensor.reshape({sizes})" if fits else f"a tensor of shape {sizes}"
        raise ShapeError(WHERE, what, facts, cure)


def _device(module: Module, given: Mapping[Param, Tensor]) -> Backend | None:
    """Where the tensors are; all that is computed with must be there."""
    devices = {id(value.backend): value.backend for value in given.values()}
    if not devices:
        return next(iter(module.devices()), None)
    if len(devices) > 1:
        shown = ", ".join(map(repr, devices.values()))
        facts = [("devices", shown)]
        what = "the tensors are on several devices"
        raise BackendError(WHERE, what, facts, "tensor.to_device(device) for each")
    (device,) = devices.values()
    for path, param in module.named_params():
        left = param not in given and not isinstance(param, RunningState)
        if left and param.device is not device:
            facts = [(path, repr(param.device)), ("tensors", repr(device))]
            what = "some parameters are left, and they are on another device"
            cure = "all parameters, or functional_call(model.fork(device), …)"
            raise BackendError(WHERE, what, facts, cure)
    return device


def _holding(param: Param, value: Tensor) -> Param:
    """A parameter with this very tensor, which stays in its graph."""
    if isinstance(param, RunningState):
        return RunningState(param.id, value)
    learned = value.is_require_grad()
    return Param(param.id, value, require_grad=learned, trainable=param.is_trainable())


def _no_parameter(module: Module, path: object, known: list[str]) -> ConfigError:
    name = type(module).__name__
    near = difflib.get_close_matches(str(path), known, 3, 0.5)
    facts = [("near", ", ".join(near))] if near else []
    more = f", … ({len(known)})" if len(known) > MOST else ""
    facts.append(("paths", (", ".join(known[:MOST]) or "none") + more))
    what = f"{name} has no parameter {path!r}"
    cure = "the paths of model.named_params()"
    return ConfigError(WHERE, what, facts, f"{near[0]!r}" if near else cure)
