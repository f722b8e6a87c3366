"""Models among the arguments of a training step: their weights come with each step.

A discriminator, a teacher or a target network is another one in each step, as modules
never change. So the arrays that it holds are inputs of the program; the rest of it, its
classes and settings, must be as it was at the capture.
"""

from collections.abc import Sequence
from typing import Any

from burnbook.core.errors import ArgumentError, Fact, GraphError
from burnbook.module import Module, Param, RunningState
from burnbook.module.tree import MODULES, rebuild
from burnbook.program.trees import lowest, running_states
from burnbook.tensor import Tensor
from burnbook.tensor.quantized import QuantizedTensor


class ModuleInput:
    """The form of a model that was given, and the arrays that belong into it."""

    def __init__(self, module: Module):
        self.form = _form_of(module)
        self.names = [path for path, _ in _held_by(module)]
        self.latest: tuple[Module, list[Tensor]] | None = None

    @staticmethod
    def fits(module: Module) -> bool:
        """Whether all arrays of a model may be inputs: quantized ones are constants."""
        values = [_value(held) for _, held in _held_by(module)]
        return not any(isinstance(value, QuantizedTensor) for value in values)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "latest": None}

    def tensors(self, module: Any, name: str) -> list[Tensor]:
        """The tensors of a model of this form, in the order of the inputs.

        Raises:
            ArgumentError: it is no model of this form.
        """
        if self.latest is not None and self.latest[0] is module:
            return self.latest[1]
        if not isinstance(module, Module):
            kind = type(module).__name__
            cure = "a model like that of the examples"
            raise ArgumentError("program", f"{name} is {kind}, and no model", cure=cure)
        form = _form_of(module)
        if form != self.form:
            raise ArgumentError(
                "program",
                f"{name} has another form than the model that was captured",
                _difference(self.form, form),
                "capture again with it; or a model that differs in its weights alone",
            )
        made = [_value(held) for _, held in _held_by(module)]
        is_still = not running_states([("", module)])  # which change in place
        self.latest = (module, made) if is_still else None
        return made

    def recorded(self, module: Module, values: Sequence[Any]) -> Module:
        """The model with other values in the places of its arrays."""
        places = {id(held): i for i, (_, held) in enumerate(_held_by(module))}

        def tensor_for(held: Param | Tensor) -> Tensor:
            like = _value(held)
            value = values[places[id(held)]]
            return Tensor(value, like.kind, like.backend, like.rank)

        def move(param: Param) -> Param:
            tensor = tensor_for(param)
            if isinstance(param, RunningState):
                made = param.derive(lambda _, __: tensor, param.device, False)
                made.is_frozen = param.is_frozen  # type: ignore[attr-defined] # of its type
                return made
            is_wanted = param.is_require_grad()
            tensor = tensor.require_grad() if is_wanted else tensor
            return type(param)(param.id, tensor, require_grad=is_wanted)

        return rebuild(module, move, tensor_for)


def opened(module: Module) -> ModuleInput | None:
    """A model as inputs; None where its arrays are constants."""
    return ModuleInput(module) if ModuleInput.fits(module) else None


def refuse_moves(modules: Sequence[tuple[Module, dict[int, Any]]]) -> None:
    """Raise for running statistics that a step moves, as nobody takes them over."""
    for module, before in modules:
        for state in running_states([("", module)]):
            if lowest(state.val().value) is not before[id(state)]:
                what = "a model among the arguments moves its running statistics"
                cure = "model.eval() or model.no_grad() of it, here and in each step"
                raise GraphError("capture", what, cure=cure)


def statistics_of(module: Module) -> dict[int, Any]:
    """What the running statistics of a model are, by the identity of each."""
    return {id(s): lowest(s.val().value) for s in running_states([("", module)])}


LEAVES = (Param, Tensor)


def _value(held: Param | Tensor) -> Tensor:
    return held.val() if isinstance(held, Param) else held


def _held_by(module: Module) -> list[tuple[str, Param | Tensor]]:
    """Every parameter, statistic and constant of a model once, with its path."""
    found: dict[int, tuple[str, Param | Tensor]] = {}
    for path, held in MODULES.leaves(module):
        if isinstance(held, LEAVES):
            found.setdefault(id(held), (".".join(path), held))
    return list(found.values())


def _form_of(module: Module) -> list[tuple[str, Any]]:
    """All of a model but the elements of its arrays, by the path."""
    found: list[tuple[str, Any]] = []
    first: dict[int, str] = {}
    for path, node in MODULES.nodes(module):
        name = ".".join(path)
        if isinstance(node, LEAVES):
            value, shared = _value(node), first.setdefault(id(node), name)
            facts: list[Any] = [
                type(node).__name__,
                value.kind,
                value.dims(),
                value.backend,
            ]
            if isinstance(node, RunningState):
                facts.append(node.is_frozen)
            elif isinstance(node, Param):
                facts.append(node.is_require_grad())
            found.append((name, (*facts, shared)))
        elif isinstance(node, Module) or MODULES.kind(type(node)) is not None:
            found.append((name, type(node)))
        else:
            found.append((name, node))
    return found


def _difference(one: list[tuple[str, Any]], other: list[tuple[str, Any]]) -> list[Fact]:
    """The first place in which two forms differ."""
    pairs = zip(one, other, strict=False)
    at, before, now = next(
        ((n or m, a, b) for (n, a), (m, b) in pairs if (n, a) != (m, b)),
        ("size", len(one), len(other)),
    )
    return [("captured", f"{at} {_text(before)}"), ("given", f"{at} {_text(now)}")]


def _text(part: Any) -> str:
    if isinstance(part, tuple):
        return f"{part[0]} {list(part[2])}"
    return part.__name__ if isinstance(part, type) else repr(part)
