"""Cross-entropy: how wrong the probabilities of classes are."""

from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.errors import DimError
from burnbook.core.op import indices, normal, op
from burnbook.ops.softmax import log_softmax, softmax


def _one_target_each(logits: tuple[int, ...], targets: tuple[int, ...]) -> str | None:
    if len(logits) != 2 or len(targets) != 1:
        return "logits must be [n, c] and targets [n]"
    if logits[0] != targets[0]:
        return (
            f"{logits[0]} ≠ {targets[0]}: one target is needed for each row of logits"
        )
    if 0 in logits:
        return "there is nothing to average"
    return None


@op("FI>F", check=_one_target_each)
def cross_entropy(xp: ArrayNamespace, logits: Array, targets: Array) -> Array:
    """How surprised the scores are by the targets: out = −mean log softmax(logits)ₜ.

    Shapes: logits [n, c], targets [n] -> [1]
    """
    _inside(xp, logits, targets)
    rows = xp.arange(logits.shape[0])
    logs = log_softmax.forward(xp, logits, dim=1)[rows, targets]
    return -xp.mean(logs, keepdims=True)


@op("FFI>F", method=False)
def cross_entropy_logits(
    xp: ArrayNamespace, dout: Array, logits: Array, targets: Array
) -> Array:
    """The gradient of cross_entropy: (softmax(logits) − one-hot(targets)) dout / n.

    The targets are classes: cross_entropy has seen to it.

    Shapes: dout [1], logits [n, c], targets [n] -> [n, c]
    """
    slope = softmax.forward(xp, logits, dim=1)
    slope[xp.arange(logits.shape[0]), targets] -= 1
    slope *= dout * dout.dtype.type(1 / logits.shape[0])
    return slope


def _second(xp: ArrayNamespace, g: Array, dout: Array, logits: Array) -> Any:
    """How (softmax − one-hot) dout / n answers to a change of logits, times g."""
    out = softmax(xp, logits, dim=1)
    inner = g - xp.sum(g * out, axis=1, keepdims=True)
    return out * inner * xp.reshape(dout, (1, 1)) * (1 / logits.shape[0])


def _second_dout(xp: ArrayNamespace, g: Array, logits: Array, targets: Array) -> Any:
    classes = xp.arange(logits.shape[1])
    slope = softmax(xp, logits, dim=1) - (xp.reshape(targets, (-1, 1)) == classes)
    total = xp.sum(g * slope, axis=(0, 1), keepdims=True)
    return xp.reshape(total, (1,)) * (1 / logits.shape[0])


cross_entropy.grad(logits=cross_entropy_logits)

cross_entropy.examples(
    samples=[(normal(4, 5), indices(5, 4))], rejects=[(normal(4, 5), indices(5, 3))]
)
cross_entropy_logits.grad(dout=_second_dout, logits=_second)


def _inside(xp: ArrayNamespace, logits: Array, targets: Array) -> None:
    """NumPy counts negative indices from the end; a class number must not."""
    low, high = int(targets.min()), int(targets.max())
    classes = logits.shape[1]
    if low < 0 or high >= classes:
        wrong = low if low < 0 else high
        raise DimError(
            "cross_entropy",
            f"target {wrong} is not one of the {classes} classes",
            [("logits", f"{list(logits.shape)}"), ("targets", f"{low} … {high}")],
            _cure(xp, targets, classes),
        )


def _cure(xp: ArrayNamespace, targets: Array, classes: int) -> str:
    """What is right for targets outside of the classes: counted from 1, or padding."""
    low, high = int(targets.min()), int(targets.max())
    if low == 1 and high == classes:
        return "targets - 1, if they count from 1"
    below = targets[targets < 0]
    if high < classes and len(below) and bool(xp.all(below == low)):
        left_out = f"pad_tokens=[{low}], pads_count=False"
        return f"CrossEntropyLossConfig({left_out}), if {low} marks what is left out"
    return f"targets from 0 to {classes - 1}"


def refuse_strange_targets(xp: Any, logits: Array, targets: Array) -> None:
    """Refuse targets that are not one of the classes, where the op itself is not run."""
    _inside(xp, logits, targets)
