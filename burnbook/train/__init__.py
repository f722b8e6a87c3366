"""Training: the learner, its metrics, logs and renderers."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.train import (
    callback as callback,
    metric as metric,
    renderer as renderer,
    runs as runs,
)
from burnbook.train.builder import LearnerBuilder
from burnbook.train.callback import (
    AveragedWeights,
    Callback,
    Ema,
    FunctionCallback,
    RestoreBest,
    TrainingState,
)
from burnbook.train.checkpoint import FileCheckpointer
from burnbook.train.checkpoint_strategy import (
    CheckpointingStrategy,
    ComposedCheckpointingStrategy,
    KeepLastNCheckpoints,
    MetricCheckpointingStrategy,
)
from burnbook.train.early_stopping import (
    EarlyStoppingStrategy,
    MetricEarlyStoppingStrategy,
    StoppingCondition,
)
from burnbook.train.evaluator import Evaluation, Evaluator, EvaluatorBuilder
from burnbook.train.events import Aggregate, Direction, EventStore, Split
from burnbook.train.folder import check_folder
from burnbook.train.history import MetricHistory
from burnbook.train.interrupter import Interrupter
from burnbook.train.learner import Learner, TrainingHandle
from burnbook.train.live import LiveRun, live_runs
from burnbook.train.logger import (
    FileApplicationLogger,
    FileMetricLogger,
    InMemoryMetricLogger,
    MetricLogger,
)
from burnbook.train.lr_finder import LearningRateCurve, find_learning_rate
from burnbook.train.metric import (
    AccuracyInput,
    AccuracyMetric,
    AucPrMetric,
    AurocMetric,
    BleuInput,
    BleuScore,
    BleuSmoothing,
    CerInput,
    CharErrorRate,
    ClassReduction,
    ConfusionStats,
    ConfusionStatsInput,
    CpuMemory,
    CpuTemperature,
    CpuUse,
    CudaMetric,
    DecisionRule,
    DiceInput,
    DiceMetric,
    DiceMetricConfig,
    FBetaScoreMetric,
    FormatOptions,
    GpuTemperature,
    HammingScore,
    HammingScoreInput,
    IterationSpeedMetric,
    LearningRateMetric,
    LossInput,
    LossMetric,
    Metric,
    MetricEntry,
    MetricMetadata,
    MetricState,
    MsSsimInput,
    MsSsimMetric,
    MsSsimMetricConfig,
    NumericEntry,
    NumericMetric,
    NumericMetricState,
    PerplexityInput,
    PerplexityMetric,
    PrecisionMetric,
    PsnrInput,
    PsnrMetric,
    PsnrMetricConfig,
    RecallMetric,
    RougeLInput,
    RougeLScore,
    SsimInput,
    SsimMetric,
    SsimMetricConfig,
    TopKAccuracyInput,
    TopKAccuracyMetric,
    WerInput,
    WordErrorRate,
)
from burnbook.train.output import (
    Adaptor,
    ClassificationOutput,
    InferenceStep,
    MultiLabelClassificationOutput,
    RegressionOutput,
    SequenceOutput,
    TrainOutput,
    TrainStep,
    ValidStep,
)
from burnbook.train.renderer import (
    CliMetricsRenderer,
    MetricsRenderer,
    PlainRenderer,
    RunInfo,
    TerminalRenderer,
    TrainingProgress,
    TrainingResult,
)
from burnbook.train.runs import Checkpoint, MetricPoint, Run, RunComparison, RunStore
from burnbook.train.summary import LearnerSummary
from burnbook.train.supervised import LearningResult, SupervisedTraining
from burnbook.train.sweep import (
    Choice,
    LogUniform,
    Sweep,
    Trial,
    Uniform,
    Whole,
    sweep,
)
from burnbook.train.training_strategy import (
    LearningParadigm,
    MultiDeviceOptim,
    TrainingStrategy,
)

__all__ = [
    "Adaptor",
    "Aggregate",
    "AveragedWeights",
    "Callback",
    "CheckpointingStrategy",
    "Choice",
    "ClassificationOutput",
    "ComposedCheckpointingStrategy",
    "Direction",
    "EarlyStoppingStrategy",
    "Ema",
    "Evaluation",
    "Evaluator",
    "EvaluatorBuilder",
    "EventStore",
    "FileApplicationLogger",
    "FileCheckpointer",
    "FileMetricLogger",
    "FunctionCallback",
    "InMemoryMetricLogger",
    "InferenceStep",
    "Interrupter",
    "KeepLastNCheckpoints",
    "Learner",
    "LearnerBuilder",
    "LearnerSummary",
    "LearningParadigm",
    "LearningRateCurve",
    "LearningResult",
    "LiveRun",
    "LogUniform",
    "MetricCheckpointingStrategy",
    "MetricEarlyStoppingStrategy",
    "MetricHistory",
    "MetricLogger",
    "MultiDeviceOptim",
    "MultiLabelClassificationOutput",
    "RegressionOutput",
    "RestoreBest",
    "SequenceOutput",
    "Split",
    "StoppingCondition",
    "SupervisedTraining",
    "Sweep",
    "TrainOutput",
    "TrainStep",
    "TrainingHandle",
    "TrainingState",
    "TrainingStrategy",
    "Trial",
    "Uniform",
    "ValidStep",
    "Whole",
    "check_folder",
    "find_learning_rate",
    "live_runs",
    "sweep",
]
__all__ += metric.__all__
__all__ += renderer.__all__
__all__ += runs.__all__
__all__.remove("ConfusionMetric")
__all__.remove("metric_name")
__all__.remove("choose")
__all__.remove("is_run")

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
