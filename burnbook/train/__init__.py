"""Building blocks · Learner. Training: the learner, its metrics, logs and renderers."""

from burnbook.train.builder import LearnerBuilder
from burnbook.train.checkpoint import FileCheckpointer
from burnbook.train.early_stopping import (
    MetricEarlyStoppingStrategy,
    StoppingCondition,
)
from burnbook.train.events import Aggregate, Direction, EventStore, Split
from burnbook.train.folder import check_folder
from burnbook.train.history import MetricHistory
from burnbook.train.interrupter import Interrupter
from burnbook.train.learner import Learner, TrainingHandle
from burnbook.train.logger import (
    FileApplicationLogger,
    FileMetricLogger,
    InMemoryMetricLogger,
    MetricLogger,
)
from burnbook.train.metric import (
    AccuracyInput,
    AccuracyMetric,
    FormatOptions,
    LearningRateMetric,
    LossInput,
    LossMetric,
    Metric,
    MetricEntry,
    MetricMetadata,
    MetricState,
    NumericEntry,
    NumericMetric,
    NumericMetricState,
)
from burnbook.train.output import (
    Adaptor,
    ClassificationOutput,
    RegressionOutput,
    TrainOutput,
)
from burnbook.train.renderer import (
    MetricsRenderer,
    PlainRenderer,
    RunInfo,
    TerminalRenderer,
    TrainingProgress,
    TrainingResult,
)
from burnbook.train.strategy import (
    CheckpointingStrategy,
    ComposedCheckpointingStrategy,
    KeepLastNCheckpoints,
    MetricCheckpointingStrategy,
)
from burnbook.train.summary import LearnerSummary

__all__ = [
    "AccuracyInput",
    "AccuracyMetric",
    "Adaptor",
    "Aggregate",
    "CheckpointingStrategy",
    "ClassificationOutput",
    "ComposedCheckpointingStrategy",
    "Direction",
    "EventStore",
    "FileApplicationLogger",
    "FileCheckpointer",
    "FileMetricLogger",
    "FormatOptions",
    "InMemoryMetricLogger",
    "Interrupter",
    "KeepLastNCheckpoints",
    "Learner",
    "LearnerBuilder",
    "LearnerSummary",
    "LearningRateMetric",
    "LossInput",
    "LossMetric",
    "Metric",
    "MetricCheckpointingStrategy",
    "MetricEarlyStoppingStrategy",
    "MetricEntry",
    "MetricHistory",
    "MetricLogger",
    "MetricMetadata",
    "MetricState",
    "MetricsRenderer",
    "NumericEntry",
    "NumericMetric",
    "NumericMetricState",
    "PlainRenderer",
    "RegressionOutput",
    "RunInfo",
    "Split",
    "StoppingCondition",
    "TerminalRenderer",
    "TrainOutput",
    "TrainingHandle",
    "TrainingProgress",
    "TrainingResult",
    "check_folder",
]
