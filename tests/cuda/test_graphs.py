"""Programs as CUDA graphs: the same results as step by step.

How a program is cut into graphs is tried without a GPU, by a recorder that does again
what it was given. With one, `python -m pytest tests/cuda/test_graphs.py -m gpu`.
"""

import math

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff
from burnbook.backend.numpy import Numpy
from burnbook.core.rng import Stream, use_stream
from burnbook.examples.guide.model import ModelConfig
from burnbook.module import Module
from burnbook.nn.loss import CrossEntropyLossConfig
from burnbook.optim import AdamWConfig, RmsPropConfig, SgdConfig
from burnbook.program import capture, capture_training
from burnbook.program.compiled_training import CompiledTraining
from burnbook.tensor import Distribution, Tensor


class Again:
    """Records as a GPU does, in Python: the work once more, into the same arrays."""

    def __init__(self, backend):
        self.backend, self.xp = backend, backend.xp
        self.refused = frozenset()
        self.is_recording = False

    def run(self, op, values, attrs):
        if op.name in self.refused:
            raise ValueError("a stream that records may not be waited for")
        return self.backend.run(op, values, attrs)

    def numbers(self):
        return self

    def send(self):
        pass

    def keys(self, count):
        return [ChangingKey() for _ in range(count)]

    def factors(self, op, values):
        return None

    def write(self, place, array):
        if not self.is_recording:
            place[...] = array

    def rehearse(self, work):
        return work()

    def record(self, work):
        self.is_recording = True
        try:
            first = work()
        finally:
            self.is_recording = False

        def again():
            for value, array in work().items():
                if array is not first[value]:
                    first[value][...] = array

        return again, first


class ChangingKey(tuple):
    """A key that is written over: a pair that looks up what it is."""

    def __new__(cls):
        made = super().__new__(cls, (1, 2))
        made.now = (1, 2)
        return made

    def set(self, key):
        self.now = key

    def __getitem__(self, i):
        return self.now[i]

    def __iter__(self):
        return iter(self.now)


class Recording(Numpy):
    """NumPy with a recorder."""

    interned = False
    has_graphs = True

    def __init__(self):
        super().__init__(compiled=False)
        self.recorder = Again(self)

    def on_device(self):
        return np.errstate()


class Classifier(Module):
    first: nn.Linear
    second: nn.Linear
    dropout: nn.Dropout

    def forward(self, x):
        return self.second.forward(self.dropout.forward(self.first.forward(x).relu()))


def classifier(device):
    with use_stream(Stream(3)):
        made = Classifier(
            nn.LinearConfig(6, 8).init(device),
            nn.LinearConfig(8, 3).init(device),
            nn.DropoutConfig(0.3).init(),
        )
        for _, param in made.named_params():
            param.val()
    return made


def rows(size, device, seed=0, width=6):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((size, width)).astype(np.float32)
    return Tensor.from_numpy(x, device)


def labels(size, device, seed=0, count=3):
    found = np.random.default_rng(seed).integers(0, count, size)
    return Tensor.from_numpy(found, device)


def loss(model, x, y):
    return CrossEntropyLossConfig().init(x.device()).forward(model.forward(x), y)


def close(found, wanted, tolerance=1e-5):
    a, b = (np.asarray(t.into_data().to_numpy()) for t in (found, wanted))
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


# Without a GPU.


@pytest.mark.parametrize(
    ("refused", "graphs"),
    [((), 1), (("relu",), 2), (("linear",), 1), (("linear", "relu"), 0)],
)
def test_steps_that_cannot_be_recorded_run_between_graphs(refused, graphs):
    device = Recording()
    program = capture(classifier(device).forward, rows(4, device))
    device.recorder.refused = frozenset(refused)
    compiled = program.compile()
    for seed in range(3):
        x = rows(4, device, seed)
        close(compiled(x), program(x))
    plan = compiled.plan_for(4)
    loose = {plan.what.steps[i].op.name for i in plan.loose}
    assert loose == set(refused)
    assert len(plan.loose) == sum(s.op.name in refused for s in program.steps)
    assert plan.graphs == graphs


def test_a_result_is_not_touched_by_the_next_run():
    device = Recording()
    compiled = capture(lambda x: x * 2.0, rows(4, device)).compile()
    first = compiled(rows(4, device, 1))
    before = first.into_data().to_numpy().copy()
    compiled(rows(4, device, 2))
    np.testing.assert_array_equal(first.into_data().to_numpy(), before)


def test_a_listing_says_what_is_not_in_a_graph():
    device = Recording()
    program = capture(lambda x: (x * 2.0).exp() + 1.0, rows(4, device))
    device.recorder.refused = frozenset({"exp"})
    assert program.compile().explain(4) == (
        "<lambda> for n = 4: 3 steps in 2 CUDA graphs, between them exp"
    )


@pytest.mark.parametrize(
    "optimizer", [SgdConfig(), AdamWConfig(), RmsPropConfig()], ids=str
)
def test_training_steps_in_graphs_are_those_of_the_captured_step(optimizer):
    assert_same_training(Recording(), optimizer)


def assert_same_training(plain, optimizer, tolerance=1e-4):
    device = Autodiff(plain)
    made = classifier(device)
    given = rows(4, device), labels(4, device)
    training = capture_training(made, loss, optimizer.init(), *given)
    compiled, state = CompiledTraining(training), training.start
    for number, size in enumerate((4, 4, 7, 4, 1)):
        batch = rows(size, device, number), labels(size, device, number)
        keys = [(number, 2 * i + 1) for i in range(len(training.program.keys))]
        state, wanted = training.step(state, 0.01, *batch, keys=keys)
        found = compiled.step(0.01, *batch, keys=keys)
        close(found, wanted, tolerance)
    for name, array in state.values.items():
        a, b = (plain.to_numpy(v) for v in (compiled.state.values[name], array))
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=tolerance)
    return compiled


# With a GPU.


def guide(device):
    return ModelConfig(10, 32).init(device).forward, (28, 28)


def transformer(device):
    config = nn.TransformerEncoderConfig(32, 64, 4, 2).with_dropout(0.0)
    model = config.init(device)
    return lambda x: model.forward(nn.TransformerEncoderInput(x)), (9, 32)


def lstm(device):
    model = nn.LstmConfig(8, 16, True).init(device)
    return lambda x: model.forward(x, None)[0], (5, 8)


def resampling(device):
    return nn.Interpolate2dConfig().with_output_size([9, 7]).init().forward, (2, 5, 6)


def products(device):
    def forward(x):
        turned = x.swap_dims(1, 2)
        return turned.matmul(x).matmul(turned).sum_dim(1)

    return forward, (4, 3)


@pytest.mark.gpu
@pytest.mark.parametrize("make", [guide, transformer, lstm, resampling, products])
def test_models_in_graphs_give_the_same(gpu, make):
    forward, shape = make(gpu)

    def example(n):
        return rows(n, gpu, width=math.prod(shape)).reshape([n, *shape])

    program = capture(forward, example(3))
    compiled = program.compile()
    for n in (3, 1, 8, 3):
        close(compiled(example(n)), program(example(n)), 1e-4)
    plan = compiled.plan_for(3)
    assert (plan.graphs, plan.loose) == (1, []), str(plan)


@pytest.mark.gpu
def test_random_numbers_in_a_graph_are_new_in_each_run(gpu):
    def noisy(x):
        return x + x.random_like(Distribution.Normal(0.0, 1.0))

    program = capture(noisy, rows(4, gpu, width=64), keys=True)
    compiled = program.compile()
    x = rows(4, gpu, width=64)
    for key in [(1, 2), (3, 4), (1, 2)]:
        found, wanted = (p.run(x.value, keys=[key])[0] for p in (compiled, program))
        assert (gpu.to_numpy(found) == gpu.to_numpy(wanted)).all()


@pytest.mark.gpu
def test_what_reads_values_back_runs_between_graphs(gpu):
    known = nn.EmbeddingConfig(10, 4).init(gpu)
    program = capture(lambda x: known.forward(x) * 2.0, labels(3, gpu).reshape([3, 1]))
    compiled = program.compile()
    for seed in range(3):
        x = labels(3, gpu, seed).reshape([3, 1])
        close(compiled(x), program(x))


@pytest.mark.gpu
@pytest.mark.parametrize(
    "optimizer", [SgdConfig(), AdamWConfig(), RmsPropConfig()], ids=str
)
def test_training_steps_in_graphs_on_the_gpu(gpu, optimizer):
    compiled = assert_same_training(gpu, optimizer)
    for plan in compiled._plans.values():
        names = {plan.what.steps[i].op.name for i in plan.loose}
        assert not {n for n in names if "cross_entropy" not in n}, str(plan)


@pytest.mark.gpu
def test_products_of_cublas_are_those_of_cupy(gpu):
    products, xp = gpu.recorder.products, gpu.xp.module
    rng = np.random.default_rng(0)
    shapes = [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5))]
    shapes += [((7, 1, 3, 4), (2, 4, 5)), ((0, 4), (4, 5)), ((3, 0), (0, 5))]
    shapes += [((1, 1), (1, 1)), ((5, 1), (1, 4)), ((1, 6), (6, 1))]
    for x_shape, y_shape in shapes:
        for dtype in (np.float16, np.float32, np.float64):
            for turned in range(4):
                x, y = (xp.array(rng.random(s), dtype) for s in (x_shape, y_shape))
                if turned & 1:
                    x = xp.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
                if turned & 2:
                    y = xp.ascontiguousarray(y.swapaxes(-1, -2)).swapaxes(-1, -2)
                xp.cuda.get_current_stream().synchronize()  # x and y are there
                with gpu.recorder.stream:
                    found = products.matmul(x, y)
                gpu.recorder.stream.synchronize()
                wanted = xp.matmul(x, y)
                assert found.shape == wanted.shape
                np.testing.assert_allclose(
                    found.get(),
                    wanted.get(),
                    rtol=1e-2 if dtype == np.float16 else 1e-5,
                )
