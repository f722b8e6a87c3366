"""`captured`: a function of a training loop, or a model, that runs as a plan by itself.

    @captured
    def train_step(model, optim, lr, x, y):
        loss = loss_of(model.forward(x), y)
        grads = GradientsParams.from_grads(loss.backward(), model)
        return optim.step(lr, model, grads), loss

    for x, y in batches:
        model, loss = train_step(model, optim, 1e-3, x, y)

It is called as before and gives what it gave. Where no plan can do that, the function
runs step by step, and one warning says why.
"""

import threading
from collections.abc import Callable, Iterator
from typing import Any

from burnbook.core.errors import ArgumentError, BurnbookError, warn_caller
from burnbook.module import Module
from burnbook.optim.adaptor import OptimizerAdaptor
from burnbook.program.call_form import Form, Given, NotYet, Refused, refused, settle
from burnbook.program.captured_call import CapturedCall
from burnbook.program.reached import Names, Taken
from burnbook.program.surroundings import Changed
from burnbook.program.trees import ARGUMENTS
from burnbook.tensor import Tensor

MOST = 8  # forms of a call that have a plan
MOST_REFUSED = 4  # forms after which nothing is tried any more


def captured(
    subject: Any = None,
    *,
    strict: bool = False,
    signatures: int = MOST,
    method: str = "forward",
) -> Any:
    """A function that runs as a plan from its first call on, called as it always was.

    subject: a function, or a model, whose `method` runs as in `valid()`. strict: raise
    where a call cannot be captured; otherwise it runs step by step, with one warning.
    signatures: how many forms of a call may have a plan; others run step by step.

    Tensors, floats, models and optimizers are its arguments, in lists, tuples, dicts
    and dataclasses as well, and the same may come out. Whatever else differs is another
    form with a plan of its own: shapes, types, ints, texts, a frozen layer, a changed
    rule of the optimizer. What the function takes from elsewhere is compared in each
    call. So a plan never runs for what it was not made for. The first call of an
    optimizer that remembers nothing yet, or of a model whose weights are not drawn yet,
    runs step by step.

    Results agree with those of the function up to rounding, and random numbers are the
    same ones. What comes out has no graph: `backward` belongs inside.

    Raises:
        ArgumentError: the subject is no function and no model.

    Example:
        >>> from burnbook.backend import Autodiff, Numpy
        >>> from burnbook.nn import LinearConfig
        >>> from burnbook.optim import GradientsParams, SgdConfig
        >>> device = Autodiff(Numpy())
        >>> @captured
        ... def step(model, optim, lr, x):
        ...     loss = (model.forward(x) - 3.0).square().mean()
        ...     grads = GradientsParams.from_grads(loss.backward(), model)
        ...     return optim.step(lr, model, grads), loss
        >>> model, optim = LinearConfig(2, 1).init(device), SgdConfig().init()
        >>> x = Tensor.ones([4, 2], device)
        >>> for _ in range(40):
        ...     model, loss = step(model, optim, 0.1, x)
        >>> loss.into_scalar() < 1e-6, step
        (True, captured(step, 1 plan))
        >>> predict = captured(model)
        >>> predict(Tensor.ones([1, 2])).into_scalar().__round__(2)
        3.0

    Why another plan for another shape: a plan for all batch sizes would have to trust
    that the function does the same for those that it has never seen.
    """
    if subject is None:
        return lambda found: captured(
            found, strict=strict, signatures=signatures, method=method
        )
    if isinstance(subject, Module):
        if not callable(getattr(subject, method, None)):
            what = f"{type(subject).__name__} has no method {method!r}"
            raise ArgumentError("captured", what, cure='method="…"')
        return CapturedModel(subject, method, strict, signatures)
    if not callable(subject) or isinstance(subject, type):
        what = f"{type(subject).__name__} is neither a function nor a model"
        raise ArgumentError("captured", what, cure="captured(train_step)")
    return Captured(subject, strict, signatures)


class Captured:
    """A function that runs as a plan; made by `captured`.

    refusals: why calls run step by step, the newest last.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        strict: bool = False,
        signatures: int = MOST,
        warn: Callable[[str], None] | None = None,
        begun: bool = False,
    ) -> None:
        """begun: whether optimizers have taken their first step already."""
        self.function, self.strict, self.signatures = function, strict, signatures
        self.refusals: list[str] = []
        self.is_off = False  # step by step from now on
        self._warn = warn or warn_caller
        self._plans: list[CapturedCall] = []
        self._refused: list[Form] = []
        self._changes = 0
        self._begun: list[OptimizerAdaptor] | None = None if begun else []
        self._optimizers: list[Taken] | None = None
        self._lock = threading.RLock()
        for name in ("__doc__", "__name__", "__qualname__", "__module__"):
            if hasattr(function, name):
                setattr(self, name, getattr(function, name))

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return self.function

    def __get__(self, owner: object, _: type | None = None) -> Any:
        """As a method: the owner comes first."""
        if owner is None:
            return self
        return lambda *args, **named: self(owner, *args, **named)

    def __call__(self, *args: object, **named: object) -> Any:
        """What the function gives, by a plan where there is one."""
        if self.is_off:
            return self.function(*args, **named)
        try:
            with self._lock:
                given = self._given(args, named)
                plan = self._plan_for(given, args, named)
        except NotYet:
            plan = None
        except BurnbookError as error:
            self._note(error)
            plan = None
        if plan is None:
            return self.function(*args, **named)
        return plan.run(given)  # type: ignore[possibly-undefined] # with the plan

    def _given(self, args: tuple[object, ...], named: dict[str, object]) -> Given:
        """The leaves of a call, and the optimizers that the function has by itself."""
        if self._optimizers is None:
            self._look_for_optimizers()
        leaves = list(_leaves(args, named))
        known = [leaf for _, leaf in leaves if isinstance(leaf, OptimizerAdaptor)]
        for taken in self._optimizers or ():
            now = taken.now()
            is_new = not any(now is optim for optim in known)
            if isinstance(now, OptimizerAdaptor) and is_new:
                leaves.append((taken.name, now))
                known.append(now)
        self._check_begun(known)
        models = [leaf for _, leaf in leaves if isinstance(leaf, Module)]
        for optim in known if models else ():
            settle(optim, models[0])
        return Given(leaves)

    def _look_for_optimizers(self) -> None:
        found = Names(self.function).taken
        self._optimizers = [t for t in found if isinstance(t.value, OptimizerAdaptor)]

    def _check_begun(self, optimizers: list[OptimizerAdaptor]) -> None:
        """Let the first call of an optimizer run step by step; it may remember then."""
        if self._begun is None:
            return
        for optim in optimizers:
            if not optim._states and not any(optim is o for o in self._begun):  # pyright: ignore[reportPrivateUsage] - nothing else tells
                self._begun.append(optim)
                raise NotYet

    def _plan_for(
        self, given: Given, args: tuple[object, ...], named: dict[str, object]
    ) -> CapturedCall | None:
        """The plan for a call, made where there is none."""
        for plan in self._plans:
            try:
                if plan.fits(given):
                    return plan
            except Changed as change:
                self._plans.remove(plan)
                self._changes += 1
                if self._changes >= self.signatures:
                    self.is_off = True
                    what = f"{change} is another value in each call"
                    raise refused(what, f"{change} as an argument") from None
                return self._plan_for(given, args, named)
        if any(given.form == form for form in self._refused):
            return None
        if len(self._plans) >= self.signatures:
            count = len(self._plans)
            what = f"there are {count} plans already, and this call needs another one"
            cure = f"batches of fewer shapes; or captured(…, signatures={2 * count})"
            raise refused(what, cure)
        try:
            made = CapturedCall(self._call(named), (*args, *named.values()), given)
        except Exception as error:
            self._refused.append(given.form)
            self.is_off = self.is_off or len(self._refused) >= MOST_REFUSED
            if isinstance(error, BurnbookError):
                raise
            kind = type(error).__name__
            raise refused(f"{kind}: {error}", "the error below, if it comes") from error
        self._look_for_optimizers()
        self._plans.append(made)
        return made

    def _call(self, named: dict[str, Any]) -> Callable[..., Any]:
        """The function with all arguments by their position."""
        return _by_position(self.function, tuple(named)) if named else self.function

    def _note(self, error: BurnbookError) -> None:
        """Tell once why a call runs step by step.

        Raises:
            BurnbookError: where that is asked for.
        """
        if self.strict:
            raise error
        reason = reason_of(error)
        if reason not in self.refusals:
            self.refusals.append(reason)
            name = getattr(self.function, "__name__", type(self.function).__name__)
            self._warn(f"captured: {name} runs step by step: {reason}")

    def explain(self) -> str:
        """Which forms of a call have a plan, and why others run step by step."""
        rows = [repr(self)]
        for plan in self._plans:
            inputs = [v for v in plan.program.inputs if v.name in plan.inputs]
            steps = len(plan.program.steps)
            rows.append(f"  {', '.join(map(str, inputs))}: {steps} steps")
        rows += [f"  step by step: {reason}" for reason in self.refusals]
        return "\n".join(rows)

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        count = len(self._plans)
        return f"captured({name}, {count} plan{'' if count == 1 else 's'})"


class CapturedModel(Captured):
    """A model for inference that runs as a plan; made by `captured`.

    Tensors on a device with gradients are taken without them, as `valid()` does it.
    """

    def __init__(self, model: Module, method: str, strict: bool, signatures: int):
        while any(device.ad_enabled for device in model.devices()):
            model = model.valid()
        for _, param in model.named_params():
            param.val()
        super().__init__(getattr(model, method), strict, signatures)
        self.model = model
        self.__name__ = type(model).__name__

    def __call__(self, *args: object, **named: object) -> Any:
        """What the model gives for these inputs."""
        given = [_without_gradients(arg) for arg in args]
        return super().__call__(*given, **named)

    def __repr__(self) -> str:
        return super().__repr__().replace(self.function.__name__, self.__name__, 1)


def _by_position(function: Callable[..., Any], names: tuple[str, ...]) -> Any:
    """A function whose last arguments have names, without these."""

    def call(*args: object) -> Any:
        count = len(args) - len(names)
        return function(*args[:count], **dict(zip(names, args[count:], strict=True)))

    call.__wrapped__ = function  # type: ignore[attr-defined] # as functools.wraps
    call.__name__ = call.__qualname__ = getattr(function, "__name__", "function")
    return call


def reason_of(error: BurnbookError) -> str:
    """Why, and what to change, in one line."""
    what = error.what if isinstance(error, BurnbookError) else str(error)
    cure = getattr(error, "cure", "")
    return f"{what}; try: {cure}" if cure else str(what)


def _without_gradients(value: object) -> object:
    is_tracking = isinstance(value, Tensor) and value.backend.ad_enabled
    return value.inner() if is_tracking else value  # type: ignore[union-attr] # a tensor


def _leaves(
    args: tuple[object, ...], named: dict[str, object]
) -> Iterator[tuple[str, Any]]:
    """The leaves of all arguments with their names; a container as its class."""
    for at, value in (*enumerate(args), *named.items()):
        first = at if isinstance(at, str) else f"x{at}"
        for path, node in ARGUMENTS.nodes(value):
            name = ".".join((first, *path))
            cls = type(node)
            is_leaf = isinstance(node, Module) or ARGUMENTS.kind(cls) is None
            yield name, node if is_leaf else (cls, len(path))


__all__ = ["Captured", "Refused", "captured"]
