"""What other exporters write: PyTorch's two, Keras, scikit-learn, LightGBM, XGBoost."""

import io
import os
import warnings

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime", reason="it is the oracle here")

from burnbook.importers.onnx import Backend, load, source_of


def agrees(model, given, atol=3e-5):
    """Results of a model beside ONNX Runtime's: numbers, texts, and maps of scores."""
    held = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in held]
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    wanted = session.run(None, dict(zip(names, given, strict=True)))
    found = Backend.prepare(model).run(given)
    assert len(found) == len(wanted) > 0
    for a, b in zip(found, wanted, strict=True):
        if isinstance(b, list):  # a map from class to score for each row
            assert [list(row) for row in a] == [list(row) for row in b]
            a, b = ([list(row.values()) for row in rows] for rows in (a, b))
        if np.asarray(b).dtype.kind in "OUS":
            assert np.asarray(a).astype(str).tolist() == np.asarray(b).tolist()
            continue
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(
            np.asarray(a, np.float64), np.asarray(b, np.float64), atol=atol, rtol=1e-4
        )
    return source_of(load(model))


# PyTorch


def zoo():  # noqa: C901
    import torch

    tn, nf = torch.nn, torch.nn.functional

    class Calls(tn.Module):
        def __init__(self, function, **parts):
            super().__init__()
            self.function = function
            for name, part in parts.items():
                setattr(self, name, part)

        def forward(self, *inputs):
            return self.function(self, *inputs)

    class Bottleneck(tn.Module):
        def __init__(self, d_in, d, d_out, stride=1):
            super().__init__()
            self.conv1 = tn.Conv2d(d_in, d, 1, bias=False)
            self.bn1 = tn.BatchNorm2d(d)
            self.conv2 = tn.Conv2d(d, d, 3, stride, 1, bias=False)
            self.bn2 = tn.BatchNorm2d(d)
            self.conv3 = tn.Conv2d(d, d_out, 1)
            self.downsample = None
            if d_in != d_out or stride > 1:
                layers = tn.Conv2d(d_in, d_out, 1, stride), tn.BatchNorm2d(d_out)
                self.downsample = tn.Sequential(*layers)

        def forward(self, x):
            y = torch.relu(self.bn1(self.conv1(x)))
            y = self.conv3(torch.relu(self.bn2(self.conv2(y))))
            return torch.relu(
                y + (x if self.downsample is None else self.downsample(x))
            )

    class Recurrent(tn.Module):
        def __init__(self, cls, **settings):
            super().__init__()
            self.rnn = cls(6, 8, batch_first=True, **settings)
            self.out = tn.Linear(16 if settings.get("bidirectional") else 8, 3)

        def forward(self, x):
            y, state = self.rnn(x)
            return self.out(y), state[0] if isinstance(state, tuple) else state

    class Causal(tn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.proj = tn.Linear(16, 48), tn.Linear(16, 16)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.qkv(x).reshape(b, t, 3, 4, 4).permute(2, 0, 3, 1, 4)
            y = nf.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.proj(y.transpose(1, 2).reshape(b, t, c))

    class Gpt(tn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = tn.Embedding(30, 16), tn.Embedding(12, 16)
            self.ln, self.attn = tn.LayerNorm(16), Causal()
            gelu = tn.GELU(approximate="tanh")
            self.mlp = tn.Sequential(tn.Linear(16, 64), gelu, tn.Linear(64, 16))
            self.head = tn.Linear(16, 30, bias=False)
            self.head.weight = self.wte.weight

        def forward(self, ids):
            x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
            x = x + self.attn(self.ln(x))
            return self.head(x + self.mlp(x))

    class Unet(tn.Module):
        def __init__(self):
            super().__init__()

            def block(i, o):
                return tn.Sequential(
                    tn.Conv2d(i, o, 3, padding=1), tn.GroupNorm(2, o), tn.SiLU()
                )

            self.down1, self.down2 = block(1, 4), block(4, 8)
            self.up, self.out = block(12, 4), tn.Conv2d(4, 1, 1)

        def forward(self, x):
            a = self.down1(x)
            b = self.down2(nf.avg_pool2d(a, 2))
            b = nf.interpolate(b, scale_factor=2, mode="bilinear")
            return torch.sigmoid(self.out(self.up(torch.cat([a, b], 1))))

    def indexed(_, x, i):
        return (
            *(x[:, 1:-1:2], x[..., i], torch.where(x > 0, x, -x), x.topk(2).values),
            *(x.cumsum(1), x.masked_fill(x < 0, 0.0), x.unsqueeze(0).flip(1)),
        )

    def mathematics(_, x):
        return (
            *(x.std(1), x.norm(dim=1), torch.logsumexp(x, 1), x.argmax(-1)),
            nf.softplus(x) + nf.mish(x) + nf.silu(x) + nf.hardsigmoid(x),
            x.clamp(-1, 1).round(),
        )

    r = torch.randn
    block = tn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True)
    first = tn.TransformerEncoderLayer(
        16, 4, 32, 0.0, batch_first=True, norm_first=True
    )
    decoder = tn.TransformerDecoderLayer(16, 4, 32, 0.0, batch_first=True)
    any_size = ({0: "batch", 1: "sequence"},)
    return {  # a model, its inputs, and which sizes are open
        "resnet": (
            tn.Sequential(
                *(tn.Conv2d(3, 8, 7, 2, 3), tn.BatchNorm2d(8), tn.MaxPool2d(3, 2, 1)),
                tn.Sequential(Bottleneck(8, 4, 16), *[Bottleneck(16, 4, 16)] * 2),
                *(tn.AdaptiveAvgPool2d(1), tn.Flatten(), tn.Linear(16, 5)),
            ),
            (r(2, 3, 32, 32),),
            None,
        ),
        "lstm": (Recurrent(tn.LSTM), (r(2, 5, 6),), None),
        "lstm of two layers": (
            Recurrent(tn.LSTM, num_layers=2, bidirectional=True),
            (r(2, 5, 6),),
            None,
        ),
        "gru": (Recurrent(tn.GRU), (r(2, 5, 6),), None),
        "gru both ways": (Recurrent(tn.GRU, bidirectional=True), (r(2, 5, 6),), None),
        "rnn": (Recurrent(tn.RNN), (r(2, 5, 6),), None),
        "encoder": (
            tn.TransformerEncoder(block, 2, enable_nested_tensor=False),
            (r(2, 5, 16),),
            None,
        ),
        "encoder of any size": (
            tn.TransformerEncoder(first, 2, enable_nested_tensor=False),
            (r(2, 5, 16),),
            any_size,
        ),
        "decoder": (
            Calls(lambda m, x, y: m.dec(x, y), dec=tn.TransformerDecoder(decoder, 2)),
            (r(2, 5, 16), r(2, 6, 16)),
            None,
        ),
        "gpt": (Gpt(), (torch.randint(0, 12, (2, 7)),), None),
        "gpt of any size": (Gpt(), (torch.randint(0, 12, (2, 7)),), any_size),
        "embedding bag": (
            Calls(
                lambda m, x: m.fc(m.bag(x)),
                bag=tn.EmbeddingBag(12, 6),
                fc=tn.Linear(6, 2),
            ),
            (torch.randint(0, 12, (2, 4)),),
            None,
        ),
        "einsum": (
            Calls(lambda m, x, y: torch.einsum("bij,bjk->bki", x, y)),
            (r(2, 3, 4), r(2, 4, 5)),
            None,
        ),
        "unet": (Unet(), (r(2, 1, 8, 8),), None),
        "interpolate": (
            Calls(
                lambda m, x: (
                    nf.interpolate(x, size=(7, 9), mode="nearest"),
                    nf.interpolate(x, scale_factor=1.5, mode="bicubic"),
                )
            ),
            (r(1, 2, 6, 6),),
            None,
        ),
        "mobile": (
            tn.Sequential(
                *(tn.Conv2d(3, 8, 3, 2, 1), tn.Hardswish()),
                *(tn.Conv2d(8, 8, 3, 1, 1, groups=8), tn.ReLU6(), tn.Conv2d(8, 4, 1)),
                *(tn.Dropout(0.1), tn.PixelShuffle(2), tn.ZeroPad2d(1)),
            ),
            (r(1, 3, 8, 8),),
            ({0: "batch"},),
        ),
        "volumes": (
            tn.Sequential(
                *(tn.Conv3d(1, 2, 2), tn.InstanceNorm3d(2, affine=True), tn.PReLU()),
                *(tn.AdaptiveAvgPool3d(1), tn.Flatten()),
            ),
            (r(2, 1, 4, 5, 6),),
            None,
        ),
        "indexing": (Calls(indexed), (r(2, 6), torch.tensor([0, 3])), None),
        "mathematics": (Calls(mathematics), (r(3, 6),), None),
        "called twice": (
            Calls(lambda m, x, y: m.a(x) + m.a(y), a=Bottleneck(4, 2, 4)),
            (r(1, 4, 5, 5), r(1, 4, 5, 5)),
            None,
        ),
        "double": (tn.Sequential(tn.Linear(4, 3)).double(), (r(2, 4).double(),), None),
    }


def from_torch(model, given, sizes, newer):
    import torch

    if newer:
        pytest.importorskip("onnxscript", reason="the newer exporter needs it")
    for part in model.buffers():
        if part.dtype.is_floating_point:
            part.data.uniform_(0.5, 1.5)
    for part in model.parameters():
        if part.ndim == 1:
            part.data.uniform_(-0.5, 1.0)
    file, settings = io.BytesIO(), {}
    if sizes is not None and newer:
        dim = torch.export.Dim.DYNAMIC
        settings["dynamic_shapes"] = (tuple(dict.fromkeys(s, dim) for s in sizes),)
        if not hasattr(model, "function"):
            settings["dynamic_shapes"] = settings["dynamic_shapes"][0]
    elif sizes is not None:
        settings["input_names"] = ["x"]
        settings["dynamic_axes"] = {"x": sizes[0]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        target = None if newer else file
        made = torch.onnx.export(model.eval(), given, target, dynamo=newer, **settings)
    return made.model_proto if newer else onnx.load_from_string(file.getvalue())


NAMES = """
resnet, lstm, lstm of two layers, gru, gru both ways, rnn, encoder,
encoder of any size, decoder, gpt, gpt of any size, embedding bag, einsum, unet,
interpolate, mobile, volumes, indexing, mathematics, called twice, double
"""
QUICK = ("lstm", "gpt")  # with the newer exporter, which takes seconds for each


def cases():
    for name in " ".join(NAMES.split()).split(", "):
        yield pytest.param(name, False, id=f"{name}, older")
        marks = [] if name in QUICK else [pytest.mark.slow]
        yield pytest.param(name, True, id=f"{name}, newer", marks=marks)


@pytest.mark.parametrize(("name", "newer"), list(cases()))
def test_pytorch(name, newer):
    torch = pytest.importorskip("torch", reason="PyTorch writes these")
    torch.manual_seed(0)
    model, given, sizes = zoo()[name]
    made = from_torch(model, given, sizes, newer)
    agrees(made, [x.numpy() for x in given])
    if sizes is not None:
        more = [np.concatenate([x.numpy()] * 2, 0) for x in given]
        agrees(made, more)


def test_control_flow_of_a_scripted_module():
    torch = pytest.importorskip("torch", reason="PyTorch writes these")

    class Branch(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

        def forward(self, x, n: int):
            y = self.a(x) if bool(x.sum() > 0) else self.b(x)
            for i in range(n):
                y = torch.relu(y) + float(i)
            return y

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.jit.script(Branch())
        file = io.BytesIO()
        x = torch.randn(2, 4)
        torch.onnx.export(model, (x, torch.tensor(3)), file, dynamo=False)
    made = onnx.load_from_string(file.getvalue())
    for sign, count in ((1, 3), (-1, 0), (-1, 5)):
        given = [sign * np.abs(x.numpy()), np.array(count)]
        assert "ops.if_(" in agrees(made, given)


# Keras


def test_keras(tmp_path):
    os.environ.setdefault("KERAS_BACKEND", "torch")
    pytest.importorskip("torch", reason="Keras exports with PyTorch")
    keras = pytest.importorskip("keras")
    if keras.backend.backend() != "torch":
        pytest.skip("Keras has another backend here")
    layers, rng = keras.layers, np.random.default_rng(0)
    pixels = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(8, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.DepthwiseConv2D(3, padding="same"),
            layers.SeparableConv2D(4, 3, activation="swish"),
            layers.Flatten(),
            layers.Dense(16, activation="gelu"),
            layers.Dropout(0.5),
            layers.Dense(10, activation="softmax"),
        ]
    )
    ids = keras.Input((7,), dtype="int32")
    y = layers.Embedding(20, 16)(ids)
    y = layers.Bidirectional(layers.LSTM(8, return_sequences=True))(y)
    words = keras.Model(ids, layers.Dense(3)(layers.GRU(6)(y)))
    for model, x in (
        (pixels, rng.standard_normal((2, 28, 28, 1)).astype(np.float32)),
        (words, rng.integers(0, 20, (2, 7)).astype(np.int32)),
    ):
        model(x)
        for weight in model.weights:
            if len(weight.shape) == 1:
                weight.assign(np.abs(rng.standard_normal(weight.shape)) + 0.1)
        path = str(tmp_path / "model.onnx")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.export(path, format="onnx", verbose=False)
        agrees(onnx.load(path), [x])


# scikit-learn and gradient boosting


def learners():
    from sklearn import (
        cluster,
        ensemble,
        linear_model,
        naive_bayes,
        neighbors,
        neural_network,
        svm,
        tree,
    )
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import (
        MinMaxScaler,
        Normalizer,
        OneHotEncoder,
        PolynomialFeatures,
        StandardScaler,
    )

    columns = make_column_transformer(
        (OneHotEncoder(), [4]),
        (make_pipeline(SimpleImputer(strategy="median"), MinMaxScaler()), [0, 1]),
        (StandardScaler(), [2, 3]),
    )
    mlp = neural_network.MLPClassifier((8,), max_iter=100, random_state=0)
    return {  # a learner, and what it learns: numbers, classes, two classes, nothing
        "linear": (linear_model.LinearRegression(), "y"),
        "ridge": (linear_model.Ridge(), "y"),
        "lasso": (linear_model.Lasso(0.1), "y"),
        "logistic": (linear_model.LogisticRegression(max_iter=300), "c"),
        "logistic of two": (linear_model.LogisticRegression(), "b"),
        "logistic of texts": (linear_model.LogisticRegression(max_iter=300), "t"),
        "sgd": (linear_model.SGDClassifier(random_state=0), "c"),
        "tree": (tree.DecisionTreeClassifier(random_state=0), "c"),
        "tree of numbers": (tree.DecisionTreeRegressor(random_state=0), "y"),
        "forest": (ensemble.RandomForestClassifier(5, random_state=0), "c"),
        "forest of numbers": (ensemble.RandomForestRegressor(5, random_state=0), "y"),
        "boosting": (ensemble.GradientBoostingClassifier(n_estimators=5), "c"),
        "boosting of numbers": (
            ensemble.GradientBoostingRegressor(n_estimators=5),
            "y",
        ),
        "adaboost": (ensemble.AdaBoostClassifier(n_estimators=4), "c"),
        "svc": (svm.SVC(), "c"),
        "svc of two": (svm.SVC(kernel="poly"), "b"),
        "svc with probabilities": (svm.SVC(probability=True, random_state=0), "c"),
        "linear svc": (svm.LinearSVC(), "c"),
        "svr": (svm.SVR(kernel="sigmoid"), "y"),
        "kmeans": (cluster.KMeans(3, n_init=1, random_state=0), ""),
        "knn": (neighbors.KNeighborsClassifier(), "c"),
        "knn of numbers": (neighbors.KNeighborsRegressor(), "y"),
        "naive bayes": (naive_bayes.GaussianNB(), "c"),
        "mlp": (mlp, "c"),
        "pipeline": (
            make_pipeline(
                *(SimpleImputer(), StandardScaler(), PolynomialFeatures(2)),
                *(Normalizer(), linear_model.LogisticRegression(max_iter=300)),
            ),
            "c",
        ),
        "columns": (
            make_pipeline(columns, ensemble.RandomForestClassifier(5, random_state=0)),
            "c",
        ),
    }


LEARNERS = """
linear, ridge, lasso, logistic, logistic of two, logistic of texts, sgd, tree,
tree of numbers, forest, forest of numbers, boosting, boosting of numbers, adaboost,
svc, svc of two, svc with probabilities, linear svc, svr, kmeans, knn, knn of numbers,
naive bayes, mlp, pipeline, columns
"""


def flowers():
    sklearn = pytest.importorskip("sklearn.datasets")
    x, c = sklearn.load_iris(return_X_y=True)
    x = x.astype(np.float32)
    y = (x @ [1, 2, -1, 0.5]).astype(np.float32)
    texts = np.array(["setosa", "versicolor", "virginica"])[c]
    return x, {"y": y, "c": c, "b": (c > 0).astype(int), "t": texts, "": None}


@pytest.mark.parametrize("name", " ".join(LEARNERS.split()).split(", "))
def test_scikit_learn(name):
    skl2onnx = pytest.importorskip("skl2onnx")
    x, wanted = flowers()
    learner, what = learners()[name]
    if name == "columns":
        x = np.c_[x, np.arange(len(x)) % 4].astype(np.float32)
    if name in ("pipeline", "columns"):
        x[::7, 1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner.fit(x, wanted[what])
        target = {"": 18, "ai.onnx.ml": 3}
        made = skl2onnx.to_onnx(learner, x[:1], target_opset=target)
    agrees(made, [x[:40]], atol=2e-4)


@pytest.mark.parametrize("what", ["c", "b", "y"])
@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_gradient_boosting(library, what):
    learning = pytest.importorskip(library)
    tools = pytest.importorskip("onnxmltools")
    from onnxmltools.convert.common.data_types import FloatTensorType

    x, wanted = flowers()
    x[::7, 1] = np.nan
    kind = "Regressor" if what == "y" else "Classifier"
    if library == "lightgbm":
        learner = getattr(learning, f"LGBM{kind}")(n_estimators=6, verbose=-1)
    else:
        learner = getattr(learning, f"XGB{kind}")(n_estimators=6)
    learner.fit(x, wanted[what])
    convert = getattr(tools, f"convert_{library}")
    shape = [("input", FloatTensorType([None, 4]))]
    made = convert(learner, initial_types=shape, target_opset=15)
    agrees(made, [x[:40]], atol=2e-4)
