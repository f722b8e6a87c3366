"""The profile of a model: whose time it is, whose memory, and what stays unchanged."""

import time

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff
from burnbook.core.dtypes import Int
from burnbook.core.errors import ConfigError
from burnbook.core.op import OPS
from burnbook.module import Module, profile
from burnbook.module.profiling import time_text
from burnbook.tensor import Tensor
from tests.support.tiny_training import DEVICE, PLAIN, tiny, weights


class Sleepy(Module):
    """A layer that takes its time."""

    linear: nn.Linear
    seconds: float

    def forward(self, x):
        time.sleep(self.seconds)
        return self.linear.forward(x)


class Pair(Module):
    quick: Sleepy
    slow: Sleepy

    def forward(self, x):
        return self.slow.forward(self.quick.forward(x))


def pair(device=DEVICE):
    def layer(seconds):
        return Sleepy(nn.LinearConfig(4, 4).init(device), seconds)

    return Pair(layer(0.0), layer(0.02))


def test_time_belongs_to_the_layer_that_takes_it():
    found = profile(pair(), [2, 4], rounds=1)  # medians of several do not add up
    slow, quick = found["slow"], found["quick"]
    assert slow.forward > 0.02
    assert slow.own_forward > 0.02
    whole = found[""]
    assert whole.forward >= slow.forward + quick.forward
    assert slow.forward >= slow.own_forward + found["slow.linear"].forward
    assert found.rounds == 1


def test_the_median_of_the_rounds_counts():
    naps = iter([0, 0, 1.0, 0, 0])

    class Nap(Module):
        linear: nn.Linear

        def forward(self, x):
            time.sleep(next(naps, 0))
            return self.linear.forward(x)

    found = profile(Nap(nn.LinearConfig(2, 2).init(DEVICE)), [1, 2], rounds=3)
    assert found[""].forward < 0.3  # a third of it, if it were the mean


def test_backward_is_attributed_to_the_layer_whose_gradient_it_is(monkeypatch):
    sigmoid = OPS["sigmoid"].backward
    before = sigmoid.forward

    def slowly(*args, **named):
        time.sleep(0.02)
        return before(*args, **named)

    class Two(Module):
        plain: nn.Linear
        gate: nn.Sigmoid

        def forward(self, x):
            return self.plain.forward(self.gate.forward(self.plain.forward(x)))

    model = Two(nn.LinearConfig(4, 4).init(DEVICE), nn.Sigmoid())
    monkeypatch.setattr(sigmoid, "forward", slowly)
    found = profile(model, [2, 4], rounds=2)
    assert found.with_backward
    assert found["gate"].backward > 0.02 > found["plain"].backward > 0
    assert found[""].backward > 0.02 > found[""].own_backward
    assert found["plain"].calls == 2


def test_memory_of_a_linear_layer_is_what_the_formula_says():
    model = nn.LinearConfig(8, 4).init(DEVICE)
    found = profile(model, [3, 8])[""]
    assert found.weights == (8 * 4 + 4) * 4
    assert found.results == 3 * 4 * 4
    assert found.kept == 3 * 8 * 4  # the input, for the gradient of the weight


def test_memory_adds_up_and_an_array_counts_once():
    found = profile(tiny(), [5, 4])
    first, last = found["first"], found["last"]
    assert found[""].weights == first.weights + last.weights
    assert found[""].results >= first.results + last.results > 0
    assert found[""].kept >= first.kept + last.kept > 0
    doubled = profile(tiny(), [10, 4])
    assert doubled[""].kept == 2 * found[""].kept
    assert doubled[""].weights == found[""].weights


def test_inference_has_no_backward_and_no_dropout():
    found = profile(tiny(), [5, 4], backward=False)
    assert not found.with_backward
    assert found[""].backward == found[""].kept == 0
    assert "backward" not in str(found)
    assert found["dropout"].results == 0
    assert found["first"].results == 5 * 8 * 4


def test_a_model_on_a_plain_backend_is_profiled_all_the_same():
    found = profile(tiny(PLAIN), [5, 4])
    assert found.with_backward
    assert found["first"].backward > 0


def test_frozen_layers_have_no_backward():
    found = profile(tiny().no_grad(), [5, 4])
    assert not found.with_backward
    assert found[""].forward > 0


def test_the_model_and_its_random_numbers_stay_as_they_were():
    class Normed(Module):
        norm: nn.BatchNorm
        dropout: nn.Dropout

        def forward(self, x):
            return self.dropout.forward(self.norm.forward(x))

    model = Normed(nn.BatchNormConfig(4).init(DEVICE), nn.DropoutConfig(0.5).init())
    DEVICE.seed(3)
    before = weights(model)
    expected = np.asarray(Tensor.random([3], device=DEVICE))
    DEVICE.seed(3)
    found = profile(model, [8, 4])
    assert found["norm"].backward > 0
    after = weights(model)
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert np.array_equal(np.asarray(Tensor.random([3], device=DEVICE)), expected)
    assert "forward" not in vars(model.norm)


def test_profiling_keeps_no_backend_alive():
    made = type(Autodiff)._made
    profile(tiny(), [5, 4])
    count = len(made)
    profile(tiny(), [5, 4])
    assert len(made) == count


def test_inputs_may_be_tensors_and_outputs_any_structure():
    class Words(Module):
        embedding: nn.Embedding

        def forward(self, batch):
            found = self.embedding.forward(batch["tokens"])
            return {"found": [found, (found * 2.0,)], "note": "text"}

    model = Words(nn.EmbeddingConfig(10, 4).init(DEVICE))
    tokens = Tensor.from_data([[1, 2, 3]], DEVICE, Int)
    found = profile(model, {"tokens": tokens})
    assert found["embedding"].backward > 0
    assert found["embedding"].results == 3 * 4 * 4


def test_a_layer_without_parameters_runs_where_its_input_is():
    found = profile(nn.Relu(), Tensor.ones([2, 3], DEVICE))
    assert (found[""].results, found.with_backward) == (2 * 3 * 4, False)


def test_a_recurrent_layer_and_a_convolution_are_profiled():
    lstm = nn.LstmConfig(3, 5, bias=True).init(DEVICE)
    assert profile(lstm, [2, 4, 3], None)[""].backward > 0
    conv = nn.Conv2dConfig((1, 2), (3, 3)).init(DEVICE)
    found = profile(conv, [1, 1, 8, 8])
    assert found[""].results >= 2 * 6 * 6 * 4


def test_a_profile_prints_as_a_table():
    found = profile(pair(), [2, 4], rounds=2)
    lines = str(found).splitlines()
    assert lines[0].split()[:5] == ["layer", "forward", "%", "backward", "%"]
    assert lines[2].startswith("Pair ")
    assert lines[3].startswith("  quick (Sleepy) ")
    assert lines[4].startswith("    linear (Linear) ")
    assert lines[-1] == "medians of 2 rounds; a layer includes those inside it"
    flat = profile(pair(), [2, 4], rounds=1, depth=1)
    assert "Linear" not in str(flat)
    assert found._repr_html_().count("<tr>") == 6
    assert set(found.to_dict()["layers"][1]) >= {"path", "forward", "kept"}


def test_times_are_said_as_people_say_them():
    texts = [time_text(s) for s in (1e-9, 9.994e-7, 5e-5, 0.9994e-3, 0.5, 61)]
    assert texts == ["0.001 µs", "0.999 µs", "50 µs", "999 µs", "500 ms", "61.00 s"]


def test_what_cannot_be_profiled_is_explained():
    with pytest.raises(ConfigError, match="no layer 'third'"):
        _ = profile(tiny(), [5, 4])["third"]
    with pytest.raises(ConfigError, match="no method 'infer'"):
        profile(tiny(), [5, 4], method="infer")
