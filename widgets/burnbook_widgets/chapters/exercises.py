"""Getting started. The exercises of all chapters: what is right, and a hint for each.

An answer is compared with a value, or asked what it does (see answers.py). Numbers are
those of the chapters: 3.1.2 is the second exercise of chapter 3.1.
"""

import math
from typing import Any

import numpy as np

from burnbook import nn
from burnbook.data import DigitsDataset
from burnbook.examples.guide.model import ModelConfig
from burnbook.module import Module, ParamId
from burnbook.op import OPS
from burnbook.optim import (
    GradientClippingConfig,
    GradientsParams,
    MomentumConfig,
    SgdConfig,
)
from burnbook.prelude import Autodiff, Distribution, Int, Numpy, Tensor
from burnbook_widgets.chapters.answers import Holds, Value, as_array
from burnbook_widgets.chapters.keeping import KEEPING
from burnbook_widgets.chapters.learning import LEARNING
from burnbook_widgets.chapters.measuring import MEASURING
from burnbook_widgets.chapters.versions import VERSIONS


def floats(*values: float) -> Tensor:
    """Return a Float tensor of rank 1."""
    return Tensor.from_floats(list(values), Numpy())


def ints(*values: int) -> Tensor:
    """Return an Int tensor of rank 1."""
    return Tensor[1, Int].from_ints(list(values), Numpy())


def letters_config(config: Any) -> str | None:
    """Ask for 26 classes, 64 hidden numbers, dropout 0.25."""
    wanted = {"num_classes": 26, "hidden_size": 64, "dropout": 0.25}
    wrong = [name for name, value in wanted.items() if getattr(config, name) != value]
    return f"{wrong[0]} is {getattr(config, wrong[0])}" if wrong else None


def small_mlp(model: Any) -> str | None:
    """Ask for two linear layers, 784 → 32 → 10, with a Relu between them."""
    wanted = 784 * 32 + 32 + 32 * 10 + 10
    if model.num_params() != wanted:
        return f"it has {model.num_params()} parameters, and should have {wanted}"
    x = Tensor.random([3, 784], Distribution.Default, Numpy())
    out = model.forward(x)
    if out is None:
        return "forward returns nothing"
    hidden = np.maximum(as_array(model.first.forward(x)), 0)
    expected = model.second.forward(Tensor.from_numpy(hidden, Numpy()))
    if not np.allclose(as_array(out), as_array(expected), atol=1e-5):
        return "forward does something else"
    return None


def squares(dataset: Any) -> str | None:
    """Ask for 0, 1, 4, … 81, and for nothing past the end."""
    if len(dataset) != 10:
        return f"it has {len(dataset)} items, and should have 10"
    wrong = [i for i in range(10) if dataset.get(i) != i * i]
    if wrong:
        return f"item {wrong[0]} is {dataset.get(wrong[0])}"
    return None if dataset.get(10) is None else "it goes on past its end"


def numbers_batcher(batcher: Any) -> str | None:
    """Ask for a Float tensor of rank 1 with the numbers of the items."""
    return Value(lambda: floats(3, 1, 4), "").trouble(batcher.batch([3, 1, 4]))


def wide_backend(backend: Any) -> str | None:
    """Ask for 64 bits and gradients."""
    if not backend.ad_enabled:
        return "it has no gradients"
    return None if backend.float == "f64" else f"its floats are {backend.float}"


def predictor(predict: Any) -> str | None:
    """Ask for the digit of the largest output, whatever the model."""

    class Fixed:
        def forward(self, images: Tensor) -> Tensor:
            scores = [float(i == 7) for i in range(10)]
            return Tensor.from_floats([scores] * images.dims()[0], Numpy())

        def devices(self) -> list[Any]:
            return [Numpy()]

    digit = predict(Fixed(), DigitsDataset.test().get(0))
    return Value(lambda: 7, "").trouble(digit)


def short_ints(backend: Any) -> str | None:
    """Ask for gradients, 64-bit floats and 32-bit whole numbers."""
    whole = None if backend.int == "i32" else f"its whole numbers are {backend.int}"
    return wide_backend(backend) or whole


def measuring(decorator: Any) -> str | None:
    """Ask for a decorator that adds up the sizes of all results."""
    device = decorator(Numpy())
    x = Tensor.from_numpy(np.ones((4, 3), dtype=np.float32), device)
    before = device.numbers
    (x @ x.swap_dims(0, 1)).exp()
    found = device.numbers - before
    wanted = 12 + 16 + 16
    return None if found == wanted else f"it says {found} where {wanted} were made"


def counts_gradients(backend: Any) -> str | None:
    """Ask for gradients, and for a counter that sees them."""
    if not backend.ad_enabled:
        return "it has no gradients"
    x = Tensor.from_floats([2.0], backend).require_grad()
    (x * x).backward()
    while not hasattr(backend, "counts"):
        if backend.inner is backend:
            return "nothing in it counts"
        backend = backend.inner
    return None if "mul.backward" in backend.counts else "it counts forward ops only"


def repeating(draw: Any) -> str | None:
    """Ask for three random numbers, the same at every call."""
    device = Numpy(compiled=False)
    one, two = as_array(draw(device)), as_array(draw(device))
    if one.shape != (3,):
        return f"it gives {list(one.shape)}, and should give [3]"
    if len(set(one.tolist())) == 1:
        return "its three numbers are alike"
    return None if np.array_equal(one, two) else "two calls give different numbers"


def division_rules(rules: Any) -> str | None:
    """Ask for g / y and −g x / y²."""
    g, x, y = (np.array(v) for v in ([2.0, 1.0], [3.0, 4.0], [2.0, -4.0]))
    found = rules(g, x, y)
    if found is ... or len(found) != 2:
        return "it should return two gradients"
    right = (g / y, -g * x / y**2)
    pairs = zip("xy", right, found, strict=True)
    wrong = [name for name, a, b in pairs if not np.allclose(a, b)]
    return f"the gradient for {wrong[0]} is another" if wrong else None


def turned(hook: Any) -> str | None:
    """Ask for a hook that changes the sign."""
    x = Tensor.from_floats([3.0], Autodiff(Numpy())).require_grad()
    x.hook(hook)
    gradient = x.grad((x * x).backward())
    slope = float("nan") if gradient is None else gradient.into_scalar()
    return None if slope == -6 else f"with it the slope of x² at 3 is {slope:.4g}"


def two_again(backend: Any) -> str | None:
    """Ask for a strategy that recomputes tanh and relu, and nothing else."""
    if not backend.ad_enabled:
        return "it has no gradients"
    asked = {"tanh", "relu"}
    again = {op.name for op in OPS.values() if backend.checkpointing.recomputes(op)}
    if missing := sorted(asked - again):
        return f"it does not compute {missing[0]} again"
    return f"it also computes {min(again - asked)} again" if again - asked else None


def zeroing(mapper: Any) -> str | None:
    """Ask for a mapper after which every parameter is zero."""
    layer = nn.LinearConfig(2, 3).init(Numpy())
    left = layer.map(mapper)
    largest = max(np.abs(as_array(p.val())).max() for _, p in left.named_params())
    return "some parameters are not zero" if largest else None


def residual(kind: Any) -> str | None:
    """Ask for x + layer(x)."""
    if not (isinstance(kind, type) and issubclass(kind, Module)):
        return "it should be a class of modules"
    make: Any = kind  # of the reader, with fields of its own
    layer = nn.LinearConfig(2, 2).init(Numpy())
    x = Tensor.from_floats([[1.0, -2.0]], Numpy())
    found = make(layer=layer).forward(x)
    if found is ... or found is None:
        return "forward gives nothing yet"
    right = as_array(x) + as_array(layer.forward(x))
    return None if np.allclose(as_array(found), right) else "another sum comes out"


def clipped_sgd(config: Any) -> str | None:
    """Ask for Sgd with Nesterov's momentum of 0.8, undampened, and bounded elements."""
    right = SgdConfig(
        momentum=MomentumConfig(momentum=0.8, dampening=0.0, nesterov=True),
        gradient_clipping=GradientClippingConfig.Value(1.0),
    )
    if not isinstance(config, SgdConfig):
        return "it is not a SgdConfig"
    names = ("momentum", "gradient_clipping", "weight_decay")
    wrong = [name for name in names if getattr(config, name) != getattr(right, name)]
    return f"its {wrong[0]} is {getattr(config, wrong[0])!r}" if wrong else None


def inner_weights(group: Any) -> str | None:
    """Ask for all weights but those of the output layer."""
    paths = {
        "hidden.weight": True,
        "hidden.bias": False,
        "output.weight": False,
        "output.bias": False,
        "layers.1.weight": True,
    }
    found = {path: group.matches(ParamId(1), path) for path in paths}
    wrong = [path for path, inside in paths.items() if found[path] is not inside]
    return (
        f"{wrong[0]} is {'in' if found[wrong[0]] else 'not in'} it" if wrong else None
    )


def sign_rule(rule: Any) -> str | None:
    """Ask for a rule that goes by lr against the sign of the gradient."""
    tensor, grad = floats(1, 2, 3), floats(5, -0.1, 0)
    made, state = rule.step(0.5, tensor, grad, None)
    if state is not None:
        return "it remembers something"
    return Value(lambda: floats(0.5, 2.5, 3), "").trouble(made)


def climbing(config: Any) -> str | None:
    """Ask for 0.1, 0.2, 0.3, then 0.4 for ever."""
    schedule = config.init()
    found = [schedule.step() for _ in range(6)]
    right = [0.1, 0.2, 0.3, 0.4, 0.4, 0.4]
    wrong = [i for i in range(6) if not math.isclose(found[i], right[i])]
    return f"call {wrong[0]} gives {found[wrong[0]]:.4g}" if wrong else None


def harmonic(make: Any) -> str | None:
    """Ask for 1 / (1 + i), also after a stop."""
    schedule, right = make(), [1 / i for i in range(1, 8)]
    found = [schedule.step() for _ in range(4)]
    record = schedule.into_record()
    found += [schedule.step() for _ in range(3)]
    if ... in found or not np.allclose(found, right):
        return "its rates are others"
    resumed = make().load_record(record)
    again = [resumed.step() for _ in range(3)]
    return None if np.allclose(again, right[4:]) else "loaded, it goes on elsewhere"


def one_step(step: Any) -> str | None:
    """Ask for gradients by parameter, and the model after the step."""
    layer = nn.LinearConfig(2, 1).init(Autodiff(Numpy()))
    x = Tensor.from_floats([[1.0, -2.0]], Autodiff(Numpy()))
    made = step(layer, SgdConfig().init(), 0.5, lambda model: model.forward(x).sum())
    if not hasattr(made, "forward"):
        return "it returns no model"
    moved = as_array(layer.weight.val()) - as_array(made.weight.val())
    right = np.allclose(moved, [[0.5], [-1.0]], atol=1e-5)
    return None if right else "the model has moved elsewhere"


def takes_biases(take: Any) -> str | None:
    """Ask for the gradients of the biases; the others stay."""
    device = Autodiff(Numpy())
    model = ModelConfig(10, 4, dropout=0.0).init(device)
    images = Tensor[3].ones([2, 28, 28], device)
    grads = model.forward(images).sum().backward()
    every = len(grads)
    found = take(grads, model)
    if not isinstance(found, GradientsParams):
        return "it should return GradientsParams"
    named = [
        (path.rpartition(".")[2], param.id) for path, param in model.named_params()
    ]
    wrong = [
        n for n, number in named if (n == "bias") != (number in dict(found.items()))
    ]
    if wrong:
        return f"a {wrong[0]} is {'not ' * (wrong[0] == 'bias')}in it"
    return None if len(grads) == every - len(found) else "the others are gone, too"


EXERCISES: dict[str, Value | Holds] = {
    **KEEPING,
    **LEARNING,
    **MEASURING,
    **VERSIONS,
    "1.1": Value(lambda: 6.0, "the slope of w² is 2 w"),
    "1.2": Value(lambda: 2.4, "new w = old w − rate · slope"),
    "1.3": Value(lambda: floats(6), "backward() gives a container: z.grad(container)"),
    "2.1": Value(
        lambda: Tensor.full([2, 3], 7.0, Numpy()),
        "Tensor[2].full(shape, value, device)",
    ),
    "2.2": Value(lambda: [2, 3], "[2, 1] and [1, 3]: size 1 stretches, on both sides"),
    "2.3": Value(lambda: ints(20), "0, 2, 4, 6, 8: a range times 2"),
    "2.4": Value(lambda: floats(2), "only Float tensors have a mean: .float() first"),
    "3.1.1": Value(
        lambda: 1168, "one window has a weight per channel it reads; + biases"
    ),
    "3.1.2": Holds(letters_config, "ModelConfig(26, 64), then with_dropout"),
    "3.1.3": Value(lambda: [2, 4, 28, 16], "a window of 5 leaves size − 4 stops"),
    "3.1.4": Holds(small_mlp, "second of relu of first; LinearConfig(784, 32).init(…)"),
    "3.2.1": Value(lambda: 15, "1,438 images; the last batch is not full"),
    "3.2.2": Value(lambda: (1 - 0.1307) / 0.3081, "255 / 255 is 1"),
    "3.2.3": Holds(squares, "MapperDataset(InMemDataset(list(range(10))), mapper)"),
    "3.2.4": Holds(numbers_batcher, "Tensor[1].from_floats wants a list of floats"),
    "3.3.1": Value(
        lambda: math.log(10), "each class gets 1/10; the loss is −log of it"
    ),
    "3.3.2": Value(lambda: 200 / 3, "the larger of two scores is the guess"),
    "3.3.3": Value(lambda: floats(3, 12, 27), "(x * x * x).sum().backward()"),
    "3.3.4": Value(lambda: 10 * 23, "one step per batch, 23 batches an epoch"),
    "3.4.1": Holds(wide_backend, "a coat around Numpy(float=…)"),
    "3.4.2": Value(lambda: 3, "one per operator"),
    "3.4.3": Value(lambda: floats(1, 2), "the word for what lies below a coat"),
    "3.5.1": Value(
        lambda: [0.25] * 4, "equal logits, equal probabilities; they sum to 1"
    ),
    "3.5.2": Value(
        lambda: ints(*[item.label for item in list(DigitsDataset.test())[:5]]),
        "the batcher gives images and targets",
    ),
    "3.5.3": Holds(predictor, "the step-by-step cell, with a model of your choice"),
    "4.1.1": Holds(short_ints, "Autodiff around Numpy(float, int=…)"),
    "4.1.2": Holds(measuring, "run the op first; a result has .size"),
    "4.1.3": Holds(counts_gradients, "which coat is the outer one?"),
    "4.1.4": Holds(repeating, "start the stream again, then draw"),
    "4.2.1": Value(
        lambda: Tensor.from_floats([[0, 0.25, 1], [0, 1, 0.5]], Numpy()),
        "as above for four numbers, with min_dim and max_dim along dim 1",
    ),
    "4.2.2": Value(
        lambda: Tensor[2, Int].from_ints([[5, 6], [9, 10]], Numpy()),
        "one range per dim; −1 is the last place, and an end is not included",
    ),
    "4.2.3": Value(lambda: [-4, 4], "Int stays Int, cut toward zero"),
    "4.2.4": Value(
        lambda: Tensor.from_floats([[0, 1, 5], [1, 0, 4], [5, 4, 0]], Numpy()),
        "[1, 3] and [3, 1] stretch to [3, 3]: unsqueeze_dim, twice",
    ),
    "4.2.5": Value(lambda: 1e-3, "the report has a property for it"),
    "4.3.1": Value(lambda: [3.0, 6.0], "what is detached counts as a constant"),
    "4.3.2": Holds(division_rules, "x / y is x · y⁻¹; the slope of y⁻¹ is −y⁻²"),
    "4.3.3": Value(lambda: [6.0, 12.0, 18.0], "twice(f, points) gives three arrays"),
    "4.3.4": Holds(turned, "what the hook returns goes on in its place"),
    "4.3.5": Holds(two_again, "BalancedCheckpointing takes a set of names"),
    "4.4.1": Value(lambda: 2_099_712, "weights and biases of both linear layers"),
    "4.4.2": Holds(zeroing, "map_float gets id and tensor: tensor.zeros_like()"),
    "4.4.3": Holds(residual, "self.layer.forward(x), and x again"),
    "4.4.4": Value(lambda: 10_240, "[512, 4] and [4, 2048]"),
    "4.5.1": Value(lambda: 0.3, "at first both averages are of one gradient: g / √g²"),
    "4.5.2": Holds(clipped_sgd, "MomentumConfig(…), then GradientClippingConfig.Value"),
    "4.5.3": Holds(inner_weights, "one group, and exclude another"),
    "4.5.4": Holds(sign_rule, "a tensor has sign(); return two things"),
    "4.7.1": Value(lambda: 0.1, "call 0 gives 0.8, and each one half of that before"),
    "4.7.2": Value(lambda: 91, "1, 0.1, 0.01 take 30 calls each"),
    "4.7.3": Holds(climbing, "from 0.1 to 0.4 in a line"),
    "4.7.4": Holds(harmonic, "Counted has what saves and loads; count in step"),
    "5.1": Value(lambda: 0.0125, "the sum is eight times the mean"),
    "5.2": Holds(one_step, "backward, from_grads, step"),
    "5.3": Holds(takes_biases, "from_params takes a list of ids"),
    "5.4": Value(lambda: 6, "20 batches make 5 steps"),
}
