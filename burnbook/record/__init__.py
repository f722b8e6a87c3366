"""Saving what a model has learned, in Burn's own formats."""

from typing import TYPE_CHECKING

from burnbook.core.errors import RecordError
from burnbook.core.other_names import module_answers
from burnbook.module.records import ModuleRecord
from burnbook.record.binary import (
    BinBytesRecorder,
    BinFileRecorder,
    BinGzFileRecorder,
    NoStdInferenceRecorder,
    NoStdTrainingRecorder,
    SealedRecord,
    SensitiveCompactRecorder,
)
from burnbook.record.burnpack import BurnpackRecorder
from burnbook.record.conversion import convert
from burnbook.record.inspection import Entry, RecordSummary, describe
from burnbook.record.recorder import (
    CompactRecorder,
    DebugRecordSettings,
    DefaultFileRecorder,
    DefaultRecorder,
    FileRecorder,
    JsonGzFileRecorder,
    NamedMpkBytesRecorder,
    NamedMpkFileRecorder,
    NamedMpkGzFileRecorder,
    PrettyJsonFileRecorder,
    Recorder,
)
from burnbook.record.safe import SafetensorsRecorder
from burnbook.record.settings import (
    DoublePrecisionSettings,
    FullPrecisionSettings,
    HalfPrecisionSettings,
    PrecisionSettings,
)
from burnbook.record.tree import BurnRecord, Metadata

__all__ = [
    "BinBytesRecorder",
    "BinFileRecorder",
    "BinGzFileRecorder",
    "BurnRecord",
    "BurnpackRecorder",
    "CompactRecorder",
    "DebugRecordSettings",
    "DefaultFileRecorder",
    "DefaultRecorder",
    "DoublePrecisionSettings",
    "Entry",
    "FileRecorder",
    "FullPrecisionSettings",
    "HalfPrecisionSettings",
    "JsonGzFileRecorder",
    "Metadata",
    "ModuleRecord",
    "NamedMpkBytesRecorder",
    "NamedMpkFileRecorder",
    "NamedMpkGzFileRecorder",
    "NoStdInferenceRecorder",
    "NoStdTrainingRecorder",
    "PrecisionSettings",
    "PrettyJsonFileRecorder",
    "RecordError",
    "RecordSummary",
    "Recorder",
    "SafetensorsRecorder",
    "SealedRecord",
    "SensitiveCompactRecorder",
    "convert",
    "describe",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
