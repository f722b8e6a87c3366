"""Sequential: layers and functions in a row, each fed with what the one before gave."""

import difflib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self, overload

from burnbook.core.dropped import result_matters
from burnbook.core.errors import BurnbookError, ConfigError, DimError
from burnbook.module import Content, DisplaySettings, Module
from burnbook.module.display import function_text
from burnbook.module.fields import config_of, is_config

Layer = Callable[..., Any]  # a module is one, too


class Sequential(Module):
    """Layers and plain functions one after the other: out = fₙ(… f₂(f₁(x))).

    The first may take several inputs; each of the others takes the one value that the
    one before returned.

    Shapes: those of the layers
    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> from burnbook.nn import LinearConfig
        >>> from burnbook.tensor import Tensor, activation
        >>> device = Numpy()
        >>> fc, out = LinearConfig(4, 8).init(device), LinearConfig(8, 2).init(device)
        >>> model = Sequential(fc, activation.relu, out)
        >>> print(model)
        Sequential {
          0: Linear {d_input: 4, d_output: 8, bias: true, params: 40}
          1: relu
          2: Linear {d_input: 8, d_output: 2, bias: true, params: 18}
          params: 58
        }
        >>> model.forward(Tensor.ones([3, 4], device)).shape
        (3, 2)
        >>> model[0].weight.shape, len(model), len(model[1:])
        ((4, 8), 3, 2)
        >>> [path for path, _ in Sequential(fc=fc, act=activation.relu).named_params()]
        ['fc.weight', 'fc.bias']

    Why: in paths and records the names of the layers come without a name of a field
    before them, "0.weight", as in PyTorch's files. A function has no parameters and no
    part in records; that of a module may be left to a later function, as in
    `Sequential(lstm, lambda out: out[0])`.
    """

    spread = "layers"

    layers: dict[str, Any]

    def __init__(self, *layers: Any, **named: Any):
        """The layers in their order, called "0", "1", …, or by the names given.

        One list of layers, or one dict with names, does as well.

        Raises:
            ConfigError: some have names and others not; something is no layer.
        """
        self.layers = _named(layers, named)

    def forward(self, *inputs: Any) -> Any:
        """What the last layer makes; without layers, the input.

        Raises:
            BurnbookError: what a layer raises; one about a plain function says which.
        """
        x: Any = inputs[0] if len(inputs) == 1 else inputs
        for place, (name, layer) in enumerate(self.layers.items()):
            try:
                x = layer(x) if place else layer(*inputs)
            except BurnbookError as error:
                if not isinstance(layer, Module):
                    at = f"{name} ({function_text(layer)}), {place + 1} of {len(self)}"
                    error.facts.append(("layer", at))
                raise
        return x

    @overload
    def __getitem__(self, place: int | str) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> Self: ...
    def __getitem__(self, place: int | str | slice) -> Any:
        """A layer by position or name; a Sequential of some, which keep their names.

        Raises:
            DimError: there is no layer at that position.
            ConfigError: there is none of that name.
        """
        if isinstance(place, slice):
            return super().replace(layers=dict(list(self.layers.items())[place]))
        return self.layers[self._name(place)]

    def __len__(self) -> int:
        """How many layers there are."""
        return len(self.layers)

    def __getattr__(self, name: str) -> Any:
        """A layer by its name: `model.fc`."""
        layers = self.__dict__.get("layers", {})
        return layers[name] if name in layers else object.__getattribute__(self, name)

    def __bool__(self) -> bool:
        """A model, even without layers."""
        return True

    def __iter__(self) -> Iterator[Any]:
        """The layers, so that `Sequential(*model, layer)` has one more."""
        return iter(self.layers.values())

    def __contains__(self, layer: object) -> bool:
        """Whether it is one of the layers, or the name of one."""
        return layer in self.layers or any(held is layer for held in self)

    @result_matters("model = model.replace(name=layer)")
    def replace(self, **layers: object) -> Self:
        """A copy with other layers in the place of some: `replace(fc=…)`.

        Of those without names: `replace(**{"0": …})`, or `with_layer(0, …)`.
        """
        if set(layers) == {"layers"} and "layers" not in self.layers:
            return super().replace(layers=_named((layers["layers"],), {}))
        made = {self._name(name): layer for name, layer in layers.items()}
        return super().replace(layers={**self.layers, **_checked(made)})

    @result_matters("model = model.with_layer(place, layer)")
    def with_layer(self, place: int | str, layer: Any) -> Self:
        """A copy with another layer at a position, or in the place of a name."""
        return self.replace(**{self._name(place): layer})

    def custom_settings(self) -> DisplaySettings | None:
        """One layer per line."""
        return None

    def custom_content(self, content: Content) -> Content | None:
        """The layers by name; a function shows its own."""
        for name, layer in self.layers.items():
            content.add(name, layer)
        return content

    def _name(self, place: Any) -> str:
        """The name of the layer at a position, or the name itself."""
        names, count = list(self.layers), len(self.layers)
        if isinstance(place, str):
            if place in self.layers:
                return place
            near = difflib.get_close_matches(place, names, 1, 0.5)
            facts = [("layers", ", ".join(names) or "none")]
            cure = f'"{near[0]}"' if near else (f'"{names[0]}"' if names else None)
            raise ConfigError("layer", f"there is no layer {place!r}", facts, cure)
        try:
            return names[place]
        except IndexError:
            what = f"there is no layer {place}, as there are {count}"
            cure = f"an index from {-count} to {count - 1}" if count else None
        except TypeError:
            what = f"{type(place).__name__} is neither position, name nor slice"
            cure = 'model[0], model["0"] or model[1:]'
        raise DimError("index", what, cure=cure)


def _named(layers: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """The layers with their names, in their order."""
    if set(named) == {"layers"} and not layers and not callable(named["layers"]):
        layers, named = (named["layers"],), {}
    if layers and named:
        first = ", ".join(list(named)[:3])
        what = f"{len(layers)} layers without a name, and some with one: {first}"
        raise ConfigError("layers", what, cure="names for all of them, or for none")
    if len(layers) == 1 and isinstance(layers[0], (list, tuple)):
        layers = tuple(layers[0])
    elif len(layers) == 1 and isinstance(layers[0], Mapping):
        named, layers = dict(layers[0]), ()
    pairs = [row for row in layers if _is_pair(row)]
    if pairs and len(pairs) == len(layers):  # PyTorch's OrderedDict, or Keras's rows
        named = dict(pairs)
    return _checked(named or {str(i): layer for i, layer in enumerate(layers)})


def _is_pair(row: object) -> bool:
    return isinstance(row, tuple) and len(row) == 2 and isinstance(row[0], str)


def _checked(layers: dict[str, Any]) -> dict[str, Any]:
    """The layers, unless one is none, or its name cannot stand in a path."""
    for place, (name, layer) in enumerate(layers.items()):
        if not isinstance(name, str) or not name or "." in name:
            what = f"{name!r} cannot be the name of a layer"
            raise ConfigError("layers", what, cure='a text without dots, as "fc"')
        where = f"layer {name} ({place + 1} of {len(layers)})"
        if isinstance(layer, type):
            config = config_of(layer)
            made = f"{config.__name__}(…).init(device)" if config else ""
            what = f"the class {layer.__name__} is not a layer, one made of it is"
            raise ConfigError(where, what, cure=made or f"nn.{layer.__name__}()")
        if is_config(layer):
            what = f"a {type(layer).__name__} is not a layer, what it makes is"
            raise ConfigError(
                where, what, cure=f"{type(layer).__name__}(…).init(device)"
            )
        if not callable(layer):
            what = f"{type(layer).__name__} is neither a module nor a function"
            raise ConfigError(where, what, cure="nn.Relu(), or activation.relu")
    return layers
