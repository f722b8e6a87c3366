"""SupervisedTraining: how newer Burn starts a training.

    training = (SupervisedTraining("guide", train, valid)
                .metrics([AccuracyMetric(), LossMetric()])
                .num_epochs(10).summary())
    result = training.launch(Learner(model, optim, 1e-4))
    result.model                                      # ready for inference

The options are those of `LearnerBuilder`, and so are the artifacts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burnbook.core.cures import explains_call
from burnbook.core.errors import ConfigError
from burnbook.data import DataLoader
from burnbook.train.learner import Learner
from burnbook.train.options import TrainingOptions
from burnbook.train.renderer import MetricsRenderer, TrainingResult
from burnbook.train.validation import check_model, check_optimizer


@dataclass(frozen=True, repr=False)
class LearningResult:
    """The trained model without gradients, its renderer, and how training ended."""

    model: Any
    renderer: MetricsRenderer | None
    training: TrainingResult

    def __repr__(self) -> str:
        return f"LearningResult({type(self.model).__name__}, {self.training!r})"


class SupervisedTraining(TrainingOptions):
    """Describe a training on these data; `launch` trains a learner.

    valid: None trains without validation.

    Example:
        >>> SupervisedTraining("guide", [], []).num_epochs(10)
        SupervisedTraining('guide', 10 epochs)
    """

    @explains_call("SupervisedTraining", 'SupervisedTraining("guide", train, valid)')
    def __init__(
        self,
        directory: str | Path,
        train: DataLoader[Any] | Iterable[Any],
        valid: DataLoader[Any] | Iterable[Any] | None = None,
    ) -> None:
        super().__init__(directory)
        self._train, self._valid = train, valid

    def launch(self, learner: Learner, *, replace: bool = False) -> LearningResult:
        """Train; the result's model is the one for inference, as `model.valid()`.

        The learner then holds what was trained. Launching it again goes on from there;
        on another training it begins at epoch 1, with that model and optimizer.

        replace: stop what this process already trains into the same folder first.
        """
        if not isinstance(learner, Learner):
            raise ConfigError(
                "SupervisedTraining.launch",
                f"{type(learner).__name__} is not a learner",
                cure="launch(Learner(model, optim, 1e-4))",
            )
        self._watch("launch", learner.lr_scheduler)
        check_model("SupervisedTraining.launch", learner.model, -1)
        check_optimizer("SupervisedTraining.launch", learner.optim, learner.model, -1)
        plan = self._ready()
        learner.follow(plan)
        model = learner.fit(self._train, self._valid, replace=replace)
        assert learner.result is not None
        return LearningResult(model.valid(), plan.renderer, learner.result)
