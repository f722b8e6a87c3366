"""From a rule for one tensor to an optimizer of a module.

A SimpleOptimizer knows one parameter: `step(lr, tensor, grad, state)`. The adaptor maps
it over a module, keeps a state for every parameter by its id, and writes and reads
these as a record. A parameter without a gradient stays as it is, and so does its state.
"""

import math
import sys
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.core.call_source import texts_of_call
from burnbook.core.dropped import result_matters
from burnbook.core.dtypes import Float
from burnbook.core.errors import (
    ConfigError,
    GraphError,
    RecordError,
    ShapeError,
    UnknownNameError,
    warn_caller,
)
from burnbook.core.files import PathLike
from burnbook.core.other_names import answers, tables, unknown
from burnbook.core.roles import (
    GRADIENTS,
    MODEL,
    RATE,
    in_right_order,
    rate_of,
    wrong_form,
)
from burnbook.grad_clipping.clipping import (
    GradientClipping,
    GradientClippingConfig,
    not_gradients,
    scaled,
)
from burnbook.module import Module, Param, ParamId
from burnbook.module.files import files
from burnbook.module.reparameterization import no_member
from burnbook.module.tree import params_of, rebuild
from burnbook.optim.forgotten import first_step, later_step
from burnbook.optim.grads import GradientsParams, MultiGradientsParams, lowest, spend
from burnbook.optim.groups import ModuleLearningRate, ParamGroup
from burnbook.optim.rule import SimpleOptimizer
from burnbook.optim.state import (
    state_from_record,
    state_tensors,
    state_to_device,
    state_to_record,
)
from burnbook.tensor import Tensor

M = TypeVar("M", bound=Module)

_HELD = (
    "optim",
    "grad_clipping",
    "groups",
    "met",
    "_paths",
    "_states",
)  # in an optimizer

MAX_RANK = 8  # of a parameter, in Burn's record


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


class Held(NamedTuple):
    """The state of one parameter; a loaded one has not met its parameter yet.

    own: the rule has made it, and nobody else has ever seen it.
    """

    state: Any
    rank: int
    rule: SimpleOptimizer | None = None
    device: Backend | None = None
    dims: tuple[int, ...] | None = None
    own: bool = False


CLIPPING_FIELDS = ("grad_clipping", "gradient_clipping")  # of configs; Sgd's as in Burn


class Group(NamedTuple):
    """Some parameters, their own rule, and how their gradients are bounded."""

    members: ParamGroup
    rule: SimpleOptimizer
    grad_clipping: GradientClipping | None


class OptimizerRecord(dict[str, Any]):
    """The record of an optimizer, which remembers where its parameters stood.

    paths: "encoder.layers.0.weight" by the id of a parameter; newest Burn asks for them
    to find the group that a state belongs to. It is a dict, and only that when it is
    copied or pickled.
    """

    def __init__(self, record: dict[str, Any], paths: dict[str, str]):
        super().__init__(record)
        self.paths = paths

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


@answers("Optimizer")
class OptimizerAdaptor:
    """An optimizer of modules made from a rule for tensors, or from the rule's config.

    Example:
        >>> from burnbook.optim import AdamConfig
        >>> AdamConfig().init()
        OptimizerAdaptor(Adam(beta_1=0.9, beta_2=0.999, epsilon=1e-05), 0 states)
    """

    def __init__(self, optim: Any, grad_clipping: GradientClipping | None = None):
        self.optim = _rule_of(type(self).__name__, optim)
        self.grad_clipping = grad_clipping
        self.groups: list[Group] = []
        self.met: set[ParamGroup] = set()  # groups that some parameter belongs to
        self._states: dict[ParamId, Held] = {}
        self._paths: dict[ParamId, str] = {}  # where the parameters of states stand

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse what an optimizer does not have: nobody would ever read it."""
        if type(self) is OptimizerAdaptor and name not in _HELD:
            if name in tables()["Optimizer"]:
                raise unknown("Optimizer", "Optimizer", name)
            cure = f"{type(self.optim).__name__}Config({name}=…).init()"
            what = "an optimizer does not have it, so nothing would change"
            raise UnknownNameError(f"Optimizer.{name}", what, cure=cure)
        object.__setattr__(self, name, value)

    @classmethod
    def of(cls, optim: SimpleOptimizer, config: GradientClippingConfig | None) -> Self:
        """The optimizer of a rule, with the clipping of a config."""
        return cls(optim, None if config is None else config.init())

    def with_grad_clipping(
        self, grad_clipping: GradientClipping | GradientClippingConfig | None
    ) -> Self:
        """The optimizer with this clipping in place of any other; not in the groups.

        A global norm is that of the parameters that are in none of the groups; a group
        has the norm of its own parameters.
        """
        if isinstance(grad_clipping, GradientClippingConfig):
            grad_clipping = grad_clipping.init()
        self.grad_clipping = grad_clipping
        self._warn_of_groups("with_grad_clipping")
        return self

    def with_group(
        self,
        group: ParamGroup,
        optim: Any,
        grad_clipping: GradientClipping | GradientClippingConfig | None = None,
    ) -> Self:
        """The optimizer with another rule (or its config) for some parameters.

        A parameter follows the last group it is in; its state starts over there. The
        clipping is the group's own: `grad_clipping`, or that of the config. For one
        norm over all parameters, give it the very object that the optimizer has.

        Example:
            >>> from burnbook.optim import AdamConfig, MuonConfig
            >>> biases = ParamGroup.from_predicate("bias")
            >>> optim = MuonConfig().init().with_group(biases, AdamConfig())
            >>> optim.groups[0].rule
            Adam(beta_1=0.9, beta_2=0.999, epsilon=1e-05)
        """
        rule = _rule_of("with_group", optim)
        if grad_clipping is None:
            named = (getattr(optim, name, None) for name in CLIPPING_FIELDS)
            grad_clipping = next((found for found in named if found is not None), None)
        if isinstance(grad_clipping, GradientClippingConfig):
            grad_clipping = grad_clipping.init()
        self.groups.append(Group(group, rule, grad_clipping))
        self._warn_of_groups("with_group")
        return self

    def _warn_of_groups(self, where: str) -> None:
        """Say that gradients of a group are not bounded where all others are."""
        free = [each.members for each in self.groups if each.grad_clipping is None]
        if self.grad_clipping is None or not free:
            return
        warn_caller(
            f"{where}: the optimizer clips gradients, but not those of {free[0]!r}\n"
            f"  try: clip = {self.grad_clipping!r}, given to with_grad_clipping(clip) "
            f"and to with_group(…, clip): one norm over all of them"
        )

    @result_matters("model = optim.step(lr, model, grads)", kept_in=2)
    def step(self, lr: float, module: M, grads: GradientsParams) -> M:
        """The module after one step; each gradient is taken out of `grads`.

        Raises:
            GraphError: `grads` is not GradientsParams, has no gradient of this module,
                or an earlier step took them out.
            ConfigError: `lr` is not a finite number of at least 0, or a parameter group
                has no member.
            ShapeError: a gradient or a state has another shape than its parameter.
            RecordError: a loaded state is not one of the parameter's rule.

        Why: the step count of a parameter is its own, so a part that trains now and
        then is corrected for as many steps as it made.
        """
        if not hasattr(grads, "is_empty") or isinstance(lr, Module):
            raise _wrong_arguments(lr, module, grads)
        check_rate(lr)
        is_first = not self._states
        work = _Step(self, lr, module, grads, self._states)
        given = len(grads)
        for param in params_of(module):  # all is checked before anything changes
            work.take(param)
        work.clip_together()
        spend("step", grads, module, work.rows)
        if given and not work.rows:
            raise _strangers(given, module)
        try:
            made = rebuild(module, work.update, _same)
        except BaseException:
            self._states.update(work.overwritten())
            raise
        self._states.update(work.states)
        if not is_first:
            later_step(self, module)
        elif work.states:
            first = next(iter(work.states.values()))
            if any(True for _ in state_tensors(first.state)):
                first_step(self, module, made)
        if not work.states.keys() <= self._paths.keys():
            self._paths.update({p.id: path for path, p in module.named_params()})
        return made

    @result_matters("model = optim.step_multi(lr, model, grads)", kept_in=2)
    def step_multi(self, lr: float, module: M, grads: MultiGradientsParams) -> M:
        """The module after one step with the gradients of several devices, added up."""
        return self.step(lr, module, grads.summed())

    def into_record(self) -> dict[str, Any]:
        """The states by the ids of their parameters: {id: {"V1": {"Rank2": state}}}.

        Raises:
            RecordError: a parameter has more than 8 dims.
        """
        record = {}
        for number, (state, rank, *_) in self._states.items():
            if rank > MAX_RANK:
                raise RecordError(
                    "optimizer record",
                    f"a parameter has rank {rank}; at most {MAX_RANK} can be recorded",
                )
            held = {"V1": {f"Rank{rank}": state_to_record(state)}}
            record[number.serialize()] = held
        rows = self._paths.items()
        paths = {n.serialize(): path for n, path in rows if n in self._states}
        return OptimizerRecord(record, paths)

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
        """Replace all states by those of a record; nothing changes if it is not one.

        Without a device the values wait for the first gradient to say where they go.

        Raises:
            RecordError: `record` is not the record of an optimizer like this one.
        """
        if hasattr(record, "for_module"):  # of a format without names
            record = record.for_module(self)
        problems: list[str] = []
        states: dict[ParamId, Held] = {}
        rows = record if isinstance(record, dict) else {"record": None}
        for text, held in rows.items():
            at = str(text)[:40]
            found = self._read(at, held, device, problems)
            try:
                number = ParamId.deserialize(str(text))
            except RecordError:
                problems.append(f"{at} is not the id of a parameter")
                continue
            if found is not None:
                states[number] = found
        if problems:
            name, count = type(self.optim).__name__, len(problems)
            others = _made_by(rows) if isinstance(record, dict) else []
            if others and name not in others:
                raise _of_another(self, name, others)
            raise RecordError(
                f"load into {name}",
                f"{count} part{'s do' if count > 1 else ' does'} not match",
                problems,
                f"the record of {name}, not of a model or another optimizer",
            )
        known = getattr(record, "paths", {}).items()
        self._paths = {ParamId.deserialize(text): path for text, path in known}
        self._states = states
        return self

    def _read(
        self, at: str, held: Any, device: Backend | None, problems: list[str]
    ) -> Held | None:
        """One state from {"V1": {"Rank2": state}}, of the first rule that it fits."""
        inner = held.get("V1") if isinstance(held, dict) and len(held) == 1 else None
        if not isinstance(inner, dict) or len(inner) != 1:
            problems.append(f"{at} does not hold the state of an optimizer")
            return None
        ((rank, fields),) = inner.items()
        known = [f"Rank{number}" for number in range(MAX_RANK + 1)]
        if rank not in known:
            problems.append(f"{at} is {str(rank)[:40]}, not one of Rank0 to Rank8")
            return None
        first: list[str] = []
        kinds = dict.fromkeys(
            rule.state_type for rule in (self.optim, *[g.rule for g in self.groups])
        )
        for kind in kinds:
            found: list[str] = []
            state = state_from_record(kind, fields, device, at, found)
            if not found:
                break
            first = first or found
        else:
            problems.extend(first)
            return None
        for tensor in state_tensors(state):
            if f"Rank{len(tensor.shape)}" != rank:
                problems.append(f"{at} is {rank}, its tensors {list(tensor.shape)}")
        return Held(state, known.index(rank))

    def __repr__(self) -> str:
        count = len(self._states)
        states = f"{count} state{'' if count == 1 else 's'}"
        clipping = f", {self.grad_clipping!r}" if self.grad_clipping else ""
        groups = "".join(f", {g.members!r}: {g.rule!r}" for g in self.groups)
        return f"OptimizerAdaptor({self.optim!r}{clipping}{groups}, {states})"


def _rule_of(where: str, optim: Any) -> SimpleOptimizer:
    """The rule itself, or the one that a config builds or an optimizer has."""
    rule = optim.build() if hasattr(optim, "build") else optim
    if isinstance(optim, OptimizerAdaptor):
        if optim.groups or optim.grad_clipping is not None:
            what = "an optimizer with groups or clipping of its own is no single rule"
            cure = "its config, with grad_clipping=… of with_group"
            raise ConfigError(where, what, cure=cure)
        rule = optim.optim
    if not hasattr(rule, "state_type"):
        what = f"{type(optim).__name__} is not the rule of an optimizer"
        raise ConfigError(where, what, cure="AdamConfig(), or its build()")
    return rule


ModuleOptimizer = OptimizerAdaptor  # newer Burn's name


class OptimizerConfig(Config):
    """What the configs of optimizers do alike."""

    def build(self) -> SimpleOptimizer:
        """The rule for one tensor."""
        raise TypeError(f"{type(self).__name__} does not say which rule it makes")

    def init(self) -> OptimizerAdaptor:
        """The optimizer; the learning rate is given to each step."""
        return OptimizerAdaptor.of(self.build(), getattr(self, "grad_clipping", None))


class _Step:
    """One step of a whole module: what each parameter and its state become."""

    def __init__(
        self,
        optim: OptimizerAdaptor,
        lr: float,
        module: Module,
        grads: GradientsParams,
        held: dict[ParamId, Held],
    ):
        self.optim, self.module, self.lr = optim, module, lr
        self.grads, self.held = grads, held
        self.rows: dict[ParamId, tuple[Any, ...]] = {}  # see _row
        self.states: dict[ParamId, Held] = {}
        self.scales: dict[int, float | Tensor | None] = {}  # of each global clipping
        self.reused: list[ParamId] = []
        self.plain = Group(ParamGroup.all(), optim.optim, optim.grad_clipping)
        self.paths: dict[ParamId, str] = {}
        if optim.groups or isinstance(lr, ModuleLearningRate):
            self.paths = {param.id: path for path, param in module.named_params()}
            self._refuse_strange_groups()

    def _refuse_strange_groups(self) -> None:
        """Raise for a group that nothing belongs to, the first time it is met."""
        rates = self.lr.groups if isinstance(self.lr, ModuleLearningRate) else ()
        groups = [group.members for group in self.optim.groups]
        groups += [group for group, _ in rates]
        for group in groups:
            if group in self.optim.met:
                continue
            if not any(group.matches(n, path) for n, path in self.paths.items()):
                raise no_member("step", group, list(self.paths.values()))
            self.optim.met.add(group)

    def take(self, param: Param) -> None:
        """Take the gradient of a parameter, if it has one, and see that all fits."""
        if param.kind is not Float:
            return
        grad = self.grads.remove(param.id)
        if grad is None:
            return
        try:
            self.rows[param.id] = self._row(param, grad)
        except (ShapeError, RecordError) as error:
            path = self.module.find_part(param)
            error.where = f"step of {type(self.module).__name__}.{path}"
            raise

    def _row(self, param: Param, grad: Tensor) -> tuple[Any, ...]:
        """What is to be done to one parameter: tensor, grad, lr, rule, clipping, held.

        Why a bare tuple: there is one for each parameter in each step.
        """
        value = param.val()
        inner, grad = lowest(value), lowest(grad)
        device, dims = inner.backend, inner.value.shape
        if grad.backend is not device:
            grad = grad.to_device(device)
        if grad.value.shape != dims:
            what = "the gradient does not have the shape of its parameter"
            facts = [("param", str(list(dims))), ("grad", str(list(grad.dims())))]
            cure = "GradientsParams.from_grads(loss.backward(), model)"
            raise ShapeError("step", what, facts, cure)
        (_, rule, clipping), lr = self.plain, self.lr
        if self.paths:
            path = self.paths[param.id]
            rule, clipping = self._group(param.id, path)
            lr = lr.of(param.id, path) if isinstance(lr, ModuleLearningRate) else lr
        held = self.held.get(param.id)
        if held is not None and (
            held.rule is not rule or held.device is not device or held.dims != dims
        ):
            held = _settle(held, rule, device, dims)
        if held is None and hasattr(rule, "check"):
            rule.check(dims)  # type: ignore[attr-defined] # asked for just before
        return inner, grad, lr, rule, clipping, held

    def clip_together(self) -> None:
        """Find how far each clipping by global norm scales its parameters' gradients.

        The parameters of a group have a norm of their own.
        """
        together: dict[int, tuple[GradientClipping, list[Tensor]]] = {}
        for _, grad, _, _, clipping, _ in self.rows.values():
            if clipping is not None and clipping.is_global:
                together.setdefault(id(clipping), (clipping, []))[1].append(grad)
        for key, (clipping, grads) in together.items():
            self.scales[key] = clipping.scale_of(grads)

    def update(self, param: Param) -> Param:
        """The parameter after the step; without a gradient, the same."""
        row = self.rows.get(param.id)
        if row is None:
            return param.unshared()
        tensor, grad, lr, rule, clipping, held = row
        if clipping is not None:
            grad = self._clipped(grad, clipping)
        device, dims = tensor.backend, tensor.value.shape
        reuses = getattr(rule, "reuses", False) and device.inner is device
        if held is None:
            made, state = rule.step(lr, tensor, grad, None)
        elif held.own and reuses:
            self.reused.append(param.id)
            made, state = rule.step(lr, tensor, grad, held.state, reuse=True)
        else:
            made, state = rule.step(lr, tensor, grad, held.state)
        if state is not None:
            held = Held(state, len(dims), rule, device, dims, reuses)
            self.states[param.id] = held
        outer, flag = param.val().backend, param.is_require_grad()
        if outer.ad_enabled:
            raw = made.value
            if flag and getattr(outer, "depth", 0):
                raw = Tensor(raw, Float, outer, len(dims)).require_grad().value
            elif flag:
                raw = outer.leaf(raw)
            made = Tensor(raw, Float, outer, len(dims))
        return type(param)(param.id, made, require_grad=flag)

    def _clipped(self, grad: Tensor, clipping: GradientClipping) -> Tensor:
        """The gradient of a parameter, bounded."""
        if not clipping.is_global:
            return clipping.clip_gradient(grad)
        scale = self.scales[id(clipping)]
        return grad if scale is None else scaled(grad, scale)

    def overwritten(self) -> dict[ParamId, Held]:
        """The states of a step that failed whose predecessors are gone."""
        return {n: self.states[n] for n in self.reused if n in self.states}

    def _group(
        self, number: ParamId, path: str
    ) -> tuple[SimpleOptimizer, GradientClipping | None]:
        """The rule and the clipping of a parameter: those of its last group."""
        for group in reversed(self.optim.groups):
            if group.members.matches(number, path):
                return group.rule, group.grad_clipping
        return self.plain.rule, self.plain.grad_clipping


def check_rate(lr: float) -> None:
    """Raise for what no step can be as long as."""
    try:
        if math.isfinite(lr):
            if lr >= 0:
                return
            what = f"{lr!r} is below 0: the step would go uphill"
            raise ConfigError("step", what, cure=f"a learning rate of {-lr!r}")
    except TypeError:
        pass
    cure = rate_of(lr) or "a finite number, such as 1e-4"
    if hasattr(lr, "step"):
        cure = f"{(texts_of_call('step') or ('scheduler',))[0]}.step(), a number"
    raise ConfigError("step", f"{lr!r} is not a learning rate", cure=cure)


def _wrong_arguments(lr: object, module: object, grads: object) -> GraphError:
    """The error for arguments in another order, or for what is no GradientsParams."""
    order = in_right_order("step", (RATE, MODEL, GRADIENTS), (lr, module, grads))
    if order:
        return GraphError("step", order[0], cure=order[1])
    return not_gradients("step", 2, grads, model=1)


def _strangers(count: int, module: Module) -> GraphError:
    name = type(module).__name__
    found = wrong_form("step", 1, module, MODEL)
    if found:
        return GraphError("step", found[0], cure=found[1])
    return GraphError(
        "step",
        f"none of the {count} gradients belongs to a parameter of {name}",
        cure="GradientsParams.from_grads(loss.backward(), model) with this very model",
    )


def _settle(
    held: Held, rule: SimpleOptimizer, device: Backend, dims: tuple[int, ...]
) -> Held | None:
    """Bring a loaded or moved state to where its parameter is, if it belongs to it.

    None for the state of another rule: the parameter has changed its group.
    """
    state = held.state
    if held.rule is not None and held.rule is not rule:
        return None
    known = rule.shapes(dims) if hasattr(rule, "shapes") else {dims}  # type: ignore[attr-defined] # asked for just before
    for tensor in state_tensors(state):
        if tuple(tensor.shape) not in known:
            raise ShapeError(
                "step",
                "the state of the optimizer belongs to another shape",
                [("param", str(list(dims))), ("state", str(list(tensor.shape)))],
                "an optimizer record of this very model",
            )
    state = state_to_device(state, device)
    if type(state) is not rule.state_type:  # as a record both may read alike
        fields, problems = state_to_record(state), []
        state = state_from_record(rule.state_type, fields, device, "state", problems)
        if problems:
            raise RecordError(
                "step",
                f"the loaded state is not one of {type(rule).__name__}",
                problems,
                "the groups that the record was made with",
            )
    return Held(state, held.rank, rule, device, dims)


def _same(value: Any) -> Any:
    return value


def _made_by(rows: dict[Any, Any]) -> list[str]:
    """The names of the rules that can read every state of a record; few can."""
    states: list[Any] = []
    for held in rows.values():
        inner = held.get("V1") if isinstance(held, dict) else None
        if not isinstance(inner, dict) or len(inner) != 1:
            return []
        states.append(*inner.values())
    if not states or not all(states):  # nothing tells whose state an empty one is
        return []
    rules = vars(sys.modules["burnbook.optim"]).values()  # those of the library
    kinds = {
        rule.__name__: getattr(rule, "state_type", None)
        for rule in rules
        if isinstance(rule, type)
    }
    names = [
        name
        for name, kind in kinds.items()
        if isinstance(kind, type) and all(_reads(kind, s) for s in states)
    ]
    return sorted(names, key="Muon".__eq__)  # the rarest last


def _reads(kind: type[Any], state: Any) -> bool:
    problems: list[str] = []
    state_from_record(kind, state, None, "state", problems)
    return not problems


def _of_another(optim: OptimizerAdaptor, name: str, others: list[str]) -> RecordError:
    """The error for a record that another optimizer has made."""
    groups = [type(group.rule).__name__ for group in optim.groups]
    return RecordError(
        f"load into {name}",
        f"saved by {' or '.join(others)}, this is {', '.join([name, *groups])}",
        cure=f"{others[0]}Config(...).init(); or load the model alone, and train it "
        f"with {name} in another folder",
    )
