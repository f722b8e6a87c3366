"""What a captured call was called with: everything but the elements of its arrays.

Two calls of one form run the same plan. So all that Python could look at is part of it:
shapes and types of tensors, classes and settings of models, which of their parameters
are trained, the rules of an optimizer and for which parameters it remembers something.
"""

import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import Any

from burnbook.backend.base import Backend, plain_backend
from burnbook.backend.fusion import Fusion
from burnbook.core.errors import GraphError
from burnbook.module import Module, Param, ParamId, RunningState
from burnbook.module.tree import MODULES
from burnbook.optim.adaptor import OptimizerAdaptor
from burnbook.optim.state import state_to_device
from burnbook.program.call import facts_of, hides_tensor, is_fact
from burnbook.program.trees import lowest
from burnbook.tensor import Tensor
from burnbook.tensor.quantized import QuantizedTensor

Form = list[tuple[Any, ...]]
PLAIN = (bool, int, str, type(None), complex, bytes)


class NotYet(Exception):
    """This call runs step by step: it makes what later ones find there."""


class Refused(GraphError):
    """A call that no plan can do."""


def refused(what: str, cure: str) -> Refused:
    """The reason why a call runs step by step, and what to change."""
    return Refused("captured", what, cure=cure)


class Given:
    """The leaves of a call: its form, and what a plan is given for them.

    tensors, modules, optimizers, numbers: those leaves, each with its name.
    """

    def __init__(self, leaves: list[tuple[str, Any]]):
        self.form: Form = []
        self.tensors: list[tuple[str, Tensor]] = []
        self.modules: list[tuple[str, Module]] = []
        self.optimizers: list[tuple[str, OptimizerAdaptor]] = []
        self.numbers: dict[str, float] = {}
        self.floats: list[str] = []  # the numbers among the arguments
        self.names: list[str] = []  # of the arrays
        self.arrays: list[Any] = []
        self.held: list[list[tuple[str, Any]]] = []  # of each module
        self.states: list[list[tuple[Any, list[Any]]]] = []  # of each optimizer
        later: list[OptimizerAdaptor] = []
        for name, leaf in leaves:
            cls = type(leaf)
            if cls is Tensor:
                self._add_tensor(name, leaf)
            elif cls is tuple:  # of a container
                self.form.append((name, leaf))
            elif cls is float:
                self._add_number(name, leaf)
            elif isinstance(leaf, Module):
                self._add_module(name, leaf)
            elif isinstance(leaf, OptimizerAdaptor):
                later.append(leaf)
            else:
                self.form.append((name, _static(name, leaf)))
        for leaf in later:  # their states come last
            self._add_optimizer(f"optim{len(self.optimizers)}", leaf)

    def _add_tensor(self, name: str, tensor: Tensor) -> None:
        value = tensor.value
        if hasattr(value, "node"):
            what = f"{name} is part of a graph of gradients"
            raise refused(what, "x.detach(), or what computes it inside the function")
        array = lowest(value)
        self.tensors.append((name, tensor))
        self.arrays.append(array)
        self.names.append(name)
        self.form.append((name, tensor.kind, array.shape, array.dtype, tensor.backend))

    def _add_number(self, name: str, number: float) -> None:
        if not math.isfinite(number):
            raise NotYet
        self.form.append((name, float))
        self.floats.append(name)
        self.numbers[name] = number

    def _add_module(self, name: str, module: Module) -> None:
        form, held = form_of(module)
        self.modules.append((name, module))
        self.held.append(held)
        self.arrays += [lowest(value_of(leaf).value) for _, leaf in held]
        self.names += [f"{name}.{path}" for path, _ in held]
        self.form.append((name, form))

    def _add_optimizer(self, name: str, optim: OptimizerAdaptor) -> None:
        held = optim._states  # pyright: ignore[reportPrivateUsage] - nothing else tells
        rows: list[tuple[Any, list[Any]]] = []
        about: list[Any] = [name, optim, *_settings(optim)]
        for number, one in held.items():
            found = leaves_of_state(one.state)
            rows.append((number, found))
            about.append((number, type(one.state), one.rule))
            for i, leaf in enumerate(found):
                if isinstance(leaf, Tensor):
                    array = lowest(leaf.value)
                    self.arrays.append(array)
                    self.names.append(number_name(name, number, i))
                    about.append((array.shape, array.dtype))
                else:
                    self.numbers[number_name(name, number, i)] = leaf
                    about.append(type(leaf))
        self.optimizers.append((name, optim))
        self.states.append(rows)
        self.form.append(tuple(about))

    def backend(self) -> Backend:
        """The one device of all of it.

        Raises:
            Refused: there are several, or one without plans.
        """
        devices = [tensor.backend for _, tensor in self.tensors]
        devices += [value_of(v).backend for held in self.held for _, v in held]
        if not devices:
            raise refused("no tensor goes in", "what changes, as arguments")
        for device in devices:
            while device.inner is not device:
                if isinstance(device, Fusion):
                    what = "a fusing device waits with its operations already"
                    raise refused(what, "the device without Fusion")
                device = device.inner
        found = {plain_backend(device) for device in devices}
        if len(found) > 1:
            names = ", ".join(sorted(map(repr, found)))
            what = f"it works on one device, and there are {names}"
            raise refused(what, "to_device of one of them")
        return found.pop()


def number_name(optim: str, number: ParamId, place: int) -> str:
    """The name of a number that an optimizer remembers for a parameter."""
    return f"{optim}.{int(number)}.{place}"


def settle(optim: OptimizerAdaptor, model: Module) -> None:
    """Bring states that were loaded to the device of their parameters."""
    states = optim._states  # pyright: ignore[reportPrivateUsage] - nothing else tells
    loaded = [number for number, held in states.items() if held.rule is None]
    for number in loaded:
        held, device = states[number], plain_backend(model.devices()[0])
        states[number] = held._replace(state=state_to_device(held.state, device))


def value_of(held: Param | Tensor) -> Tensor:
    """The tensor of a parameter, or the tensor itself."""
    return held.val() if isinstance(held, Param) else held


def form_of(module: Module) -> tuple[Form, list[tuple[str, Any]]]:
    """All of a model but the elements of its arrays; and its arrays, each once.

    Raises:
        NotYet: a parameter is not drawn yet, which the first forward does.
        Refused: its weights are quantized.
    """
    form: Form = []
    held: list[tuple[str, Any]] = []
    first: dict[int, int] = {}
    for path, node in MODULES.nodes(module):
        if isinstance(node, (Param, Tensor)):
            is_param = isinstance(node, Param)
            if is_param and not node.is_initialized:
                raise NotYet
            value = value_of(node)
            if isinstance(value, QuantizedTensor):
                what = f"{'.'.join(path)} is quantized"
                raise refused(what, "the model as the subject: captured(model)")
            at = first.get(id(node))
            if at is None:
                at = first[id(node)] = len(held)
                held.append((".".join(path), node))
            flag = None
            if is_param:
                is_state = isinstance(node, RunningState)
                flag = node.is_frozen if is_state else bool(node.is_require_grad())
            array = value.value
            form.append(
                (
                    *(type(node), flag, value.kind, array.shape, array.dtype),
                    *(value.backend, at),
                )
            )
        elif isinstance(node, Module) or MODULES.kind(type(node)) is not None:
            form.append((type(node), path))
        elif type(node) in (float, *PLAIN):
            form.append((type(node), node))
        else:
            form.append((type(node), Same(node)))
    return form, held


def leaves_of_state(state: object) -> list[Any]:
    """The tensors and numbers of what an optimizer remembers for a parameter."""
    found: list[Any] = []
    _add_leaves(state, found)
    return found


def _add_leaves(state: object, found: list[Any]) -> None:
    if isinstance(state, Tensor) or _is_number(state):
        found.append(state)
        return
    for name in _field_names(type(state)):
        _add_leaves(getattr(state, name), found)


def state_with(state: Any, leaves: Iterator[Any]) -> Any:
    """The same state with other tensors and numbers."""
    if isinstance(state, Tensor) or _is_number(state):
        return next(leaves)
    names = _field_names(type(state))
    if not names:
        return state
    made = {name: state_with(getattr(state, name), leaves) for name in names}
    return type(state)(**made)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@functools.cache
def _field_names(cls: type) -> tuple[str, ...]:
    is_dataclass = dataclasses.is_dataclass(cls)
    return tuple(f.name for f in dataclasses.fields(cls)) if is_dataclass else ()


def _settings(optim: OptimizerAdaptor) -> list[Any]:
    """All that decides how an optimizer steps, but what it remembers."""
    found: list[Any] = [_facts(optim.optim), _facts(optim.grad_clipping)]
    for group in optim.groups:
        found += [group.members, _facts(group.rule), _facts(group.grad_clipping)]
    return found


def _facts(thing: object) -> tuple[Any, ...]:
    """The class of a thing, and the numbers and texts that it has."""
    held = getattr(thing, "__dict__", None)
    if held is None or isinstance(thing, type):
        return (type(thing),)
    return (type(thing), [(k, v if is_fact(v) else Same(v)) for k, v in held.items()])


class Same:
    """An object by its identity, with the facts that it holds now."""

    __slots__ = ("facts", "thing")

    def __init__(self, thing: object):
        self.thing, self.facts = thing, facts_of(thing)

    def __eq__(self, other: object) -> bool:
        is_same = isinstance(other, Same) and self.thing is other.thing
        return is_same and self.facts == other.facts  # type: ignore[union-attr] # just asked

    __hash__ = object.__hash__


def _static(name: str, leaf: object) -> Any:
    """What stands for a leaf that is no tensor: other values are another form.

    Raises:
        Refused: it may hold what changes.
    """
    if isinstance(leaf, PLAIN):
        return (type(leaf), leaf)
    if hasattr(leaf, "__array__") and not isinstance(leaf, Tensor):
        what = f"{name} is a NumPy array"
        raise refused(what, f"Tensor.from_numpy({name}, device)")
    if hides_tensor(leaf) or isinstance(leaf, Tensor):
        kind = type(leaf).__name__
        what = f"{name} is a {kind}, whose tensors nobody sees"
        raise refused(what, f"@dataclass above {kind}, or its tensors as arguments")
    return Same(leaf)
