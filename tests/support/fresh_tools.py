"""What the rows of fresh_calls.py call, in the process of one row.

Nothing of ours is imported at the top: what a row needs is imported when it runs.
"""

import contextlib
import dataclasses
import importlib
import inspect
import os
import re
import struct
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.fresh_calls import SIZES, TABLES


def run(row: str, device: str, size: str) -> None:
    """Evaluate a row: its expression does what a reader does first."""
    table, _, name = row.partition(".")
    module, rows, _ = TABLES[table]
    scope: dict[str, Any] = {table: importlib.import_module(module), "np": np}
    for other in {*re.findall(r"\b(\w+)\.", rows[name])} & {*TABLES} - {table}:
        scope[other] = importlib.import_module(TABLES[other][0])
    if "KAIMING" in rows[name]:
        scope["KAIMING"] = importlib.import_module("burnbook.nn.initializer").KAIMING
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        tools = Tools(device, SIZES[size], Path(folder))
        eval(rows[name], scope | tools.names())


def run_op(name: str, device: str, size: str) -> None:
    """Run an op forward, and backward where it has a gradient."""
    import burnbook.ops  # noqa: F401 - declares them
    from burnbook.core.op import OPS, draw, split_sample
    from tests.bench.growth import grow

    op = OPS[name]
    specs, attrs = split_sample(op.samples[0])
    if size == "large":
        try:
            specs, attrs = grow(op, 512, 512)
        except KeyError:  # pictures and sequences know three sizes only
            specs, attrs = grow(op, 256, 256)
    rng = np.random.default_rng(0)
    Tools(device, SIZES[size], Path()).op(op, [draw(s, rng) for s in specs], attrs)


def run_example(module: str, name: str) -> None:
    """Run the examples of one docstring."""
    import doctest

    found = doctest.DocTestFinder().find(importlib.import_module(module))
    (test,) = [each for each in found if each.name == name]
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    said: list[str] = []
    doctest.DocTestRunner(optionflags=flags).run(test, out=said.append)
    assert not said, "".join(said)


def made_by(name: str) -> Any:
    """The device of a row; compiled is the default, where kernels are ready."""
    from burnbook.backend import Autodiff, Numpy

    return Autodiff(Numpy() if name == "compiled" else Numpy(compiled=False))


class Tools:
    """Numbers of a size, and a first use of a layer, an optimizer, a metric, …"""

    def __init__(self, device: str, n: int, folder: Path):
        self.device = made_by(device)
        self.n = n
        self.folder = folder
        self.rng = np.random.default_rng(n)

    def names(self) -> dict[str, Any]:
        """Everything here that a row may say."""
        names = (n for n in dir(self) if not n.startswith("_"))
        return {name: getattr(self, name) for name in names}

    def fail(self) -> None:
        """The claim of a row is not so."""
        raise AssertionError("the claim of the row is not so")

    # numbers

    def some(self, shape):
        """A Float tensor to learn from."""
        from burnbook.tensor import Tensor

        array = self.rng.standard_normal(shape).astype(np.float32)
        return Tensor.from_numpy(array, self.device).require_grad()

    def below(self, high, shape):
        """Whole numbers from 0 on."""
        return self.rng.integers(0, high, shape)

    def above(self, low, high, shape):
        """Whole numbers from `low` on."""
        return self.rng.integers(low, high, shape)

    def share(self, shape):
        """Numbers between 0.2 and 0.8."""
        return self.rng.uniform(0.2, 0.8, shape).astype(np.float32)

    def sign(self, shape, kind):
        """1 and −1."""
        made = self.rng.choice([-1, 1], shape)
        return made.astype(np.float32) if kind is float else made

    def _tensor(self, value, device):
        from burnbook.tensor import Tensor

        if isinstance(value, list):
            return (
                self.some(value) if device is self.device else self.some(value).inner()
            )
        return Tensor.from_numpy(np.asarray(value), device)

    # nn

    def layer(self, subject, *inputs, forward=None):
        """Forward and back: every number is finite, and something gets a gradient."""
        takes = hasattr(subject, "init") and inspect.signature(subject.init).parameters
        module = subject
        if hasattr(subject, "init"):
            module = subject.init(self.device) if "device" in takes else subject.init()
        tensors = [self._tensor(each, self.device) for each in inputs]
        out = forward(module, *tensors) if forward else module.forward(*tensors)
        self._back(
            floats_in(out), [*tensors, *(p.val() for _, p in module.named_params())]
        )

    def op(self, op, arrays, attrs):
        """An op as its method or `apply` runs it, and its gradient."""
        from burnbook.tensor import Tensor, apply

        arrays = [a.astype(np.float32) if a.dtype.kind == "f" else a for a in arrays]
        if not arrays:
            self.device.run(op, (), attrs)
            return
        can = op.can_track * len(arrays) if op.many else op.can_track
        tensors = [Tensor.from_numpy(a, self.device) for a in arrays]
        pairs = zip(tensors, can, strict=False)
        tensors = [t.require_grad() if c and is_float(t) else t for t, c in pairs]
        outs = floats_in(apply(op, *tensors, **attrs))
        if op.rules and any(t.is_require_grad() for t in tensors if is_float(t)):
            self._back(outs, tensors, finite=False)

    def _back(self, outs, leaves, finite=True):
        assert outs, "nothing came out"
        total = sum((out * out).sum() for out in outs)
        assert not finite or np.isfinite(np.asarray(total)).all()
        grads = total.backward()
        found = [leaf.grad(grads) for leaf in leaves if is_float(leaf)]
        found = [np.asarray(grad) for grad in found if grad is not None]
        assert found, "nothing got a gradient"
        assert not finite or all(np.isfinite(grad).all() for grad in found)

    def features(self):
        """What a style loss looks at, in place of a large network."""
        from burnbook.module import Module

        class Features(Module):
            def forward(self, x):
                return [x.tanh().flatten(2, 3), x.narrow(2, 1, 3).flatten(2, 3)]

        return Features()

    def initialize(self):
        """Every way to draw first weights."""
        from burnbook.nn import Initializer

        for made in (
            *(Initializer.Zeros, Initializer.Ones, Initializer.Constant(0.5)),
            *(Initializer.Uniform(0.0, 1.0), Initializer.Normal(0.0, 1.0)),
            *(Initializer.KaimingUniform(1.0, False), Initializer.Orthogonal(1.0)),
            *(Initializer.KaimingNormal(1.0, False), Initializer.XavierUniform(1.0)),
            Initializer.XavierNormal(1.0),
        ):
            made.init_with([self.n, 8], self.n, 8, self.device).val()

    def write_on(self, encoder):
        """Two words, one after the other, through the cache of a transformer."""
        from burnbook import nn

        device, n = self.device.inner, self.n
        if encoder:
            made = nn.TransformerEncoderConfig(16, 32, 4, 2).init(device)
        else:
            made = nn.TransformerDecoderConfig(16, 32, 4, 2).init(device)
        cache = made.new_autoregressive_cache()
        kind = type(cache).__name__
        assert kind == f"Transformer{'En' if encoder else 'De'}coderAutoregressiveCache"
        for length in (1, 2):
            x, memory = (
                self.some([n, length, 16]).inner(),
                self.some([n, 3, 16]).inner(),
            )
            if encoder:
                given = nn.TransformerEncoderInput.new(x)
            else:
                given = nn.TransformerDecoderInput.new(x, memory)
            made.forward_autoregressive_inference(given, cache)

    # optim

    def model(self, bias=True):
        """A layer to learn."""
        from burnbook.nn import LinearConfig

        made = LinearConfig(8 * self.n, 4 * self.n).with_bias(bias)
        return made.init(self.device)

    def gradients(self, model):
        """The gradients of a loss."""
        from burnbook.optim import GradientsParams

        out = model.forward(self.some([self.n, 8 * self.n]).detach())
        return GradientsParams.from_grads((out * out).sum().backward(), model)

    def learn(self, config, rate=0.01, bias=True):
        """Two steps, which move all weights, and a record that another one loads."""
        make = getattr(config, "init", config)
        made, model = make(), self.model(bias)
        before = [np.array(p.val()) for _, p in model.named_params()]
        for _ in range(2):
            model = made.step(rate, model, self.gradients(model))
        after = [np.asarray(p.val()) for _, p in model.named_params()]
        pairs = zip(before, after, strict=True)
        assert all(np.isfinite(b).all() and (a != b).any() for a, b in pairs)
        make().load_record(made.into_record())
        return made

    def state_of(self, config, kind, bias=True):
        """What an optimizer remembers of a parameter."""
        assert dataclasses.is_dataclass(kind)
        assert self.learn(config, bias=bias).into_record()

    def learn_all_at_once(self, **options):
        """A step of LBFGS, which asks for the loss as often as it wants."""
        from burnbook.optim import GradientsParams, LBFGSConfig

        x = self.some([self.n, 8 * self.n]).detach()

        def closure(model):
            out = model.forward(x)
            loss = (out * out).mean()
            grads = GradientsParams.from_grads(loss.backward(), model)
            return float(loss.into_scalar()), grads

        made = LBFGSConfig(max_iter=3, **options).init()
        _, loss = made.step(0.1, self.model(), closure)
        assert np.isfinite(loss)
        LBFGSConfig().init().load_record(made.into_record())

    def accumulate(self):
        """The sums of two batches."""
        from burnbook.optim import GradientsAccumulator

        model, made = self.model(), GradientsAccumulator()
        for _ in range(2):
            made.accumulate(model, self.gradients(model))
        assert len(made.grads()) == 2

    def sum_up(self):
        """The sums of two devices."""
        from burnbook.optim import MultiGradientsParams

        model = self.model()
        pairs = [(self.gradients(model), self.device.inner) for _ in range(2)]
        assert len(MultiGradientsParams(pairs).summed()) == 2

    def schedule(self, config):
        """Some rates, and a record to go on from."""
        made = config.init() if hasattr(config, "init") else config
        rates = [float(made.step()) for _ in range(3)]
        assert all(0 <= rate < 2 for rate in rates)
        made.load_record(made.into_record())

    # metrics

    def measure(self, metric, *inputs):
        """The entries of two batches and of the epoch."""
        from burnbook.data import Progress
        from burnbook.train.metric import MetricMetadata

        device = self.device.inner
        tensors = [self._tensor(each, device) for each in inputs]
        item = metric.Input(*tensors) if inputs else None
        for iteration in (1, 2):
            about = MetricMetadata(Progress(iteration, 2), 1, 1, iteration, 0.1)
            assert metric.update(item, about).name
        metric.compute()
        metric.clear()

    def confused(self, metric):
        """What confusion statistics count."""
        scores = self._tensor(self.share([4 * self.n, 3]), self.device.inner)
        targets = self._tensor(self.below(2, [4 * self.n, 3]) > 0, self.device.inner)
        return metric.ConfusionStatsInput(scores, targets)

    # data

    def batch_up(self):
        """A batcher of a reader."""
        from burnbook.data import Batcher, DataLoaderBuilder, InMemDataset

        class Mean(Batcher):
            def batch(self, items, device=None):
                return sum(items) / len(items)

        loader = DataLoaderBuilder(Mean()).batch_size(4).num_workers(2)
        assert len(list(loader.build(InMemDataset(range(8 * self.n))))) == 2 * self.n

    def map_up(self):
        """A mapper of a reader."""
        from burnbook.data import InMemDataset, Mapper, MapperDataset

        class Double(Mapper):
            def map(self, item):
                return 2 * item

        assert list(MapperDataset(InMemDataset([1, 2]), Double())) == [2, 4]

    def from_frame(self):
        """Rows of a dataframe, where polars is."""
        from burnbook.data import DataframeDataset

        with contextlib.suppress(ImportError):
            import polars

            frame = polars.DataFrame({"a": list(range(self.n))})
            assert len(DataframeDataset(frame)) == self.n

    def write_rows(self):
        """A table of SQLite, written and read."""
        from burnbook.data import SqliteDataset, SqliteDatasetWriter

        file = self.folder / "numbers.db"
        writer = SqliteDatasetWriter(file)
        for number in range(self.n):
            writer.write("train", {"x": number / 2})
        writer.set_completed()
        rows = SqliteDataset.from_db_file(file, "train")
        assert len(rows) == self.n
        rows.close()

    def look_at_folder(self):
        """Two folders of pictures, read without Pillow too."""
        from burnbook.data import ImageDatasetItem, ImageFolderDataset

        for name in ("cat", "dog"):
            (self.folder / name).mkdir()
            (self.folder / name / "1.png").write_bytes(WHITE_DOT)
        pictures = ImageFolderDataset.new_classification(self.folder)
        assert [type(each) for each in pictures] == [ImageDatasetItem] * 2

    def read_folder(self):
        """Two folders of texts."""
        from burnbook.data import TextDatasetItem, TextFolderDataset

        for name in ("bad", "good"):
            (self.folder / name).mkdir()
            (self.folder / name / "1.txt").write_text(name * self.n)
        texts = TextFolderDataset.new_classification(self.folder)
        assert [type(each) for each in texts] == [TextDatasetItem] * 2

    def write_idx(self):
        """An IDX file of bytes."""
        from burnbook.data import read_idx

        head = struct.pack(">HBBI", 0, 8, 1, self.n)
        (self.folder / "labels").write_bytes(head + bytes(self.n))
        assert read_idx(self.folder / "labels").shape == (self.n,)

    def offline(self, call, *arguments):
        """A download without a network: an error of ours, and what to do."""
        from burnbook.core.errors import BurnbookError

        os.environ |= {f"{s}_proxy": "http://127.0.0.1:9" for s in ("http", "https")}
        os.environ["BURNBOOK_CACHE"] = str(self.folder)
        with pytest.raises(BurnbookError, match="try:"):
            call(*arguments)

    # records

    def keep(self, recorder):
        """A model in a file, and a model from it; the path."""
        path = self.model().save_file(self.folder / "model", recorder)
        self.model().load_file(self.folder / "model", recorder, self.device)
        found = sorted(self.folder.glob("model*"))
        assert found
        return path or found[0]

    def keep_in_memory(self, recorder):
        """A model as bytes, and a model from them."""
        kept = recorder.record(self.model().into_record())
        self.model().load_record(recorder.load(kept, self.device))


def is_float(tensor):
    """Whether a tensor can have a gradient."""
    return tensor.kind.__name__ == "Float"


def floats_in(out):
    """The Float tensors of a result, however it is packed."""
    from burnbook.tensor import Tensor

    if isinstance(out, Tensor):
        return [out] if is_float(out) else []
    if dataclasses.is_dataclass(out):
        out = [getattr(out, field.name) for field in dataclasses.fields(out)]
    if isinstance(out, tuple | list):
        return [tensor for part in out for tensor in floats_in(part)]
    return []


WHITE_DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a4944415478"
    "9c63f80f0001010100 1bb6ee56 0000000049454e44ae426082".replace(" ", "")
)
