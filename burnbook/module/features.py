"""Features: what some layers of a model gave in one forward pass.

    found = model.features(x, at=["conv1", "blocks.2"])
    found["conv1"], found.output

The model stays as it is: a copy runs whose layers note what they return. Parameters are
the same, so a backward pass from the output reaches those of the model.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from burnbook.core.dtypes import Float
from burnbook.core.errors import ConfigError, GraphError
from burnbook.module.layers import layers_of, listen
from burnbook.module.modes import no_part
from burnbook.module.tree import PARTS, Tree
from burnbook.tensor import Tensor

DEEPEST = 3  # of the values in what a layer returns


class Features(Mapping[str, Any]):
    """What layers returned, by their paths: `found["conv1"]`.

    output: what the whole model returned. A layer that ran several times has what it
    returned last; `calls` has all.
    """

    def __init__(self, paths: Sequence[Any]):
        self.output: Any = None
        self._calls: dict[str, list[Any]] = {path: [] for path in paths}
        self._grads: dict[str, list[dict[int, Tensor]]] = {path: [] for path in paths}

    def note(self, path: str, value: object) -> None:
        """Add what a call of a layer returned, and wait for its gradient."""
        found: dict[int, Tensor] = {}
        self._calls[path].append(value)
        self._grads[path].append(found)
        for place, tensor in enumerate(_tensors(value)):
            if hasattr(tensor.value, "node"):
                _watch(tensor, place, found)

    def calls(self, path: str) -> list[Any]:
        """What a layer returned, one entry for each time that it ran."""
        return list(self._calls[self._known(path)])

    def grad(self, path: str, call: int = -1) -> Any:
        """The gradient of what a layer returned, after `backward()` of something.

        It is on the inner backend; of a layer that returns several tensors, a list of
        those of the Float ones. None stands where the backward pass did not come by.

        call: which time, where the layer ran several times; the last by default.

        Raises:
            ConfigError: the layer is not one of those asked for, or ran less often.
            GraphError: nothing was tracked, so there is no gradient.
        """
        value = self._of(path, call)
        tensors = list(_tensors(value))
        if not any(hasattr(tensor.value, "node") for tensor in tensors):
            what = f"what {path} returned was not tracked"
            cure = "a model on Autodiff, such as model.eval() instead of model.valid()"
            raise GraphError("features", what, cure=cure)
        found = self._grads[path][call]
        grads = [found.get(place) for place in range(len(tensors))]
        return grads[0] if isinstance(value, Tensor) else grads

    def __getitem__(self, path: str) -> Any:
        """What a layer returned, the last time that it ran."""
        return self._of(path, -1)

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def __contains__(self, path: object) -> bool:
        return path in self._calls

    def __repr__(self) -> str:
        rows = [f"{path}: {_text(made)}" for path, made in self._calls.items()]
        return f"Features({', '.join(rows)})"

    def _of(self, path: str, call: int) -> Any:
        made = self._calls[self._known(path)]
        try:
            return made[call]
        except IndexError:
            what = (
                f"{path} did not run" if not made else f"{path} ran {len(made)} times"
            )
            cure = "a layer that forward calls" if not made else "call=-1, the last one"
            raise ConfigError("features", what, cure=cure) from None

    def _known(self, path: str) -> str:
        if path in self._calls:
            return path
        raise no_part("features", path, list(self._calls))


def features(
    model: Any, at: str | Sequence[str], method: str, inputs: Any, named: Any
) -> Features:
    """See `Module.features`."""
    where = f"{type(model).__name__}.features"
    copy = model.clone()  # the same parameters, running states of its own
    places = dict(_places(copy))
    paths = [at] if isinstance(at, str) else list(at)
    found = Features(paths)
    for path in dict.fromkeys(paths):
        if path not in places:
            raise no_part(where, path, list(places))
        places[path](_noting(found, path))
    if not callable(getattr(model, method, None)):
        what = f"{type(model).__name__} has no method {method!r}"
        raise ConfigError(where, what, cure='method="forward"')
    found.output = getattr(copy, method)(*inputs, **named)
    return found


Wrap = Callable[[Callable[..., Any]], Any]


def _places(model: Tree) -> Iterator[tuple[str, Callable[[Wrap], None]]]:
    """What can be listened to, by path: layers, and the functions in a Sequential."""
    for path, layer, _ in layers_of(model):
        if path:
            yield path, functools.partial(listen, layer)
        if layer.spread:
            held = getattr(layer, layer.spread)
            for name, part in PARTS.parts(layer):
                if not isinstance(part, Tree):
                    at = f"{path}.{name}" if path else name
                    yield at, functools.partial(_listen_in, held, name)


def _listen_in(held: dict[str, Any], name: str, wrap: Wrap) -> None:
    held[name] = wrap(held[name])


def _noting(found: Features, path: str) -> Callable[[Callable[..., Any]], Any]:
    """What puts itself around each `forward…` of one layer."""
    inside = [0]  # a forward method may call another one of the same layer

    def around(run: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*args: object, **named: object) -> Any:
            inside[0] += 1
            try:
                out = run(*args, **named)
            finally:
                inside[0] -= 1
            if not inside[0]:
                found.note(path, out)
            return out

        return noting

    return around


def _watch(tensor: Tensor, place: int, found: dict[int, Tensor]) -> None:
    def keep(grad: Tensor) -> None:
        found[place] = grad

    tensor.hook(keep)


def _tensors(value: object, depth: int = 0) -> Iterator[Tensor]:
    """The Float tensors in what a layer returned."""
    if isinstance(value, Tensor):
        if value.kind is Float:
            yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part, depth + 1)
    elif depth < DEEPEST:
        held = value if isinstance(value, dict) else getattr(value, "__dict__", {})
        for part in held.values():
            yield from _tensors(part, depth + 1)


def _text(calls: list[Any]) -> str:
    if not calls:
        return "not run"
    last, again = calls[-1], f" × {len(calls)}" if len(calls) > 1 else ""
    shown = str(list(last.dims())) if isinstance(last, Tensor) else type(last).__name__
    return shown + again
