"""One small example of every view of burnbook_widgets, as a cell that shows it.

A view's cell leaves it as `view` and may use what SETUP imports. Names that are shown
by the cell of another one stand in SHOWN_BY; tests/widgets/test_views.py fails when a
public name is in neither.
"""

SETUP = """
import tempfile
import numpy as np
import burnbook
from burnbook import nn
from burnbook.backend.autodiff import Autodiff
from burnbook.backend import Numpy
from burnbook.data import DataLoaderBuilder, DigitsDataset
from burnbook.examples.guide.data import MnistBatcher
from burnbook.examples.guide.model import ModelConfig
from burnbook.core.dtypes import Int
from burnbook.optim import AdamConfig
from burnbook.tensor import Tensor
from burnbook.train import AccuracyMetric, LearnerBuilder, LossMetric
from burnbook_widgets import *

burnbook.seed(0)
device = Autodiff(Numpy())
batches = DataLoaderBuilder(MnistBatcher()).batch_size(64).shuffle(42)
train, valid = batches.build(DigitsDataset.train()), batches.build(DigitsDataset.test())


def learner_for(epochs, board):
    builder = LearnerBuilder(tempfile.mkdtemp()).renderer(board).devices([device])
    for metric in (AccuracyMetric, LossMetric):
        builder = builder.metric_train_numeric(metric()).metric_valid_numeric(metric())
    model = ModelConfig(10, 32).init(device)
    return builder.num_epochs(epochs).build(model, AdamConfig().init(), 1e-3)


def onnx_file(nodes, weights, inputs, outputs, about=("tests", "")):
    "An ONNX file, byte by byte; a node is (operator, name, inputs, outputs, domain)."
    from burnbook.importers.onnx.wire import as_chunk, as_varint

    def part(*fields):
        held = [(n, c.encode() if isinstance(c, str) else c) for n, c in fields]
        return b"".join(
            as_varint(8 * n) + as_varint(c) if isinstance(c, int) else as_chunk(n, c)
            for n, c in held
        )

    def value(name, shape):
        sizes = [(1, n) if isinstance(n, int) else (2, n) for n in shape]
        dims = part(*[(1, part(size)) for size in sizes])
        return part((1, name), (2, part((1, part((1, 1), (2, dims))))))

    graph = [(2, about[1])]
    for op, name, given, made, domain in nodes:
        ends = [(1, one) for one in given] + [(2, one) for one in made]
        graph.append((1, part(*ends, (3, name), (4, op), (7, domain))))
    for name, array in weights.items():
        dims = [(1, n) for n in array.shape]
        raw = array.astype("<f4").tobytes()
        graph.append((5, part(*dims, (2, 1), (8, name), (9, raw))))
    graph += [(11, value(*one)) for one in inputs]
    graph += [(12, value(*one)) for one in outputs]
    domains = {"": 17, **{node[4]: 1 for node in nodes if node[4]}}
    opsets = [(8, part((1, name), (2, n))) for name, n in domains.items()]
    path = tempfile.mkdtemp() + "/net.onnx"
    texts = (2, about[0]), (6, about[1])
    with open(path, "wb") as file:
        file.write(part((1, 8), *texts, (7, part(*graph)), *opsets))
    return path
"""

CELLS: dict[str, str] = {
    "TensorView": """
values = np.arange(120, dtype=np.float32).reshape(4, 5, 6) - 30
values[0, 1, 2], values[0, 2, 3], values[0, 4, 4] = np.nan, np.inf, -np.inf
view = TensorView(Tensor.from_data(values, Numpy()))
""",
    "TensorView, outlier": """
values = np.random.default_rng(0).normal(size=(300, 200)).astype(np.float32)
values[30, 40] = 1e6
view = TensorView(Tensor.from_data(values, Numpy()))
view.part = (20, 30, 24, 30)
view.cell = (30, 40)
""",
    "TensorView, curve": """
view = TensorView(Tensor.from_data(np.sin(np.arange(90) / 7), Numpy()))
view.cell = (0, 12)
""",
    "TensorView, color": """
pixels = np.random.default_rng(0).random((2, 3, 16, 16))
view = TensorView(Tensor.from_data(pixels, Numpy()))
view.rgb = True
""",
    "ClosenessView": """
names = ["conv1.weight", "conv1.bias", "linear.weight", "linear.bias"]
a = {name: np.linspace(-1, 1, 96).reshape(8, 12) for name in names}
b = {name: array + 10.0 ** (2 * at - 8) for at, (name, array) in enumerate(a.items())}
view = ClosenessView(a, b)
""",
    "ModuleTree": """
view = ModuleTree(ModelConfig(10, 32).init(device), [1, 28, 28])
view.freeze("conv1")
view.chosen = "conv1"
""",
    "DatasetBrowser": """
digits = DigitsDataset.test()
labels = np.array([item.label for item in digits])
scores = np.eye(10)[(labels + (np.arange(359) % 9 == 0)) % 10]
view = DatasetBrowser(digits, predictions=3 * scores, batcher=MnistBatcher())
view.select(9)
""",
    "DatasetBrowser, table": """
rows = [{"rooms": i % 4, "price": 223300.0 + 1000 * (7 * i % 50)} for i in range(500)]
view = DatasetBrowser(rows, page_size=5)
view.sort("price", descending=True)
""",
    "DatasetBrowser, sounds": """
tone = np.sin(np.arange(4000) / 3)
view = DatasetBrowser([{"samples": tone, "sample_rate": 8000}] * 3)
view.select(1)
""",
    "DatasetBrowser, empty": """
view = DatasetBrowser([])
""",
    "ConvolutionView": """
digit = DigitsDataset.train().get(5).image / 255
view = ConvolutionView(digit, [[1, 0, -1], [2, 0, -2], [1, 0, -1]], padding=1)
view.at = (20, 9)
""",
    "AttentionView": """
words = ["the", "cat", "saw", "the", "dog", "and", "the", "dog", "ran"]
places = [sorted(set(words)).index(word) for word in words]
tokens = Tensor[2].eye(6, Numpy()).select(0, Tensor[1, Int].from_ints(places, Numpy()))
layer = nn.MultiHeadAttentionConfig(6, 2).init(Numpy())
mask = nn.generate_autoregressive_mask(1, 9, Numpy())
asked = nn.MhaInput.self_attn(9.0 * tokens.unsqueeze(3)).mask_attn(mask)
view = AttentionView(layer.forward(asked), words, attn=mask)
view.query = 4
""",
    "FileView": """
from burnbook.record import DefaultRecorder
model = ModelConfig(10, 32).init(device)
path = model.save_file(tempfile.mkdtemp() + "/digits", DefaultRecorder())
view = FileView(path)
view.selected = "conv1.weight"
""",
    "FileView, graph": """
nodes = [
    ("MatMul", "/fc1/MatMul", ["x", "fc1.weight"], ["a"], ""),
    ("Relu", "/Relu", ["a"], ["b"], ""),
    ("MatMul", "/fc2/MatMul", ["b", "fc2.weight"], ["y"], ""),
]
weights = {"fc1.weight": np.ones((4, 8)), "fc2.weight": np.ones((8, 2))}
path = onnx_file(nodes, weights, [("x", [1, 4])], [("y", [1, 2])])
view = FileView(path)
view.node = "/fc1/MatMul"
""",
    "GraphView": """
w = Tensor[2].from_floats([[0.5], [-0.25]], device).require_grad()
x = Tensor[2].from_floats([[1.0, 2.0], [3.0, 4.0]], device)
loss = (x.matmul(w) - 1.0).powf_scalar(2.0).mean()
view = GraphView(loss, w=w, x=x)
view.start()
view.forward()
""",
    "GraphView, groups": """
model = ModelConfig(10, 32).init(device)
seen = model.forward(Tensor.ones([2, 28, 28], device)).square().mean()
view = GraphView(seen, model=model)
view.fold()
view.unfold("model")
""",
    "SchedulePlot": """
from burnbook.lr_scheduler import CosineAnnealingLrSchedulerConfig
from burnbook.lr_scheduler import LinearLrSchedulerConfig
cosine = CosineAnnealingLrSchedulerConfig(0.9, 40)
view = SchedulePlot([cosine, LinearLrSchedulerConfig(0.9, 0.1, 60)])
""",
    "RunsBrowser": """
from pathlib import Path
runs = Path(tempfile.mkdtemp())
for run, losses in {"one": (0.9, 0.5, 0.4), "other": (0.8, 0.4, 0.2)}.items():
    for epoch, loss in enumerate(losses, 1):
        log = runs / run / "valid" / f"epoch-{epoch}" / "Loss.log"
        log.parent.mkdir(parents=True)
        log.write_text(f"{loss},1\\n")
view = RunsBrowser(runs)
view.choose("one", "other")
""",
    "RunsBrowser, picture": """
many = Path(tempfile.mkdtemp())
for place in range(9):
    log = many / f"run{place}" / "valid" / "epoch-1" / "Loss.log"
    log.parent.mkdir(parents=True)
    log.write_text(f"{1 / (1 + place)},1\\n")
    (many / f"run{place}" / "config.json").write_text(f'{{"rate": {10.0 ** -place}}}')
view = RunsBrowser(many)
view.sort = "rate"
""",
    "Playground": """
view = Playground(points=60, hidden=[4])
view.advance(20)
""",
    "Dashboard": """
board = NotebookRenderer()
model = learner_for(2, board).fit(train, valid)
view = board.dashboard
""",
    "Dashboard, live": """
import time
board = NotebookRenderer(overlay=runs, norms=True)
handle = learner_for(300, board).start(train, valid)
while board.dashboard is None or len(board.dashboard.curves.rows()) < 2:
    time.sleep(0.05)
view = board.dashboard
view.zoom = (0, 1)
view.smoothing = 0.9
view.pause()
""",
    "history_figure": """
learner = learner_for(2, NotebookRenderer())
model = learner.fit(train, valid)
view = history_figure(learner.result.history, {"Accuracy": "%"})
""",
}

# The figures of plotly are its own: it names and colours them.
SHOWN_BY = {
    "Chart": "Dashboard, live",
    "live": "Dashboard, live",
    "NotebookRenderer": "Dashboard",
    "PlotlyRenderer": "history_figure",
}
