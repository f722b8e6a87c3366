"""The exercises of all chapters: what is right, and a hint for each.

An answer is compared with a value, or asked what it does (see answers.py). Numbers are
those of the chapters: 3.1.2 is the second exercise of chapter 3.1.
"""

import math
from typing import Any

import numpy as np

from burnbook import nn
from burnbook.backend import Decorator
from burnbook.config import Config
from burnbook.core.op import OPS
from burnbook.data import Batcher, Dataset, DigitsDataset
from burnbook.examples.guide.data import MnistBatcher
from burnbook.examples.guide.model import ModelConfig
from burnbook.grad_clipping import GradientClippingConfig
from burnbook.module import Module, ModuleMapper, ParamId
from burnbook.optim import GradientsParams, MomentumConfig, ParamGroup, SgdConfig
from burnbook.prelude import Autodiff, Backend, Distribution, Int, Numpy, Tensor
from burnbook_widgets.chapters.answers import (
    FUNCTION,
    Holds,
    Kind,
    Value,
    a_class,
    an,
    as_array,
    compare,
    described,
)
from burnbook_widgets.chapters.importing import IMPORTING
from burnbook_widgets.chapters.learning import LEARNING
from burnbook_widgets.chapters.measuring import MEASURING
from burnbook_widgets.chapters.performance import PERFORMANCE
from burnbook_widgets.chapters.records import RECORDS
from burnbook_widgets.chapters.versions import VERSIONS
from burnbook_widgets.chapters.weights import WEIGHTS

BACKEND = an(Backend, called="a backend")
LAYERS = a_class(Module, "a class of modules")


def can(method: str, called: str) -> Kind:
    """An object with a method of this name."""
    return Kind(
        called,
        lambda thing: (
            not isinstance(thing, type) and callable(getattr(thing, method, None))
        ),
    )


SCHEDULES = Kind(
    "a class of schedules",
    lambda thing: isinstance(thing, type) and hasattr(thing, "step"),
)


def floats(*values: float) -> Tensor:
    """Return a Float tensor of rank 1."""
    return Tensor.from_floats(list(values), Numpy())


def ints(*values: int) -> Tensor:
    """Return an Int tensor of rank 1."""
    return Tensor[1, Int].from_ints(list(values), Numpy())


def letters_config(config: Any) -> str | None:
    """Ask for 26 classes, 64 hidden numbers, dropout 0.25."""
    wanted = {"num_classes": 26, "hidden_size": 64, "dropout": 0.25}
    for name, value in wanted.items():
        if not hasattr(config, name):
            return f"it has no field {name}: ModelConfig has"
        if (found := getattr(config, name)) != value:
            return f"its {name} is {found}, and should be {value}"
    return None


def small_mlp(model: Any) -> str | None:
    """Ask for two linear layers, 784 → 32 → 10, with a Relu between them."""
    wanted = 784 * 32 + 32 + 32 * 10 + 10
    if model.num_params() != wanted:
        return f"it has {model.num_params()} parameters, and should have {wanted}"
    for name in ("first", "second"):
        if not isinstance(getattr(model, name, None), nn.Linear):
            return f"its field {name} is not a Linear"
    x = Tensor.random([3, 784], Distribution.Default, Numpy())
    out = model.forward(x)
    if out is None:
        return "forward returns nothing"
    shape = list(out.dims()) if isinstance(out, Tensor) else described(out)
    if shape != [3, 10]:
        return f"for a batch of 3 forward returns {shape}, and should return [3, 10]"
    hidden = np.maximum(as_array(model.first.forward(x)), 0)
    expected = model.second.forward(Tensor.from_numpy(hidden, Numpy()))
    if np.allclose(as_array(out), as_array(expected), atol=1e-5):
        return None
    straight = model.second.forward(model.first.forward(x))
    if np.allclose(as_array(out), as_array(straight), atol=1e-5):
        return "forward leaves out the Relu"
    if np.allclose(as_array(out), np.maximum(as_array(expected), 0), atol=1e-5):
        return "forward ends with a Relu, too; the last layer should have none"
    return "forward computes something else"


def squares(dataset: Any) -> str | None:
    """Ask for 0, 1, 4, … 81, and for nothing past the end."""
    if len(dataset) != 10:
        return f"it has {len(dataset)} items, and should have 10"
    wrong = [i for i in range(10) if dataset.get(i) != i * i]
    if wrong:
        i = wrong[0]
        return f"item {i} is {dataset.get(i)}, and should be the square of {i}"
    return None if dataset.get(10) is None else "it goes on past its end"


def numbers_batcher(batcher: Any) -> str | None:
    """Ask for a Float tensor of rank 1 with the numbers of the items."""
    trouble = compare(floats(3, 1, 4), batcher.batch([3, 1, 4]))
    return f"what batch returns: {trouble}" if trouble else None


def wide_backend(backend: Any) -> str | None:
    """Ask for 64 bits and gradients."""
    if not backend.ad_enabled:
        return "it has no gradients"
    wide = backend.float == "f64"
    return None if wide else f"its floats are {backend.float}, and should be f64"


def below(tensor: Any) -> str | None:
    """Ask for the tensor 1, 2 on a plain backend."""
    if trouble := compare(floats(1, 2), tensor):
        return trouble
    tracked = tensor.device().ad_enabled
    return "its backend still has gradients" if tracked else None


def predictor(predict: Any) -> str | None:
    """Ask for the digit of the largest output, whatever the model and the item."""
    items = list(DigitsDataset.test())[:2]

    class Fixed:
        """A model that sees one digit in everything, and keeps what it was given."""

        def __init__(self, digit: int):
            self.digit, self.seen = digit, None

        def forward(self, images: Tensor) -> Tensor:
            self.seen = images
            scores = [float(i == self.digit) for i in range(10)]
            return Tensor.from_floats([scores] * images.dims()[0], Numpy())

        def devices(self) -> list[Any]:
            return [Numpy()]

    for digit, item in zip((7, 2), items, strict=True):
        model = Fixed(digit)
        if trouble := compare(digit, predict(model, item)):
            return f"for a model that sees a {digit}: {trouble}"
        if model.seen is None:
            return "it does not ask the model"
        images = MnistBatcher(Numpy()).batch([item]).images
        if trouble := compare(images, model.seen):
            return f"the images that the model gets: {trouble}"
    return None


def short_ints(backend: Any) -> str | None:
    """Ask for gradients, 64-bit floats and 32-bit whole numbers."""
    if trouble := wide_backend(backend):
        return trouble
    whole = backend.int
    return None if whole == "i32" else f"its whole numbers are {whole}, not i32"


def measuring(decorator: Any) -> str | None:
    """Ask for a decorator that adds up the sizes of all results."""
    device = decorator(Numpy())
    if not hasattr(device, "numbers"):
        return "it has no attribute numbers"
    x = Tensor.from_numpy(np.ones((4, 3), dtype=np.float32), device)
    before = device.numbers
    (x @ x.swap_dims(0, 1)).exp()
    found = device.numbers - before
    wanted = 12 + 16 + 16
    if found == 0:
        return "it adds up nothing: is there a method run(self, op, values, attrs)?"
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
    drawn = draw(device)
    if not isinstance(drawn, Tensor):
        return f"it returns {described(drawn)}, and should return a tensor"
    one, two = as_array(drawn), as_array(draw(device))
    if one.shape != (3,):
        return f"it gives {list(one.shape)}, and should give [3]"
    if len(set(one.tolist())) == 1:
        return "its three numbers are alike"
    return None if np.array_equal(one, two) else "two calls give different numbers"


def division_rules(rules: Any) -> str | None:
    """Ask for g / y and −g x / y²."""
    g, x, y = (np.array(v) for v in ([2.0, 1.0], [3.0, 4.0], [2.0, -4.0]))
    found = rules(g, x, y)
    if found is ...:
        return "it still returns the dots"
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        return "it should return two gradients: one for x, and one for y"
    slips = (
        [((1 / y), "g is missing: the chain rule multiplies by it")],
        [
            (g * x / y**2, "its sign is wrong: y⁻¹ falls where y grows"),
            (-x / y**2, "g is missing: the chain rule multiplies by it"),
            (-g / y**2, "x is missing"),
            (-g * x / y, "it should be divided by y once more"),
        ],
    )
    for name, right, made, known in zip(
        "xy", (g / y, -g * x / y**2), found, slips, strict=True
    ):
        if trouble := compare(right, made, known):
            return f"the gradient for {name}: {trouble}"
    return None


def turned(hook: Any) -> str | None:
    """Ask for a hook that changes the sign."""
    x = Tensor.from_floats([3.0], Autodiff(Numpy())).require_grad()
    x.hook(hook)
    gradient = x.grad((x * x).backward())
    slope = float("nan") if gradient is None else gradient.into_scalar()
    told = f"with it the slope of x² at 3 is {slope:.4g}"
    return None if slope == -6 else f"{told}, and should be -6"


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
    make: Any = kind  # of the reader, with fields of its own
    layer = nn.LinearConfig(2, 2).init(Numpy())
    x = Tensor.from_floats([[1.0, -2.0]], Numpy())
    found = make(layer=layer).forward(x)
    if found is ... or found is None:
        return "forward gives nothing yet"
    layer_only = as_array(layer.forward(x))
    slips = [(layer_only, "x itself is missing"), (as_array(x), "the layer is missing")]
    trouble = compare(x + layer.forward(x), found, slips)
    return f"what forward returns: {trouble}" if trouble else None


def clipped_sgd(config: Any) -> str | None:
    """Ask for Sgd with Nesterov's momentum of 0.8, undampened, and bounded elements."""
    right = SgdConfig(
        momentum=MomentumConfig(momentum=0.8, dampening=0.0, nesterov=True),
        gradient_clipping=GradientClippingConfig.Value(1.0),
    )
    names = ("momentum", "gradient_clipping", "weight_decay")
    if config.momentum is not None and config.momentum != right.momentum:
        made, wanted = config.momentum, right.momentum
        for name in ("momentum", "dampening", "nesterov"):
            if getattr(made, name) != getattr(wanted, name):
                told = f"its {name} is {getattr(made, name)}"
                return f"{told}, and should be {getattr(wanted, name)}"
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
    made = rule.step(0.5, tensor, grad, None)
    if not (isinstance(made, tuple) and len(made) == 2):
        return "step should return two things: the new tensor, and the state"
    if made[1] is not None:
        return "it remembers something, and should not: return None as the state"
    slips = [
        ([1.5, 1.5, 3.0], "it goes with the sign of the gradient, not against it"),
        ([0.0, 3.0, 3.0], "the rate is missing"),
        ([-1.5, 2.05, 3.0], "it goes by the gradient itself, not by its sign"),
        ([-0.5, 0.5, 0.0], "that is the step; subtract it from the tensor"),
    ]
    trouble = compare(floats(0.5, 2.5, 3), made[0], slips)
    return f"what step returns: {trouble}" if trouble else None


def climbing(config: Any) -> str | None:
    """Ask for 0.1, 0.2, 0.3, then 0.4 for ever."""
    schedule = config.init()
    found = [schedule.step() for _ in range(6)]
    right = [0.1, 0.2, 0.3, 0.4, 0.4, 0.4]
    wrong = [i for i in range(6) if not math.isclose(found[i], right[i])]
    if not wrong:
        return None
    told = f"call {wrong[0]} (counted from 0) gives {found[wrong[0]]:.4g}"
    return f"{told}, and should give {right[wrong[0]]}"


def harmonic(make: Any) -> str | None:
    """Ask for 1 / (1 + i), also after a stop."""
    schedule, right = make(), [1 / i for i in range(1, 8)]
    found = [schedule.step() for _ in range(4)]
    record = schedule.into_record()
    found += [schedule.step() for _ in range(3)]
    if ... in found:
        return "step still returns the dots"
    if trouble := compare(right, found, [([0.0, *right[:6]], "it begins too late")]):
        return f"its first rates: {trouble}"
    resumed = make().load_record(record)
    again = [resumed.step() for _ in range(3)]
    if np.allclose(again, right[4:]):
        return None
    return "with the record of a stopped one loaded, it does not go on where that was"


def one_step(step: Any) -> str | None:
    """Ask for gradients by parameter, and the model after the step."""
    layer = nn.LinearConfig(2, 1).init(Autodiff(Numpy()))
    x = Tensor.from_floats([[1.0, -2.0]], Autodiff(Numpy()))
    made = step(layer, SgdConfig().init(), 0.5, lambda model: model.forward(x).sum())
    if not hasattr(made, "forward"):
        return "it returns no model; the optimizer's step does"
    moved = as_array(layer.weight.val()) - as_array(made.weight.val())
    if np.allclose(moved, [[0.5], [-1.0]], atol=1e-5):
        return None
    if not np.abs(moved).max():
        return "the weights have not moved: return what step returns"
    if np.allclose(moved, [[-0.5], [1.0]], atol=1e-5):
        return "the weights moved up the slope; step goes down by itself"
    return "the weights moved by another step than rate times gradient"


def takes_biases(take: Any) -> str | None:
    """Ask for the gradients of the biases; the others stay."""
    device = Autodiff(Numpy())
    model = ModelConfig(10, 4, dropout=0.0).init(device)
    images = Tensor[3].ones([2, 28, 28], device)
    grads = model.forward(images).sum().backward()
    every = len(grads)
    found = take(grads, model)
    if not isinstance(found, GradientsParams):
        return f"it returns {described(found)}, and should return GradientsParams"
    named = [
        (path.rpartition(".")[2], param.id) for path, param in model.named_params()
    ]
    wrong = [
        n for n, number in named if (n == "bias") != (number in dict(found.items()))
    ]
    if wrong:
        return f"a {wrong[0]} is {'not ' * (wrong[0] == 'bias')}in it"
    if len(grads) == every - len(found):
        return None
    if len(grads) == every:
        return "the gradients of the biases are still in the container, too"
    return "the others are gone from the container, too"


EXERCISES: dict[str, Value | Holds] = {
    **IMPORTING,
    **RECORDS,
    **LEARNING,
    **MEASURING,
    **VERSIONS,
    **WEIGHTS,
    **PERFORMANCE,
    "1.1": Value(
        lambda: 6.0,
        "the slope of w² is 2 w",
        [(9, "that is w² itself, not its slope"), (2, "that is its slope at w = 1")],
    ),
    "1.2": Value(
        lambda: 2.4,
        "new w = old w − rate · slope",
        [
            (3.6, "that goes up the slope: subtract the step"),
            (-3, "the rate is missing"),
            (0.6, "that is the step; subtract it from w"),
            (2.7, "the slope at 3 is not 3"),
            (2.1, "that is a step along w², not along its slope"),
        ],
    ),
    "1.3": Value(
        lambda: floats(6),
        "backward() gives a container: z.grad(container)",
        [([9], "that is z · z itself, not its gradient")],
    ),
    "2.1": Value(
        lambda: Tensor.full([2, 3], 7.0, Numpy()),
        "Tensor[2].full(shape, value, device)",
    ),
    "2.2": Value(
        lambda: [2, 3],
        "[2, 1] and [1, 3]: size 1 stretches, on both sides",
        [
            ([2, 1], "that is the shape of column; row stretches it"),
            ([1, 3], "that is the shape of row; column stretches it"),
            ([1, 1], "size 1 stretches to the other size, not the other way round"),
        ],
    ),
    "2.3": Value(
        lambda: ints(20),
        "0, 2, 4, 6, 8: a range times 2",
        [
            ([30], "10 is not below 10"),
            ([12], "8 is below 10, too"),
            ([10], "the numbers 0 … 4 should be doubled"),
            ([45], "only the even ones are asked for"),
        ],
    ),
    "2.4": Value(lambda: floats(2), "only Float tensors have a mean: .float() first"),
    "3.1.1": Value(
        lambda: 1168,
        "one filter has 3 × 3 weights per channel it reads; + biases",
        [
            (1152, "the biases are missing"),
            (1160, "there is one bias for each channel that comes out"),
            (160, "each filter reads all 8 channels"),
            (144, "each filter reads all 8 channels, and has a bias"),
            (88, "there are 16 filters"),
            (1153, "every filter has a bias of its own"),
        ],
    ),
    "3.1.2": Holds(
        an(Config, called="a ModelConfig"),
        letters_config,
        "ModelConfig(26, 64), then with_dropout",
    ),
    "3.1.3": Value(
        lambda: [2, 4, 28, 16],
        "a filter of 5 leaves size − 4 places",
        [
            ([2, 4, 32, 20], "without padding, the border is lost"),
            ([2, 4, 27, 15], "a filter of 5 fits in size − 5 + 1 places"),
            ([2, 4, 30, 18], "that would be a filter of 3"),
            ([2, 3, 28, 16], "the convolution makes 4 channels of 3"),
            ([4, 28, 16], "the batch has 2 images, and keeps them"),
            ([4, 2, 28, 16], "the batch comes first, then the channels"),
        ],
    ),
    "3.1.4": Holds(
        an(Module, called="a module"),
        small_mlp,
        "second of relu of first; LinearConfig(784, 32).init(…)",
    ),
    "3.2.1": Value(
        lambda: 15,
        "1,438 images; the last batch is not full",
        [
            (14, "the last batch counts, though it is not full"),
            (14.38, "a batch cannot be cut: the rest makes one more"),
            (18, "that is all 1,797 images; the training set has 1,438"),
        ],
    ),
    "3.2.2": Value(
        lambda: (1 - 0.1307) / 0.3081,
        "255 / 255 is 1",
        [
            ((255 - 0.1307) / 0.3081, "first divide by 255"),
            (1 - 0.1307, "then divide by the standard deviation"),
            (1 / 0.3081, "the mean is not subtracted yet"),
            (1 - 0.1307 / 0.3081, "first subtract, then divide: mind the brackets"),
            (1, "that is before the mean is subtracted"),
        ],
    ),
    "3.2.3": Holds(
        an(Dataset, called="a dataset"),
        squares,
        "MapperDataset(InMemDataset(list(range(10))), mapper)",
    ),
    "3.2.4": Holds(
        an(Batcher, called="a batcher"),
        numbers_batcher,
        "Tensor[1].from_floats wants a list of floats",
    ),
    "3.3.1": Value(
        lambda: math.log(10),
        "each class gets 1/10; the loss is −log of it",
        [
            (1, "the logarithm is the natural one, not that to base ten"),
            (0.1, "that is the probability; the loss is −log of it"),
            (math.log2(10), "the logarithm is the natural one, not that to base two"),
        ],
    ),
    "3.3.2": Value(
        lambda: 200 / 3,
        "the larger of two scores is the guess",
        [
            (2 / 3, "in percent: a hundred times that"),
            (100 / 3, "the first row says class 0, the second too, the third class 1"),
        ],
    ),
    "3.3.3": Value(
        lambda: floats(3, 12, 27),
        "(x * x * x).sum().backward()",
        [
            ([1, 8, 27], "those are the cubes, not their slopes"),
            ([2, 4, 6], "those are the slopes of x²"),
            ([1, 4, 9], "a factor is missing: the slope of x³ is 3 x²"),
        ],
    ),
    "3.3.4": Value(
        lambda: 10 * 23,
        "one step per batch, 23 batches an epoch",
        [
            (23, "that is one epoch"),
            (220, "the last batch counts, though it is not full"),
            (14_380, "one step per batch, not per image"),
        ],
    ),
    "3.4.1": Holds(BACKEND, wide_backend, "a decorator around Numpy(float=…)"),
    "3.4.2": Value(
        lambda: 3,
        "one per operator",
        [(2, "one of the three operators was not counted")],
    ),
    "3.4.3": Holds(
        an(Tensor, called="a tensor"), below, "the backend below has a name; so has t"
    ),
    "3.5.1": Value(
        lambda: [0.25] * 4,
        "equal logits, equal probabilities; they sum to 1",
        [
            ([1] * 4, "that is exp of each; now divide by their sum"),
            ([0] * 4, "exp(0) is not 0"),
            ([0.1] * 4, "there are four of them, not ten"),
        ],
    ),
    "3.5.2": Value(
        lambda: ints(*[item.label for item in list(DigitsDataset.test())[:5]]),
        "the batcher gives images and targets",
    ),
    "3.5.3": Holds(
        FUNCTION, predictor, "the step-by-step cell, with the model that is given"
    ),
    "4.1.1": Holds(BACKEND, short_ints, "Autodiff around Numpy(float, int=…)"),
    "4.1.2": Holds(
        a_class(Decorator, "a class of decorators"),
        measuring,
        "run the op first; a result has .size",
    ),
    "4.1.3": Holds(BACKEND, counts_gradients, "which decorator is the outer one?"),
    "4.1.4": Holds(FUNCTION, repeating, "start the stream again, then draw"),
    "4.2.1": Value(
        lambda: Tensor.from_floats([[0, 0.25, 1], [0, 1, 0.5]], Numpy()),
        "as above for four numbers, with min_dim and max_dim along dim 1",
        [
            ([[0.2, 0.4, 1], [1 / 3, 1, 2 / 3]], "subtract the smallest first"),
            ([[0, 1, 4], [0, 20, 10]], "now divide by largest − smallest"),
        ],
    ),
    "4.2.2": Value(
        lambda: Tensor[2, Int].from_ints([[5, 6], [9, 10]], Numpy()),
        "one range per dim; −1 is the last place, and an end is not included",
        [([[0, 1], [4, 5]], "that is the upper left corner")],
    ),
    "4.2.3": Value(
        lambda: [-4, 4],
        "Int stays Int, cut toward zero",
        [
            ([-5, 4], "here -4.5 is cut toward zero; only Python's // rounds down"),
            ([-4.5, 4.5], "dividing an Int tensor gives an Int tensor"),
            ([-5, 5], "nothing is rounded up"),
        ],
    ),
    "4.2.4": Value(
        lambda: Tensor.from_floats([[0, 1, 5], [1, 0, 4], [5, 4, 0]], Numpy()),
        "[1, 3] and [3, 1] stretch to [3, 3]: unsqueeze_dim, twice",
        [
            ([[0, 1, 5], [-1, 0, 4], [-5, -4, 0]], "distances are not negative: abs"),
            ([[0, -1, -5], [1, 0, -4], [5, 4, 0]], "distances are not negative: abs"),
            ([[0, 1, 25], [1, 0, 16], [25, 16, 0]], "those are the squares of it"),
        ],
    ),
    "4.2.5": Value(
        lambda: 1e-3,
        "the report has a property for it",
        [(0.05, "that is the difference; asked is the tolerance it keeps")],
    ),
    "4.3.1": Value(
        lambda: [3.0, 6.0],
        "what is detached counts as a constant",
        [
            ([5, 11], "q.detach() is a constant: no slope comes from it"),
            ([2, 5], "the + q has a slope, too"),
            ([4, 10], "q.detach() is a constant, and the + q has a slope, too"),
            ([6, 30], "that is the value, not the gradient"),
        ],
    ),
    "4.3.2": Holds(
        FUNCTION, division_rules, "x / y is x · y⁻¹; the slope of y⁻¹ is −y⁻²"
    ),
    "4.3.3": Value(
        lambda: [6.0, 12.0, 18.0],
        "twice(f, points) gives three arrays",
        [
            ([3, 12, 27], "that is the first derivative"),
            ([1, 8, 27], "that is the value"),
            ([6, 6, 6], "that is the third derivative"),
        ],
    ),
    "4.3.4": Holds(FUNCTION, turned, "what the hook returns goes on in its place"),
    "4.3.5": Holds(BACKEND, two_again, "BalancedCheckpointing takes a set of names"),
    "4.4.1": Value(
        lambda: 2_099_712,
        "weights and biases of both linear layers",
        [
            (2_097_152, "the biases are missing"),
            (1_050_624, "that is the first layer; there is one back to 512"),
            (2_101_248, "the second layer has 512 biases, not 2048"),
        ],
    ),
    "4.4.2": Holds(
        an(ModuleMapper, called="a mapper"),
        zeroing,
        "map_float gets id and tensor: tensor.zeros_like()",
    ),
    "4.4.3": Holds(LAYERS, residual, "self.layer.forward(x), and x again"),
    "4.4.4": Value(
        lambda: 10_240,
        "[512, 4] and [4, 2048]",
        [
            (1_048_576, "that is the weight itself, which stays as it is"),
            (2_048, "that is one of the two matrices"),
            (8_192, "that is one of the two matrices"),
        ],
    ),
    "4.5.1": Value(
        lambda: 0.3,
        "at first both averages are of one gradient: g / √g²",
        [
            (15, "that would be plain Sgd; Adam divides by the size of the gradient"),
            (0.03, "the corrections for the first steps are missing"),
        ],
    ),
    "4.5.2": Holds(
        an(SgdConfig, called="an SgdConfig"),
        clipped_sgd,
        "MomentumConfig(…), then GradientClippingConfig.Value",
    ),
    "4.5.3": Holds(
        an(ParamGroup, called="a ParamGroup"),
        inner_weights,
        "one group, and exclude another",
    ),
    "4.5.4": Holds(
        can("step", "an object with a method step"),
        sign_rule,
        "a tensor has sign(); return two things",
    ),
    "4.7.1": Value(
        lambda: 0.1,
        "call 0 gives 0.8, and each one half of that before",
        [
            (0.05, "that is one call later: call 0 gives 0.8"),
            (0.2, "that is one call earlier: call 0 gives 0.8"),
        ],
    ),
    "4.7.2": Value(
        lambda: 91,
        "1, 0.1, 0.01 take 30 calls each",
        [
            (61, "0.01 is not below 0.005 yet"),
            (90, "call 90 still gives 0.01"),
            (31, "0.1 is not below 0.005 yet"),
            (121, "0.001 comes sooner"),
        ],
    ),
    "4.7.3": Holds(
        can("init", "a config of a schedule"), climbing, "from 0.1 to 0.4 in a line"
    ),
    "4.7.4": Holds(
        SCHEDULES,
        harmonic,
        "Counted has what saves and loads; count in step",
    ),
    "5.1": Value(
        lambda: 0.0125,
        "the sum is eight times the mean",
        [
            (0.8, "the sum is larger than the mean, so the rate must be smaller"),
            (0.1, "the sum is larger than the mean"),
        ],
    ),
    "5.2": Holds(FUNCTION, one_step, "backward, from_grads, step"),
    "5.3": Holds(FUNCTION, takes_biases, "from_params takes a list of ids"),
    "5.4": Value(
        lambda: 6,
        "20 batches make 5 steps",
        [
            (5, "the three batches that are left make a step, too"),
            (5.75, "there is no part of a step: what is left makes a whole one"),
            (23, "a step is made after every 4 batches only"),
        ],
    ),
}
