"""Building blocks · Module. Module: plain annotated data that knows its parameters.

    class Model(Module):
        linear: Linear
        activation: Relu

        def forward(self, x):
            return self.activation.forward(self.linear.forward(x))

The annotated fields are the constructor, in their order, as in a dataclass. What Burn
derives for a struct follows from them: visiting and mapping parameters, records, moving
between devices, `valid()`, and the text that `print(model)` shows.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Self, dataclass_transform

from burnbook.backend.base import Backend
from burnbook.errors import ConfigError, explain, explain_fields
from burnbook.kinds import Float
from burnbook.module import records
from burnbook.module.display import Chosen, Content, DisplaySettings, layout
from burnbook.module.param import Param, ParamId, leaf
from burnbook.module.reparameterization import (
    Group,
    Reparameterized,
    Reparameterizer,
)
from burnbook.module.report import LoadReport
from burnbook.module.tree import (
    Tree,
    children,
    each_param,
    field_hints,
    rebuild,
    spelled,
    walk,
)
from burnbook.module.visitor import Labeled, per_kind, pick
from burnbook.tensor import Tensor


@dataclass_transform(eq_default=False, kw_only_default=False)
class Module(Tree):
    """A part of a model: fields, a `forward`, and everything that follows from them.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> class Scale(Module):
        ...     factor: Param
        ...     def forward(self, x):
        ...         return x * self.factor.val()
        >>> scale = Scale(Param.from_tensor(Tensor.full([3], 2.0, Numpy())))
        >>> scale.num_params()
        3
        >>> print(scale)
        Scale {
          factor: ParamTensor {rank: 1, shape: [3], kind: float}
          params: 3
        }

    Why: nothing here changes a module. What Burn consumes and returns is a new module
    here, and the old one stays valid.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclasses.dataclass(eq=False, repr=False)(cls)
        explain_fields(cls)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The same as `forward`."""
        return self.forward(*args, **kwargs)  # type: ignore[attr-defined] # by protocol

    def __setattr__(self, name: str, value: Any) -> None:
        hidden = isinstance(value, (Param, Module)) and not name.startswith("_")
        if hidden and name not in field_hints(type(self)):
            where = f"{type(self).__name__}.{name}"
            what = "only annotated fields are seen by optimizers and records"
            cure = f"a line `{name}: {type(value).__name__}` in the class"
            raise AttributeError(explain(where, what, cure=cure))
        object.__setattr__(self, name, value)

    # Parameters

    def visit(self, visitor: Any) -> None:
        """Show every parameter to a visitor, depth first, in the order of fields."""
        acts = per_kind(visitor, "visit")

        def look(param: Param) -> None:
            act = pick(acts, param.kind)
            if act is not None:
                act(param.id, param.val())

        each_param(self, look)

    def map(self, mapper: Any) -> Self:
        """The module with every parameter replaced by what the mapper makes of it."""
        acts = per_kind(mapper, "map")

        def change(param: Param) -> Param:
            act = pick(acts, param.kind)
            if act is None:
                return param
            value = param.val()
            made = act(param.id, value)
            return param if made is value else param.initialized(param.id, made)

        return rebuild(self, change, _same)

    def num_params(self) -> int:
        """How many numbers there are to learn: the elements of all Float parameters."""
        counts = [0]
        each_param(self, lambda p: counts.append(_count(p)))
        return sum(counts)

    def named_params(self) -> list[tuple[str, Param]]:
        """Every parameter with its path: [("linear.weight", …), …]."""
        rows = walk(self)
        return [(path, held) for path, held in rows if isinstance(held, Param)]

    def no_grad(self) -> Self:
        """The module with its Float parameters left alone by gradients."""
        return rebuild(self, _frozen, _same)

    def freeze_group(self, group: Group) -> Self:
        """The module with the Float parameters of a group left alone by gradients."""
        return self._with_group(group, _frozen)

    def unfreeze_group(self, group: Group) -> Self:
        """The module with the Float parameters of a group to be learned."""
        return self._with_group(group, _learned)

    def apply_reparameterization(self, reparameterizer: Reparameterizer) -> Self:
        """The module with Float parameters that are computed from others.

        The reparameterizer sees each one with its path, and answers with the parameter
        to store and the module to attach, or None.
        """
        made: dict[Param, Param] = {}
        for path, param in self.named_params():
            if param.kind is Float and param not in made:
                stored, attached = reparameterizer.reparameterize(path, param)
                made[param] = stored
                if attached is not None:
                    made[param] = Reparameterized(stored, attached)
        return rebuild(self, lambda param: made.get(param, param), _same, fold=_nested)

    def apply_lora(self, lora: Reparameterizer) -> Self:
        """The module frozen, with a `Lora` adapter for each of its matrices."""
        return self.apply_reparameterization(lora)

    def apply_qlora(self, qlora: Reparameterizer) -> Self:
        """The module quantized and frozen, with a `QLora` adapter for each matrix."""
        return self.apply_reparameterization(qlora)

    def _with_group(self, group: Group, change: Callable[[Param], Param]) -> Self:
        """The module with the parameters of a group changed."""
        rows = self.named_params()
        chosen = {param for path, param in rows if group.matches(param.id, path)}
        return rebuild(self, lambda p: change(p) if p in chosen else p, _same)

    def quantize_weights(self, quantizer: Any, group: Group | None = None) -> Self:
        """The module with its Float parameters as codes; see `burnbook.quantization`.

        group: quantize these parameters only.
        """
        return self.map(Labeled(quantizer, self.named_params(), group))

    def quantize_weights_group(self, quantizer: Any, group: Group) -> Self:
        """The module with the parameters of a group as codes."""
        return self.quantize_weights(quantizer, group)

    # Devices

    def devices(self) -> list[Backend]:
        """Where the parameters and constant tensors are, each device once."""
        return self.collect_devices([])

    def collect_devices(self, devices: Sequence[Backend]) -> list[Backend]:
        """`devices`, and those of this module that are not among them."""
        found = list(devices)
        for _, held in walk(self):
            device = held.device if isinstance(held, Param) else held.backend
            if all(device is not other for other in found):
                found.append(device)
        return found

    def to_device(self, device: Backend) -> Self:
        """Move the tensors; what is there already stays as it is."""

        def move(param: Param) -> Param:
            change = _move_leaf if param.is_require_grad else _move
            return param.derive(change, device, param.is_require_grad)

        return rebuild(self, move, lambda tensor: _move(tensor, device))

    def fork(self, device: Backend) -> Self:
        """Move and detach: the parameters are leaves of a graph of their own."""

        def move(param: Param) -> Param:
            change = _fork if param.is_require_grad else _move_plain
            return param.derive(change, device, param.is_require_grad)

        return rebuild(self, move, lambda tensor: _move_plain(tensor, device))

    def valid(self) -> Self:
        """The module on the backend below Autodiff: no gradients, no dropout.

        What is attached to a parameter, such as a LoRA adapter, becomes part of it.
        """

        def strip(param: Param) -> Param:
            inner = _below(param.device)
            if inner is param.device:
                return param
            return param.derive(_strip, inner, require_grad=False)

        return rebuild(self, strip, lambda t: _strip(t, t.backend), fold=_folded)

    def train(self) -> Self:
        """The module under Autodiff, with all Float parameters to be learned."""

        def lift(param: Param) -> Param:
            return param.derive(_lift, _above(param.device), param.kind is Float)

        return rebuild(
            self, lift, lambda t: _lift(t, _above(t.backend)).set_require_grad(False)
        )

    # Records

    def into_record(self) -> Any:
        """The record: names, ids and elements of all parameters."""
        return records.module_record(self)

    def load_record(self, record: Any, partial: bool = False) -> Self:
        """The module with the values and ids of a record.

        If anything does not match, nothing is loaded and one RecordError lists it all;
        with `partial` the module keeps its own values there.
        """
        return records.load_record(self, record, partial)

    def load_partial(self, record: Any) -> tuple[Self, LoadReport]:
        """The module with what fits of a record, and a report of the rest.

        Example:
            >>> from burnbook.backend import Numpy
            >>> from burnbook.nn import LinearConfig
            >>> record = LinearConfig(2, 3).init(Numpy()).into_record()
            >>> layer, report = LinearConfig(2, 4).init(Numpy()).load_partial(record)
            >>> print(report)
            Linear: 0 of 2 parameters loaded
              kept    weight  record [2, 3], module [2, 4]
              kept    bias    record [3], module [4]
        """
        return records.load_partial(self, record)

    def save_file(self, path: Any, recorder: Any) -> None:
        """Write the record to a file; the recorder adds its extension."""
        recorder.record(self.into_record(), path)

    def load_file(
        self, path: Any, recorder: Any, device: Backend | None = None
    ) -> Self:
        """The module with the values of a file that `save_file` wrote."""
        if device is None:
            device = next(iter(self.devices()), None)
        return self.load_record(recorder.load(path, device))

    def clone(self) -> Self:
        """Another module with the same fields and the same parameters."""
        return rebuild(self, _same, _same)

    # Display

    def custom_settings(self) -> DisplaySettings | None:
        """How this class prints; None leaves it to the modules above."""
        return None

    def custom_content(self, content: Content) -> Content | None:
        """What this class shows, added to `content`; None shows every field."""
        return None

    def format(self, settings: DisplaySettings | None = None, level: int = 1) -> str:
        """The text of the module under these settings."""
        settings = settings or DisplaySettings()
        own = self.custom_settings()
        settings = own.inherit(settings) if own else settings
        content = None
        if not settings.show_all_attributes:
            content = self.custom_content(Content(settings, level + 1))
        if content is None:
            content = self._all_fields(Content(settings, level + 1))
        if content.single is not None:
            return content.single
        name = content.top_level_type or type(self).__name__
        if not content.attributes:
            return name
        return layout(name, content.attributes, self.num_params(), settings, level)

    def _all_fields(self, content: Content) -> Content:
        hints = {spelled(name): h for name, h in field_hints(type(self)).items()}
        for name, value in children(self):
            hint = hints[name]
            if hint.choice and isinstance(value, Module):
                value = Chosen(value, hint.variant(type(value)))
            content.add(name, value)
        return content

    def __str__(self) -> str:
        return self.format()

    def __repr__(self) -> str:
        return self.format()


def list_param_ids(module: Module) -> list[ParamId]:
    """The ids of all parameters of a module, in the order of visiting."""
    found: list[ParamId] = []
    each_param(module, lambda param: found.append(param.id))
    return found


def _count(param: Param) -> int:
    return param.shape.num_elements() if param.kind is Float else 0


def _same(value: Any) -> Any:
    return value


def _frozen(param: Param) -> Param:
    return param.set_require_grad(False) if param.kind is Float else param


def _learned(param: Param) -> Param:
    return param.set_require_grad(True) if param.kind is Float else param


def _folded(param: Reparameterized) -> Param:
    """A plain parameter with the value that the attached module makes."""
    value = param.val()
    plain = _strip(value, value.backend) if value.backend.ad_enabled else value
    return Param(param.id, plain, require_grad=False)


def _nested(param: Reparameterized) -> Param:
    name = param.attached.NAME
    raise ConfigError(
        "apply_reparameterization",
        f"a parameter of the module has {name} attached, and there can be only one",
        [("parameter", repr(param.stored))],
        "model.valid(), which makes it plain again",
    )


def _below(device: Backend) -> Backend:
    return device.inner if device.ad_enabled else device


def _above(device: Backend) -> Backend:
    return device if device.ad_enabled else device.autodiff()


def _move(tensor: Tensor, device: Backend) -> Tensor:
    return tensor.to_device(device)


def _move_leaf(tensor: Tensor, device: Backend) -> Tensor:
    return tensor if tensor.backend is device else _fork(tensor, device)


def _fork(tensor: Tensor, device: Backend) -> Tensor:
    return leaf(tensor.to_device(device), required=True)


def _move_plain(tensor: Tensor, device: Backend) -> Tensor:
    return leaf(tensor.to_device(device), required=False)


def _lift(tensor: Tensor, device: Backend) -> Tensor:
    above = tensor if tensor.backend is device else Tensor.from_inner(tensor, device)
    return leaf(above, tensor.kind is Float)


def _strip(tensor: Tensor, device: Backend) -> Tensor:
    return tensor.inner() if tensor.backend.ad_enabled else tensor
