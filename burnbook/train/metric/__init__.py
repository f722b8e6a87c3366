"""What is measured while a model trains."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.train.metric import vision as vision
from burnbook.train.metric.accuracy import AccuracyMetric, TopKAccuracyMetric
from burnbook.train.metric.base import (
    FormatOptions,
    Metric,
    MetricEntry,
    MetricMetadata,
    MetricState,
    NumericEntry,
    NumericMetric,
    NumericMetricState,
    metric_name,
)
from burnbook.train.metric.bleu import BleuScore, BleuSmoothing
from burnbook.train.metric.classification import ClassReduction, DecisionRule
from burnbook.train.metric.confusion_stats import ConfusionMetric, ConfusionStats
from burnbook.train.metric.cpu import CpuMemory, CpuTemperature, CpuUse
from burnbook.train.metric.error_rate import CharErrorRate, WordErrorRate
from burnbook.train.metric.fbetascore import FBetaScoreMetric
from burnbook.train.metric.gpu import CudaMetric, GpuTemperature
from burnbook.train.metric.hamming import HammingScore
from burnbook.train.metric.input import (
    AccuracyInput,
    BleuInput,
    CerInput,
    ConfusionStatsInput,
    DiceInput,
    HammingScoreInput,
    LossInput,
    MsSsimInput,
    PerplexityInput,
    PsnrInput,
    RougeLInput,
    SsimInput,
    TopKAccuracyInput,
    WerInput,
)
from burnbook.train.metric.iteration_speed import IterationSpeedMetric
from burnbook.train.metric.learning_rate import LearningRateMetric
from burnbook.train.metric.loss import LossMetric
from burnbook.train.metric.perplexity import PerplexityMetric
from burnbook.train.metric.precision import PrecisionMetric
from burnbook.train.metric.ranking import AucPrMetric, AurocMetric
from burnbook.train.metric.recall import RecallMetric
from burnbook.train.metric.rouge import RougeLScore
from burnbook.train.metric.vision import (
    DiceMetric,
    DiceMetricConfig,
    MsSsimMetric,
    MsSsimMetricConfig,
    PsnrMetric,
    PsnrMetricConfig,
    SsimMetric,
    SsimMetricConfig,
)

__all__ = [
    "AccuracyInput",
    "AccuracyMetric",
    "AucPrMetric",
    "AurocMetric",
    "BleuInput",
    "BleuScore",
    "BleuSmoothing",
    "CerInput",
    "CharErrorRate",
    "ClassReduction",
    "ConfusionMetric",
    "ConfusionStats",
    "ConfusionStatsInput",
    "CpuMemory",
    "CpuTemperature",
    "CpuUse",
    "CudaMetric",
    "DecisionRule",
    "DiceInput",
    "FBetaScoreMetric",
    "FormatOptions",
    "GpuTemperature",
    "HammingScore",
    "HammingScoreInput",
    "IterationSpeedMetric",
    "LearningRateMetric",
    "LossInput",
    "LossMetric",
    "Metric",
    "MetricEntry",
    "MetricMetadata",
    "MetricState",
    "MsSsimInput",
    "NumericEntry",
    "NumericMetric",
    "NumericMetricState",
    "PerplexityInput",
    "PerplexityMetric",
    "PrecisionMetric",
    "PsnrInput",
    "RecallMetric",
    "RougeLInput",
    "RougeLScore",
    "SsimInput",
    "TopKAccuracyInput",
    "TopKAccuracyMetric",
    "WerInput",
    "WordErrorRate",
    "metric_name",
]
__all__ += vision.__all__

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
