"""One call of a function as a plan: written down once, and run for others of its form.

What goes in are the tensors among the arguments, the arrays of models, and what their
optimizers remember. What comes out is what the function gave: tensors, models with new
weights, gradients; beside that, what optimizers and running statistics have become.
Nothing is written over: the model of the call before stays what it was.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from burnbook.backend.base import Backend
from burnbook.backend.compiled.runtime.buffers import buffers
from burnbook.backend.numpy import Numpy
from burnbook.core.formulas import Formula, Unknown, comparisons, known, unknown
from burnbook.core.op import BackwardOp
from burnbook.module import Module, Param, RunningState
from burnbook.module.tree import MODULES, rebuild
from burnbook.optim import GradientsParams
from burnbook.optim.adaptor import Held, OptimizerAdaptor
from burnbook.program.call import is_fact
from burnbook.program.call_form import (
    Given,
    form_of,
    leaves_of_state,
    number_name,
    refused,
    state_with,
    value_of,
)
from burnbook.program.capture import BatchPlan, Runs, modules_of, observed
from burnbook.program.compiled_training import after_interrupts
from burnbook.program.compiler.fusion import RULES
from burnbook.program.compiler.graph_plan import plan_of
from burnbook.program.compiler.passes import lower_steps
from burnbook.program.compiler.plan import Part
from burnbook.program.outside import Generators
from burnbook.program.program import Program
from burnbook.program.recording import Recording
from burnbook.program.surroundings import Surroundings, Watched, only, silence
from burnbook.program.trees import (
    ARGUMENTS,
    PLAIN,
    WITH_MODELS,
    EveryLeaf,
    lowest,
    named_arrays,
)
from burnbook.program.values import Value
from burnbook.tensor import Tensor

SIZES = BatchPlan((0, 0), (), 0)  # two runs, both of the sizes that came


class CapturedCall:
    """A function for calls of one form; `run` is what it does with another one."""

    def __init__(
        self, function: Callable[..., Any], args: tuple[object, ...], given: Given
    ):
        """Write down a call; nothing that it changes stays changed.

        Raises:
            Refused, GraphError: no plan can do what the function does.
        """
        self.form = given.form
        self.inputs = {name for name, _ in given.tensors}
        backend = self.backend = given.backend()
        if not (isinstance(backend, Numpy) or backend.has_graphs):
            raise refused(f"{backend!r} has no plans", "Numpy() or Cupy()")
        writing = Writing(function, args, given, backend)
        self.program: Program = writing.program()
        self.result, self.guards = writing.result, writing.guards
        self.states, self.moves = writing.states, writing.moves
        self.surroundings = writing.surroundings
        program = self.program
        rules = () if backend.has_graphs else RULES
        lowered = lower_steps(
            *(program.steps, program.outputs, program.constants, backend, rules)
        )
        what = Part(
            *(program.inputs, lowered.steps, program.outputs),
            *(lowered.constants, program.keys),
        )
        buffers.trim()
        self.plan = plan_of(what, None, backend)
        self._lock = threading.Lock()

    def fits(self, given: Given) -> bool:
        """Whether a call may run by this plan.

        Raises:
            Changed: what the function takes from elsewhere is something else now.
        """
        if given.form != self.form:
            return False
        self.surroundings.check()
        numbers = given.numbers
        return all(bool(formula(numbers)) is was for formula, was in self.guards)

    def run(self, given: Given) -> Any:
        """What the function would do with these arguments."""
        program = self.program
        draw = self.backend.next_key
        keys = [draw() for _ in program.keys]
        numbers = given.numbers
        with self._lock, after_interrupts():
            out = self.plan.run(given.arrays, keys, numbers)
            result = _Made(self, given, out, numbers).result(self.result)
            for place, rows in zip(given.optimizers, self.states, strict=True):
                self._remember(place[1], rows, out, numbers)
            for module, held, at in self.moves:
                state = given.held[module][held][1]
                like = state.val()
                state.swap(Tensor(out[at], like.kind, like.backend, like.rank))
            return result

    def _remember(
        self,
        optim: OptimizerAdaptor,
        rows: list[Any],
        out: Sequence[Any],
        numbers: Mapping[str, float],
    ) -> None:
        """Let an optimizer have what it remembers after the run."""
        states = optim._states  # pyright: ignore[reportPrivateUsage] - nothing else sets it
        for number, held, leaves in rows:
            made = iter([_leaf(leaf, out, numbers) for leaf in leaves])
            states[number] = held._replace(state=state_with(held.state, made))


class Out:
    """Where a tensor of a result stands among the outputs."""

    __slots__ = ("at", "backend", "kind", "rank")
    stands_for = "Tensor"

    def __init__(self, at: int, tensor: Tensor):
        self.at, self.kind, self.rank = at, tensor.kind, tensor.rank
        self.backend = tensor.backend

    def tensor(self, out: Sequence[Any]) -> Tensor:
        """The tensor of a run."""
        return Tensor(out[self.at], self.kind, self.backend, self.rank)


def _leaf(leaf: object, out: Sequence[Any], numbers: Mapping[str, float]) -> Any:
    if type(leaf) is Out:
        return leaf.tensor(out)
    return leaf(numbers) if type(leaf) is Formula else leaf


class NewModel:
    """A model that comes out: which one of the arguments it was, and what is new."""

    def __init__(self, at: int, new: dict[int, int]):
        self.at, self.new = at, new  # held array -> output


class NewGradients:
    """Gradients of parameters that come out."""

    def __init__(self, by_id: dict[Any, Out]):
        self.by_id = by_id


class _Made:
    """The result of one run."""

    def __init__(
        self,
        call: CapturedCall,
        given: Given,
        out: Sequence[Any],
        numbers: Mapping[str, float],
    ):
        self.given, self.out, self.numbers = given, out, numbers
        self.models: dict[int, Module] = {}

    def result(self, tree: object) -> Any:
        """The tree with what belongs into its places."""
        return EveryLeaf(WITH_MODELS, self._put)(tree)

    def _put(self, leaf: object) -> Any:
        if type(leaf) is NewModel:
            return self._model(leaf)
        if type(leaf) is NewGradients:
            found = {number: one.tensor(self.out) for number, one in leaf.by_id.items()}
            return GradientsParams(found)
        return _leaf(leaf, self.out, self.numbers)

    def _model(self, new: NewModel) -> Module:
        out, (_, module) = self.out, self.given.modules[new.at]
        held = self.given.held[new.at]
        arrays = {id(held[i][1]): out[at] for i, at in new.new.items()}

        def move(param: Param) -> Param:
            array = arrays.get(id(param))
            if array is None:
                return param.unshared()
            value = param.val()
            made = Tensor(array, value.kind, value.backend, value.rank)
            if isinstance(param, RunningState):
                return param.derive(lambda _, __: made, param.device, False)
            flag = bool(param.is_require_grad())
            made = made.require_grad() if flag else made
            return type(param)(param.id, made, require_grad=flag)

        return rebuild(module, move, lambda tensor: tensor)


class Writing:
    """The runs of a call that are written down, and what they have in common."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[object, ...],
        given: Given,
        backend: Backend,
    ):
        self.function, self.args, self.given, self.backend = (
            *(function, args, given, backend),
        )
        own = {id(module) for _, module in given.modules}
        found = [pair for pair in modules_of(function) if id(pair[1]) not in own]
        self.others = [module for _, module in found]
        self.named = named_arrays(found)
        self.used = [*self.others, *[module for _, module in given.modules]]
        self.call: Any = None  # asked for by Runs; what is called is a plan
        self.tensors: list[Tensor] = []
        self.result: Any = None
        self.guards: list[tuple[Formula, bool]] = []
        self.states: list[Any] = []
        self.moves: list[tuple[int, int, int]] = []
        self.surroundings: Any = None

    def values(self, _: BatchPlan) -> list[Value]:
        """The inputs of the program."""
        made: list[Value] = []
        seen: dict[str, int] = {}
        for name, array in zip(self.given.names, self.given.arrays, strict=True):
            count = seen[name] = seen.get(name, 0) + 1
            name = name if count == 1 else f"{name}_{count}"
            made.append(Value(name, "input", array.dtype, tuple(array.shape)))
        return made

    def program(self) -> Program:
        """The program of two runs, which must have done the same.

        Raises:
            GraphError: they did not, or Python looked at elements.
        """
        watched = Watched(self.function, self.used, ())
        generators = Generators(
            self.function, self.used, [v for _, v in ARGUMENTS.leaves(list(self.args))]
        )
        runs = Runs(SIZES, self, self.named)  # type: ignore[arg-type] # has what it asks for
        numbers: dict[str, Formula | None] = dict.fromkeys(self.given.numbers)
        for turn in range(2):
            try:
                with silence() as told, comparisons() as compared:
                    recording, found = observed(
                        generators,
                        lambda: Recording(self.named, keys=True),
                        lambda recording, turn=turn: self._run(runs, recording, turn),
                    )
            finally:
                watched.check()
            if told:
                what = f"it {told[0]}, which a plan would not"
                raise refused(what, "return the tensors, and print outside")
            flat, tree, states, moves = found
            guards = list(dict.fromkeys(compared))
            if turn and guards != self.guards:
                what = "it compares a number, and goes another way for another one"
                raise refused(what, "an int for what is to stay, which is not a float")
            self.result, self.guards = tree, guards
            self.states, self.moves = states, moves
            wants = any(hasattr(t.value, "node") for t in flat)
            if wants and not any(isinstance(s.op, BackwardOp) for s in recording.steps):
                what = "what comes out still wants its gradient"
                cure = "backward() inside the function; or model.valid(), for inference"
                raise refused(what, cure)
            runs.add(recording, (flat, []))
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        name = name.rpartition("<locals>.")[2]
        program = runs.program(name, self.backend, numbers)
        self.surroundings = Surroundings(self.function, self.used, runs.identities())
        return program

    def _run(self, runs: Runs, recording: Recording, turn: int) -> Any:
        """One run, in front of values that are not to be looked at."""
        given, optimizers = self.given, [o for _, o in self.given.optimizers]
        values = iter([recording.input(a, i) for i, a in enumerate(given.arrays)])
        numbers = {n: _other(n, v, turn) for n, v in given.numbers.items()}
        before = [dict(o._states) for o in optimizers]  # pyright: ignore[reportPrivateUsage] - put back below
        attributes = _attributes(self.others)

        def run() -> Any:
            leaves = _Leaves(given, values, numbers)
            args = EveryLeaf(WITH_MODELS, leaves.change)(list(self.args))
            leaves.set_states()
            inside = _attributes(leaves.modules)
            result = self.function(*args)
            for was, now in (
                (inside, _attributes(leaves.modules)),
                (attributes, _attributes(self.others)),
            ):
                if was != now:
                    raise refused("it sets attributes of a model", "another model")
            return _Outputs(given, leaves).of(result, optimizers)

        try:
            with only(optimizers):
                return runs.one(recording, self.backend, 0, run)
        finally:
            for optim, states in zip(optimizers, before, strict=True):
                optim._states = states  # pyright: ignore[reportPrivateUsage]

    def arrays_of(self, plan: BatchPlan, size: int) -> list[Any]:
        """The arrays of the call."""
        return self.given.arrays


def _other(name: str, number: float, turn: int) -> Any:
    """A number as it came, and another one of its kind in the second run."""
    if type(number) is int:
        return unknown(number + turn, Formula(name))
    changed = number * 0.75 if number else 0.0078125
    return unknown(changed if turn else number, Formula(name))


def _attributes(modules: Sequence[Module]) -> list[Any]:
    """The numbers and texts that models have beside their fields."""
    found: list[Any] = []
    for module in modules:
        for _, node in MODULES.nodes(module):
            if isinstance(node, Module):
                held = vars(node).items()
                found.append([(k, v) for k, v in held if is_fact(v)])
    return found


class _Leaves:
    """The arguments of one run: the same trees around values that are written down."""

    def __init__(self, given: Given, values: Iterator[Any], numbers: dict[str, Any]):
        self.given, self.values, self.numbers = given, values, numbers
        self.modules: list[Module] = []
        self.held: list[list[Any]] = []  # the values in each of these
        self.names = iter(given.floats)

    def change(self, leaf: object) -> Any:
        """What stands in the place of a leaf."""
        if type(leaf) is Tensor:
            value = next(self.values)
            made = Tensor(value, leaf.kind, leaf.backend, leaf.rank)
            return made.require_grad() if leaf.is_require_grad() else made
        if type(leaf) is float:
            return self.numbers[next(self.names)]
        if isinstance(leaf, Module):
            return self._module(leaf)
        return leaf

    def _module(self, module: Module) -> Module:
        held = self.given.held[len(self.modules)]
        values = [next(self.values) for _ in held]
        places = {id(one): value for (_, one), value in zip(held, values, strict=True)}

        def tensor_for(one: Param | Tensor) -> Tensor:
            like = value_of(one)
            return Tensor(places[id(one)], like.kind, like.backend, like.rank)

        def move(param: Param) -> Param:
            tensor = tensor_for(param)
            if isinstance(param, RunningState):
                return param.derive(lambda _, __: tensor, param.device, False)
            wants = bool(param.is_require_grad())
            tensor = tensor.require_grad() if wants else tensor
            return type(param)(param.id, tensor, require_grad=wants)

        made = rebuild(module, move, tensor_for)
        self.modules.append(made)
        self.held.append(values)
        return made

    def set_states(self) -> None:
        """Let the optimizers remember what is written down."""
        given = self.given
        for (name, optim), rows in zip(given.optimizers, given.states, strict=True):
            made: dict[Any, Held] = {}
            for number, leaves in rows:
                found: list[Any] = []
                for i, leaf in enumerate(leaves):
                    if isinstance(leaf, Tensor):
                        value = next(self.values)
                        found.append(Tensor(value, leaf.kind, leaf.backend, leaf.rank))
                    else:
                        found.append(self.numbers[number_name(name, number, i)])
                held = optim._states[number]  # pyright: ignore[reportPrivateUsage] - nothing else tells
                state = state_with(held.state, iter(found))
                made[number] = held._replace(state=state, own=False)
            optim._states = made  # pyright: ignore[reportPrivateUsage] - put back after the run


class _Outputs:
    """What comes out of one run, as a list of tensors and a tree of places in it."""

    def __init__(self, given: Given, leaves: _Leaves):
        self.given, self.leaves = given, leaves
        self.flat: list[Tensor] = []
        self.known: dict[int, int] = {}  # of a value that is written down

    def of(self, result: object, optimizers: Sequence[OptimizerAdaptor]) -> Any:
        """The tensors; the trees; what optimizers and statistics have become."""
        self.optimizers = optimizers
        tree = EveryLeaf(WITH_MODELS, self._place)(result)
        states = [self._states(optim) for optim in optimizers]
        moves: list[tuple[int, int, int]] = []
        for at, module in enumerate(self.leaves.modules):
            _, held = form_of(module)
            for i, (_, one) in enumerate(held):
                if isinstance(one, RunningState):
                    value = lowest(one.val().value)
                    if value is not self.leaves.held[at][i]:
                        moves.append((at, i, self._add(one.val()).at))
        if not self.flat:
            what = "no tensor comes out"
            raise refused(what, "return the tensors that are wanted")
        return self.flat, tree, states, moves

    def _add(self, tensor: Tensor) -> Out:
        value = lowest(tensor.value)
        at = self.known.get(id(value))
        if at is None:
            at = self.known[id(value)] = len(self.flat)
            self.flat.append(tensor)
        return Out(at, tensor)

    def _place(self, leaf: object) -> Any:
        if isinstance(leaf, Tensor):
            if type(leaf) is not Tensor:
                raise refused("a quantized tensor comes out", "x.dequantize()")
            return self._add(leaf)
        if isinstance(leaf, Module):
            return self._model(leaf)
        if isinstance(leaf, GradientsParams):
            return NewGradients({n: self._add(g) for n, g in leaf.items()})
        if isinstance(leaf, Unknown):
            return leaf.formula
        is_ours = any(leaf is optim for optim in self.optimizers)
        if type(leaf) in PLAIN or is_ours:
            return leaf
        what = f"{type(leaf).__name__} comes out, which may be another one in each call"
        raise refused(what, "tensors, models and gradients, in lists or dataclasses")

    def _model(self, module: Module) -> NewModel:
        form, held = form_of(module)
        for at, values in enumerate(self.leaves.held):
            if form == form_of(self.leaves.modules[at])[0]:
                pairs = enumerate(zip(held, values, strict=True))
                new = {
                    i: self._add(value_of(one)).at
                    for i, ((_, one), value) in pairs
                    if lowest(value_of(one).value) is not value
                }
                return NewModel(at, new)
        what = "a model comes out that is built or frozen otherwise than those given"
        raise refused(what, "that before or after the call")

    def _states(self, optim: OptimizerAdaptor) -> list[Any]:
        """What an optimizer remembers for each parameter, and where it stands."""
        found: list[Any] = []
        held_by = optim._states  # pyright: ignore[reportPrivateUsage] - nothing else tells
        for number, held in held_by.items():
            leaves: list[Any] = []
            empty: list[Any] = []
            for leaf in leaves_of_state(held.state):
                if isinstance(leaf, Tensor):
                    place = self._add(leaf)
                    leaves.append(place)
                    empty.append(0)
                else:
                    is_formula = isinstance(leaf, Unknown)
                    leaves.append(leaf.formula if is_formula else known(leaf))
                    empty.append(0)
            state = state_with(held.state, iter(empty))
            found.append((number, held._replace(state=state, own=False), leaves))
        return found
