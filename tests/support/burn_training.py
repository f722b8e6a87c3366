"""The optimizers and schedules whose records Burn wrote, from its configs."""

import json

from burnbook import lr_scheduler as schedules, optim

OPTIMIZERS = {
    "sgd": optim.SgdConfig,
    "adam": optim.AdamConfig,
    "adamw": optim.AdamWConfig,
    "adagrad": optim.AdaGradConfig,
    "rmsprop": optim.RmsPropConfig,
}
SCHEDULERS = {
    "linear": schedules.LinearLrSchedulerConfig,
    "cosine": schedules.CosineAnnealingLrSchedulerConfig,
    "exponential": schedules.ExponentialLrSchedulerConfig,
    "noam": schedules.NoamLrSchedulerConfig,
    "step": schedules.StepLrSchedulerConfig,
}


def optimizer(config, kind):
    """The optimizer of a config as Burn prints it; kind is "optim-adam-clip-value"."""
    family = kind.removeprefix("optim-").partition("-")[0]
    return OPTIMIZERS[family].from_json(json.dumps(config)).init()


def scheduler(config, kind):
    """The schedule of a config; kind is "scheduler-cosine-fresh"."""
    family = kind.removeprefix("scheduler-").partition("-")[0]
    if family == "constant":
        return schedules.ConstantLr(config["lr"])
    return SCHEDULERS[family].from_json(json.dumps(config)).init()
