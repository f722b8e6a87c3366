"""Results that are dropped: in a script, a loop, and the last line of a cell."""

import ast
import inspect
import linecache
import typing
import warnings

import pytest

from burnbook import lr_scheduler, nn
from burnbook.backend import Autodiff, Numpy
from burnbook.config import Config
from burnbook.core.errors import GraphError, ResultDropped
from burnbook.data import DataLoaderBuilder
from burnbook.grad_clipping import GradientClippingConfig
from burnbook.module import Module, Param, WeightNorm
from burnbook.optim import (
    AdamConfig,
    GradientsAccumulator,
    GradientsParams,
    OptimizerAdaptor,
    ParamGroup,
    SgdConfig,
)
from burnbook.record import CompactRecorder
from burnbook.tensor import Tensor

DEVICE = Autodiff(Numpy(compiled=False))
X = Tensor.ones([1, 2], DEVICE)


class Net(Module):
    fc1: nn.Linear
    blocks: list[nn.Linear]

    def forward(self, x):
        return self.blocks[0].forward(self.fc1.forward(x))


class Same:
    def map_float(self, _, tensor):
        return tensor * 1.0


def names():
    """What the lines speak of."""
    linear = nn.LinearConfig(2, 2).init(DEVICE)
    m = Net(linear, [nn.LinearConfig(2, 2).init(DEVICE)])
    optim = SgdConfig().init()
    schedule = lr_scheduler.LinearLrSchedulerConfig(0.1, 0.01, 5).init()
    return {
        "m": m,
        "record": m.into_record(),
        "device": DEVICE,
        "optim": optim,
        "schedule": schedule,
        "grads": lambda: GradientsParams.from_grads(m.forward(X).sum().backward(), m),
        "group": ParamGroup.all(),
        "Same": Same,
        "WeightNorm": WeightNorm,
        "config": nn.LinearConfig(2, 2),
        "loaders": DataLoaderBuilder(),
        "batches": DataLoaderBuilder().batch_size(2).build([X, X]),
        "clipping": GradientClippingConfig.Norm(1.0).init(),
        "kept": GradientsParams.from_grads(m.forward(X).sum().backward(), m),
        "words": nn.MhaInput.self_attn(X.unsqueeze_dim(0)),
        "text": nn.TransformerEncoderInput(X.unsqueeze_dim(0)),
        "mask": Tensor.zeros([1, 1], DEVICE).bool(),
        "x": X,
        "recorder": CompactRecorder(),
        "state": optim.into_record(),
        "place": schedule.into_record(),
    }


# line: the line that keeps the result, in the same names
MODELS = {
    "m.no_grad()": "m = m.no_grad()",
    "m.valid()": "m = m.valid()",
    "m.train()": "m = m.train()",
    "m.eval()": "m = m.eval()",
    "m.eval('fc1')": "m = m.eval('fc1')",
    "m.fork(device)": "m = m.fork(device)",
    "m.to_device(device)": "m = m.to_device(device)",
    "m.replace(fc1=m.fc1)": "m = m.replace(fc1=m.fc1)",
    "m.map(Same())": "m = m.map(Same())",
    "m.freeze_group(group)": "m = m.freeze_group(group)",
    "m.unfreeze_group(group)": "m = m.unfreeze_group(group)",
    "m.load_record(record)": "m = m.load_record(record)",
    "m.load_partial(record)": "m, report = m.load_partial(record)",
    "m.apply_reparameterization(WeightNorm())": (
        "m = m.apply_reparameterization(WeightNorm())"
    ),
    "m.clone()": "other = m.clone()",
    "m.fc1.no_grad()": "m = m.replace(fc1=m.fc1.no_grad())",
    "m.blocks[0].eval()": (
        "m = m.replace(blocks=[*m.blocks[:0], m.blocks[0].eval(), *m.blocks[0:][1:]])"
    ),
    "m.blocks[-1].no_grad()": (
        "m = m.replace(blocks=[*m.blocks[:-1], m.blocks[-1].no_grad(), "
        "*m.blocks[-1:][1:]])"
    ),
    "schedule.step()": "lr = schedule.step()",
    "optim.step(0.1, m, grads())": "m = optim.step(0.1, m, grads())",
    "optim.step(0.1, m.fc1, grads())": (
        "m = m.replace(fc1=optim.step(0.1, m.fc1, grads()))"
    ),
}
# What is shown to be looked at: no warning as the last line of a cell.
VALUES = {
    "config.with_bias(False)": "config = config.with_bias(False)",
    "config.replace(bias=False)": "config = config.replace(bias=False)",
    "loaders.batch_size(3)": "loaders = loaders.batch_size(3)",
    "x.to_device(device)": "x = x.to_device(device)",
    "x.at[0].set(2.0)": "x = x.at[0].set(2.0)",
    "clipping.clip_gradients(kept)": "kept = clipping.clip_gradients(kept)",
    "words.mask_pad(mask)": "words = words.mask_pad(mask)",
    "words.mask_attn(mask)": "words = words.mask_attn(mask)",
    "text.mask_pad(mask)": "text = text.mask_pad(mask)",
    "batches.to_device(device)": "batches = batches.to_device(device)",
}
LINES = {**MODELS, **VALUES}
WHERE = {
    "script": "{line}\n",
    "loop": "for _ in range(2):\n    {line}\n",
    "function": "def act():\n    {line}\n\nact()\n",
    "middle": "a = 1\n{line}\nb = 2\n",
    "last": "a = 1\n{line}",
    "last;": "a = 1\n{line};",
}


def run_cell(text, known, last_is_shown):
    """Run a cell as IPython does, and give what it warns of."""
    name = f"<cell {abs(hash(text))}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    tree = ast.parse(text, name)
    body, shown = tree.body, []
    if last_is_shown and isinstance(body[-1], ast.Expr):
        body, shown = body[:-1], body[-1:]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(ast.Module(body, []), name, "exec"), known)
        if shown:
            exec(compile(ast.Interactive(shown), name, "single"), known)
    del linecache.cache[name]
    return [w for w in caught if issubclass(w.category, ResultDropped)]


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("line", LINES)
def test_a_dropped_result_warns_with_the_line_that_keeps_it(capsys, line, where):
    known = names()
    cell = WHERE[where].format(line=line)
    caught = run_cell(cell, known, where.startswith("last"))
    if where == "last" and line in VALUES:
        assert not caught  # it is looked at
        return
    if where == "last;" and line in VALUES:
        return
    assert caught, cell
    text = str(caught[0].message)
    assert text.endswith(f"\n  try: {LINES[line]}")
    known["optim"] = SgdConfig().init()
    assert not run_cell(f"{LINES[line]}\n", known, False)


@pytest.mark.parametrize("line", LINES)
def test_a_result_that_is_used_is_silent(capsys, line):
    for form in ("y = {}", "print({})", "[{}]", "({},)[0]", "id({})"):
        text = form.format(line)
        assert not run_cell(f"if True:\n    {text}\n", names(), False)
    for made in ("nn.LinearConfig(2, 2).init(device).valid()", "config.init(device)"):
        assert not run_cell(made, {**names(), "nn": nn}, True)


@pytest.mark.parametrize(
    "line", ["optim.load_record(state)", "schedule.load_record(place)"]
)
def test_what_changes_in_place_may_stand_alone(line):
    assert not run_cell(f"{line}\n", names(), False)


def test_the_states_of_an_optimizer_and_a_schedule_are_loaded_in_place():
    known = names()
    adam = AdamConfig().init()
    adam.step(0.1, known["m"], known["grads"]())
    fresh = AdamConfig().init()
    fresh.load_record(adam.into_record())
    assert str(fresh.into_record()) == str(adam.into_record())
    known["schedule"].step()
    again = names()["schedule"]
    again.load_record(known["schedule"].into_record())
    assert again.step() == known["schedule"].step()


def gives_a_new_one(method):
    """Whether a method gives a new object of its class, by its annotation."""
    try:
        given = inspect.signature(method).return_annotation
    except (TypeError, ValueError):
        return False
    return given is typing.Self or str(given).startswith("tuple[Self")


@pytest.mark.parametrize("cls", [Module, DataLoaderBuilder, Config])
def test_every_method_that_gives_a_new_object_warns(cls):
    plain = [
        name
        for name, method in vars(cls).items()
        if not name.startswith("_")
        and inspect.isfunction(method)
        and gives_a_new_one(inspect.unwrap(method))
        and not hasattr(method, "__wrapped__")
    ]
    assert plain == []


def test_every_schedule_and_optimizer_warns():
    made = [
        cls
        for cls in vars(lr_scheduler).values()
        if inspect.isclass(cls)
        and inspect.isfunction(vars(cls).get("step"))
        and not getattr(cls, "_is_protocol", False)
        and not issubclass(cls, Config)
    ]
    assert len(made) > 5
    assert all(hasattr(cls.step, "__wrapped__") for cls in made)
    assert hasattr(OptimizerAdaptor.step, "__wrapped__")
    assert hasattr(Param.map, "__wrapped__")


# Gradients that are used up


def test_gradients_that_a_step_has_used_say_so():
    known = names()
    m, grads = known["m"], known["grads"]()
    number = m.fc1.weight.id
    assert grads.get(number) is not None
    m = known["optim"].step(0.1, m, grads)
    assert repr(grads) == "GradientsParams(0 gradients, 4 used by step)"
    for ask in (lambda: grads.get(number), grads.norm):
        with pytest.raises(GraphError, match="step has used the gradients up"):
            ask()
    assert grads.is_empty()
    assert grads.get(Param.from_tensor(X).id) is None


def test_gradients_that_an_accumulator_holds_say_so():
    known = names()
    grads = known["grads"]()
    GradientsAccumulator().accumulate(known["m"], grads)
    with pytest.raises(GraphError, match="accumulate has used"):
        grads.get(known["m"].fc1.weight.id)
