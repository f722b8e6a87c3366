"""check_module: one call that checks what a layer promises.

A layer is more than its forward: optimizers, records, devices and the display rely on
how it behaves. Write a config, a module and a forward, then call this.
"""

import dataclasses
import inspect
import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from burnbook.backend.autodiff import Autodiff
from burnbook.backend.base import Backend
from burnbook.backend.numpy import Numpy
from burnbook.core.dtypes import Float
from burnbook.core.rng import Stream, use_stream
from burnbook.module import Module, Param, list_param_ids
from burnbook.module.summaries import check_inputs
from burnbook.tensor import Tensor

INPUTS = "shape, tensor or function"  # what may stand for an argument
STEP = 1e-6  # how far a numeric slope looks to both sides
Outputs = list[Tensor]


@dataclass(frozen=True)
class ModuleReport:
    """What `check_module` found: each promise, and what is wrong with it or None."""

    subject: str
    rows: tuple[tuple[str, str | None], ...]

    @property
    def passed(self) -> bool:
        """Whether every promise is kept."""
        return all(trouble is None for _, trouble in self.rows)

    @property
    def failed(self) -> dict[str, str]:
        """The promises that are broken, and how."""
        return {promise: trouble for promise, trouble in self.rows if trouble}

    def __str__(self) -> str:
        lines = [f"check_module {self.subject}"]
        for promise, trouble in self.rows:
            lines.append(f"  ✔ {promise}" if trouble is None else f"  ✘ {promise}")
            lines += [f"      {trouble}"] if trouble else []
        return "\n".join(lines)

    __repr__ = __str__


def check_module(
    subject: Any,
    *inputs: Any,
    device: Backend | None = None,
    forward: Callable[..., Any] | None = None,
    differs: bool = False,
    unreached: Sequence[str] = (),
) -> ModuleReport:
    """Check a layer: gradients, records, config, display, train and valid, devices.

    subject: a config, or a module. inputs: for each the shape of a Float input, or an
    array, or a function of a device that makes something else, which gets no gradient.
    forward: `forward(module, *inputs)` where the method has another name.
    differs: training and inference shall give different results, as for dropout.
    unreached: the names of parameters whose gradient is zero by design.

    Example:
        >>> from burnbook.nn.linear import LinearConfig
        >>> check_module(LinearConfig(3, 2), [4, 3])
        check_module Linear {d_input: 3, d_output: 2, bias: true, params: 8}
          ✔ config: JSON and pickle give it back
          ✔ display: the same for a copy, with the number of parameters
          ✔ forward: the same result twice, and the module is as before
          ✔ gradients: each is the slope, for every parameter and input
          ✔ freezing: no_grad leaves every parameter alone
          ✔ record: another module loads ids and values
          ✔ copies: clone, map and pickle keep ids and values
          ✔ valid: no gradients, and what training gives where it should
          ✔ devices: to_device and fork move all, and change nothing else

    Why: it runs in float64, where a slope found by trying (f(x + h) − f(x − h)) / 2h
    has enough digits to prove a gradient.
    """
    trial = Trial(subject, inputs, device or Autodiff(Numpy(float="f64")), forward)
    trial.differs, trial.unreached = differs, set(unreached)
    run = forward or getattr(trial.make(), "forward", None)
    if run is not None:
        check_inputs("check_module", run, len(inputs) + bool(forward), INPUTS)
    rows = [(name, _trouble(check, trial)) for name, check in PROMISES.items()]
    return ModuleReport(" ".join(str(trial.make()).split()), tuple(rows))


class Trial:
    """A layer under test: how to make it, what to give it, how to run it."""

    def __init__(
        self,
        subject: Any,
        inputs: tuple[Any, ...],
        device: Backend,
        forward: Callable[..., Any] | None,
    ):
        self.subject = subject
        self.inputs = inputs
        self.device = device
        self.forward = forward or _call
        self.differs = False
        self.unreached: set[str] = set()

    def make(self, key: int = 0) -> Any:
        """The module with its values drawn; another key draws other values."""
        with use_stream(Stream(key)):
            if isinstance(self.subject, Module):
                made = self.subject.valid().to_device(self.device.inner).train()
                return made.fork(self.device).map(_Shift(key))
            made = _init(self.subject, self.device)
            for _, param in made.named_params():
                param.val()
        return made

    def given(self, device: Backend, tracked: bool = False) -> list[Any]:
        """The inputs on a device, the same ones every time."""
        rng = np.random.default_rng(0)
        made = [_input(one, device, rng) for one in self.inputs]
        if not tracked:
            return made
        pairs = zip(made, map(callable, self.inputs), strict=True)
        return [x if own or not _is_float(x) else x.require_grad() for x, own in pairs]

    def run(self, module: Any, inputs: list[Any]) -> Outputs:
        """The Float results of forward, with the same random numbers every time."""
        with use_stream(Stream(1)):
            return list(_tensors(self.forward(module, *inputs)))

    def total(self, outputs: Outputs) -> Tensor:
        """One number made of all results, each element with a weight of its own."""
        rng, parts = np.random.default_rng(2), []
        for out in outputs:
            weights = rng.uniform(0.5, 1.5, out.dims()) * rng.choice(
                [-1, 1], out.dims()
            )
            parts.append((out * _float(weights, out.backend)).sum())
        return sum(parts[1:], parts[0])


def _call(module: Any, *inputs: Any) -> Any:
    return module.forward(*inputs)


def _init(config: Any, device: Backend) -> Any:
    """What a config makes; layers without parameters need no device."""
    takes_device = bool(inspect.signature(config.init).parameters)
    return config.init(device) if takes_device else config.init()


def _input(one: Any, device: Backend, rng: np.random.Generator) -> Any:
    if isinstance(one, (list, tuple)) and all(isinstance(n, int) for n in one):
        return _float(rng.standard_normal(one), device)
    if isinstance(one, np.ndarray):
        floats = one.dtype.kind == "f"
        return _float(one, device) if floats else Tensor.from_numpy(one, device)
    return one(device) if callable(one) else one


def _float(values: Any, device: Backend) -> Tensor:
    return Tensor.from_numpy(np.asarray(values, device.float_dtype), device)


def _is_float(x: Any) -> bool:
    return isinstance(x, Tensor) and x.kind is Float


def _tensors(value: Any) -> Iterator[Tensor]:
    """Every Float tensor in what a forward returned."""
    if isinstance(value, Tensor):
        if value.kind is Float:
            yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _tensors(getattr(value, field.name))


def _trouble(check: Callable[[Trial], str | None], trial: Trial) -> str | None:
    """What a check says; an error in it is trouble as well."""
    try:
        return check(trial)
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]


def _config(trial: Trial) -> str | None:
    config = trial.subject
    if isinstance(config, Module):
        return None
    if pickle.loads(pickle.dumps(config)) != config:
        return "pickle gives another config back"
    if hasattr(config, "to_json") and type(config).from_json(str(config)) != config:
        return "its JSON gives another config back"
    return None


def _display(trial: Trial) -> str | None:
    module = trial.make()
    text = str(module)
    if text != repr(module) or text != str(module.clone()):
        return "str, repr and the text of a clone differ"
    if " at 0x" in text or not text.startswith(type(module).__name__):
        return f"it prints as {text.splitlines()[0]}"
    found = {param.id: param for param in _params(module)}.values()
    count = sum(math.prod(param.shape) for param in found if param.kind is Float)
    if module.num_params() != count:
        return f"num_params() is {module.num_params()}, its parameters have {count}"
    if count and f"params: {count}" not in text:
        return f"it does not print `params: {count}`"
    return None


def _forward(trial: Trial) -> str | None:
    module = trial.make().valid()
    before = _values(module)
    device = trial.device.inner
    first = trial.run(module, trial.given(device))
    again = trial.run(module, trial.given(device))
    if not first:
        return "it gives no Float tensor"
    if not _equal(first, again):
        return "a second run gives another result"
    return None if _same(before, _values(module)) else "inference changed the module"


def _gradients(trial: Trial) -> str | None:
    module, inputs = trial.make(), trial.given(trial.device, tracked=True)
    learned = {n: p for n, p in module.named_params() if p.is_require_grad()}
    parts = {name: param.val() for name, param in learned.items()}
    parts |= {
        f"input {i}": x
        for i, x in enumerate(inputs)
        if _is_float(x) and x.is_require_grad()
    }
    if not parts:
        return None
    total = trial.total(trial.run(module, inputs))
    if not _depends(total):
        return "the result depends on no parameter and no input"
    grads = total.backward()
    for name, tensor in parts.items():
        grad = tensor.grad(grads)
        if grad is None or not np.any(np.asarray(grad)):
            if name not in trial.unreached:
                return f"no gradient reaches {name}"
        elif grad.dims() != tensor.dims():
            return f"the gradient of {name} has shape {list(grad.dims())}"
        elif not np.isfinite(np.asarray(grad)).all():
            return f"the gradient of {name} is not finite"
    slopes = (_slope(trial, name, t, t.grad(grads)) for name, t in parts.items())
    return next((trouble for trouble in slopes if trouble), None)


def _slope(trial: Trial, name: str, at: Tensor, grad: Tensor | None) -> str | None:
    """Compare a gradient with the slope along one random direction."""
    direction = np.random.default_rng(3).standard_normal(at.dims())
    high = _moved(trial, name, np.asarray(at) + STEP * direction)
    low = _moved(trial, name, np.asarray(at) - STEP * direction)
    slope = (high - low) / (2 * STEP)
    along = 0.0 if grad is None else float((np.asarray(grad) * direction).sum())
    if abs(slope - along) <= 1e-5 * abs(slope) + 1e-7 * (abs(high) + 1.0):
        return None
    return f"the gradient of {name} says {along:.6g}, the slope is {slope:.6g}"


def _moved(trial: Trial, name: str, values: Any) -> float:
    """The total with other values for one parameter or input."""
    module, inputs = trial.make(), trial.given(trial.device)
    value, param = _float(values, trial.device), dict(module.named_params()).get(name)
    if param is None:
        inputs[int(name.removeprefix("input "))] = value
    else:
        module = module.map(_Put(param.id, value))
    return float(np.asarray(trial.total(trial.run(module, inputs)))[0])


class _Put:
    """A mapper that puts a value in the place of one parameter."""

    def __init__(self, number: int, value: Tensor):
        self.number, self.value = number, value

    def map_float(self, number: int, tensor: Tensor) -> Tensor:
        return self.value if number == self.number else tensor


class _Shift:
    """A mapper that adds a number to every parameter."""

    def __init__(self, by: float):
        self.by = by

    def map_float(self, _: int, tensor: Tensor) -> Tensor:
        moved = _float(np.asarray(tensor) + self.by, tensor.backend)
        return moved.set_require_grad(tensor.is_require_grad())


def _frozen(trial: Trial) -> str | None:
    module = trial.make()
    frozen = module.no_grad()
    if any(_flags(frozen)):
        return "a parameter still requires a gradient"
    inputs = trial.given(trial.device, tracked=True)
    total = trial.total(trial.run(frozen, inputs))
    grads = total.backward() if _depends(total) else {}
    if grads and any(p.val().grad(grads) is not None for p in _params(frozen)):
        return "a parameter got a gradient"
    learned = _flags(trial.make())
    return None if _flags(module) == learned else "what it was made from is frozen too"


def _record(trial: Trial) -> str | None:
    module, other = trial.make(), trial.make(key=5)
    made = other.load_record(module.into_record())
    if list_param_ids(made) != list_param_ids(module):
        return "the ids are not those of the record"
    if not _same(_values(made), _values(module)):
        return "the values are not those of the record"
    if _flags(made) != _flags(other):
        return "what is learned changed"
    device = trial.device
    old, new = (trial.run(m, trial.given(device)) for m in (module, made))
    return None if _equal(old, new) else "the loaded module gives another result"


def _copies(trial: Trial) -> str | None:
    nothing = _Put(-1, Tensor.zeros([1], trial.device))
    ways: dict[str, Callable[[Any], Any]] = {
        "clone": lambda module: module.clone(),
        "map": lambda module: module.map(nothing),
        "pickle": lambda module: pickle.loads(pickle.dumps(module)),
        "valid and train": lambda module: module.valid().train(),
    }
    for name, copied in ways.items():
        module = trial.make()
        copy = copied(module)
        if list_param_ids(copy) != list_param_ids(module):
            return f"{name}: other ids"
        if not _same(_values(copy), _values(module)):
            return f"{name}: other values"
        if _flags(copy) != _flags(module):
            return f"{name}: something else is learned"
        old, new = (trial.run(m, trial.given(trial.device)) for m in (module, copy))
        if not _equal(old, new):
            return f"{name}: another result"
    return None


def _valid(trial: Trial) -> str | None:
    module = trial.make()
    trained = trial.run(module, trial.given(trial.device))
    infer = module.valid()
    if any(_flags(infer)):
        return "a parameter still requires a gradient"
    plain = trial.device.inner
    if any(device is not plain for device in infer.devices()):
        return f"it is on {infer.devices()[0]!r}"
    found = trial.run(infer, trial.given(plain))
    if _equal(trained, found, 1e-9) == trial.differs:
        same = "the same" if trial.differs else "different"
        return f"training and inference give {same} results"
    return None


def _devices(trial: Trial) -> str | None:
    module, other = trial.make(), Autodiff(Numpy(float="f64", compiled=False))
    here = module.devices()
    expected = trial.run(module, trial.given(trial.device))
    for name in ("to_device", "fork"):
        moved = getattr(module, name)(other)
        if any(device is not other for device in moved.devices()):
            return f"{name}: some of it stayed behind"
        if _flags(moved) != _flags(module):
            return f"{name}: something else is learned"
        if not _equal(trial.run(moved, trial.given(other)), expected, 1e-9):
            return f"{name}: another result there"
    return None if module.devices() == here else "the module itself was moved"


PROMISES: dict[str, Callable[[Trial], str | None]] = {
    "config: JSON and pickle give it back": _config,
    "display: the same for a copy, with the number of parameters": _display,
    "forward: the same result twice, and the module is as before": _forward,
    "gradients: each is the slope, for every parameter and input": _gradients,
    "freezing: no_grad leaves every parameter alone": _frozen,
    "record: another module loads ids and values": _record,
    "copies: clone, map and pickle keep ids and values": _copies,
    "valid: no gradients, and what training gives where it should": _valid,
    "devices: to_device and fork move all, and change nothing else": _devices,
}


def _params(module: Any) -> list[Param]:
    return [param for _, param in module.named_params()]


def _depends(total: Tensor) -> bool:
    """Whether there is a graph behind a tensor."""
    return hasattr(total.value, "node")


def _flags(module: Any) -> list[bool]:
    """Which parameters are learned."""
    return [param.is_require_grad() for param in _params(module)]


def _values(module: Any) -> list[Any]:
    return [np.array(param.val()) for param in _params(module)]


def _same(a: list[Any], b: list[Any]) -> bool:
    pairs = zip(a, b, strict=True)
    return len(a) == len(b) and all(
        np.array_equal(x, y, equal_nan=True) for x, y in pairs
    )


def _equal(a: Outputs, b: Outputs, tolerance: float = 0.0) -> bool:
    """Whether two runs gave the same tensors."""
    if len(a) != len(b) or any(x.dims() != y.dims() for x, y in zip(a, b, strict=True)):
        return False
    pairs = [(np.asarray(x), np.asarray(y)) for x, y in zip(a, b, strict=True)]
    return all(
        np.allclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True)
        for x, y in pairs
    )
