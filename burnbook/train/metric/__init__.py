"""Building blocks · Metric. What is measured while a model trains."""

from burnbook.train.metric.accuracy import AccuracyMetric
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
from burnbook.train.metric.input import AccuracyInput, LossInput
from burnbook.train.metric.learning_rate import LearningRateMetric
from burnbook.train.metric.loss import LossMetric

__all__ = [
    "AccuracyInput",
    "AccuracyMetric",
    "FormatOptions",
    "LearningRateMetric",
    "LossInput",
    "LossMetric",
    "Metric",
    "MetricEntry",
    "MetricMetadata",
    "MetricState",
    "NumericEntry",
    "NumericMetric",
    "NumericMetricState",
    "metric_name",
]
