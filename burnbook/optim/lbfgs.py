"""L-BFGS: how the slope changes tells how long to step.

For small problems that fit into one batch: it computes loss and gradients several times
in a step, so it is not an Optimizer for the Learner but takes a closure.

    def closure(model):
        loss = mse(model.forward(x), y)
        return loss, GradientsParams.from_grads(loss.backward(), model)

    model, loss = optim.step(1.0, model, closure)
"""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from burnbook.backend.base import Backend
from burnbook.config import Config, ConfigEnum, unit
from burnbook.core.dropped import result_matters
from burnbook.core.errors import RecordError, ShapeError, TrainingError
from burnbook.core.files import PathLike
from burnbook.core.other_names import answers
from burnbook.module import Module
from burnbook.module.files import files
from burnbook.nn.shared import at_least
from burnbook.ops.lbfgs import lbfgs_direction
from burnbook.optim.adaptor import check_rate
from burnbook.optim.flat import FlatModule, dot, largest, total
from burnbook.optim.grads import GradientsParams
from burnbook.optim.line_search import MOST, Point, strong_wolfe
from burnbook.optim.rule import made_by_config
from burnbook.optim.state import (
    state_from_record,
    state_tensors,
    state_to_device,
    state_to_record,
)
from burnbook.tensor import Tensor

M = TypeVar("M", bound=Module)
Closure = Callable[[Any], tuple[Any, GradientsParams]]

CLOSURE = (
    "def closure(model): return loss, "
    "GradientsParams.from_grads(loss.backward(), model)"
)
CALL = "model, loss = optim.step(lr, model, closure)"
CURVED = 1e-10  # a pair with less curvature says nothing


class LineSearchFn(ConfigEnum):
    """How the length of a step is found; without, it is the learning rate."""

    StrongWolfe = unit()


class LBFGSConfig(Config):
    """How to make an L-BFGS optimizer (Liu & Nocedal, 1989).

    max_iter: how many iterations one step has at most, at least 1 (default 20).
    history_size: how many earlier steps the curvature is estimated from, at least 1
        (default 100).
    tolerance_grad: a step ends when no element of the gradient is larger, at least 0
        (default 1e-7).
    tolerance_change: a step ends when parameters or loss change by less, at least 0
        (default 1e-9).
    max_eval: how many evaluations of the closure one step has at most, at least 1;
        None, the default: max_iter · 5/4.
    line_search_fn: how the length of a step is found: StrongWolfe; None, the default:
        it is the learning rate.

    Example:
        >>> LBFGSConfig().with_history_size(10).init()
        LBFGS(max_iter=20, history_size=10, 0 iterations)
    """

    absent: ClassVar = {"line_search_fn": "None"}
    elsewhere: ClassVar = {
        **dict.fromkeys(("lr", "learning_rate"), f"{CALL}: the rate is given to it"),
        **dict.fromkeys(("params", "model"), f"{CALL} says which model it is"),
    }

    max_iter: int = 20
    history_size: int = 100
    tolerance_grad: float = 1e-7
    tolerance_change: float = 1e-9
    max_eval: int | None = None
    line_search_fn: LineSearchFn | None = None

    def validate(self) -> None:
        """Refuse numbers of nothing, and tolerances below none."""
        at_least(self, 1, "max_iter", "history_size", "max_eval")
        at_least(self, 0, "tolerance_grad", "tolerance_change")

    def init(self) -> "LBFGS":
        """The optimizer; the learning rate is given to each step."""
        return LBFGS(self)


@dataclasses.dataclass
class LBFGSState:
    """The last steps, how the gradient changed over them, and where it stands."""

    history_s: list[Tensor] = dataclasses.field(default_factory=list)
    history_y: list[Tensor] = dataclasses.field(default_factory=list)
    d: Tensor | None = None
    t: float = 1.0
    prev_flat_grad: Tensor | None = None
    prev_loss: float | None = None
    g_iter: int = 0


@answers("LBFGS")
@made_by_config("an optimizer without a model", "step(lr, model, closure)")
class LBFGS:
    """w ← w − t H g, where H, the inverse curvature, is known from the last steps."""

    def __init__(self, config: LBFGSConfig):
        self.config = config
        self.state = LBFGSState()

    @result_matters("model, loss = optim.step(…)", kept_in="model, loss")
    def step(self, lr: float, module: M, closure: Closure) -> tuple[M, float]:
        """Some iterations: the updated module, and the loss of the one given.

        closure: computes loss and gradients of a module like the one given.

        Raises:
            ConfigError: `lr` is not a finite number of at least 0.
            TrainingError: the closure is no function or does not return two things, or
                the loss is not finite.
            ShapeError: a gradient, or the state, belongs to another module.
        """
        check_rate(lr)
        if not callable(closure):
            what = f"the closure is {type(closure).__name__}, not a function"
            raise TrainingError("LBFGS.step", what, cure=CLOSURE)
        flat = FlatModule(module)
        state = _settled(self.state, flat)
        found, loss, self.state = _Iterations(self.config, state, flat, closure).run(lr)
        return (module if found is None else flat.spread(found)), loss

    def into_record(self) -> dict[str, Any]:
        """The fields of the state."""
        return state_to_record(self.state)

    to_record = into_record

    def save(self, path: PathLike) -> Path:
        """Write the record of the states, as burnpack; returns the file's path.

        Raises:
            RecordError: `path` names no file, or it cannot be written.
        """
        return files().save(self.into_record(), path)

    def load(self, path: PathLike, device: Backend | None = None) -> Self:
        """Replace all states by those of a file that `save` or Burn 0.22 wrote.

        Raises:
            RecordError: there is no such file, or it is of another optimizer.
        """
        return self.load_record(files().load(path), device)

    def load_record(self, record: Any, device: Backend | None = None) -> Self:
        """Go on from a record; nothing changes if it is not one.

        Without a device the values wait for the next step to say where they go.

        Raises:
            RecordError: `record` is not one of L-BFGS.
        """
        problems: list[str] = []
        state = state_from_record(LBFGSState, record, device, "record", problems)
        if not problems and len(state.history_s) != len(state.history_y):
            counts = f"{len(state.history_s)} and {len(state.history_y)}"
            problems.append(f"history_s and history_y have {counts} parts")
        if problems:
            what = f"{len(problems)} part{'s do' * (len(problems) > 1) or ' does'}"
            cure = "the record of LBFGS, not of a model or another optimizer"
            raise RecordError("load into LBFGS", f"{what} not match", problems, cure)
        self.state = state
        return self

    def __repr__(self) -> str:
        config, count = self.config, self.state.g_iter
        search = f", {config.line_search_fn}" if config.line_search_fn else ""
        shown = f"max_iter={config.max_iter}, history_size={config.history_size}"
        return f"LBFGS({shown}{search}, {count} iterations)"


class _Iterations:
    """The iterations of one step, on one flat vector of all parameters."""

    def __init__(
        self,
        config: LBFGSConfig,
        state: LBFGSState,
        flat: FlatModule,
        closure: Closure,
    ):
        self.config, self.flat, self.closure = config, flat, closure
        self.state = state
        self.rho = [1.0 / dot(y, s) for s, y in zip(*self._history(), strict=True)]
        self.evals = 0

    def run(self, lr: float) -> tuple[Tensor | None, float, LBFGSState]:
        """The new parameters (None: the old ones), the first loss, the new state."""
        config, state = self.config, self.state
        most = config.max_eval or config.max_iter * 5 // 4
        first, grad = loss, _ = self._evaluate(None)
        x = None
        if largest(grad) <= config.tolerance_grad:
            return x, first, state
        for number in range(1, config.max_iter + 1):
            direction = self._direction(grad)
            state.prev_flat_grad, state.prev_loss, state.d = grad, loss, direction
            state.t = lr if state.g_iter > 1 else min(1.0, 1.0 / total(grad)) * lr
            slope = dot(grad, direction)
            if slope > -config.tolerance_change:
                break
            start = Point(0.0, loss, grad, slope)
            x = self.flat.values() if x is None else x
            if config.line_search_fn is not None:
                x, loss, grad = self._search(x, start, most - self.evals)
            else:
                x = x + direction * state.t
                if number < config.max_iter:
                    loss, grad = self._evaluate(x)
            if self.evals >= most or self._is_done(loss, grad):
                break
        return x, first, state

    def _is_done(self, loss: float, grad: Tensor) -> bool:
        """Whether the gradient is flat, or neither parameters nor loss still move."""
        config, state = self.config, self.state
        assert state.d is not None
        assert state.prev_loss is not None
        return (
            largest(grad) <= config.tolerance_grad
            or largest(state.d) * abs(state.t) <= config.tolerance_change
            or abs(loss - state.prev_loss) < config.tolerance_change
        )

    def _direction(self, grad: Tensor) -> Tensor:
        """Where to go: −H g, after the last step was remembered."""
        state = self.state
        state.g_iter += 1
        if state.g_iter == 1 or state.d is None or state.prev_flat_grad is None:
            return -grad
        change, step = grad - state.prev_flat_grad, state.d * state.t
        curvature = dot(change, step)
        if curvature > CURVED:
            keep = self.config.history_size - 1
            for rows in (*self._history(), self.rho):
                del rows[: max(len(rows) - keep, 0)]
            state.history_s.append(step)
            state.history_y.append(change)
            self.rho.append(1.0 / curvature)
        scale = 1.0
        if self.rho:
            newest = state.history_y[-1]
            scale = 1.0 / (self.rho[-1] * dot(newest, newest))
        vectors = (grad, *state.history_s, *state.history_y)
        values = tuple([vector.value for vector in vectors])
        attrs = {"rho": tuple(self.rho), "scale": scale}
        out = grad.backend.run(lbfgs_direction, values, attrs)
        return type(grad)(out, grad.kind, grad.backend, 1)

    def _search(
        self, x: Tensor, start: Point, most: int
    ) -> tuple[Tensor, float, Tensor]:
        """The place that the line search finds, with its loss and gradient."""
        state, direction = self.state, self.state.d
        assert direction is not None

        def look(t: float) -> Point:
            loss, grad = self._evaluate(x + direction * t, finite=False)
            return Point(t, loss, grad, dot(grad, direction))

        tolerance = self.config.tolerance_change
        reach, most = largest(direction), min(MOST, most - 1)
        point, _ = strong_wolfe(look, start, state.t, reach, tolerance, most)
        state.t = point.t
        return x + direction * point.t, point.loss, point.grad

    def _evaluate(self, x: Tensor | None, finite: bool = True) -> tuple[float, Tensor]:
        """Loss and gradients at a place; None is the module as it was given."""
        self.evals += 1
        module = self.flat.module if x is None else self.flat.spread(x)
        found = self.closure(module)
        if not isinstance(found, tuple) or len(found) != 2:
            what = f"the closure returned {type(found).__name__}, not a pair"
            raise TrainingError("LBFGS.step", what, cure=CLOSURE.partition(": ")[2])
        loss, grads = found
        value = float(loss.into_scalar() if isinstance(loss, Tensor) else loss)
        if finite and not math.isfinite(value):
            raise TrainingError(
                "LBFGS.step",
                f"the loss is {value} at evaluation {self.evals}",
                cure="a smaller learning rate, or with_line_search_fn"
                "(LineSearchFn.StrongWolfe); the module given is unchanged",
            )
        return value, self.flat.gradients(grads)

    def _history(self) -> tuple[list[Tensor], list[Tensor]]:
        return self.state.history_s, self.state.history_y


def _settled(state: LBFGSState, flat: FlatModule) -> LBFGSState:
    """A copy of the state to work on, where the module is, if it belongs to it."""
    for tensor in state_tensors(state):
        if tuple(tensor.shape) != (flat.size,):
            raise ShapeError(
                "LBFGS.step",
                "the state of the optimizer belongs to another module",
                [
                    ("module", f"{flat.size} numbers"),
                    ("state", str(list(tensor.shape))),
                ],
                "an optimizer record of this very model",
            )
    return state_to_device(state, flat.device)
