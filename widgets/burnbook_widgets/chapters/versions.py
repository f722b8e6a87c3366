"""The exercises about old and new forms.

They belong to the page beside chapter 3.3; see exercises.py for the others.
"""

from typing import Any

from burnbook.data import Batcher
from burnbook.examples.guide.model import Model
from burnbook.prelude import Numpy, Tensor
from burnbook_widgets.chapters.answers import (
    Holds,
    Value,
    a_class,
    an,
    as_array,
    described,
)


def for_every_version(kind: Any) -> str | None:
    """Ask for a batcher whose device is said when it is made, or with the batch."""
    short, long = Numpy("f32"), Numpy("f64")
    tries = [
        ("made without a device, told f64", kind(), (long,), long),
        ("made for f64, told nothing", kind(long), (), long),
        ("made for f64, told f32", kind(long), (short,), short),
        ("made without a device, told nothing", kind(), (), None),
    ]
    for name, batcher, told, wanted in tries:
        batch = batcher.batch([3.0, 1.0], *told)
        if not isinstance(batch, Tensor):
            return f"{name}, it returns {described(batch)}, not a tensor"
        if as_array(batch).tolist() != [3.0, 1.0]:
            return f"{name}, it changes the numbers"
        if wanted is not None and batch.device() is not wanted:
            return f"{name}, it works on {batch.device()}"
    return None


def without_gradients(model: Any) -> str | None:
    """Ask for a trained model of the guide, ready for inference."""
    tracked = any(device.ad_enabled for device in model.devices())
    return "it still has gradients" if tracked else None


VERSIONS = {
    "3.3.5": Value(
        lambda: "0.19",
        "devices() says what a model is on",
        [
            ("0.20", "there it has none, either; but an earlier version was first"),
            ("0.17", "there the trained model is the one that was trained"),
        ],
    ),
    "3.3.6": Holds(
        a_class(Batcher, "a class of batchers"),
        for_every_version,
        "device or self.device or Numpy()",
    ),
    "3.3.7": Holds(
        an(Model, called="a model of the guide"),
        without_gradients,
        "the learner calls it before it validates",
    ),
}
