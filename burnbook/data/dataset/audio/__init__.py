"""Sounds: spoken words."""

from burnbook.data.dataset.audio.speech import (
    SpeechCommandClass,
    SpeechCommandsDataset,
    SpeechItem,
)

__all__ = ["SpeechCommandClass", "SpeechCommandsDataset", "SpeechItem"]
