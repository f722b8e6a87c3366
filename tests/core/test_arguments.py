"""Something of another sort in place of an argument: no raw error, and no silence.

Every public function, method and constructor is called with an array, a list, a text,
a number, None, a class, a config, a tensor of another kind … in place of each argument,
one at a time (tests/support/wrong_arguments.py). What is taken all the same, or is
answered with an error of Python, stands in `wrong_arguments.txt` with its reason.
"""

import collections
import json
import re
import tempfile
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.core.argument_cures import given, wanted
from burnbook.core.arguments import checked, fits, guarded
from burnbook.core.converters import type_spec
from burnbook.core.errors import ArgumentError, DataError, KindError, RecordError
from burnbook.data import ArrayDataset, DataLoaderBuilder, InMemDataset
from burnbook.module import Module, Quantizer
from burnbook.nn import Linear, LinearConfig
from burnbook.optim import AdamConfig, Optimizer
from burnbook.record import CompactRecorder
from burnbook.tensor import Distribution, Float, Int, Tensor
from burnbook.tensor.display import get_print_options, set_print_options
from burnbook.tensor.quantization import Calibration, QuantScheme
from burnbook.train import LearnerBuilder
from tests.support import wrong_arguments
from tests.support.programs import python
from tests.support.refusals import refused

# A training that was begun in a thread with something wrong ends there.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::pytest.PytestUnhandledThreadExceptionWarning",
)
EXCEPTIONS = Path(wrong_arguments.__file__).with_suffix(".txt")


def exceptions():
    """The members that may take it, or fail as Python does: patterns, and reasons."""
    rows = {}
    for line in EXCEPTIONS.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            patterns, _, reason = line.partition(": ")
            rows |= dict.fromkeys(patterns.split(), reason)
    return rows


def pattern_of(outcome, patterns):
    names = (outcome.target, f"{outcome.target}({outcome.parameter})")
    return next((p for p in patterns for n in names if fnmatchcase(n, p)), None)


@pytest.fixture(scope="module")
def swept(request):
    """All calls with a wrong argument, and what has come of them."""
    pytest.importorskip("anywidget", reason="the widgets need anywidget")
    drawn = request.config.getoption("--draws")
    # In a process of its own: what was wrongly set there hurts no other test.
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcomes.json"
        done = python("-m", "tests.support.swept", file, drawn)
        assert done.returncode == 0, done.stderr[-3000:]
        return [wrong_arguments.Outcome(*row) for row in json.loads(file.read_text())]


@pytest.mark.slow
def test_no_public_call_fails_as_python_does_or_takes_what_it_is_not(swept):
    patterns = exceptions()
    assert len(swept) > 5000
    assert len({outcome.target for outcome in swept}) > 400
    wrong = [o for o in swept if o.how != "ours" and not pattern_of(o, patterns)]
    shown = [f"{o.target}({o.parameter}={o.sort}): {o.how} {o.text}" for o in wrong]
    assert not shown, "\n".join(shown[:40])


@pytest.mark.slow
def test_every_error_says_what_was_given(swept):
    """The first line says what is wrong, and shows no address."""
    texts = [o.text for o in swept if o.how == "ours"]
    bare = [text for text in texts if re.search(r" at 0x[0-9a-f]{6}", text)]
    empty = [text for text in texts if not text.partition("\n")[0].strip()]
    assert not empty
    assert len(bare) < len(texts) / 50, "\n".join(bare[:20])


def test_every_exception_is_one_of_a_member_that_is_there():
    pytest.importorskip("anywidget", reason="the widgets need anywidget")
    names = [*wrong_arguments.targets()]
    for pattern, reason in exceptions().items():
        assert len(reason) > 10
        assert any(fnmatchcase(n, pattern.partition("(")[0]) for n in names), pattern


# what fits an annotation


@pytest.mark.parametrize(
    ("annotation", "good", "bad"),
    [
        (int, [1, np.int64(2), True, np.array(3)], [1.5, "1", None, np.ones(2), int]),
        (float, [1, 0.5, np.float32(1)], ["1", None, np.ones(2), [1.0]]),
        (bool, [True, np.bool_(False)], [1, "yes", None]),
        (str | Path, ["x", Path("x")], [1, None, b"x", str]),
        (list[int] | None, [[1], (1, 2), np.array([1]), None], [1, "1", ["a"], {}]),
        (tuple[int, int], [(1, 2), [1, 2]], [(1,), (1, "a"), 2]),
        (type[Module], [Linear], [LinearConfig, LinearConfig(2, 3), "Linear"]),
        (Module, [LinearConfig(2, 3).init(Numpy())], [LinearConfig(2, 3), Linear, 1]),
        (Optimizer, [AdamConfig().init()], [AdamConfig(), 1, None]),
        (collections.abc.Callable, [len, Linear], [1, "len", None]),
        (collections.abc.Iterable[int], [[1], range(2), iter([1])], [1, None, "ab"]),
        (dict[str, int], [{"a": 1}], [{"a": "b"}, [1], None]),
    ],
)
def test_what_fits(annotation, good, bad):
    spec = type_spec(annotation)
    assert [value for value in good if not fits(value, spec)] == []
    assert [value for value in bad if fits(value, spec)] == []


def test_an_object_of_a_class_of_ones_own_may_stand_for_one_of_ours():
    class Squares:
        def get(self, index):
            return index**2 if index < 4 else None

        def __len__(self):
            return 4

    assert fits(Squares(), type_spec(InMemDataset))
    assert not fits(Squares, type_spec(InMemDataset))
    assert not fits(Squares(), type_spec(Tensor))


def test_words():
    assert wanted(type_spec(int | None)) == "a whole number or None"
    assert wanted(type_spec(str | Path)) == "a path"
    assert given(LinearConfig) == "the class LinearConfig"
    assert given(np.zeros([2, 3])) == "a NumPy array of shape [2, 3]"
    assert given("a" * 99).endswith("…")


# the two ways to check


def test_a_checked_function_lets_its_own_error_speak_first():
    @checked
    def halved(number: int, way: str = "down") -> int:
        if way not in ("down", "up"):
            raise DataError("halved", "which way?", cure='"down"')
        return number // 2

    assert halved(5) == 2
    refused(DataError, lambda: halved(5, 3), "halved: which way?")
    refused(ArgumentError, lambda: halved("5"), "halved: number must be a whole", "5")
    refused(ArgumentError, lambda: halved(5.0), "halved: number must be", "try: 5")
    refused(ArgumentError, halved, "halved: number is missing", "halved(number)")


@pytest.mark.parametrize("way", [checked, guarded])
def test_an_error_of_the_readers_own_code_is_not_ours(way):
    def broken():
        raise KeyError("mine")

    def applied(function: collections.abc.Callable[[], int], count: int) -> int:
        return function() + count

    with pytest.raises(KeyError, match="mine"):
        way(applied)(broken, 1)
    error = refused(
        ArgumentError, lambda: way(applied)(lambda: 1, "2"), "applied: count must be"
    )
    assert isinstance(error.__cause__, TypeError)


def test_a_guarded_function_looks_only_after_a_failure():
    @guarded
    def same(number: int) -> int:
        return number

    assert same("a") == "a"


# the entries that this has come of


@pytest.mark.parametrize("kind", [np.float32, float, int, bool, np.int64, "float32", 7])
@pytest.mark.parametrize(
    "make",
    [
        lambda kind: Tensor.from_data([1.5, 2.7], Numpy(), kind),
        lambda kind: Tensor[1].from_data([1.5, 2.7], Numpy(), kind),
        lambda kind: Tensor.zeros([2], Numpy(), kind),
        lambda kind: Tensor.ones([2], Numpy(), kind),
        lambda kind: Tensor.empty([2], Numpy(), kind),
        lambda kind: Tensor.full([2], 1.5, Numpy(), kind),
        lambda kind: Tensor.eye(2, Numpy(), kind),
        lambda kind: Tensor.random([2], Distribution.Default, Numpy(), kind),
    ],
)
def test_a_dtype_is_no_kind(make, kind):
    with pytest.raises((KindError, ArgumentError), match="kind") as caught:
        make(kind)
    assert caught.value.cure


@pytest.mark.parametrize("name", ["float", "int", "bool"])
def test_the_cure_for_a_dtype_keeps_the_values(name):
    with pytest.raises(KindError) as caught:
        Tensor.from_data(
            [1.0, 2.0], Numpy(), {"float": float, "int": int, "bool": bool}[name]
        )
    kind = {"Float": Float, "Int": Int}.get(caught.value.cure)
    if kind is not None:
        made = Tensor.from_data([1.0, 2.0], Numpy(), kind)
        assert made.into_data().to_list() == [1.0, 2.0]


class Net(Module):
    fc: Linear

    def forward(self, x):
        return self.fc.forward(x)

    def train_step(self, batch):
        raise AssertionError("it must not come so far")

    valid_step = train_step


X, Y = np.ones((8, 2), np.float32), np.zeros(8, np.int64)


@pytest.mark.parametrize(
    "data",
    [(X, Y), (X,), ([1, 2], None), ((X, Y),), (Tensor.ones([2, 2]),), ("data.csv",)],
    ids=["arrays", "array", "numbers", "pair", "tensor", "text"],
)
def test_data_all_at_once_are_no_loader(tmp_path, data):
    device = Autodiff(Numpy())
    net = Net(LinearConfig(2, 2).init(device))
    learner = LearnerBuilder(tmp_path).build(net, AdamConfig().init(), 1e-3)
    cure = "DataLoaderBuilder().batch_size(64).build("
    refused(DataError, lambda: learner.fit(*data), "training data: ", cure)


def test_the_cure_of_a_loader_works():
    loader = DataLoaderBuilder().batch_size(64).build((X, Y))
    assert sum(1 for _ in loader) == 1


def test_arguments_in_another_order_are_told_the_right_one():
    act = lambda: Quantizer(QuantScheme(), Calibration.MinMax)  # noqa: E731 - short
    refused(ArgumentError, act, "Quantizer: ", "try: Quantizer(calibration, scheme)")


def test_calls_with_another_number_of_arguments_have_the_readers_own_words():
    optim = AdamConfig().init()
    act = lambda: optim.step()  # noqa: E731 - its source is asked
    refused(ArgumentError, act, "OptimizerAdaptor.step: ", "try: optim.step(lr, module")
    refused(ArgumentError, lambda: LinearConfig(8, 2).init(), "LinearConfig.init: dev")


def test_numpys_functions_say_the_method():
    x = Tensor.ones([2])
    refused(KindError, lambda: np.sqrt(x), "np.sqrt: ", "try: x.sqrt()")
    refused(KindError, lambda: np.maximum(x, x), "np.maximum: ", "try: x.max_pair(x)")
    assert (np.float32(2) * x).into_data().to_list() == [2.0, 2.0]
    assert (np.float64(2) > x).into_data().to_list() == [True, True]


@pytest.mark.parametrize("path", ["n" * 300, "/".join(["folder"] * 900)])
def test_a_name_that_is_too_long_is_told(tmp_path, path):
    layer = LinearConfig(1, 1).init(Numpy())
    act = lambda: layer.save_file(tmp_path / path, CompactRecorder())  # noqa: E731
    error = refused(RecordError, act, "write ", "too long", "try: a shorter name")
    assert len(str(error)) < 300


@pytest.mark.parametrize("folder", [None, 123, b"x", ""])
def test_a_learner_wants_a_folder(folder):
    with pytest.raises(Exception, match="LearnerBuilder: ") as caught:
        LearnerBuilder(folder)
    assert type(caught.value).__module__ == "burnbook.core.errors"


def test_an_index_is_a_whole_number():
    for dataset in (InMemDataset([1, 2]), ArrayDataset(X, Y)):
        where = f"{type(dataset).__name__}.get: index must be"
        refused(ArgumentError, lambda d=dataset: d.get("0"), where)
        assert dataset.get(np.int64(1)) is not None


def test_a_refused_setting_changes_nothing():
    before = get_print_options()
    with pytest.raises(ArgumentError, match="options must be a PrintOptions"):
        set_print_options(...)
    assert get_print_options() is before
