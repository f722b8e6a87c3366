"""Module: plain annotated data that knows its parameters.

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
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

from burnbook.backend.base import Backend
from burnbook.core.argument_cures import misfit_of_call
from burnbook.core.call_source import own_call_of
from burnbook.core.converters import ANYTHING, TypeSpec, remember_scope
from burnbook.core.dropped import result_matters
from burnbook.core.dtypes import Float
from burnbook.core.errors import (
    ArgumentError,
    BurnbookError,
    ConfigError,
    FieldError,
    RecordError,
    UnknownNameError,
    explain,
    explain_fields,
    warn_caller,
)
from burnbook.core.other_forms import answers_forms
from burnbook.core.other_names import answers
from burnbook.core.tree import like
from burnbook.module import modes, records
from burnbook.module.display import (
    ONE_LINE,
    Chosen,
    Content,
    DisplaySettings,
    Present,
    Shown,
    is_usual,
    layout,
)
from burnbook.module.features import Features, features
from burnbook.module.fields import (
    check_fields,
    check_settings,
    guard_constructor,
    known_fields,
    refuse_change,
)
from burnbook.module.files import files
from burnbook.module.param import Param, ParamId, leaf
from burnbook.module.reparameterization import (
    Group,
    Reparameterized,
    Reparameterizer,
    members,
)
from burnbook.module.report import LoadReport, Store
from burnbook.module.running import RunningState
from burnbook.module.tree import (
    Tree,
    children,
    field_specs,
    named_arm,
    params_of,
    places,
    rebuild,
    spelled,
    walk,
)
from burnbook.module.visitor import Labeled, per_kind, pick
from burnbook.tensor import Tensor
from burnbook.tensor.precision import with_floats

R = TypeVar("R")  # what a store says about loading
MAY_HIDE = "features"  # the one method that a field may hide


@answers_forms("Module")
@answers("Module")
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
    here, and the old one stays valid: fields are set once, by the constructor, which
    checks them against their annotations; `replace` gives a changed copy. Two things
    do change: a list or dict in a field, if you change it, and a `RunningState`, which
    a forward pass under Autodiff brings up to date (BatchNorm's running mean), as in
    Burn. A step of an optimizer, `map` and `clone` give the new module states of its
    own, so training it leaves those of the old one; `replace` keeps the same parts.
    """

    #: What this class prints, on one line: fields by name, and computed values as
    #: (name, function of the module). Without it every field is printed.
    shown: ClassVar[Shown | None] = None
    #: (field, value): fields that follow, each only where it has another value.
    shown_unless: ClassVar[tuple[tuple[str, object], ...]] = ()
    #: (field, value): fields that Burn 0.15 does not have, left out among all
    #: attributes where they have this value; that of a module is its text.
    newer_fields: ClassVar[tuple[tuple[str, object], ...]] = ()

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        remember_scope(cls)
        _let_fields_hide_methods(cls)
        dataclasses.dataclass(eq=False, repr=False)(cls)
        explain_fields(cls)
        guard_constructor(cls)
        _warn_of_no_fields(cls)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The same as `forward`."""
        try:
            return self.forward(*args, **kwargs)  # type: ignore[attr-defined] # by protocol
        except AttributeError:
            if hasattr(self, "forward"):
                raise
        except TypeError as raised:
            if "at" not in kwargs or _takes(self, "at"):
                ours = isinstance(raised, BurnbookError)  # which knows more
                error = None if ours else _not_taken(self, args, kwargs)
                if error is None:
                    raise
                raise error from None
            what = "it has no argument at: a field called features hides the method"
            cure = "Module.features(model, x, at=…)"
            where = f"{type(self).__name__}.forward"
            raise ArgumentError(where, what, cure=cure) from None
        name = type(self).__name__
        cure = f"def forward(self, x) in {name}"
        raise UnknownNameError(f"{name}.forward", "it has no forward", cure=cure)

    def __setattr__(self, name: str, value: object) -> None:
        refuse_change(self, name, value)
        hidden = isinstance(value, (Param, Module)) and not name.startswith("_")
        if hidden and name not in field_specs(type(self)):
            where = f"{type(self).__name__}.{name}"
            what = "only annotated fields are seen by optimizers and records"
            cure = f"a line `{name}: {type(value).__name__}` in the class"
            raise AttributeError(explain(where, what, cure=cure))
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        refuse_change(self, name, verb="delete")
        object.__delattr__(self, name)

    @result_matters("model = model.replace(field=value)")
    def replace(self, **fields: object) -> Self:
        """A copy with other values in some fields; the module itself stays as it was.

        The values are checked like those of the constructor, and settings as the config
        of the layer checks them. Of a part inside a part:
        `model.replace(block=model.block.replace(norm=…))`.

        Example:
            >>> from burnbook.backend.numpy import Numpy
            >>> from burnbook.nn import LinearConfig
            >>> layer = LinearConfig(2, 3).init(Numpy())
            >>> layer = layer.replace(bias=None)
            >>> layer
            Linear {d_input: 2, d_output: 3, bias: false, params: 6}
        """
        known = known_fields(self, fields)
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.__dict__.update({known[name]: held for name, held in fields.items()})
        check_fields(made)
        check_settings(self, made)
        return made

    def features(
        self,
        *inputs: Any,
        at: str | Sequence[str],
        method: str = "forward",
        **named: Any,
    ) -> Features:
        """What the layers at some paths return while the model runs on these inputs.

        `found["conv1"]` is what that layer returned, `found.calls("conv1")` all of it
        where it ran several times, `found.output` what the model returned. After a
        backward pass `found.grad("conv1")` is the gradient there. The model stays as it
        is, its running statistics too; a functional layer of a Sequential has a path as
        well. Where a field is called features: `Module.features(model, x, at=…)`.

        at: one path or several, "blocks.2.conv". method: another one than forward.

        Example:
            >>> from burnbook.backend import Autodiff, Numpy
            >>> from burnbook.nn import LinearConfig, Sequential, Tanh
            >>> device = Autodiff(Numpy())
            >>> model = Sequential(fc=LinearConfig(2, 3).init(device), act=Tanh())
            >>> found = model.features(Tensor.ones([1, 2], device), at="fc")
            >>> found["fc"].shape, found.output.shape
            ((1, 3), (1, 3))
            >>> grads = found.output.sum().backward()
            >>> found.grad("fc").shape
            (1, 3)

        Raises:
            ConfigError: the model has no layer at a path, or no such method.
        """
        return features(self, at, method, inputs, named)

    # Parameters

    def visit(self, visitor: Any) -> None:
        """Show every parameter to a visitor, depth first, in the order of fields."""
        acts = per_kind(visitor, "visit")
        for param in params_of(self):
            act = pick(acts, param.kind)
            if act is not None:
                act(param.id, param.val())

    @result_matters("model = model.map(mapper)")
    def map(self, mapper: Any) -> Self:
        """The module with every parameter replaced by what the mapper makes of it.

        The new parameters are leaves, cut from the graph they were computed in (see
        `functional_call` to keep it), and those that learned before go on to learn. A
        mapper that changes nothing but the gradient flag, by `tensor.set_require_grad`,
        freezes or thaws.
        """
        acts = per_kind(mapper, "map")
        where = f"{type(mapper).__name__}.map"

        def change(param: Param) -> Param:
            act = pick(acts, param.kind)
            if act is None:
                return param.unshared()
            return param.replaced(act(param.id, param.val()), where).unshared()

        return rebuild(self, change, _same)

    def num_params(self) -> int:
        """The elements of all Float parameters; what is tied counts once.

        As in Burn, running statistics and what is frozen count too: it is the sum of
        `num_trainable_params`, `num_frozen_params` and `num_statistics`.
        """
        return sum(_count(param) for param in self._distinct_params())

    def num_trainable_params(self) -> int:
        """How many numbers are learned: no running statistics, nothing frozen.

        Example:
            >>> from burnbook.backend.numpy import Numpy
            >>> from burnbook.nn import BatchNormConfig
            >>> norm = BatchNormConfig(8).init(Numpy())
            >>> norm.num_params(), norm.num_trainable_params()
            (32, 16)
        """
        params = self._distinct_params()
        return sum(_count(param) for param in params if param.is_trainable())

    def num_frozen_params(self) -> int:
        """How many numbers `no_grad` or `freeze_group` keeps from being learned.

        Running statistics are not among them: nobody learns these.
        """
        every = self.num_params() - self.num_statistics()
        return every - self.num_trainable_params()

    def num_statistics(self) -> int:
        """How many numbers forward passes keep up to date, as BatchNorm's means.

        Example:
            >>> from burnbook.backend.numpy import Numpy
            >>> from burnbook.nn import BatchNormConfig
            >>> norm = BatchNormConfig(8).init(Numpy()).no_grad()
            >>> norm.num_statistics(), norm.num_frozen_params()
            (16, 16)
        """
        params = self._distinct_params()
        return sum(_count(param) for param in params if isinstance(param, RunningState))

    def _distinct_params(self) -> list[Param]:
        """Every parameter once, wherever it is used."""
        found: dict[ParamId, Param] = {}
        for param in params_of(self):
            found.setdefault(param.id, param)
        return list(found.values())

    def named_params(self) -> list[tuple[str, Param]]:
        """Every parameter with its path: [("linear.weight", …), …]."""
        rows = walk(self)
        return [(path, held) for path, held in rows if isinstance(held, Param)]

    @result_matters("model = model.no_grad()")
    def no_grad(self) -> Self:
        """The module with its Float parameters left alone by gradients.

        No forward pass moves its running statistics either. BatchNorm normalizes by the
        batch as before, and Dropout drops values: see `eval` for both.
        """
        return rebuild(self, _frozen, _same)

    @result_matters("model = model.freeze_group(group)")
    def freeze_group(self, group: Group) -> Self:
        """The module with the Float parameters of a group left alone by gradients.

        A group that no parameter belongs to is a ConfigError.
        """
        return self._with_group("freeze_group", group, _frozen)

    @result_matters("model = model.unfreeze_group(group)")
    def unfreeze_group(self, group: Group) -> Self:
        """The module with the Float parameters of a group to be learned."""
        return self._with_group("unfreeze_group", group, _learned)

    @result_matters("model = model.apply_reparameterization(reparameterizer)")
    def apply_reparameterization(self, reparameterizer: Reparameterizer) -> Self:
        """The module with Float parameters that are computed from others.

        The reparameterizer sees each one with its path, and answers with the parameter
        to store and the module to attach, or None. Running statistics stay as they are.
        """
        made: dict[Param, Param] = {}
        group = getattr(reparameterizer, "param_group", None)
        if group is not None:
            members("apply_reparameterization", group, self.named_params())
        for path, param in self.named_params():
            if isinstance(param, RunningState):
                continue
            if param.kind is Float and param not in made:
                stored, attached = reparameterizer.reparameterize(path, param)
                made[param] = stored = stored.rooted()
                if attached is not None:
                    attached = rebuild(attached, Param.rooted, _same)
                    made[param] = Reparameterized(stored, attached)

        def change(param: Param) -> Param:
            found = made.get(param)
            return param.unshared() if found is None else found

        return rebuild(self, change, _same, fold=_nested)

    @result_matters("model = model.apply_lora(lora)")
    def apply_lora(self, lora: Reparameterizer) -> Self:
        """The module frozen, with a `Lora` adapter for each of its matrices."""
        return self.apply_reparameterization(lora)

    @result_matters("model = model.apply_qlora(qlora)")
    def apply_qlora(self, qlora: Reparameterizer) -> Self:
        """The module quantized and frozen, with a `QLora` adapter for each matrix."""
        return self.apply_reparameterization(qlora)

    def _with_group(
        self, where: str, group: Group, change: Callable[[Param], Param]
    ) -> Self:
        """The module with the parameters of a group changed."""
        chosen = members(where, group, self.named_params())

        def act(param: Param) -> Param:
            return change(param) if param.id in chosen else param.unshared()

        return rebuild(self, act, _same)

    @result_matters("model = model.quantize_weights(quantizer)")
    def quantize_weights(self, quantizer: Any, group: Group | None = None) -> Self:
        """The module with its Float parameters as codes, see `Quantizer`.

        group: quantize these parameters only.
        """
        labeled = Labeled(quantizer, self.named_params(), group)
        if labeled.group is not None:
            members("quantize_weights", labeled.group, self.named_params())
        return self.map(labeled)

    @result_matters("model = model.quantize_weights_group(…)")
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

    @result_matters("model = model.to_device(device)")
    def to_device(self, device: Backend) -> Self:
        """Move the tensors; what is there already stays as it is."""

        def move(param: Param) -> Param:
            change = _move_leaf if param.is_require_grad() else _move
            return param.derive(change, device, param.is_require_grad())

        return rebuild(self, move, lambda tensor: _move(tensor, device))

    @result_matters("model = model.fork(device)")
    def fork(self, device: Backend) -> Self:
        """Move and detach: the parameters are leaves of a graph of their own."""

        def move(param: Param) -> Param:
            change = _fork if param.is_require_grad() else _move_plain
            return param.derive(change, device, param.is_require_grad())

        return rebuild(self, move, lambda tensor: _move_plain(tensor, device))

    @result_matters("model = model.valid()")
    def valid(self) -> Self:
        """The module on the backend below Autodiff: no gradients, no dropout.

        What is attached to a parameter, such as a LoRA adapter, becomes part of it. For
        gradients of a model that is not in training see `eval`; what comes from
        Autodiff around Autodiff, so that it is on Autodiff still, is in that mode.
        """

        def strip(param: Param) -> Param:
            inner = _below(param.device)
            if inner is param.device:
                return param
            return param.derive(_strip, inner, require_grad=False)

        made = rebuild(self, strip, lambda t: _strip(t, t.backend), fold=_folded)
        if any(device.ad_enabled for device in made.devices()):  # Autodiff in Autodiff
            modes.put(made, in_eval=True)
        return made

    @result_matters("model = model.train()")
    def train(self, *paths: str) -> Self:
        """The module under Autodiff, with its parameters to be learned.

        It takes back `valid()`, and `eval()` of every part or of those at these paths.
        What was frozen before stays frozen: see `unfreeze_group`. A device that tracks
        already stays as it is.

        Raises:
            ConfigError: the model has no part at a path.
        """

        def lift(param: Param) -> Param:
            learned = param.kind is Float and param.is_trainable()
            change = _lift_leaf if learned else _lift
            return param.derive(change, _above(param.device), learned)

        made = rebuild(self, lift, lambda t: _lift(t, _above(t.backend)))
        return made._with_mode("train", paths, in_eval=False)

    @result_matters("model = model.eval()")
    def eval(self, *paths: str) -> Self:
        """A copy that is not in training and stays differentiable, on the same device.

        BatchNorm uses its running statistics and leaves them as they are, Dropout keeps
        every value. Parameters learn as before, so one may train with a part in eval
        mode: `model.eval("backbone")`, the same as `model.replace(backbone=
        model.backbone.eval())`. The mode stays through steps of an optimizer, `map`,
        `fork` and so on; records do not hold it, and `train()` takes it back.

        paths: the parts that change; without any the whole module.

        Example:
            >>> from burnbook.backend import Autodiff, Numpy
            >>> from burnbook.nn import DropoutConfig
            >>> layer = DropoutConfig(0.5).init()
            >>> x = Tensor.ones([4], Autodiff(Numpy())).require_grad()
            >>> layer.eval().forward(x).to_data().to_list()
            [1.0, 1.0, 1.0, 1.0]

        Raises:
            ConfigError: the model has no part at a path.
        """
        return self.clone()._with_mode("eval", paths, in_eval=True)

    @property
    def in_eval(self) -> bool:
        """Whether the module is in eval mode; what `eval` does, `train` takes back."""
        return modes.IN_EVAL in self.__dict__

    def is_training(self, x: Tensor) -> bool:
        """Whether to do with this input what a layer does in training alone.

        So it is under Autodiff, unless the module is in eval mode. A layer of your own
        that works otherwise in training asks this in its `forward`.
        """
        return x.backend.ad_enabled and modes.IN_EVAL not in self.__dict__

    def _with_mode(self, where: str, paths: Sequence[str], in_eval: bool) -> Self:
        """This module, which nobody else has seen, with the mode of some parts set."""
        if paths:
            modes.put_parts(where, self, paths, in_eval)
        else:
            modes.put(self, in_eval)
        return self

    # Records

    def into_record(self) -> Any:
        """The record: names, ids and elements of all parameters."""
        return records.module_record(self)

    @result_matters("model = model.load_record(record)")
    def load_record(self, record: object, partial: bool = False) -> Self:
        """The module with the values and ids of a record.

        If anything does not match, nothing is loaded and one RecordError lists it all;
        with `partial` the module keeps its own values there.

        Raises:
            RecordError: `record` is no record, or, without `partial`, it misses a
                parameter, has one more or has one of another shape or kind.
        """
        return records.load_record(self, record, partial)

    @result_matters("model, report = model.load_partial(record)", also="report")
    def load_partial(self, record: object) -> tuple[Self, LoadReport]:
        """The module with what fits of a record, and a report of the rest.

        Example:
            >>> from burnbook.backend import Numpy
            >>> from burnbook.nn import LinearConfig
            >>> record = LinearConfig(2, 3).init(Numpy()).into_record()
            >>> layer, report = LinearConfig(4, 3).init(Numpy()).load_partial(record)
            >>> print(report)
            Linear: 1 of 2 parameters loaded
              loaded  bias
              kept    weight  record [2, 3], module [4, 3]

        Raises:
            RecordError: `record` is no record.
        """
        return records.load_partial(self, record)

    @result_matters("model, result = model.load_from(store)", also="result")
    def load_from(self, store: Store[R]) -> tuple[Self, R]:
        """The module with the values of a store, and what came of it.

        store: PytorchStore, SafetensorsStore or another one of `burnbook.importers`.

        Why two results: Burn changes the module in place and gives the second alone.

        Raises:
            RecordError: the file cannot be read, or lacks parameters without
                `allow_partial`, or has others that do not fit.
        """
        return store.load_into(self)

    def save_into(self, store: Store[Any]) -> Any:
        """Write the parameters into a store; gives what `store.save_from` does.

        Raises:
            RecordError: the store only reads, or the file cannot be written.
        """
        return store.save_from(self)

    @result_matters("model = model.try_load_record(record)")
    def try_load_record(self, record: object) -> Self:
        """What `load_record` gives, by the name of Burn 0.22.

        Why: there `load_record` panics and this gives the error; here both raise it.

        Raises:
            RecordError: as `load_record` does.
        """
        return records.load_record(self, record, False)

    @result_matters('model = model.cast("f16")')
    def cast(self, dtype: str) -> Self:
        """The module with all its floats in another element type.

        Example:
            >>> from burnbook.backend import Numpy
            >>> from burnbook.nn import LinearConfig
            >>> LinearConfig(2, 3).init(Numpy()).cast("f64").devices()
            [Numpy(float='f64')]

        Raises:
            KindError: that is no type of floats.
        """
        known = {device: with_floats(device, dtype) for device in self.devices()}

        def move(param: Param) -> Param:
            change = _move_leaf if param.is_require_grad() else _move
            device = known[param.device]
            return param.derive(change, device, param.is_require_grad())

        def moved(tensor: Tensor) -> Tensor:
            device = known.get(tensor.backend)
            return _move(tensor, device or with_floats(tensor.backend, dtype))

        return rebuild(self, move, moved)

    def save_file(self, path: Any, recorder: Any = None) -> Path:
        """Write the record to a file; returns its path, with the recorder's extension.

        Without a recorder the file is burnpack, as in Burn 0.22, unless the ending of
        the path is that of another format. A dot in a name is no extension:
        "model_0.15" becomes model_0.15.mpk.

        Raises:
            RecordError: `recorder` is none for files, `path` names no file, or the
                file cannot be written.
        """
        if recorder is None:
            return files().save(self.into_record(), path)
        return _for_files("save_file", path, recorder).record(self.into_record(), path)

    @result_matters("model = model.load_file(path, recorder)")
    def load_file(
        self, path: Any, recorder: Any = None, device: Backend | None = None
    ) -> Self:
        """The module with the values of a file that `save_file` wrote.

        Without a recorder the ending of the path says in which format; burnpack else.

        Raises:
            RecordError: `recorder` is none for files; the file is missing, damaged or
                of another format; or its record does not match the module.
        """
        if recorder is None:
            return self.load_record(files().load(path))
        if device is None:
            device = next(iter(self.devices()), None)
        recorder = _for_files("load_file", path, recorder)
        return self.load_record(recorder.load(path, device))

    @result_matters("other = model.clone()", kept_in="other")
    def clone(self) -> Self:
        """Another module with the same fields and the same parameters.

        Its running statistics are its own: training one leaves those of the other.
        """
        return rebuild(self, lambda param: param.unshared(), _same)

    # Display

    def custom_settings(self) -> DisplaySettings | None:
        """How this class prints; None leaves it to the modules above."""
        return None if _shown(self) is None else ONE_LINE

    def custom_content(self, content: Content) -> Content | None:
        """What this class shows, added to `content`; None shows every field."""
        shown = _shown(self)
        if shown is None:
            return None
        return content.add_fields(self, shown, self.shown_unless)

    def format(self, settings: DisplaySettings | None = None, level: int = 1) -> str:
        """The text of the module under these settings."""
        settings = settings or DisplaySettings()
        own = self.custom_settings()
        settings = own.inherit(settings) if own else settings
        above, shown = bool(settings.around_in_eval), settings.show_mode is not False
        settings = dataclasses.replace(settings, around_in_eval=self.in_eval or None)
        content = None
        if not settings.show_all_attributes:
            content = self.custom_content(Content(settings, level + 1))
        if content is None:
            content = self._all_fields(Content(settings, level + 1))
        if content.single is not None:
            return content.single
        name = content.top_level_type or type(self).__name__
        rows = content.attributes
        if shown and self.in_eval is not above:
            mode = "eval" if self.in_eval else "train"
            if not rows:
                return f"{name} {{mode: {mode}}}"
            rows = [*rows, ("mode", mode)]
        if not rows:
            return name
        made = self._kinds_of_params(settings)
        return layout(name, [*rows, *made], self.num_params(), settings, level)

    def _kinds_of_params(self, settings: DisplaySettings) -> list[tuple[str, str]]:
        """How many are learned, frozen and statistics, where settings ask for it."""
        if not settings.show_param_kinds or not self.num_params():
            return []
        rows = [
            ("trainable", self.num_trainable_params()),
            ("frozen", self.num_frozen_params()),
            ("statistics", self.num_statistics()),
        ]
        return [(name, str(count)) for name, count in rows if count]

    def _all_fields(self, content: Content) -> Content:
        specs = {spelled(name): h for name, h in field_specs(type(self)).items()}
        unless = dict(self.newer_fields)
        for name, value in children(self):
            if name in unless and is_usual(value, unless[name]):
                continue
            content.add(name, _as_enums(value, specs.get(name, ANYTHING)))
        return content

    def __str__(self) -> str:
        return self.format()

    def __repr__(self) -> str:
        return self.format()


def _let_fields_hide_methods(cls: type) -> None:
    """Let a field be called features, and no other like a method of Module.

    Why: networks of torchvision have a field features, and nothing here calls that
    method. A field called valid or map would break the learner or an optimizer, far
    from its class. For a dataclass, the method is the default of the field.
    """
    for name in inspect.get_annotations(cls):
        hidden = inspect.getattr_static(Module, name, None)
        if not (inspect.isfunction(hidden) or isinstance(hidden, property)):
            continue
        if name != MAY_HIDE:
            what = f"a field called {name} would hide the method Module.{name}"
            cure = f"another name, such as {name}_layer"
            raise FieldError(f"{cls.__name__}.{name}", what, cure=cure)
        if name not in vars(cls):
            setattr(cls, name, dataclasses.field())


def _warn_of_no_fields(cls: type) -> None:
    """Warn of layers in a class without an annotation: nothing ever trains them."""
    noted = inspect.get_annotations(cls)
    for name, held in vars(cls).items():
        if name in noted or not isinstance(held, (Param, Module)):
            continue
        if isinstance(held, Module) and not held.named_params():
            continue
        what = "a layer without an annotation is no field: it is not trained, nor saved"
        kind = type(held).__name__
        cure = f"`{name}: {kind}` in its place, and {cls.__name__}({name}=…)"
        warn_caller(explain(f"{cls.__name__}.{name}", what, cure=cure))


#: What other libraries give to a call, to say that dropout and the like rest.
MODES = ("training", "train", "is_training", "mode")


def _not_taken(
    module: Any, args: tuple[object, ...], named: dict[str, Any]
) -> ArgumentError | None:
    """The error for a call whose arguments `forward` does not take; else None."""
    what = misfit_of_call(type(module).forward, (module, *args), named)
    if what is None:
        return None
    own, name = own_call_of(), f"{type(module).__name__}.forward"
    of, given = own if own else ("model", ["x"])
    modes = [word for word in MODES if word in named]
    cure = None
    if modes:
        what = f"{modes[0]} is not said in the call: the model is in a mode"
        mode = "train" if named[modes[0]] else "eval"
        cure = f"{of}.{mode}()({', '.join(given)})"
    return ArgumentError(name, what, cure=cure)


def _takes(module: Any, name: str) -> bool:
    """Whether the forward of a module has a parameter of this name."""
    forward = getattr(module, "forward", None)
    return forward is None or name in inspect.signature(forward).parameters


def _as_enums(value: Any, spec: TypeSpec) -> Any:
    """What a field holds, with the variants and options of Rust that it stands for."""
    arm, name = spec, None
    if spec.choice and isinstance(value, Module):
        arm, name = spec.arm(type(value)) or spec, spec.variant(type(value))
    elif (variant := named_arm(value, spec)) is not None:
        name, arm = variant
    inner = value
    if arm.choice and arm is not spec:  # one enum holds another
        inner = _as_enums(value, arm)
    elif isinstance(value, (list, tuple)):
        rows = zip(value, places(arm, len(value)), strict=True)
        inner = like(value, [_as_enums(held, held_spec) for held, held_spec in rows])
    elif isinstance(value, dict):
        inner = {key: _as_enums(held, arm.item) for key, held in value.items()}
    if name is not None:
        count = sum(map(_count, {p.id: p for p in params_of(value)}.values()))
        inner = Chosen(inner, name, count)
    return Present(inner) if spec.optional and value is not None else inner


def list_param_ids(module: Module) -> list[ParamId]:
    """The ids of all parameters of a module, in the order of visiting."""
    return [param.id for param in params_of(module)]


def _shown(module: Module) -> Shown | None:
    """What the class of a module shows, unless `shown` is a field or method of it."""
    cls = type(module)
    named = isinstance(cls.shown, tuple) and "shown" not in field_specs(cls)
    return cls.shown if named else None


def _for_files(where: str, path: Any, recorder: Any) -> Any:
    """The recorder, unless it is none, the class of one, or one without files."""
    if isinstance(recorder, type):
        what = f"{recorder.__name__} is the class of a recorder"
        raise RecordError("recorder", what, cure=f"{recorder.__name__}()")
    if not hasattr(recorder, "record"):
        what = f"{type(recorder).__name__} is not a recorder"
        if hasattr(path, "record"):
            what = "the path comes first, then the recorder"
        raise RecordError(where, what, cure=f"{where}(path, CompactRecorder())")
    if getattr(recorder, "place", "") == "memory":
        name = type(recorder).__name__
        cure = "model.load_record(recorder.load(data)), or a recorder for files"
        if where == "save_file":
            cure = "data = recorder.record(model.into_record()), or CompactRecorder()"
        raise RecordError(where, f"{name} is for bytes, not for files", cure=cure)
    return recorder


def _count(param: Param) -> int:
    return param.shape.num_elements() if param.kind is Float else 0


def _same(value: object) -> Any:
    return value


def _frozen(param: Param) -> Param:
    return param.set_require_grad(False) if param.kind is Float else param


def _learned(param: Param) -> Param:
    return param.set_require_grad(True) if param.kind is Float else param


def _folded(param: Reparameterized) -> Param:
    """A plain parameter with the value that the attached module makes."""
    value = param.val()
    plain = _strip(value, value.backend) if value.backend.ad_enabled else value
    learned, kind = param.is_trainable(), type(param.stored)
    return kind(param.id, plain, require_grad=False, trainable=learned)


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
    return leaf(above, required=False)


def _lift_leaf(tensor: Tensor, device: Backend) -> Tensor:
    return leaf(_lift(tensor, device), required=True)


def _strip(tensor: Tensor, device: Backend) -> Tensor:
    below = tensor.inner() if tensor.backend.ad_enabled else tensor
    return leaf(below, required=False)
