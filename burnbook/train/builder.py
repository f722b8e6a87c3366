"""The learner builder: what to measure, keep and show.

learner = (LearnerBuilder("guide")
           .metric_train_numeric(AccuracyMetric())
           .metric_valid_numeric(AccuracyMetric())
           .with_file_checkpointer(CompactRecorder())
           .devices([device]).num_epochs(10).summary()
           .build(model, optim, 1e-4))
"""

from __future__ import annotations

from pathlib import Path

from burnbook.core.cures import explains_call
from burnbook.core.other_names import answers
from burnbook.core.roles import MODEL, OPTIMIZER, RATE
from burnbook.lr_scheduler import LrScheduler
from burnbook.module import Module
from burnbook.optim import Optimizer
from burnbook.train.learner import Learner
from burnbook.train.options import TrainingOptions
from burnbook.train.validation import (
    check_model,
    check_optimizer,
    check_order,
    check_rate,
)


@answers("LearnerBuilder")
class LearnerBuilder(TrainingOptions):
    """Describe a training step by step; `build` gives the learner.

    Everything that training writes goes into one folder, the artifact directory.

    Example:
        >>> LearnerBuilder("guide").num_epochs(10)
        LearnerBuilder('guide', 10 epochs)
    """

    @explains_call("LearnerBuilder", 'LearnerBuilder("guide"), the folder of the run')
    def __init__(self, directory: str | Path) -> None:
        super().__init__(directory)

    @explains_call("LearnerBuilder.build", "build(model, optim, 1e-3)")
    def build(
        self,
        model: Module,
        optim: Optimizer,
        lr_scheduler: LrScheduler | float | None = None,
    ) -> Learner:
        """The learner; a float is a learning rate that never changes.

        Raises:
            ConfigError: what could not be trained: a model without parameters or steps,
                something that is not an optimizer, no learning rate or a negative one,
                early stopping by a metric that is not measured, or a schedule that
                follows one.
        """
        where = "LearnerBuilder.build"
        check_order(where, (MODEL, OPTIMIZER, RATE), model, optim, lr_scheduler)
        check_model(where, model)
        check_optimizer(where, optim, model)
        rate = check_rate(where, lr_scheduler)
        self._watch("build", rate)
        return Learner(model, optim, rate, self._ready())
