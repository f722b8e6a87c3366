"""What Burn prints: tensors, reports, modules, configs, metrics."""

import json
import re
from collections.abc import Callable
from typing import Any

from burnbook import nn, optim
from burnbook.backend.base import Backend
from burnbook.data import Progress
from burnbook.examples.guide.model import ModelConfig
from burnbook.module import DisplaySettings, Module
from burnbook.tensor import (
    PrintOptions,
    Tensor,
    TensorData,
    check_closeness,
    set_print_options,
)
from burnbook.train import metric as metrics
from burnbook.train.metric.base import MetricMetadata
from burnbook.train.numbers import format_float
from tests.oracle.burn.cases import Case, Listed, array_of, data_of, read, tensors
from tests.oracle.burn.layers import config_of, init

NAMES = re.compile(r'backend:  "(autodiff<)?numpy')


def as_burn(text: str) -> str:
    """A text with Burn's name for the backend."""
    return NAMES.sub(lambda m: m[0].replace("numpy", "ndarray"), text)


def _tensor(case: Case, device: Backend) -> Tensor:
    return next(iter(tensors(case.inputs, device).values()))


def _display(case: Case, device: Backend) -> str:
    spec = f".{case.args['precision']}" if "precision" in case.args else ""
    return as_burn(format(_tensor(case, device), spec))


def _display_autodiff(case: Case, device: Backend) -> str:
    return as_burn(str(_tensor(case, device.autodiff())))


def _display_options(case: Case, device: Backend) -> str:
    set_print_options(PrintOptions(**case.args))
    try:
        return as_burn(str(_tensor(case, device)))
    finally:
        set_print_options(PrintOptions())


def _assertion(case: Case, _: Backend) -> Any:
    mine, *others = map(data_of, case.inputs)
    getattr(mine, case.op)(*others, *case.in_order(case.values()))
    return []


def _data_new(case: Case, device: Backend) -> Any:
    return TensorData(case.values()["values"], case.args["shape"])


def _closeness(case: Case, _: Backend) -> str:
    a, b = (array_of(one) for one in case.inputs)
    report = check_closeness(a, b)
    return report.text(color=case.args["color"]) + "\n"


# Metrics

METADATA = MetricMetadata(Progress(1, 1), 0, 1, 0)


def _metric(case: Case, device: Backend) -> Any:
    """Two updates, and what is said after each."""
    kind = getattr(metrics, case.op)
    args = dict(case.values())
    made = kind(args.pop("n")) if "n" in args else kind()
    for name, value in args.items():
        made = getattr(made, f"with_{name}")(value)
    found = list(tensors(case.inputs, device).values())
    parts = 1 if case.op == "LossMetric" else 2
    told = []
    for at in range(0, len(found), parts):
        entry = made.update(made.Input(*found[at : at + parts]), METADATA)
        told.append(
            {
                "name": entry.name,
                "formatted": entry.formatted,
                "serialize": entry.serialize,
                "value": float(made.value()),
            }
        )
    return Listed(told)


def _format_float(case: Case, _: Backend) -> str:
    return format_float(read(case.args["float"]), case.args["precision"])


# Configs and modules


def _config(case: Case, _: Backend) -> str:
    name = case.op
    home = nn if hasattr(nn, name) else optim
    return str(getattr(home, name).from_json(json.dumps(case.config)))


class Net(Module):
    """What a module may hold, as in Burn's own test."""

    gate: nn.GateController
    layers: list[nn.Linear]
    maybe: nn.Linear | None
    none: nn.Linear | None
    pair: tuple[nn.Linear, nn.Relu]
    number: float
    count: int
    word: str


def net(device: Backend) -> Net:
    """The module of the cases."""
    line = nn.LinearConfig(3, 3)
    gate = nn.GateController.new(2, 3, True, nn.Initializer.XavierNormal(1.0), device)
    return Net(
        gate,
        [line.with_bias(False).init(device), line.init(device)],
        line.init(device),
        None,
        (line.init(device), nn.Relu()),
        1e-5,
        7,
        "text",
    )


SETTINGS = {
    "all_attributes": DisplaySettings()
    .with_show_all_attributes(True)
    .with_show_num_parameters(True),
    "one_line": DisplaySettings().with_new_line_after_attribute(False),
    "more_lines": DisplaySettings()
    .with_new_line_after_attribute(True)
    .with_indentation_size(4),
    "no_count": DisplaySettings().with_show_num_parameters(False),
}
#: How the modules of the texts are made, where a config and its numbers do not say it.
MADE: dict[str, Callable[[], Any]] = {
    "Linear": lambda: nn.LinearConfig(3, 5),
    "BatchNorm": lambda: nn.BatchNormConfig(3),
    "Lstm": lambda: nn.LstmConfig(2, 3, True),
    "Gru": lambda: nn.GruConfig(2, 3, True),
    "TransformerEncoder": lambda: nn.TransformerEncoderConfig(4, 8, 2, 1),
    "CrossEntropyLoss": lambda: (
        nn.CrossEntropyLossConfig().with_weights([1.0, 2.0]).with_pad_tokens([1, 2])
    ),
    "Interpolate2d": lambda: nn.Interpolate2dConfig().with_scale_factor((2.0, 0.5)),
    "Dropout": lambda: nn.DropoutConfig(0.5),
}


def _module(case: Case, device: Backend) -> str:
    name = case.args["module"]
    if name == "net":
        made = net(device)
    elif case.config is not None:
        made = init(config_of(name, case.config), device)
    elif name == "guide":
        made = ModelConfig(10, 512).init(device)
    elif name in MADE:
        made = init(MADE[name](), device)
    else:
        made = getattr(nn, name)()
    return made.format(SETTINGS[case.op])


def _net(case: Case, device: Backend) -> Any:
    made = net(device)
    if case.op == "net":
        return str(made), made.num_params()
    return Listed([name for name, _ in made.named_params()])


TEXTS: dict[str, Callable[[Case, Backend], Any]] = {
    "display/display": _display,
    "display/display_autodiff": _display_autodiff,
    "display/display_options": _display_options,
    "display/data_display": lambda case, _: str(data_of(case.inputs[0])),
    "display/shape_debug": lambda case, d: str(_tensor(case, d).shape),
    "display/shape_num_elements": lambda c, d: _tensor(c, d).shape.num_elements(),
    "display/shape_num_dims": lambda c, d: _tensor(c, d).shape.num_dims(),
    "display/assert_approx_eq": _assertion,
    "display/assert_approx_eq_diff": _assertion,
    "display/assert_eq": _assertion,
    "display/assert_within_range": _assertion,
    "display/data_new": _data_new,
    "display/data_ones": lambda c, _: TensorData.ones(c.args["shape"], "f32"),
    "display/data_zeros": lambda c, _: TensorData.zeros(c.args["shape"], "f32"),
    "closeness": _closeness,
    "metric": _metric,
    "metric/format_float": _format_float,
    "config": _config,
    "module": _module,
    "module/net": _net,
    "module/net_record": _net,
}
