"""Building blocks · Learner. The learner builder: what to measure, keep and show.

learner = (LearnerBuilder("guide")
           .metric_train_numeric(AccuracyMetric())
           .metric_valid_numeric(AccuracyMetric())
           .with_file_checkpointer(CompactRecorder())
           .devices([device]).num_epochs(10).summary()
           .build(model, optim, 1e-4))
"""

from __future__ import annotations

from typing import Any

from burnbook.train.demands import check_model, check_optimizer
from burnbook.train.learner import Learner
from burnbook.train.options import TrainingOptions


class LearnerBuilder(TrainingOptions):
    """Describe a training step by step; `build` gives the learner.

    Everything that training writes goes into one folder, the artifact directory.

    Example:
        >>> LearnerBuilder("guide").num_epochs(10)
        LearnerBuilder('guide', 10 epochs)
    """

    def build(self, model: Any, optim: Any, lr_scheduler: Any) -> Learner:
        """The learner; a float is a learning rate that never changes."""
        check_model("LearnerBuilder.build", model)
        check_optimizer("LearnerBuilder.build", optim)
        return Learner(model, optim, lr_scheduler, self._ready())
