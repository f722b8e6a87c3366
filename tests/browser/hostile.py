"""Every view and every exported page with names that are code unless they are escaped.

PAYLOADS are such names: each calls `hit()` if a page takes it for HTML, for JavaScript
or for the address of a link. FILES are those that can be names of files. What the cells
show leaves its still form in `stills`, exported pages in the folder of the notebook.
"""

from tests.browser import views

IMAGE = "<img src=x onerror=hit()>"
PAYLOADS = [
    IMAGE,
    "<script>hit()</script>" + IMAGE,
    f'"><svg onload=hit()>{IMAGE}',
    f"'>{IMAGE}&lt;img src=x onerror=hit()&gt;",
    "${hit()}`${hit()}`{{hit()}}",
    "javascript:hit()",
    '<a href="javascript:hit()">x</a>',
    f"</textarea></style></title></script>{IMAGE}",
    f"]]>--><!--{IMAGE}",
    "\"onmouseover=hit() onfocus=hit() autofocus tabindex=1 x='",
    f"\u2028\u2029{IMAGE}\u202e\u2066",
    f"\\\"'\\u003cimg src=x onerror=hit()\\u003e{IMAGE}",
]
FILES = [
    text.replace("/", "") for text in PAYLOADS if text.replace("/", "").isprintable()
]

SETUP = f"""
{views.SETUP}
import json
from pathlib import Path
from types import SimpleNamespace
from burnbook.module import Module
from burnbook.train import MetricHistory, MetricsRenderer
from burnbook_widgets.pictures import Bars, Images, Lines

PAYLOADS = {PAYLOADS!r}
FILES = {FILES!r}
stills = []


def hostile(kind):
    "A class of that kind whose name and first sentence are hostile."
    made = type(kind.__name__, (kind,), {{"__doc__": PAYLOADS[2]}})
    made.__name__ = made.__qualname__ = PAYLOADS[0]
    return made


class Layers(Module):
    layers: dict[str, nn.Linear]

    def forward(self, x):
        for layer in self.layers.values():
            x = layer.forward(x)
        return x


linear = nn.LinearConfig(4, 4)
layers = {{text: linear.init(device) for text in PAYLOADS}}
module = hostile(Layers)(layers)

root = Path(tempfile.mkdtemp())
for place, run in enumerate(FILES):
    for name in FILES:
        log = root / run / "valid" / "epoch-1" / f"{{name}}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"{{1 / (1 + place)}},1\\n")
    config = {{text: [text, place] for text in PAYLOADS}}
    (root / run / "config.json").write_text(json.dumps(config))
"""

# A cell leaves its view as `view`.
CELLS = {
    "TensorView": """
view = TensorView(Tensor.from_data(np.eye(3), Numpy()))
""",
    "ClosenessView": """
a = {text: np.arange(6.0) for text in PAYLOADS}
b = {text: np.arange(6.0) + place for place, text in enumerate(PAYLOADS)}
view = ClosenessView(a, b)
view.layer = PAYLOADS[2]
""",
    "ModuleTree": """
view = ModuleTree(module, [1, 4])
view.chosen = f"layers.{PAYLOADS[0]}"
view.freeze()
""",
    "DatasetBrowser": """
items = [SimpleNamespace(text=text, label=i) for i, text in enumerate(PAYLOADS)]
scores = np.roll(np.eye(len(PAYLOADS)), 1, axis=1)
view = DatasetBrowser(items, classes=PAYLOADS, predictions=scores)
view.select(1)
""",
    "DatasetBrowser, confusion": """
view = DatasetBrowser(items, classes=PAYLOADS, predictions=scores)
view.view = "confusion"
""",
    "DatasetBrowser, mistakes": """
view = DatasetBrowser(items, classes=PAYLOADS, predictions=scores)
view.view = "mistakes"
view.select(2)
""",
    "DatasetBrowser, table": """
rows = [{text: text for text in PAYLOADS} for _ in "ab"]
view = DatasetBrowser(rows)
view.select(0)
""",
    "ConvolutionView": """
view = ConvolutionView(np.eye(6), np.eye(3))
""",
    "AttentionView": """
view = AttentionView(np.full((len(PAYLOADS),) * 2, 1 / len(PAYLOADS)), PAYLOADS)
view.query = 2
""",
    "FileView": """
import struct
held = {
    text: {"dtype": "F32", "shape": [1], "data_offsets": [4 * at, 4 * at + 4]}
    for at, text in enumerate(PAYLOADS)
}
head = json.dumps({"__metadata__": dict(zip(PAYLOADS, PAYLOADS)), **held}).encode()
head += b" " * (-len(head) % 8)
path = Path(tempfile.mkdtemp()) / f"{FILES[0]}.safetensors"
length = struct.pack("<Q", len(head))
path.write_bytes(length + head + bytes(4 * len(PAYLOADS)))
view = FileView(path)
view.selected = PAYLOADS[1]
""",
    "FileView, graph": """
nodes = [
    (text, f"/{text}/{text}", [f"{text}i", PAYLOADS[at - 1]], [text], text)
    for at, text in enumerate(PAYLOADS)
]
ends = [[(f"{text}{end}", [text]) for text in PAYLOADS] for end in ("i", "")]
weights = {text * 2: np.ones(3) for text in PAYLOADS}
path = onnx_file(nodes, weights, *ends, about=PAYLOADS[:2])
view = FileView(path)
view.node = PAYLOADS[2]
""",
    "GraphView": """
leaves = {
    text: Tensor[1].from_floats([1.0], device).require_grad() for text in PAYLOADS
}
view = GraphView(sum(leaves.values(), 0.0), **leaves)
view.end()
""",
    "GraphView, groups": """
seen = module.forward(Tensor.ones([2, 4], device)).square().mean()
view = GraphView(seen, **{PAYLOADS[0]: module})
""",
    "SchedulePlot": """
from burnbook.lr_scheduler import LinearLrSchedulerConfig
schedule = LinearLrSchedulerConfig(0.9, 0.1, 60)
view = SchedulePlot({text: schedule for text in PAYLOADS[:5]})
""",
    "SchedulePlot, others": """
view = SchedulePlot({text: schedule for text in PAYLOADS[5:]})
""",
    "RunsBrowser": """
view = RunsBrowser(root)
view.choose(*FILES[:4])
view.export("runs.html")
""",
    "Playground": """
view = Playground(points=20, hidden=[2])
""",
    "Dashboard": """
from burnbook.data import Progress
from burnbook.optim import GradientsParams
from burnbook.train import Interrupter, MetricEntry, MetricState, RunInfo
from burnbook.train import TrainingProgress, TrainingResult

board = NotebookRenderer(overlay=root, norms=True)
run = RunInfo(
    str(root / FILES[0]), tuple(FILES), 2, 1, Interrupter(), PAYLOADS[2], "fit",
    {name: PAYLOADS[5] for name in FILES}, PAYLOADS[1], True, PAYLOADS[0], True,
)
board.start(run)
grads = GradientsParams.from_grads(seen.backward(), module)
board.inspect(module, grads)
history = MetricHistory()
for epoch in (1, 2):
    for split in ("train", "valid"):
        for name in FILES:
            state = MetricState(MetricEntry(name, "0.5", "0.5,1"), 0.5)
            getattr(board, f"update_{split}")(state)
            history.add(name, split, 0.5)
        progress = TrainingProgress(Progress(1, 1), epoch, 2, 1)
        getattr(board, f"render_{split}")(progress)
        means = dict.fromkeys(FILES, 0.5)
        board.end_epoch(epoch, split, means)
        history.end_epoch(epoch, split, means)
board.saved(1, PAYLOADS[0])
board.saved(2, PAYLOADS[0], PAYLOADS[1])
view = board.dashboard
view.export("running.html")
""",
    "Dashboard, ended": """
board.finish(TrainingResult("model", history, PAYLOADS[0], 2, 1.5, PAYLOADS[0]))
view.export("ended.html")
""",
}

# What stands in a page as it is: still forms, pictures, tables, figures.
PAGES = """
from burnbook.module import summary
from burnbook.tensor import check_closeness
from burnbook.train.runs import RunStore

history = MetricHistory()
for name in PAYLOADS:
    history.add(name, "train", 0.5)
    history.end_epoch(1, "train", {name: 0.5})
figure = history_figure(history, dict.fromkeys(PAYLOADS, PAYLOADS[6]))
Path("figure.html").write_text(figure.to_html(include_plotlyjs=True))
store = RunStore(root)
numbers = dict.fromkeys(PAYLOADS, [1.0, 2.0])
pictures = [
    Images(np.zeros((len(PAYLOADS), 8, 8)), titles=PAYLOADS, alt=PAYLOADS[0]),
    Bars(dict.fromkeys(PAYLOADS, 1.0), title=PAYLOADS[0]),
    Lines(numbers, PAYLOADS[0], x_label=PAYLOADS[1], y_label=PAYLOADS[2]),
]
tables = [check_closeness(a, b), summary(module, [1, 4]), store]
tables.append(store.compare(*FILES[:3]))
parts = [picture._repr_mimebundle_()[0]["text/html"] for picture in pictures]
parts += [picture.drawing().svg() for picture in pictures[1:]]
parts += [table._repr_html_() for table in tables]
for name, held in {"stills": stills, "tables": parts}.items():
    text = "<!doctype html><meta charset=utf-8>" + "".join(held)
    Path(f"{name}.html").write_text(text, "utf-8", "surrogatepass")
"""
EXPORTED = ("stills", "tables", "figure", "runs", "running", "ended")
