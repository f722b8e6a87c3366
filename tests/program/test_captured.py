"""captured: a function of one's own loop runs as a plan, and gives what it gave."""

import warnings

import numpy as np
import pytest

from burnbook import nn, ops, seed
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ArgumentError, GraphError
from burnbook.core.op import OPS, op
from burnbook.module import Module
from burnbook.optim import (
    AdamConfig,
    GradientsAccumulator,
    GradientsParams,
    ParamGroup,
    SgdConfig,
)
from burnbook.program import captured
from burnbook.tensor import Tensor

AD = Autodiff(Numpy())
SCALE = 2.0  # what a function takes from elsewhere
SEEN = []


class Mlp(Module):
    first: nn.Linear
    norm: nn.BatchNorm
    dropout: nn.Dropout
    second: nn.Linear

    def forward(self, x):
        x = self.norm.forward(self.first.forward(x)).relu()
        return self.second.forward(self.dropout.forward(x))

    @classmethod
    def make(cls):
        seed(3)
        first, second = nn.LinearConfig(6, 8), nn.LinearConfig(8, 3)
        norm, dropout = nn.BatchNormConfig(8), nn.DropoutConfig(0.3)
        made = cls(first.init(AD), norm.init(AD), dropout.init(), second.init(AD))
        for _, param in made.named_params():
            param.val()
        return made


def batch(number, count=8):
    rng = np.random.default_rng(number)
    x = rng.standard_normal((count, 6)).astype(np.float32)
    targets = rng.integers(0, 3, count)
    return Tensor.from_numpy(x, AD), Tensor.from_ints(targets, AD)


def train_step(model, optim, lr, x, targets):
    out = model.forward(x)
    loss = nn.CrossEntropyLossConfig().init(x.device()).forward(out, targets)
    grads = GradientsParams.from_grads(loss.backward(), model)
    return optim.step(lr, model, grads), loss


def values(model):
    return {path: np.asarray(p.val()) for path, p in model.named_params()}


def trained(step, batches, change=lambda i, model, optim: model):
    model, optim = Mlp.make(), AdamConfig().init()
    seed(11)
    losses = []
    for i, one in enumerate(batches):
        model = change(i, model, optim)
        model, loss = step(model, optim, 0.02 / (1 + i), *one)
        losses.append(loss.into_scalar())
    return values(model), losses, optim


def agrees(step, batches, **more):
    found, losses, optim = trained(step, batches, **more)
    wanted, others, plain = trained(step.function, batches, **more)
    np.testing.assert_allclose(losses, others, 1e-4, 1e-5)
    assert found.keys() == wanted.keys()
    for path in found:
        np.testing.assert_allclose(found[path], wanted[path], 2e-3, 2e-5, err_msg=path)
    assert len(optim.into_record()) == len(plain.into_record())


def test_a_loop_gives_what_it_gave_with_any_batch_size():
    step = captured(train_step, strict=True)
    agrees(step, [batch(i, 3 if i % 5 == 4 else 8) for i in range(15)])
    assert 1 <= len(step._plans) <= 8
    assert not step.refusals


def test_a_layer_that_is_frozen_in_mid_run_is_noticed():
    step = captured(train_step, strict=True)

    def change(i, model, optim):
        group = ParamGroup.from_predicate("first")
        if i == 5:
            return model.freeze_group(group)
        return model.unfreeze_group(group) if i == 9 else model

    agrees(step, [batch(i) for i in range(13)], change=change)


def test_a_changed_rule_of_the_optimizer_is_noticed():
    step = captured(train_step, strict=True)

    def change(i, model, optim):
        if i == 6:
            optim.with_grad_clipping(None)
            optim.optim = AdamConfig(beta_1=0.5).init().optim
        return model

    agrees(step, [batch(i) for i in range(12)], change=change)


def test_a_model_of_the_call_before_stays_what_it_was():
    step, (x, targets) = captured(train_step, strict=True), batch(0)
    model, optim = Mlp.make(), AdamConfig().init()
    for _ in range(4):
        model, _ = step(model, optim, 0.1, x, targets)
    weight = np.array(model.first.weight.val())
    newer, _ = step(model, optim, 0.1, x, targets)
    np.testing.assert_array_equal(np.asarray(model.first.weight.val()), weight)
    assert (np.asarray(newer.first.weight.val()) != weight).any()


def test_names_and_trees_of_arguments():
    @captured(strict=True)
    def both(pair, *, scale, named):
        return {"sum": pair[0] + pair[1] * scale, "same": [named["z"], 3]}

    a, b, z = (Tensor.from_numpy(np.full((2, 2), float(i)), Numpy()) for i in (1, 2, 3))
    for scale in (2.0, 5.0):
        out = both((a, b), scale=scale, named={"z": z})
        assert np.asarray(out["sum"])[0, 0] == 1 + 2 * scale
        assert out["same"][1] == 3
    assert len(both._plans) == 1
    both([a, b], scale=2.0, named={"z": z})
    assert len(both._plans) == 2  # a list is another form than a tuple


def test_a_number_that_is_compared_goes_the_right_way():
    @captured(strict=True)
    def clipped(x, limit):
        return x * limit if limit < 1.0 else x - limit

    x = Tensor.from_numpy(np.ones(3, np.float32), Numpy())
    for limit in (0.5, 0.25, 2.0, 0.75, 3.0):
        wanted = limit if limit < 1 else 1 - limit
        assert np.asarray(clipped(x, limit))[0] == wanted


def test_what_a_function_takes_from_elsewhere_is_compared():
    global SCALE
    x = Tensor.from_numpy(np.ones(3, np.float32), Numpy())

    @captured(strict=True)
    def scaled(x):
        return x * SCALE

    for SCALE in (2.0, 2.0, 3.0, 3.0):
        assert np.asarray(scaled(x))[0] == SCALE


def test_an_optimizer_of_the_surroundings_is_found():
    model, optim, (x, targets) = Mlp.make(), AdamConfig().init(), batch(1)

    @captured(strict=True)
    def step(model, x, targets):
        return train_step(model, optim, 0.01, x, targets)

    for _ in range(5):
        model, _ = step(model, x, targets)
    states = optim.into_record().values()
    assert len(states) == 6
    assert "Recorded" not in repr(optim._states)


def printing(x):
    print("hello")
    return x + 1.0


def appending(x):
    SEEN.append(x)
    return x + 1.0


def counting(x):
    global SCALE
    SCALE += 1.0
    return x + 1.0


def looking(x):
    return x + 1.0 if x.sum().into_scalar() > 0 else x - 1.0


def drawing(x):
    return x + float(np.random.rand())


def tracking(x):
    return x.require_grad() * 2.0


REFUSED = {
    printing: "prints",
    appending: "changes SEEN",
    counting: "sets SCALE",
    looking: "elements",
    drawing: "draws",
    tracking: "gradient",
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_what_no_plan_can_do_runs_step_by_step_with_one_line_that_says_why(
    function, capsys
):
    x = Tensor.from_numpy(np.ones(3, np.float32), AD)
    SEEN.clear()
    step, before = captured(function), SCALE
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            step(x)
    lines = [str(one.message) for one in told if "captured" in str(one.message)]
    assert len(lines) == 1, lines
    assert REFUSED[function] in lines[0]
    assert "try:" in lines[0]
    assert "\n" not in lines[0]
    if function is printing:
        assert capsys.readouterr().out == "hello\n" * 3
    if function is appending:
        assert len(SEEN) == 3
        assert all(isinstance(one, Tensor) for one in SEEN)
    if function is counting:
        assert before + 3.0 == SCALE
    with pytest.raises(GraphError):
        captured(function, strict=True)(x)


def test_gradients_that_are_summed_outside_come_out():
    @captured(strict=True)
    def gradients(model, x, targets):
        out = model.forward(x)
        loss = nn.CrossEntropyLossConfig().init(x.device()).forward(out, targets)
        return GradientsParams.from_grads(loss.backward(), model), loss

    def loop(gradients):
        model, optim = Mlp.make(), SgdConfig().init()
        seed(4)
        sums = GradientsAccumulator()
        for i in range(8):
            grads, _ = gradients(model, *batch(i))
            sums.accumulate(model, grads)
            if i % 2:
                model = optim.step(0.1, model, sums.grads())
        return values(model)

    found, wanted = loop(gradients), loop(gradients.function)
    for path in wanted:
        np.testing.assert_allclose(found[path], wanted[path], 1e-4, 1e-6, err_msg=path)


def test_more_forms_than_the_bound_run_step_by_step():
    @captured(signatures=2)
    def twice(x):
        return x * 2.0

    def called(count):
        out = twice(Tensor.from_numpy(np.ones(count, np.float32), Numpy()))
        assert np.asarray(out).tolist() == [2.0] * count

    called(1)
    called(2)
    with pytest.warns(UserWarning, match="2 plans already"):
        called(3)
    called(4)
    assert "2 plans" in repr(twice)
    assert "x0 [1] f32" in twice.explain()
    assert "step by step" in twice.explain()


def test_a_model_for_inference():
    model = Mlp.make()
    predict = captured(model)
    for count in (1, 5, 1, 5):
        x, _ = batch(count, count)
        wanted = model.valid().forward(x.inner())
        np.testing.assert_allclose(np.asarray(predict(x)), np.asarray(wanted), 1e-5)
    assert repr(predict) == "captured(Mlp, 2 plans)"


def test_what_is_no_function_is_refused():
    for wrong in (3, Mlp):
        with pytest.raises(ArgumentError, match="captured"):
            captured(wrong)
    with pytest.raises(ArgumentError, match="no method"):
        captured(Mlp.make(), method="predict")


def test_a_method_is_captured_with_its_owner():
    class Trainer:
        @captured(strict=True)
        def step(self, x):
            return x + 1.0

    x = Tensor.from_numpy(np.ones(3, np.float32), Numpy())
    trainer = Trainer()
    for _ in range(3):
        assert np.asarray(trainer.step(x))[0] == 2.0


def test_a_step_of_a_hidden_optimizer_leaves_it_whole():
    class Hidden:
        def __init__(self):
            self.inside = [{"optim": [AdamConfig().init()]}]

    hidden, model, (x, targets) = Hidden(), Mlp.make(), batch(1)

    def step(model, x, targets):
        optim = hidden.inside[0]["optim"][0]
        return train_step(model, optim, 0.01, x, targets)

    run = captured(step)
    with pytest.warns(UserWarning, match="optimizer"):
        model, _ = run(model, x, targets)
    for _ in range(2):
        model, _ = run(model, x, targets)
    assert len(hidden.inside[0]["optim"][0].into_record()) == 6


def test_what_a_device_remembers_of_ops_is_no_change():
    """It comes from elsewhere or as an argument, and learns new ops in between."""
    device = Autodiff(Numpy())
    kernels = device.inner.kernels
    try:

        @op("F>F")
        def short_lived(xp, x):
            """x.

            Shapes: x [...] -> [...]
            """
            return x

        device.plain_below[short_lived] = 0
    finally:
        OPS.pop("short_lived")

    @captured
    def from_elsewhere(x):
        device.inner.kernels[short_lived] = None
        return Tensor.ones([4], device) * x

    @captured
    def as_argument(x, device):
        return Tensor.ones([4], device) * x

    for i in range(4):
        x = Tensor.from_data([1.0, 2.0, 3.0, float(i)], device)
        device.plain_below.pop(ops.erf, None)
        x.erf()
        np.testing.assert_array_equal(from_elsewhere(x), x)
        np.testing.assert_array_equal(as_argument(x, device), x)
    del device.plain_below[short_lived], kernels[short_lived]
    assert not from_elsewhere.refusals
    assert not as_argument.refusals
