"""Forms of Python and calls of other libraries: each is answered by a line that works.

Every form of the table is tried on every class that answers it; the cure is the
reader's own line, put right.
"""

import copy
import linecache
import pickle

import numpy as np
import pytest

import burnbook
from burnbook import lr_scheduler, nn, optim, record, train
from burnbook.core import other_forms
from burnbook.core.errors import BurnbookError
from burnbook.data import DataLoaderBuilder, InMemDataset, as_dataset
from burnbook.grad_clipping import GradientClippingConfig
from burnbook.optim import GradientsParams
from burnbook.prelude import Autodiff, Module, Numpy, Tensor

DEVICE = Autodiff(Numpy())
X, Y = np.ones((8, 2), np.float32), np.arange(8) % 2


class Net(Module):
    body: nn.Linear
    drop: nn.Dropout

    def forward(self, x):
        return self.drop(self.body(x))


def names(tmp_path):
    """What the lines speak of."""
    model = Net(nn.LinearConfig(2, 2).init(DEVICE), nn.DropoutConfig(0.5).init())
    x = Tensor.from_data(X, DEVICE)
    history = train.MetricHistory()
    history.end_epoch(1, "valid", {"Loss": 0.5, "Accuracy": 50.0})
    history.end_epoch(1, "train", {"Loss": 0.4, "Accuracy": 60.0})
    made = lr_scheduler.ReduceOnPlateauLrSchedulerConfig(0.8, patience=1).init()

    def grads():
        return GradientsParams.from_grads(model.forward(x).sum().backward(), model)

    return {
        **vars(train),
        **vars(optim),
        "__name__": "program",
        "burnbook": burnbook,
        "InMemDataset": InMemDataset,
        "random_split": burnbook.data.random_split,
        "Tensor": Tensor,
        "nn": nn,
        "model": model,
        "x": x,
        "y": Tensor.from_data(Y, DEVICE),
        "array": X,
        "plain": x.inner(),
        "mask": x > 0,
        "loader": DataLoaderBuilder().batch_size(4).build((X, Y)),
        "accuracy": train.AccuracyMetric(),
        "metadata": None,
        "history": history,
        "first": grads(),
        "second": grads(),
        "plateau": made,
        "clips": GradientClippingConfig.Norm(1.0),
        "saved": model.into_record(),
        "recorder": record.CompactRecorder(),
        "path": model.save_file(tmp_path / "net", record.CompactRecorder()),
        "device": DEVICE,
        "builder": train.LearnerBuilder(tmp_path / "run"),
        "dataset": InMemDataset(list(range(10))),
    }


def ran(line, known):
    """What a line raises, with its source at hand; None if it works."""
    name = f"<line {abs(hash(line))}>"
    linecache.cache[name] = (len(line), None, [f"{line}\n"], name)
    try:
        exec(compile(f"{line}\n", name, "exec"), known)
    except BurnbookError as error:
        return error
    return None


# line: the cure; its code works as it stands
LINES = {
    "batch = next(loader)": "next(iter(loader))",
    "batch = loader[0]": (
        "next(iter(loader)) for a batch, or loader.dataset.get(0) for an item"
    ),
    "accuracy(x, y)": "accuracy.update(accuracy.Input(x, y), metadata)",
    "history['val_loss']": "history.epochs('Loss', 'valid')",
    "history['accuracy']": "history.epochs('Accuracy', 'train')",
    "history['valid_Accuracy']": "history.epochs('Accuracy', 'valid')",
    "model['body']": "model.body",
    "model['body.weight']": "model.body.weight",
    "list(model)": "model.named_params(), pairs of a path and a Param",
    "for layer in model: pass": "model.named_params(), pairs of a path and a Param",
    "model.body.weight.numel()": "model.body.weight.shape.num_elements()",
    "model(x, training=False)": "model.eval()(x)",
    "model(x, training=True)": "model.train()(x)",
    "model(x, mode=False)": "model.eval()(x)",
    "model = model.train(False)": "model = model.eval()",
    "model = model.train(True)": "model = model.train()",
    "model = model.eval(True)": "model = model.eval()",
    "model.load_record(saved, strict=False)": "model.load_record(saved, partial=True)",
    "model.load_file(path, strict=False)": (
        "model.load_record(recorder.load(path, device), partial=True)"
    ),
    "plateau.step(0.5)": "plateau.observe(0.5); lr = plateau.step()",
    "Tensor.cat(x, x, 0)": "Tensor.cat([x, x], 0)",
    "Tensor.cat(x, x, x, 1)": "Tensor.cat([x, x, x], 1)",
    "Tensor.cat(x, x)": "Tensor.cat([x, x], 0)",
    "Tensor.stack(x, x)": "Tensor.stack([x, x], 0)",
    "Tensor.stack(x, x, 1)": "Tensor.stack([x, x], 1)",
    "clips.clip_gradients(first)": "clips.init().clip_gradients(first)",
    "model.predict(array)": "model.valid().forward(Tensor.from_data(array))",
    "model.predict(x)": "model.valid().forward(x.inner())",
    "model.predict(plain)": "model.valid().forward(plain)",
    "Tensor.where(mask, 0.0, x)": "x.mask_fill(mask, 0.0)",
    "Tensor.where(mask, x, 0.0)": "x.mask_fill(mask.bool_not(), 0.0)",
    "Tensor.where(mask, -1.5, x + 1)": "(x + 1).mask_fill(mask, -1.5)",
    "Tensor.where(x > 0, x, -1e9)": "x.mask_fill((x > 0).bool_not(), -1e9)",
    "x.where(mask, 0.0)": "x.mask_fill(mask.bool_not(), 0.0)",
    "Tensor.where(mask, x, x * 2)": "x.mask_where(mask.bool_not(), x * 2)",
    "builder.num_epochs('3')": "num_epochs(3)",
    "builder.num_epochs(3.0)": "num_epochs(3)",
    "builder.grads_accumulation('4')": "grads_accumulation(4)",
    "builder.num_epochs(0)": "num_epochs(1)",
    "random_split(dataset, 0.8)": "[0.8, 0.2]",
    "random_split(dataset, 7)": "[7, 3]",
    "first + second": (
        "accumulator = GradientsAccumulator(); accumulator.accumulate(model, first); "
        "accumulator.accumulate(model, second); accumulator.grads()"
    ),
    "Tensor.ones([2], x.device)": "x.device()",
    "Tensor.zeros([2, 2], device=x.device)": "x.device()",
    "nn.LinearConfig(2, 2).init(x.device)": "x.device()",
}


@pytest.mark.parametrize("line", LINES)
def test_a_habit_is_answered_with_the_line_that_works(tmp_path, line):
    error = ran(line, names(tmp_path))
    assert error is not None
    assert error.cure == LINES[line], error
    code = error.cure.partition(", pairs of")[0].partition(" for a batch")[0]
    if code.startswith(("num_epochs", "grads_")):
        code = f"builder.{code}"
    assert ran(code, names(tmp_path)) is None


@pytest.mark.parametrize("line", [name for name in LINES if "where(" in name])
def test_the_cure_of_where_is_its_meaning(tmp_path, line):
    known = names(tmp_path)
    known["x"] = Tensor.from_data([[-1.0, 2.0], [3.0, -4.0]], DEVICE)
    known["mask"] = known["x"] > 0
    exec(f"found = {LINES[line]}", known)
    asked = line.replace("Tensor.where(", "where(").replace(
        "x.where(mask,", "where(mask, x,"
    )
    arrays = {n: np.asarray(known[n]) for n in ("x", "mask")} | {"where": np.where}
    wanted = eval(asked, arrays)
    assert np.array_equal(np.asarray(known["found"]), wanted)


HOLDERS = {
    "DataLoader": "loader",
    "Metric": "accuracy",
    "GradientsParams": "first",
    "Module": "model",
}
WRITTEN = {
    "__next__": "next({})",
    "__getitem__": "{}[0]",
    "__call__": "{}(x)",
    "__add__": "{0} + {0}",
    "__sub__": "{0} - {0}",
    "__mul__": "{0} * 0.9",
    "__rmul__": "0.9 * {0}",
    "__truediv__": "{0} / 2",
}
MEMBERS = [(of, form) for of, forms in other_forms.FORMS.items() for form in forms]


@pytest.mark.parametrize(("of", "form"), MEMBERS)
def test_every_form_of_the_table_is_answered(tmp_path, of, form):
    error = ran(WRITTEN[form].format(HOLDERS[of]), names(tmp_path))
    assert isinstance(error, TypeError)
    assert HOLDERS[of] in error.cure
    assert error.what == other_forms.FORMS[of][form].what


def test_forms_that_a_class_has_stay_its_own():
    both = nn.Sequential(nn.LinearConfig(2, 2).init(DEVICE), nn.Relu())
    assert isinstance(both[1], nn.Relu)

    class Scaled(Module):
        size: float

        def __mul__(self, other):
            return Scaled(self.size * other)

    assert (Scaled(2.0) * 3).size == 6.0


def test_what_may_be_asked_may_still_be_asked(tmp_path):
    known = names(tmp_path)
    model = known["model"]
    assert copy.deepcopy(model).forward(known["x"]).dims() == [8, 2]
    assert pickle.loads(pickle.dumps(model)).body is not None
    assert model
    loader = known["loader"]
    assert len(loader) == 2
    assert len(list(loader)) == 2
    with pytest.raises(BurnbookError, match="gives batches"):
        as_dataset(loader)
    builder = known["builder"]
    with pytest.raises(BurnbookError, match="is not a Callback"):
        builder.callback(train.LossMetric())


def test_two_loaders_in_a_list_are_two_arguments(tmp_path):
    known = names(tmp_path)

    class Trained(Net):
        def train_step(self, batch):
            raise AssertionError("it does not come so far")

        valid_step = train_step

    model = known["model"]
    known["learner"] = known["builder"].build(
        Trained(model.body, model.drop), optim.SgdConfig().init(), 0.1
    )
    error = ran("learner.fit([loader, loader])", known)
    assert error.cure.startswith("fit(loader, loader)")
    assert "2 loaders" in error.what


def test_an_error_of_the_layer_itself_knows_more():
    mha, x = (
        nn.MultiHeadAttentionConfig(4, 2).init(DEVICE),
        Tensor.ones([1, 3, 4], DEVICE),
    )
    with pytest.raises(BurnbookError) as caught:
        mha(x, x, x)
    assert caught.value.cure.endswith(", or MhaInput(query, key, value)")
