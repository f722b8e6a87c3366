"""A whole training step as one program: forward, backward, and the optimizer's update.

What a step changes goes in and comes out: parameters, running statistics, and what the
optimizer remembers. The learning rate and keys of random numbers come with each run.
"""

import copy
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from burnbook.backend.base import Backend, plain_backend
from burnbook.backend.compiled.runtime.buffers import buffers
from burnbook.core.dtypes import dtype_name, kind_of, unpickled
from burnbook.core.errors import (
    ArgumentError,
    BackendError,
    ConfigError,
    GraphError,
    RecordError,
)
from burnbook.core.formulas import Formula, Unknown, known, unknown
from burnbook.module import Module, Param, RunningState
from burnbook.module.tree import params_of, rebuild
from burnbook.optim import GradientsParams
from burnbook.optim.adaptor import (
    Held,
    OptimizerAdaptor,
    check_rate as check_number,
)
from burnbook.program.call import taken
from burnbook.program.capture import (
    Arguments,
    Batch,
    BatchPlan,
    Runs,
    modules_of,
    observed,
)
from burnbook.program.module_inputs import opened, refuse_moves, statistics_of
from burnbook.program.outside import Generators, Outside
from burnbook.program.program import Program
from burnbook.program.recording import Recording, identity
from burnbook.program.sizes import size_text
from burnbook.program.trees import (
    ARGUMENTS,
    arguments as leaves,
    held_arrays,
    lowest,
    named_arrays,
)
from burnbook.program.values import Value
from burnbook.tensor import Tensor

LR = "lr"


@dataclass(frozen=True)
class TrainingState:
    """What a step takes over from the last one; it never changes.

    values: an array by its name, "conv1.weight" or "conv1.weight.momentum.moment_1".
    numbers: the Python numbers among it, as the count of steps.
    """

    values: Mapping[str, Any]
    numbers: Mapping[str, float]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        own = {name: unpickled(array) for name, array in self.values.items()}
        object.__setattr__(self, "values", own)


@dataclass(frozen=True, eq=False, repr=False)
class Training:
    """A training step that was captured: what `capture_training` gives.

    program: one step. first: the step that begins, where the optimizer remembers
    nothing yet; None if no step is different. start: the state before the first step.

    Its inputs are those of the batch and then the state; `program.updates` says which
    output takes the place of which input, and `program.numbers` which Python numbers a
    run takes.
    """

    program: Program
    first: Program | None
    start: TrainingState
    template: "Template"

    def step(
        self,
        state: TrainingState,
        lr: float,
        *batch: Any,
        keys: Iterable[tuple[int, int]] | None = None,
    ) -> tuple[TrainingState, Any]:
        """One step: the new state, and what the captured function gave.

        It is bit for bit what the eager loop does; a `CompiledTraining` agrees with it
        up to rounding. lr: the learning rate. batch: as the examples; what is no tensor
        must be as it was there. keys: of random numbers, else the next ones of the
        device.

        Raises:
            ArgumentError: a tensor is of another kind, or empty.
            BackendError: a tensor has other elements.
            ConfigError: `lr` is not a finite number of at least 0.
            RecordError: the state is of another model or optimizer.
        """
        self.check_state(state)
        check_rate(lr)
        program = self.program
        if self.first is not None and not self.knows(state):
            program = self.first
        arrays = batch_arrays(program, batch)
        names = [value.name for value in program.inputs[len(arrays) :]]
        arrays += [state.values[name] for name in names]
        numbers = {**state.numbers, LR: lr}
        out = program.run(*arrays, keys=keys, numbers=numbers)
        values, count = dict(state.values), len(program.results)
        for (old, _), array in zip(program.updates, out[count:], strict=True):
            values[old.name] = array
        made = self.template.tensors(program.results, out[:count])
        assert program.gives is not None  # capture_training has made it
        n = program.batch_size(*[array.shape for array in arrays])
        result, more, begun = program.gives(made, n)
        values |= {name: lowest(tensor.value) for name, tensor in more.items()}
        following = {
            name: formula(numbers)
            for name, formula in program.numbers.items()
            if formula is not None
        }
        return TrainingState(values, {**state.numbers, **begun, **following}), result

    def knows(self, state: TrainingState) -> bool:
        """Whether a state has all that the optimizer remembers."""
        return all(old.name in state.values for old, _ in self.program.updates) and all(
            name in state.numbers for name in self.program.numbers if name != LR
        )

    @functools.cached_property
    def _forms(self) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]] | None]:
        """Shape and element type of all that a state may have; None for a number."""
        known: dict[str, Any] = dict.fromkeys(self.program.numbers)
        known.pop(LR, None)
        known |= dict.fromkeys(self.start.numbers)
        states = [v for v in self.program.inputs if v.kind == "state"]
        return known | {v.name: (v.shape_at(None), v.dtype) for v in states}

    def check_state(self, state: TrainingState) -> None:
        """Raise for a state that is not of this model and optimizer.

        Raises:
            RecordError: something is missing or too much, or has another shape or type.
        """
        if not isinstance(state, TrainingState):  # pyright: ignore[reportUnnecessaryIsInstance] - a call may say anything
            what = f"{type(state).__name__} is no TrainingState"
            cure = "training.start, or the state that the last step gave"
            raise ArgumentError("Training", what, cure=cure)
        forms = self._forms
        begin = self.start.values.keys() | self.start.numbers.keys()
        given = state.values.keys() | state.numbers.keys()
        wanted = begin if given <= begin else forms.keys()
        if given == wanted:
            arrays = [(name, v, forms[name]) for name, v in state.values.items()]
            if all(form == (v.shape, v.dtype) for _, v, form in arrays):
                return
            others = [
                f"{name} {size_text(v.shape)} {dtype_name(v.dtype)}"
                for name, v, form in arrays
                if form != (v.shape, v.dtype)
            ]
            facts = [("other shape or type", _listed(others))]
        else:
            named = ("missing", wanted - given), ("unexpected", given - wanted)
            facts = [(what, _listed(sorted(names))) for what, names in named if names]
        what = "the state is of another model or optimizer"
        cure = "a state that this training gave; or capture_training with its model"
        raise RecordError("Training", what, facts, cure)

    def model(self, state: TrainingState) -> Any:
        """The model with the parameters and running statistics of a state."""
        return self.template.model_of(state.values.__getitem__, lambda array: array)

    def optimizer(self, state: TrainingState) -> OptimizerAdaptor:
        """The optimizer with what it remembers in a state."""
        return self.template.optimizer_of(state.values, state.numbers)

    def __str__(self) -> str:
        return str(self.program)

    def __repr__(self) -> str:
        program = self.program
        outside = getattr(program.takes, "outside", None)
        held = ", ".join(outside.weights) if outside is not None else ""
        held = f", {held} as captured" if held else ""
        return f"Training({program.name}, {len(program.steps)} steps{held})"


def batch_arrays(program: Program, batch: tuple[Any, ...]) -> list[Any]:
    """The arrays of a batch, which are of the kinds that a step was captured with."""
    given = taken(program.name, program.takes, batch, {}, other="")
    arrays: list[Any] = []
    for value, tensor in zip(program.inputs, given, strict=False):
        array, facts = lowest(tensor.value), [("captured with", str(value))]
        if tensor.kind is not kind_of(value.dtype):
            what = f"{value.name} is {tensor.kind.__name__}"
            raise ArgumentError(program.name, what, facts)
        fits = value.dtype.kind != "f" and np.can_cast(array.dtype, value.dtype)
        if array.dtype != value.dtype and not fits:
            what = f"{value.name} has elements of {dtype_name(array.dtype)}"
            cure = f"tensors of {program.backend!r}"
            raise BackendError(program.name, what, facts, cure)
        if not array.size and 0 not in value.shape:
            what, cure = f"{value.name} is empty", "a batch of one example or more"
            raise ArgumentError(program.name, what, facts, cure)
        arrays.append(array)
    return arrays


def capture_training(
    model: Module,
    loss: Callable[..., Any],
    optimizer: OptimizerAdaptor,
    *examples: Any,
    batch: Batch = 0,
) -> Training:
    """Run a training step once, and keep forward, backward and update as a program.

    model: on an Autodiff device. loss: a function of the model and a batch, which gives
    the loss, a dataclass with a `loss`, or a TrainOutput: `Model.train_step` itself.
    examples: a batch. batch: as in `capture`, also in what it refuses. Numbers that the
    loss function takes from elsewhere stay as they were, which each step compares.

    What changes must be among the examples: tensors, and models that this step does not
    train, as a discriminator, a teacher or a target network. Their weights come with
    each step, `training.step(state, lr, discriminator, noise)`; they get no update.

    The model and the optimizer stay as they are: `training.model(state)` and
    `training.optimizer(state)` are those that a state has trained. Gradients are
    clipped as the optimizer does it; the learning rate is given to each step.

    Example:
        >>> from burnbook.backend import Autodiff, Numpy
        >>> from burnbook.nn import LinearConfig
        >>> from burnbook.optim import SgdConfig
        >>> device = Autodiff(Numpy())
        >>> model, x = LinearConfig(2, 1).init(device), Tensor.ones([4, 2], device)
        >>> def loss(model, x):
        ...     return model.forward(x).square().mean()
        >>> training = capture_training(model, loss, SgdConfig().init(), x)
        >>> [step.op.name for step in training.program.steps]  # doctest: +ELLIPSIS
        ['linear', 'square', 'mean', 'mean.backward', ...'sgd_step', 'sgd_step']
        >>> state = training.start
        >>> losses = []
        >>> for _ in range(30):
        ...     state, out = training.step(state, 0.1, x)
        ...     losses.append(out.into_scalar())
        >>> losses[-1] < losses[0] * 0.01
        True

    Why two programs: many optimizers treat the first gradient in a way of its own, so
    there is a program for that step, and one for all others.
    """
    if not isinstance(model, Module):
        what = f"{type(model).__name__} is no model, which comes first"
        cure = "capture_training(model, loss, optimizer, *batch)"
        raise ArgumentError("capture_training", what, cure=cure)
    _check_loss(loss)
    if not isinstance(optimizer, OptimizerAdaptor):
        what = f"{type(optimizer).__name__} is no optimizer with a rule for a parameter"
        raise ArgumentError("capture_training", what, cure="AdamConfig().init()")
    devices = model.devices()
    if not devices or not all(device.ad_enabled for device in devices):
        what = "the model is not on an Autodiff device, so it has no gradients"
        raise ArgumentError("capture_training", what, cure="init(Autodiff(Numpy()))")
    backends = {plain_backend(device) for device in devices}
    if len(backends) > 1:
        what = "the model is on several devices"
        raise ArgumentError("capture_training", what, cure="model.to_device(device)")
    backend = backends.pop()
    template = Template(model, optimizer, backend)
    state = start = template.start()
    function = functools.partial(loss, model)
    found: list[Program] = []
    for _ in range(2):
        arguments = Arguments(function, examples, opened)
        step = CapturedStep(template, state, loss, arguments)
        program = step.captured(arguments.plan(batch))
        found.append(program)
        if not step.begun:
            break
        template = step.template
        keys = [(0, i) for i in range(len(program.keys))]
        trial = Training(program, None, start, template)
        buffers.trim()
        state, _ = trial.step(state, 0.0, *examples, keys=keys)
        buffers.trim()
    else:
        what = "what the optimizer remembers has another form after each step"
        raise GraphError("capture_training", what)
    first = found[0] if len(found) > 1 else None
    return Training(found[-1], first, start, template)


def _check_loss(loss: Any) -> None:
    """Raise for a loss layer, which knows nothing of a model."""
    if callable(loss) and not isinstance(loss, (Module, type)):
        return
    name = loss.__name__ if isinstance(loss, type) else type(loss).__name__
    what = f"{name} stands where a function of the model and a batch is wanted"
    cure = "capture_training(model, loss, optimizer, *batch) with a function loss"
    if isinstance(loss, Module):
        cure = "lambda model, x, y: loss.forward(model.forward(x), y) in its place"
    raise ArgumentError("capture_training", what, cure=cure)


class Template:
    """A model and an optimizer in which arrays are put in by name."""

    def __init__(
        self,
        model: Module,
        optimizer: OptimizerAdaptor,
        backend: Backend,
        states: Mapping[Any, Held] | None = None,
    ):
        self.model, self.optimizer, self.backend = model, optimizer, backend
        self.states = dict(optimizer._states if states is None else states)  # pyright: ignore[reportPrivateUsage] - nothing else tells
        self.paths: dict[int, str] = {}
        for path, param in model.named_params():
            param.val()
            self.paths.setdefault(int(param.id), path)
        self.device = model.devices()[0]

    def start(self) -> TrainingState:
        """The state that the model and the optimizer are in."""
        values: dict[str, Any] = {}
        numbers: dict[str, float] = {}
        for param in params_of(self.model):
            if self.changes(param):
                values[self.paths[int(param.id)]] = lowest(param.val().value)
        for path, leaf in self.remembered(self.states):
            if isinstance(leaf, Tensor):
                array = np.array(leaf.backend.to_numpy(leaf.value))
                values[path] = self.backend.from_numpy(array)
            else:
                numbers[path] = leaf
        return TrainingState(values, numbers)

    def changes(self, param: Param) -> bool:
        """Whether training changes a parameter."""
        if isinstance(param, RunningState):
            return not param.is_frozen
        return bool(param.is_require_grad())

    def remembered(self, states: Mapping[Any, Held]) -> list[tuple[str, Any]]:
        """The tensors and numbers of optimizer states, with their names."""
        found: list[tuple[str, Any]] = []
        for number, held in states.items():
            path = self.paths.get(int(number))
            if path is not None:
                _ = _changed(held.state, path, lambda n, leaf: found.append((n, leaf)))
        return found

    def model_of(
        self, array_at: Callable[[str], Any], wrap: Callable[[Any], Any]
    ) -> Module:
        """The model with other arrays."""

        def move(param: Param) -> Param:
            if not self.changes(param):
                return param
            value, made = param.val(), wrap(array_at(self.paths[int(param.id)]))
            tensor = Tensor(made, value.kind, value.backend, value.rank)
            if isinstance(param, RunningState):
                return param.derive(lambda _, __: tensor, param.device, False)
            return type(param)(param.id, tensor.require_grad(), require_grad=True)

        return rebuild(self.model, move, lambda tensor: tensor)

    def optimizer_of(
        self, values: Mapping[str, Any], numbers: Mapping[str, float]
    ) -> OptimizerAdaptor:
        """The optimizer with what it remembers, as far as there is something."""

        def put(name: str, leaf: Any) -> Any:
            if not isinstance(leaf, Tensor):
                return numbers[name]
            return Tensor(values[name], leaf.kind, self.backend, leaf.rank)

        states: dict[Any, Held] = {}
        for number, held in self.states.items():
            path = self.paths.get(int(number))
            names = [n for n, _ in self.remembered({number: held})]
            if path is not None and all(n in values or n in numbers for n in names):
                state = _changed(held.state, path, put)
                states[number] = held._replace(state=state, own=False)
        made = copy.copy(self.optimizer)
        made.met, made._states = set(self.optimizer.met), states  # pyright: ignore[reportPrivateUsage] - nothing else sets it
        return made

    def tensors(
        self, values: Sequence[Value], arrays: Sequence[Any]
    ) -> tuple[Any, ...]:
        """Results as tensors below Autodiff."""
        return tuple(
            Tensor(array, kind_of(value.dtype), self.backend, len(array.shape))
            for value, array in zip(values, arrays, strict=True)
        )


class CapturedStep:
    """One training step that is written down, with several batch sizes."""

    def __init__(
        self,
        template: Template,
        state: TrainingState,
        loss: Callable[..., Any],
        arguments: Arguments,
    ):
        self.template, self.state = template, state
        self.loss, self.arguments, self.call = loss, arguments, arguments.call
        self.begun: list[str] = []  # what the optimizer remembers from this step on
        self.numbers: dict[str, Formula | None] = {LR: None}
        model = template.model
        self.others = dict(modules_of(loss))  # whose weights stay as they are
        self.named = {
            **named_arrays([(n, m) for n, m in self.others.items() if m is not model]),
            **{
                identity(array): (path, kind, array)
                for path, kind, array in held_arrays(model)
                if path not in state.values
            },
        }
        used = [model, *self.others.values()]
        self.generators = Generators(loss, used, arguments.examples)

    def captured(self, plan: BatchPlan) -> Program:
        """The step as a program."""
        runs, program = plan.repeated(self._captured)
        models = [self.template.model, *self.others.values()]
        outside = Outside(self.loss, models, runs.identities(), takes_modules=True)
        self.call.outside = outside or None
        return program

    def _captured(self, plan: BatchPlan) -> tuple[Runs, Program]:
        """The step as a program, of runs with these batch sizes."""
        runs = Runs(plan, self, self.named)  # type: ignore[arg-type] # has both methods
        backend, states = self.template.backend, self.template.states
        for turn, size in enumerate(plan.sizes):
            numbers = {
                name: unknown(number + turn, Formula(name))
                for name, number in self.state.numbers.items()
            }
            rate = unknown(0.01 * (turn + 2), Formula(LR))
            run = functools.partial(self._recorded, runs, plan, size, numbers, rate)
            start = functools.partial(Recording, self.named, keys=True)
            recording, found = observed(self.generators, start, run)
            if found is None:
                continue
            given, (result, model, optim) = found
            updates, more, begun = self._changes(given, model, optim)
            states = optim._states  # pyright: ignore[reportPrivateUsage] - nothing else tells
            plain = {name: known(v) for name, v in {**numbers, LR: rate}.items()}
            runs.add(recording, (result, more, begun), updates, plain)
        name = getattr(self.loss, "__qualname__", type(self.loss).__name__)
        name = name.rpartition("<locals>.")[2]
        program = runs.program(name, backend, self.numbers)
        self.template = Template(
            self.template.model, self.template.optimizer, backend, _emptied(states)
        )
        return runs, program

    def _recorded(
        self,
        runs: Runs,
        plan: BatchPlan,
        size: int,
        numbers: Mapping[str, Any],
        rate: Any,
        recording: Recording,
    ) -> Any:
        """One run, with the values of the state that it was given."""
        batch = self.arguments.recorded(recording, plan, size)
        given = {
            name: recording.input(array, len(self.arguments.tensors) + i)
            for i, (name, array) in enumerate(self.state.values.items())
        }
        run = functools.partial(self._step, given, numbers, rate, batch)
        found = runs.one(recording, self.template.backend, size, run)
        return None if found is None else (given, found)

    def _step(
        self,
        given: Mapping[str, Any],
        numbers: Mapping[str, Any],
        rate: Any,
        batch: list[Any],
    ) -> tuple[Any, Module, OptimizerAdaptor]:
        """What a loop does with a batch."""
        model = self.template.model_of(given.__getitem__, lambda value: value)
        optim = self.template.optimizer_of(given, numbers)
        models = [leaf for _, leaf in leaves(batch) if isinstance(leaf, Module)]
        before = [(one, statistics_of(one)) for one in models]
        result = self.loss(model, *batch)
        refuse_moves(before)
        if hasattr(result, "grads") and hasattr(result, "item"):
            grads, result = result.grads, result.item
        else:
            loss = getattr(result, "loss", result)
            if not isinstance(loss, Tensor):
                what = f"the loss function gave {type(loss).__name__}, and no loss"
                cure = "return the loss, a dataclass with a loss, or a TrainOutput"
                raise ArgumentError("capture_training", what, cure=cure)
            grads = GradientsParams.from_grads(loss.backward(), model)
        return result, optim.step(rate, model, grads), optim

    def _changes(
        self, given: Mapping[str, Any], model: Module, optim: OptimizerAdaptor
    ) -> tuple[list[tuple[Any, Any]], dict[str, Tensor], dict[str, float]]:
        """What takes the place of what; and what the optimizer remembers anew."""
        template, updates = self.template, list[tuple[Any, Any]]()
        more: dict[str, Tensor] = {}
        begun: dict[str, float] = {}
        for param in params_of(model):
            path = template.paths[int(param.id)]
            if path in given:
                updates.append((given[path], lowest(param.val().value)))
        for name, leaf in template.remembered(optim._states):  # pyright: ignore[reportPrivateUsage] - nothing else tells
            if not isinstance(leaf, Tensor):
                self.numbers[name] = None
                if isinstance(leaf, Unknown):
                    self.numbers[name] = leaf.formula
                else:
                    begun[name] = leaf
                    del self.numbers[name]
            elif name in given:
                updates.append((given[name], lowest(leaf.value)))
            else:
                more[name] = leaf
        self.begun = [*more, *begun]
        return updates, more, begun

    def values(self, plan: BatchPlan) -> list[Value]:
        """The inputs of the program: the batch, and then the state."""
        return [
            *self.arguments.values(plan),
            *[
                Value(name, "state", array.dtype, tuple(array.shape))
                for name, array in self.state.values.items()
            ],
        ]

    def arrays_of(self, plan: BatchPlan, size: int) -> list[Any]:
        """The arrays of the examples, with so many rows, and of the state."""
        examples = self.arguments.arrays_of(plan, size)
        return [*examples, *self.state.values.values()]


def check_rate(lr: Any) -> None:
    """Raise for what is no learning rate, as the step of an optimizer does."""
    given: Any = lr
    is_array = isinstance(lr, Tensor) or getattr(lr, "ndim", 0) > 0
    if is_array or ARGUMENTS.kind(type(lr)) is not None:
        what = f"{type(lr).__name__} is not a learning rate, which comes first"
        raise ConfigError("step", what, cure="step(1e-3, …), and then the batch")
    check_number(given)


def _listed(names: Sequence[str]) -> str:
    """The first of some names."""
    return ", ".join(names[:5]) + (
        f", and {n} more" if (n := len(names) - 5) > 0 else ""
    )


def _emptied(states: Mapping[Any, Held]) -> dict[Any, Held]:
    """States of an optimizer that say what it remembers, without the elements."""

    def empty(_: str, leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return known(leaf)
        backend, dtype = plain_backend(leaf.backend), np.dtype(leaf.value.dtype)
        none = backend.from_numpy(np.empty((0,) * leaf.rank, dtype))
        return Tensor(none, leaf.kind, backend, leaf.rank)

    return {
        number: held._replace(state=_changed(held.state, "", empty))
        for number, held in states.items()
    }


def _changed(value: Any, path: str, change: Callable[[str, Any], Any]) -> Any:
    """The state of an optimizer with every tensor and number changed by name."""
    if is_dataclass(value) and not isinstance(value, type):
        held = {
            f.name: _changed(getattr(value, f.name), f"{path}.{f.name}", change)
            for f in fields(value)
        }
        return replace(value, **held)
    if isinstance(value, Tensor) or (
        isinstance(value, (int, float)) and not isinstance(value, bool)
    ):
        return change(path, value)
    return value
