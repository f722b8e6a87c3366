"""A captured training step as a plan, with the state in its place from step to step."""

import signal
import sys
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any

from burnbook.backend.base import Backend
from burnbook.backend.compiled.runtime.buffers import buffers
from burnbook.backend.numpy import Numpy
from burnbook.core.errors import ArgumentError, BackendError
from burnbook.optim.adaptor import OptimizerAdaptor
from burnbook.program.compiler.compiled_program import listing
from burnbook.program.compiler.fusion import RULES
from burnbook.program.compiler.graph_plan import GraphPlan, plan_of
from burnbook.program.compiler.passes import Lowered, lower_steps
from burnbook.program.compiler.plan import Part, Plan
from burnbook.program.compiler.profiling import ProgramProfile, profiled
from burnbook.program.program import Program
from burnbook.program.training import (
    LR,
    Training,
    TrainingState,
    batch_arrays,
    check_rate,
)
from burnbook.program.values import Value

MOST_PLANS = 4  # of batch sizes
SIGINT = int(signal.SIGINT)
# `signal.signal` looks up names for numbers and functions, which takes longer than this
_functions: Any = sys.modules.get("_signal", signal)
_set_handler, _handler_of = _functions.signal, _functions.getsignal


@contextmanager
def after_interrupts() -> Generator[None]:
    """Let Ctrl-C wait until what runs is done."""
    before = _handler_of(SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not (is_main and callable(before)):
        yield
        return
    came: list[Any] = []
    _set_handler(SIGINT, lambda *what: came.append(what))
    try:
        yield
    finally:
        _set_handler(SIGINT, before)
        if came:
            before(*came[-1])


class CompiledTraining:
    """A training step that was captured, compiled: `step` changes the state it holds.

    Parameters, running statistics and what the optimizer remembers stand where the plan
    reads them, and are written over; `state` gives a copy, as `Training.step` takes it.
    A step agrees with the one of `Training.step` up to rounding. Steps of several
    threads come one after the other. Ctrl-C waits for the step that runs, so that no
    state is half of one step and half of the next.

    training: what `capture_training` gave. state: where to begin, else at its start.

    `compiled.model` and `compiled.optimizer` are what has been trained, with copies of
    the values: they are saved as always. The model that was captured stays as it was,
    as all modules do. To resume, load both and capture them again.

    Example:
        >>> from burnbook.backend import Autodiff
        >>> from burnbook.nn import LinearConfig
        >>> from burnbook.optim import AdamConfig
        >>> from burnbook.program import capture_training
        >>> from burnbook.tensor import Tensor
        >>> device = Autodiff(Numpy())
        >>> model, x = LinearConfig(2, 1).init(device), Tensor.ones([4, 2], device)
        >>> def loss(model, x):
        ...     return (model.forward(x) - 3.0).square().mean()
        >>> training = capture_training(model, loss, AdamConfig().init(), x)
        >>> compiled = CompiledTraining(training)
        >>> losses = [compiled.step(0.1, x).into_scalar() for _ in range(60)]
        >>> losses[-1] < losses[0] * 0.01
        True

        Saved and resumed:

        >>> import tempfile
        >>> from burnbook.record import BinFileRecorder
        >>> recorder, folder = BinFileRecorder(), tempfile.mkdtemp()
        >>> model_file = compiled.model.save_file(f"{folder}/model", recorder)
        >>> optim_file = recorder.record(compiled.optimizer, f"{folder}/optim")
        >>> model = LinearConfig(2, 1).init(device).load_file(model_file, recorder)
        >>> optim = AdamConfig().init().load_record(recorder.load(optim_file))
        >>> resumed = CompiledTraining(capture_training(model, loss, optim, x))
        >>> again, on = resumed.step(0.1, x), compiled.step(0.1, x)
        >>> abs(again.into_scalar() - on.into_scalar()) < 1e-6
        True
    """

    def __init__(self, training: Training, state: TrainingState | None = None):
        if not isinstance(training, Training):
            what = f"{type(training).__name__} is no captured training"
            cure = "CompiledTraining(capture_training(model, loss, optimizer, *batch))"
            raise ArgumentError("CompiledTraining", what, cure=cure)
        self.training = training
        self.program: Program = training.program
        backend = self.program.backend
        if not (isinstance(backend, Numpy) or backend.has_graphs):
            what = f"{backend!r} has no plans"
            raise BackendError("CompiledTraining", what, cure="training.step")
        self._state = training.start if state is None else state
        training.check_state(self._state)
        self._held: dict[Value, Any] = {}
        self._numbers: dict[str, float] = {}
        self._lowered: Lowered | None = None
        self._plans: dict[Any, Plan | GraphPlan] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        """The training and a copy of the state; plans are made anew."""
        return CompiledTraining, (self.training, self.state)

    def step(
        self,
        lr: float,
        *batch: object,
        keys: Iterable[tuple[int, int]] | None = None,
    ) -> Any:
        """One step with a learning rate: gives what the captured function gave.

        lr: the learning rate, which comes first. batch: as the examples; what is no
        tensor must be as it was there. keys: of random numbers, else the next of the
        device.

        Raises:
            ArgumentError: a tensor is of another kind, or empty.
            BackendError: a tensor has other elements.
            ConfigError: `lr` is not a finite number of at least 0.
        """
        check_rate(lr)
        with self._lock, after_interrupts():
            return self._step(lr, batch, keys)

    def _step(
        self,
        lr: float,
        batch: tuple[Any, ...],
        keys: Iterable[tuple[int, int]] | None,
    ) -> Any:
        """One step, from a state that no other step changes."""
        if not self._held:
            if not self.training.knows(self._state):
                made = self.training.step(self._state, lr, *batch, keys=keys)
                self._state, result = made
                return result
            self._hold(self._state)
        program = self.program
        arrays = batch_arrays(program, batch)
        numbers = {**self._numbers, LR: lr}
        draw = program.backend.next_key
        drawn = [draw() for _ in program.keys] if keys is None else list(keys)
        out = self._plan_of(arrays).run(arrays, drawn, numbers)
        following = {
            name: formula(numbers)
            for name, formula in program.numbers.items()
            if formula is not None
        }
        self._numbers = {**self._numbers, **following}
        assert program.gives is not None  # capture_training has made it
        made = self.training.template.tensors(program.results, out)
        n = None
        if getattr(program.gives, "follows", False):
            held = self._held.values()
            n = program.batch_size(*[array.shape for array in (*arrays, *held)])
        result, _, _ = program.gives(made, n)
        return result

    @property
    def state(self) -> TrainingState:
        """The state after the last step, which later steps leave alone."""
        with self._lock:
            if not self._held:
                return self._state
            held = {value.name: array.copy() for value, array in self._held.items()}
            return TrainingState({**self._state.values, **held}, dict(self._numbers))

    @property
    def model(self) -> Any:
        """The model after the last step, which later steps leave alone."""
        return self.training.model(self.state)

    @property
    def optimizer(self) -> OptimizerAdaptor:
        """The optimizer after the last step, with what it remembers."""
        return self.training.optimizer(self.state)

    def explain(self, *batch: object) -> str:
        """What runs for a batch of this size: fused steps, by what, and memory."""
        other, arrays = self._trial(batch)
        return listing(self.program.name, other._plan_of(arrays))

    def profile(self, lr: float, *batch: object, rounds: int = 5) -> ProgramProfile:
        """How long each call of a step takes, and the steps of the program one by one.

        It works on a copy of the state, which stays as it is.
        """
        other, arrays = self._trial(batch)
        program, plan = self.program, other._plan_of(arrays)
        if isinstance(plan, GraphPlan):
            what = "a graph is launched as a whole, and its calls cannot be timed"
            raise BackendError("profile", what, [("device", repr(plan.backend))])
        keys = [program.backend.next_key() for _ in program.keys]
        numbers = {**other._numbers, LR: lr}
        held = [v for v in program.inputs if v in other._held]

        def one_by_one(backend: Backend) -> None:
            state = [other._held[value] for value in held]
            program.run(*arrays, *state, backend=backend, keys=keys, numbers=numbers)

        return profiled(
            *(program.name, program.steps, plan, one_by_one),
            *(lambda: plan.times(arrays, keys, numbers), rounds),
        )

    def _trial(self, batch: tuple[Any, ...]) -> "tuple[CompiledTraining, list[Any]]":
        """The same step with a copy of the state, and the arrays of a batch."""
        program, state = self.program, self.state
        arrays = batch_arrays(program, batch)
        if not self.training.knows(state):  # the optimizer remembers nothing yet
            keys = [(0, i) for i in range(len(program.keys))]
            state, _ = self.training.step(state, 0.0, *batch, keys=keys)
        other = CompiledTraining(self.training, state)
        other._hold(state)
        return other, arrays

    def _hold(self, state: TrainingState) -> None:
        """Copy a state to where the plans work on it."""
        inputs = [v for v in self.program.inputs if v.name in state.values]
        array = self.program.backend.xp.array
        self._held = {v: array(state.values[v.name], order="C") for v in inputs}
        self._numbers = dict(state.numbers)
        held = {value.name for value in inputs}
        rest = {name: v for name, v in state.values.items() if name not in held}
        self._state = TrainingState(rest, self._numbers)

    def _plan_of(self, arrays: list[Any]) -> Plan | GraphPlan:
        """The plan for a batch of these shapes."""
        shapes = tuple([array.shape for array in arrays])
        found = self._plans.get(shapes)
        if found is None:
            program = self.program
            held = self._held
            n = program.batch_size(*shapes, *[array.shape for array in held.values()])
            if self._lowered is None:
                self._lowered = lower_steps(
                    program.steps,
                    program.outputs,
                    program.constants,
                    program.backend,
                    () if program.backend.has_graphs else RULES,
                )
            what = Part(
                tuple([v for v in program.inputs if v not in held]),
                self._lowered.steps,
                program.results,
                self._lowered.constants,
                program.keys,
                held,
                program.updates,
            )
            while len(self._plans) >= MOST_PLANS:
                self._plans.pop(next(iter(self._plans)))
            buffers.trim()
            found = plan_of(what, n, program.backend)
            self._plans[shapes] = found
        return found

    def __repr__(self) -> str:
        name, count = self.program.name, len(self.program.steps)
        return f"CompiledTraining({name}, {count} steps; it trains its .model)"
