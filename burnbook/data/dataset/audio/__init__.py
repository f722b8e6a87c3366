"""Sounds: spoken words."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.data.dataset.audio.speech import (
    SpeechCommandClass,
    SpeechCommandsDataset,
    SpeechItem,
)

__all__ = ["SpeechCommandClass", "SpeechCommandsDataset", "SpeechItem"]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
