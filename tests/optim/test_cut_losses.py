"""Losses that reach no parameter: the error names the line that cut them, or the model.

Each program is run, its error read, and the step that it names replaced by what the
cure says: then the gradients of the model are there.
"""

import linecache
import re

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import BackendError, GraphError
from burnbook.module import Module
from burnbook.optim import GradientsAccumulator, GradientsParams, SgdConfig
from burnbook.tensor import Tensor

DEVICE = Autodiff(Numpy())


class Net(Module):
    fc: nn.Linear

    def forward(self, x):
        return self.fc.forward(x).tanh()


def net():
    return Net(nn.LinearConfig(4, 3).init(DEVICE))


def names():
    model = net()
    return {
        "model": model,
        "lossf": nn.CrossEntropyLossConfig().init(DEVICE),
        "x": Tensor.ones([6, 4], DEVICE),
        "y": Tensor.from_ints([0, 1, 2, 0, 1, 2], DEVICE),
        "labels": np.array([0, 1, 2, 0, 1, 2]),
        "device": DEVICE,
        "np": np,
        "Tensor": Tensor,
        "GradientsParams": GradientsParams,
        "optim": SgdConfig().init(),
        "accumulator": GradientsAccumulator(),
    }


CUTS = {
    "inner of the loss": "loss = lossf.forward(model.forward(x), y).inner()",
    "detach of the loss": "loss = lossf.forward(model.forward(x), y).detach()",
    "detach": "out = model.forward(x).detach()\nloss = lossf.forward(out, y)",
    "numpy": (
        "out = Tensor.from_numpy(np.asarray(model.forward(x)), device)\n"
        "loss = lossf.forward(out, y)"
    ),
    "data": (
        "out = Tensor.from_data(model.forward(x).into_data(), device)\n"
        "loss = lossf.forward(out, y)"
    ),
    "scalar": (
        "loss = Tensor.from_data([lossf.forward(model.forward(x), y).into_scalar()], "
        "device)"
    ),
    "detach, then required": (
        "out = model.forward(x).detach().require_grad()\nloss = lossf.forward(out, y)"
    ),
    "numpy, then required": (
        "out = Tensor.from_numpy(np.asarray(model.forward(x)), device).require_grad()\n"
        "loss = lossf.forward(out, y)"
    ),
    "a name in between": (
        "out = model.forward(x)\nout = out.detach()\nloss = lossf.forward(out, y)"
    ),
    "labels of NumPy are none": (
        "y = Tensor.from_data(np.asarray(labels), device)\n"
        "out = model.forward(x).detach()\nloss = lossf.forward(out, y)"
    ),
    "in a function": (
        "def compute():\n"
        "    out = model.forward(x).detach()\n"
        "    loss = lossf.forward(out, y)\n"
        "    return GradientsParams.from_grads(loss.backward(), model)\n"
        "compute()"
    ),
}
OTHERS = {  # a step that no other step stands for
    "argmax": ("loss = model.forward(x).argmax(1).float().mean()", ".argmax(1)"),
    "compared": ("loss = (model.forward(x) > 0).float().mean()", "forward(x) > 0"),
    "whole": ("loss = model.forward(x).int().float().mean()", ".int()"),
    "accuracy": (
        "guess = model.forward(x).argmax(1).squeeze_dim(1)\n"
        "loss = guess.equal(y).float().mean()",
        "guess.equal(y)",
    ),
    "numpy, in two": (
        "h = np.asarray(model.forward(x))\n"
        "out = Tensor.from_numpy(h, device)\n"
        "loss = lossf.forward(out, y)",
        "np.asarray(model.forward(x))",
    ),
}
LAST = "\ngrads = GradientsParams.from_grads(loss.backward(), model)"


def run(code, known):
    name = f"<cut {abs(hash(code))}>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    try:
        exec(compile(code, name, "exec"), known)
    finally:
        del linecache.cache[name]
    return known.get("grads")


def program(text):
    return text if "backward" in text else text + LAST


@pytest.mark.parametrize("name", CUTS)
def test_the_step_that_cut_the_graph_is_named_and_replaced(name):
    code = program(CUTS[name])
    with pytest.raises((GraphError, BackendError)) as caught:
        run(code, names())
    (fact,) = [row[1] for row in caught.value.facts if row[0] == "cut by"]
    step, _, line = fact.rpartition(", line ")
    assert step in code.splitlines()[int(line) - 1]
    kept, _, rest = caught.value.cure.partition(" in place of ")
    assert rest.partition("; ")[0] == step
    mended = code.replace(step, kept)
    if name == "in a function":
        mended = mended.replace("\ncompute()", "\ngrads = compute()")
    assert len(run(mended, names())) == 2


@pytest.mark.parametrize("name", OTHERS)
def test_a_step_without_gradient_is_named(name):
    code, piece = OTHERS[name]
    with pytest.raises(GraphError) as caught:
        run(program(code), names())
    (fact,) = [row[1] for row in caught.value.facts if row[0] == "cut by"]
    assert piece in fact
    assert "forward gave" in caught.value.cure


def test_a_loss_layer_is_not_taken_for_a_model_without_parameters():
    code = "h = held(model, x)\nloss = lossf.forward(h, y)" + LAST
    known = {**names(), "held": lambda model, x: model.forward(x).detach()}
    with pytest.raises(GraphError) as caught:
        run(code, known)
    assert "CrossEntropyLoss has no parameter" not in str(caught.value)


def test_valid_is_named():
    with pytest.raises(BackendError) as caught:
        run("model = model.valid()\nout = model.forward(x.inner())\nout.backward()",
            names())  # fmt: skip
    assert caught.value.cure.startswith("model in place of model.valid()")


MODELS = {  # how another model comes to be, and the name of the one with the gradients
    "new": "other = make()",
    "stepped": (
        "first = GradientsParams.from_grads(lossf.forward(model.forward(x), y)"
        ".backward(), model)\nother = optim.step(0.1, model, first)"
    ),
    "fork": "other = model.fork(device)",
    "record": "other = make().load_record(model.into_record())",
}


@pytest.mark.parametrize("name", MODELS)
def test_the_model_that_has_the_gradients_is_named(name):
    code = MODELS[name] + "\nloss = lossf.forward(model.forward(x), y)\n"
    code += "grads = GradientsParams.from_grads(loss.backward(), other)"
    known = {**names(), "make": net}
    with pytest.raises(GraphError, match="are those of model, another Net") as caught:
        run(code, known)
    named = re.match(r"from_grads\(…, (\w+)\)", caught.value.cure)[1]
    known = {**names(), "make": net}
    assert len(run(code.replace(", other)", f", {named})"), known)) == 2


def test_an_accumulator_refuses_the_gradients_of_another_model():
    code = "loss = lossf.forward(model.forward(x), y)" + LAST
    code += "\naccumulator.accumulate(other, grads)"
    with pytest.raises(GraphError, match="none of the 2 gradients"):
        run(code, {**names(), "other": net()})
