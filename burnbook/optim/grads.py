"""Gradients by parameter, apart from the graph they left.

`loss.backward()` gives the gradients of a graph; GradientsParams are those of a module,
found by the ids of its parameters. So they can be split, added up over several batches,
sent elsewhere, and given to one optimizer or to several.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple, Self

from burnbook.backend.base import Backend
from burnbook.core.call_source import texts_of_call
from burnbook.core.cut_source import cut_behind
from burnbook.core.dtypes import Float
from burnbook.core.error_context import modules_around
from burnbook.core.errors import GraphError
from burnbook.core.other_forms import answers_forms
from burnbook.core.roles import GRADIENTS, MODEL, in_right_order
from burnbook.grad_clipping.clipping import global_norm, not_gradients
from burnbook.module import Module, Param, ParamId, list_param_ids
from burnbook.module.cuts import check_whole
from burnbook.module.tree import params_of
from burnbook.tensor import Tensor


class Spent(NamedTuple):
    """Who took the gradient of a parameter out, and for a module of which class."""

    where: str
    module: type


@answers_forms("GradientsParams")
class GradientsParams:
    """The gradient of each parameter, on the backend below Autodiff.

    Example:
        >>> grads = GradientsParams()
        >>> len(grads), grads.is_empty(), grads.get(ParamId(1))
        (0, True, None)
    """

    __slots__ = ("_by_id", "spent")

    def __init__(self, by_id: dict[ParamId, Tensor] | None = None):
        self._by_id = {} if by_id is None else by_id
        self.spent: dict[ParamId, Spent] = {}

    @classmethod
    def from_grads(cls, grads: Any, module: Module) -> Self:
        """Take the gradients of a module's parameters out of what backward() gave.

        It is an error when there are gradients, but none of this module: another model
        made the loss, an older copy of this one, or one that is frozen.
        """
        if not hasattr(grads, "remove") or isinstance(grads, GradientsParams):
            raise _not_of_a_graph(grads)
        found = cls._taken("from_grads", grads, module, params_of(module))
        if found.is_empty() and len(grads):
            taken = getattr(grads, "taken", ())
            if any(number in taken for number in list_param_ids(module)):
                name = type(module).__name__
                what = f"an earlier call took the gradients of {name} out"
                cure = "call from_grads once for each backward(), and keep its result"
                raise GraphError("from_grads", what, cure=cure)
            raise _of_others(grads, module)
        return found

    @classmethod
    def from_module(cls, grads: Any, module: Module) -> Self:
        """The same for a part of a model: the gradients of the rest stay in `grads`."""
        return cls._taken("from_module", grads, module, params_of(module))

    @classmethod
    def from_params(cls, grads: Any, module: Module, ids: Iterable[ParamId]) -> Self:
        """Only the parameters with these ids; the others stay in `grads`."""
        wanted = set(ids)
        params = [p for p in params_of(module) if p.id in wanted]
        return cls._taken("from_params", grads, module, params)

    @classmethod
    def _taken(
        cls, where: str, grads: Any, module: Module, params: Iterable[Param]
    ) -> Self:
        found: dict[ParamId, Tensor] = {}
        for param in params:
            if param.is_initialized and param.kind is Float:
                grad = param.val().grad_remove(grads)
                if grad is not None:
                    found[param.id] = grad
        if hasattr(grads, "taken"):
            grads.taken.update(found)
        if hasattr(grads, "nodes") and len(grads):  # of other models, or of inputs
            check_whole(where, grads, module)
        return cls(found)

    def get(self, id: ParamId) -> Tensor | None:  # noqa: A002 - Burn's word
        """The gradient of a parameter; None if it has none.

        Raises:
            GraphError: a step of an optimizer, or an accumulator, has taken it out.
        """
        found = self._by_id.get(id)
        if found is None and id in self.spent:
            raise _used_up("get", self.spent[id], "look at it")
        return found

    def held(self, id: ParamId) -> Tensor | None:  # noqa: A002
        """The gradient of a parameter if it is still here, whoever took it."""
        return self._by_id.get(id)

    def remove(self, id: ParamId) -> Tensor | None:  # noqa: A002
        """The same, and take it out."""
        return self._by_id.pop(id, None)

    def register(self, id: ParamId, tensor: Tensor) -> None:  # noqa: A002
        """Put a gradient in, in place of an older one."""
        self._by_id[id] = tensor

    def items(self) -> Iterator[tuple[ParamId, Tensor]]:
        """Ids and gradients."""
        return iter(self._by_id.items())

    def norm(self) -> float:
        """The length of all gradients taken as one vector: √Σ‖g‖²; 0 without any.

        Example:
            >>> grads = GradientsParams({ParamId(1): Tensor.from_data([3.0, 4.0])})
            >>> grads.norm()
            5.0
        """
        if self.spent and not self._by_id:
            raise _used_up("norm", next(iter(self.spent.values())), "ask for it")
        return global_norm(self._by_id.values())

    def is_empty(self) -> bool:
        """Whether there is no gradient."""
        return not self._by_id

    def to_device(self, device: Backend, module: Module) -> Self:
        """The gradients of a module's parameters, on another device."""
        found: dict[ParamId, Tensor] = {}
        below = device.inner if device.ad_enabled else device
        for number in list_param_ids(module):
            grad = self._by_id.get(number)
            if grad is not None:
                found[number] = grad.to_device(below)
        return type(self)({**self._by_id, **found})

    def __len__(self) -> int:
        return len(self._by_id)

    def __repr__(self) -> str:
        used = ""
        if self.spent:
            by = next(iter(self.spent.values())).where
            used = f", {len(self.spent)} used by {by}"
        return f"GradientsParams({len(self)} gradients{used})"


def _not_of_a_graph(grads: object) -> GraphError:
    """The error for what backward() has not given: a loss, or gradients of a module."""
    what = f"{type(grads).__name__} is not what backward() returns"
    text = (texts_of_call("from_grads") or ("",))[0]
    cure = "from_grads(loss.backward(), model)"
    if isinstance(grads, Tensor) and text:
        cure = f"from_grads({text}.backward(), model)"
    elif isinstance(grads, GradientsParams):
        cure = (
            f"{text or 'grads'} as they are: optim.step(lr, model, {text or 'grads'})"
        )
    elif isinstance(grads, GradientsAccumulator):
        cure = f"{text or 'accumulator'}.grads() in place of this call"
    return GraphError("from_grads", what, cure=cure)


def _used_up(where: str, by: Spent, act: str) -> GraphError:
    """The error for a gradient that is not there any more."""
    what = f"{by.where} has used the gradients up: it takes each of them out"
    cure = f"{act} before {by.where}: norm = grads.norm()"
    return GraphError(f"GradientsParams.{where}", what, cure=cure)


def _of_others(grads: Any, module: Module) -> GraphError:
    """The error for gradients of which none is that of a parameter of a module."""
    name = type(module).__name__
    params = [p for p in params_of(module) if p.kind is Float]
    shapes = grads.shapes() if hasattr(grads, "shapes") else []
    known = {tuple(param.shape) for param in params}
    facts = [("gradients", ", ".join(str(list(shape)) for shape in shapes[:4]))]
    if not params:
        what = f"{name} has no parameter: a field of type Tensor is not trained"
        cure = "Param.from_tensor(…) for a weight, in a field of type Param"
        return GraphError("from_grads", what, facts, f"{cure}; {_OF_INPUTS}")
    if not any(param.is_require_grad for param in params):
        what = f"all parameters of {name} are frozen, so none has a gradient"
        cure = "model.unfreeze_group(ParamGroup.all()) before the forward"
        return GraphError("from_grads", what, facts, f"{cure}; {_OF_INPUTS}")
    if shapes and known.isdisjoint(shapes):  # those of inputs
        what = f"the loss reaches no parameter of {name}: frozen in the forward, or cut"
        found = cut_behind()
        cure = found and found.cure()
        if found:
            facts.append(found.fact())
        cure = cure or "model.forward(x), without no_grad() and valid()"
        return GraphError("from_grads", what, facts, f"{cure}; {_OF_INPUTS}")
    owner = _owner_of(grads, module)
    if owner:
        what = f"the {len(grads)} gradients are those of {owner}, another {name}"
        if len(params_of(module)) != len(grads):
            what = f"the {len(grads)} gradients are those of {owner}"
        cure = f"from_grads(…, {owner}), or a loss that this {name} computed"
        return GraphError("from_grads", what, cure=cure)
    return GraphError(
        "from_grads",
        f"none of the {len(grads)} gradients is that of a parameter of {name}",
        cure="the very model that computed the loss, not an older or newer copy, nor a "
        "frozen one; from_module for a part that may have no gradient",
    )


def _owner_of(grads: Any, module: Module) -> str | None:
    """The name that the reader's lines have for the model that made the loss."""
    nodes = set(grads.nodes()) if hasattr(grads, "nodes") else set()
    for name, model in modules_around().items():
        if model is not module and name.isidentifier() and name != "self":
            held = (p.val().value for p in params_of(model) if p.is_initialized)
            if any(getattr(value, "node", None) in nodes for value in held):
                return name
    return None


_OF_INPUTS = "x.grad(grads) for the gradient of an input"


class MultiGradientsParams:
    """The gradients of one module from several devices, each in its own container.

    Example:
        >>> from burnbook.backend import Numpy
        >>> grads = MultiGradientsParams([(GradientsParams(), Numpy())])
        >>> grads.remove(ParamId(1)) is None
        True
    """

    __slots__ = ("grads",)

    def __init__(self, grads: Iterable[tuple[GradientsParams, Backend]] = ()) -> None:
        self.grads = list(grads)

    def add(self, grads: GradientsParams, device: Backend) -> None:
        """One more container, and the device it comes from."""
        self.grads.append((grads, device))

    def remove(self, id: ParamId) -> tuple[Tensor, Backend] | None:  # noqa: A002
        """The sum for a parameter and the device it is on, taken out of all containers.

        Why: where the sum is made follows from the id, so that a module's sums are
        shared out evenly among the devices.
        """
        count = len(self.grads)
        total = None
        for offset in range(count):
            grad = self.grads[(int(id) + offset) % count][0].remove(id)
            if grad is None:
                continue
            total = grad if total is None else total + grad.to_device(total.backend)
        return None if total is None else (total, total.backend)

    def summed(self) -> GradientsParams:
        """The sums of all parameters, taken out of all containers."""
        held = [grads for grads, _ in self.grads]
        names = dict.fromkeys(name for grads in held for name, _ in grads.items())
        found = {name: self.remove(name) for name in names}
        return GradientsParams({name: pair[0] for name, pair in found.items() if pair})

    def __len__(self) -> int:
        return len(self.grads)

    def __repr__(self) -> str:
        parts = ", ".join(f"{len(grads)} on {device!r}" for grads, device in self.grads)
        return f"MultiGradientsParams({parts})"


class GradientsAccumulator:
    """Adds up gradients over several batches, to step as if they had been one.

    Example:
        >>> accumulator = GradientsAccumulator()
        >>> len(accumulator.grads())
        0
    """

    __slots__ = ("_module", "_sum")

    def __init__(self) -> None:
        self._sum = GradientsParams()
        self._module: type = object  # the class of the last module

    def accumulate(self, module: Module, grads: GradientsParams) -> None:
        """Add the gradients of a module's parameters; others are left out."""
        if not hasattr(grads, "is_empty"):
            order = in_right_order("accumulate", (MODEL, GRADIENTS), (module, grads))
            if order:
                raise GraphError("accumulate", order[0], cure=order[1])
            raise not_gradients("accumulate", 1, grads, model=0)
        taken: list[ParamId] = []
        given = len(grads)
        for number in list_param_ids(module):
            grad = grads.remove(number)
            if grad is not None:
                taken.append(number)
                held = self._sum.held(number)
                self._sum.register(number, grad if held is None else held + grad)
        if taken:
            self._module = type(module)
            self._sum.spent.clear()
        spend("accumulate", grads, module, taken)
        if given and not taken:
            what = f"none of the {given} gradients is of a parameter of "
            cure = "GradientsParams.from_grads(loss.backward(), model), of this model"
            raise GraphError("accumulate", what + type(module).__name__, cure=cure)

    def grads(self) -> GradientsParams:
        """The sums (not averages), and start again."""
        sums, self._sum = self._sum, GradientsParams()
        known = [number for number, _ in sums.items()] or list(sums.spent)
        took = Spent("accumulator.grads()", self._module)
        self._sum.spent = dict.fromkeys(known, took)
        return sums

    def __repr__(self) -> str:
        return f"GradientsAccumulator({len(self._sum)} gradients)"


def lowest(tensor: Tensor) -> Tensor:
    """The numbers of a tensor on the backend that no Autodiff is around."""
    while tensor.backend.ad_enabled:
        tensor = tensor.inner()
    return tensor


def spend(where: str, grads: Any, module: Module, taken: Collection[ParamId]) -> None:
    """Remember whose gradients were taken out; raise if that had happened before.

    Why the class: a part's optimizer may take all there is, before that of the whole
    finds nothing; the same model a second time is a mistake.
    """
    spent: dict[ParamId, Spent] = getattr(grads, "spent", {})
    if taken:
        spent.update(dict.fromkeys(taken, Spent(where, type(module))))
    if taken or not spent:
        return
    ids = list_param_ids(module)
    found = [spent[number] for number in ids if number in spent]
    if not found or (found[0].module is not type(module) and len(found) < len(ids)):
        return
    what = f"the gradients are used up: an earlier {found[0].where} took them out"
    cure = "GradientsParams.from_grads(loss.backward(), model), anew for each step"
    if found[0].where.startswith("accumulator"):
        what = "accumulator.grads() has given the sums before, and started again"
        cure = "grads = accumulator.grads(), once for each step"
    if found[0].where == "accumulate":
        cure = "optim.step(lr, model, accumulator.grads())"
        what = "the gradients are used up: accumulate took them out, and holds the sums"
    raise GraphError(where, what, cure=cure)
