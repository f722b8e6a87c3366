"""Schedules give PyTorch's learning rates, value by value."""

import itertools

import numpy as np
import pytest

from burnbook.lr_scheduler import (
    ComposedLrSchedulerConfig,
    CosineAnnealingLrSchedulerConfig,
    ExponentialLrSchedulerConfig,
    LambdaLrScheduler,
    LinearLrSchedulerConfig,
    LrSchedulerConfig,
    OneCycleLrSchedulerConfig,
    PolynomialLrSchedulerConfig,
    ReduceOnPlateauLrSchedulerConfig,
    SequentialLrSchedulerConfig,
    StepLrSchedulerConfig,
    WarmupCosineLrSchedulerConfig,
)
from tests.torch.shared import torch

NEAR = {"rel": 1e-9, "abs": 1e-15}


def rates(make, count, lr=0.5):
    """The rates of PyTorch's schedule for so many steps of a training.

    make: gives the schedule of an optimizer.
    """
    optim = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    schedule, found = make(optim), []
    for i in range(count):
        found.append(optim.param_groups[0]["lr"])
        optim.step()
        if i < count - 1:
            schedule.step()
    return found


def lr_scheduler(name, **options):
    return lambda optim: getattr(torch.optim.lr_scheduler, name)(optim, **options)


def take(schedule, count):
    return [schedule.step() for _ in range(count)]


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0, 3.7])
@pytest.mark.parametrize("steps", [1, 2, 9])
def test_polynomial(steps, power):
    theirs = lr_scheduler("PolynomialLR", total_iters=steps, power=power)
    ours = PolynomialLrSchedulerConfig(0.5, steps, power=power).init()
    assert take(ours, 15) == pytest.approx(rates(theirs, 15), **NEAR)


@pytest.mark.parametrize("pct_start", [0.0, 0.1, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("steps", [1, 2, 4, 7, 30, 101])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("three_phase", [False, True])
def test_one_cycle(steps, pct_start, linear, three_phase):
    options = {
        "max_lr": 0.7,
        "pct_start": pct_start,
        "div_factor": 10.0,
        "final_div_factor": 50.0,
        "three_phase": three_phase,
    }
    ours = OneCycleLrSchedulerConfig(**options, total_steps=steps, linear=linear)
    theirs = lr_scheduler(
        "OneCycleLR",
        **options,
        total_steps=steps,
        anneal_strategy="linear" if linear else "cos",
        cycle_momentum=False,
    )
    try:
        wanted = rates(theirs, steps)
    except ZeroDivisionError:  # a phase of no steps, which PyTorch does not foresee
        wanted = None
    found = take(ours.init(), steps)
    if wanted is None:
        assert all(0 < rate <= 0.7 for rate in found)
    else:
        assert found == pytest.approx(wanted, **NEAR)


def test_one_cycle_by_default():
    theirs = lr_scheduler("OneCycleLR", max_lr=0.1, total_steps=50)
    ours = OneCycleLrSchedulerConfig(0.1, 50).init()
    assert take(ours, 50) == pytest.approx(rates(theirs, 50), **NEAR)


@pytest.mark.parametrize(("warmup", "steps"), [(1, 2), (3, 10), (5, 6), (10, 40)])
@pytest.mark.parametrize("low", [0.0, 0.05])
def test_a_warm_up_and_a_cosine(warmup, steps, low):
    def theirs(optim):
        up = lr_scheduler("LinearLR", start_factor=0.2, total_iters=warmup)(optim)
        down = lr_scheduler("CosineAnnealingLR", T_max=steps - warmup, eta_min=low)
        parts = [up, down(optim)]
        return torch.optim.lr_scheduler.SequentialLR(optim, parts, [warmup])

    config = WarmupCosineLrSchedulerConfig(0.5, warmup, steps, start_lr=0.1, min_lr=low)
    found = take(config.init(), steps + 1)
    assert found == pytest.approx(rates(theirs, steps + 1), rel=1e-7, abs=1e-12)
    assert config.init().length() == steps + 1


def test_a_cosine_without_a_warm_up():
    theirs = lr_scheduler("CosineAnnealingLR", T_max=9)
    found = take(WarmupCosineLrSchedulerConfig(0.5, 0, 9).init(), 10)
    assert found == pytest.approx(rates(theirs, 10), rel=1e-7, abs=1e-12)


def test_any_function():
    def factor(i):
        return 0.9**i / (1 + i % 3)

    theirs = lr_scheduler("LambdaLR", lr_lambda=factor)
    ours = LambdaLrScheduler(0.5, factor)
    assert take(ours, 20) == pytest.approx(rates(theirs, 20), **NEAR)


SINGLE = {
    "step": (
        StepLrSchedulerConfig(0.5, 3, gamma=0.2),
        lr_scheduler("StepLR", step_size=3, gamma=0.2),
    ),
    "exponential": (
        ExponentialLrSchedulerConfig(0.5, 0.8),
        lr_scheduler("ExponentialLR", gamma=0.8),
    ),
    "linear": (
        LinearLrSchedulerConfig(0.25, 0.5, 6),
        lr_scheduler("LinearLR", start_factor=0.5, total_iters=6),
    ),
    "cosine": (
        CosineAnnealingLrSchedulerConfig(0.5, 14, min_lr=0.1),
        lr_scheduler("CosineAnnealingLR", T_max=14, eta_min=0.1),
    ),
}


@pytest.mark.parametrize("name", SINGLE)
def test_the_schedules_of_burn(name):
    config, theirs = SINGLE[name]
    found = take(config.init(), 15)
    assert found == pytest.approx(rates(theirs, 15), rel=1e-7, abs=1e-12)


def test_schedules_one_after_the_other():
    def theirs(optim):
        first = lr_scheduler("PolynomialLR", total_iters=4, power=2.0)(optim)
        second = lr_scheduler("ExponentialLR", gamma=0.5)(optim)
        return torch.optim.lr_scheduler.SequentialLR(optim, [first, second], [3])

    config = SequentialLrSchedulerConfig(
        [
            LrSchedulerConfig.Polynomial(
                PolynomialLrSchedulerConfig(0.5, 4, power=2.0)
            ),
            LrSchedulerConfig.Exponential(ExponentialLrSchedulerConfig(0.5, 0.5)),
        ],
        [3],
    )
    assert take(config.init(), 8) == pytest.approx(rates(theirs, 8), **NEAR)


def test_schedules_side_by_side():
    def theirs(optim):
        parts = [
            lr_scheduler("PolynomialLR", total_iters=6)(optim),
            lr_scheduler("ExponentialLR", gamma=0.9)(optim),
        ]
        return torch.optim.lr_scheduler.ChainedScheduler(parts, optim)

    config = ComposedLrSchedulerConfig()
    config = config.polynomial(PolynomialLrSchedulerConfig(0.5, 6))
    config = config.exponential(ExponentialLrSchedulerConfig(1.0, 0.9))
    assert take(config.init(), 6) == pytest.approx(rates(theirs, 6), **NEAR)


# Plateaus

CURVES = {
    "falling": [1 / (1 + i) for i in range(60)],
    "flat": [1.0] * 60,
    "noise": list(np.random.default_rng(0).normal(size=60)),
    "below zero": list(-1.0 - np.random.default_rng(1).random(60) / 50),
    "slowly": [1.0 - 5e-5 * i for i in range(60)],
    "with NaN and infinity": [1.0, float("nan"), float("inf"), 0.5] * 15,
}
CHOICES = list(itertools.product([False, True], [True, False], [0, 1, 5], [0, 2]))


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize(("highest", "relative", "patience", "cooldown"), CHOICES)
def test_a_plateau(curve, highest, relative, patience, cooldown):
    options = {
        "factor": 0.3,
        "patience": patience,
        "cooldown": cooldown,
        "threshold": 1e-2,
        "min_lr": 1e-6,
    }
    optim = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optim,
        mode="max" if highest else "min",
        threshold_mode="rel" if relative else "abs",
        **options,
    )
    config = ReduceOnPlateauLrSchedulerConfig(0.5, **options, relative=relative)
    ours = config.with_highest_is_best(highest).init()
    seen = set()
    for value in CURVES[curve]:
        assert ours.step() == optim.param_groups[0]["lr"]
        seen.add(ours.step())
        ours.observe(value)
        theirs.step(value)
        ours = (
            config.with_highest_is_best(highest).init().load_record(ours.into_record())
        )
    assert len(seen) > 1 or curve != "flat"


def test_a_plateau_by_default():
    optim = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(optim)
    ours = ReduceOnPlateauLrSchedulerConfig(0.5).init()
    for _ in range(150):  # until a change is too small to be made
        assert ours.step() == optim.param_groups[0]["lr"]
        ours.observe(1.0)
        theirs.step(1.0)
    assert 1e-9 < ours.step() < 1e-7
