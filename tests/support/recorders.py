"""The recorders that every record of a training goes through."""

import pytest

from burnbook.record import (
    JsonGzFileRecorder,
    NamedMpkFileRecorder,
    NamedMpkGzFileRecorder,
    PrettyJsonFileRecorder,
)

every_recorder = pytest.mark.parametrize(
    "kind",
    [
        *(NamedMpkFileRecorder, NamedMpkGzFileRecorder),
        *(JsonGzFileRecorder, PrettyJsonFileRecorder),
    ],
)
